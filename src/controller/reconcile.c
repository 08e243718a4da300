/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/checks.h"
#include "controller/plan.h"
#include "controller/records.h"
#include "controller/pod_groups.h"
#include "controller/shared_claims.h"
#include "controller/shared_device.h"
#include "controller/shortages.h"
#include "kube/kube_metrics.h"
#include "model/daemon_report.h"
#include "rules/member_gather.h"
#include "rules/membership.h"
#include "rules/message.h"

/* ---- members ---- */

static const struct node *members_node(void *u, const char *name) {
        return records_node(u, name);
}

static const char *members_clique(void *u, const char *node) {
        return records_node_clique(u, node);
}

static const struct daemon_pod *members_daemon(void *u, const char *node) {
        return records_daemon(u, node);
}

static const struct compute_domain_fabric *members_fabric(void *u, const char *clique) {
        return records_fabric(u, clique);
}

struct members_visit {
        member_fabric_fn *fn;
        void *v;
};

static bool members_visit(void *u, const struct kube_object *o) {
        const struct members_visit *x = u;
        x->fn(x->v, (const struct compute_domain_fabric *)o);
        return true;
}

static void members_fabrics(void *u, const char *domain_uid, member_fabric_fn *fn, void *v) {
        const struct controller *c = u;
        struct members_visit x = { fn, v };
        kube_informer_each_with(c->caches.fabrics, domain_uid, members_visit, &x);
}

static void members_allocations(void *u, const char *domain_uid, member_allocation_fn *fn, void *v) {
        const struct controller *c = u;
        allocations_of_domain(c->allocations, domain_uid, fn, v);
}

/* The caches of the controller. The functions above do not change it. */
static struct member_source members_source(const struct controller *c) {
        union {
                const struct controller *in;
                void *out;
        } u = { .in = c };
        return (struct member_source){ members_node,    members_clique,      members_daemon, members_fabric,
                                       members_fabrics, members_allocations, .u = u.out };
}

/* Collects the nodes that a claim brings into the ComputeDomain, and those that a fabric object lists for it.
 * Returns their number; *ret is sorted by name and in the arena. */
static size_t members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                         const struct member_facts **ret) {
        struct member_source s = members_source(c);
        return member_gather(&s, cd->o.meta.uid, cd->o.meta.ns, a, ret);
}

static const char *members_error_of(const struct controller *c, enum key_kind kind, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        key_render(kind, name, &key);
        return writes_error(c->writes, buf_str(&key));
}

/* Returns the write error that keeps one of these nodes from getting a daemon or an assignment; NULL: none is
 * known. */
static const char *members_error(const struct controller *c, const struct member_facts *list, size_t n) {
        const char *error = NULL;
        for (size_t i = 0; i < n && !error && writes_failing(c->writes); i++) {
                const struct member_facts *x = &list[i];
                if (x->wanted && !x->pod)
                        error = writes_error(c->writes, KEY_OF_DAEMONS);
                if (x->wanted && !error)
                        error = members_error_of(c, KEY_NODE, x->name);
                if (x->wanted && !error && x->clique && *x->clique)
                        error = members_error_of(c, KEY_FABRIC, x->clique);
        }
        return error;
}

struct node_error {
        const struct controller *c;
        const char *error;
};

static bool find_node_error(void *u, const struct kube_object *o) {
        struct node_error *x = u;
        x->error = members_error_of(x->c, KEY_NODE, o->meta.name);
        return !x->error;
}

/* With assigned channels, the daemons and the labels of all nodes decide which nodes offer channels. Returns
 * the write error that keeps nodes from it while pods of the ComputeDomain wait, or one of its nodes from
 * getting a daemon; NULL: none is known. */
static const char *offers_error(const struct controller *c, const struct plan_input *in) {
        struct node_error x = { .c = c };
        bool waits = in->shortage || in->shared_reach == SHARED_REACH_NONE, needs_daemons = waits;
        if (!mode_assigns_channels(c->mode) || !writes_failing(c->writes))
                return NULL;
        for (size_t i = 0; i < in->n_hosts && !needs_daemons; i++)
                needs_daemons = !records_daemon(c, in->hosts[i].name);
        if (needs_daemons && mode_runs_daemons(c->mode))
                x.error = writes_error(c->writes, KEY_OF_DAEMONS);
        if (waits && !x.error)
                kube_informer_each(c->caches.nodes, find_node_error, &x);
        return x.error;
}

