/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/plan.h"

#include "api/gates.h"
#include "api/names.h"
#include "api/resources.h"
#include "rules/message.h"
#include "rules/racks.h"
#include "rules/rules.h"

enum { MAX_BODY = 4 << 20, MAX_NODES = 1024 /* what --max-nodes-per-imex-domain takes */ };

struct work {
        struct plan_input *in;
        struct arena *a;
        struct plan *out;
        size_t cap;
        const char *daemon_name;     /* of the DaemonSet and the daemons' claim template */
        const char *gates;           /* that the domain's daemons run with */
        const struct daemonset *own; /* in the driver's namespace */
        const struct daemonset
                *elsewhere;        /* left by a driver that lived in another namespace: used as it is */
        const char *home;          /* namespace of the DaemonSet */
        const struct rct *changed; /* a claim template that is not as we wrote it, NULL: all are */
};

static struct str take_text(struct arena *a, struct buf *b) {
        struct str s = { arena_strndup(a, buf_str(b), b->n), b->n };
        buf_done(b);
        return s;
}

/* A body that has outgrown its limit is not written, and told. */
static struct plan_action *add(struct work *w, enum kube_verb verb, const struct kube_resource *res,
                               const char *ns, const char *name, struct buf *body) {
        static struct plan_action nobody;
        if (body && body->failed) {
                w->out->too_large = name;
                buf_done(body);
                return &nobody;
        }
        ARENA_GROW(w->a, w->out->actions, w->out->n_actions, w->cap);
        struct plan_action *x = &w->out->actions[w->out->n_actions++];
        *x = (struct plan_action){ .verb = verb, .res = res, .ns = ns, .name = name };
        if (body)
                x->body = take_text(w->a, body);
        return x;
}

static void add_delete(struct work *w, const struct kube_resource *res, const struct kube_meta *m) {
        struct buf b = BUF_INIT(MAX_BODY);
        objects_delete(m, NULL, false, &b);
        add(w, KUBE_DELETE, res, m->ns, m->name, &b);
}

static void add_delete_pod(struct work *w, const struct kube_meta *m, bool at_once) {
        struct buf b = BUF_INIT(MAX_BODY);
        objects_delete(m, m->rv, at_once, &b);
        add(w, KUBE_DELETE, &kube_pods, m->ns, m->name, &b);
}

/* Whether a claim brings the node in is for the server to say, once the caches can be believed at all. */
static void ask_node(struct work *w, const char *node) {
        struct plan *p = w->out;
        if (w->in->stale) {
                p->held = true;
                return;
        }
        if (!p->ask_nodes)
                p->ask_nodes = arena_alloc(w->a, w->in->formation.n_nodes * sizeof *p->ask_nodes);
        p->ask_nodes[p->n_ask_nodes++] = node;
}

static void add_release(struct work *w, const struct kube_resource *res, const struct kube_meta *m,
                        const char *const *list, size_t n) {
        struct buf b = BUF_INIT(MAX_BODY);
        objects_release(m, list, n, &b);
        add(w, KUBE_MERGE_PATCH, res, m->ns, m->name, &b);
}

/* An object of ours that must go: deleted, then released. True while it is still there. */
static bool remove_object(struct work *w, const struct kube_resource *res, const struct kube_meta *m,
                          const char *const *finalizers, size_t n) {
        if (!m->deleted)
                add_delete(w, res, m);
        else if (has_string(finalizers, n, CD_FINALIZER))
                add_release(w, res, m, finalizers, n);
        return true;
}

static void recheck(struct work *w, int64_t seconds) {
        if (!w->out->recheck_s || seconds < w->out->recheck_s)
                w->out->recheck_s = seconds;
}

/* ---- the daemons' objects ---- */

