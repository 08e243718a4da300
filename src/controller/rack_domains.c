/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/rack_domains.h"

#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/checks.h"
#include "model/rack.h"
#include "rules/racks.h"

enum { MAX_BODY = 64 << 10, GATHER_MS = 150, INTERVAL_MS = 1000, RETRY_MS = 3600 * 1000 };

/* ---- which racks a change concerns ---- */

void rack_domains_queue_of(struct controller *c, const struct compute_domain *cd) {
        if (c->config->racks && cd)
                records_queue_rack(c, cd->rack);
}

void rack_domains_queue_freed(struct controller *c, const struct compute_domain *gone) {
        const struct kube_meta *m = &gone->o.meta;
        if (!c->config->racks || gone->rack)
                return;
        if (streq(m->ns, c->config->ns)) {
                rack_domains_queue_all(c);
                return;
        }
        rack_domains_queue_of(
                c, (const struct compute_domain *)kube_informer_get(c->caches.cds, c->config->ns, m->name));
}

struct search {
        struct controller *c;
        const char *node;
};

/* Ignores the lists in other namespaces, which tenants can write. */
static bool queue_if_listed(void *u, const struct kube_object *o) {
        struct search *s = u;
        const struct compute_domain *cd = (const struct compute_domain *)o;
        if (cd->rack && streq(o->meta.ns, s->c->config->ns) && str_lists(str_or(cd->rack_nodes, ""), s->node))
                rack_domains_queue_of(s->c, cd);
        return true;
}

void rack_domains_queue_listing(struct controller *c, const char *node) {
        if (c->config->racks && c->caches.cds)
                kube_informer_each(c->caches.cds, queue_if_listed, &(struct search){ c, node });
}

void rack_domains_queue_by_node(struct controller *c, const char *node) {
        if (!c->config->racks)
                return;
        const char *rack = records_node_rack(c, node);
        records_queue_rack(c, rack);
        if (!rack)
                rack_domains_queue_listing(c, node);
}

static bool rack_domains_queue_domain(void *u, const struct kube_object *o) {
        rack_domains_queue_of(u, (const struct compute_domain *)o);
        return true;
}

static bool rack_domains_queue_slice(void *u, const struct kube_object *o) {
        records_queue_rack(u, slice_rack((const struct slice *)o));
        return true;
}

void rack_domains_queue_all(struct controller *c) {
        if (!c->config->racks)
                return;
        kube_informer_each(c->caches.slices, rack_domains_queue_slice, c);
        kube_informer_each(c->caches.cds, rack_domains_queue_domain, c);
}

/* ---- labelled namespaces ---- */

const struct jd_field rack_namespace_fields[] = {
        JD_OBJ(struct rack_namespace, "metadata", o.meta, kube_f_meta),
        JD_STR(struct rack_namespace, "metadata>labels>" CD_LABEL_RACK_DOMAINS, label), JD_END
};

static bool wants_racks(const struct rack_namespace *n) {
        return n && !n->o.meta.deleted && streq(n->label, "enabled");
}

static struct event_about about_namespace(const char *ns) {
        return (struct event_about){ "v1", "Namespace", NULL, ns, ns };
}

static bool report_label(void *u, const struct kube_object *o) {
        struct controller *c = u;
        const struct rack_namespace *n = (const struct rack_namespace *)o;
        const struct event_about object = about_namespace(o->meta.name);
        if (!o->meta.deleted && !wants_racks(n))
                event_record(c->events, &object, EVENT_WARNING, REASON_RACK_DOMAINS_LABEL_INVALID,
                             "the value '%s' of the label " CD_LABEL_RACK_DOMAINS
                             " has no effect. Set it to enabled, or remove the label",
                             str_or(n->label, ""));
        return true;
}

void rack_domains_report_labels(struct controller *c) {
        if (c->config->racks)
                kube_informer_each(c->caches.rack_namespaces, report_label, c);
}

