#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# JobSet runs, in the version that test/cluster/programs/schemas names.

load ../cluster/driver
load ../cluster/operators

setup_file() {
	with_driver 5
	with_operator jobset
}
teardown_file() { without_operator jobset; }
setup() { ns_begin; }
teardown() {
	[[ -z ${ns:-} ]] || k -n "$ns" delete jobsets --all --timeout=60s >/dev/null
	ns_end
}

trainers=jobset.sigs.k8s.io/replicatedjob-name=trainers
example() { cat "$checkout/examples/jobset.yaml"; }
set_is() { k -n "$ns" wait --for="condition=$1" jobset/pretraining --timeout=120s >/dev/null; }
restarts_are() { [[ $(k -n "$ns" get jobset pretraining -o json | jq '.status.restarts // 0') == "$1" ]]; }
trainer() { pods_with $trainers | sed -n "/^pretraining-trainers-0-$1-/p"; }
trainer_is_another() { [[ -n $(trainer "$1") && $(trainer "$1") != "$2" ]]; }
new_pods() { pods_run job=pretraining 5 && [[ -z $(comm -12 <(uids_of job=pretraining) <(echo "$1")) ]]; }

@test "the JobSet of the example runs, each pod with a channel, and completes" {
	example | with_image | k -n "$ns" apply -f - >/dev/null
	set_is Completed
	# When the trainers have succeeded, JobSet deletes the other Jobs.
	[[ $(nodes_of $trainers) == 4 ]]
	[[ $(k -n "$ns" logs --tail=-1 -l $trainers | grep -c 'channel0$') == 4 ]]
}

# failure: a pod of a JobSet's Job fails -> the Job recreates it with a channel of the same ComputeDomain
@test "a failed pod of a JobSet is recreated with a channel, and the others keep theirs" {
	local failed others
	example | that_sleep | k -n "$ns" apply -f - >/dev/null
	eventually 90 pods_run job=pretraining 5
	failed=$(trainer 2)
	others=$(pods_with job=pretraining | grep -vx "$failed")
	kill_in_pod "$ns" "$failed" sleep
	eventually 90 trainer_is_another 2 "$failed"
	eventually 30 pods_run job=pretraining 5
	[[ $(pods_with job=pretraining | grep -vx "$(trainer 2)") == "$others" ]]
	all_have_channels job=pretraining
	restarts_are 0
	eventually 60 condition_is pretraining PeersConnected True
}

# failure: a Job of a JobSet fails -> the JobSet restarts all of its pods, and each gets a channel again
@test "a failed Job restarts the whole JobSet, and five new pods get channels of the same ComputeDomain" {
	local uid before
	example | that_sleep | sed 's|^\( *\)completionMode: Indexed|&\n\1backoffLimit: 0|' | k -n "$ns" apply -f - >/dev/null
	eventually 90 pods_run job=pretraining 5
	uid=$(domain_uid pretraining)
	before=$(uids_of job=pretraining)
	kill_in_pod "$ns" "$(trainer 1)" sleep
	eventually 60 restarts_are 1
	eventually 120 new_pods "$before"
	all_have_channels job=pretraining
	[[ $(domain_uid pretraining) == "$uid" ]]
	eventually 60 condition_is pretraining PeersConnected True
}
