# What the API server accepts and what it refuses when the hosts run nvidia-imex themselves: the roles, the policy that confines a
# kubelet plugin to its pod, and the optional one for claims.
#
# Needs a cluster that is up. Everything here has a namespace and a release of its own, so the driver may be installed.

load policy.bash

ns=policy-host-test
plugin=policy-host-test-service-account-kubeletplugin
controller=policy-host-test-service-account-controller

render() {
	"$BATS_TEST_DIRNAME/helm" template policy-host-test "$chart" --namespace $ns --set nameOverride=policy-host-test \
		--kube-version 1.36.0 --set featureGates.HostManagedIMEX=true --set admission.hostManaged.enabled=true \
		--show-only "templates/rbac-controller.yaml" --show-only "templates/rbac-kubelet-plugin.yaml" \
		--show-only "templates/policy-plugin-pods.yaml" --show-only "templates/policy-claims.yaml"
}

setup_file() {
	k get --raw /readyz >/dev/null
	clean
	k create namespace $ns
	render | k apply -f -
	# Rights to everything in the namespace, so that what is denied to a plugin is denied by the policy.
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

	# Nothing tells when the API server has begun to heed a policy, but a policy at work.
	local end=$((SECONDS + 60))
	claim "$(parameters '"kind": "ComputeDomainDaemonConfig"')" >"$BATS_FILE_TMPDIR/daemon-claim.yaml"
	template "$(parameters '"kind": "ComputeDomainDaemonConfig"')" >"$BATS_FILE_TMPDIR/daemon-template.yaml"
	while as plugin -n $ns annotate --overwrite --dry-run=server pod plugin-b x=y || k create --dry-run=server -f "$BATS_FILE_TMPDIR/daemon-claim.yaml" ||
		k create --dry-run=server -f "$BATS_FILE_TMPDIR/daemon-template.yaml"; do
		((SECONDS < end)) || return 1
	done &>/dev/null
}

teardown_file() { clean; }

clean() {
	k -n $ns delete --ignore-not-found --force --grace-period=0 pods --all
	k delete --ignore-not-found node policy-host-a policy-host-b
	render | k delete --ignore-not-found -f -
	k delete --ignore-not-found namespace $ns
} &>/dev/null

# --- a plugin's pod

# patch POD JSON: as the plugin of node policy-a.
patch() { as plugin -n $ns patch pod "$1" --type merge -p "$2"; }

report='{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state": "DOWN", "imex.resource.nvidia.com/host-reason": "no answer"}}}'

@test "a plugin tells on its own pod how its host is" {
	allowed patch plugin-a "$report"
	allowed patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state": "UP", "imex.resource.nvidia.com/host-reason": null}}}'
	allowed patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state": null}}}'
}

@test "a plugin changes no other pod" {
	denied "a kubelet plugin may change its own pod only" patch plugin-b "$report"
	denied "a kubelet plugin may change its own pod only" patch workload "$report"
}

@test "a plugin changes no other annotation of its pod" {
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/state": "READY"}}}'
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/host-state2": "UP"}}}'
	denied "may change no annotation" patch plugin-a '{"metadata": {"annotations": {"example.org/kept": null}}}'
}

@test "a plugin changes no label, and nothing else, of its pod" {
	denied "may change no label" patch plugin-a '{"metadata": {"labels": {"resource.nvidia.com/computeDomain.cliqueID": "c.1"}}}'
	denied "may change no label" patch plugin-a '{"metadata": {"labels": {"app": null}}}'
	denied "labels and annotations of its pod only" patch plugin-a '{"spec": {"activeDeadlineSeconds": 1}}'
	denied "labels and annotations of its pod only" patch plugin-a '{"metadata": {"finalizers": ["example.org/stay"]}}'
}

@test "a plugin neither makes nor deletes pods" {
	denied "its own pod only" as plugin -n $ns delete pod plugin-a
	denied "its own pod only" as plugin create -f - <<<"$(pod another default policy-host-a)"
}

@test "a plugin's account without a pod changes no pod" {
	denied "its own pod only" as plugin-unbound -n $ns annotate pod plugin-a imex.resource.nvidia.com/host-state=UP
}

# --- roles

@test "the controller may take down what daemons were made of, and make none" {
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

# parameters MEMBERS: a config of ours for the request "channel".
parameters() {
	echo "[{requests: [channel], opaque: {driver: compute-domain.nvidia.com, parameters: {\"apiVersion\": \"resource.nvidia.com/v1beta1\",
	\"domainID\": \"6c5a4d3e-0000-4000-8000-000000000000\", $1}}}]"
}
channel='"kind": "ComputeDomainChannelConfig"'
class=compute-domain-default-channel.nvidia.com

# request [VERSION] [MEMBERS]: the request "channel", as that version of the API writes it.
request() {
	if [[ ${1:-v1} == v1beta1 ]]; then
		echo "{name: channel, deviceClassName: $class${2:+, $2}}"
	else
		echo "{name: channel, exactly: {deviceClassName: $class${2:+, $2}}}"
	fi
}

# claim CONFIG [REQUESTS] [VERSION]; template, the same.
claim() {
	cat <<-YAML
		apiVersion: resource.k8s.io/${3:-v1}
		kind: ResourceClaim
		metadata: {generateName: c-, namespace: $ns}
		spec: {devices: {requests: ${2:-[$(request "${3:-v1}")]}, config: $1}}
	YAML
}
template() {
	cat <<-YAML
		apiVersion: resource.k8s.io/${3:-v1}
		kind: ResourceClaimTemplate
		metadata: {generateName: c-, namespace: $ns}
		spec: {spec: {devices: {requests: ${2:-[$(request "${3:-v1}")]}, config: $1}}}
	YAML
}

versions() { k get --raw /apis/resource.k8s.io | jq -r '.versions[].version | select(IN("v1", "v1beta1", "v1beta2"))'; }

# each_way WORD...: for claims and templates, in every version of the API that the server speaks. CONFIG and REQUEST MEMBERS are in
# $config and $members.
each_way() {
	local version make seen=0
	for version in $(versions); do
		for make in claim template; do
			"$@" k create --dry-run=server -f - <<<"$($make "$config" "[$(request "$version" "$members")]" "$version")"
			seen=$((seen + 1))
		done
	done
	((seen >= 2))
}

@test "claims that Prepare takes are accepted, in every version of the API" {
	members=
	for config in "$(parameters "$channel")" "$(parameters "$channel, \"allocationMode\": \"\"")" "$(parameters "$channel, \"allocationMode\": \"Single\"")"; do
		each_way allowed
	done
	members="count: 1, allocationMode: ExactCount"
	each_way allowed
}

