# SPDX-License-Identifier: Apache-2.0
# The nvidia-imex and nvidia-imex-ctl stand-ins, on four simulated nodes. Needs root, jq and STANDIN_BUILD.

load nodes.bash

setup_file() {
        [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
        nodes_up
}

teardown_file() {
        nodes_down
}

setup() {
        declare -ga PID=()
        nodes_reset
}

teardown() {
        local k
        stop_all
        for k in 0 1 2 3; do
                [ ! -s "$DIR/$k/log" ] || sed "s/^/node $k: /" "$DIR/$k/log"
        done
}

# form N: forms a domain of the first N nodes, by address.
form() {
        local k
        for ((k = 0; k < $1; k++)); do
                list "$k" $(for ((i = 0; i < $1; i++)); do ip_of "$i"; done)
                knob "$k" RECONNECT_MS=100
                imex "$k"
        done
        for ((k = 0; k < $1; k++)); do
                eventually is UP domain "$k"
        done
}

# names K N: writes a list of N names. The caller writes the hosts file.
names() {
        list "$1" $(for ((i = 0; i < $2; i++)); do printf 'cd-slot-%04d\n' "$i"; done)
}

@test "version and usage" {
        run "$STANDIN_BUILD/nvidia-imex" --version
        [[ $status -eq 0 && $output == "IMEX version is: 580.95.05" ]]
        run "$STANDIN_BUILD/nvidia-imex-ctl"
        [ "$status" -ne 0 ]
}

@test "three nodes form a domain: every connection is up, and the log has the real format" {
        form 3
        [ "$(ctl 1 -q 2>&1; echo x)" = $'READY\nx' ]
        log_has 1 "Identified this node as ID 1, using bind IP of '198.18.77.11', and network interface of eth0"
        log_has 1 "persistence file /var/run/nvidia-imex/persist.dat does not exist.  Assuming no previous importers."
        log_has 1 "Creating gRPC channels to all peers (nPeers = 3)."
        log_has 1 "IMEX_WAIT_FOR_QUORUM != FULL, continuing"
        log_has 1 "GPU event successfully subscribed"
        eventually log_has 1 "Connection established to node 0 with ip address 198.18.77.10. Number of times connected: 1"
        log_has 1 "Connection established to node 1 with ip address 198.18.77.11."
}

@test "-N prints the documented text" {
        form 2
        run ctl 1 -N
        [ "$status" -eq 0 ]
        [[ $output == "Connectivity Table Legend:"* ]]
        [[ $output == *$'\nNodes:\nNode #0   - 198.18.77.10    - READY                - Version: 580.95.05\n'* ]]
        [[ $output == *$'\nNode #1   * 198.18.77.11    * - READY                - Version: 580.95.05\n'* ]]
        [[ $output == *$'\n Nodes From\\To  0   1\n       0        C   C\n       1        C   C\n'* ]]
        [[ $output == *$'\nDomain State: UP' ]]
        run ctl 1 -N -H
        [[ $output == *"198.18.77.10 ($(hostname))"* ]]
}

@test "-N -j prints the documented JSON" {
        form 2
        knob 0 VERSION=580.95.05
        run ctl 0 -N -j
        [ "$status" -eq 0 ]
        jq -e '.status == "UP" and (.timestamp | test("^[0-9]+/[0-9]+/[0-9]{4} [0-9:]{8}\\.[0-9]{3}$")) and (.nodes | length) == 2' <<< "$output"
        jq -e '.nodes["1"] | .status == "READY" and .host == "198.18.77.11" and .version == "580.95.05" and .hostName != "N/A"' <<< "$output"
        jq -e '.nodes["1"].connections["0"] == {"host": "198.18.77.10", "status": "CONNECTED", "changed": true}' <<< "$output"
        # DCGM uses the last "status".
        [ "$(grep -o '"status":"[A-Z_]*"' <<< "$output" | tail -1)" = '"status":"UP"' ]
}

@test "a node is ready at once without its peers, and absent peers make the domain DEGRADED" {
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        imex 0
        eventually is READY ctl 0 -q
        eventually is CONNECTED state 0 0
        [ "$(state 0 1)" = NEVER_CONNECTED ]
        [ "$(domain 0)" = DEGRADED ]
        run ctl 0 -N
        [[ $output == *$'Node #1   - 198.18.77.11    - UNAVAILABLE\n'* && $output == *$'\n       1        I   I\n'* ]]
        ctl 0 -N -j | jq -e '.nodes["1"] | .hostName == "N/A" and .version == "" and .connections["0"].status == "INVALID"'
}

@test "the back-off is as slow as that of the real daemon, unless a knob shortens it" {
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        list 1 "$(ip_of 0)" "$(ip_of 1)"
        imex 0
        eventually is CONNECTED state 0 0
        imex 1
        eventually is CONNECTED state 1 0
        [ "$(state 0 1)" = NEVER_CONNECTED ]
        kill -USR1 "${PID[0]}"
        eventually is CONNECTED state 0 1
}

@test "names are resolved only at the start and at SIGUSR1, and a peer is accepted when its name is known" {
        names 0 4
        names 1 4
        hosts 0 "$(ip_of 0) cd-slot-0000"
        hosts 1 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        imex 0
        eventually is READY ctl 0 -q
        log_has 0 "Treating node config entry 'cd-slot-0003' as a host name."
        log_has 0 "Identified this node as ID 0, using bind address of 'cd-slot-0000'"
        imex 1
        eventually is READY ctl 1 -q
        eventually log_has 0 "which is not its address here"
        [ "$(state 1 0)" = NEVER_CONNECTED ]
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        [ "$(state 0 1)" = NEVER_CONNECTED ]
        kill -USR1 "${PID[0]}"
        eventually is CONNECTED state 0 1
        eventually is CONNECTED state 1 0
        log_has 0 "Connection established to node 1 with address cd-slot-0001"
}

@test "a second SIGUSR1 within five seconds is lost" {
        names 0 3
        hosts 0 "$(ip_of 0) cd-slot-0000"
        names 1 3
        hosts 1 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        sed -i 's/^LOG_LEVEL=4$/LOG_LEVEL=5/' "$DIR/0/imexd.cfg"
        # The last name of the list has been resolved this often.
        looked_up() { [ "$(grep -c 'Failed to resolve node 2' "$DIR/0/log")" -eq "$1" ]; }
        imex 0
        imex 1
        eventually is READY ctl 0 -q
        eventually is READY ctl 1 -q
        eventually looked_up 1
        kill -USR1 "${PID[0]}"
        eventually looked_up 2
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        kill -USR1 "${PID[0]}"
        eventually log_has 0 "Ignoring SIGUSR1"
        [ "$(state 0 1)" = NEVER_CONNECTED ]
        after_window() { kill -USR1 "${PID[0]}" && is CONNECTED state 0 1; }
        eventually after_window
        [ "$(grep -c 'Received SIGUSR1' "$DIR/0/log")" -eq 2 ]
}

@test "after SIGUSR1 the daemon connects to a peer with a new address" {
        names 0 2
        names 1 2
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 2) cd-slot-0001"
        hosts 1 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        names 2 2
        hosts 2 "$(ip_of 0) cd-slot-0000" "$(ip_of 2) cd-slot-0001"
        imex 0
        imex 2
        eventually is READY ctl 0 -q
        eventually is READY ctl 2 -q
        kill -USR1 "${PID[0]}"
        eventually is CONNECTED state 0 1
        kill -TERM "${PID[2]}"
        eventually is DISCONNECTED state 0 1
        imex 1
        eventually is READY ctl 1 -q
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        after_window() { kill -USR1 "${PID[0]}" && is CONNECTED state 0 1; }
        eventually after_window
        eventually is UP domain 0
        log_has 0 "Node 1 - cd-slot-0001 is a new instance"
}

