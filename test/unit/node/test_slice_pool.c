/* SPDX-License-Identifier: Apache-2.0 */
/* Devices in several slices: the writes, and what the scheduler sees between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "node/slice_pool.h"

enum { SLICES_MAX = 8, DEVICES_MAX = 400 };

/* The slices on the server. */
static struct arena *arena;
static const struct own_slice *have[SLICES_MAX];
static size_t n_have;
static unsigned writes, deletions;
static int64_t target;
static struct offered_device devices[DEVICES_MAX];
static struct slice_content want = { .driver = "gpu.nvidia.com", .devices = devices };

static int setup(void **state) {
        arena = arena_new(1 << 16);
        n_have = 0;
        writes = deletions = 0;
        target = 0;
        for (size_t i = 0; i < DEVICES_MAX; i++)
                devices[i] = (struct offered_device){ .name = arena_printf(arena, "gpu-%zu", i) };
        return 0;
}

static int teardown(void **state) {
        arena_free(arena);
        return 0;
}

static struct own_slice *decoded(const struct slice_part *part, const char *name) {
        struct buf b = BUF_INIT(1 << 20);
        struct own_slice *s = arena_alloc(arena, sizeof *s);
        const struct own_slice old = { .o.meta = { .name = name, .rv = "1" } };
        struct err e;
        slice_part_render("v1", (struct slice_owner){ "n0", "uid" }, &old, &want, part, &b);
        assert_int_equal(jd_decode_text(own_slice_fields, (struct str){ b.p, b.n }, "", arena, s, &e), 0);
        buf_done(&b);
        return s;
}

static void put(const struct slice_part *part, const char *name) {
        have[n_have++] = decoded(part, name);
}

static void drop(const struct own_slice *s) {
        for (size_t i = 0; i < n_have; i++)
                if (have[i] == s)
                        have[i] = have[--n_have];
}

/* One step; false: nothing is left to do. */
static bool step(void) {
        static unsigned made;
        struct slice_step next = slice_pool_next(have, n_have, "n0", &want, &target);
        char name[64];
        switch (next.kind) {
        case SLICE_DONE:
                return false;
        case SLICE_DELETE:
                drop(next.slice);
                deletions++;
                return true;
        case SLICE_UPDATE:
                drop(next.slice);
                put(&next.part, next.slice->o.meta.name);
                break;
        case SLICE_CREATE:
                snprintf(name, sizeof name, "%05zx-gpu.nvidia.com-n0-%u", next.part.place, made++);
                put(&next.part, arena_strdup(arena, name));
                break;
        }
        writes++;
        return true;
}

static void settle(void) {
        writes = deletions = 0;
        for (unsigned i = 0; step(); i++)
                assert_true(i < 20);
        assert_int_equal(target, 0);
        assert_int_equal(n_have, slice_pool_size(&want));
}

static int64_t generation(void) {
        for (size_t i = 1; i < n_have; i++)
                assert_int_equal(have[i]->generation, have[0]->generation);
        return have[0]->generation;
}

static void devices_are_spread_over_the_necessary_slices(void **state) {
        want.n_devices = 0;
        settle();
        assert_int_equal(writes, 1); /* a node without devices has one empty slice */
        want.n_devices = 300;
        settle();
        assert_int_equal(n_have, 3);
        assert_int_equal(generation(), 2); /* the existing one has another number of slices */
        want.n_devices = SLICE_DEVICES_MAX;
        assert_int_equal(slice_pool_size(&want), 1);
        want.n_devices++;
        assert_int_equal(slice_pool_size(&want), 2);
        settle();
        assert_int_equal(n_have, 2);
        want.n_devices = SLICE_DEVICES_MAX - 1;
        assert_int_equal(slice_pool_part(&want, 0).n, SLICE_DEVICES_MAX - 1);
}

static void a_single_changed_slice_keeps_its_generation(void **state) {
        want.n_devices = 300;
        settle();
        assert_int_equal(generation(), 1);
        devices[200].name = "another";
        settle();
        assert_int_equal(writes, 1);
        assert_int_equal(generation(), 1);
        drop(have[1]); /* another client deletes one */
        settle();
        assert_int_equal(writes, 1);
        assert_int_equal(generation(), 1);
}

