/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

#define LOST(id) "[ERROR] Connection lost to node " id " - 10.0.0.2: reset by peer"
#define UP(id) "Connection established to node " id " with address b. Number of times connected: 1"
#define GONE(id) "Node disconnect event detected for node " id " with address b"

static const struct imex_peer peers[] = { { 0, "10.0.0.1", "n0", "" },
                                          { 1, "10.0.0.2", "n1", "" },
                                          { 2, "10.0.0.3", "n2", "" } };
static const struct imex_members all = { .infix = "", .peers = peers, .n_peers = 3 };

/* An answer in which node 0 is connected to the listed nodes only. */
static uint64_t now_ms = 1;

static bool answers_once(struct imex_links *l, bool to_1, bool to_2) {
        struct imex_ctl_connection c[] = { { -7, false }, { -1, false }, { 4096, true }, { 5000, true },
                                           { 0, true },   { 1, to_1 },   { 2, to_2 } };
        return imex_links_note_answer(
                l, &(struct imex_ctl_node){ .connections = c, .n_connections = ARRAY_LEN(c) }, now_ms);
}

static void answers(struct imex_links *l, bool to_1, bool to_2) {
        (void)answers_once(l, to_1, to_2);
        assert_false(answers_once(l, to_1, to_2));
}

static void assert_lost(const struct imex_links *l, const char *want) {
        char lost[IMEX_LOST_MAX];
        (void)imex_links_lost(l, lost);
        assert_string_equal(lost, want);
}

static bool known(const struct imex_links *l) {
        char lost[IMEX_LOST_MAX];
        return imex_links_lost(l, lost);
}

static void a_peer_is_lost_after_it_was_connected(void **state) {
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        answers(&l, false, true);
        assert_lost(&l, ""); /* n1 may still be starting */
        answers(&l, true, true);
        answers(&l, false, true);
        assert_lost(&l, "1");
        answers(&l, false, false);
        assert_lost(&l, "1,2");
        answers(&l, true, false);
        assert_lost(&l, "2");
        imex_links_begin(&l, &all, 1);
        assert_lost(&l, "");
}

static void complete_means_an_answer_with_all_active_peers_connected(void **state) {
        static const struct imex_members two = { .infix = "", .peers = peers, .n_peers = 2 };
        struct imex_links l;
        imex_links_begin(&l, &two, 1);
        (void)imex_links_note_line(&l, (struct str)STR(UP("1")));
        assert_false(imex_links_complete(&l)); /* no answer */
        answers(&l, true, false);
        assert_true(imex_links_complete(&l)); /* node 2 is not active */
        imex_links_note_members(&l, &two, &all, 1);
        assert_false(imex_links_complete(&l));
        answers(&l, true, true);
        assert_true(imex_links_complete(&l));
        (void)imex_links_note_line(&l, (struct str)STR(LOST("1")));
        assert_false(imex_links_complete(&l));
}

/* failure: nvidia-imex restarts its connections, because a node joins -> no peer counts as lost */
static void a_peer_that_reconnects_at_once_is_not_lost(void **state) {
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        answers(&l, true, true);
        assert_true(answers_once(&l, false, true));
        assert_lost(&l, "");
        assert_false(answers_once(&l, true, true));
        assert_true(answers_once(&l, false, true));
        assert_lost(&l, "");
        assert_true(imex_links_note_line(&l, STR(UP("1"))));
        assert_true(answers_once(&l, false, true));
        assert_lost(&l, "");
        assert_false(answers_once(&l, false, true));
        assert_lost(&l, "1");
}

/* failure: nvidia-imex loses a peer -> a line of its log and one answer are enough */
static void the_log_reports_a_change_at_once(void **state) {
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        assert_true(imex_links_note_line(&l, STR(LOST("1"))));
        assert_false(answers_once(&l, false, false));
        assert_lost(&l, "");
        assert_true(imex_links_note_line(&l, STR(UP("1"))));
        assert_true(imex_links_note_line(&l, STR(LOST("1"))));
        assert_lost(&l, "");
        assert_false(answers_once(&l, false, false));
        assert_lost(&l, "1");
        assert_true(imex_links_note_line(&l, STR(UP("1"))));
        assert_lost(&l, "");
        assert_true(imex_links_note_line(&l, STR(GONE("1"))));
        assert_true(imex_links_note_line(&l, STR(GONE("1"))));
        assert_lost(&l, "1");
        answers(&l, true, true);
        assert_lost(&l, "");
}

