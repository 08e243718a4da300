#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A missing answer is no proof: an object that an API server does not show, or does not serve, may still exist. Longer
# versions: pages.bats, stale.bats.

load ../cluster/driver
load ../cluster/absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	everything_passes
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || {
		serve $all_versions
		remove_pretended
	}
	ns_end
}

# failure: another server answers at the API server's address -> nothing changes, and everything continues
#   afterwards
@test "the API server's address answers with pages of 404, 403 and 503: nothing changes, and everything continues afterwards" {
	pages_for 20 8 8
}

# failure: a new leader's view of claims is stale -> no label, daemon or template is removed [controller]
@test "a standby that may not see claims becomes the leader: no label, daemon or claim template is removed" {
	stale_standby list,watch 15
}

# phase NODE: a workload starts on this node, and the workload on node-0 has not changed.
phase() {
	late_worker "$1" d "$1"
	running "late-$1" 120 # the Kubernetes components need a moment after the server was down
	has_channel "late-$1"
	unchanged "$before" 0
}
our_restarts() { k -n "$driver_ns" get pods -o json | jq -r '.items[] | "\(.metadata.name) \(.status.containerStatuses[0].restartCount)"' | sort; }
# serve VERSION=BOOL,...: restarts the API server with these versions of the group.
serve() { CD_APISERVER_FLAGS="--runtime-config=$1" "$cluster/apiserver" restart; }
all_versions=resource.k8s.io/v1=true,resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true

# The Kubernetes components use v1, so v1 is hidden from the driver only.
# failure: versions of resource.k8s.io disappear and return -> they are discovered again, and nothing is
#   unprepared
@test "versions of resource.k8s.io disappear and return: they are discovered again, workloads start, and nothing is unprepared" {
	domain d
	worker a d 0
	running a
	eventually 30 condition_is d Ready True
	eventually 20 labelled 0
	local before programs
	before=$(state_of_workloads 0)
	programs=$(our_restarts)
	front unserved resource.k8s.io/v1
	phase 1
	[[ $(our_restarts) == "$programs" ]]
	serve resource.k8s.io/v1beta1=false,resource.k8s.io/v1beta2=false
	front off
	phase 2
	serve $all_versions
	phase 3
	eventually 30 domain_field_is d .status.nodesReady 4
	# A controller may have lost its lease while there was no API server.
	[[ $(our_restarts | grep -v controller) == "$(grep -v controller <<<"$programs")" ]]
}

# failure: all calls that label a thousand nodes hang -> the leader keeps its Lease
@test "the first start with a thousand nodes: all calls that label them hang, and the leader still renews its lease" {
	first_start 1000 15 60
	remove_pretended
}

# failure: each fsync of a node takes ten seconds -> the plugin answers other requests meanwhile [plugin]
@test "a disk that needs ten seconds for each fsync: the plugin answers other requests in the meantime, and pods come and go" {
	domain d
	worker a d 0
	running a
	local plugin url tracer before
	plugin=$(plugin_pod 0)
	before=$(restarts "$plugin")
	url="http://$(k -n "$driver_ns" get pod "$plugin" -o jsonpath='{.status.podIP}'):8081/metrics"
	strace -f -qq -o "$BATS_TEST_TMPDIR/fsyncs" -p "$(pids_of_pod "$driver_ns" "$plugin" compute-domain-kubelet-plugin)" \
		-e trace=fsync -e inject=fsync:delay_enter=10000000 3>&- &
	tracer=$!
	k -n "$ns" delete pod a --wait=false >/dev/null
	answers() { "$cluster/node" 0 curl -sf --max-time 5 -o "$BATS_TEST_TMPDIR/answer" "$url"; }
	for_seconds 15 answers
	kill "$tracer"
	wait "$tracer" || true
	grep -q fsync "$BATS_TEST_TMPDIR/fsyncs"
	gone pod/a
	worker b d 0
	running b 150
	[[ $(restarts "$plugin") == "$before" ]]
}
