#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Assigned channels when something is scarce or missing: channels, plugins of the current version, plugins at all, or
# the API server. It takes minutes until a channel is released.

load ../cluster/driver
load ../cluster/channels
load ../cluster/kill_points

channel_values=(--set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.hostProbeInterval=1s
	--set resources.computeDomains.imex.isolation=channel)

setup_file() { channels_begin; }
teardown_file() {
	all_count ''
	channels_end
	with_driver 4
}
setup() {
	by_hand=''
	ns_begin
}
teardown() {
	[[ -z $by_hand ]] || stop_by_hand
	k delete namespace "$ns-other" --ignore-not-found --timeout=60s >/dev/null
	"$cluster/node" 0 rm -rf $dir
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || {
		all_count ''
		plugins_on null
		restart_plugins
	}
	ns_end # last, because the result of a teardown is that of its last command
}

# channel_count K N: sets the number of IMEX channels in the parameters of a node's NVIDIA driver. If N is empty, the
# parameters cannot be read.
channel_count() {
	if [[ -n $2 ]]; then
		"$cluster/node" "$1" sh -c 'echo "ImexChannelCount: $1" >/run/nvidia/driver/proc/driver/nvidia/params' sh "$2"
	else
		"$cluster/node" "$1" rm -f /run/nvidia/driver/proc/driver/nvidia/params
	fi
}
all_count() {
	local i
	for i in 0 1 2 3; do channel_count "$i" "$1"; done
}
offers() { k get resourceslices -o json | jq -e --arg node "node-$1" --argjson n "$2" '[.items[] | select(.spec.nodeName == $node) | .spec.devices // [] | .[]] | length == $n' >/dev/null; }
counted() { fabric_now | jq -e --argjson n "$1" '.channelCount == $n' >/dev/null; }
# plugins_on SELECTOR: the kubelet plugin runs on these nodes only.
plugins_on() {
	k -n "$driver_ns" patch daemonset compute-domains-kubelet-plugin --type=merge -p "{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":$1}}}}" >/dev/null
}
restart_plugins() {
	k -n "$driver_ns" rollout restart daemonset/compute-domains-kubelet-plugin >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
}

# failure: a node's driver has only channel 0 -> the node offers no channels
@test "a node's driver has only channel 0: the node offers no channels, and the fabric object shows the number of channels on the other nodes" {
	channel_count 3 1
	restart_plugins
	eventually 60 offers 3 0
	eventually 60 offers 2 16
	eventually 60 counted 2048
	domain d
	worker a d 0
	running a
	channel_count 3 ''
	restart_plugins
	eventually 90 offers 3 16
}

# failure: channels run out -> one namespace has at most half, and an Event reports why pods wait [tenants]
@test "channels run out: one namespace has no more than half, an Event reports why a pod waits, and it gets a channel when another is free" {
	local uid
	# Channels 1 to 4. Two are half of them, and also half of the three that are left when another namespace has one.
	all_count 5
	k delete computedomainfabrics --all >/dev/null
	restart_plugins
	eventually 90 counted 5
	domain one
	domain two
	domain three
	worker a one 0
	worker b two 1
	running a
	running b
	worker c three 2
	eventually 90 fabric_condition_has ChannelsExhausted 'their namespace has half'
	eventually 90 event_contains Pod/c 'no channel has been assigned'
	# The channel that this namespace may not have is free for another one.
	k create namespace "$ns-other" >/dev/null
	ns=$ns-other domain other
	ns=$ns-other worker o other 3
	ns=$ns-other running o 90
	[[ $(printf '%s\n' "$(channels_of a)" "$(channels_of b)" "$(ns=$ns-other channels_of o)" | sort -u | grep -c '^[1-4]$') == 3 ]]
	uid=$(domain_uid one)
	k -n "$ns" delete pod a >/dev/null
	k -n "$ns" delete computedomain one >/dev/null
	running c 300
	eventually 30 entry_is "$uid" ''
	[[ $(printf '%s\n' "$(channels_of b)" "$(channels_of c)" "$(ns=$ns-other channels_of o)" | sort -u | grep -c '^[1-4]$') == 3 ]]
	eventually 90 no_fabric_condition ChannelsExhausted
	k -n "$ns" delete pods,computedomains --all --timeout=60s >/dev/null
	k delete namespace "$ns-other" --timeout=90s >/dev/null
	all_count ''
	restart_plugins
	eventually 90 counted 2048
	eventually 60 offers 0 16
}

