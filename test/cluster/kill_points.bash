# SPDX-License-Identifier: Apache-2.0
# Helpers for tests that kill the plugin or the controller between any two of its steps. A .bats file loads this after
# driver.bash.

# ---- the plugin ----

dir=/run/kill-points
plugin_by_hand() { echo "$checkout/build/src/cd_plugin/compute-domain-kubelet-plugin" --node-name=node-0 --namespace="$driver_ns" \
	--nvidia-driver-root=/run/nvidia/driver --driver-root-ctr-path=/run/nvidia/driver --alt-proc-devices-path=/run/nvidia/driver/proc/devices "$@"; }

# start_by_hand ARGS...: starts a plugin that offers the node's devices, so that the scheduler finds them. It
# publishes no devices until a client in the kubelet's place has reported that it is registered.
start_by_hand() {
	"$cluster/node" 0 mkdir -p $dir/registry
	"$cluster/node" 0 $(plugin_by_hand --kubelet-plugins-directory-path=$dir/plugins --kubelet-registrar-directory-path=$dir/registry \
		--cdi-root=$dir/cdi "$@") >"$BATS_TEST_TMPDIR/plugin.log" 2>&1 3>&- &
	by_hand=$!
	eventually 30 "$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" $dir/registry/compute-domain.nvidia.com-reg.sock register >/dev/null
}
# The child process is the plugin itself: node and nsenter exec it.
stop_by_hand() {
	kill "$by_hand"
	wait "$by_hand"
}

# driver_elsewhere HELM ARGS...: installs the chart with plugins on all nodes except node-0. All claims on node-0 must
# be prepared or unprepared before: with_driver.
driver_elsewhere() {
	k label --overwrite nodes node-1 node-2 node-3 kill-points=elsewhere >/dev/null
	with_driver 4 --set kubeletPlugin.nodeSelector.kill-points=elsewhere "$@"
	gone_from_node_0() { [[ -z $(plugin_pod 0 2>/dev/null) ]]; }
	eventually 60 gone_from_node_0
}

# claim_of NAMESPACE DEVICE: prints "NAMESPACE NAME UID" of the claim that has this device of node-0.
claim_of() {
	k -n "$1" get resourceclaims -o json | jq -er --arg device "$2" \
		'[.items[] | select(.status.allocation.devices.results[0] | .pool == "node-0" and .device == $device)][0] // empty | .metadata | "\(.namespace) \(.name) \(.uid)"'
}
allocated() { claim_of "$@" >/dev/null 2>&1; }

# another_claim: creates a claim like the first one, with another UID. The scheduler never allocates one device to two
# claims.
another_claim() {
	local first
	first=$(k -n "$ns" get resourceclaim "$(cut -d' ' -f2 <<<"$CHANNEL")" -o json)
	jq '{apiVersion, kind, metadata: {name: "other"}, spec}' <<<"$first" | k -n "$ns" create -f - >/dev/null
	jq '{status: {allocation: .status.allocation}}' <<<"$first" | k -n "$ns" patch resourceclaim other --subresource=status --type=merge --patch-file=/dev/stdin >/dev/null
	echo "$ns other $(k -n "$ns" get resourceclaim other -o jsonpath='{.metadata.uid}')"
}

# points AT_LEAST SYSCALLS PLUGIN-ARGS...: kills the plugin at each of these system calls. Fails if there are fewer
# than AT_LEAST, because then the test watches the wrong ones.
points() {
	local least=$1 syscalls=$2 n
	shift 2
	n=$("$cluster/node" 0 env DIR=$dir/tried DRA_CALL="$checkout/build/test/kubelet/dra-call" \
		KILL_AT_LIB="$checkout/build/test/kubelet/libkill-at.so" CHANNEL="$CHANNEL" DAEMON="$DAEMON" DOMAIN="$DOMAIN" ASSIGNMENT="${ASSIGNMENT:-}" \
		STRIDE="$([[ -n ${EVERY_POINT:-} ]] && echo 1 || echo 3)" OTHER="${OTHER:-}" DAMAGE="${DAMAGE:-}" ID="${ID:-}" \
		"$checkout/test/kubelet/kill_points" "$syscalls" $(plugin_by_hand "$@"))
	echo "$syscalls: killed at $n points${OTHER:+, and given up}${DAMAGE:+, started after $DAMAGE}"
	((n >= least))
}

