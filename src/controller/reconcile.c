/* SPDX-License-Identifier: Apache-2.0 */
/* One domain: gathers what the caches know of it, decides by plan_make(), sends what that says. */
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/agent_members.h"
#include "controller/labels.h"
#include "controller/plan.h"
#include "controller/reconcile.h"
#include "controller/watch.h"
#include "imex/imex_files.h"
#include "rules/message.h"

/* How long a write waits for more to come, and from the last write of the same object. Daemons need their
 * index by the time their container has started, which takes longer than this; what only people look at may
 * wait a little more. */
static const struct {
        unsigned gather_ms, interval_ms;
} pace[] = { [PLAN_NOW] = { 0, 0 }, [PLAN_SOON] = { 20, 400 }, [PLAN_LATER] = { 150, 1000 } };

/* ---- what the caches know ---- */

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

static void add_wanted(void *u, const struct grant *x) {
        struct grant *copy = arena_alloc(((struct list *)u)->a, sizeof *copy);
        *copy = *x;
        add_object(u, (const struct kube_object *)(void *)copy);
}

struct pods {
        struct list living, ended;
};

/* That there is one: of a domain that lives nobody asks for more. */
static bool add_first_living(void *u, const struct kube_object *o) {
        return pod_ended((const struct pod *)o) || !add_object(u, o);
}

static bool add_pod(void *u, const struct kube_object *o) {
        struct pods *p = u;
        return add_object(pod_ended((const struct pod *)o) ? &p->ended : &p->living, o);
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

/* Of two pods of one node: the one that is not being deleted, else the newer. */
static const struct pod *better_pod(const struct pod *a, const struct pod *b) {
        bool ends = a && a->o.meta.deleted;
        if (!a || (!b->o.meta.deleted && ends) ||
            (!b->o.meta.deleted == !ends && b->o.meta.created > a->o.meta.created))
                return b;
        return a;
}

/* Who holds the node, as far as the owner of `cd` may know: the objects of other namespaces are not his to
 * see. */
static const char *holder_of(const struct compute_domain *cd, const struct compute_domain *other,
                             struct arena *a) {
        if (cd && streq(cd->o.meta.ns, other->o.meta.ns))
                return message_of(a, "ComputeDomain %s/%s", other->o.meta.ns, other->o.meta.name);
        return "a ComputeDomain of another namespace";
}

/* A daemon that is not seen may live all the same. */
static bool is_released(const struct controller *c, const struct compute_domain *cd,
                        const struct seat_facts *seat) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        confirm_on_node(cd->o.meta.uid, seat->name, &key);
        bool is = confirm_known(c->confirm, CONFIRM_CLAIM, cd->o.meta.ns, buf_str(&key));
        for (size_t i = 0; is && !seat->pod && i < c->n_namespaces; i++)
                is = confirm_known(c->confirm, CONFIRM_DAEMON, c->namespaces[i].ns, buf_str(&key));
        return is;
}

/* ---- the nodes of a domain ---- */

struct naming {
        seats_add_fn *add;
        void *seats;
};

static void name_wanted(void *u, const struct grant *x) {
        struct naming *n = u;
        n->add(n->seats, x->node);
}

static bool name_pod(void *u, const struct kube_object *o) {
        struct naming *n = u;
        const struct pod *p = (const struct pod *)o;
        if (p->node && !pod_ended(p))
                n->add(n->seats, p->node);
        return true;
}

static bool name_entries(void *u, const struct kube_object *o) {
        struct naming *n = u;
        const struct clique *q = (const struct clique *)o;
        for (size_t i = 0; i < q->imex.n_seats; i++)
                n->add(n->seats, q->imex.seats[i].node);
        return true;
}

