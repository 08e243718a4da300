# SPDX-License-Identifier: Apache-2.0
# Shared by the commands of the test cluster. Source it, do not run it. It sets shell options for all of them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
state=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/compute-domains

# CD_KUBERNETES selects another minor version that has a module file here, such as 1.32. All of them share one
# main.go.
kubernetes_modules=$here/programs/kube/go.mod
[[ -z ${CD_KUBERNETES:-} || $CD_KUBERNETES == 1.37 ]] || kubernetes_modules=$here/programs/kube/v$CD_KUBERNETES.mod
kubernetes_version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\)$|\1|p' "$kubernetes_modules")
# newer MINOR: the cluster has Kubernetes 1.MINOR or newer.
newer() { [[ $kubernetes_version =~ ^v1\.([0-9]+)\. ]] && ((BASH_REMATCH[1] >= $1)); }
# Before dynamic resource allocation was generally available, a feature gate had to enable it.
dra_gate=()
newer 34 || dra_gate=(--feature-gates=DynamicResourceAllocation=true)
# CD_FEATURE_GATES: more feature gates for all Kubernetes programs, for a test that restarts them.
[[ -z ${CD_FEATURE_GATES:-} ]] || dra_gate+=(--feature-gates="$CD_FEATURE_GATES")
dra_versions=resource.k8s.io/v1beta1=true
! newer 33 || dra_versions+=,resource.k8s.io/v1beta2=true
helm_version=$(sed -n 's|^\thelm.sh/helm/v3 \(v[0-9.]*\) .*|\1|p' "$here/programs/kube/go.mod")
debian_suite=trixie

