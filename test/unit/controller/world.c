/* SPDX-License-Identifier: Apache-2.0 */
#include "api/resources.h"
#include "world.h"

#include <stdio.h>

#include "rules/rules.h"

const char *const world_names[WORLD_NODES] = { "node-a", "node-b", "node-c", "node-d", "node-e" };

static char *quoted(const char *text) {
        char *s = xstrdup(text);
        for (char *p = s; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return s;
}

void world_set_mode(struct world *w, const char *gates, const char *imex_mode) {
        struct gates g;
        struct err e;
        gates_init(&g);
        if (gates_parse(&g, gates, &e) < 0 || mode_resolve(&g, imex_mode, NULL, false, &w->mode, &e) < 0)
                fail_msg("%s", e.msg);
}

void world_init(struct world *w) {
        *w = (struct world){
                .version = 100,
                .now = 1700000000,
                .settings = { .ns = WORLD_NS,
                              .resource_api = "v1",
                              .image = "image:1",
                              .log_verbosity = "1",
                              .gates = "IMEXDaemonsWithDNSNames=true,",
                              .max_nodes = 4,
                              .priority_class = "", .imex_config = "" },
        };
        for (size_t i = 0; i < WORLD_NODES; i++)
                w->nodes[i] = (struct world_node){
                        .exists = true, .ready = true, .clique = i < 4 ? CLIQUE_1 : CLIQUE_2, .runs_with = -1
                };
        world_set_mode(w, "", NULL);
}

void world_done(struct world *w) {
        for (size_t i = 0; i < WORLD_OBJECTS; i++) {
                free(w->objects[i].ns);
                free(w->objects[i].name);
                free(w->objects[i].json);
        }
}

struct world_object *world_find(struct world *w, const struct kube_resource *res, const char *ns,
                                const char *name) {
        for (size_t i = 0; i < WORLD_OBJECTS; i++)
                if (w->objects[i].json && w->objects[i].res == res && streq(w->objects[i].ns, ns) &&
                    (!name || streq(w->objects[i].name, name)))
                        return &w->objects[i];
        return NULL;
}

void world_vanish(struct world_object *o) {
        free(TAKE(o->ns));
        free(TAKE(o->name));
        free(TAKE(o->json));
}

/* Stores an object after it has been given the members that a server sets. */
static void store(struct world *w, struct world_object *o, yyjson_mut_doc *doc, bool made) {
        yyjson_mut_val *root = yyjson_mut_doc_get_root(doc), *meta = yyjson_mut_obj_get(root, "metadata");
        char rv[32];
        snprintf(rv, sizeof rv, "%lld", (long long)++w->version);
        yyjson_mut_obj_remove_key(meta, "resourceVersion");
        yyjson_mut_obj_add_strcpy(doc, meta, "resourceVersion", rv);
        if (made && !yyjson_mut_obj_get(meta, "uid")) {
                char uid[48];
                snprintf(uid, sizeof uid, "cccccccc-0000-4000-8000-%012lld", (long long)w->version);
                yyjson_mut_obj_add_strcpy(doc, meta, "uid", uid);
        }
        if (made && !yyjson_mut_obj_get(meta, "generation"))
                yyjson_mut_obj_add_int(doc, meta, "generation", 1);
        size_t n_finalizers = yyjson_mut_arr_size(yyjson_mut_obj_get(meta, "finalizers"));
        if (yyjson_mut_obj_get(meta, "deletionTimestamp") && !n_finalizers) {
                world_vanish(o);
        } else {
                free(o->json);
                o->json = yyjson_mut_write(doc, 0, NULL);
        }
        yyjson_mut_doc_free(doc);
}

static yyjson_mut_doc *parse(const char *json) {
        yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
        if (!doc)
                fail_msg("not JSON: %s", json);
        yyjson_mut_doc *mut = yyjson_doc_mut_copy(doc, NULL);
        yyjson_doc_free(doc);
        return mut;
}

static struct world_object *place(struct world *w, const struct kube_resource *res, const char *ns,
                                  const char *name) {
        for (size_t i = 0; i < WORLD_OBJECTS; i++)
                if (!w->objects[i].json) {
                        w->objects[i] = (struct world_object){ res, xstrdup(ns), xstrdup(name), NULL };
                        return &w->objects[i];
                }
        fail_msg("world is full");
        return NULL;
}

void world_put(struct world *w, const struct kube_resource *res, const char *ns, const char *name,
               const char *json) {
        _cleanup_(freep) char *text = quoted(json);
        store(w, place(w, res, ns, name), parse(text), true);
}

void world_create_cd(struct world *w, const char *spec) {
        struct buf b = BUF_INIT(4096);
        buf_addf(&b, "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A "'}%s%s}",
                 *spec ? ",'spec':" : "", spec);
        world_put(w, &kube_compute_domains, WORLD_USER_NS, "cd", buf_str(&b));
        buf_done(&b);
}

void world_delete(struct world *w, struct world_object *o) {
        yyjson_mut_doc *doc = parse(o->json);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
        struct buf b = BUF_INIT(64);
        struct jw j = JW(&b);
        jw_time(&j, NULL, w->now);
        if (!yyjson_mut_obj_get(meta, "deletionTimestamp")) {
                b.p[b.n - 1] = '\0';
                yyjson_mut_obj_add_strcpy(doc, meta, "deletionTimestamp", b.p + 1);
        }
        store(w, o, doc, false);
        buf_done(&b);
}

/* ---- writes ---- */

static const char *text_at(yyjson_mut_val *meta, const char *key) {
        return yyjson_mut_get_str(yyjson_mut_obj_get(meta, key));
}

static bool patch(struct world *w, struct world_object *o, const char *body, bool status) {
        yyjson_mut_doc *was = parse(o->json), *change = parse(body), *out = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *old_meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(was), "metadata"),
                       *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(change), "metadata");
        const char *rv = text_at(meta, "resourceVersion"), *uid = text_at(meta, "uid");
        bool good = (!rv || streq(rv, text_at(old_meta, "resourceVersion"))) &&
                    (!uid || streq(uid, text_at(old_meta, "uid")));
        if (!status)
                yyjson_mut_obj_remove_key(yyjson_mut_doc_get_root(change), "status");
        if (good) {
                yyjson_mut_doc_set_root(out, yyjson_mut_merge_patch(out, yyjson_mut_doc_get_root(was),
                                                                    yyjson_mut_doc_get_root(change)));
                store(w, o, out, false);
        } else {
                w->conflicts++;
                yyjson_mut_doc_free(out);
        }
        yyjson_mut_doc_free(was);
        yyjson_mut_doc_free(change);
        return good;
}

