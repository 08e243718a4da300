#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Migration from the Go driver to this one and back, under running workloads, with the commands of
# docs/how-to/migrate.md. The Go driver is simulated (from_go.bash). Each test continues where the test before it
# ended.
# run-tests: in order

bats_require_minimum_version 1.5.0
load driver
ns=from-go
load from_go
class=deviceclass/gpu.nvidia.com

# The variables that the page's commands use.
RELEASE=dra NAMESPACE=$driver_ns CHART=$checkout/deploy/chart/compute-domains
# page TITLE N: prints the N-th block of commands below a heading of the page, with the registry and the Go chart that
# exist here.
page() {
	awk -v title="$1" -v n="$2" '/^## / { found = $0 == title } !found { next } /^ *```sh$/ { i++; next } /^ *```$/ { if (i == n) exit; next } i == n' \
		"$checkout/docs/how-to/migrate.md" |
		sed "s|registry.example.org/compute-domains|compute-domains/compute-domains|; s|oci://[^ ]* --version <[^>]*>|$(go_chart)|; s|--wait|--wait --timeout 120s|"
}
# follow: runs the commands on standard input, beside the values file that the page calls mine.yaml.
follow() {
	local commands=$BATS_TEST_TMPDIR/commands.sh
	cat >"$commands"
	[[ -s $commands ]]
	cd "$BATS_FILE_TMPDIR"
	. "$commands"
}

setup_file() { go_is_here; }
teardown() { [[ -n ${BATS_TEST_COMPLETED:-} ]] || diagnose; }
teardown_file() {
	helm uninstall gpus --namespace nvidia-gpus || true
	go_is_gone
	k delete namespace nvidia-gpus --ignore-not-found --timeout=60s || true
}

# worker_is POD: prints a text that changes when a pod of the workload, or its container, is another one.
worker_is() { k -n $ns get pod "$1" -o jsonpath='{.metadata.uid} {.status.phase} {.status.containerStatuses[0].containerID}'; }
# indices NAME: prints the indices of the ComputeDomain's nodes, as nvidia-imex knows them.
indices() { domain_field "$1" 'range .status.nodes[*]}{.name}{"="}{.index}{"\n"}{end' | sort | xargs; }
# judged K: the types and checksums of the Go driver accept the checkpoint on the node.
judged() {
	local copy=$BATS_TEST_TMPDIR/checkpoint.json
	"$cluster/node" "$1" cat "$plugin_dir/checkpoint.json" >"$copy"
	go_driver "$copy"
}
# rolled_out: the programs of the release run, and no others of it.
rolled_out() {
	k -n $driver_ns rollout status deployment/dra-driver-nvidia-gpu-controller --timeout=90s
	k -n $driver_ns rollout status daemonset/dra-driver-nvidia-gpu-kubelet-plugin --timeout=90s
}

@test "the simulated Go driver's types accept a checkpoint of the real one, and reject one with a changed byte" {
	go_driver "$cluster/programs/go-driver/golden.json"
	sed 's/channel-0/channel-1/' "$cluster/programs/go-driver/golden.json" >"$BATS_TEST_TMPDIR/golden.json"
	run ! go_driver "$BATS_TEST_TMPDIR/golden.json"
}

@test "a ComputeDomain of the Go driver runs" {
	domain train
	worker one train 0
	worker two train 1
	running one
	running two
	eventually 30 domain_field_is train .status.nodes[*].status "Ready Ready"
	is_go 0
	is_go 1
}