@test "the node list is read only at the start" {
        form 2
        list 0 "$(ip_of 1)" "$(ip_of 0)"
        kill -USR1 "${PID[0]}"
        eventually log_has 0 "Number of times connected: 2"
        [ "$(grep -c 'Identified this node as ID 0' "$DIR/0/log")" -eq 1 ]
}

@test "different node lists disable communication until both sides have been stopped at the same time" {
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        list 1 "$(ip_of 0)" "$(ip_of 1)" "$(ip_of 2)"
        knob 0 RECONNECT_MS=50
        knob 1 RECONNECT_MS=50
        imex 0
        imex 1
        eventually is NODE_MAP_MISMATCH state 0 1
        eventually is NODE_MAP_MISMATCH state 1 0
        run ctl 0 -N
        [[ $output == *$'\n       0        C   !M!\n'* ]]
        list 1 "$(ip_of 0)" "$(ip_of 1)"
        kill -TERM "${PID[1]}"
        wait "${PID[1]}"
        imex 1
        eventually is NODE_MAP_MISMATCH state 1 0
        [ "$(state 0 1)" = NODE_MAP_MISMATCH ]
        # The side that remembered it stops, but by now the other side remembers it.
        kill -TERM "${PID[0]}"
        wait "${PID[0]}"
        imex 0
        eventually is NODE_MAP_MISMATCH state 0 1
        kill -TERM "${PID[0]}" "${PID[1]}"
        wait "${PID[0]}" "${PID[1]}"
        imex 0
        imex 1
        eventually is UP domain 0
}

