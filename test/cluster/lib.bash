# SPDX-License-Identifier: Apache-2.0
# Shared by the commands of the test cluster; source it, do not run it. Shell options are set here for all of them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
state=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/compute-domains

# CD_KUBERNETES names another of the minor versions that there is a module file for (1.32); all of them share one main.go.
kubernetes_modules=$here/programs/kube/go.mod
[[ -z ${CD_KUBERNETES:-} || $CD_KUBERNETES == 1.37 ]] || kubernetes_modules=$here/programs/kube/v$CD_KUBERNETES.mod
kubernetes_version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\)$|\1|p' "$kubernetes_modules")
# newer MINOR: whether the cluster is of Kubernetes 1.MINOR or newer.
newer() { [[ $kubernetes_version =~ ^v1\.([0-9]+)\. ]] && ((BASH_REMATCH[1] >= $1)); }
# Dynamic resource allocation had to be asked for before it was finished.
dra_gate=()
newer 34 || dra_gate=(--feature-gates=DynamicResourceAllocation=true)
# CD_FEATURE_GATES: further gates of all programs of Kubernetes, for a test that restarts them.
[[ -z ${CD_FEATURE_GATES:-} ]] || dra_gate+=(--feature-gates="$CD_FEATURE_GATES")
dra_versions=resource.k8s.io/v1beta1=true
! newer 33 || dra_versions+=,resource.k8s.io/v1beta2=true
helm_version=v3.19.0
debian_suite=trixie

