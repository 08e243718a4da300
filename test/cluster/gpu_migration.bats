#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GPUs move from the Go driver to this one under running pods, and back. What the Go driver leaves on a node is made of what ours has left there:
# its checkpoint, in the form of its releases or of its main branch, without names and with its checksums (go_checkpoint.py, which takes the
# files that a real one wrote), its CDI file without our comment, and its hook by its name.

bats_require_minimum_version 1.5.0
load driver
load gpus

setup_file() { with_gpus 4; }
teardown_file() { device_plugin; }
setup() { ns_begin; }
teardown() { ns_end; }

judge() { gpu_checkpoint "$1" | python3 -B "$cluster/go_checkpoint.py" judge; }
checkpoint_of() { python3 -B "$cluster/go_checkpoint.py" "$@"; }
@test "the judge of checkpoints knows the files of the real Go driver, and one byte that differs" {
	local golden=$checkout/test/unit/gpu_plugin/golden file
	for file in "$golden"/{all,one,checkpoint-go}-*.json; do checkpoint_of judge <"$file"; done
	[[ $(checkpoint_of judge <"$golden/all-main.json") == main && $(checkpoint_of judge <"$golden/all-released.json") == released ]]
	run ! checkpoint_of judge < <(sed 's/gpu-0/gpu-1/' "$golden/one-main.json")
	[[ $(checkpoint_of released <"$golden/one-main.json" | checkpoint_of judge) == released ]]
}

# go_driver_was_here K LAYOUT: what is on the node is the Go driver's now.
go_driver_was_here() {
	local k=$1 file=$BATS_TEST_TMPDIR/go-checkpoint.json
	gpu_checkpoint "$k" | checkpoint_of "$2" >"$file"
	[[ $(checkpoint_of judge <"$file") == "$2" ]]
	"$cluster/node" "$k" sh -c 'cat >"$1/checkpoint.json"' sh "$gpu_plugin_dir" <"$file"
	"$cluster/node" "$k" sh -c 'cd "$1" && for hook in cdi-hook-*; do mv "$hook" nvidia-cdi-hook; done
		for cdi in /var/run/cdi/k8s.gpu.nvidia.com-claim_*; do sed -i "/^#/d; s|$1/cdi-hook-[0-9a-f]*|$1/nvidia-cdi-hook|g; s|\"cdi-hook-[0-9a-f]*\"|\"nvidia-cdi-hook\"|g" "$cdi"; done' \
		sh "$gpu_plugin_dir"
}
container_is() { k -n "$ns" get pod "$1" -o jsonpath='{.metadata.uid} {.status.containerStatuses[0].containerID}'; }
other_container() { [[ $(container_is "$1") != "$2" && $(k -n "$ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].ready}') == true ]]; }
prepared() { "$cluster/node" 0 curl -s "http://$(k -n "$driver_ns" get pod "$(plugin_pod 0)" -o jsonpath='{.status.podIP}'):8080/metrics" | grep -q "^nvidia_dra_prepared_devices{.*device_type=\"gpu\".*} $1$"; }
no_gpu_slices() { slices_published 0 gpu.nvidia.com; }

# moves LAYOUT: two pods of that Go driver are taken over; one restarts its container and goes, another one comes, and the file stays that driver's.
moves() {
	local layout=$1 a b uuid
	gpu_template one
	gpu_pod a '[{name: gpu, resourceClaimTemplateName: one}]' '' 0
	gpu_pod b '[{name: gpu, resourceClaimTemplateName: one}]' '' 0
	running a
	running b
	a=$(container_is a)
	b=$(container_is b)
	uuid=$(gpus_in a)
	# The plugin is away, and pods run on.
	with_driver 4 --set resources.gpus.enabled=false
	eventually 90 no_gpu_slices
	go_driver_was_here 0 "$layout"
	[[ $(container_is a) == "$a" && $(container_is b) == "$b" ]]
	install_gpus 4
	eventually 10 prepared 2
	[[ $(judge 0) == "$layout" ]]
	[[ $(container_is a) == "$a" && $(container_is b) == "$b" ]]
	# A container that starts again finds what its CDI file names.
	kill -KILL $(pids_of_pod "$ns" a 'sleep')
	eventually 60 other_container a "$a"
	[[ $(gpus_in a) == "$uuid" ]]
	# Who comes gets another GPU, and who goes gives his back; each write is one that the Go driver would take.
	gpu_pod c '[{name: gpu, resourceClaimTemplateName: one}]' '' 0
	running c
	[[ $(gpus_in c) != "$uuid" && $(gpus_in c) != "$(gpus_in b)" ]]
	[[ $(judge 0) == "$layout" ]]
	k -n "$ns" delete pod a >/dev/null
	eventually 10 prepared 2
	[[ $(judge 0) == "$layout" ]]
	k -n "$ns" delete pod b c >/dev/null
	eventually 30 no_gpu_files 0
	eventually 10 prepared 0
	# An empty file is anybody's; the Go driver's hook is nobody's to remove.
	judge 0
	"$cluster/node" 0 test -x "$gpu_plugin_dir/nvidia-cdi-hook"
	"$cluster/node" 0 rm "$gpu_plugin_dir/nvidia-cdi-hook"
}

@test "from a released Go driver (up to 0.4), under running pods, in its form of the checkpoint" { moves released; }
@test "from the Go driver's main branch (0.5), under running pods, in its form of the checkpoint" { moves main; }