/* A daemon that no cache shows yet has an entry still: those go last. */
static bool is_used(const struct plan_input *in) {
        bool used = in->n_pods > 0 || in->stale;
        for (size_t i = 0; i < in->formation.n_nodes; i++)
                used = used || in->formation.nodes[i].wanted;
        for (size_t i = 0; i < in->formation.n_cliques; i++)
                used = used || in->formation.cliques[i]->imex.n_seats;
        return used;
}

/* All daemons of a living domain must agree on the length of the node list and on how it names nodes, so what
 * its DaemonSet was made with stays until nobody uses the domain. */
static void settle_common(struct work *w) {
        struct plan_input *in = w->in;
        const struct daemonset *set = w->own ? w->own : w->elsewhere;
        bool live = is_used(in);
        const char *max = live && set ? daemonset_env(set, "MAX_NODES_PER_IMEX_DOMAIN") : NULL;
        const char *gates = live && set ? daemonset_env(set, "FEATURE_GATES") : NULL;
        struct gates g;
        struct err e;
        gates_init(&g);
        w->gates = gates && gates_parse(&g, gates, &e) == 0 ? gates : in->settings->gates;
        if (w->gates != gates && gates_parse(&g, w->gates, &e) < 0)
                gates_init(&g);
        in->formation.dns_names = mode_dns_names(&g);
        if (!max || !str_to_i64(str_from(max), &in->formation.max_nodes) || in->formation.max_nodes < 1 ||
            in->formation.max_nodes > MAX_NODES)
                in->formation.max_nodes = in->settings->max_nodes;
}

static void find_sets(struct work *w) {
        for (size_t i = 0; i < w->in->n_sets; i++) {
                const struct daemonset *d = w->in->sets[i];
                if (streq(d->o.meta.ns, w->in->settings->ns) && streq(d->o.meta.name, w->daemon_name))
                        w->own = d;
                else if (!d->o.meta.deleted)
                        w->elsewhere = d;
        }
        w->home = !w->own && w->elsewhere ? w->elsewhere->o.meta.ns : w->in->settings->ns;
}

static void want_daemonset(struct work *w) {
        const struct plan_input *in = w->in;
        const struct daemonset *d = w->own;
        char hash[17];
        if (!d && w->elsewhere)
                return;
        if (d && d->o.meta.deleted) { /* deleted by hand: let it go, then make it anew */
                remove_object(w, &kube_daemonsets, &d->o.meta, d->finalizers, d->n_finalizers);
                return;
        }
        objects_template_hash(in->settings, in->uid, w->gates, in->formation.max_nodes, hash);
        bool fresh = d && streq(d->template_hash, hash) && d->o.meta.generation == in->applied_generation &&
                     has_string(d->finalizers, d->n_finalizers, CD_FINALIZER);
        if (!fresh) {
                struct buf b = BUF_INIT(MAX_BODY);
                objects_daemonset(in->settings, in->uid, w->gates, in->formation.max_nodes, &b);
                add(w, KUBE_APPLY, &kube_daemonsets, in->settings->ns, w->daemon_name, &b);
        }
        if (!d || !streq(d->template_hash, hash))
                return;
        for (size_t i = 0; i < in->formation.n_nodes; i++) {
                const struct seat_facts *n = &in->formation.nodes[i];
                if (!n->pod || !streq(n->pod->o.meta.ns, d->o.meta.ns) || streq(n->pod->template_hash, hash))
                        continue;
                if (rules_replace_daemon(n->pod, hash, n->wanted || !n->released, in->now))
                        add_delete_pod(w, &n->pod->o.meta, false);
                else if (!n->wanted && !n->released && !n->pod->o.meta.deleted)
                        ask_node(w, n->name);
                else if (streq(n->pod->phase, "Pending"))
                        recheck(w, RULES_UNSTARTED_S);
        }
}

static const struct rct *find_rct(const struct plan_input *in, const char *ns, const char *name) {
        for (size_t i = 0; i < in->n_rcts; i++)
                if (streq(in->rcts[i]->o.meta.ns, ns) && streq(in->rcts[i]->o.meta.name, name))
                        return in->rcts[i];
        return NULL;
}

