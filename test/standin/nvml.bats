# SPDX-License-Identifier: Apache-2.0
# The NVML stand-in: facts, per-GPU overrides, live changes, errors, hang and crash. Needs STANDIN_BUILD.

setup() {
        DIR=$(mktemp -d)
        cp "$STANDIN_BUILD/libnvidia-ml.so.1" "$DIR"
        CONF=$DIR/libnvidia-ml.conf
}

teardown() {
        rm -rf "$DIR"
}

client() {
        "$STANDIN_BUILD/nvml-client" "$DIR/libnvidia-ml.so.1" "$@"
}

@test "facts come from the file beside the library, and a GPU's own key takes precedence" {
        printf '%s\n' 'DRIVER_VERSION=575.57.08' 'GPU_COUNT=2' 'CLUSTER_UUID=2df84740-d3cb-b5ce-4e7e-98352b5a71b5' CLIQUE_ID=2 FABRIC_STATE=3 \
                'GPU_NAME="NVIDIA GB200"' 'GPU1_CLIQUE_ID=5' 'GPU1_FABRIC_STATE=1' 'GPU1_NAME="NVIDIA DGX Display"' > "$CONF"
        run client nfs
        [ "$status" -eq 0 ]
        [[ $output == *"driver Success 575.57.08"* ]]
        [[ $output == *"gpu 0 Success NVIDIA GB200 GPU-"*" minor 0 fabric Success 2df84740d3cbb5ce4e7e98352b5a71b5.2 state 3 status 0"* ]]
        [[ $output == *"gpu 1 Success NVIDIA DGX Display GPU-"*"2df84740d3cbb5ce4e7e98352b5a71b5.5 state 1"* ]]
        [[ $output != *"gpu 2"* ]]
}

@test "the versioned fabric call checks the version and adds the health mask" {
        printf '%s\n' GPU_COUNT=1 CLUSTER_UUID=2df84740-d3cb-b5ce-4e7e-98352b5a71b5 CLIQUE_ID=2 HEALTH_MASK=9 > "$CONF"
        run client ivs
        [[ $output == *"fabric Success 2df84740d3cbb5ce4e7e98352b5a71b5.2 state 3 status 0 health 9"* ]]
        run client ibs
        [[ $output == *"fabric The provided version is invalid/unsupported"* ]]
}

@test "every init reads the file again, also in a running process" {
        mkfifo "$DIR/go"
        echo CLIQUE_ID=1 > "$CONF"
        client ifwfswif < "$DIR/go" > "$DIR/out" 3>&- &
        exec 9> "$DIR/go"
        until grep -q 'gpu 3' "$DIR/out"; do read -rt 0.02 <> <(:) || true; done
        echo CLIQUE_ID=4 > "$CONF"
        printf '\n\n' >&9
        exec 9>&-
        wait
        [ "$(grep -c '\.1 state 3' "$DIR/out")" -eq 8 ]
        [ "$(grep -c '\.4 state 3' "$DIR/out")" -eq 4 ]
}

@test "without a file there are four GPUs without a cluster" {
        run client ifs
        [[ $output == *"count Success 4"* ]]
        [[ $output == *"00000000000000000000000000000000.0 state 3"* ]]
}

@test "errors are the real library's numbers" {
        echo INIT_ERROR=9 > "$CONF"
        run client i
        [[ $output == *"init Driver Not Loaded"* ]]
        echo FABRIC_ERROR=3 > "$CONF"
        run client ifs
        [[ $output == *"fabric Not Supported"* ]]
        echo FABRIC_STATUS=999 > "$CONF"
        run client ifs
        [[ $output == *"status 999"* ]]
}

@test "nothing works before init and after the last shutdown" {
        run client fs
        [[ $output == *"driver Uninitialized"* && $output == *"shutdown Uninitialized"* ]]
        run client iisfsf
        [[ $(grep -c 'driver Success' <<< "$output") -eq 1 && $(grep -c 'driver Uninitialized' <<< "$output") -eq 1 ]]
}

