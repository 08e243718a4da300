#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The daemon of each node runs IMEX for one ComputeDomain after another. All nodes are in one partition.

load driver
load domains

nodes=4
setup_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() { ns_end; }

daemon_names() { reported_daemons | jq -r '[.[].name] | sort | join(" ")'; }

# bats test_tags=matrix
@test "a ComputeDomain forms with the existing daemons: no Pod starts for it, and it gets no DaemonSet, clique or daemon claim template" {
	local before
	before=$(daemon_names)
	domain two 2
	worker a two 0
	worker b two 1
	running a
	running b
	ready two
	eventually 10 listed_are two "node-0 0 Ready,node-1 1 Ready"
	[[ $(daemon_names) == "$before" ]]
	[[ $(k -n "$driver_ns" get daemonsets -o name | sort | xargs) == "daemonset.apps/compute-domain-daemon daemonset.apps/compute-domains-kubelet-plugin" ]]
	prints_nothing k get computedomaincliques -A -o name
	prints_nothing k get resourceclaimtemplates -A -l resource.nvidia.com/computeDomainTarget=Daemon -o name
	reported_of_both() { k -n "$ns" get events -o json | jq -e 'any(.items[]; .reason == "NodeJoined") and any(.items[]; .reason == "Ready")' >/dev/null; }
	eventually 10 reported_of_both
	# Other tools read this label: on the Pods at once, on the Nodes later.
	[[ $(k -n "$driver_ns" get pods -l "app=imex-daemon,$uid_label=$(domain_uid two)" -o jsonpath='{.items[*].spec.nodeName}' | xargs -n1 | sort | xargs) == "node-0 node-1" ]]
	eventually 20 eval '[[ $(k get nodes -l "$uid_label=$(domain_uid two)" -o name | wc -l) == 2 ]]'
	k -n "$ns" delete pods --all >/dev/null
	eventually 30 daemons_idle $nodes
	[[ $(daemon_names) == "$before" ]]
	prints_nothing k -n "$driver_ns" get pods -l "$uid_label" -o name
}

# failure: four nodes change to the next ComputeDomain -> none joins it before it has left the first one
# bats test_tags=matrix,long
@test "four nodes change from one ComputeDomain to the next at once, and no node joins it before it has left the first one" {
	domain first
	domain second
	local i
	for i in 0 1 2 3; do worker "a$i" first $i; done
	for i in 0 1 2 3; do running "a$i"; done
	k -n "$ns" delete pods --all --wait=false --grace-period=0 >/dev/null 2>&1
	for i in 0 1 2 3; do worker "b$i" second $i; done
	for i in 0 1 2 3; do running "b$i"; done
	ready second
	# The first free node gets the first index.
	[[ $(assigned second | awk '{ print $1 }' | tr '\n' ,) == node-0,node-1,node-2,node-3, ]]
	[[ $(assigned second | awk '{ print $2 }' | sort | tr '\n' ,) == 0,1,2,3, ]]
	local ports
	ports=$(k get computedomainfabrics -o json | jq -c --arg first "$(domain_uid first)" --arg second "$(domain_uid second)" \
		'[.items[].domains[] | select(.owner.uid == $first or .owner.uid == $second).port]')
	# A ComputeDomain without pods may no longer be listed.
	[[ $(jq 'length == (unique | length)' <<<"$ports") == true ]]
	eventually 20 assigned_are first ""
}

# failure: ComputeDomains follow each other on the same nodes -> no nvidia-imex meets a node list of another
#   one
# bats test_tags=long
@test "three ComputeDomains follow each other on the same two nodes, and no nvidia-imex meets a node list of another one" {
	local d since
	since=$(date -u +%FT%TZ)
	formed first 0 1
	for d in second third; do
		domain "$d" 2
		k -n "$ns" delete pods --all --grace-period=0 --wait=false >/dev/null
		worker "$d-0" "$d" 0
		worker "$d-1" "$d" 1
		running "$d-0" 90
		running "$d-1" 90
		ready "$d"
		[[ $(assignment 0) == *"/$(domain_uid "$d")/"* && $(assignment 1) == *"/$(domain_uid "$d")/"* ]]
	done
	k -n "$driver_ns" logs -l $daemon_selector --since-time="$since" --tail=-1 >"$BATS_TEST_TMPDIR/logs"
	grep -q "IMEX Log initializing" "$BATS_TEST_TMPDIR/logs"
	! grep -i "map mismatch" "$BATS_TEST_TMPDIR/logs" || false
}

