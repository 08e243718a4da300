#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kill -9 before a request of a controller that forms a domain and takes it down: the next one does both, and leaves nothing. Each of the first three
# requests, and then fewer and fewer, for each takes a formation of some seconds; with EVERY_POINT (make long PART=kill_points) each.
#
# The controller runs by hand on this machine, under strace; the nodes, their kubelets and daemons are those of the cluster. (Of the plugin:
# kill_points.bats. Of the daemon: unit/daemon/test_kill_points.c.)

load driver

setup_file() { with_driver 4 --set controller.replicas=0; }

# live_with_one_kill N SYSCALLS: a controller as its Deployment would start it, killed before the Nth of its calls and then started again, until it
# is told to end. It is the file `killed` that says whether it came to that.
live_with_one_kill() {
	local child status=0 ended='' plain
	mapfile -t plain < <(k -n "$driver_ns" get deployment compute-domains-controller -o json |
		jq -r '.spec.template.spec.containers[0].env[] | select(.value != null) | "\(.name)=\(.value)"')
	plain=(env "${plain[@]}" POD_NAME=by-hand NAMESPACE="$driver_ns" "$checkout/build/src/controller/compute-domain-controller"
		--kubeconfig="${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}/kubeconfig" --http-endpoint= -v 2)
	trap 'ended=yes; kill "$child"' TERM
	strace -D -qq -o /dev/null -e trace="$2" -e inject="$2:signal=KILL:when=$1" "${plain[@]}" &
	child=$!
	wait "$child" || status=$?
	if ((status == 137)); then
		touch "$BATS_TEST_TMPDIR/killed"
		"${plain[@]}" &
		child=$!
		status=0
		wait "$child" || status=$?
	fi
	# A signal ended the wait, not the child.
	[[ -z $ended ]] || { status=0; wait "$child" || status=$?; }
	# Told to end, and killed before it could give its lease up: the next one waits for that.
	if [[ -n $ended ]] && ((status == 137)); then
		touch "$BATS_TEST_TMPDIR/killed"
		status=0
	fi
	((status == 0)) || echo "ended with $status" | tee "$BATS_TEST_TMPDIR/failed"
}

# A node has a channel of the domain, as if the scheduler had given it one: the kubelet starts a daemon there, and no pod takes its time.
channel_given() {
	local config
	config="{driver: compute-domain.nvidia.com, parameters: $(config "$1")}"
	k -n "$ns" create -f - >/dev/null <<-END
		apiVersion: resource.k8s.io/v1
		kind: ResourceClaim
		metadata: {name: given}
		spec:
		  devices:
		    requests: [{name: channel, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}]
		    config: [{requests: [channel], opaque: $config}]
	END
	k -n "$ns" patch resourceclaim given --subresource=status --type=merge --patch-file=/dev/stdin >/dev/null <<-END
		status:
		  allocation:
		    devices:
		      results: [{request: channel, driver: compute-domain.nvidia.com, pool: node-0, device: channel-0}]
		      config: [{source: FromClaim, requests: [channel], opaque: $config}]
	END
}

# formed_and_gone N SYSCALLS: with a controller that is killed meanwhile, at its Nth call.
formed_and_gone() {
	rm -f "$BATS_TEST_TMPDIR/killed"
	live_with_one_kill "$@" >>"$BATS_TEST_TMPDIR/controller.log" 2>&1 3>&- &
	controller=$!
	domain d 1
	channel_given "$(domain_uid d)"
	k -n "$ns" wait --for=condition=Ready computedomain/d --timeout=60s >/dev/null
	[[ $(domain_field d '.status.nodes[*].name') == node-0 ]]
	k -n "$ns" delete resourceclaim/given computedomain/d --wait=false >/dev/null
	gone computedomain/d
	nothing_left
	end_controller
	[[ ! -e $BATS_TEST_TMPDIR/failed ]]
}
end_controller() {
	kill "$controller"
	wait "$controller" || true
	controller=''
}

setup() { ns_begin; }
teardown() {
	[[ -z ${controller:-} ]] || end_controller
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -20 "$BATS_TEST_TMPDIR/controller.log"
	ns_end
}

@test "the controller is killed before its requests while a domain forms and goes" {
	local n killed=0 every=0
	[[ -z ${EVERY_POINT:-} ]] || every=1
	for ((n = 1; ; n += 1 + (every ? 0 : n / 3))); do
		formed_and_gone "$n" sendto,sendmsg
		[[ -e $BATS_TEST_TMPDIR/killed ]] || break
		((++killed))
	done
	echo "# killed at $killed of $n requests" >&3
	((killed >= 8))
}
