# SPDX-License-Identifier: Apache-2.0
# What the API server accepts and what it denies: the schemas of the driver's kinds, the roles of its three programs,
# and the admission policies that restrict a plugin to its node, its pod, and an annotation of the pods that wait there,
# and a daemon (also one of the Go driver) to its pod. Also what the chart refuses when it finds daemons.
#
# The tests need a running cluster. They use their own namespace and release, so the driver may be installed. Their
# pods are bound to Nodes without a kubelet, which is enough for a token that names a node.

load policy.bash

ns=policy-test
plugin=policy-test-service-account-kubeletplugin
controller=policy-test-service-account-controller
daemon=compute-domain-daemon
go_daemon=compute-domain-daemon-service-account

# templates NAME... [-- HELM ARGUMENT...]: renders these templates of the chart.
templates() {
	local names=()
	while (($#)) && [[ $1 != -- ]]; do
		names+=(--show-only "templates/$1.yaml")
		shift
	done
	"$BATS_TEST_DIRNAME/helm" template policy-test "$chart" --namespace $ns --set nameOverride=policy-test --set image.repository=compute-domains/compute-domains \
		--kube-version 1.37.0 "${names[@]}" "${@:2}"
}
# With channels, the controller also writes the slice of shared claims.
render() {
	templates rbac-daemon rbac-kubelet-plugin policy-daemon-pods policy-plugin-pods policy-waiting-pods policy-resourceslices
	echo ---
	templates rbac-controller policy-controller -- --set resources.computeDomains.imex.isolation=channel
}

# with_claims: adds a claim, which does not exist, to the pod in the input.
with_claims() { sed 's/^  containers:/  resourceClaims: [{name: channel, resourceClaimName: none}]\n&/'; }

# slice NAME NODE [POOL] [DRIVER] [API VERSION]
slice() {
	cat <<-YAML
		apiVersion: resource.k8s.io/${5:-$(resource_version)}
		kind: ResourceSlice
		metadata: {name: $ns-$1}
		spec:
		  driver: ${4:-compute-domain.nvidia.com}
		  nodeName: $2
		  pool: {name: ${3:-$2}, generation: 1, resourceSliceCount: 1}
	YAML
}

# shared_slice [SCRIPT]: the slice of shared claims, changed by the sed script.
shared_slice() {
	sed "${1-}" <<-YAML
		apiVersion: resource.k8s.io/$(resource_version)
		kind: ResourceSlice
		metadata: {name: compute-domain.nvidia.com-shared}
		spec:
		  driver: compute-domain.nvidia.com
		  pool: {name: shared/channel, generation: 1, resourceSliceCount: 1}
		  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: $ns, operator: Exists}]}]}
	YAML
}
foreign='s|name: shared/channel|name: policy-a|; s|nodeSelector: .*|nodeName: policy-a|'

setup_file() {
	k get --raw /readyz >/dev/null
	clean
	k apply --server-side --force-conflicts -f "$chart/crds"
	k wait --for=condition=Established crd/computedomains.resource.nvidia.com crd/computedomaincliques.resource.nvidia.com
	k create namespace $ns
	k create namespace $ns-tenant
	# An installed driver's policy would deny this release's controller.
	k get validatingadmissionpolicybinding compute-domains-shared-slice -o json | jq 'del(.metadata.uid, .metadata.resourceVersion)' >"$BATS_FILE_TMPDIR/binding.json" || true
	k delete --ignore-not-found validatingadmissionpolicybinding compute-domains-shared-slice
	render | k apply -f -
	# The account has all rights in the namespace, also on subresources, so only the policies can deny something.
	k -n $ns create rolebinding everything --clusterrole=cluster-admin --serviceaccount=$ns:$daemon --serviceaccount=$ns:$plugin --serviceaccount=$ns:$go_daemon

	# In other namespaces, the role of the chart gives it the right to patch pods. kubectl also reads what it patches.
	k -n $ns-tenant create rolebinding reads --clusterrole=view --serviceaccount=$ns:$plugin

	{
		node policy-a
		node policy-b
		pod plugin-a $plugin policy-a
		pod plugin-b $plugin policy-b
		pod go-daemon-a $go_daemon policy-a
		pod daemon-a $daemon policy-a
		pod daemon-b $daemon policy-b
		pod workload default policy-a
		pod waiting-a default policy-a | with_claims
		pod waiting-b default policy-b | with_claims
		pod waiting-nowhere default "" | with_claims
		ns=$ns-tenant pod waiting-a default policy-a | with_claims
	} | k create -f -
	bound_token plugin $plugin plugin-a
	bound_token daemon $daemon daemon-a
	bound_token go-daemon $go_daemon go-daemon-a
	bound_token tenant default workload
	k -n $ns create token $plugin >"$BATS_FILE_TMPDIR/plugin-unbound.token"
	k -n $ns create token $daemon >"$BATS_FILE_TMPDIR/daemon-unbound.token"
	k -n $ns create token $controller >"$BATS_FILE_TMPDIR/controller.token"
	without_identity

	# Only a request that is denied shows that the API server enforces a policy.
	local end=$((SECONDS + 60))
	slice b policy-b >"$BATS_FILE_TMPDIR/foreign.yaml"
	shared_slice "$foreign" >"$BATS_FILE_TMPDIR/shared.yaml"
	while as plugin create --dry-run=server -f "$BATS_FILE_TMPDIR/foreign.yaml" ||
		k create --dry-run=server -f "$BATS_FILE_TMPDIR/shared.yaml" ||
		as controller create --dry-run=server -f "$BATS_FILE_TMPDIR/shared.yaml" ||
		as daemon -n $ns annotate --overwrite --dry-run=server pod daemon-b x=y ||
		as go-daemon -n $ns annotate --overwrite --dry-run=server pod daemon-b x=y ||
		as plugin -n $ns annotate --overwrite --dry-run=server pod plugin-a x=y ||
		as plugin -n $ns annotate --overwrite --dry-run=server pod plugin-b x=y; do
		((SECONDS < end)) || return 1
	done &>/dev/null
}