/* Returns the number of assignments of the ComputeDomain that fabric objects still list. *ret_names is the
 * text with their nodes, for people. */
static size_t members_assigned(const struct controller *c, const char *uid, struct arena *a,
                               const char **ret_names) {
        struct member_source s = members_source(c);
        const struct member_facts *list;
        struct message_list names = { 0 };
        struct daemon_report r;
        size_t n = member_gather_assigned(&s, uid, a, &list);
        for (size_t i = 0; i < n; i++) {
                const struct daemon_pod *daemon = records_daemon(c, list[i].name);
                if (daemon && member_gather_report(daemon, a, &r) && *r.waits_for)
                        message_add(&names, "%s (%.300s)", list[i].name, r.waits_for);
                else
                        message_add(&names, "%s", list[i].name);
        }
        *ret_names = message_end(&names, a);
        return n;
}

/* How long a write waits for more changes, and after the last write of the same object. */
static const struct {
        unsigned batch_ms, interval_ms;
} pace[] = { [PLAN_NOW] = { 0, 0 }, [PLAN_LATER] = { 150, 1000 }, [PLAN_SPACED] = { 0, 3000 } };

/* ---- facts from the caches ---- */

struct list {
        struct arena *a;
        const void **items;
        size_t n, cap;
};

static bool add_object(void *u, const struct kube_object *o) {
        struct list *l = u;
        ARENA_GROW(l->a, l->items, l->n, l->cap);
        l->items[l->n++] = o;
        return true;
}

struct own_claims {
        const char *ns;
        struct list list;
};

/* An owner reference does not reach another namespace, and a claim in another namespace gets no channel. */
static bool add_own_claim(void *u, const struct kube_object *o) {
        struct own_claims *l = u;
        return !streq(o->meta.ns, l->ns) || add_object(&l->list, o);
}

static void gather_grouped(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                           struct plan_input *ret) {
        struct own_claims claims = { .ns = cd->o.meta.ns, .list = { .a = a } };
        kube_informer_each_at(c->caches.claims, CONTROLLER_CLAIMS_GROUPED, cd->o.meta.uid, add_own_claim,
                              &claims);
        kube_informer_each_at(c->caches.claims, CONTROLLER_CLAIMS_NAMED, cd->o.meta.uid, add_own_claim,
                              &claims);
        struct plan_grouped *list = arena_alloc(a, (claims.list.n + 1) * sizeof *list);
        for (size_t i = 0; i < claims.list.n; i++) {
                const struct claim_record *r = claims.list.items[i];
                const char *group = pod_groups_sharing(c, r);
                if (group)
                        list[ret->n_grouped++] = (struct plan_grouped){ r->o.meta.name, group };
        }
        ret->grouped = list;
        ret->groups_pending = pod_groups_pending(c);
}

static void forget_holder(struct controller_holder *h) {
        arena_free(TAKE(h->arena));
        h->rct = NULL;
}

static const struct rct *reconcile_holder(const struct controller *c, const char *ns, const char *name,
                                          struct controller_holder *memory) {
        const struct rct *r = name ? (const struct rct *)kube_informer_get(c->caches.rcts, ns, name) : NULL;
        if (r && memory)
                forget_holder(memory);
        return r || !memory ? r : memory->rct;
}

static const struct plan_claim_holder *plan_holder_of(const struct claim_record *r, struct arena *a) {
        struct plan_claim_holder *ret = arena_alloc(a, sizeof *ret);
        const struct claim_shared *s = r->shared;
        *ret = (struct plan_claim_holder){ .version = r->o.meta.rv };
        if (r->o.meta.deleted)
                ret->terminating = shared_claim_terminating(
                        r->o.meta.ns, r->o.meta.name, s ? s->finalizers : NULL, s ? s->n_finalizers : 0, a);
        return ret;
}

