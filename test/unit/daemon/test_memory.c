/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "daemon/memory.h"
#include "model/daemon_report.h"

#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"

static char dir[] = "/tmp/test_memory.XXXXXX";
static const struct memory_identity own = { "boot", "partition", "pod" };
static struct arena *a;

static int setup(void **state) {
        a = arena_new(1024);
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
        _cleanup_(freep) char *path = file_join(dir, MEMORY_FILE);

        unlink(path);
        arena_free(a);
        return rmdir(dir);
}

static void save(void) {
        const int64_t left[] = { 3, 5 };
        const struct memory m = { .decision = { .now = { DOMAIN, 2, 7, { "aa", 18, 28001 } },
                                                .ready = true,
                                                .closed = 8,
                                                .seen = 9,
                                                .recount = 6,
                                                .left = left,
                                                .n_left = 2 },
                                  .served = true };
        struct err e;

        assert_int_equal(memory_save(dir, &own, &m, &e), 0);
}

static int load(const struct memory_identity *of, struct memory *ret, struct err *e) {
        return memory_load(dir, of, a, ret, e);
}

static void a_copy_of_the_memory_is_independent_of_its_source(void **state) {
        struct arena *from = arena_new(256);
        struct memory m = { .decision.now = { arena_strdup(from, DOMAIN),
                                              2,
                                              7,
                                              { arena_strdup(from, "aa"), 18, 28001 } } },
                      copy;

        memory_copy(&m, a, &copy);
        assert_ptr_not_equal(copy.decision.now.domain, m.decision.now.domain);
        assert_ptr_not_equal(copy.decision.now.imex.infix, m.decision.now.imex.infix);
        arena_free(from);
        assert_string_equal(copy.decision.now.domain, DOMAIN);
        assert_string_equal(copy.decision.now.imex.infix, "aa");
        assert_int_equal(copy.decision.now.imex.slots, 18);
}

static void saved_memory_is_loaded(void **state) {
        struct memory m;
        struct err e;

        save();
        assert_int_equal(load(&own, &m, &e), 0);
        assert_string_equal(m.decision.now.domain, DOMAIN);
        assert_string_equal(m.decision.now.imex.infix, "aa");
        assert_int_equal(m.decision.now.index, 2);
        assert_int_equal(m.decision.now.epoch, 7);
        assert_int_equal(m.decision.now.imex.port, 28001);
        assert_int_equal(m.decision.now.imex.slots, 18);
        assert_true(m.decision.ready);
        assert_int_equal(m.decision.closed, 8);
        assert_int_equal(m.decision.seen, 9);
        assert_int_equal(m.decision.recount, 6);
        assert_int_equal(m.decision.n_left, 2);
        assert_int_equal(m.decision.left[1], 5);
        assert_true(m.served);
        assert_false(m.inherited);
}

/* Its own IMEX has served no claim yet. */
/* failure: the Pod of a daemon is replaced -> the next one inherits only the assignment */
static void the_next_pod_inherits_the_assignment_only(void **state) {
        const struct memory_identity next = { "boot", "partition", "another" };
        struct memory m;
        struct err e;

        save();
        assert_int_equal(load(&next, &m, &e), 0);
        assert_true(m.inherited);
        assert_false(m.served);
        assert_int_equal(m.decision.closed, 8);
}