void rack_domains_namespace_changed(struct controller *c, const struct rack_namespace *was,
                                    const struct rack_namespace *is) {
        if (!records_synced(c))
                return;
        if (wants_racks(was) != wants_racks(is))
                rack_domains_queue_all(c);
        if (c->leading && is && !(was && streq(was->label, is->label)))
                report_label(c, &is->o);
}

/* ---- facts about a rack ---- */

static bool rack_domains_is_wanted(const struct controller *c, const char *ns) {
        return streq(ns, c->config->ns) ||
               wants_racks((const struct rack_namespace *)kube_informer_get(c->caches.rack_namespaces, NULL,
                                                                            ns));
}

struct rack {
        struct controller *c;
        struct arena *a;
        const char *id, *key;
        struct racks_node *nodes;
        const struct compute_domain *first;    /* its ComputeDomain in the driver's namespace; NULL: none */
        const struct compute_domain **domains; /* those in namespaces that want them, and those that the
                                                  controller has created in others */
        size_t n_nodes, nodes_cap, n_domains, domains_cap;
        bool there; /* a Node of the rack exists */
        bool stale;
        int64_t now;
};

static void rack_domains_add_node(struct rack *r, const char *name) {
        GROW(r->nodes, r->n_nodes, r->nodes_cap);
        r->nodes[r->n_nodes++] = (struct racks_node){ .name = name };
}

static bool rack_domains_add_stating(void *u, const struct kube_object *o) {
        const struct slice *s = (const struct slice *)o;
        if (s->node)
                rack_domains_add_node(u, s->node);
        return true;
}

/* The controller has written the annotations, and the object is no copy of another one. */
static bool is_noted(const struct compute_domain *cd) {
        return streq(cd->rack_uid, cd->o.meta.uid);
}

static bool rack_domains_add_domain(void *u, const struct kube_object *o) {
        struct rack *r = u;
        const struct compute_domain *cd = (const struct compute_domain *)o;
        struct str rest = str_from(str_or(cd->rack_nodes, "")), part;
        bool driver = streq(o->meta.ns, r->c->config->ns);
        if (!racks_is_domain(cd) || (!is_noted(cd) && !rack_domains_is_wanted(r->c, o->meta.ns)))
                return true;
        GROW(r->domains, r->n_domains, r->domains_cap);
        r->domains[r->n_domains++] = cd;
        if (driver && !r->first)
                r->first = cd;
        while (driver && str_next_field(&rest, ',', &part))
                if (part.n)
                        rack_domains_add_node(r, arena_strndup(r->a, part.p, part.n));
        return true;
}

static int rack_domains_by_name(const void *x, const void *y) {
        return strcmp(((const struct racks_node *)x)->name, ((const struct racks_node *)y)->name);
}

static void rack_domains_gather(struct rack *r) {
        size_t kept = 0;
        kube_informer_each_at(r->c->caches.slices, CONTROLLER_SLICES_BY_RACK, r->id, rack_domains_add_stating,
                              r);
        kube_informer_each_at(r->c->caches.cds, CONTROLLER_CDS_BY_RACK, r->id, rack_domains_add_domain, r);
        if (r->n_nodes)
                qsort(r->nodes, r->n_nodes, sizeof *r->nodes, rack_domains_by_name);
        for (size_t i = 0; i < r->n_nodes; i++) {
                const char *name = r->nodes[i].name, *rack = records_node_rack(r->c, name);
                if (kept && streq(r->nodes[kept - 1].name, name))
                        continue;
                struct racks_node *n = &r->nodes[kept++];
                *n = (struct racks_node){ .name = name,
                                          .there = records_node(r->c, name) != NULL,
                                          .states = rack && streq(rack, r->id),
                                          .moved = rack && !streq(rack, r->id) };
                r->there = r->there || n->states || (n->there && !n->moved);
        }
        r->n_nodes = kept;
}

/* ---- existing ComputeDomains ---- */

