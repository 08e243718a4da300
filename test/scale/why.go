// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	whyRuns      = 11
	workloadPods = "/api/v1/namespaces/" + ns + "/pods"
	eventsPath   = "/api/v1/namespaces/" + ns + "/events"
	noNode       = "0/%d nodes are available: %d cannot allocate all claims. preemption: 0/%d nodes are available: %d Preemption is not helpful for scheduling."
)

func aPod(name, template string) dict {
	return dict{"metadata": dict{"name": name}, "spec": dict{
		"serviceAccountName": "viewer", "automountServiceAccountToken": false,
		"resourceClaims": list{dict{"name": "channel", "resourceClaimTemplateName": template}},
		"containers":     list{dict{"name": "main", "image": "x", "resources": dict{"claims": list{dict{"name": "channel"}}}}}}}
}

// workers creates the pods that use the channels: one on each node, but not more than 1,000. Their claims exist.
func (b *bench) workers(templates []string) int {
	n := min(b.nodes, 1000)
	each("pods", n, b.atOnce, func(i int) error {
		node := nodeName(i)
		pod := aPod("worker-"+node, templates[i/10])
		pod["spec"].(dict)["nodeName"] = node
		if err := b.admin.create(workloadPods, pod, nil); err != nil {
			return err
		}
		return b.admin.patch(workloadPods+"/worker-"+node+"/status", dict{"status": dict{"phase": "Running",
			"resourceClaimStatuses": list{dict{"name": "channel", "resourceClaimName": node}},
			"conditions":            list{dict{"type": "PodScheduled", "status": "True"}, dict{"type": "Ready", "status": "True"}},
			"containerStatuses": list{dict{"name": "main", "image": "x", "imageID": "x", "ready": true, "restartCount": 0,
				"state": dict{"running": dict{}}}}}})
	})
	return n
}

// waits creates a pod that gets no node because all channels are in use, as the scheduler and the controller manager leave it.
func (b *bench) waits(template, uid string) {
	check(b.admin.create(claimsPath, aClaim("waits", "channel", "compute-domain-default-channel.nvidia.com", "ComputeDomainChannelConfig", uid), nil),
		"claim of the pod")
	var made struct {
		Metadata meta `json:"metadata"`
	}
	check(b.admin.create(workloadPods, aPod("waits", template), &made), "pod")
	message := fmt.Sprintf(noNode, b.nodes, b.nodes, b.nodes, b.nodes)
	check(b.admin.patch(workloadPods+"/waits/status", dict{"status": dict{
		"resourceClaimStatuses": list{dict{"name": "channel", "resourceClaimName": "waits"}},
		"conditions":            list{dict{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}}}}), "pod")
	now := time.Now().UTC().Format(time.RFC3339)
	for i := 0; i < 5; i++ {
		check(b.admin.create(eventsPath, dict{"metadata": dict{"name": fmt.Sprintf("waits.%d", i)}, "type": "Warning", "reason": "FailedScheduling",
			"message": message, "count": 1, "firstTimestamp": now, "lastTimestamp": now, "source": dict{"component": "default-scheduler"},
			"involvedObject": dict{"kind": "Pod", "apiVersion": "v1", "namespace": ns, "name": "waits", "uid": made.Metadata.UID}}, nil), "Event")
	}
}

// asked runs `kubectl compute-domains why` eleven times, and returns the median of its durations in seconds. The answer must have one of these
// texts, and the exit code that belongs to it.
func (b *bench) asked(who string, answers map[string]int, arguments ...string) float64 {
	var took []float64
	for i := 0; i < whyRuns; i++ {
		command := exec.Command("kubectl", append([]string{"compute-domains", "why", "waits", "-n", ns}, arguments...)...)
		command.Env = append(os.Environ(), "PATH="+b.tool+":"+os.Getenv("PATH"))
		begin := time.Now()
		text, err := command.CombinedOutput()
		took = append(took, time.Since(begin).Seconds())
		code, wanted := 0, -1
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			code = ended.ExitCode()
		} else {
			check(err, "kubectl")
		}
		for answer, c := range answers {
			if strings.Contains(string(text), answer) {
				wanted = c
			}
		}
		if code != wanted {
			fail("why, %s: exit code %d, and:\n%s", who, code, text)
		}
	}
	slices.Sort(took)
	b.set("why, "+who+": longest s", took[whyRuns-1])
	return took[whyRuns/2]
}

// The time of `why` about a pod that waits, while every node is in use and no controller works.
func (b *bench) why(templates, uids []string) {
	say("%d nodes: why does a pod wait?", b.nodes)
	n := b.workers(templates)
	b.waits(templates[0], uids[0])
	b.set("why, admin: median of 11 s", b.asked("admin", map[string]int{"CAUSE  no free channel": 1}))
	// Without the right to list nodes, a condition of the ComputeDomain names the cause, or there are possible causes.
	b.set("why, role view: median of 11 s", b.asked("role view",
		map[string]int{"MAYBE  all channels are in use": 3, "CAUSE  the controller reports on ComputeDomain": 1}, "--kubeconfig", b.viewer))
	each("pods", n, b.atOnce, func(i int) error { return b.admin.remove(workloadPods + "/worker-" + nodeName(i)) })
	check(b.admin.remove(workloadPods+"/waits"), "pod")
	check(b.admin.remove(claimsPath+"/waits"), "claim of the pod")
}
