#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What one mode leaves on Nodes and ComputeDomains stops nothing in another mode.

load ../cluster/driver
load ../cluster/agents

setup_file() { "$cluster/up" 2; }
setup() { ns_begin; }
teardown() {
	"$cluster/host-imex" all stop
	ns_end
	k apply --server-side --force-conflicts -f "$checkout/deploy/chart/compute-domains/crds" >/dev/null
	with_driver 2 --reset-values
	eventually 120 no_agents
	forget_agents
}

@test "one helm upgrade goes from agents to hosts that run IMEX: labels and agents go, and a new domain runs" {
	with_driver 2 --set resources.computeDomains.imex.agents=true
	eventually 60 agents_idle 2
	domain one
	worker a one 0
	running a
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	k -n "$ns" delete computedomain one --timeout=90s >/dev/null
	"$cluster/host-imex" all start
	with_driver 2 --set resources.computeDomains.imex.agents=false --set featureGates.HostManagedIMEX=true
	eventually 60 no_agents
	domain two
	worker b two 1
	running b
}

@test "without the definition of fabrics, as after an upgrade from the Go driver, an annotation of agents stops no other domain" {
	with_driver 2 --reset-values
	k delete crd computedomainfabrics.resource.nvidia.com --timeout=60s >/dev/null
	domain mine
	k -n "$ns" annotate --overwrite computedomain mine resource.nvidia.com/imex-mode=driverManagedAgents >/dev/null
	domain other
	worker a other 0
	running a
	k -n "$driver_ns" rollout restart deployment/compute-domains-controller >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=90s >/dev/null
	domain third
	worker b third 1
	running b
}
