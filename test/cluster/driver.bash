# SPDX-License-Identifier: Apache-2.0
# For tests of the driver on the test cluster; a .bats file loads it.
cluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$cluster/../.." && pwd)
driver_ns=nvidia-compute-domains
uid_label=resource.nvidia.com/computeDomain
plugin_dir=/var/lib/kubelet/plugins/compute-domain.nvidia.com
gpu_plugin_dir=/var/lib/kubelet/plugins/gpu.nvidia.com

# What lib.bash knows of the cluster's kubectl (test/cluster/kubectl), asked once a test, because most of what
# a test does is to ask it.
# What it costs is the machine's whole load between two events: a process that lives for a tenth of a second
# needs no second thread and no garbage collector, which are a third of it.
read -r kubectl kubeconfig kubectl_cache < <(. "$cluster/lib.bash" && echo "$kube_bin/kubectl $KUBECONFIG $KUBECACHEDIR")
k() { GOMAXPROCS=1 GOGC=1000 KUBECONFIG=$kubeconfig KUBECACHEDIR=$kubectl_cache "$kubectl" "$@"; }
. "$cluster/versions.bash"

# eventually SECONDS CMD...: the command succeeds within that time. For states that kubectl wait cannot
# express. To ask is most of what a test costs its machine, so it is done at longer and longer intervals, up
# to half a second.
eventually() {
	local end=$((SECONDS + $1)) tenths=1
	shift
	until "$@"; do
		((SECONDS < end)) || {
			echo "not within the time: $*" >&2
			return 1
		}
		read -rt "0.$tenths" <> <(:) || true
		((tenths += tenths < 5))
	done
}

# for_seconds N CMD...: the command succeeds again and again for so long.
for_seconds() {
	local end=$((SECONDS + $1))
	shift
	while ((SECONDS < end)); do
		"$@" || return 1
		read -rt 1 <> <(:) || true
	done
}

# with_driver N [HELM ARGS...]: a cluster of N nodes with our image and chart; quick when it is there already.
with_driver() {
	local n=$1
	shift
	"$cluster/up" "$n"
	"$cluster/image" "${CD_IMAGE:-$checkout/build/image.tar}"
	"$cluster/helm" upgrade --install compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --create-namespace \
		--values "$cluster/driver-values.yaml" --wait --timeout 120s "$@" >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
	# What the kubelet does half a minute after a driver went, so that no test finds devices of the one before.
	[[ " $(k -n "$driver_ns" get daemonset compute-domains-kubelet-plugin -o jsonpath='{.spec.template.spec.containers[*].name}') " == *" gpus "* ]] ||
		k delete resourceslices --field-selector spec.driver=gpu.nvidia.com >/dev/null
	eventually 60 slices_published "$n"
}

slices_published() { [[ $(k get resourceslices --field-selector "spec.driver=${2:-compute-domain.nvidia.com}" -o name | wc -l) -eq $1 ]]; }

# Each test has a namespace of its own, and leaves nothing behind.
ns_begin() {
	ns=t-$BATS_TEST_NUMBER-$(basename "$BATS_TEST_FILENAME" .bats | tr _ -)
	k create namespace "$ns" >/dev/null || {
		# That of a run before this one is on its way.
		k wait --for=delete "namespace/$ns" --timeout=60s >/dev/null
		k create namespace "$ns" >/dev/null
	}
}
ns_end() {
	[[ -n ${ns:-} ]] || return 0
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		diagnose
	fi
	empty_namespace && nothing_left
}
# empty_namespace: nothing comes into the namespace of the test any more, and what a workload is made of has
# gone. For the namespace itself nobody waits: Kubernetes looks at it first after 5 s, and where it finds a
# finalizer then, again after 8 s.
empty_namespace() {
	local said
	k delete namespace "$ns" --wait=false --ignore-not-found >/dev/null
	said=$(k -n "$ns" delete computedomains,deployments,jobs,pods,resourceclaims --all --grace-period=0 --timeout=90s 2>&1) || {
		echo "$said" >&2
		return 1
	}
}