/* Brings one claim template about. Its spec cannot be changed, so a wrong one is recreated, unless that would
 * change nothing. */
static void want_rct(struct work *w, const struct rct *r, const char *ns, const char *name,
                     const char *target, const struct objects_channel *channel) {
        const struct plan_input *in = w->in;
        struct buf b = BUF_INIT(MAX_BODY);
        if (!r && streq(target, CD_TARGET_DAEMON)) { /* nobody else has a reason to take that name, so what is
                                                        there is ours, without its labels */
                objects_rct(in->settings->resource_api, ns, name, &in->cd->o.meta, target, channel, &b);
                add(w, KUBE_APPLY, &kube_resource_claim_templates, ns, name, &b);
                return;
        }
        if (!r) {
                objects_rct(in->settings->resource_api, ns, name, &in->cd->o.meta, target, channel, &b);
                add(w, KUBE_CREATE, &kube_resource_claim_templates, ns, name, &b)->answer =
                        PLAN_ANSWER_TEMPLATE;
                return;
        }
        bool changed = objects_rct_is_changed(r, in->uid, target, channel);
        if (changed)
                w->changed = r;
        if (r->o.meta.deleted || (!changed && !objects_rct_matches(r, in->uid, target, channel))) {
                remove_object(w, &kube_resource_claim_templates, &r->o.meta, r->finalizers, r->n_finalizers);
        } else if (!streq(r->domain_uid, in->uid) || !streq(r->target, target) ||
                   !has_string(r->finalizers, r->n_finalizers, CD_FINALIZER)) {
                objects_rct_repair(r, in->uid, target, &b);
                add(w, KUBE_MERGE_PATCH, &kube_resource_claim_templates, ns, name, &b);
        }
}

/* The finalizers of other controllers, for people; "": there is none. */
static const char *foreign_finalizers(const struct work *w, const char *const *finalizers, size_t n) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < n; i++)
                if (domain_finalizer_is_foreign(finalizers[i]))
                        message_add(&names, "%s", finalizers[i]);
        return message_end(&names, w->a);
}

/* It is created again when it is gone, which another controller's finalizer may prevent for any time. */
static void report_terminating(struct work *w, const struct rct *r, struct verdict_problem *problem) {
        const char *names = foreign_finalizers(w, r->finalizers, r->n_finalizers);
        if (*names)
                *problem = (struct verdict_problem){
                        "TemplateTerminating",
                        message_of(
                                w->a,
                                "ResourceClaimTemplate %s/%s is being deleted, and is created again when the "
                                "finalizers of others are removed from it: %s",
                                r->o.meta.ns, r->o.meta.name, names)
                };
}

/* The workload template, unless its domain is deleted. Somebody else who has its name is a problem, and never
 * taken over: pods of another owner may be using it. True when it is there as it should be. */
static bool want_workload_rct(struct work *w, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        if (in->cd->o.meta.deleted)
                return false;
        const char *ns = in->cd->o.meta.ns, *name = in->cd->channel->template_name;
        const struct objects_channel channel = {
                .mode = mode_template_is_single(in->mode)
                                ? "Single"
                                : str_or(in->cd->channel->allocation_mode, "Single"),
                .rack = racks_is_domain(in->cd) ? in->cd->rack : NULL,
                .own = mode_assigns_channels(in->mode),
        };
        const struct rct *r = find_rct(in, ns, name);
        bool ours = !in->holder || streq(in->holder->domain_uid, in->uid) ||
                    (!in->holder->domain_uid &&
                     objects_rct_matches(in->holder, in->uid, CD_TARGET_WORKLOAD, &channel));
        if (!r && in->holder && ours)
                r = in->holder;
        /* While it is another's, the attempt to create it goes on, with growing pauses: only the server can
         * tell when the name is free. */
        want_rct(w, r, ns, name, CD_TARGET_WORKLOAD, &channel);
        if (ours && r && r->o.meta.deleted)
                report_terminating(w, r, problem);
        if (!ours)
                *problem = (struct verdict_problem){
                        "TemplateNameTaken",
                        message_of(w->a,
                                   "ResourceClaimTemplate %s/%s exists already and belongs to %s, so "
                                   "pods cannot get into this domain by it",
                                   ns, name,
                                   in->holder->domain_uid ? "another ComputeDomain" : "somebody else")
                };
        return ours && r && !r->o.meta.deleted &&
               objects_rct_matches(r, in->uid, CD_TARGET_WORKLOAD, &channel);
}

