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

# These are the files that test_record.c compares with the plugin's output, byte by byte.
@test "the code of the Go driver 0.5.0 reads this driver's checkpoint, but neither the form of its main branch nor one with a changed byte" {
	local golden=$checkout/test/unit/gpu_plugin/golden file
	for file in "$golden"/{all,one,rebuilt}-released.json; do [[ $(judged <"$file") == released ]]; done
	for file in "$golden"/{all,one}-main.json; do [[ $(judged <"$file") == main ]]; done
	run ! judged < <(sed 's/gpu-0/gpu-1/' "$golden/one-released.json")
	[[ $(go_main write <"$golden/one-released.json" | judged) == main ]]
	[[ $(go_gpu rewrite <"$golden/one-released.json" | judged) == released ]]
}

# failure: the GPU plugin writes its first checkpoint -> the Go driver 0.5.0 reads it
@test "on a new node the checkpoint is one that the Go driver 0.5.0 reads with its own code" {
	gpu_template one
	gpu_pod fresh '[{name: gpu, resourceClaimTemplateName: one}]' '' 0
	running fresh
	[[ $(judge 0) == released ]]
	k -n "$ns" delete pod fresh >/dev/null
	eventually 30 no_gpu_files 0
	eventually 10 judged_is 0 any # the plugin writes the checkpoint after it has removed the file
}

# Two pods on each of two nodes come from the Go driver. On each node, one restarts its container and ends, and
# another pod starts. After the first claim that is prepared here, the file is one that releases of the Go driver
# read.
# failure: helm upgrade replaces the Go driver under GPU pods -> they continue, and releases read the
#   checkpoint
# bats test_tags=long
@test "a released Go driver and a build of its main branch are replaced under running pods, and the checkpoint becomes one that releases read" {
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
	# The plugin is stopped, and the pods continue.
	with_driver 4 --set resources.gpus.enabled=false
	eventually 60 no_gpu_plugin
	for k in 0 1; do go_driver_was_here $k "${layouts[k]}"; done
	all_as_they_were
	install_gpus 4
	for k in 0 1; do
		eventually 30 prepared $k 2
	done
	all_as_they_were
	# A restarted container finds the files that its CDI file names.
	for k in 0 1; do kill -KILL $(pids_of_pod "$ns" a$k 'sleep'); done
	for k in 0 1; do
		eventually 60 other_container a$k "${was[a$k]}"
		[[ $(gpus_in a$k) == "${uuid[a$k]}" ]]
	done
	# A new pod gets another GPU, and a pod that ends releases its own. After each write the Go driver can read the
	# file.
	for k in 0 1; do gpu_pod c$k '[{name: gpu, resourceClaimTemplateName: one}]' '' $k; done
	for k in 0 1; do
		running c$k
		[[ $(gpus_in c$k) != "${uuid[a$k]}" && $(gpus_in c$k) != "${uuid[b$k]}" ]]
		[[ $(judge $k) == released ]]
	done
	k -n "$ns" delete pod a0 a1 >/dev/null
	for k in 0 1; do
		eventually 10 prepared $k 2
		[[ $(judge $k) == released ]]
	done
	k -n "$ns" delete pod b0 b1 c0 c1 >/dev/null
	for k in 0 1; do
		eventually 30 no_gpu_files $k
		eventually 10 prepared $k 0
		# Every Go driver reads an empty file. The hook of the Go driver is never removed.
		[[ $(judge $k) == any ]]
		"$cluster/node" $k test -x "$gpu_plugin_dir/nvidia-cdi-hook"
		"$cluster/node" $k rm "$gpu_plugin_dir/nvidia-cdi-hook"
	done
}
