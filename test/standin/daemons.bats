# SPDX-License-Identifier: Apache-2.0
# Daemons on simulated nodes change from one domain to the next with the same addresses. The stand-in of IMEX blocks a peer with another
# node list for good. Needs root, jq, curl, python3, STANDIN_BUILD and DAEMON. The test acts as the controller.

load nodes.bash

FABRIC=f0000000-0000-0000-0000-000000000000.1

setup_file() {
        [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
        nodes_up
        ip -n "$NET" link set lo up
        ip -n "$NET" addr add 198.18.77.1/24 dev br0
        # As in the daemons' pods: an outgoing connection must not get the port of the command service.
        for k in 0 1 2; do ip netns exec "$NET-$k" sysctl -qw net.ipv4.ip_local_reserved_ports=50005; done
}

teardown_file() {
        nodes_down
}

setup() {
        local k
        declare -ga PID=()
        nodes_reset
        rm -f "$DIR"/pod-*.json
        ip netns exec "$NET" python3 "$BATS_TEST_DIRNAME/fabric-server.py" 198.18.77.1 8080 "$DIR" 3>&- &
        SERVER=$!
        for ((k = 0; k < 3; k++)); do
                mkdir -p "$DIR/$k/imexd" "$DIR/$k/cdi"
                echo "$FABRIC" > "$DIR/$k/imexd/fabric"
                cat > "$DIR/$k/kubeconfig" << EOF
{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
 "clusters": [{"name": "c", "cluster": {"server": "http://198.18.77.1:8080"}}], "users": [{"name": "u", "user": {}}]}
EOF
                knob "$k" RECONNECT_MS=100
                start_daemon "$k"
        done
}

teardown() {
        local k
        kill "${PID[@]}" "$SERVER" 2> /dev/null || true
        stop_all
        for k in 0 1 2; do
                [ ! -s "$DIR/$k/log" ] || sed "s/^/node $k: /" "$DIR/$k/log"
        done
}

start_daemon() {
        enter "$1"
        "${ENTER[@]}" env "PATH=$DIR/$1/bin:$PATH" "$DAEMON" --domains-dir "$DIR/$1/imexd" --cdi-root "$DIR/$1/cdi" --kubeconfig "$DIR/$1/kubeconfig" \
                --compute-domain-claim-uid "c0000000-0000-4000-8000-00000000000$1" --node-name "n$1" --pod-ip "$(ip_of "$1")" \
                --pod-uid "b0000000-0000-4000-8000-00000000000$1" --pod-name "daemon-$1" --pod-namespace driver >> "$DIR/$1/log" 2>&1 3>&- &
        PID[$1]=$!
}

uid_of() { printf 'd0000000-0000-4000-8000-%012d' "$1"; }

# on_node NODE EPOCH [hidden|leaving]: the assignment of the node, with the node's number as index.
on_node() {
        local ip state=''
        ip=$([ "${3:-}" ] || ip_of "$1")
        [ "${3:-}" != leaving ] || state='"state": "Leaving", '
        printf '{"node": "n%s", "index": %s, "epoch": %s, %s"claimUID": "c0000000-0000-4000-8000-00000000000%s", "bootID": "%s", "ip": "%s"}' \
                "$1" "$1" "$2" "$state" "$1" "$(cat /proc/sys/kernel/random/boot_id)" "$ip"
}

# domain NUMBER PORT ASSIGNMENTS
domain() {
        printf '{"owner": {"kind": "ComputeDomain", "uid": "%s"}, "infix": "i%s", "slots": 4, "port": %s, "assignments": [%s]}' \
                "$(uid_of "$1")" "$1" "$2" "$3"
}

# publish DOMAIN...
publish() {
        local IFS=,
        ip netns exec "$NET" curl -sf --noproxy '*' -m 5 -o /dev/null --retry 20 --retry-connrefused --retry-delay 1 -X PUT --data "[$*]" http://198.18.77.1:8080/fabric
}

ready_in() { # NODE DOMAIN
        [ "$(jq -r '"\(.assignment) \(.ready)"' "$DIR/$1/imexd/$(uid_of "$2")/state.json" 2> /dev/null)" = "$FABRIC/$(uid_of "$2")/$1/$3 true" ]
}

has_left() { jq -re '."imex.resource.nvidia.com/report" | fromjson | .left' "$DIR/pod-daemon-$1.json" 2> /dev/null | grep -qw -- "$2"; }

# link NODE DOMAIN OTHER: the state of the connection to another node, as the IMEX of a node reports it.
link() { on "$1" "$DIR/$1/bin/nvidia-imex-ctl" -c "$DIR/$1/imexd/$(uid_of "$2")/imexd.cfg" -N -j | jq -r ".nodes[\"$1\"].connections[\"$3\"].status"; }

mismatch() { grep -qi 'map mismatch' "$DIR"/[012]/log; }

# hand_over PORT STEP: runs domain after domain on all three nodes, one node after the other. The port of each domain is STEP higher. Epochs
# of domain D: 10 * D + node.
hand_over() {
        local d n m from port=$1 step=$2
        publish "$(domain 1 "$port" "$(on_node 0 10),$(on_node 1 11),$(on_node 2 12)")"
        for n in 0 1 2; do eventually ready_in "$n" 1 $((10 + n)); done
        for ((d = 2; d <= ${HANDOVERS:-4}; d++)); do
                from=$((d - 1))
                local stay=(0 1 2) came=() old=$port
                port=$((port + step))
                for n in 0 1 2; do
                        stay=("${stay[@]:1}")
                        local here=() there=()
                        for m in "${stay[@]}"; do here+=("$(on_node "$m" $((10 * from + m)))"); done
                        for m in "${came[@]}"; do there+=("$(on_node "$m" $((10 * d + m)))"); done
                        local a b hidden
                        a=$(IFS=,; echo "${here[*]}")
                        b=$(IFS=,; echo "${there[*]}")
                        hidden="$b${b:+,}$(on_node "$n" $((10 * d + n)) hidden)"
                        publish "$(domain "$from" "$old" "$a${a:+,}$(on_node "$n" $((10 * from + n)) leaving)")" "$(domain "$d" "$port" "$hidden")"
                        eventually has_left "$n" $((10 * from + n))
                        came+=("$n")
                        publish "$(domain "$from" "$old" "$a")" "$(domain "$d" "$port" "$b${b:+,}$(on_node "$n" $((10 * d + n)))")"
                        eventually ready_in "$n" "$d" $((10 * d + n))
                done
                for n in 0 1 2; do
                        for m in 0 1 2; do eventually is CONNECTED link "$n" "$d" "$m"; done
                done
        done
}

# failure: nodes change their IMEX domain one after the other -> no IMEX meets a peer with another node list
# bats test_tags=handovers
@test "nodes change their domain one after the other: no IMEX meets a peer with another node list" {
        hand_over 28001 1
        if mismatch; then false; fi
}

# A node that is still in the old domain connects to the node that has left it, and is blocked there as long as the old domain exists.
# Separate ports for the domains prevent that. The new domain is still complete, because it gets no address too early.
# failure: all IMEX domains use the same port -> each new one is complete
# bats test_tags=handovers
@test "each new domain is complete, even if all domains use the same port" {
        hand_over 28001 0
}

@test "an address that is published too early blocks the pair, if both domains use the same port" {
        publish "$(domain 1 28001 "$(on_node 0 10),$(on_node 1 11)")"
        eventually is CONNECTED link 0 1 1
        publish "$(domain 1 28001 "$(on_node 1 11),$(on_node 0 10 leaving)")" "$(domain 2 28001 "$(on_node 0 20),$(on_node 1 21)")"
        eventually ready_in 0 2 20
        eventually mismatch
        publish "$(domain 1 28001 "$(on_node 1 11 leaving)")" "$(domain 2 28001 "$(on_node 0 20),$(on_node 1 21)")"
        eventually ready_in 1 2 21
        eventually is NODE_MAP_MISMATCH link 1 2 0
}

# failure: an address is published too early -> nothing listens there, because each IMEX domain has its own
#   port
@test "an address that is published too early meets no listener, if each domain has its own port" {
        publish "$(domain 1 28001 "$(on_node 0 10),$(on_node 1 11)")"
        eventually is CONNECTED link 0 1 1
        publish "$(domain 1 28001 "$(on_node 1 11),$(on_node 0 10 leaving)")" "$(domain 2 28002 "$(on_node 0 20),$(on_node 1 21)")"
        eventually ready_in 0 2 20
        publish "$(domain 1 28001 "$(on_node 1 11 leaving)")" "$(domain 2 28002 "$(on_node 0 20),$(on_node 1 21)")"
        eventually ready_in 1 2 21
        eventually is CONNECTED link 0 2 1
        if mismatch; then false; fi
}

# failure: IMEX takes long to stop and to start -> the daemon waits for both, and runs one IMEX at a time
@test "a daemon waits for an IMEX that takes long to stop and to start, and runs one at a time" {
        knob 0 STOP_DELAY_MS=1500 START_DELAY_MS=700
        publish "$(domain 1 28001 "$(on_node 0 10)")"
        eventually ready_in 0 1 10
        publish "$(domain 1 28001 "$(on_node 0 10 leaving)")" "$(domain 2 28002 "$(on_node 0 20 hidden)")"
        eventually ready_in 0 2 20
        if grep -q NV_ERR_IN_USE "$DIR/0/log"; then false; fi
        [ ! -e "$DIR/0/imexd/$(uid_of 1)" ]
}

# claim NODE DOMAIN prepared|gone: the files by which the kubelet plugin shows the daemon a claim.
claim() {
        local uid=e0000000-0000-4000-8000-00000000000$1
        local note=$DIR/$1/imexd/$(uid_of "$2")/grants/$uid cdi=$DIR/$1/cdi/k8s.compute-domain.nvidia.com-claim_$uid.yaml
        if [ "$3" = prepared ]; then
                echo granting > "$note"
                touch "$cdi"
        else
                rm "$cdi" "$note"
        fi
}

terminates() { [ "$(jq -r .terminating "$DIR/$1/imexd/$(uid_of "$2")/state.json" 2> /dev/null)" = true ]; }

has_ended() { [ ! -e "/proc/${PID[$1]}/exe" ]; }

@test "a daemon that gets SIGTERM while a claim is prepared records it, keeps its peers, and ends with the claim" {
        publish "$(domain 1 28001 "$(on_node 0 10),$(on_node 1 11)")"
        eventually ready_in 0 1 10
        eventually is CONNECTED link 1 1 0
        if terminates 0 1; then false; fi
        claim 0 1 prepared
        kill "${PID[0]}"
        eventually terminates 0 1
        ready_in 0 1 10
        is CONNECTED link 1 1 0
        if has_ended 0; then false; fi
        if grep -q 'IMEX stops' "$DIR/0/log"; then false; fi
        claim 0 1 gone
        eventually has_ended 0
        terminates 0 1 # until the plugin removes the file of the daemon claim
        [ "$(jq -r .ready "$DIR/0/imexd/$(uid_of 1)/state.json")" = false ]
}
