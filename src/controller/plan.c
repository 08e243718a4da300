/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/plan.h"

#include <string.h>

#include "api/names.h"
#include "api/opaque.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/stderr.h"
#include "rules/message.h"
#include "rules/racks.h"
#include "rules/rules.h"
#include "rules/shared_claim.h"

enum { MAX_BODY = 4 << 20 };

struct work {
        const struct plan_input *in;
        struct arena *a;
        struct plan *out;
        size_t cap;
        const struct rct *changed; /* a claim template that differs from what the driver wrote; NULL: none */
        struct cd_condition shared_claim; /* the condition SharedClaimAvailable; type NULL: none */
};

static struct str plan_take_text(struct arena *a, struct buf *b) {
        struct str s = { arena_strndup(a, buf_str(b), b->n), b->n };
        buf_done(b);
        return s;
}

/* A body that exceeds its limit is not written, and plan.too_large names the object. */
static struct plan_action *plan_add(struct work *w, enum kube_verb verb, const struct kube_resource *res,
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
        if (res == &kube_resource_claim_templates)
                x->answer = PLAN_ANSWER_TEMPLATE;
        if (body)
                x->body = plan_take_text(w->a, body);
        return x;
}

static void add_delete(struct work *w, const struct kube_resource *res, const struct kube_meta *m) {
        struct buf b = BUF_INIT(MAX_BODY);
        objects_delete(m, NULL, &b);
        plan_add(w, KUBE_DELETE, res, m->ns, m->name, &b);
}

static void add_release(struct work *w, const struct kube_resource *res, const struct kube_meta *m,
                        const char *const *list, size_t n) {
        struct buf b = BUF_INIT(MAX_BODY);
        objects_release(m, list, n, &b);
        plan_add(w, KUBE_MERGE_PATCH, res, m->ns, m->name, &b);
}

/* Removes one of the driver's objects: deletes it, then removes the finalizer. Returns true, because the
 * object still exists. */
static bool plan_remove_object(struct work *w, const struct kube_resource *res, const struct kube_meta *m,
                               const char *const *finalizers, size_t n) {
        if (!m->deleted)
                add_delete(w, res, m);
        else if (has_string(finalizers, n, CD_FINALIZER))
                add_release(w, res, m, finalizers, n);
        return true;
}

static void plan_recheck(struct work *w, int64_t seconds) {
        if (!w->out->recheck_s || seconds < w->out->recheck_s)
                w->out->recheck_s = seconds;
}

/* ---- the workload's claim template ---- */

static const struct rct *find_rct(const struct plan_input *in, const char *ns, const char *name) {
        for (size_t i = 0; i < in->n_rcts; i++)
                if (streq(in->rcts[i]->o.meta.ns, ns) && streq(in->rcts[i]->o.meta.name, name))
                        return in->rcts[i];
        return NULL;
}

/* The spec of a claim template is immutable, so a wrong one is recreated, unless the result would be the
 * same. Until the ComputeDomain states its mode, the template may be the right one: the cache can lack the
 * mode that another leader has recorded with the template. */
static void want_rct(struct work *w, const struct rct *r, const char *ns, const char *name,
                     const struct objects_channel *channel) {
        const struct plan_input *in = w->in;
        struct buf b = BUF_INIT(MAX_BODY);
        if (!r) {
                objects_rct(in->settings->resource_api, ns, name, &in->cd->o.meta, channel, &b);
                plan_add(w, KUBE_CREATE, &kube_resource_claim_templates, ns, name, &b);
                return;
        }
        bool changed = objects_rct_is_changed(r, in->uid, channel);
        if (changed)
                w->changed = r;
        bool wrong = !changed && !objects_rct_matches(r, in->uid, channel);
        if (r->o.meta.deleted || (wrong && in->cd->mode)) {
                plan_remove_object(w, &kube_resource_claim_templates, &r->o.meta, r->finalizers,
                                   r->n_finalizers);
        } else if (!wrong && (!streq(r->domain_uid, in->uid) || !streq(r->target, CD_TARGET_WORKLOAD) ||
                              !has_string(r->finalizers, r->n_finalizers, CD_FINALIZER))) {
                objects_rct_repair(r, in->uid, &b);
                plan_add(w, KUBE_MERGE_PATCH, &kube_resource_claim_templates, ns, name, &b);
        }
}

