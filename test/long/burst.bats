#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ten thousand Nodes with daemons that exist only as API objects.

load ../cluster/driver
load ../cluster/absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	daemons gone
	remove_pretended
	ns_end
}
daemons() { python3 -B "$BATS_TEST_DIRNAME/pretend_daemons.py" "$1"; }
assignments_are() { [[ $(k get computedomainfabrics -o json | jq '[.items[].domains[]?.assignments[]?] | length') == "$1" ]]; }

# failure: ten thousand nodes start while calls hang -> the first leader stays
@test "the first start with ten thousand nodes, and a thousand ComputeDomains that form while calls hang: the first leader stays" {
	first_start 10000 30 600
	local leader
	leader=$(lease holderIdentity)
	# Each partition has eighteen nodes; one more has the real nodes.
	all_fabrics() { [[ $(k get computedomainfabrics -o name | wc -l) -ge 557 ]]; }
	eventually 600 all_fabrics
	daemons start
	led_by "$leader"
	# All calls that may run at the same time hang, from the first one on.
	front hang '*-controller' '*' 'computedomainfabrics,computedomains/status'
	"$cluster/pretend" domains 1000 10 "$ns"
	for_seconds 20 led_by "$leader"
	front | grep -E '^[1-9][0-9]+ hang'
	front off
	eventually 900 assignments_are 10000
	all_in_domains() { [[ $(k get nodes -l "pretended=yes,$uid_label" -o name | wc -l) == 10000 ]]; }
	eventually 600 all_in_domains
	led_by "$leader"
	"$cluster/pretend" claims-gone "$ns"
	eventually 900 labels_gone
	led_by "$leader"
	all_leaving() { k get computedomainfabrics -o json | jq -e 'all(.items[].domains[]?.assignments[]?; (.state // "") != "")' >/dev/null; }
	eventually 600 all_leaving
	daemons left
	eventually 600 assignments_are 0
	led_by "$leader"
	"$cluster/service" controller-manager start
	k -n "$ns" delete computedomains --all --wait=false >/dev/null
	no_domains() { prints_nothing k -n "$ns" get computedomains -o name; }
	eventually 600 no_domains
}
