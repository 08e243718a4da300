/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/host_health.h"

#include "api/kinds.h"
#include "api/names.h"
#include "api/reasons.h"
#include "rules/sorted.h"

enum { NAMED_AT_MOST = 5, REASON_AT_MOST = 200 };

static bool is_bad(const struct host *h) {
        return h->state == HOST_DOWN || h->state == HOST_DEGRADED;
}

/* "node-1 is DOWN: why; node-2 is DEGRADED: why; and 3 more" */
static const char *name_bad(const struct host *hosts, size_t n, struct arena *a) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(8192);
        size_t bad = 0;
        for (size_t i = 0; i < n; i++) {
                if (!is_bad(&hosts[i]) || bad++ >= NAMED_AT_MOST)
                        continue;
                buf_addf(&b, "%s%s is %s: %.*s", b.n ? "; " : "", hosts[i].name,
                         host_state_name(hosts[i].state), REASON_AT_MOST,
                         str_or(hosts[i].reason, "no reason given"));
        }
        if (bad > NAMED_AT_MOST)
                buf_addf(&b, "; and %zu more", bad - NAMED_AT_MOST);
        return arena_strdup(a, buf_str(&b));
}

void host_health(const struct host *hosts, size_t n, bool of_daemons, struct arena *a,
                 struct cd_condition *ret) {
        BUG_ON_UNSORTED(hosts, n, name);
        static const struct words {
                const char *type, *down, *degraded, *up, *all_up, *unknown;
        } words[] = {
                { CONDITION_HOST_IMEX_HEALTHY, REASON_DOMAIN_HOST_IMEX_DOWN, REASON_DOMAIN_HOST_IMEX_DEGRADED,
                  REASON_DOMAIN_HOST_IMEX_UP,
                  "The IMEX of the host is up on every node with a pod of this ComputeDomain",
                  "Not every kubelet plugin on the nodes of this ComputeDomain has reported the state of "
                  "IMEX on its host: see annotation " IMEX_ANNOTATION_HOST_STATE " of its Pod" },
                { CONDITION_IMEX_HEALTHY, REASON_IMEX_DOWN, REASON_IMEX_DOWN, REASON_IMEX_UP,
                  "IMEX is READY on every node with a pod of this ComputeDomain",
                  "Not every daemon on the nodes of this ComputeDomain has reported the state of its IMEX: "
                  "see the Pods of DaemonSet " CD_DAEMON_OBJECT },
        };
        const struct words *w = &words[of_daemons];
        size_t down = 0, degraded = 0, up = 0;
        for (size_t i = 0; i < n; i++) {
                down += hosts[i].state == HOST_DOWN;
                degraded += hosts[i].state == HOST_DEGRADED;
                up += hosts[i].state == HOST_UP;
        }
        *ret = (struct cd_condition){ .type = w->type, .status = condition_status_name(STATUS_UNKNOWN) };
        if (!n) {
                ret->reason = REASON_NO_NODES;
                ret->message = "No pod uses this ComputeDomain yet";
        } else if (down || degraded) {
                ret->status = condition_status_name(STATUS_FALSE);
                ret->reason = down ? w->down : w->degraded;
                ret->message = name_bad(hosts, n, a);
        } else if (up == n) {
                ret->status = condition_status_name(STATUS_TRUE);
                ret->reason = w->up;
                ret->message = w->all_up;
        } else {
                ret->reason = REASON_NOT_PROBED;
                ret->message = w->unknown;
        }
}
