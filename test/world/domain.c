/* SPDX-License-Identifier: Apache-2.0 */
#include "world/domain.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/resources.h"
#include "rules/message.h"
#include "rules/rules.h"

const char *const world_names[WORLD_NODES] = { "node-a", "node-b", "node-c", "node-d", "node-e" };

static char *quoted(const char *text) {
        char *s = xstrdup(text);
        fake_quotes(s);
        return s;
}

void world_set_mode(struct world *w, const char *gates, const char *imex_mode) {
        struct gates g;
        struct err e;
        gates_init(&g);
        if (gates_parse(&g, gates, &e) < 0 || mode_resolve(&g, imex_mode, NULL, &w->mode, &e) < 0)
                fail_msg("%s", e.msg);
}

void world_init(struct world *w) {
        *w = (struct world){
                .store.version = 100,
                .now = 1700000000,
                .settings = { .ns = WORLD_NS,
                              .resource_api = "v1",
                              .image = "image:1",
                              .log_verbosity = "1",
                              .gates = "IMEXDaemonsWithDNSNames=true,",
                              .priority_class = "",
                              .imex_config = "" },
        };
        for (size_t i = 0; i < WORLD_NODES; i++)
                w->nodes[i] = (struct world_node){ .exists = true,
                                                   .ready = true,
                                                   .clique = i < 4 ? CLIQUE_1 : CLIQUE_2 };
        world_set_mode(w, "", NULL);
}

void world_done(struct world *w) {
        store_done(&w->store);
}

int world_setup(void **state) {
        struct world *w = xnew(struct world);
        world_init(w);
        *state = w;
        return 0;
}

int world_teardown(void **state) {
        world_done(*state);
        free(*state);
        return 0;
}

struct object *world_find(struct world *w, const struct kube_resource *res, const char *ns,
                          const char *name) {
        return store_find(&w->store, res, ns, name);
}

void world_put(struct world *w, const struct kube_resource *res, const char *ns, const char *name,
               const char *json) {
        _cleanup_(freep) char *text = quoted(json);
        store_create(&w->store, res, ns, name, text);
}

void world_delete(struct world *w, struct object *o) {
        store_delete(&w->store, o, w->now);
}

void world_create_cd(struct world *w, const char *spec) {
        struct buf b = BUF_INIT(4096);
        buf_addf(&b, "{'metadata':{'name':'cd','namespace':'" WORLD_USER_NS "','uid':'" UID_A "'}%s%s}",
                 *spec ? ",'spec':" : "", spec);
        world_put(w, &kube_compute_domains, WORLD_USER_NS, "cd", buf_str(&b));
        buf_done(&b);
}

/* ---- writes ---- */

bool world_perform(struct world *w, const struct plan_action *x) {
        struct object *o = world_find(w, x->res, x->ns, x->name);
        w->n_writes++;
        if (x->res == &kube_pods) { /* Pods are only deleted */
                assert_int_equal(x->verb, KUBE_DELETE);
                for (size_t i = 0; i < WORLD_NODES; i++)
                        if (streq(x->name + strlen("pod-"), world_names[i]))
                                w->nodes[i].pod_ending = true;
                return true;
        }
        if (!o && x->verb == KUBE_CREATE) {
                store_create(&w->store, x->res, x->ns, x->name, x->body.p);
                return true;
        }
        if (!o || x->verb == KUBE_CREATE)
                return false;
        if (x->verb == KUBE_MERGE_PATCH) {
                bool good = store_patch(&w->store, o, x->body.p, streq(x->subresource, "status"));
                w->conflicts += !good;
                return good;
        }
        world_delete(w, o);
        return true;
}

/* ---- caches ---- */

static const void **all(struct world *w, struct arena *a, const struct kube_resource *res, size_t size,
                        const struct jd_field *fields, size_t *ret_n) {
        const void **list = arena_alloc(a, STORE_MAX * sizeof *list);
        struct err e;
        *ret_n = 0;
        for (size_t i = 0; i < STORE_MAX; i++) {
                const struct object *o = &w->store.items[i];
                if (!o->json || o->res != res)
                        continue;
                void *decoded = arena_alloc(a, size);
                if (jd_decode_text(fields, str_from(o->json), "", a, decoded, &e) < 0)
                        fail_msg("%s", e.msg);
                list[(*ret_n)++] = decoded;
        }
        return list;
}