@test "a daemon that shuts down still has its session, its port and its node list" {
        knob 0 STOP_DELAY_MS=1500
        form 2
        kill -TERM "${PID[0]}"
        eventually is SHUTTING_DOWN ctl 0 -q
        eventually is DISCONNECTED state 1 0
        imex_fails 0 "in use"
        list 2 "$(ip_of 0)" "$(ip_of 1)" "$(ip_of 2)"
        imex 2
        eventually is NODE_MAP_MISMATCH state 2 0
        wait "${PID[0]}"
}

@test "the same nodes in another order are a different list" {
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        list 1 "$(ip_of 1)" "$(ip_of 0)"
        imex 0
        imex 1
        eventually is READY ctl 0 -q
        eventually is READY ctl 1 -q
        kicked() { kill -USR1 "${PID[0]}" "${PID[1]}" && grep -q 'Node map mismatch' "$DIR/0/log" "$DIR/1/log"; }
        eventually kicked
}

@test "different versions disable communication" {
        knob 1 VERSION=570.172.08
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        list 1 "$(ip_of 0)" "$(ip_of 1)"
        knob 0 RECONNECT_MS=50
        knob 1 RECONNECT_MS=50
        imex 0
        imex 1
        eventually is VERSION_MISMATCH state 0 1
        eventually is VERSION_MISMATCH state 1 0
        [ "$(ctl 0 -q)" = READY ]
}

@test "swapped indices are refused" {
        local k
        for k in 0 1 2; do names "$k" 3; done
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001" "$(ip_of 2) cd-slot-0002"
        # Nodes 1 and 2 have each other's index.
        hosts 1 "$(ip_of 0) cd-slot-0000" "$(ip_of 2) cd-slot-0001" "$(ip_of 1) cd-slot-0002"
        hosts 2 "$(ip_of 0) cd-slot-0000" "$(ip_of 2) cd-slot-0001" "$(ip_of 1) cd-slot-0002"
        for k in 0 1 2; do
                knob "$k" RECONNECT_MS=100
                imex "$k"
        done
        eventually is INVALID state 0 1
        eventually is INVALID state 0 2
        eventually log_has 0 "refused the connection: ID node 0 looks for node 1, but this is node 2"
        eventually log_has 0 "which is not its address here"
        [ "$(state 1 0)" = NEVER_CONNECTED ]
        [ "$(domain 0)" = DEGRADED ]
}

