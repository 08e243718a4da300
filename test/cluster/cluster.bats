#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The cluster itself: functions that the other tests rely on. These tests need no driver.

load driver

setup_file() { "$cluster/up" 4; }
setup() { ns_begin; }
teardown() {
	k delete namespace "$ns" --wait=false >/dev/null
}

# plain NAME NODE: an ordinary pod.
plain() {
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: $1}
		spec:
		  terminationGracePeriodSeconds: 0
		  nodeSelector: {kubernetes.io/hostname: node-$2}
		  containers:
		  - name: main
		    image: compute-domains/busybox:test
		    command: [sleep, "1000000"]
		    resources: {limits: {nvidia.com/gpu: 4}}
	END
}

@test "pods run on each node, with requests for GPUs, and reach one another and the API server" {
	plain a 0
	plain b 1
	running a
	running b
	k -n "$ns" exec a -- ping -c 1 -W 2 "$(k -n "$ns" get pod b -o jsonpath='{.status.podIP}')"
	k -n "$ns" exec b -- sh -c 'nc -w 2 10.96.0.1 443 </dev/null'
}

@test "DNS answers unknown names at once" {
	plain a 0
	running a
	run k -n "$ns" exec a -- sh -c 'begin=$(date +%s); nslookup absent.invalid; echo "took $(($(date +%s) - begin)) s"'
	# The resolver needs longer if it gets no answer.
	[[ $output == *NXDOMAIN* && $output =~ took\ ([0-9]+)\ s && ${BASH_REMATCH[1]} -lt 10 ]]
}

@test "the GPU driver of a node reports what the test sets, and that of another node does not" {
	"$cluster/gpu" 0 CLIQUE_ID=7 INIT_ERROR=9
	"$cluster/node" 0 grep -x CLIQUE_ID=7 /run/nvidia/driver/usr/lib64/libnvidia-ml.conf
	"$cluster/node" 1 grep -x CLIQUE_ID=1 /run/nvidia/driver/usr/lib64/libnvidia-ml.conf
	"$cluster/gpu" 0 CLIQUE_ID=1 INIT_ERROR=
	[[ $("$cluster/gpu" 0) == *CLIQUE_ID=1* && $("$cluster/gpu" 0) != *INIT_ERROR* ]]
	"$cluster/node" 0 grep nvidia-caps-imex-channels /run/nvidia/driver/proc/devices
}

@test "a kubelet and the API server can be stopped; pods continue, and the GPU capacity stays" {
	plain a 0
	running a
	"$cluster/kubelet" 0 kill
	"$cluster/apiserver" kill
	run k get nodes --request-timeout=2s
	[[ $status -ne 0 && $output == *refused* ]]
	"$cluster/apiserver" start
	"$cluster/kubelet" 0 start
	running a
	[[ $(k get node node-0 -o jsonpath='{.status.allocatable.nvidia\.com/gpu}') == 4 ]]
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

@test "a node without power returns with its pods ended" {
	plain a 1
	running a
	"$cluster/power" 1 off
	! "$cluster/node" 1 true || false
	"$cluster/power" 1 on
	restarted() { [[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') -ge 1 ]]; }
	eventually 60 restarted
	running a
}

@test "a node can be cut off the network" {
	"$cluster/link" 1 down
	"$cluster/node" 1 sh -c '! timeout 2 bash -c ">/dev/tcp/10.96.0.1/443"'
	"$cluster/link" 1 up
	# A neighbour request that began while the link was down may still have to fail.
	eventually 20 "$cluster/node" 1 timeout 5 bash -c '>/dev/tcp/10.96.0.1/443'
}

@test "the processes of a pod are those of this pod, and a pod that does not exist has none" {
	plain a 0
	plain b 1
	running a
	running b
	[[ $(pids_of_pod "$ns" a sleep | wc -l) == 1 && $(pids_of_pod "$ns" a sleep) != "$(pids_of_pod "$ns" b sleep)" ]]
	! pids_of_pod "$ns" missing sleep || false
	[[ -z $(pids_of_pod "$ns" missing sleep 2>/dev/null) ]]
}

@test "requests can be counted from the audit log" {
	local mark
	mark=$("$cluster/audit" mark)
	k -n "$ns" create configmap counted >/dev/null
	[[ $("$cluster/audit" "$mark" | grep -c "admin create configmaps $ns/counted 201") -eq 1 ]]
}
