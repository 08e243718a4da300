// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

type dict = map[string]any
type list = []any

const (
	driver      = "compute-domain.nvidia.com"
	driverNS    = "nvidia-compute-domains"
	ns          = "scale"
	uidLabel    = "resource.nvidia.com/computeDomain"
	cliqueLabel = "nvidia.com/gpu.clique"
	daemonLabel = "resource.nvidia.com/imex-daemon"
	bootID      = "11111111-2222-4333-8444-555555555555"
	// The daemons' DaemonSet, and the domainID of their claims (src/api/names.h).
	daemonObject = "compute-domain-daemon"
	daemonDomain = "818fb0f3-f5f0-4334-937e-f52c07a0c01e"
	fabric       = "6f1c3c0e-8d0b-4c5c-9b59-0a1f3c5d7e91"
	rack         = 18
	group        = "/apis/resource.nvidia.com/v1beta1"
	dra          = "/apis/resource.k8s.io/v1"
	podsPath     = "/api/v1/namespaces/" + driverNS + "/pods"
	nodesPath    = "/api/v1/nodes"
	fabricsPath  = group + "/computedomainfabrics"
	domainsPath  = group + "/namespaces/" + ns + "/computedomains"
	claimsPath   = dra + "/namespaces/" + ns + "/resourceclaims"
	daemonPath   = dra + "/namespaces/" + driverNS + "/resourceclaims"
	setsPath     = "/apis/apps/v1/namespaces/" + driverNS + "/daemonsets"
)

func nodeName(i int) string { return fmt.Sprintf("gb200-rack-%04d-node-%05d", i/rack, i) }
func cliqueOf(i int) string { return fmt.Sprintf("%s.%d", fabric, i/rack) }
func address(i int) string  { return fmt.Sprintf("10.%d.%d.%d", 64+i/62500, i/250%250, 2+i%250) }

// aNode is the text of a Node as the kubelet of a GPU machine writes it, 20 KB with the server's fields: 50 images with two names each (the
// most that a kubelet reports), labels of feature discovery, and conditions. @NODE@ is replaced by the name.
func aNode() string {
	labels := dict{
		"kubernetes.io/hostname": "@NODE@", "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": "linux",
		"beta.kubernetes.io/arch": "arm64", "node.kubernetes.io/instance-type": "gb200.nvl72", "topology.kubernetes.io/zone": "zone-a",
		"topology.kubernetes.io/region": "region-1", "nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "4",
		"nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.memory": "189471", "nvidia.com/gpu.family": "blackwell",
	}
	for i := 0; i < 30; i++ {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.FEATURE%02d", i)] = "true"
	}
	images := list{}
	for i := 0; i < 50; i++ {
		digest := strings.Repeat(fmt.Sprintf("%02x5a", i), 16)
		repository := fmt.Sprintf("registry.example.com/nvidia/cloud-native/component-number-%02d", i)
		images = append(images, dict{"names": list{repository + "@sha256:" + digest, repository + ":v25.3.1-ubuntu22.04"}, "sizeBytes": 123456789 + i})
	}
	conditions := list{}
	now := time.Now().UTC().Format(time.RFC3339)
	for _, c := range [][3]string{
		{"MemoryPressure", "False", "KubeletHasSufficientMemory"}, {"DiskPressure", "False", "KubeletHasNoDiskPressure"},
		{"PIDPressure", "False", "KubeletHasSufficientPID"}, {"Ready", "True", "KubeletReady"}} {
		conditions = append(conditions, dict{"type": c[0], "status": c[1], "reason": c[2], "message": "kubelet says so: " + c[2],
			"lastHeartbeatTime": now, "lastTransitionTime": now})
	}
	resources := dict{"cpu": "144", "memory": "900Gi", "pods": "110", "ephemeral-storage": "3Ti", "nvidia.com/gpu": "4", "hugepages-2Mi": "0"}
	return string(encode(dict{
		"metadata": dict{"name": "@NODE@", "labels": labels, "annotations": dict{"node.alpha.kubernetes.io/ttl": "0",
			"nfd.node.kubernetes.io/feature-labels": strings.Repeat("cpu-cpuid.FEATURE,", 30)}},
		"status": dict{"capacity": resources, "allocatable": resources, "conditions": conditions, "images": images,
			"addresses": list{dict{"type": "Hostname", "address": "@NODE@"}},
			"nodeInfo": dict{"machineID": "0123456789abcdef0123456789abcdef", "systemUUID": "0123456789abcdef0123456789abcdef",
				"bootID": bootID, "kernelVersion": "6.8.0-1024-nvidia-64k", "osImage": "Ubuntu 24.04.2 LTS",
				"containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "operatingSystem": "linux",
				"architecture": "arm64"}},
	}))
}

