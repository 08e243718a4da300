# SPDX-License-Identifier: Apache-2.0
# Helpers for tests of the driver on the test cluster. A .bats file loads this.
cluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$cluster/../.." && pwd)
driver_ns=nvidia-compute-domains
uid_label=resource.nvidia.com/computeDomain
plugin_dir=/var/lib/kubelet/plugins/compute-domain.nvidia.com
gpu_plugin_dir=/var/lib/kubelet/plugins/gpu.nvidia.com
# The daemons' Pods, the label of Nodes with a daemon, and the domainID in the configuration of daemon claims
# (src/api/names.h).
daemon_selector=app.kubernetes.io/component=compute-domain-daemon
daemon_label=resource.nvidia.com/imex-daemon
daemon_domain=818fb0f3-f5f0-4334-937e-f52c07a0c01e
imex_annotation=imex.resource.nvidia.com

# The path of the cluster's kubectl and its settings (test/cluster/kubectl), read from lib.bash once per test. Calls
# of kubectl are most of the work of a test, and often the machine's whole load between two events. kubectl runs for a
# tenth of a second: without a second thread and without garbage collection it costs a third less.
read -r kubectl kubeconfig kubectl_cache < <(. "$cluster/lib.bash" && echo "$kube_bin/kubectl $KUBECONFIG $KUBECACHEDIR")
k() { GOMAXPROCS=1 GOGC=1000 KUBECONFIG=$kubeconfig KUBECACHEDIR=$kubectl_cache "$kubectl" "$@"; }
. "$cluster/versions.bash"

# jq: version 1.6, of Debian 12, succeeds with -e if it gets no input, for instance because kubectl has failed. Later
# versions fail.
jq() {
	local printed
	if [[ ${1:-} =~ ^-[a-z]*e[a-z]*$ ]]; then
		printed=$(command jq "$@") && [[ -n $printed ]] && echo "$printed"
	else
		command jq "$@"
	fi
}

# eventually SECONDS CMD...: repeats the command until it succeeds, for at most this time. For states that `kubectl
# wait` cannot express. Since these queries are most of a test's load, the interval between them grows up to half a
# second.
eventually() {
	local end=$((SECONDS + $1)) tenths=1
	shift
	until "$@"; do
		((SECONDS < end)) || {
			echo "timed out: $*" >&2
			return 1
		}
		read -rt "0.$tenths" <> <(:) || true
		((tenths += tenths < 5))
	done
}

# for_seconds N CMD...: runs the command about once per second for N seconds. It must succeed every time.
for_seconds() {
	local end=$((SECONDS + $1))
	shift
	while ((SECONDS < end)); do
		"$@" || return 1
		read -rt 1 <> <(:) || true
	done
}

# prints_nothing CMD...: the command succeeds and prints nothing. A failed query does not show that nothing is left.
prints_nothing() {
	local printed
	printed=$("$@") && [[ -z $printed ]]
}

# with_driver N [HELM ARGS...]: starts a cluster of N nodes and installs the image and the chart, which is quick if
# they are already installed. If the driver runs IMEX, each node with a plugin then has its daemon; otherwise no idle
# daemon is left.
with_driver() {
	local n=$1 before
	shift
	before=$(k get nodes -o name 2>/dev/null | wc -l)
	"$cluster/up" "$n"
	install_chart "$@"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
	# The kubelet does this half a minute after a driver stops. It is done here at once, so that no test finds devices
	# of an earlier driver.
	[[ " $(k -n "$driver_ns" get daemonset compute-domains-kubelet-plugin -o jsonpath='{.spec.template.spec.containers[*].name}') " == *" gpus "* ]] ||
		k delete resourceslices --field-selector spec.driver=gpu.nvidia.com >/dev/null
	eventually 60 slices_published "$n"
	daemons_settle
	((before <= n)) || controllers_restart
}
# controllers_restart: IMEX may run on a Node that was deleted less than a minute ago. So a controller that saw the
# deletion waits before it assigns indexes in a new fabric object. Its successor did not see the deletion.
controllers_restart() {
	k -n "$driver_ns" delete pods -l app=compute-domain-controller --grace-period=5 >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	eventually 60 has_leader
}

