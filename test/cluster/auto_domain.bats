#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A label on the pod template replaces the ComputeDomain (autoDomains.enabled). The hosts run IMEX. JobSet and
# LeaderWorkerSet do not run here: the tests create the objects that their controllers would create.

load driver
load channels

setup_file() {
	"$cluster/up" 4
	since 36 'MutatingAdmissionPolicies need Kubernetes 1.36'
	"$cluster/host-imex" all start
	with_new_channels
	with_driver 4 --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.hostProbeInterval=1s \
		--set resources.computeDomains.imex.isolation=channel --set resources.computeDomains.autoDomains.enabled=true
	k apply --server-side -f "$schemas" >/dev/null
	k wait --for=condition=Established --timeout=30s $(k get -f "$schemas" -o name) >/dev/null
	ns=default eventually 60 labelled_is_changed
}
teardown_file() {
	k delete --ignore-not-found -f "$schemas" >/dev/null
	channels_end
}
setup() { ns_begin; }
teardown() { ns_end; }
schemas=$(. "$BATS_TEST_DIRNAME/lib.bash" && echo "$schemas")
label=resource.nvidia.com/auto-domain

# labelled NAME [METADATA [SPEC [CONTAINERS]]]: prints a pod with the label, and with the labels in $also. The arguments
# are YAML flow mappings without braces.
labelled() {
	cat <<-YAML
		apiVersion: v1
		kind: Pod
		metadata: {${1:+name: $1, }labels: {$label: enabled${also:+, $also}}${2:+, $2}}
		spec: {terminationGracePeriodSeconds: 0${3:+, $3}, containers: [${4:-$(container main)}]}
	YAML
}
# container NAME [FIELDS]
container() { echo "{name: $1, image: \"compute-domains/busybox:test\", imagePullPolicy: Never, command: [sleep, \"1000000\"]${2:+, $2}}"; }
tried() { k -n "$ns" create --dry-run=server -o json -f -; }
labelled_is_changed() { labelled probe | tried | jq -e '.spec.resourceClaims | length == 1' >/dev/null; }

# claim_of POD: prints the name of the claim that the policy has added.
claim_of() { k -n "$ns" get pod "$1" -o json | jq -r '.spec.resourceClaims[] | select(.name == "auto-domain").resourceClaimName'; }
# owner_of DOMAIN: prints "<kind> <name>".
owner_of() { k -n "$ns" get computedomain "$1" -o json | jq -r '.metadata.ownerReferences | map("\(.kind) \(.name)") | join(",")'; }
no_domains() { prints_nothing k -n "$ns" get computedomains,resourceclaims -o name; }

# job NAME N [LABELS [METADATA]]: a Job whose N pods run on different nodes.
job() {
	k -n "$ns" create -o name -f - <<-YAML
		apiVersion: batch/v1
		kind: Job
		metadata: {name: $1${4:+, $4}}
		spec:
		  completions: $2
		  parallelism: $2
		  completionMode: Indexed
		  template:
		    metadata: {labels: {job: $1, $label: enabled${3:+, $3}}}
		    spec:
		      restartPolicy: Never
		      terminationGracePeriodSeconds: 0
		      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {job: $1}}}]
		      containers: [$(container main)]
	YAML
}
pods_of() { k -n "$ns" get pods -l "$1" -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}'; }
run_all() { k -n "$ns" wait --for=jsonpath='{.status.phase}'=Running pod -l "$1" --timeout=60s >/dev/null; }
created() { [[ $(pods_of "$1" | wc -l) == "$2" ]]; }

# failure: a labelled workload is deleted -> its ComputeDomain is deleted, too
@test "the pods of a labelled Job on three nodes share one channel, and nothing is left when the Job is deleted" {
	local pod claim channel other
	job training 3 >/dev/null
	job other 1 >/dev/null
	eventually 30 created job=training 3
	run_all job=training
	run_all job=other
	[[ $(k -n "$ns" get pods -l job=training -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l) == 3 ]]
	channel=$(channels_of "$(pods_of job=training | head -n 1)")
	[[ $channel =~ ^[0-9]+$ ]]
	claim=$(claim_of "$(pods_of job=training | head -n 1)")
	for pod in $(pods_of job=training); do
		[[ $(channels_of "$pod") == "$channel" ]]
		[[ $(claim_of "$pod") == "$claim" ]]
	done
	other=$(channels_of "$(pods_of job=other)")
	[[ $other != "$channel" ]]
	[[ $claim == auto-training-* && $(owner_of "$claim") == 'Job training' ]]
	[[ $(k -n "$ns" get computedomains,resourceclaims -o name | wc -l) == 4 && -z $(k -n "$ns" get resourceclaimtemplates -o name) ]]
	k -n "$ns" delete job training other >/dev/null
	eventually 60 no_domains
}

