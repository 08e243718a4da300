/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of the answers of kubectl proxy. */
#include "cli/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

/* Feeds the answer in pieces of this size. Returns 0 if it is complete at its end. */
static int parse_answer(struct http1 *h, struct str text, size_t piece, struct err *e) {
        http1_init(h);
        for (size_t at = 0; at < text.n && !h->complete; at += piece)
                if (http1_feed(h, text.p + at, text.n - at < piece ? text.n - at : piece, e) < 0)
                        return -1;
        return h->complete ? 0 : http1_end(h, e);
}

static void assert_answer(const char *text, int status, bool keeps, const char *body) {
        for (size_t piece = 1; piece <= strlen(text); piece = piece == 1 ? strlen(text) : piece + 1) {
                struct http1 h;
                struct err e;
                if (parse_answer(&h, str_from(text), piece, &e) < 0)
                        fail_msg("%s: %s", text, e.msg);
                assert_int_equal(h.status, status);
                assert_int_equal(h.keeps, keeps);
                assert_string_equal(buf_str(&h.body), body);
                http1_done(&h);
        }
}

static void assert_refused(struct str text, const char *why) {
        struct http1 h;
        struct err e = { 0 };
        if (parse_answer(&h, text, text.n, &e) == 0)
                fail_msg("accepted: %.*s", (int)(text.n < 200 ? text.n : 200), text.p);
        if (!strstr(e.msg, why))
                fail_msg("%.200s: %s", text.p, e.msg);
        http1_done(&h);
}

static void bodies_may_have_a_length_or_chunks_or_end_with_the_connection(void **state) {
        assert_answer(OK "Content-Length: 5\r\n\r\nhello", 200, true, "hello");
        assert_answer(OK "content-length:5\n\nhello", 200, true, "hello");
        assert_answer("HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n3;x=y\r\nhel\r\n2 \r\nlo\r\n0\r\nA: b\r\nC\r\n\r\n",
                      403, true, "hello");
        assert_answer("HTTP/1.0 200 OK\r\n\r\nhello", 200, false, "hello");
        assert_answer("HTTP/1.1 200\r\n\r\nhello", 200, false, "hello");
        assert_answer(OK "Connection: close\r\nContent-Length: 5\r\n\r\nhello", 200, false, "hello");
        assert_answer(OK "Content-Length: 0\r\n\r\n", 200, true, "");
}

static void chunks_have_hexadecimal_sizes(void **state) {
        assert_answer(CHUNKED "a\r\n0123456789\r\n1\r\n!\r\n0\r\n\r\n", 200, true, "0123456789!");
        assert_answer(CHUNKED "000000000000000B\r\n0123456789a\r\n0\r\n\r\n", 200, true, "0123456789a");
        assert_answer(CHUNKED "0F;\r\n0123456789abcde\r\n0\r\n\r\n", 200, true, "0123456789abcde");
        assert_refused(STR(CHUNKED "00000000000000005\r\nhello\r\n0\r\n\r\n"), "no valid size");
        assert_refused(STR(CHUNKED "\r\nhello\r\n0\r\n\r\n"), "no valid size");
        assert_refused(STR(CHUNKED ";a=b\r\nhello\r\n0\r\n\r\n"), "no valid size");
        assert_refused(STR(CHUNKED "g\r\nhello\r\n0\r\n\r\n"), "no valid size");
        assert_refused(STR(CHUNKED "5x\r\nhello\r\n0\r\n\r\n"), "no valid size");
        assert_refused(STR(CHUNKED "ffffffffffffffff\r\n"), "no valid size");
        assert_refused(STR(CHUNKED "3\r\nhello\r\n"), "a chunk does not end");
        /* A control character is no digit, although it differs from one only in a bit. */
        assert_refused(STR(CHUNKED "\x15\r\nhello\r\n0\r\n\r\n"), "no valid size");
}

static void an_answer_follows_a_provisional_one(void **state) {
        assert_answer("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 5\r\n\r\nhello", 200, true,
                      "hello");
        assert_answer("HTTP/1.1 199 X\r\n\r\n" OK "Content-Length: 5\r\n\r\nhello", 200, true, "hello");
}

/* RFC 9112, 6.3: they end with the head, which may describe the body of another answer. */
static void answers_204_and_304_have_no_body(void **state) {
        assert_answer("HTTP/1.1 204 No Content\r\n\r\n", 204, true, "");
        assert_answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, true, "");
        assert_answer("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 304, true, "");
}