@test "the second of two daemons with the same id is refused" {
        names 0 2
        names 1 2
        names 2 2
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        hosts 1 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        hosts 2 "$(ip_of 0) cd-slot-0000" "$(ip_of 2) cd-slot-0001"
        imex 0
        eventually is READY ctl 0 -q
        imex 1
        eventually is CONNECTED state 1 0
        imex 2
        eventually log_has 2 "refused the connection: ID node 1 is already connected from another address"
        log_has 0 "Refused connection from 198.18.77.12: node 1 is already connected"
        on 2 "$DIR/2/bin/nvidia-imex-ctl" -i "$(ip_of 2)" 50005 -q
}

@test "the daemon does not start if no line matches an interface" {
        list 0 "$(ip_of 1)" "$(ip_of 2)"
        imex_fails 0 "No matching network interface found for any IP addresses in the node configuration file $DIR/0/nodes.cfg"
        names 0 2
        hosts 0 "$(ip_of 1) cd-slot-0000"
        imex_fails 0 "No matching network interface found"
}

@test "mistakes in the configuration end the start" {
        list 0 "$(ip_of 0)"
        cfg 0 IMEX_CMD_POTR=1
        imex_fails 0 "Unknown config option IMEX_CMD_POTR"
        cfg 0 DAEMONIZE=no
        imex_fails 0 "Invalid value 'no' for config option DAEMONIZE"
        cfg 0 "IMEX_CMD_BIND_INTERFACE_IP=$(ip_of 1)"
        imex_fails 0 "Failed to start the command service at 198.18.77.11:50005"
        cfg 0
        list 0 "$(ip_of 0)" "$(ip_of 0)"
        imex_fails 0 "Duplicate entry '198.18.77.10'"
        : > "$DIR/0/nodes.cfg"
        imex_fails 0 "No entries in node configuration file"
        rm "$DIR/0/nodes.cfg"
        imex_fails 0 "Failed to open node configuration file"
}

@test "unused slots with an address that never answers stay unconnected and cause no refusal" {
        local k
        for k in 0 1; do
                names "$k" 4
                hosts "$k" "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001" '127.0.0.2 cd-slot-0002' '127.0.0.2 cd-slot-0003'
                knob "$k" RECONNECT_MS=50
                imex "$k"
        done
        eventually is CONNECTED state 0 1
        eventually is CONNECTED state 1 0
        [ "$(state 0 2)" = NEVER_CONNECTED ]
        [ "$(state 0 3)" = NEVER_CONNECTED ]
        [ "$(domain 0)" = DEGRADED ]
        [ "$(cat "$DIR/0/log" "$DIR/1/log" | grep -c '\[ERROR\]')" -eq 0 ]
}

@test "with RERESOLVE every attempt resolves the name again" {
        names 0 2
        names 1 2
        hosts 0 "$(ip_of 0) cd-slot-0000"
        hosts 1 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        knob 0 RECONNECT_MS=50 RERESOLVE=1
        # Either of the two may listen first.
        knob 1 RECONNECT_MS=50
        imex 0
        imex 1
        eventually is READY ctl 1 -q
        hosts 0 "$(ip_of 0) cd-slot-0000" "$(ip_of 1) cd-slot-0001"
        eventually is UP domain 0
}

@test "IPv6 addresses" {
        local k
        for k in 0 1; do
                list "$k" fd77::10 fd77::11
                cfg "$k" "IMEX_CMD_BIND_INTERFACE_IP=fd77::1$k"
                knob "$k" RECONNECT_MS=50
                imex "$k"
        done
        eventually is UP domain 1
        log_has 1 "Identified this node as ID 1, using bind IP of 'fd77::11'"
}

