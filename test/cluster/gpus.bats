#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GPUs through claims, on a cluster: features that users of the Go driver rely on, and failures that must not happen.
# The NVIDIA driver is simulated. A program in the container checks what the container sees of it; its loader must
# find the library.

bats_require_minimum_version 1.5.0
load driver
load gpus

setup_file() { with_gpus 4; }
teardown_file() {
	local k
	device_plugin
	# Files that a test may leave when it fails halfway.
	"$cluster/node" 0 rm -f "$events"
	for k in 0 1; do mig $k 3 ''; done
	"$cluster/gpu" 2 GPU1_FAIL_nvmlDeviceGetHandleByIndex=
}
setup() { ns_begin; }
teardown() { ns_end; }

# The error events that NVML reports for the GPUs of a node.
events=/run/nvidia/driver/usr/lib64/libnvidia-ml.events

claim_of_template='[{name: gpu, resourceClaimTemplateName: %s}]'
# with TEMPLATE: prints a pod's only claim.
with() { printf "$claim_of_template" "$1"; }

# failure: the GPU plugin is installed -> each node has the Go driver's devices and attributes
@test "install: one slice per node, one device per GPU, with the attributes that users select" {
	local keys='["addressingMode","architecture","brand","cudaComputeCapability","cudaDriverVersion","driverVersion","productName",
		"resource.kubernetes.io/numaNode","resource.kubernetes.io/pciBusID","resource.kubernetes.io/pcieRoot","type","uuid"]'
	k get resourceslices --field-selector spec.driver=gpu.nvidia.com -o json >"$BATS_TEST_TMPDIR/slices.json"
	jq -e --argjson keys "$keys" '.items | length == 4 and all(.spec.devices | length == 4 and all(.attributes | keys == $keys))' "$BATS_TEST_TMPDIR/slices.json"
	jq -e '[.items[].spec.devices[].attributes.uuid.string] | length == (unique | length)' "$BATS_TEST_TMPDIR/slices.json"
	jq -e 'all(.items[]; [.spec.devices[].name] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"])' "$BATS_TEST_TMPDIR/slices.json"
	k get deviceclass gpu.nvidia.com mig.nvidia.com
	[[ $(k get deviceclass gpu.nvidia.com -o jsonpath='{.spec.extendedResourceName}') == nvidia.com/gpu ]]
}

