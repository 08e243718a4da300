#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A node is shut down, and its kubelet ends the pods in the order of their priority (kubelet: shutdownGracePeriod).
# The kubelet is notified of the shutdown by logind, which logind.py simulates on a separate bus.

load ../cluster/driver

dir=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}/nodes/1
bus=$dir/dbus

start_logind() {
	mkdir -p "$bus"
	rm -f "$bus"/*
	cat >"$bus/bus.conf" <<-END
		<busconfig>
		  <listen>unix:path=$bus/socket</listen>
		  <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
		</busconfig>
	END
	dbus-daemon --config-file="$bus/bus.conf" --nofork >"$bus/log" 2>&1 3>&- &
	echo $! >"$bus/pids"
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$bus/socket
	eventually 10 test -S "$bus/socket"
	mkfifo "$bus/orders"
	/usr/bin/python3 "$BATS_TEST_DIRNAME/logind.py" <>"$bus/orders" >"$bus/events" 2>>"$bus/log" 3>&- &
	echo $! >>"$bus/pids"
	eventually 10 heard ready 1
}
stop_logind() {
	[[ ! -e $bus/pids ]] || kill $(<"$bus/pids") 2>/dev/null || true
	rm -rf "$bus"
}
# heard WORD N: the simulated logind has printed this word N times.
heard() { [[ $(grep -cx "$1" "$bus/events") -ge $2 ]]; }
order() { echo "$1" >"$bus/orders"; }

setup_file() {
	export CD_KUBELET_VERBOSITY=2
	with_driver 2
	start_logind
	printf '%s\n' 'shutdownGracePeriod: 60s' 'shutdownGracePeriodCriticalPods: 20s' >>"$dir/kubelet.yaml"
	"$cluster/kubelet" 1 restart
	eventually 30 heard inhibited 1
}
teardown_file() {
	sed -i '/^shutdownGracePeriod/d' "$dir/kubelet.yaml"
	unset DBUS_SYSTEM_BUS_ADDRESS
	"$cluster/kubelet" 1 restart
	stop_logind
	# Pods that the shutdown has ended and replaced exist for good.
	k -n "$driver_ns" delete pods --field-selector='status.phase!=Running,status.phase!=Pending' >/dev/null
}
setup() { ns_begin; }
teardown() { ns_end; }

# prepared: prints how many claims of workloads the plugin there has recorded. The daemon's Pod has the same priority
# as the plugin's, so its claim may stay until the next start. The daemon serves until the workload's claim is
# unprepared.
prepared() { "$cluster/node" 1 cat "$plugin_dir/checkpoint.json" | jq '[.v2.preparedClaims[]? | select(tostring | contains("\"channel-0\""))] | length'; }

# failure: a node is shut down gracefully -> the plugin unprepares the workload's claims before it ends
#   [rebooted]
@test "a node is rebooted by a graceful shutdown: the plugin unprepares the workload's claims before it ends, and the pods run after the next start" {
	domain d
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: work}
		spec:
		  replicas: 1
		  strategy: {type: Recreate}
		  selector: {matchLabels: {app: work}}
		  template:
		    metadata: {labels: {app: work}}
		    spec:
		      nodeSelector: {kubernetes.io/hostname: node-1}
		      resourceClaims: [{name: channel, resourceClaimTemplateName: d}]
		      containers:
		      - name: main
		        image: compute-domains/busybox:test
		        imagePullPolicy: Never
		        command: [sh, -c, 'trap "exit 0" TERM; sleep 1000000 & wait']
		        resources: {claims: [{name: channel}]}
	END
	k -n "$ns" rollout status deployment/work --timeout=90s >/dev/null
	[[ $(prepared) == 1 ]]
	local claim
	claim=$(k -n "$ns" get resourceclaims -o jsonpath='{.items[0].metadata.uid}')
	claim_file 1 "$claim"
	order shutdown
	eventually 90 heard released 1
	# All pods have ended, and the kubelet starts none in the meantime. So only the plugin that ended can have
	# unprepared the claim.
	[[ $(prepared) == 0 ]]
	no_claim_file 1 "$claim"
	order cancel # the node runs again
	eventually 30 heard inhibited 2
	k -n "$ns" rollout status deployment/work --timeout=180s >/dev/null
	eventually 60 domain_field_is d .status.status Ready
}
