# SPDX-License-Identifier: Apache-2.0
# The content of the image, and that one name serves both architectures. Only the arm64 programs are run, if qemu is installed.
setup_file() {
	export checkout build work
	checkout=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	build=$checkout/build work=$BATS_FILE_TMPDIR
	for arch in amd64 arm64; do
		archive=$build/image.tar
		[[ $arch == "$(dpkg --print-architecture)" ]] || archive=$build/image-$arch.tar
		mkdir -p "$work/$arch/root"
		tar -xf "$archive" -C "$work/$arch"
		tar -xf "$work/$arch/layer.tar" -C "$work/$arch/root"
	done
	mkdir "$work/oci"
	tar -xf "$build/image.oci.tar" -C "$work/oci"
}

config() { jq -r "$2" "$work/$1/$(jq -r '.[0].Config' "$work/$1/manifest.json")"; }
blob() { cat "$work/oci/blobs/sha256/${1#sha256:}"; }
index() { blob "$(jq -r '.manifests[0].digest' "$work/oci/index.json")"; }
machine() { readelf -h "$1" | sed -n 's/ *Machine: *//p'; }

@test "every program and library has its image's architecture, and no needed library is missing" {
	local arch file wanted
	for arch in amd64 arm64; do
		[[ $arch == arm64 ]] && wanted=AArch64 || wanted='Advanced Micro Devices X86-64'
		for file in "$work/$arch"/root/usr/bin/* "$work/$arch"/root/usr/lib/*-linux-gnu/*.so*; do
			[[ $(machine "$file") == "$wanted" ]] || { echo "$file: $(machine "$file")"; return 1; }
			for library in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
				[[ -n $(find "$work/$arch/root/usr" -name "$library") ]] || { echo "$file needs $library"; return 1; }
			done
		done
		[[ $(config $arch .architecture) == "$arch" ]]
		[[ -x $work/$arch/root$(readelf -lW "$work/$arch/root/usr/bin/compute-domain-daemon" | sed -n 's/.*interpreter: \(.*\)]/\1/p') ]]
	done
}

# The hook is copied to the host and runs in containers. A loader would obey the environment and the files of the image or the pod.
@test "the hook needs no library and no loader" {
	local arch
	for arch in amd64 arm64; do
		[[ -x $work/$arch/root/usr/bin/cdi-hook ]]
		[[ -z $(readelf -dW "$work/$arch/root/usr/bin/cdi-hook" | grep NEEDED) ]]
		[[ $(readelf -lW "$work/$arch/root/usr/bin/cdi-hook") != *interpreter* ]]
	done
}

@test "kernels with pages of 64 KiB can load the arm64 programs" {
	local file
	for file in "$work"/arm64/root/usr/bin/* "$work"/arm64/root/usr/lib/*-linux-gnu/*.so*; do
		[[ $(readelf -lW "$file" | awk '$1 == "LOAD" { print $NF }' | sort -u) == 0x10000 ]] || { echo "$file"; return 1; }
	done
}

@test "one index names both architectures, and every blob matches its digest" {
	index | jq -e '[.manifests[].platform | "\(.os)/\(.architecture)"] | sort == ["linux/amd64", "linux/arm64"]'
	local path digest
	for path in "$work"/oci/blobs/sha256/*; do
		[[ $(sha256sum <"$path" | cut -d' ' -f1) == "$(basename "$path")" ]]
	done
	for digest in $(index | jq -r '.manifests[].digest'); do
		blob "$digest" | jq -e '.config.mediaType == "application/vnd.oci.image.config.v1+json" and (.layers | length == 1)'
		# The configuration has the digest of the unpacked layer.
		[[ sha256:$(blob "$(blob "$digest" | jq -r '.layers[0].digest')" | gzip -d | sha256sum | cut -d' ' -f1) == \
			$(blob "$(blob "$digest" | jq -r .config.digest)" | jq -r '.rootfs.diff_ids[0]') ]]
	done
}

@test "the image has labels, licences and a list of parts" {
	local arch root package
	for arch in amd64 arm64; do
		root=$work/$arch/root
		[[ $(config $arch .config.User) == 65532:65532 ]]
		config $arch '.config.Labels["org.opencontainers.image.licenses"]' | grep -qx Apache-2.0
		config $arch '.config.Labels["org.opencontainers.image.version"]' | grep -qxF "$(<"$checkout/VERSION")"
		grep -q '^ID=debian' "$root/etc/os-release"
		cmp "$checkout/LICENSE" "$root/usr/share/doc/compute-domains/LICENSE"
		for package in libc6 libcurl4 libssl3 libuv1 libyyjson0; do
			ls "$root/var/lib/dpkg/status.d" | grep -q "^$package" || { echo "no record of $package for $arch"; return 1; }
		done
		# The list has one part per package, each with its copyright, and a purl with the architecture.
		[[ $(jq '.packages | length' "$root/usr/share/sbom/compute-domains.spdx.json") -eq $(($(ls "$root/var/lib/dpkg/status.d" | wc -l) + 1)) ]]
		for package in "$root"/var/lib/dpkg/status.d/*; do
			[[ -s $root/usr/share/doc/$(basename "$package")/copyright ]]
			jq -e --arg name "$(basename "$package")" --arg version "$(sed -n 's/^Version: //p' "$package")" --arg arch "$arch" \
				'any(.packages[]; .name == $name and .versionInfo == $version and (.externalRefs[0].referenceLocator | endswith("?arch=" + $arch)))' \
				"$root/usr/share/sbom/compute-domains.spdx.json" >/dev/null
		done
	done
}

@test "the arm64 programs start" {
	local qemu root=$work/arm64/root program
	qemu=$("$checkout/scripts/qemu" arm64)
	for program in controller kubelet-plugin daemon; do
		run "$qemu" -L "$root" "$root/usr/bin/compute-domain-$program" --no-such-flag
		echo "$output"
		[[ $status -ne 0 && $output == *no-such-flag* ]]
	done
	run "$qemu" -L "$root" "$root/usr/bin/gpu-kubelet-plugin" --no-such-flag
	[[ $status -ne 0 && $output == *no-such-flag* ]]
	run "$qemu" "$root/usr/bin/cdi-hook" no-such-command
	[[ $status -ne 0 && $output == *create-symlinks* ]]
}
