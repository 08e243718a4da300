# SPDX-License-Identifier: Apache-2.0
# For tests of what the API server accepts and from whom; a .bats file loads it and sets ns, its own namespace.
chart=$BATS_TEST_DIRNAME/../../deploy/chart/compute-domains

k() { "$BATS_TEST_DIRNAME/kubectl" "$@"; }
. "$BATS_TEST_DIRNAME/versions.bash"

# as TOKEN ARGUMENT...: kubectl with that token in TOKEN.token and nothing else; a client certificate would win over it.
as() {
	local token=$1
	shift
	k --kubeconfig "$BATS_FILE_TMPDIR/kubeconfig" --token "$(<"$BATS_FILE_TMPDIR/$token.token")" "$@"
}

# bound_token FILE ACCOUNT POD: the token that kubelet would give to the pod.
bound_token() {
	k -n $ns create token "$2" --bound-object-kind Pod --bound-object-name "$3" \
		--bound-object-uid "$(k -n $ns get pod "$3" -o jsonpath='{.metadata.uid}')" >"$BATS_FILE_TMPDIR/$1.token"
}

# Makes the kubeconfig for as.
without_identity() { k config view --raw --minify -o json | jq 'del(.users, .contexts[].context.user)' >"$BATS_FILE_TMPDIR/kubeconfig"; }

# node NAME: one without a kubelet, for pods to stand on. Pods of nodes that do not exist are collected after a while.
node() {
	cat <<-YAML
		---
		apiVersion: v1
		kind: Node
		metadata: {name: $1}
		spec: {unschedulable: true}
	YAML
}

# pod NAME ACCOUNT NODE
pod() {
	cat <<-YAML
		---
		apiVersion: v1
		kind: Pod
		metadata:
		  name: $1
		  namespace: $ns
		  labels: {app: imex-daemon, resource.nvidia.com/computeDomain: some-uid}
		  annotations: {example.org/kept: "yes"}
		spec:
		  serviceAccountName: $2
		  nodeName: $3
		  tolerations: [{operator: Exists}]
		  containers: [{name: main, image: "example.org/none:1"}]
	YAML
}

# unprepared UID: the patch by which a kubelet plugin reports which daemon claim it has unprepared; without a UID the report is removed.
unprepared() { jq -cn --arg uid "${1-}" '{metadata: {annotations: {"imex.resource.nvidia.com/unprepared-daemon-claim": (if $uid == "" then null else $uid end)}}}'; }

# allowed COMMAND...
allowed() {
	run "$@"
	[[ $status == 0 ]] || {
		echo "refused: $output"
		return 1
	}
}

# denied SENTENCE COMMAND...
denied() {
	local sentence=$1
	shift
	run "$@"
	[[ $status != 0 ]] || {
		echo "allowed: $output"
		return 1
	}
	[[ $output == *"$sentence"* ]] || {
		echo "refused for another reason: $output"
		return 1
	}
}

# ends COMMAND...: what was allowed is refused. Nothing tells when the API server has begun to heed a policy, but a policy at work.
ends() {
	local end=$((SECONDS + 60))
	while "$@"; do ((SECONDS < end)) || return 1; done &>/dev/null
}

# begins COMMAND...: what was refused is allowed.
begins() {
	local end=$((SECONDS + 60))
	until "$@"; do ((SECONDS < end)) || return 1; done &>/dev/null
}

# no_fault_with POLICY...: the API server has looked at their expressions, and warns of nothing.
no_fault_with() {
	local policy generation
	for policy; do
		generation=$(k get validatingadmissionpolicy "$policy" -o jsonpath='{.metadata.generation}')
		k wait --timeout=60s --for=jsonpath='{.status.observedGeneration}'="$generation" "validatingadmissionpolicy/$policy"
		[[ -z $(k get validatingadmissionpolicy "$policy" -o jsonpath='{.status.typeChecking.expressionWarnings}') ]] || return 1
	done
}