/* ---- a living domain ---- */

static void want_cliques(struct work *w, const struct formation *f) {
        for (size_t i = 0; i < f->n_imex; i++) {
                const struct formed_imex *c = &f->imex[i];
                struct buf b = BUF_INIT(MAX_BODY), name = BUF_INIT(512);
                if (!c->changed || (!c->old && !c->imex.n_seats))
                        continue;
                clique_object_name(w->in->uid, c->imex.clique_id, &name);
                objects_clique(c, w->home, w->in->uid, &b);
                struct plan_action *x = add(w, c->old ? KUBE_MERGE_PATCH : KUBE_CREATE, &kube_cliques,
                                            c->old ? c->old->o.meta.ns : w->home,
                                            c->old ? c->old->o.meta.name : take_text(w->a, &name).p, &b);
                x->when = c->urgent ? PLAN_SOON : PLAN_LATER;
                x->answer = c->old ? PLAN_ANSWER_NONE : PLAN_ANSWER_NEW_CLIQUE;
                buf_done(&name);
        }
}

static void want_status(struct work *w, const struct formation *f, const struct verdict *v) {
        const struct plan_input *in = w->in;
        int64_t deleted = in->cd->o.meta.deleted;
        /* Daemons take a moment to end, and so does the work of other controllers. */
        if (deleted && in->now < deleted + PLAN_PATIENCE_S) {
                recheck(w, deleted + PLAN_PATIENCE_S - in->now);
                return;
        }
        if (!v->changed)
                return;
        struct buf b = BUF_INIT(MAX_BODY);
        objects_status(in->cd, v, &b);
        struct plan_action *x =
                add(w, KUBE_MERGE_PATCH, &kube_compute_domains, in->cd->o.meta.ns, in->cd->o.meta.name, &b);
        x->subresource = "status";
        x->when = PLAN_LATER;
        x->answer = PLAN_ANSWER_STATUS;
        w->out->n_events = verdict_events(in->cd, f, v, w->a, &w->out->events);
}

static void want_daemons_status(struct work *w, const struct formation *f,
                                const struct verdict_problem *problem) {
        struct verdict v;
        verdict_make(w->in->cd, f, problem, w->in->conditions, w->in->now, w->a, &v);
        w->out->census = census_daemons(f, v.peers_missing);
        w->out->counted = true;
        want_status(w, f, &v);
}

static void want_host_status(struct work *w, const struct verdict_problem *problem) {
        struct verdict v;
        verdict_make_host(w->in->cd, w->in->hosts, w->in->n_hosts, mode_runs_agents(w->in->mode),
                          w->in->channels, w->in->n_channels, problem, w->in->conditions, w->in->now, w->a,
                          &v);
        w->out->census = census_hosts(w->in->hosts, w->in->n_hosts);
        w->out->counted = true;
        want_status(w, &(struct formation){ 0 }, &v);
}

/* Of which cliques the daemons run with the Go driver's names. */
static void note_adopted(struct work *w, const struct formation *f) {
        const struct compute_domain *cd = w->in->cd;
        struct buf b = BUF_INIT(MAX_BODY);
        if (streq(cd->adopted, f->adopted))
                return;
        objects_note_adopted(cd, f->adopted, &b);
        add(w, KUBE_MERGE_PATCH, &kube_compute_domains, cd->o.meta.ns, cd->o.meta.name, &b)->when =
                PLAN_LATER;
}