void reconcile_name_nodes(void *u, const char *uid, seats_add_fn *add, void *seats) {
        const struct controller *c = u;
        struct naming n = { add, seats };
        placements_of_domain(c->placements, uid, name_wanted, &n);
        for (size_t i = 0; i < c->n_namespaces; i++) {
                kube_informer_each_at(c->namespaces[i].pods, CONTROLLER_BY_DOMAIN, uid, name_pod, &n);
                kube_informer_each_at(c->namespaces[i].cliques, CONTROLLER_BY_DOMAIN, uid, name_entries, &n);
        }
        lost_each(c->lost, uid, name_entries, &n);
}

struct looking {
        const char *uid, *label; /* of the node */
        const struct compute_domain *cd;
        struct seat_facts *seat;
        bool entry;
};

/* A claim of another namespace counts for nothing. */
static void look_at_place(void *u, const struct grant *x) {
        struct looking *l = u;
        if (l->cd && streq(x->domain_uid, l->uid) && streq(x->ns, l->cd->o.meta.ns) &&
            domain_takes(l->cd, l->label))
                l->seat->wanted = true;
}

struct daemons {
        const char *uid;
        const struct pod *best;
};

static bool look_at_pod(void *u, const struct kube_object *o) {
        struct daemons *d = u;
        const struct pod *p = (const struct pod *)o;
        if (streq(p->domain_uid, d->uid) && !pod_ended(p))
                d->best = better_pod(d->best, p);
        return true;
}

static const struct pod *seen_daemon(const struct controller *c, const char *uid, const char *node) {
        struct daemons d = { .uid = uid };
        for (size_t i = 0; i < c->n_namespaces; i++)
                kube_informer_each_at(c->namespaces[i].pods, CONTROLLER_PODS_BY_NODE, node, look_at_pod, &d);
        return d.best;
}

static bool look_at_entries(void *u, const struct kube_object *o) {
        struct looking *l = u;
        const struct clique *q = (const struct clique *)o;
        for (size_t i = 0; i < q->imex.n_seats; i++)
                l->entry = l->entry || streq(q->imex.seats[i].node, l->seat->name);
        return !l->entry;
}

bool reconcile_look_at_node(void *u, const char *uid, struct seat_facts *seat, struct arena *a) {
        struct controller *c = u;
        const struct node *node = records_node(c, seat->name);
        struct looking l = { uid, node ? node->domain_uid : NULL, records_domain(c, uid), seat, false };
        placements_on_node(c->placements, seat->name, look_at_place, &l);
        seat->pod = seen_daemon(c, uid, seat->name);
        for (size_t i = 0; i < c->n_namespaces && !seat->wanted && !seat->pod; i++)
                kube_informer_each_at(c->namespaces[i].cliques, CONTROLLER_BY_DOMAIN, uid, look_at_entries,
                                      &l);
        if (!seat->wanted && !seat->pod && !l.entry)
                lost_each(c->lost, uid, look_at_entries, &l);
        if (!seat->wanted && !seat->pod && !l.entry)
                return false;
        seat->node = node;
        seat->clique = records_node_clique(c, seat->name);
        if (!seat->node)
                seat->gone_since = gone_since(c->gone, seat->name, clock_wall_s());
        if (!seat->wanted && l.cd)
                seat->released = is_released(c, l.cd, seat);
        const char *label = seat->wanted ? labels_of(c, seat->name) : uid;
        const struct compute_domain *other = streq(label, uid) ? NULL : records_domain(c, label);
        if (other)
                seat->held_by = holder_of(l.cd, other, a);
        return true;
}

/* ---- how an IMEX is that stands before its ComputeDomains ---- */

static bool look_at_plugin(void *u, const struct kube_object *o) {
        const struct plugin_pod **pod = u;
        *pod = plugin_pod_choose(*pod, (const struct plugin_pod *)o);
        return true;
}

static int hosts_by_name(const void *x, const void *y) {
        return strcmp(((const struct host *)x)->name, ((const struct host *)y)->name);
}