static struct event_about rack_domains_about(const struct compute_domain *cd) {
        const struct kube_meta *m = &cd->o.meta;
        return (struct event_about){ CD_API_VERSION, CD_KIND, m->ns, m->name, m->uid };
}

/* True: the write is sent. False: the rack is queued again for the time when it may be sent. */
static bool rack_domains_submit(const struct rack *r, enum kube_verb verb, const char *ns, const char *name,
                                struct buf *body, writes_done_fn *done) {
        return writes_try(r->c->writes, &(struct writes_request){
                                                .requester = r->key,
                                                .verb = verb,
                                                .res = &kube_compute_domains,
                                                .ns = ns,
                                                .name = name,
                                                .body = { buf_str(body), body->n },
                                                .batch_ms = verb == KUBE_MERGE_PATCH ? GATHER_MS : 0,
                                                .interval_ms = INTERVAL_MS,
                                                .cache = r->c->caches.cds,
                                                .done = done,
                                                .u = r->c,
                                        });
}

struct use {
        const char *ns;
        bool claimed;
};

/* The plugin refuses a claim of another namespace, so it does not count as use. */
static void see_claim(void *u, const struct allocation *x) {
        struct use *use = u;
        use->claimed = use->claimed || streq(x->ns, use->ns);
}

static bool is_unused(const struct rack *r, const struct compute_domain *cd, bool ask) {
        const struct kube_meta *m = &cd->o.meta;
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        live_read_on_node(m->uid, "", &key);
        return ask ? live_read_absent(r->c->live_read, LIVE_READ_CLAIM, m->ns, buf_str(&key), r->key)
                   : live_read_known(r->c->live_read, LIVE_READ_CLAIM, m->ns, buf_str(&key));
}

static void rack_domains_note(const struct rack *r, const struct compute_domain *cd,
                              const struct racks_decision *d) {
        const struct kube_meta *m = &cd->o.meta;
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        objects_rack_note(m, d->nodes, d->empty_since, &b);
        const struct event_about object = rack_domains_about(cd);
        if (rack_domains_submit(r, KUBE_MERGE_PATCH, m->ns, m->name, &b, NULL) && d->empty_since &&
            !cd->rack_empty)
                event_record(r->c->events, &object, EVENT_WARNING, REASON_RACK_EMPTY,
                             "no Node of this rack is left. The controller deletes this ComputeDomain in a "
                             "day, unless a Node comes back or a claim of the ComputeDomain is allocated");
}

static void reconcile_one(const struct rack *r, const struct compute_domain *cd) {
        struct use use = { .ns = cd->o.meta.ns };
        allocations_of_domain(r->c->allocations, cd->o.meta.uid, see_claim, &use);
        struct racks_facts f = { .nodes = r->nodes,
                                 .n_nodes = r->n_nodes,
                                 .wanted = rack_domains_is_wanted(r->c, cd->o.meta.ns),
                                 .lost = cd != r->first && (!r->first || !is_noted(r->first)),
                                 .claimed = use.claimed,
                                 .stale = r->stale,
                                 .now = r->now };
        struct racks_decision d;
        f.confirmed = is_unused(r, cd, false);
        racks_decide(cd, &f, r->a, &d);
        const char *broken = racks_check(&f, &d);
        if (broken) {
                const struct event_about rack = rack_domains_about(cd);
                checks_failed(r->c, CHECKS_RACK, &rack, broken);
                return;
        }
        if (d.step == RACKS_NOTE) {
                rack_domains_note(r, cd, &d);
        } else if (d.step == RACKS_PAUSE) {
                records_pause(r->c, r->key);
        } else if (d.step == RACKS_ASK) {
                is_unused(r, cd, true);
        } else if (d.step == RACKS_DELETE) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
                log_info("deleting the ComputeDomain of a rack", kv_str("rack", r->id),
                         kv_str("namespace", cd->o.meta.ns), kv_str("name", cd->o.meta.name),
                         kv_str("why", f.wanted ? "the rack has had no node for a day"
                                                : "its namespace no longer wants ComputeDomains of racks"));
                objects_delete(&cd->o.meta, cd->o.meta.rv, &b);
                rack_domains_submit(r, KUBE_DELETE, cd->o.meta.ns, cd->o.meta.name, &b, NULL);
        }
        if (d.recheck_s)
                work_queue_add_after(r->c->queue, r->key, (unsigned)d.recheck_s * 1000U);
}

