#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The controller evicts pods from a node whose IMEX has failed (imex.evictAfterMinutes), and may evict no others.

load ../cluster/driver
load ../cluster/domains
load ../cluster/gates

setup_file() { with_driver 4 --set resources.computeDomains.imex.evictAfterMinutes=1; }
setup() { ns_begin; }
teardown() {
	local clean=0
	knob 1 REFUSE_START=
	ns_end || clean=1
	[[ -z ${gated:-} ]] || gates 4 "" || clean=1
	return $clean
}

# uids: of the pods of the namespace. evicted POD: it no longer exists.
uids() { k -n "$ns" get pods -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}'; }
evicted() { ! k -n "$ns" get pod "$1" >/dev/null 2>&1; }
# evict NAMESPACE POD OPTIONS: as the controller.
evict() {
	as_controller create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - <<-JSON
		{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "$2", "namespace": "$1"}, "deleteOptions": $3}
	JSON
}

# denied SENTENCE NAMESPACE POD OPTIONS: the eviction is denied with this sentence.
denied() {
	run evict "${@:2}"
	[[ $status != 0 && $output == *"$1"* ]] || { echo "not denied: $output"; return 1; }
}

# failure: IMEX of a node fails for minutes -> its pod is evicted when its PodDisruptionBudget allows that
@test "the pod on a node whose IMEX fails is evicted when its PodDisruptionBudget allows it, and no other pod" {
	formed d 0 1 2
	local others
	others=$(uids | grep -v '^d-1 ')
	k -n "$ns" label pod d-1 protected=yes >/dev/null
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: policy/v1
		kind: PodDisruptionBudget
		metadata: {name: protected}
		spec: {minAvailable: 1, selector: {matchLabels: {protected: "yes"}}}
	END
	knob 1 REFUSE_START="out of order"
	kill_in_pod "$driver_ns" "$(daemon_pod 1)" nvidia-imex
	eventually 20 daemon_state_is 1 BACKOFF
	eventually 100 event_contains Pod/d-1 "the pod cannot be evicted now"
	! evicted d-1 || false
	k -n "$ns" delete poddisruptionbudget protected >/dev/null
	eventually 90 evicted d-1
	event_contains Pod/d-1 "the pod is evicted, because nvidia-imex of node node-1 has not been READY for 1 minutes"
	[[ $(uids) == "$others" ]]
	knob 1 REFUSE_START=
}

# failure: a stolen token of the controller evicts pods -> the policy denies what the controller itself never does
@test "the policy denies the controller evictions without a UID, with another grace period, and in protected namespaces" {
	domain d
	worker w d 0
	running w
	local uid
	uid=$(k -n "$ns" get pod w -o jsonpath='{.metadata.uid}')
	denied "may evict a pod by its UID only" "$ns" w '{}'
	denied "may not shorten the grace period" "$ns" w "{\"preconditions\": {\"uid\": \"$uid\"}, \"gracePeriodSeconds\": 0}"
	denied "may not evict pods of kube-system or of the driver" "$driver_ns" "$(daemon_pod 0)" "{\"preconditions\": {\"uid\": \"$uid\"}}"
	denied "may not evict pods of kube-system or of the driver" kube-system any "{\"preconditions\": {\"uid\": \"$uid\"}}"
	! evicted w || false
	evict "$ns" w "{\"preconditions\": {\"uid\": \"$uid\"}}" >/dev/null
	eventually 30 evicted w
}

# failure: IMEX of a node fails for minutes -> pods that share the claim of their PodGroup are evicted, too
@test "pods with the claim of their PodGroup are evicted from a node whose IMEX fails" {
	gated=yes
	gates 4 GenericWorkload=true,DRAWorkloadResourceClaims=true
	k api-resources --api-group=scheduling.k8s.io -o name | grep -q '^podgroups' || skip "this version of Kubernetes has no PodGroups"
	formed d 0 2
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: scheduling.k8s.io/v1beta1
		kind: PodGroup
		metadata: {name: gang}
		spec:
		  schedulingPolicy: {gang: {minCount: 2}}
		  resourceClaims: [{name: channel, resourceClaimTemplateName: d}]
	END
	local name others
	for name in gang-0 gang-1; do
		pod_with_channel "$name" d $'schedulingGroup: {podGroupName: gang}\n  nodeSelector: {kubernetes.io/hostname: node-1}'
	done
	for name in gang-0 gang-1; do running "$name"; done
	k -n "$ns" get resourceclaims -o json | jq -e 'any(.items[]; .status.reservedFor[0].resource == "podgroups")'
	others=$(uids | grep -v '^gang-')
	knob 1 REFUSE_START="out of order"
	kill_in_pod "$driver_ns" "$(daemon_pod 1)" nvidia-imex
	eventually 100 evicted gang-0
	eventually 20 evicted gang-1
	event_contains Pod/gang-0 "the pod is evicted, because nvidia-imex of node node-1"
	[[ $(uids) == "$others" ]]
}