# failure: helm upgrade replaces the Go driver under pods -> no workload is disturbed
@test "helm upgrade --reuse-values to this chart, while the Go driver keeps the GPUs: no workload is disturbed, and daemons start on the other nodes" {
	local before_one before_two before indices
	before_one=$(worker_is one)
	before_two=$(worker_is two)
	before=$(go_daemons)
	indices=$(indices train)
	# The Go driver keeps the GPUs, in a separate release. Their DeviceClasses move to it without being deleted.
	local uid
	uid=$(k get $class -o jsonpath='{.metadata.uid}')
	helm get values $RELEASE -n $NAMESPACE -o yaml >"$BATS_FILE_TMPDIR/mine.yaml"
	page '## GPUs' 1 | sed '/^# now the upgrade/,$d' >"$BATS_TEST_TMPDIR/before.sh"
	page '## Upgrade' 2 >"$BATS_TEST_TMPDIR/upgrade.sh"
	grep -q -- --reuse-values "$BATS_TEST_TMPDIR/upgrade.sh"
	follow <"$BATS_TEST_TMPDIR/before.sh"
	follow <"$BATS_TEST_TMPDIR/upgrade.sh"
	rolled_out
	run follow < <(page '## Check the result' 1)
	[[ $(grep -c 'successfully rolled out' <<<"$output") == 2 ]]
	grep -x 4 <<<"$output" # nodes with a slice
	eventually 90 own_daemons_are "node-2 node-3"
	[[ $(worker_is one) == "$before_one" && $(worker_is two) == "$before_two" ]]
	[[ $(go_daemons) == "$before" ]]
	has_channel one
	k -n $ns wait --for=condition=Ready computedomain/train --timeout=60s
	[[ $(indices train) == "$indices" ]]
	eventually 20 eval '[[ $(condition train Ready reason) == FormedByGoDriver ]]'
	checkpoint_has 0 "$(claim_uid one)" PrepareCompleted
	[[ $(k get $class -o jsonpath='{.metadata.uid}') == "$uid" ]]
	# The programs of the Go driver no longer exist, nor do their roles.
	prints_nothing k get clusterrole compute-domain-daemon-role --ignore-not-found -o name
}

# failure: daemons of the Go driver are killed or deleted -> they return with their index
@test "a daemon of the Go driver is killed, and the Pod of another one is deleted: both return with their index" {
	local pod uid indices
	indices=$(indices train)
	pod=$(go_daemons 0 | cut -d' ' -f1)
	kill_in_pod $driver_ns "$pod" 'compute-domain-daemon -v 4 run'
	eventually 30 restarted "$pod" 0
	k -n $driver_ns wait --for=condition=Ready "pod/$pod" --timeout=60s
	[[ -n $(pids_of_pod $driver_ns "$pod" nvidia-imex) ]]
	is_go 0
	uid=$(go_daemons 1 | cut -d' ' -f2)
	k -n $driver_ns delete pod "$(go_daemons 1 | cut -d' ' -f1)" >/dev/null
	another_go_daemon() { [[ $(go_daemons 1 | wc -l) == 1 && $(go_daemons 1 | cut -d' ' -f2) != "$uid" && -n $(go_imex_pid 1) ]]; }
	eventually 120 another_go_daemon
	own_daemons_are "node-2 node-3"
	eventually 120 domain_field_is train .status.nodesReady 2
	[[ $(indices train) == "$indices" ]]
	k -n $ns wait --for=condition=Ready computedomain/train --timeout=60s
}

# failure: a node with a daemon of the Go driver loses its power -> pod and ComputeDomain recover
# bats test_tags=long
@test "a node loses its power while a daemon of the Go driver serves it: the daemon writes its new address, and pod and ComputeDomain recover" {
	local first indices clique
	first=$(go_imex_pid 0)
	indices=$(indices train)
	"$cluster/power" 1 off
	"$cluster/power" 1 on
	back() { [[ $(go_daemons 1 | wc -l) == 1 && -n $(go_imex_pid 1) ]]; }
	eventually 180 back
	runs_again() { has_channel two 2>/dev/null; }
	eventually 150 runs_again
	# The clique has the address that the Pod has.
	clique=$(k -n $driver_ns get computedomaincliques -o json | jq -r '.items[].daemons[] | select(.nodeName == "node-1").ipAddress')
	[[ $clique == "$(k -n $driver_ns get pod "$(go_daemons 1 | cut -d' ' -f1)" -o jsonpath='{.status.podIP}')" ]]
	eventually 150 domain_field_is train .status.nodesReady 2
	[[ $(indices train) == "$indices" && $(go_imex_pid 0) == "$first" ]]
	eventually 60 own_daemons_are "node-2 node-3"
}

