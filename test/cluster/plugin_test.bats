#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands of the kubectl plugin that need a cluster: `test`, which writes, and the page of the racks.
bats_require_minimum_version 1.5.0

load driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() { ns_end; }

none_left() { prints_nothing k -n "$ns" get pods,computedomains,resourceclaims,resourceclaimtemplates -o name; }

@test "test creates pods that get a channel on each rack, and deletes them" {
	run -0 plugin test -n "$ns"
	echo "$output"
	[[ $output == *'ok '*': 2 of 2 pods have a channel'* ]]
	[[ $output != *FAIL* ]]
	eventually 30 none_left
}

# bats test_tags=long
@test "test checks with any image that has a shell" {
	run -0 plugin test -n "$ns" --image compute-domains/busybox:test
	[[ $output == *': 2 of 2 pods have a channel'* ]]
}

@test "test names the cause, and deletes the pods that wait" {
	run -1 plugin test -n "$ns" --image compute-domains/no-such-image:test --timeout 12
	# On a busy machine, the pods may wait for something else until this time limit. The pods never run, so a longer
	# limit would always cost the whole time.
	if [[ $output != *'[ContainerFailed]'* ]]; then
		run -1 plugin test -n "$ns" --image compute-domains/no-such-image:test --timeout 100
	fi
	echo "$output"
	[[ $output == *'FAIL '* && $output == *CAUSE*'[ContainerFailed]'* ]]
	eventually 60 none_left
}

# bats test_tags=long
@test "test deletes what it created after Ctrl-C" {
	# bash starts background jobs with SIGINT ignored, so timeout sends it to a process that is not ignored.
	run -2 --separate-stderr timeout --signal=INT --preserve-status 8 env PATH="${kubectl%/*}:$checkout/build/src/cli:$PATH" KUBECONFIG="$kubeconfig" \
		KUBECACHEDIR="$kubectl_cache" kubectl-compute_domains test -n "$ns" --image compute-domains/no-such-image:test
	[[ $stderr == *interrupted* ]]
	eventually 60 none_left
}

@test "a dry run prints manifests that the API server accepts, and creates nothing" {
	plugin test -n "$ns" --dry-run >"$BATS_TEST_TMPDIR/test.yaml"
	k apply --dry-run=server -f "$BATS_TEST_TMPDIR/test.yaml" >/dev/null
	none_left
}

@test "the page of the racks has each node" {
	local node
	plugin racks --html "$BATS_TEST_TMPDIR/racks.html"
	for node in node-{0..3}; do
		grep -qF "<th scope=\"row\">$node</th>" "$BATS_TEST_TMPDIR/racks.html"
	done
}
