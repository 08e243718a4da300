#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The event loops never block: not when nothing reads their log, nor when the resolver hangs. (For the disk see
# absence.bats.) The programs find the API server by a name here, as in clusters that configure one.

load ../cluster/driver

named=kubernetes.default.svc
dra_call=$checkout/build/test/kubelet/dra-call

setup_file() {
	local env="[{\"name\": \"KUBERNETES_SERVICE_HOST\", \"value\": \"$named\"}]"
	[[ -x $dra_call ]]
	# On a busy machine the name server is away for longer than a lease lasts. A controller that loses its lease has
	# to end, which is no test of its loop.
	with_driver 4 --set controller.leaderElection.leaseDuration=120s --set controller.leaderElection.renewDeadline=100s \
		--set-json "controller.containers.computeDomain.env=$env" \
		--set-json "kubeletPlugin.containers.computeDomains.env=$env"
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	eventually 60 none_ends # a terminating pod fails its probes
}
none_ends() { [[ $(k -n "$driver_ns" get pods -o json | jq '[.items[] | select(.metadata.deletionTimestamp)] | length') == 0 ]]; }
setup() { ns_begin; }
teardown() {
	"$cluster/service" dns resume
	all_are_read
	ns_end
}

# targets POD...: prints the open ports of these pods as attack.py expects them.
targets() {
	k -n "$driver_ns" get pods "$@" -o json | jq -r '(.items // [.])[] | .status.podIP as $ip | .spec.containers[].ports[] |
		"\($ip):\(.containerPort)"'
}
# probes_pass TARGET...: each target answers within the 5 s of a probe.
probes_pass() {
	local target answer
	for target; do
		answer=$("$cluster/node" 0 python3 -B "$cluster/attack.py" ask "$target")
		[[ $answer == 200 ]] || { echo "$target answers $answer"; return 1; }
	done
}

# unread PID: stops the reader of a program's log, and fills the pipe. The program's own descriptor does not change.
unread() {
	local reader
	reader=$(awk '/^PPid:/ { print $2 }' "/proc/$1/status")
	[[ $(<"/proc/$reader/comm") == containerd-shim* ]]
	echo "$reader" >>"$BATS_TEST_TMPDIR/readers"
	kill -STOP "$reader"
	python3 -B - "$1" <<-END
		import os, sys
		pipe = os.open(f"/proc/{sys.argv[1]}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
		try:
		    while True:
		        os.write(pipe, b"x" * 4095 + b"\n")
		except BlockingIOError:
		    pass
	END
}
all_are_read() {
	local reader
	[[ -e $BATS_TEST_TMPDIR/readers ]] || return 0
	for reader in $(<"$BATS_TEST_TMPDIR/readers"); do kill -CONT "$reader"; done
	rm "$BATS_TEST_TMPDIR/readers"
}
# lost POD: prints how many lines its log reports as lost.
lost() { k -n "$driver_ns" logs "$1" --tail=-1 | sed -n 's/.*"log lines were dropped, because nothing read stderr" lines=\([0-9]*\)$/\1/p'; }
tells_what_it_lost() { [[ $(lost "$1") -ge 1 ]]; }

# failure: nothing reads the logs -> all programs continue, and later report how many lines are lost
@test "nothing reads the logs of controller, plugin and daemon: probes pass, a ComputeDomain grows, and later they report how many lines are lost" {
	domain d
	worker a d 1
	running a
	eventually 30 condition_is d Ready True
	local leader plugin daemon ports pod before
	leader=$(leader_pod) plugin=$(plugin_pod 0) daemon=$(daemon_pod 1)
	ports=$(targets "$leader" "$plugin")
	before=$(probed)
	unread "$(pids_of_pod "$driver_ns" "$leader" compute-domain-controller)"
	unread "$(pids_of_pod "$driver_ns" "$plugin" compute-domain-kubelet-plugin)"
	unread "$(pids_of_pod "$driver_ns" "$daemon" compute-domain-daemon)"
	probes_pass $ports
	worker b d 0
	running b
	has_channel b
	eventually 30 domain_field_is d .status.nodesReady 2
	eventually 45 condition_is d PeersConnected True
	probes_pass $ports
	# The daemon logs nothing when another node joins.
	kill_in_pod "$driver_ns" "$daemon" compute-domain-daemon USR2
	[[ -z $(lost "$leader")$(lost "$plugin")$(lost "$daemon") ]]
	all_are_read
	# A program reports the number of lost lines before the next line that it logs.
	k -n "$ns" delete pod b --wait=false >/dev/null
	gone pod/b
	for pod in "$leader" "$plugin"; do eventually 30 tells_what_it_lost "$pod"; done
	eventually 30 eval 'kill_in_pod "$driver_ns" "$daemon" compute-domain-daemon USR2 && tells_what_it_lost "$daemon"'
	diff <(echo "$before") <(probed)
}

# The programs look up a name at most once a minute.
older_than_a_minute() { (($(ps -o etimes= -p "$1") > 61)); }
# asks_for_a_name PID: the process is waiting for the name server.
asks_for_a_name() { nsenter -t "$1" -n ss -Hunp "dst $(dns_address)" | grep -q "pid=$1,"; }
dns_address() { (. "$cluster/lib.bash" && echo "$dns_address"); }

# failure: the name server hangs while connections break -> probes pass, and prepared claims are answered
@test "the name server hangs while all connections break: probes pass, a prepared claim is answered at once, and others when it is back" {
	domain d
	worker a d 0
	running a
	eventually 30 condition_is d Ready True
	local leader plugin pids pid claim uid ports before prepared call
	leader=$(leader_pod) plugin=$(plugin_pod 0)
	pids="$(pids_of_pod "$driver_ns" "$leader" compute-domain-controller) $(pids_of_pod "$driver_ns" "$plugin" compute-domain-kubelet-plugin)"
	claim=$(claim_of a) uid=$(claim_uid a) ports=$(targets "$leader" "$plugin")
	prepare() { "$cluster/node" 0 "$dra_call" "$plugin_dir/dra.sock" prepare "$@"; }
	prepared=$(prepare "$ns" "$claim" "$uid")
	[[ $prepared == "channel-0 "* ]]
	before=$(probed)
	for pid in $pids; do eventually 62 older_than_a_minute "$pid"; done
	"$cluster/service" dns pause
	"$cluster/service" front restart
	for pid in $pids; do eventually 5 asks_for_a_name "$pid"; done
	prepare "$ns" unknown 11111111-2222-3333-4444-555555555555 >"$BATS_TEST_TMPDIR/answer" 3>&- &
	call=$!
	probes_pass $ports
	[[ $(prepare "$ns" "$claim" "$uid") == "$prepared" ]]
	for pid in $pids; do eventually 5 asks_for_a_name "$pid"; done
	[[ ! -s $BATS_TEST_TMPDIR/answer ]] # that claim needs the API server
	"$cluster/service" dns resume
	wait "$call" || [[ $? == 1 ]]
	grep 'not found' "$BATS_TEST_TMPDIR/answer"
	worker b d 1
	running b
	eventually 30 domain_field_is d .status.nodesReady 2
	diff <(echo "$before") <(probed)
}
