# SPDX-License-Identifier: Apache-2.0
# Helpers for tests in which the daemons of a partition serve one ComputeDomain after another. All nodes are in one
# partition. A .bats file loads this after driver.bash.

# assigned NAME: prints "<node> <index>" for each node that has an assignment in the fabric object and is not leaving.
domain_of_fabric() { k get computedomainfabrics -o json | jq -c --arg uid "$(domain_uid "$1")" '.items[].domains[]? | select(.owner.uid == $uid)'; }
assigned() { domain_of_fabric "$1" | jq -r '.assignments[] | select((.state // "") == "") | "\(.node) \(.index)"' | sort; }
assigned_are() { [[ $(assigned "$1" | tr '\n' ,) == "$2" ]]; }
ready() { k -n "$ns" wait --for=jsonpath='{.status.status}'=Ready "computedomain/$1" --timeout="${2:-60}s" >/dev/null; }
# listed NAME: prints "<node> <index> <status>" for each node in the status, separated by commas.
listed() { k -n "$ns" get computedomain "$1" -o json | jq -r '[.status.nodes[]? | "\(.name) \(.index) \(.status)"] | sort | join(",")'; }
listed_are() { [[ $(listed "$1") == "$2" ]]; }
# formed NAME NODE...: creates a ComputeDomain with this name, and a pod on each of these nodes: NAME-0 on node-0, and
# so on.
formed() {
	local name=$1 node
	shift
	domain "$name" $#
	for node; do worker "$name-$node" "$name" "$node"; done
	for node; do running "$name-$node" 90; done
	ready "$name"
}
# imex_ctl K ARGS...: queries the nvidia-imex of a node.
imex_ctl() {
	local k=$1
	shift
	k -n "$driver_ns" exec "$(daemon_pod "$k")" -- nvidia-imex-ctl -c "/imexd/$(assignment "$k" | cut -d/ -f2)/imexd.cfg" "$@"
}
# connected_to K PEER: the nvidia-imex of node K is connected to the one that the present daemon of node PEER runs.
connected_to() {
	imex_ctl "$1" -N -j | jq -e --arg me "$(assignment "$1" | cut -d/ -f3)" --arg other "$(assignment "$2" | cut -d/ -f3)" --arg pod "$(daemon_pod "$2")" \
		'.nodes[$me].connections[$other].status == "CONNECTED" and .nodes[$other].hostName == $pod' >/dev/null
}
