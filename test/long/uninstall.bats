#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The driver is removed: with the commands of docs/how-to/uninstall.md, and in the wrong order.

load ../cluster/driver
load ../cluster/gpus

setup_file() { with_driver 3; }
setup() { ns_begin; }
# Only the driver removes what is left.
teardown() {
	"$cluster/host-imex" all stop
	with_driver 3
	ns_end
}
kubectl() { k "$@"; }
helm() { "$cluster/helm" "$@"; }

# commands TITLE N: prints the commands of the N-th block below a heading of the page.
commands() {
	awk -v title="$1" -v n="$2" '/^## /{ found = $0 == title } !found { next } /^```sh$/{ i++; next } /^```$/{ if (i == n) exit; next } i == n' \
		<(sed 's/^# Uninstall$/## Uninstall/' "$checkout/docs/how-to/uninstall.md")
}
# follow TITLE N [SCRIPT]: runs these commands, changed by the sed script.
follow() {
	eval "$(sed -n 's/^    RELEASE=/RELEASE=/p' "$checkout/docs/how-to/uninstall.md")"
	commands "$1" "$2" | sed "${3-}" >"$BATS_TEST_TMPDIR/commands.sh"
	[[ -s $BATS_TEST_TMPDIR/commands.sh ]]
	. "$BATS_TEST_TMPDIR/commands.sh"
}
no_slices() { slices_published 0; }
none_of_the_cluster() {
	local names
	names=$(k get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,deviceclasses -o name) && [[ $names != *compute-domain* ]]
}
no_driver_namespace() { ! k get namespace "$driver_ns" 2>/dev/null; }
no_daemon_claims() {
	local i
	for i in 0 1 2; do [[ -z $("$cluster/node" "$i" ls /var/run/cdi) ]] || return 1; done
}

