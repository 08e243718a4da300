#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Started anew. All are read but
# for the last.
@test "a pod is started anew" {
	run code anew
	true # and made anew
}
