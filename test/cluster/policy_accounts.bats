# SPDX-License-Identifier: Apache-2.0
# What the API server denies to the driver's own accounts, in case their tokens are stolen, and to all accounts for
# daemon devices: the policies for the Nodes, DaemonSets and claim templates of the controller, for the Events of a
# plugin, and for claims of daemon-0.
#
# The tests need a running cluster. They use their own namespace and release, so the driver may be installed.

load policy.bash

ns=policy-accounts
plugin=policy-accounts-service-account-kubeletplugin
controller=policy-accounts-service-account-controller
domain_label=resource.nvidia.com/computeDomain
uid=6c5a4d3e-0000-4000-8000-000000000000
image=example.org/mirror/compute-domains:v2

# An installed driver counts as an earlier installation of this one, so that its daemons are not denied.
render() {
	"$BATS_TEST_DIRNAME/helm" template policy-accounts "$chart" --namespace $ns --set nameOverride=policy-accounts "$@" \
		--kube-version 1.37.0 --set image.repository=example.org/mirror/compute-domains \
		--set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' \
		--set 'controller.containers.computeDomain.env[0].value=nvidia-compute-domains' \
		--set resources.computeDomains.rackDomains.enabled=true \
		--show-only "templates/policy-controller.yaml" --show-only "templates/policy-events.yaml" \
		--show-only "templates/policy-daemon-claims.yaml"
}

setup_file() {
	k get --raw /readyz >/dev/null
	clean
	k create namespace $ns
	k create namespace $ns-tenant
	k -n $ns create serviceaccount $plugin
	k -n $ns create serviceaccount $controller
	# The accounts have all rights, so only the policies can deny something.
	k create clusterrolebinding $ns --clusterrole=cluster-admin --serviceaccount=$ns:$plugin --serviceaccount=$ns:$controller
	{
		node policy-accounts-a
		node policy-accounts-b
		pod plugin-a $plugin policy-accounts-a
	} | k create -f -
	bound_token plugin $plugin plugin-a
	k -n $ns create token $plugin >"$BATS_FILE_TMPDIR/plugin-unbound.token"
	k -n $ns create token $controller >"$BATS_FILE_TMPDIR/controller.token"
	without_identity
	# The policy of an installed driver would be named first, and does not know this namespace.
	k get validatingadmissionpolicybinding compute-domains-daemon-claims -o json | jq 'del(.metadata.uid, .metadata.resourceVersion)' >"$BATS_FILE_TMPDIR/binding.json" || true
	k delete --ignore-not-found validatingadmissionpolicybinding compute-domains-daemon-claims
	claim "$(resource_version)" "$(in_api_version "$(resource_version)" "{name: d, $daemon}")" >"$BATS_FILE_TMPDIR/claim.yaml"
	begins k create --dry-run=server -f "$BATS_FILE_TMPDIR/claim.yaml"
	render | k apply -f -

	# Only a request that is denied shows that the API server enforces a policy.
	daemonset other >"$BATS_FILE_TMPDIR/daemonset.yaml"
	template plain '{}' >"$BATS_FILE_TMPDIR/template.yaml"
	event policy-accounts-b >"$BATS_FILE_TMPDIR/event.yaml"
	ends as controller taint --dry-run=server node policy-accounts-a policy-test=x:NoSchedule
	ends as controller create --dry-run=server -f "$BATS_FILE_TMPDIR/daemonset.yaml"
	ends as controller create --dry-run=server -f "$BATS_FILE_TMPDIR/template.yaml"
	ends as plugin create --dry-run=server -f "$BATS_FILE_TMPDIR/event.yaml"
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/claim.yaml"
}

teardown_file() {
	clean
	[[ ! -s $BATS_FILE_TMPDIR/binding.json ]] || k apply -f "$BATS_FILE_TMPDIR/binding.json"
}