teardown_file() {
	clean
	[[ ! -s $BATS_FILE_TMPDIR/binding.json ]] || k apply -f "$BATS_FILE_TMPDIR/binding.json"
}

clean() {
	k delete --ignore-not-found resourceslice $ns-a $ns-b $ns-all compute-domain.nvidia.com-shared
	k -n $ns delete --ignore-not-found --force --grace-period=0 pods --all
	k delete --ignore-not-found node policy-a policy-b
	render | k delete --ignore-not-found -f -
	k delete --ignore-not-found crd earlierdomains.earlier.example.com
	k -n $ns-tenant delete --ignore-not-found --force --grace-period=0 pods --all
	k delete --ignore-not-found namespace $ns $ns-tenant
} &>/dev/null

# --- schemas

domain() {
	cat <<-YAML
		apiVersion: resource.nvidia.com/v1beta1
		kind: ComputeDomain
		metadata: {name: ${1:-domain}, namespace: $ns}
		${2-"spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: domain-template}}}"}
	YAML
}

@test "a ComputeDomain needs a spec, and a name for its claim template" {
	allowed k create -f - <<<"$(domain)"
	denied "spec: Required" k create -f - <<<"$(domain none '')"
	denied "spec.channel: Required" k create -f - <<<"$(domain none 'spec: {numNodes: 1}')"
	denied "resourceClaimTemplate.name: Required" k create -f - <<<"$(domain none 'spec: {channel: {resourceClaimTemplate: {}}}')"
	denied "numNodes" k create -f - <<<"$(domain none 'spec: {numNodes: -1, channel: {resourceClaimTemplate: {name: x}}}')"
	denied "allocationMode" k create -f - <<<"$(domain none 'spec: {channel: {resourceClaimTemplate: {name: x}, allocationMode: Some}}')"
}

# failure: a ComputeDomain has no numNodes -> it is admitted with the default 0 [go]
@test "a ComputeDomain gets the defaults of the Go driver" {
	k apply -f - <<<"$(domain defaults 'spec: {channel: {resourceClaimTemplate: {name: x}}}')"
	[[ $(k -n $ns get computedomain defaults -o jsonpath='{.spec.numNodes} {.spec.channel.allocationMode}') == "0 Single" ]]
}

# failure: numNodes of a ComputeDomain is changed -> the change is admitted [upgrade]
@test "a ComputeDomain's channel is immutable, and numNodes is not" {
	k apply -f - <<<"$(domain)"
	denied "spec.channel of a ComputeDomain is immutable" k -n $ns patch cd domain --type merge -p '{"spec": {"channel": {"allocationMode": "All"}}}'
	denied "spec.channel of a ComputeDomain is immutable" k -n $ns patch cd domain --type merge -p \
		'{"spec": {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "other"}}}}'
	allowed k -n $ns patch cdom domain --type merge -p '{"spec": {"numNodes": 2}}'
	allowed k -n $ns label cd domain some=label
}

# long N: a ComputeDomain with N letters in the name of its claim template.
long() { domain "${2:-long}" "spec: {channel: {resourceClaimTemplate: {name: $(head -c "$1" /dev/zero | tr '\0' a)}}}"; }

# failure: the name of a claim template is very long -> the API server refuses it
@test "the name of a ComputeDomain's claim template is valid as the name of an object" {
	local name
	denied "Too long: may not be more than 253 bytes" k create -f - <<<"$(long 1000000)"
	denied "Too long: may not be more than 253 bytes" k create -f - <<<"$(long 254)"
	allowed k create -f - <<<"$(long 253)"
	for name in '""' Upper under_score two/parts .dot dash-; do
		denied "should match" k create -f - <<<"$(domain none "spec: {channel: {resourceClaimTemplate: {name: $name}}}")"
	done
}

