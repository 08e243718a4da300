/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/own_seat.h"

#include <inttypes.h>
#include <stdio.h>

/* What the fabric's object says about it: the domain of the fabric itself may be full, and there may be too
 * many of ComputeDomains. */
static const char *told(const struct compute_domain_fabric *f, bool stands) {
        const char *const types[] = { FABRIC_TABLE_LOST,
                                      stands ? FABRIC_DOMAIN_FULL : FABRIC_DOMAINS_EXHAUSTED };
        const struct condition *c =
                f ? condition_first_true(f->conditions, f->n_conditions, types, ARRAY_LEN(types)) : NULL;
        return c ? str_or(c->message, c->type) : NULL;
}

/* Whose IMEX domain it is, for people. */
static const char *owner(const struct own_seat_question *q, char *text, size_t n) {
        if (q->stands)
                return "its fabric";
        snprintf(text, n, "ComputeDomain '%s/%s'", q->domain_ns, q->domain_name);
        return text;
}

static void say_none(const struct compute_domain_fabric *f, const struct own_seat_question *q, char *msg,
                     size_t n) {
        const char *why = told(f, q->stands);
        char whose[400], otherwise[400];
        if (q->stands)
                snprintf(otherwise, sizeof otherwise,
                         "the conditions of ComputeDomainFabric %s say why, or the node is cordoned",
                         q->clique_id);
        else
                snprintf(
                        otherwise, sizeof otherwise,
                        "the conditions of the ComputeDomain say why, or a compute-domain-controller, if one "
                        "leads, logs it");
        snprintf(msg, n, "%s: this node has not been given a seat in the IMEX domain of %s on %s yet%s%s",
                 q->node, owner(q, whose, sizeof whose), f ? str_or(f->rack, q->clique_id) : q->clique_id,
                 why ? ": " : "; if that lasts, ", why ? why : otherwise);
}

const struct fabric_seat *own_seat(const struct compute_domain_fabric *f, const struct own_seat_question *q,
                                   char *msg, size_t n) {
        const struct fabric_domain *d = f ? fabric_domain_of(f, q->domain_uid) : NULL;
        bool leaving = false;
        const struct fabric_seat *s = d ? fabric_seat_of(d, q->node, &leaving) : NULL;
        char whose[400];
        if (!s)
                say_none(f, q, msg, n);
        else if (leaving && streq(s->ordered, FABRIC_ORDERED_DELETED))
                snprintf(msg, n, "%s: %s is being deleted, and this node leaves it", q->node,
                         owner(q, whose, sizeof whose));
        else if (leaving)
                snprintf(msg, n,
                         "%s: this node is leaving the IMEX domain of %s, because %s; it stays, or comes "
                         "back, once the controller has seen this one",
                         q->node, owner(q, whose, sizeof whose),
                         q->stands ? "it is cordoned, and nobody had a claim here"
                                   : "nobody had a claim for it here");
        return leaving ? NULL : s;
}

const char *own_seat_none(const struct compute_domain_fabric *f, const char *node) {
        bool leaving;
        for (size_t i = 0; f && i < f->n_domains; i++)
                if (fabric_domain_stands(&f->domains[i]) && fabric_seat_of(&f->domains[i], node, &leaving))
                        return NULL;
        return told(f, true);
}

bool own_seat_is(const struct fabric_seat *s, const struct agent_seat *ready,
                 const struct own_seat_question *q, char *msg, size_t n) {
        bool same =
                streq(ready->clique_id, q->clique_id) && ready->index == s->index && ready->epoch == s->epoch;
        char whose[400];
        if (!same)
                snprintf(msg, n,
                         "%s: the IMEX agent of this node is still in an earlier seat of %s (epoch %" PRId64
                         ", now %" PRId64 "): it takes the new one when no pod uses the earlier one",
                         q->node, owner(q, whose, sizeof whose), ready->epoch, s->epoch);
        return same;
}