clean() {
	local object
	for object in $(k -n $ns get daemonsets -o name) $(k -n $ns-tenant get resourceclaimtemplates,resourceclaims -o name); do
		k -n $ns patch "$object" --type merge -p '{"metadata": {"finalizers": null}}' || k -n $ns-tenant patch "$object" --type merge -p '{"metadata": {"finalizers": null}}'
	done
	k -n $ns delete --ignore-not-found --force --grace-period=0 pods --all
	k delete --ignore-not-found node policy-accounts-a policy-accounts-b
	render | k delete --ignore-not-found -f -
	k delete --ignore-not-found clusterrolebinding $ns
	k delete --ignore-not-found namespace $ns $ns-tenant
} &>/dev/null

# --- the controller and Nodes

# patch_node JSON [ARGUMENT...]: patches node a as the controller.
patch_node() { as controller patch node policy-accounts-a --type merge -p "$1" "${@:2}"; }

# bats test_tags=matrix
@test "the controller writes its labels and annotations of a node" {
	allowed patch_node '{"metadata": {"labels": {"resource.nvidia.com/computeDomain": "'$uid'"}}}'
	allowed patch_node '{"metadata": {"labels": {"resource.nvidia.com/computeDomain": null, "nvidia.com/gpu.clique": "c.1"},
		"annotations": {"resource.nvidia.com/gpu-clique-label": "c.1", "resource.nvidia.com/clique-id": "c.1"}}}'
	allowed patch_node '{"metadata": {"labels": {"nvidia.com/gpu.clique": null}, "annotations": {"resource.nvidia.com/gpu-clique-label": null, "resource.nvidia.com/clique-id": null}}}'
}

# failure: the controller's token is stolen -> it changes only the driver's labels and annotations of a Node
@test "the controller changes nothing else of a node" {
	denied "may change no label of a node but" patch_node '{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}'
	denied "may change no label of a node but" patch_node '{"metadata": {"labels": {"kubernetes.io/arch": null, "x": "y"}}}'
	denied "may change no annotation of a node but" patch_node '{"metadata": {"annotations": {"example.org/any": "x"}}}'
	local sentence="may change labels and annotations of a node only"
	denied "$sentence" patch_node '{"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}'
	denied "$sentence" patch_node '{"spec": {"unschedulable": false}}'
	denied "$sentence" patch_node '{"metadata": {"finalizers": ["example.org/stay"]}}'
}

@test "the controller creates no node, deletes none, and writes no status of one" {
	local sentence="may label nodes, and do nothing else with them"
	denied "$sentence" as controller create -f - <<<"$(node policy-accounts-c)"
	denied "$sentence" as controller delete node policy-accounts-a
	denied "$sentence" patch_node '{"status": {"capacity": {"example.org/x": "1"}}}' --subresource status
	denied "$sentence" as controller get --raw /api/v1/nodes/policy-accounts-a/proxy/pods
}

# --- the controller and DaemonSets

# daemonset NAME [POD-SPEC [CONTAINER [NAMESPACE]]]: the DaemonSet as the controller creates it, with more members.
daemon_set=compute-domain-daemon
daemonset() {
	cat <<-YAML
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: $1, namespace: ${4:-$ns}, labels: {app.kubernetes.io/component: $1}, finalizers: [$domain_label]}
		spec:
		  selector: {matchLabels: {app.kubernetes.io/component: $1}}
		  updateStrategy: {type: OnDelete}
		  template:
		    metadata: {labels: {app.kubernetes.io/component: $1, app: imex-daemon}}
		    spec: {serviceAccountName: compute-domain-daemon, nodeSelector: {resource.nvidia.com/imex-daemon: "true"},
		      resourceClaims: [{name: compute-domain-daemon, resourceClaimTemplateName: compute-domain-daemon}],
		      volumes: [{name: run, emptyDir: {}}, {name: log, emptyDir: {medium: Memory}}], $2
		      containers: [{name: compute-domain-daemon, image: "$image", command: [compute-domain-daemon],
		        env: [{name: A, value: b}, {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}],
		        securityContext: {runAsUser: 0, capabilities: {drop: [ALL]}}, $3}]}
	YAML
}