# install_chart [HELM ARGS...]: loads the image into the nodes, installs the chart, and waits for its pods.
install_chart() {
	"$cluster/image" "${CD_IMAGE:-$checkout/build/image.tar}"
	"$cluster/helm" upgrade --install compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --create-namespace \
		--values "$cluster/driver-values.yaml" --wait --timeout 120s "$@" >/dev/null
}

# daemons_settle: waits until the controllers have done what an installation requires for the daemons. Without
# controllers there is nothing to wait for.
daemons_settle() {
	local controller
	controller=$(k -n "$driver_ns" get deployment compute-domains-controller -o json)
	[[ $(jq '.spec.replicas' <<<"$controller") != 0 ]] || return 0
	eventually 60 has_leader || return
	if jq -e '.spec.template.spec.containers[0].env | map({(.name): .value}) | add |
		.IMEX_MODE == "driverManaged" and (.FEATURE_GATES // "" | test("(^|,)HostManagedIMEX=true") | not)' <<<"$controller" >/dev/null; then
		eventually 120 daemons_updated || return
		# A new leader may still be about to write another template.
		read -rt 1 <> <(:) || true
		eventually 120 daemons_updated || return
		eventually 120 daemons_ready || return
		eventually 120 listed_nodes_exist
	else
		eventually 120 idle_daemons_gone
	fi
}
has_leader() { [[ -n $(leader_pod) ]]; }
# An earlier file may have switched off a node: then the kubelet prepares the claim of its daemon again after a minute.
# A daemon that waits for an earlier one on its node, which is in use, has no node yet.
daemons_ready() {
	k -n "$driver_ns" get pods -l $daemon_selector -o json |
		jq -e '.items | map(select(.spec.nodeName and .metadata.deletionTimestamp == null)) |
			all(any(.status.conditions[]?; .type == "Ready" and .status == "True"))' >/dev/null
}
# An earlier file may have had more nodes. While assignments of deleted nodes are listed, a new leader waits for a minute.
listed_nodes_exist() {
	local nodes
	nodes=$(k get nodes -o json | jq -c '[.items[].metadata.name]') &&
		k get computedomainfabrics -o json | jq -e --argjson nodes "$nodes" '[.items[].domains[]?.assignments[]?.node] - $nodes == []' >/dev/null
}
# reported_daemons: prints the daemons that have written a report, as JSON. A daemon that is being deleted counts
# while it serves a ComputeDomain.
reported_daemons() {
	k -n "$driver_ns" get pods -l $daemon_selector -o json | jq -c --arg a $imex_annotation '[.items[] | select(.metadata.annotations[$a + "/report"]) |
		{name: .metadata.name, node: .spec.nodeName, state: .metadata.annotations[$a + "/state"], deleted: (.metadata | has("deletionTimestamp")),
		template: .metadata.annotations["resource.nvidia.com/template-hash"]} | select(.state != "IDLE" or (.deleted | not))]'
}
# daemons_current: each node with a plugin has a daemon, and idle daemons have the newest template.
daemons_current() {
	local n hash
	n=$(k -n "$driver_ns" get daemonset compute-domains-kubelet-plugin -o jsonpath='{.status.desiredNumberScheduled}')
	hash=$(k -n "$driver_ns" get daemonset compute-domain-daemon -o jsonpath='{.metadata.annotations.resource\.nvidia\.com/template-hash}' 2>/dev/null) || return
	reported_daemons | jq -e --argjson n "$n" --arg hash "$hash" \
		'(map(.node) | unique | length >= $n) and all(.[]; .state != "IDLE" or .template == $hash)' >/dev/null
}
# daemons_updated: the same, but deletes outdated idle daemons itself. The controllers try a new template on few nodes
# for a minute.
daemons_updated() {
	local hash outdated
	hash=$(k -n "$driver_ns" get daemonset compute-domain-daemon -o jsonpath='{.metadata.annotations.resource\.nvidia\.com/template-hash}' 2>/dev/null) || return
	outdated=$(k -n "$driver_ns" get pods -l $daemon_selector -o json | jq -r --arg a $imex_annotation --arg hash "$hash" '.items[].metadata |
		select((has("deletionTimestamp") | not) and (.annotations[$a + "/state"] // "IDLE") == "IDLE" and
		.annotations["resource.nvidia.com/template-hash"] != $hash).name')
	# shellcheck disable=SC2086 # one word per Pod
	[[ -z $outdated ]] || k -n "$driver_ns" delete pods $outdated --wait=false >/dev/null
	daemons_current
}
idle_daemons_gone() {
	k -n "$driver_ns" get pods -l $daemon_selector -o json |
		jq -e --arg a $imex_annotation 'all(.items[]; (.metadata.annotations[$a + "/state"] // "IDLE") != "IDLE")' >/dev/null
}
# daemons_idle N: there are N daemons, and none serves a ComputeDomain.
daemons_idle() { reported_daemons | jq -e --argjson n "$1" 'length == $n and all(.[]; .state == "IDLE")' >/dev/null; }
# no_daemons: no daemon of this driver is left, and no object that belongs to one. Daemons of the Go driver do not
# count.
no_daemons() {
	prints_nothing k -n "$driver_ns" get pods,daemonsets -l $daemon_selector -o name && prints_nothing k get nodes -l $daemon_label -o name
}

slices_published() {
	local slices
	slices=$(k get resourceslices --field-selector "spec.driver=${2:-compute-domain.nvidia.com}" -o name) && [[ $(wc -w <<<"$slices") -eq $1 ]]
}

# has_account NAMESPACE: a pod can be created there. The controller manager may watch again only half a minute after
# the API server was killed.
has_account() { eventually 60 k -n "$1" get serviceaccount default -o name >/dev/null 2>&1; }
# Each test has its own namespace, and leaves nothing behind.
ns_begin() {
	ns=t-$BATS_TEST_NUMBER-$(basename "$BATS_TEST_FILENAME" .bats | tr _ -)
	k create namespace "$ns" >/dev/null || {
		# The namespace of an earlier run is still being deleted.
		k wait --for=delete "namespace/$ns" --timeout=60s >/dev/null
		k create namespace "$ns" >/dev/null
	}
	has_account "$ns"
}
ns_end() {
	[[ -n ${ns:-} ]] || return 0
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		diagnose
	fi
	empty_namespace && nothing_left
}
# empty_namespace: nothing new can start in the namespace of the test, and its workloads are deleted. It does not wait
# for the namespace itself: Kubernetes first looks at it after 5 s, and if it then finds a finalizer, again after 8 s.
empty_namespace() {
	local answer
	k delete namespace "$ns" --wait=false --ignore-not-found >/dev/null
	answer=$(k -n "$ns" delete computedomains,deployments,jobs,pods,resourceclaims --all --grace-period=0 --timeout=90s 2>&1) || {
		echo "$answer" >&2
		return 1
	}
}

# Prints what a person would look at first when a test fails.
diagnose() {
	local pod
	{
		k -n "$ns" get computedomains,pods,resourceclaims -o wide
		k -n "$ns" get computedomains -o jsonpath='{range .items[*]}{.status}{"\n"}{end}'
		k -n "$ns" get events --sort-by=.lastTimestamp | tail -20
		k -n "$driver_ns" get pods,daemonsets -o wide
		k get computedomainfabrics -o json | jq -c '.items[] | {name: .metadata.name, domains, conditions}'
		k -n "$driver_ns" logs -l app=compute-domain-controller --tail=25 --prefix
		restarted_containers
		for pod in $(k -n "$driver_ns" get pods -o json | jq -r '.items[] | select(any(.status.containerStatuses[]?; .restartCount > 0)).metadata.name'); do
			k -n "$driver_ns" logs "$pod" --all-containers --previous --tail=10 --prefix
		done
		k -n "$driver_ns" logs -l app=compute-domain-kubelet-plugin -c compute-domains --tail=15 --prefix
		k -n "$driver_ns" logs -l app=compute-domain-kubelet-plugin -c gpus --tail=15 --prefix
		k -n "$driver_ns" logs -l app=imex-daemon --tail=15 --prefix
	} 2>&1 | cut -c1-600
}

# restarted_containers: prints how each restarted container of a workload ended, and what the kubelet logged about its
# pod. Without an Event "Killing", something other than the kubelet ended the container.
restarted_containers() {
	local pod uid node ended
	k -n "$ns" get pods -o json | jq -r '.items[] | "\(.metadata.name) \(.metadata.uid) \(.spec.nodeName)" as $pod | .status.containerStatuses[]? |
		select(.restartCount > 0) | "\($pod) \(.name), restarts: \(.restartCount), last state: \(.lastState.terminated | del(.containerID)?)"' |
		while read -r pod uid node ended; do
			echo "restarted: $node, pod $pod, container $ended"
			(. "$cluster/lib.bash" && grep -F -e "$uid" -e "\"$ns/$pod\"" "$state/nodes/${node#node-}/kubelet.log" | tail -8) || true
			k -n "$ns" get events --field-selector "reason=Killing,involvedObject.name=$pod" --ignore-not-found
		done
}

# api_clean: no object belongs to a ComputeDomain, and no Node has its label. The claims of the daemons stay, and so do
# the standing domains of partitions and the templates of existing racks.
api_clean() {
	local left
	left=$(k get computedomains,computedomainfabrics,nodes,computedomaincliques,daemonsets,resourceclaimtemplates,resourceclaims -A -o json |
		jq -r --arg key "$uid_label" --arg ns "$driver_ns" --arg own $daemon_domain '
			[.items[] | select(.kind == "ComputeDomain" and (.metadata.labels // {} | has("resource.nvidia.com/rack"))).metadata.uid] as $racks |
			.items[] | select(
				if .kind == "ComputeDomainFabric" then any(.domains[]?; .owner.kind == "ComputeDomain")
				elif .kind == "ComputeDomainClique" then true
				elif .kind == "ResourceClaim" and .metadata.namespace == $ns and all(.spec.devices.config[]?; .opaque.parameters.domainID != $own) then true
				else .metadata.labels[$key] | . and (IN($racks[]) | not) end) |
			"\(.kind) \(.metadata.namespace // "")/\(.metadata.name)"') && [[ -z $left ]] && return 0 # without the 0, the status of the failed test
	echo "left: $left"
	return 1
}
# domains_gone: no fabric object lists a ComputeDomain.
domains_gone() { k get computedomainfabrics -o json | jq -e 'all(.items[]; all(.domains[]?; .owner.kind != "ComputeDomain"))' >/dev/null; }
labels_gone() { prints_nothing k get nodes -l "$uid_label" -o name; }
cliques_gone() { prints_nothing k get computedomaincliques -A -o name; }
# objects_gone: no object of a ComputeDomain is left. The claims of the daemons stay.
objects_gone() {
	prints_nothing k get daemonsets,resourceclaimtemplates,resourceclaims -A -l "$uid_label" -o name &&
		k -n "$driver_ns" get resourceclaims -o json | jq -e --arg own $daemon_domain \
			'all(.items[]; any(.spec.devices.config[]?; .opaque.parameters.domainID == $own))' >/dev/null
}
# node_files K: prints what the driver has left on a node, one item per line. Fails if the node cannot be queried. The
# record of a claim that was unprepared before it was prepared (PrepareAborted) may stay until it expires.
node_files() {
	"$cluster/node" "$1" sh -c 'ls /var/run/cdi; ls "$1/domains" | sed "s/^/domain /"
		for file in "$1/checkpoint.json" "$2/checkpoint.json"; do
			[ ! -e "$file" ] || jq -r "$3" "$file" || echo "claim of an unreadable $file"
		done; true' \
		sh "$plugin_dir" "$gpu_plugin_dir" '.v2.preparedClaims // {} | to_entries[] | select(.value.checkpointState | test("Prepare(Started|Completed)")) |
			"claim \(.key) \(.value.checkpointState) \([.value.preparedDevices[]?.configState.ComputeDomain // empty] | unique | join(" "))"' 2>/dev/null
}
# node_clean K: nothing is left on the node except the claim of its daemon, with its CDI file, and the files that
# plugin and daemon keep in the folder of the ComputeDomains while the node runs.
node_clean() {
	local files own left
	files=$(node_files "$1") || return
	own=$(sed -n "s/^claim \(.*\) PrepareCompleted $daemon_domain\$/\1/p" <<<"$files" | head -n 1)
	left=$(grep -E '^domain |claim_|^claim ' <<<"$files" | grep -vE "^domain ((plugin|daemon)\.lock|fabric|edits|daemon\.json)\$${own:+|$own}") || true
	[[ -z $left ]] || { echo "left on node-$1: $left"; return 1; }
}
nothing_left() {
	eventually 90 api_clean || return 1
	local i
	for i in $(k get nodes -o name | sed 's|node/node-||'); do
		eventually 30 node_clean "$i" || return 1
	done
}

# domain NAME [NUM_NODES] [MODE]: applies a ComputeDomain with a claim template of the same name.
domain() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: $1}
spec: {numNodes: ${2:-0}, channel: {allocationMode: ${3:-Single}, resourceClaimTemplate: {name: $1}}}
END
}

# pod_with_channel NAME TEMPLATE LINE [LABEL [RESOURCE]]: a pod with a channel. It has a label with the name of the claim
# template as its value. LINE is added to its spec, and RESOURCE to the resources of its container.
pod_with_channel() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {${4:-worker}: "$2"}}
spec:
  terminationGracePeriodSeconds: 0
  $3
  resourceClaims: [{name: channel, resourceClaimTemplateName: $2}]
  containers:
  - name: main
    image: compute-domains/busybox:test
    imagePullPolicy: Never
    command: [sleep, "1000000"]
    resources: {claims: [{name: channel}]${5:+, $5}}
END
}
# worker NAME TEMPLATE NODE [NAMESPACE]: a pod with a channel on this node.
worker() { ns=${4:-$ns} pod_with_channel "$1" "$2" "nodeSelector: {kubernetes.io/hostname: node-$3}"; }
# rack_worker NAME RACK: a pod that requests a channel with the rack's claim template, on any node.
rack_worker() { pod_with_channel "$1" "imex-channel-$2" ""; }

# running POD [SECONDS]: the limit leaves room for a retry of the kubelet after 60 to 90 s. Under load, its first
# request for a claim may be denied, because the API server's authorizer does not know yet that the pod is on the node.
running() { k -n "$ns" wait --for=jsonpath='{.status.phase}'=Running "pod/$1" --timeout="${2:-120}s" >/dev/null; }
gone() { k -n "$ns" wait --for=delete "$1" --timeout="${2:-60}s" >/dev/null; }
domain_uid() { k -n "$ns" get computedomain "$1" -o jsonpath='{.metadata.uid}'; }
domain_field() { k -n "$ns" get computedomain "$1" -o "jsonpath={$2}"; }
domain_field_is() { [[ $(domain_field "$1" "$2") == "$3" ]]; }
condition() { k -n "$ns" get computedomain "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].$3}"; }
condition_is() { [[ $(condition "$1" "$2" status) == "$3" ]]; }
# ready_message_has NAME TEXT: the message of the condition Ready contains this text.
ready_message_has() { [[ $(condition "$1" Ready message) == *"$2"* ]]; }
has_channel() { k -n "$ns" exec "$1" -- test -c /dev/nvidia-caps-imex-channels/channel0; }
# has_not POD PATH: the pod has no such file. Fails if the command cannot run in the pod.
has_not() { k -n "$ns" exec "$1" -- sh -c '! test -e "$1"' sh "$2"; }
has_no_channel() { has_not "$1" /dev/nvidia-caps-imex-channels; }

# plugin ARGS...: the plugin as kubectl starts it.
plugin() {
	PATH=${kubectl%/*}:$checkout/build/src/cli:$PATH KUBECONFIG=$kubeconfig KUBECACHEDIR=$kubectl_cache kubectl-compute_domains "$@"
}

# event_contains KIND/NAME TEXT: an Event about that object contains the text.
event_contains() {
	k -n "${3:-$ns}" get events -o json |
		jq -e --arg kind "${1%%/*}" --arg name "${1#*/}" --arg text "$2" \
			'any(.items[]; .involvedObject.kind == $kind and .involvedObject.name == $name and (.message | contains($text)))' >/dev/null
}

# node_event K TEXT REASON: the Node has an Event with this reason, and its message contains this text.
node_event() {
	k -n default get events -o json | jq -e --arg node "node-$1" --arg text "$2" --arg reason "$3" \
		'any(.items[]; .involvedObject.name == $node and .reason == $reason and (.message | contains($text)))' >/dev/null
}

# one_device KIND CONFIG-JSON [DEVICE-CLASS [REQUEST-FIELDS]]: prints a claim for one device, or a claim template,
# without its metadata.
one_device() {
	local version spec
	version=$(resource_version)
	spec="{devices: {requests: $(in_api_version "$version" "[{name: channel, exactly: {deviceClassName: ${3:-compute-domain-default-channel.nvidia.com}${4:-}}}]"),
  config: [{requests: [channel], opaque: {driver: compute-domain.nvidia.com, parameters: $2}}]}}"
	[[ $1 != ResourceClaimTemplate ]] || spec="{spec: $spec}"
	printf 'apiVersion: resource.k8s.io/%s\nkind: %s\nspec: %s\n' "$version" "$1" "$spec"
}
# claimed_by_hand NAME CONFIG-JSON [DEVICE-CLASS [NODE [REQUEST-FIELDS]]]: creates a claim template as a user would,
# and a pod that uses it on this node (default: node-0).
claimed_by_hand() {
	k -n "$ns" apply -f - >/dev/null <<END
$(one_device ResourceClaimTemplate "$2" "${3:-}" "${5:-}")
metadata: {name: $1}
END
	worker "$1" "$1" "${4:-0}"
}
# refused_with POD TEXT: the kubelet could not prepare the pod's claims, and an Event contains this text.
refused_with() { eventually 110 event_contains "Pod/$1" "$2"; }
# config DOMAIN-UID [KIND] [MORE]: prints the configuration of a device, for claimed_by_hand.
config() { echo "{apiVersion: resource.nvidia.com/v1beta1, kind: ${2:-ComputeDomainChannelConfig}, domainID: \"$1\"${3:-}}"; }

