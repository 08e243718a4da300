/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `nvidia-imex-ctl -q`: the result is one of the known words, and is alone on a line of the text.
 */
#include <string.h>

#include "base/stderr.h"
#include "imex/imex_ctl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const char *word = imex_status_name(imex_ctl_parse_status((struct str){ (const char *)data, n }));

        BUG_ON(*word && !memmem(data, n, word, strlen(word)));
        return 0;
}
