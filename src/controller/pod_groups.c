/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/pod_groups.h"

#include <stdlib.h>
#include <string.h>

#include "api/pod_group.h"
#include "api/reasons.h"
#include "base/log.h"
#include "base/mem.h"
#include "rules/shared_claim.h"

/* The API server answers 404 for a group, or a version of it, that it does not serve. */
static bool is_unserved(const struct err *e) {
        return e->code == 404 || e->code == -404;
}

struct pod_groups {
        struct controller *c;
        size_t version; /* an index of pod_group_resources */
        struct kube_call *probe;
        struct loop_timer retry;
};

/* ---- PodGroups that share a claim for a channel of one node ---- */

static void pod_groups_report(struct controller *c, const struct claim_record *r,
                              const struct claim_group *g) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        const struct compute_domain *cd = records_domain(c, g->domain_uid);
        if (!cd || !cd->channel || !streq(cd->o.meta.ns, r->o.meta.ns))
                return;
        event_record(c->events,
                     &(struct event_about){ g->api_version, CLAIM_GROUP_KIND, r->o.meta.ns, g->name, g->uid },
                     EVENT_WARNING, REASON_POD_GROUP_ON_ONE_NODE, "%s",
                     shared_claim_on_one_node(cd, r->o.meta.name, NULL, mode_assigns_channels(c->mode), a));
}

/* ---- PodGroups that name such a claim, and for which it is not reserved yet ---- */

struct sharing {
        struct controller *c;
        const struct claim_record *r;
        const struct pod_group *first; /* by name */
};

static bool is_sharing(const struct claim_record *r, const struct pod_group *g) {
        return r && r->named && !r->group && streq(r->o.meta.ns, g->o.meta.ns) && !g->o.meta.deleted &&
               g->o.meta.uid && pod_group_names(g, r->o.meta.name);
}

static void report_named(struct controller *c, const struct claim_record *r, const struct pod_group *g) {
        _cleanup_(freep) char *version =
                xasprintf(CLAIM_GROUP_API "/%s", pod_group_resources[c->pod_groups->version]->version);
        if (is_sharing(r, g))
                pod_groups_report(c, r,
                                  &(struct claim_group){ .api_version = version,
                                                         .name = g->o.meta.name,
                                                         .uid = g->o.meta.uid,
                                                         .domain_uid = r->named });
}

static bool report_sharing(void *u, const struct kube_object *o) {
        const struct sharing *x = u;
        report_named(x->c, x->r, (const struct pod_group *)o);
        return true;
}

static void report_claim(struct controller *c, const struct claim_record *r) {
        struct sharing x = { .c = c, .r = r };
        if (r->group)
                pod_groups_report(c, r, r->group);
        else if (r->named && c->caches.pod_groups)
                kube_informer_each_with(c->caches.pod_groups, r->o.meta.name, report_sharing, &x);
}

static bool find_sharing(void *u, const struct kube_object *o) {
        struct sharing *x = u;
        if (is_sharing(x->r, (const struct pod_group *)o) &&
            (!x->first || strcmp(o->meta.name, x->first->o.meta.name) < 0))
                x->first = (const struct pod_group *)o;
        return true;
}

const char *pod_groups_sharing(const struct controller *c, const struct claim_record *r) {
        struct sharing x = { .r = r };
        if (r->group)
                return r->group->name;
        if (c->caches.pod_groups)
                kube_informer_each_with(c->caches.pod_groups, r->o.meta.name, find_sharing, &x);
        return x.first ? x.first->o.meta.name : NULL;
}

/* ---- changes of claims ---- */

static const char *grouped_in(const struct claim_record *r) {
        return r && r->group ? r->group->domain_uid : NULL;
}

static const char *named_in(const struct claim_record *r) {
        return r ? r->named : NULL;
}

void pod_groups_claim_changed(struct controller *c, const struct claim_record *was,
                              const struct claim_record *is) {
        if (!streq(grouped_in(was), grouped_in(is))) {
                records_queue_domain(c, grouped_in(was));
                records_queue_domain(c, grouped_in(is));
        }
        if (!streq(named_in(was), named_in(is))) {
                records_queue_domain(c, named_in(was));
                records_queue_domain(c, named_in(is));
        }
        bool is_new = is && ((is->group && !(was && was->group)) || (is->named && !(was && was->named)));
        if (c->leading && is_new && records_synced(c))
                report_claim(c, is);
}

static bool report_one(void *u, const struct kube_object *o) {
        report_claim(u, (const struct claim_record *)o);
        return true;
}

void pod_groups_report_all(struct controller *c) {
        kube_informer_each(c->caches.claims, report_one, c);
}

/* ---- the watch ---- */

static bool names_a_claim(void *u, const struct kube_object *o) {
        return pod_group_names((const struct pod_group *)o, NULL);
}

static void pod_groups_keys(const struct kube_object *o, kube_key_fn *add, void *v) {
        const struct pod_group *g = (const struct pod_group *)o;
        for (size_t i = 0; i < g->n_claims; i++)
                if (g->claims[i].name)
                        add(v, g->claims[i].name);
}

static const struct claim_record *named_claim(const struct controller *c, const struct pod_group *g,
                                              size_t i) {
        return g->claims[i].name && c->caches.claims
                       ? (const struct claim_record *)kube_informer_get(c->caches.claims, g->o.meta.ns,
                                                                        g->claims[i].name)
                       : NULL;
}

static void queue_named(struct controller *c, const struct pod_group *g) {
        for (size_t i = 0; g && i < g->n_claims; i++) {
                const struct claim_record *r = named_claim(c, g, i);
                records_queue_claim(c, g->o.meta.ns, g->claims[i].name);
                if (r && r->named)
                        records_queue_domain(c, r->named);
        }
}