/* The finalizers of other controllers, for people; "": none. */
static const char *foreign_finalizers(const struct work *w, const char *const *finalizers, size_t n) {
        struct message_list names = { 0 };
        for (size_t i = 0; i < n; i++)
                if (domain_finalizer_is_foreign(finalizers[i]))
                        message_add(&names, "%s", finalizers[i]);
        return message_end(&names, w->a);
}

/* The template is recreated when it no longer exists. The finalizer of another controller may delay that
 * without limit. */
static void report_terminating(struct work *w, const struct rct *r, struct verdict_problem *problem) {
        const char *names = foreign_finalizers(w, r->finalizers, r->n_finalizers);
        if (*names)
                *problem = (struct verdict_problem){
                        REASON_TEMPLATE_TERMINATING,
                        message_of(
                                w->a,
                                "ResourceClaimTemplate %s/%s is being deleted. The driver recreates it when "
                                "other controllers have removed their finalizers: %s",
                                r->o.meta.ns, r->o.meta.name, names)
                };
}

/* Creates or corrects the claim template, unless the ComputeDomain is deleted. A template of another owner
 * with the name is a problem. It is never taken over, because pods may use it. Returns true when the right
 * template exists. */
static bool want_workload_rct(struct work *w, bool shared, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        if (in->cd->o.meta.deleted)
                return false;
        const char *ns = in->cd->o.meta.ns;
        const char *name = shared ? in->cd->channel->shared_template_name : in->cd->channel->template_name;
        const struct rct *holder = shared ? in->shared_holder : in->holder;
        struct objects_channel channel = {
                .mode = "Single",
                .rack = !shared && racks_is_domain(in->cd) ? in->cd->rack : NULL,
                .own = mode_assigns_channels(in->mode),
                .shared = shared,
        };
        const struct rct *r = find_rct(in, ns, name);
        /* In host-managed mode the Go driver writes Single whatever the ComputeDomain requests. Such a
         * template stays, because pods use it. */
        bool stays = !mode_forms_domains(in->mode) && r && objects_rct_matches(r, in->uid, &channel);
        if (!stays)
                channel.mode = str_or(in->cd->channel->allocation_mode, "Single");
        bool ours = !holder || streq(holder->domain_uid, in->uid) ||
                    (!holder->domain_uid && objects_rct_matches(holder, in->uid, &channel));
        if (!r && holder && ours)
                r = holder;
        /* The watch shows the end of another ComputeDomain's template. A template without the label ends
         * unseen, so the driver keeps trying to create its own, with back-off. */
        bool unwatched = r && r->o.meta.deleted && !r->domain_uid &&
                         !has_string(r->finalizers, r->n_finalizers, CD_FINALIZER);
        if (r || ours || !holder->domain_uid)
                want_rct(w, unwatched ? NULL : r, ns, name, &channel);
        if (ours && r && r->o.meta.deleted)
                report_terminating(w, r, problem);
        if (!ours)
                *problem = (struct verdict_problem){
                        REASON_TEMPLATE_NAME_TAKEN,
                        message_of(w->a,
                                   "ResourceClaimTemplate %s/%s already exists and belongs to %s, so pods "
                                   "cannot join this ComputeDomain with it",
                                   ns, name, holder->domain_uid ? "another ComputeDomain" : "another owner")
                };
        return ours && r && !r->o.meta.deleted && objects_rct_matches(r, in->uid, &channel);
}

/* ---- the claim that pods on several nodes share ---- */

static const struct claim_record *own_claim(const struct plan_input *in) {
        for (size_t i = 0; i < in->n_claims; i++)
                if (streq(in->claims[i]->o.meta.name, in->cd->channel->claim_name) &&
                    streq(in->claims[i]->o.meta.ns, in->cd->o.meta.ns))
                        return in->claims[i];
        return NULL;
}

static void claim_condition(struct work *w, bool is, const char *reason, const char *message) {
        w->shared_claim =
                (struct cd_condition){ .type = CONDITION_SHARED_CLAIM_AVAILABLE,
                                       .status = condition_status_name(is ? STATUS_TRUE : STATUS_FALSE),
                                       .reason = reason,
                                       .message = message };
}