# What a person would look at first, printed when a test fails.
diagnose() {
	{
		k -n "$ns" get computedomains,pods,resourceclaims -o wide
		k -n "$ns" get computedomains -o jsonpath='{range .items[*]}{.status}{"\n"}{end}'
		k -n "$ns" get events --sort-by=.lastTimestamp | tail -20
		k -n "$driver_ns" get pods,daemonsets -o wide
		k get computedomaincliques -A -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.daemons}{"\n"}{end}'
		k -n "$driver_ns" logs -l app=compute-domain-controller --tail=25 --prefix
		k -n "$driver_ns" logs -l app=compute-domain-kubelet-plugin -c compute-domains --tail=15 --prefix
		k -n "$driver_ns" logs -l app=compute-domain-kubelet-plugin -c gpus --tail=15 --prefix
		k -n "$driver_ns" logs -l app=imex-daemon --tail=15 --prefix
	} 2>&1 | cut -c1-600
}

daemon_pods_gone() { [[ -z $(k -n "$driver_ns" get pods -l app=imex-daemon -o name) ]]; }
labels_gone() { [[ -z $(k get nodes -l "$uid_label" -o name) ]]; }
cliques_gone() { [[ -z $(k get computedomaincliques -A -o name) ]]; }
objects_gone() { [[ -z $(k get daemonsets,resourceclaimtemplates,resourceclaims -A -l "$uid_label" -o name) && -z $(k -n "$driver_ns" get resourceclaims -o name) ]]; }
# node_files K: what of ours is on a node, a line each; fails when nobody can be asked. What was unprepared before it was prepared
# (PrepareAborted) may stay for its time.
node_files() {
	"$cluster/node" "$1" sh -c 'ls /var/run/cdi; ls "$1/domains" | sed "s/^/domain /"; cat "$1/checkpoint.json" "$2/checkpoint.json" | grep -oE "Prepare(Started|Completed)"; true' \
		sh "$plugin_dir" "$gpu_plugin_dir" 2>/dev/null
}
node_clean() {
	local files
	files=$(node_files "$1") && ! grep -E '^domain |claim_|Prepare' <<<"$files"
}
nothing_left() {
	eventually 60 daemon_pods_gone && eventually 30 labels_gone && eventually 30 cliques_gone && eventually 30 objects_gone || return 1
	local i
	for i in $(k get nodes -o name | sed 's|node/node-||'); do
		eventually 30 node_clean "$i" || return 1
	done
}

# What agents leave on a node until it reboots, so that the next agent takes no seat twice, and the empty tables of fabrics, which stay
# for a day: what comes next finds the cluster as if there had never been agents.
forget_agents() {
	local i
	for i in $(k get nodes -o name | sed 's|node/node-||'); do
		"$cluster/node" "$i" rm -f "$plugin_dir/domains/agent.json"
	done
	k delete computedomainfabrics --all --timeout=30s >/dev/null
}

# domain NAME [NUM_NODES] [MODE]: apply a ComputeDomain whose template has the same name.
domain() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: $1}
spec: {numNodes: ${2:-0}, channel: {allocationMode: ${3:-Single}, resourceClaimTemplate: {name: $1}}}
END
}

# worker NAME TEMPLATE NODE [NAMESPACE]: a pod with a channel on one node.
worker() {
	k -n "${4:-$ns}" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {worker: "$2"}}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: node-$3}
  resourceClaims: [{name: channel, resourceClaimTemplateName: $2}]
  containers:
  - name: main
    image: compute-domains/busybox:test
    imagePullPolicy: Never
    command: [sleep, "1000000"]
    resources: {claims: [{name: channel}]}
END
}

running() { k -n "$ns" wait --for=jsonpath='{.status.phase}'=Running "pod/$1" --timeout="${2:-60}s" >/dev/null; }
gone() { k -n "$ns" wait --for=delete "$1" --timeout="${2:-60}s" >/dev/null; }
domain_uid() { k -n "$ns" get computedomain "$1" -o jsonpath='{.metadata.uid}'; }
domain_field() { k -n "$ns" get computedomain "$1" -o "jsonpath={$2}"; }
domain_field_is() { [[ $(domain_field "$1" "$2") == "$3" ]]; }
condition() { k -n "$ns" get computedomain "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].$3}"; }
condition_is() { [[ $(condition "$1" "$2" status) == "$3" ]]; }
has_channel() { k -n "$ns" exec "$1" -- test -c /dev/nvidia-caps-imex-channels/channel0; }
# has_not POD PATH: looked for in the pod, and not there; a pod in which nothing can be looked for has not answered.
has_not() { k -n "$ns" exec "$1" -- sh -c '! test -e "$1"' sh "$2"; }
has_no_channel() { has_not "$1" /dev/nvidia-caps-imex-channels; }

