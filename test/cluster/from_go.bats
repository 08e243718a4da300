#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# From the Go driver to ours and back, under live workloads, by the commands of docs/from-the-go-driver.md. The Go driver is a stand-in (from_go.bash).
# Each test goes on where the one before it has ended.

bats_require_minimum_version 1.5.0
load driver
ns=from-go
load from_go
class=deviceclass/gpu.nvidia.com

# What the page's commands go by.
RELEASE=dra NAMESPACE=$driver_ns CHART=$checkout/deploy/chart/compute-domains
# page TITLE N: the N-th block of commands below a heading of the page. Registry and Go chart are those that there are here.
page() {
	awk -v title="$1" -v n="$2" '/^## / { found = $0 == title } !found { next } /^ *```sh$/ { i++; next } /^ *```$/ { if (i == n) exit; next } i == n' \
		"$checkout/docs/from-the-go-driver.md" |
		sed "s|registry.example.org/compute-domains|compute-domains/compute-domains|; s|oci://[^ ]* --version <[^>]*>|$(go_chart)|; s|--wait|--wait --timeout 120s|"
}
# follow: does what it reads, beside the values file that the page calls mine.yaml.
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

# worker_is POD: what changes when a pod of the workload, or its container, is another one.
worker_is() { k -n $ns get pod "$1" -o jsonpath='{.metadata.uid} {.status.phase} {.status.containerStatuses[0].containerID}'; }
# indices: of the domain's nodes, by which nvidia-imex knows them.
indices() { domain_field "$1" 'range .status.nodes[*]}{.name}{"="}{.index}{"\n"}{end' | sort | xargs; }
# judged K: the Go driver's types and checksums find nothing wrong with the checkpoint on the node.
judged() {
	local copy=$BATS_TEST_TMPDIR/checkpoint.json
	"$cluster/node" "$1" cat "$plugin_dir/checkpoint.json" >"$copy"
	go_driver "$copy"
}
# rolled_out: the release's programs are there, and nothing else of it.
rolled_out() {
	k -n $driver_ns rollout status deployment/dra-driver-nvidia-gpu-controller --timeout=90s
	k -n $driver_ns rollout status daemonset/dra-driver-nvidia-gpu-kubelet-plugin --timeout=90s
}

@test "the stand-in's types know a checkpoint of the real Go driver, and one byte that differs" {
	go_driver "$cluster/programs/go-driver/golden.json"
	sed 's/channel-0/channel-1/' "$cluster/programs/go-driver/golden.json" >"$BATS_TEST_TMPDIR/golden.json"
	run ! go_driver "$BATS_TEST_TMPDIR/golden.json"
}

@test "a domain of the Go driver is at work" {
	domain train
	worker one train 0
	worker two train 1
	running one
	running two
	eventually 30 domain_field_is train .status.nodes[*].status "Ready Ready"
	is_go 0
	is_go 1
}

@test "helm upgrade --reuse-values by our chart, GPUs left to the Go driver: nobody is disturbed" {
	local before_one before_two before indices
	before_one=$(worker_is one)
	before_two=$(worker_is two)
	before=$(daemons)
	indices=$(indices train)
	# GPUs stay with the Go driver: in a release of its own, to which their DeviceClasses go without having been away.
	local uid
	uid=$(k get $class -o jsonpath='{.metadata.uid}')
	helm get values $RELEASE -n $NAMESPACE -o yaml >"$BATS_FILE_TMPDIR/mine.yaml"
	page '## GPUs' 1 | sed '/^# now the upgrade/,$d' >"$BATS_TEST_TMPDIR/before.sh"
	page '## The upgrade' 2 >"$BATS_TEST_TMPDIR/upgrade.sh"
	grep -q -- --reuse-values "$BATS_TEST_TMPDIR/upgrade.sh"
	follow <"$BATS_TEST_TMPDIR/before.sh"
	follow <"$BATS_TEST_TMPDIR/upgrade.sh"
	rolled_out
	run follow < <(page '## Is all well?' 1)
	[[ $(grep -c 'successfully rolled out' <<<"$output") == 2 ]]
	grep -x 4 <<<"$output" # nodes with a slice
	[[ $(worker_is one) == "$before_one" && $(worker_is two) == "$before_two" ]]
	[[ $(daemons) == "$before" ]]
	has_channel one
	k -n $ns wait --for=condition=Ready computedomain/train --timeout=60s
	[[ $(indices train) == "$indices" ]]
	[[ $(condition train PeersConnected reason) == PeersNotReported ]]
	checkpoint_has 0 "$(claim_uid one)" PrepareCompleted
	[[ $(k get $class -o jsonpath='{.metadata.uid}') == "$uid" ]]
	# The programs of the Go driver are gone, their roles too.
	[[ -z $(k get clusterrole compute-domain-daemon-role --ignore-not-found -o name) ]]
}