/* failure: nvidia-imex-ctl -N waits for a lost node, and does not answer -> the log is enough */
static void an_answer_that_does_not_arrive_confirms_the_log(void **state) {
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        answers(&l, true, true);
        assert_false(imex_links_note_answer(&l, NULL, now_ms));
        assert_lost(&l, "");
        assert_true(imex_links_note_line(&l, STR(LOST("2"))));
        assert_false(imex_links_note_answer(&l, NULL, now_ms));
        assert_lost(&l, "2");
}

static void other_lines_change_nothing(void **state) {
        static const char *const lines[] = { "", "Connection lost to node ", "Connection lost to node x",
                                             "Connection lost to node 99999999999999999999",
                                             "Attempting connection for target node 1" };
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        answers(&l, true, true);
        for (size_t i = 0; i < ARRAY_LEN(lines); i++)
                assert_false(imex_links_note_line(&l, str_from(lines[i])));
        (void)imex_links_note_line(&l, STR(LOST("4096"))); /* not an index */
        assert_lost(&l, "");
        assert_false(imex_links_note_line(&l, (struct str){ 0 }));
}

/* The sanitizer finds a byte that is read behind the line. */
static bool note_exact(struct imex_links *l, const char *line) {
        size_t n = strlen(line);
        char *exact = memcpy(malloc(n), line, n);
        bool noted = imex_links_note_line(l, (struct str){ exact, n });
        free(exact);
        return noted;
}

static void the_number_in_a_line_ends_with_its_last_digit(void **state) {
        static const char *const lines[] = { "Connection lost to node 19", "Connection lost to node 19/2",
                                             "Connection lost to node 19:2",
                                             "Connection lost to node 19 (2)" };
        for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
                const struct imex_peer two[] = { peers[0], { 19, "10.0.0.2", "n19", "" } };
                struct imex_links l;
                imex_links_begin(&l, &(struct imex_members){ .infix = "", .peers = two, .n_peers = 2 }, 1);
                assert_true(note_exact(&l, "Connection established to node 19"));
                assert_true(note_exact(&l, lines[i]));
                assert_true(note_exact(&l, lines[i]));
                assert_lost(&l, "19");
        }
}

static void the_largest_index_is_4095(void **state) {
        const struct imex_peer list[] = { { -1, "10.0.0.1", "n", "" },
                                          { IMEX_SLOTS_MAX - 1, "10.0.0.2", "n4095", "" },
                                          { IMEX_SLOTS_MAX, "10.0.0.3", "n4096", "" } };
        const struct imex_members m = { .infix = "", .peers = list, .n_peers = ARRAY_LEN(list) };
        struct imex_links l;
        imex_links_begin(&l, &m, 1);
        (void)imex_links_note_line(&l, STR(UP("4095")));
        (void)imex_links_note_line(&l, STR(LOST("4095")));
        assert_false(imex_links_note_answer(&l, NULL, now_ms));
        assert_lost(&l, "4095");
        imex_links_note_members(&l, &m, &all, now_ms);
        assert_lost(&l, "");
}

static void lost_peers_are_known_after_an_answer(void **state) {
        static const struct imex_members alone = { .infix = "", .peers = peers, .n_peers = 1 };
        struct imex_links l;
        imex_links_begin(&l, &alone, 1);
        assert_true(known(&l));
        imex_links_begin(&l, &all, 1);
        assert_false(known(&l));
        (void)imex_links_note_answer(&l, NULL, now_ms);
        assert_false(known(&l));
        answers(&l, true, true);
        assert_true(known(&l));
}

/* failure: IMEX never connects to a peer -> the peer counts as lost after half a minute */
static void a_peer_that_never_connects_is_lost_after_a_while(void **state) {
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        now_ms = IMEX_LINKS_PATIENCE_MS;
        answers(&l, true, false);
        assert_lost(&l, "");
        now_ms = IMEX_LINKS_PATIENCE_MS + 1;
        (void)imex_links_note_answer(&l, NULL, now_ms); /* no answer is no proof */
        assert_lost(&l, "");
        answers(&l, true, false);
        assert_lost(&l, "2");
        answers(&l, true, true);
        assert_lost(&l, "");
        now_ms = 1;
}

/* A node leaves, and the next one gets its index, before IMEX has connected to that. */
static void a_peer_that_leaves_is_not_lost(void **state) {
        struct imex_peer later[] = { peers[0], peers[1], peers[2] };
        struct imex_members now = { .infix = "", .peers = later, .n_peers = 3 };
        struct imex_links l;
        imex_links_begin(&l, &all, 1);
        answers(&l, true, true);
        answers(&l, false, false);
        assert_lost(&l, "1,2");
        later[1].ip = ""; /* not active */
        later[2].node = "n9";
        now_ms = 5;
        imex_links_note_members(&l, &all, &now, now_ms);
        assert_lost(&l, "");
        answers(&l, false, false);
        assert_lost(&l, "");
        now_ms = 5 + IMEX_LINKS_PATIENCE_MS;
        answers(&l, false, false);
        assert_lost(&l, "2");                            /* 1 is not active */
        imex_links_note_members(&l, &now, &all, now_ms); /* 1 is active again, and 2 is another node */
        assert_lost(&l, "");
        answers(&l, true, true);
        answers(&l, false, false);
        assert_lost(&l, "1,2");
        now.n_peers = 2;
        later[1].ip = "10.0.0.2";
        imex_links_note_members(&l, &all, &now, now_ms);
        assert_lost(&l, "1");
        now_ms = 1;
}

