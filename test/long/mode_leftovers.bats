#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Objects that one mode, or an earlier release, leaves on Nodes and ComputeDomains do not disturb another mode.

load ../cluster/driver

setup_file() { "$cluster/up" 2; }
setup() { ns_begin; }
teardown() {
	local clean=0
	"$cluster/host-imex" all stop
	ns_end || clean=1
	k apply --server-side --force-conflicts -f "$checkout/deploy/chart/compute-domains/crds" >/dev/null
	with_driver 2 --reset-values || clean=1
	return $clean
}

# failure: the mode is changed and changed back -> labels and daemons follow, and new ComputeDomains run
@test "helm upgrade changes from driver-managed to host-managed, and back: labels and daemons disappear and return, and a new ComputeDomain runs" {
	with_driver 2
	domain one
	worker a one 0
	running a
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	k -n "$ns" delete computedomain one --timeout=90s >/dev/null
	"$cluster/host-imex" all start
	with_driver 2 --set featureGates.HostManagedIMEX=true
	eventually 60 no_daemons
	domain two
	worker b two 1
	running b
	k -n "$ns" delete pod b --timeout=60s >/dev/null
	k -n "$ns" delete computedomain two --timeout=90s >/dev/null
	"$cluster/host-imex" all stop
	with_driver 2
	eventually 60 daemons_idle 2
	domain three
	worker c three 0
	worker d three 1
	running c
	running d
}

# failure: IMEX becomes host-managed under pods -> daemons serve until the pods have ended
@test "IMEX becomes host-managed while a ComputeDomain is in use: its daemons serve until its pods have ended, and are removed then" {
	with_driver 2
	domain used
	worker a used 0
	running a
	local pid
	pid=$(imex_pid 0)
	with_driver 2 --set featureGates.HostManagedIMEX=true
	eventually 60 eval '[[ -z $(daemon_pod 1) ]]'
	for_seconds 10 test -d "/proc/$pid"
	has_channel a
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	k -n "$ns" delete computedomain used --timeout=90s >/dev/null
	eventually 90 no_daemons
}

# failure: an annotation of a removed mode is found -> other ComputeDomains are not affected
@test "an annotation of a removed mode, and the deleted definition of fabric objects, do not disturb another ComputeDomain" {
	with_driver 2 --reset-values
	domain mine
	k -n "$ns" annotate --overwrite computedomain mine resource.nvidia.com/imex-mode=driverManagedAgents >/dev/null
	domain other
	worker a other 0
	running a
	k -n "$ns" delete pod a --timeout=60s >/dev/null
	eventually 60 daemons_idle 2
	k delete crd computedomainfabrics.resource.nvidia.com --timeout=60s >/dev/null
	# A controller creates the definition when it starts.
	k -n "$driver_ns" rollout restart deployment/compute-domains-controller >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=90s >/dev/null
	domain third
	worker b third 1
	running b 150
}
