# SPDX-License-Identifier: Apache-2.0
# gates N LIST: restarts Kubernetes on N nodes with these feature gates, and with the API of PodGroups; LIST "": with
# the default.
gates() {
	local n=$1 name
	export CD_FEATURE_GATES=$2
	CD_APISERVER_FLAGS=${2:+--runtime-config=scheduling.k8s.io/v1beta1=true} "$cluster/apiserver" restart
	for name in scheduler controller-manager $(seq -f 'kubelet-%.0f' 0 $((n - 1))); do
		"$cluster/service" "$name" restart
	done
	unset CD_FEATURE_GATES
	eventually 60 slices_published "$n"
}
