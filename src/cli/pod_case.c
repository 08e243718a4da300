/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pod_case.h"

#include <string.h>

#include "api/names.h"

const char *pod_case_since(const struct diagnosis *d, int64_t time) {
        return time ? term_age(d->a, d->v->source->now - time) : "unknown";
}

/* ---- claim, template and ComputeDomain ---- */

static const struct compute_domain *domain_with_template(const struct view *v, const char *ns,
                                                         const char *template) {
        VIEW_EACH(v, VIEW_DOMAINS, struct compute_domain, cd)
        if (streq(cd->o.meta.ns, ns) && cd->channel &&
            (streq(cd->channel->template_name, template) ||
             streq(cd->channel->shared_template_name, template)))
                return cd;
        return NULL;
}

static const struct compute_domain *domain_with_claim(const struct view *v, const char *ns,
                                                      const char *claim) {
        VIEW_EACH(v, VIEW_DOMAINS, struct compute_domain, cd)
        if (streq(cd->o.meta.ns, ns) && cd->channel && streq(cd->channel->claim_name, claim))
                return cd;
        return NULL;
}

static bool template_is_for_channel(const struct rct *r) {
        for (size_t i = 0; i < r->n_requests; i++)
                if (streq(r->requests[i].device_class, CD_CLASS_CHANNEL))
                        return true;
        return r->domain_uid && streq(r->target, CD_TARGET_WORKLOAD);
}

static bool claim_is_for_channel(const struct claim_object *c) {
        for (size_t i = 0; i < c->n_asks; i++)
                if (streq(str_or(c->asks[i].device_class, c->asks[i].device_class_v1beta1), CD_CLASS_CHANNEL))
                        return true;
        return c->domain_uid;
}

/* Whether the claim is for the shared device. The names of the ComputeDomain decide only while neither the
 * claim nor the claim template exists. */
static bool is_for_shared(const struct pod_case *c) {
        for (size_t i = 0; c->claim && i < c->claim->n_asks; i++)
                if (streq(c->claim->asks[i].device_class, CD_CLASS_SHARED))
                        return true;
        for (size_t i = 0; !c->claim && c->template && i < c->template->n_requests; i++)
                if (streq(c->template->requests[i].device_class, CD_CLASS_SHARED))
                        return true;
        if (c->claim || c->template || !c->cd)
                return false;
        return !c->template_name || streq(c->cd->channel->shared_template_name, c->template_name);
}

static const char *domain_of_template(const struct diagnosis *d, const struct rct *r) {
        struct opaque_config config;
        struct err e;
        for (size_t i = 0; i < r->n_configs; i++)
                if (streq(r->configs[i].driver, CD_DRIVER) &&
                    opaque_decode(r->configs[i].parameters, false, d->a, &config, &e) == 0)
                        return config.domain_id;
        return r->domain_uid;
}

/* Looks at one claim in the spec. Returns 2 if it is for a channel, 1 if that is not known because its
 * template does not exist or may not be read, and 0 if it is for something else. */
static int look_at_claim(struct pod_case *c, const struct pod_claim *x) {
        const char *ns = c->pod->o.meta.ns;
        c->asks = x;
        c->template_name = x->template;
        c->claim = view_find(c->v, VIEW_CLAIMS, ns, pod_object_claim(c->pod, x));
        c->template = view_find(c->v, VIEW_TEMPLATES, ns, x->template);
        c->named = x->template ? NULL : domain_with_claim(c->v, ns, x->claim);
        c->cd = x->template ? domain_with_template(c->v, ns, x->template) : c->named;
        c->shared = is_for_shared(c);
        if (c->claim)
                return c->named || claim_is_for_channel(c->claim) ? 2 : 0;
        if (c->template)
                return template_is_for_channel(c->template) ? 2 : 0;
        return c->cd ? 2 : 1;
}

