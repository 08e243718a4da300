# SPDX-License-Identifier: Apache-2.0
# The nodes: namespaces, containerd, kubelet, and the folder that simulates the GPU driver's root. Sourced after
# control.bash.
#
# A node is a network, a mount and a UTS namespace. Its own folders are mounted over the usual paths, so the kubelet,
# containerd and the hostPaths of pods work as on a separate machine.

# Folders of the node and the paths that they are mounted on.
node_mounts=(
	kubelet:/var/lib/kubelet
	containerd:/var/lib/containerd
	cni:/var/lib/cni
	pods:/var/log/pods
	containers:/var/log/containers
	run:/run
	channels:/dev/nvidia-caps-imex-channels
)

cluster_uuid=6f1c3c0e-8d0b-4c5c-9b59-0a1f3c5d7e90
devices_major_channels=240
devices_major_caps=241
driver_version=580.95.05

# The hierarchies that contain processes: all of cgroup v1, or the one of v2.
cgroup_roots() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo /sys/fs/cgroup
	else
		awk '$3 ~ "^cgroup" { print $2 }' /proc/mounts
	fi
}

# The hierarchy that lists all processes of a node.
cgroup_of_processes() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo "/sys/fs/cgroup$cgroup"
	else
		echo "/sys/fs/cgroup/systemd$cgroup"
	fi
}

# A controller that is not available here is ignored. The kubelet reports it.
enable_controllers() {
	local controller
	for controller in $(<"$1/cgroup.controllers"); do
		{ echo "+$controller" >"$1/cgroup.subtree_control"; } 2>/dev/null || true
	done
}

make_cgroup() {
	local k=$1 root dir
	[[ ! -e /sys/fs/cgroup/cgroup.controllers ]] || enable_controllers /sys/fs/cgroup
	for root in $(cgroup_roots); do
		for dir in "$root$cgroup" "$root$cgroup/node-$k" "$root$cgroup/node-$k/system"; do
			mkdir -p "$dir"
			if [[ -e $dir/cpuset.cpus && ! -s $dir/cgroup.procs && -z $(<"$dir/cpuset.cpus") ]]; then
				cat "$dir/../cpuset.cpus" >"$dir/cpuset.cpus"
				cat "$dir/../cpuset.mems" >"$dir/cpuset.mems"
			fi
			if [[ -e $dir/cgroup.subtree_control && $dir != */system ]]; then
				enable_controllers "$dir"
			fi
		done
	done
}

# Ends every process of a node's containers and services, then removes the cgroups.
drop_cgroup() {
	local k=$1 top=$(cgroup_of_processes)/node-$1 root pids
	if [[ -d $top ]]; then
		while pids=$(find "$top" -name cgroup.procs -exec cat {} + | grep -v '^0$'); do
			# shellcheck disable=SC2086 # one word per process
			kill -KILL $pids 2>/dev/null || true
			ready 1 dead "${pids%%$'\n'*}" || true
		done
	fi
	for root in $(cgroup_roots); do
		[[ ! -d $root$cgroup/node-$k ]] || find "$root$cgroup/node-$k" -depth -type d -exec rmdir {} +
	done
}

make_netns() {
	local k=$1 ns
	ns=$(netns_name "$k")
	[[ -e /run/netns/$ns ]] && return
	ip netns add "$ns"
	ip link add "cdt-$k" type veth peer name eth0 netns "$ns"
	ip link set "cdt-$k" master "$bridge" up
	ip -n "$ns" link set lo up
	ip -n "$ns" addr add "$(node_ip "$k")/24" dev eth0
	ip -n "$ns" link set eth0 up
	ip -n "$ns" route add default via "$node_net.1"
	ip netns exec "$ns" sysctl -qw net.ipv4.ip_forward=1
	ip route replace "$pod_net.$k.0/24" via "$(node_ip "$k")" dev "$bridge"
}