/* What a forced apply by the only manager comes to: the new text, the old identity. */
static void apply(struct world *w, struct world_object *o, const char *body) {
        yyjson_mut_doc *was = parse(o->json), *now = parse(body);
        yyjson_mut_val *old_meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(was), "metadata"),
                       *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(now), "metadata");
        int64_t generation = yyjson_mut_get_sint(yyjson_mut_obj_get(old_meta, "generation"));
        _cleanup_(freep) char *a =
                yyjson_mut_val_write(yyjson_mut_obj_get(yyjson_mut_doc_get_root(was), "spec"), 0, NULL);
        _cleanup_(freep) char *b =
                yyjson_mut_val_write(yyjson_mut_obj_get(yyjson_mut_doc_get_root(now), "spec"), 0, NULL);
        yyjson_mut_obj_add_strcpy(now, meta, "uid", text_at(old_meta, "uid"));
        yyjson_mut_obj_add_int(now, meta, "generation", generation + !streq(a, b));
        if (text_at(old_meta, "deletionTimestamp"))
                yyjson_mut_obj_add_strcpy(now, meta, "deletionTimestamp",
                                          text_at(old_meta, "deletionTimestamp"));
        yyjson_mut_doc_free(was);
        store(w, o, now, false);
}

bool world_perform(struct world *w, const struct plan_action *x) {
        struct world_object *o = world_find(w, x->res, x->ns, x->name);
        w->n_writes++;
        if (x->res == &kube_pods) { /* only ever deleted */
                assert_int_equal(x->verb, KUBE_DELETE);
                if (strstr(x->name, "ended"))
                        w->ended_pod = NULL;
                for (size_t i = 0; i < WORLD_NODES; i++)
                        if (streq(x->name + strlen("pod-"), world_names[i]))
                                w->nodes[i].pod_ending = true;
                return true;
        }
        if (!o && (x->verb == KUBE_CREATE || x->verb == KUBE_APPLY)) {
                store(w, place(w, x->res, x->ns, x->name), parse(x->body.p), true);
                w->applied_generation = x->res == &kube_daemonsets ? 1 : w->applied_generation;
                return true;
        }
        if (!o || x->verb == KUBE_CREATE)
                return false;
        if (x->verb == KUBE_MERGE_PATCH)
                return patch(w, o, x->body.p, streq(x->subresource, "status"));
        if (x->verb == KUBE_APPLY) {
                struct arena *a = arena_new(1024);
                apply(w, o, x->body.p);
                if (x->res != &kube_daemonsets) {
                        arena_free(a);
                        return true;
                }
                const struct daemonset *d = o->json ? fake_set_json(a, "%s", o->json) : NULL;
                w->applied_generation = d ? d->o.meta.generation : 0;
                arena_free(a);
                return true;
        }
        world_delete(w, o);
        return true;
}

