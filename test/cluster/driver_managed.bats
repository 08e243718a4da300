#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Driver-managed IMEX on a real cluster, as users see it.

load driver
load domains

setup_file() { with_driver 4; }
teardown_file() { "$cluster/prometheus" stop; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || "$cluster/kubelet" 1 start
	ns_end
}

# bats test_tags=matrix
@test "one pod on one node gets its channel, and nothing is left when it ends" {
	domain one
	worker pod one 1
	running pod
	has_channel pod
	[[ $(k -n "$ns" exec pod -- ls /dev/nvidia-caps-imex-channels) == channel0 ]]
	eventually 20 node_label_is 1 "$(domain_uid one)"
	k -n "$ns" wait --for=condition=Ready computedomain/one --timeout=30s
	eventually 10 domain_field_is one .status.status Ready
	eventually 10 listed_are one "node-1 0 Ready"
	k -n "$ns" delete pod pod
	eventually 30 labels_gone
	eventually 30 daemons_idle 4
	eventually 10 domain_field_is one .status.nodes ""
}
# node_label_is K UID: the label of the Node shows its ComputeDomain.
node_label_is() { [[ $(k get node "node-$1" -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") == "$2" ]]; }

user_namespaces() { k get node node-1 -o json | jq -e 'any(.status.runtimeHandlers[]?; .features.userNamespaces)' >/dev/null; }

# failure: a pod has hostUsers: false -> it gets its channel, and may open it [host]
# bats test_tags=matrix
@test "a pod in a user namespace gets its channel, and may open it" {
	user_namespaces || skip "the container runtime does not support user namespaces"
	domain d
	pod_with_channel w d $'hostUsers: false\n  nodeSelector: {kubernetes.io/hostname: node-1}'
	running w
	[[ $(k -n "$ns" exec w -- cat /proc/self/uid_map | awk '{ print $2 }') != 0 ]]
	has_channel w
	# The simulated major number has no driver. Only a container that may open the device gets this error.
	[[ $(k -n "$ns" exec w -- sh -c 'cat /dev/nvidia-caps-imex-channels/channel0 2>&1; true') == *"No such device or address"* ]]
}

@test "the Deployment of the introduction runs unchanged except for image and replicas" {
	k -n "$ns" apply -f "$cluster/manifests/deployment.yaml"
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=60s
	local pod
	for pod in $(k -n "$ns" get pods -l job=ex1 -o jsonpath='{.items[*].metadata.name}'); do has_channel "$pod"; done
	eventually 15 domain_field_is compute-domain-0 .status.nodesReady 4
	# Four nodes, four different indices, one partition.
	[[ $(domain_field compute-domain-0 '.status.nodes[*].index' | xargs -n1 | sort | xargs) == "0 1 2 3" ]]
	[[ $(domain_field compute-domain-0 .status.cliques) == 1 ]]
}

@test "a launcher and workers with one pod template complete as an Indexed Job on the whole rack" {
	k -n "$ns" apply -f "$cluster/manifests/rack-job.yaml"
	k -n "$ns" wait --for=condition=Complete job/dra-example-gb200-4x --timeout=90s
	k -n "$ns" get resourceclaimtemplate imex-channel-s0-011-us-west-01a -o json |
		jq -e '.metadata.labels["resource.nvidia.com/computeDomainTarget"] == "Workload" and (.metadata.finalizers | index("resource.nvidia.com/computeDomain"))'
}

# failure: pods are added to and removed from a ComputeDomain -> nodes join and leave, and others keep their
#   IMEX
# bats test_tags=matrix,long
@test "a ComputeDomain grows and shrinks with its workload" {
	k -n "$ns" apply -f "$cluster/manifests/deployment.yaml"
	k -n "$ns" scale deployment/example-mnnvl-workload --replicas=2
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=60s
	eventually 30 domain_field_is compute-domain-0 .status.nodesReady 2
	local stays before
	stays=$(domain_field compute-domain-0 '.status.nodes[0].name')
	before="$(daemon_identity "${stays#node-}") $(imex_pid "${stays#node-}")"
	k -n "$ns" scale deployment/example-mnnvl-workload --replicas=4
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=60s
	eventually 30 domain_field_is compute-domain-0 .status.nodesReady 4
	eventually 45 condition_is compute-domain-0 PeersConnected True
	# The other nodes are not disturbed.
	[[ "$(daemon_identity "${stays#node-}") $(imex_pid "${stays#node-}")" == "$before" ]]
	k -n "$ns" scale deployment/example-mnnvl-workload --replicas=1
	eventually 60 domain_field_is compute-domain-0 .status.nodesReady 1
	eventually 30 condition_is compute-domain-0 Ready True
}

# bats test_tags=matrix
@test "kubectl get, kubectl describe and the documented commands for monitoring show the state" {
	domain watched
	worker pod watched 0
	running pod
	eventually 15 domain_field_is watched .status.nodesReady 1
	run k -n "$ns" get cd watched
	[[ $output == *STATUS*READY*WANTED*AGE* && $output == *Ready*1*1* ]]
	run k -n "$ns" describe computedomain watched
	[[ $output == *Conditions* ]]
	run k get pods -n "$driver_ns" -l app=compute-domain-kubelet-plugin -o name
	[[ $(wc -l <<<"$output") == 4 ]]
	run k get pods -n "$driver_ns" -l app=imex-daemon -o name
	[[ $(wc -l <<<"$output") == 4 ]]
	run k get pods -n "$driver_ns" -l "$uid_label=$(domain_uid watched)" -o name
	[[ $(wc -l <<<"$output") == 1 ]]
	event_names_node() { [[ $(k get events -n "$ns" --field-selector involvedObject.kind=ComputeDomain) == *node-0* ]]; }
	eventually 10 event_names_node
	k logs -n "$driver_ns" -l app=compute-domain-kubelet-plugin --tail=100 >/dev/null
	k get computedomains -A >/dev/null
}

# bats test_tags=matrix
@test "nodes have the label nvidia.com/gpu.clique, and slices have the clique ID as an attribute" {
	local clique
	clique=$(k get node node-0 -o "jsonpath={.metadata.labels.nvidia\.com/gpu\.clique}")
	[[ $clique =~ ^[0-9a-f-]{36}\.[0-9]+$ ]]
	k get resourceslices -o json | jq -e --arg c "$clique" '[.items[] | select(.spec.nodeName == "node-0") | .spec.devices[]] |
		length == 2 and all(.[]; (.basic // .).attributes.cliqueID.string == $c) and (map(.name) | sort) == ["channel-0", "daemon-0"]'
}

@test "allocationMode All injects every channel" {
	domain every 0 All
	worker pod every 2
	running pod
	[[ $(k -n "$ns" exec pod -- ls /dev/nvidia-caps-imex-channels | wc -l) == 2048 ]]
}

# bats test_tags=long
@test "numNodes keeps the status NotReady until that many nodes are ready, and delays no pod" {
	domain two 2
	worker a two 0
	running a
	eventually 15 domain_field_is two .status.nodesReady 1
	domain_field_is two .status.status NotReady
	[[ $(condition two Ready message) == *1*2* ]]
	worker b two 1
	running b
	eventually 15 domain_field_is two .status.status Ready
}

# failure: a ComputeDomain is deleted under its pods -> the deletion completes, and its nodes are free
# bats test_tags=matrix
@test "a ComputeDomain is deleted under running pods, and its nodes are free" {
	domain doomed
	worker pod doomed 3
	running pod
	k -n "$ns" delete computedomain doomed --timeout=60s
	eventually 30 labels_gone
	eventually 60 daemons_idle 4
}

# failure: the fabric object is deleted in the foreground -> it is recreated, and no IMEX ends
@test "a ComputeDomain and its fabric object are deleted in the foreground" {
	domain one
	worker a one 0
	running a
	local old pid
	old=$(k get computedomainfabrics -o 'jsonpath={.items[0].metadata.uid}')
	pid=$(imex_pid 0)
	k delete computedomainfabrics --all --cascade=foreground --timeout=60s >/dev/null
	eventually 20 eval 'k get computedomainfabrics -o json | jq -e --arg old "'"$old"'" "any(.items[]; .metadata.uid != \$old)" >/dev/null'
	eventually 30 assigned_are one "node-0 0,"
	[[ $(imex_pid 0) == "$pid" ]]
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	k -n "$ns" delete computedomain one --cascade=foreground --timeout=90s >/dev/null
}

# bats test_tags=long
@test "a namespace is deleted under running pods, with its ComputeDomain" {
	domain doomed
	worker pod doomed 0
	running pod
	k delete namespace "$ns" --timeout=60s
}

# failure: a ComputeDomain is recreated at once under its name -> it forms again
# bats test_tags=long
@test "a ComputeDomain that is recreated with the same name forms again" {
	domain again
	worker pod again 0
	running pod
	k -n "$ns" delete pod pod --wait=false
	k -n "$ns" delete computedomain again --wait=true --timeout=60s
	domain again
	worker pod2 again 0
	running pod2
	has_channel pod2
}

# bats test_tags=long
@test "two ComputeDomains side by side on their own nodes" {
	domain left
	domain right
	worker l0 left 0
	worker l1 left 1
	worker r0 right 2
	worker r1 right 3
	running l0
	running l1
	running r0
	running r1
	eventually 20 domain_field_is left .status.nodesReady 2
	eventually 20 domain_field_is right .status.nodesReady 2
	eventually 45 condition_is left PeersConnected True
	eventually 45 condition_is right PeersConnected True
}

# shared_claim NAME DOMAIN: a claim that several pods refer to by name.
shared_claim() {
	k -n "$ns" apply -f - >/dev/null <<END
$(one_device ResourceClaim "$(config "$(domain_uid "$2")")")
metadata: {name: $1}
END
}
# sharer NAME CLAIM SPEC [REQUEST=CLAIM]: a pod that uses this claim by name. SPEC determines where it runs.
sharer() { claims_pod "$1" "$3" channel="$2" "${@:4}"; }
# waits_because POD TEXT: the pod is Pending, and the scheduler reports this reason.
waits_because() {
	[[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.phase}') == Pending ]] &&
		[[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}') == *"$2"* ]]
}
claim_is_free() { prints_nothing k -n "$ns" get resourceclaim "$1" -o jsonpath='{.status.allocation}'; }

# failure: several pods share one claim -> they share the channel, and a pod of another node waits with the
#   reason
# bats test_tags=matrix
@test "three pods share a named claim and the channel of one node, and a fourth pod that cannot run there waits with the reason" {
	local node pod uid
	domain team
	shared_claim one team
	for pod in a b c; do sharer "$pod" one "nodeSelector: {}"; done
	for pod in a b c; do running "$pod"; has_channel "$pod"; done
	node=$(k -n "$ns" get pod a -o jsonpath='{.spec.nodeName}')
	[[ $(k -n "$ns" get pods -o jsonpath='{.items[*].spec.nodeName}') == "$node $node $node" ]]
	eventually 15 domain_field_is team .status.nodesReady 1
	eventually 15 event_contains ResourceClaim/one "the channel of this claim is on node $node"
	event_contains ResourceClaim/one "use the claim template of ComputeDomain 'team'"
	# One for another node; one that the node has no room for.
	sharer elsewhere one "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [$node]}]}]}}}"
	eventually 30 waits_because elsewhere "resourceclaim not available on the node"
	# The channel is released after the last of the pods.
	uid=$(k -n "$ns" get resourceclaim one -o jsonpath='{.metadata.uid}')
	k -n "$ns" delete pod a b elsewhere
	has_channel c
	claim_file "${node#node-}" "$uid"
	domain_field_is team .status.nodesReady 1
	k -n "$ns" delete pod c
	eventually 30 claim_is_free one
	eventually 30 no_claim_file "${node#node-}" "$uid"
	eventually 30 labels_gone
	# The next pod gets it again.
	sharer next one "nodeSelector: {kubernetes.io/hostname: node-3}"
	running next
	has_channel next
}

# A kubelet without kubernetes/kubernetes#140212 does this, and so does one with it.
# failure: a pod of a shared claim ends early -> the other pods keep the channel
# bats test_tags=matrix,long
@test "a pod of a shared claim that fails before its claims are checked does not take the channel from running pods" {
	local daemon imex uid
	domain team
	shared_claim one team
	sharer works one "nodeSelector: {kubernetes.io/hostname: node-2}"
	running works
	daemon=$(daemon_identity 2) imex=$(imex_pid 2)
	uid=$(k -n "$ns" get resourceclaim one -o jsonpath='{.metadata.uid}')
	# Without a scheduler, so that the kubelet notices first that the second claim is missing.
	sharer fails one "nodeName: node-2" second=there-is-none
	eventually 90 event_contains Pod/fails "there-is-none"
	k -n "$ns" delete pod fails
	gone pod/fails
	# It depends on the kubelet's version whether the claim was unprepared. Running pods keep their channel, their
	# assignment and their IMEX.
	has_channel works
	assigned_are team "node-2 0,"
	# The next pod of the claim is prepared, and nothing is left when both have ended.
	sharer joins one "nodeSelector: {}"
	running joins
	has_channel joins
	has_channel works
	claim_file 2 "$uid"
	[[ $(daemon_identity 2) == "$daemon" && $(imex_pid 2) == "$imex" ]]
	k -n "$ns" delete pod works joins
	eventually 30 claim_is_free one
	eventually 30 no_claim_file 2 "$uid"
}

# failure: two ComputeDomains want one node -> Events report why the second waits until the first has left
# bats test_tags=matrix,long
@test "two ComputeDomains want one node: Events report why the second one waits" {
	since 34 "a claim with admin access is behind a gate before 1.34"
	domain first
	domain second
	worker a first 0
	running a
	# A claim with admin access also gets the channel, but no assignment: it moves no node from one ComputeDomain to
	# another.
	k label namespace "$ns" resource.kubernetes.io/admin-access=true >/dev/null
	claimed_by_hand watcher "$(config "$(domain_uid second)")" "" 0 ", adminAccess: true"
	# For a claim without it, the scheduler reports that the channel is in use.
	worker b second 0
	eventually 30 event_contains Pod/b "cannot allocate all claims"
	eventually 70 event_contains Pod/watcher "this claim has admin access, which brings no node into ComputeDomain '$ns/second'"
	k -n "$ns" delete pod watcher a --wait=false
	running b 90
	has_channel b
	assigned_are second "node-0 0,"
	eventually 20 node_label_is 0 "$(domain_uid second)"
	eventually 30 condition_is second Ready True
}

# failure: the kubelet is restarted under a pod -> the pod, its channel and IMEX continue
# bats test_tags=long
@test "the kubelet is restarted under a running workload" {
	domain d
	worker a d 1
	running a
	local before
	before="$(daemon_identity 1) $(imex_pid 1)"
	"$cluster/kubelet" 1 stop
	"$cluster/kubelet" 1 start
	k wait --for=condition=Ready node/node-1 --timeout=60s
	eventually 30 has_channel a # the kubelet has to find its pods again
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	[[ "$(daemon_identity 1) $(imex_pid 1)" == "$before" ]]
	k -n "$ns" delete pod a
	eventually 60 daemons_idle 4
}

# listening PID: prints the TCP ports on which this process listens.
listening() { nsenter -t "$1" -n ss -Hltnp | grep "pid=$1," | awk '{ sub(".*:", "", $4); print $4 }' | sort -nu | paste -sd,; }
# named_ports POD: prints the ports that its containers declare.
named_ports() { k -n "$driver_ns" get pod "$1" -o json | jq -r '[.spec.containers[].ports[]?.containerPort] | sort | join(",")'; }

# bats test_tags=long
@test "each open port of the driver's programs is declared in its Pod" {
	domain d
	worker a d 0
	running a
	local pod pid
	for pod in "$(leader_pod)" "$(plugin_pod 0)"; do
		pid=$(pids_of_pod "$driver_ns" "$pod" 'compute-domain-[a-z-]*')
		echo "$pod listens on $(listening "$pid"), declares $(named_ports "$pod")"
		[[ -n $(named_ports "$pod") && $(listening "$pid") == "$(named_ports "$pod")" ]]
	done
	# The daemon listens on no port. Those in its Pod are nvidia-imex's.
	[[ -z $(listening "$(pids_of_pod "$driver_ns" "$(daemon_pod 0)" compute-domain-daemon)") ]]
}

# The chart as it is installed in the cluster, with the pull policy of the test image.
@test "helm test creates a ComputeDomain, and its pod finds a channel" {
	local answer
	answer=$("$cluster/helm" test compute-domains --namespace "$driver_ns" --logs --timeout 120s)
	[[ $answer == *"/dev/nvidia-caps-imex-channels/channel0: character device "* ]]
	prints_nothing k -n "$driver_ns" get computedomains -o name
	k -n "$driver_ns" delete pod compute-domains-test-channel
}

# seen METRIC [LABEL]: Prometheus has a series with this name and this label.
seen() { "$cluster/prometheus" query "count($1${2:+{$2!=\"\"\}})" | jq -e '.data.result[0].value[1] | tonumber > 0' >/dev/null; }

# bats test_tags=long
@test "a real Prometheus finds every series and label that alerts and dashboard use" {
	local files=$checkout/deploy/chart/compute-domains/files metric labels label
	"$cluster/prometheus" start 2s
	k -n "$ns" apply -f "$cluster/manifests/deployment.yaml"
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=90s
	python3 -B "$checkout/test/alerts/named.py" "$files/alerts.yaml" "$files/dashboard.json" >"$BATS_TEST_TMPDIR/named"
	[[ $(wc -l <"$BATS_TEST_TMPDIR/named") -gt 15 ]]
	while read -r metric labels; do
		for label in "" $labels; do eventually 20 seen "$metric" "$label"; done
	done <"$BATS_TEST_TMPDIR/named"
}

# surge_waits SECONDS: a new plugin Pod must be ready for this time before the old one of its node is deleted.
surge_waits() { k -n "$driver_ns" patch daemonset compute-domains-kubelet-plugin --type=merge -p "{\"spec\": {\"minReadySeconds\": $1}}" >/dev/null; }

# plugins_at_work: prints node, name and restarts of each plugin Pod that is ready and has a running process.
plugins_at_work() {
	local node pod count
	k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin -o json |
		jq -r '.items[] | select(any(.status.conditions[]; .type == "Ready" and .status == "True")) |
			"\(.spec.nodeName) \(.metadata.name) \(.status.containerStatuses[0].restartCount)"' | sort |
		while read -r node pod count; do
			[[ -z $(pids_of_pod "$driver_ns" "$pod" compute-domain-kubelet-plugin) ]] || echo "$node $pod $count"
		done
}

# The last test, because only the next installation resets it.
# failure: two plugins run on each node during an update -> claims are prepared and unprepared meanwhile
#   [upgrade]
# bats test_tags=long
@test "two plugin processes on each node during an update: claims are prepared and unprepared in the meantime" {
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	# The new Pod of a node starts before the old one ends.
	with_surge() {
		"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --values "$cluster/driver-values.yaml" \
			--set kubeletPlugin.updateStrategy.rollingUpdate.maxUnavailable=0 --set kubeletPlugin.updateStrategy.rollingUpdate.maxSurge=100% "$@" >/dev/null
	}
	with_surge
	plugins_settle
	surge_waits 3600
	with_surge --set logVerbosity=5
	two_on_each_node() { [[ $(plugins_at_work | cut -d' ' -f1 | uniq -c | xargs) == "2 node-0 2 node-1 2 node-2 2 node-3" ]]; }
	eventually 120 two_on_each_node
	local uid working
	working=$(plugins_at_work)
	uid=$(claim_uid a)
	claim_file 0 "$uid"
	k -n "$ns" delete pod a --wait=false
	worker c d 2
	worker e d 3
	gone pod/a
	eventually 30 no_claim_file 0 "$uid"
	running c 150
	running e 150
	has_channel c
	# All of them ran at the same time: no plugin ended, and none was restarted.
	[[ $(plugins_at_work) == "$working" ]]
	surge_waits 0
	plugins_settle
	# The new process unprepares claims that the earlier one prepared.
	uid=$(claim_uid b)
	checkpoint_has 1 "$uid" PrepareCompleted
	k -n "$ns" delete pod b
	eventually 30 no_claim_file 1 "$uid"
}
