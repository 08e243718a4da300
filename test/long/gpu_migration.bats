#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Twenty pods with GPUs on five nodes while the Go driver is replaced and comes back
# (test/cluster/gpu_migration.bash).

load ../cluster/driver
load ../cluster/gpus
load ../cluster/gpu_migration

setup_file() { with_gpus 5; }
teardown_file() { device_plugin; }
setup() { ns_begin; }
teardown() { ns_end; }

layouts=(released released main main main)

# restart K I: restarts the container of a pod. It finds the hook that its CDI file names, and has its GPU again; no
# other container restarts.
restart() {
	local pod=p$1-$2
	kill -KILL $(pids_of_pod "$ns" "$pod" 'sleep')
	eventually 60 other_container "$pod" "${was[$pod]}"
	[[ $(gpus_in "$pod") == "${uuid[$pod]}" ]]
	was[$pod]=$(container_is "$pod")
}
all_as_they_were() {
	local pod
	for pod in "${!was[@]}"; do [[ $(container_is "$pod") == "${was[$pod]}" ]] || return 1; done
}
# still_read K: the earlier Go driver can read the checkpoint; once this driver has written it, every release can.
still_read() { [[ $(judge "$1") =~ ^(released|${layouts[$1]})$ ]]; }
gpus_off() {
	with_driver 5 --set resources.gpus.enabled=false
	eventually 60 no_gpu_plugin
}
gpus_on() {
	local k
	install_gpus 5
	for k in "${!layouts[@]}"; do
		eventually 30 prepared "$k" 4
		still_read "$k"
	done
}

# failure: the driver is upgraded, rolled back and upgraded under GPU pods -> all pods continue, and can end
@test "twenty GPU pods survive the upgrade from a released Go driver and from its main branch, the way back and the upgrade again; a container of each node restarts at every stage, no other does, and all pods can end" {
	local k i pod
	local -A was uuid
	gpu_template one
	for k in 0 1 2 3 4; do
		for i in 0 1 2 3; do gpu_pod p$k-$i '[{name: gpu, resourceClaimTemplateName: one}]' '' $k; done
	done
	for k in 0 1 2 3 4; do
		for i in 0 1 2 3; do
			pod=p$k-$i
			running $pod
			was[$pod]=$(container_is $pod)
			uuid[$pod]=$(gpus_in $pod)
		done
	done
	[[ $(printf '%s\n' "${uuid[@]}" | sort -u | wc -l) == 20 ]]
	# The files that the Go driver leaves.
	gpus_off
	for k in "${!layouts[@]}"; do
		go_driver_was_here "$k" "${layouts[k]}"
		restart "$k" 0
	done
	all_as_they_were
	gpus_on
	for k in "${!layouts[@]}"; do restart "$k" 1; done
	all_as_they_were
	# Back again: the Go driver accepts the files on the nodes.
	gpus_off
	for k in "${!layouts[@]}"; do
		still_read "$k"
		restart "$k" 2
	done
	all_as_they_were
	gpus_on
	for k in "${!layouts[@]}"; do restart "$k" 3; done
	all_as_they_were
	k -n "$ns" delete pods --all >/dev/null
	for k in "${!layouts[@]}"; do
		eventually 60 no_gpu_files "$k"
		eventually 10 prepared "$k" 0
		"$cluster/node" "$k" rm "$gpu_plugin_dir/nvidia-cdi-hook"
	done
}