/* ---- caches ---- */

static const void **all(struct world *w, struct arena *a, const struct kube_resource *res, size_t size,
                        const struct jd_field *fields, size_t *ret_n) {
        const void **list = arena_alloc(a, WORLD_OBJECTS * sizeof *list);
        struct err e;
        *ret_n = 0;
        for (size_t i = 0; i < WORLD_OBJECTS; i++) {
                const struct world_object *o = &w->objects[i];
                if (!o->json || o->res != res)
                        continue;
                void *decoded = arena_alloc(a, size);
                if (jd_decode_text(fields, o->json, strlen(o->json), false, "", a, decoded, &e) < 0)
                        fail_msg("%s", e.msg);
                list[(*ret_n)++] = decoded;
        }
        return list;
}

static const struct pod *pod_of(struct world *w, size_t i, struct arena *a) {
        const struct world_node *n = &w->nodes[i];
        const struct daemonset *d = NULL;
        char name[64], ip[32];
        struct world_object *set = world_find(w, &kube_daemonsets, WORLD_NS, NULL);
        if (set)
                d = fake_set_json(a, "%s", set->json);
        snprintf(name, sizeof name, "pod-%s", world_names[i]);
        snprintf(ip, sizeof ip, "10.0.0.%d", n->pod_number);
        struct pod *p = arena_alloc(a, sizeof *p);
        *p = *fake_daemon(a, world_names[i], ip, n->clique, (int)n->runs_with, n->runs_with >= 0);
        p->o.meta.ns = WORLD_NS;
        p->o.meta.name = arena_strdup(a, name);
        p->template_hash = d && d->template_hash && !w->old_pods ? d->template_hash : "old";
        if (n->runs_with < 0)
                p->clique_id = p->index = p->ready = NULL;
        if (n->pod_ending)
                p->o.meta.deleted = w->now;
        return p;
}

static bool seen_wanted(const struct world_node *n) {
        return n->wanted && !n->unseen;
}

void world_view(struct world *w, struct arena *a, struct plan_input *ret) {
        static const char *const namespaces[] = { WORLD_NS, "old-driver" };
        size_t n_cds, n_rcts;
        const struct pod **pods = arena_alloc(a, WORLD_NODES * sizeof *pods);
        struct seat_facts *nodes = arena_alloc(a, WORLD_NODES * sizeof *nodes);
        struct host *hosts = arena_alloc(a, WORLD_NODES * sizeof *hosts);
        const struct compute_domain **cds = (const struct compute_domain **)all(
                w, a, &kube_compute_domains, sizeof **cds, compute_domain_fields, &n_cds);
        const struct rct **rcts = (const struct rct **)all(w, a, &kube_resource_claim_templates,
                                                           sizeof **rcts, rct_fields, &n_rcts);
        *ret = (struct plan_input){ .settings = &w->settings,
                                    .mode = w->mode,
                                    .uid = UID_A,
                                    .conditions = true,
                                    .now = w->now,
                                    .applied_generation = w->applied_generation,
                                    .stale = w->stale ? "resourceclaims" : NULL,
                                    .gone_confirmed = w->asked_domain && !n_cds,
                                    .label_error = w->label_error,
                                    .write_error = w->write_error };
        ret->cd = n_cds && !w->cd_unseen ? cds[0] : NULL;
        if (ret->cd && !domain_ends(ret->cd)) {
                w->was_held = ret->cd->o.meta.deleted != 0;
                w->ending_since = 0;
        } else if (!w->ending_since) {
                w->ending_since = ret->cd && !w->was_held ? ret->cd->o.meta.deleted : w->now;
        }
        ret->ending_since = w->ending_since;
        if (w->ended_pod) {
                struct plan_ended *x = arena_alloc(a, sizeof *x);
                *x = (struct plan_ended){ fake_pod_json(a, "%s", w->ended_pod), w->ended_claimed };
                ret->ended = x;
                ret->n_ended = 1;
        }
        ret->sets = (const struct daemonset *const *)all(w, a, &kube_daemonsets, sizeof(struct daemonset),
                                                         daemonset_fields, &ret->n_sets);
        ret->formation.cliques = (const struct clique *const *)all(w, a, &kube_cliques, sizeof(struct clique),
                                                                   clique_fields, &ret->formation.n_cliques);
        ret->formation.infix = "0123456789";
        for (size_t i = 0; i < n_rcts; i++) {
                if (ret->cd && ret->cd->channel && streq(rcts[i]->o.meta.ns, ret->cd->o.meta.ns) &&
                    streq(rcts[i]->o.meta.name, ret->cd->channel->template_name))
                        ret->holder = rcts[i];
                if (streq(rcts[i]->domain_uid, UID_A) && rules_own_template(ret->cd, namespaces, 2, rcts[i]))
                        rcts[ret->n_rcts++] = rcts[i];
        }
        ret->rcts = (const struct rct *const *)(const void *)rcts;
        for (size_t i = 0; i < WORLD_NODES; i++) {
                const struct world_node *n = &w->nodes[i];
                nodes[i] = (struct seat_facts){ .name = world_names[i],
                                                .node = n->exists ? fake_node(a, world_names[i], n->ready)
                                                                  : NULL,
                                                .gone_since = n->exists ? 0 : w->now - 3600,
                                                .wanted = seen_wanted(n),
                                                .released = n->asked && !n->wanted,
                                                .clique = n->clique };
                if (n->has_pod)
                        pods[ret->n_pods++] = nodes[i].pod = pod_of(w, i, a);
                ret->n_labelled += n->exists && n->labelled;
                if (seen_wanted(n))
                        hosts[ret->n_hosts++] =
                                (struct host){ world_names[i], n->host_state, n->host_reason };
        }
        ret->pods = pods;
        ret->hosts = hosts;
        if (!mode_forms_domains(w->mode))
                return;
        ret->formation.nodes = nodes;
        ret->formation.n_nodes = WORLD_NODES;
}

