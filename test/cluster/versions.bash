# SPDX-License-Identifier: Apache-2.0
# For tests that several versions of Kubernetes run (make matrix): what the cluster's speaks. driver.bash and policy.bash load it; k is theirs.

# resource_versions: the versions of resource.k8s.io that the cluster serves, the newest first; resource_version: that one.
resource_versions() {
	local version served
	served=$(k api-versions)
	for version in v1 v1beta2 v1beta1; do
		! grep -qx "resource.k8s.io/$version" <<<"$served" || echo "$version"
	done
}
resource_version() {
	local versions
	versions=$(resource_versions)
	echo "${versions%%$'\n'*}"
}

# spelt VERSION REQUESTS: as that version of the API writes them; v1beta1 has no "exactly".
spelt() {
	case $1 in
	v1beta1) sed -E 's/exactly: \{(([^{}]|\{([^{}]|\{[^{}]*\})*\})*)\}/\1/g' <<<"$2" ;;
	*) echo "$2" ;;
	esac
}

# since MINOR REASON: the test does not apply to an older Kubernetes, for that reason.
since() { (($(k version -o json | jq -r '.serverVersion.minor | tonumber') >= $1)) || skip "$2"; }