@test "allocationMode All, and any unknown mode, is refused at kubectl apply" {
	members=
	local mode
	for mode in All foo single; do
		config=$(parameters "$channel, \"allocationMode\": \"$mode\"")
		each_way denied "allocationMode \"$mode\": with HostManagedIMEX a pod gets channel 0 and no other"
	done
}

@test "daemon configs are refused at kubectl apply" {
	members=
	config=$(parameters '"kind": "ComputeDomainDaemonConfig"')
	each_way denied "the hosts run nvidia-imex themselves, so there are no IMEX daemons to configure"
}

@test "more than one channel is refused at kubectl apply" {
	config=$(parameters "$channel") members="count: 2, allocationMode: ExactCount"
	each_way denied "a claim can ask for one device of compute-domain-default-channel.nvidia.com"
	denied "a claim can ask for one device" k create -f - <<<"$(claim '[]' "[{name: a, exactly: {deviceClassName: $class}}, {name: b, exactly: {deviceClassName: $class}}]")"
}

@test "firstAvailable with an IMEX channel is refused at kubectl apply" {
	local choice="[{name: pick, firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com}, {name: b, deviceClassName: $class}]}]"
	denied 'request "pick": firstAvailable cannot choose an IMEX channel' k create -f - <<<"$(claim '[]' "$choice")"
	denied 'request "pick": firstAvailable cannot choose an IMEX channel' k create -f - <<<"$(template '[]' "$choice")"
}

@test "claims of others are no business of the policy" {
	local theirs='[{opaque: {driver: gpu.example.com, parameters: {"kind": "ComputeDomainDaemonConfig", "allocationMode": "All"}}}]'
	allowed k create --dry-run=server -f - <<<"$(claim "$theirs" '[{name: a, exactly: {deviceClassName: gpu.example.com, count: 4, allocationMode: ExactCount}}]')"
	allowed k create --dry-run=server -f - <<<"$(template '[]' '[{name: a, firstAvailable: [{name: x, deviceClassName: gpu.example.com}]}]')"
	allowed k create --dry-run=server -f - <<<"$(claim '[{opaque: {driver: compute-domain.nvidia.com, parameters: {"kind": 7, "allocationMode": []}}}]')" # Prepare says what is wrong with it
}

# A finalizer must come off a claim that was made before the policy.
@test "what was allowed once can still be let go" {
	local before=$BATS_TEST_TMPDIR/before.yaml
	template "$(parameters "$channel, \"allocationMode\": \"All\"")" | sed 's/generateName: c-/name: before, finalizers: [example.org\/stay]/' >"$before"
	k delete validatingadmissionpolicybinding policy-host-test-resourceclaimtemplates
	local end=$((SECONDS + 60))
	until k create -f "$before" 2>/dev/null; do ((SECONDS < end)); done
	render | k apply -f - >/dev/null
	while k create --dry-run=server -f "$BATS_FILE_TMPDIR/daemon-template.yaml" 2>/dev/null; do ((SECONDS < end)); done
	allowed k -n $ns delete --wait=false resourceclaimtemplate before
	allowed k -n $ns patch resourceclaimtemplate before --type merge -p '{"metadata": {"finalizers": null}}'
	allowed k -n $ns wait --for=delete resourceclaimtemplate/before --timeout=30s
}

# --- the policies themselves

@test "the API server finds no fault with the policies" {
	local policy
	for policy in policy-host-test-plugin-pods policy-host-test-resourceclaims policy-host-test-resourceclaimtemplates policy-host-test-computedomains; do
		k wait --timeout=60s --for=jsonpath='{.status.observedGeneration}' validatingadmissionpolicy/$policy
		[[ -z $(k get validatingadmissionpolicy $policy -o jsonpath='{.status.typeChecking.expressionWarnings}') ]]
	done
}

# computedomain [CHANNEL MEMBERS]
computedomain() {
	echo "{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, metadata: {generateName: d-, namespace: $ns},
	spec: {channel: {resourceClaimTemplate: {name: d}$1}}}"
}

@test "a ComputeDomain whose claim template would be refused is refused at kubectl apply" {
	k apply --server-side --force-conflicts -f "$chart/crds"
	k wait --for=condition=Established crd/computedomains.resource.nvidia.com
	denied 'allocationMode "All": with HostManagedIMEX a pod gets channel 0' k create --dry-run=server -f - <<<"$(computedomain ', allocationMode: All')"
	allowed k create --dry-run=server -f - <<<"$(computedomain ', allocationMode: Single')"
	allowed k create --dry-run=server -f - <<<"$(computedomain)"
}