static void look_at_plugin_of(const struct controller *c, struct host *h) {
        const struct plugin_pod *plugin = NULL;
        kube_informer_each_at(c->plugins, CONTROLLER_PLUGINS_BY_NODE, h->name, look_at_plugin, &plugin);
        if (plugin) {
                h->state = plugin->host_state;
                h->reason = plugin->host_reason;
        }
}

static void look_at_agent_of(const struct controller *c, struct host *h) {
        const struct agent_pod *agent = records_agent(c, h->name);
        if (!agent || !agent->seen)
                return;
        h->state = streq(agent->pod.ready, "true") ? HOST_UP : HOST_DOWN;
        h->reason = agent->pod.reason;
}

static void gather_hosts(const struct controller *c, const struct compute_domain *cd,
                         const struct list *wanted, struct arena *a, struct plan_input *ret) {
        struct host *hosts = arena_alloc(a, (wanted->n + 1) * sizeof *hosts);
        size_t n = 0, kept = 0;
        for (size_t i = 0; cd && i < wanted->n; i++) {
                const struct grant *x = wanted->items[i];
                if (streq(cd->o.meta.ns, x->ns))
                        hosts[n++] = (struct host){ .name = x->node };
        }
        qsort(hosts, n, sizeof *hosts, hosts_by_name);
        for (size_t i = 0; i < n; i++) {
                const struct node *node = records_node(c, hosts[i].name);
                if (kept && streq(hosts[kept - 1].name, hosts[i].name))
                        continue;
                hosts[kept++] = hosts[i];
                /* What a node that does not answer said last is not what is. */
                if (!node || !node_ready(node))
                        continue;
                if (mode_is_standing(c->mode))
                        look_at_agent_of(c, &hosts[kept - 1]);
                else if (c->plugins)
                        look_at_plugin_of(c, &hosts[kept - 1]);
        }
        ret->hosts = hosts;
        ret->n_hosts = kept;
}

/* ---- its channels ---- */

static int channels_by_fabric(const void *x, const void *y) {
        return strcmp(((const struct own_channel *)x)->fabric, ((const struct own_channel *)y)->fabric);
}

static struct own_channel channel_on(const struct controller *c, const char *uid, const char *clique) {
        const struct compute_domain_fabric *f = records_fabric(c, clique);
        const struct fabric_channel *e = f ? fabric_channel_of(f, uid) : NULL;
        static const char *const reasons[] = { FABRIC_TABLE_LOST, FABRIC_CHANNELS_EXHAUSTED };
        const struct condition *why =
                f && !e ? condition_first_true(f->conditions, f->n_conditions, reasons, ARRAY_LEN(reasons))
                        : NULL;
        return (struct own_channel){ .fabric = clique,
                                     .rack = f ? f->rack : NULL,
                                     .id = e ? e->id : -1,
                                     .why = why ? why->message : NULL };
}

static void gather_channels(const struct controller *c, const char *uid, struct arena *a,
                            struct plan_input *ret) {
        struct own_channel *list = arena_alloc(a, (ret->n_hosts + 1) * sizeof *list);
        size_t n = ret->n_hosts, kept = 0;
        for (size_t i = 0; i < n; i++)
                list[i].fabric = str_or(records_node_clique(c, ret->hosts[i].name), "");
        if (n)
                qsort(list, n, sizeof *list, channels_by_fabric);
        for (size_t i = 0; i < n; i++)
                if (!kept || !streq(list[kept - 1].fabric, list[i].fabric))
                        list[kept++] = channel_on(c, uid, list[i].fabric);
        ret->channels = list;
        ret->n_channels = kept;
}

static const char *error_of_node(const struct controller *c, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        buf_addf(&key, "n/%s", name);
        return writes_error(c->writes, buf_str(&key));
}

/* Why the domain stands still although nothing is wrong with its own objects: a node that cannot be labelled.
 */
static const char *node_write_error(const struct controller *c, const struct formation_input *in) {
        const char *error = NULL;
        for (size_t i = 0; i < in->n_nodes && !error && writes_failing(c->writes); i++)
                error = in->nodes[i].wanted ? error_of_node(c, in->nodes[i].name) : NULL;
        return error;
}