/* This driver's Pod, or the Go driver's, which reports nothing. */
static const struct pod *pod_of(struct world *w, size_t i, bool go, struct arena *a) {
        const struct world_node *n = &w->nodes[i];
        struct pod *p = arena_alloc(a, sizeof *p);
        *p = *fake_daemon(a, world_names[i], "10.0.0.1", n->clique, true);
        p->o.meta.ns = WORLD_NS;
        p->o.meta.name = arena_printf(a, "pod-%s", world_names[i]);
        if (!go)
                return p;
        p->template_hash = p->ready = p->state = NULL;
        if (n->pod_ending)
                p->o.meta.deleted = w->now;
        return p;
}

static bool seen_wanted(const struct world_node *n) {
        return n->wanted && !n->unseen;
}

static const struct fabric_assignment *assignment_of(const struct world *w, size_t i, struct arena *a) {
        const struct world_node *n = &w->nodes[i];
        struct fabric_assignment *x = arena_alloc(a, sizeof *x);
        *x = (struct fabric_assignment){
                .node = world_names[i], .index = n->index, .epoch = 1, .state = n->leaving ? "Leaving" : NULL
        };
        return x;
}

static void view_members(struct world *w, struct arena *a, struct plan_input *ret) {
        struct member_facts *list = arena_alloc(a, WORLD_NODES * sizeof *list);
        for (size_t i = 0; i < WORLD_NODES; i++) {
                const struct world_node *n = &w->nodes[i];
                if (!seen_wanted(n) && !n->assigned)
                        continue;
                list[ret->n_members++] = (struct member_facts){
                        .name = world_names[i],
                        .node = n->exists ? fake_node(a, world_names[i], n->ready) : NULL,
                        .wanted = seen_wanted(n),
                        .clique = n->clique,
                        .pod = pod_of(w, i, false, a),
                        .fabric = n->assigned ? n->clique : NULL,
                        .assignment = n->assigned ? assignment_of(w, i, a) : NULL,
                        .joined = n->assigned && n->joined,
                };
        }
        ret->members = list;
}

static void view_labelled(const struct world *w, struct arena *a, struct plan_input *ret) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < WORLD_NODES; i++)
                if (w->nodes[i].exists && w->nodes[i].labelled) {
                        ret->n_labelled++;
                        message_add(&names, "%s", world_names[i]);
                }
        ret->labelled = message_end(&names, a);
}

static void view_assigned(const struct world *w, struct arena *a, struct plan_input *ret) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < WORLD_NODES; i++)
                if (w->nodes[i].assigned) {
                        ret->n_assigned++;
                        message_add(&names, "%s", world_names[i]);
                }
        ret->assigned = message_end(&names, a);
}

void world_view(struct world *w, struct arena *a, struct plan_input *ret) {
        static const char *const namespaces[] = { WORLD_NS, "old-driver" };
        size_t n_cds, n_rcts;
        const struct pod **pods = arena_alloc(a, WORLD_NODES * sizeof *pods);
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
                                    .stale = w->stale ? "resourceclaims" : NULL,
                                    .deletion_confirmed = w->asked_domain && !n_cds,
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
        ret->sets = (const struct daemonset *const *)all(w, a, &kube_daemonsets, sizeof(struct daemonset),
                                                         daemonset_fields, &ret->n_sets);
        ret->cliques = (const struct clique *const *)all(w, a, &kube_cliques, sizeof(struct clique),
                                                         clique_fields, &ret->n_cliques);
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
                if (n->has_pod)
                        pods[ret->n_pods++] = pod_of(w, i, true, a);
                if (seen_wanted(n))
                        hosts[ret->n_hosts++] =
                                (struct host){ world_names[i], n->host_state,
                                               host_state_decode(n->host_state), n->host_reason };
        }
        ret->pods = pods;
        ret->hosts = hosts;
        if (mode_forms_domains(w->mode))
                view_members(w, a, ret);
        view_labelled(w, a, ret);
        view_assigned(w, a, ret);
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
        if (p->ask_domain) /* the cache gets the existing object */
                w->cd_unseen = false;
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
        for (size_t i = 0; i < STORE_MAX; i++)
                n += w->store.items[i].json != NULL;
        return n;
}

/* ---- the other programs ---- */

/* IMEX must not end yet. */
static bool lives(const struct object *cd) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *d = cd ? fake_cd_json(a, "%s", cd->json) : NULL;
        bool is = d && !domain_ends(d);
        arena_free(a);
        return is;
}

