#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GPUs that claims share by time slices: how nvidia-smi is called on the node, and the Event of a pod that is refused.

bats_require_minimum_version 1.5.0
load driver
load gpus

policies=/run/nvidia/driver/usr/lib64/libnvidia-ml.policies

setup_file() { with_gpus 4; }
teardown_file() {
	device_plugin
	"$cluster/node" 0 rm -f "$policies"
}
setup() { ns_begin; }
teardown() {
	"$cluster/gpu" 0 GPU0_FAIL_standinSetTimeSlice=
	ns_end
}

# sliced NAME INTERVAL DEVICE...: a claim for these GPUs, with time slices of that length.
sliced() {
	local name=$1 interval=$2 requests='' names='' device bus
	shift 2
	for device; do
		bus=$(printf '%04x:01:00.0' $((8 + ${device#gpu-})))
		requests+="${requests:+, }{name: $device, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: 'device.attributes[\"resource.kubernetes.io\"].pciBusID == \"$bus\"'}}]}}"
		names+="${names:+, }$device"
	done
	gpu_claim "$name" "{requests: [$requests], config: [{requests: [$names], opaque: {driver: gpu.nvidia.com, parameters: {
		apiVersion: resource.nvidia.com/v1beta1, kind: GpuConfig, sharing: {strategy: TimeSlicing, timeSlicingConfig: {interval: $interval}}}}}]}"
}
# policies_of K: prints the settings that were made on a node, in order, as "gpu-1 timeslice 2".
policies_of() {
	"$cluster/node" "$1" sh -c 'test ! -e "$1" || cat "$1"' sh "$policies" |
		sed -f <(k get resourceslices --field-selector "spec.driver=gpu.nvidia.com,spec.nodeName=node-$1" -o json |
			jq -r '.items[].spec.devices[] | "s/^\(.attributes.uuid.string) /\(.name) /"') | paste -sd,
}
policies_are() { [[ $(policies_of "$1") == "$2" ]]; }
# slice_is K GPU N: the last time slice that was set for the GPU; "" for none.
slice_is() { [[ $(policies_of "$1" | tr , '\n' | sed -n "s/^$2 timeslice //p" | tail -1) == "$3" ]]; }

@test "a claim with time slices: refused while the feature gate is off, and otherwise set before the pod runs and reset after its last pod has ended" {
	local claim='[{name: gpu, resourceClaimName: shared}]'
	sliced shared Medium gpu-1
	gpu_pod refused "$claim" '' 0
	eventually 30 event_contains Pod/refused '"TimeSlicing" is selected as the GPU sharing strategy, but the "TimeSlicingSettings" feature gate is not enabled'
	[[ -z $(policies_of 0) ]]
	k -n "$ns" delete pod refused >/dev/null
	install_gpus 4 --set featureGates.TimeSlicingSettings=true --set featureGates.NVMLDeviceHealthCheck=true
	gpu_pod a "$claim" '' 0
	running a
	[[ $(policies_of 0) == 'gpu-1 compute-mode 0,gpu-1 timeslice 2' ]]
	# Another pod shares the GPU without another call. Nothing is set for a claim without sharing.
	gpu_template one
	gpu_pod b "$claim" '' 0
	gpu_pod other '[{name: gpu, resourceClaimTemplateName: one}]' '' 0
	running b
	running other
	[[ $(gpus_in b) == "$(gpus_in a)" && $(gpus_in other) != "$(gpus_in a)" ]]
	k -n "$ns" delete pod a other >/dev/null
	[[ $(gpus_in b) && $(policies_of 0) == 'gpu-1 compute-mode 0,gpu-1 timeslice 2' ]]
	k -n "$ns" delete pod b >/dev/null
	eventually 30 policies_are 0 'gpu-1 compute-mode 0,gpu-1 timeslice 2,gpu-1 compute-mode 0,gpu-1 timeslice 0'
}

# failure: nvidia-smi refuses a time slice -> an Event reports it, and the claim's other GPUs are reset
# bats test_tags=long
@test "a GPU that does not support time slices: an Event of the pod has the error of nvidia-smi, the claim's other GPUs are reset, and no other claim waits" {
	local claim='[{name: gpu, resourceClaimName: both}]'
	# In the order of the claim: the second GPU fails.
	"$cluster/gpu" 0 GPU0_FAIL_standinSetTimeSlice=3
	sliced both Short gpu-2 gpu-0
	gpu_pod refused "$claim" '' 0
	eventually 30 event_contains Pod/refused 'exit status 3: Failed to set timeslice for requested devices : Not Supported'
	event_contains Pod/refused "error setting timeslice config for requests '[gpu-2 gpu-0]'"
	event_contains Pod/refused "GPU $(uuid_of 0 gpu-0)"
	eventually 10 slice_is 0 gpu-2 0
	[[ $(policies_of 0) == *'gpu-2 timeslice 1'* ]]
	slice_is 0 gpu-0 ''
	sliced alone Long gpu-3
	gpu_pod b '[{name: gpu, resourceClaimName: alone}]' '' 0
	running b
	slice_is 0 gpu-3 3
	# The claim can be prepared as soon as the GPU supports it.
	k -n "$ns" delete pod refused >/dev/null
	"$cluster/gpu" 0 GPU0_FAIL_standinSetTimeSlice=
	gpu_pod a "$claim" '' 0
	running a 90
	[[ $(gpus_in a | wc -l) == 2 ]]
	slice_is 0 gpu-2 1
	slice_is 0 gpu-0 1
	k -n "$ns" delete pod a b >/dev/null
	eventually 30 no_gpu_files 0
	for gpu in gpu-0 gpu-2 gpu-3; do slice_is 0 $gpu 0; done
}

# served K: prints the metrics of the GPU plugin on a node, as Prometheus reads them.
served() { "$cluster/node" "$1" curl -s "http://$(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.podIP}'):8080/metrics"; }
prepared() { served 0 | grep -qx "nvidia_dra_prepared_devices{.*device_type=\"gpu\".*} $1"; }
# failure: GPU claims come and go -> nvidia_dra_prepared_devices follows, and all series of the alerts exist
@test "metrics: nvidia_dra_prepared_devices follows the claims, and every series and label that alerts and dashboard of GPUs use exists" {
	local files=$checkout/deploy/chart/compute-domains/files metric labels label
	eventually 10 prepared 0
	gpu_template two '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}'
	gpu_pod a '[{name: gpu, resourceClaimTemplateName: two}]' '' 0
	running a
	eventually 10 prepared 2
	served 0 >"$BATS_TEST_TMPDIR/served"
	python3 -B "$checkout/test/alerts/named.py" "$files/alerts-gpus.yaml" "$files/dashboard-gpus.json" >"$BATS_TEST_TMPDIR/named"
	[[ $(wc -l <"$BATS_TEST_TMPDIR/named") -ge 9 ]]
	while read -r metric labels; do
		for label in '' $labels; do
			grep -E "^$metric[{ ]" "$BATS_TEST_TMPDIR/served" | grep -qF "${label:+$label=}" || { echo "not served: $metric $label"; return 1; }
		done
	done <"$BATS_TEST_TMPDIR/named"
	k -n "$ns" delete pod a >/dev/null
	eventually 10 prepared 0
}