@test "a container's bind mount of the program shares the session and the knobs of its node" {
        list 0 "$(ip_of 0)"
        imex 0
        eventually is READY ctl 0 -q
        cp "$DIR/0/imexd.cfg" "$DIR/0/other.cfg"
        sed -i 's/^SERVER_PORT=.*/SERVER_PORT=50100/; s/^IMEX_CMD_PORT=.*/IMEX_CMD_PORT=50105/' "$DIR/0/other.cfg"
        mkdir "$DIR/0/container"
        touch "$DIR/0/container/nvidia-imex"
        contained() {
                on 0 bash -c 'mount --bind "$0/bin/nvidia-imex" "$0/container/nvidia-imex" &&
                        mount -o remount,bind,ro "$0/container/nvidia-imex" &&
                        exec "$0/container/nvidia-imex" -c "$0/other.cfg"' "$DIR/0"
        }
        run contained
        [ "$status" -eq 1 ]
        [[ $output == *NV_ERR_IN_USE* ]]
        knob 0 "REFUSE_START=seen through the mount" EXIT_CODE=9
        run contained
        [ "$status" -eq 9 ]
        [[ $output == *"seen through the mount"* ]]
}

@test "a second daemon on the node gets NV_ERR_IN_USE, a later one after a crash does not" {
        list 0 "$(ip_of 0)"
        imex 0
        eventually is READY ctl 0 -q
        cp "$DIR/0/imexd.cfg" "$DIR/0/first.cfg"
        cfg 0 SERVER_PORT=50100 IMEX_CMD_PORT=50105
        imex_fails 0 "Failed to allocate Imex session, status = NV_ERR_IN_USE"
        kill -9 "${PID[0]}"
        wait "${PID[0]}" || true
        cp "$DIR/0/first.cfg" "$DIR/0/imexd.cfg"
        imex 0
        eventually is READY ctl 0 -q
}

@test "the capability device is required if a knob requires it, and --nogpu needs none" {
        list 0 "$(ip_of 0)"
        knob 0 REQUIRE_CAP=1 CAP_MINOR=987
        imex_fails 0 "Failed to open the fabric-imex-mgmt capability /dev/nvidia-caps/nvidia-cap987"
        imex 0 --nogpu
        eventually is READY ctl 0 -q
        ctl 0 -N -j | jq -e '.nodes["0"].version == "NO_GPU"'
}

@test "on SIGTERM the daemon exits with 0, and the others see the node as disconnected" {
        form 3
        kill -TERM "${PID[2]}"
        wait "${PID[2]}"
        eventually is DISCONNECTED state 0 2
        log_has 0 "Received notification of shutdown from node 2"
        [ "$(domain 0)" = DEGRADED ]
        [ "$(ctl 0 -q)" = READY ]
        [ "$(state 0 1)" = CONNECTED ]
        run ctl 2 -q
        [ "$status" -ne 0 ] && [[ $output == *UNAVAILABLE* ]]
}

@test "after SIGKILL the others recover, and connect to the new instance" {
        form 2
        kill -9 "${PID[1]}"
        eventually is RECOVERING state 0 1
        imex 1
        eventually is UP domain 0
        log_has 0 "Node 1 - 198.18.77.11 is a new instance"
}

@test "the grace time turns a lost connection into a disconnected one" {
        local k
        for k in 0 1; do
                cfg "$k" IMEX_NODE_DISCONNECTED_GRACE_TIME=0
        done
        form 2
        kill -9 "${PID[1]}"
        eventually is DISCONNECTED state 0 1
}

@test "after a crash with importers the daemon waits for them; a changed list or NONE makes it forget" {
        knob 0 IMPORTERS=1
        form 2
        grep -q 'Node 1: 198.18.77.11' "$DIR/0/run/nvidia-imex/persist.dat"
        knob 1 RECONNECT_MS=
        kill -STOP "${PID[1]}"
        kill -9 "${PID[0]}"
        wait "${PID[0]}" || true
        imex 0
        eventually is WAITING_FOR_RECOVERY ctl 0 -q
        kill -9 "${PID[0]}"
        wait "${PID[0]}" || true
        cp "$DIR/0/run/nvidia-imex/persist.dat" "$DIR/0/persist.dat"
        cfg 0 IMEX_WAIT_FOR_QUORUM=NONE
        imex 0
        eventually is READY ctl 0 -q
        kill -TERM "${PID[0]}"
        wait "${PID[0]}"
        cp "$DIR/0/persist.dat" "$DIR/0/run/nvidia-imex/persist.dat"
        cfg 0
        list 0 "$(ip_of 0)" "$(ip_of 2)"
        imex 0
        eventually is READY ctl 0 -q
        log_has 0 "belongs to another node configuration, discarding it"
        kill -TERM "${PID[0]}"
        wait "${PID[0]}"
        cp "$DIR/0/persist.dat" "$DIR/0/run/nvidia-imex/persist.dat"
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        imex 0
        eventually is WAITING_FOR_RECOVERY ctl 0 -q
        kill -CONT "${PID[1]}"
        kicked() { kill -USR1 "${PID[1]}" && is READY ctl 0 -q; }
        eventually kicked
}

