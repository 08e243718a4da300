# SPDX-License-Identifier: Apache-2.0
# Which configurations of GPUs the API server accepts and denies, by the optional admission policy: those that the
# kubelet plugin accepts, in every version of the API, and those that it refuses, with the same message.
#
# The tests need a running cluster. They use their own namespace and release, so the driver may be installed.

load policy.bash

ns=policy-gpus-test

render() {
	"$BATS_TEST_DIRNAME/helm" template policy-gpus-test "$chart" --namespace $ns --set nameOverride=policy-gpus-test --set image.repository=compute-domains/compute-domains \
		--set "resourceApiVersion=resource.k8s.io/$(resource_version)" --kube-version 1.37.0 --set resources.gpus.enabled=true \
		--set admission.gpus.enabled=true --show-only templates/policy-gpu-claims.yaml "$@"
}

setup_file() {
	k get --raw /readyz >/dev/null
	clean
	k create namespace $ns
	render --set featureGates.TimeSlicingSettings=true | k apply -f -
	claim '{}' >"$BATS_FILE_TMPDIR/bad-claim.yaml"
	template '{}' >"$BATS_FILE_TMPDIR/bad-template.yaml"
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/bad-claim.yaml"
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/bad-template.yaml"
}

teardown_file() { clean; }

clean() {
	render | k delete --ignore-not-found -f -
	k delete --ignore-not-found namespace $ns
} &>/dev/null

# devices VERSION PARAMETERS [DRIVER]: a request for a GPU with this configuration.
devices() {
	echo "{requests: $(in_api_version "$1" '[{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]'), config: [{requests: [gpu], opaque: {driver: ${3:-gpu.nvidia.com}, parameters: $2}}]}"
}
# claim PARAMETERS [VERSION [DRIVER]]: prints a claim. template: prints a claim template.
claim() {
	local version=${2:-$(resource_version)}
	printf 'apiVersion: resource.k8s.io/%s\nkind: ResourceClaim\nmetadata: {generateName: c-, namespace: %s}\nspec: {devices: %s}\n' \
		"$version" $ns "$(devices "$version" "$1" "${3:-}")"
}
template() {
	local version=${2:-$(resource_version)}
	printf 'apiVersion: resource.k8s.io/%s\nkind: ResourceClaimTemplate\nmetadata: {generateName: c-, namespace: %s}\nspec: {spec: {devices: %s}}\n' \
		"$version" $ns "$(devices "$version" "$1" "${3:-}")"
}
# each_way PARAMETERS WORD...: runs a command for claims and claim templates, in every version of the API.
each_way() {
	local parameters=$1 version make
	shift
	for version in $(resource_versions); do
		for make in claim template; do
			"$@" k create --dry-run=server -f - <<<"$($make "$parameters" "$version")"
		done
	done
}
# config [KIND [MORE]]: prints a configuration.
config() { echo "{apiVersion: resource.nvidia.com/v1beta1, kind: ${1:-GpuConfig}${2:+, $2}}"; }

# once PARAMETERS WORD...: runs a command for a claim in the preferred version of the API. The expressions for the
# others come from the same template.
once() {
	local parameters=$1
	shift
	"$@" k create --dry-run=server -f - <<<"$(claim "$parameters")"
}

takes_what_prepare_takes() {
	local more
	each_way "$(config)" allowed
	each_way "$(config GpuConfig 'sharing: {strategy: TimeSlicing, timeSlicingConfig: {interval: Long}}')" allowed
	for more in 'sharing: null' 'sharing: {strategy: TimeSlicing}' 'sharing: {strategy: TimeSlicing, timeSlicingConfig: {}, mpsConfig: null}'; do
		once "$(config GpuConfig "$more")" allowed
	done
	once "$(config MigDeviceConfig 'sharing: {strategy: TimeSlicing}')" allowed
	once "$(config VfioDeviceConfig 'iommu: {backendPolicy: LegacyOnly}')" allowed
}

