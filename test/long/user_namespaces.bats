#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How runc handles the device of a channel, without Kubernetes. The machine's runc has no support for user namespaces
# of pods yet. test/cluster/driver_managed.bats has a test with a pod, for clusters with a container runtime that
# supports them.

load ../cluster/driver

setup_file() { with_driver 2; }
setup() { ns_begin; }
teardown() { ns_end; }

# run_with_edits CDI-FILE [userns]: prints the output of a container with these device nodes, which lists and opens
# channel 0.
run_with_edits() {
	local bundle nodes
	bundle=$(mktemp -d)
	mkdir -p "$bundle/rootfs/bin"
	cp "$(type -P busybox)" "$bundle/rootfs/bin/"
	cd "$bundle"
	runc spec
	nodes=$(grep -v '^#' "$1" | jq '[.devices[].containerEdits.deviceNodes[] | {path, type, major, minor: (.minor // 0), fileMode}]')
	jq --argjson nodes "$nodes" --arg userns "${2:-}" '
		.process.terminal = false |
		.process.args = ["/bin/busybox", "sh", "-c", "cd /dev/nvidia-caps-imex-channels; busybox ls; busybox cat channel0 2>&1; true"] |
		.process.env = ["PATH=/bin"] |
		.linux.devices = $nodes |
		.linux.resources.devices += [$nodes[] | {allow: true, type, major, minor, access: "rwm"}] |
		if $userns == "" then . else
			.linux.namespaces += [{type: "user"}] |
			.linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] |
			.linux.gidMappings = .linux.uidMappings
		end' config.json >new.json
	mv new.json config.json
	[[ -z ${2:-} ]] || chown -R 100000:100000 rootfs
	chmod -R a+rX "$bundle"
	runc run "edits-$$" </dev/null
	rm -rf "$bundle"
}

# failure: runc starts a container in a user namespace -> it may open its channel
@test "runc starts a container with the device edits of a channel, in a user namespace and without, and it may open the channel" {
	domain d
	worker w d 0
	running w
	local how answer file
	file=/var/run/cdi/k8s.compute-domain.nvidia.com-claim_$(claim_uid w).yaml
	for how in '' userns; do
		answer=$("$cluster/node" 0 bash -euc "$(declare -f run_with_edits); run_with_edits $file $how" 2>&1) || { echo "$answer"; return 1; }
		echo "$answer"
		# No driver has the simulated major number, and only a container that may open the device gets this error.
		[[ $answer == channel0$'\n'*"No such device or address"* ]]
	done
}