static void find_claim(struct pod_case *c) {
        struct pod_case best = *c;
        int found = 0;
        for (size_t i = 0; i < c->pod->n_claims; i++) {
                struct pod_case x = *c;
                int r = look_at_claim(&x, &c->pod->claims[i]);
                if (r > found) {
                        best = x;
                        found = r;
                }
        }
        *c = best;
}

static void find_case_domain(struct pod_case *c) {
        const struct kube_meta *m = &c->pod->o.meta;
        if (c->claim) {
                c->domain_uid = c->claim->domain_uid;
                c->cd_name = jd_pair_get(c->claim->claim.annotations, c->claim->claim.n_annotations,
                                         CD_ANNOTATION_NAME);
        }
        if (!c->domain_uid && c->template)
                c->domain_uid = domain_of_template(c->d, c->template);
        if (c->domain_uid)
                c->cd = view_domain(c->v, c->domain_uid);
        if (c->cd && !streq(c->cd->o.meta.ns, m->ns))
                c->cd = NULL;
        if (c->cd) {
                c->domain_uid = c->cd->o.meta.uid;
                c->cd_name = c->cd->o.meta.name;
        }
}

/* ---- other pods of the workload ---- */

const struct pod_affinity_term *pod_case_affinity(const struct pod_object *p) {
        for (size_t i = 0; i < p->n_affinity; i++)
                if (streq(p->affinity[i].topology_key, GPU_CLIQUE_LABEL))
                        return &p->affinity[i];
        return NULL;
}

bool pod_case_shares_domain(const struct pod_case *c, const struct pod_object *p) {
        if (!streq(p->o.meta.ns, c->pod->o.meta.ns))
                return false;
        for (size_t i = 0; i < p->n_claims; i++) {
                const struct claim_object *claim =
                        view_find(c->v, VIEW_CLAIMS, p->o.meta.ns, pod_object_claim(p, &p->claims[i]));
                if ((c->template_name && streq(p->claims[i].template, c->template_name)) ||
                    (claim && c->domain_uid && streq(claim->domain_uid, c->domain_uid)))
                        return true;
        }
        return false;
}

/* Whether the pod must run in the partition of the Pod. Without an affinity, whether both use the same
 * ComputeDomain. */
static bool is_sibling(const struct pod_case *c, const struct pod_object *p) {
        const struct pod_affinity_term *t = pod_case_affinity(c->pod);
        return p != c->pod && !pod_object_has_ended(p) && streq(p->o.meta.ns, c->pod->o.meta.ns) &&
               (t ? pod_affinity_term_selects(t, p) : pod_case_shares_domain(c, p));
}

static void find_siblings(struct pod_case *c) {
        VIEW_EACH(c->v, VIEW_PODS, struct pod_object, p) {
                if (!is_sibling(c, p))
                        continue;
                c->n_siblings++;
                c->n_placed += p->node != NULL;
                if (!c->near)
                        c->near = p->node;
        }
        c->n_siblings++;
}

/* A pod without a node may join any of its siblings. */
const char *pod_case_clique(struct pod_case *c) {
        if (c->clique || !c->near)
                return c->clique;
        c->clique = inventory_clique(c->v, c->near);
        VIEW_EACH(c->v, VIEW_PODS, struct pod_object, p) {
                const char *x =
                        !c->pod->node && p->node && is_sibling(c, p) ? inventory_clique(c->v, p->node) : NULL;
                if (x && c->clique && !streq(x, c->clique))
                        return c->clique = "";
        }
        return c->clique;
}

/* ---- lines ---- */

static void line_template(struct pod_case *c) {
        if (!c->template_name)
                return;
        if (c->template && c->cd_name)
                diagnosis_line(c->d, TERM_OK, "template", "%s, of ComputeDomain %s", c->template_name,
                               c->cd_name);
        else if (c->template)
                diagnosis_line(c->d, TERM_OK, "template", "%s", c->template_name);
        else if (view_state(c->v, VIEW_TEMPLATES, c->pod->o.meta.ns) == VIEW_COMPLETE)
                diagnosis_line(c->d, c->claim ? TERM_WAIT : TERM_BAD, "template", "%s does not exist",
                               c->template_name);
        else
                diagnosis_line(c->d, TERM_UNKNOWN, "template", "%s, which may not be read", c->template_name);
}