# failure: a pod gets one GPU -> it has exactly this GPU and the driver's libraries
# bats test_tags=matrix
@test "one GPU in a pod: it has only this device node, the loader finds the driver's libraries, and nvidia-smi lists only this GPU" {
	gpu_template one
	gpu_pod a "$(with one)"
	running a
	[[ $(nodes_in a) == "$(given a)" && $(given a) == nvidia? ]]
	local node
	node=$(k -n "$ns" get pod a -o jsonpath='{.spec.nodeName}')
	[[ $(gpus_in a) == "$(uuid_of "${node#node-}" "gpu-$(given a | tr -dc 0-9)")" ]]
	k -n "$ns" exec a -- sh -c 'test -c /dev/nvidiactl && test -c /dev/nvidia-uvm && test -x /usr/bin/nvidia-smi'
	[[ $(k -n "$ns" exec a -- readlink /usr/lib64/libcuda.so.1) == libcuda.so.580.95.05 ]]
	[[ $(k -n "$ns" exec a -- cat /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf) == *"DGPUDevices\",$(printf 0x%x $((1 << $(given a | tr -dc 0-9))))]"* ]]
	[[ $(k -n "$ns" exec a -- sh -c 'echo $NVIDIA_VISIBLE_DEVICES') == void ]]
	# No other pod gets any of it.
	k -n "$ns" run plain --image="$gpu_image" --image-pull-policy=Never --restart=Never --grace-period=0 --command -- sleep 1000000 >/dev/null
	running plain
	has_not plain /dev/nvidiactl
	has_not plain /usr/bin/nvidia-smi
}

# failure: two pods use a template or one claim -> they have different GPUs, or the same
# bats test_tags=matrix
@test "two pods with a claim template have different GPUs; two pods with one named claim have the same GPU, and so have two containers of a pod" {
	gpu_template one
	gpu_claim shared
	gpu_pod a "$(with one)"
	gpu_pod b "$(with one)"
	gpu_pod c '[{name: gpu, resourceClaimName: shared}]'
	gpu_pod d '[{name: gpu, resourceClaimName: shared}]' "[$(gpu_container one '[{name: gpu}]'), $(gpu_container two '[{name: gpu}]'), $(gpu_container none '[]')]"
	local pod
	for pod in a b c d; do running $pod; done
	[[ $(gpus_in a) != "$(gpus_in b)" && $(gpus_in c) != "$(gpus_in a)" && $(gpus_in c) != "$(gpus_in b)" ]]
	[[ $(gpus_in c) == "$(gpus_in d one)" && $(gpus_in c) == "$(gpus_in d two)" ]]
	[[ -z $(nodes_in d none) ]]
	# The claim stays prepared until its last pod has ended.
	k -n "$ns" delete pod c
	[[ $(gpus_in d one) ]]
	local node
	node=$(k -n "$ns" get pod d -o jsonpath='{.spec.nodeName}')
	gpu_files "${node#node-}" | grep -q "$(k -n "$ns" get resourceclaim shared -o jsonpath='{.metadata.uid}')"
}

# failure: matchAttribute cannot be fulfilled -> the pod stays Pending
@test "matchAttribute: two GPUs at one PCIe root, and a GPU on the NUMA node of another; three GPUs at one root do not exist" {
	gpu_template two '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}], constraints: [{requests: [gpu], matchAttribute: resource.kubernetes.io/pcieRoot}]}'
	gpu_template three '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 3}}], constraints: [{requests: [gpu], matchAttribute: resource.kubernetes.io/pcieRoot}]}'
	# Without the constraint, "any" would be the first GPU.
	gpu_template numa '{requests: [{name: any, exactly: {deviceClassName: gpu.nvidia.com}}, {name: third, exactly: {deviceClassName: gpu.nvidia.com,
		selectors: [{cel: {expression: "device.attributes[\"resource.kubernetes.io\"].pciBusID == \"000a:01:00.0\""}}]}}],
		constraints: [{requests: [any, third], matchAttribute: resource.kubernetes.io/numaNode}]}'
	gpu_pod a "$(with two)" '' 0
	gpu_pod b "$(with three)"
	gpu_pod c "$(with numa)" '' 1
	running a
	running c
	[[ $(gpus_in a | wc -l) == 2 && $(nodes_in a) == "$(given a)" ]]
	[[ $(given a) == "nvidia0 nvidia1" || $(given a) == "nvidia2 nvidia3" ]]
	[[ $(given c) == "nvidia2 nvidia3" && $(nodes_in c) == "$(given c)" ]]
	eventually 30 event_contains Pod/b 'cannot allocate all claims'
	[[ -z $(given b) ]]
}

# failure: no MIG device is free for firstAvailable -> the pod gets a whole GPU
# bats test_tags=matrix
@test "firstAvailable: a pod that prefers a MIG device gets a whole GPU if there is none, under the name of the request" {
	since 34 "firstAvailable is behind a gate before 1.34"
	# The configuration of one alternative does not apply to the other.
	gpu_template either '{requests: [{name: gpu, firstAvailable: [{name: part, deviceClassName: mig.nvidia.com}, {name: whole, deviceClassName: gpu.nvidia.com}]}], config: [
		{requests: [gpu/part], opaque: {driver: gpu.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: MigDeviceConfig}}},
		{requests: [gpu/whole], opaque: {driver: gpu.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: GpuConfig}}}]}'
	gpu_pod a "$(with either)" "[$(gpu_container main '[{name: gpu, request: gpu}]')]"
	running a
	[[ $(given a) == nvidia? && $(nodes_in a) == "$(given a)" && $(gpus_in a | wc -l) == 1 ]]
	[[ $(k -n "$ns" get resourceclaim "$(claim_of a)" -o jsonpath='{.status.allocation.devices.results[*].request}') == gpu/whole ]]
}