static void pod_group_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct controller *c = ((struct pod_groups *)u)->c;
        const struct pod_group *is = (const struct pod_group *)now;
        queue_named(c, is);
        if (!now || (old && !streq(old->meta.uid, now->meta.uid)))
                queue_named(c, (const struct pod_group *)old);
        bool is_new = is && (!old || !streq(old->meta.uid, now->meta.uid));
        for (size_t i = 0; is_new && c->leading && records_synced(c) && i < is->n_claims; i++)
                report_named(c, named_claim(c, is, i), is);
}

static bool queue_group(void *u, const struct kube_object *o) {
        queue_named(u, (const struct pod_group *)o);
        return true;
}

/* A stale cache names no group. */
static void pod_groups_on_current(void *u, bool is) {
        struct pod_groups *g = u;
        if (is)
                kube_informer_each(g->c->caches.pod_groups, queue_group, g->c);
}

/* ---- ComputeDomains whose condition a new leader has kept ---- */

static bool queue_kept(void *u, const struct kube_object *o) {
        const struct compute_domain *cd = (const struct compute_domain *)o;
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].reason, REASON_GROUP_ON_ONE_NODE))
                        records_queue_domain(u, o->meta.uid);
        return true;
}

bool pod_groups_pending(const struct controller *c) {
        const struct pod_groups *g = c->pod_groups;
        return g && (g->probe || (c->caches.pod_groups && !kube_informer_synced(c->caches.pod_groups)));
}

static void pod_groups_on_synced(void *u) {
        struct controller *c = ((struct pod_groups *)u)->c;
        kube_informer_each(c->caches.cds, queue_kept, c);
}

/* A proxy may answer 404, too. */
static void try_later(struct pod_groups *g) {
        g->version = 0;
        loop_timer_start(&g->retry, POD_GROUPS_RETRY_MS);
        pod_groups_on_synced(g);
}

/* The API server no longer serves this version. */
static void pod_groups_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct pod_groups *g = u;
        if (!e) {
                log_info("watch works again", kv_str("resource", res->plural));
                return;
        }
        log_warn("watch fails", kv_str("resource", res->plural), kv_err(e));
        if (!is_unserved(e))
                return;
        kube_informer_free(TAKE(g->c->caches.pod_groups));
        try_later(g);
}

static void pod_groups_begin_watch(struct pod_groups *g, const struct kube_resource *res) {
        g->c->caches.pod_groups = kube_informer_new(
                g->c->client, &(struct kube_informer_options){ .res = res,
                                                               .fields = pod_group_fields,
                                                               .size = sizeof(struct pod_group),
                                                               .keep = names_a_claim,
                                                               .keys = pod_groups_keys,
                                                               .synced = pod_groups_on_synced,
                                                               .changed = pod_group_changed,
                                                               .current = pod_groups_on_current,
                                                               .failing = pod_groups_on_failing,
                                                               .u = g });
}

static void pod_groups_probe(struct pod_groups *g);

static void on_probed(void *u, yyjson_val *obj, const struct err *e) {
        struct pod_groups *g = u;
        const struct kube_resource *res = pod_group_resources[g->version];
        g->probe = NULL;
        if (!e) {
                pod_groups_begin_watch(g, res);
        } else if (is_unserved(e) && pod_group_resources[++g->version]) {
                pod_groups_probe(g);
        } else if (is_unserved(e)) {
                log_v(2, "the API server serves no PodGroups, so no claim is reserved for one");
                try_later(g);
        } else {
                log_warn("cannot list PodGroups, so the scheduler reserves their claims", kv_err(e));
                try_later(g);
        }
}

static void pod_groups_probe(struct pod_groups *g) {
        g->probe = kube_start(g->c->client, &(struct kube_request){ .verb = KUBE_LIST,
                                                                    .res = pod_group_resources[g->version],
                                                                    .query = "limit=1",
                                                                    .attempts = 1,
                                                                    .done = on_probed,
                                                                    .u = g });
}

static void on_retry(void *u) {
        pod_groups_probe(u);
}

void pod_groups_watch(struct controller *c, const struct compute_domain *cd) {
        if (c->pod_groups || !mode_assigns_channels(c->mode) || !cd->channel || !cd->channel->claim_name)
                return;
        struct pod_groups *g = xnew(struct pod_groups);
        c->pod_groups = g;
        g->c = c;
        loop_timer_init(&g->retry, kube_client_loop(c->client), on_retry, g);
        pod_groups_probe(g);
}

void pod_groups_free(struct pod_groups *g) {
        if (!g)
                return;
        kube_cancel(g->probe);
        loop_timer_done(&g->retry);
        kube_informer_free(TAKE(g->c->caches.pod_groups));
        free(g);
}

/* ---- claims that PodGroups name ---- */

struct naming {
        const char *ns;
        struct arena *a;
        struct claim_consumer *list;
        size_t n, cap;
};

static bool add_naming(void *u, const struct kube_object *o) {
        struct naming *x = u;
        if (!streq(o->meta.ns, x->ns) || o->meta.deleted || !o->meta.uid)
                return true;
        ARENA_GROW(x->a, x->list, x->n, x->cap);
        x->list[x->n++] =
                (struct claim_consumer){ CLAIM_GROUP_API, CLAIM_GROUP_RESOURCE, o->meta.name, o->meta.uid };
        return true;
}

size_t pod_groups_naming(const struct controller *c, const char *ns, const char *claim, struct arena *a,
                         const struct claim_consumer **ret) {
        struct naming x = { .ns = ns, .a = a };
        const struct kube_informer *groups = c->caches.pod_groups;
        if (groups && kube_informer_current(groups))
                kube_informer_each_with(groups, claim, add_naming, &x);
        *ret = x.list;
        return x.n;
}
