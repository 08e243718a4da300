# SPDX-License-Identifier: Apache-2.0
# What the API server accepts and what it denies if the hosts run nvidia-imex themselves: the roles, the policy that
# restricts a kubelet plugin to its pod, and the optional policy for claims. With kubeletPlugin.retryPrepares=false, no
# plugin may change another pod (policy.bats has the default).
#
# The tests need a running cluster. They use their own namespace and release, so the driver may be installed.

load policy.bash

ns=policy-host-test
plugin=policy-host-test-service-account-kubeletplugin
controller=policy-host-test-service-account-controller

render() {
	"$BATS_TEST_DIRNAME/helm" template policy-host-test "$chart" --namespace $ns --set nameOverride=policy-host-test --set image.repository=compute-domains/compute-domains \
		--set "resourceApiVersion=resource.k8s.io/$(resource_version)" "$@" \
		--kube-version 1.37.0 --set featureGates.HostManagedIMEX=true --set admission.hostManaged.enabled=true \
		--set kubeletPlugin.retryPrepares=false \
		--show-only "templates/rbac-controller.yaml" --show-only "templates/rbac-kubelet-plugin.yaml" \
		--show-only "templates/policy-plugin-pods.yaml" --show-only "templates/policy-claims.yaml"
}

# The policy for daemon devices of an installed driver would deny some requests before the policies under test. It
# only audits here.
installed_policy() {
	local binding
	binding=$(k get validatingadmissionpolicybinding compute-domains-daemon-claims --ignore-not-found -o name)
	[[ -z $binding ]] || k patch validatingadmissionpolicybinding compute-domains-daemon-claims --type=merge -p "{\"spec\": {\"validationActions\": [\"$1\"]}}"
}

setup_file() {
	k get --raw /readyz >/dev/null
	clean
	installed_policy Audit
	k apply --server-side --force-conflicts -f "$chart/crds" # also for kubectl auth can-i, which answers no for unknown kinds
	k wait --for=condition=Established crd/computedomains.resource.nvidia.com crd/computedomaincliques.resource.nvidia.com
	k create namespace $ns
	render | k apply -f -
	# The account has all rights in the namespace, so only the policy can deny something to the plugin.
	k -n $ns create rolebinding everything --clusterrole=admin --serviceaccount=$ns:$plugin
	{
		node policy-host-a
		node policy-host-b
		pod plugin-a $plugin policy-host-a
		pod plugin-b $plugin policy-host-b
		pod workload default policy-host-a
	} | k create -f -
	bound_token plugin $plugin plugin-a
	k -n $ns create token $plugin >"$BATS_FILE_TMPDIR/plugin-unbound.token"
	without_identity

	claim "$(parameters '"kind": "ComputeDomainDaemonConfig"')" >"$BATS_FILE_TMPDIR/daemon-claim.yaml"
	template "$(parameters '"kind": "ComputeDomainDaemonConfig"')" >"$BATS_FILE_TMPDIR/daemon-template.yaml"
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/daemon-claim.yaml"
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/daemon-template.yaml"
	ends as plugin -n $ns annotate --overwrite --dry-run=server pod plugin-b x=y
}

teardown_file() {
	installed_policy Deny
	clean
}

clean() {
	k -n $ns delete --ignore-not-found --force --grace-period=0 pods --all
	k delete --ignore-not-found node policy-host-a policy-host-b
	render | k delete --ignore-not-found -f -
	k delete --ignore-not-found namespace $ns
} &>/dev/null

# --- a plugin's pod

# patch POD JSON: patches a pod as the plugin of node policy-a.
patch() { as plugin -n $ns patch pod "$1" --type merge -p "$2"; }

report='{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state": "DOWN", "imex.resource.nvidia.com/host-reason": "no answer"}}}'

# bats test_tags=matrix
@test "a plugin reports the state of its host on its own pod" {
	allowed patch plugin-a "$report"
	allowed patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state": "UP", "imex.resource.nvidia.com/host-reason": null}}}'
	allowed patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state": null}}}'
}

# The policy allows this in every mode.
@test "a plugin reports which daemon claim it has unprepared on its own pod, and on no other" {
	allowed patch plugin-a "$(unprepared 3f0c7d2a-0000-4000-8000-000000000000)"
	allowed patch plugin-a "$(unprepared)"
	denied "a kubelet plugin may change its own pod only" patch plugin-b "$(unprepared 3f0c7d2a-0000-4000-8000-000000000000)"
	denied "a kubelet plugin may change its own pod only" patch workload "$(unprepared 3f0c7d2a-0000-4000-8000-000000000000)"
	denied "its own pod only" as plugin-unbound -n $ns patch pod plugin-a --type merge -p "$(unprepared 3f0c7d2a-0000-4000-8000-000000000000)"
}