/* Why the labels of a domain that ends do not go. */
static const char *label_write_error(const struct controller *c, const struct list *labelled) {
        const char *error = NULL;
        for (size_t i = 0; i < labelled->n && !error; i++)
                error = error_of_node(c, ((const struct node *)labelled->items[i])->o.meta.name);
        return error;
}

static void gather_ended(const struct controller *c, const struct list *ended, struct arena *a,
                         struct plan_input *ret) {
        struct plan_ended *list = arena_alloc(a, (ended->n + 1) * sizeof *list);
        for (size_t i = 0; i < ended->n; i++) {
                const struct pod *p = ended->items[i];
                list[i] = (struct plan_ended){ p, kube_informer_first_at(c->claims, CONTROLLER_CLAIMS_BY_POD,
                                                                         p->o.meta.uid) != NULL };
        }
        ret->ended = list;
        ret->n_ended = ended->n;
}

/* May there be a DaemonSet, daemon Pods, cliques of this domain? Only somebody else, or we in another mode,
 * can have made them; a domain that does not say who made it may be theirs. */
static bool may_have_daemons(const struct controller *c, const char *uid) {
        const struct compute_domain *cd = records_domain(c, uid);
        struct mode_traces t = records_traces(c, uid, cd);
        bool made_elsewhere = t.finalizer && !streq(cd->mode, c->mode->name);
        return made_elsewhere || t.daemon_template ||
               kube_informer_first_at(c->nodes, CONTROLLER_BY_DOMAIN, uid);
}

/* The caches that this domain's removals are justified by. */
static const char *domain_stale(const struct controller *c, const char *uid) {
        const char *stale = records_stale(c);
        return stale || mode_runs_daemons(c->mode) || !may_have_daemons(c, uid) ? stale
                                                                                : records_daemons_stale(c);
}

