/* SPDX-License-Identifier: Apache-2.0 */
#include "world/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { WAIT_MAX_MS = 64 };

/* It only wakes the loop. */
static void wake(uv_timer_t *t) {
}

static void begin(uv_loop_t *loop, uv_timer_t *t, unsigned ms) {
        uv_update_time(loop);
        uv_timer_init(loop, t);
        uv_timer_start(t, wake, ms, ms);
}

static void end(uv_loop_t *loop, uv_timer_t *t) {
        uv_close((uv_handle_t *)t, NULL);
        uv_run(loop, UV_RUN_NOWAIT);
}

void run_once(uv_loop_t *loop, unsigned *wait_ms) {
        uv_timer_t t;
        begin(loop, &t, *wait_ms);
        uv_run(loop, UV_RUN_ONCE);
        end(loop, &t);
        *wait_ms = *wait_ms < WAIT_MAX_MS ? 2 * *wait_ms : WAIT_MAX_MS;
}

void run_until(uv_loop_t *loop, const bool *flag) {
        enum { LIMIT_MS = 10000 };
        uint64_t end_ns = uv_hrtime() + LIMIT_MS * UINT64_C(1000000);
        for (unsigned wait_ms = RUN_FIRST_MS; !*flag && uv_hrtime() < end_ns;)
                run_once(loop, &wait_ms);
        if (!*flag)
                fail_msg("nothing happened within %d ms", LIMIT_MS);
}

void run_for(uv_loop_t *loop, unsigned ms) {
        uint64_t end_ns = uv_hrtime() + ms * UINT64_C(1000000);
        uv_timer_t t;
        begin(loop, &t, ms);
        while (uv_hrtime() < end_ns)
                uv_run(loop, UV_RUN_ONCE);
        end(loop, &t);
}

void loop_end(uv_loop_t *loop) {
        for (int i = 0; i < 100 && uv_run(loop, UV_RUN_NOWAIT); i++)
                ;
        assert_int_equal(uv_loop_close(loop), 0);
}