# daemon_pod K: prints the name of the Pod of a node's daemon. daemon_field K FILTER: prints a field of this Pod with
# jq. A node may have two such Pods: one is being deleted and still serves a ComputeDomain, while the other waits for
# its claim. Then the first one is meant.
daemon_pod() {
	k -n "$driver_ns" get pods -l $daemon_selector --field-selector "spec.nodeName=node-$1" -o json | jq -er --arg a $imex_annotation \
		'.items | sort_by(.metadata.annotations[$a + "/report"] == null, (.metadata | has("deletionTimestamp")))[0].metadata.name // empty'
}
daemon_field() { k -n "$driver_ns" get pod "$(daemon_pod "$1")" -o json | jq -r "$2"; }
# daemon_annotation K NAME: prints an annotation. daemon_state_is K STATE: the daemon reports this state of IMEX, or IDLE.
# daemon_is_ready K: IMEX is ready.
daemon_annotation() { daemon_field "$1" ".metadata.annotations[\"$imex_annotation/$2\"] // \"\""; }
daemon_state_is() { [[ $(daemon_annotation "$1" state) == "$2" ]]; }
daemon_is_ready() { [[ $(daemon_annotation "$1" ready) == true ]]; }
# daemon_restarts K: prints how often its container was restarted. daemon_restarted K BEFORE: it was restarted more
# often than BEFORE.
daemon_restarts() { daemon_field "$1" '.status.containerStatuses[0].restartCount'; }
daemon_restarted() { [[ $(daemon_restarts "$1") -gt $2 ]]; }
# daemon_identity K: prints a text that changes when the node's daemon is another Pod or another container.
daemon_identity() { daemon_field "$1" '"\(.metadata.uid) \(.status.containerStatuses[0].restartCount)"'; }
# assignment K: prints the assignment that the daemon of a node reports, "<clique ID>/<UID>/<index>/<epoch>", or
# nothing.
assignment() { daemon_annotation "$1" report | jq -r '.assignment // ""'; }
assignment_is() { [[ $(assignment "$1") == "$2" ]]; }
# imex_pid K: prints the process ID of the nvidia-imex that the daemon of a node runs. imex_pids K...: prints one per
# line. Both fail if one does not run: otherwise a test that compares them before and after would also pass then.
imex_pid() { pids_of_pod "$driver_ns" "$(daemon_pod "$1")" nvidia-imex | grep .; }
imex_pids() {
	local i
	for i; do imex_pid "$i" || return; done
}
imex_is_another() {
	local now
	now=$(imex_pid "$1") && [[ $now != "$2" ]]
}