kube_bin=$cache/kubernetes-$kubernetes_version
helm_bin=$cache/helm-$helm_version
helm_alone_bin=$cache/helm-$helm_version-alone
debian_root=$cache/debian-$debian_suite
prometheus_root=$cache/prometheus-$debian_suite
# Debian's runc cannot run pods in a user namespace. For one version of Kubernetes, a newer containerd and runc are
# built. With CD_RUNTIME=debian this version has Debian's, too.
runtime_bin=
[[ ${CD_KUBERNETES:-} != 1.36 || ${CD_RUNTIME:-} == debian ]] || runtime_bin=$cache/runtime-$(cat "$here"/programs/{containerd,runc}/go.mod | sha256sum | cut -c1-12)
own_bin=$cache/own-$(cat "$here"/programs/{*.c,front/*} | sha256sum | cut -c1-12)
go_driver_bin=$cache/go-driver-$(cat "$here"/programs/go-driver/* | sha256sum | cut -c1-12)
go_gpu_bin=$cache/go-gpu-$(cat "$here"/programs/go-gpu/* | sha256sum | cut -c1-12)
# Operators of other projects, in the versions of programs/schemas: jobset, kueue, lws, mpi-operator.
declare -gA operator_module operator_bin
while read -r module version _; do
	[[ $module == '#'* ]] || { operator_module[${module##*/}]=$module@$version operator_bin[${module##*/}]=$cache/${module##*/}-$version; }
done <"$here/programs/schemas"
actionlint_bin=$cache/actionlint-$(sed -n 's|^\tgithub.com/rhysd/actionlint \(v[0-9.]*\) .*|\1|p' "$here/programs/actionlint/go.mod")
release_bin=$cache/release-$(sha256sum <"$here/programs/release/go.mod" | cut -c1-12)
krew_version=v0.4.3
krew_bin=$cache/krew-$krew_version
vale_version=$(sed -n 's|^\tgithub.com/vale-cli/vale/v3 \(v[0-9.]*\) .*|\1|p' "$here/programs/vale/go.mod")
vale_bin=$cache/vale-$vale_version
torch_image=$cache/torch-$debian_suite/torch.tar
scale_bin=$cache/scale-$(cat "$checkout"/test/scale/{*.go,go.mod} | sha256sum | cut -c1-12)
schemas=$cache/schemas-$(sha256sum <"$here/programs/schemas" | cut -c1-12)
export PATH=$kube_bin:$helm_bin:${runtime_bin:+$runtime_bin:}$debian_root/usr/bin:$prometheus_root/usr/bin:$own_bin:$go_driver_bin:$go_gpu_bin:$vale_bin:$PATH:/usr/sbin:/sbin

# The cluster's networks: one bridge for the nodes, a pod range for each node, and two service addresses on the
# machine. Pods reach the API server at its service address, through the front (programs/front). All other clients use
# server_address.
bridge=cd-test0
node_net=198.18.0
pod_net=198.19
api_address=10.96.0.1
dns_address=10.96.0.10
service_range=10.96.0.0/16
cgroup=/${state##*/}

export KUBECONFIG=$state/kubeconfig
# kubectl caches discovery by the server's address. All clusters share this address, but have different versions.
export KUBECACHEDIR=$state/kubectl-cache

say() { echo "cluster: $*" >&2; }
die() { echo "cluster: $*" >&2; exit 1; }

need_root() { ((EUID == 0)) || die "run as root: the cluster needs namespaces, mounts and cgroups"; }
need_cluster() { [[ -e $state/control/up ]] || die "no cluster is up (test/cluster/up N)"; }

# Two commands that create or remove a cluster at the same time would disturb each other. Programs that they start do
# not hold the lock.
lock_cluster() {
	mkdir -p "$cache"
	exec 8>"$cache/lock-${state##*/}"
	flock -n 8 || { say "another up or down is running; waiting for it"; flock 8; }
}
# with_machine CMD...: changes things that all clusters of the machine share, under a separate lock.
with_machine() {
	(
		flock 7
		"$@"
	) 7>"$cache/lock-machine"
}
# another_cluster: prints the folder of another cluster on this machine.
another_cluster() {
	local dir boot_id
	boot_id=$(</proc/sys/kernel/random/boot_id)
	for dir in "${state%/*}"/compute-domains-test*; do
		[[ $dir == "$state" || $(cat "$dir/boot-id" 2>/dev/null) != "$boot_id" ]] || { echo "$dir"; return; }
	done
	return 1
}

# After a restart of the machine, the processes and mounts no longer exist, and other processes may have the recorded
# IDs.
forget_last_boot() {
	local boot_id
	boot_id=$(</proc/sys/kernel/random/boot_id)
	[[ ! -d $state || $(cat "$state/boot-id" 2>/dev/null) == "$boot_id" ]] || rm -rf "$state"
}

node_name() { echo "node-$1"; }
node_ip() { echo "$node_net.$((10 + $1))"; }

# Prints the numbers of the nodes that exist.
nodes() {
	local dir
	for dir in "$state"/nodes/*/; do
		[[ -d $dir ]] && basename "$dir"
	done | sort -n
}

need_node() {
	[[ ${1:-} =~ ^[0-9]+$ && -d $state/nodes/$1 ]] || die "no node '${1:-}' (nodes: $(nodes | xargs))"
}

# enter_node K CMD...: replaces this process with a command in the namespaces of a node, in which all paths are the
# usual ones.
enter_node() {
	local k=$1
	shift
	exec nsenter --mount="$state/ns/mnt-$k" --uts="$state/ns/uts-$k" --net="/run/netns/$(netns_name "$k")" -- "$@"
}
in_node() { (enter_node "$@"); }

netns_name() { echo "${state##*/}-$1"; }

# ready TIMEOUT CMD...: repeats a quick local command until it succeeds. For what has no event to wait for.
ready() {
	local end=$((SECONDS + $1))
	shift
	until "$@" &>/dev/null; do
		((SECONDS < end)) || return 1
		read -rt 0.05 <> <(:) || true
	done
}

# A zombie counts as dead, because another process has to reap it.
alive() { [[ -r /proc/$1/status ]] && ! grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null; }
dead() { ! alive "$1"; }
running() { [[ -s $1 ]] && alive "$(<"$1")"; }

# spawn PIDFILE LOG CMD...: starts a daemon of the cluster and records its process ID.
spawn() {
	local pidfile=$1 log=$2
	shift 2
	(
		# bats waits until all copies of its file descriptors are closed.
		for fd in /proc/self/fd/*; do
			((${fd##*/} <= 2)) || eval "exec ${fd##*/}>&-"
		done
		exec setsid "$@" >>"$log" 2>&1 </dev/null
	) &
	echo $! >"$pidfile"
}

# stop PIDFILE [SIGNAL]: ends a recorded process and waits for its end, with SIGKILL after ten seconds.
stop() {
	local pidfile=$1 pid
	[[ -s $pidfile ]] || return 0
	pid=$(<"$pidfile")
	if alive "$pid"; then
		kill -CONT "$pid" 2>/dev/null || true
		kill -"${2:-TERM}" "$pid" 2>/dev/null || true
		ready 10 dead "$pid" || kill -KILL "$pid" 2>/dev/null || true
		ready 10 dead "$pid" || die "process $pid ($pidfile) does not end"
	fi
	rm -f "$pidfile"
}
