#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# nvidia-imex ended uncleanly and waits for a node that may map its memory still (docs/imex.md).

load ../cluster/driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || mend
	ns_end
}
mend() {
	"$cluster/power" 3 on
	k uncordon node-3 >/dev/null
	knob 0 IMPORTERS=
	knob 3 REFUSE_START=
}

annotation() { k -n "$driver_ns" get pod "$1" -o json | jq -r --arg key "imex.resource.nvidia.com/$2" '.metadata.annotations[$key] // ""'; }
annotation_is() { [[ $(annotation "$1" "$2") == "$3" ]]; }
condition_says() { [[ $(condition "$1" Ready message) == *"$2"* ]]; }
starts() { k -n "$driver_ns" logs "$1" | grep -c 'IMEX Log initializing'; }
boot_id() { k get node "node-$1" -o jsonpath='{.status.nodeInfo.bootID}'; }

@test "a peer that had mapped the memory of an IMEX that crashed has no power: it is named after a minute, and when it has rebooted IMEX starts anew" {
	# Somebody has to be left who can tell: the controllers are pods, too.
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
	eventually 30 condition_is d PeersConnected True
	local pod boot
	pod=$(daemon_pod d 0)
	boot=$(boot_id 3)
	# Its nvidia-imex does not come back with it, so that only the reboot can tell.
	knob 3 REFUSE_START="out of order"
	"$cluster/power" 3 off
	kill_in_pod "$driver_ns" "$pod" nvidia-imex
	eventually 20 annotation_is "$pod" state WAITING_FOR_RECOVERY
	annotation_is "$pod" awaited ""
	eventually 80 annotation_is "$pod" awaited node-3
	eventually 20 condition_says d "has not connected since to node-3"
	[[ $(starts "$pod") == 2 ]]
	"$cluster/power" 3 on
	[[ $(boot_id 3) != "$boot" ]]
	eventually 40 daemon_is_ready "$pod"
	annotation_is "$pod" awaited ""
	[[ $(starts "$pod") == 3 && $(restarts "$pod") == 0 ]]
	knob 0 IMPORTERS=
	knob 3 REFUSE_START=
}
