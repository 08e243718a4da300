#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Each ComputeDomain has its own channel, and a node has sixteen channel devices for pods (imex.isolation=channel).
# The hosts run IMEX. All nodes are in one partition.

bats_require_minimum_version 1.5.0

load driver
load channels

setup_file() { channels_begin; }
teardown_file() { channels_end; }
setup() {
	ns_begin
	k -n default delete events --all >/dev/null
}
teardown() { ns_end; }

# several NAME TEMPLATE NODE N: a Deployment of N pods on one node.
several() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: $4
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {kubernetes.io/hostname: node-$3}
      resourceClaims: [{name: channel, resourceClaimTemplateName: $2}]
      containers:
      - {name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: channel}]}}
END
}
pods_of() { k -n "$ns" get pods -l "app=$1" -o json | jq -r --arg phase "$2" '.items[] | select(.status.phase == $phase) | .metadata.name'; }
pods_are() { [[ $(pods_of "$1" "$2" | wc -l) == "$3" ]]; }
# toolkit K LINE...: writes these lines as features into the configuration of a node's container toolkit. Without a
# line it removes the file.
toolkit() {
	local k=$1
	shift
	if (($#)); then
		"$cluster/node" "$k" sh -c 'mkdir -p /etc/nvidia-container-runtime && printf "%s\n" "$@" >/etc/nvidia-container-runtime/config.toml' sh \
			'disable-require = false' '[features]' "$@"
	else
		"$cluster/node" "$k" rm -rf /etc/nvidia-container-runtime
	fi
}
own() { echo ", isolation: Channel"; }

# bats test_tags=matrix
@test "two ComputeDomains in one partition: the pods of each have one channel on every node, the two channels differ, and neither is channel 0" {
	domain left
	domain right
	worker l0 left 0
	worker l0b left 0
	worker l1 left 1
	worker r0 right 0
	worker r2 right 2
	local pod left right
	for pod in l0 l0b l1 r0 r2; do running "$pod"; done
	left=$(channels_of l0)
	right=$(channels_of r0)
	[[ $left =~ ^[0-9]+$ && $right =~ ^[0-9]+$ && $left != "$right" && $left != 0 && $right != 0 ]]
	[[ $(channels_of l0b) == "$left" && $(channels_of l1) == "$left" && $(channels_of r2) == "$right" ]]
	eventually 20 holds_are 0 "$(printf '%s\n' "$left $(domain_uid left)" "$right $(domain_uid right)" | sort -n)"
	eventually 20 holds_are 1 "$left $(domain_uid left)"
	eventually 60 no_daemons
	cliques_gone
	labels_gone
	[[ $(k get computedomainfabrics -o json | jq '[.items[] | select(.channels != [])] | length') == 1 ]]
	k -n "$ns" delete pods --all >/dev/null
	eventually 30 holds_are 0 ''
}

# failure: seventeen pods of a node request a channel -> sixteen run, and one waits
# bats test_tags=matrix
@test "a node has sixteen channel devices for one claim template: sixteen pods run, and the seventeenth starts when one of them ends" {
	places 3 16
	domain train
	several many train 3 4
	eventually 60 pods_are many Running 4
	k -n "$ns" scale deployment many --replicas=17 >/dev/null
	eventually 120 pods_are many Running 16
	pods_are many Pending 1
	eventually 30 event_contains "Pod/$(pods_of many Pending)" 'cannot allocate all claims'
	k -n "$ns" scale deployment many --replicas=16 >/dev/null
	eventually 60 pods_are many Running 16
}

# failure: the checkpoint is lost under channel-1 and channel-10 -> every pod keeps its channel
# bats test_tags=long
@test "the plugin restarts, and loses its checkpoint, under channel-1 and channel-10: every pod keeps its channel, and all of them can end" {
	domain train
	several many train 1 11
	eventually 120 pods_are many Running 11
	local channel uid pod
	uid=$(domain_uid train)
	pod=$(pods_of many Running | head -1)
	channel=$(channels_of "$pod")
	eventually 20 holds_are 1 "$channel $uid"
	recorded() { "$cluster/node" 1 cat "$plugin_dir/checkpoint.json" | jq -c '[.v2.preparedClaims[].preparedDevices[].devices[].channel | [.device.DeviceName, .info.id]] | sort'; }
	recorded_is() { [[ $(recorded) == "$1" ]]; }
	local before
	before=$(recorded)
	[[ $before == *'["channel-1",'"$channel"'],["channel-10",'"$channel"']'* ]]
	"$cluster/node" 1 rm "$plugin_dir/checkpoint.json"
	k -n "$driver_ns" delete pod "$(plugin_pod 1)" >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s >/dev/null
	eventually 30 recorded_is "$before"
	eventually 20 holds_are 1 "$channel $uid"
	[[ $(channels_of "$pod") == "$channel" ]]
	k -n "$ns" delete deployment many >/dev/null
	eventually 60 holds_are 1 ''
	eventually 30 node_clean 1
}

# both NAME FIRST SECOND NODE: a pod with two claims, which are created as from templates. They must exist before the
# pod: a kubelet that sees a pod with several templates before their claims have names may never learn the names
# (1.36: "ResourceClaim not created yet").
both() {
	local request template
	for request in one two; do
		template=$2
		[[ $request == one ]] || template=$3
		eventually 20 k -n "$ns" get "resourceclaimtemplates.$(resource_version).resource.k8s.io" "$template" -o name >/dev/null
		k -n "$ns" get "resourceclaimtemplates.$(resource_version).resource.k8s.io" "$template" -o json |
			jq --arg name "$1-$request" '{apiVersion, kind: "ResourceClaim", metadata: {name: $name}, spec: .spec.spec}' | k -n "$ns" create -f - >/dev/null
	done
	claims_pod "$1" "nodeSelector: {kubernetes.io/hostname: node-$4}" one="$1-one" two="$1-two"
}
@test "a pod has two claims: for one ComputeDomain they give one channel, for two ComputeDomains two channels" {
	domain left
	domain right
	both same left left 0
	both two left right 0
	running same
	running two
	local left
	left=$(channels_of same)
	[[ $left =~ ^[0-9]+$ ]]
	[[ $(channels_of two | wc -l) == 2 ]]
	channels_of two | grep -qx "$left"
}

# failure: a claim requests all channels or a channel ID -> it is refused [tenants]
@test "allocationMode All, a claim without isolation, and a claim with a channel ID are refused" {
	domain d
	claimed_by_hand all "$(config "$(domain_uid d)" ComputeDomainChannelConfig "$(own), allocationMode: All")"
	refused_with all 'allocationMode "All" is not possible where each ComputeDomain has an assigned channel'
	claimed_by_hand shared "$(config "$(domain_uid d)")" '' 1
	refused_with shared 'isolation is missing: the claim is for the shared channel 0'
	claimed_by_hand named "$(config "$(domain_uid d)" ComputeDomainChannelConfig "$(own), channel: 7")" '' 2
	refused_with named 'unknown field'
}

# failure: the container toolkit gives channels to any container -> the node withholds its channels, and an
#   Event reports it [tenants]
@test "a node with a container toolkit that gives channels to any container withholds its channels until that is fixed" {
	eventually 20 node_event_or_log 2
	toolkit 2 'ignore-imex-channel-requests = false'
	eventually 20 places 2 0
	eventually 20 node_event 2 'does not set features.ignore-imex-channel-requests' ComputeDomainDevicesWithheld
	toolkit 2 'ignore-imex-channel-requests = true'
	eventually 20 places 2 16
	toolkit 2 'ignore-imex-channel-requests = maybe'
	eventually 20 places 2 0
	toolkit 2
	eventually 20 places 2 16
	eventually 20 node_event 2 'no configuration of the NVIDIA container toolkit' ContainerToolkitNotFound
}
node_event_or_log() { plugin_logged "$1" 'answer="not_found"'; }

# failure: IMEX of a node is not READY -> its channels are withheld, and running pods continue
# bats test_tags=long
@test "a node on which IMEX is not READY withholds its channels and reports why; running pods continue; the node offers channels again when IMEX is stable" {
	domain train
	worker a train 2
	running a
	local channel
	channel=$(channels_of a)
	"$cluster/host-imex" 2 stop
	eventually 30 places 2 0
	eventually 20 node_event 2 "the host's nvidia-imex is UNAVAILABLE, so pods could not use their channels here" ComputeDomainDevicesWithheld
	eventually 20 fabric_condition_has NodesWithhold 'node-2 (HostIMEXNotUp)'
	places 1 16
	worker b train 2
	eventually 30 event_contains Pod/b 'cannot allocate all claims'
	# The next plugin finds the prepared claim, and offers only this device.
	k -n "$driver_ns" delete pod "$(plugin_pod 2)" >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s >/dev/null
	eventually 20 plugin_shows 2 'devices_withheld{reason="HostIMEXNotUp"} 1'
	places 2 0
	[[ $(channels_of a) == "$channel" && $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	eventually 20 holds_are 2 "$channel $(domain_uid train)"
	# The node offers channels again after IMEX has been READY for half a minute, because IMEX might fail again before
	# that.
	"$cluster/host-imex" 2 start
	for_seconds 10 places 2 0
	eventually 60 places 2 16
	running b
	[[ $(channels_of b) == "$channel" ]]
	eventually 20 no_fabric_condition NodesWithhold
}

# failure: the fabric object is deleted under pods -> they keep their channels, and no other ComputeDomain
#   gets them [etcd]
# bats test_tags=long
@test "the fabric object is deleted under pods: every pod keeps its channel, and a new ComputeDomain gets another one" {
	domain one
	domain two
	worker a one 0
	worker b two 1
	running a
	running b
	local one two three uid
	one=$(channels_of a)
	two=$(channels_of b)
	eventually 20 holds_are 0 "$one $(domain_uid one)"
	eventually 20 holds_are 1 "$two $(domain_uid two)"
	uid=$(fabric_now | jq -r .metadata.uid)
	k delete computedomainfabrics --all >/dev/null
	made_again() { fabric_now | jq -e --arg uid "$uid" '.metadata.uid != $uid and .tableOf == .metadata.uid'; }
	eventually 20 made_again
	eventually 20 entry_is "$(domain_uid one)" "$one -"
	eventually 20 entry_is "$(domain_uid two)" "$two -"
	domain three
	worker c three 2
	worker a2 one 2
	running c
	running a2
	three=$(channels_of c)
	[[ $three != "$one" && $three != "$two" && $(channels_of a2) == "$one" ]]
	[[ $(k get computedomain -n "$ns" three -o json | jq -r '.status.conditions[] | select(.type == "ChannelAssigned").status') == True ]] ||
		eventually 20 eval "k -n $ns get computedomain three -o json | jq -e '.status.conditions[] | select(.type == \"ChannelAssigned\" and .status == \"True\")'"
}

# failure: the fabric object is deleted in the foreground, or its stored version is migrated -> the policy
#   admits it
@test "a fabric object can be deleted in the foreground, and writes that do not change its channels are accepted" {
	domain one
	worker a one 0
	running a
	local before name uid
	before=$(channels_of a)
	name=$(fabric_now | jq -r .metadata.name)
	uid=$(fabric_now | jq -r .metadata.uid)
	eventually 10 replace_unchanged # a migration of the stored version does the same
	run k label computedomainfabric "$name" some=label
	[[ $status != 0 && $output == *"only the compute-domain-controller writes ComputeDomainFabrics"* ]]
	k delete computedomainfabric "$name" --cascade=foreground --timeout=60s >/dev/null
	made_again() { fabric_now | jq -e --arg uid "$uid" '.metadata.uid != $uid and .tableOf == .metadata.uid'; }
	eventually 20 made_again
	eventually 20 entry_is "$(domain_uid one)" "$before -"
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	k -n "$ns" delete computedomain one --cascade=foreground --timeout=90s >/dev/null
}

# failure: the slice of shared claims is deleted in the foreground, or its stored version is migrated -> the policy
#   admits it
@test "the slice of shared claims can be deleted in the foreground, and writes that do not change it are accepted" {
	local slice=compute-domain.nvidia.com-shared sentence="only the controller may write the slice" uid
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: resource.nvidia.com/v1beta1
		kind: ComputeDomain
		metadata: {name: sharing}
		spec: {numNodes: 0, channel: {resourceClaim: {name: sharing}}}
	END
	slice_there() { k get resourceslice "$slice" >/dev/null 2>&1; }
	eventually 30 slice_there
	uid=$(k get resourceslice "$slice" -o jsonpath='{.metadata.uid}')
	k get resourceslice "$slice" -o json | jq 'del(.metadata.resourceVersion)' | k replace -f - >/dev/null # a migration of the stored version does the same
	run k label resourceslice "$slice" some=label
	[[ $status != 0 && $output == *"$sentence"* ]]
	run k patch resourceslice "$slice" --type=merge -p '{"spec": {"pool": {"generation": 2}}}'
	[[ $status != 0 && $output == *"$sentence"* ]]
	k delete resourceslice "$slice" --cascade=foreground --timeout=60s >/dev/null
	eventually 30 slice_there
	[[ $(k get resourceslice "$slice" -o jsonpath='{.metadata.uid}') != "$uid" ]]
	k -n "$ns" delete computedomain sharing --timeout=90s >/dev/null
	k delete resourceslice "$slice" --cascade=foreground --timeout=60s >/dev/null
}

# failure: a tenant or administrator writes a fabric object -> a policy refuses it [tenants]
# bats test_tags=matrix
@test "only the controller creates or changes a fabric object, not a tenant or an administrator with an old copy" {
	domain one
	worker a one 0
	running a
	local name
	name=$(fabric_now | jq -r .metadata.name)
	run k patch computedomainfabric "$name" --type=merge -p '{"channels":[]}'
	[[ $status != 0 && $output == *"only the compute-domain-controller writes ComputeDomainFabrics"* ]]
	run k apply -f - <<<'{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainFabric","metadata":{"name":"other.1"},"channels":[]}'
	[[ $status != 0 && $output == *"only the compute-domain-controller writes ComputeDomainFabrics"* ]]
	# Annotations that a tenant writes on a ComputeDomain do not assign a channel.
	k -n "$ns" annotate computedomain one resource.nvidia.com/channel=1 imex.resource.nvidia.com/host-channels='{"x":{}}' >/dev/null
	worker a2 one 1
	running a2
	[[ $(channels_of a2) == "$(channels_of a)" ]]
	# Nor does a tenant's pod with the label of a plugin.
	k -n "$ns" label pod a app=compute-domain-kubelet-plugin >/dev/null
	k -n "$ns" annotate pod a imex.resource.nvidia.com/host-channels="{\"$name\":{\"uid\":\"\",\"held\":{\"2000\":\"$(domain_uid one)\"}}}" >/dev/null
	for_seconds 5 has_no_entry_at 2000
}
has_no_entry_at() { fabric_now | jq -e --argjson id "$1" 'all(.channels[]; .id != $id)' >/dev/null; }

# failure: a claim names another tenant's ComputeDomain -> it gets no channel, and none is assigned [tenants]
@test "a claim that names another namespace's ComputeDomain gets no channel, and none is assigned" {
	local mine=$ns theirs=$ns-theirs uid
	k create namespace "$theirs" >/dev/null
	ns=$theirs domain theirs
	uid=$(ns=$theirs domain_uid theirs)
	claimed_by_hand stolen "$(config "$uid" ComputeDomainChannelConfig "$(own)")" '' 1
	refused_with stolen "there is no ComputeDomain $uid in namespace '$mine' of the claim"
	entry_is "$uid" ''
	k -n "$mine" delete pod stolen --grace-period=0 >/dev/null
	k -n "$theirs" delete computedomain theirs >/dev/null
	k delete namespace "$theirs" --wait=false >/dev/null
}

@test "a deleted ComputeDomain begins to release its channel, and the status of another one refuses allocationMode All" {
	domain gone
	worker a gone 0
	running a
	local uid id
	uid=$(domain_uid gone) id=$(channels_of a)
	eventually 20 holds_are 0 "$id $uid"
	k -n "$ns" delete pod a >/dev/null
	k -n "$ns" delete computedomain gone >/dev/null
	is_releasing() { [[ $(entry "$uid") == "$id 2"* ]]; }
	eventually 20 is_releasing
	domain all 0 All
	is_invalid() { k -n "$ns" get computedomain all -o json | jq -e '.status.conditions[] | select(.reason == "InvalidSpec")'; }
	eventually 20 is_invalid
}

# example NAME: creates the objects of the example, with an image that exists here.
example() { sed 's|image: .*|image: compute-domains/busybox:test|' "$checkout/examples/$1.yaml" | k -n "$ns" apply -f - >/dev/null; }

# bats test_tags=long
@test "the command test of the kubectl plugin, and the examples, find a channel with another number than 0" {
	run -0 plugin test -n "$ns"
	[[ $output == *': 2 of 2 pods have a channel'* ]]
	run -0 plugin test -n "$ns" --image compute-domains/busybox:test
	[[ $output == *': 2 of 2 pods have a channel'* ]]
	example job
	k -n "$ns" wait --for=condition=Complete job/training --timeout=90s
	[[ $(k -n "$ns" logs -l job=training | grep -c 'has a channel') == 4 ]]
	example deployment
	k -n "$ns" rollout status deployment/serving --timeout=60s
}

# The same if the driver runs IMEX: one IMEX domain for the whole partition. More tests: long/standing.bats.
# bats test_tags=matrix,long
@test "two tenants of a partition have two channels if the daemons run IMEX, and a second pod starts no IMEX" {
	"$cluster/host-imex" all stop
	load standing
	nodes=4
	with_standing
	eventually 120 all_joined 4
	local pids one two
	pids=$(imex_pids 0 1)
	[[ $(wc -l <<<"$pids") == 2 ]]
	domain one
	domain two
	worker a one 0
	worker b one 1
	worker c two 0
	running a
	running b
	running c
	one=$(channels_of a)
	two=$(channels_of c)
	[[ $(channels_of b) == "$one" && $one != "$two" && $one != 0 ]]
	eventually 20 condition_is one IMEXHealthy True
	worker d one 0
	running d
	[[ $(channels_of d) == "$one" && $(imex_pids 0 1) == "$pids" ]]
	k -n "$ns" delete pods --all >/dev/null
	eventually 30 nothing_held
}

# The last test, because it turns off the isolation: a plugin without it gets such claims.
# failure: a plugin runs without channel isolation -> it refuses claims for an assigned channel
# bats test_tags=long
@test "a plugin without channel isolation refuses claims for an assigned channel" {
	with_own_channels domain
	eventually 60 no_daemons # the installation before this one has removed them
	"$cluster/host-imex" all start
	domain d
	claimed_by_hand a "$(config "$(domain_uid d)" ComputeDomainChannelConfig "$(own)")"
	refused_with a 'unknown field "isolation": the claim is for an assigned channel of its ComputeDomain'
}
