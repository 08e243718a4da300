#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Kubeflow's MPI operator runs, in the version that test/cluster/programs/schemas names. The image has no sshd and no
# mpirun: here sshd answers every connection with the channels of its pod, and mpirun queries each host of the
# operator's list.

load ../cluster/driver
load ../cluster/operators

names=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}/control/names

setup_file() {
	with_driver 4
	with_operator mpi-operator
}
teardown_file() {
	without_operator mpi-operator
	rm -f "$names"
}
setup() { ns_begin; }
teardown() {
	[[ -z ${ns:-} ]] || k -n "$ns" delete mpijobs --all --timeout=60s >/dev/null
	ns_end
}

workers=training.kubeflow.org/job-role=worker
# run_example [LAUNCHER]: applies the example. LAUNCHER is the launcher's command, if it is not mpirun.
run_example() {
	k -n "$ns" create configmap stand-ins --from-literal=sshd='#!/bin/sh
exec nc -ll -p 2222 -e /bin/ls /dev/nvidia-caps-imex-channels' --from-literal=mpirun='#!/bin/sh
for host in $(cut -d" " -f1 /etc/mpi/hostfile); do
	until nc -w 5 "$host" 2222 </dev/null; do usleep 200000; done
done' >/dev/null
	with_image <"$checkout/examples/nvbandwidth-mpijob.yaml" | k -n "$ns" create --dry-run=client -o json -f - | jq -s --argjson launcher "${1:-null}" '
		.[] | if .kind != "MPIJob" then . else .spec.mpiReplicaSpecs[].template.spec |= (
			.terminationGracePeriodSeconds = 0 |
			.volumes += [{name: "stand-ins", configMap: {name: "stand-ins", defaultMode: 493}}] |
			.containers[0].volumeMounts += [{name: "stand-ins", mountPath: "/usr/sbin/sshd", subPath: "sshd"},
				{name: "stand-ins", mountPath: "/usr/bin/mpirun", subPath: "mpirun"}]) |
			if $launcher then .spec.mpiReplicaSpecs.Launcher.template.spec.containers[0] += {command: $launcher, args: []} else . end end' |
		k -n "$ns" apply -f - >/dev/null
}
# name_workers: the names of the workers resolve. There is no DNS server for Services here.
name_workers() {
	k -n "$ns" get pods -l "$workers" -o json | jq -r --arg ns "$ns" '.items[] | "\(.spec.hostname).\(.spec.subdomain).\($ns).svc \(.status.podIP)"' >"$names"
}
job_is() { k -n "$ns" wait --for="condition=$1" mpijob/nvbandwidth --timeout=120s >/dev/null; }
worker_is_another() { [[ $(uid_of nvbandwidth-worker-2 2>/dev/null) != "$1" ]] && pods_run "$workers" 4; }

@test "the MPIJob of the example runs four workers with channels, and its launcher, without one, reaches all of them" {
	run_example
	eventually 120 pods_run "$workers" 4
	[[ $(nodes_of "$workers") == 4 ]]
	name_workers
	job_is Succeeded
	[[ $(k -n "$ns" logs --tail=-1 -l training.kubeflow.org/job-role=launcher | grep -cx channel0) == 4 ]]
}

# failure: a worker of an MPIJob is lost -> the operator recreates it with a channel
@test "a worker that was deleted is recreated with a channel of the same ComputeDomain, and the others keep theirs" {
	local old others
	run_example '["sleep", "1000000"]'
	eventually 120 pods_run "$workers" 4
	old=$(uid_of nvbandwidth-worker-2)
	others=$(uids_of "$workers" | grep -vx "$old")
	k -n "$ns" delete pod nvbandwidth-worker-2 >/dev/null
	eventually 120 worker_is_another "$old"
	all_have_channels "$workers"
	[[ $(uids_of "$workers" | grep -vx "$(uid_of nvbandwidth-worker-2)") == "$others" ]]
	eventually 60 condition_is nvbandwidth PeersConnected True
}
