#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A whole rack: eighteen real nodes with four GPUs each in one NVLink partition, and workloads that use all of them.

load ../cluster/driver
load ../cluster/mpi

schemas=$(. "$BATS_TEST_DIRNAME/../cluster/lib.bash" && echo "$schemas")
label=ds.coreweave.com/nvlink.domain

setup_file() {
	"$cluster/up" 18
	k label --overwrite nodes --all "$label=S0-011-US-WEST-01A" >/dev/null
	k apply --server-side -f "$schemas" >/dev/null
	k wait --for=condition=Established --timeout=60s $(k get -f "$schemas" -o name) >/dev/null
}
teardown_file() {
	"$cluster/host-imex" all stop
	"$cluster/up" 4
}
setup() { ns_begin; }
teardown() { ns_end; }

# members APP N: a Deployment of N pods of the ComputeDomain APP, with one GPU each, or one pod per node if SPREAD is
# set. Each pod has its own claim, or all pods have the claim APP if SHARED is set. Each pod prints the name and the
# number of its channel's file.
members() {
	local name=resourceClaimTemplateName
	[[ -z ${SHARED:-} ]] || name=resourceClaimName
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 0
      affinity: ${SPREAD:+{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: $1\}\}, topologyKey: kubernetes.io/hostname\}]\}\}}
      resourceClaims: [{name: channel, $name: $1}]
      containers:
      - name: main
        image: compute-domains/busybox:test
        imagePullPolicy: Never
        command: [sh, -c, 'cd /dev/nvidia-caps-imex-channels && for f in *; do echo "\$f \$((0x\$(stat -c %T \$f)))"; done; exec sleep 1000000']
        resources: {claims: [{name: channel}], limits: {nvidia.com/gpu: 1}}
END
}
pods_are() { [[ $(k -n "$ns" get pods -l "app=$1" -o json | jq --arg phase "$2" '[.items[] | select(.status.phase == $phase)] | length') == "$3" ]]; }
output_of() { k -n "$ns" logs -l "app=$1" --tail=-1 --max-log-requests=72; }
# channel_of APP N: prints the one channel that all N pods have, by name and by number. Fails if there are several, or
# if it is channel 0.
channel_of() {
	local words n
	words=$(output_of "$1")
	[[ $(wc -l <<<"$words") == "$2" && $(sort -u <<<"$words" | wc -l) == 1 ]] || { sort <<<"$words" | uniq -c >&2; return 1; }
	n=${words##* }
	[[ ${words%%$'\n'*} == "channel$n $n" ]] && ((n > 0)) && echo "$n"
}
on_nodes() { k -n "$ns" get pods -l "$1" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c | xargs; }
table_is() { k get computedomainfabrics -o json | jq -e "$1" >/dev/null; }
with_own_channels() {
	"$cluster/host-imex" all start
	with_driver 18 --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.isolation=channel
}

# failure: an MPIJob runs on a whole rack -> all workers are in one IMEX domain
@test "the MPIJob of a whole rack: eighteen workers of four GPUs, one per node, all in one IMEX domain" {
	with_driver 18
	domain imex-channel-s0-011-us-west-01a 18
	sed 's|image: .*|image: compute-domains/busybox:test|; s|cpu: 110|cpu: 10m|; s|cpu: 2,|cpu: 10m,|; s|960Gi|16Mi|' \
		"$checkout/examples/rack-mpijob.yaml" | k -n "$ns" apply -f - >/dev/null
	mpi_operator dra-example-gb200-4x 300
	running dra-example-gb200-4x-launcher-0
	[[ $(on_nodes training.kubeflow.org/job-role=worker) == '18 1' ]]
	eventually 60 condition_is imex-channel-s0-011-us-west-01a PeersConnected True
	domain_field_is imex-channel-s0-011-us-west-01a .status.status Ready
	[[ $(domain_field imex-channel-s0-011-us-west-01a '.status.nodes[*].name' | wc -w) == 18 ]]
	local i
	for i in 0 9 17; do has_channel "dra-example-gb200-4x-worker-$i"; done
	k -n "$ns" delete pods --all --grace-period=0 >/dev/null
}

# failure: a whole rack runs one ComputeDomain -> all 72 containers have the same channel, which is not 0
@test "seventy-two pods of one ComputeDomain, one per GPU: the same channel in every container, and not 0" {
	with_own_channels
	domain train
	members train 73
	eventually 400 pods_are train Running 72
	pods_are train Pending 1 # there are only seventy-two GPUs
	k -n "$ns" scale deployment train --replicas=72 >/dev/null
	eventually 60 pods_are train Pending 0
	local id
	id=$(channel_of train 72)
	[[ $(on_nodes app=train) == '18 4' ]]
	table_is ".items | length == 1 and .[0].nodes == 18 and .[0].domainCount == 1 and (.[0].channels | length == 1 and .[0].id == $id)"
}

# failure: four ComputeDomains share every node of a rack -> each has its own channel
@test "four ComputeDomains share every node: four different channels, each the same in all of its containers" {
	with_own_channels
	local d ids=()
	for d in one two three four; do
		domain "$d"
		SPREAD=yes members "$d" 18
	done
	for d in one two three four; do eventually 400 pods_are "$d" Running 18; done
	for d in one two three four; do
		[[ $(on_nodes "app=$d") == '18 1' ]]
		ids+=("$(channel_of "$d" 18)")
	done
	[[ $(printf '%s\n' "${ids[@]}" | grep -c .) == 4 && $(printf '%s\n' "${ids[@]}" | sort -u | wc -l) == 4 ]]
	table_is '.items[0] | [.channels[] | select(.releasing | not)] | length == 4'
}

claim_is() { k -n "$ns" get resourceclaim "$1" -o json | jq -e "$2" >/dev/null; }
labelled() { [[ $(k get nodes -l resource.nvidia.com/shared-channel=true -o name | wc -l) == "$1" ]]; }
# failure: a whole rack runs one workload with one claim -> all 72 containers have the same channel, which is not 0
@test "seventy-two pods on eighteen nodes share one claim: the same channel in every container, and not 0" {
	with_own_channels
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: train}
spec: {numNodes: 0, channel: {resourceClaim: {name: train}}}
END
	eventually 60 condition_is train SharedClaimAvailable True
	eventually 60 labelled 18
	SHARED=yes members train 72
	eventually 400 pods_are train Running 72
	local id
	id=$(channel_of train 72)
	[[ $(on_nodes app=train) == '18 4' ]]
	[[ $(k -n "$ns" get resourceclaims -o name) == resourceclaim.resource.k8s.io/train ]]
	claim_is train '.status.reservedFor | length == 72'
	table_is ".items | length == 1 and .[0].nodes == 18 and ([.[0].channels[] | select(.releasing | not) | .id] == [$id])"
	# The claim stays while no pod uses it, and ends with its ComputeDomain.
	k -n "$ns" delete deployment train >/dev/null
	eventually 120 claim_is train '(.status.reservedFor // []) == [] and .status.allocation != null'
	k -n "$ns" delete computedomain train --timeout=60s >/dev/null
	k -n "$ns" wait --for=delete resourceclaim/train --timeout=60s >/dev/null
	k delete resourceslice compute-domain.nvidia.com-shared --ignore-not-found >/dev/null
}
