#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every pod of the cluster can reach the open ports of the driver's programs. Here one pod attacks all of them at once
# (attack.py, in the network of a pod): no probe fails, each request from a node is answered, and no program has more
# than 2 MiB of private memory beyond what it had before the first attack.

load ../cluster/driver

# One ComputeDomain for all tests, so that the programs have the memory of a cluster in use. The programs are new,
# because memory that an attack once used may be kept for the next one.
setup_file() {
	with_driver 4
	k -n "$driver_ns" delete pods -l 'app in (compute-domain-controller, compute-domain-kubelet-plugin)' >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s >/dev/null
	export ns=t-open-ports
	k create namespace $ns >/dev/null
	domain d
	worker a d 0
	running a
	eventually 30 condition_is d Ready True
	k -n $ns run attacker --image=compute-domains/busybox:test --image-pull-policy=Never --restart=Never \
		--overrides='{"spec": {"nodeName": "node-3", "terminationGracePeriodSeconds": 0}}' -- sleep 1000000 >/dev/null
	running attacker
	programs >"$BATS_FILE_TMPDIR/programs"
	while read -r pod pid _; do echo "$pid $(private "$pid")"; done <"$BATS_FILE_TMPDIR/programs" >"$BATS_FILE_TMPDIR/idle"
}
teardown() { [[ -n ${BATS_TEST_COMPLETED:-} ]] || diagnose; }
teardown_file() {
	k -n "$ns" delete computedomains,pods --all --wait=false >/dev/null
	k delete namespace "$ns" --timeout=90s >/dev/null
	nothing_left
}

# programs: prints the processes to attack, one per line: pod, process ID, ports as the Pod declares them, and ports
# as attack.py expects them. The controller is the leader, which has the most work.
programs() {
	local pod pid
	for pod in "$(leader_pod)" "$(plugin_pod 0)"; do
		pid=$(pids_of_pod "$driver_ns" "$pod" 'compute-domain-[a-z-]*')
		k -n "$driver_ns" get pod "$pod" -o json | jq -r --arg pid "$pid" '.status.podIP as $ip |
			"\(.metadata.name) \($pid) \([.spec.containers[].ports[].containerPort] | sort | join(",")) \([.spec.containers[].ports[] |
			"\($ip):\(.containerPort)"] | join(" "))"'
	done
}
targets() { cut -d' ' -f4- "$BATS_FILE_TMPDIR/programs"; }

# private PID: prints the kB of memory that no other process shares.
private() { awk '/^Private_Dirty:/ { print $2 }' "/proc/$1/smaps_rollup"; }
# A sanitizer keeps memory that is freed, so its size is not meaningful.
sanitized() { grep -q libasan "/proc/$1/maps"; }
idle() { sed -n "s/^$1 //p" "$BATS_FILE_TMPDIR/idle"; }

# attack KIND SECONDS: attacks all targets.
attack() {
	# shellcheck disable=SC2046 # one word per target
	nsenter -t "$(pids_of_pod "$ns" attacker 'sleep 1000000')" -n python3 -B "$cluster/attack.py" "$1" "$2" $(targets) 3>&-
}

# withstood KIND: an attack of 12 s, which is longer than any request or answer may take.
withstood() {
	local kind=$1 before target attacker pod pid now
	local -A most
	before=$(probed)
	attack "$kind" 12 &
	attacker=$!
	while kill -0 $attacker 2>/dev/null; do
		for target in $(targets); do
			answer=$("$cluster/node" 0 python3 -B "$cluster/attack.py" ask "$target")
			[[ $answer == 200 ]] || { echo "$target answers $answer"; return 1; }
			while read -r pod pid _; do
				now=$(private "$pid")
				((now <= ${most[$pid]:-0})) || most[$pid]=$now
			done <"$BATS_FILE_TMPDIR/programs"
		done
	done
	wait $attacker
	diff <(echo "$before") <(probed)
	while read -r pod pid _; do
		echo "# $kind: $pod had $(idle "$pid") kB, now at most ${most[$pid]} kB" >&3
		sanitized "$pid" || ((most[$pid] <= $(idle "$pid") + 2048)) || return 1
	done <"$BATS_FILE_TMPDIR/programs"
}

# failure: a pod begins more than 128 requests -> probes pass, and memory stays bounded
@test "more than 128 requests that begin and never end: probes pass, and memory stays bounded" { withstood begun; }

# failure: a pod sends 16 MiB of unfinished requests -> probes pass, and memory stays bounded
@test "16 MiB of requests that never end: probes pass, and memory stays bounded" { withstood unfinished; }

# failure: a pod sends 4 MiB of unknown fields -> probes pass, and memory stays bounded
@test "4 MiB of unknown fields: probes pass, and memory stays bounded" { withstood unknown; }

# failure: a pod reads no answers -> probes pass, and memory stays bounded
@test "clients that read no answer: probes pass, and memory stays bounded" { withstood slow; }

# failure: a pod sends requests without end, and reads the answers -> claims are prepared and probes pass
@test "requests without end: a pod gets its channel, probes pass, and memory stays bounded" {
	local attacker
	k -n "$ns" delete pod a >/dev/null
	attack endless 60 &
	attacker=$!
	worker b d 0
	running b 55 # while the attack lasts
	kill -0 $attacker
	k -n "$ns" delete pod b
	wait $attacker
	withstood endless
}