@test "a daemon of the Go driver restarts under us" {
	local pod
	pod=$(daemons 0 | cut -d' ' -f1)
	kill_in_pod $driver_ns "$pod" 'compute-domain-daemon -v 4 run'
	eventually 30 restarted "$pod" 0
	k -n $driver_ns wait --for=condition=Ready "pod/$pod" --timeout=60s
	[[ -n $(pids_of_pod $driver_ns "$pod" nvidia-imex) ]]
	is_go 0
	k -n $ns wait --for=condition=Ready computedomain/train --timeout=60s
}

@test "new nodes join with daemons of ours, beside those of the Go driver" {
	worker three train 2
	# A Prepare that fails once costs the pod up to a minute and a half until the kubelet's next.
	running three 150
	has_channel three
	is_ours 2
	eventually 30 domain_field_is train .status.nodesReady 3
	# They have found each other, under the Go driver's names: its daemons have learned the address of ours at its first appearance.
	eventually 120 connected_to_both 2
}
connected_to_both() {
	[[ $(k -n $driver_ns get pods -l $uid_label --field-selector "spec.nodeName=node-$1" \
		-o 'jsonpath={.items[0].metadata.annotations.imex\.resource\.nvidia\.com/peers}') == 2/2 ]]
}

@test "a claim that the Go driver has prepared is unprepared, and its idle node gets a daemon of ours" {
	local uid
	uid=$(claim_uid two)
	k -n $ns delete pod two
	eventually 30 label_gone 1
	eventually 30 no_daemon 1
	eventually 10 no_claim_file 1 "$uid"
	! checkpoint_has 1 "$uid" PrepareCompleted || false
	worker four train 1
	running four
	has_channel four
	is_ours 1
}

@test "the Go chart for GPUs only lives beside us, in another namespace and by other names" {
	run ! helm install gpus "$(go_chart)" --namespace nvidia-gpus --create-namespace --set gpuResourcesEnabledOverride=true --set resources.computeDomains.enabled=false
	[[ $output == *'ClusterRole "dra-driver-nvidia-gpu-clusterrole-controller"'*"must equal \"gpus\""* ]]
	local uid
	uid=$(k get $class -o jsonpath='{.metadata.uid}')
	page '## GPUs' 1 | sed '1,/^# now the upgrade/d' >"$BATS_TEST_TMPDIR/after.sh"
	grep -q 'helm install gpus /' "$BATS_TEST_TMPDIR/after.sh"
	CLASSES='gpu.nvidia.com mig.nvidia.com vfio.gpu.nvidia.com' follow <"$BATS_TEST_TMPDIR/after.sh"
	[[ $(k get $class -o jsonpath='{.metadata.uid}') == "$uid" ]]
	[[ $(k get $class -o jsonpath='{.metadata.annotations.meta\.helm\.sh/release-name}') == gpus ]]
	worker five train 3
	running five
	is_ours 3
	k -n $ns delete pod five
}

@test "helm rollback gives it back to the Go driver, which goes on with what we have written" {
	local before_one before_three before claim
	before_one=$(worker_is one)
	before_three=$(worker_is three)
	eventually 30 no_daemon 3
	before=$(daemons)
	claim=$(claim_uid three)
	judged 0
	judged 2
	page '## Back' 1 >"$BATS_TEST_TMPDIR/back.sh"
	grep -q 'helm rollback' "$BATS_TEST_TMPDIR/back.sh"
	follow <"$BATS_TEST_TMPDIR/back.sh"
	rolled_out
	[[ $(worker_is one) == "$before_one" && $(worker_is three) == "$before_three" ]]
	[[ $(daemons) == "$before" ]]
	has_channel one
	eventually 30 domain_field_is train .status.status Ready
	# A claim that we have prepared is unprepared.
	k -n $ns delete pod three
	eventually 30 label_gone 2
	eventually 30 no_daemon 2
	eventually 10 no_claim_file 2 "$claim"
	# And the domain goes.
	k -n $ns delete pod one four
	page '## Back' 2 | sed "s/<name>/train/; s/<namespace>/$ns/; s/<its UID>/$(domain_uid train)/" >"$BATS_TEST_TMPDIR/delete.sh"
	grep -q 'delete computedomain train' "$BATS_TEST_TMPDIR/delete.sh"
	follow <"$BATS_TEST_TMPDIR/delete.sh"
	eventually 30 labels_gone
	cliques_gone
	[[ -z $(k get daemonsets,resourceclaimtemplates -A -l $uid_label -o name) ]]
	domain again
	worker again again 1
	running again
	is_go 1
}

@test "helm upgrade with the values of the GPU Operator's page: a domain that the Go driver formed can be deleted" {
	cat "$checkout/test/chart/values/gpu-operator-computedomains.yaml" <(grep altProcDevices "$cluster/driver-values.yaml") >"$BATS_FILE_TMPDIR/mine.yaml"
	page '## The upgrade' 1 >"$BATS_TEST_TMPDIR/upgrade.sh"
	grep -q -- --reset-values "$BATS_TEST_TMPDIR/upgrade.sh"
	follow <"$BATS_TEST_TMPDIR/upgrade.sh"
	rolled_out
	has_channel again
	k -n $ns delete computedomain again --timeout=60s
	k -n $ns delete pod again
	nothing_left
}
