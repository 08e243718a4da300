# SPDX-License-Identifier: Apache-2.0
# scripts/release pushes to a registry on this machine and signs with keys made for the test. The image is small and built by the project's
# own scripts. The chart and the kubectl plugin are the real ones. Nothing leaves the machine.
setup_file() {
	export checkout work tree registry version
	checkout=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	work=$BATS_FILE_TMPDIR tree=$BATS_FILE_TMPDIR/tree
	"$checkout/test/cluster/tools" helm release krew
	PATH=$(. "$checkout/test/cluster/lib.bash" && echo "$helm_bin:$release_bin:$krew_bin"):$PATH
	export PATH
	version=$(<"$checkout/VERSION")

	# A copy, because the tests change CHANGELOG and VERSION.
	mkdir -p "$tree/test" "$tree/deploy"
	cp -r "$checkout"/{VERSION,CHANGELOG.md,artifacthub-repo.yml,scripts} "$tree/"
	cp -r "$checkout"/test/{cluster,scale} "$tree/test/"
	cp -r "$checkout/deploy/chart" "$tree/deploy/"
	make_image "$work/image.oci.tar" first
	for key in ours theirs; do (cd "$work" && COSIGN_PASSWORD=secret cosign generate-key-pair --output-key-prefix $key 2>&1); done
	# Also as the program of the other architecture, which is not run.
	mkdir "$work/plugin"
	for arch in amd64 arm64; do strip -o "$work/plugin/kubectl-compute_domains-linux-$arch" "$checkout/build/src/cli/kubectl-compute_domains"; done
	"$checkout/scripts/plugin" "$work/plugin"
	export COSIGN_PASSWORD=secret IMAGE=$work/image.oci.tar PLUGIN=$work/plugin

	crane registry serve --address 127.0.0.1:0 >"$work/registry.log" 2>&1 3>&- &
	echo $! >"$work/registry.pid"
	port=$(timeout 20 tail -f -n +1 "$work/registry.log" 3>&- | sed -n 's/.*serving on port //p;/serving/q')
	registry=127.0.0.1:$port
}
teardown_file() { kill "$(<"$work/registry.pid")"; }

# make_image OUT TEXT: an image for two architectures, with TEXT in it.
make_image() {
	local arch root
	for arch in amd64 arm64; do
		root=$work/root-$arch
		mkdir -p "$root/usr/share/sbom"
		echo "$2" >"$root/usr/share/text"
		jq -n --arg arch "$arch" --arg version "$version" '{ spdxVersion: "SPDX-2.3", name: "compute-domains-\($version)-\($arch)", packages: [] }' \
			>"$root/usr/share/sbom/compute-domains.spdx.json"
		IMAGE_ARCH=$arch IMAGE_USER=65532:65532 IMAGE_LABELS="{\"org.opencontainers.image.version\": \"$version\"}" \
			"$checkout/scripts/mkimage" "$root" "compute-domains/compute-domains:v$version" "$work/$arch.tar"
	done
	"$checkout/scripts/mkindex" "$1" "$work/amd64.tar" "$work/arm64.tar"
}
# release ARGUMENT... REPOSITORY: with our key, and without the public log.
release() { OUT=$work/out "$tree/scripts/release" --plain-http --no-log --key "$work/ours.key" "$@"; }
verify() { cosign verify --key "$work/$1.pub" --insecure-ignore-tlog "$2" >"$work/verified" 2>"$work/complaint" </dev/null; }
digest_of() { sed -n "s|^$1 ||p" "$work/out/digests"; }
refused() {
	echo "$output"
	[[ $status -eq 1 && $output == *"$1"* ]]
}

@test "a release has the image for both architectures, and the chart that installs it" {
	release "$registry/one/compute-domains"
	[[ $(crane digest "$registry/one/compute-domains:v$version") == "$(tar -xOf "$IMAGE" index.json | jq -r '.manifests[0].digest')" ]]
	local arch
	for arch in amd64 arm64; do
		crane config --platform "linux/$arch" "$registry/one/compute-domains:v$version" | jq -e --arg arch "$arch" '.architecture == $arch'
	done
	helm template cd "oci://$registry/one/compute-domains/charts/compute-domains" --plain-http --version "$version" --namespace driver \
		--kube-version 1.34.0 >"$work/rendered"
	grep -q "image: \"\?$registry/one/compute-domains:v$version" "$work/rendered"
	helm show chart "oci://$registry/one/compute-domains/charts/compute-domains" --plain-http --version "$version" >"$work/Chart.yaml"
	python3 - "$work/Chart.yaml" "$registry/one/compute-domains:v$version" "$version" "$checkout/CHANGELOG.md" <<-'END'
		import sys, yaml
		file, image, version, changelog = sys.argv[1:]
		annotations = yaml.safe_load(open(file))["annotations"]
		hub = lambda name: yaml.safe_load(annotations["artifacthub.io/" + name])
		assert [i["image"] for i in hub("images")] == [image], annotations
		assert len(hub("crds")) == 3 and hub("crdsExamples")[0]["kind"] == "ComputeDomain"
		section = open(changelog).read().split("\n## [" + version + "]")[1].split("\n## ")[0]
		assert len(hub("changes")) == section.count("\n* "), hub("changes")
		for change in hub("changes"):
		    assert change["kind"] in ["added", "changed", "deprecated", "removed", "fixed", "security"], change
		    assert change["description"].endswith(".") and "](" not in change["description"], change
	END
}

