/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/dra_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The messages are written by hand in the wire format: tag, length, bytes. */

static void add_field(struct buf *b, uint8_t number, const void *p, size_t n) {
        buf_addc(b, (char)((number << 3) | 2));
        if (n >= 128)
                buf_addc(b, (char)((n & 127U) | 128U));
        buf_addc(b, (char)(n < 128 ? n : n >> 7));
        buf_add(b, p, n);
}

static void add_claim(struct buf *request, const char *namespace, const char *uid, const char *name) {
        struct buf c = BUF_INIT(4096);
        if (namespace)
                add_field(&c, 1, namespace, strlen(namespace));
        if (uid)
                add_field(&c, 2, uid, strlen(uid));
        if (name)
                add_field(&c, 3, name, strlen(name));
        add_field(request, 1, buf_str(&c), c.n);
        buf_done(&c);
}

static int read_request(const struct buf *b, struct arena *a, struct dra_claim **claims, size_t *n,
                        struct err *e) {
        return dra_messages_read_claims((struct str){ buf_str(b), b->n }, a, claims, n, e);
}

static void test_claims(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct buf b = BUF_INIT(4096);
        struct dra_claim *claims;
        size_t n;
        struct err e;
        add_claim(&b, "ns-1", "8a9f2c1e-0000-4000-8000-000000000001", "claim.one");
        add_field(&b, 9, "a member of a later version", 27);
        add_claim(&b, "ns-2", "uid_2", "two");
        assert_int_equal(read_request(&b, a, &claims, &n, &e), 0);
        buf_done(&b); /* the result has no pointers into the request */
        assert_int_equal(n, 2);
        assert_string_equal(claims[0].namespace, "ns-1");
        assert_string_equal(claims[0].uid, "8a9f2c1e-0000-4000-8000-000000000001");
        assert_string_equal(claims[0].name, "claim.one");
        assert_string_equal(claims[1].namespace, "ns-2");
        assert_string_equal(claims[1].uid, "uid_2");
}