@test "in the documented order nothing is left except what the page lists" {
	domain d
	worker w d 1
	running w
	k -n "$ns" delete pod w >/dev/null
	eventually 30 clique_label_is 1 1
	follow '## Uninstall' 1
	eventually 60 no_slices
	none_of_the_cluster
	no_driver_namespace
	k get crd computedomains.resource.nvidia.com computedomaincliques.resource.nvidia.com computedomainfabrics.resource.nvidia.com
	labels_gone
	no_daemon_claims
	follow '## What stays' 1
	prints_nothing k get nodes -l nvidia.com/gpu.clique -o name
	local nodes
	nodes=$(k get nodes -o json)
	[[ $nodes != *resource.nvidia.com/* ]]
	[[ $("$cluster/node" 1 sh -c "ls $plugin_dir | xargs; ls /var/run/cdi") == 'checkpoint.json domains pu.lock registered unprepared-daemon-claims' ]]
	follow '## Uninstall' 2
	! k get computedomains -A || false
	! k get computedomainfabrics || false
}

labelled() { [[ $(k get nodes -l resource.nvidia.com/shared-channel -o name | wc -l) == "$1" ]]; }
# failure: the driver is uninstalled after shared claims -> the hook removes their slice and the label of the nodes
@test "after shared claims, helm uninstall removes their slice and the label of the nodes" {
	"$cluster/host-imex" all start
	with_driver 3 --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.isolation=channel
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: d}
spec: {numNodes: 0, channel: {resourceClaim: {name: d}}}
END
	eventually 60 condition_is d SharedClaimAvailable True
	eventually 60 labelled 3
	follow '## Uninstall' 1
	labelled 0
	! k get resourceslice compute-domain.nvidia.com-shared || false
	none_of_the_cluster
}

racks_exist() { [[ -n $(k -n "$driver_ns" get computedomains -l resource.nvidia.com/rack -o name) ]]; }
# failure: the ComputeDomains of racks are deleted for an uninstallation -> with the documented command they are not recreated
@test "with racks, the documented order leaves no ComputeDomain and no namespace of the driver" {
	with_driver 3 --set resources.computeDomains.rackDomains.enabled=true
	eventually 60 racks_exist
	cd "$checkout"
	follow '## Uninstall' 1 's/^#    helm upgrade/helm upgrade/'
	grep -q '^helm upgrade' "$BATS_TEST_TMPDIR/commands.sh"
	eventually 60 no_slices
	none_of_the_cluster
	no_driver_namespace
	prints_nothing k get computedomains -A -o name
}

# failure: helm uninstall under pods -> daemons in use continue, also under the next release
@test "helm uninstall waits for idle daemons only: the daemon of a ComputeDomain in use continues, also under the next release" {
	domain d
	worker w d 1
	running w
	local pid begin=$SECONDS
	pid=$(imex_pid 1)
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --wait --timeout 400s >/dev/null
	((SECONDS < begin + 120))
	test -d "/proc/$pid"
	has_channel w
	prints_nothing k -n "$driver_ns" get daemonsets -l $daemon_selector -o name
	[[ $(k -n "$driver_ns" get pods -l $daemon_selector -o jsonpath='{.items[*].spec.nodeName}') == node-1 ]]
	# The daemon may still write its report.
	daemon_is_ready 1
	with_driver 3
	[[ $(imex_pid 1) == "$pid" ]]
	k -n "$ns" delete pod w >/dev/null
	another() { [[ $(imex_pid 1) != "$pid" ]] && daemon_state_is 1 IDLE; }
	eventually 90 another
}

@test "without hooks, with the documented commands before helm uninstall, no daemon is left either" {
	domain d
	worker w d 1
	running w
	k -n "$ns" delete pod w --timeout=60s >/dev/null
	k -n "$ns" delete computedomain d --timeout=60s >/dev/null
	follow '## Without hooks' 1
	prints_nothing k -n "$driver_ns" get pods -l $daemon_selector -o name
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --no-hooks --wait --timeout 120s >/dev/null
	k delete namespace "$driver_ns" --timeout=60s >/dev/null
	no_driver_namespace
	no_daemon_claims
}

# failure: the Job of an uninstallation fails -> helm rollback starts the controller again, and helm upgrade works
@test "if the Job fails, the documented rollback starts the controller again, and the release can be upgraded" {
	local revision
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null # by the Job, before it fails
	! "$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --timeout 1s || false
	k -n "$driver_ns" delete job compute-domains-uninstall --cascade=foreground >/dev/null
	run install_chart
	[[ $status -ne 0 && $output == *'has no deployed releases'* ]]
	revision=$("$cluster/helm" history compute-domains --namespace "$driver_ns" -o json | jq -r '.[] | select(.status == "uninstalling").revision')
	[[ $revision =~ ^[0-9]+$ ]]
	grep -qF 'helm rollback $RELEASE REVISION --namespace $NAMESPACE --wait' "$checkout/docs/how-to/uninstall.md"
	"$cluster/helm" rollback compute-domains "$revision" --namespace "$driver_ns" --wait
	eventually 60 has_leader
	with_driver 3
	domain d
	worker w d 1
	running w
}

no_slices_of_gpus() { slices_published 0 gpu.nvidia.com; }
@test "with GPUs, nothing is left of them except their folder, as documented, and a reinstalled driver continues" {
	with_driver 3 --set resources.gpus.enabled=true
	eventually 60 slices_published 3 gpu.nvidia.com
	gpu_image=compute-domains/busybox:test
	gpu_template one
	gpu_pod w '[{name: gpu, resourceClaimTemplateName: one}]' '' 1
	running w
	[[ $(nodes_in w) == "$(given w)" ]]
	k -n "$ns" delete pod w >/dev/null
	follow '## Uninstall' 1
	eventually 60 no_slices
	eventually 60 no_slices_of_gpus
	prints_nothing k get deviceclasses -o name
	no_gpu_files 1
	[[ $("$cluster/node" 1 ls "$gpu_plugin_dir" | sed 's/^cdi-hook-[0-9a-f]*$/cdi-hook/' | xargs) == 'cdi-hook checkpoint.json pu.lock registered' ]]
	with_driver 3 --set resources.gpus.enabled=true
	gpu_pod w '[{name: gpu, resourceClaimTemplateName: one}]' '' 1
	running w
	# While a plugin runs that can unprepare its claim.
	k -n "$ns" delete pod w >/dev/null
	eventually 30 no_gpu_files 1
}

@test "with a workload its pods wait, and end when the driver is installed again" {
	domain d
	worker w d 1
	running w
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --wait >/dev/null
	k -n "$ns" delete pod/w --grace-period=1 --wait=false >/dev/null
	k -n "$ns" delete computedomain/d --wait=false >/dev/null
	eventually 60 no_slices
	[[ -n $(k -n "$ns" get pod w -o jsonpath='{.metadata.deletionTimestamp}') ]]
	[[ -n $(k -n "$ns" get computedomain d -o jsonpath='{.metadata.deletionTimestamp}') ]]
	with_driver 3
	gone pod/w 120
	gone computedomain/d
	nothing_left
}

@test "if the controller was removed first, its work can be done by hand" {
	domain d
	worker w d 1
	running w
	k -n "$ns" delete pod w >/dev/null
	eventually 30 daemons_idle 3
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --wait >/dev/null
	k -n "$ns" delete computedomain d --wait=false >/dev/null
	[[ $(k -n "$ns" get computedomain d -o jsonpath='{.metadata.finalizers}') == *resource.nvidia.com/computeDomain* ]]
	follow '## When the controller was removed first' 1
	prints_nothing k get computedomains,computedomaincliques -A -o name
	objects_gone
	labels_gone
}
