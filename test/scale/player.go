// SPDX-License-Identifier: Apache-2.0

package main

import (
	"hash/fnv"
	"strconv"
	"sync"
)

// The player is the DaemonSet controller, the claims' controller, the scheduler, the kubelets and the daemons: a node that gets a domain's
// label gets a daemon Pod with its claim, which runs and has an address at once, and says READY when its clique has a place for it; the Pod
// and its claim go with the label. What concerns one node happens in its order.
type player struct {
	c     *client
	w     *world
	lanes []*lane
	index map[string]int // of each node, from which its address is made
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
	domain, name string
	told         seat
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
	w.onLabel = func(node, _ string) { p.look(node) }
	w.onSeat = p.look
	return p
}

// hold keeps the daemons from coming until it is called with false: what our controller does alone is then to be seen alone.
func (p *player) hold(held bool) {
	for _, l := range p.lanes {
		l.mu.Lock()
		l.held = held
		l.changed.Signal()
		l.mu.Unlock()
	}
}

func (p *player) look(node string) {
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

// compare makes of a node's daemon what its label and its clique say.
func (p *player) compare(l *lane, node string) {
	p.w.mu.Lock()
	domain, place := p.w.label[node], p.w.seats[node]
	set, made := p.w.sets[domain]
	p.w.mu.Unlock()
	pod := l.pods[node]
	if pod != nil && pod.domain != domain {
		check(p.c.remove(podsPath+"/"+pod.name), "daemon Pod")
		check(p.c.remove(daemonPath+"/"+pod.name), "daemon claim")
		delete(l.pods, node)
		pod = nil
		p.count(-1)
	}
	if domain == "" {
		return
	}
	if pod == nil {
		if !made {
			return // its DaemonSet is on its way, and brings all its nodes here again
		}
		pod = &daemonPod{domain: domain, name: set.Metadata.Name + "-" + node[len(node)-5:]}
		p.begin(pod, set, node)
		l.pods[node] = pod
		p.count(1)
		p.look(node) // its place may have come meanwhile
		return
	}
	if place.domain == domain && place != pod.told {
		p.report(pod, place)
		pod.told = place
	}
}

func (p *player) count(by int) {
	p.w.mu.Lock()
	p.w.daemons += by
	p.w.changed.Broadcast()
	p.w.mu.Unlock()
}

func (p *player) begin(pod *daemonPod, set setObject, node string) {
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
	claim := aClaim(pod.name, "daemon", "compute-domain-daemon.nvidia.com", "ComputeDomainDaemonConfig", pod.domain)
	claim["metadata"].(dict)["ownerReferences"] = list{dict{"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": made.Metadata.UID,
		"controller": true}}
	check(p.c.create(daemonPath, claim, nil), "daemon claim")
	check(p.c.patch(daemonPath+"/"+pod.name+"/status",
		allocated(node, "daemon", "ComputeDomainDaemonConfig", pod.domain, pod.name, made.Metadata.UID)), "daemon claim")
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
}

// The daemon's peers are all connected from the first: it reports once, and again when its clique has grown, which costs more than in
// reality, where they gather what changed.
func (p *player) report(pod *daemonPod, place seat) {
	prefix := "imex.resource.nvidia.com/"
	peers := place.members - 1
	index := strconv.Itoa(place.index)
	check(p.c.patch(podsPath+"/"+pod.name, dict{"metadata": dict{
		"labels": dict{uidLabel + ".cliqueID": place.clique},
		"annotations": dict{prefix + "state": "READY", prefix + "ready": "true", prefix + "index": index, prefix + "node-id": index,
			prefix + "peers": strconv.Itoa(peers) + "/" + strconv.Itoa(peers)}}}), "daemon's report")
}
