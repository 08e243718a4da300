# SPDX-License-Identifier: Apache-2.0
# Helpers for tests with GPUs. A .bats file loads this after driver.bash.

gpu_image=compute-domains/glibc:test

# workload_image FOLDER: loads an image with a C library and a loader, as CUDA images have. Programs of the NVIDIA
# driver run in it if the loader finds their files.
workload_image() {
	local root=$1/glibc applet
	mkdir -p "$root"/{bin,etc,tmp,usr}
	cp "$(type -P busybox)" "$root/bin/busybox"
	for applet in $(busybox --list); do [[ $applet == busybox ]] || ln -sf busybox "$root/bin/$applet"; done
	echo root:x:0:0:root:/:/bin/sh >"$root/etc/passwd"
	ldd "${CD_STANDIN_DIR:-$checkout/build/test/standin}/nvidia-smi" | grep -o '/[^ ]*' | xargs cp --parents -Lt "$root"
	IMAGE_STOP_SIGNAL=SIGKILL "$checkout/scripts/mkimage" "$root" "$gpu_image" "$1/glibc.tar"
	"$cluster/image" "$1/glibc.tar"
}
# with_gpus N [HELM ARGS...]: installs the driver with GPUs on a cluster of N nodes, and loads this image.
with_gpus() {
	"$cluster/up" "$1"
	workload_image "$BATS_FILE_TMPDIR"
	install_gpus "$@"
}
# install_gpus N [HELM ARGS...]: the same on a cluster that already has the image.
install_gpus() {
	with_driver "$@" --set resources.gpus.enabled=true
	no_device_plugin
	eventually 60 slices_published "$1" gpu.nvidia.com
}

# The test sets the capacity for GPUs that a device plugin would set (test/cluster/nodes.bash), and removes it.
capacity() {
	local k
	for k in $(k get nodes -o name); do
		k patch "$k" --subresource=status --type=merge \
			-p "{\"status\":{\"capacity\":{\"nvidia.com/gpu\":$1},\"allocatable\":{\"nvidia.com/gpu\":$1}}}" >/dev/null
	done
}
device_plugin() { capacity '"4"'; }
no_device_plugin() { capacity null; }

# gpu_template NAME [DEVICES-YAML]: creates a claim template, by default for one GPU.
one_gpu='{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}'
gpu_template() {
	local version
	version=$(resource_version)
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.k8s.io/$version
kind: ResourceClaimTemplate
metadata: {name: $1}
spec: {spec: {devices: $(in_api_version "$version" "${2:-$one_gpu}")}}
END
}
gpu_claim() {
	local version
	version=$(resource_version)
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.k8s.io/$version
kind: ResourceClaim
metadata: {name: $1}
spec: {devices: $(in_api_version "$version" "${2:-$one_gpu}")}
END
}

# gpu_pod NAME CLAIMS-YAML [CONTAINERS-YAML [NODE]]: CLAIMS is the value of resourceClaims. By default the pod has one
# container with all of them.
gpu_pod() {
	local claims=$2 names containers
	names=$(grep -oE '\{name: [a-z0-9-]+' <<<"$claims" | sed 's/$/}/' | paste -sd,)
	containers=${3:-"[$(gpu_container main "[$names]")]"}
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  $([[ -z ${4:-} ]] || echo "nodeSelector: {kubernetes.io/hostname: node-$4}")
  resourceClaims: $claims
  containers: $containers
END
}
# gpu_container NAME CLAIMS: prints a container with these claims, such as [{name: gpu}].
gpu_container() { echo "{name: $1, image: $gpu_image, imagePullPolicy: Never, command: [sleep, \"1000000\"], resources: {claims: $2}}"; }

# gpus_in POD [CONTAINER]: prints the UUIDs of the GPUs that nvidia-smi shows there, one per line. migs_in: those of
# MIG devices.
smi_in() { k -n "$ns" exec "$1" ${2:+-c "$2"} -- nvidia-smi -L; }
gpus_in() { smi_in "$@" | grep -o 'GPU-[^)]*'; }
migs_in() { smi_in "$@" | grep -o 'MIG-[^)]*'; }
# nodes_in POD [CONTAINER]: prints the device nodes of GPUs there.
nodes_in() { k -n "$ns" exec "$1" ${2:+-c "$2"} -- sh -c 'ls /dev' | grep -xE 'nvidia[0-9]+' | sort | xargs; }
# given POD [CLAIM]: prints the devices in the status of the pod's claims, as nvidia0 for gpu-0.
given() {
	local claim
	for claim in $(k -n "$ns" get pod "$1" -o json | jq -r --arg name "${2:-}" \
		'.status.resourceClaimStatuses[]?, .status.extendedResourceClaimStatus // empty | select($name == "" or .name == $name) | .resourceClaimName'); do
		k -n "$ns" get resourceclaim "$claim" -o json | jq -r '.status.allocation.devices.results[] | select(.driver == "gpu.nvidia.com") | .device'
	done | sed 's/^gpu-/nvidia/' | sort | xargs
}
uuid_of() { k get resourceslices --field-selector "spec.driver=gpu.nvidia.com,spec.nodeName=node-$1" -o json | jq -r --arg d "$2" '.items[].spec.devices[] | select(.name == $d) | (.basic // .).attributes.uuid.string'; }

gpu_checkpoint() { "$cluster/node" "$1" cat "$gpu_plugin_dir/checkpoint.json"; }
gpu_files() { "$cluster/node" "$1" sh -c 'ls /var/run/cdi | grep gpu.nvidia.com-claim_ || true'; }
no_gpu_files() { prints_nothing gpu_files "$1"; }
gpu_plugin_pids() { pids_of_pod "$driver_ns" "$(plugin_pod "$1")" gpu-kubelet-plugin; }

# mig K GPU PROFILES: sets the MIG devices on a GPU of a node, as "1g@0 2g@2", with the kernel's files; "" for none.
mig() {
	local dir=/run/nvidia/driver/proc/driver/nvidia/capabilities/gpu$2/mig gi=0 profile
	"$cluster/node" "$1" rm -rf "$dir"
	for profile in $3; do
		gi=$((gi + 1))
		"$cluster/node" "$1" sh -c 'mkdir -p "$1/ci0"
			printf "DeviceFileMinor: %s\nDeviceFileMode: 292\nDeviceFileModify: 1\n" "$2" >"$1/access"
			printf "DeviceFileMinor: %s\nDeviceFileMode: 292\nDeviceFileModify: 1\n" "$(($2 + 1))" >"$1/ci0/access"' sh "$dir/gi$gi" $((1 + 64 * $2 + 8 * gi))
	done
	"$cluster/gpu" "$1" "GPU$2_MIG=$3"
}
offers() { k get resourceslices --field-selector "spec.driver=gpu.nvidia.com,spec.nodeName=node-$1" -o jsonpath='{.items[*].spec.devices[*].name}'; }
offers_n() { [[ $(offers "$1" | wc -w) -eq $2 ]]; }
