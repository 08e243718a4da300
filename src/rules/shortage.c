/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/shortage.h"

#include <inttypes.h>
#include <string.h>

#include "api/kinds.h"
#include "api/reasons.h"
#include "base/stderr.h"
#include "rules/message.h"

/* What a set of nodes offers. */
struct shortage_sum {
        size_t nodes, offering, withholding;
        int64_t channels, used, free; /* free: on nodes that are up */
        const char *withheld;         /* the most frequent reason */
};

static bool in_rack(const struct shortage_facts *f, const struct shortage_node *n) {
        return !f->rack || streq(f->rack, n->rack);
}

static bool in_own(const struct shortage_facts *f, const struct shortage_node *n) {
        return n->partition && *n->partition && has_string(f->own, f->n_own, n->partition);
}

static bool shortage_counts(const struct shortage_facts *f, const struct shortage_node *n, bool own) {
        return in_rack(f, n) && (!own || in_own(f, n));
}

enum { REASONS_MAX = 32 }; /* more than the catalogue has */

/* The most frequent reason; of several, the first by name, so that the order of the nodes does not matter. */
static const char *most_withheld(const struct shortage_facts *f, bool own) {
        struct {
                const char *reason;
                size_t n;
        } list[REASONS_MAX];
        size_t n_list = 0, best = 0;
        for (size_t i = 0; i < f->n_nodes; i++) {
                const struct shortage_node *n = &f->nodes[i];
                size_t at = 0;
                if (n->channels || !n->withheld || !shortage_counts(f, n, own))
                        continue;
                while (at < n_list && !streq(list[at].reason, n->withheld))
                        at++;
                if (at == REASONS_MAX)
                        continue;
                if (at == n_list) {
                        list[at].reason = n->withheld;
                        list[at].n = 0;
                        n_list++;
                }
                list[at].n++;
        }
        for (size_t i = 1; i < n_list; i++)
                if (list[i].n > list[best].n ||
                    (list[i].n == list[best].n && strcmp(list[i].reason, list[best].reason) < 0))
                        best = i;
        return n_list ? list[best].reason : NULL;
}

static struct shortage_sum shortage_sum(const struct shortage_facts *f, bool own) {
        struct shortage_sum s = { 0 };
        for (size_t i = 0; i < f->n_nodes; i++) {
                const struct shortage_node *n = &f->nodes[i];
                if (!shortage_counts(f, n, own))
                        continue;
                int64_t used = n->used < n->channels ? n->used : n->channels;
                s.nodes++;
                s.offering += n->channels > 0;
                s.withholding += !n->channels && n->withheld;
                s.channels += n->channels;
                s.used += used;
                if (n->up)
                        s.free += n->channels - used;
        }
        if (s.withholding)
                s.withheld = most_withheld(f, own);
        return s;
}

static const char *shortage_rack(const struct shortage_facts *f, const char *partition) {
        for (size_t i = 0; i < f->n_nodes; i++)
                if (streq(f->nodes[i].partition, partition) && f->nodes[i].rack && *f->nodes[i].rack)
                        return f->nodes[i].rack;
        return partition;
}

/* "; 2 nodes withhold their channel (FabricError)" */
static const char *withholding(const struct shortage_sum *s, struct arena *a) {
        return !s->withholding
                       ? ""
                       : message_of(a, "; %zu %s channel (%s)", s->withholding,
                                    s->withholding == 1 ? "node withholds its" : "nodes withhold their",
                                    s->withheld);
}

static void none_offered(const struct shortage_sum *s, const char *where, struct arena *a,
                         struct cd_condition *ret) {
        ret->reason = REASON_NO_CHANNEL_OFFERED;
        if (s->withholding)
                ret->message = message_of(a, "No node%s offers a channel (%s): %zu of %zu nodes %s it", where,
                                          s->withheld, s->withholding, s->nodes,
                                          s->withholding == 1 ? "withholds" : "withhold");
        else
                ret->message =
                        message_of(a,
                                   "No node%s offers a channel: %zu with a GPU, and none of them reports "
                                   "why",
                                   where, s->nodes);
}

static void none_free(const struct shortage_sum *s, const char *where, struct arena *a,
                      struct cd_condition *ret) {
        ret->reason = REASON_NO_FREE_CHANNEL;
        if (s->used >= s->channels)
                ret->message = message_of(a, "All channels%s are in use: %" PRId64 " of %" PRId64 "%s", where,
                                          s->used, s->channels, withholding(s, a));
        else
                ret->message = message_of(a,
                                          "No node%s that is Ready and not cordoned has a free channel: "
                                          "%" PRId64 " of %" PRId64 " channels are in use%s",
                                          where, s->used, s->channels, withholding(s, a));
}

