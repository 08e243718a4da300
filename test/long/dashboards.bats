#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The queries of the Grafana dashboards, with a real Prometheus and the faults that they show.

bats_require_minimum_version 1.5.0
load ../cluster/driver
load ../cluster/domains
load ../cluster/gpus

events=/run/nvidia/driver/usr/lib64/libnvidia-ml.events

setup_file() {
	with_gpus 4 --set featureGates.NVMLDeviceHealthCheck=true
	"$cluster/prometheus" start 2s
}
teardown_file() {
	"$cluster/prometheus" stop
	device_plugin
}
setup() { ns_begin; }
teardown() {
	knob 1 VERSION=
	"$cluster/gpu" 0 GPU2_FAIL_nvmlDeviceRegisterEvents= GPU3_FAIL_nvmlDeviceRegisterEvents=
	"$cluster/gpu" 2 CRASH=
	mig 2 3 ''
	"$cluster/gpu" 3 INIT_ERROR=
	"$cluster/node" 0 rm -f "$events"
	k -n "$ns" delete pods --all >/dev/null
	k -n "$driver_ns" delete pod "$(plugin_pod 0)" "$(plugin_pod 2)" "$(plugin_pod 3)" >/dev/null
	plugins_settle
	ns_end
}

# queries DASHBOARD: prints the queries of its panels and variables, as Grafana sends them for all namespaces.
queries() {
	jq -r '.panels[].targets[].expr, (.templating.list[].definition // empty |
			capture("^label_values\\((?<metric>.*), *(?<label>\\w+)\\)$") | "count by (\(.label)) (\(.metric))") |
		gsub("\\$__rate_interval"; "5m") | gsub("\\$domain_namespace"; ".*")' "$1"
}
# has_data QUERY: Prometheus answers with at least one number.
has_data() { "$cluster/prometheus" query "$1" | jq -e 'any(.data.result[].value[1]; . != "NaN")' >/dev/null; }
# all_have_data DASHBOARD
all_have_data() {
	local query empty=0
	queries "$1" >"$BATS_TEST_TMPDIR/queries"
	run ! grep -F '$' "$BATS_TEST_TMPDIR/queries"
	while read -r query; do
		eventually 60 has_data "$query" || { echo "no data: $query"; empty=1; }
	done <"$BATS_TEST_TMPDIR/queries"
	return $empty
}
# at_work POD NODE: a pod with a channel and a GPU on this node runs.
at_work() {
	gpu_pod "$1" '[{name: channel, resourceClaimTemplateName: d}, {name: gpu, resourceClaimTemplateName: one}]' '' "$2"
	running "$1" 90
}

@test "each query of the dashboards returns data while the fault that it shows exists" {
	# Two versions of nvidia-imex are not connected, and the ComputeDomain waits for a third node.
	knob 1 VERSION=575.57.08
	domain d 3
	gpu_template one
	at_work a 0
	# GPUs of node-0 have an XID, are lost or cannot be monitored.
	"$cluster/gpu" 0 GPU2_FAIL_nvmlDeviceRegisterEvents=15 GPU3_FAIL_nvmlDeviceRegisterEvents=999
	"$cluster/node" 0 sh -c 'printf "%s\n" "1 xid 79" "error 15" >"$1"' sh "$events"
	# NVML of node-2 crashes. The plugin queries it because of a new MIG device.
	"$cluster/gpu" 2 CRASH=1
	mig 2 3 1g@0
	# The driver of node-3 is not loaded when the plugins start.
	"$cluster/gpu" 3 INIT_ERROR=9
	k -n "$driver_ns" delete pod "$(plugin_pod 3)" >/dev/null
	at_work b 1
	eventually 120 has_data 'nvidia_dra_gpu_inventory_stale == 1'
	# The rate of a series needs two values.
	k -n "$ns" delete pod a >/dev/null
	at_work c 0
	all_have_data "$checkout/deploy/chart/compute-domains/files/dashboard.json"
	all_have_data "$checkout/deploy/chart/compute-domains/files/dashboard-gpus.json"
}
