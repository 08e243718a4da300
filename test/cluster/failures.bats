#!/usr/bin/env bats
# What breaks heals, or says what it needs. Each test is named after its failure.

load driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() { ns_end; }

plugin_restarted() { [[ $(k -n "$driver_ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].restartCount}') -gt $2 ]]; }
clique_conf() { "$cluster/node" "$1" sed -i "s/^$2=.*/$2=$3/" /run/nvidia/driver/usr/lib64/libnvidia-ml.conf; }

@test "the leading controller is killed while a domain forms" {
	domain d
	worker a d 0
	kill_in_pod "$driver_ns" "$(leader_pod)" compute-domain-controller
	worker b d 1
	running a 90
	running b 90
	eventually 30 domain_field_is d .status.nodesReady 2
}

@test "the controllers are down while a pod goes, and its label goes when they are back" {
	domain d
	worker a d 0
	running a
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	k -n "$ns" delete pod a
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2
	eventually 60 labels_gone
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s
}

@test "the kubelet plugin is killed while a Prepare waits" {
	domain d
	worker a d 0
	eventually 20 k -n "$ns" get resourceclaims -o name
	kill_in_pod "$driver_ns" "$(plugin_pod 0)" compute-domain-kubelet-plugin || true
	running a 240 # a kubelet whose call broke off asks again only at its next look at the pod, after up to 90 s
	has_channel a
}

@test "a daemon is killed: its container comes back with the same index and the workload runs on" {
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	eventually 20 domain_field_is d .status.nodesReady 2
	local pod index
	pod=$(daemon_pod d 0)
	index=$(domain_field d '.status.nodes[?(@.name=="node-0")].index')
	kill_in_pod "$driver_ns" "$pod" compute-domain-daemon
	eventually 60 plugin_restarted "$pod" 0
	eventually 60 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d '.status.nodes[?(@.name=="node-0")].index') == "$index" ]]
	has_channel a
}

@test "nvidia-imex crashes once and is started again" {
	domain d
	worker a d 0
	running a
	local pod
	pod=$(daemon_pod d 0)
	kill_in_pod "$driver_ns" "$pod" nvidia-imex
	eventually 30 daemon_is_ready "$pod"
	[[ $(k -n "$driver_ns" get pod "$pod" -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

@test "a daemon pod is deleted: its replacement has another address and peers follow" {
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	eventually 20 condition_is d PeersConnected True
	local pod before
	pod=$(daemon_pod d 0)
	before=$(domain_field d '.status.nodes[?(@.name=="node-0")].ipAddress')
	k -n "$driver_ns" delete pod "$pod"
	ip_changed() { local now; now=$(domain_field d '.status.nodes[?(@.name=="node-0")].ipAddress'); [[ -n $now && $now != "$before" ]]; }
	eventually 60 ip_changed
	eventually 60 domain_field_is d .status.nodesReady 2
	eventually 60 condition_is d PeersConnected True
}

@test "the API server is gone while pods are unprepared" {
	domain d
	worker a d 0
	running a
	local uid
	uid=$(k -n "$ns" get resourceclaims -o jsonpath='{.items[0].metadata.uid}')
	k -n "$ns" delete pod a --wait=false
	"$cluster/apiserver" stop
	no_claim_file() { ! "$cluster/node" 0 ls /var/run/cdi | grep -q "$uid"; }
	eventually 60 no_claim_file
	"$cluster/apiserver" start
	gone pod/a
	eventually 60 labels_gone
}

@test "a chart upgrade under a running workload restarts no daemon" {
	domain d
	worker a d 0
	running a
	local pod before
	pod=$(daemon_pod d 0)
	before=$(k -n "$driver_ns" get pod "$pod" -o jsonpath='{.metadata.uid}')
	with_driver 4 --set logVerbosity=5
	worker b d 1
	running b
	eventually 30 domain_field_is d .status.nodesReady 2
	[[ $(k -n "$driver_ns" get pod "$(daemon_pod d 0)" -o jsonpath='{.metadata.uid}{.status.containerStatuses[0].restartCount}') == "${before}0" ]]
	k -n "$ns" delete pod a b
	eventually 60 daemon_pods_gone
	with_driver 4
}

@test "a DaemonSet and a claim template deleted by hand come back" {
	domain d
	eventually 20 k -n "$ns" get resourceclaimtemplate d
	local uid
	uid=$(domain_uid d)
	eventually 20 k -n "$driver_ns" get daemonset "computedomain-daemon-$uid"
	k -n "$driver_ns" delete daemonset "computedomain-daemon-$uid" --wait=false
	k -n "$ns" delete resourceclaimtemplate d --wait=false
	worker a d 0
	running a 90
}

@test "two ComputeDomains want one node: the second waits until the first has left" {
	domain first
	domain second
	worker a first 0
	running a
	worker b second 0
	k -n "$ns" wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].status}'=False pod/b --timeout=30s
	k -n "$ns" delete pod a
	running b 90
	[[ $(k get node node-0 -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") == "$(domain_uid second)" ]]
}

@test "a node without fabric: the pod runs without a channel and an Event says so" {
	clique_conf 2 FABRIC_STATE 0
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	no_clique() { k get resourceslices -o json | jq -e '[.items[] | select(.spec.nodeName == "node-2") | .spec.devices[] | .attributes | has("cliqueID")] == [false, false]' >/dev/null; }
	eventually 30 no_clique
	domain d
	worker a d 2
	running a
	! has_channel a
	eventually 20 event_says Pod/a "without"
	eventually 20 domain_field_is d '.status.nodes[0].index' -1
	clique_conf 2 FABRIC_STATE 3
	k -n "$ns" delete pod a
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	has_clique() { ! no_clique; }
	eventually 30 has_clique
}

@test "two cliques in one ComputeDomain" {
	"$cluster/clique" 3 2
	k -n "$driver_ns" delete pod "$(plugin_pod 3)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	relabelled() { [[ $(k get node node-3 -o "jsonpath={.metadata.labels.nvidia\.com/gpu\.clique}") == *.2 ]]; }
	eventually 30 relabelled
	domain d
	worker a d 0
	worker b d 3
	running a
	running b
	eventually 20 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d .status.cliques) == 2 && $(domain_field d '.status.nodes[*].index') == "0 0" ]]
	"$cluster/clique" 3 1
	k -n "$ns" delete pod a b
	k -n "$driver_ns" delete pod "$(plugin_pod 3)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
}

@test "the kubelet is restarted under a running workload" {
	domain d
	worker a d 1
	running a
	"$cluster/kubelet" 1 stop
	"$cluster/kubelet" 1 start
	k wait --for=condition=Ready node/node-1 --timeout=60s
	eventually 30 has_channel a # the kubelet has to find its pods again
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	k -n "$ns" delete pod a
	eventually 60 labels_gone
}