# failure: a CEL selector matches no GPU -> the pod stays Pending without an allocation
@test "CEL: by product, architecture, driver version and memory; a pod with a selector that matches nothing stays Pending" {
	local fits='device.attributes["gpu.nvidia.com"].productName.matches("GB200$") && device.attributes["gpu.nvidia.com"].architecture == "Blackwell" &&
		device.attributes["gpu.nvidia.com"].driverVersion.compareTo(semver("570.0.0")) > 0 && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) > 0'
	by_cel() { jq -nc --arg cel "$1" '{requests: [{name: "gpu", exactly: {deviceClassName: "gpu.nvidia.com", selectors: [{cel: {expression: $cel}}]}}]}'; }
	gpu_template fits "$(by_cel "$fits")"
	gpu_template not "$(by_cel 'device.attributes["gpu.nvidia.com"].productName == "Tesla K80"')"
	gpu_pod a "$(with fits)"
	gpu_pod b "$(with not)"
	running a
	eventually 30 event_contains Pod/b 'cannot allocate all claims'
	[[ -z $(given b) ]]
}

# failure: a pod has a claim for each container -> each container has its own GPU only
@test "two claims in a pod: two GPUs, one for each container" {
	gpu_template one
	gpu_pod a '[{name: left, resourceClaimTemplateName: one}, {name: right, resourceClaimTemplateName: one}]' \
		"[$(gpu_container left '[{name: left}]'), $(gpu_container right '[{name: right}]'), $(gpu_container both '[{name: left}, {name: right}]')]"
	running a
	[[ $(gpus_in a left | wc -l) == 1 && $(gpus_in a right | wc -l) == 1 && $(gpus_in a left) != "$(gpus_in a right)" ]]
	[[ $(gpus_in a both) == "$({ gpus_in a left; gpus_in a right; } | sort)" ]]
	[[ $(nodes_in a left) == "$(given a left)" && $(nodes_in a right) == "$(given a right)" ]]
}

# failure: a pod requests GPUs and a channel -> it gets both
@test "GPUs and a channel in one pod" {
	domain d
	gpu_template two '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}'
	gpu_pod a '[{name: gpu, resourceClaimTemplateName: two}, {name: channel, resourceClaimTemplateName: d}]'
	running a
	has_channel a
	[[ $(gpus_in a | wc -l) == 2 ]]
	# Devices of both drivers in one claim.
	local uid
	uid=$(domain_uid d)
	gpu_template mixed "{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}, {name: channel, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}],
		config: [{requests: [channel], opaque: {driver: compute-domain.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomainChannelConfig, domainID: $uid}}}]}"
	gpu_pod b "$(with mixed)"
	running b
	has_channel b
	[[ $(gpus_in b | wc -l) == 1 ]]
}

# bats test_tags=long
@test "the documented Job of four pods in one NVLink partition, each with all GPUs of its node and a channel of one ComputeDomain" {
	sed "s|image: .*|image: $gpu_image|" "$checkout/examples/gpus-and-channel.yaml" | k -n "$ns" apply -f - >/dev/null
	k -n "$ns" wait --for=condition=Complete job/training --timeout=180s
	local logs
	logs=$(k -n "$ns" logs -l job=training --tail=-1)
	[[ $(grep -c '^GPU .*NVIDIA GB200' <<<"$logs") == 16 && $(grep -o 'GPU-[^)]*' <<<"$logs" | sort -u | wc -l) == 16 ]]
	[[ $(grep -cx channel0 <<<"$logs") == 4 && $(grep -c '^rank [0-3] can train$' <<<"$logs") == 4 ]]
}

@test "admin access: all GPUs of a node, without disturbing the pods that use them" {
	gpu_template one
	gpu_pod tenant "$(with one)" '' 0
	running tenant
	local before
	before=$(gpus_in tenant)
	k label namespace "$ns" resource.kubernetes.io/admin-access=true >/dev/null
	gpu_template all '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All, adminAccess: true}}]}'
	gpu_pod admin "$(with all)" '' 0
	running admin
	[[ $(gpus_in admin | wc -l) == 4 ]]
	k -n "$ns" delete pod admin
	[[ $(gpus_in tenant) == "$before" ]]
	gpu_pod next "$(with one)" '' 0
	running next
	[[ $(gpus_in next) != "$before" ]]
}