/* failure: several slices of a node change -> old and new devices never share a generation */
static void a_change_of_several_slices_gets_a_new_generation(void **state) {
        want.n_devices = 300;
        settle();
        devices[0].name = "another";
        devices[299].name = "and-another";
        writes = 0;
        while (step()) {
                /* A reader of the highest generation never sees a mix of old and new devices. */
                for (size_t i = 0; i < n_have; i++) {
                        struct slice_part part =
                                slice_pool_part(&want, (size_t)(have[i]->o.meta.name[4] - '0'));
                        if (have[i]->generation == 2)
                                assert_true(slice_part_matches(have[i], "n0", &want, &part));
                }
        }
        assert_int_equal(writes, 3);
        assert_int_equal(generation(), 2);
}

/* failure: the plugin dies while it writes several slices -> the next one completes them */
static void an_interrupted_update_of_slices_is_completed(void **state) {
        want.n_devices = 300;
        settle();
        devices[0].name = "another";
        devices[299].name = "and-another";
        assert_true(step());
        target = 0; /* a new process */
        settle();
        assert_int_equal(generation(), 2);
        assert_int_equal(writes, 2);
        /* And with other content: the written half does not have it. */
        devices[0].name = "one-more";
        devices[299].name = "and-one-more";
        assert_true(step());
        target = 0;
        devices[0].name = "a-third";
        settle();
        assert_int_equal(generation(), 4);
}

/* The last slice has the new generation, but other devices. */
static void an_interrupted_generation_with_a_wrong_slice_is_written_again(void **state) {
        static const char *const slice_names[] = { "00000-x", "00001-x", "00002-x" };
        want.n_devices = 300;
        for (size_t i = 0; i < ARRAY_LEN(slice_names); i++) {
                struct slice_part part = slice_pool_part(&want, i);
                part.generation = i ? 2 : 1;
                devices[299].name = "another";
                put(&part, slice_names[i]);
        }
        devices[299].name = "gpu-299";
        settle();
        assert_int_equal(generation(), 3);
}

/* failure: a node has fewer devices than before -> no slice remains */
static void fewer_devices_leave_no_slice_behind(void **state) {
        want.n_devices = 300;
        settle();
        want.n_devices = 10;
        settle();
        assert_int_equal(n_have, 1);
        assert_int_equal(deletions, 2);
        assert_int_equal(have[0]->count, 1);
}

/* failure: a node has unknown or duplicate slices -> they are deleted */
static void unknown_and_duplicate_slices_are_deleted(void **state) {
        static const char *const names[] = { "n0-gpu", "0001-x",      "00003-x",    "0000A-x",
                                             "00001x", "000000001-x", "00001-twice" };
        want.n_devices = 300;
        settle();
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct slice_part part = slice_pool_part(&want, 1);
                part.generation = 1;
                put(&part, names[i]);
                settle();
                assert_int_equal(deletions, 1);
                assert_int_equal(writes, 0);
        }
}

/* A name has five to eight digits. */
static void a_slice_without_its_place_in_its_name_is_replaced(void **state) {
        static const struct {
                const char *name;
                unsigned deletions;
        } rows[] = { { "0001-x", 1 }, { "00001-x", 0 }, { "00000001-x", 0 }, { "000000001-x", 1 } };
        want.n_devices = 300;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                n_have = 0;
                settle();
                struct slice_part part = slice_pool_part(&want, 1);
                part.generation = 1;
                for (size_t k = 0; k < n_have; k++)
                        if (str_starts(have[k]->o.meta.name, "00001-"))
                                have[k] = decoded(&part, rows[i].name);
                settle();
                assert_int_equal(deletions, rows[i].deletions);
                assert_int_equal(writes, rows[i].deletions);
        }
}

static void a_single_slice_may_have_any_name(void **state) {
        want.n_devices = 10;
        struct slice_part part = slice_pool_part(&want, 0);
        part.generation = 1;
        put(&part, "any");
        settle();
        assert_int_equal(deletions, 0);
        assert_int_equal(writes, 0);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(devices_are_spread_over_the_necessary_slices),
                T(a_single_changed_slice_keeps_its_generation),
                T(a_change_of_several_slices_gets_a_new_generation),
                T(an_interrupted_update_of_slices_is_completed),
                T(an_interrupted_generation_with_a_wrong_slice_is_written_again),
                T(a_slice_without_its_place_in_its_name_is_replaced),
                T(a_single_slice_may_have_any_name),
                T(fewer_devices_leave_no_slice_behind),
                T(unknown_and_duplicate_slices_are_deleted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
