#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Driver-managed mode on a real cluster, as its users see it.

load driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() { ns_end; }

# bats test_tags=matrix
@test "one pod on one node gets its channel, and nothing is left when it goes" {
	domain one
	worker pod one 1
	running pod
	has_channel pod
	[[ $(k -n "$ns" exec pod -- ls /dev/nvidia-caps-imex-channels) == channel0 ]]
	[[ $(k get node node-1 -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") == "$(domain_uid one)" ]]
	k -n "$ns" wait --for=condition=Ready computedomain/one --timeout=30s
	eventually 10 domain_field_is one .status.status Ready
	[[ $(domain_field one '.status.nodes[0].name') == node-1 && $(domain_field one '.status.nodes[0].index') == 0 ]]
	k -n "$ns" delete pod pod
	eventually 30 labels_gone
	eventually 30 daemon_pods_gone
	eventually 10 domain_field_is one .status.nodes ""
}

user_namespaces() { k get node node-1 -o json | jq -e 'any(.status.runtimeHandlers[]?; .features.userNamespaces)' >/dev/null; }

# bats test_tags=matrix
@test "a pod in a user namespace gets its channel, and may open it" {
	user_namespaces || skip "its container runtime has no user namespaces"
	domain d
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: w}
		spec:
		  terminationGracePeriodSeconds: 0
		  hostUsers: false
		  nodeSelector: {kubernetes.io/hostname: node-1}
		  resourceClaims: [{name: channel, resourceClaimTemplateName: d}]
		  containers:
		  - name: main
		    image: compute-domains/busybox:test
		    imagePullPolicy: Never
		    command: [sleep, "1000000"]
		    resources: {claims: [{name: channel}]}
	END
	running w
	[[ $(k -n "$ns" exec w -- cat /proc/self/uid_map | awk '{ print $2 }') != 0 ]]
	has_channel w
	# The stand-in's major has no driver, which only a container hears of that may open it.
	[[ $(k -n "$ns" exec w -- sh -c 'cat /dev/nvidia-caps-imex-channels/channel0 2>&1; true') == *"No such device or address"* ]]
}

@test "the Deployment of the introduction runs unchanged but for image and replicas" {
	k -n "$ns" apply -f "$cluster/manifests/deployment.yaml"
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=60s
	local pod
	for pod in $(k -n "$ns" get pods -l job=ex1 -o jsonpath='{.items[*].metadata.name}'); do has_channel "$pod"; done
	eventually 15 domain_field_is compute-domain-0 .status.nodesReady 4
	eventually 15 condition_is compute-domain-0 PeersConnected True
	# Four nodes, four different indices, one clique.
	[[ $(domain_field compute-domain-0 '.status.nodes[*].index' | xargs -n1 | sort | xargs) == "0 1 2 3" ]]
	[[ $(k -n "$driver_ns" get computedomaincliques -o name | wc -l) == 1 ]]
}

@test "a launcher and workers of one pod shape run to their end as an Indexed Job on the whole rack" {
	k -n "$ns" apply -f "$cluster/manifests/rack-job.yaml"
	k -n "$ns" wait --for=condition=Complete job/dra-example-gb200-4x --timeout=90s
	k -n "$ns" get resourceclaimtemplate imex-channel-s0-011-us-west-01a -o json |
		jq -e '.metadata.labels["resource.nvidia.com/computeDomainTarget"] == "Workload" and (.metadata.finalizers | index("resource.nvidia.com/computeDomain"))'
}

# bats test_tags=matrix
@test "a domain grows and shrinks with its workload" {
	k -n "$ns" apply -f "$cluster/manifests/deployment.yaml"
	k -n "$ns" scale deployment/example-mnnvl-workload --replicas=2
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=60s
	eventually 30 domain_field_is compute-domain-0 .status.nodesReady 2
	local stays before
	stays=$(domain_field compute-domain-0 '.status.nodes[0].name')
	before=$(k -n "$driver_ns" get pods -l app=imex-daemon --field-selector "spec.nodeName=$stays" -o jsonpath='{.items[0].metadata.uid}')
	k -n "$ns" scale deployment/example-mnnvl-workload --replicas=4
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=60s
	eventually 30 domain_field_is compute-domain-0 .status.nodesReady 4
	eventually 30 condition_is compute-domain-0 PeersConnected True
	# Those who were there are not disturbed.
	[[ $(k -n "$driver_ns" get pods -l app=imex-daemon --field-selector "spec.nodeName=$stays" -o jsonpath='{.items[0].metadata.uid}{.items[0].status.containerStatuses[0].restartCount}') == "${before}0" ]]
	k -n "$ns" scale deployment/example-mnnvl-workload --replicas=1
	eventually 60 domain_field_is compute-domain-0 .status.nodesReady 1
	eventually 30 condition_is compute-domain-0 Ready True
}

# bats test_tags=matrix
@test "kubectl get, describe and the monitoring commands of the recipes tell the state" {
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
	[[ $(wc -l <<<"$output") == 1 ]]
	told() { [[ $(k get events -n "$ns" --field-selector involvedObject.kind=ComputeDomain) == *node-0* ]]; }
	eventually 10 told
	k logs -n "$driver_ns" -l app=compute-domain-kubelet-plugin --tail=100 >/dev/null
	k get computedomains -A >/dev/null
}

# bats test_tags=matrix
@test "nodes carry the label nvidia.com/gpu.clique, and the slices the clique as an attribute" {
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

@test "numNodes keeps the status NotReady until that many nodes are ready, and holds no pod back" {
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

# bats test_tags=matrix
@test "a ComputeDomain deleted under a running workload goes, and its nodes are free" {
	domain doomed
	worker pod doomed 3
	running pod
	k -n "$ns" delete computedomain doomed --timeout=60s
	eventually 30 labels_gone
	eventually 30 daemon_pods_gone
}

@test "a ComputeDomain and its clique are deleted in the foreground" {
	domain one
	worker a one 0
	running a
	local old
	old=$(k -n "$driver_ns" get computedomaincliques -o 'jsonpath={.items[0].metadata.uid}')
	k -n "$driver_ns" delete computedomaincliques --all --cascade=foreground --timeout=60s >/dev/null
	eventually 20 eval 'k -n "$driver_ns" get computedomaincliques -o json | jq -e --arg old "'"$old"'" "any(.items[]; .metadata.uid != \$old)"'
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	k -n "$ns" delete computedomain one --cascade=foreground --timeout=90s >/dev/null
}

@test "a namespace deleted under a running workload goes, with the ComputeDomain in it" {
	domain doomed
	worker pod doomed 0
	running pod
	k delete namespace "$ns" --timeout=60s
}

@test "a ComputeDomain deleted and made again with the same name forms again" {
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
	eventually 20 condition_is left PeersConnected True
	eventually 20 condition_is right PeersConnected True
}

# shared_claim NAME DOMAIN: a claim that is made by name, for whoever names it.
shared_claim() {
	k -n "$ns" apply -f - >/dev/null <<END
$(one_device ResourceClaim "$(config "$(domain_uid "$2")")")
metadata: {name: $1}
END
}
# sharer NAME CLAIM SPEC [MORE-CLAIMS]: a pod of a claim by its name. SPEC: where it runs.
sharer() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  $3
  resourceClaims: [{name: channel, resourceClaimName: $2}${4:-}]
  containers:
  - name: main
    image: compute-domains/busybox:test
    imagePullPolicy: Never
    command: [sleep, "1000000"]
    resources: {claims: [{name: channel}]}
END
}
# waits_because POD TEXT: it is Pending, and the scheduler says why.
waits_because() {
	[[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.phase}') == Pending ]] &&
		[[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}') == *"$2"* ]]
}
claim_is_free() { [[ -z $(k -n "$ns" get resourceclaim "$1" -o jsonpath='{.status.allocation}') ]]; }

# bats test_tags=matrix
@test "three pods of one named claim share the channel of one node, and a fourth that cannot run there waits and is told why" {
	local node pod uid
	domain team
	shared_claim one team
	for pod in a b c; do sharer "$pod" one "nodeSelector: {}"; done
	for pod in a b c; do running "$pod" && has_channel "$pod"; done
	node=$(k -n "$ns" get pod a -o jsonpath='{.spec.nodeName}')
	[[ $(k -n "$ns" get pods -o jsonpath='{.items[*].spec.nodeName}') == "$node $node $node" ]]
	eventually 15 domain_field_is team .status.nodesReady 1
	eventually 15 event_says ResourceClaim/one "the channel of this claim is of node $node"
	event_says ResourceClaim/one "use the claim template of ComputeDomain 'team'"
	# One for another node; one that the node has no room for.
	sharer elsewhere one "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [$node]}]}]}}}"
	eventually 30 waits_because elsewhere "resourceclaim not available on the node"
	# The channel goes with the last of them.
	uid=$(k -n "$ns" get resourceclaim one -o jsonpath='{.metadata.uid}')
	k -n "$ns" delete pod a b elsewhere
	has_channel c
	claim_file "${node#node-}" "$uid"
	domain_field_is team .status.nodesReady 1
	k -n "$ns" delete pod c
	eventually 30 claim_is_free one
	eventually 30 no_claim_file "${node#node-}" "$uid"
	eventually 30 labels_gone
	# And comes again for the next.
	sharer next one "nodeSelector: {kubernetes.io/hostname: node-3}"
	running next
	has_channel next
}

# What a kubelet does that lacks kubernetes/kubernetes#140212, and what one does that has it.
# bats test_tags=matrix
@test "a pod of a shared claim that ends before its claims were checked takes the channel from none that runs" {
	local daemon imex uid
	domain team
	shared_claim one team
	sharer works one "nodeSelector: {kubernetes.io/hostname: node-2}"
	running works
	daemon=$(daemon_pod team 2)
	imex=$(pids_of_pod "$driver_ns" "$daemon" nvidia-imex)
	uid=$(k -n "$ns" get resourceclaim one -o jsonpath='{.metadata.uid}')
	# Without a scheduler, so that the kubelet is the first to miss its second claim.
	sharer fails one "nodeName: node-2" ", {name: second, resourceClaimName: there-is-none}"
	eventually 90 event_says Pod/fails "there-is-none"
	k -n "$ns" delete pod fails
	gone pod/fails
	# Whether the kubelet has had the claim unprepared is its version's matter; what runs has its channel, its daemon and its IMEX.
	has_channel works
	[[ $(k get node node-2 -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") == "$(domain_uid team)" ]]
	# The next pod of the claim is prepared, and when both have ended nothing is left.
	sharer joins one "nodeSelector: {}"
	running joins
	has_channel joins
	has_channel works
	claim_file 2 "$uid"
	[[ $(daemon_pod team 2) == "$daemon" && $(pids_of_pod "$driver_ns" "$daemon" nvidia-imex) == "$imex" ]]
	k -n "$ns" delete pod works joins
	eventually 30 claim_is_free one
	eventually 30 no_claim_file 2 "$uid"
}

# The chart as it is in the cluster now, with the pull policy of the test's own image.
@test "helm test makes a domain, and its pod finds a channel" {
	local said
	said=$("$cluster/helm" test compute-domains --namespace "$driver_ns" --logs --timeout 120s)
	[[ $said == *"/dev/nvidia-caps-imex-channels/channel0: character device "* ]]
	[[ -z $(k -n "$driver_ns" get computedomains -o name) ]]
	k -n "$driver_ns" delete pod compute-domains-test-channel
}

# seen METRIC [LABEL]: Prometheus has a series of that name, with that label.
seen() { "$cluster/prometheus" query "count($1${2:+{$2!=\"\"\}})" | jq -e '.data.result[0].value[1] | tonumber > 0' >/dev/null; }

@test "a real Prometheus finds every series and label that alerts and dashboard name" {
	local files=$checkout/deploy/chart/compute-domains/files metric labels label
	"$cluster/prometheus" start 2s
	k -n "$ns" apply -f "$cluster/manifests/deployment.yaml"
	k -n "$ns" rollout status deployment/example-mnnvl-workload --timeout=90s
	python3 -B "$checkout/test/alerts/named.py" "$files/alerts.yaml" "$files/dashboard.json" >"$BATS_TEST_TMPDIR/named"
	[[ $(wc -l <"$BATS_TEST_TMPDIR/named") -gt 15 ]]
	while read -r metric labels; do
		for label in "" $labels; do eventually 20 seen "$metric" "$label"; done
	done <"$BATS_TEST_TMPDIR/named"
	"$cluster/prometheus" stop
}
