/* SPDX-License-Identifier: Apache-2.0 */
/* The output of check-node: whatever a node prints, it is an error, or a report whose items can be shown. */
#include <stdlib.h>
#include <string.h>

#include "cli/check_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct arena *a = arena_new(4096);
        struct check_report report;
        struct err e;
        if (check_report_decode((struct str){ (const char *)data, n }, a, &report, &e) == 0)
                for (size_t i = 0; i < report.n_items; i++) {
                        const struct check_report_item *x = &report.items[i];
                        if (x->state > CHECK_REPORT_SKIPPED || strlen(x->name) > CHECK_REPORT_TEXT_MAX ||
                            strlen(x->text) > CHECK_REPORT_TEXT_MAX ||
                            strlen(x->remedy) > CHECK_REPORT_TEXT_MAX)
                                abort();
                }
        arena_free(a);
        return 0;
}