static bool is_go(struct world *w) {
        static const char *const namespaces[] = { WORLD_NS, "old-driver" };
        static const struct kube_resource *const kinds[] = { &kube_daemonsets,
                                                             &kube_resource_claim_templates };
        bool is = false;
        for (size_t i = 0; i < WORLD_NODES; i++)
                is = is || w->nodes[i].has_pod;
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
                for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
                        is = is || world_find(w, kinds[k], namespaces[i], NULL);
        return is;
}

static bool in_other_mode(struct world *w, const struct object *cd) {
        struct arena *a = arena_new(4096);
        const struct compute_domain *d = cd ? fake_cd_json(a, "%s", cd->json) : NULL;
        struct mode_traces t = mode_traces_of(d);
        t.daemon_template = is_go(w);
        t.workload_template = world_find(w, &kube_resource_claim_templates, WORLD_USER_NS, NULL);
        bool other = d && mode_is_other(w->mode, d->mode, t);
        arena_free(a);
        return other;
}

/* The rules of a label, by the controller's caches. The API server knows the facts when it is asked. */
static bool label_after(const struct world *w, const struct world_node *n, const struct object *cd,
                        bool living, bool other, bool go) {
        bool seen_cd = cd && !w->cd_unseen, claimed = seen_cd && seen_wanted(n);
        bool rightful =
                living && claimed && mode_labels_node(w->mode, other, n->labelled) && (n->labelled || !go);
        struct rules_label_facts f = { .ending = seen_cd && !living,
                                       .claimed = claimed,
                                       .stale = w->stale,
                                       .confirmed = seen_cd ? !n->wanted : !cd };
        if (rightful == n->labelled)
                return rightful;
        return rules_label_step(n->labelled ? UID_A : NULL, &f) == RULES_LABEL_WRITE ? rightful : n->labelled;
}

static int64_t free_index(const struct world *w, const char *clique) {
        for (int64_t index = 0;; index++) {
                bool taken = false;
                for (size_t i = 0; i < WORLD_NODES; i++)
                        taken = taken || (w->nodes[i].assigned && streq(w->nodes[i].clique, clique) &&
                                          w->nodes[i].index == index);
                if (!taken)
                        return index;
        }
}

/* The fabric object of the partition, and this driver's daemon on the node, which follows it. */
static void turn_assignment(struct world *w, struct world_node *n, bool joins) {
        if (!n->exists) {
                n->assigned = n->joined = n->leaving = false;
        } else if (!n->assigned && joins) {
                n->index = free_index(w, n->clique);
                n->assigned = true;
                n->leaving = n->joined = false;
        } else if (n->assigned && !joins && !n->leaving) {
                n->leaving = true;
        } else if (n->leaving && n->ready && !n->stuck) {
                n->assigned = n->joined = n->leaving = false;
        } else if (n->assigned && n->ready) {
                n->joined = true;
        }
}

/* The DaemonSet of the Go driver, its controller, and the kubelet. */
static void turn_pod(struct world_node *n, bool has_set, bool set_works) {
        if (!n->exists)
                n->has_pod = false;
        else if (n->has_pod && n->pod_ending && n->ready && !n->stuck)
                n->has_pod = n->pod_ending = false;
        else if (n->has_pod && (!has_set || (set_works && !n->labelled)))
                n->pod_ending = true;
        else if (!n->has_pod && set_works && n->labelled)
                n->has_pod = true;
}

void world_turn(struct world *w) {
        struct object *cd = world_find(w, &kube_compute_domains, WORLD_USER_NS, "cd"),
                      *set = world_find(w, &kube_daemonsets, WORLD_NS, NULL);
        bool living = lives(cd), set_works = set && !strstr(set->json, "deletionTimestamp"), go = is_go(w);
        bool other = in_other_mode(w, cd);
        for (size_t i = 0; i < WORLD_NODES; i++) {
                struct world_node *n = &w->nodes[i];
                n->labelled = n->exists && label_after(w, n, cd, living, other, go);
                turn_pod(n, set, set_works);
                turn_assignment(w, n,
                                living && n->wanted && !go &&
                                        (other ? n->assigned : mode_forms_domains(w->mode)));
        }
}

static void transcribe(struct buf *out, const struct plan *p) {
        static const char *const verbs[] = {
                [KUBE_CREATE] = "CREATE", [KUBE_MERGE_PATCH] = "PATCH", [KUBE_DELETE] = "DELETE"
        };
        static const char *const when[] = { [PLAN_NOW] = "now", [PLAN_LATER] = "later" };
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
                quiet = p.n_actions || p.ask_domain ? 0 : quiet + 1;
                arena_free(a);
                world_turn(w);
                if (quiet > 6)
                        return round;
        }
        return -1;
}
