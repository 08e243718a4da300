#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Kueue runs, in the version that test/cluster/programs/schemas names.

load ../cluster/driver
load ../cluster/operators

setup_file() {
	with_driver 4
	with_operator kueue 'integrations: {frameworks: [batch/job]}'
}
teardown_file() {
	k delete topologies.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io,clusterqueues.kueue.x-k8s.io,workloadpriorityclasses.kueue.x-k8s.io --all >/dev/null
	without_operator kueue
}
setup() { ns_begin; }
teardown() { ns_end; }

example() { with_image <"$checkout/examples/kueue.yaml"; }
# one_at_a_time: the quota on standard input suffices for one Job, and a Job preempts those with a lower priority.
one_at_a_time() { sed 's|nominalQuota: 144|nominalQuota: 16|; s|^  namespaceSelector: {}|&\n  preemption: {withinClusterQueue: LowerPriority}|'; }
# urgent: the Job on standard input has another name, and a higher priority.
urgent() { sed 's|queued|urgent|g; s|queue-name: training}|queue-name: training, kueue.x-k8s.io/priority-class: urgent}|'; }
rejected() { k -n "$ns" get workloads.kueue.x-k8s.io -o json | jq -e --arg text "$1" 'any(.items[].status.conditions[]?; .status == "False" and (.message | contains($text)))' >/dev/null; }
suspended() { [[ $(k -n "$ns" get job "$1" -o jsonpath='{.spec.suspend}') == true ]]; }
quota_knows() { [[ $(k -n "$ns" get resourcequota compute-domains -o json | jq -c '.status.hard == .spec.hard') == true ]]; }
over_quota() { k -n "$ns" get events -o json | jq -e 'any(.items[]; .involvedObject.kind == "Pod" and (.message | contains("exceeded quota: compute-domains")))' >/dev/null; }

@test "Kueue starts the Job of the example on four nodes of one partition, each pod with a channel" {
	example | k -n "$ns" apply -f - >/dev/null
	k -n "$ns" wait --for=condition=Complete job/queued --timeout=120s
	[[ $(k -n "$ns" get workloads.kueue.x-k8s.io -o jsonpath='{.items[*].status.conditions[?(@.type=="Admitted")].status}') == True ]]
	[[ $(nodes_of job-name=queued) == 4 ]]
	[[ $(k -n "$ns" logs -l job-name=queued | grep -c channel0) == 4 ]]
}

# failure: Kueue preempts a Job -> the other Job gets channels on the same nodes, and later the first Job again
@test "an urgent Job preempts a queued one on the same nodes, and the first one runs again with channels of its ComputeDomain" {
	local uid
	k apply -f - >/dev/null <<-YAML
		apiVersion: kueue.x-k8s.io/v1beta2
		kind: WorkloadPriorityClass
		metadata: {name: urgent}
		value: 1000
	YAML
	example | that_sleep | one_at_a_time | k -n "$ns" apply -f - >/dev/null
	eventually 120 pods_run job-name=queued 4
	uid=$(domain_uid queued)
	example | that_sleep | one_at_a_time | urgent | k -n "$ns" apply -f - >/dev/null
	eventually 120 pods_run job-name=urgent 4
	all_have_channels job-name=urgent
	suspended queued
	pods_run job-name=queued 0
	k -n "$ns" delete job urgent >/dev/null
	eventually 120 pods_run job-name=queued 4
	all_have_channels job-name=queued
	[[ $(domain_uid queued) == "$uid" ]]
}

@test "a ResourceQuota limits the channels of a queued Job, which Kueue does not count" {
	sed 's/"36"/"3"/' "$checkout/examples/quota.yaml" | k -n "$ns" apply -f - >/dev/null
	eventually 60 quota_knows
	example | that_sleep | k -n "$ns" apply -f - >/dev/null
	eventually 120 over_quota
	eventually 60 three_run
	k -n "$ns" delete resourcequota compute-domains >/dev/null
	eventually 120 pods_run job-name=queued 4
}
three_run() { [[ $(pods_with job-name=queued | wc -l) == 3 ]]; }

@test "with its gate DynamicResourceAllocation on, Kueue rejects the workload because of devices.config, as docs/how-to/schedulers.md describes" {
	start_operator kueue ,DynamicResourceAllocation=true
	example | k -n "$ns" apply -f - >/dev/null
	eventually 60 rejected config
	suspended queued
	start_operator kueue
}