/* By the mode that we run in. */
static void want_problem_status(struct work *w, const struct verdict_problem *problem) {
        if (mode_forms_domains(w->in->mode))
                want_daemons_status(w, &(struct formation){ 0 }, problem);
        else
                want_host_status(w, problem);
}

static bool has_finalizer(const struct compute_domain *cd) {
        return has_string(cd->finalizers, cd->n_finalizers, CD_FINALIZER);
}

static bool is_workload(const struct rct *r) {
        return !streq(r->target, CD_TARGET_DAEMON);
}

static struct mode_traces traces_of(const struct plan_input *in) {
        struct mode_traces t = mode_traces_of(in->cd);
        for (size_t i = 0; i < in->n_rcts; i++)
                mode_traces_add(&t, in->rcts[i]);
        return t;
}

static void report_changed(const struct work *w, struct verdict_problem *problem) {
        if (problem->reason || !w->changed)
                return;
        *problem = (struct verdict_problem){
                "TemplateChanged",
                message_of(
                        w->a,
                        "ResourceClaimTemplate %s/%s is not as the driver writes it: an admission webhook or "
                        "policy of the cluster changes it, so pods may not get a channel. Exempt "
                        "ResourceClaimTemplates with the label " CD_LABEL " there, then delete this one",
                        w->changed->o.meta.ns, w->changed->o.meta.name)
        };
}

static void plan_with_daemons(struct work *w, struct verdict_problem *problem) {
        struct plan_input *in = w->in;
        struct formation f = { 0 };
        settle_common(w);
        want_workload_rct(w, problem);
        want_rct(w, find_rct(in, w->home, w->daemon_name), w->home, w->daemon_name, CD_TARGET_DAEMON,
                 &(struct objects_channel){ 0 });
        report_changed(w, problem);
        want_daemonset(w);
        in->formation.daemonset = message_of(w->a, "%s %s", w->home, w->daemon_name);
        formation_make(&in->formation, w->a, &f);
        if (f.recheck_s)
                recheck(w, f.recheck_s);
        w->out->held = w->out->held || f.held;
        w->out->needs_lost = f.needs_lost;
        for (size_t i = 0; i < f.n_members; i++)
                if (f.members[i].unconfirmed)
                        ask_node(w, f.members[i].seat.node);
        want_cliques(w, &f);
        note_adopted(w, &f);
        if (!problem->reason && !in->formation.dns_names && in->cd->num_nodes == 0)
                *problem = (struct verdict_problem){ "NumNodesRequired",
                                                     "Feature gate IMEXDaemonsWithDNSNames is off, so IMEX "
                                                     "daemons start when exactly spec.numNodes nodes "
                                                     "have joined, and spec.numNodes is 0" };
        else if (!problem->reason && w->out->too_large)
                *problem = (struct verdict_problem){
                        "ObjectTooLarge",
                        message_of(
                                w->a,
                                "%s is larger than an object may be, so it is not written; a ComputeDomain "
                                "for fewer nodes, or a smaller imex.maxNodesPerDomain, avoids it",
                                w->out->too_large)
                };
        else if (!problem->reason && in->write_error)
                *problem = (struct verdict_problem){ "WriteFailed", in->write_error };
        want_daemons_status(w, &f, problem);
}

/* Nothing but the claim template and the status: places and IMEX are the business of fabrics and agents. */
static void plan_with_agents(struct work *w, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        struct formation f = { 0 };
        want_workload_rct(w, problem);
        report_changed(w, problem);
        seated_make(in->seated, in->n_seated, message_of(w->a, "%s " CD_AGENT_OBJECT, in->settings->ns),
                    in->now, w->a, &f);
        if (f.recheck_s)
                recheck(w, f.recheck_s);
        if (!problem->reason && in->write_error)
                *problem = (struct verdict_problem){ "WriteFailed", in->write_error };
        want_daemons_status(w, &f, problem);
}

