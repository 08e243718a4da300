/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "daemon/relay.h"

static char text[1 << 20];
static int ends[2];

/* Reads the content of the pipe. */
static size_t drain(void) {
        size_t n = 0;
        ssize_t k;

        close(ends[1]);
        while ((k = read(ends[0], text + n, sizeof text - 1 - n)) > 0)
                n += (size_t)k;
        text[n] = '\0';
        return n;
}

static void lines_pass_unchanged(void **state) {
        struct relay r;

        assert_int_equal(pipe(ends), 0);
        r = (struct relay){ .fd = ends[1] };
        relay_line(&r, STR("one"));
        relay_line(&r, STR(""));
        relay_line(&r, STR("%s three"));
        drain();
        assert_string_equal(text, "one\n\n%s three\n");
        close(ends[0]);
}

/* The pipe is in blocking mode, like stderr: a line too many would wait forever. */
/* failure: nothing reads the log that nvidia-imex prints to -> the daemon continues and counts lost lines */
static void a_stalled_log_reader_does_not_block_the_daemon(void **state) {
        static char page[4096];
        struct relay r;

        assert_int_equal(pipe(ends), 0);
        r = (struct relay){ .fd = ends[1] };
        alarm(20);
        memset(page, 'x', sizeof page);
        for (int i = 0; i < 1000; i++)
                relay_line(&r, (struct str){ page, 1000 });
        assert_in_range(r.dropped, 900, 999);
        unsigned dropped = r.dropped;
        assert_int_equal(read(ends[0], text, 32 * 1024), 32 * 1024);
        relay_line(&r, STR("again"));
        assert_int_equal(r.dropped, 0);
        alarm(0);
        drain();
        _cleanup_(freep) char *said =
                xasprintf("%u lines of nvidia-imex were dropped, because nothing read them\nagain\n", dropped);
        assert_non_null(strstr(text, said));
        close(ends[0]);
}

/* failure: nvidia-imex prints a very long line -> the line is cut */
static void a_long_line_is_cut(void **state) {
        static char page[8192];
        struct relay r;

        assert_int_equal(pipe(ends), 0);
        r = (struct relay){ .fd = ends[1], .dropped = 4294967295u };
        memset(page, 'x', sizeof page);
        relay_line(&r, (struct str){ page, sizeof page });
        assert_in_range(drain(), RELAY_LINE_MAX, RELAY_LINE_MAX + 128);
        close(ends[0]);
}

/* failure: the log's reader has ended -> the daemon continues */
static void a_closed_log_does_not_end_the_daemon(void **state) {
        struct relay r;

        signal(SIGPIPE, SIG_IGN);
        assert_int_equal(pipe(ends), 0);
        r = (struct relay){ .fd = ends[1] };
        close(ends[0]);
        relay_line(&r, STR("x"));
        relay_line(&r, STR("x"));
        assert_int_equal(r.dropped, 2);
        close(ends[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_pass_unchanged),
                cmocka_unit_test(a_stalled_log_reader_does_not_block_the_daemon),
                cmocka_unit_test(a_long_line_is_cut),
                cmocka_unit_test(a_closed_log_does_not_end_the_daemon),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
