# SPDX-License-Identifier: Apache-2.0
# Helpers for tests of the standing domain of a partition (imex.isolation=channel, driver-managed). A .bats file loads
# this after driver.bash and channels.bash, and sets nodes, the number of nodes.

with_standing() { with_driver "$nodes" --set resources.computeDomains.imex.isolation=channel "$@"; }
# The standing domain and the daemons stay.
nothing_left() { eventually 30 labels_gone && eventually 30 nothing_held; }
nothing_held() {
	local i
	for i in $(k get nodes -o name | sed 's|node/node-||'); do holds_are "$i" '' || return 1; done
}

standing() { k get computedomainfabrics -o json | jq -c '.items[].domains[]? | select(.owner.kind == "ComputeDomainFabric")'; }
# assigned: prints the names of the nodes that have an assignment and are not leaving. assignment_of K: prints the
# assignment of one node.
assigned() { standing | jq -r '.assignments[] | select((.state // "") == "") | .node' | sort | tr '\n' ' '; }
assigned_are() { [[ $(assigned) == "$1" ]]; }
# listed_are: the same, including nodes that are leaving.
listed_are() { [[ $(standing | jq -r '.assignments[].node' | sort | tr '\n' ' ') == "$1" ]]; }
assignment_of() { standing | jq -c --arg node "node-$1" '.assignments[] | select(.node == $node and (.state // "") == "") | {index, epoch}'; }
# devices K: prints how many channel devices and daemon devices the node offers.
devices() { k get resourceslices -o json | jq -r --arg node "node-$1" '[.items[] | select(.spec.nodeName == $node) | .spec.devices // [] | .[].name | sub("-.*"; "")] | group_by(.) | map("\(.[0]) \(length)") | join(",")'; }
devices_are() { [[ $(devices "$1") == "$2" ]]; }
# daemons_connected N: all N daemons are connected to all others, so no further report will follow.
daemons_connected() {
	k -n "$driver_ns" get pods -l $daemon_selector -o json | jq -e --arg peers "$(($1 - 1))/$(($1 - 1))" --argjson n "$1" \
		'[.items[].metadata.annotations["imex.resource.nvidia.com/peers"] | select(. == $peers)] | length == $n' >/dev/null
}
all_joined() {
	local i
	for ((i = 0; i < $1; i++)); do
		[[ -n $(assignment_of "$i") ]] && devices_are "$i" "channel 16,daemon 1" || return 1
	done
}