@test "a handle of a MIG device does not work after the last shutdown" {
        printf '%s\n' GPU_COUNT=1 'GPU0_MIG="1g@0"' > "$CONF"
        run client imsm
        [[ ${lines[1]} == "uuid Success instance Success MIG-"* && ${lines[3]} == "uuid Uninitialized instance Uninitialized "* ]]
}

@test "init hangs or crashes on demand" {
        echo HANG=1 > "$CONF"
        run timeout 0.5 "$STANDIN_BUILD/nvml-client" "$DIR/libnvidia-ml.so.1" i
        [ "$status" -eq 124 ]
        echo CRASH=1 > "$CONF"
        run client i
        [ "$status" -eq 139 ]
}

@test "nvidia-smi reports the version of the library's file" {
        mkdir -p "$DIR/usr/bin" "$DIR/usr/lib64"
        cp "$STANDIN_BUILD/nvidia-smi" "$DIR/usr/bin"
        echo DRIVER_VERSION=575.57.08 > "$DIR/usr/lib64/libnvidia-ml.conf"
        run "$DIR/usr/bin/nvidia-smi" --version
        [ "$status" -eq 0 ]
        [[ $output == *"NVIDIA-SMI version  : 575.57.08"* ]]
}

# smi ARGUMENT...: runs the program with the library in the path of the loader.
smi() { LD_LIBRARY_PATH=$DIR run "$STANDIN_BUILD/nvidia-smi" "$@"; }

@test "nvidia-smi sets the compute mode and the time slice of one GPU, and root may do it if the driver is mounted read-only" {
        printf '%s\n' GPU_COUNT=2 GPU0_UUID=GPU-a GPU1_UUID=GPU-b > "$CONF"
        smi -i GPU-b -c DEFAULT
        [ "$status" -eq 0 ]
        [[ $output == "Set compute mode to DEFAULT for GPU 1."* ]]
        smi compute-policy -i 0 --set-timeslice=3
        [ "$status" -eq 0 ]
        mount --bind "$DIR" "$DIR"
        mount -o remount,bind,ro "$DIR"
        smi compute-policy -i GPU-b --set-timeslice 1
        umount "$DIR"
        [ "$status" -eq 0 ]
        [ "$(paste -sd, "$DIR/libnvidia-ml.policies")" = "GPU-b compute-mode 0,GPU-a timeslice 3,GPU-b timeslice 1" ]
        # Root without capabilities may not.
        LD_LIBRARY_PATH=$DIR run setpriv --bounding-set=-all --inh-caps=-all "$STANDIN_BUILD/nvidia-smi" compute-policy -i GPU-b --set-timeslice 1
        [ "$status" -eq 4 ]
        [[ $output == *"Insufficient Permissions"* ]]
}

@test "nvidia-smi refuses unknown arguments with the exit codes of its manual, and writes no file" {
        printf '%s\n' GPU_COUNT=1 GPU0_UUID=GPU-a GPU0_FAIL_standinSetTimeSlice=3 > "$CONF"
        local arguments
        for arguments in "-i GPU-a -c SHARED" "-i GPU-a -c 4" "-c DEFAULT" "-i GPU-a" "compute-policy -i GPU-a" "compute-policy -i GPU-a --set-timeslice 4" \
                "compute-policy -i GPU-a --set-timeslice Short" "compute-policy -i GPU-a -c DEFAULT" "-i GPU-a --set-timeslice 1" "-i GPU-a -c DEFAULT --set-timeslice 1" \
                "-i GPU-a -c" "-L -i GPU-a" "--colour"; do
                smi $arguments
                [ "$status" -eq 2 ]
        done
        smi -i GPU-z -c DEFAULT
        [ "$status" -eq 6 ]
        [ "$output" = "No devices were found" ]
        smi compute-policy -i GPU-a --set-timeslice 1
        [ "$status" -eq 3 ]
        [[ $output == *"Failed to set timeslice policy with value Short for GPU 0 : Not Supported"* ]]
        [ ! -e "$DIR/libnvidia-ml.policies" ]
}
