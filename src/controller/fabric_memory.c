/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/fabric_memory.h"

#include <stdlib.h>

#include "api/names.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rules/channels.h"

static struct controller_deleted_fabric **lost_at(struct controller *c, const char *name) {
        struct controller_deleted_fabric **at = &c->memory.deleted_fabrics;
        while (*at && !streq((*at)->was->o.meta.name, name))
                at = &(*at)->next;
        return at;
}

static void forget_lost(struct controller_deleted_fabric **at) {
        struct controller_deleted_fabric *l = *at;
        if (!l)
                return;
        *at = l->next;
        kube_object_unref(&l->was->o);
        free(l);
}

const struct compute_domain_fabric *fabric_memory_lost(struct controller *c, const char *name) {
        struct controller_deleted_fabric *l = *lost_at(c, name);
        return l ? l->was : NULL;
}

static struct controller_restored_fabric **restored_at(struct controller *c, const char *name) {
        struct controller_restored_fabric **at = &c->memory.restored_fabrics;
        while (*at && !streq((*at)->name, name))
                at = &(*at)->next;
        return at;
}

static void forget_restored(struct controller_restored_fabric **at) {
        struct controller_restored_fabric *r = *at;
        *at = r->next;
        free(r);
}

/* Remembers that the object lacks assignments that daemons may have, until a recount above this epoch has
 * begun. */
static void await_recount(struct controller *c, const char *name, int64_t epoch) {
        struct controller_restored_fabric **at = restored_at(c, name), *r;
        if (*at)
                forget_restored(at);
        r = xnew_keyed(struct controller_restored_fabric, name, name);
        r->epoch = epoch;
        r->next = c->memory.restored_fabrics;
        c->memory.restored_fabrics = r;
}

/* Reports of channels may be those of the backup until the plugins have noticed the restore, too. */
static void await_reports(struct controller *c, const char *name) {
        first_seen_forget(c->memory.restored, name);
        first_seen_at(c->memory.restored, name, clock_mono_s());
}

static bool is_before_version(const struct compute_domain_fabric *f,
                              const struct compute_domain_fabric *other) {
        return other && kube_object_version(f->o.meta.rv) < kube_object_version(other->o.meta.rv);
}

/* `was` NULL: the object is new. If it went back to an earlier version, or an earlier object returned, etcd
 * was restored. A new object that is in use is an earlier one that was restored, and answers to its recount
 * may be from that time. */
static void note_version(struct controller *c, const struct compute_domain_fabric *was,
                         const struct compute_domain_fabric *is) {
        const char *name = is->o.meta.name;
        struct controller_restored_fabric **at = restored_at(c, name), *r = *at;
        if (is_before_version(is, was ? was : fabric_memory_lost(c, name)))
                await_reports(c, name);
        if (is_before_version(is, was))
                await_recount(c, name, is->epoch);
        else if (r && !was && fabric_is_own(is) && is->epoch > r->epoch)
                r->epoch = is->epoch;
        else if (r && is->recount > r->epoch)
                forget_restored(at);
}

/* IMEX and containers may still run on deleted Nodes that the object lists. The controller may not have noted
 * when they were deleted, so it counts from now. */
static void note_gone(struct controller *c, const struct compute_domain_fabric *f) {
        for (size_t i = 0; i < f->n_domains; i++)
                for (size_t j = 0; j < f->domains[i].n_assignments; j++)
                        if (!records_node(c, f->domains[i].assignments[j].node))
                                records_vanished(c, f->o.meta.name, f->domains[i].assignments[j].node);
        for (size_t i = 0; i < f->n_members; i++)
                if (!records_node(c, f->members[i]))
                        records_missing(c, f->members[i], true);
}

/* The object lists an assignment that a daemon may use. */
static bool lists_assignments(const struct compute_domain_fabric *f) {
        for (size_t i = 0; i < f->n_domains; i++)
                for (size_t j = 0; j < f->domains[i].n_assignments; j++)
                        if (fabric_state_decode(f->domains[i].assignments[j].state) != FABRIC_RESERVED)
                                return true;
        return false;
}

/* Does not remember a copy, because its entries do not count. A daemon may not have reported its assignment
 * yet, so without a recount the next object would give its index to another node. */
static void remember(struct controller *c, const struct compute_domain_fabric *f) {
        struct controller_deleted_fabric **at = lost_at(c, f->o.meta.name);
        if (!fabric_is_own(f))
                return;
        note_gone(c, f);
        if (lists_assignments(f))
                await_recount(c, f->o.meta.name, 0);
        forget_lost(at);
        struct controller_deleted_fabric *l = xnew(struct controller_deleted_fabric);
        l->was = (const struct compute_domain_fabric *)kube_object_ref(&f->o);
        l->next = c->memory.deleted_fabrics;
        c->memory.deleted_fabrics = l;
}

void fabric_memory_changed(struct controller *c, const struct compute_domain_fabric *was,
                           const struct compute_domain_fabric *is) {
        static const char *const lost[] = { FABRIC_CHANNELS_INCOMPLETE, FABRIC_ASSIGNMENTS_INCOMPLETE };
        bool same = was && is && streq(was->o.meta.uid, is->o.meta.uid);
        if (was && !same) {
                first_seen_forget(c->memory.known, was->o.meta.uid);
                remember(c, was);
        }
        if (is)
                note_version(c, same ? was : NULL, is);
        if (is && (!was || same) && fabric_is_own(is) &&
            !condition_first_true(is->conditions, is->n_conditions, lost, ARRAY_LEN(lost)))
                forget_lost(lost_at(c, is->o.meta.name));
}

bool fabric_memory_awaits_recount(struct controller *c, const char *name) {
        return *restored_at(c, name);
}

int64_t fabric_memory_restored_s(struct controller *c, const char *name, int64_t now) {
        int64_t since = first_seen_get(c->memory.restored, name), left = since + CHANNELS_RESTORED_S - now;
        return since && left > 0 ? left : 0;
}

void fabric_memory_done(struct controller *c) {
        while (c->memory.deleted_fabrics)
                forget_lost(&c->memory.deleted_fabrics);
        while (c->memory.restored_fabrics)
                forget_restored(&c->memory.restored_fabrics);
}
