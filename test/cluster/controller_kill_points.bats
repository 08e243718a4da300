#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kill -9 before a request of a controller that forms a domain and takes it down: the next one does both, and leaves nothing. Each of the first three
# requests, and then fewer and fewer, for each takes a formation of some seconds; with EVERY_POINT (make long PART=kill_points) each.
#
# The controller runs by hand on this machine, under strace; the nodes, their kubelets and daemons are those of the cluster. (Of the plugin:
# kill_points.bats. Of the daemon: unit/daemon/test_kill_points.c.)

load driver
load kill_points

setup_file() { with_driver 4 --set controller.replicas=0; }

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
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -20 "$BATS_TEST_TMPDIR/controller.log"
	ns_end
}

@test "the controller is killed before its requests while a domain forms and goes" {
	killed_at_each 8 formed_and_gone
}