# pids_of_pod NAMESPACE POD PROGRAM: prints the process IDs of a program in a pod, in the machine's PID namespace. Fails
# if the pod does not exist: without a UID, the processes of all clusters on this machine would match.
pids_of_pod() {
	local uid pid
	uid=$(k -n "$1" get pod "$2" -o jsonpath='{.metadata.uid}') && [[ -n $uid ]] || return 1
	for pid in $(pgrep -x -f "(/usr/bin/)?$3( .*)?"); do
		! grep -qs "$uid" "/proc/$pid/cgroup" || echo "$pid"
	done
}
# kill_in_pod NAMESPACE POD PROGRAM [SIGNAL]: fails if the program does not run.
kill_in_pod() { kill "-${4:-KILL}" $(pids_of_pod "$1" "$2" "$3"); }

plugin_pod() { k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin --field-selector "spec.nodeName=node-$1" -o jsonpath='{.items[0].metadata.name}'; }
plugins_settle() { k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null; }
leader_pod() {
	local holder pod
	holder=$(k -n "$driver_ns" get leases -o jsonpath='{.items[?(@.spec.holderIdentity)].spec.holderIdentity}')
	for pod in $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o jsonpath='{.items[*].metadata.name}'); do
		[[ $holder != "$pod"* ]] || echo "$pod"
	done
}
no_controller() { prints_nothing k -n "$driver_ns" get pods -l app=compute-domain-controller -o name; }

