/* SPDX-License-Identifier: Apache-2.0 */
#include "model/channel_report.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define UID_A "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define UID_B "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"

static int decode(const char *text, struct arena *a, struct channel_report *r, struct err *e) {
        return channel_report_decode((struct str){ text, strlen(text) }, a, r, e);
}

static void a_report_is_decoded_as_it_was_rendered(void **state) {
        struct channel_report_hold held[] = { { 7, UID_A }, { 2047, UID_B } };
        struct channel_report_fabric fabrics[] = { { CLIQUE, UID_A, 2048, held, 2 },
                                                   { "other.2", "", -1, held, 1 } };
        const struct channel_report r = { fabrics, 2 };
        struct arena *a = arena_new(1024);
        struct channel_report back;
        struct buf b = BUF_INIT(4096);
        struct err e;
        channel_report_render(&r, &b);
        assert_string_equal(buf_str(&b),
                            "{\"" CLIQUE "\":{\"uid\":\"" UID_A
                            "\",\"channelCount\":2048,\"held\":{\"7\":\"" UID_A "\",\"2047\":\"" UID_B
                            "\"}},\"other.2\":{\"uid\":\"\",\"held\":{\"7\":\"" UID_A "\"}}}");
        assert_int_equal(decode(buf_str(&b), a, &back, &e), 0);
        assert_int_equal(back.n_fabrics, 2);
        assert_null(channel_report_of(&back, "third.3"));
        assert_int_equal(channel_report_of(&back, "other.2")->count, -1);
        const struct channel_report_fabric *f = channel_report_of(&back, CLIQUE);
        assert_int_equal(f->n_held, 2);
        assert_int_equal(f->held[1].id, 2047);
        assert_string_equal(f->held[1].owner, UID_B);
        assert_string_equal(f->uid, UID_A);
        assert_int_equal(f->count, 2048);
        buf_done(&b);
        arena_free(a);
}

static void the_state_of_imex_and_devices_is_decoded_as_it_was_rendered(void **state) {
        struct channel_report_fabric fabrics[] = { { .clique_id = CLIQUE,
                                                     .uid = "",
                                                     .count = 2048,
                                                     .imex = "580.95.05",
                                                     .withheld = "HostIMEXNotUp" } };
        const struct channel_report r = { fabrics, 1 };
        struct arena *a = arena_new(1024);
        struct channel_report back;
        struct buf b = BUF_INIT(4096);
        struct err e;
        channel_report_render(&r, &b);
        assert_string_equal(buf_str(&b),
                            "{\"" CLIQUE "\":{\"uid\":\"\",\"channelCount\":2048,\"imexVersion\":"
                            "\"580.95.05\",\"withheld\":\"HostIMEXNotUp\",\"held\":{}}}");
        assert_int_equal(decode(buf_str(&b), a, &back, &e), 0);
        assert_string_equal(back.fabrics[0].imex, "580.95.05");
        assert_string_equal(back.fabrics[0].withheld, "HostIMEXNotUp");
        assert_true(channel_report_is_token("575.57.08~rc1"));
        assert_false(channel_report_is_token(""));
        assert_false(channel_report_is_token("two words"));
        assert_false(channel_report_is_token("%s"));
        buf_done(&b);
        arena_free(a);
}

/* failure: a plugin's report is invalid -> it does not count */
static void an_invalid_report_is_no_report(void **state) {
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "", "not JSON" },
                { "[]", "not a JSON object" },
                { "{\"c\":7}", "c: not an object" },
                { "{\"c\":{}}", "c.uid: missing" },
                { "{\"c\":{\"uid\":\"\"},\"c\":{\"uid\":\"\"}}", "c is listed twice" },
                { "{\"c\":{\"uid\":\"x\"}}", "is not a UID" },
                { "{\"c\":{\"uid\":\"\",\"channelCount\":-2}}", "not a number of channels" },
                { "{\"c\":{\"uid\":\"\",\"imexVersion\":\"5 80\"}}",
                  "c.imexVersion: \"5 80\" is not a word" },
                { "{\"c\":{\"uid\":\"\",\"withheld\":\"\"}}", "c.withheld: \"\" is not a word" },
                { "{\"c\":{\"uid\":\"\",\"held\":{\"07\":\"" UID_A "\"}}}", "\"07\" is not a channel ID" },
                { "{\"c\":{\"uid\":\"\",\"held\":{\"\":\"" UID_A "\"}}}", "\"\" is not a channel ID" },
                { "{\"c\":{\"uid\":\"\",\"held\":{\"1048576\":\"" UID_A "\"}}}", "is not a channel ID" },
                { "{\"c\":{\"uid\":\"\",\"held\":{\"99999999999999999999\":\"" UID_A "\"}}}",
                  "is not a channel ID" },
                { "{\"c\":{\"uid\":\"\",\"held\":{\"7\":\"me\"}}}", "c.held.7: \"me\" is not a UID" },
                { "{\"c\":{\"uid\":\"\",\"asks\":[\"me\"]}}", "c.asks: \"me\" is not a UID" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(1024);
                struct channel_report r;
                struct err e;
                assert_int_equal(decode(rows[i].text, a, &r, &e), -1);
                if (!strstr(e.msg, rows[i].want))
                        fail_msg("row %zu: %s", i, e.msg);
                arena_free(a);
        }
}