struct plan *world_plan(struct world *w, struct arena *a) {
        struct plan *p = arena_alloc(a, sizeof *p);
        struct plan_input in;
        world_view(w, a, &in);
        plan_make(&in, a, p);
        world_ask(w, p);
        return p;
}

void world_ask(struct world *w, const struct plan *p) {
        w->asked_domain = w->asked_domain || p->ask_domain;
        if (p->ask_domain) /* what is there is given to the cache */
                w->cd_unseen = false;
        for (size_t i = 0; i < p->n_ask_nodes; i++)
                for (size_t k = 0; k < WORLD_NODES; k++)
                        if (streq(p->ask_nodes[i], world_names[k])) {
                                w->nodes[k].asked = true;
                                w->nodes[k].unseen = false;
                        }
}

const struct plan_action *world_action(const struct plan *p, enum kube_verb verb,
                                       const struct kube_resource *res) {
        for (size_t i = 0; i < p->n_actions; i++)
                if (p->actions[i].verb == verb && p->actions[i].res == res)
                        return &p->actions[i];
        return NULL;
}

const struct compute_domain *world_cd(struct world *w, struct arena *a) {
        return fake_cd_json(a, "%s", world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd")->json);
}

const struct cd_condition *world_condition(struct world *w, struct arena *a, const char *type) {
        const struct compute_domain *cd = world_cd(w, a);
        for (size_t i = 0; i < cd->n_conditions; i++)
                if (streq(cd->conditions[i].type, type))
                        return &cd->conditions[i];
        return NULL;
}

size_t world_count(const struct world *w) {
        size_t n = 0;
        for (size_t i = 0; i < WORLD_OBJECTS; i++)
                n += w->objects[i].json != NULL;
        return n;
}

/* ---- everybody else ---- */

static int64_t entry_of(struct world *w, const char *node, const char *clique) {
        struct arena *a = arena_new(4096);
        size_t n;
        const struct clique **cliques =
                (const struct clique **)all(w, a, &kube_cliques, sizeof **cliques, clique_fields, &n);
        int64_t index = -1;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; streq(cliques[i]->imex.clique_id, clique) && k < cliques[i]->imex.n_seats;
                     k++)
                        if (streq(cliques[i]->imex.seats[k].node, node))
                                index = cliques[i]->imex.seats[k].index;
        arena_free(a);
        return index;
}

/* It must not end yet. */
static bool lives(const struct world_object *cd) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *d = cd ? fake_cd_json(a, "%s", cd->json) : NULL;
        bool is = d && !domain_ends(d);
        arena_free(a);
        return is;
}

