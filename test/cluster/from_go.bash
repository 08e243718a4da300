# SPDX-License-Identifier: Apache-2.0
# For tests that begin with the Go driver; a .bats file loads it after driver.bash, and says in ns where its workloads are. The Go driver is a
# stand-in: its chart's release (go-chart), and its programs (programs/go-driver), which read and write with Kubernetes' own types what the real
# ones were seen to.
driver_ns=dra-driver-nvidia-gpu

helm() { "$cluster/helm" "$@"; }
kubectl() { k "$@"; }
go_chart() { echo "$BATS_FILE_TMPDIR/go-chart"; }
go_driver() { (. "$cluster/lib.bash" && "$own_bin/go-driver" "$@"); }

# The image of the real one, by its name: daemons that ours takes over have it in their pods.
go_image() {
	local root=$BATS_FILE_TMPDIR/go-image program
	mkdir -p "$root"/usr/bin "$root"/etc "$root"/tmp
	cp "$(. "$cluster/lib.bash" && echo "$own_bin/go-driver")" "$root/usr/bin/go-driver"
	for program in controller kubelet-plugin daemon; do ln -s go-driver "$root/usr/bin/compute-domain-$program"; done
	# For nvidia-imex, which comes from the driver's root.
	ldd "${CD_STANDIN_DIR:-$checkout/build/test/standin}/nvidia-imex" | grep -o '/[^ ]*' | xargs cp --parents -Lt "$root"
	"$checkout/scripts/mkimage" "$root" registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.5.0 "$BATS_FILE_TMPDIR/go-driver.tar"
	"$cluster/image" "$BATS_FILE_TMPDIR/go-driver.tar"
}

# go_is_here: the Go driver is installed, on four nodes, and nothing of ours. go_is_gone: the release is, with all that is in the namespace $ns.
go_is_here() {
	"$cluster/up" 4
	"$cluster/image" "${CD_IMAGE:-$checkout/build/image.tar}"
	go_image
	helm uninstall compute-domains --namespace nvidia-compute-domains --ignore-not-found --wait --timeout 60s
	k delete crd computedomains.resource.nvidia.com computedomaincliques.resource.nvidia.com --ignore-not-found
	cp -r "$cluster/go-chart" "$(go_chart)"
	cp "$checkout/test/chart/values/go-chart-defaults.yaml" "$(go_chart)/values.yaml"
	# As the Go driver's own page says, GPUs and ComputeDomains in one release.
	helm install dra "$(go_chart)" --namespace $driver_ns --create-namespace --set gpuResourcesEnabledOverride=true \
		--values "$cluster/driver-values.yaml" --set image.repository=registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu \
		--wait --timeout 120s >/dev/null
	eventually 60 slices_published 4
	k create namespace $ns
}
go_is_gone() {
	k -n $ns delete computedomains,pods --all --wait=false --grace-period=0 >/dev/null 2>&1 || true
	k delete namespace $ns --timeout=90s || true
	helm uninstall dra --namespace $driver_ns --wait --timeout 60s || true
	k delete deviceclass gpu.nvidia.com mig.nvidia.com vfio.gpu.nvidia.com --ignore-not-found # kept by a test that has failed
	k delete namespace $driver_ns --ignore-not-found --timeout=60s || true
}

# daemons [NODE]: the IMEX daemons' pods, of either driver: name, UID, restarts and image, a line each.
daemons() {
	k -n $driver_ns get pods -l $uid_label ${1:+--field-selector "spec.nodeName=node-$1"} \
		-o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount} {.spec.containers[0].image}{"\n"}{end}' | sort
}
is_ours() { [[ $(daemons "$1") == *" compute-domains/compute-domains:"* ]]; }
is_go() { [[ $(daemons "$1") == *"/dra-driver-nvidia-gpu:"* ]]; }
no_daemon() { [[ -z $(daemons "$1") ]]; }
label_gone() { [[ -z $(k get node "node-$1" -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") ]]; }