# failure: a pod requests nvidia.com/gpu without a claim -> it gets its GPUs
@test "extended resource: a pod that requests nvidia.com/gpu without a claim" {
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: a}
		spec:
		  terminationGracePeriodSeconds: 0
		  containers: [{name: main, image: $gpu_image, imagePullPolicy: Never, command: [sleep, "1000000"], resources: {limits: {nvidia.com/gpu: 2}}}]
	END
	running a
	[[ $(gpus_in a | wc -l) == 2 && $(nodes_in a) == "$(given a)" ]]
}

free() { k -n "$ns" get resourceclaims -o json | jq -e '.items == []' >/dev/null; }
# failure: a GPU pod ends -> its GPU is free, and no CDI file or checkpoint entry is left
# bats test_tags=matrix,long
@test "claim lifecycle: pods that end release their GPUs, five times on each of four nodes, and leave nothing" {
	gpu_template all '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 4}}]}'
	local i k
	for i in 1 2 3 4 5; do
		for k in 0 1 2 3; do gpu_pod "a$i-$k" "$(with all)" '' $k; done
		for k in 0 1 2 3; do running "a$i-$k"; done
		k -n "$ns" delete pods --all >/dev/null
	done
	eventually 30 free
	for k in 0 1 2 3; do
		eventually 10 no_gpu_files $k
		[[ $(gpu_checkpoint $k) != *preparedClaims* ]]
	done
}

# failure: a GPU configuration has an unknown field -> an Event names it, and the corrected claim works
@test "a configuration with an unknown field: an Event of the pod names it, and the corrected one works" {
	local config='config: [{requests: [gpu], opaque: {driver: gpu.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: GpuConfig%s}}}]'
	gpu_template bad "${one_gpu%\}}, $(printf "$config" ', colour: green')}"
	gpu_template good "${one_gpu%\}}, $(printf "$config" '')}"
	gpu_pod a "$(with bad)"
	eventually 60 event_contains Pod/a 'strict decoding error: unknown field "colour"'
	gpu_pod b "$(with good)"
	running b
}

# failure: a GPU is allocated to two claims -> the second is refused, and the error names the first
# bats test_tags=long
@test "a GPU is allocated twice by hand: the second claim is refused, and the error names the first" {
	gpu_template one
	gpu_pod a "$(with one)" '' 0
	running a
	local claim device uid
	claim=$(claim_of a)
	gpu_claim stolen
	gpu_pod b '[{name: gpu, resourceClaimName: stolen}]' '' 0
	eventually 30 allocated_by_name stolen
	# The scheduler would not allocate it twice.
	device=$(k -n "$ns" get resourceclaim "$claim" -o jsonpath='{.status.allocation.devices.results[0].device}')
	k -n "$ns" delete pod b >/dev/null
	eventually 30 not_allocated stolen
	# With no grace period the pod no longer exists before its node has unprepared the claim, and a prepared claim
	# would be reused for the next pod.
	eventually 30 not_prepared "$(k -n "$ns" get resourceclaim stolen -o jsonpath='{.metadata.uid}')"
	uid=$(k -n "$ns" get resourceclaim "$claim" -o jsonpath='{.metadata.uid}')
	k -n "$ns" get resourceclaim "$claim" -o json | jq '{status: {allocation: .status.allocation}}' >"$BATS_TEST_TMPDIR/stolen.json"
	k -n "$ns" patch resourceclaim stolen --subresource=status --type=merge --patch-file "$BATS_TEST_TMPDIR/stolen.json"
	gpu_pod c '[{name: gpu, resourceClaimName: stolen}]' '' 0
	eventually 60 event_contains Pod/c "requested device $device is already allocated to different claim $uid"
	# The second claim gets the GPU after the first has been released: for another pod at once, for the first pod at
	# the next retry of its kubelet, after a minute or more.
	k -n "$ns" delete pod a >/dev/null
	gpu_pod d '[{name: gpu, resourceClaimName: stolen}]' '' 0
	running d
	[[ $(nodes_in d) == "nvidia${device#gpu-}" ]]
}
allocated_by_name() { [[ -n $(k -n "$ns" get resourceclaim "$1" -o jsonpath='{.status.allocation.devices.results[0].device}') ]]; }
not_allocated() { ! allocated_by_name "$1"; }
not_prepared() { [[ $(gpu_checkpoint 0) != *"$1"* ]]; }