# Folders that the machine itself does not have. `down` removes them.
make_mountpoints() {
	local pair
	for pair in "${node_mounts[@]}"; do
		[[ ! -d ${pair#*:} ]] || continue
		mkdir -p "${pair#*:}"
		echo "${pair#*:}" >>"$state/mountpoints"
	done
}

make_mounts() {
	local k=$1 dir=$state/nodes/$1 pair
	[[ -e $state/ns/mnt-$k ]] && mountpoint -q "$state/ns/mnt-$k" && return
	touch "$state/ns/mnt-$k" "$state/ns/uts-$k"
	mkdir -p "$dir"/{etc,etc-work}
	for pair in "${node_mounts[@]}"; do
		mkdir -p "$dir/${pair%%:*}"
	done
	# The kernel refuses to mount /proc in a user namespace if files of every other /proc are hidden by mounts, as
	# below.
	mkdir -p "$dir/proc"
	# The node has its own boot ID, which its kubelet and its containers (write_boot_hook) report.
	cat /proc/sys/kernel/random/uuid >"$dir/boot-id"
	# Containers that use mount propagation need shared mounts, which must not propagate to the machine itself.
	unshare --mount="$state/ns/mnt-$k" --uts="$state/ns/uts-$k" --propagation private bash -euc '
		name=$1 dir=$2
		shift 2
		hostname "$name"
		for pair; do mount --bind "$dir/${pair%%:*}" "${pair#*:}"; done
		mount -t proc proc "$dir/proc"
		mount --bind "$dir/boot-id" /proc/sys/kernel/random/boot_id
		mount -t overlay overlay -o "lowerdir=/etc,upperdir=$dir/etc,workdir=$dir/etc-work" /etc
		mkdir -p /etc/cdi /etc/cni/net.d
		mount --make-rshared /
	' make_mounts "$(node_name "$k")" "$dir" "${node_mounts[@]}"
}

# What a GPU driver installs on a host, as far as the drivers under test look at it.
make_driver_root() {
	local k=$1 root=$state/nodes/$1/run/nvidia/driver standin=${CD_STANDIN_DIR:-$checkout/build/test/standin} file
	mkdir -p "$root"/{dev,usr/bin,usr/lib64,proc/driver/nvidia/capabilities}
	ln -sfn run/nvidia/driver "$state/nodes/$k/driver"
	for file in nvidia-imex nvidia-imex-ctl nvidia-smi; do
		[[ ! -e $standin/$file ]] || cmp -s "$standin/$file" "$root/usr/bin/$file" ||
			install -m 755 "$standin/$file" "$root/usr/bin/$file"
	done
	for file in libnvidia-ml libcuda; do
		[[ -e $standin/$file.so.1 ]] || continue
		cmp -s "$standin/$file.so.1" "$root/usr/lib64/$file.so.$driver_version" ||
			install -m 755 "$standin/$file.so.1" "$root/usr/lib64/$file.so.$driver_version"
		ln -sfn "$file.so.$driver_version" "$root/usr/lib64/$file.so.1"
	done
	[[ -e $root/usr/lib64/libnvidia-ml.conf ]] || cat >"$root/usr/lib64/libnvidia-ml.conf" <<-EOF
		NODE=$(node_name "$k")
		DRIVER_VERSION=$driver_version
		GPU_COUNT=4
		GPU_NAME="NVIDIA GB200"
		CLUSTER_UUID=$cluster_uuid
		CLIQUE_ID=1
		FABRIC_STATE=3
		FABRIC_STATUS=0
	EOF
	# Containers have the library, but not its configuration file.
	if [[ -e $standin/standin-knob && -e $root/usr/lib64/libnvidia-ml.so.1 ]]; then
		mapfile -t file <"$root/usr/lib64/libnvidia-ml.conf"
		"$standin/standin-knob" "$root/usr/lib64/libnvidia-ml.so.1" "${file[@]}" >/dev/null
	fi
	[[ -e $root/proc/devices ]] || cat >"$root/proc/devices" <<-EOF
		Character devices:
		  1 mem
		195 nvidia
		195 nvidiactl
		$devices_major_channels nvidia-caps-imex-channels
		$devices_major_caps nvidia-caps
		235 nvidia-uvm

		Block devices:
		254 virtblk
	EOF
	[[ -e $root/proc/driver/nvidia/capabilities/fabric-imex-mgmt ]] ||
		printf 'DeviceFileMinor: 512\nDeviceFileMode: 438\nDeviceFileModify: 1\n' \
			>"$root/proc/driver/nvidia/capabilities/fabric-imex-mgmt"
	make_gpus "$root"
}

# What the kernel shows for four GPUs, two at each PCIe root and NUMA node: device nodes, and entries in sysfs.
make_gpus() {
	local root=$1 i domain pcie
	mkdir -p "$root"/sys/{bus/pci/devices,module/nvidia}
	echo "$driver_version" >"$root/sys/module/nvidia/version"
	for i in 0 1 2 3; do
		[[ -e $root/dev/nvidia$i ]] || mknod -m 666 "$root/dev/nvidia$i" c 195 "$i"
		printf -v domain '%04x' $((8 + i))
		printf -v pcie 'pci%04x:00' $((8 + i / 2 * 2))
		mkdir -p "$root/sys/devices/$pcie/$domain:01:00.0"
		echo 0x10de >"$root/sys/devices/$pcie/$domain:01:00.0/vendor"
		echo 0x030200 >"$root/sys/devices/$pcie/$domain:01:00.0/class"
		echo $((i / 2)) >"$root/sys/devices/$pcie/$domain:01:00.0/numa_node"
		ln -sfn "../../../devices/$pcie/$domain:01:00.0" "$root/sys/bus/pci/devices/$domain:01:00.0"
	done
	[[ -e $root/dev/nvidiactl ]] || mknod -m 666 "$root/dev/nvidiactl" c 195 255
	[[ -e $root/dev/nvidia-uvm ]] || mknod -m 666 "$root/dev/nvidia-uvm" c 235 0
}

# Containers have their own /proc, with the machine's boot ID. A hook mounts the node's boot ID over it, where the
# container may mount.
write_boot_hook() {
	local dir=$1
	cat >"$dir/boot-hook" <<-EOF
		#!/bin/sh
		bundle=\$(sed 's/.*"bundle":"\([^"]*\)".*/\1/')
		mount --bind "$dir/boot-id" "\$bundle/rootfs/proc/sys/kernel/random/boot_id" || true
	EOF
	chmod +x "$dir/boot-hook"
	ctr oci spec | jq -c --arg hook "$dir/boot-hook" '.hooks = {createContainer: [{path: $hook}]}' >"$dir/base-spec.json"
}

write_node_config() {
	local k=$1 dir=$state/nodes/$1
	mkdir -p "$dir/etc/cni/net.d" "$dir/etc/containerd"
	cat >"$dir/etc/cni/net.d/10-bridge.conflist" <<-EOF
		{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
		  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
		  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pod_net.$k.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
		}]}
	EOF
	# To lower an OOM score needs a privilege that containers and small virtual machines often lack.
	cat >"$dir/etc/containerd/config.toml" <<-EOF
		version = 2
		disabled_plugins = [
		  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs",
		  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt",
		  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp", "io.containerd.nri.v1.nri",
		]
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "compute-domains/pause:test"
		  restrict_oom_score_adj = true
		  disable_apparmor = true
		  enable_cdi = true
		  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "$debian_root/usr/lib/cni"
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    base_runtime_spec = "$dir/base-spec.json"
	EOF
	write_boot_hook "$dir"
	cat >"$dir/kubelet.yaml" <<-EOF
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication:
		  anonymous: {enabled: false}
		  x509: {clientCAFile: $pki/ca.crt}
		cgroupDriver: cgroupfs
		cgroupRoot: $cgroup/node-$k
		cgroupsPerQOS: true
		clusterDNS: [$dns_address]
		clusterDomain: cluster.local
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		enforceNodeAllocatable: []
		evictionHard: {imagefs.available: 0%, memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%}
		failCgroupV1: false
		failSwapOn: false
		imageGCHighThresholdPercent: 100
		localStorageCapacityIsolation: false
		makeIPTablesUtilChains: false
		oomScoreAdj: 0
		resolvConf: ""
	EOF
	cert "kubelet-$k" "/O=system:nodes/CN=system:node:$(node_name "$k")"
	client_config "kubelet-$k" "$dir/kubelet.kubeconfig"
}

# spawn_on K PIDFILE LOG CMD...: starts a daemon in the node's namespaces and in its cgroup.
spawn_on() {
	local k=$1 pidfile=$2 log=$3 procs=$(cgroup_of_processes)/node-$1/system/cgroup.procs
	shift 3
	# shellcheck disable=SC2016 # expanded by the inner shell
	spawn "$pidfile" "$log" bash -c 'echo $$ >"$1"; shift; exec "$@"' spawn_on "$procs" \
		nsenter --mount="$state/ns/mnt-$k" --uts="$state/ns/uts-$k" --net="/run/netns/$(netns_name "$k")" -- "$@"
}

start_containerd() {
	local k=$1 dir=$state/nodes/$1
	rm -f "$dir/run/containerd/containerd.sock"
	spawn_on "$k" "$dir/containerd.pid" "$dir/containerd.log" containerd --config /etc/containerd/config.toml --log-level warn
	ready 30 in_node "$k" ctr version || { tail -5 "$dir/containerd.log" >&2; die "containerd of node $k does not answer"; }
}

start_kubelet() {
	local k=$1 dir=$state/nodes/$1
	spawn_on "$k" "$dir/kubelet.pid" "$dir/kubelet.log" kubelet --v="${CD_KUBELET_VERBOSITY:-1}" --config="$dir/kubelet.yaml" \
		--kubeconfig="$dir/kubelet.kubeconfig" --hostname-override="$(node_name "$k")" --node-ip="$(node_ip "$k")" \
		--node-labels=nvidia.com/gpu.present=true "${dra_gate[@]}"
}

kubelet_serves() {
	ready 60 in_node "$1" curl -sf --max-time 2 http://127.0.0.1:10248/healthz || die "kubelet of node $1 does not answer"
	# The Node may have been deleted. Its kubelet recreates it.
	kubectl wait --for=create "node/$(node_name "$1")" --timeout=60s >/dev/null
	kubectl wait --for=condition=Ready "node/$(node_name "$1")" --timeout=60s >/dev/null
}

# There is no GPU device plugin here, so this function sets the GPU capacity of the Nodes. The kubelets keep it in
# their status.
advertise_gpus() {
	local node
	for node; do kubectl wait --for=create "$node" --timeout=120s >/dev/null; done
	kubectl patch "$@" --subresource=status --type=merge \
		-p '{"status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"}}}' >/dev/null
}

# Loaded images are recorded by content, because loading takes time even if all layers exist.
image_note() { echo "$state/nodes/$1/images/$(stat -c %Y-%s "$2")-$(basename "$2")"; }
has_image() { [[ -e $(image_note "$@") ]]; }
load_image() {
	in_node "$1" ctr -n k8s.io images import "$2" >/dev/null
	mkdir -p "$state/nodes/$1/images"
	touch "$(image_note "$@")"
}

node_up() {
	node_prepare "$1"
	kubelet_up "$1"
}

# node_prepare K: everything except the kubelet, which needs the API server.
node_prepare() {
	local k=$1 dir=$state/nodes/$1 image
	mkdir -p "$dir"
	make_cgroup "$k"
	make_netns "$k"
	write_node_config "$k"
	make_mounts "$k"
	make_driver_root "$k"
	if ! running "$dir/containerd.pid"; then
		start_containerd "$k"
		for image in "$state"/images/*.tar; do has_image "$k" "$image" || load_image "$k" "$image"; done
	fi
}
kubelet_up() { running "$state/nodes/$1/kubelet.pid" || start_kubelet "$1"; }

# What is left of a node after a power cut: its disk. The driver's root is in /run, but exists after every boot.
node_off() {
	local k=$1 dir=$state/nodes/$1 ns kind
	ns=$(netns_name "$k")
	stop "$dir/kubelet.pid" KILL
	stop "$dir/containerd.pid" KILL
	drop_cgroup "$k"
	rm -f "$dir/host-imex.pid" # another process may have this ID when the service is started again
	for kind in mnt uts; do
		! mountpoint -q "$state/ns/$kind-$k" || umount "$state/ns/$kind-$k"
		rm -f "$state/ns/$kind-$k"
	done
	[[ ! -e /run/netns/$ns ]] || ip netns del "$ns"
	# It is deleted with the namespace, but not at once.
	ip link del "cdt-$k" 2>/dev/null || true
	find "$dir/run" -mindepth 1 -maxdepth 1 ! -name nvidia -exec rm -rf {} +
	rm -rf "$dir/channels"
}

node_down() {
	node_off "$1"
	rm -rf "$state/nodes/$1"
}
