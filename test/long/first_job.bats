#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands of docs/tutorials/first-job.md, with examples/torchrun.yaml. There is no CUDA here, so the test
# replaces the image, the backend and the limit of GPUs: Debian's PyTorch, gloo, and no limit. The rest of the
# manifest runs as it is, also train.py.

load ../cluster/driver

state=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}
names=$state/control/names
torch_image=$(. "$BATS_TEST_DIRNAME/../cluster/lib.bash" && echo "$torch_image")

setup_file() {
	"$cluster/tools" torch
	with_driver 2
	"$cluster/image" "$torch_image"
}
# The image is large. Nodes that are added later should not load it, and no node should keep it.
teardown_file() {
	local k
	rm -f "$state/images/$(basename "$torch_image")"
	for k in 0 1; do
		"$cluster/node" "$k" ctr -n k8s.io images rm docker.io/compute-domains/torch:test >/dev/null
		rm -f "$state/nodes/$k"/images/*-"$(basename "$torch_image")"
	done
}
setup() { ns_begin; }
teardown() {
	rm -f "$names"
	ns_end
}

kubectl() { k -n "$ns" "$@"; }
# commands N: prints the commands of the N-th "sh" block of the tutorial. Blocks that need GPUs have another mark.
commands() { awk -v n="$1" '/^```sh$/ { i++; next } /^```$/ { if (i == n) exit; next } i == n' "$checkout/docs/tutorials/first-job.md"; }
# follow N: runs these commands with the manifest of this cluster, in a folder in which it has the same name.
follow() {
	commands "$1" >"$BATS_TEST_TMPDIR/commands.sh"
	[[ -s $BATS_TEST_TMPDIR/commands.sh ]]
	cd "$BATS_TEST_TMPDIR"
	. ./commands.sh
}
manifest() {
	sed -e 's|image: nvcr.io/nvidia/pytorch:.*|image: compute-domains/torch:test|' -e 's|value: nccl}|value: gloo}|' \
		-e '/nvidia\.com\/gpu: 4/d' "$checkout/examples/torchrun.yaml"
}
# addresses: prints what the cluster's DNS answers for pods of a headless Service, from its EndpointSlices: a name and
# an address per line.
addresses() {
	k -n "$ns" get endpointslices -l kubernetes.io/service-name=torchrun -o json | jq -r --arg service "torchrun.$ns.svc.cluster.local" \
		'.items[] | select(.addressType == "IPv4").endpoints[]? | select(.hostname) | "\(.hostname).\($service) \(.addresses[0])"'
}
both_have_addresses() { [[ $(addresses | wc -l) == 2 ]]; }
nodes_ready() { [[ $(k -n "$ns" get computedomain torchrun --no-headers | awk '{ print $2, $3, $4 }') == 'Ready 2 2' ]]; }
log() { k -n "$ns" logs "$(k -n "$ns" get pods -l batch.kubernetes.io/job-completion-index="$1" -o name)"; }

@test "the job of the tutorial trains on two nodes in one ComputeDomain, and each pod has a channel" {
	mkdir -p "$BATS_TEST_TMPDIR/examples"
	manifest >"$BATS_TEST_TMPDIR/examples/torchrun.yaml"
	# Only the three lines that had to change differ.
	[[ $(diff "$BATS_TEST_TMPDIR/examples/torchrun.yaml" "$checkout/examples/torchrun.yaml" | grep -c '^>') == 3 ]]
	follow 1
	eventually 120 both_have_addresses
	# Until the names exist, the processes cannot find each other, and wait.
	eventually 60 nodes_ready
	addresses >"$names"
	follow 2 >"$BATS_TEST_TMPDIR/printed"
	cat "$BATS_TEST_TMPDIR/printed"
	grep -q '^torchrun-0 has channel0$' "$BATS_TEST_TMPDIR/printed"
	grep -qE '^8 processes: all_reduce of 4 MiB at [0-9]+\.[0-9] GB/s$' "$BATS_TEST_TMPDIR/printed"
	log 1 | grep -q '^torchrun-1 has channel0$'
	# The training has had an effect.
	log 0 | awk '/^step 0: loss / { first = $4 } /^step 199: loss / { last = $4 } END { exit !(last < first / 10) }'
	follow 3
	prints_nothing k -n "$ns" get computedomains,jobs,services -o name
}