/* Where IMEX stands before any ComputeDomain uses it: nothing but the claim template. What the status says of
 * it is true when it is said: the first status waits for the template. */
static void plan_without_daemons(struct work *w, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        bool there = want_workload_rct(w, problem);
        report_changed(w, problem);
        if (!problem->reason && in->write_error)
                *problem = (struct verdict_problem){ "WriteFailed", in->write_error };
        if (!problem->reason && !there && !in->cd->status)
                return;
        if (!problem->reason && !there)
                *problem = (struct verdict_problem){
                        "TemplateMissing",
                        message_of(w->a, "ResourceClaimTemplate %s/%s is not there yet, or again",
                                   in->cd->o.meta.ns, in->cd->channel->template_name)
                };
        want_host_status(w, problem);
}

/* Finalizer and mode in one patch. */
static void record_mode(struct work *w, const char *mode) {
        const struct compute_domain *cd = w->in->cd;
        struct buf b = BUF_INIT(MAX_BODY);
        objects_adopt(cd, mode, &b);
        add(w, KUBE_MERGE_PATCH, &kube_compute_domains, cd->o.meta.ns, cd->o.meta.name, &b);
}

static void plan_by_mode(struct work *w, struct verdict_problem *problem) {
        if (!mode_forms_domains(w->in->mode))
                plan_without_daemons(w, problem);
        else if (mode_runs_agents(w->in->mode))
                plan_with_agents(w, problem);
        else
                plan_with_daemons(w, problem);
}

/* Stops new pods from getting in. The name stays taken until the rest is gone, so that a domain of the same
 * name starts from nothing. */
static void close_door(struct work *w) {
        for (size_t i = 0; i < w->in->n_rcts; i++)
                if (is_workload(w->in->rcts[i]) && !w->in->rcts[i]->o.meta.deleted)
                        add_delete(w, &kube_resource_claim_templates, &w->in->rcts[i]->o.meta);
}

static void plan_living(struct work *w) {
        const struct plan_input *in = w->in;
        const struct compute_domain *cd = in->cd;
        struct verdict_problem problem = { 0 };
        if (!cd->channel || !cd->channel->template_name || !*cd->channel->template_name) {
                problem = (struct verdict_problem){ "InvalidSpec",
                                                    "spec.channel.resourceClaimTemplate.name is missing, so "
                                                    "there is nothing to make; delete the "
                                                    "ComputeDomain and create it with a complete spec" };
                want_problem_status(w, &problem);
                return;
        }
        struct mode_traces traces = traces_of(in);
        if (mode_is_other(in->mode, cd->mode, traces)) {
                const char *formed_in = mode_other_name(in->mode, cd->mode, traces);
                struct verdict v;
                /* The Go driver's: written down, for the kubelet plugins to read, and because its templates
                 * may go. */
                if (!cd->mode)
                        record_mode(w, formed_in);
                verdict_make_other(cd, in->mode, formed_in, in->conditions, in->now, w->a, &v);
                want_status(w, &(struct formation){ 0 }, &v);
                return;
        }
        if (!has_finalizer(cd) || !streq(cd->mode, in->mode->name))
                record_mode(w, in->mode->name);
        if (cd->mode && !streq(cd->mode, in->mode->name))
                return; /* of an exported manifest: corrected before there is anything that would make it
                           believed */
        if (mode_assigns_channels(in->mode) && streq(cd->channel->allocation_mode, "All")) {
                problem = (struct verdict_problem){
                        "InvalidSpec",
                        "spec.channel.allocationMode All would give a pod the channels of all "
                        "ComputeDomains, and each has one of its own here "
                        "(imex.isolation=channel); delete the ComputeDomain and create it with "
                        "Single"
                };
                want_problem_status(w, &problem);
                return;
        }
        plan_by_mode(w, &problem);
}