static void memory_of_another_boot_or_partition_does_not_count(void **state) {
        const struct memory_identity boot = { "another", "partition", "pod" },
                                     partition = { "boot", "another", "pod" };
        struct memory m;
        struct err e;

        save();
        assert_int_equal(load(&boot, &m, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(load(&partition, &m, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void an_impossible_assignment_in_memory_is_rejected(void **state) {
        static const char *const nows[] = {
                "{\"domain\":\"../x\",\"infix\":\"aa\",\"index\":2,\"epoch\":7,\"port\":1,\"slots\":18}",
                "{\"domain\":\"" DOMAIN "\",\"infix\":\"/\",\"index\":2,\"epoch\":7,\"port\":1,\"slots\":18}",
                "{\"domain\":\"" DOMAIN
                "\",\"infix\":\"a\",\"index\":18,\"epoch\":7,\"port\":1,\"slots\":18}",
                "{\"domain\":\"" DOMAIN "\",\"infix\":\"a\",\"index\":2,\"epoch\":9,\"port\":1,\"slots\":18}",
        };
        struct memory m;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(nows); i++) {
                _cleanup_(freep) char *text = xasprintf(
                        "{\"bootID\":\"boot\",\"fabric\":\"partition\",\"closed\":8,\"seen\":9,\"now\":%s}",
                        nows[i]);
                if (memory_parse(str_from(text), &own, a, &m, &e) == 0)
                        fail_msg("case %zu", i);
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

static int parse(const char *members, struct memory *ret, struct err *e) {
        _cleanup_(freep) char *text = xasprintf(
                "{\"bootID\":\"boot\",\"fabric\":\"partition\",\"closed\":8,\"seen\":9,%s}", members);
        return memory_parse(str_from(text), &own, a, ret, e);
}

static void an_assignment_of_the_last_closed_epoch_is_accepted(void **state) {
        struct memory m;
        struct err e;

        assert_int_equal(parse("\"now\":{\"domain\":\"" DOMAIN "\",\"infix\":\"a\",\"index\":2,\"epoch\":8,"
                               "\"port\":1,\"slots\":18}",
                               &m, &e),
                         0);
        assert_int_equal(m.decision.now.epoch, 8);
}

static void memory_has_a_limited_number_of_left_epochs(void **state) {
        struct buf left = BUF_INIT(1 << 16);
        struct memory m;
        struct err e;

        buf_adds(&left, "\"left\":\"x,0");
        for (int i = 1; i <= DAEMON_REPORT_LEFT_MAX; i++)
                buf_addf(&left, ",%d", i);
        buf_addc(&left, '"');
        assert_int_equal(parse(buf_str(&left), &m, &e), 0);
        assert_int_equal(m.decision.n_left, DAEMON_REPORT_LEFT_MAX);
        assert_int_equal(m.decision.left[DAEMON_REPORT_LEFT_MAX - 1], DAEMON_REPORT_LEFT_MAX - 1);
        buf_done(&left);
}

static void missing_memory_differs_from_damaged_memory(void **state) {
        _cleanup_(freep) char *path = file_join(dir, MEMORY_FILE);
        struct memory m;
        struct err e;

        unlink(path);
        assert_int_equal(load(&own, &m, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(memory_parse(STR("{"), &own, a, &m, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

/* failure: a power loss empties the daemon's memory file -> it counts as missing, as after every reboot */
static void memory_that_a_power_loss_emptied_is_missing(void **state) {
        _cleanup_(freep) char *path = file_join(dir, MEMORY_FILE);
        const size_t sizes[] = { 0, 4096 };
        static const char zeros[4096];
        struct memory m;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
                assert_int_equal(file_replace_volatile(path, zeros, sizes[i], 0600, &e), 0);
                assert_int_equal(load(&own, &m, &e), -1);
                assert_int_equal(e.kind, ERR_NOT_FOUND);
        }
        assert_int_equal(file_replace_volatile(path, "{", 1, 0600, &e), 0);
        assert_int_equal(load(&own, &m, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
}

static void a_newly_seen_epoch_causes_no_write(void **state) {
        struct memory m, n;
        struct err e;

        save();
        assert_int_equal(load(&own, &m, &e), 0);
        memory_copy(&m, a, &n);
        n.decision.seen++;
        n.decision.recount++;
        assert_true(memory_same(&m, &n));
        n.decision.closed++;
        assert_false(memory_same(&m, &n));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_copy_of_the_memory_is_independent_of_its_source),
                cmocka_unit_test(saved_memory_is_loaded),
                cmocka_unit_test(the_next_pod_inherits_the_assignment_only),
                cmocka_unit_test(memory_of_another_boot_or_partition_does_not_count),
                cmocka_unit_test(an_impossible_assignment_in_memory_is_rejected),
                cmocka_unit_test(an_assignment_of_the_last_closed_epoch_is_accepted),
                cmocka_unit_test(memory_has_a_limited_number_of_left_epochs),
                cmocka_unit_test(missing_memory_differs_from_damaged_memory),
                cmocka_unit_test(memory_that_a_power_loss_emptied_is_missing),
                cmocka_unit_test(a_newly_seen_epoch_causes_no_write),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