# failure: the plugin of a node does not run -> its channels stay taken until it returns
@test "the plugin of a node does not run: its channels stay taken, and are released when it is back" {
	domain gone
	worker a gone 0
	running a
	local uid id
	uid=$(domain_uid gone) id=$(channels_of a)
	eventually 20 holds_are 0 "$id $uid"
	# Its Pod is deleted, and so is its report.
	k label --overwrite nodes node-1 node-2 node-3 kill-points=elsewhere >/dev/null
	plugins_on '{"kill-points":"elsewhere"}'
	no_plugin() { [[ -z $(plugin_pod 0 2>/dev/null) ]]; }
	eventually 60 no_plugin
	k -n "$ns" delete pod a --force --grace-period=0 >/dev/null 2>&1
	k -n "$ns" delete computedomain gone >/dev/null
	is_releasing() { [[ $(entry "$uid") == "$id 2"* ]]; }
	eventually 60 is_releasing
	for_seconds 100 is_releasing
	fabric_condition_has ChannelsHeld 'node node-0'
	plugins_on null # helm keeps labels that it has not set
	with_own_channels
	eventually 200 entry_is "$uid" ''
}

# failure: the API server is down -> pods with a channel continue, and new ones start afterwards [api-server]
@test "the API server is down: a pod with a channel continues, and a new pod starts when the server is back" {
	domain known
	worker a known 0
	worker b known 1
	running a
	running b
	local id uid
	id=$(channels_of a)
	uid=$(domain_uid known)
	k -n "$ns" delete pod b >/dev/null
	eventually 30 holds_are 1 ''
	"$cluster/kubelet" 1 stop
	worker c known 1
	eventually 30 claim_allocated c
	"$cluster/apiserver" stop
	"$cluster/kubelet" 1 start &
	for_seconds 10 runs_still "$uid"
	"$cluster/apiserver" start
	wait $!
	running c 150
	[[ $(channels_of c) == "$id" && $(channels_of a) == "$id" ]]
}
claim_allocated() { [[ -n $(k -n "$ns" get resourceclaim "$(k -n "$ns" get pod "$1" -o jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}')" -o jsonpath='{.status.allocation}') ]]; }
# Without an API server only the node can be queried.
runs_still() { "$cluster/node" 0 sh -c 'grep -l "domain $1 " /var/run/cdi/*claim_*' sh "$1" >/dev/null; }

# failure: one node has a plugin of an earlier version -> it refuses claims for assigned channels [upgrade]
@test "one node has a plugin of an earlier version: it refuses such a claim, and gives it no channel; the other nodes continue" {
	domain d
	worker near d 1
	running near
	local id
	id=$(channels_of near)
	start_by_hand --feature-gates=HostManagedIMEX=true
	driver_elsewhere "${channel_values[@]}"
	worker a d 0
	eventually 60 allocated "$ns" channel-0
	run "$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" $dir/plugins/compute-domain.nvidia.com/dra.sock prepare $(claim_of "$ns" channel-0)
	[[ $status == 1 && $output == *'unknown field "isolation": the claim is for an assigned channel of its ComputeDomain'* ]]
	"$cluster/node" 0 test -d $dir
	[[ -z $("$cluster/node" 0 sh -c "find $dir -path '*/cdi/*claim_*'") ]]
	worker n2 d 2
	running n2
	[[ $(channels_of near) == "$id" && $(channels_of n2) == "$id" ]]
}
