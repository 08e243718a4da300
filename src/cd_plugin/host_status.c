/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/host_status.h"

#include <stdio.h>

static bool node_is_ready(const struct imex_ctl_node *n) {
        return imex_status_decode(n->status) == IMEX_STATE_READY;
}

static void describe_domain(const struct imex_ctl_domain *d, const struct host_imex_status *s, char *reason,
                            size_t n) {
        struct buf b = BUF_INIT(4096);
        unsigned named = 0;
        if (s->nodes_ready == s->nodes) {
                snprintf(reason, n,
                         "the IMEX domain is %s: all nodes (%u) are READY, but not all of them are "
                         "connected to each other",
                         s->domain, s->nodes);
                return;
        }
        buf_addf(&b, "the IMEX domain is %s: %u of %u nodes are READY, not", s->domain, s->nodes_ready,
                 s->nodes);
        for (size_t i = 0; i < d->n_nodes && named < 4; i++) {
                if (!node_is_ready(&d->nodes[i]))
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
                ret->nodes_ready += node_is_ready(&d->nodes[i]);
        if (host_state_decode(d->status) != HOST_UP)
                describe_domain(d, ret, ret->reason, sizeof ret->reason);
}

/* An IMEX domain that is not queried, or in a state that this version does not know, is no problem. */
static enum host_state state_of_domain(const struct host_imex_status *domain) {
        enum host_state state = host_state_decode(domain->domain);

        if (!*domain->domain && *domain->reason)
                return HOST_UNKNOWN;
        return state == HOST_DOWN || state == HOST_DEGRADED ? state : HOST_UP;
}

void host_status_evaluate(enum imex_status imex, const char *why, const struct host_imex_status *domain,
                          struct host_imex_status *ret) {
        *ret = *domain;
        ret->state = state_of_domain(domain);
        ret->imex = imex;
        if (imex == IMEX_STATE_READY) {
                if (ret->state == HOST_UNKNOWN)
                        snprintf(ret->reason, sizeof ret->reason,
                                 "nvidia-imex is READY, but the state of its domain is not known: %s",
                                 domain->reason);
                return;
        }
        ret->state = HOST_DOWN;
        if (imex)
                snprintf(ret->reason, sizeof ret->reason, "the host's nvidia-imex is %s",
                         imex_status_name(imex));
        else
                snprintf(ret->reason, sizeof ret->reason, "the host's nvidia-imex cannot be queried: %s",
                         why);
}
