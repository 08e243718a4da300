#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The chart is upgraded to an image whose daemons, or agents, end as soon as they start.

load ../cluster/driver
load ../cluster/agents

setup_file() { with_driver 2; }
setup() { ns_begin; }
teardown() {
	with_driver 2 --reset-values
	eventually 120 no_agents
	forget_agents
	ns_end
}

# upgrade_to_crashing_image: the controller starts its daemons with an image that lacks their program.
upgrade_to_crashing_image() {
	"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --reuse-values --wait --timeout 120s \
		--set 'controller.containers.computeDomain.env[0].name=IMAGE_NAME' \
		--set 'controller.containers.computeDomain.env[0].value=compute-domains/busybox:test' >/dev/null
}
roll_back() { "$cluster/helm" rollback compute-domains --namespace "$driver_ns" --wait --timeout 120s >/dev/null; }
# crashing N SELECTOR: so many pods have a container that was started and ended.
crashing() {
	k -n "$driver_ns" get pods -l "$2" -o json | jq -e --argjson n "$1" '[.items[] | select(.metadata.deletionTimestamp | not) |
		select(.status.containerStatuses[0].restartCount > 0)] | length == $n' >/dev/null
}

@test "helm rollback alone repairs an upgrade to an image whose daemons crash" {
	upgrade_to_crashing_image
	domain d
	worker w d 0
	eventually 60 crashing 1 app=imex-daemon,$uid_label
	roll_back
	running w
}

@test "helm rollback alone repairs an upgrade to an image whose agents crash" {
	with_driver 2 --set resources.computeDomains.imex.agents=true
	eventually 60 agents_idle 2
	upgrade_to_crashing_image
	eventually 60 crashing 1 $agents
	eventually 30 eval 'k -n "$driver_ns" get events --field-selector reason=AgentsCrash -o name | grep -q .'
	agents_idle 1 # the other one was left alone
	roll_back
	eventually 60 agents_idle 2
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
}
