#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ten thousand nodes that only the API knows.

load ../cluster/driver
load ../cluster/absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	pretended_gone
	ns_end
}

@test "the first start among ten thousand nodes, and a thousand domains that form while calls hang: the first leader stays" {
	first_start 10000 30 600
	local leader
	leader=$(lease holderIdentity)
	# As many calls as may be under way hang, from the first of them on.
	front hang '*-controller' '*' 'computedomaincliques,computedomains/status'
	"$cluster/pretend" domains 1000 10 "$ns"
	for_seconds 20 led_by "$leader"
	front | grep -E '^[1-9][0-9]+ hang'
	front off
	all_in_domains() { [[ $(k get nodes -l "pretended=yes,$uid_label" -o name | wc -l) == 10000 ]]; }
	eventually 900 all_in_domains
	all_members() { [[ $(k get computedomaincliques -A -o json | jq '[.items[].daemons | length] | add') == 10000 ]]; }
	eventually 600 all_members
	led_by "$leader"
	"$cluster/pretend" claims-gone "$ns"
	eventually 900 labels_gone
	led_by "$leader"
	"$cluster/service" controller-manager start
	k -n "$ns" delete computedomains --all --wait=false >/dev/null
	no_domains() { [[ -z $(k -n "$ns" get computedomains -o name) ]]; }
	eventually 600 no_domains
}