# With another group and kind, so that the driver's definition stays as it is, and kubectl does not confuse them.
earlier() { sed 's/resource\.nvidia\.com/earlier.example.com/; s/computedomain/earlierdomain/g; s/ComputeDomain/EarlierDomain/g'; }
# The server uses the later definition.
admits_long() { long 300 next | earlier | k create --dry-run=server -f -; }
refuses_long() { admits_long 2>&1 | grep -q "Too long"; }

# failure: an older ComputeDomain has a longer template name -> it can be changed and deleted [upgrade]
@test "a ComputeDomain with a longer name that an earlier definition accepted can still be changed and deleted" {
	local definition
	definition=$(earlier <"$chart/crds/resource.nvidia.com_computedomains.yaml" | sed 's/^      - cdom$/      - earlier/; /^      - cd$/d')
	k apply --server-side --force-conflicts -f - <<<"$(sed '/^ *maxLength: 253$/d; /^ *pattern: .a-z0-9/d' <<<"$definition")"
	k wait --for=condition=Established crd/earlierdomains.earlier.example.com
	begins admits_long
	long 300 | earlier | k apply -f -
	k apply --server-side --force-conflicts -f - <<<"$definition"
	begins refuses_long
	allowed k -n $ns patch earlier long --type merge -p '{"metadata": {"finalizers": ["earlier.example.com/x"], "labels": {"some": "label"}}}'
	allowed k -n $ns patch earlier long --type merge -p '{"spec": {"numNodes": 2}}'
	allowed k -n $ns patch earlier long --type merge -p '{"metadata": {"finalizers": null}}'
	allowed k -n $ns delete earlier long
}

@test "a ComputeDomain's status has counts, conditions and nodes, and a list shows it" {
	# As a dry run, because the controller of an installed driver also writes the status.
	k apply -f - <<<"$(domain shown)"
	run k -n $ns patch cd shown --subresource status --dry-run=server -o json --type merge -p '{"status": {"status": "Ready", "nodesReady": 2,
		"nodesWanted": 3, "cliques": 1, "nodes": [{"name": "node-1", "ipAddress": "1.2.3.4", "cliqueID": "", "index": -1}],
		"conditions": [{"type": "Ready", "status": "False", "reason": "Waiting", "message": "for node-2",
		"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}'
	jq -e '.status | .nodesReady == 2 and .nodesWanted == 3 and .cliques == 1 and .nodes[0].status == "NotReady" and .conditions[0].reason == "Waiting"' <<<"$output"
	run k -n $ns get cd shown
	[[ ${lines[0]} =~ ^NAME\ +STATUS\ +READY\ +WANTED\ +CLIQUES\ +AGE$ ]]
	denied "Unsupported value" k -n $ns patch cd shown --subresource status --dry-run=server --type merge -p '{"status": {"status": ""}}'
	# The Go driver's controller writes it like this.
	allowed k -n $ns patch cd shown --subresource status --dry-run=server --type json -p '[{"op": "add", "path": "/status", "value":
		{"status": "NotReady", "nodes": [{"name": "node-1", "ipAddress": "1.2.3.4", "cliqueID": "c.1", "index": 0, "status": "Ready"}]}}]'
}

@test "a ComputeDomainClique lists daemons at its root" {
	allowed k apply -f - <<-YAML
		apiVersion: resource.nvidia.com/v1beta1
		kind: ComputeDomainClique
		metadata: {name: 6c5a4d3e-0000-4000-8000-000000000000.7b6a5948-0000-4000-8000-000000000000.1, namespace: $ns}
		daemons: [{nodeName: node-1, ipAddress: 1.2.3.4, cliqueID: 7b6a5948-0000-4000-8000-000000000000.1, index: 0}]
	YAML
	[[ $(k -n $ns get computedomaincliques -o jsonpath='{.items[0].daemons[0].status}') == NotReady ]]
}

@test "kubectl explains a ComputeDomain" {
	run k explain computedomain.spec.channel.resourceClaimTemplate.name
	[[ $output == *"resourceClaimTemplateName"* ]]
}

# --- roles

# may ACCOUNT VERB RESOURCE [ARGUMENT...]
may() {
	local account=$1
	shift
	[[ $(k auth can-i --as "system:serviceaccount:$ns:$account" "$@" 2>/dev/null) == yes ]]
}

@test "the controller may update the definitions of the driver's kinds, and no others" {
	local crd=$chart/crds/resource.nvidia.com
	allowed as controller apply --server-side --force-conflicts --field-manager test --dry-run=server -f "${crd}_computedomains.yaml" -f "${crd}_computedomaincliques.yaml"
	allowed as controller apply --server-side --force-conflicts --field-manager test --dry-run=server -f "${crd}_computedomainfabrics.yaml"
	sed 's/name: computedomains/name: otherdomains/; s/plural: computedomains/plural: otherdomains/' "$chart/crds/resource.nvidia.com_computedomains.yaml" >"$BATS_TEST_TMPDIR/crd.yaml"
	denied "Forbidden" as controller apply --server-side --dry-run=server -f "$BATS_TEST_TMPDIR/crd.yaml"
	may $controller create customresourcedefinitions/computedomains.resource.nvidia.com
	! may $controller create customresourcedefinitions || false
}

