#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GPUs move from the Go driver to this one under running pods, and back (gpu_migration.bash).

bats_require_minimum_version 1.5.0
load driver
load gpus
load gpu_migration

setup_file() { with_gpus 4; }
teardown_file() { device_plugin; }
setup() { ns_begin; }
teardown() { ns_end; }

@test "the judge of checkpoints knows the files of the real Go driver, and one byte that differs" {
	local golden=$checkout/test/unit/gpu_plugin/golden file
	for file in "$golden"/{all,one,checkpoint-go}-*.json; do checkpoint_of judge <"$file"; done
	[[ $(checkpoint_of judge <"$golden/all-main.json") == main && $(checkpoint_of judge <"$golden/all-released.json") == released ]]
	run ! checkpoint_of judge < <(sed 's/gpu-0/gpu-1/' "$golden/one-main.json")
	[[ $(checkpoint_of released <"$golden/one-main.json" | checkpoint_of judge) == released ]]
}

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