@test "a daemon that is stopped while it waits still waits for the same nodes at the next start" {
        knob 0 IMPORTERS=1
        form 3
        knob 2 RECONNECT_MS=
        kill -STOP "${PID[2]}"
        kill -9 "${PID[0]}"
        wait "${PID[0]}" || true
        imex 0
        eventually log_has 0 "Previous importer node 1 - 198.18.77.11 is back"
        [ "$(ctl 0 -q)" = WAITING_FOR_RECOVERY ]
        kill -TERM "${PID[0]}"
        wait "${PID[0]}"
        [ "$(grep -c '^Node' "$DIR/0/run/nvidia-imex/persist.dat")" = 1 ]
        grep -q '^Node 2: 198.18.77.12' "$DIR/0/run/nvidia-imex/persist.dat"
        imex 0
        eventually is WAITING_FOR_RECOVERY ctl 0 -q
        kill -TERM "${PID[0]}"
        wait "${PID[0]}"
        rm "$DIR/0/run/nvidia-imex/persist.dat"
        imex 0
        eventually is READY ctl 0 -q
}

@test "IMEX_WAIT_FOR_QUORUM=FULL waits for all nodes" {
        local k
        for k in 0 1; do
                cfg "$k" IMEX_WAIT_FOR_QUORUM=FULL
                list "$k" "$(ip_of 0)" "$(ip_of 1)"
                knob "$k" RECONNECT_MS=50
        done
        imex 0
        eventually is WAITING_FOR_PEERS ctl 0 -q
        imex 1
        eventually is READY ctl 0 -q
        eventually is READY ctl 1 -q
}

@test "-N queries every node itself: an unreachable command service is UNAVAILABLE although sessions are up" {
        cfg 1 IMEX_CMD_BIND_INTERFACE_IP=127.0.0.1
        local k
        for k in 0 1; do
                list "$k" "$(ip_of 0)" "$(ip_of 1)"
                knob "$k" RECONNECT_MS=50
                imex "$k"
        done
        eventually is CONNECTED state 0 1
        [ "$(domain 0)" = DEGRADED ]
        [ "$(ctl 0 -N -j | jq -r '.nodes["1"].status')" = UNAVAILABLE ]
        [ "$(ctl 1 -q)" = READY ]
}

@test "the command service on a unix socket" {
        list 0 "$(ip_of 0)"
        cfg 0 "IMEX_CMD_UNIX_DOMAIN_PATH=$DIR/0/ctl.sock"
        sed -i '/IMEX_CMD_PORT/d' "$DIR/0/imexd.cfg"
        imex 0
        eventually is READY ctl 0 -q
        [ "$("$STANDIN_BUILD/nvidia-imex-ctl" -q "--u=$DIR/0/ctl.sock")" = READY ]
        [ "$("$STANDIN_BUILD/nvidia-imex-ctl" -u "$DIR/0/ctl.sock" -q)" = READY ]
        run "$STANDIN_BUILD/nvidia-imex-ctl" -u "$DIR/0/ctl.sock" -N
        [ "$status" -ne 0 ]
}