# gpus_container K: prints how often the GPU container of a node's plugin was restarted, and whether it is ready.
gpus_container() { k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.containerStatuses[?(@.name=="gpus")].restartCount} {.status.containerStatuses[?(@.name=="gpus")].ready}'; }
started_again() { [[ $(gpus_container "$1") != "$2" && $(gpus_container "$1") == *' true' ]]; }
# failure: the GPU plugin is killed under pods -> they keep their GPUs, and can end
# bats test_tags=long
@test "the plugin is killed under running pods: they keep their GPUs, it restarts, and all pods can end" {
	gpu_template one
	gpu_pod a "$(with one)" '' 0
	gpu_pod b "$(with one)" '' 0
	running a
	running b
	local before uuids
	before=$(gpus_container 0)
	uuids="$(gpus_in a) $(gpus_in b)"
	kill -KILL $(gpu_plugin_pids 0)
	eventually 60 started_again 0 "$before"
	[[ "$(gpus_in a) $(gpus_in b)" == "$uuids" ]]
	gpu_pod c "$(with one)" '' 0
	running c
	[[ " $uuids " != *" $(gpus_in c) "* ]]
	k -n "$ns" delete pods --all >/dev/null
	eventually 30 no_gpu_files 0
	[[ $(gpu_checkpoint 0) != *preparedClaims* ]]
}

# failure: MIG devices are created -> they are offered without a restart, and the GPU is not
@test "MIG: new devices appear without a restart, a pod gets only one device and its capabilities, and the GPU itself is not offered in the meantime" {
	mig 1 3 '1g@0 2g@2'
	eventually 45 offers_n 1 5
	[[ " $(offers 1) " != *' gpu-3 '* ]]
	gpu_template mig '{requests: [{name: gpu, exactly: {deviceClassName: mig.nvidia.com, selectors: [{cel: {expression: "device.attributes[\"gpu.nvidia.com\"].profile.startsWith(\"2g.\")"}}]}}]}'
	gpu_pod a "$(with mig)"
	running a
	[[ $(given a) == nvidia3-mig-2g* && $(nodes_in a) == nvidia3 ]]
	[[ $(migs_in a) == MIG-00000003-* && $(migs_in a | wc -l) == 1 ]]
	[[ $(k -n "$ns" exec a -- ls /dev/nvidia-caps | xargs) == 'nvidia-cap209 nvidia-cap210' ]]
	k -n "$ns" delete pod a >/dev/null
	mig 1 3 '' # plugins find this when they restart in the tests below, or half a minute later
}

