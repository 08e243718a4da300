# SPDX-License-Identifier: Apache-2.0
# What tests share in which GPUs move from the Go driver to this one and back; a .bats file loads it after driver.bash and gpus.bash. What the
# Go driver leaves on a node is made of what ours has left there: its checkpoint, in the form of its releases or of its main branch, without
# names and with its checksums (go_checkpoint.py, which takes the files that a real one wrote), its CDI file without our comment, and its hook by
# its name.

judge() { gpu_checkpoint "$1" | python3 -B "$cluster/go_checkpoint.py" judge; }
checkpoint_of() { python3 -B "$cluster/go_checkpoint.py" "$@"; }
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