# failure: the owner of labelled pods has a long name with dots -> policy and controller give the same name
@test "the policy and the controller give the same name" {
	local long name uid owner first= pod i=0 yaml=$BATS_TEST_TMPDIR/pods.yaml claims
	one() { # one LABELS NAME [METADATA]
		echo ---
		also=$1 labelled "${@:2}"
	}
	long=$(printf 'abcdefg.%.0s' {1..30})z # 241 bytes
	# Any object can be the controlling owner of a pod.
	for name in short a.b-c.d "${long:0:48}x" "${long:0:47}" "$long"; do
		uid=$(k -n "$ns" create configmap "$name" -o jsonpath='{.metadata.uid}')
		owner="ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: \"$name\", uid: $uid, controller: true}]"
		((i += 1))
		first=${first:-$owner}
		one '' "of-$i" "$owner"
		for pod in "set-$i" "set-$i-2"; do one 'leaderworkerset.sigs.k8s.io/name: set' "$pod" "$owner"; done
	done >"$yaml"
	{
		for pod in set-x set-7x other-1 set2-1; do one 'leaderworkerset.sigs.k8s.io/name: set' "$pod" "$first"; done
		one '' alone
		one 'leaderworkerset.sigs.k8s.io/name: alone.with' alone.with-1
		one 'jobset.sigs.k8s.io/jobset-name: without-uid' one-label
		one '' not-controlled "${first/, controller: true/}"
	} >>"$yaml"
	k -n "$ns" create -f "$yaml" >/dev/null
	claims=$(k -n "$ns" get pods -o json | jq -r '.items[] | [.metadata.name] + [.spec.resourceClaims[] | select(.name == "auto-domain").resourceClaimName] | join(" ")')
	echo "$claims"
	[[ $(wc -l <<<"$claims") == 23 ]]
	# No other ComputeDomains are created.
	domains_are() { [[ $(k -n "$ns" get computedomains -o json | jq -r '.items[].metadata.name' | sort) == "$1" ]]; }
	eventually 30 domains_are "$(cut -d' ' -f2 <<<"$claims" | sort -u)"
	grep -qx 'set-3 auto-set-3-group' <<<"$claims"
	grep -qx 'set-3-2 auto-set-3-group' <<<"$claims"
	grep -qx 'alone auto-alone-pod' <<<"$claims"
	grep -qxE "of-4 auto-$(tr . - <<<"${long:0:47}")-.{8}" <<<"$claims"
}

# bats test_tags=long
@test "a JobSet of two Jobs gets one ComputeDomain, which lives as long as the JobSet" {
	local uid labels owner first second
	k -n "$ns" create -f - >/dev/null <<-YAML
		apiVersion: jobset.x-k8s.io/v1alpha2
		kind: JobSet
		metadata: {name: pretraining}
		spec:
		  replicatedJobs:
		  - name: trainers
		    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: none}]}}}}
	YAML
	uid=$(k -n "$ns" get jobset pretraining -o jsonpath='{.metadata.uid}')
	labels="jobset.sigs.k8s.io/jobset-name: pretraining, jobset.sigs.k8s.io/jobset-uid: $uid"
	owner="ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: pretraining, uid: $uid, controller: true}]"
	job pretraining-trainers-0 2 "$labels" "$owner" >/dev/null
	job pretraining-parameters-0 1 "$labels" "$owner" >/dev/null
	eventually 30 created jobset.sigs.k8s.io/jobset-name=pretraining 3
	run_all jobset.sigs.k8s.io/jobset-name=pretraining
	first=$(pods_of job=pretraining-trainers-0 | head -n 1) second=$(pods_of job=pretraining-parameters-0)
	[[ $(claim_of "$first") == "auto-pretraining-${uid:0:8}" && $(channels_of "$first") == $(channels_of "$second") ]]
	[[ $(owner_of "$(claim_of "$first")") == 'JobSet pretraining' ]]
	# JobSet restarts a set by new Jobs.
	uid=$(domain_uid "$(claim_of "$first")")
	k -n "$ns" delete job pretraining-trainers-0 >/dev/null
	job pretraining-trainers-0 2 "$labels" "$owner" >/dev/null
	eventually 30 created job=pretraining-trainers-0 2
	run_all job=pretraining-trainers-0
	[[ $(domain_uid "$(claim_of "$second")") == "$uid" ]]
	k -n "$ns" delete jobset pretraining >/dev/null
	eventually 60 no_domains
}