/* Deleted, and held by another controller: nobody new gets in, and IMEX runs where claims are. */
static void plan_held(struct work *w) {
        const struct compute_domain *cd = w->in->cd;
        close_door(w);
        if (!has_finalizer(cd) || !cd->channel)
                return;
        struct verdict_problem problem = {
                "DeletionWaiting",
                message_of(w->a,
                           "Waiting for other controllers to remove their finalizers: %s. New pods are "
                           "refused; IMEX runs until the claims of this ComputeDomain are gone",
                           foreign_finalizers(w, cd->finalizers, cd->n_finalizers))
        };
        if (mode_is_other(w->in->mode, cd->mode, traces_of(w->in)))
                want_problem_status(w, &problem);
        else
                plan_by_mode(w, &problem);
}

/* ---- a domain that ends ---- */

static const char *name_pods(const struct plan_input *in, struct arena *a) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < in->n_pods && i < 5; i++)
                buf_addf(&b, "%s%s on %s", i ? ", " : "", in->pods[i]->o.meta.name,
                         str_or(in->pods[i]->node, "no node yet"));
        if (in->n_pods > 5)
                buf_addf(&b, " and %zu more", in->n_pods - 5);
        return arena_strdup(a, buf_str(&b));
}

/* The DaemonSet ends its pods as the labels go; without it nobody does. */
static void end_orphans(struct work *w) {
        for (size_t i = 0; !w->in->n_sets && i < w->in->n_pods; i++)
                if (!w->in->pods[i]->o.meta.deleted)
                        add_delete(w, &kube_pods, &w->in->pods[i]->o.meta);
}

/* A pod that has ended goes when its kubelet says so. A kubelet that never does (it was restarted while the
 * pod ended) would leave it for ever, so it is taken away when its containers have ended and its claim is
 * unprepared: nothing of it is left then but the object. In exactly the version in which that is so. */
static bool remove_ended(struct work *w) {
        const struct plan_input *in = w->in;
        for (size_t i = 0; i < in->n_ended; i++) {
                const struct plan_ended *x = &in->ended[i];
                int64_t left_s = x->pod->o.meta.deleted + PLAN_ENDED_S - in->now;
                if (!x->pod->o.meta.deleted)
                        add_delete_pod(w, &x->pod->o.meta, false);
                else if (left_s > 0 || x->claimed)
                        recheck(w, left_s > 0 ? left_s : PLAN_ENDED_S);
                else if (in->stale)
                        w->out->held = true;
                else
                        add_delete_pod(w, &x->pod->o.meta, true);
        }
        return in->n_ended;
}

static bool remove_daemon_objects(struct work *w) {
        bool left = false;
        for (size_t i = 0; i < w->in->n_sets; i++)
                left = remove_object(w, &kube_daemonsets, &w->in->sets[i]->o.meta, w->in->sets[i]->finalizers,
                                     w->in->sets[i]->n_finalizers);
        for (size_t i = 0; i < w->in->n_rcts; i++)
                if (!is_workload(w->in->rcts[i]))
                        left = remove_object(w, &kube_resource_claim_templates, &w->in->rcts[i]->o.meta,
                                             w->in->rcts[i]->finalizers, w->in->rcts[i]->n_finalizers);
        for (size_t i = 0; i < w->in->formation.n_cliques; i++) {
                left = true;
                if (!w->in->formation.cliques[i]->o.meta.deleted)
                        add_delete(w, &kube_cliques, &w->in->formation.cliques[i]->o.meta);
        }
        return left;
}

