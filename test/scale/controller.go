// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A controller is the program as the chart runs it: with the same command, environment and identity. It has its own network: the address
// identifies its requests in the audit log, and the counters show the bytes that it reads. If it ends by itself, it is restarted, as by a
// kubelet.
type controller struct {
	name, address string
	begin         func() *exec.Cmd
	log           *os.File
	begun         time.Time
	mu            sync.Mutex
	changed       *sync.Cond
	pid           int
	spent         float64              // CPU seconds of its ended processes
	marked        map[string]time.Time // when it first logged this
	lost          int                  // how often it lost the lease
	ending, ended bool
}

type usage struct {
	CPU     float64 // seconds, user and system
	Dirty   int     // private dirty, KB
	Peak    int     // VmHWM, KB
	Read    int64   // received bytes of its network
	Written int64
}

var marks = []string{"leading", "leader observed", "leadership is lost", "all caches are filled"}

func startController(name, namespace, address, program, kubeconfig, log string, env []string) *controller {
	c := &controller{name: name, address: address, marked: map[string]time.Time{}, begun: time.Now()}
	c.changed = sync.NewCond(&c.mu)
	var err error
	c.log, err = os.Create(log)
	check(err, log)
	c.begin = func() *exec.Cmd {
		command := exec.Command("ip", "netns", "exec", namespace, program, "--kubeconfig", kubeconfig)
		for _, pair := range env {
			command.Env = append(command.Env, pair)
			if v, found := strings.CutPrefix(pair, "LOG_VERBOSITY="); found {
				command.Args = append(command.Args, "-v", v)
			}
		}
		command.Env = append(command.Env, "POD_NAME="+name, "NAMESPACE="+driverNS)
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return command
	}
	c.process()
	return c
}

// process starts a process and reads its log until it ends.
func (c *controller) process() {
	command := c.begin()
	out, err := command.StderrPipe()
	check(err, c.name)
	check(command.Start(), c.name)
	c.pid = command.Process.Pid
	go func() {
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			c.log.WriteString(line)
			for _, m := range marks {
				if strings.Contains(line, "\""+m) {
					c.mark(m)
				}
			}
			if err != nil {
				break
			}
		}
		command.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spent += (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
		if !c.ending {
			say("%s ended by itself (%v) and restarts: see %s", c.name, command.ProcessState, c.log.Name())
			c.process()
			return
		}
		c.ended = true
		c.changed.Broadcast()
	}()
}

func (c *controller) mark(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.marked[what]; !known {
		c.marked[what] = time.Now()
	}
	if what == "leadership is lost" {
		c.lost++
	}
	c.changed.Broadcast()
}

// logged waits until the controller has logged this, and returns the time.
func (c *controller) logged(what string, limit time.Duration) time.Time {
	over := time.Now().Add(limit)
	tick := time.AfterFunc(limit, c.changed.Broadcast)
	defer tick.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if at, known := c.marked[what]; known {
			return at
		}
		if c.ended || time.Now().After(over) {
			fail("%s does not log %q within %v (it has ended: %v)", c.name, what, limit, c.ended)
		}
		c.changed.Wait()
	}
}

func (c *controller) end(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	check(syscall.Kill(c.pid, s), c.name)
	for !c.ended {
		c.changed.Wait()
	}
	c.log.Close()
}

// field returns the number behind a name in a file of /proc.
func field(path, name string) int {
	text, err := os.ReadFile(path)
	check(err, path)
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, _ := strconv.Atoi(words[1])
			return n
		}
	}
	return 0
}

// cpu returns the CPU seconds of its processes.
func (c *controller) cpu() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid))
	check(err, "stat")
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(words[11])
	system, _ := strconv.Atoi(words[12])
	return c.spent + float64(user+system)/100
}

func (c *controller) usage() usage {
	cpu := c.cpu()
	c.mu.Lock()
	defer c.mu.Unlock()
	proc := fmt.Sprintf("/proc/%d/", c.pid)
	u := usage{CPU: cpu, Dirty: field(proc+"smaps_rollup", "Private_Dirty:"), Peak: field(proc+"status", "VmHWM:")}
	text, err := os.ReadFile(proc + "net/dev")
	check(err, "net/dev")
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "eth0:"); found {
			words := strings.Fields(rest)
			u.Read, _ = strconv.ParseInt(words[0], 10, 64)
			u.Written, _ = strconv.ParseInt(words[8], 10, 64)
		}
	}
	return u
}

// idle waits until the controller has been almost idle for six seconds. That is longer than the controller waits before it returns memory.
// There is no event for that.
func (c *controller) idle() usage {
	const still = 24
	var cpu [still + 1]float64
	for i := 0; ; i++ {
		now := c.cpu()
		if i >= still && now-cpu[i%(still+1)] <= 0.05 {
			return c.usage()
		}
		cpu[i%(still+1)] = now
		time.Sleep(250 * time.Millisecond)
	}
}
