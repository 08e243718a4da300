/* SPDX-License-Identifier: Apache-2.0 */
#include "model/daemon_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"
#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"
#define CLAIM "dddddddd-0000-4000-8000-000000000001"
#define BOOT "bbbbbbbb-0000-4000-8000-000000000001"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define IDENTITY "\"claimUID\":\"" CLAIM "\",\"bootID\":\"" BOOT "\""

static int decode(const char *text, struct arena *a, struct daemon_report *r, struct err *e) {
        return daemon_report_decode((struct str){ text, strlen(text) }, a, r, e);
}

static void a_report_has_the_facts_that_were_written(void **state) {
        static const int64_t left[] = { 3, 7, INT64_MAX };
        const struct daemon_report r = { .claim = CLAIM,
                                         .boot_id = BOOT,
                                         .fabric = OBJECT,
                                         .has_assignment = true,
                                         .assignment = { CLIQUE, DOMAIN, 2, 9 },
                                         .ready = true,
                                         .left = left,
                                         .n_left = 3,
                                         .seen = 9,
                                         .recount = 8,
                                         .served = true,
                                         .waits_for = "a pod on this node uses it",
                                         .imex_version = "580.95.05" };
        struct arena *a = arena_new(1024);
        struct buf b = BUF_INIT(4096);
        struct daemon_report back;
        struct err e;
        daemon_report_render(&r, &b);
        assert_string_equal(buf_str(&b), "{" IDENTITY ",\"fabricUID\":\"" OBJECT "\",\"assignment\":\"" CLIQUE
                                         "/" DOMAIN "/2/9\",\"ready\":true,"
                                         "\"left\":\"3,7,9223372036854775807\",\"seen\":9,\"recount\":8,"
                                         "\"served\":true,\"waitsFor\":\"a pod on this node uses it\","
                                         "\"imexVersion\":\"580.95.05\"}");
        assert_int_equal(decode(buf_str(&b), a, &back, &e), 0);
        assert_string_equal(back.claim, CLAIM);
        assert_string_equal(back.boot_id, BOOT);
        assert_string_equal(back.fabric, OBJECT);
        assert_true(back.has_assignment && back.ready && back.served);
        assert_string_equal(back.assignment.clique_id, CLIQUE);
        assert_string_equal(back.assignment.domain_uid, DOMAIN);
        assert_int_equal(back.assignment.index, 2);
        assert_int_equal(back.assignment.epoch, 9);
        assert_int_equal(back.n_left, 3);
        assert_memory_equal(back.left, left, sizeof left);
        assert_int_equal(back.seen, 9);
        assert_int_equal(back.recount, 8);
        assert_string_equal(back.waits_for, "a pod on this node uses it");
        assert_string_equal(back.imex_version, "580.95.05");
        buf_done(&b);
        arena_free(a);
}

static void a_daemon_without_an_assignment_reports_only_its_identity(void **state) {
        const struct daemon_report r = {
                .claim = CLAIM, .boot_id = BOOT, .fabric = "", .waits_for = "", .imex_version = ""
        };
        struct arena *a = arena_new(1024);
        struct buf b = BUF_INIT(4096);
        struct daemon_report back;
        struct err e;
        daemon_report_render(&r, &b);
        assert_string_equal(buf_str(&b), "{" IDENTITY ",\"fabricUID\":\"\",\"seen\":0,\"served\":false}");
        assert_int_equal(decode(buf_str(&b), a, &back, &e), 0);
        assert_false(back.has_assignment || back.ready || back.served);
        assert_string_equal(back.fabric, "");
        assert_string_equal(back.waits_for, "");
        assert_string_equal(back.imex_version, "");
        assert_int_equal(back.n_left + (size_t)back.seen + (size_t)back.recount, 0);
        buf_done(&b);
        arena_free(a);
}

/* A newer daemon may report more, and an older one less. */
static void unknown_members_are_ignored_and_absent_ones_are_empty(void **state) {
        struct arena *a = arena_new(1024);
        struct daemon_report r;
        struct err e;
        assert_int_equal(decode("{" IDENTITY ",\"later\":{\"x\":[1]},\"left\":\"\"}", a, &r, &e), 0);
        assert_string_equal(r.claim, CLAIM);
        assert_string_equal(r.fabric, "");
        assert_string_equal(r.waits_for, "");
        assert_false(r.has_assignment);
        assert_int_equal(r.n_left, 0);
        arena_free(a);
}