# bats test_tags=matrix,long
@test "a ComputeDomain grows and shrinks, and the nodes that stay keep their index and their IMEX" {
	domain grows
	worker a grows 0
	running a
	worker b grows 1
	running b
	local pid
	pid=$(imex_pid 0)
	worker c grows 2
	running c
	k -n "$ns" delete pod b --grace-period=0 --force >/dev/null 2>&1
	eventually 30 assigned_are grows "node-0 0,node-2 2,"
	worker d grows 3
	running d
	eventually 10 eval '[[ $(assigned grows | wc -l) == 3 && $(assigned grows) == *"node-3 "* ]]'
	[[ $(imex_pid 0) == "$pid" ]]
}

@test "a deleted ComputeDomain leaves nothing on its nodes, and its daemons are idle again" {
	domain gone
	worker a gone 0
	running a
	local before
	before=$(daemon_identity 0)
	k -n "$ns" delete pod a --grace-period=0 --force >/dev/null 2>&1
	k -n "$ns" delete computedomain gone --timeout=60s >/dev/null
	eventually 60 domains_gone
	eventually 30 daemons_idle $nodes
	[[ -z $(imex_pid 0) && $(daemon_identity 0) == "$before" ]]
}

# bats test_tags=long
@test "another controller becomes the leader, and no IMEX is disturbed" {
	domain over
	worker a over 0
	running a
	worker b over 1
	running b
	local pids
	pids=$(imex_pids 0 1)
	k -n "$driver_ns" delete pods -l app=compute-domain-controller --grace-period=0 --force >/dev/null 2>&1
	worker c over 2
	running c
	[[ $(imex_pids 0 1) == "$pids" ]]
	eventually 10 assigned_are over "node-0 0,node-1 1,node-2 2,"
}

# failure: the fabric object is deleted under pods -> no IMEX and no index changes [etcd]
# bats test_tags=long
@test "the fabric object is deleted under pods: no IMEX and no index changes" {
	domain kept
	worker a kept 0
	worker b kept 1
	running a
	running b
	local pids was
	pids=$(imex_pids 0 1)
	was=$(assigned kept)
	k delete computedomainfabrics --all >/dev/null
	eventually 30 assigned_are kept "$(tr '\n' , <<<"$was")"
	[[ $(imex_pids 0 1) == "$pids" ]]
	worker c kept 2
	running c
}

# failure: the chart is upgraded under pods -> idle daemons are replaced, and no IMEX in use ends [upgrade]
@test "the chart is upgraded under pods: idle daemons are replaced, and no IMEX in use ends" {
	formed safe 0 1
	local pids before
	pids=$(imex_pids 0 1)
	before="$(daemon_identity 0) $(daemon_identity 1)"
	# Another template for the daemons' Pods. For the pace of the rollout see long/crashing_image.bats.
	"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --values "$cluster/driver-values.yaml" \
		--set daemon.podLabels.version=next --wait --timeout 120s >/dev/null
	eventually 60 replaced_on node-2 node-3
	[[ $(imex_pids 0 1) == "$pids" && "$(daemon_identity 0) $(daemon_identity 1)" == "$before" ]]
	worker c safe 2
	running c
	[[ $(imex_pids 0 1) == "$pids" ]]
	assigned_are safe "node-0 0,node-1 1,node-2 2,"
}
# replaced_on NODE...: one of these nodes, and no other, has a daemon of the next version.
replaced_on() {
	k -n "$driver_ns" get pods -l $daemon_selector,version=next -o json |
		jq -e '[.items[] | select(.metadata.annotations["imex.resource.nvidia.com/report"]).spec.nodeName] | length > 0 and . - $ARGS.positional == []' --args "$@" >/dev/null
}

# failure: the chart is uninstalled under pods -> IMEX in use continues, and the next release takes over
#   [upgrade]
# bats test_tags=long
@test "the chart is uninstalled under pods: IMEX in use continues, and the next release takes over" {
	formed safe 0 1
	local pids
	pids=$(imex_pids 0 1)
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --wait --timeout 300s >/dev/null
	[[ $(imex_pids 0 1) == "$pids" ]]
	k -n "$ns" get pods -o json | jq -e 'all(.items[]; .status.phase == "Running")' >/dev/null
	with_driver $nodes
	worker c safe 2
	running c 90
	[[ $(imex_pids 0 1) == "$pids" ]]
	[[ $(assigned safe | tr '\n' ,) == "node-0 0,node-1 1,node-2 2," ]]
}