static void a_list_is_cut_between_indices(void **state) {
        enum { N = 600 };
        struct imex_peer many[N];
        struct imex_links l;
        char lost[IMEX_LOST_MAX];
        for (int i = 0; i < N; i++)
                many[i] = (struct imex_peer){ .index = i, .ip = "10.0.0.1", .node = "n" };
        const struct imex_members m = { .own_index = -1, .infix = "", .peers = many, .n_peers = N };
        imex_links_begin(&l, &m, 1);
        for (int i = 0; i < N; i++) {
                char line[100];
                snprintf(line, sizeof line, UP("%d"), i);
                imex_links_note_line(&l, str_from(line));
                snprintf(line, sizeof line, LOST("%d"), i);
                imex_links_note_line(&l, str_from(line));
                imex_links_note_line(&l, str_from(line));
        }
        (void)imex_links_lost(&l, lost);
        assert_true(strlen(lost) > IMEX_LOST_MAX - 10);
        assert_true(imex_links_lists(lost, 0) && imex_links_lists(lost, 250));
        assert_false(imex_links_lists(lost, 599));
}

/* Fills the list with peers from this index on, behind the peer `first`. */
static void list_from(char lost[static IMEX_LOST_MAX], int64_t first, int64_t next) {
        enum { N = 300 };
        struct imex_peer many[N] = { { first, "10.0.0.1", "n", "" } };
        struct imex_links l;
        for (size_t i = 1; i < N; i++)
                many[i] = (struct imex_peer){ next + (int64_t)i - 1, "10.0.0.1", "n", "" };
        imex_links_begin(&l, &(struct imex_members){ -1, .infix = "", .peers = many, .n_peers = N }, 1);
        for (size_t i = 0; i < N; i++) {
                struct imex_ctl_connection c = { many[i].index, true };
                const struct imex_ctl_node own = { .connections = &c, .n_connections = 1 };
                (void)imex_links_note_answer(&l, &own, 1);
                c.connected = false;
                (void)imex_links_note_answer(&l, &own, 1);
                (void)imex_links_note_answer(&l, NULL, 1);
        }
        (void)imex_links_lost(&l, lost);
}

static void an_index_is_listed_if_it_fits_with_the_end(void **state) {
        char lost[IMEX_LOST_MAX];
        list_from(lost, 100, 1000); /* 203 indices of four digits leave room for exactly one more */
        assert_int_equal(strlen(lost), IMEX_LOST_MAX - 1);
        assert_true(str_ends(lost, ",1202,1203"));
        list_from(lost, 1000, 1001);
        assert_int_equal(strlen(lost), IMEX_LOST_MAX - 5);
        assert_true(str_ends(lost, ",1202,1203"));
}

static void a_list_of_a_foreign_daemon_is_read_safely(void **state) {
        assert_true(imex_links_lists("3,7", 7));
        assert_false(imex_links_lists("3,7", 37));
        assert_false(imex_links_lists("", 0));
        assert_false(imex_links_lists(",,x,", 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_peer_is_lost_after_it_was_connected),
                cmocka_unit_test(a_peer_that_reconnects_at_once_is_not_lost),
                cmocka_unit_test(complete_means_an_answer_with_all_active_peers_connected),
                cmocka_unit_test(the_log_reports_a_change_at_once),
                cmocka_unit_test(an_answer_that_does_not_arrive_confirms_the_log),
                cmocka_unit_test(other_lines_change_nothing),
                cmocka_unit_test(the_number_in_a_line_ends_with_its_last_digit),
                cmocka_unit_test(the_largest_index_is_4095),
                cmocka_unit_test(lost_peers_are_known_after_an_answer),
                cmocka_unit_test(a_peer_that_never_connects_is_lost_after_a_while),
                cmocka_unit_test(a_peer_that_leaves_is_not_lost),
                cmocka_unit_test(a_list_is_cut_between_indices),
                cmocka_unit_test(an_index_is_listed_if_it_fits_with_the_end),
                cmocka_unit_test(a_list_of_a_foreign_daemon_is_read_safely),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
