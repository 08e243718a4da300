# SPDX-License-Identifier: Apache-2.0
# The archives of the kubectl plugin, its man page, its completions, and its manifest for krew.
bats_require_minimum_version 1.5.0

setup_file() {
	export checkout plugins version own work
	checkout=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	plugins=$checkout/build/plugin version=v$(<"$checkout/VERSION") own=$(dpkg --print-architecture) work=$BATS_FILE_TMPDIR
	local arch
	for arch in amd64 arm64; do
		mkdir "$work/$arch"
		tar -xzf "$(archive $arch)" -C "$work/$arch"
	done
	export PATH=$work/$own:$PATH
}
archive() { echo "$plugins/kubectl-compute_domains-$version-linux-$1.tar.gz"; }
machine() { readelf -h "$1" | sed -n 's/ *Machine: *//p'; }

@test "the program is static, smaller than 2 MB, and starts on both architectures" {
	local arch program wanted
	for arch in amd64 arm64; do
		program=$work/$arch/kubectl-compute_domains
		[[ $arch == arm64 ]] && wanted=AArch64 || wanted='Advanced Micro Devices X86-64'
		[[ $(machine "$program") == "$wanted" ]]
		[[ -z $(readelf -dW "$program" | grep NEEDED) && $(readelf -lW "$program") != *interpreter* ]]
		[[ $(stat -c %s "$program") -lt 2000000 ]]
		cmp "$checkout/LICENSE" "$work/$arch/LICENSE"
	done
	kubectl-compute_domains --help | grep -qF 'Usage: kubectl compute-domains'
	"$("$checkout/scripts/qemu" arm64)" "$work/arm64/kubectl-compute_domains" --help | grep -qF 'Usage: kubectl compute-domains'
}

@test "krew installs the plugin from the manifest and the archive, and refuses another archive" {
	local other=arm64
	[[ $own == amd64 ]] || other=amd64
	"$checkout/test/cluster/tools" krew
	PATH=$(. "$checkout/test/cluster/lib.bash" && echo "$krew_bin"):$PATH
	export KREW_ROOT=$work/krew
	krew install --manifest "$plugins/compute-domains.yaml" --archive "$(archive "$own")" </dev/null
	cmp "$work/krew/bin/kubectl-compute_domains" "$work/$own/kubectl-compute_domains"
	"$work/krew/bin/kubectl-compute_domains" explain PeersMissing | grep -q '^PeersMissing'
	rm -rf "$work/krew"
	run ! krew install --manifest "$plugins/compute-domains.yaml" --archive "$(archive $other)" </dev/null
	[[ $output == *'checksum does not match'* ]]
}

@test "the manifest has the archive of each architecture, and the names that krew requires" {
	python3 - "$plugins" "$version" <<-'END'
		import hashlib, sys, yaml
		folder, version = sys.argv[1:]
		manifest = yaml.safe_load(open(f"{folder}/compute-domains.yaml"))
		spec = manifest["spec"]
		assert manifest["metadata"]["name"] == "compute-domains" and spec["version"] == version
		assert len(spec["shortDescription"]) <= 50 and not spec["shortDescription"].endswith(".")
		assert sorted(p["selector"]["matchLabels"]["arch"] for p in spec["platforms"]) == ["amd64", "arm64"]
		for platform in spec["platforms"]:
		    archive = platform["uri"].rsplit("/", 1)[1]
		    assert hashlib.sha256(open(f"{folder}/{archive}", "rb").read()).hexdigest() == platform["sha256"], archive
	END
}

@test "the same programs give the same archives" {
	mkdir "$work/again"
	cp "$plugins"/kubectl-compute_domains-linux-* "$work/again/"
	"$checkout/scripts/plugin" --url https://example.com/files "$work/again"
	cmp "$work/again/kubectl-compute_domains-$version-linux-$own.tar.gz" "$(archive "$own")"
	grep -qF "uri: https://example.com/files/kubectl-compute_domains-$version-linux-$own.tar.gz" "$work/again/compute-domains.yaml"
}

@test "the man page describes each command, without warnings of the formatter" {
	local page=$work/$own/kubectl-compute_domains.1 command
	for command in $(kubectl-compute_domains completion words -- '' | grep -v '^:' | cut -f1); do
		grep -qE "^\.SS \"$command[ \"]" "$page" || { echo "not in the man page: $command"; return 1; }
	done
	type groff >/dev/null 2>&1 || skip "groff is not installed"
	[[ -z $(groff -man -Tutf8 -ww -z "$page" 2>&1 | tee /dev/stderr) ]]
}

# completed WORD...: prints the candidates of bash for the last word, with a completion of kubectl that was loaded before.
completed() {
	bash -s "$@" <<-'END'
		of_kubectl() { COMPREPLY=(kubectl-itself); }
		complete -F of_kubectl kubectl
		source <(kubectl-compute_domains completion bash)
		source <(kubectl-compute_domains completion bash) # again, as in a new .bashrc
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_kubectl_compute_domains "$1" "${!#}" "${COMP_WORDS[$# - 2]}"
		echo "${COMPREPLY[*]}"
	END
}
@test "bash completes commands, options and arguments behind kubectl, and leaves kubectl's own words to kubectl" {
	[[ " $(completed kubectl compute-domains '') " == *' explain '*' completion '* ]]
	[[ $(completed kubectl compute-domains explain PeersM) == PeersMissing ]]
	[[ $(completed kubectl compute-domains completion '') == 'bash zsh fish helper' ]]
	[[ $(completed kubectl compute-domains explain --no) == --no-color ]]
	[[ $(completed kubectl compute-domains explain -o '') == 'table json' ]]
	[[ $(completed kubectl-compute_domains expl) == explain ]]
	[[ $(completed kubectl -v get '') == kubectl-itself ]]
	[[ $(completed kubectl get compute-domains '') == kubectl-itself ]]
}

@test "the helper prints the candidates in the form that kubectl expects" {
	local helper=$work/kubectl_complete-compute_domains
	kubectl-compute_domains completion helper >"$helper"
	chmod +x "$helper"
	[[ $("$helper" explain PeersM) == $'PeersMissing\n:4' ]]
	[[ $("$helper" --kubeconfig '') == :0 ]]
	"$helper" '' | grep -q $'^explain\t..*'
}

@test "fish and zsh accept their scripts" {
	type fish zsh >/dev/null 2>&1 || skip "fish or zsh is not installed"
	run -0 fish -c 'kubectl-compute_domains completion fish | source; complete -C "kubectl compute-domains explain PeersM"'
	echo "$output"
	[[ $output == PeersMissing ]]
	zsh -f -c 'autoload -U compinit; compinit -u -D; source <(kubectl-compute_domains completion zsh); [[ $_comps[kubectl] == _kubectl_compute_domains ]]'
}