#define WORD_OF_60 "123456789012345678901234567890123456789012345678901234567890"

static void a_report_at_its_limits_is_decoded(void **state) {
        static const struct {
                const char *text;
                bool good;
        } rows[] = {
                { "{\"c\":{\"uid\":\"\",\"held\":{\"1048575\":\"" UID_A "\"}}}", true },
                { "{\"c\":{\"uid\":\"\",\"held\":{\"9\":\"" UID_A "\"}}}", true },
                { "{\"c\":{\"uid\":\"\",\"held\":{\":\":\"" UID_A "\"}}}", false },  /* after '9' */
                { "{\"c\":{\"uid\":\"\",\"held\":{\"1/\":\"" UID_A "\"}}}", false }, /* before '0' */
                { "{\"c\":{\"uid\":\"\",\"channelCount\":1048576}}", true },
                { "{\"c\":{\"uid\":\"\",\"channelCount\":1048577}}", false },
                { "{\"c\":{\"uid\":\"\",\"imexVersion\":\"" WORD_OF_60 "123\"}}", true },
                { "{\"c\":{\"uid\":\"\",\"imexVersion\":\"" WORD_OF_60 "1234\"}}", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(1024);
                struct channel_report r;
                struct err e;
                if (!decode(rows[i].text, a, &r, &e) != rows[i].good)
                        fail_msg("row %zu", i);
                arena_free(a);
        }
}

static void a_report_has_a_limited_number_of_partitions(void **state) {
        for (int n = CHANNEL_REPORT_FABRICS_MAX; n <= CHANNEL_REPORT_FABRICS_MAX + 1; n++) {
                struct arena *a = arena_new(1024);
                struct buf b = BUF_INIT(1 << 20);
                struct channel_report r;
                struct err e;
                for (int i = 0; i < n; i++)
                        buf_addf(&b, "%s\"c%d\":{\"uid\":\"\"}", i ? "," : "{", i);
                buf_adds(&b, "}");
                assert_int_equal(decode(buf_str(&b), a, &r, &e), n > CHANNEL_REPORT_FABRICS_MAX ? -1 : 0);
                buf_done(&b);
                arena_free(a);
        }
}

static const char *uid_nr(struct arena *a, size_t n) {
        return arena_printf(a, "%08zu-8f4e-4f0e-9f0a-1b2c3d4e5f60", n);
}

/* failure: a plugin reports more channels than a node can have pods -> its report does not count [tenants] */
static void a_report_has_a_limited_number_of_channels(void **state) {
        for (size_t n = CHANNEL_REPORT_HELD_MAX; n <= CHANNEL_REPORT_HELD_MAX + 1; n++) {
                struct arena *a = arena_new(1 << 16);
                struct buf b = BUF_INIT(1 << 20);
                struct channel_report r;
                struct err e;
                for (size_t i = 0; i < n; i++)
                        buf_addf(&b, "%s\"7\":\"%s\"", i ? "," : "{\"c\":{\"uid\":\"\",\"held\":{",
                                 uid_nr(a, i));
                buf_adds(&b, "}}}");
                bool good = n == CHANNEL_REPORT_HELD_MAX;
                assert_int_equal(decode(buf_str(&b), a, &r, &e), good ? 0 : -1);
                if (!good)
                        assert_string_equal(e.msg, "c.held: 513 channels, more than 512");
                buf_done(&b);
                arena_free(a);
        }
}

/* failure: several Pods of a node report many channels -> together they have the limit of one report
 * [tenants] */
static void the_channels_of_several_pods_of_a_node_are_limited_together(void **state) {
        struct arena *a = arena_new(1 << 16);
        struct channel_report_hold list[CHANNEL_REPORT_HELD_MAX];
        struct channel_report_hold more = { 8, UID_B };
        struct channel_report_fabric f = { .held = list }, other = { .held = &more, .n_held = 1 };
        struct channel_report_held all = { 0 };
        for (; f.n_held < CHANNEL_REPORT_HELD_MAX - 1; f.n_held++)
                list[f.n_held] = (struct channel_report_hold){ 7, uid_nr(a, f.n_held) };
        channel_report_add_held(NULL, a, &all);
        assert_int_equal(all.n, 0);
        channel_report_add_held(&f, a, &all);
        channel_report_add_held(&f, a, &all); /* both Pods report the same */
        assert_int_equal(all.n, CHANNEL_REPORT_HELD_MAX - 1);
        channel_report_add_held(&other, a, &all);
        channel_report_add_held(&other, a, &all);
        assert_int_equal(all.n, CHANNEL_REPORT_HELD_MAX);
        assert_false(all.too_many);
        assert_string_equal(all.list[all.n - 1].owner, UID_B);
        more.id++; /* the same owner has another channel */
        channel_report_add_held(&other, a, &all);
        assert_true(all.too_many);
        assert_int_equal(all.n, CHANNEL_REPORT_HELD_MAX);
        arena_free(a);
}

static void the_ComputeDomains_of_waiting_shared_claims_are_reported(void **state) {
        const char *asks[] = { UID_A, UID_B };
        struct channel_report_fabric f = {
                .clique_id = "c", .uid = "", .count = -1, .asks = asks, .n_asks = 2
        };
        const struct channel_report r = { &f, 1 };
        struct arena *a = arena_new(1024);
        struct channel_report back;
        struct buf b = BUF_INIT(1 << 16);
        struct err e;
        channel_report_render(&r, &b);
        assert_string_equal(buf_str(&b),
                            "{\"c\":{\"uid\":\"\",\"held\":{},\"asks\":[\"" UID_A "\",\"" UID_B "\"]}}");
        assert_int_equal(decode(buf_str(&b), a, &back, &e), 0);
        assert_int_equal(back.fabrics[0].n_asks, 2);
        assert_string_equal(back.fabrics[0].asks[1], UID_B);
        const char *many[CHANNEL_REPORT_ASKS_MAX + 1];
        for (size_t i = 0; i < ARRAY_LEN(many); i++)
                many[i] = UID_A;
        f.asks = many;
        f.n_asks = CHANNEL_REPORT_ASKS_MAX;
        buf_clear(&b);
        channel_report_render(&r, &b);
        assert_int_equal(decode(buf_str(&b), a, &back, &e), 0);
        f.n_asks++;
        buf_clear(&b);
        channel_report_render(&r, &b);
        assert_int_equal(decode(buf_str(&b), a, &back, &e), -1);
        assert_string_equal(e.msg, "c.asks: 65 ComputeDomains, more than 64");
        buf_done(&b);
        arena_free(a);
}

static void a_number_of_0_channels_is_reported(void **state) {
        struct channel_report_fabric *one = xnew_n(struct channel_report_fabric, 1);
        *one = (struct channel_report_fabric){ .clique_id = "c", .uid = "" };
        const struct channel_report r = { one, 1 };
        struct buf b = BUF_INIT(4096);
        channel_report_render(&r, &b);
        assert_string_equal(buf_str(&b), "{\"c\":{\"uid\":\"\",\"channelCount\":0,\"held\":{}}}");
        assert_null(channel_report_of(&r, "d")); /* the sanitizer sees a read behind the list */
        buf_done(&b);
        free(one);
}

static void unknown_members_are_ignored_and_both_owners_of_a_channel_are_kept(void **state) {
        struct arena *a = arena_new(1024);
        struct channel_report r;
        struct err e;
        assert_int_equal(decode("{\"c\":{\"uid\":\"\",\"new\":[1],\"held\":{\"7\":\"" UID_A
                                "\",\"7\":\"" UID_B "\"}}}",
                                a, &r, &e),
                         0);
        assert_int_equal(r.fabrics[0].n_held, 2);
        assert_int_equal(decode("{}", a, &r, &e), 0);
        assert_int_equal(r.n_fabrics, 0);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_report_is_decoded_as_it_was_rendered),
                cmocka_unit_test(the_state_of_imex_and_devices_is_decoded_as_it_was_rendered),
                cmocka_unit_test(an_invalid_report_is_no_report),
                cmocka_unit_test(a_report_at_its_limits_is_decoded),
                cmocka_unit_test(a_report_has_a_limited_number_of_partitions),
                cmocka_unit_test(a_report_has_a_limited_number_of_channels),
                cmocka_unit_test(the_channels_of_several_pods_of_a_node_are_limited_together),
                cmocka_unit_test(the_ComputeDomains_of_waiting_shared_claims_are_reported),
                cmocka_unit_test(a_number_of_0_channels_is_reported),
                cmocka_unit_test(unknown_members_are_ignored_and_both_owners_of_a_channel_are_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