static void gather(struct controller *c, const char *uid, const char *key, struct arena *a,
                   struct plan_input *ret) {
        const struct compute_domain *cd = records_domain(c, uid);
        struct list sets = { .a = a }, cliques = { .a = a }, lost = { .a = a }, wanted = { .a = a },
                    labelled = { .a = a };
        struct pods all_pods = { .living = { .a = a }, .ended = { .a = a } };
        struct own_templates own = { .c = c, .cd = cd, .list = { .a = a } };
        struct controller_domain *memory = records_find(c, uid);
        char *infix = arena_alloc(a, 11);
        bool lives = cd && !domain_ends(cd);
        const struct imex_mode *mode = cd && mode_runs_daemons(c->mode) ? records_mode_of(c, cd) : c->mode;
        for (size_t i = 0; i < c->n_namespaces; i++) {
                kube_informer_each_at(c->namespaces[i].sets, CONTROLLER_BY_DOMAIN, uid, add_object, &sets);
                if (lives)
                        kube_informer_each_at(c->namespaces[i].pods, CONTROLLER_BY_DOMAIN, uid,
                                              add_first_living, &all_pods.living);
                else
                        kube_informer_each_at(c->namespaces[i].pods, CONTROLLER_BY_DOMAIN, uid, add_pod,
                                              &all_pods);
                kube_informer_each_at(c->namespaces[i].cliques, CONTROLLER_BY_DOMAIN, uid, add_object,
                                      &cliques);
        }
        lost_each(c->lost, uid, add_object, &lost);
        kube_informer_each_at(c->rcts, CONTROLLER_BY_DOMAIN, uid, add_template, &own);
        if (!lives)
                kube_informer_each_at(c->nodes, CONTROLLER_BY_DOMAIN, uid, add_object, &labelled);
        if (!mode_forms_domains(c->mode))
                placements_of_domain(c->placements, uid, add_wanted, &wanted);
        imex_infix(uid, infix);
        const struct list pods = all_pods.living, rcts = own.list;
        *ret = (struct plan_input){
                .settings = &c->settings,
                .mode = mode,
                .uid = uid,
                .cd = cd,
                .sets = (const struct daemonset *const *)(const void *)sets.items,
                .n_sets = sets.n,
                .rcts = (const struct rct *const *)(const void *)rcts.items,
                .n_rcts = rcts.n,
                .pods = (const struct pod *const *)(const void *)pods.items,
                .n_pods = pods.n,
                .formation = { .cliques = (const struct clique *const *)(const void *)cliques.items,
                               .n_cliques = cliques.n,
                               .lost = (const struct clique *const *)(const void *)lost.items,
                               .n_lost = lost.n,
                               .infix = infix },
                .n_labelled = labelled.n,
                .conditions = !c->no_conditions,
                .now = clock_wall_s(),
                .write_error = writes_error(c->writes, key),
                .stale = domain_stale(c, uid),
                .gone_confirmed = !cd && confirm_known(c->confirm, CONFIRM_DOMAIN, NULL, uid),
        };
        gather_ended(c, &all_pods.ended, a, ret);
        if (!lives)
                ret->label_error = label_write_error(c, &labelled);
        if (records_agents_synced(c) && !lives)
                ret->n_places = agent_members_left(c, uid, a, &ret->places);
        if (c->agents && lives && mode_runs_agents(mode) && mode_forms_domains(mode)) {
                ret->n_seated = agent_members_of(c, cd, a, &ret->seated);
                if (!ret->write_error)
                        ret->write_error = agent_members_error(c, ret->seated, ret->n_seated);
        } else if (mode_forms_domains(c->mode) && lives) {
                ret->formation.n_nodes = seats_of(c->seats, uid, &ret->formation.nodes);
                ret->formation.memory = seats_memory(c->seats, uid);
        } else if (mode_forms_domains(c->mode)) {
                seats_forget(c->seats, uid);
        } else {
                gather_hosts(c, cd, &wanted, a, ret);
                if (mode_has_fabrics(c->mode))
                        gather_channels(c, uid, a, ret);
        }
        if (!ret->write_error)
                ret->write_error = node_write_error(c, &ret->formation);
        if (cd && cd->channel && cd->channel->template_name) {
                ret->holder = (const struct rct *)kube_informer_get(c->rcts, cd->o.meta.ns,
                                                                    cd->channel->template_name);
                if (!ret->holder && memory)
                        ret->holder = memory->holder;
        }
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
        _cleanup_(buf_done) struct buf name = BUF_INIT(256);
        objects_daemon_name(uid, &name);
        ret->applied_generation =
                writes_generation(c->writes, key, &kube_daemonsets, c->settings.ns, buf_str(&name));
        if (!ret->applied_generation) /* a leader before this one, or this one, has made it and nobody changed
                                         it */
                ret->applied_generation = WRITES_MADE_GENERATION;
}

/* ---- the name of the workload template is taken ---- */

static void on_holder(void *u, yyjson_val *obj, const struct err *e) {
        struct controller_domain *d = u;
        struct arena *a = arena_new(1024);
        struct rct *r = arena_alloc(a, sizeof *r);
        struct err bad;
        d->asking = NULL;
        arena_free(TAKE(d->holder_arena));
        d->holder = NULL;
        if (!e && jd_decode(rct_fields, obj, false, "", a, r, &bad) == 0) {
                d->holder_arena = a;
                d->holder = r;
                if (streq(r->domain_uid, d->uid)) /* our own: the watch is a moment behind */
                        kube_informer_answer(d->c->rcts, obj);
        } else {
                arena_free(a);
        }
        records_queue_domain(d->c, d->uid);
}

