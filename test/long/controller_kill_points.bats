#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kill -9 before a request of a controller that forms a domain and takes it down: the next one does both, and leaves nothing. Each of the first three
# requests, and then fewer and fewer, for each takes a formation of some seconds; with EVERY_POINT (make long sets it) each.
#
# The controller runs by hand on this machine, under strace; the nodes, their kubelets and daemons are those of the cluster. (Of the plugin:
# kill_points.bats. Of a node that goes from one domain to the next: handover_kill_points.bats. Of the daemon: test/unit/daemon.)

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
		# For the finalizers.
		k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	}
	ns_end
}

# failure: the controller is killed at any request -> the ComputeDomain still forms and ends
@test "the controller is killed before its requests while a domain forms and ends" {
	killed_at_each 8 formed_and_gone
}
