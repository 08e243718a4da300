# SPDX-License-Identifier: Apache-2.0
# Helpers for tests with imex.isolation=channel in which the hosts run IMEX. A .bats file loads this after
# driver.bash.

with_own_channels() {
	with_driver 4 --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.hostProbeInterval=1s \
		--set resources.computeDomains.imex.isolation="${1:-channel}"
}
# The same, on a cluster that had no driver before. If ResourceSlices of an earlier installation exist, a new fabric
# object assigns no channel for a minute, because a Node that has disappeared may still use one.
with_new_channels() {
	with_own_channels
	k delete resourceslices --all >/dev/null
	local i
	for i in 0 1 2 3; do eventually 60 places "$i" 16; done
}

# For setup_file: four nodes whose hosts run IMEX, and the driver with channels for each ComputeDomain.
channels_begin() {
	"$cluster/up" 4
	"$cluster/host-imex" all start
	with_new_channels
}
# For teardown_file. The driver deletes the ResourceSlice of shared claims only when it is uninstalled.
channels_end() {
	k delete resourceslice compute-domain.nvidia.com-shared --ignore-not-found >/dev/null
	"$cluster/host-imex" all stop
}

# channels_of POD: prints the numbers of the IMEX channels in a pod, sorted. The name of each file must match its
# minor number. Fails if the pod has none, and prints the name of the pod: so no two pods without channels are equal.
channels_of() {
	local channels
	channels=$(k -n "$ns" exec "$1" -- sh -c 'cd /dev/nvidia-caps-imex-channels && for f in *; do echo "$f $(printf %d 0x$(stat -c %T "$f"))"; done' |
		while read -r name minor; do
			[[ $name == "channel$minor" ]] || echo "wrong: $name has the minor number $minor"
			echo "$minor"
		done | sort -n)
	[[ $channels ]] || { echo "none in $1"; return 1; }
	echo "$channels"
}
# holds K: prints the channels that the plugin of a node reports as held, as "<id> <owner>" lines.
holds() {
	local pod
	pod=$(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o json) || return
	jq -r '.metadata.annotations["imex.resource.nvidia.com/host-channels"] // "{}" | fromjson |
		.[].held | to_entries[] | "\(.key) \(.value)"' <<<"$pod" | sort -n
}
holds_are() {
	local held
	held=$(holds "$1") && [[ $held == "$2" ]]
}

# places K N: the ResourceSlice of a node has this many devices, all of them channels with the ID 0 and a clique ID.
places() {
	k get resourceslices -o json | jq -e --arg node "node-$1" --argjson n "$2" '[.items[] | select(.spec.nodeName == $node) | .spec.devices // [] | .[]] |
		length == $n and all(.[] | .attributes // .basic.attributes; .id.int == 0 and .type.string == "channel" and (.cliqueID.string | length > 0))' >/dev/null
}
# plugin_shows K SERIES: the metrics of the plugin on node K contain this series with this value.
plugin_shows() {
	"$cluster/node" "$1" curl -sf "http://$(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.podIP}'):8081/metrics" |
		grep -qxF "nvidia_dra_compute_domain_$2"
}

# fabric_condition_has TYPE TEXT...: the fabric object has this condition, and its message contains all of these texts.
fabric_condition_has() {
	local message text
	message=$(k get computedomainfabrics -o json | jq -r --arg type "$1" '.items[].conditions // [] | .[] | select(.type == $type).message')
	shift
	for text; do [[ $message == *"$text"* ]] || return 1; done
	[[ -n $message ]]
}
no_fabric_condition() {
	k get computedomainfabrics -o json | jq -e --arg type "$1" 'all(.items[].conditions[]?; .type != $type or (.message // "") == "")' >/dev/null
}

fabric_now() { k get computedomainfabrics -o json | jq -c '.items[0]'; }
# replace_unchanged: writes the whole object as it is. Fails if the controller writes it in between.
replace_unchanged() { fabric_now | jq 'del(.metadata.resourceVersion)' | k replace -f - >/dev/null; }
# entry UID: prints the fabric object's entry for an owner, as "<id> <releasing>".
entry() { fabric_now | jq -r --arg uid "$1" '.channels // [] | .[] | select(.owner.uid == $uid) | "\(.id) \(.releasing // "-")"'; }
entry_is() { [[ $(entry "$1") == "$2" ]]; }
has_entry() { [[ -n $(entry "$1") ]]; }
id_of() { entry "$1" | cut -d' ' -f1; }
