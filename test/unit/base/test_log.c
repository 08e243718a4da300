/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the log, and that nothing waits for its reader. */
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static int own, ends[2]; /* of the pipe: the test reads from the first, the log writes to the second */

/* If the test waits for itself, an alarm ends it with a message. */
enum { STUCK_S = 20 };

static void redirect(int fd) {
        own = dup(STDERR_FILENO);
        assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
        alarm(STUCK_S);
}

static void restore(void) {
        alarm(0);
        dup2(own, STDERR_FILENO);
        close(own);
}

static void begin(enum log_format format) {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
        redirect(ends[1]);
        log_setup(format, 0);
        assert_true(fcntl(ends[1], F_SETPIPE_SZ, 8192) > 0);
}

static char *drain(void) {
        struct buf b = BUF_INIT(4 << 20);
        char chunk[4096];
        for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
                buf_add(&b, chunk, (size_t)n);
        return buf_steal(&b);
}

static void end(void) {
        restore();
        close(ends[0]);
        close(ends[1]);
        log_setup(LOG_TEXT, 0);
}

static void lines_have_the_format_of_klog(void **state) {
        begin(LOG_TEXT);
        log_warn("two \"words\"", kv_str("claim", "a\nb"), kv_int("n", -7), kv_bool("on", true),
                 kv_str("none", NULL));
        log_v(1, "not at this verbosity");
        _cleanup_(freep) char *text = drain();
        end();
        assert_int_equal(text[0], 'W');
        assert_non_null(strstr(text, "] \"two \\\"words\\\"\" claim=\"a\\nb\" n=-7 on=true none=<nil>\n"));
        assert_non_null(strstr(text, " test_log.c:"));
        assert_null(strstr(text, "verbosity"));
}

/* The number of lines that are complete JSON objects. *ret_lost is the number that the lines about dropped
 * lines state. */
static unsigned parse(char *text, long *ret_lost) {
        struct str rest = str_from(text), line;
        unsigned n = 0;
        while (str_next_line(&rest, &line)) {
                struct err e;
                yyjson_doc *doc = json_parse(line, YYJSON_READ_NOFLAG, &e);
                if (!doc)
                        continue;
                yyjson_val *root = yyjson_doc_get_root(doc);
                if (str_starts(yyjson_get_str(yyjson_obj_get(root, "msg")), "log lines were dropped"))
                        *ret_lost += yyjson_get_sint(yyjson_obj_get(root, "lines"));
                else
                        n++;
                yyjson_doc_free(doc);
        }
        return n;
}

/* failure: nothing reads the log -> the program continues, and later logs how many lines are lost */
static void a_full_log_pipe_does_not_block_the_program(void **state) {
        enum { N = 500 };
        long lost = 0;
        begin(LOG_JSON);
        for (int i = 0; i < N; i++)
                log_info("a line that may be lost", kv_int("i", i));
        _cleanup_(freep) char *first = drain();
        log_info("there is a reader again");
        _cleanup_(freep) char *second = drain();
        log_info("and again");
        _cleanup_(freep) char *third = drain();
        end();
        unsigned n = parse(first, &lost);
        assert_in_range(n, 10, N - 1);
        assert_int_equal(lost, 0);
        assert_int_equal(parse(second, &lost), 1);
        assert_int_equal(lost, N - n);
        assert_non_null(strstr(second, "\"level\":\"warning\""));
        assert_int_equal(parse(third, &lost), 1);
        assert_int_equal(lost, N - n);
}

/* A line that is too long for the pipe may have no end. The next line still begins on its own. */
/* failure: a long log line is only partly written -> the next line is whole */
static void a_torn_long_line_leaves_the_next_line_whole(void **state) {
        char big[4000];
        long lost = 0;
        begin(LOG_JSON);
        memset(big, 'x', sizeof big - 1);
        big[sizeof big - 1] = '\0';
        log_info("large", kv_str("a", big), kv_str("b", big), kv_str("c", big));
        _cleanup_(freep) char *first = drain();
        log_info("small");
        _cleanup_(freep) char *second = drain();
        end();
        assert_in_range(strlen(first), 4096, 8192);
        assert_int_equal(second[0], '\n');
        assert_int_equal(parse(second, &lost), 1);
        assert_int_equal(lost, 1);
}

static void an_unread_socket_does_not_block_the_program(void **state) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        redirect(pair[1]);
        log_setup(LOG_TEXT, 0);
        for (int i = 0; i < 20000; i++)
                log_info("a line that may be lost", kv_int("i", i));
        restore();
        close(pair[0]);
        close(pair[1]);
        log_info("the end of this test"); /* reports how many lines were lost */
}

static void a_closed_pipe_does_not_end_the_program(void **state) {
        signal(SIGPIPE, SIG_IGN);
        begin(LOG_TEXT);
        close(ends[0]);
        for (int i = 0; i < 100; i++)
                log_info("a line without a reader");
        ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        end();
        log_info("the end of this test");
}

static void a_line_that_is_too_long_keeps_its_source(void **state) {
        char big[4000];
        memset(big, '\x01', sizeof big - 1); /* six bytes each */
        big[sizeof big - 1] = '\0';
        begin(LOG_JSON);
        log_error("large", kv_str("a", big));
        _cleanup_(freep) char *text = drain();
        end();
        long lost = 0;
        assert_int_equal(parse(text, &lost), 1);
        assert_non_null(strstr(text, "\"msg\":\"large (log line too long)\""));
        assert_non_null(strstr(text, "test_log.c:"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_have_the_format_of_klog),
                cmocka_unit_test(a_full_log_pipe_does_not_block_the_program),
                cmocka_unit_test(a_torn_long_line_leaves_the_next_line_whole),
                cmocka_unit_test(an_unread_socket_does_not_block_the_program),
                cmocka_unit_test(a_closed_pipe_does_not_end_the_program),
                cmocka_unit_test(a_line_that_is_too_long_keeps_its_source),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
