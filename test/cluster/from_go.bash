# SPDX-License-Identifier: Apache-2.0
# Helpers for tests that begin with the Go driver. A .bats file loads this after driver.bash, and sets ns to the
# namespace of its workloads. The Go driver is simulated: its chart (go-chart), and its programs (programs/go-driver),
# which read and write what the real ones were seen to read and write, with Kubernetes' own types.
driver_ns=dra-driver-nvidia-gpu

helm() { "$cluster/helm" "$@"; }
kubectl() { k "$@"; }
go_chart() { echo "$BATS_FILE_TMPDIR/go-chart"; }
go_driver() { (. "$cluster/lib.bash" && "$go_driver_bin/go-driver" "$@"); }

# The image has the name of the real one: the daemons' Pods refer to it.
go_image() {
	local root=$BATS_FILE_TMPDIR/go-image program
	mkdir -p "$root"/usr/bin "$root"/etc "$root"/tmp
	cp "$(. "$cluster/lib.bash" && echo "$go_driver_bin/go-driver")" "$root/usr/bin/go-driver"
	for program in controller kubelet-plugin daemon; do ln -s go-driver "$root/usr/bin/compute-domain-$program"; done
	# nvidia-imex comes from the driver root, and needs these libraries.
	ldd "${CD_STANDIN_DIR:-$checkout/build/test/standin}/nvidia-imex" | grep -o '/[^ ]*' | xargs cp --parents -Lt "$root"
	"$checkout/scripts/mkimage" "$root" registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.5.0 "$BATS_FILE_TMPDIR/go-driver.tar"
	"$cluster/image" "$BATS_FILE_TMPDIR/go-driver.tar"
}

# go_is_here: installs the Go driver on four nodes, and removes this driver. go_is_gone: removes the Go driver, with
# everything in the namespace $ns.
go_is_here() {
	"$cluster/up" 4
	"$cluster/image" "${CD_IMAGE:-$checkout/build/image.tar}"
	go_image
	helm uninstall compute-domains --namespace nvidia-compute-domains --ignore-not-found --wait --timeout 180s
	k delete crd computedomains.resource.nvidia.com computedomaincliques.resource.nvidia.com computedomainfabrics.resource.nvidia.com --ignore-not-found
	cp -r "$cluster/go-chart" "$(go_chart)"
	cp "$checkout/test/chart/values/go-chart-defaults.yaml" "$(go_chart)/values.yaml"
	# As the Go driver's documentation states: GPUs and ComputeDomains in one release.
	helm install dra "$(go_chart)" --namespace $driver_ns --create-namespace --set gpuResourcesEnabledOverride=true \
		--values "$cluster/driver-values.yaml" --set image.repository=registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu \
		--wait --timeout 120s >/dev/null
	eventually 60 slices_published 4
	k create namespace $ns
}
go_is_gone() {
	k -n $ns delete computedomains,pods --all --wait=false --grace-period=0 >/dev/null 2>&1 || true
	k delete namespace $ns --timeout=90s || true
	# A test may have failed after it went back to the Go driver. The Go chart removes no daemons of this driver, and
	# without this driver's plugin no daemon could end.
	if [[ $(helm list --namespace $driver_ns -o json | jq -r '.[] | select(.name == "dra").chart') != compute-domains-* ]]; then
		k -n $driver_ns delete daemonset,resourceclaimtemplate compute-domain-daemon --ignore-not-found --cascade=foreground --timeout=60s || true
	fi
	helm uninstall dra --namespace $driver_ns --wait --timeout 180s || true
	k delete deviceclass gpu.nvidia.com mig.nvidia.com vfio.gpu.nvidia.com --ignore-not-found # left by a test that failed
	k delete namespace $driver_ns --ignore-not-found --timeout=60s || true
	# Without this driver, nobody removes the ComputeDomains that ended after a rollback.
	k delete computedomainfabrics --all --timeout=60s || true
}

# go_daemons [NODE]: prints name, UID, restarts and image of each Pod of the Go driver's daemons, one per line. This
# driver's daemons also have the label while they serve a ComputeDomain.
go_daemons() (
	set -o pipefail
	k -n $driver_ns get pods -l "$uid_label,app!=imex-daemon" ${1:+--field-selector "spec.nodeName=node-$1"} \
		-o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount} {.spec.containers[0].image}{"\n"}{end}' | sort
)
is_go() { [[ $(go_daemons "$1") == *"/dra-driver-nvidia-gpu:"* ]]; }
no_go_daemon() { prints_nothing go_daemons "$@"; }
# go_imex_pid NODE: prints the process ID of the nvidia-imex that the Go driver's daemon runs. Fails if none runs.
go_imex_pid() {
	local pod
	for pod in $(go_daemons "$1" | cut -d' ' -f1); do pids_of_pod $driver_ns "$pod" nvidia-imex; done | grep .
}
# own_daemons_are NODES: exactly these nodes, "node-2 node-3", have a daemon of this driver that is not being deleted.
own_daemons_are() { [[ $(reported_daemons | jq -r '[.[] | select(.deleted | not).node] | sort | join(" ")') == "$1" ]]; }
label_gone() { prints_nothing k get node "node-$1" -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}"; }
