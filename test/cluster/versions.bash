# SPDX-License-Identifier: Apache-2.0
# Helpers for tests that run with several versions of Kubernetes (make matrix). driver.bash and policy.bash load this,
# and define k.

# resource_versions: prints the versions of resource.k8s.io that the cluster serves, newest first. resource_version:
# prints the newest.
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

# in_api_version VERSION REQUESTS: prints the requests as that version of the API writes them. v1beta1 has no "exactly".
in_api_version() {
	case $1 in
	v1beta1) sed -E 's/exactly: \{(([^{}]|\{([^{}]|\{[^{}]*\})*\})*)\}/\1/g' <<<"$2" ;;
	*) echo "$2" ;;
	esac
}

# at_least MINOR: the cluster has this version of Kubernetes or a newer one. since MINOR REASON: otherwise the test is
# skipped, for this reason.
at_least() { (($(k version -o json | jq -r '.serverVersion.minor | tonumber') >= $1)); }
since() { at_least "$1" || skip "$2"; }