# failure: a node is to join a ComputeDomain of the Go driver -> it waits, and an Event reports until when
# bats test_tags=long
@test "a new node of the ComputeDomain waits, and condition and Event report until when" {
	worker three train 2
	# Its first Prepare may end while the table of our first minute here still waits for what ran on deleted Nodes.
	eventually 240 event_contains Pod/three "one that the Go driver formed accepts new nodes after its last pod has ended"
	local message
	message=$(condition train Ready message)
	[[ $message == *node-0* && $message == *node-1* && $message == *"Other nodes join after the last pod of this ComputeDomain has ended" ]]
	label_gone 2
	no_go_daemon 2
	own_daemons_are "node-2 node-3"
	k -n $ns delete pod three
}

# Without controllers, which could consider the node free before the next pod comes.
# failure: a pod starts where a daemon of the Go driver serves -> it gets its channel
# bats test_tags=long
@test "a new pod on a node that the Go driver serves gets its channel" {
	local controller=dra-driver-nvidia-gpu-controller replicas uid
	replicas=$(k -n $driver_ns get deployment $controller -o jsonpath='{.spec.replicas}')
	uid=$(go_daemons 1 | cut -d' ' -f2)
	k -n $driver_ns scale deployment $controller --replicas=0 >/dev/null
	k -n $driver_ns wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	k -n $ns delete pod two
	worker again train 1
	running again 150
	has_channel again
	k -n $driver_ns scale deployment $controller --replicas="$replicas" >/dev/null
	rolled_out
	for_seconds 5 is_served_still "$uid"
	has_channel again
}
is_served_still() { [[ $(go_daemons 1 | cut -d' ' -f2) == "$1" ]] && ! label_gone 1; }

# failure: the last pod of a Go driver's node ends -> its claim is unprepared, and the node gets this driver's daemon
@test "a claim that the Go driver's daemon has served is unprepared, and its idle node gets a daemon of this driver" {
	local pod uid
	pod=$(k -n $ns get pods --field-selector spec.nodeName=node-1 -o jsonpath='{.items[0].metadata.name}')
	uid=$(claim_uid "$pod")
	k -n $ns delete pod "$pod"
	eventually 30 label_gone 1
	eventually 30 no_go_daemon 1
	eventually 10 no_claim_file 1 "$uid"
	! checkpoint_has 1 "$uid" PrepareCompleted || false
	eventually 90 own_daemons_are "node-1 node-2 node-3"
	is_go 0
}

# failure: the Go driver's chart for GPUs runs beside this driver -> both work
@test "the Go chart for GPUs only runs beside this driver, in another namespace and with other names" {
	run ! helm install gpus "$(go_chart)" --namespace nvidia-gpus --create-namespace --set gpuResourcesEnabledOverride=true --set resources.computeDomains.enabled=false
	[[ $output == *'ClusterRole "dra-driver-nvidia-gpu-clusterrole-controller"'*"must equal \"gpus\""* ]]
	local uid
	uid=$(k get $class -o jsonpath='{.metadata.uid}')
	page '## GPUs' 1 | sed '1,/^# now the upgrade/d' >"$BATS_TEST_TMPDIR/after.sh"
	grep -q 'helm install gpus /' "$BATS_TEST_TMPDIR/after.sh"
	CLASSES='gpu.nvidia.com mig.nvidia.com vfio.gpu.nvidia.com' follow <"$BATS_TEST_TMPDIR/after.sh"
	[[ $(k get $class -o jsonpath='{.metadata.uid}') == "$uid" ]]
	[[ $(k get $class -o jsonpath='{.metadata.annotations.meta\.helm\.sh/release-name}') == gpus ]]
}

# The fabric object is new, so no node gets an assignment in its first minute.
@test "a ComputeDomain forms and shrinks on nodes beside those of the Go driver" {
	recounted() { k get computedomainfabrics -o json | jq -e 'all(.items[].conditions[]?; .type != "AssignmentsIncomplete")' >/dev/null; }
	eventually 90 recounted
	domain ours
	worker near ours 3
	worker five ours 2
	running near
	running five
	has_channel near
	no_go_daemon 3
	[[ $(daemon_restarts 3) == 0 ]]
	k -n $ns delete pod five
	eventually 30 daemon_state_is 2 IDLE
}