static void gather_shared(const struct controller *c, const struct compute_domain *cd,
                          struct controller_domain *memory, struct arena *a, struct plan_input *ret) {
        struct own_claims claims = { .ns = cd->o.meta.ns, .list = { .a = a } };
        kube_informer_each_at(c->caches.claims, CONTROLLER_CLAIMS_BY_OWNER, cd->o.meta.uid, add_own_claim,
                              &claims);
        ret->claims = (const struct claim_record *const *)(const void *)claims.list.items;
        ret->n_claims = claims.list.n;
        const struct claim_record *other = shared_claims_of_another(c, cd);
        ret->claim_watched = other != NULL;
        ret->claim_holder = other ? plan_holder_of(other, a) : memory ? memory->claim_holder : NULL;
        ret->shared_device = shared_device_state(c);
        ret->shared_reach = shared_device_reach(c);
        ret->shared_error = shared_device_error(c);
        ret->shared_holder = reconcile_holder(c, cd->o.meta.ns, cd->channel->shared_template_name,
                                              memory ? &memory->shared_holder : NULL);
}

/* The allocated claims in the namespace `ns`. A claim of another namespace may name the ComputeDomain, too,
 * but gets no channel of it. */
struct wanted {
        struct arena *a;
        const char *ns;
        struct allocation *items;
        size_t n, cap;
};

static void reconcile_add_wanted(void *u, const struct allocation *x) {
        struct wanted *l = u;
        if (!streq(l->ns, x->ns))
                return;
        ARENA_GROW(l->a, l->items, l->n, l->cap);
        l->items[l->n++] = *x;
}

static bool add_living(void *u, const struct kube_object *o) {
        return pod_ended((const struct pod *)o) || add_object(u, o);
}

struct own_templates {
        const struct controller *c;
        const struct compute_domain *cd;
        struct list list;
};

static bool add_template(void *u, const struct kube_object *o) {
        struct own_templates *t = u;
        return !records_owns(t->c, t->cd, (const struct rct *)o) || add_object(&t->list, o);
}

/* ---- IMEX on nodes, if it runs before ComputeDomains use it ---- */

static int hosts_by_name(const void *x, const void *y) {
        return strcmp(((const struct host *)x)->name, ((const struct host *)y)->name);
}

static bool newest_ready(void *u, const struct kube_object *o) {
        const struct plugin_pod **best = u, *p = (const struct plugin_pod *)o;
        if (plugin_pod_ready_since(p) && (!*best || p->o.meta.created > (*best)->o.meta.created))
                *best = p;
        return true;
}

/* A plugin that does not know the state reports only why. */
static void read_plugin_state(const struct controller *c, struct host *h) {
        const struct plugin_pod *plugin = records_plugin(c, h->name), *silent = NULL;
        if (plugin) {
                h->reported = plugin->host_state;
                h->state = host_state_decode(plugin->host_state);
                h->reason = plugin->host_reason;
        } else {
                kube_informer_each_at(c->caches.plugins, CONTROLLER_PLUGINS_BY_NODE, h->name, newest_ready,
                                      &silent);
                h->reason = silent ? silent->host_reason : NULL;
        }
}

/* The standing domain of the node's partition, from the fabric object; NULL: it lists none. */
static const struct fabric_domain *standing_on(const struct controller *c, const char *node,
                                               const struct daemon_report *r) {
        const char *slice = records_node_clique(c, node);
        const char *clique = slice ? slice : r->has_assignment ? r->assignment.clique_id : NULL;
        const struct compute_domain_fabric *f = records_fabric(c, clique);
        char uid[37];
        if (!f)
                return NULL;
        fabric_standing_uid(clique, uid);
        return fabric_domain_of(f, uid);
}

/* While the isolation changes, a daemon may still be ready in the IMEX domain of a ComputeDomain. That does
 * not count for the standing domain. */
