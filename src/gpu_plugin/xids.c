/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/xids.h"

#include "base/mem.h"

bool xids_add(struct xids *x, const char *list, struct str *ret_bad) {
        struct str rest = str_from(list), word;
        bool ok = true;
        while (str_next_field(&rest, ',', &word)) {
                int64_t xid;
                word = str_trim(word);
                if (!word.n)
                        continue;
                if (x->n < XIDS_ADDED_MAX && str_to_i64(word, &xid) && xid >= 0) {
                        x->added[x->n++] = (uint64_t)xid;
                } else if (ok) {
                        *ret_bad = word;
                        ok = false;
                }
        }
        return ok;
}

bool xids_of_programs(const struct xids *x, uint64_t xid) {
        static const uint64_t always[] = { 13, 31, 43, 45, 68, 109 };
        for (size_t i = 0; i < ARRAY_LEN(always); i++) {
                if (always[i] == xid)
                        return true;
        }
        for (size_t i = 0; i < x->n; i++) {
                if (x->added[i] == xid)
                        return true;
        }
        return false;
}
