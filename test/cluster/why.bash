# SPDX-License-Identifier: Apache-2.0
# Helpers for tests of `kubectl compute-domains why`, with admin rights and with the role `view` in the namespace of
# the test. A .bats file loads this after driver.bash.

# viewer: allows a service account to view the namespace of the test, and writes its kubeconfig.
viewer() {
	k -n "$ns" create serviceaccount viewer >/dev/null
	k -n "$ns" create rolebinding viewer --clusterrole=view "--serviceaccount=$ns:viewer" >/dev/null
	k config view --raw -o json | jq --arg token "$(k -n "$ns" create token viewer)" '.users[0].user = {token: $token}' >"$BATS_TEST_TMPDIR/viewer"
}

# why OBJECT [ARG...]: runs the command. Sets code and answer, the latter as JSON.
why() {
	code=0
	answer=$("$cluster/kubectl" compute-domains why "$@" -n "$ns" -o json) || code=$?
	echo "why $* ($code): $answer"
}
as_viewer() { why "$@" --kubeconfig "$BATS_TEST_TMPDIR/viewer"; }

# The same for `eventually`: whether the answer has this cause. Kubernetes writes the objects that show it one after
# the other.
why_is() { why "$1" && jq -e --arg r "$2" '.causes[0] | .reason == $r and (.possible | not)' <<<"$answer" >/dev/null; }
viewer_why_is() { as_viewer "$1" && jq -e --arg r "$2" '.causes[0] | .reason == $r and (.possible | not)' <<<"$answer" >/dev/null; }

# named REASON WHO CAUSE [FIX]: the answer has exactly this cause, role that can act, and remedy, and its exit code is 1.
# CAUSE and FIX are patterns of bash; the default FIX is the catalogue's.
named() {
	local fix=${4:-}
	[[ $code == 1 ]] || { echo "exit code $code"; return 1; }
	[[ $(jq -r '.causes | length' <<<"$answer") == 1 ]] || { echo "not one cause"; return 1; }
	[[ $(jq -r '.causes[0] | "\(.reason) \(.possible) \(.who)"' <<<"$answer") == "$1 false $2" ]] || { echo "not $1, $2"; return 1; }
	# shellcheck disable=SC2053 # patterns
	[[ $(jq -r '.causes[0].cause' <<<"$answer") == $3 ]] || { echo "not: $3"; return 1; }
	# shellcheck disable=SC2053
	if [[ $fix ]]; then
		[[ $(jq -r '.causes[0].fix' <<<"$answer") == $fix ]] || { echo "not: $fix"; return 1; }
	else
		[[ -n $(jq -r '.causes[0].fix // ""' <<<"$answer") ]] || { echo "no remedy"; return 1; }
	fi
}

# confined POD DOMAIN REASON...: the viewer's answer about a pod without a node, for a cause that other namespaces or
# the nodes show. If a condition of the ComputeDomain shows it, the answer has it. Otherwise it has these possible
# causes, the lists that the viewer may not read, and one command for an admin.
confined() {
	local pod=$1 domain=$2 wanted
	shift 2
	as_viewer "pod/$pod"
	if [[ $(condition "$domain" ChannelAvailable status) == False ]] && [[ $code == 1 ]]; then
		jq -e '.causes | length == 1 and (.[0].possible | not)' <<<"$answer" >/dev/null
		return
	fi
	wanted=$(printf '%s\n' "$@" | jq -Rnc '[inputs]')
	[[ $code == 3 ]] &&
		jq -e --argjson wanted "$wanted" --arg command "kubectl compute-domains why pod/$pod -n $ns" \
			'(.causes | map(.reason) | sort) == ($wanted | sort) and all(.causes[]; .possible and .fix and .who) and .adminCommand == $command and
			(.unread | map("\(.what): \(.why)")) == ["nodes: may not be read", "resourceslices: may not be read", "resourceclaims of all namespaces: may not be read"]' \
			<<<"$answer" >/dev/null
}

# waiting NAME TEMPLATE [LINE [GPUS]]: a pod with a channel that may run on any node. LINE is added to its spec.
waiting() { pod_with_channel "$1" "$2" "${3:-}" job-name "${4:+limits: {nvidia.com/gpu: $4\}}"; }
unscheduled() { k -n "$ns" wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].status}'=False "pod/$1" --timeout=30s >/dev/null; }
not_prepared() { eventually "${2:-90}" event_contains "Pod/$1" "Failed to prepare dynamic resources"; }
clique_is() { [[ $(k get node "node-$1" -o jsonpath='{.metadata.labels.nvidia\.com/gpu\.clique}') == *".$2" ]]; }
# partitions FIRST SECOND: nodes 0 and 1 are in the first NVLink partition, nodes 2 and 3 in the second one.
partitions() {
	local i
	for i in 2 3; do "$cluster/clique" $i "$2"; done
	for i in 0 1; do "$cluster/clique" $i "$1"; done
	for i in 0 1; do eventually 60 clique_is $i "$1"; done
	for i in 2 3; do eventually 60 clique_is $i "$2"; done
}