static void on_rct(void *u, const struct writes_about *q, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        const char *uid = q->requester + 2;
        const struct compute_domain *cd = records_domain(c, uid);
        struct controller_domain *d = records_find(c, uid);
        if (!e && d) {
                arena_free(TAKE(d->holder_arena));
                d->holder = NULL;
        }
        if (!e || e->kind != ERR_CONFLICT || !cd || !cd->channel)
                return;
        d = records_make(c, uid);
        if (!d->asking)
                d->asking = kube_start(c->client, &(struct kube_request){
                                                          .verb = KUBE_GET,
                                                          .res = &kube_resource_claim_templates,
                                                          .ns = cd->o.meta.ns,
                                                          .name = cd->channel->template_name,
                                                          .done = on_holder,
                                                          .u = d,
                                                  });
}

/* ---- a clique exists without the labels that we know it by ---- */

static void on_labelled(void *u, yyjson_val *obj, const struct err *e) {
        struct controller_domain *d = u;
        d->labelling = NULL;
        records_queue_domain(d->c, d->uid);
}

static void on_new_clique(void *u, const struct writes_about *q, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        const char *uid = q->requester + 2;
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        if (!e || e->kind != ERR_CONFLICT)
                return;
        struct controller_domain *d = records_make(c, uid);
        if (d->labelling)
                return;
        objects_clique_labels(uid, q->name + strlen(uid) + 1, &b);
        d->labelling = kube_start(c->client, &(struct kube_request){
                                                     .verb = KUBE_MERGE_PATCH,
                                                     .res = &kube_cliques,
                                                     .ns = q->ns,
                                                     .name = q->name,
                                                     .manager = "compute-domain-controller",
                                                     .body = { buf_str(&b), b.n },
                                                     .done = on_labelled,
                                                     .u = d,
                                             });
}

/* ---- sending ---- */

/* What the write says is news when the server has taken it: what could not be written may come out otherwise.
 */
static void keep_news(struct controller *c, const char *uid, const struct plan *p) {
        struct controller_domain *d = records_make(c, uid);
        arena_free(TAKE(d->news_arena));
        d->news_arena = arena_new(1024);
        d->news = arena_alloc(d->news_arena, (p->n_events + 1) * sizeof *d->news);
        d->n_news = p->n_events;
        for (size_t i = 0; i < p->n_events; i++)
                d->news[i] = (struct verdict_event){ p->events[i].warning,
                                                     arena_strdup(d->news_arena, p->events[i].reason),
                                                     arena_strdup(d->news_arena, p->events[i].message) };
}

static void tell(struct controller *c, const char *uid, bool taken) {
        const struct compute_domain *cd = records_domain(c, uid);
        struct controller_domain *d = records_find(c, uid);
        if (!d)
                return;
        for (size_t i = 0; cd && taken && i < d->n_news; i++)
                event_record(
                        c->events,
                        &(struct event_about){ CD_API_VERSION, CD_KIND, cd->o.meta.ns, cd->o.meta.name, uid },
                        d->news[i].warning ? EVENT_WARNING : EVENT_NORMAL, d->news[i].reason, "%s",
                        d->news[i].message);
        arena_free(TAKE(d->news_arena));
        d->n_news = 0;
}

static void on_status(void *u, const struct writes_about *q, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        tell(c, q->requester + 2, !e);
        if (e)
                return;
        bool dropped = !yyjson_obj_get(yyjson_obj_get(obj, "status"), "conditions");
        if (dropped && !c->no_conditions) {
                log_warn("the CustomResourceDefinition computedomains.resource.nvidia.com is an old one and "
                         "drops status.conditions: going on without them");
                crds_doubt(c->crds);
        }
        c->no_conditions = dropped;
}

