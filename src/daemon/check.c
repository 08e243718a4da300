/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/check.h"

#include "base/file.h"
#include "imex/imex_state.h"

int check(const char *dir, const char *clique_id, const char *claim_uid, struct err *e) {
        struct imex_state s;
        bool held;

        if (!*clique_id)
                return 0; /* without fabric there is no IMEX to wait for */
        if (imex_state_read(dir, &s, &held, e) < 0)
                return err_wrap(e, "no state of the IMEX daemon");
        /* The container lives in one boot, so its own file says which. */
        const char *refusal = imex_state_refusal(&s, held, s.boot_id, *claim_uid ? claim_uid : s.claim_uid);
        if (!refusal)
                return 0;
        return err_set(e, ERR_RETRY, 0, "%s (IMEX: %s)", refusal, str_or(s.status, "no status"));
}