# stateful_set NAME N FIRST [METADATA]: as LeaderWorkerSet creates it for the set "inference".
stateful_set() {
	k -n "$ns" create -f - >/dev/null <<-YAML
		apiVersion: apps/v1
		kind: StatefulSet
		metadata: {name: $1${4:+, $4}}
		spec:
		  replicas: $2
		  ordinals: {start: $3}
		  podManagementPolicy: Parallel
		  selector: {matchLabels: {set: $1}}
		  template:
		    metadata: {labels: {set: $1, $label: enabled, leaderworkerset.sigs.k8s.io/name: inference}}
		    spec: {terminationGracePeriodSeconds: 0, containers: [$(container main)]}
	YAML
}
workers_of() {
	stateful_set "$1" 1 1 "ownerReferences: [{apiVersion: v1, kind: Pod, name: $1, uid: $(k -n "$ns" get pod "$1" -o jsonpath='{.metadata.uid}'), controller: true, blockOwnerDeletion: true}]"
	eventually 30 created "set=$1" 1
	run_all "set=$1"
}

# failure: the node of a group's leader is drained -> the group keeps its ComputeDomain, and the new leader starts
# bats test_tags=long
@test "each group of a LeaderWorkerSet gets its own ComputeDomain, and keeps it when its leader is replaced" {
	local uid left right
	stateful_set inference 2 0
	eventually 30 created set=inference 2
	run_all set=inference
	workers_of inference-0
	workers_of inference-1
	[[ $(claim_of inference-0) == auto-inference-0-group && $(claim_of inference-0-1) == auto-inference-0-group ]]
	left=$(channels_of inference-0)
	right=$(channels_of inference-1)
	[[ $(channels_of inference-0-1) == "$left" && $(channels_of inference-1-1) == "$right" && $left != "$right" ]]
	[[ $(owner_of auto-inference-0-group) == 'StatefulSet inference' ]]
	uid=$(domain_uid auto-inference-0-group)
	k -n "$ns" delete pod inference-0 >/dev/null
	eventually 30 has_pod inference-0
	running inference-0
	[[ $(domain_uid auto-inference-0-group) == "$uid" ]]
	k -n "$ns" delete statefulset inference >/dev/null
	eventually 60 no_domains
}
has_pod() { k -n "$ns" get pod "$1" >/dev/null 2>&1; }

# claiming POD-JSON: prints the containers that have the claim.
claiming() { jq -r '[(.spec.initContainers // [])[], .spec.containers[]] | map(select(any(.resources.claims[]?; .name == "auto-domain")).name) | join(" ")'; }

@test "the claim is added to the containers with a GPU or a claim, else to all, and nothing else changes" {
	local gpu='resources: {limits: {nvidia.com/gpu: 4}}' pod
	[[ $(labelled a '' '' "$(container one), $(container two)" | tried | claiming) == 'one two' ]]
	[[ $(labelled a '' '' "$(container one), $(container two "$gpu")" | tried | claiming) == two ]]
	[[ $(labelled a '' "initContainers: [$(container setup), $(container warm "$gpu")]" "$(container one), $(container two "$gpu")" | tried | claiming) == 'warm two' ]]
	[[ $(labelled a '' "initContainers: [$(container setup)]" | tried | claiming) == 'setup main' ]]
	pod=$(labelled a '' "resourceClaims: [{name: mine, resourceClaimName: other}]" \
		"$(container one 'resources: {claims: [{name: mine}], limits: {cpu: 1}}, env: [{name: A, value: "1"}, {name: A, value: "2"}]'), $(container two)" | tried)
	[[ $(claiming <<<"$pod") == one ]]
	[[ $(jq -c '.spec.containers[0] | [.resources.claims, .resources.limits, [.env[].value]]' <<<"$pod") == '[[{"name":"mine"},{"name":"auto-domain"}],{"cpu":"1"},["1","2"]]' ]]
	[[ $(jq -c '[.spec.resourceClaims[].name]' <<<"$pod") == '["mine","auto-domain"]' ]]
	# The entry of a user stays.
	pod=$(labelled a '' "resourceClaims: [{name: auto-domain, resourceClaimName: other}]" | tried)
	[[ $(jq -c '[.spec.resourceClaims, .spec.containers[0].resources]' <<<"$pod") == '[[{"name":"auto-domain","resourceClaimName":"other"}],{}]' ]]
	# Pods without the label are not concerned.
	[[ $(labelled a | sed "s|$label: enabled||" | tried | jq -c .spec.resourceClaims) == null ]]
}

