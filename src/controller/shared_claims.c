/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/shared_claims.h"

#include <string.h>

#include "api/names.h"
#include "base/clock.h"
#include "controller/pod_groups.h"
#include "controller/shared_device.h"
#include "rules/rules.h"

enum {
        MAX_BODY = 256 << 10, /* 256 consumers */
        /* The answer to the release has no newer version than the cache. Then the watch shows the deletion.
         */
        RELEASE_INTERVAL_MS = 1000
};

/* ---- what others have undone ---- */

enum undone { UNRESERVED, DEALLOCATED, DEALLOCATED_UNUSED };

/* `group`: UID of the PodGroup that has lost its reservation; "" otherwise. */
static void undone_key(enum undone what, const char *uid, const char *group, struct buf *out) {
        buf_addf(out, "%d/%s/%s", (int)what, uid, str_or(group, ""));
}

static void shared_claims_note(struct controller *c, enum undone what, const char *uid, const char *group) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        undone_key(what, uid, group, &key);
        first_seen_forget(c->memory.undone, buf_str(&key));
        first_seen_at(c->memory.undone, buf_str(&key), clock_mono_s());
}

static int64_t undone_since(const struct controller *c, enum undone what, const char *uid,
                            const char *group) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        undone_key(what, uid, group, &key);
        return first_seen_get(c->memory.undone, buf_str(&key));
}

/* Returns the PodGroups that share the claim, as entries of status.reservedFor. */
static size_t groups_of(const struct controller *c, const struct claim_record *r, struct arena *a,
                        const struct claim_consumer **ret) {
        const struct claim_shared *s = r->shared;
        if (!s->group)
                return pod_groups_naming(c, r->o.meta.ns, r->o.meta.name, a, ret);
        struct claim_consumer *group = arena_alloc(a, sizeof *group);
        *group = (struct claim_consumer){ CLAIM_GROUP_API, CLAIM_GROUP_RESOURCE, s->group->name,
                                          s->group->uid };
        *ret = group;
        return 1;
}

/* Kubernetes also removes the reservation of a PodGroup that has ended, which is not noted. */
static void note_lost_groups(struct controller *c, const struct claim_record *was,
                             const struct claim_record *is) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        const struct claim_shared *before = was->shared, *after = is->shared;
        const struct claim_consumer *groups;
        size_t n = groups_of(c, is, a, &groups);
        for (size_t i = 0; i < n; i++)
                if (claim_is_reserved_for(before->consumers, before->n_consumers, groups[i].uid) &&
                    !claim_is_reserved_for(after->consumers, after->n_consumers, groups[i].uid))
                        shared_claims_note(c, UNRESERVED, is->o.meta.uid, groups[i].uid);
}

void shared_claims_changed(struct controller *c, const struct claim_record *was,
                           const struct claim_record *is) {
        const struct claim_shared *before = was ? was->shared : NULL, *after = is ? is->shared : NULL;
        if (before && after && is->o.meta.uid && streq(was->o.meta.uid, is->o.meta.uid)) {
                if (before->allocated && !after->allocated)
                        shared_claims_note(c, before->n_consumers ? DEALLOCATED : DEALLOCATED_UNUSED,
                                           is->o.meta.uid, "");
                note_lost_groups(c, was, is);
        }
        if (after)
                records_queue_claim(c, is->o.meta.ns, is->o.meta.name);
}

/* ---- a pass ---- */

/* Returns whether the ComputeDomain asks for this claim. A claim of a PodGroup counts only in the namespace
 * of the ComputeDomain. */
static bool is_wanted(const struct controller *c, const struct claim_record *r) {
        const struct claim_shared *s = r->shared;
        const struct compute_domain *cd = records_domain(c, s->domain_uid);
        if (!mode_assigns_channels(c->mode) || !cd || cd->o.meta.deleted || !cd->channel ||
            !streq(cd->o.meta.ns, r->o.meta.ns) || records_other_mode(c, cd))
                return false;
        return s->group ? cd->channel->shared_template_name != NULL
                        : streq(r->owner, s->domain_uid) && streq(cd->channel->claim_name, r->o.meta.name);
}

static void gather(const struct controller *c, const struct claim_record *r, struct arena *a,
                   struct shared_claim_facts *ret) {
        const struct claim_shared *s = r->shared;
        int64_t used = undone_since(c, DEALLOCATED, r->o.meta.uid, ""),
                unused = undone_since(c, DEALLOCATED_UNUSED, r->o.meta.uid, "");
        *ret = (struct shared_claim_facts){
                .device = shared_device_state(c) == SHARED_DEVICE_PUBLISHED,
                .lives = is_wanted(c, r),
                .deleted = r->o.meta.deleted,
                .allocated = s->allocated,
                .finalizer = has_string(s->finalizers, s->n_finalizers, CD_FINALIZER),
                .consumers = s->consumers,
                .n_consumers = s->n_consumers,
                .deallocated = used > unused ? used : unused,
                .was_used = used > unused,
                .now = clock_mono_s(),
        };
        ret->n_groups = groups_of(c, r, a, &ret->groups);
        for (size_t i = 0; i < ret->n_groups; i++) {
                int64_t since = undone_since(c, UNRESERVED, r->o.meta.uid, ret->groups[i].uid);
                ret->unreserved = since > ret->unreserved ? since : ret->unreserved;
        }
}