# bats test_tags=matrix
@test "the controller creates, changes and deletes the DaemonSet of the daemons, with any version of its image" {
	allowed as controller apply --server-side --field-manager compute-domain-controller -f - <<<"$(daemonset $daemon_set)"
	allowed as controller apply --server-side --field-manager compute-domain-controller -f - <<<"$(image=${image%:*}@sha256:${uid//-/} daemonset $daemon_set)"
	allowed as controller -n $ns patch daemonset $daemon_set --type merge -p '{"metadata": {"finalizers": null}}'
	allowed as controller -n $ns delete daemonset $daemon_set
}

# failure: the controller's token is stolen -> its DaemonSets run only daemons without privileges
@test "the controller starts only daemons, without privileges" {
	as_daemonset() { as controller create --dry-run=server -f - <<<"$(daemonset $daemon_set "$@")"; }
	allowed as_daemonset
	denied "pods of the account compute-domain-daemon only" as_daemonset "serviceAccountName: $plugin,"
	denied "pods of the account compute-domain-daemon only" as_daemonset "serviceAccountName: compute-domain-daemon-service-account,"
	denied "no volumes except emptyDir" as_daemonset 'volumes: [{name: root, hostPath: {path: /}}],'
	denied "no volumes except emptyDir" as_daemonset 'volumes: [{name: s, secret: {secretName: x}}],'
	local field
	for field in hostNetwork hostPID hostIPC; do
		denied "no pods in the namespaces of a host" as_daemonset "$field: true,"
	done
	denied "no containers that are privileged" as_daemonset "" "securityContext: {privileged: true}"
	denied "no containers that are privileged" as_daemonset "" "securityContext: {capabilities: {add: [SYS_ADMIN]}}"
	denied "no containers that are privileged" as_daemonset "initContainers: [{name: i, image: '$image', securityContext: {privileged: true}}],"
	denied "no containers that are privileged" as_daemonset "" "ports: [{containerPort: 80, hostPort: 80}]"
	for field in 'seLinuxOptions: {type: spc_t}' 'seccompProfile: {type: Unconfined}' 'appArmorProfile: {type: Unconfined}'; do
		denied "no pods with SELinux options, or without a seccomp or AppArmor profile" as_daemonset "" "securityContext: {$field}"
		denied "no pods with SELinux options, or without a seccomp or AppArmor profile" as_daemonset "securityContext: {$field},"
	done
	denied "no devices except by the claim template compute-domain-daemon" as_daemonset 'resourceClaims: [{name: gpu, resourceClaimTemplateName: all-gpus}],'
	denied "no devices except by the claim template compute-domain-daemon" as_daemonset 'resourceClaims: [{name: gpu, resourceClaimName: all-gpus}],'
	denied "no environment from Secrets" as_daemonset "" "envFrom: [{secretRef: {name: x}}]"
	denied "with the image example.org/mirror/compute-domains only" as_daemonset "" "image: example.org/other:v1"
	denied "with the image example.org/mirror/compute-domains only" as_daemonset "" "image: 'example.org/mirror/compute-domains:5000/evil:v1'"
	denied "with the image example.org/mirror/compute-domains only" as_daemonset "initContainers: [{name: i, image: example.org/other}],"
}

@test "the controller starts pods through no other DaemonSet, and in no other namespace of the driver" {
	local sentence="may start pods by the DaemonSet compute-domain-daemon of the driver's namespace only"
	denied "$sentence" as controller create --dry-run=server -f - <<<"$(daemonset computedomain-daemon-$uid)"
	k get namespace nvidia-compute-domains &>/dev/null || k create namespace nvidia-compute-domains
	denied "$sentence" as controller create --dry-run=server -f - <<<"$(daemonset $daemon_set "" "" nvidia-compute-domains)"
}