static void read_daemon_state(const struct controller *c, struct host *h, struct arena *a) {
        const struct daemon_pod *daemon = records_daemon(c, h->name);
        struct daemon_report r;
        struct err e;
        if (!daemon || !daemon->report || daemon_report_decode(str_from(daemon->report), a, &r, &e) < 0)
                return;
        const struct fabric_domain *d = standing_on(c, h->name, &r);
        if (!d)
                return;
        h->reported = true;
        bool serves = r.has_assignment && streq(r.assignment.domain_uid, d->owner.uid);
        h->state = serves && pod_imex_ready(&daemon->pod) ? HOST_UP : HOST_DOWN;
        h->reason = serves || !r.has_assignment
                            ? daemon->pod.reason
                            : "its daemon still serves the IMEX domain of a ComputeDomain";
}

static void gather_hosts(const struct controller *c, const struct wanted *wanted, struct arena *a,
                         struct plan_input *ret) {
        struct host *hosts = arena_alloc(a, (wanted->n + 1) * sizeof *hosts);
        size_t n = 0, kept = 0;
        for (size_t i = 0; i < wanted->n; i++)
                if (!streq(wanted->items[i].node, CD_POOL_SHARED))
                        hosts[n++] = (struct host){ .name = wanted->items[i].node };
        qsort(hosts, n, sizeof *hosts, hosts_by_name);
        for (size_t i = 0; i < n; i++) {
                const struct node *node = records_node(c, hosts[i].name);
                if (kept && streq(hosts[kept - 1].name, hosts[i].name))
                        continue;
                hosts[kept++] = hosts[i];
                /* The last report of a node that does not answer may be wrong by now. */
                if (!node || !node_ready(node))
                        continue;
                if (mode_is_standing(c->mode))
                        read_daemon_state(c, &hosts[kept - 1], a);
                else if (c->caches.plugins)
                        read_plugin_state(c, &hosts[kept - 1]);
        }
        ret->hosts = hosts;
        ret->n_hosts = kept;
}

/* ---- assigned channels ---- */

static int channels_by_fabric(const void *x, const void *y) {
        const struct own_channel *a = x, *b = y;
        int order = strcmp(a->fabric, b->fabric);
        return order ? order : a->unknown - b->unknown;
}

static struct own_channel channel_on(const struct controller *c, const char *uid,
                                     const struct own_channel *x) {
        const char *clique = x->fabric;
        const struct compute_domain_fabric *f = records_fabric(c, clique);
        const struct fabric_channel *e = f ? fabric_channel_of(f, uid) : NULL;
        static const char *const reasons[] = { FABRIC_CHANNELS_INCOMPLETE, FABRIC_CHANNELS_EXHAUSTED };
        const struct condition *why =
                f && !e ? condition_first_true(f->conditions, f->n_conditions, reasons, ARRAY_LEN(reasons))
                        : NULL;
        const char *message = why             ? why->message
                              : !e && *clique ? members_error_of(c, KEY_FABRIC, clique)
                                              : NULL;
        return (struct own_channel){ .fabric = clique,
                                     .unknown = x->unknown,
                                     .rack = f ? f->rack : NULL,
                                     .id = e ? e->id : -1,
                                     .why = message };
}

/* `claimed`: a claim of its namespace is allocated. */
static void gather_channels(const struct controller *c, const char *uid, bool claimed, struct arena *a,
                            struct plan_input *ret) {
        struct own_channel *list = arena_alloc(a, (ret->n_hosts + 1) * sizeof *list);
        size_t n = ret->n_hosts, kept = 0;
        for (size_t i = 0; i < n; i++) {
                const char *clique = records_last_clique(c, ret->hosts[i].name);
                list[i] = (struct own_channel){ .fabric = str_or(clique, ""), .unknown = !clique };
        }
        if (n)
                qsort(list, n, sizeof *list, channels_by_fabric);
        for (size_t i = 0; i < n; i++)
                if (!kept || !streq(list[kept - 1].fabric, list[i].fabric))
                        list[kept++] = channel_on(c, uid, &list[i]);
        ret->channels = list;
        ret->n_channels = kept;
        ret->hosts_unknown = !n && claimed && shared_claims_may_be_used(c, uid);
}

static const char *error_of_node(const struct controller *c, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        key_render(KEY_NODE, name, &key);
        return writes_error(c->writes, buf_str(&key));
}

