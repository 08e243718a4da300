#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Fifteen minutes of error pages in place of the API server.

load ../cluster/driver
load ../cluster/absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	everything_passes
	ns_end
}

# failure: another server answers with pages for 15 minutes -> nothing changes
@test "twelve minutes of 404, so that cleanup runs twice, and then of 403 and 503: nothing changes, and everything continues afterwards" {
	pages_for 720 90 90 patiently
}