/* ---- missing ComputeDomains ---- */

static const struct compute_domain *domain_at(const struct rack *r, const char *ns, const char *name) {
        return (const struct compute_domain *)kube_informer_get(r->c->caches.cds, ns, name);
}

struct counting {
        const struct rack *r;
        size_t n;
};

/* Counts a ComputeDomain that has the name of the same rack's ComputeDomain in the driver's namespace. So a
 * tenant that creates others in a labelled namespace cannot exhaust the limit. */
static bool rack_domains_count(void *u, const struct kube_object *o) {
        struct counting *k = u;
        const struct compute_domain *cd = (const struct compute_domain *)o, *first;
        if (!racks_is_domain(cd) || !rack_domains_is_wanted(k->r->c, o->meta.ns))
                return true;
        first = domain_at(k->r, k->r->c->config->ns, o->meta.name);
        k->n += first && racks_is_domain(first) && streq(first->rack, cd->rack);
        return true;
}

/* The rack counts for the node that brought it until a day after the node has stated it last, because its
 * ComputeDomain exists as long. */
static bool brought(const struct rack *r, const char *node) {
        struct first_seen *racks = r->c->memory.brought;
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        buf_addf(&key, "%s/%s", node, r->id);
        if (!first_seen_get(racks, buf_str(&key)))
                return false;
        first_seen_at(racks, buf_str(&key), clock_mono_s());
        return true;
}

/* Returns whether one of the nodes that state the rack has brought it. */
static bool is_brought(const struct rack *r) {
        bool ret = false;
        for (size_t i = 0; i < r->n_nodes; i++)
                ret = (r->nodes[i].states && brought(r, r->nodes[i].name)) || ret;
        return ret;
}

/* Returns whether a rack without a ComputeDomain may get its first one: a node that states it has not brought
 * too many new racks yet. */
static bool may_begin(const struct rack *r) {
        const int64_t now = clock_mono_s();
        for (size_t i = 0; i < r->n_nodes; i++) {
                _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
                if (!r->nodes[i].states)
                        continue;
                buf_addf(&key, "%s/", r->nodes[i].name);
                size_t n = first_seen_count(r->c->memory.brought, buf_str(&key), now);
                buf_adds(&key, r->id);
                if (n < RACKS_PER_NODE) {
                        first_seen_at(r->c->memory.brought, buf_str(&key), now);
                        return true;
                }
        }
        for (size_t i = 0; i < r->n_nodes; i++) {
                const char *name = r->nodes[i].name;
                if (r->nodes[i].states)
                        event_record(r->c->events, &(struct event_about){ "v1", "Node", NULL, name, name },
                                     EVENT_WARNING, REASON_TOO_MANY_RACKS_OF_NODE,
                                     "rack %s gets no ComputeDomain, because this node has already brought "
                                     "%d new racks within a day",
                                     r->id, RACKS_PER_NODE);
        }
        work_queue_add_after(r->c->queue, r->key, RETRY_MS);
        return false;
}

/* A rack has the same name in all namespaces. */
static void choose_name(const struct rack *r, struct buf *out) {
        if (r->first) {
                buf_addf(out, "%s", r->first->o.meta.name);
                return;
        }
        rack_domain_name(r->id, false, out);
        const struct compute_domain *other = domain_at(r, r->c->config->ns, buf_str(out));
        if (other && racks_is_domain(other)) {
                buf_clear(out);
                rack_domain_name(r->id, true, out);
        }
}