/* Why the labels of a ComputeDomain that ends are not removed; NULL: no error. */
static const char *label_write_error(const struct controller *c, const struct list *labelled) {
        const char *error = NULL;
        for (size_t i = 0; i < labelled->n && !error; i++)
                error = error_of_node(c, ((const struct node *)labelled->items[i])->o.meta.name);
        return error;
}

static const char *name_labelled(const struct list *labelled, struct arena *a) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < labelled->n; i++)
                message_add(&names, "%s", ((const struct node *)labelled->items[i])->o.meta.name);
        return message_end(&names, a);
}

/* Gathers the objects of the ComputeDomain that the Go driver left. */
static void gather_go(const struct controller *c, const char *uid, struct arena *a, struct plan_input *ret) {
        struct list sets = { .a = a }, pods = { .a = a }, cliques = { .a = a };
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                const struct controller_namespace *n = &c->caches.namespaces[i];
                kube_informer_each_at(n->sets, CONTROLLER_BY_DOMAIN, uid, add_object, &sets);
                kube_informer_each_at(n->pods, CONTROLLER_BY_DOMAIN, uid, add_living, &pods);
                kube_informer_each_at(n->cliques, CONTROLLER_BY_DOMAIN, uid, add_object, &cliques);
        }
        ret->sets = (const struct daemonset *const *)(const void *)sets.items;
        ret->n_sets = sets.n;
        ret->pods = (const struct pod *const *)(const void *)pods.items;
        ret->n_pods = pods.n;
        ret->cliques = (const struct clique *const *)(const void *)cliques.items;
        ret->n_cliques = cliques.n;
}

static void reconcile_gather(struct controller *c, const char *uid, const char *key, struct arena *a,
                             struct plan_input *ret) {
        const struct compute_domain *cd = records_domain(c, uid);
        struct list labelled = { .a = a };
        struct wanted wanted = { .a = a, .ns = cd ? cd->o.meta.ns : NULL };
        struct own_templates own = { .c = c, .cd = cd, .list = { .a = a } };
        struct controller_domain *memory = records_find(c, uid);
        bool lives = cd && !domain_ends(cd);
        kube_informer_each_at(c->caches.rcts, CONTROLLER_BY_DOMAIN, uid, add_template, &own);
        kube_informer_each_at(c->caches.nodes, CONTROLLER_BY_DOMAIN, uid, add_object, &labelled);
        allocations_of_domain(c->allocations, uid, reconcile_add_wanted, &wanted);
        *ret = (struct plan_input){
                .settings = &c->settings,
                .mode = c->mode,
                .uid = uid,
                .cd = cd,
                .rcts = (const struct rct *const *)(const void *)own.list.items,
                .n_rcts = own.list.n,
                .n_labelled = labelled.n,
                .conditions = !c->no_conditions,
                .now = clock_wall_s(),
                .write_error = writes_error(c->writes, key),
                .stale = records_stale(c),
                .deletion_confirmed = !cd && live_read_known(c->live_read, LIVE_READ_DOMAIN, NULL, uid),
        };
        gather_go(c, uid, a, ret);
        if (lives && !cd->o.meta.deleted)
                ret->shortage = shortages_condition(c, cd, a, &ret->shortage_recheck_s);
        if (!lives) {
                ret->labelled = name_labelled(&labelled, a);
                ret->label_error = label_write_error(c, &labelled);
                ret->n_assigned = members_assigned(c, uid, a, &ret->assigned);
        } else if (mode_forms_domains(c->mode)) {
                ret->n_members = members_of(c, cd, a, &ret->members);
                if (!ret->write_error)
                        ret->write_error = members_error(c, ret->members, ret->n_members);
        } else {
                gather_hosts(c, &wanted, a, ret);
                if (mode_assigns_channels(c->mode))
                        gather_channels(c, uid, wanted.n > 0, a, ret);
        }
        if (cd && cd->channel)
                ret->holder = reconcile_holder(c, cd->o.meta.ns, cd->channel->template_name,
                                               memory ? &memory->holder : NULL);
        if (cd && cd->channel)
                gather_grouped(c, cd, a, ret);
        if (cd && domain_shares(cd))
                gather_shared(c, cd, memory, a, ret);
        if (lives && !ret->write_error)
                ret->write_error = offers_error(c, ret);
        if (lives && cd->o.meta.deleted) {
                records_make(c, uid)->was_held = true;
        } else if (lives && memory) {
                memory->ending_since = 0;
        } else if (!lives) {
                memory = records_make(c, uid);
                if (!memory->ending_since)
                        memory->ending_since = cd && !memory->was_held ? cd->o.meta.deleted : ret->now;
                ret->ending_since = memory->ending_since;
        }
}

