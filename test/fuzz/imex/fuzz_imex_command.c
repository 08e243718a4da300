/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of an nvidia-imex that the operator runs. */
#include "base/stderr.h"
#include "base/err.h"
#include "imex/imex_command.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const char *why = imex_command_unreachable((struct str){ (const char *)data, n });

        /* Whatever the text is, only a service that is switched on in it can answer. */
        BUG_ON(!why && (n < strlen("IMEX_CMD_ENABLED=") ||
                        !memmem(data, n, "IMEX_CMD_ENABLED", strlen("IMEX_CMD_ENABLED"))));
        return 0;
}
