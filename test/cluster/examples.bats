#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The files in examples/ work as they are, except for the image: there is no registry here, and no CUDA.

load driver
load mpi

setup_file() {
	with_driver 4
	k apply --server-side -f "$schemas" >/dev/null
	k wait --for=condition=Established --timeout=30s $(k get -f "$schemas" -o name) >/dev/null
}
teardown_file() {
	k delete --ignore-not-found -f "$schemas" >/dev/null
	prints_nothing k get nodes -l $rack_label -o name || without_racks # left by a test that failed
}
rack_label=ds.coreweave.com/nvlink.domain
setup() { ns_begin; }
teardown() { ns_end; }
schemas=$(. "$BATS_TEST_DIRNAME/lib.bash" && echo "$schemas")

# commands TITLE: prints the commands of the "sh" block below a heading of the quick start.
commands() {
	awk -v title="$1" '/^## / { found = $0 == title } !found { next } /^```sh$/ { inside = 1; next } inside && /^```$/ { exit } inside' \
		"$checkout/docs/tutorials/quick-start.md"
}

@test "the quick start's commands install the driver on a test cluster, and a first pod gets its channel" {
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --wait --timeout 300s >/dev/null
	k delete resourceslices --all >/dev/null # the kubelets would do this half a minute after a plugin has ended
	commands '## Install the chart by hand' | sed "s|^test/cluster/image |& ${CD_IMAGE:-} |" >"$BATS_TEST_TMPDIR/commands.sh"
	commands '## Your own ComputeDomain' >>"$BATS_TEST_TMPDIR/commands.sh"
	grep -q 'helm upgrade --install' "$BATS_TEST_TMPDIR/commands.sh"
	run bash -euo pipefail -c 'cd "$1" && . "$2"' - "$checkout" "$BATS_TEST_TMPDIR/commands.sh"
	echo "$output"
	((status == 0))
	grep -q '^cr.* channel0$' <<<"$output"
	eventually 60 slices_published 4
	daemons_settle
}

# example NAME: prints the example with an image that exists here.
example() { sed 's|image: .*|image: compute-domains/busybox:test|' "$checkout/examples/$1.yaml"; }
run_example() { example "$1" | k -n "$ns" apply -f - >/dev/null; }
no_nodes() { [[ $(k -n "$ns" get cd "$1" --no-headers | awk '{ print $2, $3, $4 }') == 'Ready 0 0' ]]; }
says() { k -n "$ns" logs "$1" | grep -q "$2"; }

@test "the first pod prints its channel, and an unused ComputeDomain delays nothing" {
	run_example first-pod
	k -n "$ns" wait --for=jsonpath='{.status.phase}'=Succeeded pod/first-pod --timeout=60s
	says first-pod '^cr.* channel0$'
	# The quick start shows this after the pod has ended: its node has left.
	eventually 60 no_nodes first
	# The README warns of this case.
	domain unused
	k -n "$ns" wait --for=condition=Ready computedomain/unused --timeout=15s
	[[ $(condition unused Ready reason) == NoNodes ]]
	domain awaited 2
	eventually 15 condition_is awaited Ready False
}

@test "a Job runs on four nodes of one partition, each pod with a channel" {
	run_example job
	k -n "$ns" wait --for=condition=Complete job/training --timeout=90s
	[[ $(k -n "$ns" get pods -l job=training -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l) == 4 ]]
	[[ $(k -n "$ns" logs -l job=training | grep -c 'has a channel') == 4 ]]
}

# bats test_tags=long
@test "a Deployment is rolled out, and once more, with one channel per node" {
	run_example deployment
	k -n "$ns" rollout status deployment/serving --timeout=60s
	k -n "$ns" rollout restart deployment/serving
	k -n "$ns" rollout status deployment/serving --timeout=120s
}

# bats test_tags=long
@test "the MPIJob of nvbandwidth: four workers with a channel, and a launcher that needs none" {
	run_example nvbandwidth-mpijob
	mpi_operator nvbandwidth
	k -n "$ns" wait --for=jsonpath='{.status.phase}'=Succeeded pod/nvbandwidth-launcher-0 --timeout=60s
	[[ $(k -n "$ns" logs nvbandwidth-launcher-0 | grep -cx channel0) == 4 ]]
	eventually 45 condition_is nvbandwidth PeersConnected True
	k -n "$ns" delete pods --all --grace-period=0 >/dev/null
}

# well_formed FILE: the API server has the schemas that JobSet, Kueue, LeaderWorkerSet and the MPI operator publish.
# It accepts the whole example, and knows every field.
well_formed() { k -n "$ns" create --dry-run=server --validate=strict -f "$1"; }

