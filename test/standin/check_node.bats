# SPDX-License-Identifier: Apache-2.0
# check-node of both plugins on a node of stand-ins, without a kubelet: what it finds, and that it changes nothing. Needs root and jq.

setup() {
        DIR=$(mktemp -d)
        ROOT=$DIR/root
        mkdir -p "$ROOT"/{usr/bin,usr/lib64,sys,dev} "$DIR"/{cdi,registry,plugins/gpu.nvidia.com}
        cp "$STANDIN_BUILD/libnvidia-ml.so.1" "$ROOT/usr/lib64"
        cp "$STANDIN_BUILD"/nvidia-{imex,imex-ctl,smi} "$ROOT/usr/bin"
        cp "$HOOK" "$DIR/plugins/gpu.nvidia.com/cdi-hook-0123456789abcdef"
        CONF=$ROOT/usr/lib64/libnvidia-ml.conf
        printf '%s\n' GPU_COUNT=2 CLUSTER_UUID=2df84740-d3cb-b5ce-4e7e-98352b5a71b5 CLIQUE_ID=7 >"$CONF"
        printf '%s\n' 'Character devices:' '195 nvidia' '234 nvidia-caps-imex-channels' '511 nvidia-uvm' '' 'Block devices:' >"$DIR/devices"
        mknod "$ROOT/dev/nvidiactl" c 195 255
        mknod "$ROOT/dev/nvidia-uvm" c 511 0
        mknod "$ROOT/dev/nvidia-uvm-tools" c 511 1
        mknod "$ROOT/dev/nvidia0" c 195 0
        mknod "$ROOT/dev/nvidia1" c 195 1
        export NODE_NAME=n0 CDI_ROOT=$DIR/cdi NVIDIA_DRIVER_ROOT=/run/nvidia/driver DRIVER_ROOT_CTR_PATH=$ROOT ALT_PROC_DEVICES_PATH=$DIR/devices \
                KUBELET_REGISTRAR_DIRECTORY_PATH=$DIR/registry KUBELET_PLUGINS_DIRECTORY_PATH=$DIR/plugins IMEX_HOST_SOCKET_PATH=/etc/nvidia-imex/imex.sock
}

teardown() {
        rm -rf "$DIR"
}

# check PROGRAM: its JSON in $json, and its exit status in $status.
check() {
        status=0
        json=$("$1" check-node --json 2>"$BATS_TEST_TMPDIR/stderr") || status=$?
}

# item NAME STATE [TEXT]
item() {
        jq -e --arg name "$1" --arg state "$2" --arg text "${3:-}" \
                'any(.items[]; .name == $name and .state == $state and (.text | contains($text)))' <<<"$json" >/dev/null || {
                jq . <<<"$json"
                return 1
        }
}

snapshot() {
        find "$DIR" -printf '%p %y %m %s %T@ %C@\n' | sort
}

@test "the plugin for ComputeDomains reports the node, and changes nothing" {
        snapshot >"$BATS_TEST_TMPDIR/before"
        check "$CD_PLUGIN"
        diff "$BATS_TEST_TMPDIR/before" <(snapshot)
        [ "$status" -eq 1 ] # no plugin runs
        jq -e '.version == 1 and .program == "compute-domain-kubelet-plugin" and .node == "n0" and .problems == ([.items[] | select(.state == "problem")] | length)
                and all(.items[]; (.state == "problem") == has("remedy"))' <<<"$json"
        item driver-root ok libnvidia-ml.so.1
        item driver-version ok 580.95.05
        item nvml ok
        item fabric ok 2df84740-d3cb-b5ce-4e7e-98352b5a71b5.7
        item imex-channels ok "major 234"
        item imex-programs ok nvidia-imex-ctl
        item host-imex ok
        item device-nodes ok
        item cdi-folder ok
        item kubelet-sockets problem compute-domain.nvidia.com-reg.sock
        [ "$(jq '[.items[] | select(.state == "problem") | .name] | unique | join(" ")' <<<"$json")" = '"kubelet-sockets"' ]
}

