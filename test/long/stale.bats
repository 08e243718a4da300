#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ten minutes with a leader that may not see claims.

load ../cluster/driver
load ../cluster/absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	everything_passes
	ns_end
}

# failure: a new leader's watch of claims is refused for ten minutes -> nothing in use is removed
@test "a standby that may not watch claims becomes the leader, for ten minutes" {
	stale_standby watch 600
}

# failure: a new leader may not read claims for five minutes -> nothing in use is removed
@test "a standby that may neither list nor watch claims becomes the leader, for five minutes" {
	stale_standby list,watch 300
}