/* failure: part of a daemon's report is invalid -> the whole report is refused [tenants] */
static void a_report_with_an_invalid_part_is_refused(void **state) {
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "", "not JSON" },
                { "[]", "not an object" },
                { "{}", "claimUID: missing" },
                { "{\"claimUID\":\"" CLAIM "\"}", "bootID: missing" },
                { "{\"claimUID\":\"\",\"bootID\":\"" BOOT "\"}", "claimUID: \"\" is not a UID" },
                { "{\"claimUID\":\"x/y\",\"bootID\":\"" BOOT "\"}", "claimUID: \"x/y\" is not a UID" },
                { "{\"claimUID\":\"" CLAIM "\",\"bootID\":\"b\"}", "bootID: \"b\" is not a UUID" },
                { "{" IDENTITY ",\"fabricUID\":\"other\"}", "fabricUID: \"other\" is not a UID" },
                { "{" IDENTITY ",\"assignment\":\"" CLIQUE "/" DOMAIN "/2\"}", "assignment: \"" CLIQUE },
                { "{" IDENTITY ",\"assignment\":\"" CLIQUE "/" DOMAIN "/-2/9\"}", "is not readable" },
                { "{" IDENTITY ",\"assignment\":7}", "assignment: not a string" },
                { "{" IDENTITY ",\"ready\":\"true\"}", "ready: not a boolean" },
                { "{" IDENTITY ",\"left\":\"3,x\"}", "left: \"x\" is not an epoch" },
                { "{" IDENTITY ",\"left\":\"3,,7\"}", "left: \"\" is not an epoch" },
                { "{" IDENTITY ",\"left\":\"-3\"}", "left: \"-3\" is not an epoch" },
                { "{" IDENTITY ",\"left\":\"9223372036854775808\"}", "is not an epoch" },
                { "{" IDENTITY ",\"left\":[3]}", "left: not a string" },
                { "{" IDENTITY ",\"seen\":-1}", "must not be negative" },
                { "{" IDENTITY ",\"recount\":-1}", "must not be negative" },
                { "{" IDENTITY ",\"seen\":1e30}", "seen: not an integer" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena *a = arena_new(1024);
                struct daemon_report r;
                struct err e;
                if (decode(rows[i].text, a, &r, &e) == 0 || e.kind != ERR_INVALID ||
                    !strstr(e.msg, rows[i].want))
                        fail_msg("%s: %s", rows[i].text, e.msg);
                arena_free(a);
        }
}

/* A report with this number of epochs and a reason of this length. */
static int decode_long(size_t n_left, size_t n_held, struct daemon_report *r) {
        struct arena *a = arena_new(1024);
        struct buf b = BUF_INIT(1 << 16);
        struct err e;
        buf_addf(&b, "{" IDENTITY ",\"left\":\"");
        for (size_t i = 0; i < n_left; i++)
                buf_addf(&b, "%s%zu", i ? "," : "", i);
        buf_addf(&b, "\",\"waitsFor\":\"");
        for (size_t i = 0; i < n_held; i++)
                buf_addf(&b, "x");
        buf_addf(&b, "\"}");
        assert_false(b.failed);
        int ret = decode(buf_str(&b), a, r, &e);
        buf_done(&b);
        arena_free(a);
        return ret;
}

/* failure: a daemon's report is too long -> it is refused [tenants] */
static void the_number_of_epochs_and_the_text_are_limited(void **state) {
        struct daemon_report r;
        assert_int_equal(decode_long(DAEMON_REPORT_LEFT_MAX, 1023, &r), 0);
        assert_int_equal(r.n_left, DAEMON_REPORT_LEFT_MAX);
        assert_int_equal(decode_long(DAEMON_REPORT_LEFT_MAX + 1, 0, &r), -1);
        assert_int_equal(decode_long(0, 1024, &r), -1);
}

static void an_epoch_that_is_left_is_not_negative(void **state) {
        static const char x39[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        struct arena *a = arena_new(1024);
        struct daemon_report r;
        struct err e;
        assert_int_equal(decode("{" IDENTITY ",\"left\":\"0\"}", a, &r, &e), 0);
        assert_int_equal(decode("{" IDENTITY ",\"left\":\"-1\"}", a, &r, &e), -1);
        assert_int_equal(decode(arena_printf(a, "{" IDENTITY ",\"left\":\"%s,1\"}", x39), a, &r, &e), -1);
        assert_non_null(strstr(e.msg, arena_printf(a, "\"%s\"", x39)));
        arena_free(a);
}

/* The sanitizer sees a read behind the end of the list. */
static void an_epoch_is_found_in_the_whole_list(void **state) {
        int64_t *epochs = xnew_n(int64_t, 2);
        epochs[0] = 3;
        epochs[1] = 7;
        assert_true(daemon_report_has_epoch(epochs, 2, 7));
        assert_false(daemon_report_has_epoch(epochs, 2, 8));
        free(epochs);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_report_has_the_facts_that_were_written),
                cmocka_unit_test(a_daemon_without_an_assignment_reports_only_its_identity),
                cmocka_unit_test(unknown_members_are_ignored_and_absent_ones_are_empty),
                cmocka_unit_test(a_report_with_an_invalid_part_is_refused),
                cmocka_unit_test(the_number_of_epochs_and_the_text_are_limited),
                cmocka_unit_test(an_epoch_that_is_left_is_not_negative),
                cmocka_unit_test(an_epoch_is_found_in_the_whole_list),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
