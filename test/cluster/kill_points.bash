# SPDX-License-Identifier: Apache-2.0
# For tests that kill the plugin, or the controller, between any two of its steps; a .bats file loads it after driver.bash.

# ---- the plugin ----

dir=/run/kill-points
plugin_by_hand() { echo "$checkout/build/src/cd_plugin/compute-domain-kubelet-plugin" --node-name=node-0 --namespace="$driver_ns" \
	--nvidia-driver-root=/run/nvidia/driver --driver-root-ctr-path=/run/nvidia/driver --alt-proc-devices-path=/run/nvidia/driver/proc/devices "$@"; }

# start_by_hand ARGS...: so that the node offers its devices, and the scheduler finds them; it publishes none before somebody has told it, in the
# kubelet's place, that it is registered.
start_by_hand() {
	"$cluster/node" 0 mkdir -p $dir/registry
	"$cluster/node" 0 $(plugin_by_hand --kubelet-plugins-directory-path=$dir/plugins --kubelet-registrar-directory-path=$dir/registry \
		--cdi-root=$dir/cdi "$@") >"$BATS_TEST_TMPDIR/plugin.log" 2>&1 3>&- &
	by_hand=$!
	eventually 30 "$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" $dir/registry/compute-domain.nvidia.com-reg.sock register >/dev/null
}
# Our own child has the plugin in its place: node and nsenter exec it.
stop_by_hand() {
	kill "$by_hand"
	wait "$by_hand" || true
}

# driver_elsewhere HELM ARGS...: the chart, with plugins everywhere but on node-0. What its plugin has to prepare or unprepare there has to be
# done before: with_driver.
driver_elsewhere() {
	k label --overwrite nodes node-1 node-2 node-3 kill-points=elsewhere >/dev/null
	with_driver 4 --set kubeletPlugin.nodeSelector.kill-points=elsewhere "$@"
	gone_from_node_0() { [[ -z $(plugin_pod 0 2>/dev/null) ]]; }
	eventually 60 gone_from_node_0
}

# claim_of NAMESPACE DEVICE: "NAMESPACE NAME UID" of the claim that has this device of node-0.
claim_of() {
	k -n "$1" get resourceclaims -o json | jq -er --arg device "$2" \
		'[.items[] | select(.status.allocation.devices.results[0] | .pool == "node-0" and .device == $device)][0] // empty | .metadata | "\(.namespace) \(.name) \(.uid)"'
}
allocated() { claim_of "$@" >/dev/null 2>&1; }

# another_claim: as the first one is, but with a UID of its own; the scheduler gives a device to one only.
another_claim() {
	local first
	first=$(k -n "$ns" get resourceclaim "$(cut -d' ' -f2 <<<"$CHANNEL")" -o json)
	jq '{apiVersion, kind, metadata: {name: "other"}, spec}' <<<"$first" | k -n "$ns" create -f - >/dev/null
	jq '{status: {allocation: .status.allocation}}' <<<"$first" | k -n "$ns" patch resourceclaim other --subresource=status --type=merge --patch-file=/dev/stdin >/dev/null
	echo "$ns other $(k -n "$ns" get resourceclaim other -o jsonpath='{.metadata.uid}')"
}

# points AT_LEAST SYSCALLS PLUGIN-ARGS...: fails when there are fewer than so many calls, for then the test watches the wrong ones.
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

# live_with_one_kill N SYSCALLS: a controller as its Deployment would start it, killed before the Nth of its calls and then started again, until it
# is told to end. It is the file `killed` that says whether it came to that.
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
	# A signal ended the wait, not the child.
	[[ -z $ended ]] || { status=0; wait "$child" || status=$?; }
	# Told to end, and killed before it could give its lease up: the next one waits for that.
	if [[ -n $ended ]] && ((status == 137)); then
		touch "$BATS_TEST_TMPDIR/killed"
		status=0
	fi
	((status == 0)) || echo "ended with $status" | tee "$BATS_TEST_TMPDIR/failed"
}

# channel_given DOMAIN-UID [NAME [MORE-CONFIG]]: node-0 has a channel of the domain, as if the scheduler had given it one to a claim of that name:
# what a pod needs comes to be there, and no pod takes its time.
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

# begin_controller N SYSCALLS: such a controller is at work; end_controller, at the end of a test as well: it is not any more.
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
# killed_at_each AT_LEAST DO: does something with a controller that is killed before the first, second, third ... of its requests, until it comes to
# the end without. DO gets the number.
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