# knob K KEY=VALUE...: changes the behaviour of a node's nvidia-imex (test/standin/README.md). KEY= restores the
# default.
knob() {
	local k=$1
	shift
	"$cluster/node" "$k" "${CD_STANDIN_DIR:-$checkout/build/test/standin}/standin-knob" /run/nvidia/driver/usr/bin/nvidia-imex "$@" >/dev/null
}

# claims_pod POD SPEC REQUEST=CLAIM...: a pod that uses these ResourceClaims. SPEC determines where it runs.
claims_pod() {
	local pod=$1 spec=$2 claim claims="" requests=""
	shift 2
	for claim; do
		claims+="${claims:+, }{name: ${claim%%=*}, resourceClaimName: ${claim#*=}}"
		requests+="${requests:+, }{name: ${claim%%=*}}"
	done
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $pod}
spec:
  terminationGracePeriodSeconds: 0
  $spec
  resourceClaims: [$claims]
  containers:
  - name: main
    image: compute-domains/busybox:test
    imagePullPolicy: Never
    command: [sleep, "1000000"]
    resources: {claims: [$requests]}
END
}
# claim_of POD: prints the name of its ResourceClaim. allocated POD: the claim is allocated.
claim_of() { k -n "$ns" get pod "$1" -o jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}'; }
allocated() { [[ -n $(k -n "$ns" get resourceclaim "$(claim_of "$1")" -o jsonpath='{.status.allocation.devices.results[0].device}') ]]; }
claim_uid() { k -n "$ns" get resourceclaim "$(claim_of "$1")" -o jsonpath='{.metadata.uid}'; }