# The workflow calls scripts/release in a new container, which finds the cluster's programs in its cache.
@test "scripts/release installs jq if it is missing" {
	local deps=$tree/scripts/deps bin=$BATS_TEST_TMPDIR/bin file
	mkdir "$bin"
	# The programs of the system except jq, which the replaced scripts/deps adds.
	for file in /bin/* /usr/bin/*; do [[ ${file##*/} == jq ]] || ln -sf "$file" "$bin/"; done
	mv "$deps" "$BATS_TEST_TMPDIR/deps"
	printf '#!/bin/bash\nln -s "%s" "%s/jq"\n' "$(type -P jq)" "$bin" >"$deps"
	chmod +x "$deps"
	PATH=$bin run release "$registry/ten/compute-domains"
	mv "$BATS_TEST_TMPDIR/deps" "$deps"
	echo "$output"
	[[ $status -eq 0 ]]
}

@test "image, chart, lists of parts and files verify with the key, and with no other" {
	local repository=$registry/two/compute-domains arch name digest
	release "$repository"
	[[ $(wc -l <"$work/out/digests") -eq 2 ]]
	while read -r name digest; do
		verify ours "$name@$digest"
		run verify theirs "$name@$digest"
		[[ $status -ne 0 ]]
	done <"$work/out/digests"
	for arch in amd64 arm64; do
		digest=$(crane digest --platform "linux/$arch" "$repository:v$version")
		verify ours "$repository@$digest"
		cosign verify-attestation --key "$work/ours.pub" --insecure-ignore-tlog --type spdxjson "$repository@$digest" 2>"$work/complaint" |
			jq -r .payload | base64 -d | jq -e .predicate >"$work/predicate"
		[[ $(jq -S . "$work/predicate") == "$(jq -S . "$work/out/compute-domains-$version-$arch.spdx.json")" ]]
		jq -e --arg name "compute-domains-$version-$arch" '.name == $name' "$work/predicate"
	done
	(cd "$work/out" && sha256sum --check --strict SHA256SUMS)
	[[ $(wc -l <"$work/out/SHA256SUMS") -eq 6 ]]
	cmp "$work/out/compute-domains.yaml" "$work/plugin/compute-domains.yaml"
	cosign verify-blob --key "$work/ours.pub" --insecure-ignore-tlog --bundle "$work/out/SHA256SUMS.bundle" "$work/out/SHA256SUMS"
	echo >>"$work/out/SHA256SUMS"
	run cosign verify-blob --key "$work/ours.pub" --insecure-ignore-tlog --bundle "$work/out/SHA256SUMS.bundle" "$work/out/SHA256SUMS"
	[[ $status -ne 0 ]]
}

# verify_archive KEY ARCHIVE
verify_archive() { cosign verify-blob --key "$work/$1.pub" --insecure-ignore-tlog --bundle "$2.bundle" "$2"; }
@test "each archive of the kubectl plugin verifies with the key, and krew installs the released archive" {
	local own archive other
	own=$(dpkg --print-architecture)
	release "$registry/plugin/compute-domains"
	for arch in amd64 arm64; do
		archive=$work/out/kubectl-compute_domains-v$version-linux-$arch.tar.gz
		cmp "$archive" "$work/plugin/${archive##*/}"
		verify_archive ours "$archive"
		run verify_archive theirs "$archive"
		[[ $status -ne 0 ]]
	done
	archive=$work/out/kubectl-compute_domains-v$version-linux-$own.tar.gz
	export KREW_ROOT=$work/krew
	krew install --manifest "$work/out/compute-domains.yaml" --archive "$archive" </dev/null
	"$work/krew/bin/kubectl-compute_domains" explain PeersMissing | grep -q '^PeersMissing'
	cmp "$work/krew/bin/kubectl-compute_domains" "$work/plugin/kubectl-compute_domains-linux-$own"
	# Another archive has neither the signature nor the checksum of the manifest.
	rm -rf "$work/krew"
	other=$work/other.tar.gz
	gzip -dc "$archive" | gzip -1 >"$other"
	cp "$archive.bundle" "$other.bundle"
	run verify_archive ours "$other"
	[[ $status -ne 0 ]]
	run krew install --manifest "$work/out/compute-domains.yaml" --archive "$other" </dev/null
	[[ $status -ne 0 && $output == *'checksum does not match'* ]]
}