# failure: the controller's token is stolen -> it changes no other DaemonSet
@test "the controller changes no DaemonSet of others, and not that of the kubelet plugin" {
	local sentence="may write the DaemonSet compute-domain-daemon only, and those of the Go driver"
	denied "$sentence" as controller create -f - <<<"$(daemonset other)"
	k create -f - <<<"$(daemonset other)"
	denied "$sentence" as controller -n $ns patch daemonset other --type merge -p '{"metadata": {"finalizers": null}}'
	denied "$sentence" as controller -n $ns delete daemonset other
	allowed k -n $ns patch daemonset other --type merge -p '{"metadata": {"finalizers": null}}'
	k -n $ns delete daemonset other
}

# The Go driver's DaemonSets have another image and another template. Their finalizers can be removed, but they cannot
# start anything else.
# failure: an upgrade from the Go driver is stuck -> its DaemonSets can be released and deleted [go]
@test "a DaemonSet of the Go driver can be released and deleted" {
	local go=computedomain-daemon-$uid
	k create -f - <<<"$(image=example.org/earlier:v1 daemonset $go 'hostNetwork: true,')"
	allowed as controller -n $ns annotate daemonset $go any=x
	denied "may start pods by the DaemonSet compute-domain-daemon" as controller -n $ns set image daemonset/$go compute-domain-daemon="$image"
	allowed as controller -n $ns patch daemonset $go --type merge -p '{"metadata": {"finalizers": null}}'
	allowed as controller -n $ns delete daemonset $go
}

# --- the controller and ComputeDomains

# failure: the controller's token is stolen -> it deletes ComputeDomains of racks only
@test "the controller deletes the ComputeDomains of racks only, and labels none" {
	k apply --server-side --force-conflicts -f "$chart/crds" >/dev/null
	k wait --for=condition=Established crd/computedomains.resource.nvidia.com
	k create -f - <<-YAML
		apiVersion: resource.nvidia.com/v1beta1
		kind: ComputeDomain
		metadata: {name: mine, namespace: $ns-tenant}
		spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: mine}}}
	YAML
	change() { as controller -n $ns-tenant "$1" --dry-run=server computedomain mine "${@:2}"; }
	ends change label resource.nvidia.com/rack=x
	denied "may not change the labels of a ComputeDomain" change label resource.nvidia.com/rack=x
	denied "ComputeDomains of racks only" change delete
	allowed change annotate --overwrite resource.nvidia.com/imex-mode=driverManaged
	k -n $ns-tenant delete computedomain mine --timeout=90s
}

# --- the controller and claim templates

# template NAME LABELS [CLASS [DRIVER [VERSION]]]: a claim template.
template() {
	local version=${5:-$(resource_version)}
	cat <<-YAML
		apiVersion: resource.k8s.io/$version
		kind: ResourceClaimTemplate
		metadata: {name: $1, namespace: $ns-tenant, labels: $2, finalizers: [$domain_label]}
		spec: {spec: {devices: {requests: $(in_api_version "$version" "[{name: channel, exactly: {deviceClassName: ${3:-compute-domain-default-channel.nvidia.com}}}]"),
		  config: [{requests: [channel], opaque: {driver: ${4:-compute-domain.nvidia.com}, parameters: {a: b}}}]}}}
	YAML
}

