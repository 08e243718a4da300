# SPDX-License-Identifier: Apache-2.0
# Shared by the chart's tests. They need helm (the one that HELM names, or that of the test cluster), promtool (likewise) and jq.
checkout=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
chart=$checkout/deploy/chart/compute-domains
# The only value without a default.
image=(--values "$checkout/test/chart/values/image.yaml")

helm() {
	local helm=${HELM:-}
	[[ $helm ]] || helm=$(type -P helm) || helm=$(. "$checkout/test/cluster/lib.bash" && echo "$helm_bin/helm")
	GOGC=1000 "$helm" "$@" # it runs for less than a second
}

promtool() {
	local promtool
	promtool=$(type -P promtool) || promtool=$(. "$checkout/test/cluster/lib.bash" && echo "$prometheus_root/usr/bin/promtool")
	"$promtool" "$@"
}

# to_json FILE: its YAML documents as a JSON array.
to_json() {
	helm template to-json "$checkout/test/chart/to-json" --set-file documents="$1" | sed '/^---$/d; /^# Source:/d' |
		jq .items
}

# render [HELM ARGUMENT...]: the chart's objects as a JSON array in $objects, or helm's error in $output.
render() {
	local yaml=$BATS_TEST_TMPDIR/rendered.yaml
	run_helm "$@" >"$yaml" 2>"$BATS_TEST_TMPDIR/stderr" || {
		cat "$BATS_TEST_TMPDIR/stderr"
		return 1
	}
	objects=$(to_json "$yaml")
	[[ $objects ]] # jq is content with nothing at all
	# The API server keeps one of two duplicates, and a later change loses the other.
	is 'all(.[].spec.template.spec | select(.) | .containers[], .initContainers[]?; [.env[]?.name] | length == (unique | length))'
}

run_helm() {
	helm template compute-domains "$chart" --namespace nvidia-compute-domains --kube-version 1.37.0 "${image[@]}" "$@"
}

# Functions for filters of the objects.
words='
	def kind($k): map(select(.kind == $k));
	def kind($k; $l): map(select(.kind == $k or .kind == $l));
	def named($k; $n): kind($k)[] | select(.metadata.name == $n);
	def controller: named("Deployment"; "compute-domains-controller").spec.template;
	def plugin: named("DaemonSet"; "compute-domains-kubelet-plugin").spec.template;
	def env($n): .spec.containers[0].env[] | select(.name == $n) | .value;'

# is FILTER [JQ ARGUMENT...]: whether the jq filter is true of the rendered objects.
is() {
	local filter=$1
	shift
	jq --exit-status "$@" "$words $filter" <<<"$objects" >/dev/null || {
		echo "not so: $filter"
		return 1
	}
}

# refused SENTENCE [HELM ARGUMENT...]: the chart does not render, and the error contains the sentence.
refused() {
	local sentence=$1
	shift
	! run_helm "$@" >"$BATS_TEST_TMPDIR/out" 2>&1 || {
		echo "rendered"
		return 1
	}
	grep --fixed-strings --quiet -- "$sentence" "$BATS_TEST_TMPDIR/out" || {
		cat "$BATS_TEST_TMPDIR/out"
		return 1
	}
}

# notes [HELM ARGUMENT...]: the notes after an installation, which helm prints only with a cluster.
notes() {
	local copy=$BATS_TEST_TMPDIR/with-notes
	rm -rf "$copy"
	cp -r "$chart" "$copy"
	mv "$copy/templates/NOTES.txt" "$copy/notes.txt"
	echo '{"notes": {{ tpl (.Files.Get "notes.txt") . | toJson }}}' >"$copy/templates/notes.yaml"
	chart=$copy run_helm --show-only templates/notes.yaml "$@" >"$copy.yaml" || return
	sed '/^---$/d; /^# Source:/d' "$copy.yaml" | jq -er .notes
}
# notes_lack TEXT [HELM ARGUMENT...]: there are notes, and they do not contain the text.
notes_lack() {
	local text
	text=$(notes "${@:2}") && [[ -n $text && $text != *"$1"* ]]
}
