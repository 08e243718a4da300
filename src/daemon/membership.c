/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/membership.h"

#include "api/names.h"

/* Why the list of addresses cannot be fixed yet, or NULL. */
static const char *incomplete(const struct imex_domain *f, struct arena *a) {
        int64_t wanted = 0, have = 0;

        if (!str_to_i64(str_from(f->num_nodes), &wanted) || wanted <= 0)
                return "feature gate IMEXDaemonsWithDNSNames is off, so IMEX starts when the domain has all "
                       "its nodes, but spec.numNodes is 0: set it, or turn the gate on";
        for (size_t i = 0; i < f->n_seats; i++)
                have += f->seats[i].ip && *f->seats[i].ip;
        if (have >= wanted)
                return NULL;
        return arena_printf(a,
                            "feature gate IMEXDaemonsWithDNSNames is off, so IMEX starts when the domain has "
                            "all its nodes: %lld of %lld are there",
                            (long long)have, (long long)wanted);
}

static const char *holder_of(const struct imex_domain *f, int64_t index) {
        for (size_t i = 0; i < f->n_seats; i++)
                if (f->seats[i].index == index)
                        return f->seats[i].node;
        return NULL;
}

void membership_of(const struct imex_domain *f, const char *node, bool dns_names, int64_t held,
                   struct arena *a, struct membership *ret) {
        const char *infix = str_or(f->infix, "");
        struct imex_peer *peers = arena_alloc(a, (f->n_seats + 1) * sizeof *peers);
        struct membership m = { .members = { .own_index = -1, .infix = infix, .peers = peers }, .why = "" };

        for (size_t i = 0; i < f->n_seats; i++) {
                const struct seat *d = &f->seats[i];

                if (streq(d->node, node))
                        m.members.own_index = d->index;
                else
                        peers[m.members.n_peers++] = (struct imex_peer){ .index = d->index,
                                                                         .ip = str_or(d->ip, ""),
                                                                         .node = d->node,
                                                                         .boot_id = str_or(d->boot_id, ""),
                                                                         .ready = streq(d->status, "Ready") };
        }

        m.unlisted = m.members.own_index < 0 && held >= 0 && !holder_of(f, held);
        if (m.unlisted)
                m.members.own_index = held;

        if (m.members.own_index < 0 && held >= 0)
                m.why = arena_printf(a,
                                     "this node has no index in its clique any more: the controller gave "
                                     "index %lld to node %.63s",
                                     (long long)held, holder_of(f, held));
        else if (m.members.own_index < 0)
                m.why = "this node has no index in its clique yet; the controller assigns it";
        else if (!imex_infix_valid(infix))
                m.why = arena_printf(a,
                                     "annotation " CD_ANNOTATION_INFIX
                                     " of the clique is '%.60s': want up to 32 lower-case letters and digits",
                                     infix);
        else if (m.members.n_peers > IMEX_MEMBERS_MAX)
                m.why = "the clique has more members than any IMEX domain can have";
        else if (!dns_names && held < 0)
                m.why = str_or(incomplete(f, a), "");
        m.unlisted = m.unlisted && !*m.why;
        if (*m.why)
                m.members = (struct imex_members){ .own_index = -1, .infix = "", .peers = peers };
        *ret = m;
}