static bool release_workload_rcts(struct work *w) {
        bool left = false;
        for (size_t i = 0; i < w->in->n_rcts; i++) {
                const struct rct *r = w->in->rcts[i];
                if (!is_workload(r))
                        continue;
                left = true;
                if (r->o.meta.deleted && has_string(r->finalizers, r->n_finalizers, CD_FINALIZER))
                        add_release(w, &kube_resource_claim_templates, &r->o.meta, r->finalizers,
                                    r->n_finalizers);
        }
        return left;
}

/* An object without a spec takes no status under the schema of today. */
static void tell_waiting(struct work *w, const char *what) {
        struct verdict_problem problem = { "DeletionWaiting", what };
        if (w->in->cd && w->in->cd->channel)
                want_problem_status(w, &problem);
}

/* A domain that a cache does not show may be one that it does not show yet. */
static bool gone_for_certain(struct work *w) {
        const struct plan_input *in = w->in;
        if (in->cd)
                return true;
        if (!in->n_sets && !in->n_rcts && !in->n_pods && !in->n_ended && !in->formation.n_cliques &&
            !in->n_labelled)
                w->out->nothing_left = true;
        else if (in->stale)
                w->out->held = true;
        else if (!in->gone_confirmed)
                w->out->ask_domain = true;
        else
                return true;
        return false;
}

static void plan_ending(struct work *w) {
        const struct plan_input *in = w->in;
        int64_t left_s = in->ending_since + PLAN_DAEMONS_END_S - in->now;
        if (!gone_for_certain(w))
                return;
        close_door(w);
        bool ended_left = remove_ended(w);
        end_orphans(w);
        if (in->n_pods && left_s > 0) {
                recheck(w, left_s);
                tell_waiting(w, message_of(w->a, "Waiting for daemon Pods to end: %s", name_pods(in, w->a)));
                return;
        }
        if (in->n_places && left_s > 0) {
                recheck(w, left_s);
                tell_waiting(w, message_of(w->a, "Waiting for IMEX to end on %s", in->places));
                return;
        }
        if (in->n_labelled) {
                tell_waiting(w, message_of(w->a, "Waiting for the label to go from %zu nodes%s%.500s",
                                           in->n_labelled, in->label_error ? ": " : "",
                                           str_or(in->label_error, "")));
                return;
        }
        if (remove_daemon_objects(w) || release_workload_rcts(w))
                return;
        if (ended_left && (!in->cd || left_s > 0)) {
                recheck(w, left_s > 0 ? left_s : PLAN_ENDED_S);
                return;
        }
        /* That nothing is left is what a cache does not show. */
        if (in->stale) {
                w->out->held = true;
                tell_waiting(w, message_of(w->a, "Waiting to know that nothing is left: %.500s", in->stale));
                return;
        }
        w->out->nothing_left = !in->cd;
        if (in->cd && has_finalizer(in->cd) && in->cd->channel) {
                add_release(w, &kube_compute_domains, &in->cd->o.meta, in->cd->finalizers,
                            in->cd->n_finalizers);
        } else if (in->cd && has_finalizer(in->cd)) {
                struct buf b = BUF_INIT(MAX_BODY);
                objects_release_specless(in->cd, &b);
                add(w, KUBE_MERGE_PATCH, &kube_compute_domains, in->cd->o.meta.ns, in->cd->o.meta.name, &b);
        }
}

void plan_make(struct plan_input *in, struct arena *a, struct plan *ret) {
        struct buf name = BUF_INIT(512);
        *ret = (struct plan){ 0 };
        objects_daemon_name(in->uid, &name);
        struct work w = { .in = in, .a = a, .out = ret, .daemon_name = take_text(a, &name).p };
        in->formation.cd = in->cd;
        in->formation.now = in->now;
        in->formation.stale = in->stale;
        find_sets(&w);
        if (in->cd && !in->cd->o.meta.deleted)
                plan_living(&w);
        else if (in->cd && !domain_ends(in->cd))
                plan_held(&w);
        else
                plan_ending(&w);
}