# bats test_tags=matrix
@test "the controller creates, repairs and deletes the claim templates of ComputeDomains, in every version of the API, and creates that of the daemons" {
	local version
	for version in $(resource_versions); do
		allowed as controller create --dry-run=server -f - <<<"$(template ours "{$domain_label: $uid}" "" "" $version)"
		# Someone has removed its label. As a dry run, because the controller of an installed driver does not know
		# this ComputeDomain, and would delete the template.
		k create -f - <<<"$(template ours "{}" "" "" $version)"
		patch_ours() { as controller -n $ns-tenant patch --dry-run=server "resourceclaimtemplates.$version.resource.k8s.io" ours --type merge -p "$1"; }
		allowed patch_ours '{"metadata": {"labels": {"'$domain_label'": "'$uid'"}}}'
		allowed patch_ours '{"metadata": {"finalizers": null}}'
		allowed as controller -n $ns-tenant delete --dry-run=server resourceclaimtemplate ours
		k -n $ns-tenant patch resourceclaimtemplate ours --type merge -p '{"metadata": {"finalizers": null}}'
		k -n $ns-tenant delete resourceclaimtemplate ours
	done
	allowed as controller apply --server-side --field-manager compute-domain-controller --dry-run=server -f - <<<"$(template $daemon_set '{}' compute-domain-daemon.nvidia.com | sed "s/$ns-tenant/$ns/")"
}

# failure: the controller's token is stolen -> it changes no other claim template
@test "the controller changes no claim template of others" {
	local sentence="may write the claim templates of ComputeDomains only"
	denied "$sentence" as controller create -f - <<<"$(template theirs '{}' gpu.example.com gpu.example.com)"
	k create -f - <<<"$(template theirs '{}' gpu.example.com gpu.example.com)"
	denied "$sentence" as controller -n $ns-tenant label resourceclaimtemplate theirs $domain_label=$uid
	denied "$sentence" as controller -n $ns-tenant patch resourceclaimtemplate theirs --type merge -p '{"metadata": {"finalizers": null}}'
	denied "$sentence" as controller -n $ns-tenant delete resourceclaimtemplate theirs
	k -n $ns-tenant patch resourceclaimtemplate theirs --type merge -p '{"metadata": {"finalizers": null}}'
	k -n $ns-tenant delete resourceclaimtemplate theirs
	sentence="may create claim templates for channels of ComputeDomains, and the template compute-domain-daemon for the daemons' device, only"
	denied "$sentence" as controller create -f - <<<"$(template ours "{$domain_label: $uid}" gpu.example.com)"
	denied "$sentence" as controller create -f - <<<"$(template ours '{}')"
	# Another claim template in the driver's namespace.
	denied "$sentence" as controller create -f - <<<"$(template ours "{$domain_label: $uid}" compute-domain-daemon.nvidia.com | sed "s/$ns-tenant/$ns/")"
	# Two policies deny daemon devices in a tenant's namespace, and the API server names either of them.
	either() {
		run as controller create -f - <<<"$(template "$1" "{$domain_label: $uid}" compute-domain-daemon.nvidia.com)"
		[[ $status != 0 && ($output == *"$sentence"* || $output == *"is for the IMEX daemons that the driver starts itself"*) ]]
	}
	either ours
	either $daemon_set
}

# --- the controller and claims

# shared_claim NAME OWNERS: a claim for pods on several nodes, with another finalizer than the controller's, too.
shared_claim() {
	cat <<-YAML
		apiVersion: resource.k8s.io/$(resource_version)
		kind: ResourceClaim
		metadata: {name: $1, namespace: $ns-tenant, finalizers: [$domain_label, example.org/stay], ownerReferences: $2}
		spec: {devices: {requests: [{name: channel, exactly: {deviceClassName: compute-domain-shared-channel.nvidia.com}}],
		  config: [{opaque: {driver: compute-domain.nvidia.com, parameters: {apiVersion: resource.nvidia.com/v1beta1,
		    kind: ComputeDomainChannelConfig, domainID: $uid, isolation: Channel}}}]}}
	YAML
}

