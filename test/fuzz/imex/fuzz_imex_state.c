/* SPDX-License-Identifier: Apache-2.0 */
/* The state file, which the plugin reads and a less trusted daemon writes. */
#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "imex/imex_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct imex_state s;
        struct err e;

        if (imex_state_parse((struct str){ (const char *)data, n }, &s, &e) < 0) {
                BUG_ON(e.kind != ERR_INVALID);
                return 0;
        }
        BUG_ON(strnlen(s.status, sizeof s.status) == sizeof s.status ||
               strnlen(s.reason, sizeof s.reason) == sizeof s.reason);
        (void)imex_links_lists(s.lost, 3);
        BUG_ON(!imex_state_refusal(&s, false, s.boot_id, s.claim_uid));
        BUG_ON(!s.ready && !imex_state_refusal(&s, true, s.boot_id, s.claim_uid));
        return 0;
}