static void line_claim(struct pod_case *c) {
        const char *name = pod_object_claim(c->pod, c->asks);
        if (!name)
                diagnosis_line(c->d, TERM_WAIT, "claim", "not created yet");
        else if (!c->claim && view_state(c->v, VIEW_CLAIMS, c->pod->o.meta.ns) == VIEW_COMPLETE)
                diagnosis_line(c->d, TERM_BAD, "claim", "%s does not exist", name);
        else if (!c->claim)
                diagnosis_line(c->d, TERM_UNKNOWN, "claim", "%s, which may not be read", name);
        else if (!c->claim->claim.allocated)
                diagnosis_line(c->d, TERM_WAIT, "claim", "%s, not allocated", name);
        else if (c->claim->claim.n_results)
                diagnosis_line(c->d, TERM_OK, "claim", "%s, allocated %s of %s", name,
                               c->claim->claim.results[0].device, c->claim->claim.results[0].pool);
        else
                diagnosis_line(c->d, TERM_OK, "claim", "%s, allocated", name);
}

static void line_domain(struct pod_case *c) {
        const struct cd_condition *ready = NULL;
        for (size_t i = 0; c->cd && i < c->cd->n_conditions; i++)
                if (streq(c->cd->conditions[i].type, "Ready"))
                        ready = &c->cd->conditions[i];
        if (!c->cd && c->domain_uid && view_state(c->v, VIEW_DOMAINS, c->pod->o.meta.ns) == VIEW_COMPLETE)
                diagnosis_line(c->d, TERM_BAD, "domain", "the ComputeDomain %s does not exist",
                               str_or(c->cd_name, c->domain_uid));
        else if (!c->cd)
                return;
        else if (c->cd->o.meta.deleted)
                diagnosis_line(c->d, TERM_BAD, "domain", "%s is being deleted", c->cd_name);
        else if (c->cd->nodes_wanted)
                diagnosis_line(c->d, c->cd->nodes_ready >= c->cd->nodes_wanted ? TERM_OK : TERM_WAIT,
                               "domain", "%s: %lld of %lld nodes ready", c->cd_name,
                               (long long)c->cd->nodes_ready, (long long)c->cd->nodes_wanted);
        else
                diagnosis_line(c->d,
                               domain_status_decode(c->cd->status) == DOMAIN_READY ? TERM_OK : TERM_WAIT,
                               "domain", "%s: %s", c->cd_name,
                               ready ? ready->reason : str_or(c->cd->status, "no status yet"));
}

void pod_case_make(struct diagnosis *d, const struct pod_object *p, struct pod_case *ret) {
        const char *ns = p->o.meta.ns;
        *ret = (struct pod_case){ .d = d, .v = d->v, .pod = p };
        diagnosis_needs(d, VIEW_CLAIMS, ns);
        diagnosis_needs(d, VIEW_TEMPLATES, ns);
        diagnosis_needs(d, VIEW_DOMAINS, ns);
        diagnosis_needs(d, VIEW_EVENTS, ns);
        find_claim(ret);
        find_case_domain(ret);
        ret->near = p->node;
        find_siblings(ret);
        ret->prepare =
                view_event(d->v, "Pod", ns, p->o.meta.name, p->o.meta.uid, "FailedPrepareDynamicResources");
        const struct condition *scheduled = condition_find(p->conditions, p->n_conditions, "PodScheduled");
        const struct event_object *failed =
                view_event(d->v, "Pod", ns, p->o.meta.name, p->o.meta.uid, "FailedScheduling");
        if (scheduled && condition_status_decode(scheduled->status) == STATUS_FALSE && scheduled->message &&
            *scheduled->message)
                ret->waits = scheduled->message;
        else if (!p->node && failed)
                ret->waits = failed->message;
        if (ret->asks) {
                line_template(ret);
                line_claim(ret);
                line_domain(ret);
        }
}
