/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/channel_condition.h"

#include <inttypes.h>

#include "api/kinds.h"
#include "api/reasons.h"
#include "base/stderr.h"

enum { NAMED_AT_MOST = 5 };

static void channel_condition_add(struct buf *b, const struct own_channel *x) {
        const char *where = str_or(x->rack, x->fabric);
        if (x->id >= 0)
                buf_addf(b, "%schannel %" PRId64 " on %s", b->n ? "; " : "", x->id, where);
        else if (x->unknown)
                buf_addf(b,
                         "%sthe NVLink partition of a node with a claim of it is not known: the node has no "
                         "ResourceSlice with channels",
                         b->n ? "; " : "");
        else if (!*x->fabric)
                buf_addf(b,
                         "%sa node with a claim of it has no NVLink partition, so no channel can be assigned "
                         "there",
                         b->n ? "; " : "");
        else
                buf_addf(b, "%snone on %s yet: %s", b->n ? "; " : "", where,
                         str_or(x->why, "the controller assigns it"));
}

void channel_condition(const struct own_channel *list, size_t n, struct arena *a, struct cd_condition *ret) {
        for (size_t i = 1; i < n; i++)
                BUG_ON(strcmp(list[i - 1].fabric, list[i].fabric) >= 0);
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        size_t lacking = 0, named = 0;
        *ret = (struct cd_condition){ .type = CONDITION_CHANNEL_ASSIGNED,
                                      .status = condition_status_name(STATUS_UNKNOWN) };
        for (size_t i = 0; i < n; i++)
                lacking += list[i].id < 0;
        if (!n) {
                ret->reason = REASON_NO_NODES;
                ret->message = "No pod uses this ComputeDomain yet";
                return;
        }
        /* Missing channels are listed first. */
        for (int have = 0; have < 2; have++)
                for (size_t i = 0; i < n && named < NAMED_AT_MOST; i++)
                        if ((list[i].id >= 0) == have) {
                                channel_condition_add(&b, &list[i]);
                                named++;
                        }
        if (named < n)
                buf_addf(&b, "; and %zu more", n - named);
        ret->status = condition_status_name(lacking ? STATUS_FALSE : STATUS_TRUE);
        ret->reason = lacking ? REASON_WAITING : REASON_ASSIGNED;
        ret->message = arena_strdup(a, buf_str(&b));
}
