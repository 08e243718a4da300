# SPDX-License-Identifier: Apache-2.0
# scripts/in-debian with an engine that runs the container's script on this machine, and with programs that replace apt-get and chown.
setup() {
	checkout=$BATS_TEST_TMPDIR/checkout
	bin=$BATS_TEST_TMPDIR/bin
	mkdir -p "$checkout/scripts" "$bin"
	cp "$BATS_TEST_DIRNAME/../../scripts/in-debian" "$checkout/scripts/"
	# The last five arguments: bash -c SCRIPT in-debian COMMAND.
	cat >"$bin/engine" <<-'END'
		#!/bin/bash
		echo "engine $*" >"$CHECKOUT/../engine.args"
		for argument; do [[ $argument != OWNER=* ]] || export "$argument"; done
		script=${@: -3:1}
		exec bash -c "${script//\/checkout/$CHECKOUT}" in-debian "${@: -1}"
	END
	printf '#!/bin/bash\necho 1000\n' >"$bin/id"
	printf '#!/bin/bash\n' >"$bin/apt-get"
	printf '#!/bin/bash\necho "chown $*"\n' >"$bin/chown"
	chmod +x "$bin"/*
}

in_debian() { CHECKOUT=$checkout ENGINE=$bin/engine XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache PATH=$bin:$PATH "$checkout/scripts/in-debian" true; }

@test "scripts/in-debian gives the files of root to the caller" {
	touch "$checkout/built"
	chown 1000:1000 "$checkout"
	run in_debian
	echo "$output"
	[[ $status -eq 0 && $output == *"chown -R 1000:1000 /root/.cache"* && $output == *"chown -h 1000:1000 "*"$checkout/built"* ]]
}

@test "scripts/in-debian can read the checkout on a host with SELinux" {
	run in_debian
	[[ $status -eq 0 && $(<"$BATS_TEST_TMPDIR/engine.args") == *" --security-opt label=disable "* ]]
}

# In the container the caller's files belong to root, and any other user is one of the host's subordinate users.
@test "scripts/in-debian with a rootless engine leaves the files to the caller" {
	touch "$checkout/built"
	run in_debian
	echo "$output"
	[[ $status -eq 0 && $output == "" ]]
}