kube_bin=$cache/kubernetes-$kubernetes_version
helm_bin=$cache/helm-$helm_version
debian_root=$cache/debian-$debian_suite
prometheus_root=$cache/prometheus-$debian_suite
# Debian's runc runs no pod in a user namespace. One version of Kubernetes has a newer containerd and runc.
runtime_bin=
[[ ${CD_KUBERNETES:-} != 1.36 ]] || runtime_bin=$cache/runtime-$(cat "$here"/programs/{containerd,runc}/go.mod | sha256sum | cut -c1-12)
own_bin=$cache/own-$(cat "$here"/programs/{*.c,front/*,go-driver/*} | sha256sum | cut -c1-12)
go_gpu_bin=$cache/go-gpu-$(cat "$here"/programs/go-gpu/* | sha256sum | cut -c1-12)
kueue_version=$(sed -n 's|^sigs.k8s.io/kueue \(v[0-9.]*\) .*|\1|p' "$here/programs/schemas")
kueue_bin=$cache/kueue-$kueue_version
actionlint_bin=$cache/actionlint-$(sed -n 's|^\tgithub.com/rhysd/actionlint \(v[0-9.]*\) .*|\1|p' "$here/programs/actionlint/go.mod")
release_bin=$cache/release-$(sha256sum <"$here/programs/release/go.mod" | cut -c1-12)
vale_version=$(sed -n 's|^\tgithub.com/vale-cli/vale/v3 \(v[0-9.]*\) .*|\1|p' "$here/programs/vale/go.mod")
vale_bin=$cache/vale-$vale_version
torch_image=$cache/torch-$debian_suite/torch.tar
scale_bin=$cache/scale-$(cat "$checkout"/test/scale/{*.go,go.mod} | sha256sum | cut -c1-12)
schemas=$cache/schemas-$(sha256sum <"$here/programs/schemas" | cut -c1-12)
export PATH=$kube_bin:$helm_bin:${runtime_bin:+$runtime_bin:}$debian_root/usr/bin:$prometheus_root/usr/bin:$own_bin:$go_gpu_bin:$vale_bin:$PATH:/usr/sbin:/sbin

# The cluster's networks: nodes on one bridge, a pod range each, and two service addresses that the machine owns. The API server is to be
# found at its service address by way of the front (programs/front), which pods take, and at server_address by everybody else.
bridge=cd-test0
node_net=198.18.0
pod_net=198.19
api_address=10.96.0.1
dns_address=10.96.0.10
service_range=10.96.0.0/16
cgroup=/${state##*/}

export KUBECONFIG=$state/kubeconfig
# What kubectl has learned of a server it keeps by its address, which all clusters share, and they are of several versions.
export KUBECACHEDIR=$state/kubectl-cache

say() { echo "cluster: $*" >&2; }
die() { echo "cluster: $*" >&2; exit 1; }

need_root() { ((EUID == 0)) || die "run as root: the cluster needs namespaces, mounts and cgroups"; }
need_cluster() { [[ -e $state/control/up ]] || die "no cluster is up (test/cluster/up N)"; }

# Two commands that build or tear down at once would meet halfway. Programs that they start do not hold the lock.
lock_cluster() {
	mkdir -p "$cache"
	exec 8>"$cache/lock-${state##*/}"
	flock -n 8 || { say "another up or down is at work; waiting for it"; flock 8; }
}
# What all clusters of the machine share is changed under a lock of its own: with_machine CMD...
with_machine() {
	(
		flock 7
		"$@"
	) 7>"$cache/lock-machine"
}
# another_cluster: the folder of one that there is beside this one.
another_cluster() {
	local dir boot_id
	boot_id=$(</proc/sys/kernel/random/boot_id)
	for dir in "${state%/*}"/compute-domains-test*; do
		[[ $dir == "$state" || $(cat "$dir/boot-id" 2>/dev/null) != "$boot_id" ]] || { echo "$dir"; return; }
	done
	return 1
}

# After the machine has restarted, the processes and mounts are gone and their recorded ids are somebody else's.
forget_last_boot() {
	local boot_id
	boot_id=$(</proc/sys/kernel/random/boot_id)
	[[ ! -d $state || $(cat "$state/boot-id" 2>/dev/null) == "$boot_id" ]] || rm -rf "$state"
}

node_name() { echo "node-$1"; }
node_ip() { echo "$node_net.$((10 + $1))"; }

# The indices of the nodes that exist.
nodes() {
	local dir
	for dir in "$state"/nodes/*/; do
		[[ -d $dir ]] && basename "$dir"
	done | sort -n
}

need_node() {
	[[ ${1:-} =~ ^[0-9]+$ && -d $state/nodes/$1 ]] || die "no node '${1:-}' (there are: $(nodes | xargs))"
}

# enter_node K CMD...: become a command in the namespaces of a node, where all paths are the ordinary ones.
enter_node() {
	local k=$1
	shift
	exec nsenter --mount="$state/ns/mnt-$k" --uts="$state/ns/uts-$k" --net="/run/netns/$(netns_name "$k")" -- "$@"
}
in_node() { (enter_node "$@"); }

netns_name() { echo "${state##*/}-$1"; }

# ready TIMEOUT CMD...: repeat a cheap local question until it says yes. For what has no event to wait for.
ready() {
	local end=$((SECONDS + $1))
	shift
	until "$@" &>/dev/null; do
		((SECONDS < end)) || return 1
		read -rt 0.05 <> <(:) || true
	done
}

# A zombie is gone: who reaps it, and when, is not ours to know.
alive() { [[ -r /proc/$1/status ]] && ! grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null; }
dead() { ! alive "$1"; }
running() { [[ -s $1 ]] && alive "$(<"$1")"; }

# spawn PIDFILE LOG CMD...: start a daemon of the cluster and record its process id.
spawn() {
	local pidfile=$1 log=$2
	shift 2
	(
		# A test runner waits until nobody holds its descriptors any more.
		for fd in /proc/self/fd/*; do
			((${fd##*/} <= 2)) || eval "exec ${fd##*/}>&-"
		done
		exec setsid "$@" >>"$log" 2>&1 </dev/null
	) &
	echo $! >"$pidfile"
}

# stop PIDFILE [SIGNAL]: end a recorded process and wait until it is gone, by force after ten seconds.
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
