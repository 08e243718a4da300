#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SIGKILL before a request of a controller that creates and deletes what a ComputeDomain needs: the next controller
# completes both, and leaves nothing. The controller is killed before each of the first three requests, and then at
# growing distances, because each try takes some seconds; with EVERY_POINT (make long sets it) before each request.
#
# The test itself starts the controller on this machine, under strace. The nodes, their kubelets and daemons are those
# of the cluster. (For the plugin see kill_points.bats, for a node that changes its ComputeDomain
# handover_kill_points.bats, for the daemon test/unit/daemon.)

load ../cluster/driver
load ../cluster/kill_points

setup_file() {
	with_driver 4
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
}
teardown_file() { k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null; }

formed_and_gone() {
	domain d 1
	channel_given "$(domain_uid d)"
	k -n "$ns" wait --for=condition=Ready computedomain/d --timeout=60s >/dev/null
	[[ $(domain_field d '.status.nodes[*].name') == node-0 ]]
	k -n "$ns" delete resourceclaim/given computedomain/d --wait=false >/dev/null
	gone computedomain/d
	nothing_left
}

setup() { ns_begin; }
teardown() {
	end_controller
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || {
		tail -20 "$BATS_TEST_TMPDIR/controller.log"
		# A controller has to remove the finalizers.
		k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	}
	ns_end
}

# failure: the controller is killed at any request -> the ComputeDomain still forms and ends
@test "the controller is killed before its requests while a ComputeDomain forms and ends" {
	killed_at_each 8 formed_and_gone
}
