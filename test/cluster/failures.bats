#!/usr/bin/env bats
# What breaks heals, or says what it needs. Each test is named after its failure.

load driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || mend
	ns_end
}

# What a test that failed halfway may have left broken.
mend() {
	"$cluster/apiserver" start
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	knob 0 CRASH_AFTER_MS= REFUSE_START= START_DELAY_MS=
}

plugin_restarted() { [[ $(k -n "$driver_ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].restartCount}') -gt $2 ]]; }
compact_etcd() {
	local etcd=http://127.0.0.1:23790/v3/kv
	curl -sf "$etcd/compaction" -d "{\"revision\": $(curl -sf "$etcd/range" -d '{"key": "eA=="}' | jq .header.revision), \"physical\": true}" >/dev/null
}
condition_says() { [[ $(condition "$1" Ready message) == *"$2"* ]]; }
daemon_pod_runs() { [[ $(k -n "$driver_ns" get pod "$(daemon_pod "$1" "$2")" -o jsonpath='{.status.phase}') == Running ]]; }

# admin_worker NAME DOMAIN-UID NODE: a pod with admin access to a node's channel.
admin_worker() { claimed_by_hand "$1" "$(config "$2")" "" "$3" ", adminAccess: true"; }
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

@test "nvidia-imex crashes in a loop: it is said, restarts are held back, and it heals" {
	domain d
	worker a d 0
	running a
	local pod
	pod=$(daemon_pod d 0)
	knob 0 CRASH_AFTER_MS=50
	kill_in_pod "$driver_ns" "$pod" nvidia-imex
	eventually 60 condition_says d "signal 11"
	[[ $(condition d Ready status) == False && $(condition d Ready reason) == NodeFailing ]]
	eventually 20 event_says "ResourceClaim/$(claim_of a)" "the channel is in use, but is not served"
	eventually 20 event_says ComputeDomain/d node-0
	# It does not start at all, for a reason of its own.
	knob 0 CRASH_AFTER_MS= REFUSE_START="Failed to allocate Imex session, status = NV_ERR_IN_USE"
	eventually 60 condition_says d "another nvidia-imex on this node owns the driver's only IMEX session"
	# With pauses that double, from 0.1 s to 30 s, a minute has about ten starts.
	(($(k -n "$driver_ns" logs "$pod" | grep -c "IMEX daemon is down") < 20))
	knob 0 REFUSE_START=
	eventually 60 condition_is d Ready True
	[[ $(k -n "$driver_ns" get pod "$pod" -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
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

@test "the API server is gone for a minute while claims are prepared and unprepared" {
	domain d
	worker a d 0
	worker c d 1
	running a
	running c
	local uid
	uid=$(claim_uid a)
	# Prepared: b has its claim, but neither index nor daemon yet. Unprepared: a.
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	worker b d 2
	eventually 20 allocated b
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2
	k -n "$ns" delete pod a --wait=false
	"$cluster/apiserver" stop
	no_claim_file() { ! "$cluster/node" 0 ls /var/run/cdi | grep -q "$uid"; }
	eventually 60 no_claim_file
	# The kubelet's patience of 45 s ends meanwhile.
	eventually 70 plugin_says 2 "cannot prepare claim"
	"$cluster/apiserver" start
	gone pod/a
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=90s
	running b 150
	has_channel b
	eventually 60 condition_is d PeersConnected True
	[[ $(k -n "$ns" get pod c -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

@test "watches are closed and what they could resume from is forgotten (410)" {
	domain d
	worker a d 0
	running a
	"$cluster/apiserver" kill
	compact_etcd
	"$cluster/apiserver" start
	worker b d 1
	running b 90
	eventually 60 domain_field_is d .status.nodesReady 2
	eventually 60 condition_is d PeersConnected True
	k -n "$ns" delete pod a b
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

@test "two ComputeDomains want one node: why the second waits is said" {
	domain first
	domain second
	worker a first 0
	running a
	# A claim with admin access gets the channel beside the first's, but no daemon: it moves no node from one domain to another.
	k label namespace "$ns" resource.kubernetes.io/admin-access=true >/dev/null
	admin_worker watcher "$(domain_uid second)" 0
	# The scheduler says it of a claim without: the channel is taken.
	worker b second 0
	eventually 30 event_says Pod/b "cannot allocate all claims"
	eventually 70 event_says Pod/watcher "the IMEX daemon of another ComputeDomain ($(domain_uid first)) has not left this node yet"
	k -n "$ns" delete pod watcher a --wait=false
	running b 90
	has_channel b
	eventually 30 condition_is second Ready True
}

@test "a pod is deleted while its claim is prepared: the channel is free for the next" {
	domain d
	knob 0 START_DELAY_MS=600000
	worker a d 0
	eventually 20 allocated a
	eventually 30 daemon_pod_runs d 0
	k -n "$ns" delete pod a
	knob 0 START_DELAY_MS=
	eventually 60 daemon_pods_gone
	worker b d 0
	running b 90
	has_channel b
	[[ $("$cluster/node" 0 cat "$plugin_dir/checkpoint.json" | jq '[.v2.preparedClaims[] | select(.checkpointState == "PrepareCompleted")] | length') == 2 ]]
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
