#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The mode of an installation changes under existing ComputeDomains: with the procedure of docs/how-to/upgrade.md, and
# without it.

load driver

nodes=4

setup_file() {
	"$cluster/up" $nodes
	"$cluster/host-imex" all stop # in case an earlier test left it running
	# The plugin also runs on nodes that only Node Feature Discovery has labelled.
	k label --overwrite node node-3 feature.node.kubernetes.io/pci-10de.present=true nvidia.com/gpu.present-
	in_mode driverManaged
}
teardown_file() { k label --overwrite node node-3 nvidia.com/gpu.present=true feature.node.kubernetes.io/pci-10de.present-; }
setup() { ns_begin; }
teardown() {
	"$cluster/host-imex" all stop
	ns_end
}

# in_mode MODE: the driver installed with this value of imex.mode.
in_mode() { with_driver $nodes --set resources.computeDomains.imex.mode="$1"; }

# Prints the commands of the page. kubectl and helm are those of the test cluster, and host-imex replaces the systemd
# of a host.
procedure() {
	awk -v title="$1" '$0 == title { found = 1 } found && /^```$/ { exit } found && inside { print } found && /^```sh$/ { inside = 1 }' "$checkout/docs/how-to/upgrade.md"
}
# Prints the command of the page that exports the ComputeDomains.
export_command() { awk '/^```$/ { inside = 0 } inside { print } /^```bash$/ { inside = !found; found = 1 }' "$checkout/docs/how-to/upgrade.md"; }
# run_procedure TITLE [SCRIPT [N]]: runs the commands, changed by the sed script, while the workload is on N nodes.
run_procedure() {
	local folder=$BATS_TEST_TMPDIR/migration
	mkdir -p "$folder"
	ln -sfn "$checkout/deploy" "$folder/deploy"
	workload_manifest >"$folder/workloads.yaml"
	export_command >"$folder/procedure.sh"
	grep -q 'domains.yaml' "$folder/procedure.sh"
	procedure "$1" | sed "${2-}" >>"$folder/procedure.sh"
	grep -q 'helm upgrade' "$folder/procedure.sh" # the page still contains it
	(
		cd "$folder"
		kubectl() { "$cluster/kubectl" "$@"; }
		helm() { "$cluster/helm" "$@"; }
		ssh() {
			local k=${1#node-}
			case $2 in
			*"enable --now nvidia-imex && nvidia-imex-ctl -q") "$cluster/host-imex" "$k" start && [[ $("$cluster/host-imex" "$k" status) == READY ]] ;;
			*"disable --now nvidia-imex && systemctl mask nvidia-imex") "$cluster/host-imex" "$k" stop ;;
			*) return 1 ;;
			esac
		}
		set -euo pipefail
		. ./procedure.sh
		[[ $(wc -w <<<"$NODES") == "${3:-2}" && (! -v HOSTS || $(wc -w <<<"$HOSTS") == "$nodes") ]]
	)
}

domain_manifest() {
	cat <<-END
		apiVersion: resource.nvidia.com/v1beta1
		kind: ComputeDomain
		metadata: {name: moving, namespace: $ns, annotations: {resource.nvidia.com/start-gate: "false"}}
		spec: {numNodes: 0, channel: {allocationMode: Single, resourceClaimTemplate: {name: moving}}}
	END
}
workload_manifest() {
	cat <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: work, namespace: $ns}
		spec:
		  replicas: 2
		  selector: {matchLabels: {job: work}}
		  template:
		    metadata: {labels: {job: work}}
		    spec:
		      terminationGracePeriodSeconds: 0
		      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
		        {key: kubernetes.io/hostname, operator: In, values: [${on:-node-1, node-2}]}]}]}}}
		      resourceClaims: [{name: channel, resourceClaimTemplateName: moving}]
		      containers:
		      - name: main
		        image: compute-domains/busybox:test
		        imagePullPolicy: Never
		        command: [sleep, "1000000"]
		        resources: {claims: [{name: channel}]}
	END
}

works() {
	k -n "$ns" rollout status deployment/work --timeout=90s
	local pod
	for pod in $(k -n "$ns" get pods -l job=work -o jsonpath='{.items[*].metadata.name}'); do has_channel "$pod"; done
	k -n "$ns" wait --for=condition=Ready computedomain/moving --timeout=30s
	domain_field_is moving '.metadata.annotations.resource\.nvidia\.com/start-gate' false
}
nothing_of_daemons() { no_daemons && labels_gone && cliques_gone; }

# mode_is DOMAIN MODE: the mode that is recorded for the ComputeDomain.
mode_is() { domain_field_is "$1" '.metadata.annotations.resource\.nvidia\.com/imex-mode' "$2"; }

# bats test_tags=matrix,long
@test "the documented migration procedure, to host-managed and back to driver-managed" {
	domain_manifest | k apply -f -
	workload_manifest | k apply -f -
	works
	mode_is moving driverManaged

	run_procedure "From driver-managed to host-managed:"
	works
	eventually 60 nothing_of_daemons
	mode_is moving hostManaged
	[[ -z $(domain_field moving .status.nodes) ]]
	eventually 90 condition_is moving HostIMEXHealthy True # queried every 30 s

	run_procedure "From host-managed to driver-managed:"
	works
	mode_is moving driverManaged
	eventually 15 domain_field_is moving .status.nodesReady 2
	eventually 45 condition_is moving PeersConnected True
}