static void create_claim(struct work *w) {
        const struct compute_domain *cd = w->in->cd;
        struct buf b = BUF_INIT(MAX_BODY);
        objects_shared_claim(cd->channel->claim_name, &cd->o.meta, &b);
        struct plan_action *x =
                plan_add(w, KUBE_CREATE, &kube_resource_claims, cd->o.meta.ns, cd->channel->claim_name, &b);
        x->answer = PLAN_ANSWER_CLAIM;
        /* The garbage collector deletes it if the ComputeDomain was deleted, and the cache is stale. */
        x->when = PLAN_SPACED;
}

/* The spec of a claim is immutable, and pods may use it, so an existing claim stays as it is. */
static void want_named_claim(struct work *w, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        const char *ns = in->cd->o.meta.ns, *name = in->cd->channel->claim_name;
        const struct claim_record *r = own_claim(in);
        if (!r && !in->cd->o.meta.deleted && !in->claim_watched)
                create_claim(w);
        const struct plan_claim_holder *other = r ? NULL : in->claim_holder;
        if (other && !other->terminating) {
                const char *why =
                        message_of(w->a,
                                   "ResourceClaim %s/%s already exists, and the driver did not create "
                                   "it for this ComputeDomain, so pods cannot use it",
                                   ns, name);
                claim_condition(w, false, REASON_CLAIM_NAME_TAKEN, why);
                *problem = (struct verdict_problem){ REASON_CLAIM_NAME_TAKEN, why };
        } else if (!r && !other) {
                claim_condition(w, false, REASON_SHARED_CLAIM_PENDING,
                                message_of(w->a, "ResourceClaim %s/%s does not exist yet", ns, name));
        } else if (other || r->o.meta.deleted) {
                const struct claim_shared *s = r ? r->shared : NULL;
                claim_condition(w, false, REASON_CLAIM_TERMINATING,
                                other ? other->terminating
                                      : shared_claim_terminating(ns, name, s ? s->finalizers : NULL,
                                                                 s ? s->n_finalizers : 0, w->a));
        } else if (r->full) {
                claim_condition(
                        w, false, REASON_CLAIM_FULL,
                        message_of(w->a,
                                   "%d pods use ResourceClaim %s/%s, which is the limit of Kubernetes. "
                                   "The next pod waits until one of them has ended. A PodGroup that "
                                   "names the claim counts as one",
                                   CLAIM_PODS_MAX, ns, name));
        } else {
                claim_condition(
                        w, true, REASON_SHARED_CLAIM_CREATED,
                        message_of(w->a, "Pods on several nodes can use ResourceClaim %s/%s", ns, name));
        }
}

/* Without the device, claims would stay unallocated without a reason. */
static void want_shared_claim(struct work *w, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        const char *reason, *message;
        if (!domain_shares(in->cd))
                return;
        if (in->shared_device == SHARED_DEVICE_REFUSED)
                claim_condition(w, false, REASON_SHARED_CLAIMS_NOT_SUPPORTED,
                                "The API server does not support a device for any number of claims. Pods "
                                "cannot share a claim. This needs Kubernetes 1.36 or newer with the feature "
                                "gate DRAConsumableCapacity");
        else if (in->shared_device == SHARED_DEVICE_PENDING)
                claim_condition(w, false, REASON_SHARED_CLAIM_PENDING,
                                message_of(w->a,
                                           "The driver's ResourceSlice " CD_SLICE_SHARED
                                           " does not exist yet%s%.500s",
                                           in->shared_error ? ": " : "", str_or(in->shared_error, "")));
        else if (in->cd->channel->claim_name)
                want_named_claim(w, problem);
        else
                claim_condition(w, true, REASON_SHARED_CLAIM_CREATED,
                                message_of(w->a,
                                           "Pods and PodGroups can create shared claims from "
                                           "ResourceClaimTemplate %s/%s",
                                           in->cd->o.meta.ns, in->cd->channel->shared_template_name));
        if (streq(w->shared_claim.reason, REASON_SHARED_CLAIM_CREATED) &&
            !shared_claim_is_reachable(in->cd, in->shared_reach, &reason, &message))
                claim_condition(w, false, reason, message);
}

/* Such a PodGroup stays Pending if it needs several nodes, so this hides that the shared claim is usable, but
 * no other reason. Of several claims, the message names the one that sorts first. A new leader keeps the
 * condition until it knows the PodGroups. */