func aSlice(i int) dict {
	devices := list{}
	for _, kind := range []string{"channel", "daemon"} {
		devices = append(devices, dict{"name": kind + "-0", "attributes": dict{"type": dict{"string": kind},
			"cliqueID": dict{"string": cliqueOf(i)}, "id": dict{"int": 0}}})
	}
	return dict{"metadata": dict{"name": nodeName(i) + "-" + driver, "ownerReferences": list{
		dict{"apiVersion": "v1", "kind": "Node", "name": nodeName(i), "uid": "00000000-0000-4000-8000-000000000000", "controller": true}}},
		"spec": dict{"driver": driver, "nodeName": nodeName(i), "devices": devices,
			"pool": dict{"name": nodeName(i), "generation": 1, "resourceSliceCount": 1}}}
}

// aClaim is a claim for one of our devices, and the status that the scheduler gives it.
func aClaim(name, request, class, kind, domain string) dict {
	return dict{"metadata": dict{"name": name, "annotations": dict{"resource.kubernetes.io/pod-claim-name": request}},
		"spec": dict{"devices": dict{"requests": list{dict{"name": request, "exactly": dict{"deviceClassName": class}}},
			"config": list{configOf(request, kind, domain)}}}}
}

func configOf(request, kind, domain string) dict {
	return dict{"requests": list{request}, "opaque": dict{"driver": driver, "parameters": dict{
		"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, "domainID": domain}}}
}

func allocated(node, request, kind, domain, pod, uid string) dict {
	config := configOf(request, kind, domain)
	config["source"] = "FromClaim"
	return dict{"status": dict{
		"allocation": dict{"devices": dict{"config": list{config},
			"results": list{dict{"request": request, "driver": driver, "pool": node, "device": request + "-0"}}},
			"nodeSelector": dict{"nodeSelectorTerms": list{dict{"matchFields": list{dict{"key": "metadata.name", "operator": "In",
				"values": list{node}}}}}}},
		"reservedFor": list{dict{"resource": "pods", "name": pod, "uid": uid}}}}
}

func aDomain(name string) dict {
	return dict{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": dict{"name": name},
		"spec": dict{"numNodes": 0, "channel": dict{"resourceClaimTemplate": dict{"name": name}}}}
}

type meta struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Finalizers  []string          `json:"finalizers"`
}

// A ComputeDomainFabric: the assignments of the nodes of one NVLink partition.
type fabricObject struct {
	Metadata meta  `json:"metadata"`
	Epoch    int64 `json:"epoch"`
	Recount  int64 `json:"recount"`
	Domains  []struct {
		Owner struct {
			UID string `json:"uid"`
		} `json:"owner"`
		Assignments []struct {
			Node  string `json:"node"`
			Index int64  `json:"index"`
			Epoch int64  `json:"epoch"`
			State string `json:"state"`
		} `json:"assignments"`
	} `json:"domains"`
}

type domainObject struct {
	Metadata meta `json:"metadata"`
	Status   struct {
		NodesReady int `json:"nodesReady"`
		Conditions []struct {
			Type, Status string
		} `json:"conditions"`
	} `json:"status"`
}

type setObject struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Template struct {
			Metadata dict `json:"metadata"`
			Spec     dict `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// An assignment is that of a node in a domain, in the fabric object.
type assignment struct {
	domain       string
	index, epoch int64
	members      int
}

// A standing has the facts of the fabric object that a daemon needs: the object's UID, its epoch and recount, the node's active assignment,
// and the epochs that the node must leave, "3,7".
type standing struct {
	fabric         string
	epoch, recount int64
	active         assignment
	leaving        string
}

// The world has the objects of the watches, and counts of them to wait for.
type world struct {
	mu           sync.Mutex
	changed      *sync.Cond
	gpuLabels    int                        // nodes with the label of their clique
	daemonLabels int                        // nodes with the label of the daemons
	label        map[string]string          // node to the domain of its label
	carriers     map[string]map[string]bool // domain to the nodes with its label
	fabrics      map[string]fabricObject    // by clique
	active       map[string]int             // domain to the number of its active assignments
	listed       map[string]int             // domain to the number of its assignments in any state
	domains      map[string]domainObject
	set          setObject // the daemons' DaemonSet
	reported     int       // daemons that have reported
	onNode       func(node string)
	withClique   map[string]bool
	withDaemon   map[string]bool
}

func newWorld() *world {
	w := &world{label: map[string]string{}, carriers: map[string]map[string]bool{}, fabrics: map[string]fabricObject{}, active: map[string]int{},
		listed: map[string]int{}, domains: map[string]domainObject{}, withClique: map[string]bool{}, withDaemon: map[string]bool{}}
	w.changed = sync.NewCond(&w.mu)
	return w
}

func (w *world) watch(c *client) {
	c.follow(nodesPath, metadataOnly, func(kind string, object []byte) {
		var o struct {
			Metadata meta `json:"metadata"`
		}
		check(json.Unmarshal(object, &o), "Node")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.nodeChanged(o.Metadata, kind == "DELETED")
		w.changed.Broadcast()
	})
	c.follow(fabricsPath, plainJSON, func(kind string, object []byte) {
		var o fabricObject
		check(json.Unmarshal(object, &o), "ComputeDomainFabric")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fabricChanged(o, kind == "DELETED")
		w.changed.Broadcast()
	})
	c.follow(domainsPath, plainJSON, func(kind string, object []byte) {
		var o domainObject
		check(json.Unmarshal(object, &o), "ComputeDomain")
		w.mu.Lock()
		defer w.mu.Unlock()
		if kind == "DELETED" {
			delete(w.domains, o.Metadata.UID)
		} else {
			w.domains[o.Metadata.UID] = o
		}
		w.changed.Broadcast()
	})
	c.follow(setsPath, plainJSON, func(kind string, object []byte) {
		var o setObject
		check(json.Unmarshal(object, &o), "DaemonSet")
		w.mu.Lock()
		defer w.mu.Unlock()
		if o.Metadata.Name == daemonObject && w.set.Metadata.UID != o.Metadata.UID {
			w.set = o
			for node := range w.withDaemon {
				w.onNode(node)
			}
		}
		w.changed.Broadcast()
	})
}

func (w *world) nodeChanged(m meta, gone bool) {
	was, is := w.label[m.Name], m.Labels[uidLabel]
	counted(w.withClique, m.Name, m.Labels[cliqueLabel] != "", &w.gpuLabels)
	if counted(w.withDaemon, m.Name, m.Labels[daemonLabel] != "", &w.daemonLabels) {
		w.onNode(m.Name)
	}
	if gone {
		is = ""
	}
	if was == is {
		return
	}
	w.label[m.Name] = is
	if was != "" {
		delete(w.carriers[was], m.Name)
		if len(w.carriers[was]) == 0 {
			delete(w.carriers, was)
		}
	}
	if is != "" {
		if w.carriers[is] == nil {
			w.carriers[is] = map[string]bool{}
		}
		w.carriers[is][m.Name] = true
	}
}

// counted records whether a node has something, and returns true if that has changed.
func counted(of map[string]bool, node string, has bool, count *int) bool {
	if of[node] == has {
		return false
	}
	of[node] = has
	if has {
		*count++
	} else {
		*count--
	}
	return true
}

func (w *world) fabricChanged(o fabricObject, gone bool) {
	clique := o.Metadata.Name
	count := func(f fabricObject, by int) {
		for _, d := range f.Domains {
			for _, a := range d.Assignments {
				w.listed[d.Owner.UID] += by
				if a.State == "" {
					w.active[d.Owner.UID] += by
				}
			}
		}
	}
	count(w.fabrics[clique], -1)
	delete(w.fabrics, clique)
	if !gone {
		w.fabrics[clique] = o
		count(o, 1)
	}
	number, err := strconv.Atoi(clique[strings.LastIndexByte(clique, '.')+1:])
	check(err, clique)
	for i := rack * number; i < rack*(number+1); i++ {
		w.onNode(nodeName(i))
	}
}

// The caller of stands has locked the world.
func (w *world) stands(clique, node string) standing {
	f := w.fabrics[clique]
	s := standing{fabric: f.Metadata.UID, epoch: f.Epoch, recount: f.Recount}
	for _, d := range f.Domains {
		for _, a := range d.Assignments {
			switch {
			case a.Node != node:
			case a.State == "":
				s.active = assignment{d.Owner.UID, a.Index, a.Epoch, len(d.Assignments)}
			default:
				s.leaving = strings.TrimPrefix(s.leaving+","+strconv.FormatInt(a.Epoch, 10), ",")
			}
		}
	}
	return s
}

// until waits for a condition of the world, and returns the time when it became true.
func (w *world) until(what string, limit time.Duration, holds func() bool) time.Time {
	over := time.Now().Add(limit)
	tick := time.AfterFunc(limit, func() { w.changed.Broadcast() })
	defer tick.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !holds() {
		if time.Now().After(over) {
			fail("%s: not within %v", what, limit)
		}
		w.changed.Wait()
	}
	return time.Now()
}

func (w *world) ready(uid string, n int) bool {
	for _, c := range w.domains[uid].Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return w.domains[uid].Status.NodesReady == n
		}
	}
	return false
}
