# SPDX-License-Identifier: Apache-2.0
# For tests of what the daemons of a partition do for one ComputeDomain after another; a .bats file loads it after driver.bash. All nodes are
# of one rack.

# assigned NAME: "<node> <index>" of each node that is assigned and need not leave, as the fabric's object has them.
domain_of_fabric() { k get computedomainfabrics -o json | jq -c --arg uid "$(domain_uid "$1")" '.items[].domains[]? | select(.owner.uid == $uid)'; }
assigned() { domain_of_fabric "$1" | jq -r '.assignments[] | select((.state // "") == "") | "\(.node) \(.index)"' | sort; }
assigned_are() { [[ $(assigned "$1" | tr '\n' ,) == "$2" ]]; }
ready() { k -n "$ns" wait --for=jsonpath='{.status.status}'=Ready "computedomain/$1" --timeout="${2:-60}s" >/dev/null; }
# listed NAME: "<node> <index> <status>" of each node in the status, with commas.
listed() { k -n "$ns" get computedomain "$1" -o json | jq -r '[.status.nodes[]? | "\(.name) \(.index) \(.status)"] | sort | join(",")'; }
listed_are() { [[ $(listed "$1") == "$2" ]]; }
# formed NAME NODE...: a ComputeDomain of that name with a pod on each of these nodes, NAME-0 on node-0 and so on.
formed() {
	local name=$1 node
	shift
	domain "$name" $#
	for node; do worker "$name-$node" "$name" "$node"; done
	for node; do running "$name-$node" 90; done
	ready "$name"
}
# imex_ctl K ARGS...: asks the nvidia-imex of a node.
imex_ctl() {
	local k=$1
	shift
	k -n "$driver_ns" exec "$(daemon_pod "$k")" -- nvidia-imex-ctl -c "/imexd/$(assignment "$k" | cut -d/ -f2)/imexd.cfg" "$@"
}
# connected_to K PEER: the nvidia-imex of node K is connected to that of node PEER, and that one is the one of the present daemon there.
connected_to() {
	imex_ctl "$1" -N -j | jq -e --arg me "$(assignment "$1" | cut -d/ -f3)" --arg other "$(assignment "$2" | cut -d/ -f3)" --arg pod "$(daemon_pod "$2")" \
		'.nodes[$me].connections[$other].status == "CONNECTED" and .nodes[$other].hostName == $pod' >/dev/null
}