/* failure: the kubelet sends a claim without name, namespace or UID -> the request is refused */
static void test_bad_claims(void **state) {
        char too_long[DRA_MAX_NAME + 2];
        memset(too_long, 'x', sizeof too_long - 1);
        too_long[sizeof too_long - 1] = '\0';
        const struct {
                const char *namespace, *uid, *name, *error;
        } cases[] = {
                { NULL, "u", "n", "claim 2 ('/n') has no namespace" },
                { "ns", NULL, "n", "claim 2 ('ns/n') has no uid" },
                { "ns", "", "n", "claim 2 ('ns/n') has no uid" },
                { "ns", "u", NULL, "claim 2 ('ns/') has no name" },
                { "ns", "../u", "n", "claim 2 ('ns/n') has an invalid uid" },
                { "ns", "a/b", "n", "claim 2 ('ns/n') has an invalid uid" },
                { "ns", ".", "n", "claim 2 ('ns/n') has an invalid uid" },
                { "..", "u", "n", "claim 2 ('../n') has an invalid namespace" },
                { "ns", "u", "n n", "claim 2 ('ns/n n') has an invalid name" },
                { "ns", "u\n", "n", "claim 2 ('ns/n') has an invalid uid" },
                { "ns", "u\xc3\xa4", "n", "claim 2 ('ns/n') has an invalid uid" },
                { "ns", too_long, "n", "claim 2 ('ns/n') has an invalid uid" },
                { "ns", "first", "n", "claim 'ns/n': the uid 'first' is in the request twice" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(0);
                struct buf b = BUF_INIT(4096);
                struct dra_claim *claims;
                size_t n;
                struct err e;
                add_claim(&b, "ns", "first", "n");
                add_claim(&b, cases[i].namespace, cases[i].uid, cases[i].name);
                assert_int_equal(read_request(&b, a, &claims, &n, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                assert_string_equal(e.msg, cases[i].error);
                buf_done(&b);
        }
}

static void test_number_of_claims(void **state) {
        for (size_t want = 0; want <= DRA_MAX_CLAIMS + 1; want += want == 0 ? DRA_MAX_CLAIMS : 1) {
                _cleanup_(arena_freep) struct arena *a = arena_new(0);
                struct buf b = BUF_INIT(1 << 20);
                struct dra_claim *claims;
                size_t n;
                struct err e;
                for (size_t i = 0; i < want; i++) {
                        _cleanup_(freep) char *uid = xasprintf("uid-%zu", i);
                        add_claim(&b, "ns", uid, "n");
                }
                int r = read_request(&b, a, &claims, &n, &e);
                if (want == DRA_MAX_CLAIMS) {
                        assert_int_equal(r, 0);
                        assert_int_equal(n, want);
                } else {
                        assert_int_equal(r, -1);
                        assert_string_equal(e.msg,
                                            want ? "the request has 1025 claims, at most 1024 are accepted"
                                                 : "the request has no claims");
                }
                buf_done(&b);
        }
}

/* protobuf-c allocates memory for each field, also for a short one, before it returns. */
/* failure: a message has 4 MiB of unknown fields -> it is refused before it is decoded */
static void test_expensive_messages_are_not_decoded(void **state) {
        static const char *const field[] = { "\x78", "\x0a" }; /* unknown, and an empty claim */
        for (size_t i = 0; i < ARRAY_LEN(field); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(0);
                struct buf b = BUF_INIT(4 << 20);
                struct dra_claim *claims;
                size_t n;
                struct err e;
                while (b.n < b.limit)
                        buf_add(&b, field[i], 2);
                assert_int_equal(dra_messages_read_claims((struct str){ b.p, b.n }, a, &claims, &n, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                assert_string_equal(e.msg,
                                    "the request is not a valid protobuf message of at most 1024 claims");
                buf_done(&b);
        }
}

static void a_message_is_decoded_within_its_budget(void **state) {
        static const ProtobufCMessageDescriptor type = { .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                                         .sizeof_message = sizeof(ProtobufCMessage) };
        const struct str empty = { "", 0 };
        ProtobufCMessage *m = unpack_message(&type, empty, sizeof(ProtobufCMessage));
        assert_non_null(m);
        protobuf_c_message_free_unpacked(m, NULL);
        assert_null(unpack_message(&type, empty, sizeof(ProtobufCMessage) - 1));
}

/* failure: a request is not protobuf -> it is refused */
static void test_not_protobuf(void **state) {
        static const struct {
                const char *p;
                size_t n;
        } cases[] = { { "\x0a\x05xx", 4 },
                      { "\x0a", 1 },
                      { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11 },
                      { "garbage", 7 },
                      { "\x0a\x02\x0a\x7f", 4 },
                      { "\x08\x01", 2 } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(0);
                struct dra_claim *claims;
                size_t n;
                struct err e;
                assert_int_equal(
                        dra_messages_read_claims((struct str){ cases[i].p, cases[i].n }, a, &claims, &n, &e),
                        -1);
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

static void test_results(void **state) {
        static const char prepared[] = "\x0a\x2b"
                                       "\x0a\x01"
                                       "a"
                                       "\x12\x26"
                                       "\x0a\x18"
                                       "\x0a\x02r1"
                                       "\x0a\x02r2"
                                       "\x12\x04pool"
                                       "\x1a\x03"
                                       "dev"
                                       "\x22\x03k=c"
                                       "\x0a\x0a"
                                       "\x12\x04pool"
                                       "\x1a\x02"
                                       "d2"
                                       "\x0a\x0b"
                                       "\x0a\x01"
                                       "b"
                                       "\x12\x06"
                                       "\x12\x04oops"
                                       "\x0a\x05"
                                       "\x0a\x01"
                                       "c"
                                       "\x12\x00";
        static const char unprepared[] = "\x0a\x05"
                                         "\x0a\x01"
                                         "a"
                                         "\x12\x00"
                                         "\x0a\x0b"
                                         "\x0a\x01"
                                         "b"
                                         "\x12\x06"
                                         "\x0a\x04oops";
        const struct dra_device devices[] = {
                { .requests = (const char *[]){ "r1", "r2", NULL },
                  .pool = "pool",
                  .device = "dev",
                  .cdi_ids = (const char *[]){ "k=c", NULL } },
                { .requests = NULL, .pool = "pool", .device = "d2", .cdi_ids = NULL },
        };
        const struct dra_result results[] = { { .uid = "a", .devices = devices, .n_devices = 2 },
                                              { .uid = "b", .error = "oops" },
                                              { .uid = "c" } };
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct buf out = BUF_INIT(4096);
        dra_messages_write_results(true, results, 3, a, &out);
        assert_int_equal(out.n, sizeof prepared - 1);
        assert_memory_equal(out.p, prepared, out.n);
        buf_clear(&out);
        const struct dra_result gone[] = { { .uid = "a" }, { .uid = "b", .error = "oops" } };
        dra_messages_write_results(false, gone, 2, a, &out);
        assert_int_equal(out.n, sizeof unprepared - 1);
        assert_memory_equal(out.p, unprepared, out.n);
        buf_done(&out);
}

static void test_text(void **state) {
        const struct {
                const char *in;
                size_t max;
                const char *out;
        } cases[] = {
                { "plain", 100, "plain" },
                { "", 100, "" },
                { "b\xc3\xa4"
                  "d \xe2\x82\xac \xf0\x9f\x98\x80",
                  100,
                  "b\xc3\xa4"
                  "d \xe2\x82\xac \xf0\x9f\x98\x80" },
                { "\xff\xc3", 100, "??" },
                { "\xc0\x80\xed\xa0\x80\xf5\x80", 100, "???????" }, /* overlong, surrogate, beyond Unicode */
                { "\xe2\x82", 100, "??" },
                { "abc", 2, "ab" },
                { "abc", 4, "abc" },
                { "ab\xe2\x82\xac", 4, "ab" },
                { "ab\xe2\x82\xac", 5, "ab\xe2\x82\xac" },
        };
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(dra_messages_text(a, cases[i].in, cases[i].max), cases[i].out);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claims),
                cmocka_unit_test(test_bad_claims),
                cmocka_unit_test(test_number_of_claims),
                cmocka_unit_test(test_not_protobuf),
                cmocka_unit_test(test_expensive_messages_are_not_decoded),
                cmocka_unit_test(a_message_is_decoded_within_its_budget),
                cmocka_unit_test(test_results),
                cmocka_unit_test(test_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
