/* SPDX-License-Identifier: Apache-2.0 */
/* rules/assignment in random histories. HISTORIES is their number, and HISTORIES_FROM the first one. A
 * failure names its history. */
#include "assignment_history.h"

enum { HISTORIES_DEFAULT = 5000 };

/* failure: nodes fail, lie and return at random -> no two nodes have one index */
static void no_history_gives_one_index_to_two_nodes(void **state) {
        const char *from = getenv("HISTORIES_FROM"), *n = getenv("HISTORIES");
        uint64_t first = from ? strtoull(from, NULL, 10) : 0,
                 count = n ? strtoull(n, NULL, 10) : HISTORIES_DEFAULT;
        for (uint64_t i = first; i < first + count; i++)
                run_history(i, i % 4 == 3, NULL, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(no_history_gives_one_index_to_two_nodes) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