# event_says KIND/NAME TEXT: an Event about that object contains the text.
event_says() {
	k -n "${3:-$ns}" get events -o json |
		jq -e --arg kind "${1%%/*}" --arg name "${1#*/}" --arg text "$2" \
			'any(.items[]; .involvedObject.kind == $kind and .involvedObject.name == $name and (.message | contains($text)))' >/dev/null
}

# node_event K TEXT REASON: somebody told this Event of a node.
node_event() {
	k -n default get events -o json | jq -e --arg node "node-$1" --arg text "$2" --arg reason "$3" \
		'any(.items[]; .involvedObject.name == $node and .reason == $reason and (.message | contains($text)))' >/dev/null
}

# one_device KIND CONFIG-JSON [DEVICE-CLASS [REQUEST-FIELDS]]: a claim of one device, or a template of such, without its metadata.
one_device() {
	local version spec
	version=$(resource_version)
	spec="{devices: {requests: $(spelt "$version" "[{name: channel, exactly: {deviceClassName: ${3:-compute-domain-default-channel.nvidia.com}${4:-}}}]"),
  config: [{requests: [channel], opaque: {driver: compute-domain.nvidia.com, parameters: $2}}]}}"
	[[ $1 != ResourceClaimTemplate ]] || spec="{spec: $spec}"
	printf 'apiVersion: resource.k8s.io/%s\nkind: %s\nspec: %s\n' "$version" "$1" "$spec"
}
# claimed_by_hand NAME CONFIG-JSON [DEVICE-CLASS [NODE [REQUEST-FIELDS]]]: a template of the user's own, and a pod that uses it on that node, else on
# node-0.
claimed_by_hand() {
	k -n "$ns" apply -f - >/dev/null <<END
$(one_device ResourceClaimTemplate "$2" "${3:-}" "${5:-}")
metadata: {name: $1}
END
	worker "$1" "$1" "${4:-0}"
}
# refused_with POD TEXT: the kubelet could not prepare its claims, and says why.
refused_with() { eventually 20 event_says "Pod/$1" "$2"; }
# config DOMAIN-UID [KIND] [MORE]: the configuration of a device, for claimed_by_hand.
config() { echo "{apiVersion: resource.nvidia.com/v1beta1, kind: ${2:-ComputeDomainChannelConfig}, domainID: \"$1\"${3:-}}"; }

# daemon_pod DOMAIN NODE: the name of the daemon pod of a domain on a node.
daemon_pod() { k -n "$driver_ns" get pods -l "$uid_label=$(domain_uid "$1")" --field-selector "spec.nodeName=node-$2" -o jsonpath='{.items[0].metadata.name}'; }
daemon_is_ready() { k -n "$driver_ns" get pod "$1" -o json | jq -e '.metadata.annotations["imex.resource.nvidia.com/ready"] == "true"' >/dev/null; }

# pids_of_pod NAMESPACE POD PROGRAM: process ids of a program in a pod, as the machine sees them.
pids_of_pod() {
	local uid pid
	uid=$(k -n "$1" get pod "$2" -o jsonpath='{.metadata.uid}')
	for pid in $(pgrep -x -f "(/usr/bin/)?$3( .*)?"); do
		! grep -qs "$uid" "/proc/$pid/cgroup" || echo "$pid"
	done
}
# kill_in_pod NAMESPACE POD PROGRAM [SIGNAL]: fails when there is none.
kill_in_pod() { kill "-${4:-KILL}" $(pids_of_pod "$1" "$2" "$3"); }

plugin_pod() { k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin --field-selector "spec.nodeName=node-$1" -o jsonpath='{.items[0].metadata.name}'; }
leader_pod() {
	local holder pod
	holder=$(k -n "$driver_ns" get leases -o jsonpath='{.items[?(@.spec.holderIdentity)].spec.holderIdentity}')
	for pod in $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o jsonpath='{.items[*].metadata.name}'); do
		[[ $holder != "$pod"* ]] || echo "$pod"
	done
}

# knob K KEY=VALUE...: change how a node's nvidia-imex behaves (test/standin/README.md); KEY= takes it back.
knob() {
	local k=$1
	shift
	"$cluster/node" "$k" "${CD_STANDIN_DIR:-$checkout/build/test/standin}/standin-knob" /run/nvidia/driver/usr/bin/nvidia-imex "$@" >/dev/null
}