static void wrong_answers_are_errors(void **state) {
        static const struct {
                const char *text, *why;
        } cases[] = {
                { "HTP/1.1 200 OK\r\n\r\n", "not HTTP" },
                { "HTTP/2.0 200 OK\r\n\r\n", "not HTTP" },
                { "HTTP/1.x 200 OK\r\n\r\n", "not HTTP" },
                { "HTTP/1.1_200 OK\r\n\r\n", "not HTTP" },
                { "HTTP/1.1 20\r\n\r\n", "not HTTP" },
                { "HTTP/1.1 abc\r\n\r\n", "no status" },
                { "HTTP/1.1 099 OK\r\n\r\n", "no status" },
                { "HTTP/1.1 2000 OK\r\n\r\n", "no status" },
                { "HTTP/1.1 2000\r\n\r\n", "no status" },
                { OK "Content-Length: -1\r\n\r\n", "no valid length" },
                { OK "Content-Length:\r\n\r\n", "no valid length" },
                { OK "Content-Length\r\n\r\n", "no valid length" },
                { OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "no valid length" },
                { OK "Content-Length: 99999999999\r\n\r\n", "too large" },
                { OK "Content-Length: 5\r\n\r\nhel", "closed the connection" },
                { OK "Transfer-Encoding: gzip\r\n\r\n", "transfer encoding" },
                { OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                  "transfer encoding" },
                { OK "Content-Le", "closed the connection" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_refused(str_from(cases[i].text), cases[i].why);
        /* Other headers do not matter. */
        assert_answer(OK "Content-Lengt: 1\r\nContent-Lengths: 1\r\nXontent-Length: 1\r\nAontent-Length: "
                         "1\r\n\r\nhello",
                      200, false, "hello");
}

/* ---- limits ---- */

static struct str filled(struct buf *b, const char *start, size_t n, const char *end) {
        buf_clear(b);
        buf_adds(b, start);
        while (b->n < n)
                buf_addc(b, 'a');
        buf_adds(b, end);
        return (struct str){ buf_str(b), b->n };
}

/* Returns whether the answer is accepted so far. */
static bool is_accepted(struct str text) {
        struct http1 h;
        struct err e;
        http1_init(&h);
        bool accepted = http1_feed(&h, text.p, text.n, &e) == 0;
        http1_done(&h);
        return accepted;
}

static void a_head_has_at_most_64_KiB(void **state) {
        struct buf b = BUF_INIT(1 << 20);
        const size_t end = strlen("\r\n\r\n");
        assert_true(is_accepted(filled(&b, OK "X: ", HTTP1_HEAD_MAX - end, "\r\n\r\n")));
        assert_false(is_accepted(filled(&b, OK "X: ", HTTP1_HEAD_MAX + 1 - end, "\r\n\r\n")));
        /* Lines without an end. */
        assert_true(is_accepted(filled(&b, "", HTTP1_HEAD_MAX, "")));
        assert_false(is_accepted(filled(&b, "", HTTP1_HEAD_MAX + 1, "")));
        assert_true(is_accepted(filled(&b, CHUNKED, strlen(CHUNKED) + HTTP1_HEAD_MAX, "")));
        assert_refused(filled(&b, CHUNKED, strlen(CHUNKED) + HTTP1_HEAD_MAX + 1, ""), "a chunk has no size");
        assert_refused(filled(&b, CHUNKED "0\r\n", strlen(CHUNKED "0\r\n") + HTTP1_HEAD_MAX + 1, ""),
                       "a chunk does not end");
        buf_done(&b);
}

/* failure: kubectl proxy sends an endless answer -> the tool refuses it at 64 MiB */
static void a_body_has_at_most_64_MiB(void **state) {
        enum { PIECE = 1 << 20 };
        struct http1 h;
        struct err e;
        char *piece = calloc(1, PIECE);
        assert_true(is_accepted(STR(OK "Content-Length: 67108864\r\n\r\n")));
        assert_false(is_accepted(STR(OK "Content-Length: 67108865\r\n\r\n")));
        assert_true(is_accepted(STR(CHUNKED "4000000\r\n")));
        assert_false(is_accepted(STR(CHUNKED "4000001\r\n")));
        http1_init(&h);
        assert_int_equal(http1_feed(&h, OK "\r\n", strlen(OK "\r\n"), &e), 0);
        for (size_t n = 0; n < HTTP1_BODY_MAX; n += PIECE)
                assert_int_equal(http1_feed(&h, piece, PIECE, &e), 0);
        assert_int_equal(http1_feed(&h, piece, 1, &e), -1);
        http1_done(&h);
        free(piece);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bodies_may_have_a_length_or_chunks_or_end_with_the_connection),
                cmocka_unit_test(chunks_have_hexadecimal_sizes),
                cmocka_unit_test(an_answer_follows_a_provisional_one),
                cmocka_unit_test(answers_204_and_304_have_no_body),
                cmocka_unit_test(wrong_answers_are_errors),
                cmocka_unit_test(a_head_has_at_most_64_KiB),
                cmocka_unit_test(a_body_has_at_most_64_MiB),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
