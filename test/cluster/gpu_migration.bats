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
# prepared K N: so many GPUs are prepared on the node, by its plugin's word.
prepared() { "$cluster/node" "$1" curl -s "http://$(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.podIP}'):8080/metrics" | grep -q "^nvidia_dra_prepared_devices{.*device_type=\"gpu\".*} $2$"; }
no_gpu_plugin() { [[ -z $(k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin -o json | jq '.items[].spec.containers[] | select(.name == "gpus")') ]]; }

# Two pods on each of two nodes are taken over from the Go driver; on each one restarts its container and
# goes, another one comes, and the file stays in the form that it had.
@test "from a released Go driver (up to 0.4), and from its main branch (0.5), under running pods, in its form of the checkpoint" {
	local layouts=(released main) k pod
	local -A was uuid
	gpu_template one
	for k in 0 1; do
		for pod in a$k b$k; do gpu_pod $pod '[{name: gpu, resourceClaimTemplateName: one}]' '' $k; done
	done
	for pod in a0 b0 a1 b1; do
		running $pod
		was[$pod]=$(container_is $pod)
		uuid[$pod]=$(gpus_in $pod)
	done
	all_as_they_were() { for pod in a0 b0 a1 b1; do [[ $(container_is $pod) == "${was[$pod]}" ]] || return 1; done; }
	# The plugin is away, and pods run on.
	with_driver 4 --set resources.gpus.enabled=false
	eventually 60 no_gpu_plugin
	for k in 0 1; do go_driver_was_here $k "${layouts[k]}"; done
	all_as_they_were
	install_gpus 4
	for k in 0 1; do
		eventually 30 prepared $k 2
		[[ $(judge $k) == "${layouts[k]}" ]]
	done
	all_as_they_were
	# A container that starts again finds what its CDI file names.
	for k in 0 1; do kill -KILL $(pids_of_pod "$ns" a$k 'sleep'); done
	for k in 0 1; do
		eventually 60 other_container a$k "${was[a$k]}"
		[[ $(gpus_in a$k) == "${uuid[a$k]}" ]]
	done
	# Who comes gets another GPU, and who goes gives his back; each write is one that the Go driver would take.
	for k in 0 1; do gpu_pod c$k '[{name: gpu, resourceClaimTemplateName: one}]' '' $k; done
	for k in 0 1; do
		running c$k
		[[ $(gpus_in c$k) != "${uuid[a$k]}" && $(gpus_in c$k) != "${uuid[b$k]}" ]]
		[[ $(judge $k) == "${layouts[k]}" ]]
	done
	k -n "$ns" delete pod a0 a1 >/dev/null
	for k in 0 1; do
		eventually 10 prepared $k 2
		[[ $(judge $k) == "${layouts[k]}" ]]
	done
	k -n "$ns" delete pod b0 b1 c0 c1 >/dev/null
	for k in 0 1; do
		eventually 30 no_gpu_files $k
		eventually 10 prepared $k 0
		# An empty file is anybody's; the Go driver's hook is nobody's to remove.
		judge $k
		"$cluster/node" $k test -x "$gpu_plugin_dir/nvidia-cdi-hook"
		"$cluster/node" $k rm "$gpu_plugin_dir/nvidia-cdi-hook"
	done
}