@test "a plugin may read its node, and write slices and patch pods, and neither plugins nor daemons read pods elsewhere" {
	may $plugin get nodes
	may $plugin create resourceslices.resource.k8s.io
	local verb
	for verb in update patch delete; do
		! may $plugin $verb nodes || false
		! may $plugin $verb computedomains.resource.nvidia.com --all-namespaces || false
	done
	for verb in get list watch update delete create; do
		! may $plugin $verb pods --all-namespaces || false
	done
	may $plugin patch pods --all-namespaces
	! may $plugin patch pods --subresource=status --all-namespaces || false
	for verb in list watch patch; do
		! may $daemon $verb pods --all-namespaces || false
		! may $go_daemon $verb pods --all-namespaces || false
	done
	! may $plugin get secrets --all-namespaces || false
}

@test "the controller may neither read secrets nor write the pods of users" {
	may $controller patch nodes
	may $controller delete pods -n $ns
	! may $controller get secrets --all-namespaces || false
	! may $controller list pods --all-namespaces || false
	! may $controller create pods -n $ns || false
}

# --- a plugin's slices

# bats test_tags=matrix
@test "a plugin writes the slices of its node" {
	allowed as plugin create -f - <<<"$(slice a policy-a)"
	allowed as plugin replace -f - <<<"$(slice a policy-a | sed 's/generation: 1/generation: 2/')"
	allowed as plugin delete resourceslice $ns-a
}

# failure: a plugin's token is stolen -> it publishes only the slices of its node
@test "a plugin cannot publish slices of another node, or of all nodes" {
	denied "node policy-a may write the slices of that node only" as plugin create -f - <<<"$(slice b policy-b)"
	denied "node policy-a may write the slices of that node only" as plugin create -f - <<-YAML
		apiVersion: resource.k8s.io/$(resource_version)
		kind: ResourceSlice
		metadata: {name: $ns-all}
		spec:
		  driver: compute-domain.nvidia.com
		  allNodes: true
		  pool: {name: policy-a, generation: 1, resourceSliceCount: 1}
	YAML
}

@test "a plugin cannot publish into another node's pool, or as another driver" {
	denied "may write to the pool of that name only" as plugin create -f - <<<"$(slice a policy-a policy-b)"
	denied "slices of compute-domain.nvidia.com only" as plugin create -f - <<<"$(slice a policy-a policy-a gpu.nvidia.com)"
}

# A dry run, because an installed driver may have the slice.
# failure: a kubelet's certificate is stolen -> it does not take the name of the slice of shared claims
@test "only the controller creates a slice with the name of the slice of shared claims" {
	local sentence="only the controller may write the slice compute-domain.nvidia.com-shared"
	k delete --ignore-not-found resourceslice compute-domain.nvidia.com-shared
	denied "$sentence" as plugin create --dry-run=server -f - <<<"$(shared_slice "$foreign")"
	denied "$sentence" k create --dry-run=server --as system:node:policy-a --as-group system:nodes -f - <<<"$(shared_slice "$foreign")"
	denied "$sentence" k create --dry-run=server -f - <<<"$(shared_slice)"
	denied "of the pool shared/channel only" as controller create --dry-run=server -f - <<<"$(shared_slice "$foreign")"
	allowed as controller create --dry-run=server -f - <<<"$(shared_slice)"
}

# failure: another client has taken the name of the slice of shared claims -> the controller can delete that slice
@test "the controller deletes any slice with the name of the slice of shared claims" {
	k delete validatingadmissionpolicybinding policy-test-shared-slice
	k delete --ignore-not-found resourceslice compute-domain.nvidia.com-shared
	# The controller of an installed driver may delete it, too; the finalizer keeps it for the test.
	sed 's/^metadata: {/&finalizers: [example.org\/stay], /' "$BATS_FILE_TMPDIR/shared.yaml" >"$BATS_TEST_TMPDIR/kept.yaml"
	begins k create -f "$BATS_TEST_TMPDIR/kept.yaml"
	allowed as controller delete --wait=false resourceslice compute-domain.nvidia.com-shared
	k patch resourceslice compute-domain.nvidia.com-shared --type merge -p '{"metadata": {"finalizers": null}}'
	k wait --for=delete resourceslice/compute-domain.nvidia.com-shared --timeout=30s
	render | k apply -f - >/dev/null
	ends k create --dry-run=server -f "$BATS_FILE_TMPDIR/shared.yaml"
}

@test "a plugin cannot change or delete slices of another node" {
	k apply -f - <<<"$(slice b policy-b)"
	denied "node policy-a may write the slices of that node only" as plugin replace -f - <<<"$(slice b policy-b | sed 's/generation: 1/generation: 2/')"
	denied "node policy-a may write the slices of that node only" as plugin delete resourceslice $ns-b
	k delete resourceslice $ns-b
}