static void shared_claims_perform(struct controller *c, const char *key, const struct claim_record *r,
                                  const struct shared_claim_decision *d) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        const struct kube_meta *m = &r->o.meta;
        switch (d->step) {
        case SHARED_CLAIM_KEEP:
                return;
        case SHARED_CLAIM_ALLOCATE:
                objects_shared_allocation(m, r->shared->domain_uid, clock_wall_s(), d, &b);
                break;
        case SHARED_CLAIM_RESERVE:
                objects_shared_reservation(m, d, &b);
                break;
        case SHARED_CLAIM_RELEASE:
                objects_release(m, r->shared->finalizers, r->shared->n_finalizers, &b);
                break;
        }
        if (b.failed)
                return;
        writes_try(c->writes,
                   &(struct writes_request){
                           .requester = key,
                           .verb = KUBE_MERGE_PATCH,
                           .res = &kube_resource_claims,
                           .ns = m->ns,
                           .name = m->name,
                           .subresource = d->step == SHARED_CLAIM_RELEASE ? NULL : "status",
                           .body = { buf_str(&b), b.n },
                           .interval_ms = d->step == SHARED_CLAIM_RELEASE ? RELEASE_INTERVAL_MS : 0,
                           .cache = c->caches.claims });
}

static const struct claim_record *claim_of_key(const struct controller *c, const char *key) {
        _cleanup_(freep) char *ns = xstrdup(key);
        char *slash = strchr(ns, '/');
        if (!slash)
                return NULL;
        *slash = 0;
        return (const struct claim_record *)kube_informer_get(c->caches.claims, ns, slash + 1);
}

void shared_claims_reconcile(struct controller *c, const char *name) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        const struct claim_record *r = claim_of_key(c, name);
        struct shared_claim_facts f;
        struct shared_claim_decision d = { 0 };
        key_render(KEY_CLAIM, name, &key);
        if (!r || !r->shared || !r->o.meta.uid) {
                writes_forget(c->writes, buf_str(&key));
                return;
        }
        gather(c, r, a, &f);
        shared_claim_decide(&f, a, &d);
        writes_begin(c->writes, buf_str(&key));
        shared_claims_perform(c, buf_str(&key), r, &d);
        writes_end(c->writes, buf_str(&key));
        if (d.recheck_s)
                work_queue_add_after(c->queue, buf_str(&key), (unsigned)d.recheck_s * 1000U);
}

/* ---- keys ---- */

struct of_domain {
        struct controller *c;
        const char *uid; /* NULL: any */
};

static bool queue_claim(void *u, const struct kube_object *o) {
        struct of_domain *x = u;
        const struct claim_record *r = (const struct claim_record *)o;
        if (r->shared && (!x->uid || streq(r->shared->domain_uid, x->uid)))
                records_queue_claim(x->c, o->meta.ns, o->meta.name);
        return true;
}

/* A replica that does not lead queues nothing, and it queues everything when it begins to lead. */
static void queue_claims(struct controller *c, const char *domain_uid) {
        struct of_domain x = { c, domain_uid };
        if (c->leading && c->caches.claims)
                kube_informer_each(c->caches.claims, queue_claim, &x);
}

void shared_claims_queue_of(struct controller *c, const char *domain_uid) {
        if (domain_uid)
                queue_claims(c, domain_uid);
}

void shared_claims_queue_all(struct controller *c) {
        queue_claims(c, NULL);
}

/* ---- facts for the ComputeDomain ---- */

const struct claim_record *shared_claims_of_another(const struct controller *c,
                                                    const struct compute_domain *cd) {
        const char *name = cd->channel->claim_name;
        const struct claim_record *r =
                name ? (const struct claim_record *)kube_informer_get(c->caches.claims, cd->o.meta.ns, name)
                     : NULL;
        return r && r->owner && !streq(r->owner, cd->o.meta.uid) ? r : NULL;
}

static bool is_silent(const struct controller *c, const char *node) {
        return !first_seen_get(c->memory.reporting, node) && records_node(c, node);
}

struct unreported {
        const struct controller *c;
        const char *uid;
        bool found;
};

static bool find_unreported(void *u, const struct kube_object *o) {
        struct unreported *x = u;
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)o;
        for (size_t i = 0; fabric_channel_of(f, x->uid) && i < f->n_members && !x->found; i++)
                x->found = is_silent(x->c, f->members[i]);
        return !x->found;
}

bool shared_claims_may_be_used(const struct controller *c, const char *uid) {
        struct unreported x = { .c = c, .uid = uid };
        if (c->caches.plugins)
                kube_informer_each_with(c->caches.fabrics, uid, find_unreported, &x);
        return x.found;
}