@test "a pod with the annotation of Grove gets the label and a claim for its group, except a pod of Grove" {
	local group='annotations: {grove.io/mnnvl-group: decoders}' pod
	annotated() { labelled "$@" | sed "s|$label: enabled|a: b|"; }
	pod=$(annotated alone "$group" | tried)
	[[ $(jq -r ".metadata.labels | [.\"$label\", .a] | join(\" \")" <<<"$pod") == 'enabled b' ]]
	[[ $(jq -r '.spec.resourceClaims[].resourceClaimName' <<<"$pod") == auto-alone-pod-decoders && $(claiming <<<"$pod") == main ]]
	[[ $(annotated alone "${group/decoders/none}" | tried | jq -c '[.spec.resourceClaims, .metadata.labels]') == '[null,{"a":"b"}]' ]]
	[[ $(annotated alone "$group" | sed 's|a: b|app.kubernetes.io/managed-by: grove-operator|' | tried | jq -c .spec.resourceClaims) == null ]]
	run tried < <(annotated alone "${group/decoders/Decoders}")
	[[ $status != 0 && $output == *'its annotation grove.io/mnnvl-group'* ]]
	for pod in alone second; do
		labelled "$pod" "${group/decoders/\"1\"}" | k -n "$ns" create -f - >/dev/null
		[[ $(claim_of "$pod") == "auto-$pod-pod-1" ]]
		running "$pod"
	done
}

# failure: a labelled pod has no name from which the name of its ComputeDomain follows -> it is rejected
@test "pods for which there is no ComputeDomain are rejected with a reason" {
	run tried < <(labelled '' 'generateName: a-')
	[[ $status != 0 && $output == *'has no name from which the name of its ComputeDomain follows'* ]]
	run tried < <(labelled a | sed 's/: enabled/: "true"/')
	[[ $status != 0 && $output == *"the value of the label $label must be enabled"* ]]
	run tried < <(labelled "$(printf 'a%.0s' {1..250})")
	[[ $status != 0 && $output == *'has no name from which the name of its ComputeDomain follows'* ]]
}

# failure: the ComputeDomain of a labelled pod cannot be created -> an Event of the pod reports the reason
# bats test_tags=long
@test "an Event reports a name that is taken, and an exhausted quota" {
	domain auto-alone-pod
	labelled alone | k -n "$ns" create -f - >/dev/null
	eventually 30 event_contains Pod/alone "has the name that the ComputeDomain of this Pod needs"
	k -n "$ns" delete computedomain auto-alone-pod >/dev/null
	running alone
	k -n "$ns" create quota domains --hard=count/computedomains.resource.nvidia.com=1 >/dev/null
	eventually 30 quota_counts
	labelled second | k -n "$ns" create -f - >/dev/null
	eventually 30 event_contains Pod/second 'exceeded quota: domains'
	k -n "$ns" delete quota domains >/dev/null
	running second 90
}
quota_counts() { [[ $(k -n "$ns" get quota domains -o json | jq -r '.status.used["count/computedomains.resource.nvidia.com"]') == 1 ]]; }

