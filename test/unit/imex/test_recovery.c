/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "imex/imex_recovery.h"
#include "programs.h"

#define PATIENCE 60000

/* n1 to n5 have the indices 1 to 5, this node has 0. The text has a letter for the boot of each node; '.' is
 * an unknown boot, and a blank is a node that is not a member. */
static struct imex_members members(struct imex_peer peers[5], const char *boots) {
        static const char *const names[] = { "n1", "n2", "n3", "n4", "n5" };
        static char boot[256][2];
        struct imex_members m = { .own_index = 0, .infix = "", .peers = peers };

        for (int i = 0; boots[i]; i++) {
                unsigned char c = (unsigned char)boots[i];

                if (c == ' ')
                        continue;
                boot[c][0] = (char)c;
                peers[m.n_peers++] = (struct imex_peer){
                        .index = i + 1, .ip = "10.0.0.1", .node = names[i], .boot_id = c == '.' ? "" : boot[c]
                };
        }
        return m;
}

static struct imex_recovery_verdict judge(const char *before, const char *now, const char *seen_one,
                                          uint64_t waited_ms, uint64_t informed_ms) {
        struct imex_peer x[5], y[5];
        struct imex_members b = members(x, before ? before : ""), n = members(y, now);
        struct imex_recovery_verdict v;

        imex_recovery_evaluate(&(struct imex_recovery_facts){ .waited_ms = waited_ms,
                                                              .informed_ms = informed_ms,
                                                              .limit_ms = PATIENCE,
                                                              .now = &n,
                                                              .before = before ? &b : NULL,
                                                              .seen = &seen_one,
                                                              .n_seen = seen_one != NULL },
                               &v);
        return v;
}

static void nothing_is_decided_before_the_patience_has_passed(void **state) {
        struct imex_recovery_verdict v = judge(NULL, "", NULL, PATIENCE - 1, PATIENCE);

        assert_false(v.restart || v.settled || v.n_awaited);
        assert_int_equal(v.again_ms, 1);
}

static void nodes_that_have_not_connected_are_named(void **state) {
        struct imex_recovery_verdict v = judge(NULL, "abc", "n2", PATIENCE, PATIENCE);

        assert_false(v.restart);
        assert_true(v.settled);
        assert_string_equal(v.awaited, "n1, n3");
        assert_int_equal(v.again_ms, 0);
        v = judge(NULL, "abcde", NULL, PATIENCE, PATIENCE);
        assert_int_equal(v.n_awaited, 5);
        assert_string_equal(v.awaited, "n1, n2, n3 and 2 more");
}

/* failure: peers may still map the memory of a crashed IMEX -> only proof about each ends the wait */
static void only_proof_about_each_peer_ends_the_wait(void **state) {
        static const struct {
                const char *before, *now, *seen;
                bool restart;
        } cases[] = {
                { "ab", "ab", NULL, false },   { "ab", "ab", "n1", false }, /* the other one may still map our
                                                                               memory */
                { "a", "a", "n1", true },      { "a", "x", NULL, true },    /* it has rebooted */
                { "a", "", NULL, true },   /* it is deleted, or out-of-service */
                { "a", " z", NULL, true }, /* ... and another node has joined that never connected to us
                                              before */
                { "ab", "xb", NULL, false },   { "ab", "xy", NULL, true },  { "abc", " yc", "n3", true },
                { "abc", " bc", "n3", false }, { "a", ".", NULL, false }, /* an unknown boot proves nothing */
                { ".", "x", NULL, false },     { ".", ".", NULL, false },   { ".", "", NULL, true },
                { "", "", NULL, true }, /* the awaited nodes have left before */
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct imex_recovery_verdict v =
                        judge(cases[i].before, cases[i].now, cases[i].seen, PATIENCE, PATIENCE);

                if (v.restart != cases[i].restart || v.settled || v.restart != !v.n_awaited)
                        fail_msg("'%s' then '%s': %d", cases[i].before, cases[i].now, v.restart);
                /* The same without current information. */
                assert_false(judge(cases[i].before, cases[i].now, cases[i].seen, PATIENCE, 0).restart);
        }
}

/* A boot ID that arrives late would look like a reboot after our end. */
/* failure: a peer's boot ID arrives late -> it does not count as a reboot */
static void peers_count_if_they_were_known_for_the_whole_wait(void **state) {
        struct imex_recovery_verdict v = judge(NULL, "", NULL, 10 * PATIENCE, 0);

        assert_false(v.restart || v.settled);
        assert_int_equal(v.again_ms, 0);
        v = judge(NULL, "a", NULL, 10 * PATIENCE, 1000);
        assert_false(v.restart || v.settled);
        assert_string_equal(v.awaited, "n1");
        assert_int_equal(v.again_ms, PATIENCE - 1000);
        assert_true(judge(NULL, "a", NULL, 10 * PATIENCE, PATIENCE).settled);
        assert_true(judge(NULL, "", NULL, 10 * PATIENCE, PATIENCE).restart);
}

static void long_names_are_cut(void **state) {
        char long_name[300];
        struct imex_peer peers[5];
        struct imex_recovery_verdict v;

        memset(long_name, 'x', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        for (int i = 0; i < 5; i++)
                peers[i] = (struct imex_peer){ .index = i + 1, .ip = "", .node = long_name, .boot_id = "" };
        imex_recovery_evaluate(&(struct imex_recovery_facts){ .waited_ms = 1,
                                                              .informed_ms = 1,
                                                              .limit_ms = 1,
                                                              .now = &(struct imex_members){ .own_index = 0,
                                                                                             .infix = "",
                                                                                             .peers = peers,
                                                                                             .n_peers = 5 } },
                               &v);
        assert_int_equal(v.n_awaited, 5);
        assert_non_null(strstr(v.awaited, " and 2 more"));
}

/* failure: nvidia-imex left state and folders behind -> they are removed after a recovery */
static void forgetting_empties_and_keeps_the_folder(void **state) {
        _cleanup_(freep) char *run = in_dir("run"), *inner = in_dir("run/inner");
        _cleanup_(freep) char *link = in_dir("run/inner/link");
        struct err e;

        assert_int_equal(imex_recovery_forget(run, &e), 0); /* the folder is empty */
        assert_int_equal(mkdir(run, 0755), 0);
        put("run/persist.dat", "x", 0644);
        put("run/persist.dat.new", "x", 0644);
        assert_int_equal(imex_recovery_forget(run, &e), 0);
        assert_int_equal(access(run, F_OK), 0);
        /* The format is private: there may be folders, and links that lead out of the folder. */
        assert_int_equal(mkdir(inner, 0755), 0);
        put("kept", "x", 0644);
        put("run/inner/file", "x", 0644);
        assert_int_equal(symlink("../../kept", link), 0);
        assert_int_equal(imex_recovery_forget(run, &e), 0);
        assert_int_equal(access(inner, F_OK), -1);
        assert_int_equal(count("kept", "x"), 1);
        assert_int_equal(rmdir(run), 0);
}

int main(void) {
#define D(t) cmocka_unit_test_setup_teardown(t, make_dir, remove_dir)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_decided_before_the_patience_has_passed),
                cmocka_unit_test(nodes_that_have_not_connected_are_named),
                cmocka_unit_test(only_proof_about_each_peer_ends_the_wait),
                cmocka_unit_test(peers_count_if_they_were_known_for_the_whole_wait),
                cmocka_unit_test(long_names_are_cut),
                D(forgetting_empties_and_keeps_the_folder),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