static void on_made(void *u, const struct writes_target *made, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        yyjson_val *meta = yyjson_obj_get(obj, "metadata");
        const char *rack = key_parse(made->requester).name;
        if (e) {
                const struct event_about object = about_namespace(made->ns);
                if (e->kind == ERR_DENIED || e->kind == ERR_INVALID)
                        event_record(c->events, &object, EVENT_WARNING, REASON_RACK_DOMAIN_NOT_CREATED,
                                     "the ComputeDomain '%s' of rack %s cannot be created here: %s",
                                     made->name, rack, e->msg);
                return;
        }
        event_record(c->events,
                     &(struct event_about){ CD_API_VERSION, CD_KIND, made->ns, made->name,
                                            str_or(yyjson_get_str(yyjson_obj_get(meta, "uid")), "") },
                     EVENT_NORMAL, REASON_RACK_JOINED, "created for the rack %s", rack);
}

struct making {
        const struct rack *r;
        const char *name, *template;
};

static void make_in(const struct making *m, const char *ns) {
        const struct rack *r = m->r;
        const struct compute_domain *other = domain_at(r, ns, m->name);
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        struct counting all = { .r = r };
        for (size_t i = 0; i < r->n_domains; i++)
                if (streq(r->domains[i]->o.meta.ns, ns))
                        return;
        if (other) {
                const struct event_about object = rack_domains_about(other);
                event_record(
                        r->c->events, &object, EVENT_WARNING, REASON_RACK_NAME_TAKEN,
                        "a rack has this name, and gets no ComputeDomain in this namespace while this "
                        "ComputeDomain, which is not the rack's, exists. Delete it, and recreate it under "
                        "another name");
                return;
        }
        kube_informer_each(r->c->caches.cds, rack_domains_count, &all);
        if (all.n >= RACKS_MAX) {
                log_error("too many racks, or too many namespaces that want them: no more ComputeDomains of "
                          "racks are created. Remove the label " CD_LABEL_RACK_DOMAINS " from namespaces",
                          kv_int("most", RACKS_MAX), kv_str("rack", r->id), kv_str("namespace", ns));
                const struct event_about object = about_namespace(ns);
                event_record(r->c->events, &object, EVENT_WARNING, REASON_TOO_MANY_RACK_DOMAINS,
                             "no ComputeDomain is created here for rack %s, because %d ComputeDomains of "
                             "racks already exist",
                             r->id, RACKS_MAX);
                return;
        }
        objects_rack_domain(r->id, ns, m->name, m->template, &b);
        rack_domains_submit(r, KUBE_CREATE, ns, m->name, &b, on_made);
}

static bool make_in_namespace(void *u, const struct kube_object *o) {
        const struct making *m = u;
        if (wants_racks((const struct rack_namespace *)o) && !streq(o->meta.name, m->r->c->config->ns))
                make_in(m, o->meta.name);
        return true;
}

void rack_domains_reconcile(struct controller *c, const char *id) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(256), name = BUF_INIT(256);
        struct rack r = { .c = c, .a = arena_new(4096), .id = id, .now = clock_wall_s() };
        key_render(KEY_RACK, id, &key);
        r.key = buf_str(&key);
        r.stale = records_stale(c) || !kube_informer_current(c->caches.slices) ||
                  !kube_informer_current(c->caches.rack_namespaces);
        rack_domains_gather(&r);
        choose_name(&r, &name);
        writes_begin(c->writes, r.key);
        for (size_t i = 0; i < r.n_domains; i++)
                reconcile_one(&r, r.domains[i]);
        bool known = is_brought(&r) || r.first;
        if (r.there && (known || may_begin(&r))) {
                _cleanup_(freep) char *template = xasprintf(RACK_TEMPLATE_PREFIX "%s", buf_str(&name));
                struct making m = { &r, buf_str(&name), template };
                make_in(&m, c->config->ns);
                kube_informer_each(c->caches.rack_namespaces, make_in_namespace, &m);
        }
        writes_end(c->writes, r.key);
        free(r.nodes);
        free(r.domains);
        arena_free(r.a);
}