@test "-s follows the status until the daemon ends" {
        list 0 "$(ip_of 0)"
        knob 0 STATUS_SEQUENCE=INITIALIZING:2000,WAITING_FOR_PEERS:1000
        imex 0
        eventually is INITIALIZING ctl 0 -q
        ctl 0 -s > "$DIR/0/followed" 3>&- &
        eventually grep -q READY "$DIR/0/followed"
        kill -TERM "${PID[0]}"
        wait
        [ "$(paste -sd, "$DIR/0/followed")" = INITIALIZING,WAITING_FOR_PEERS,READY,SHUTTING_DOWN ] ||
                [ "$(paste -sd, "$DIR/0/followed")" = INITIALIZING,WAITING_FOR_PEERS,READY ]
        run timeout 5 "$STANDIN_BUILD/nvidia-imex-ctl" -c "$DIR/0/imexd.cfg" -s -t 100
        [ "$status" -ne 124 ]
}

@test "knobs: status, hang, ignored SIGTERM, delay, crash, refusal" {
        list 0 "$(ip_of 0)"
        knob 0 START_DELAY_MS=2000
        imex 0
        eventually is INITIALIZING ctl 0 -q
        eventually is READY ctl 0 -q
        knob 0 STATUS=WAITING_FOR_RECOVERY
        [ "$(ctl 0 -q)" = WAITING_FOR_RECOVERY ]
        knob 0 STATUS= HANG_STATUS=1
        enter 0
        run timeout 0.3 "${ENTER[@]}" "$DIR/0/bin/nvidia-imex-ctl" -c "$DIR/0/imexd.cfg" -q
        [ "$status" -eq 124 ]
        knob 0 HANG_STATUS= IGNORE_SIGTERM=1
        kill -TERM "${PID[0]}"
        eventually log_has 0 "Ignoring the request to shut down"
        [ "$(ctl 0 -q)" = READY ]
        knob 0 IGNORE_SIGTERM= START_DELAY_MS=
        kill -TERM "${PID[0]}"
        wait "${PID[0]}"
        knob 0 CRASH_AFTER_MS=100 EXIT_CODE=7
        run imex_once 0
        [ "$status" -eq 7 ]
        knob 0 EXIT_CODE=
        run imex_once 0
        [ "$status" -eq 139 ]
        echo 'REFUSE_START=Incompatible kernel driver' > "$DIR/0/bin/nvidia-imex.conf"
        imex_fails 0 "Incompatible kernel driver"
}

imex_once() { on "$1" "$DIR/$1/bin/nvidia-imex" -c "$DIR/$1/imexd.cfg"; }

@test "SIGHUP dumps the verbose log" {
        list 0 "$(ip_of 0)" "$(ip_of 1)"
        imex 0
        eventually is READY ctl 0 -q
        [ "$(grep -c '\[VERBOSE\]' "$DIR/0/log")" -eq 0 ]
        kill -HUP "${PID[0]}"
        eventually log_has 0 "[VERBOSE]"
}

@test "with DAEMONIZE=1 the program returns when the daemon has started, or fails with it" {
        list 0 "$(ip_of 0)"
        cfg 0 DAEMONIZE=1 "LOG_FILE_NAME=$DIR/0/own.log"
        run imex_once 0
        [ "$status" -eq 0 ]
        [ "$(ctl 0 -q)" = READY ]
        PID[0]=$(ip netns pids "$NET-0")
        grep -q 'GPU event successfully subscribed' "$DIR/0/own.log"
        kill -TERM "${PID[0]}"
        eventually is '' ip netns pids "$NET-0"
        list 0 "$(ip_of 1)"
        run imex_once 0
        [ "$status" -ne 0 ]
}

@test "unknown clients at the ports do no harm" {
        list 0 "$(ip_of 0)"
        imex 0
        eventually is READY ctl 0 -q
        on 0 bash -c "for port in 50000 50005; do
                exec 5<> /dev/tcp/$(ip_of 0)/\$port; head -c 100000 /dev/urandom >&5; exec 5>&-
                exec 5<> /dev/tcp/$(ip_of 0)/\$port; echo 'HELLO 1 x y z' >&5; exec 5>&-
        done" 2> /dev/null || true
        [ "$(ctl 0 -q)" = READY ]
        eventually is CONNECTED state 0 0
}