static struct kube_informer *informer_for(const struct controller *c, const struct plan_action *x) {
        if (x->res == &kube_compute_domains)
                return c->cds;
        if (x->res == &kube_resource_claim_templates)
                return c->rcts;
        for (size_t i = 0; i < c->n_namespaces; i++) {
                const struct controller_namespace *n = &c->namespaces[i];
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
        [PLAN_ANSWER_STATUS] = on_status,
        [PLAN_ANSWER_TEMPLATE] = on_rct,
        [PLAN_ANSWER_NEW_CLIQUE] = on_new_clique,
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
                                                             .gather_ms = pace[x->when].gather_ms,
                                                             .interval_ms = pace[x->when].interval_ms,
                                                             .cache = informer_for(c, x),
                                                             .done = answered[x->answer],
                                                             .u = c,
                                                     });
                if (started)
                        log_v(3, "write", kv_str("domain", in->uid), kv_str("kind", x->res->kind),
                              kv_str("name", x->name), kv_int("verb", x->verb));
                if (started && x->answer == PLAN_ANSWER_STATUS && in->cd)
                        keep_news(c, in->uid, p);
        }
        writes_end(c->writes, key);
}

/* Daemons are asked for when no claim is left: then the answers are of one time. */
static void ask_node(struct controller *c, const char *key, const struct compute_domain *cd,
                     const char *node) {
        _cleanup_(buf_done) struct buf about = BUF_INIT(1024);
        confirm_on_node(cd->o.meta.uid, node, &about);
        bool gone = confirm_absent(c->confirm, CONFIRM_CLAIM, cd->o.meta.ns, buf_str(&about), key);
        for (size_t i = 0; gone && !seen_daemon(c, cd->o.meta.uid, node) && i < c->n_namespaces; i++)
                confirm_absent(c->confirm, CONFIRM_DAEMON, c->namespaces[i].ns, buf_str(&about), key);
}

/* What the plan does not know enough for. */
static void ask(struct controller *c, const char *key, const struct plan_input *in, const struct plan *p) {
        if (p->held)
                records_hold(c, key);
        if (p->ask_domain)
                confirm_absent(c->confirm, CONFIRM_DOMAIN, NULL, in->uid, key);
        for (size_t i = 0; in->cd && i < p->n_ask_nodes; i++)
                ask_node(c, key, in->cd, p->ask_nodes[i]);
}

static bool touch_lost(void *u, const struct kube_object *o) {
        const struct clique *q = (const struct clique *)o;
        for (size_t i = 0; i < q->imex.n_seats; i++)
                seats_touch(u, q->domain_uid, q->imex.seats[i].node);
        return true;
}

static void reconcile(struct controller *c, const char *uid) {
        _cleanup_(arena_freep) struct arena *a = arena_new(16 << 10);
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        struct plan_input in;
        struct plan p;
        buf_addf(&key, "d/%s", uid);
        gather(c, uid, buf_str(&key), a, &in);
        plan_make(&in, a, &p);
        perform(c, buf_str(&key), &in, &p);
        ask(c, buf_str(&key), &in, &p);
        if (p.counted || records_find(c, uid)) {
                struct controller_domain *d = records_make(c, uid);
                d->counted = p.counted;
                d->census = p.census;
        }
        if (p.too_large)
                log_error("an object is larger than an object may be, so it is not written",
                          kv_str("domain", uid), kv_str("name", p.too_large));
        if (p.recheck_s)
                work_queue_add_after(c->queue, buf_str(&key), (unsigned)p.recheck_s * 1000U);
        if (in.cd && !p.needs_lost) {
                lost_each(c->lost, uid, touch_lost, c->seats);
                lost_forget(c->lost, uid);
        }
        if (p.nothing_left) {
                struct controller_domain *d = records_find(c, uid);
                writes_forget(c->writes, buf_str(&key));
                seats_forget(c->seats, uid);
                if (d)
                        records_forget(d);
        }
}

void reconcile_domain(struct controller *c, const char *uid) {
        bool of_daemons = !mode_runs_daemons(c->mode) && may_have_daemons(c, uid);
        if (of_daemons)
                watch_daemons(c);
        /* Everything is queued again when they are. */
        if ((of_daemons && !records_daemons_synced(c)) || records_awaits_agents(c, records_domain(c, uid)))
                return;
        reconcile(c, uid);
}
