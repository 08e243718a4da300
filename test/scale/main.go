// SPDX-License-Identifier: Apache-2.0

// scale measures our controller with a real API server in a cluster with simulated nodes. test/scale/run creates the cluster:
//
//	scale run --nodes N --out FILE ...   runs all steps with N nodes, and writes the results to the file, as JSON
//	scale table FILE...                  prints a table of several results
//
// It makes the writes of kubelets, plugins, the scheduler and the daemons, starts controllers with the settings of the chart, and waits
// with watches.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "scale: "+format+"\n", arguments...)
}

func fail(format string, arguments ...any) {
	say(format, arguments...)
	os.Exit(1)
}

func check(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

// A result has the measurements with one number of nodes: figures by name, and counts of requests by phase, then by verb and resource.
type result struct {
	Nodes    int
	Figures  map[string]float64
	Requests map[string]map[string]int
}

type bench struct {
	nodes, atOnce int
	admin, ours   *client // the identities of the cluster's admin and of the controllers
	w             *world
	p             *player
	log           audit
	result        result
	env           []string
	program       string
	kubeconfig    string
	tool, viewer  string // the folder of the kubectl plugin, and the kubeconfig of a user with the role view
	dir, network  string
	out           string
	addresses     []string
	live          []*controller
	from          int64
}

func (b *bench) set(name string, value float64) { b.result.Figures[name] = value }

// phase ends the present phase, and records the counts of its requests under a name.
func (b *bench) phase(name string) {
	to := b.log.position()
	counts := map[string]int{}
	b.log.each(b.from, to, b.addresses, func(r *request) {
		if r.Object != nil && r.Object.Resource == "leases" {
			return // they depend on time, not on work
		}
		what := r.what()
		if r.Status != nil && r.Status.Code >= 400 {
			what += fmt.Sprintf(", answer %d", r.Status.Code)
		}
		counts[what]++
		if r.Status != nil && r.Status.Code == 409 {
			b.result.Figures["conflicts"]++
		}
	})
	b.result.Requests[name] = counts
	b.from = to
	b.save()
}

// save writes the present results, so that an aborted run has some.
func (b *bench) save() {
	b.result.Figures["leases lost"] = 0
	for _, c := range b.live {
		c.mu.Lock()
		b.result.Figures["leases lost"] += float64(c.lost)
		c.mu.Unlock()
	}
	check(os.WriteFile(b.out, encode(b.result), 0o644), b.out)
}

// start starts the controller of a network. The Pod's name is the same each time, as with a restarted container.
func (b *bench) start(k int) *controller {
	name := fmt.Sprintf("compute-domains-controller-%d", k)
	c := startController(name, fmt.Sprintf("%s-%d", b.network, k), b.addresses[k], b.program, b.kubeconfig,
		fmt.Sprintf("%s/%d-nodes-%d.log", b.dir, b.nodes, len(b.live)), b.env)
	b.live = append(b.live, c)
	return c
}

// since records the CPU time and the read bytes of a controller between two moments.
func (b *bench) since(name string, before, after usage) {
	b.set(name+": CPU s", after.CPU-before.CPU)
	b.set(name+": MB read", float64(after.Read-before.Read)/1e6)
}

func (b *bench) makeNodes() {
	node := aNode()
	say("%d nodes: writing Nodes and ResourceSlices", b.nodes)
	seconds := each("Nodes and slices", b.nodes, b.atOnce, func(i int) error {
		if err := b.admin.create(nodesPath, []byte(strings.ReplaceAll(node, "@NODE@", nodeName(i))), nil); err != nil {
			return err
		}
		return b.admin.create(dra+"/resourceslices", aSlice(i), nil)
	})
	var text json.RawMessage
	check(b.admin.get(nodesPath+"/"+nodeName(0), &text), "Node")
	b.set("KB of a Node", float64(len(text))/1000)
	b.set("load: Nodes and slices s", seconds)
}

func (b *bench) domain(name string) string {
	var made struct {
		Metadata meta `json:"metadata"`
	}
	check(b.admin.create(domainsPath, aDomain(name), &made), "ComputeDomain")
	return made.Metadata.UID
}

// claims creates the claims of nodes first..first+n-1. Each `size` of them have the same domain. No node joins until they are allocated.
func (b *bench) claims(first, n, size int, uids []string) {
	each("claims", n, b.atOnce, func(i int) error {
		return b.admin.create(claimsPath, aClaim(nodeName(first+i), "channel", "compute-domain-default-channel.nvidia.com",
			"ComputeDomainChannelConfig", uids[i/size]), nil)
	})
}

func (b *bench) allocate(first, n, size int, uids []string) float64 {
	return each("allocations", n, b.atOnce, func(i int) error {
		node := nodeName(first + i)
		return b.admin.patch(claimsPath+"/"+node+"/status", allocated(node, "channel", "ComputeDomainChannelConfig", uids[i/size],
			"worker-"+node, fmt.Sprintf("00000000-0000-4000-8000-%012d", first+i)))
	})
}

// labelled waits until all nodes of each domain have labels, assigned until they have assignments, readied until each domain is Ready.
func (b *bench) labelled(uids []string, size int) time.Time {
	return b.w.until("all nodes labelled", time.Hour, func() bool {
		return all(uids, func(uid string) bool { return len(b.w.carriers[uid]) == size })
	})
}
func (b *bench) assigned(uids []string, size int) time.Time {
	return b.w.until("all nodes assigned", time.Hour, func() bool {
		return all(uids, func(uid string) bool { return b.w.active[uid] == size })
	})
}
func (b *bench) readied(uids []string, size int) time.Time {
	return b.w.until("all domains Ready", time.Hour, func() bool {
		return all(uids, func(uid string) bool { return b.w.ready(uid, size) })
	})
}

func all(uids []string, holds func(uid string) bool) bool {
	for _, uid := range uids {
		if !holds(uid) {
			return false
		}
	}
	return true
}

// remove deletes the workloads' claims and the domains, and waits until nothing is left. It returns the seconds from the first and from the
// last request.
func (b *bench) remove(first, n int, names, uids []string) (float64, float64) {
	begin := time.Now()
	each("claims", n, b.atOnce, func(i int) error { return b.admin.remove(claimsPath + "/" + nodeName(first+i)) })
	each("ComputeDomains", len(names), b.atOnce, func(i int) error { return b.admin.remove(domainsPath + "/" + names[i]) })
	asked := time.Now()
	end := b.w.until("nothing left", time.Hour, func() bool {
		return all(uids, func(uid string) bool {
			_, domain := b.w.domains[uid]
			return !domain && len(b.w.carriers[uid]) == 0 && b.w.listed[uid] == 0
		})
	})
	return end.Sub(begin).Seconds(), end.Sub(asked).Seconds()
}

// adopted waits until the controller has added the finalizer to a new ComputeDomain.
func (b *bench) adopted(uid string, limit time.Duration) {
	b.w.until("finalizer of a new domain", limit, func() bool { return len(b.w.domains[uid].Metadata.Finalizers) > 0 })
}

// The first start: all nodes get the labels of their clique and of the daemons, and each partition gets its fabric object. Then the daemons
// start.
func (b *bench) firstStart() *controller {
	say("%d nodes: the controller starts for the first time", b.nodes)
	a := b.start(0)
	leading := a.logged("leading", 10*time.Minute)
	b.set("first sync: start to leading s", leading.Sub(a.begun).Seconds())
	end := b.w.until("labels and fabrics", time.Hour, func() bool {
		return b.w.gpuLabels == b.nodes && b.w.daemonLabels == b.nodes && len(b.w.fabrics) == (b.nodes+rack-1)/rack && b.w.set.Metadata.UID != ""
	})
	b.set("first labels of all nodes: after leading s", end.Sub(leading).Seconds())
	u := a.idle()
	b.set("nodes and slices: private dirty idle MB", float64(u.Dirty)/1000)
	b.set("nodes and slices: peak MB", float64(u.Peak)/1000)
	b.since("first start", usage{}, u)
	b.phase("first start")
	say("%d nodes: their daemons start", b.nodes)
	before, begin := a.usage(), time.Now()
	b.p.hold(false)
	end = b.w.until("daemons", time.Hour, func() bool { return b.w.reported == b.nodes })
	b.set("load: daemons come s", end.Sub(begin).Seconds())
	u = a.idle()
	b.set("nodes and daemons: private dirty idle MB", float64(u.Dirty)/1000)
	b.since("daemons come", before, u)
	b.phase("daemons")
	return a
}

// The cost of a change of a Node that does not concern the controller, such as a report of its kubelet.
func (b *bench) foreign(a *controller, n int) {
	say("%d nodes: %d changes of Nodes that do not concern the controller", b.nodes, n)
	before := a.idle()
	each("changes", n, b.atOnce, func(i int) error {
		return b.admin.patch(nodesPath+"/"+nodeName(i), dict{"metadata": dict{"annotations": dict{"example.com/changed": "yes"}}})
	})
	after := a.idle()
	b.set("a foreign change of a Node: ms of CPU", 1000*(after.CPU-before.CPU)/float64(n))
	b.set("a foreign change of a Node: KB read", float64(after.Read-before.Read)/1000/float64(n))
	b.phase("foreign changes")
}

// The bar: this program makes the label patches of a formation with the controllers' identity while no controller runs, and reverts them.
func (b *bench) bar(n int) {
	say("%d nodes: %d label patches by the load program itself", b.nodes, n)
	label := func(value any) float64 {
		return each("patches", n, b.atOnce, func(i int) error {
			return b.ours.patch(nodesPath+"/"+nodeName(i), dict{"metadata": dict{"labels": dict{uidLabel: value}}})
		})
	}
	b.set("load: label patches of the large domain s", label("00000000-0000-4000-8000-000000000000"))
	label(nil)
}

// One large domain. To measure only the controller's time, it ends before the claims are allocated, so it sees all of them when it leads
// again, and daemons report after it has written everything.
func (b *bench) large(a *controller, n int) *controller {
	say("%d nodes: a domain of %d forms", b.nodes, n)
	uids := []string{b.domain("large")}
	b.claims(0, n, n, uids)
	b.adopted(uids[0], time.Minute)
	b.p.hold(true)
	a.end(syscall.SIGTERM)
	b.bar(n)
	b.allocate(0, n, n, uids)
	b.phase("large domain: claims")
	a = b.start(0)
	begin := a.logged("leading", 10*time.Minute)
	before := a.usage()
	assigned := b.assigned(uids, n)
	labels := b.labelled(uids, n)
	b.phase("large domain: assignments, labels")
	daemons := time.Now()
	b.p.hold(false)
	ready := b.readied(uids, n)
	b.set("large domain: leading to all assigned s", assigned.Sub(begin).Seconds())
	b.set("large domain: leading to all labelled s", labels.Sub(begin).Seconds())
	own := b.result.Figures["load: label patches of the large domain s"]
	b.set("all assigned, in times of the load program's label patches", assigned.Sub(begin).Seconds()/own)
	b.set("large domain: first report to Ready s", ready.Sub(daemons).Seconds())
	b.since("large domain formed", before, a.idle())
	b.phase("large domain: Ready")
	say("%d nodes: the domain of %d is deleted", b.nodes, n)
	before = a.usage()
	whole, rest := b.remove(0, n, []string{"large"}, uids)
	b.set("large domain: deletion s", whole)
	b.set("large domain: deletion after the last request s", rest)
	b.since("large domain deleted", before, a.idle())
	b.phase("large domain: deletion")
	return a
}

// Many domains of ten nodes, with claims and daemons without delays.
func (b *bench) many(a *controller) ([]string, []string) {
	const size = 10
	n := b.nodes / size
	say("%d nodes: %d domains of %d form", b.nodes, n, size)
	before := a.usage()
	uids, names := make([]string, n), make([]string, n)
	each("ComputeDomains", n, b.atOnce, func(i int) error {
		names[i] = fmt.Sprintf("domain-%05d", i)
		uids[i] = b.domain(names[i])
		return nil
	})
	b.claims(0, n*size, size, uids)
	begin := time.Now()
	b.allocate(0, n*size, size, uids)
	asked := time.Now()
	assigned := b.assigned(uids, size)
	labels := b.labelled(uids, size)
	ready := b.readied(uids, size)
	b.set("many domains: allocations s", asked.Sub(begin).Seconds())
	b.set("many domains: last allocation to all labelled s", labels.Sub(asked).Seconds())
	b.set("many domains: last allocation to all assigned s", assigned.Sub(asked).Seconds())
	b.set("many domains: last allocation to all Ready s", ready.Sub(asked).Seconds())
	u := a.idle()
	b.since("many domains formed", before, u)
	b.set("leader with everything: private dirty idle MB", float64(u.Dirty)/1000)
	b.set("leader with everything: peak MB", float64(u.Peak)/1000)
	b.phase("many domains: formation")
	return names, uids
}

// A second controller starts when all objects exist, and takes over when the first one is killed.
func (b *bench) failover(a *controller) *controller {
	say("%d nodes: a second controller starts", b.nodes)
	s := b.start(1)
	observed := s.logged("leader observed", 10*time.Minute)
	b.set("sync with everything: start to candidate s", observed.Sub(s.begun).Seconds())
	u := s.idle()
	b.set("everything after sync: private dirty idle MB", float64(u.Dirty)/1000)
	b.set("everything after sync: peak MB", float64(u.Peak)/1000)
	b.since("sync with everything", usage{}, u)
	b.phase("sync with everything")
	say("%d nodes: the leader is killed", b.nodes)
	killed := time.Now()
	a.end(syscall.SIGKILL)
	late := b.domain("late")
	leading := s.logged("leading", 2*time.Minute)
	b.adopted(late, 10*time.Minute)
	b.set("failover: kill to lease s", leading.Sub(killed).Seconds())
	after := s.idle()
	b.since("failover", u, after)
	var acquired, first time.Time
	b.log.each(b.from, b.log.position(), []string{s.address}, func(r *request) {
		switch {
		case !r.write() || r.Received.Before(killed):
		case r.Object.Resource == "leases":
			if acquired.IsZero() && r.Status.Code < 300 {
				acquired = r.Done
			}
		case first.IsZero():
			first = r.Received
		}
	})
	b.set("failover: lease to first write s", first.Sub(acquired).Seconds())
	b.phase("failover")
	check(b.admin.remove(domainsPath+"/late"), "ComputeDomain")
	b.w.until("late domain deleted", time.Minute, func() bool { _, there := b.w.domains[late]; return !there })
	return s
}

func (b *bench) run() {
	b.w.watch(b.admin)
	b.makeNodes()
	large := min(b.nodes, 1000)
	a := b.firstStart()
	b.foreign(a, large)
	a = b.large(a, large)
	names, uids := b.many(a)
	b.why(names, uids)
	s := b.failover(a)
	say("%d nodes: all domains are deleted", b.nodes)
	before := s.usage()
	whole, rest := b.remove(0, len(uids)*10, names, uids)
	b.set("many domains: deletion s", whole)
	b.set("many domains: deletion after the last request s", rest)
	b.since("many domains deleted", before, s.idle())
	b.phase("many domains: deletion")
	b.set("peak of the second controller MB", float64(s.usage().Peak)/1000)
	s.end(syscall.SIGTERM)
	b.terminated()
	b.save()
}

// terminated counts the watches of all clients that the API server has ended because they were too slow.
func (b *bench) terminated() {
	answer, err := b.admin.start("GET", "/metrics", plainJSON, "text/plain", nil)
	check(err, "metrics of the API server")
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(err, "metrics of the API server")
	b.set("watches ended by the server as too slow", 0)
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, "apiserver_terminated_watchers_total{"); found {
			count, _ := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
			b.result.Figures["watches ended by the server as too slow"] += count
		}
	}
}