# failure: a tenant copies a labelled pod of another namespace -> it gets its own channel [tenants]
# bats test_tags=long
@test "pods with the same name in two namespaces get two ComputeDomains and two channels" {
	local other=$ns-other left right
	k create namespace "$other" >/dev/null
	labelled same | k -n "$ns" create -f - >/dev/null
	labelled same | k -n "$other" create -f - >/dev/null
	running same
	left=$(channels_of same)
	ns=$other running same
	right=$(ns=$other channels_of same)
	[[ $left =~ ^[0-9]+$ && $right =~ ^[0-9]+$ && $left != "$right" ]]
	k delete namespace "$other" >/dev/null
}

# failure: labels of a tenant name an owner that does not exist -> one ComputeDomain in ten seconds [tenants]
# bats test_tags=long
@test "labels that name a JobSet that does not exist cause at most one ComputeDomain in ten seconds" {
	local mark time ms last=0 n=0
	mark=$("$cluster/audit" mark)
	also='jobset.sigs.k8s.io/jobset-name: none, jobset.sigs.k8s.io/jobset-uid: 00000000-1111-2222-3333-444444444444' labelled liar |
		k -n "$ns" create -f - >/dev/null
	eventually 15 created_domains "$mark"
	read -rt 25 <> <(:) || true
	"$cluster/audit" "$mark" | awk -v ns="$ns/" '$3 == "create" && $4 == "computedomains" && index($5, ns) == 1 { print $1 }' >"$BATS_TEST_TMPDIR/times"
	while read -r time; do
		ms=$(date -d "$time" +%s%3N)
		echo "created $((ms - last)) ms after the one before"
		((ms - last >= 9000)) # the controller counts whole seconds
		last=$ms n=$((n + 1))
	done <"$BATS_TEST_TMPDIR/times"
	((n >= 2))
}
created_domains() { "$cluster/audit" "$1" | grep -q "computedomains"; }

@test "the controller may create only such ComputeDomains" {
	local user=system:serviceaccount:$driver_ns:compute-domains-service-account-controller
	domain_of() {
		cat <<-YAML
			apiVersion: resource.nvidia.com/v1beta1
			kind: ComputeDomain
			metadata: {name: ${1:-auto-x-pod}${2:+, $2}}
			spec: {numNodes: 0, channel: {${3:-resourceClaim: {name: auto-x-pod\}}}}
		YAML
	}
	local labels="labels: {$label: enabled}" owners='ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: u}]'
	domain_of '' "$labels, $owners" | k -n "$ns" create --as "$user" --dry-run=server -f - >/dev/null
	local metadata
	for metadata in '' "$labels" "$owners" "$labels, ${owners/uid: u/uid: u, controller: true}"; do
		run k -n "$ns" create --as "$user" --dry-run=server -f - < <(domain_of '' "$metadata")
		[[ $status != 0 && $output == *'the controller may make'* ]]
	done
	run k -n "$ns" create --as "$user" --dry-run=server -f - < <(domain_of other "$labels, $owners")
	[[ $status != 0 && $output == *'with one owner and one claim only'* ]]
	run k -n "$ns" create --as "$user" --dry-run=server -f - < <(domain_of '' "$labels, $owners" 'resourceClaim: {name: auto-x-pod}, resourceClaimTemplate: {name: t}')
	[[ $status != 0 && $output == *'with one owner and one claim only'* ]]
}

# bats test_tags=long
@test "the examples with the label contain no object of this driver, match their schemas, and a Job and a Deployment run" {
	local file
	[[ $(ls "$checkout"/examples/auto-domains/*.yaml | wc -l) -ge 10 ]]
	for file in "$checkout"/examples/auto-domains/*.yaml; do
		! grep -E '^(apiVersion|kind): .*(resource.nvidia.com|ComputeDomain|ResourceClaim)|resourceClaims:' "$file" || false
		grep -q "$label: enabled" "$file"
		k -n "$ns" create --dry-run=server --validate=strict -f "$file" >/dev/null
	done
	for file in job deployment; do
		sed 's|image: .*|image: compute-domains/busybox:test|; s|limits: {nvidia.com/gpu: 4}|limits: {cpu: 100m}|' "$checkout/examples/auto-domains/$file.yaml" |
			k -n "$ns" apply -f - >/dev/null
	done
	k -n "$ns" rollout status deployment/serving --timeout=60s >/dev/null
	k -n "$ns" wait --for=condition=Complete job/training --timeout=60s >/dev/null
	[[ $(k -n "$ns" logs -l batch.kubernetes.io/job-name=training | grep -c channel) -ge 1 ]]
}