static const char *name_own(const struct shortage_facts *f, struct arena *a) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < f->n_own; i++)
                if (f->own[i] && *f->own[i])
                        /* The search for a name that is not shown takes as long as for another. */
                        message_add(&names, "%s",
                                    names.n < MESSAGE_NAMES_MAX ? shortage_rack(f, f->own[i]) : "");
        return message_end(&names, a);
}

bool shortage_condition(const struct shortage_facts *f, struct arena *a, struct cd_condition *ret) {
        const char *where = f->rack ? message_of(a, " of rack %s", f->rack) : "";
        struct shortage_sum all = shortage_sum(f, false), own = shortage_sum(f, true);
        *ret = (struct cd_condition){ .type = CONDITION_CHANNEL_AVAILABLE,
                                      .status = condition_status_name(STATUS_FALSE) };
        if (!all.offering) {
                none_offered(&all, where, a, ret);
        } else if (!all.free) {
                none_free(&all, where, a, ret);
        } else if (own.offering && !own.free) {
                ret->reason = REASON_PARTITION_FULL;
                ret->message = message_of(a,
                                          "No channel is free on %s, where pods of this ComputeDomain run: "
                                          "%" PRId64 " of %" PRId64 " are in use, and %" PRId64
                                          " are free elsewhere",
                                          name_own(f, a), own.used, own.channels, all.free);
        } else {
                return false;
        }
        return true;
}

static struct str shortage_class(const struct cd_condition *c) {
        const char *message = str_or(c->message, ""), *end = strstr(message, ": ");
        return (struct str){ message, end ? (size_t)(end - message) : strlen(message) };
}

/* 0 is no class. */
static uint64_t class_hash(const struct cd_condition *c) {
        struct str s = c ? shortage_class(c) : (struct str){ 0 };
        return c ? str_fnv64(s.p, s.n) | 1 : 0;
}

const char *shortage_check(const struct shortage_facts *f, const struct cd_condition *c, struct arena *a) {
        struct shortage_sum all = shortage_sum(f, false), own = shortage_sum(f, true);
        if (!streq(c->type, CONDITION_CHANNEL_AVAILABLE) ||
            condition_status_decode(c->status) != STATUS_FALSE)
                return "it is not the condition ChannelAvailable with status False";
        if (streq(c->reason, REASON_NO_CHANNEL_OFFERED))
                return all.channels ? message_of(a, "%zu nodes offer a channel", all.offering) : NULL;
        if (streq(c->reason, REASON_NO_FREE_CHANNEL))
                return all.free       ? message_of(a, "%" PRId64 " channels are free", all.free)
                       : all.channels ? NULL
                                      : "no node offers a channel";
        if (streq(c->reason, REASON_PARTITION_FULL))
                return own.free ? message_of(a, "%" PRId64 " channels are free in its partitions", own.free)
                       : !own.channels ? "no node of its partitions offers a channel"
                       : all.free      ? NULL
                                       : "no channel is free elsewhere";
        return message_of(a, "its reason is %s", str_or(c->reason, "missing"));
}

bool shortage_is_due(const struct shortage_memory *m, int64_t now) {
        return m->waiting_since && now - m->waiting_since >= SHORTAGE_LOOKS_S;
}

const struct cd_condition *shortage_settle(struct shortage_memory *m, const struct shortage_input *in,
                                           int64_t *ret_recheck_s) {
        BUG_ON(in->now <= 0);
        uint64_t is = class_hash(in->is), was = class_hash(in->was);
        *ret_recheck_s = 0;
        if (!in->waits) {
                *m = (struct shortage_memory){ 0 };
                return NULL;
        }
        if (!m->waiting_since)
                m->waiting_since = in->now;
        if (!shortage_is_due(m, in->now)) {
                *ret_recheck_s = m->waiting_since + SHORTAGE_LOOKS_S - in->now;
                return in->was;
        }
        if (m->class != is || !m->class_since) {
                m->class = is;
                m->class_since = in->now;
                m->changes = false;
        }
        /* The first condition needs no other one to end, so it comes sooner. */
        int64_t wait = was ? SHORTAGE_SETTLES_S : SHORTAGE_WAITS_S;
        *ret_recheck_s = SHORTAGE_SETTLES_S;
        if (is == was)
                m->changes = false;
        else if (!m->changes && in->now - m->class_since < wait)
                *ret_recheck_s = m->class_since + wait - in->now;
        else if (!m->changes && !in->may_change)
                *ret_recheck_s = 1;
        else
                m->changes = true;
        return m->changes ? in->is : in->was;
}
