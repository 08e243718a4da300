#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ten thousand nodes that only the API knows, with daemons that only the API knows.

load ../cluster/driver
load ../cluster/absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	daemons gone
	pretended_gone
	ns_end
}
daemons() { python3 -B "$BATS_TEST_DIRNAME/pretend_daemons.py" "$1"; }
assignments_are() { [[ $(k get computedomainfabrics -o json | jq '[.items[].domains[]?.assignments[]?] | length') == "$1" ]]; }

# failure: ten thousand nodes start while calls hang -> the first leader stays
@test "the first start among ten thousand nodes, and a thousand domains that form while calls hang: the first leader stays" {
	first_start 10000 30 600
	local leader
	leader=$(lease holderIdentity)
	# A partition of eighteen nodes each, and that of the real ones.
	all_fabrics() { [[ $(k get computedomainfabrics -o name | wc -l) -ge 557 ]]; }
	eventually 600 all_fabrics
	daemons start
	led_by "$leader"
	# As many calls as may be under way hang, from the first of them on.
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
	no_domains() { [[ -z $(k -n "$ns" get computedomains -o name) ]]; }
	eventually 600 no_domains
}