# The garbage collector deletes a claim whose owner does not exist, but the finalizer keeps it.
# failure: imex.isolation changes to domain, and the controller's token is stolen -> it deletes only claims of
#   ComputeDomains
@test "without channels, the controller deletes and releases the claims of ComputeDomains, and creates and changes none" {
	[[ $(resource_version) != v1beta1 ]] || skip "this version has no claims for pods on several nodes"
	local owner="[{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, name: train, uid: $uid}]"
	patch_claim() { as controller -n $ns-tenant patch --dry-run=server resourceclaim shared --type merge -p "$1" "${@:2}"; }
	denied "may delete the claims of ComputeDomains only" as controller create --dry-run=server -f - <<<"$(shared_claim shared "$owner")"
	k create -f - <<<"$(shared_claim shared "$owner")"
	allowed patch_claim '{"metadata": {"finalizers": ["example.org/stay"]}}'
	allowed as controller -n $ns-tenant delete --dry-run=server resourceclaim shared
	local sentence="may remove its finalizer from a claim, and change nothing else"
	denied "$sentence" patch_claim '{"metadata": {"finalizers": null}}'
	denied "$sentence" patch_claim '{"metadata": {"labels": {"a": "b"}}}'
	k create -f - <<<"$(shared_claim theirs '[]')"
	denied "may delete the claims of ComputeDomains only" as controller -n $ns-tenant delete --dry-run=server resourceclaim theirs
	k -n $ns-tenant delete --wait=false resourceclaim shared theirs
	k -n $ns-tenant patch resourceclaim theirs --type merge -p '{"metadata": {"finalizers": null}}'
	k -n $ns-tenant patch resourceclaim shared --type merge -p '{"metadata": {"finalizers": null}}'
}

# --- a plugin's Events

# event NODE [COMPONENT [NAME]]: an Event as the kubelet plugin writes it.
event() {
	cat <<-YAML
		apiVersion: v1
		kind: Event
		metadata: {namespace: $ns-tenant, name: ${3:-event}}
		involvedObject: {apiVersion: v1, kind: Pod, namespace: $ns-tenant, name: some}
		type: Warning
		reason: NoIMEXChannel
		message: some words
		source: {component: ${2:-compute-domain-kubelet-plugin}, host: $1}
		reportingComponent: ${2:-compute-domain-kubelet-plugin}
		reportingInstance: $1
		firstTimestamp: "2026-01-01T00:00:00Z"
		lastTimestamp: "2026-01-01T00:00:00Z"
		count: 1
	YAML
}

# bats test_tags=matrix
@test "a plugin writes Events of its node, and counts their repetitions" {
	allowed as plugin create -f - <<<"$(event policy-accounts-a)"
	allowed as plugin -n $ns-tenant patch event event --type merge -p '{"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z"}'
	k -n $ns-tenant delete event event
}

# failure: a plugin's token is stolen -> it creates Events of its node and program only
@test "a plugin writes no Event of another node, or of another program" {
	denied "may write Events of that node only" as plugin create -f - <<<"$(event policy-accounts-b)"
	denied "may write Events of that node only" as plugin create -f - <<<"$(event policy-accounts-a | sed 's/host: .*}/host: policy-accounts-b}/')"
	denied "may write Events of compute-domain-kubelet-plugin only" as plugin create -f - <<<"$(event policy-accounts-a kubelet)"
	denied "may write Events of compute-domain-kubelet-plugin only" as plugin create -f - <<<"$(event policy-accounts-a | sed 's/component: [a-z-]*,/component: kubelet,/')"
	denied "must use its own pod's token" as plugin-unbound create -f - <<<"$(event policy-accounts-a)"
	# The other API group of Events.
	denied "may write Events of that node only" as plugin create -f - <<-YAML
		apiVersion: events.k8s.io/v1
		kind: Event
		metadata: {namespace: $ns-tenant, name: event}
		regarding: {apiVersion: v1, kind: Pod, namespace: $ns-tenant, name: some}
		type: Normal
		reason: NoIMEXChannel
		action: Prepare
		eventTime: "2026-01-01T00:00:00.000000Z"
		reportingController: compute-domain-kubelet-plugin
		reportingInstance: policy-accounts-b
	YAML
}

