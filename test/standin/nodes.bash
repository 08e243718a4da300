# SPDX-License-Identifier: Apache-2.0
# Simulated nodes for the tests: each has a network namespace, connected by a bridge, and its own hosts file, copy of the programs and /run.
# Needs STANDIN_BUILD. Node K (from 0) has the addresses 198.18.77.(10+K) and fd77::1K.

NODES=4

ip_of() { echo "198.18.77.$((10 + $1))"; }

nodes_up() {
        local k
        NET=st$$
        # Files in a separate mount namespace would disappear with it. All nodes see this folder.
        DIR=$(mktemp -d /tmp/standin.XXXXXX)
        ip netns add "$NET"
        ip -n "$NET" link add br0 type bridge
        ip -n "$NET" link set br0 up
        for ((k = 0; k < NODES; k++)); do
                ip netns add "$NET-$k"
                ip -n "$NET-$k" link set lo up
                ip -n "$NET" link add "p$k" type veth peer name eth0 netns "$NET-$k"
                ip -n "$NET" link set "p$k" master br0 up
                ip -n "$NET-$k" addr add "$(ip_of "$k")/24" dev eth0
                ip -n "$NET-$k" link set eth0 up
                ip -n "$NET-$k" addr add "fd77::1$k/64" dev eth0 nodad
        done
        export NET DIR
}

nodes_down() {
        local k
        [ -n "${NET:-}" ] || return 0
        for ((k = 0; k < NODES; k++)); do
                ip netns del "$NET-$k" || true
        done
        ip netns del "$NET" || true
        rm -rf "$DIR"
}

# New files for every test: programs (their inode is the session lock and has the knobs), configuration, hosts, /run.
nodes_reset() {
        local k d p
        for ((k = 0; k < NODES; k++)); do
                d=$DIR/$k
                rm -rf "$d"
                mkdir -p "$d/bin" "$d/run"
                for p in nvidia-imex nvidia-imex-ctl; do
                        cp "$STANDIN_BUILD/$p" "$d/bin/$p"
                done
                echo '127.0.0.1 localhost' > "$d/hosts"
                cfg "$k"
        done
}

# cfg K [KEY=VALUE]...: the configuration as the product writes it, plus changes.
cfg() {
        local k=$1 pair
        shift
        cat > "$DIR/$k/imexd.cfg" << EOF
LOG_LEVEL=4
LOG_FILE_NAME=
DAEMONIZE=0
SERVER_PORT=50000
IMEX_NODE_CONFIG_FILE=$DIR/$k/nodes.cfg
IMEX_WAIT_FOR_QUORUM=RECOVERY
IMEX_CMD_ENABLED=1
IMEX_CMD_PORT=50005
IMEX_CMD_BIND_INTERFACE_IP=$(ip_of "$k")
IMEX_NODE_DISCONNECTED_GRACE_TIME=-1
EOF
        for pair in "$@"; do
                echo "$pair" >> "$DIR/$k/imexd.cfg"
        done
}

# list K LINE...: the node list of node K.
list() {
        local k=$1
        shift
        printf '%s\n' "$@" > "$DIR/$k/nodes.cfg"
}

# hosts K "IP NAME"...: rewrites the hosts file of node K in place, as in a container.
hosts() {
        local k=$1
        shift
        printf '%s\n' '127.0.0.1 localhost' "$@" > "$DIR/$k/hosts"
}

knob() {
        local k=$1
        shift
        "$STANDIN_BUILD/standin-knob" "$DIR/$k/bin/nvidia-imex" "$@" > /dev/null
}

# enter K: sets ENTER to the start of a command line that runs the rest in the namespaces of node K, in the same process.
enter() {
        ENTER=(nsenter "--net=/run/netns/$NET-$1" unshare -m --propagation private bash -c '
                mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/run" /run && exec "$@"' "$DIR/$1")
}

on() {
        enter "$1"
        "${ENTER[@]}" "${@:2}"
}

# imex K [ARGUMENT]...: starts the daemon; its process id is in PID[K], its output in the file log of node K.
imex() {
        local k=$1
        enter "$k"
        "${ENTER[@]}" "$DIR/$k/bin/nvidia-imex" -c "$DIR/$k/imexd.cfg" "${@:2}" >> "$DIR/$k/log" 2>&1 3>&- &
        PID[$k]=$!
}

# imex_fails K PATTERN [ARGUMENT]...: the daemon ends by itself with an error that matches PATTERN.
imex_fails() {
        enter "$1"
        run timeout 10 "${ENTER[@]}" "$DIR/$1/bin/nvidia-imex" -c "$DIR/$1/imexd.cfg" "${@:3}"
        [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [[ $output == *$2* ]]
}

ctl() {
        local k=$1
        shift
        on "$k" "$DIR/$k/bin/nvidia-imex-ctl" -c "$DIR/$k/imexd.cfg" "$@"
}

# state K OTHER: the state of the connection to another node, as node K reports it.
state() {
        ctl "$1" -N -j | jq -r ".nodes[\"$1\"].connections[\"$2\"].status"
}

domain() { ctl "$1" -N -j | jq -r .status; }

log_has() { grep -qF -- "$2" "$DIR/$1/log"; }

# Repeats the command until it succeeds, for at most 30 s. Nothing notifies of the change.
eventually() {
        local end=$((SECONDS + 30))
        until "$@"; do
                ((SECONDS < end)) || { echo "never came true: $*"; return 1; }
                read -rt 0.05 <> <(:) || true
        done
}

is() {
        local want=$1
        shift
        [ "$("$@" 2> /dev/null)" = "$want" ]
}

# Ends all processes on the nodes, also those of a failed test.
stop_all() {
        local k
        for ((k = 0; k < NODES; k++)); do
                ip netns pids "$NET-$k" | xargs -r kill -9 2> /dev/null || true
        done
        wait 2> /dev/null || true
        PID=()
}