# one_waits: one of the two pods runs, and the scheduler has no device for the other one. Prints the running one.
one_waits() {
	k -n "$ns" get pods -l job=work -o json | jq -er '.items | select(length == 2 and
		(map(select(any(.status.conditions[]?; .type == "PodScheduled" and .status == "False"))) | length == 1)) |
		map(select(.status.phase == "Running"))[0].metadata.name'
}

# failure: imex.isolation changes from channel to domain -> a second pod of a node waits until the first one has ended
#   [upgrade]
# bats test_tags=long
@test "the documented change from channel isolation to isolation by domain: of two pods on a node, one waits for the other" {
	local imex=resources.computeDomains.imex on=node-1 first
	with_driver $nodes --set $imex.isolation=channel
	domain_manifest | k apply -f -
	workload_manifest | k apply -f -
	k -n "$ns" rollout status deployment/work --timeout=120s
	run_procedure "From host-managed to driver-managed:" \
		"/HOSTS/d; s/^MODE=.*/MODE='--set $imex.isolation=domain'/" 1
	eventually 90 one_waits
	first=$(one_waits)
	has_channel "$first"
	k -n "$ns" delete pod "$first" >/dev/null
	eventually 90 one_waits
	[[ $(one_waits) != "$first" ]]
}

# assigned_nowhere: the daemons that exist serve no ComputeDomain.
assigned_nowhere() { domains_gone && daemons_idle $nodes; }
# refuses POD: a pod that is created after the change is not prepared, and an Event reports why.
refuses() { eventually 90 event_contains "Pod/$1" "delete and recreate it"; }

# bats test_tags=long
@test "driver-managed ComputeDomains when the mode changes: they report it, get no new pods, and can be deleted completely" {
	in_mode driverManaged
	domain old
	worker before old 0
	running before
	eventually 15 domain_field_is old .status.nodesReady 1
	local pid
	pid=$(imex_pid 0)
	in_mode hostManaged
	k -n "$ns" wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=OtherMode computedomain/old --timeout=60s
	[[ $(condition old Ready message) == *driverManaged*hostManaged*"create it again"* ]]
	domain_field_is old .status.status NotReady
	eventually 30 event_contains ComputeDomain/old "Formed in IMEX mode driverManaged"
	# Running pods continue and keep their IMEX. The other nodes no longer have a daemon.
	running before
	has_channel before
	[[ $(imex_pid 0) == "$pid" ]]
	eventually 60 eval '[[ $(k get nodes -l $daemon_label -o name) == node/node-0 ]]'
	# A ComputeDomain of the new mode works beside it, and needs no daemon.
	domain new
	worker fresh new 1
	running fresh
	has_channel fresh
	prints_nothing k get node node-1 -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}"
	worker after old 2
	refuses after
	prints_nothing k get node node-2 -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}"

	k -n "$ns" delete pod after before --wait=false
	k -n "$ns" delete computedomain old --timeout=90s
	eventually 60 nothing_of_daemons
	prints_nothing k get resourceclaimtemplates -A -l $daemon_selector -o name
}

# bats test_tags=long
@test "host-managed ComputeDomains when the mode changes back: they report it, get no daemon, and can be deleted completely" {
	in_mode hostManaged
	domain old
	worker before old 0
	running before
	in_mode driverManaged
	k -n "$ns" wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=OtherMode computedomain/old --timeout=60s
	[[ $(condition old Ready message) == *hostManaged*driverManaged*"create it again"* ]]
	running before
	assigned_nowhere
	# Without a recorded mode, as with the Go driver: the controller determines the mode, and the plugins refuse
	# claims by it.
	k -n "$ns" annotate computedomain old resource.nvidia.com/imex-mode-
	eventually 15 mode_is old hostManaged
	worker after old 1
	refuses after
	assigned_nowhere
	k -n "$ns" get computedomain old -o yaml >"$BATS_TEST_TMPDIR/old.yaml"
	k -n "$ns" delete pod after before --wait=false
	k -n "$ns" delete computedomain old --timeout=90s
	prints_nothing k -n "$ns" get resourceclaimtemplates -o name
	# The same object is created again, with mode and finalizer. It counts as a new ComputeDomain.
	k apply -f "$BATS_TEST_TMPDIR/old.yaml"
	eventually 15 mode_is old driverManaged
	worker again old 1
	running again
	eventually 15 domain_field_is old .status.nodesReady 1
}

# domains_in_metrics STATUS N: the leading controller counts N ComputeDomains with this status.
domains_in_metrics() { k get --raw "/api/v1/namespaces/$driver_ns/pods/$(leader_pod):8080/proxy/metrics" | grep -qx "nvidia_dra_compute_domain_info{status=\"$1\"} $2"; }

# bats test_tags=long
@test "host-managed: the controller's metrics no longer count a deleted ComputeDomain" {
	in_mode hostManaged
	domain one
	k -n "$ns" wait --for=condition=Ready computedomain/one --timeout=60s
	eventually 30 domains_in_metrics Ready 1
	k -n "$ns" delete computedomain one --timeout=60s
	eventually 30 domains_in_metrics Ready 0
}