refuses_what_prepare_refuses() {
	local sharing='strategy: TimeSlicing'
	each_way "$(config GpuConfig 'colour: green')" denied 'strict decoding error: unknown field "colour"'
	each_way "$(config GpuConfig 'sharing: {strategy: Luck}')" denied 'unknown GPU sharing strategy: Luck, supported GPU sharing strategies: TimeSlicing, MPS'
	once "$(config GpuConfig 'sharing: {}')" denied 'unknown GPU sharing strategy: , supported'
	once "$(config VfioDeviceConfig 'sharing: {}')" denied 'strict decoding error: unknown field "sharing"'
	once "$(config GpuConfig "sharing: {$sharing, replicas: 2}")" denied 'strict decoding error: unknown field "sharing.replicas"'
	once "$(config MigDeviceConfig "sharing: {$sharing, timeSlicingConfig: {}}")" denied 'strict decoding error: unknown field "sharing.timeSlicingConfig"'
	once "$(config GpuConfig "sharing: {$sharing, timeSlicingConfig: {length: 2}}")" denied 'strict decoding error: unknown field "sharing.timeSlicingConfig.length"'
	once "$(config GpuConfig "sharing: {$sharing, timeSlicingConfig: {interval: Brief}}")" denied 'unknown time-slice interval: Brief, supported'
	once "$(config GpuConfig "sharing: {$sharing, mpsConfig: {}}")" denied "cannot use MpsConfig with the 'TimeSlicing' strategy"
	once "$(config GpuConfig 'sharing: {strategy: MPS}')" denied '"MPSSupport" feature gate is not enabled'
	once "$(config ComputeDomainChannelConfig)" denied 'kind "ComputeDomainChannelConfig" of "resource.nvidia.com/v1beta1" is not one of the driver gpu.nvidia.com'
	once '{apiVersion: gpu.nvidia.com/v1alpha1, kind: GpuConfig}' denied 'kind "GpuConfig" of "gpu.nvidia.com/v1alpha1" is not one'
}

# bats test_tags=matrix
@test "configurations of GPUs that Prepare accepts are accepted, in every version of the API" { takes_what_prepare_takes; }
# bats test_tags=matrix
@test "configurations of GPUs that Prepare refuses are denied at kubectl apply, with the same message" { refuses_what_prepare_refuses; }

@test "configurations of other drivers are not affected" {
	allowed k create --dry-run=server -f - <<<"$(claim '{kind: GpuConfig, colour: green}' '' gpu.example.com)"
}

# bats test_tags=matrix
@test "the API server reports no warnings about the policies for GPUs" {
	no_warnings_about policy-gpus-test-gpu-resourceclaims policy-gpus-test-gpu-resourceclaimtemplates
}

@test "time slices are denied at kubectl apply while their feature gate is off, and the message names the gate" {
	allowed k create --dry-run=server -f - <<<"$(claim "$(config GpuConfig 'sharing: {strategy: TimeSlicing}')")"
	render | k apply -f - >/dev/null
	claim "$(config GpuConfig 'sharing: {strategy: TimeSlicing}')" >"$BATS_TEST_TMPDIR/sliced-claim.yaml"
	template "$(config GpuConfig 'sharing: {strategy: TimeSlicing}')" >"$BATS_TEST_TMPDIR/sliced-template.yaml"
	ends k create --dry-run=server -f "$BATS_TEST_TMPDIR/sliced-claim.yaml"
	ends k create --dry-run=server -f "$BATS_TEST_TMPDIR/sliced-template.yaml"
	each_way "$(config GpuConfig 'sharing: {strategy: TimeSlicing}')" denied \
		'"TimeSlicing" is selected as the GPU sharing strategy, but the "TimeSlicingSettings" feature gate is not enabled'
	allowed k create --dry-run=server -f - <<<"$(claim "$(config)")"
}