@test "a plugin changes no other pod" {
	denied "a kubelet plugin may change its own pod only" patch plugin-b "$report"
	denied "a kubelet plugin may change its own pod only" patch workload "$report"
}

@test "a plugin changes no other annotation of its pod" {
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/state": "READY"}}}'
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state2": "UP"}}}'
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/unprepared-daemon-claims": "x"}}}'
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"example.org/kept": null}}}'
}

@test "a plugin changes no label, and nothing else, of its pod" {
	denied "may change no label" patch plugin-a '{"metadata": {"labels": {"resource.nvidia.com/computeDomain.cliqueID": "c.1"}}}'
	denied "may change no label" patch plugin-a '{"metadata": {"labels": {"app": null}}}'
	denied "labels and annotations of its pod only" patch plugin-a '{"spec": {"activeDeadlineSeconds": 1}}'
	denied "labels and annotations of its pod only" patch plugin-a '{"metadata": {"finalizers": ["example.org/stay"]}}'
}

@test "a plugin neither creates nor deletes pods" {
	denied "its own pod only" as plugin -n $ns delete pod plugin-a
	denied "its own pod only" as plugin create -f - <<<"$(pod another default policy-host-a)"
}

@test "a plugin's account without a pod changes no pod" {
	denied "its own pod only" as plugin-unbound -n $ns annotate --overwrite pod plugin-a imex.resource.nvidia.com/host-state=UP
}

# --- roles

@test "the controller may delete the objects of daemons, and create none" {
	local resource verb
	for resource in daemonsets.apps computedomaincliques.resource.nvidia.com; do
		for verb in get list watch patch delete; do
			[[ $(k auth can-i --as "system:serviceaccount:$ns:$controller" $verb $resource -n $ns 2>/dev/null) == yes ]]
		done
		for verb in create update; do
			[[ $(k auth can-i --as "system:serviceaccount:$ns:$controller" $verb $resource -n $ns 2>/dev/null) == no ]]
		done
	done
}

# --- claims

# parameters MEMBERS: prints a configuration of this driver for the request "channel".
parameters() {
	echo "[{requests: [channel], opaque: {driver: compute-domain.nvidia.com, parameters: {\"apiVersion\": \"resource.nvidia.com/v1beta1\",
	\"domainID\": \"6c5a4d3e-0000-4000-8000-000000000000\", $1}}}]"
}
channel='"kind": "ComputeDomainChannelConfig"'
any='[{opaque: {driver: compute-domain.nvidia.com, parameters: {"kind": "ComputeDomainChannelConfig"}}}]'
class=compute-domain-default-channel.nvidia.com

# request [NAME] [MEMBERS]
request() { echo "{name: ${1:-channel}, exactly: {deviceClassName: $class${2:+, $2}}}"; }

# claim CONFIG [REQUESTS] [VERSION]: prints a claim. template: prints a claim template.
claim() {
	local version=${3:-$(resource_version)}
	cat <<-YAML
		apiVersion: resource.k8s.io/$version
		kind: ResourceClaim
		metadata: {generateName: c-, namespace: $ns}
		spec: {devices: {requests: $(in_api_version "$version" "${2:-[$(request)]}"), config: $1}}
	YAML
}
template() {
	local version=${3:-$(resource_version)}
	cat <<-YAML
		apiVersion: resource.k8s.io/$version
		kind: ResourceClaimTemplate
		metadata: {generateName: c-, namespace: $ns}
		spec: {spec: {devices: {requests: $(in_api_version "$version" "${2:-[$(request)]}"), config: $1}}}
	YAML
}

# each_way CONFIG REQUESTS WORD...: runs a command for claims and claim templates, in every version of the API.
each_way() {
	local config=$1 requests=$2 version make
	shift 2
	for version in $(resource_versions); do
		for make in claim template; do
			"$@" k create --dry-run=server -f - <<<"$($make "$config" "$requests" "$version")"
		done
	done
}