static void report_grouped(struct work *w) {
        const struct plan_input *in = w->in;
        const struct plan_grouped *first = NULL;
        const struct cd_condition *was = shared_claim_condition(in->cd);
        if (w->shared_claim.type && !streq(w->shared_claim.reason, REASON_SHARED_CLAIM_CREATED))
                return;
        for (size_t i = 0; i < in->n_grouped; i++)
                if (!first || strcmp(in->grouped[i].claim, first->claim) < 0)
                        first = &in->grouped[i];
        if (first)
                claim_condition(w, false, REASON_GROUP_ON_ONE_NODE,
                                shared_claim_on_one_node(in->cd, first->claim, first->group,
                                                         mode_assigns_channels(in->mode), w->a));
        else if (in->groups_pending && was && streq(was->reason, REASON_GROUP_ON_ONE_NODE))
                claim_condition(w, false, REASON_GROUP_ON_ONE_NODE, was->message);
}

/* ---- a ComputeDomain that does not end ---- */

static struct verdict_input verdict_input(const struct work *w, const struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        return (struct verdict_input){ .cd = in->cd,
                                       .problem = *problem,
                                       .shortage = in->shortage,
                                       .shared_claim = w->shared_claim.type ? &w->shared_claim : NULL,
                                       .conditions = in->conditions,
                                       .now = in->now };
}

static void want_status(struct work *w, const struct membership *all, const struct verdict *v) {
        const struct plan_input *in = w->in;
        int64_t deleted = in->cd->o.meta.deleted;
        /* Daemons need a moment to stop, and so do other controllers. */
        if (deleted && in->now < deleted + PLAN_REPORT_AFTER_S) {
                plan_recheck(w, deleted + PLAN_REPORT_AFTER_S - in->now);
                return;
        }
        struct verdict wrong;
        w->out->broken = verdict_check(v, w->a);
        if (w->out->broken) {
                struct verdict_input decided = verdict_input(w, &(struct verdict_problem){ 0 });
                verdict_make_wrong(&decided, w->out->broken, w->a, &wrong);
                v = &wrong;
        }
        if (!v->changed)
                return;
        struct buf b = BUF_INIT(MAX_BODY);
        objects_status(in->cd, v, &b);
        struct plan_action *x = plan_add(w, KUBE_MERGE_PATCH, &kube_compute_domains, in->cd->o.meta.ns,
                                         in->cd->o.meta.name, &b);
        x->subresource = "status";
        x->when = PLAN_LATER;
        x->answer = PLAN_ANSWER_STATUS;
        w->out->n_events = verdict_events(in->cd, all, v, w->a, &w->out->events);
}

static void want_daemons_status(struct work *w, const struct membership *all,
                                const struct verdict_problem *problem) {
        struct verdict v;
        struct verdict_input in = verdict_input(w, problem);
        verdict_make(&in, all, w->a, &v);
        w->out->counts = node_counts_daemons(all, v.peers_missing);
        w->out->counted = true;
        want_status(w, all, &v);
}

static void want_host_status(struct work *w, const struct verdict_problem *problem) {
        struct verdict v;
        struct verdict_input in = verdict_input(w, problem);
        struct verdict_hosts hosts = { w->in->hosts,    w->in->n_hosts,    mode_runs_daemons(w->in->mode),
                                       w->in->channels, w->in->n_channels, w->in->hosts_unknown };
        verdict_make_host(&in, &hosts, w->a, &v);
        w->out->counts = node_counts_hosts(w->in->hosts, w->in->n_hosts);
        w->out->counted = true;
        want_status(w, &(struct membership){ 0 }, &v);
}

/* Chooses the status by the controller's own mode. */
static void want_problem_status(struct work *w, const struct verdict_problem *problem) {
        if (mode_forms_domains(w->in->mode))
                want_daemons_status(w, &(struct membership){ 0 }, problem);
        else
                want_host_status(w, problem);
}

static bool has_finalizer(const struct compute_domain *cd) {
        return has_string(cd->finalizers, cd->n_finalizers, CD_FINALIZER);
}

static bool is_workload(const struct rct *r) {
        return !streq(r->target, CD_TARGET_DAEMON);
}

/* Whether the Go driver formed the ComputeDomain, as in controller/go_domains. */
static bool is_go(const struct plan_input *in) {
        bool is = in->n_sets || in->n_pods;
        for (size_t i = 0; i < in->n_rcts; i++)
                is = is || !is_workload(in->rcts[i]);
        return is;
}