func runCommand(arguments []string) {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	nodes := flags.Int("nodes", 100, "number of nodes")
	out := flags.String("out", "", "file for the results")
	server := flags.String("server", "", "URL of the API server")
	pki := flags.String("pki", "", "folder with ca.crt, admin.crt and admin.key")
	token := flags.String("token", "", "file with the token of the controllers' service account")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the controllers")
	program := flags.String("program", "", "the controller")
	auditLog := flags.String("audit-log", "", "the API server's audit log")
	dir := flags.String("dir", "", "folder for logs")
	tool := flags.String("tool", "", "folder of the kubectl plugin")
	viewer := flags.String("viewer", "", "kubeconfig of a user with the role view in the namespace "+ns)
	network := flags.String("network", "", "beginning of the names of the controllers' network namespaces")
	addresses := flags.String("addresses", "", "their addresses, separated by commas")
	flags.Parse(arguments)
	text, err := os.ReadFile(*token)
	check(err, "token")
	const atOnce = 32 // the number of concurrent requests of our controller for Nodes
	b := &bench{nodes: *nodes, atOnce: atOnce, w: newWorld(), program: *program, kubeconfig: *kubeconfig, dir: *dir, network: *network, out: *out,
		tool: *tool, viewer: *viewer,
		log: audit{*auditLog}, addresses: strings.Split(*addresses, ","),
		admin:  newClient(*server, *pki+"/ca.crt", *pki+"/admin.crt", *pki+"/admin.key", "", 2*atOnce),
		ours:   newClient(*server, *pki+"/ca.crt", "", "", strings.TrimSpace(string(text)), atOnce),
		result: result{*nodes, map[string]float64{"conflicts": 0, "leases lost": 0}, map[string]map[string]int{}}}
	b.p = newPlayer(b.admin, b.w, *nodes, atOnce)
	b.p.hold(true)
	b.env = environment(b.admin)
	b.from = b.log.position()
	b.run()
}

// environment returns the environment of the chart's Deployment. The names of pods are set elsewhere.
func environment(c *client) []string {
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		}
	}
	check(c.get("/apis/apps/v1/namespaces/"+driverNS+"/deployments/compute-domains-controller", &deployment), "Deployment")
	var env []string
	for _, e := range deployment.Spec.Template.Spec.Containers[0].Env {
		if e.Name != "POD_NAME" && e.Name != "NAMESPACE" {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	return env
}

func main() {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "run":
		runCommand(os.Args[2:])
	case len(os.Args) > 2 && os.Args[1] == "table":
		table(os.Args[2:])
	default:
		fail("usage: scale run|table ...")
	}
}