takes_what_prepare_takes() {
	local config
	for config in "$(parameters "$channel")" "$(parameters "$channel, \"allocationMode\": \"\"")" "$(parameters "$channel, \"allocationMode\": \"Single\"")"; do
		each_way "$config" "[$(request)]" allowed
	done
	each_way "$(parameters "$channel")" "[$(request channel "count: 1, allocationMode: ExactCount")]" allowed
}

refuses_modes() {
	local mode
	for mode in All foo single; do
		each_way "$(parameters "$channel, \"allocationMode\": \"$mode\"")" "[$(request)]" \
			denied "allocationMode \"$mode\": with host-managed IMEX a pod gets channel 0 and no other"
	done
}

refuses_daemons() {
	each_way "$(parameters '"kind": "ComputeDomainDaemonConfig"')" "[$(request)]" \
		denied "the hosts run nvidia-imex themselves, so there are no IMEX daemons to configure"
}

refuses_several_channels() {
	local sentence="a claim can contain only one request for compute-domain-default-channel.nvidia.com"
	each_way "$(parameters "$channel")" "[$(request channel "count: 2, allocationMode: ExactCount")]" denied "$sentence"
	each_way "$any" "[$(request a), $(request b)]" denied "$sentence"
}

refuses_choices() {
	each_way "$any" "[{name: pick, firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com}, {name: b, deviceClassName: $class}]}]" \
		denied 'request "pick": firstAvailable cannot choose an IMEX channel'
}

# bats test_tags=matrix
@test "claims that Prepare accepts are accepted, in every version of the API" { takes_what_prepare_takes; }
# bats test_tags=matrix
@test "allocationMode All, and any unknown mode, is denied at kubectl apply" { refuses_modes; }
# bats test_tags=matrix
@test "daemon configurations are denied at kubectl apply" { refuses_daemons; }
# bats test_tags=matrix
@test "more than one channel is denied at kubectl apply" { refuses_several_channels; }
@test "firstAvailable with an IMEX channel is denied at kubectl apply" { refuses_choices; }

@test "claims for other drivers are not affected" {
	local theirs='[{opaque: {driver: gpu.example.com, parameters: {"kind": "ComputeDomainDaemonConfig", "allocationMode": "All"}}}]'
	allowed k create --dry-run=server -f - <<<"$(claim "$theirs" '[{name: a, exactly: {deviceClassName: gpu.example.com, count: 4, allocationMode: ExactCount}}]')"
	allowed k create --dry-run=server -f - <<<"$(template '[]' '[{name: a, firstAvailable: [{name: x, deviceClassName: gpu.example.com}]}]')"
	allowed k create --dry-run=server -f - <<<"$(claim '[{opaque: {driver: compute-domain.nvidia.com, parameters: {"kind": 7, "allocationMode": []}}}]')" # Prepare reports what is wrong with it
}

# A finalizer must be removable from a claim template that is older than the policy.
@test "a claim template that is older than the policy can still be released and deleted" {
	local before=$BATS_TEST_TMPDIR/before.yaml
	template "$(parameters "$channel, \"allocationMode\": \"All\"")" | sed 's/generateName: c-/name: before, finalizers: [example.org\/stay]/' >"$before"
	k delete validatingadmissionpolicybinding policy-host-test-resourceclaimtemplates
	begins k create -f "$before"
	render | k apply -f - >/dev/null
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/daemon-template.yaml"
	allowed k -n $ns delete --wait=false resourceclaimtemplate before
	allowed k -n $ns patch resourceclaimtemplate before --type merge -p '{"metadata": {"finalizers": null}}'
	allowed k -n $ns wait --for=delete resourceclaimtemplate/before --timeout=30s
}

# --- the policies themselves

# bats test_tags=matrix
@test "the API server reports no warnings about the policies" {
	no_warnings_about policy-host-test-plugin-pods policy-host-test-resourceclaims policy-host-test-resourceclaimtemplates \
		policy-host-test-computedomains
}

# computedomain [CHANNEL MEMBERS]
computedomain() {
	echo "{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, metadata: {generateName: d-, namespace: $ns},
	spec: {channel: {resourceClaimTemplate: {name: d}$1}}}"
}

@test "a ComputeDomain is denied at kubectl apply if its claim template would be denied" {
	denied 'allocationMode "All": with host-managed IMEX a pod gets channel 0' k create --dry-run=server -f - <<<"$(computedomain ', allocationMode: All')"
	allowed k create --dry-run=server -f - <<<"$(computedomain ', allocationMode: Single')"
	allowed k create --dry-run=server -f - <<<"$(computedomain)"
}