# bats test_tags=matrix
@test "a plugin's slices are confined in every version of the API" {
	local version
	for version in $(resource_versions); do
		denied "node policy-a may write the slices of that node only" \
			as plugin create -f - <<<"$(slice b policy-b policy-b compute-domain.nvidia.com "$version")"
	done
}

@test "a plugin's account without a pod writes no slice at all" {
	denied "must use its own pod's token" as plugin-unbound create -f - <<<"$(slice a policy-a)"
	denied "must use its own pod's token" k create --as "system:serviceaccount:$ns:$plugin" -f - <<<"$(slice a policy-a)"
}

@test "slices of other drivers are not affected" {
	allowed k create -f - <<<"$(slice b policy-b other-pool gpu.nvidia.com)"
	allowed k delete resourceslice $ns-b
}

# --- a plugin's pod

claim_uid=3f0c7d2a-0000-4000-8000-000000000000

# plugin_patch POD JSON [ARGUMENT...]: patches a pod as the plugin of node policy-a.
plugin_patch() { as plugin -n $ns patch pod "$1" --type merge -p "$2" "${@:3}"; }

# bats test_tags=matrix
@test "a plugin reports on its own pod which daemon claim it has unprepared" {
	allowed plugin_patch plugin-a "$(unprepared $claim_uid)"
	[[ $(k -n $ns get pod plugin-a -o json | jq -r '.metadata.annotations["imex.resource.nvidia.com/unprepared-daemon-claim"]') == "$claim_uid" ]]
	allowed plugin_patch plugin-a "$(unprepared 3f0c7d2a-0000-4000-8000-000000000001)"
	allowed plugin_patch plugin-a "$(unprepared)"
	allowed plugin_patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/withheld": "FabricError: x"}}}'
	allowed plugin_patch plugin-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/refused-daemon-pod": "3f0c7d2a-0000-4000-8000-000000000002"}}}'
}

# bats test_tags=matrix
@test "a plugin does not report it on another pod" {
	local name
	for name in plugin-b daemon-a go-daemon-a workload; do
		denied "may change only its own pod, and pods with resourceClaims on that node" plugin_patch $name "$(unprepared $claim_uid)"
	done
	denied "may change no annotation of a pod that waits but" plugin_patch waiting-a "$(unprepared $claim_uid)"
}

@test "a plugin's account without a pod reports nothing" {
	denied "must use its own pod's token" as plugin-unbound -n $ns patch pod plugin-a --type merge -p "$(unprepared $claim_uid)"
	denied "must use its own pod's token" k -n $ns patch --as "system:serviceaccount:$ns:$plugin" pod plugin-a --type merge -p "$(unprepared $claim_uid)"
}

# Such annotations on the pods of other programs have no effect: the controller reads this annotation on pods of the
# plugin only.
# bats test_tags=matrix
@test "no other account reports on a plugin's pod which daemon claim is unprepared" {
	denied "an IMEX daemon may change its own pod only" patch plugin-a "$(unprepared $claim_uid)"
	denied "an IMEX daemon may change its own pod only" as go-daemon -n $ns patch pod plugin-a --type merge -p "$(unprepared $claim_uid)"
	denied "User \"system:serviceaccount:$ns:default\" cannot" as tenant -n $ns patch pod plugin-a --type merge -p "$(unprepared $claim_uid)"
}

@test "a daemon cannot turn its pod into one of the plugin's" {
	denied "may change no label" patch daemon-a '{"metadata": {"labels": {"app.kubernetes.io/component": "kubelet-plugin"}}}'
	denied "may change no label" as go-daemon -n $ns patch pod go-daemon-a --type merge -p '{"metadata": {"labels": {"app.kubernetes.io/component": "kubelet-plugin"}}}'
}

# With this configuration, the annotations for host-managed IMEX and for channel isolation are not allowed.
@test "a plugin changes no other annotation of its pod, no label, and nothing else" {
	local key
	for key in unprepared-daemon-claim2 refused-daemon-pod2 withheld2 report state host-state host-channels; do
		denied "may change no annotation of its pod but imex.resource.nvidia.com/unprepared-daemon-claim, refused-daemon-pod and withheld" \
			plugin_patch plugin-a "{\"metadata\": {\"annotations\": {\"imex.resource.nvidia.com/$key\": \"x\"}}}"
	done
	denied "may change no annotation" plugin_patch plugin-a '{"metadata": {"annotations": {"example.org/kept": null}}}'
	denied "may change no label" plugin_patch plugin-a '{"metadata": {"labels": {"new": "label"}}}'
	denied "labels and annotations of its pod only" plugin_patch plugin-a '{"spec": {"activeDeadlineSeconds": 1}}'
}

# --- pods that wait for a retry of Prepare

