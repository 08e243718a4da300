/* SPDX-License-Identifier: Apache-2.0 */
/* loop: runs the loop of a test until a condition is true. A failure fails the test. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { RUN_FIRST_MS = 2, RUN_UNTIL_MS = 300000 };

/* Runs until *flag is true; fails the test after 10 s. */
void run_until(uv_loop_t *loop, const bool *flag);
/* Runs the loop for this time, so that a test can check that something does not happen. */
void run_for(uv_loop_t *loop, unsigned ms);
/* Runs until something happens on the loop, for at most *wait_ms. Then it doubles *wait_ms, up to 64. */
void run_once(uv_loop_t *loop, unsigned *wait_ms);
/* Runs until the expression is true; fails the test after RUN_UNTIL_MS. The expression may depend on things
 * outside of the loop, such as a file. */
#define RUN_UNTIL(loop, expr)                                                                                \
        do {                                                                                                 \
                uint64_t end_ns_ = uv_hrtime() + RUN_UNTIL_MS * UINT64_C(1000000);                           \
                for (unsigned wait_ms_ = RUN_FIRST_MS; !(expr) && uv_hrtime() < end_ns_;)                    \
                        run_once((loop), &wait_ms_);                                                         \
                assert_true(expr);                                                                           \
        } while (0)
/* Runs the loop until no handle is left, and fails the test if a handle was not closed. */
void loop_end(uv_loop_t *loop);
