# SPDX-License-Identifier: Apache-2.0
# The chart's objects for monitoring: PodMonitors, alerts, dashboards. test/cluster/driver_managed.bats checks on a cluster that their series
# exist. These tests check the alerts with recorded series.
load chart.bash

alerts=$chart/files/alerts.yaml
dashboard=$chart/files/dashboard.json
gpu_alerts=$chart/files/alerts-gpus.yaml
gpu_dashboard=$chart/files/dashboard-gpus.json
recorded=$checkout/test/alerts

@test "monitoring is off by default, and needs the metrics" {
	render
	is 'all(.kind | . != "PodMonitor" and . != "PrometheusRule" and . != "ConfigMap")'
	render --set metrics=null
	render --set metrics.podMonitor.enabled=true --set controller.metrics.enabled=false
	is 'kind("PodMonitor") | map(.metadata.name) == ["compute-domains-kubelet-plugin"]'
}

# failure: a PodMonitor is enabled, but an endpoint is not reachable from other pods -> the chart refuses it
@test "a PodMonitor needs endpoints that other pods can reach" {
	local monitor=(--set metrics.podMonitor.enabled=true)
	refused 'Prometheus cannot reach controller.metrics.httpEndpoint "127.0.0.1:8080"' "${monitor[@]}" --set controller.metrics.httpEndpoint=127.0.0.1:8080
	render "${monitor[@]}" --set resources.gpus.enabled=true --set kubeletPlugin.metrics.computeDomainHttpEndpoint=
	is 'named("PodMonitor"; "compute-domains-kubelet-plugin").spec.podMetricsEndpoints | map(.port) == ["gpu-metrics"]'
	render "${monitor[@]}" --set controller.metrics.httpEndpoint=
	is 'kind("PodMonitor") | map(.metadata.name) == ["compute-domains-kubelet-plugin"]'
	refused 'Prometheus cannot reach kubeletPlugin.metrics.gpuHttpEndpoint "10.0.0.1:8080"' "${monitor[@]}" \
		--set resources.gpus.enabled=true --set kubeletPlugin.metrics.gpuHttpEndpoint=10.0.0.1:8080
	render "${monitor[@]}" --set kubeletPlugin.metrics.gpuHttpEndpoint=10.0.0.1:8080
	render "${monitor[@]}" --set controller.metrics.httpEndpoint=127.0.0.1:8080 --set controller.metrics.enabled=false
}

@test "PodMonitors find the pods and their ports" {
	render --set metrics.podMonitor.enabled=true --set metrics.podMonitor.interval=30s --set metrics.podMonitor.labels.release=prom,metrics.podMonitor.labels.app=prom
	is 'kind("PodMonitor") | map(.metadata.name) == ["compute-domains-controller", "compute-domains-kubelet-plugin"]'
	is 'kind("PodMonitor") | all(.metadata.labels.release == "prom" and .metadata.labels["app.kubernetes.io/instance"] == "compute-domains")'
	is 'kind("PodMonitor") | all(.spec.podMetricsEndpoints[0] | .port == "metrics" and .path == "/metrics" and .interval == "30s")'
	is '. as $all | named("PodMonitor"; "compute-domains-controller").spec.selector.matchLabels | to_entries |
		all(. as $l | $all | controller.metadata.labels[$l.key] == $l.value)'
	is '. as $all | named("PodMonitor"; "compute-domains-kubelet-plugin").spec.selector.matchLabels | to_entries |
		all(. as $l | $all | plugin.metadata.labels[$l.key] == $l.value)'
	render --set metrics.podMonitor.enabled=true --set controller.metrics.metricsPath=/m
	is 'named("PodMonitor"; "compute-domains-controller").spec.podMetricsEndpoints[0] | .path == "/m" and (has("interval") | not)'
}

@test "alerts are those of the files; alerts about the hosts' IMEX and about GPUs exist only if they apply" {
	render --set metrics.prometheusRule.enabled=true --set metrics.prometheusRule.labels.release=prom
	is 'named("PrometheusRule"; "compute-domains") | .metadata.labels.release == "prom" and (.spec.groups | map(.name)) == ["compute-domains"]'
	render --set metrics.prometheusRule.enabled=true --set featureGates.HostManagedIMEX=true --set resources.gpus.enabled=true
	is '[named("PrometheusRule"; "compute-domains").spec.groups[].rules[] | .annotations.description, .annotations.summary, .labels.severity] | all(length > 5)'
	is '[named("PrometheusRule"; "compute-domains").spec.groups[].rules[].alert] == $file' --argjson file "$(all_alerts | jq -R . | jq -s .)"
}
all_alerts() { sed -n 's/^ *- alert: //p' "$alerts" "$gpu_alerts"; }

@test "the dashboards reach Grafana's sidecar unchanged, that of GPUs only if GPUs are allocated" {
	render --set metrics.dashboard.enabled=true
	is 'named("ConfigMap"; "compute-domains-dashboard").data | keys == ["compute-domains.json"]'
	render --set metrics.dashboard.enabled=true --set resources.gpus.enabled=true
	is 'named("ConfigMap"; "compute-domains-dashboard").data["compute-domains-gpus.json"] | fromjson == $d' --argjson d "$(<"$gpu_dashboard")"
	is 'named("ConfigMap"; "compute-domains-dashboard") | .metadata.labels.grafana_dashboard == "1" and (.data["compute-domains.json"] | fromjson) == $d' \
		--argjson d "$(<"$dashboard")"
	jq -se 'all(.[]; [.panels[].id] | length == (unique | length)) and ([.[].uid] | length == (unique | length))' "$dashboard" "$gpu_dashboard"
}