retry_key=resource.nvidia.com/retry-prepare
# retries [TIME]: prints the patch by which a plugin asks the kubelet of the pod to retry.
retries() { jq -cn --arg key $retry_key --arg time "${1-2026-11-28T00:00:00.000001Z}" '{metadata: {annotations: {($key): $time}}}'; }

# bats test_tags=matrix
@test "a plugin asks for a retry of the pods with claims on its node, in any namespace" {
	allowed plugin_patch waiting-a "$(retries)"
	allowed plugin_patch waiting-a "$(retries 2026-11-28T00:00:02.000001Z)"
	[[ $(k -n $ns get pod waiting-a -o json | jq -r ".metadata.annotations[\"$retry_key\"]") == 2026-11-28T00:00:02.000001Z ]]
	allowed as plugin -n $ns-tenant patch pod waiting-a --type merge -p "$(retries)"
	denied "metadata.uid" plugin_patch waiting-a "$(retries | jq -c '.metadata.uid = "3f0c7d2a-0000-4000-8000-000000000000"')"
}

# The scheduler writes this status.
# bats test_tags=matrix
@test "a plugin asks for a retry of a pod whose claim is for an extended resource" {
	since 36 "this version has no claims for extended resources"
	pod extended-a default policy-a | sed 's/image: [^}]*/&, resources: {limits: {example.org\/gpu: "1"}}/' | k create -f -
	denied "pods with resourceClaims on that node" plugin_patch extended-a "$(retries)"
	k -n $ns patch pod extended-a --subresource status --type merge -p '{"status": {"extendedResourceClaimStatus": {"resourceClaimName": "none",
		"requestMappings": [{"containerName": "main", "resourceName": "example.org/gpu", "requestName": "container-0-request-0"}]}}}'
	allowed plugin_patch extended-a "$(retries)"
}

# failure: a plugin's token is stolen -> it changes no pod of another node, and none without claims
# bats test_tags=matrix
@test "a plugin asks for no retry of a pod of another node, of no node, or without claims" {
	local name
	for name in waiting-b waiting-nowhere workload plugin-b daemon-a; do
		denied "the kubelet plugin of node policy-a may change only its own pod, and pods with resourceClaims on that node" plugin_patch $name "$(retries)"
	done
	denied "may change no annotation of its pod but" plugin_patch plugin-a "$(retries)"
}

@test "a plugin's account without a pod asks for no retry" {
	denied "must use its own pod's token" as plugin-unbound -n $ns patch pod waiting-a --type merge -p "$(retries)"
	denied "must use its own pod's token" k -n $ns patch --as "system:serviceaccount:$ns:$plugin" pod waiting-a --type merge -p "$(retries)"
}

# failure: a plugin's token is stolen -> it changes nothing but one annotation of pods with claims on its node
# bats test_tags=matrix
@test "a plugin changes no other annotation and no label of a pod that waits" {
	local sentence="may change no annotation of a pod that waits but $retry_key"
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"annotations": {"example.org/any": "x"}}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"annotations": {"resource.nvidia.com/retry-prepare2": "x"}}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"annotations": {"example.org/kept": "no"}}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"annotations": {"example.org/kept": null}}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"annotations": null}}'
	sentence="may change no label of a pod that waits"
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"labels": {"new": "label"}}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"labels": {"app": "other"}}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"labels": {"app": null}}}'
	denied "$sentence" as plugin -n $ns label --overwrite pod waiting-a app=other
}

@test "a plugin changes nothing else of a pod that waits" {
	local sentence="may change one annotation of a pod that waits, and nothing else"
	denied "$sentence" plugin_patch waiting-a '{"spec": {"activeDeadlineSeconds": 1}}'
	denied "$sentence" plugin_patch waiting-a '{"spec": {"tolerations": [{"operator": "Exists"}, {"key": "x", "operator": "Exists"}]}}'
	denied "$sentence" plugin_patch waiting-a "$(retries | jq -c '.spec.activeDeadlineSeconds = 1')"
	denied "$sentence" as plugin -n $ns set image pod/waiting-a main=example.org/other:1
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"finalizers": ["example.org/stay"]}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}}'
	denied "$sentence" plugin_patch waiting-a '{"metadata": {"generateName": "other-"}}'
	denied "$sentence" as plugin replace -f - <<<"$(k -n $ns get pod waiting-a -o json | jq '.spec.containers[0].image = "example.org/other:1"')"
	denied "$sentence" as plugin -n $ns patch pod waiting-a --type json -p '[{"op": "replace", "path": "/spec/containers/0/image", "value": "example.org/other:1"}]'
	denied "" as plugin apply --server-side --force-conflicts -f - <<-YAML
		{apiVersion: v1, kind: Pod, metadata: {name: waiting-a, namespace: $ns, labels: {new: label}}}
	YAML
}

