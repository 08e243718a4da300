#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pods with GPUs while their plugin is killed, and a GPU that is lost. A kubelet retries an interrupted or failed call
# only after 60 to 90 s, so this takes minutes.

load ../cluster/driver
load ../cluster/gpus

setup_file() { with_gpus 4; }
teardown_file() { device_plugin; }
setup() { ns_begin; }
teardown() { ns_end; }

# A plugin that was killed before may be waiting for its restart.
kill_gpu_plugins() {
	local i
	for i in 0 1 2 3; do kill -KILL $(gpu_plugin_pids $i) || true; done
}
# gpu_plugin_restarts: prints how often these containers of all nodes were restarted.
gpu_plugin_restarts() {
	k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin -o json |
		jq '[.items[].status.containerStatuses[] | select(.name == "gpus").restartCount] | add'
}
# failure: the GPU plugin is killed repeatedly while pods come and go -> all pods get their GPU
@test "the plugin is killed repeatedly while pods come and go: all of them get their GPU, and nothing is left" {
	gpu_template one
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: batch/v1
		kind: Job
		metadata: {name: load}
		spec:
		  completions: 24
		  parallelism: 8
		  template:
		    spec:
		      restartPolicy: Never
		      terminationGracePeriodSeconds: 0
		      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
		      containers:
		      - {name: main, image: $gpu_image, imagePullPolicy: Never, command: [sh, -c, 'test \$(nvidia-smi -L | wc -l) = 1'], resources: {claims: [{name: gpu}]}}
	END
	local i before
	before=$(gpu_plugin_restarts)
	for i in 4 12 18; do
		eventually 120 succeeded load $i
		kill_gpu_plugins
	done
	k -n "$ns" wait --for=condition=Complete job/load --timeout=300s
	[[ $(k -n "$ns" get job load -o jsonpath='{.status.failed}') =~ ^0?$ ]]
	for i in 0 1 2 3; do eventually 60 no_gpu_files $i; done
	(($(gpu_plugin_restarts) >= before + 4)) # at least the first time, all of them run
}
succeeded() { [[ $(k -n "$ns" get job "$1" -o jsonpath='{.status.succeeded}') -ge $2 ]]; }

# failure: a GPU falls off the bus and nothing else changes -> its next pod is refused, and the GPU is withdrawn
@test "a GPU falls off the bus: its next pod is refused with the reason, the GPU is withdrawn, and offered again after a reset" {
	gpu_template lost '{requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.attributes[\"resource.kubernetes.io\"].pciBusID == \"0009:01:00.0\""}}]}}]}'
	eventually 45 offers_n 2 4
	"$cluster/gpu" 2 GPU1_FAIL_nvmlDeviceGetHandleByIndex=15
	gpu_pod a '[{name: gpu, resourceClaimTemplateName: lost}]' '' 2
	eventually 60 event_contains Pod/a 'GPU 1: nvmlDeviceGetHandleByIndex'
	eventually 30 offers_n 2 3
	[[ " $(offers 2) " != *' gpu-1 '* ]]
	k -n "$ns" delete pod a >/dev/null
	"$cluster/gpu" 2 GPU1_FAIL_nvmlDeviceGetHandleByIndex=
	eventually 120 offers_n 2 4
}
