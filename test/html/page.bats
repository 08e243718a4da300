# SPDX-License-Identifier: Apache-2.0
# The page of `racks --html` in headless Chromium: `make long PART=html`. PLUGIN is the program.
bats_require_minimum_version 1.5.0

setup_file() {
	export here=$BATS_TEST_DIRNAME work=$BATS_FILE_TMPDIR
	export plugin=${PLUGIN:-$here/../../build/src/cli/kubectl-compute_domains}
	"$here/bundle.py" "$work/bundle" >"$work/names"
	"$here/bundle.py" "$work/hostile" --hostile >"$work/hostile-names"
	"$plugin" racks --html "$work/page.html" --from "$work/bundle"
	"$plugin" racks --html "$work/hostile.html" --from "$work/hostile"
}

@test "the browser shows each rack and node, in light and dark" {
	local scheme
	for scheme in light dark; do
		"$here/browser" $scheme "$work/page.html" --dump-dom >"$work/dom"
		"$here/check.py" --dom "$work/dom" "$work/names"
		"$here/browser" $scheme "$work/page.html" --window-size=1200,900 --screenshot="$work/$scheme.png" >/dev/null
	done
	(($("$here/png.py" --brightness "$work/light.png") > 200))
	(($("$here/png.py" --brightness "$work/dark.png") < 80))
}

@test "each text has enough contrast" {
	"$here/check.py" --contrast "$work/page.html"
}

@test "the page requests nothing, and hostile names stay text" {
	local page
	for page in page hostile; do
		"$here/browser" light "$work/$page.html" --dump-dom --log-net-log="$work/net.json" >"$work/dom"
		[[ $page == page ]] || "$here/check.py" --dom "$work/dom" "$work/hostile-names"
		[[ -z $("$here/check.py" --net-log "$work/net.json" | tee /dev/stderr) ]]
	done
	# The check sees requests: this page has one.
	echo '<!DOCTYPE html><img src=http://127.0.0.1:9/y>' >"$work/control.html"
	"$here/browser" light "$work/control.html" --dump-dom --log-net-log="$work/net.json" >/dev/null
	[[ $("$here/check.py" --net-log "$work/net.json") == http://127.0.0.1:9/y ]]
}

@test "the policy of the page stops what an error in the escaping would let through" {
	sed 's|<main>|<main><img src=http://127.0.0.1:9/y><script>document.title = "run"</script>|' "$work/page.html" >"$work/broken.html"
	grep -q '<script>' "$work/broken.html"
	"$here/browser" light "$work/broken.html" --dump-dom --log-net-log="$work/net.json" >"$work/dom"
	[[ -z $("$here/check.py" --net-log "$work/net.json" | tee /dev/stderr) ]]
	grep -q '<title>NVLink racks' "$work/dom"
}

@test "the page can be printed" {
	"$here/browser" dark "$work/page.html" --no-pdf-header-footer --print-to-pdf="$work/page.pdf" >/dev/null
	[[ $(head -c 5 "$work/page.pdf") == %PDF- ]]
	(($(grep -ac '/Type */Page\b' "$work/page.pdf") <= 4))
}