static bool in_other_mode(struct world *w, const struct world_object *cd) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *d = cd ? fake_cd_json(a, "%s", cd->json) : NULL;
        struct mode_traces t = mode_traces_of(d);
        t.daemon_template = world_find(w, &kube_resource_claim_templates, WORLD_NS, NULL);
        t.workload_template = world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, NULL);
        bool other = d && mode_is_other(w->mode, d->mode, t);
        arena_free(a);
        return other;
}

/* The rules of a label, by what our caches show; the server says the truth when it is asked. */
static bool label_after(const struct world *w, const struct world_node *n, const struct world_object *cd,
                        bool living, bool other) {
        bool seen_cd = cd && !w->cd_unseen, claimed = seen_cd && seen_wanted(n);
        bool rightful = living && claimed && mode_labels_node(w->mode, other, n->labelled);
        struct rules_label_facts f = { .ending = seen_cd && !living,
                                       .claimed = claimed,
                                       .stale = w->stale,
                                       .confirmed = seen_cd ? !n->wanted : !cd };
        if (rightful == n->labelled)
                return rightful;
        return rules_label_step(n->labelled ? UID_A : NULL, &f) == RULES_LABEL_WRITE ? rightful : n->labelled;
}

void world_turn(struct world *w) {
        struct world_object *cd = world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"),
                            *set = world_find(w, &kube_daemonsets, WORLD_NS, NULL);
        bool living = lives(cd),
             set_works = set && !strstr(set->json, "deletionTimestamp");
        bool other = in_other_mode(w, cd);
        for (size_t i = 0; i < WORLD_NODES; i++) {
                struct world_node *n = &w->nodes[i];
                n->labelled = n->exists && label_after(w, n, cd, living, other);
                if (!n->exists) {
                        n->has_pod = false;
                        continue;
                }
                if (n->has_pod && n->pod_ending && n->ready && !n->pod_stuck)
                        n->has_pod = n->pod_ending = false;
                else if (n->has_pod && (!set || (set_works && !n->labelled)))
                        n->pod_ending = true;
                else if (!n->has_pod && set_works && n->labelled) {
                        n->has_pod = true;
                        n->pod_ending = n->pod_stuck = false;
                        n->pod_number = ++w->pods_made % 250;
                        n->runs_with = -1;
                } else if (n->has_pod && n->ready && !n->pod_ending) {
                        int64_t index = entry_of(w, world_names[i], n->clique);
                        n->runs_with = index >= 0 ? index : n->runs_with;
                }
        }
}

static void transcribe(struct buf *out, const struct plan *p) {
        static const char *const verbs[] = { [KUBE_CREATE] = "CREATE",
                                             [KUBE_APPLY] = "APPLY",
                                             [KUBE_MERGE_PATCH] = "PATCH",
                                             [KUBE_DELETE] = "DELETE" };
        static const char *const when[] = {
                [PLAN_NOW] = "now", [PLAN_SOON] = "soon", [PLAN_LATER] = "later"
        };
        for (size_t i = 0; i < p->n_actions; i++) {
                const struct plan_action *x = &p->actions[i];
                yyjson_doc *doc = yyjson_read(x->body.p, x->body.n, 0);
                _cleanup_(freep) char *body =
                        doc ? yyjson_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL) : NULL;
                buf_addf(out, "%s %s %s/%s%s%s, %s\n%s%s", verbs[x->verb], x->res->kind, str_or(x->ns, ""),
                         x->name, x->subresource ? " " : "", str_or(x->subresource, ""), when[x->when],
                         str_or(body, ""), body ? "\n" : "");
                yyjson_doc_free(doc);
        }
        for (size_t i = 0; i < p->n_events; i++)
                buf_addf(out, "EVENT %s %s: %s\n", p->events[i].warning ? "Warning" : "Normal",
                         p->events[i].reason, p->events[i].message);
}

int world_settle(struct world *w, bool lossy) {
        for (int round = 0, quiet = 0; round < 400; round++) {
                struct arena *a = arena_new(8192);
                struct plan_input in;
                struct plan p;
                world_view(w, a, &in);
                plan_make(&in, a, &p);
                world_ask(w, &p);
                if (w->transcript)
                        transcribe(w->transcript, &p);
                for (size_t i = 0; i < p.n_actions; i++)
                        if (!lossy || fake_random(3))
                                world_perform(w, &p.actions[i]);
                quiet = p.n_actions || p.ask_domain || p.n_ask_nodes ? 0 : quiet + 1;
                arena_free(a);
                world_turn(w);
                if (quiet > 6)
                        return round;
        }
        return -1;
}
