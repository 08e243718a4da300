/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that nvidia-imex prints. */
#include "base/stderr.h"
#include "base/err.h"
#include "imex/imex_ctl.h"
#include "imex/imex_links.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct str line = { (const char *)data, n };
        static struct imex_links links;
        int64_t id = -1;

        BUG_ON(imex_log_node_id(line, &id) && id < 0);
        (void)imex_log_fault(line);
        imex_links_begin(&links, NULL, 1);
        (void)imex_links_note_line(&links, line);
        return 0;
}
