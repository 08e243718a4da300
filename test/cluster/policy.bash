# SPDX-License-Identifier: Apache-2.0
# Helpers for tests of what the API server accepts from which account. A .bats file loads this and sets ns, its
# namespace.
chart=$BATS_TEST_DIRNAME/../../deploy/chart/compute-domains

k() { "$BATS_TEST_DIRNAME/kubectl" "$@"; }
. "$BATS_TEST_DIRNAME/versions.bash"

# as TOKEN ARGUMENT...: kubectl with the token in TOKEN.token and no other credentials. A client certificate would
# take precedence.
as() {
	local token=$1
	shift
	k --kubeconfig "$BATS_FILE_TMPDIR/kubeconfig" --token "$(<"$BATS_FILE_TMPDIR/$token.token")" "$@"
}

# bound_token FILE ACCOUNT POD: writes the token that the kubelet would give to the pod.
bound_token() {
	k -n $ns create token "$2" --bound-object-kind Pod --bound-object-name "$3" \
		--bound-object-uid "$(k -n $ns get pod "$3" -o jsonpath='{.metadata.uid}')" >"$BATS_FILE_TMPDIR/$1.token"
}

# Writes the kubeconfig that `as` uses.
without_identity() { k config view --raw --minify -o json | jq 'del(.users, .contexts[].context.user)' >"$BATS_FILE_TMPDIR/kubeconfig"; }

# node NAME: creates a Node without a kubelet, for pods. Kubernetes deletes pods of Nodes that do not exist after a
# while.
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

# unprepared UID: prints the patch by which a plugin reports the daemon claim that it has unprepared. Without a UID it
# removes the report.
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
		echo "rejected for another reason: $output"
		return 1
	}
}

# ends COMMAND...: waits until a command that was allowed is denied. Only such a request shows that the API server
# enforces a policy.
ends() {
	local end=$((SECONDS + 60))
	while "$@"; do ((SECONDS < end)) || return 1; done &>/dev/null
}

# begins COMMAND...: waits until a command that was denied is allowed.
begins() {
	local end=$((SECONDS + 60))
	until "$@"; do ((SECONDS < end)) || return 1; done &>/dev/null
}

# no_warnings_about POLICY...: the API server has checked the expressions of the policies, and reports no warnings.
no_warnings_about() {
	local policy generation warnings
	for policy; do
		generation=$(k get validatingadmissionpolicy "$policy" -o jsonpath='{.metadata.generation}')
		k wait --timeout=60s --for=jsonpath='{.status.observedGeneration}'="$generation" "validatingadmissionpolicy/$policy"
		warnings=$(k get validatingadmissionpolicy "$policy" -o jsonpath='{.status.typeChecking.expressionWarnings}')
		[[ -z $warnings ]] || return 1
	done
}
