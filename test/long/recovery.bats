#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# nvidia-imex ended uncleanly and waits for a node that may still map its memory (docs/explanation/imex.md).

load ../cluster/driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair
	ns_end
}
repair() {
	"$cluster/power" 3 on
	k uncordon node-3 >/dev/null
	knob 0 IMPORTERS=
	knob 3 REFUSE_START=
}

annotation_is() { [[ $(daemon_annotation "$1" "$2") == "$3" ]]; }
# starts K: prints how often the daemon of a node has started nvidia-imex, for any ComputeDomain.
starts() { k -n "$driver_ns" logs "$(daemon_pod "$1")" | grep -c 'IMEX Log initializing'; }
boot_id() { k get node "node-$1" -o jsonpath='{.status.nodeInfo.bootID}'; }

# failure: a peer of a crashed IMEX is off -> it is named, and IMEX starts when it has rebooted
@test "a peer that had mapped the memory of a crashed IMEX has no power: it is named after a minute, and IMEX starts again after it has rebooted" {
	# A controller must be left to report it, so none may run on this node.
	k cordon node-3 >/dev/null
	k -n "$driver_ns" delete pod -l app=compute-domain-controller --field-selector spec.nodeName=node-3 >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	k uncordon node-3 >/dev/null
	knob 0 IMPORTERS=1
	domain d
	worker a d 0
	worker b d 3
	running a
	running b
	eventually 45 condition_is d PeersConnected True
	local boot before restarts
	boot=$(boot_id 3)
	before=$(starts 0)
	restarts=$(daemon_restarts 0)
	# Its nvidia-imex does not start after the reboot, so only the reboot shows that nothing is mapped.
	knob 3 REFUSE_START="out of order"
	"$cluster/power" 3 off
	kill_in_pod "$driver_ns" "$(daemon_pod 0)" nvidia-imex
	eventually 20 daemon_state_is 0 WAITING_FOR_RECOVERY
	annotation_is 0 awaited ""
	eventually 80 annotation_is 0 awaited node-3
	eventually 20 ready_message_has d "waits for node-3: bring it back"
	[[ $(starts 0) == $((before + 1)) ]]
	"$cluster/power" 3 on
	[[ $(boot_id 3) != "$boot" ]]
	eventually 150 daemon_is_ready 0 # the kubelet may start the daemon's Pod of node-3 before the plugin has registered, and then retries after 60 to 90 s
	annotation_is 0 awaited ""
	[[ $(starts 0) == $((before + 2)) && $(daemon_restarts 0) == "$restarts" ]]
	knob 0 IMPORTERS=
	knob 3 REFUSE_START=
}
