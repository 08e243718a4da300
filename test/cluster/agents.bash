# SPDX-License-Identifier: Apache-2.0
# For tests of agents that run the IMEX of ComputeDomains (imex.agents=true) on four nodes of one rack; a
# .bats file loads it after driver.bash.

nodes=4
agents=app.kubernetes.io/component=compute-domain-agent
agent_label=resource.nvidia.com/imex-agent

with_agents() { with_driver $nodes --set resources.computeDomains.imex.agents="${1:-true}" "${@:2}"; }
# without_agents: what comes after such a file wants the driver as it is by itself.
without_agents() {
	with_agents false
	eventually 60 no_agents
	forget_agents
}

# Agents and their claims stay; what is of a domain goes.
nothing_left() {
	eventually 60 domains_gone && eventually 60 daemon_pods_gone && eventually 30 labels_gone && eventually 30 cliques_gone
}
daemon_pods_gone() { [[ -z $(k -n "$driver_ns" get pods -l "app=imex-daemon,$uid_label" -o name) ]]; }
domains_gone() { k get computedomainfabrics -o json | jq -e 'all(.items[]; (.domains // []) == [])' >/dev/null; }
no_agents() { [[ -z $(k -n "$driver_ns" get pods,daemonsets -l $agents -o name) && -z $(k get nodes -l $agent_label -o name) ]]; }
agents_idle() {
	k -n "$driver_ns" get pods -l $agents -o json | jq -e --argjson n "$1" '[.items[] | select(.status.phase == "Running" and
		.metadata.annotations["imex.resource.nvidia.com/state"] == "IDLE")] | length == $n' >/dev/null
}

# seats NAME: "<node> <index>" of each, as the fabric's object has them; leaving NAME: the nodes that have to
# leave.
domain_of_fabric() { k get computedomainfabrics -o json | jq -c --arg uid "$(domain_uid "$1")" '.items[].domains[]? | select(.owner.uid == $uid)'; }
seats() { domain_of_fabric "$1" | jq -r '.seats[] | "\(.node) \(.index)"' | sort; }
seats_are() { [[ $(seats "$1" | tr '\n' ,) == "$2" ]]; }
ready() { k -n "$ns" wait --for=jsonpath='{.status.status}'=Ready "computedomain/$1" --timeout="${2:-60}s" >/dev/null; }
listed() { k -n "$ns" get computedomain "$1" -o json | jq -r '[.status.nodes[]? | "\(.name) \(.index) \(.status)"] | sort | join(",")'; }
listed_are() { [[ $(listed "$1") == "$2" ]]; }
# imex_pid K: of the nvidia-imex on a node, whether an agent or a daemon pod runs it.
imex_pid() {
	local pod
	for pod in $(k -n "$driver_ns" get pods -l app=imex-daemon --field-selector "spec.nodeName=node-$1" -o jsonpath='{.items[*].metadata.name}'); do
		pids_of_pod "$driver_ns" "$pod" nvidia-imex
	done
}
agents_running() { k -n "$driver_ns" get pods -l $agents -o json | jq -e --argjson n $nodes '[.items[] | select(.status.containerStatuses[0].ready)] | length == $n' >/dev/null; }