/* ---- the name of a claim template is taken ---- */

static void reconcile_on_holder(void *u, yyjson_val *obj, const struct err *e) {
        struct controller_holder *h = u;
        struct controller_domain *d = h->d;
        struct arena *a = arena_new(1024);
        struct rct *r = arena_alloc(a, sizeof *r);
        struct err bad;
        h->asking = NULL;
        forget_holder(h);
        bool found = !e && jd_decode(rct_fields, obj, "", a, r, &bad) == 0;
        if (found && !r->domain_uid) {
                h->arena = TAKE(a);
                h->rct = r;
        } else if (found) { /* the watch has not shown it yet */
                kube_informer_answer(d->c->caches.rcts, obj);
        }
        arena_free(a);
        records_queue_domain(d->c, d->uid);
}

/* No watch shows changes of a template without the label, so each answer to a write updates the memory of it.
 */
static void on_rct(void *u, const struct writes_target *q, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        const char *uid = key_parse(q->requester).name;
        const struct compute_domain *cd = records_domain(c, uid);
        if (!cd || !cd->channel || !streq(q->ns, cd->o.meta.ns))
                return;
        struct controller_domain *d = records_make(c, uid);
        struct controller_holder *h = streq(q->name, cd->channel->template_name)          ? &d->holder
                                      : streq(q->name, cd->channel->shared_template_name) ? &d->shared_holder
                                                                                          : NULL;
        if (h && (!e || e->kind == ERR_NOT_FOUND))
                forget_holder(h);
        if (h && e && e->kind == ERR_CONFLICT && !h->asking &&
            !kube_informer_get(c->caches.rcts, q->ns, q->name))
                h->asking = kube_start(c->client, &(struct kube_request){
                                                          .verb = KUBE_GET,
                                                          .res = &kube_resource_claim_templates,
                                                          .ns = q->ns,
                                                          .name = q->name,
                                                          .done = reconcile_on_holder,
                                                          .u = h,
                                                  });
}

/* A claim that cannot be decoded has the name, too. */
static struct plan_claim_holder *claim_holder_of(yyjson_val *obj, struct arena *a) {
        _cleanup_(arena_freep) struct arena *decoded = arena_new(4096);
        struct plan_claim_holder *ret = arena_alloc(a, sizeof *ret);
        struct claim claim = { 0 };
        struct err bad;
        *ret = (struct plan_claim_holder){ 0 };
        if (jd_decode(claim_fields, obj, "", decoded, &claim, &bad) < 0)
                return ret;
        const struct kube_meta *m = &claim.o.meta;
        ret->version = arena_strdup(a, m->rv);
        if (m->deleted)
                ret->terminating =
                        arena_strdup(a, shared_claim_terminating(str_or(m->ns, ""), m->name, claim.finalizers,
                                                                 claim.n_finalizers, decoded));
        return ret;
}

/* obj NULL: no other claim has the name. */
static void set_claim_holder(struct controller_domain *d, yyjson_val *obj) {
        const struct plan_claim_holder *was = d->claim_holder;
        struct arena *a = obj ? arena_new(1024) : NULL;
        struct plan_claim_holder *is = obj ? claim_holder_of(obj, a) : NULL;
        if (!was != !is || (is && !streq(was->version, is->version)))
                records_queue_domain(d->c, d->uid);
        arena_free(d->claim_holder_arena);
        d->claim_holder_arena = a;
        d->claim_holder = is;
}