# container_is POD: prints a text that changes when its container is another one.
container_is() { k -n "$ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].containerID}'; }
other_container() { [[ $(container_is "$1") != "$2" && $(k -n "$ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].ready}') == true ]]; }
# end_container POD: ends its process, and the kubelet creates another container.
end_container() {
	local before
	before=$(container_is "$1")
	k -n "$ns" exec "$1" -- sh -c 'kill -9 $(pidof sleep)' || true
	kill -KILL $(pids_of_pod "$ns" "$1" 'sleep')
	eventually 60 other_container "$1" "$before"
}

# failure: the chart is upgraded under a GPU pod -> it continues, and a restarted container finds its hook
@test "the chart is upgraded under a running pod: it is not disturbed, a restarted container finds its hook, slices stay, and its claim can be unprepared" {
	gpu_template one
	gpu_pod a "$(with one)" '' 0
	running a
	local root=$BATS_TEST_TMPDIR/other before uuid slice hook
	before=$(container_is a)
	uuid=$(gpus_in a)
	slice=$(k get resourceslices --field-selector spec.driver=gpu.nvidia.com,spec.nodeName=node-0 -o jsonpath='{.items[0].metadata.uid} {.items[0].metadata.generation}')
	hook=$("$cluster/node" 0 ls "$gpu_plugin_dir" | grep '^cdi-hook-')
	# The next version has another hook.
	mkdir -p "$root/image" "$root/root"
	tar -xf "${CD_IMAGE:-$checkout/build/image.tar}" -C "$root/image"
	tar -xf "$root/image/layer.tar" -C "$root/root"
	echo >>"$root/root/usr/bin/cdi-hook"
	"$checkout/scripts/mkimage" "$root/root" compute-domains/compute-domains:next "$root/next.tar"
	"$cluster/image" "$root/next.tar"
	install_gpus 4 --set image.tag=next
	[[ $(container_is a) == "$before" ]]
	[[ $(k get resourceslices --field-selector spec.driver=gpu.nvidia.com,spec.nodeName=node-0 -o jsonpath='{.items[0].metadata.uid} {.items[0].metadata.generation}') == "$slice" ]]
	[[ $("$cluster/node" 0 ls "$gpu_plugin_dir" | grep -c '^cdi-hook-') == 2 ]]
	end_container a
	[[ $(gpus_in a) == "$uuid" ]]
	gpu_pod b "$(with one)" '' 0
	running b
	k -n "$ns" delete pod a b >/dev/null
	eventually 30 no_gpu_files 0
	# The first version again. The hook that no CDI file names is removed.
	install_gpus 4
	hooks_are() { [[ $("$cluster/node" 0 ls "$gpu_plugin_dir" | grep '^cdi-hook-') == "$1" ]]; }
	eventually 20 hooks_are "$hook"
}

node_has_event() { k -n default get events --field-selector "involvedObject.kind=Node,involvedObject.name=node-0,reason=$1" -o name | grep -q .; }
device_plugin_metric() { "$cluster/node" 0 curl -s "http://$(k -n "$driver_ns" get pod "$(plugin_pod 0)" -o jsonpath='{.status.podIP}'):8080/metrics" | grep -qx "nvidia_dra_gpu_device_plugin_active $1"; }
# failure: a device plugin offers the node's GPUs too -> an Event of the Node and a metric report it
# bats test_tags=long
@test "a device plugin that offers the same GPUs is reported by an Event of the Node and a metric, and so is its end" {
	k -n default delete events --all >/dev/null # Events of an earlier file must not count
	eventually 20 device_plugin_metric 0
	device_plugin
	eventually 20 node_has_event DevicePluginActive
	eventually 30 device_plugin_metric 1
	no_device_plugin
	eventually 20 node_has_event DevicePluginInactive
	eventually 30 device_plugin_metric 0
}

# failure: a pod requests nvidia.com/gpu and has a claim -> it runs if the device class has another name
# bats test_tags=long
@test "a pod that requests nvidia.com/gpu of a device plugin and also has a claim runs if the device class has another name" {
	install_gpus 4 --set resources.gpus.extendedResourceName=
	device_plugin
	domain d
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: a}
		spec:
		  terminationGracePeriodSeconds: 0
		  resourceClaims: [{name: channel, resourceClaimTemplateName: d}]
		  containers:
		  - {name: main, image: $gpu_image, imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: channel}], limits: {nvidia.com/gpu: 4}}}
	END
	running a
	has_channel a
	[[ -z $(given a) ]]
	install_gpus 4
}

@test "a plugin may write the slices of its node and its two drivers, and Events under its own name" {
	k get validatingadmissionpolicy compute-domains-resourceslices -o jsonpath='{.spec.validations[*].message}' | grep -qF 'compute-domain.nvidia.com and gpu.nvidia.com'
	# The tests above wrote Events and slices under this name. Any other name is denied.
	k get validatingadmissionpolicy compute-domains-events -o jsonpath='{.spec.validations[*].expression}' | grep -qF "in ['compute-domain-kubelet-plugin', 'gpu-kubelet-plugin']"
}

# The last test, because it leaves the gate on, which the next installation resets.
taints_of() { k get resourceslices --field-selector "spec.driver=gpu.nvidia.com,spec.nodeName=node-$1" -o json | jq -c --arg d "$2" '[.items[].spec.devices[] | select(.name == $d) | (.basic // .).taints[]? | del(.timeAdded)]'; }
has_taints() { [[ $(taints_of "$1" "$2") == "$3" ]]; }
# failure: a GPU reports XID 79 -> no new pod gets it until the slice is annotated
# bats test_tags=matrix,long
@test "health: XID 79 taints a GPU and XID 31, of a program, does not; the taint stays when devices change, plugin and kubelet restart and the slice is deleted, until the slice is annotated" {
	local pod taint
	"$cluster/node" 0 sh -c ': >"$1"' sh "$events"
	install_gpus 4 --set featureGates.NVMLDeviceHealthCheck=true
	if (($(k version -o json | jq -r '.serverVersion.minor | tonumber') < 36)); then
		"$cluster/node" 0 sh -c 'echo "1 xid 79" >>"$1"' sh "$events"
		eventually 20 node_has_event DeviceTaintsNotServed
		offers_n 0 4
		has_taints 0 gpu-1 '[]'
		return
	fi
	eventually 30 has_taints 0 gpu-1 '[]'
	# A pod that already has the GPU is not disturbed.
	gpu_template one
	gpu_template second '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.attributes[\"resource.kubernetes.io\"].pciBusID == \"0009:01:00.0\""}}]}}]}'
	gpu_pod tenant "$(with second)" '' 0
	running tenant
	"$cluster/node" 0 sh -c 'printf "%s\n" "1 xid 79" "2 xid 31" >>"$1"' sh "$events"
	taint='[{"effect":"NoSchedule","key":"gpu.nvidia.com/xid","value":"79"}]'
	eventually 20 has_taints 0 gpu-1 "$taint"
	eventually 20 has_taints 0 gpu-2 '[{"effect":"None","key":"gpu.nvidia.com/xid","value":"31"}]'
	mig 0 3 '1g@0'
	eventually 20 node_has_event GPUReportsXid
	[[ $(nodes_in tenant) == nvidia1 ]]
	k -n "$ns" delete pod tenant >/dev/null
	gpu_pod other "$(with second)" '' 0
	eventually 30 event_contains Pod/other 'cannot allocate all claims'
	eventually 45 offered_instead 0 gpu-3
	[[ $(taints_of 0 gpu-1) == "$taint" ]]
	for pod in a b; do gpu_pod $pod "$(with one)" '' 0; done
	for pod in a b; do
		running $pod
		[[ $(nodes_in $pod) != nvidia1 ]]
	done
	local pid
	pid=$(gpu_plugin_pids 0)
	kill -KILL $pid
	eventually 60 other_gpu_plugin 0 "$pid"
	mig 0 3 ''
	k -n "$driver_ns" delete pod "$(plugin_pod 0)" >/dev/null
	eventually 60 plugin_is_ready 0
	for_seconds 3 has_taints 0 gpu-1 "$taint"
	# A kubelet deletes the slices of its node when it starts.
	local slice
	slice=$(slice_uid 0)
	"$cluster/kubelet" 0 restart
	eventually 60 other_slice 0 "$slice"
	for_seconds 3 has_taints 0 gpu-1 "$taint"
	[[ -z $(given other) ]]
	# The documentation describes this command for a repaired GPU.
	k annotate resourceslices --field-selector spec.driver=gpu.nvidia.com,spec.nodeName=node-0 gpu.nvidia.com/clear-xids=true >/dev/null
	running other 90
	prints_nothing k get resourceslices --field-selector spec.driver=gpu.nvidia.com,spec.nodeName=node-0 -o jsonpath='{.items[*].metadata.annotations}'
}
slice_uid() { k get resourceslices --field-selector "spec.driver=gpu.nvidia.com,spec.nodeName=node-$1" -o jsonpath='{.items[*].metadata.uid}'; }
other_slice() { [[ -n $(slice_uid "$1") && $(slice_uid "$1") != "$2" ]]; }
other_gpu_plugin() { [[ -n $(gpu_plugin_pids "$1") && $(gpu_plugin_pids "$1") != "$2" ]]; }
plugin_is_ready() { [[ $(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}') == True ]]; }
offered_instead() { [[ " $(offers "$1") " != *" $2 "* ]]; }