# The sources contain each name in one piece, behind one of two macros, or, in src/kube, without its prefix.
series_of_the_programs() {
	(cd "$checkout/src" && cat controller/controller_metrics.c cd_plugin/cd_metrics.c gpu_plugin/gpu_report.c node/node_metrics.c kube/kube_metrics.c) | grep -v '^#define' | grep -oE '(OURS |DOMAIN )?"[a-z_]+"' |
		sed 's/OURS "/"nvidia_dra_compute_domain_controller_/; s/DOMAIN "/"nvidia_dra_compute_domain_/; s/^"kube_/"nvidia_dra_kube_/; s/"//g' | grep '^nvidia_dra_' | sort -u
}

@test "the programs have every series that alerts and dashboards name" {
	series_of_the_programs >"$BATS_TEST_TMPDIR/known"
	[[ $(wc -l <"$BATS_TEST_TMPDIR/known") -gt 30 ]]
	python3 -B "$recorded/named.py" "$alerts" "$dashboard" "$gpu_alerts" "$gpu_dashboard" | cut -d' ' -f1 | sed -E 's/_(bucket|sum|count)$//' | sort -u >"$BATS_TEST_TMPDIR/named"
	[[ $(wc -l <"$BATS_TEST_TMPDIR/named") -gt 15 ]]
	[[ -z $(comm -13 "$BATS_TEST_TMPDIR/known" "$BATS_TEST_TMPDIR/named" | tee /dev/stderr) ]]
}

@test "docs/reference/metrics.md has every series and every alert" {
	local name
	for name in $(series_of_the_programs) $(all_alerts); do
		grep -qF "\`$name\`" "$checkout/docs/reference/metrics.md" || { echo "not in docs/reference/metrics.md: $name"; return 1; }
	done
}

@test "promtool accepts the rules, and each alert fires for its fault only" {
	promtool check rules "$alerts" "$gpu_alerts"
	local tests=$BATS_TEST_TMPDIR/tests.yaml gpu_tests=$BATS_TEST_TMPDIR/gpu-tests.yaml name
	{ echo "rule_files: [$alerts]"; cat "$recorded/made-up.yaml"; } >"$tests"
	{ echo "rule_files: [$gpu_alerts]"; cat "$recorded/made-up-gpus.yaml"; } >"$gpu_tests"
	promtool test rules "$tests" "$gpu_tests"
	for name in $(all_alerts); do cat "$tests" "$gpu_tests" | grep -qE "alertname(: |=.)$name\b"; done
}

# recorded_fires FILE: during the recording exactly the alerts that it lists fire, as often as it lists. The rules are those of the mode in
# which it was recorded.
recorded_fires() {
	local tests=$BATS_TEST_TMPDIR/$(basename "$1") alert gate
	gate=$(sed -n 's/^# gate: //p' "$1")
	render --set metrics.prometheusRule.enabled=true ${gate:+--set featureGates.$gate=true}
	jq 'map(select(.kind == "PrometheusRule"))[0].spec' <<<"$objects" >"$BATS_TEST_TMPDIR/rules.json"
	{
		echo "rule_files: [rules.json]"
		echo "evaluation_interval: 15s"
		echo "tests:"
		echo "  - name: $(basename "$1")"
		sed 's/^/    /' "$1"
		echo "    promql_expr_test:"
		echo "      - eval_time: $(sed -n 's/^# ends: //p' "$1")"
		echo "        expr: 'count by (alertname) (count_over_time(ALERTS{alertstate=\"firing\"}[2h]))'"
		echo "        exp_samples: ["
		for alert in $(sed -n 's/^# fires: //p' "$1"); do echo "          {labels: '{alertname=\"${alert%%=*}\"}', value: ${alert##*=}},"; done
		echo "        ]"
	} >"$tests"
	promtool test rules "$tests"
}

@test "alerts fire on series that were recorded during their faults, and none on a healthy cluster" {
	local file
	for file in "$recorded"/recorded/*.yaml; do
		recorded_fires "$file" || { echo "$file"; return 1; }
	done
}

@test "the runbook_url of each alert leads to its row in docs/reference/reasons.md, which is generated from the catalogue" {
	local alert
	render --set metrics.prometheusRule.enabled=true
	is '[named("PrometheusRule"; "compute-domains").spec.groups[].rules[].annotations | has("runbook_url")] | any | not'
	render --set metrics.prometheusRule.enabled=true --set resources.gpus.enabled=true --set featureGates.HostManagedIMEX=true \
		--set metrics.prometheusRule.runbookURL=https://wiki.example.com/reasons
	for alert in $(all_alerts); do
		is '[named("PrometheusRule"; "compute-domains").spec.groups[].rules[] | select(.alert == $a).annotations.runbook_url] ==
			["https://wiki.example.com/reasons#alert-" + ($a | ascii_downcase)]' --arg a "$alert"
		grep -qF "| <a id=\"alert-${alert,,}\"></a>\`$alert\` |" "$checkout/docs/reference/reasons.md"
		grep -qF "ALERT(\"$alert\"," "$checkout/src/api/reasons.def"
	done
	refused "runbookURL" --set metrics.prometheusRule.runbookURL=wiki
}
