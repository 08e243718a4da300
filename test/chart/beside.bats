# SPDX-License-Identifier: Apache-2.0
# The Go driver's chart for GPUs only, beside this one: they share no objects. Its objects are those of the stand-in for its release, with
# the names of the real one (test/cluster/go-chart).
load chart.bash

# identities: kind, namespace and name of each rendered object.
identities() { jq '[.[] | [.kind, .metadata.namespace // "", .metadata.name] | join(" ")] | sort' <<<"$objects"; }

# go_gpus NAMESPACE [HELM ARGUMENT...]: the objects of the Go chart for GPUs only.
go_gpus() {
	local copy=$BATS_TEST_TMPDIR/go-chart
	rm -rf "$copy"
	cp -r "$checkout/test/cluster/go-chart" "$copy"
	cp "$BATS_TEST_DIRNAME/values/go-chart-defaults.yaml" "$copy/values.yaml"
	helm template gpus "$copy" --kube-version 1.37.0 --set gpuResourcesEnabledOverride=true --set resources.computeDomains.enabled=false \
		--namespace "$@" >"$BATS_TEST_TMPDIR/go.yaml"
	objects=$(to_json "$BATS_TEST_TMPDIR/go.yaml")
	identities
}

# shared OURS THEIRS: the objects that both charts have.
shared() { jq -n --argjson a "$1" --argjson b "$2" '$a - ($a - $b)'; }

# failure: the Go driver's chart is installed for GPUs only -> the two charts share no object
@test "the Go chart for GPUs only, in another namespace, has no object in common with this chart" {
	local ours theirs
	theirs=$(go_gpus nvidia-gpus)
	jq -e 'length > 15 and any(. == "DeviceClass  gpu.nvidia.com")' <<<"$theirs"
	render
	ours=$(identities)
	jq -e 'length > 20' <<<"$ours"
	[[ $(shared "$ours" "$theirs" | jq length) == 0 ]]
	# In the same namespace both charts would have the daemons' account.
	[[ $(shared "$ours" "$(go_gpus nvidia-compute-domains)" | jq -c .) == '["ServiceAccount nvidia-compute-domains compute-domain-daemon-service-account"]' ]]
}

@test "with the Go chart's name this chart has its cluster roles, so the Go chart for GPUs only needs another name" {
	local ours
	render --set nameOverride=dra-driver-nvidia-gpu
	ours=$(identities)
	[[ $(shared "$ours" "$(go_gpus nvidia-gpus)" | jq -c 'map(split(" ")[0]) | unique') == *ClusterRole* ]]
	[[ $(shared "$ours" "$(go_gpus nvidia-gpus --set nameOverride=nvidia-gpus)" | jq length) == 0 ]]
}
