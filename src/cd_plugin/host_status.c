/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/host_status.h"

#include <stdio.h>

#include "api/states.h"

const char *const host_imex_state_names[HOST_IMEX_STATES] = { HOST_UNKNOWN, HOST_DOWN, HOST_DEGRADED,
                                                              HOST_UP };

static void describe_domain(const struct imex_ctl_domain *d, const struct host_imex_status *s, char *reason,
                            size_t n) {
        struct buf b = BUF_INIT(4096);
        unsigned named = 0;
        if (s->nodes_ready == s->nodes) {
                snprintf(reason, n,
                         "the IMEX domain is %s: its %u nodes are READY, but not all of them are connected "
                         "to each other",
                         s->domain, s->nodes);
                return;
        }
        buf_addf(&b, "the IMEX domain is %s: %u of %u nodes are READY, not", s->domain, s->nodes_ready,
                 s->nodes);
        for (size_t i = 0; i < d->n_nodes && named < 4; i++) {
                if (!streq(d->nodes[i].status, IMEX_STATE_READY))
                        buf_addf(&b, "%s %.60s (%.30s)", named++ ? "," : "", d->nodes[i].host,
                                 d->nodes[i].status);
        }
        if (s->nodes - s->nodes_ready > named)
                buf_addf(&b, " and %u more", s->nodes - s->nodes_ready - named);
        snprintf(reason, n, "%s", buf_str(&b));
        buf_done(&b);
}

/* The version of this node's nvidia-imex; if its node cannot be identified, the version that all have. */
static const char *version_of(const struct imex_ctl_domain *d, const char *node) {
        const struct imex_ctl_node *own = imex_ctl_find(d, "", node);
        const char *common = "";
        if (own)
                return own->version;
        for (size_t i = 0; i < d->n_nodes; i++) {
                const char *v = d->nodes[i].version;
                if (*v && *common && !streq(v, common))
                        return "";
                common = *v ? v : common;
        }
        return common;
}

void host_status_summarize(const struct imex_ctl_domain *d, const char *node, struct host_imex_status *ret) {
        *ret = (struct host_imex_status){ .nodes = (unsigned)d->n_nodes };
        snprintf(ret->domain, sizeof ret->domain, "%s", d->status);
        snprintf(ret->version, sizeof ret->version, "%s", version_of(d, node));
        for (size_t i = 0; i < d->n_nodes; i++)
                ret->nodes_ready += streq(d->nodes[i].status, IMEX_STATE_READY);
        if (!streq(d->status, HOST_UP))
                describe_domain(d, ret, ret->reason, sizeof ret->reason);
}

void host_status_evaluate(const char *word, const char *why, const struct host_imex_status *domain,
                          struct host_imex_status *ret) {
        bool unasked = !*domain->domain && *domain->reason;
        *ret = *domain;
        ret->state = streq(domain->domain, HOST_DOWN)       ? HOST_IMEX_DOWN
                     : streq(domain->domain, HOST_DEGRADED) ? HOST_IMEX_DEGRADED
                     : unasked                              ? HOST_IMEX_UNKNOWN
                                                            : HOST_IMEX_UP;
        snprintf(ret->word, sizeof ret->word, "%s", word);
        if (streq(word, IMEX_STATE_READY)) {
                if (unasked)
                        snprintf(ret->reason, sizeof ret->reason,
                                 "nvidia-imex is READY, but the state of its domain is not known: %s",
                                 domain->reason);
                return;
        }
        ret->state = HOST_IMEX_DOWN;
        if (*word)
                snprintf(ret->reason, sizeof ret->reason, "the host's nvidia-imex is %s", word);
        else
                snprintf(ret->reason, sizeof ret->reason, "the host's nvidia-imex cannot be queried: %s",
                         why);
}
