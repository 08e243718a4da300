/* SPDX-License-Identifier: Apache-2.0 */
/* A controller that does not lead, and the memory of one that leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "leading.h"

static unsigned n_trims;
int __wrap_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad) {
        return (int)++n_trims;
}

static char *nothing(void *u, const char *path) {
        return NULL;
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        leading_read(c, r, nothing, u);
}

/* The lists of a standby fragment the heap as those of a leader do. */
/* failure: a standby has listed everything -> it returns that memory */
static void a_standby_returns_the_memory_of_its_lists(void **state) {
        struct leading l;
        leading_init(&l, on_request, NULL);
        leading_set_mode(&l, "", NULL);
        leading_stand_by(&l);
        RUN_UNTIL(&l.loop, records_synced(&l.c));
        assert_int_equal(n_trims, 0);
        RUN_UNTIL(&l.loop, n_trims);
        leading_done(&l);
}

/* failure: a cluster is never quiet -> the leader returns memory, too, at least once a minute */
static void a_busy_leader_returns_memory(void **state) {
        struct leading l;
        leading_init(&l, on_request, NULL);
        leading_set_mode(&l, "", NULL);
        leading_start(&l);
        n_trims = 0;
        for (unsigned s = 0; s < 150; s++) {
                records_queue_daemons(&l.c);
                run_for(&l.loop, 1000);
        }
        assert_int_equal(n_trims, 2);
        leading_done(&l);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_standby_returns_the_memory_of_its_lists),
                cmocka_unit_test(a_busy_leader_returns_memory),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
