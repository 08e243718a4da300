# SPDX-License-Identifier: Apache-2.0
# For tests that begin with the Go driver; a .bats file loads it after driver.bash, and says in ns where its workloads are. The Go driver is a
# stand-in: its chart's release (go-chart), and its programs (programs/go-driver), which read and write with Kubernetes' own types what the real
# ones were seen to.
driver_ns=dra-driver-nvidia-gpu

helm() { "$cluster/helm" "$@"; }
kubectl() { k "$@"; }
go_chart() { echo "$BATS_FILE_TMPDIR/go-chart"; }
go_driver() { (. "$cluster/lib.bash" && "$own_bin/go-driver" "$@"); }

# The image of the real one, by its name: its daemons have it in their pods.
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
	helm uninstall compute-domains --namespace nvidia-compute-domains --ignore-not-found --wait --timeout 180s
	k delete crd computedomains.resource.nvidia.com computedomaincliques.resource.nvidia.com computedomainfabrics.resource.nvidia.com --ignore-not-found
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
	# Where a test has failed after the way back: the Go chart removes no daemon of ours, and without its plugin none could end.
	if [[ $(helm list --namespace $driver_ns -o json | jq -r '.[] | select(.name == "dra").chart') != compute-domains-* ]]; then
		k -n $driver_ns delete daemonset,resourceclaimtemplate compute-domain-daemon --ignore-not-found --cascade=foreground --timeout=60s || true
	fi
	helm uninstall dra --namespace $driver_ns --wait --timeout 180s || true
	k delete deviceclass gpu.nvidia.com mig.nvidia.com vfio.gpu.nvidia.com --ignore-not-found # kept by a test that has failed
	k delete namespace $driver_ns --ignore-not-found --timeout=60s || true
}

# go_daemons [NODE]: the Pods of the Go driver's daemons: name, UID, restarts and image, a line each. Those of ours have the label while they serve.
go_daemons() {
	k -n $driver_ns get pods -l "$uid_label,app!=imex-daemon" ${1:+--field-selector "spec.nodeName=node-$1"} \
		-o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount} {.spec.containers[0].image}{"\n"}{end}' | sort
}
is_go() { [[ $(go_daemons "$1") == *"/dra-driver-nvidia-gpu:"* ]]; }
no_go_daemon() { [[ -z $(go_daemons "$1") ]]; }
# go_imex_pid NODE: of the nvidia-imex that its daemon runs.
go_imex_pid() {
	local pod
	for pod in $(go_daemons "$1" | cut -d' ' -f1); do pids_of_pod $driver_ns "$pod" nvidia-imex; done
}
# own_daemons_are NODES: the nodes, "node-2 node-3", with a daemon of ours that is not being deleted.
own_daemons_are() { [[ $(reported_daemons | jq -r '[.[] | select(.deleted | not).node] | sort | join(" ")') == "$1" ]]; }
label_gone() { [[ -z $(k get node "node-$1" -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") ]]; }