static void reconcile_on_claim_holder(void *u, yyjson_val *obj, const struct err *e) {
        struct controller_domain *d = u;
        const struct compute_domain *cd = records_domain(d->c, d->uid);
        d->asking_claim = NULL;
        if (!e) /* it may be its own claim, which the watch has not shown yet */
                kube_informer_answer(d->c->caches.claims, obj);
        if (!cd || !cd->channel || !cd->channel->claim_name || (e && e->kind != ERR_NOT_FOUND))
                return;
        const struct claim_record *r = (const struct claim_record *)kube_informer_get(
                d->c->caches.claims, cd->o.meta.ns, cd->channel->claim_name);
        set_claim_holder(d, r && streq(r->owner, d->uid) ? NULL : obj);
}

/* If another owner has the name of the shared claim, the driver keeps trying, because only the API server
 * knows when the name is free. */
static void on_claim(void *u, const struct writes_target *q, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        struct controller_domain *d = records_make(c, key_parse(q->requester).name);
        if (!e || e->kind != ERR_CONFLICT)
                set_claim_holder(d, NULL);
        else if (!d->asking_claim)
                d->asking_claim = kube_start(c->client, &(struct kube_request){
                                                                .verb = KUBE_GET,
                                                                .res = &kube_resource_claims,
                                                                .ns = q->ns,
                                                                .name = q->name,
                                                                .done = reconcile_on_claim_holder,
                                                                .u = d,
                                                        });
}

/* ---- sending ---- */

/* Keeps the Events until the server has accepted the status. If the write fails, the next decision may be
 * different. */
static void keep_events(struct controller *c, const struct compute_domain *cd, const struct plan *p) {
        struct controller_domain *d = records_make(c, cd->o.meta.uid);
        arena_free(TAKE(d->events_arena));
        d->events_version = kube_object_version(cd->o.meta.rv);
        d->events_arena = arena_new(1024);
        d->events = arena_alloc(d->events_arena, (p->n_events + 1) * sizeof *d->events);
        d->n_events = p->n_events;
        for (size_t i = 0; i < p->n_events; i++)
                d->events[i] = (struct verdict_event){ p->events[i].warning,
                                                       arena_strdup(d->events_arena, p->events[i].reason),
                                                       arena_strdup(d->events_arena, p->events[i].message) };
}

static void report_events(struct controller *c, const char *uid, bool written) {
        const struct compute_domain *cd = records_domain(c, uid);
        struct controller_domain *d = records_find(c, uid);
        if (!d)
                return;
        for (size_t i = 0; cd && written && i < d->n_events; i++)
                event_record(
                        c->events,
                        &(struct event_about){ CD_API_VERSION, CD_KIND, cd->o.meta.ns, cd->o.meta.name, uid },
                        d->events[i].warning ? EVENT_WARNING : EVENT_NORMAL, d->events[i].reason, "%s",
                        d->events[i].message);
        arena_free(TAKE(d->events_arena));
        d->n_events = 0;
        d->events_unsure = false;
}

/* The write has succeeded although its answer was lost, if a later version needs no other status. */
static void report_unsure_events(struct controller *c, const struct plan_input *in, const struct plan *p) {
        const struct controller_domain *d = records_find(c, in->uid);
        if (!d || !d->events_unsure || !in->cd || in->cd->o.meta.deleted ||
            kube_object_version(in->cd->o.meta.rv) <= d->events_version)
                return;
        for (size_t i = 0; i < p->n_actions; i++)
                if (p->actions[i].answer == PLAN_ANSWER_STATUS)
                        return;
        report_events(c, in->uid, true);
}

static void reconcile_on_status(void *u, const struct writes_target *q, yyjson_val *obj,
                                const struct err *e) {
        struct controller *c = u;
        const char *uid = key_parse(q->requester).name;
        struct controller_domain *d = records_find(c, uid);
        /* A conflict after a lost answer may be with that write. */
        if (d && e && (e->kind == ERR_RETRY || (e->kind == ERR_CONFLICT && d->events_unsure)))
                d->events_unsure = true;
        else
                report_events(c, uid, !e);
        if (e)
                return;
        bool dropped = !yyjson_obj_get(yyjson_obj_get(obj, "status"), "conditions");
        if (dropped && !c->no_conditions) {
                log_warn("the CustomResourceDefinition computedomains.resource.nvidia.com is too old and "
                         "drops "
                         "status.conditions; continuing without conditions");
                crds_recheck(c->crds);
        }
        c->no_conditions = dropped;
}