static struct mode_traces traces_of(const struct plan_input *in) {
        struct mode_traces t = mode_traces_of(in->cd);
        for (size_t i = 0; i < in->n_rcts; i++)
                mode_traces_add(&t, in->rcts[i]);
        t.daemon_template = is_go(in);
        return t;
}

static void report_changed(const struct work *w, struct verdict_problem *problem) {
        if (problem->reason || !w->changed)
                return;
        *problem = (struct verdict_problem){
                REASON_TEMPLATE_CHANGED,
                message_of(w->a,
                           "ResourceClaimTemplate %s/%s differs from what the driver writes: an admission "
                           "webhook or policy of the cluster changes it, so pods may get no channel. Exempt "
                           "ResourceClaimTemplates with the label " CD_LABEL
                           " from it, then delete this claim template",
                           w->changed->o.meta.ns, w->changed->o.meta.name)
        };
}

/* Deletes the daemons of a DaemonSet that no longer exists. An existing DaemonSet ends its Pods when the
 * labels are removed. */
static void end_orphans(struct work *w) {
        for (size_t i = 0; !w->in->n_sets && i < w->in->n_pods; i++)
                if (!w->in->pods[i]->o.meta.deleted)
                        add_delete(w, &kube_pods, &w->in->pods[i]->o.meta);
}

/* Removes the objects that the Go driver left. Returns true while one exists that the ComputeDomain waits
 * for. A clique of a ComputeDomain that the Go driver did not form is not waited for: each daemon of the Go
 * driver can write one, with a finalizer that nobody removes. */
static bool remove_go_objects(struct work *w) {
        const struct plan_input *in = w->in;
        bool left = in->n_cliques && is_go(in);
        for (size_t i = 0; i < in->n_sets; i++)
                left = plan_remove_object(w, &kube_daemonsets, &in->sets[i]->o.meta, in->sets[i]->finalizers,
                                          in->sets[i]->n_finalizers);
        for (size_t i = 0; i < in->n_rcts; i++)
                if (!is_workload(in->rcts[i]))
                        left = plan_remove_object(w, &kube_resource_claim_templates, &in->rcts[i]->o.meta,
                                                  in->rcts[i]->finalizers, in->rcts[i]->n_finalizers);
        for (size_t i = 0; i < in->n_cliques; i++)
                if (!in->cliques[i]->o.meta.deleted)
                        add_delete(w, &kube_cliques, &in->cliques[i]->o.meta);
        return left;
}

/* No daemon of the Go driver can run any more. */
static bool is_go_over(const struct plan_input *in) {
        bool over = !in->n_pods;
        for (size_t i = 0; i < in->n_sets; i++)
                over = over && in->sets[i]->o.meta.deleted;
        return over;
}

/* Deletes the Go driver's objects when no Node has the label of the ComputeDomain. From then on it is a
 * ComputeDomain of this driver. The label stays while the node has a claim of the ComputeDomain. Claims on
 * other nodes wait for this step and do not delay it. The mode must be recorded first: without the mode and
 * without these objects, the ComputeDomain would look as if it was formed in host-managed mode. */
static void end_go(struct work *w) {
        const struct plan_input *in = w->in;
        if ((!is_go_over(in) && in->n_labelled) || !streq(in->cd->mode, in->mode->name))
                return;
        if (in->stale) {
                w->out->held = true;
        } else {
                end_orphans(w);
                if (!in->n_pods)
                        remove_go_objects(w);
        }
}

/* `missing` is the name of a claim template that does not exist; NULL: none. Returns false if there is
 * nothing to report yet: the first status waits for the template, so that it is true when it is written. */
static bool report_plan(struct work *w, const char *missing, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        report_grouped(w);
        report_changed(w, problem);
        if (!problem->reason && in->write_error)
                *problem = (struct verdict_problem){ REASON_WRITE_FAILED, in->write_error };
        if (problem->reason || !missing)
                return true;
        *problem = (struct verdict_problem){
                REASON_TEMPLATE_MISSING,
                message_of(w->a, "ResourceClaimTemplate %s/%s does not exist yet, or is being recreated",
                           in->cd->o.meta.ns, missing)
        };
        return in->cd->status;
}

/* Plans only the claim template and the status. controller/fabrics writes the assignments, and the daemons
 * run IMEX. */
