# SPDX-License-Identifier: Apache-2.0
# Helpers for tests in which GPUs move from the Go driver to this one and back. A .bats file loads this after
# driver.bash and gpus.bash. The files of the Go driver on a node are made from those of this driver: the checkpoint
# without names, written by the code of release 0.5.0 (go-gpu, see test/cluster/tools) or in the form of its main
# branch (go_checkpoint.py), the CDI file without this driver's comment, and the hook under the Go driver's name.

# go_gpu judge|rewrite <checkpoint >checkpoint: prints the checkpoint as the code of the Go driver 0.5.0 writes it.
# Fails if that driver would not start with it.
go_gpu() {
	local dir
	dir=$(mktemp -d "$BATS_TEST_TMPDIR/go-gpu.XXXX")
	cat >"$dir/checkpoint.json"
	go-gpu "$1" "$dir" >&2 || return 1
	cat "$dir/checkpoint.json"
}
go_main() { python3 -B "$cluster/go_checkpoint.py" "$@"; }
# judged <checkpoint: prints which Go driver starts with this checkpoint: released (0.5.0), main (builds of its main
# branch), or any, if it contains no claim.
judged() {
	local text drivers=()
	text=$(cat)
	go_gpu judge <<<"$text" >/dev/null 2>&1 && drivers+=(released)
	go_main judge < <(printf %s "$text") 2>/dev/null && drivers+=(main)
	case ${drivers[*]} in
	'released main') echo any ;;
	'') echo "no Go driver reads this checkpoint: $text" >&2; return 1 ;;
	*) echo "${drivers[*]}" ;;
	esac
}
judge() { gpu_checkpoint "$1" | judged; }
judged_is() { [[ $(judge "$1") == "$2" ]]; }
# go_driver_was_here K LAYOUT: turns the files on the node into files of the Go driver.
go_driver_was_here() {
	local k=$1 file=$BATS_TEST_TMPDIR/go-checkpoint.json
	case $2 in
	released) gpu_checkpoint "$k" | go_gpu rewrite >"$file" ;;
	main) gpu_checkpoint "$k" | go_main write >"$file" ;;
	esac
	[[ $(judged <"$file") == "$2" ]]
	"$cluster/node" "$k" sh -c 'cat >"$1/checkpoint.json"' sh "$gpu_plugin_dir" <"$file"
	"$cluster/node" "$k" sh -c 'cd "$1" && for hook in cdi-hook-*; do mv "$hook" nvidia-cdi-hook; done
		for cdi in /var/run/cdi/k8s.gpu.nvidia.com-claim_*; do sed -i "/^#/d; s|$1/cdi-hook-[0-9a-f]*|$1/nvidia-cdi-hook|g; s|\"cdi-hook-[0-9a-f]*\"|\"nvidia-cdi-hook\"|g" "$cdi"; done' \
		sh "$gpu_plugin_dir"
}
container_is() { k -n "$ns" get pod "$1" -o jsonpath='{.metadata.uid} {.status.containerStatuses[0].containerID}'; }
other_container() { [[ $(container_is "$1") != "$2" && $(k -n "$ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].ready}') == true ]]; }
# prepared K N: the plugin of the node reports N prepared GPUs.
prepared() { "$cluster/node" "$1" curl -s "http://$(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.podIP}'):8080/metrics" | grep -q "^nvidia_dra_prepared_devices{.*device_type=\"gpu\".*} $2$"; }
no_gpu_plugin() {
	local containers
	containers=$(k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin -o jsonpath='{.items[*].spec.containers[*].name}') && [[ " $containers " != *' gpus '* ]]
}