# failure: a plugin's token is stolen -> it changes and deletes no Event of others
@test "a plugin neither changes nor deletes an Event of others" {
	k create -f - <<<"$(event policy-accounts-b)"
	denied "may write Events of that node only" as plugin -n $ns-tenant patch event event --type merge -p '{"count": 2}'
	denied "may write Events of that node only" as plugin -n $ns-tenant patch event event --type merge \
		-p '{"reportingInstance": "policy-accounts-a", "source": {"host": "policy-accounts-a"}}'
	denied "may write Events of that node only" as plugin -n $ns-tenant delete event event
	k -n $ns-tenant delete event event
}

# --- claims of the daemons' device

# claim VERSION REQUEST [CONFIG [NAMESPACE]]: prints a claim. claim_template: prints a claim template.
claim() {
	cat <<-YAML
		apiVersion: resource.k8s.io/$1
		kind: ResourceClaim
		metadata: {generateName: c-, namespace: ${4:-$ns-tenant}}
		spec: {devices: {requests: [$2], config: ${3:-[]}}}
	YAML
}
claim_template() {
	cat <<-YAML
		apiVersion: resource.k8s.io/$1
		kind: ResourceClaimTemplate
		metadata: {generateName: c-, namespace: ${4:-$ns-tenant}}
		spec: {spec: {devices: {requests: [$2], config: ${3:-[]}}}}
	YAML
}

# each_way REQUEST CONFIG NAMESPACE [SENTENCE]: claims and claim templates, in every version of the API, are all
# denied with this sentence, or all allowed if there is none.
each_way() {
	local version make versions
	versions=$(resource_versions)
	for version in $versions; do
		for make in claim claim_template; do
			echo "---"
			$make "$version" "$(in_api_version "$version" "$1")" "$2" "$3"
		done
	done >"$BATS_TEST_TMPDIR/each-way.yaml"
	run k create --dry-run=server -f "$BATS_TEST_TMPDIR/each-way.yaml"
	[[ $(grep -cF "${4:-created (server dry run)}" <<<"$output") == $((2 * $(wc -w <<<"$versions"))) ]] || {
		echo "unexpected result: $output"
		return 1
	}
}
daemon='exactly: {deviceClassName: compute-domain-daemon.nvidia.com}'
channel='{name: r, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}'
daemon_config='[{opaque: {driver: compute-domain.nvidia.com, parameters: {kind: ComputeDomainDaemonConfig}}}]'

# failure: a tenant creates a claim for the device of daemons -> it is refused in every API version
# bats test_tags=matrix
@test "claims and claim templates for daemon devices are denied outside the driver's namespaces, in every version of the API" {
	each_way "{name: r, $daemon}" '[]' "" "the device class compute-domain-daemon.nvidia.com is for the IMEX daemons that the driver starts itself; a workload gets its channel by the claim template"
	each_way "{name: r, exactly: {deviceClassName: compute-domain-daemon.nvidia.com, allocationMode: All}}" '[]' "" "the device class compute-domain-daemon.nvidia.com is"
	each_way "{name: q, exactly: {deviceClassName: gpu.example.com}}, {name: r, $daemon}" '[]' "" "the device class compute-domain-daemon.nvidia.com is"
	each_way "$channel" "$daemon_config" "" "ComputeDomainDaemonConfig is for the IMEX daemons that the driver starts itself"
}

# bats test_tags=matrix
@test "a firstAvailable list that contains daemon devices is denied, in every version of the API" {
	since 34 "firstAvailable is behind a gate before 1.34"
	each_way "{name: r, firstAvailable: [{name: a, deviceClassName: gpu.example.com}, {name: b, deviceClassName: compute-domain-daemon.nvidia.com}]}" '[]' "" "the device class compute-domain-daemon.nvidia.com is"
}