static void plan_with_daemons(struct work *w, struct verdict_problem *problem) {
        const struct plan_input *in = w->in;
        struct membership all;
        bool exists = want_workload_rct(w, false, problem);
        if (is_go(in)) {
                const struct go_facts go = { in->cd, in->cliques, in->n_cliques, in->pods, in->n_pods };
                membership_make_go(&go, w->a, &all);
        } else {
                membership_make(in->members, in->n_members, w->a, &all);
        }
        if (is_go(in) || in->n_cliques)
                end_go(w);
        if (report_plan(w, exists ? NULL : in->cd->channel->template_name, problem))
                want_daemons_status(w, &all, problem);
}

/* Plans the claim template and the status if IMEX runs before any ComputeDomain uses it (host-managed, or
 * isolation `channel`). */
static void plan_without_daemons(struct work *w, struct verdict_problem *problem) {
        const struct cd_channel *channel = w->in->cd->channel;
        const char *missing = NULL;
        if (channel->template_name && !want_workload_rct(w, false, problem))
                missing = channel->template_name;
        if (channel->shared_template_name && !want_workload_rct(w, true, problem))
                missing = channel->shared_template_name;
        want_shared_claim(w, problem);
        if (report_plan(w, missing, problem))
                want_host_status(w, problem);
}

/* Writes finalizer and mode in one patch. */
static void record_mode(struct work *w, const char *mode) {
        const struct compute_domain *cd = w->in->cd;
        struct buf b = BUF_INIT(MAX_BODY);
        objects_adopt(cd, mode, &b);
        plan_add(w, KUBE_MERGE_PATCH, &kube_compute_domains, cd->o.meta.ns, cd->o.meta.name, &b);
}

static void plan_by_mode(struct work *w, struct verdict_problem *problem) {
        if (mode_forms_domains(w->in->mode))
                plan_with_daemons(w, problem);
        else
                plan_without_daemons(w, problem);
}

/* Deletes the claim templates and the shared claim, so that no new pod can join. The claim stays until its
 * last pod has ended. The finalizer of a template keeps its name taken until all other objects are deleted,
 * so that a new ComputeDomain with the same template name starts without old state. */
static void close_door(struct work *w) {
        for (size_t i = 0; i < w->in->n_rcts; i++)
                if (is_workload(w->in->rcts[i]) && !w->in->rcts[i]->o.meta.deleted)
                        add_delete(w, &kube_resource_claim_templates, &w->in->rcts[i]->o.meta);
        for (size_t i = 0; i < w->in->n_claims; i++)
                if (!w->in->claims[i]->o.meta.deleted)
                        add_delete(w, &kube_resource_claims, &w->in->claims[i]->o.meta);
}

static void plan_living(struct work *w) {
        const struct plan_input *in = w->in;
        const struct compute_domain *cd = in->cd;
        struct verdict_problem problem = { 0 };
        if (!domain_shares(cd) &&
            (!cd->channel || !cd->channel->template_name || !*cd->channel->template_name)) {
                problem = (struct verdict_problem){ REASON_INVALID_SPEC,
                                                    "spec.channel.resourceClaimTemplate.name is missing, so "
                                                    "the driver cannot create a claim template. Delete the "
                                                    "ComputeDomain and create it with a complete spec" };
                want_problem_status(w, &problem);
                return;
        }
        struct mode_traces traces = traces_of(in);
        if (mode_is_other(in->mode, cd->mode, traces)) {
                const char *formed_in = mode_other_name(in->mode, cd->mode, traces);
                struct verdict v;
                /* The Go driver recorded no mode. Record it now, because the plugins read it, and because
                 * the templates that show it may be deleted. */
                if (!cd->mode)
                        record_mode(w, formed_in);
                struct verdict_input input = verdict_input(w, &problem);
                verdict_make_other(&input, in->mode, formed_in, w->a, &v);
                want_status(w, &(struct membership){ 0 }, &v);
                return;
        }
        if (!has_finalizer(cd) || !streq(cd->mode, in->mode->name))
                record_mode(w, in->mode->name);
        if (in->shortage_recheck_s)
                plan_recheck(w, in->shortage_recheck_s);
        if (cd->mode && !streq(cd->mode, in->mode->name))
                return; /* The mode comes from an exported manifest. It is corrected before any object exists
                           that would confirm it. */
        if (mode_assigns_channels(in->mode) &&
            opaque_allocation_mode(cd->channel->allocation_mode) == ALLOCATION_ALL) {
                problem = (struct verdict_problem){
                        REASON_INVALID_SPEC,
                        "spec.channel.allocationMode All would give a pod the channels of all "
                        "ComputeDomains, but with imex.isolation=channel each ComputeDomain has its own "
                        "channel. Delete the ComputeDomain and create it with Single"
                };
                want_problem_status(w, &problem);
                return;
        }
        if (!mode_assigns_channels(in->mode) && domain_shares(cd)) {
                problem = (struct verdict_problem){
                        REASON_INVALID_SPEC,
                        "spec.channel.resourceClaim and spec.channel.sharedResourceClaimTemplate need "
                        "imex.isolation=channel: with imex.isolation=domain, a claim belongs to one node. "
                        "Delete the ComputeDomain and create it with resourceClaimTemplate alone"
                };
                want_problem_status(w, &problem);
                return;
        }
        plan_by_mode(w, &problem);
}