@test "a second run changes nothing, and a version is not released again with other content" {
	local repository=$registry/three/compute-domains image chart
	release "$repository"
	image=$(digest_of "$repository") chart=$(digest_of "$repository/charts/compute-domains")
	release "$repository"
	[[ $(digest_of "$repository") == "$image" && $(digest_of "$repository/charts/compute-domains") == "$chart" ]]

	make_image "$work/other.oci.tar" second
	IMAGE=$work/other.oci.tar run release "$repository"
	refused "another image: a version is released once"
	echo '# a comment' >>"$tree/deploy/chart/compute-domains/values.yaml"
	run release "$repository"
	sed -i '$d' "$tree/deploy/chart/compute-domains/values.yaml"
	refused "another chart: a version is released once"
	[[ $(crane digest "$repository:v$version") == "$image" && $(crane digest "$repository/charts/compute-domains:$version") == "$chart" ]]
}

@test "the tag, VERSION, the chart, the image and CHANGELOG.md must agree" {
	local repository=$registry/four/compute-domains
	run release --tag "v9$version" "$repository"
	refused "the tag is v9$version, but VERSION is $version"
	printf '## [%s] - unreleased\n' "$version" >"$tree/CHANGELOG.md"
	run release --tag "v$version" "$repository"
	refused "CHANGELOG.md has no date for $version"
	printf '## [%s] - 2026-12-01\n' "$version" >"$tree/CHANGELOG.md"
	echo 99.0.0 >"$tree/VERSION"
	run release "$repository"
	refused "the chart's version is not 99.0.0"
	sed -i 's/^\(version\|appVersion\): .*/\1: 99.0.0/' "$tree/deploy/chart/compute-domains/Chart.yaml"
	run release "$repository"
	refused "the kubectl plugin in $work/plugin is not of version 99.0.0"
	sed -i 's/version: v.*/version: v99.0.0/' "$work/plugin/compute-domains.yaml"
	run release "$repository"
	refused "is of version $version, not 99.0.0"
	sed -i "s/version: v.*/version: v$version/" "$work/plugin/compute-domains.yaml"
	cp "$checkout/VERSION" "$tree/"
	cp "$checkout/deploy/chart/compute-domains/Chart.yaml" "$tree/deploy/chart/compute-domains/"
	run crane digest "$repository:v$version"
	[[ $status -ne 0 ]]

	release --tag "v$version" "$repository"
	crane digest "$repository:v$version"
}

@test "Artifact Hub finds the metadata of the charts' repository, once that has an ID" {
	local charts=$registry/six/compute-domains/charts/compute-domains
	release "$registry/six/compute-domains"
	run crane digest "$charts:artifacthub.io"
	[[ $status -ne 0 ]]
	echo 'repositoryID: 8d0b4c5c-0000-4000-8000-0a1f3c5d7e90' >>"$tree/artifacthub-repo.yml"
	release "$registry/six/compute-domains"
	crane manifest "$charts:artifacthub.io" | jq -e '.config.mediaType == "application/vnd.cncf.artifacthub.config.v1+yaml" and
		.layers[0].mediaType == "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"'
	crane blob "$charts@$(crane manifest "$charts:artifacthub.io" | jq -r '.layers[0].digest')" | cmp - "$tree/artifacthub-repo.yml"
}

@test "an image for one architecture, a keyless signature without the log, and an unreachable registry are refused" {
	"$checkout/scripts/mkindex" "$work/one.oci.tar" "$work/amd64.tar"
	IMAGE=$work/one.oci.tar run release "$registry/five/compute-domains"
	refused "is for 'amd64', not for amd64 and arm64"
	run "$tree/scripts/release" --no-log --keyless "$registry/five/compute-domains"
	refused "cannot be verified without the public log"
	run release 127.0.0.1:1/five/compute-domains
	refused "127.0.0.1:1"
}