@test "JobSet, Kueue, LeaderWorkerSet and MPIJob match their schemas" {
	local name
	for name in jobset kueue lws nvbandwidth-mpijob; do well_formed "$checkout/examples/$name.yaml"; done
	sed 's/topologyName:/topology:/' "$checkout/examples/kueue.yaml" >"$BATS_TEST_TMPDIR/mistyped.yaml"
	run well_formed "$BATS_TEST_TMPDIR/mistyped.yaml"
	[[ $status -ne 0 && $output == *'unknown field "spec.topology"'* ]]
	sed 's/targetReplicatedJobs:/target:/' "$checkout/examples/jobset.yaml" >"$BATS_TEST_TMPDIR/mistyped.yaml"
	run well_formed "$BATS_TEST_TMPDIR/mistyped.yaml"
	[[ $status -ne 0 && $output == *'unknown field "spec.successPolicy.target"'* ]]
	sed 's/workerTemplate:/workers:/' "$checkout/examples/lws.yaml" >"$BATS_TEST_TMPDIR/mistyped.yaml"
	run well_formed "$BATS_TEST_TMPDIR/mistyped.yaml"
	[[ $status -ne 0 && $output == *'unknown field "spec.leaderWorkerTemplate.workers"'* ]]
}

@test "manifests that the kubectl plugin prints match their schemas, and a printed Job runs on four nodes" {
	local kind
	for kind in job jobset lws mpijob; do
		plugin new $kind --nodes 4 --gpus 4 --image registry.example/image:1 -- sh -c 'echo "$HOME"' >"$BATS_TEST_TMPDIR/$kind.yaml"
		well_formed "$BATS_TEST_TMPDIR/$kind.yaml"
	done
	plugin new job --name printed --nodes 4 --gpus 0 --image compute-domains/busybox:test -n "$ns" -- \
		test -c /dev/nvidia-caps-imex-channels/channel0 | k apply -f - >/dev/null
	k -n "$ns" wait --for=condition=Complete job/printed --timeout=90s
	[[ $(k -n "$ns" get pods -l job=printed -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l) == 4 ]]
}

@test "doctor of the kubectl plugin finds nothing on a healthy cluster, and checks a node in both plugins" {
	# Events of faults that earlier tests have provoked remain for an hour.
	run plugin doctor -o json
	echo "$output"
	((status < 2))
	run jq -c '[.checks[] | select(.state == "problem" and .check != "node-events" and .check != "host-imex")]' <<<"$output"
	[[ $output == '[]' ]]
	run plugin doctor --node node-2 -o json
	echo "$output"
	((status < 2))
	[[ $(jq -r '[.checks[] | select(.check == "compute-domains/kubelet-sockets" and .state == "ok")] | length' <<<"$output") -gt 0 ]]
}

quota_knows() { [[ $(k -n "$ns" get resourcequota compute-domains -o json | jq -c '.status.hard == .spec.hard') == true ]]; }

@test "a ResourceQuota limits the channels and the ComputeDomains of a namespace" {
	sed 's/"36"/"1"/; s/"10"/"1"/' "$checkout/examples/quota.yaml" | k -n "$ns" apply -f - >/dev/null
	eventually 60 quota_knows
	domain first
	run domain second
	[[ $status -ne 0 && $output == *'exceeded quota: compute-domains'*'count/computedomains.resource.nvidia.com=1'* ]]
	worker a first 1
	running a
	worker b first 2
	eventually 30 event_contains Pod/b 'exceeded quota: compute-domains'
	[[ $(k -n "$ns" get pod b -o jsonpath='{.status.phase}') == Pending ]]
	# Its claim is created after the first pod has released its channel.
	k -n "$ns" delete pod a >/dev/null
	running b 90
}

rack_is_ready() { [[ $(k -n "$ns" get cd "$1" -o jsonpath='{.status.status}') == Ready ]]; }
running_on() { [[ $(k -n "$ns" get pods -o json | jq -r '[.items[] | select(.status.phase == "Running").spec.nodeName] | sort | join(" ")') == "$1" ]]; }
without_racks() {
	"$cluster/clique" 2 1
	"$cluster/clique" 3 1
	with_driver 4
	k label nodes --all "$rack_label-" >/dev/null
	k delete computedomains -A -l resource.nvidia.com/rack --timeout=60s >/dev/null
}

# The last test, because it installs the driver in another way. More tests: long/racks.bats.
# bats test_tags=long
@test "a rack has a ComputeDomain, and pods with its claim template run on that rack only, although the other one has room" {
	"$cluster/clique" 2 2
	"$cluster/clique" 3 2
	k label --overwrite nodes node-0 node-1 "$rack_label=RACK-EAST" >/dev/null
	k label --overwrite nodes node-2 node-3 "$rack_label=RACK-WEST" >/dev/null
	with_driver 4 --set resources.computeDomains.rackDomains.enabled=true \
		--set resources.computeDomains.rackDomains.nameFromNodeLabel="${rack_label//./\\.}"
	k label namespace "$ns" resource.nvidia.com/rack-domains=enabled >/dev/null
	eventually 60 rack_is_ready rack-west
	local pod
	for pod in a b c; do rack_worker "$pod" rack-west; done
	eventually 60 running_on "node-2 node-3"
	for_seconds 3 running_on "node-2 node-3"
	k -n "$ns" delete pods --all --grace-period=0 >/dev/null
	without_racks
}