/* The ComputeDomain is deleted, and another controller's finalizer keeps it. No new pod can join, and IMEX
 * runs where claims exist. */
static void plan_held(struct work *w) {
        const struct compute_domain *cd = w->in->cd;
        close_door(w);
        if (!has_finalizer(cd) || !cd->channel)
                return;
        struct verdict_problem problem = {
                REASON_DELETION_WAITING,
                message_of(w->a,
                           "Waiting for other controllers to remove their finalizers: %s. New pods are "
                           "rejected. IMEX runs until all claims of this ComputeDomain are deleted",
                           foreign_finalizers(w, cd->finalizers, cd->n_finalizers))
        };
        if (mode_is_other(w->in->mode, cd->mode, traces_of(w->in)))
                want_problem_status(w, &problem);
        else
                plan_by_mode(w, &problem);
}

/* ---- a ComputeDomain that ends ---- */

static const char *name_pods(const struct plan_input *in, struct arena *a) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        for (size_t i = 0; i < in->n_pods && i < 5; i++)
                buf_addf(&b, "%s%s on %s", i ? ", " : "", in->pods[i]->o.meta.name,
                         str_or(in->pods[i]->node, "no node yet"));
        if (in->n_pods > 5)
                buf_addf(&b, " and %zu more", in->n_pods - 5);
        return arena_strdup(a, buf_str(&b));
}

/* A claim that is being deleted accepts no new pods, and ends with its last pod. The ComputeDomain does not
 * wait for that pod. It waits until the controller has removed its finalizer from an unused claim, because a
 * user may uninstall the driver next. The garbage collector deletes a claim that the cache does not show yet.
 */
static bool is_open_claim(const struct claim_record *r) {
        return !r->o.meta.deleted ||
               (r->shared && !r->shared->n_consumers &&
                has_string(r->shared->finalizers, r->shared->n_finalizers, CD_FINALIZER));
}