@test "the annotation for a retry of Prepare carries nothing but a time" {
	local value
	for value in x "2026-11-28T00:00:00Z " "$(printf '1%.0s' {1..41})" '{"a": 1}' $'1\n2'; do
		denied "the value of $retry_key must be a time" plugin_patch waiting-a "$(retries "$value")"
	done
}

@test "a plugin neither creates nor deletes pods with claims" {
	local sentence="may change only its own pod, and pods with resourceClaims on that node"
	denied "$sentence" as plugin -n $ns delete pod waiting-a
	denied "$sentence" as plugin delete --raw "/api/v1/namespaces/$ns/pods?dryRun=All&labelSelector=app=imex-daemon"
	denied "$sentence" as plugin create -f - <<<"$(pod another default policy-a | with_claims)"
}

# No role of the driver grants them, but an administrator's role might.
# failure: a plugin's token is stolen -> it reaches no subresource of a pod
@test "a plugin reaches no subresource of a pod that waits" {
	local sentence="may change only its own pod, and pods with resourceClaims on that node"
	denied "$sentence" plugin_patch waiting-a '{"spec": {"ephemeralContainers": [{"name": "e", "image": "example.org/other:1"}]}}' --subresource ephemeralcontainers
	denied "$sentence" plugin_patch waiting-a "$(retries)" --subresource resize
	denied "$sentence" plugin_patch waiting-a '{"status": {"message": "x"}}' --subresource status
	denied "$sentence" plugin_patch waiting-a "$(retries)" --subresource status
	denied "$sentence" as plugin -n $ns exec waiting-a -- true
	denied "$sentence" as plugin create --raw /api/v1/namespaces/$ns/pods/waiting-a/eviction -f - <<-JSON
		{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "waiting-a", "namespace": "$ns"}}
	JSON
	denied "$sentence" as plugin create --raw /api/v1/namespaces/$ns/pods/waiting-nowhere/binding -f - <<-JSON
		{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waiting-nowhere", "namespace": "$ns"}, "target": {"kind": "Node", "name": "policy-a"}}
	JSON
}

@test "a daemon asks for no retry, and the annotations of users are not affected" {
	denied "an IMEX daemon may change its own pod only" as daemon -n $ns patch pod waiting-a --type merge -p "$(retries)"
	allowed k -n $ns annotate --overwrite pod waiting-a $retry_key=anything example.org/any=x
	# The plugin can replace a value that a user has written.
	allowed plugin_patch waiting-a "$(retries)"
	allowed plugin_patch waiting-a "{\"metadata\": {\"annotations\": {\"$retry_key\": null}}}"
}

# --- a daemon's pod

# patch POD JSON [ARGUMENT...]: patches a pod as daemon-a.
patch() { as daemon -n $ns patch pod "$1" --type merge -p "$2" "${@:3}"; }

# A report as described in model/daemon_report.h.
report='{"claimUID": "3f0c7d2a-0000-4000-8000-000000000000", "bootID": "6c5a4d3e-0000-4000-8000-000000000000", "fabricUID": "", "seen": 0, "recount": 0}'

# bats test_tags=matrix
@test "a daemon reports on its own pod, labels it with its ComputeDomain and its clique ID, and changes no other pod" {
	local json name
	json=$(jq -cn --arg r "$report" '{metadata: {annotations: {"imex.resource.nvidia.com/report": $r, "imex.resource.nvidia.com/state": "IDLE"},
		labels: {"resource.nvidia.com/computeDomain.cliqueID": "c.1", "resource.nvidia.com/computeDomain": "other-uid"}}}')
	allowed patch daemon-a "$json"
	allowed patch daemon-a '{"metadata": {"labels": {"resource.nvidia.com/computeDomain": null}}}'
	for name in plugin-a daemon-b go-daemon-a workload; do
		denied "an IMEX daemon may change its own pod only" patch $name "$json"
	done
	denied "may change only its own pod, and pods with resourceClaims on that node" plugin_patch daemon-a "$json"
}

# bats test_tags=matrix
@test "a daemon of the Go driver labels its own pod with its clique ID, and no other" {
	local json='{"metadata": {"labels": {"resource.nvidia.com/computeDomain.cliqueID": "c.1"}}}' name
	allowed as go-daemon -n $ns patch pod go-daemon-a --type merge -p "$json"
	for name in plugin-a daemon-a workload; do
		denied "an IMEX daemon may change its own pod only" as go-daemon -n $ns patch pod $name --type merge -p "$json"
	done
}

# failure: a Go daemon's token is stolen -> it marks no ComputeDomain as formed by the Go driver
@test "a daemon of the Go driver does not label its own pod with another ComputeDomain" {
	denied "may change no label" as go-daemon -n $ns patch pod go-daemon-a --type merge -p '{"metadata": {"labels": {"resource.nvidia.com/computeDomain": "other-uid"}}}'
}