# ---- the controller ----

# live_with_one_kill N SYSCALLS: runs a controller as its Deployment would. It is killed before the Nth of these
# calls, and restarted, until this process gets SIGTERM. The file `killed` shows whether the kill happened.
live_with_one_kill() {
	local child status=0 ended='' plain
	mapfile -t plain < <(k -n "$driver_ns" get deployment compute-domains-controller -o json |
		jq -r '.spec.template.spec.containers[0].env[] | select(.value != null) | "\(.name)=\(.value)"')
	plain=(env "${plain[@]}" POD_NAME=by-hand NAMESPACE="$driver_ns" "$checkout/build/src/controller/compute-domain-controller"
		--kubeconfig="$BATS_TEST_TMPDIR/kubeconfig" --http-endpoint= -v 2)
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
	# A signal ended the wait, but not the child process.
	[[ -z $ended ]] || { status=0; wait "$child" || status=$?; }
	# The controller was killed after SIGTERM, before it could release its lease. The next one waits until the lease
	# expires.
	if [[ -n $ended ]] && ((status == 137)); then
		touch "$BATS_TEST_TMPDIR/killed"
		status=0
	fi
	((status == 0)) || echo "ended with $status" | tee "$BATS_TEST_TMPDIR/failed"
}

# channel_given DOMAIN-UID [NAME [MORE-CONFIG]]: allocates a channel of the ComputeDomain on node-0 to a claim of this
# name, as the scheduler would. So the driver creates what a pod needs, without the time that a pod takes.
channel_given() {
	local config
	config="{driver: compute-domain.nvidia.com, parameters: $(config "$1" ComputeDomainChannelConfig "${3:-}")}"
	k -n "$ns" create -f - >/dev/null <<-END
		apiVersion: resource.k8s.io/v1
		kind: ResourceClaim
		metadata: {name: ${2:-given}}
		spec:
		  devices:
		    requests: [{name: channel, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}]
		    config: [{requests: [channel], opaque: $config}]
	END
	k -n "$ns" patch resourceclaim "${2:-given}" --subresource=status --type=merge --patch-file=/dev/stdin >/dev/null <<-END
		status:
		  allocation:
		    devices:
		      results: [{request: channel, driver: compute-domain.nvidia.com, pool: node-0, device: channel-0}]
		      config: [{source: FromClaim, requests: [channel], opaque: $config}]
	END
}

# begin_controller N SYSCALLS: starts such a controller. end_controller: stops it; also used when a test ends.
begin_controller() {
	rm -f "$BATS_TEST_TMPDIR/killed"
	[[ -e $BATS_TEST_TMPDIR/kubeconfig ]] || controller_kubeconfig "$BATS_TEST_TMPDIR/kubeconfig"
	live_with_one_kill "$@" >>"$BATS_TEST_TMPDIR/controller.log" 2>&1 3>&- &
	controller=$!
}
end_controller() {
	[[ -n ${controller:-} ]] || return 0
	kill "$controller"
	wait "$controller" || true
	controller=''
	[[ ! -e $BATS_TEST_TMPDIR/failed ]]
}
# killed_at_each AT_LEAST DO: runs DO with a controller that is killed before its first request, then before the
# second, and so on, until DO ends without a kill. DO gets the number.
killed_at_each() {
	local n killed=0 every=0
	[[ -z ${EVERY_POINT:-} ]] || every=1
	for ((n = 1; ; n += 1 + (every ? 0 : n / 3))); do
		begin_controller "$n" sendto,sendmsg
		"$2" "$n"
		end_controller
		[[ -e $BATS_TEST_TMPDIR/killed ]] || break
		((++killed))
	done
	echo "# killed at $killed of $n requests" >&3
	((killed >= $1))
}
