# SPDX-License-Identifier: Apache-2.0
# For tests of one IMEX domain that agents run for all ComputeDomains of a rack (imex.agents=true with imex.isolation=channel); a .bats file
# loads it after driver.bash and channels.bash, and says how many nodes there are.

agents=app.kubernetes.io/component=compute-domain-agent

with_standing() { with_driver "$nodes" --set resources.computeDomains.imex.agents=true --set resources.computeDomains.imex.isolation=channel "$@"; }
# Agents, their claims and the domain of the fabric stay.
nothing_left() { eventually 30 labels_gone && eventually 30 nothing_held; }
nothing_held() {
	local i
	for i in $(k get nodes -o name | sed 's|node/node-||'); do [[ -z $(holds "$i") ]] || return 1; done
}
no_agents() { [[ -z $(k -n "$driver_ns" get pods,daemonsets -l $agents -o name) && -z $(k get nodes -l resource.nvidia.com/imex-agent -o name) ]]; }

standing() { k get computedomainfabrics -o json | jq -c '.items[].domains[]? | select(.owner.kind == "ComputeDomainFabric")'; }
# seated: the nodes that have a place, by name; seat_of K: that of one.
seated() { standing | jq -r '.seats[].node' | sort | tr '\n' ' '; }
seated_are() { [[ $(seated) == "$1" ]]; }
seat_of() { standing | jq -c --arg node "node-$1" '.seats[] | select(.node == $node) | {index, epoch}'; }
agent_pod() { k -n "$driver_ns" get pods -l $agents --field-selector "spec.nodeName=node-$1" -o jsonpath='{.items[0].metadata.name}'; }
agent_says() { [[ $(k -n "$driver_ns" get pod "$(agent_pod "$1")" -o json | jq -r '.metadata.annotations["imex.resource.nvidia.com/state"]') == "$2" ]]; }
imex_pid() { pids_of_pod "$driver_ns" "$(agent_pod "$1")" nvidia-imex; }
imex_pids() {
	local i
	for i; do imex_pid "$i"; done
}
# devices K: how many channels, and places for an agent, the node offers.
devices() { k get resourceslices -o json | jq -r --arg node "node-$1" '[.items[] | select(.spec.nodeName == $node) | .spec.devices // [] | .[].name | sub("-.*"; "")] | group_by(.) | map("\(.[0]) \(length)") | join(",")'; }
devices_are() { [[ $(devices "$1") == "$2" ]]; }
# Nothing is left to tell: all are connected to all.
agents_connected() {
	k -n "$driver_ns" get pods -l $agents -o json | jq -e --arg peers "$(($1 - 1))/$(($1 - 1))" --argjson n "$1" \
		'[.items[].metadata.annotations["imex.resource.nvidia.com/peers"] | select(. == $peers)] | length == $n' >/dev/null
}
all_joined() {
	local i
	for ((i = 0; i < $1; i++)); do
		[[ -n $(seat_of "$i") ]] && devices_are "$i" "channel 16,daemon 1" || return 1
	done
}