# claim_of POD: the name of its ResourceClaim, once it is allocated.
claim_of() { k -n "$ns" get pod "$1" -o jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}'; }
allocated() { [[ -n $(k -n "$ns" get resourceclaim "$(claim_of "$1")" -o jsonpath='{.status.allocation.devices.results[0].device}') ]]; }
claim_uid() { k -n "$ns" get resourceclaim "$(claim_of "$1")" -o jsonpath='{.metadata.uid}'; }

# plugin_says K TEXT: the log of the plugin on node K has it, whether there is an API server or not.
plugin_says() { "$cluster/node" "$1" sh -c 'cat /var/log/pods/*_compute-domains-kubelet-plugin-*/compute-domains/*.log' | grep -qF -- "$2"; }

# checkpoint_has K UID STATE: the plugin on node K has recorded the claim so, PrepareStarted or PrepareCompleted.
checkpoint_has() { "$cluster/node" "$1" cat "$plugin_dir/checkpoint.json" | jq -e --arg uid "$2" --arg state "$3" '.v2.preparedClaims[$uid].checkpointState == $state' >/dev/null; }
claim_file() { "$cluster/node" "$1" ls /var/run/cdi | grep -q "$2"; }
no_claim_file() { ! claim_file "$@"; }

# restarts POD: how often the container of a pod of the driver was started again; restarted POD BEFORE: more often than before.
restarts() { k -n "$driver_ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].restartCount}'; }
restarted() { [[ $(restarts "$1") -gt $2 ]]; }

# probed: what shows that a probe has failed: readiness that came or went, a restart, an Event. Of the pods that there are: the probe of
# one that ends may fail up to its time-out after the pod.
probed() {
	local pods
	pods=$(k -n "$driver_ns" get pods -o json | jq -c '[.items[] | select(.metadata.labels.app != "imex-daemon" and (.metadata.deletionTimestamp | not)) |
		{name: .metadata.name, uid: .metadata.uid, ready: [.status.conditions[] | select(.type == "Ready") | .status, .lastTransitionTime],
		restarts: [.status.containerStatuses[].restartCount]}]')
	jq -r '.[] | "\(.name) \(.ready) \(.restarts)"' <<<"$pods"
	k -n "$driver_ns" get events --field-selector reason=Unhealthy -o json | jq -r --argjson pods "$pods" '.items[] |
		select(.involvedObject.uid | IN($pods[].uid)) | "\(.involvedObject.name) \(.count) \(.message)"'
}

# clique_label_is K ID: the Node of node K says that it is in this NVLink partition.
clique_label_is() { [[ $(k get node "node-$1" -o "jsonpath={.metadata.labels.nvidia\.com/gpu\.clique}") == *."$2" ]]; }

# daemon_policy Deny|Audit: whether the admission policy about the daemons' device denies or only takes note, once the API server acts on it. With
# Audit a claim meets what refuses it after the policy; a test that says so says Deny before it ends.
daemon_policy() {
	k patch validatingadmissionpolicybinding compute-domains-daemon-claims --type=merge -p "{\"spec\": {\"validationActions\": [\"$1\"]}}" >/dev/null
	eventually 30 daemon_policy_is "$1"
}
daemon_policy_is() {
	local said version
	version=$(resource_version)
	# What begins with a brace has to be JSON for the kubectl of 1.32.
	said=$(printf '%s\n' "apiVersion: resource.k8s.io/$version" "kind: ResourceClaim" "metadata: {name: asked}" \
		"spec: {devices: {requests: $(spelt "$version" "[{name: d, exactly: {deviceClassName: compute-domain-daemon.nvidia.com}}]")}}" |
		k -n default create --dry-run=server -f - 2>&1) || true
	if [[ $1 == Deny ]]; then [[ $said == *"'compute-domains-daemon-claims' denied request"* ]]; else [[ $said == *created* ]]; fi
}

# as_controller ARGS...: kubectl with the rights, and the name, of the controller, who alone may write a fabric's object.
controller_account() { k -n "$driver_ns" get deployment compute-domains-controller -o jsonpath='{.spec.template.spec.serviceAccountName}'; }
as_controller() { k --as="system:serviceaccount:$driver_ns:$(controller_account)" "$@"; }
# controller_kubeconfig FILE: for a controller that runs by hand.
controller_kubeconfig() {
	k config view --raw -o json | jq --arg token "$(k -n "$driver_ns" create token "$(controller_account)")" '.users[0].user = {token: $token}' >"$1"
}