@test "the plugin for GPUs reports the node, and changes nothing" {
        cp "$STANDIN_BUILD/libcuda.so.1" "$ROOT/usr/lib64/libcuda.so.580.95.05"
        ln -s libcuda.so.580.95.05 "$ROOT/usr/lib64/libcuda.so.1"
        snapshot >"$BATS_TEST_TMPDIR/before"
        check "$GPU_PLUGIN"
        diff "$BATS_TEST_TMPDIR/before" <(snapshot)
        [ "$status" -eq 1 ]
        item gpus ok "2 GPUs"
        item mig ok
        item persistence-mode ok
        item device-nodes ok "5 device nodes"
        item driver-files ok
        item cdi-hook ok
        item kubelet-sockets problem gpu.nvidia.com-reg.sock
        [ "$(jq '[.items[] | select(.state == "problem") | .name] | unique | join(" ")' <<<"$json")" = '"kubelet-sockets"' ]
}

@test "faults of the node are named with a remedy" {
        printf '%s\n' FABRIC_STATE=3 FABRIC_STATUS=999 DRIVER_VERSION=560.35.03 >>"$CONF"
        sed -i /imex-channels/d "$DIR/devices"
        rm "$ROOT/usr/bin/nvidia-imex" "$ROOT/dev/nvidia-uvm"
        rmdir "$DIR/cdi"
        FEATURE_GATES=CrashOnNVLinkFabricErrors=true check "$CD_PLUGIN"
        [ "$status" -eq 1 ]
        item fabric problem
        item driver-version problem 560.35.03
        item imex-channels problem
        item imex-programs problem nvidia-imex
        item device-nodes problem nvidia-uvm
        item cdi-folder problem
        run "$CD_PLUGIN" check-node
        [[ $output == *"problem  imex-channels"*"Fix: "* ]]
}

@test "device nodes of capabilities and of DRM are compared with the driver's numbers" {
        printf '%s\n' 'Character devices:' '195 nvidia' '234 nvidia-caps-imex-channels' '236 nvidia-caps' '511 nvidia-uvm' '' 'Block devices:' >"$DIR/devices"
        mkdir -p "$ROOT/dev/nvidia-caps" "$ROOT/dev/dri"
        mknod "$ROOT/dev/nvidia-caps/nvidia-cap1" c 236 1
        mknod "$ROOT/dev/nvidia-caps/nvidia-cap2" c 237 2
        mknod "$ROOT/dev/dri/card1" c 226 1
        mkdir -p "$ROOT/sys/bus/pci/devices/0008:01:00.0/drm"/{card1,renderD128}
        echo 226:1 >"$ROOT/sys/bus/pci/devices/0008:01:00.0/drm/card1/dev"
        echo 226:128 >"$ROOT/sys/bus/pci/devices/0008:01:00.0/drm/renderD128/dev"
        check "$GPU_PLUGIN"
        item device-nodes problem "nvidia-cap2 is device 237:2, and the driver's is 236:2"
        rm "$ROOT/dev/nvidia-caps/nvidia-cap2"
        check "$GPU_PLUGIN"
        item device-nodes ok "6 device nodes"
        item device-nodes problem "dri/renderD128 does not exist"
        mknod "$ROOT/dev/dri/renderD128" c 226 128
        check "$GPU_PLUGIN"
        item device-nodes ok "2 device nodes"
        item resource-slice skipped
}

@test "a node without multi-node NVLink needs no IMEX" {
        echo FABRIC_STATE=0 >>"$CONF"
        rm "$ROOT"/usr/bin/nvidia-imex{,-ctl}
        check "$CD_PLUGIN"
        item fabric ok "no multi-node NVLink"
        item imex-programs skipped
        item host-imex ok
}

@test "without an NVIDIA driver the other items are still reported" {
        rm -r "$ROOT/usr"
        check "$GPU_PLUGIN"
        [ "$status" -eq 1 ]
        item driver-root problem
        item nvml skipped
        item gpus skipped
        item disk-space ok
}

@test "a wrong argument or setting ends with status 2" {
        run "$CD_PLUGIN" check-node --jsn
        [ "$status" -eq 2 ]
        IMEX_MODE=wrong run "$CD_PLUGIN" check-node
        [ "$status" -eq 2 ]
        NODE_NAME="" run "$GPU_PLUGIN" check-node
        [ "$status" -eq 2 ]
        run "$GPU_PLUGIN" check-node --help
        [ "$status" -eq 0 ]
        [[ $output == *--json* ]]
}
