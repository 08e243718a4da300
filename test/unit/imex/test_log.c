/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "imex/imex_ctl.h"

static void test_node_id(void **state) {
        int64_t id = -1;

        assert_true(imex_log_node_id(STR("[Nov 21 2026 10:00:00] [INFO] Identified this node as ID 17, using "
                                         "bind IP of '10.0.0.1', and network interface of eth0"),
                                     &id));
        assert_int_equal(id, 17);
        assert_true(imex_log_node_id(STR("Identified this node as ID 0"), &id));
        assert_int_equal(id, 0);
        assert_false(imex_log_node_id(STR("Identified this node as ID x"), &id));
        assert_false(imex_log_node_id(STR("Identified this node as ID "), &id));
        assert_false(imex_log_node_id(STR("Identified this node as ID 99999999999999999999"), &id));
        assert_false(imex_log_node_id(STR("something else"), &id));
        assert_false(imex_log_node_id((struct str){ 0 }, &id));
        static const char *const ends[] = { "19", "19,", "19/x", "19:x", "19 x" };
        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                /* The sanitizer sees a read behind the end of the line. */
                static const char phrase[] = "Identified this node as ID ";
                size_t n = sizeof phrase - 1 + strlen(ends[i]);
                char *line = xmalloc(n);
                memcpy(line, phrase, sizeof phrase - 1);
                memcpy(line + sizeof phrase - 1, ends[i], strlen(ends[i]));
                assert_true(imex_log_node_id((struct str){ line, n }, &id));
                assert_int_equal(id, 19);
                free(line);
        }
}

/* failure: nvidia-imex logs a known fault -> the report has its cause and remedy */
static void test_faults(void **state) {
        assert_non_null(strstr(imex_log_fault(STR("ERROR: No matching network interface found for any IP "
                                                  "addresses in the node configuration file")),
                               "addresses"));
        assert_non_null(strstr(imex_log_fault(STR("Failed to allocate Imex session, status = NV_ERR_IN_USE")),
                               "nvidia-imex.service"));
        assert_non_null(
                strstr(imex_log_fault(STR("Kernel DRIVER version 570 is Incompatible with nvidia-imex 580")),
                       "branches"));
        assert_null(imex_log_fault(STR("Connection established to node 0 with ip address 10.0.0.1")));
        assert_null(imex_log_fault(STR("Incompatible flag")));
        assert_null(imex_log_fault((struct str){ 0 }));
        assert_non_null(strstr(imex_log_fault(STR("version mismatch with the driver")), "branches"));
        static const char part[] = "NV_ERR_IN_US";
        char *line = xmalloc(sizeof part - 1);
        memcpy(line, part, sizeof part - 1);
        assert_null(imex_log_fault((struct str){ line, sizeof part - 1 }));
        free(line);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_node_id), cmocka_unit_test(test_faults) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