# failure: helm rollback returns to the Go driver under pods -> it continues with this driver's files
@test "helm rollback to the Go driver: it continues with the files of this driver, on idle nodes and on one in use" {
	local before_one before_near before pid claim daemon
	before_one=$(worker_is one)
	before_near=$(worker_is near)
	before=$(go_daemons 0)
	pid=$(imex_pid 3)
	claim=$(claim_uid near)
	daemon=$(k -n $driver_ns get resourceclaims -o json | jq -r --arg pod "$(daemon_pod 3)" '.items[] | select(.metadata.ownerReferences[0].name == $pod).metadata.uid')
	checkpoint_has 3 "$daemon" PrepareCompleted
	judged 0
	judged 1
	judged 3
	page '## Go back' 1 >"$BATS_TEST_TMPDIR/back.sh"
	grep -q 'helm rollback' "$BATS_TEST_TMPDIR/back.sh"
	follow <"$BATS_TEST_TMPDIR/back.sh"
	rolled_out
	# There are no idle daemons: the Go driver has unprepared their claims.
	only_the_busy_one() { [[ $(k -n $driver_ns get pods -l $daemon_selector -o jsonpath='{.items[*].spec.nodeName}') == node-3 ]]; }
	eventually 90 only_the_busy_one
	[[ $(worker_is one) == "$before_one" && $(worker_is near) == "$before_near" ]]
	[[ $(go_daemons 0) == "$before" && $(imex_pid 3) == "$pid" ]]
	has_channel one
	has_channel near
	eventually 30 domain_field_is train .status.status Ready
	# A new ComputeDomain forms where a daemon of this driver was idle.
	domain again
	worker again again 1
	running again 150
	has_channel again
	is_go 1
	# This driver's claims are unprepared, those of a pod and of its daemon, and the node is free for the next
	# ComputeDomain.
	k -n $ns delete pod near
	eventually 30 no_claim_file 3 "$claim"
	no_own_daemon() { prints_nothing k -n $driver_ns get pods -l $daemon_selector -o name; }
	eventually 60 no_own_daemon
	eventually 30 no_claim_file 3 "$daemon"
	! checkpoint_has 3 "$daemon" PrepareCompleted || false
	eventually 30 label_gone 3
	domain other
	worker other other 3
	running other 150
	is_go 3
	# The first ComputeDomain ends.
	k -n $ns delete pod one
	k -n $ns delete computedomain train ours --timeout=60s
	eventually 30 label_gone 0
	eventually 30 no_go_daemon 0
}

# failure: a ComputeDomain of the Go driver is deleted after the upgrade -> its nodes then form new ones
# bats test_tags=long
@test "helm upgrade with the values of the GPU Operator's page: a ComputeDomain of the Go driver can be deleted, and after its last pod the nodes form one of this driver" {
	cat "$checkout/test/chart/values/gpu-operator-computedomains.yaml" <(grep altProcDevices "$cluster/driver-values.yaml") >"$BATS_FILE_TMPDIR/mine.yaml"
	page '## Upgrade' 1 >"$BATS_TEST_TMPDIR/upgrade.sh"
	grep -q -- --reset-values "$BATS_TEST_TMPDIR/upgrade.sh"
	follow <"$BATS_TEST_TMPDIR/upgrade.sh"
	rolled_out
	eventually 90 own_daemons_are "node-0 node-2"
	has_channel again
	has_channel other
	k -n $ns delete computedomain again --timeout=60s
	k -n $ns delete pod again
	k -n $ns delete pod other
	nothing_of_go() { no_go_daemon && prints_nothing k get daemonsets,resourceclaimtemplates -n $driver_ns -l $uid_label -o name && cliques_gone && labels_gone; }
	eventually 60 nothing_of_go
	eventually 90 daemons_idle 4
	worker next other 3
	running next
	has_channel next
	[[ $(assignment 3) == */"$(domain_uid other)"/* ]]
	no_go_daemon
	k -n $ns wait --for=condition=Ready computedomain/other --timeout=60s
	eventually 20 eval '[[ $(condition other Ready reason) == AllNodesReady ]]'
	k -n $ns delete pod next
	k -n $ns delete computedomain other --timeout=60s
	nothing_left
}