static bool has_open_claims(const struct work *w) {
        for (size_t i = 0; i < w->in->n_claims; i++)
                if (is_open_claim(w->in->claims[i]))
                        return true;
        return false;
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

/* The present schema accepts no status of an object without a spec. */
static void report_waiting(struct work *w, const char *what) {
        struct verdict_problem problem = { REASON_DELETION_WAITING, what };
        if (w->in->cd && w->in->cd->channel)
                want_problem_status(w, &problem);
}

/* ---- objects that are left, for people ---- */

struct left {
        struct work *w;
        struct message_list names;
        bool held;     /* another controller's finalizer keeps an object */
        int64_t since; /* the first deletion of an object without the driver's finalizer; 0: none */
};

static void name_left(struct left *l, const struct kube_resource *res, const struct kube_meta *m,
                      const char *const *finalizers, size_t n) {
        const char *foreign = foreign_finalizers(l->w, finalizers, n);
        l->held = l->held || *foreign;
        if (m->deleted && !has_string(finalizers, n, CD_FINALIZER) && (!l->since || m->deleted < l->since))
                l->since = m->deleted;
        message_add(&l->names, "%s %s/%s%s%s%s", res->kind, m->ns, m->name, *foreign ? " (finalizers: " : "",
                    foreign, *foreign ? ")" : "");
}

static void name_all_left(struct left *l) {
        const struct plan_input *in = l->w->in;
        for (size_t i = 0; i < in->n_sets; i++)
                name_left(l, &kube_daemonsets, &in->sets[i]->o.meta, in->sets[i]->finalizers,
                          in->sets[i]->n_finalizers);
        for (size_t i = 0; i < in->n_rcts; i++)
                name_left(l, &kube_resource_claim_templates, &in->rcts[i]->o.meta, in->rcts[i]->finalizers,
                          in->rcts[i]->n_finalizers);
        for (size_t i = 0; i < in->n_cliques; i++)
                name_left(l, &kube_cliques, &in->cliques[i]->o.meta, NULL, 0);
        for (size_t i = 0; i < in->n_claims; i++)
                if (is_open_claim(in->claims[i]))
                        name_left(l, &kube_resource_claims, &in->claims[i]->o.meta, NULL, 0);
}

/* Reports them at once if the cause is known. Otherwise they may disappear within seconds. */
static void report_left(struct work *w) {
        const struct plan_input *in = w->in;
        struct left l = { .w = w };
        name_all_left(&l);
        const char *names = message_end(&l.names, w->a), *why = NULL;
        int64_t left_s = l.since + PLAN_STANDSTILL_S - in->now;
        if (in->write_error)
                why = message_of(w->a, "The last attempt failed: %.500s", in->write_error);
        else if (l.held)
                why = "Other controllers must remove their finalizers";
        else if (l.since && left_s > 0)
                plan_recheck(w, left_s);
        else if (l.since)
                why = "kubectl get -o yaml shows the finalizers that keep them";
        if (why)
                report_waiting(w, message_of(w->a, "Waiting for objects to be deleted: %s. %s", names, why));
}

/* A cache that does not show a ComputeDomain may not show it yet, so the API server is asked. */
static bool gone_for_certain(struct work *w) {
        const struct plan_input *in = w->in;
        if (in->cd)
                return true;
        if (!in->n_sets && !in->n_rcts && !in->n_pods && !in->n_cliques && !in->n_labelled)
                w->out->nothing_left = true;
        else if (in->stale)
                w->out->held = true;
        else if (!in->deletion_confirmed)
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
        end_orphans(w);
        if (in->n_pods && left_s > 0) {
                plan_recheck(w, left_s);
                report_waiting(w,
                               message_of(w->a, "Waiting for daemon Pods to end: %s", name_pods(in, w->a)));
                return;
        }
        if (in->n_assigned && left_s > 0) {
                plan_recheck(w, left_s);
                report_waiting(w, message_of(w->a, "Waiting for IMEX to stop on %s", in->assigned));
                return;
        }
        if (in->n_labelled) {
                report_waiting(w, message_of(w->a, "Waiting for the label to be removed from %s%s%.500s",
                                             in->labelled, in->label_error ? ": " : "",
                                             str_or(in->label_error, "")));
                return;
        }
        bool open = has_open_claims(w);
        if (remove_go_objects(w) || release_workload_rcts(w) || open) {
                report_left(w);
                return;
        }
        /* A stale cache may not show an object that is left. */
        if (in->stale) {
                w->out->held = true;
                report_waiting(w, message_of(w->a,
                                             "The controller cannot confirm that nothing is left, because a "
                                             "cache is stale: %.500s",
                                             in->stale));
                return;
        }
        w->out->nothing_left = !in->cd && !in->n_cliques;
        if (in->write_error)
                report_waiting(w, message_of(w->a,
                                             "Nothing is left, but the controller cannot remove its "
                                             "finalizer: %.500s",
                                             in->write_error));
        if (in->cd && has_finalizer(in->cd) && in->cd->channel) {
                add_release(w, &kube_compute_domains, &in->cd->o.meta, in->cd->finalizers,
                            in->cd->n_finalizers);
        } else if (in->cd && has_finalizer(in->cd)) {
                struct buf b = BUF_INIT(MAX_BODY);
                objects_release_specless(in->cd, &b);
                plan_add(w, KUBE_MERGE_PATCH, &kube_compute_domains, in->cd->o.meta.ns, in->cd->o.meta.name,
                         &b);
        }
}

void plan_make(const struct plan_input *in, struct arena *a, struct plan *ret) {
        BUG_ON(!in->uid || !in->mode || !in->settings || in->now <= 0);
        struct work w = { .in = in, .a = a, .out = ret };
        *ret = (struct plan){ 0 };
        if (in->cd && !in->cd->o.meta.deleted)
                plan_living(&w);
        else if (in->cd && !domain_ends(in->cd))
                plan_held(&w);
        else
                plan_ending(&w);
}
