// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
)

// The player simulates the DaemonSet controller, the claims' controller, the scheduler, the kubelets and the daemons. A node that gets the
// daemons' label gets a daemon's Pod with its claim, which runs and has an address at once. The daemon reports READY in each assignment,
// and the epochs that it has left, at once, too. The events of one node happen in their order.
type player struct {
	c     *client
	w     *world
	lanes []*lane
	index map[string]int // the number of each node, of which its address is made
}

type lane struct {
	mu      sync.Mutex
	changed *sync.Cond
	dirty   []string
	queued  map[string]bool
	held    bool
	pods    map[string]*daemonPod // by node
}

type daemonPod struct {
	name, claim string
	reported    standing
}

func newPlayer(c *client, w *world, nodes, atOnce int) *player {
	p := &player{c: c, w: w, index: map[string]int{}}
	for i := 0; i < nodes; i++ {
		p.index[nodeName(i)] = i
	}
	for i := 0; i < atOnce; i++ {
		l := &lane{queued: map[string]bool{}, pods: map[string]*daemonPod{}}
		l.changed = sync.NewCond(&l.mu)
		p.lanes = append(p.lanes, l)
		go p.play(l)
	}
	w.onNode = p.look
	return p
}

// hold prevents daemons from starting and reporting until it is called with false, to measure the controller alone.
func (p *player) hold(held bool) {
	for _, l := range p.lanes {
		l.mu.Lock()
		l.held = held
		l.changed.Signal()
		l.mu.Unlock()
	}
}

func (p *player) look(node string) {
	if _, known := p.index[node]; !known {
		return // the last rack may not be full
	}
	h := fnv.New32a()
	h.Write([]byte(node))
	l := p.lanes[int(h.Sum32()%uint32(len(p.lanes)))]
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.queued[node] {
		l.queued[node] = true
		l.dirty = append(l.dirty, node)
		l.changed.Signal()
	}
}

func (p *player) play(l *lane) {
	for {
		l.mu.Lock()
		for len(l.dirty) == 0 || l.held {
			l.changed.Wait()
		}
		node := l.dirty[0]
		l.dirty = l.dirty[1:]
		delete(l.queued, node)
		l.mu.Unlock()
		p.compare(l, node)
	}
}

// compare updates a node's daemon according to the label and the fabric object. No node loses the label here.
func (p *player) compare(l *lane, node string) {
	clique := cliqueOf(p.index[node])
	p.w.mu.Lock()
	set, wanted, now := p.w.set, p.w.withDaemon[node], p.w.stands(clique, node)
	p.w.mu.Unlock()
	if !wanted || set.Metadata.UID == "" || now.fabric == "" {
		return // the node is compared again when the missing object exists
	}
	pod := l.pods[node]
	if pod == nil {
		pod = p.begin(set, node)
		l.pods[node] = pod
		p.report(pod, clique, now)
		p.w.mu.Lock()
		p.w.reported++
		p.w.changed.Broadcast()
		p.w.mu.Unlock()
	} else if concerns(pod.reported, now) {
		p.report(pod, clique, now)
	}
	pod.reported = now
}

// concerns: changes of other nodes in the fabric object change no report.
func concerns(was, is standing) bool {
	was.epoch = is.epoch
	return was != is
}

func (p *player) begin(set setObject, node string) *daemonPod {
	pod := &daemonPod{name: daemonObject + "-" + node[len(node)-5:]}
	metadata, spec := dict{"name": pod.name}, dict{"nodeName": node}
	for k, v := range set.Spec.Template.Metadata {
		metadata[k] = v
	}
	metadata["name"] = pod.name
	metadata["ownerReferences"] = list{dict{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set.Metadata.Name, "uid": set.Metadata.UID,
		"controller": true}}
	for k, v := range set.Spec.Template.Spec {
		spec[k] = v
	}
	spec["nodeName"] = node
	var made struct {
		Metadata meta `json:"metadata"`
	}
	check(p.c.create(podsPath, dict{"metadata": metadata, "spec": spec}, &made), "daemon Pod")
	claim := aClaim(pod.name, "daemon", "compute-domain-daemon.nvidia.com", "ComputeDomainDaemonConfig", daemonDomain)
	claim["metadata"].(dict)["ownerReferences"] = list{dict{"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": made.Metadata.UID,
		"controller": true}}
	var claimed struct {
		Metadata meta `json:"metadata"`
	}
	check(p.c.create(daemonPath, claim, &claimed), "daemon claim")
	pod.claim = claimed.Metadata.UID
	check(p.c.patch(daemonPath+"/"+pod.name+"/status",
		allocated(node, "daemon", "ComputeDomainDaemonConfig", daemonDomain, pod.name, made.Metadata.UID)), "daemon claim")
	ip := address(p.index[node])
	conditions, statuses := list{}, list{}
	for _, kind := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, dict{"type": kind, "status": "True"})
	}
	for _, container := range spec["containers"].(list) {
		statuses = append(statuses, dict{"name": container.(dict)["name"], "image": container.(dict)["image"], "imageID": "x", "ready": true,
			"restartCount": 0, "state": dict{"running": dict{}}})
	}
	check(p.c.patch(podsPath+"/"+pod.name+"/status", dict{"status": dict{"phase": "Running", "podIP": ip, "podIPs": list{dict{"ip": ip}},
		"conditions": conditions, "containerStatuses": statuses}}), "daemon Pod")
	return pod
}

// All peers of a daemon are connected from the beginning. The daemon reports once in an assignment, and again when its domain has grown.
// That costs more than in reality, where daemons combine such changes.
func (p *player) report(pod *daemonPod, clique string, now standing) {
	prefix, a := "imex.resource.nvidia.com/", now.active
	report := dict{"claimUID": pod.claim, "bootID": bootID, "fabricUID": now.fabric, "ready": a.domain != "", "left": now.leaving,
		"seen": now.epoch, "recount": now.recount, "served": a.domain != "", "waitsFor": ""}
	labels := dict{uidLabel + ".cliqueID": clique, uidLabel: nil}
	annotations := dict{prefix + "state": "IDLE", prefix + "ready": "false", prefix + "index": nil, prefix + "node-id": nil, prefix + "peers": nil}
	if a.domain != "" {
		report["assignment"] = fmt.Sprintf("%s/%s/%d/%d", clique, a.domain, a.index, a.epoch)
		labels[uidLabel] = a.domain
		index := strconv.FormatInt(a.index, 10)
		annotations = dict{prefix + "state": "READY", prefix + "ready": "true", prefix + "index": index, prefix + "node-id": index,
			prefix + "peers": fmt.Sprintf("%d/%d", a.members-1, a.members-1)}
	}
	annotations[prefix+"report"] = string(encode(report))
	check(p.c.patch(podsPath+"/"+pod.name, dict{"metadata": dict{"labels": labels, "annotations": annotations}}), "daemon's report")
}