static struct kube_informer *informer_for(const struct controller *c, const struct plan_action *x) {
        if (x->res == &kube_compute_domains)
                return c->caches.cds;
        if (x->res == &kube_resource_claim_templates)
                return c->caches.rcts;
        if (x->res == &kube_resource_claims)
                return c->caches.claims;
        for (size_t i = 0; i < c->caches.n_namespaces; i++) {
                const struct controller_namespace *n = &c->caches.namespaces[i];
                if (streq(n->ns, x->ns))
                        return x->res == &kube_daemonsets ? n->sets
                               : x->res == &kube_cliques  ? n->cliques
                               : x->res == &kube_pods     ? n->pods
                                                          : NULL;
        }
        return NULL;
}

static writes_done_fn *const answered[] = {
        [PLAN_ANSWER_NONE] = NULL,
        [PLAN_ANSWER_STATUS] = reconcile_on_status,
        [PLAN_ANSWER_TEMPLATE] = on_rct,
        [PLAN_ANSWER_CLAIM] = on_claim,
};

static void perform(struct controller *c, const char *key, const struct plan_input *in,
                    const struct plan *p) {
        writes_begin(c->writes, key);
        for (size_t i = 0; i < p->n_actions; i++) {
                const struct plan_action *x = &p->actions[i];
                bool started = writes_try(c->writes, &(struct writes_request){
                                                             .requester = key,
                                                             .verb = x->verb,
                                                             .res = x->res,
                                                             .ns = x->ns,
                                                             .name = x->name,
                                                             .subresource = x->subresource,
                                                             .body = x->body,
                                                             .batch_ms = pace[x->when].batch_ms,
                                                             .interval_ms = pace[x->when].interval_ms,
                                                             .cache = informer_for(c, x),
                                                             .done = answered[x->answer],
                                                             .u = c,
                                                     });
                if (started)
                        log_v(3, "write", kv_str("domain", in->uid), kv_str("kind", x->res->kind),
                              kv_str("name", x->name), kv_str("verb", kube_verb_name(x->verb)));
                if (started && x->answer == PLAN_ANSWER_STATUS && in->cd)
                        keep_events(c, in->cd, p);
        }
        writes_end(c->writes, key);
}

/* Pauses removals and asks the API server, where the plan lacks facts. */
static void reconcile_ask(struct controller *c, const char *key, const struct plan_input *in,
                          const struct plan *p) {
        if (p->held)
                records_pause(c, key);
        if (p->ask_domain)
                live_read_absent(c->live_read, LIVE_READ_DOMAIN, NULL, in->uid, key);
}

void reconcile_domain(struct controller *c, const char *uid) {
        _cleanup_(arena_freep) struct arena *a = arena_new(16 << 10);
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        struct plan_input in;
        struct plan p;
        key_render(KEY_DOMAIN, uid, &key);
        reconcile_gather(c, uid, buf_str(&key), a, &in);
        plan_make(&in, a, &p);
        perform(c, buf_str(&key), &in, &p);
        report_unsure_events(c, &in, &p);
        reconcile_ask(c, buf_str(&key), &in, &p);
        if (p.counted || records_find(c, uid)) {
                struct controller_domain *d = records_make(c, uid);
                d->counted = p.counted;
                d->counts = p.counts;
        }
        if (p.broken) {
                const struct event_about about = { CD_API_VERSION, CD_KIND, in.cd->o.meta.ns,
                                                   in.cd->o.meta.name, uid };
                checks_failed(c, CHECKS_STATUS, &about, p.broken);
        }
        if (p.too_large)
                log_error("an object exceeds the size limit, so it is not written", kv_str("domain", uid),
                          kv_str("name", p.too_large));
        if (p.recheck_s)
                work_queue_add_after(c->queue, buf_str(&key), (unsigned)p.recheck_s * 1000U);
        if (p.nothing_left) {
                struct controller_domain *d = records_find(c, uid);
                writes_forget(c->writes, buf_str(&key));
                if (d)
                        records_forget(d);
        }
}