# bats test_tags=matrix
@test "a daemon reports the state of its IMEX on its own pod" {
	allowed patch daemon-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/state": "READY",
		"imex.resource.nvidia.com/peers": "3/4"}, "labels": {"resource.nvidia.com/computeDomain.cliqueID": "c.1"}}}'
	allowed patch daemon-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/state": "UNAVAILABLE"},
		"labels": {"resource.nvidia.com/computeDomain.cliqueID": ""}}}'
	allowed patch daemon-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/state": null}}}'
}

@test "a daemon changes no other label of its pod" {
	denied "may change no label" patch daemon-a '{"metadata": {"labels": {"app.kubernetes.io/component": "x"}}}'
	denied "may change no label" patch daemon-a '{"metadata": {"labels": {"app": null}}}'
	denied "may change no label" patch daemon-a '{"metadata": {"labels": {"new": "label"}}}'
}

@test "a daemon changes no other annotation of its pod" {
	denied "may change no annotation" patch daemon-a '{"metadata": {"annotations": {"example.org/kept": "no"}}}'
	denied "may change no annotation" patch daemon-a '{"metadata": {"annotations": {"example.org/kept": null}}}'
	denied "may change no annotation" patch daemon-a '{"metadata": {"annotations": {"imex.resource.nvidia.com.example.org/state": "x"}}}'
	denied "may change no annotation" patch daemon-a '{"metadata": {"annotations": {"imex.resource.nvidia.com/state": "READY",
		"kubectl.kubernetes.io/default-container": "x"}}}'
}

@test "a daemon changes nothing else of its pod" {
	local sentence="may change labels and annotations of its pod only"
	denied "$sentence" patch daemon-a '{"spec": {"activeDeadlineSeconds": 1}}'
	denied "$sentence" as daemon -n $ns set image pod/daemon-a main=example.org/other:1
	denied "$sentence" patch daemon-a '{"metadata": {"finalizers": ["example.org/stay"]}}'
	denied "$sentence" patch daemon-a '{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}}'
}

# failure: a daemon's token is stolen -> it changes its own pod only
# bats test_tags=matrix
@test "a daemon changes no other pod" {
	local report='{"metadata": {"annotations": {"imex.resource.nvidia.com/state": "READY"}}}'
	denied "its own pod only" patch daemon-b "$report"
	denied "its own pod only" patch workload "$report"
}

@test "a daemon neither creates nor deletes pods" {
	denied "its own pod only" as daemon -n $ns delete pod daemon-a
	denied "its own pod only" as daemon create -f - <<<"$(pod another default policy-a)"
}

# No role of the driver grants them, but an administrator's role might.
# failure: a daemon's token is stolen -> it reaches no subresource of a pod
@test "a daemon reaches no subresource of a pod" {
	denied "its own pod only" patch daemon-a '{"spec": {"ephemeralContainers": [{"name": "e", "image": "example.org/other:1"}]}}' --subresource ephemeralcontainers
	denied "its own pod only" patch daemon-a '{}' --subresource resize
	denied "its own pod only" patch daemon-a '{"status": {"message": "x"}}' --subresource status
	denied "its own pod only" as daemon -n $ns exec daemon-a -- true
	denied "its own pod only" as daemon create --raw /api/v1/namespaces/$ns/pods/workload/eviction -f - <<-JSON
		{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "workload", "namespace": "$ns"}}
	JSON
}

@test "a daemon's account without a pod changes no pod" {
	denied "its own pod only" as daemon-unbound -n $ns annotate --overwrite pod daemon-a imex.resource.nvidia.com/state=READY
	denied "its own pod only" k -n $ns annotate --overwrite --as "system:serviceaccount:$ns:$daemon" pod daemon-a imex.resource.nvidia.com/state=READY
}

@test "pods of others are not affected" {
	allowed k -n $ns label --overwrite pod workload any=label
}

# --- the chart

without_domains() {
	"$BATS_TEST_DIRNAME/helm" template policy-test "$chart" --namespace $ns --dry-run=server --set image.repository=compute-domains/compute-domains \
		--set resources.computeDomains.enabled=false --set resources.gpus.enabled=true
}

# failure: ComputeDomains are disabled while daemons exist -> Helm refuses it, because their pods could not end [upgrade]
@test "the chart refuses to disable ComputeDomains while the DaemonSet of the daemons exists" {
	allowed without_domains
	k create -f - <<-YAML
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: $daemon, namespace: $ns}
		spec:
		  selector: {matchLabels: {app: none}}
		  template:
		    metadata: {labels: {app: none}}
		    spec:
		      nodeSelector: {$ns: none}
		      containers: [{name: main, image: "example.org/none:1"}]
	YAML
	denied "the DaemonSet compute-domain-daemon still exists" without_domains
	k -n $ns delete daemonset $daemon
}

# --- the policies themselves

# bats test_tags=matrix
@test "the API server reports no warnings about the policies" {
	no_warnings_about policy-test-resourceslices policy-test-shared-slice policy-test-daemon-pods policy-test-go-daemon-pods \
		policy-test-plugin-pods policy-test-waiting-pods policy-test-controller-resourceslices
}