# plugin_logged K TEXT: the plugin on node K has logged this text. Works without an API server.
plugin_logged() { "$cluster/node" "$1" sh -c 'cat /var/log/pods/*_compute-domains-kubelet-plugin-*/compute-domains/*.log' | grep -qF -- "$2"; }

# checkpoint_has K UID STATE: the plugin on node K has recorded the claim in this state, PrepareStarted or
# PrepareCompleted.
checkpoint_has() { "$cluster/node" "$1" cat "$plugin_dir/checkpoint.json" | jq -e --arg uid "$2" --arg state "$3" '.v2.preparedClaims[$uid].checkpointState == $state' >/dev/null; }
claim_file() { "$cluster/node" "$1" ls /var/run/cdi | grep -q "$2"; }
no_claim_file() {
	local files
	files=$("$cluster/node" "$1" ls /var/run/cdi) && [[ $files != *"$2"* ]]
}

# restarts POD: prints how often the container of a Pod of the driver was restarted. restarted POD BEFORE: it was
# restarted more often than BEFORE.
restarts() { k -n "$driver_ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].restartCount}'; }
restarted() { [[ $(restarts "$1") -gt $2 ]]; }

# probed: prints what changes when a probe fails: the times at which Pods became ready or unready, restarts, and
# Events. Only Pods that exist count, because the probe of a terminating Pod may fail up to its timeout after the Pod
# has ended.
probed() {
	local pods
	pods=$(k -n "$driver_ns" get pods -o json | jq -c '[.items[] | select(.metadata.labels.app != "imex-daemon" and (.metadata.deletionTimestamp | not)) |
		{name: .metadata.name, uid: .metadata.uid, ready: [.status.conditions[] | select(.type == "Ready") | .status, .lastTransitionTime],
		restarts: [.status.containerStatuses[].restartCount]}]')
	jq -r '.[] | "\(.name) \(.ready) \(.restarts)"' <<<"$pods"
	k -n "$driver_ns" get events --field-selector reason=Unhealthy -o json | jq -r --argjson pods "$pods" '.items[] |
		select(.involvedObject.uid | IN($pods[].uid)) | "\(.involvedObject.name) \(.count) \(.message)"'
}

# clique_label_is K ID: the Node has the label of this partition.
clique_label_is() { [[ $(k get node "node-$1" -o "jsonpath={.metadata.labels.nvidia\.com/gpu\.clique}") == *."$2" ]]; }

# daemon_policy Deny|Audit: sets whether the admission policy for daemon devices denies or only audits, and waits
# until the API server does so. With Audit, a test can see what rejects a claim after the policy. A test that sets
# Audit restores Deny before it ends.
daemon_policy() {
	k patch validatingadmissionpolicybinding compute-domains-daemon-claims --type=merge -p "{\"spec\": {\"validationActions\": [\"$1\"]}}" >/dev/null
	eventually 30 daemon_policy_is "$1"
}
daemon_policy_is() {
	local answer version
	version=$(resource_version)
	# The kubectl of Kubernetes 1.32 parses input that begins with a brace as JSON only.
	answer=$(printf '%s\n' "apiVersion: resource.k8s.io/$version" "kind: ResourceClaim" "metadata: {name: asked}" \
		"spec: {devices: {requests: $(in_api_version "$version" "[{name: d, exactly: {deviceClassName: compute-domain-daemon.nvidia.com}}]")}}" |
		k -n default create --dry-run=server -f - 2>&1) || true
	if [[ $1 == Deny ]]; then [[ $answer == *"'compute-domains-daemon-claims' denied request"* ]]; else [[ $answer == *created* ]]; fi
}

# as_controller ARGS...: kubectl with the account of the controller, which alone may write a fabric object.
controller_account() { k -n "$driver_ns" get deployment compute-domains-controller -o jsonpath='{.spec.template.spec.serviceAccountName}'; }
as_controller() { k --as="system:serviceaccount:$driver_ns:$(controller_account)" "$@"; }
# controller_kubeconfig FILE: writes a kubeconfig for a controller that a test starts itself.
controller_kubeconfig() {
	k config view --raw -o json | jq --arg token "$(k -n "$driver_ns" create token "$(controller_account)")" '.users[0].user = {token: $token}' >"$1"
}