# failure: a claim for a channel names no ComputeDomain -> it is refused in every API version
# bats test_tags=matrix
@test "claims for a channel that name no ComputeDomain are denied, in every version of the API" {
	local sentence="the device class compute-domain-default-channel.nvidia.com gives a channel of a ComputeDomain, and no configuration of this claim names one"
	local ours='opaque: {driver: compute-domain.nvidia.com, parameters: {kind: ComputeDomainChannelConfig}}'
	each_way "$channel" '[]' "" "$sentence"
	each_way "$channel" '[{opaque: {driver: gpu.example.com, parameters: {kind: ComputeDomainChannelConfig}}}]' "" "$sentence"
	each_way "{name: q, exactly: {deviceClassName: gpu.example.com}}, $channel" "[{requests: [q], $ours}]" "" "$sentence"
	each_way "{name: q, exactly: {deviceClassName: gpu.example.com}}, $channel" "[{requests: [q, r], $ours}]" ""
}

# bats test_tags=matrix
@test "a firstAvailable list that contains a channel without a ComputeDomain is denied, in every version of the API" {
	since 34 "firstAvailable is behind a gate before 1.34"
	local choice='{name: r, firstAvailable: [{name: a, deviceClassName: gpu.example.com}, {name: b, deviceClassName: compute-domain-default-channel.nvidia.com}]}'
	local ours='opaque: {driver: compute-domain.nvidia.com, parameters: {kind: ComputeDomainChannelConfig}}'
	each_way "$choice" '[]' "" "the device class compute-domain-default-channel.nvidia.com gives a channel"
	each_way "$choice" "[{requests: [r/b], $ours}]" ""
	each_way "$choice" "[{requests: [r], $ours}]" ""
}

@test "claims for daemon devices are allowed in the driver's own namespace, and in one that it ran in before" {
	each_way "{name: r, $daemon}" "$daemon_config" $ns
	k get namespace nvidia-compute-domains &>/dev/null || k create namespace nvidia-compute-domains
	each_way "{name: r, $daemon}" "$daemon_config" nvidia-compute-domains
}

@test "claims for other devices are not affected by the policy for daemon devices" {
	each_way "$channel" '[{opaque: {driver: compute-domain.nvidia.com, parameters: {kind: ComputeDomainChannelConfig}}}]' ""
	each_way "{name: r, exactly: {deviceClassName: gpu.example.com}}" '[{opaque: {driver: gpu.example.com, parameters: {kind: ComputeDomainDaemonConfig}}}]' ""
	each_way "$channel" '[{opaque: {driver: compute-domain.nvidia.com, parameters: {kind: 7}}}]' ""
	each_way "{name: r, firstAvailable: [{name: a, deviceClassName: gpu.example.com}]}" '[]' ""
	k create --dry-run=server -f - <<-YAML
		apiVersion: resource.k8s.io/$(resource_version)
		kind: ResourceClaim
		metadata: {name: nothing, namespace: $ns-tenant}
		spec: {}
	YAML
}

# --- the policies themselves

# bats test_tags=matrix
@test "the API server reports no warnings about the policies for accounts" {
	no_warnings_about policy-accounts-controller-nodes policy-accounts-controller-daemonsets policy-accounts-controller-claimtemplates \
		policy-accounts-controller-sharedclaims \
		policy-accounts-events policy-accounts-daemon-claims
}

# The last test, because its policy replaces the other one.
# failure: IMEX is host-managed -> claims for the device of daemons are refused too
@test "claims for daemon devices are also denied if the hosts run IMEX" {
	render --set featureGates.HostManagedIMEX=true | k apply -f - >/dev/null
	local end=$((SECONDS + 60))
	until [[ $(k create --dry-run=server -f "$BATS_FILE_TMPDIR/claim.yaml" 2>&1) == *"and the hosts run nvidia-imex themselves"* ]]; do ((SECONDS < end)); done
	each_way "{name: r, $daemon}" '[]' "" "the hosts run nvidia-imex themselves; a workload gets its channel by the claim template"
}
