#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Manifests and values for the Go driver, its main branch or NVIDIA's own charts, on a cluster.

load ../cluster/driver
load ../cluster/gpus

setup_file() { with_gpus 2 --set-string resources.computeDomains.imex.config.IMEX_NODE_DISCONNECTED_GRACE_TIME=60; }
setup() { ns_begin; }
teardown() { ns_end; }

# imexd_config NODE: prints the configuration of the nvidia-imex of the ComputeDomain "d" there.
imexd_config() { cat "/proc/$(imex_pid "$1")/root/imexd/$(domain_uid d)/imexd.cfg"; }

# For values that the chart rejects see test/chart/values.bats.
@test "a setting of nvidia-imex is in its configuration once" {
	domain d
	worker w d 1
	running w 120 # a new fabric object waits for up to a minute after Nodes were deleted, here those of the file before
	[[ $(imexd_config 1 | grep '^IMEX_NODE_DISCONNECTED_GRACE_TIME=') == IMEX_NODE_DISCONNECTED_GRACE_TIME=60 ]]
}

@test "a channel requested as an extended resource is refused at once, and no channel is taken" {
	run k -n "$ns" create -f - <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: implicit}
		spec:
		  restartPolicy: Never
		  containers:
		  - name: main
		    image: compute-domains/busybox:test
		    command: [ls, /dev/nvidia-caps-imex-channels]
		    resources: {limits: {deviceclass.resource.kubernetes.io/compute-domain-default-channel.nvidia.com: "1"}}
	END
	[[ $status -ne 0 && $output == *"names no ComputeDomain"* ]]
}

@test "helm upgrade of a workload changes numNodes: it is accepted, and the status follows" {
	domain scaled 1
	worker w scaled 1
	running w
	eventually 60 domain_field_is scaled .status.status Ready
	domain scaled 2
	eventually 30 domain_field_is scaled .status.status NotReady
	domain scaled 1
	eventually 30 domain_field_is scaled .status.status Ready
}

# Since R615 there is firmware besides gsp*.bin.
@test "firmware of newer NVIDIA drivers is in the container" {
	local firmware
	firmware=/run/nvidia/driver/lib/firmware/nvidia/580.95.05
	"$cluster/node" 1 sh -c 'mkdir -p "$1"; : >"$1/gsp_ga10x.bin"; : >"$1/ucodes_gb20x.bin"' sh "$firmware"
	k -n "$driver_ns" delete pod "$(plugin_pod 1)" >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
	gpu_template one
	gpu_pod a '[{name: gpu, resourceClaimTemplateName: one}]' '' 1
	running a
	[[ $(k -n "$ns" exec a -- find /lib/firmware -name '*.bin' | sed 's|.*/||' | sort | xargs) == "gsp_ga10x.bin ucodes_gb20x.bin" ]]
	"$cluster/node" 1 rm -r "$firmware"
}
