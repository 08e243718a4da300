#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Kueue's manager, of the release that examples/kueue.yaml names, with the definitions and webhooks of its chart.
# It runs beside the API server.

load ../cluster/driver

kueue=$(. "$BATS_TEST_DIRNAME/../cluster/lib.bash" && echo "$kueue_bin")
state=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}
dir=$state/kueue

# start_kueue GATES: starts the manager and waits until it serves. The path of one of its certificates cannot be
# configured.
start_kueue() {
	stop_kueue
	unshare --mount sh -c 'mount -t overlay -o "lowerdir=$1:/etc" overlay /etc && shift && exec "$@"' sh "$dir/etc" \
		"$kueue/kueue" --config="$dir/config.yaml" --kubeconfig="$kubeconfig" --feature-gates="VisibilityOnDemand=false$1" >>"$dir/log" 2>&1 3>&- &
	echo $! >"$dir/pid"
	eventually 60 curl -sf --max-time 2 http://127.0.0.1:18081/readyz
}
stop_kueue() {
	local pid
	[[ -e $dir/pid ]] || return 0
	pid=$(<"$dir/pid")
	kill "$pid"
	timeout 30 tail --pid="$pid" -f /dev/null
	rm "$dir/pid"
}
definitions() { "$cluster/helm" template kueue "$kueue/chart" --namespace kueue-system | /usr/bin/python3 "$BATS_TEST_DIRNAME/kueue.py" "$dir/tls.crt"; }

setup_file() {
	"$cluster/tools" kueue
	with_driver 4
	mkdir -p "$dir/etc/kueue/metrics/certs"
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=kueue -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$dir/tls.key" -out "$dir/tls.crt" 2>/dev/null
	cp "$dir"/tls.* "$dir/etc/kueue/metrics/certs/"
	cat >"$dir/config.yaml" <<-END
		apiVersion: config.kueue.x-k8s.io/v1beta2
		kind: Configuration
		namespace: kueue-system
		health: {healthProbeBindAddress: "127.0.0.1:18081"}
		metrics: {bindAddress: "0"}
		webhook: {port: 9443, certDir: $dir}
		leaderElection: {leaderElect: false}
		internalCertManagement: {enable: false}
		integrations: {frameworks: [batch/job]}
	END
	k create namespace kueue-system >/dev/null
	definitions >"$dir/definitions.json"
	# Definitions first, because nothing serves the webhooks yet.
	jq '.items |= map(select(.kind == "CustomResourceDefinition"))' "$dir/definitions.json" | k apply --server-side -f - >/dev/null
	k wait --for=condition=Established --timeout=30s crd --all >/dev/null
	start_kueue ''
	k apply --server-side -f "$dir/definitions.json" >/dev/null
}
teardown_file() {
	k delete topologies.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io,clusterqueues.kueue.x-k8s.io --all >/dev/null
	jq '.items |= map(select(.kind != "CustomResourceDefinition"))' "$dir/definitions.json" | k delete -f - >/dev/null
	stop_kueue
	k delete --ignore-not-found -f "$dir/definitions.json" >/dev/null
	k delete namespace kueue-system >/dev/null
	rm -r "$dir"
}
setup() { ns_begin; }
teardown() { ns_end; }

run_example() { sed 's|image: .*|image: compute-domains/busybox:test|' "$checkout/examples/kueue.yaml" | k -n "$ns" apply -f - >/dev/null; }
rejected() { k -n "$ns" get workloads.kueue.x-k8s.io -o json | jq -e --arg text "$1" 'any(.items[].status.conditions[]?; .status == "False" and (.message | contains($text)))' >/dev/null; }

@test "Kueue starts the Job of the example on four nodes of one partition, each pod with a channel" {
	run_example
	k -n "$ns" wait --for=condition=Complete job/queued --timeout=120s
	[[ $(k -n "$ns" get workloads.kueue.x-k8s.io -o jsonpath='{.items[*].status.conditions[?(@.type=="Admitted")].status}') == True ]]
	[[ $(k -n "$ns" get pods -l job-name=queued -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l) == 4 ]]
	[[ $(k -n "$ns" logs -l job-name=queued | grep -c channel0) == 4 ]]
}

@test "with its gate DynamicResourceAllocation on, Kueue rejects the workload because of devices.config, as docs/how-to/schedulers.md describes" {
	start_kueue ,DynamicResourceAllocation=true
	run_example
	eventually 60 rejected config
	[[ $(k -n "$ns" get job queued -o jsonpath='{.spec.suspend}') == true ]]
	start_kueue ''
}
