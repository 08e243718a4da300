# SPDX-License-Identifier: Apache-2.0
# A replacement for the MPI operator, as far as an MPIJob of this driver can see it: workers, a list of their hosts
# when all are ready, and then the launcher. The image has no sshd, no mpirun and no bash: here sshd answers every
# connection with the channels of its pod, and mpirun queries each host of the list.
# mpi_operator JOB [SECONDS]: creates the pods of an MPIJob in $ns. The workers must be ready within that time.
mpi_operator() {
	local job=$1
	k -n "$ns" create configmap stand-ins --from-literal=sshd='#!/bin/sh
exec nc -ll -p 2222 -e /bin/ls /dev/nvidia-caps-imex-channels' --from-literal=mpirun='#!/bin/sh
for host in $(cut -d" " -f1 /etc/mpi/hostfile); do nc -w 5 $host 2222 </dev/null || exit 1; done' --from-literal=bash='#!/bin/sh
exec /bin/sh "$@"' >/dev/null
	k -n "$ns" get mpijob "$job" -o json | mpi_pods Worker | k -n "$ns" apply -f - >/dev/null
	k -n "$ns" wait --for=condition=Ready pod -l training.kubeflow.org/job-role=worker --timeout="${2:-90}s" >/dev/null
	k -n "$ns" create configmap hosts --from-literal=hostfile="$(k -n "$ns" get pods -l training.kubeflow.org/job-role=worker -o json |
		jq -r '.items[] | "\(.status.podIP) slots=4"')" >/dev/null
	k -n "$ns" get mpijob "$job" -o json | mpi_pods Launcher | k -n "$ns" apply -f - >/dev/null
}
# mpi_pods ROLE: prints the pods of this role of the MPIJob on standard input. A worker without a command runs sshd,
# as with the operator.
mpi_pods() {
	jq --arg role "$1" '.metadata.name as $job | .spec.mpiReplicaSpecs[$role] | .template as $t | {apiVersion: "v1", kind: "List", items: [range(.replicas) |
		{apiVersion: "v1", kind: "Pod",
		metadata: {name: "\($job)-\($role | ascii_downcase)-\(.)", labels: (($t.metadata.labels // {}) + {"training.kubeflow.org/job-role": ($role | ascii_downcase)})},
		spec: ($t.spec + {restartPolicy: "Never", terminationGracePeriodSeconds: 0,
			volumes: (($t.spec.volumes // []) + [{name: "stand-ins", configMap: {name: "stand-ins", defaultMode: 493}}]
				+ if $role == "Launcher" then [{name: "hosts", configMap: {name: "hosts"}}] else [] end),
			containers: [$t.spec.containers[0] +
				(if $role == "Worker" and ($t.spec.containers[0].command == null) then {command: ["/usr/sbin/sshd", "-De"]} else {} end) +
				{volumeMounts: (($t.spec.containers[0].volumeMounts // []) + [
				{name: "stand-ins", mountPath: "/usr/sbin/sshd", subPath: "sshd"},
				{name: "stand-ins", mountPath: "/bin/bash", subPath: "bash"},
				{name: "stand-ins", mountPath: "/usr/bin/mpirun", subPath: "mpirun"}]
				+ if $role == "Launcher" then [{name: "hosts", mountPath: "/etc/mpi"}] else [] end)}]})}]}'
}
