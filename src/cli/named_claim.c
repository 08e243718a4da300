/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of a pod whose claim the controller creates by name: the shared claim of a ComputeDomain, or of
 * the ComputeDomain that the label CD_LABEL_AUTO requests. */
#include <string.h>
#include <strings.h>

#include "api/names.h"
#include "cli/pod_case.h"
#include "model/auto_domain.h"

static bool named_claim_has_label(const struct pod_case *c) {
        return streq(pod_object_label(c->pod, CD_LABEL_AUTO), "enabled");
}

/* The Deployment of the controller, if the user may read it, shows whether it is installed with the feature.
 */
static bool auto_domains_are_off(struct pod_case *c) {
        view_find_driver(c->v);
        return c->v->driver != VIEW_DRIVER_UNCLEAR &&
               view_state(c->v, VIEW_DEPLOYMENTS, NULL) == VIEW_COMPLETE && !c->v->auto_domains;
}

/* The policy adds the label to pods with the annotation, except those of Grove's operator. */
static bool has_annotation(const struct pod_case *c) {
        return c->pod->grove_group && strcasecmp(c->pod->grove_group, "none") != 0 &&
               !pod_object_label(c->pod, CD_LABEL_AUTO) &&
               !streq(pod_object_label(c->pod, "app.kubernetes.io/managed-by"), "grove-operator");
}

static void add_auto_domains_off(struct pod_case *c) {
        diagnosis_add(c->d, reason_cause(CAUSE_AUTO_DOMAINS_OFF), NULL,
                      "the pod has the %s, and autoDomains is not enabled",
                      named_claim_has_label(c) ? "label " CD_LABEL_AUTO : "annotation " GROVE_ANNOTATION);
}

/* The ComputeDomain exists. */
static void diagnose_claim_of_domain(struct pod_case *c, const struct compute_domain *cd) {
        const struct reason *r = reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_SHARED_CLAIM_PENDING);
        static const char text[] = "ComputeDomain %s exists, but its claim %s does not yet";
        if (domain_diagnose_deletion(c->d, cd) || domain_diagnose_shared_claim(c->d, cd) ||
            controller_diagnose(c->d))
                return;
        if (diagnosis_needs(c->d, VIEW_DEPLOYMENTS, NULL)) {
                diagnosis_add(c->d, r, NULL, text, cd->o.meta.name, c->asks->claim);
        } else {
                diagnosis_possible(c->d, reason_cause(CAUSE_NO_CONTROLLER),
                                   "no controller of the driver is ready");
                diagnosis_possible(c->d, r, text, cd->o.meta.name, c->asks->claim);
        }
}

/* The newest Event of the controller about the ComputeDomain that the pod needs. `known`: the ComputeDomain
 * does not exist, so only that it could not be created is still a cause. */
static bool diagnose_auto_event(struct pod_case *c, bool known) {
        static const char *const reasons[] = { REASON_AUTO_DOMAIN_NOT_CREATED, REASON_AUTO_DOMAIN_NAME_TAKEN,
                                               REASON_AUTO_DOMAIN_ENDING };
        const struct kube_meta *m = &c->pod->o.meta;
        const struct event_object **list;
        size_t n = view_events(c->v, "Pod", m->ns, m->name, m->uid, &list);
        for (size_t i = 0; i < n; i++)
                if (has_string(reasons, known ? 1 : ARRAY_LEN(reasons), list[i]->reason)) {
                        diagnosis_add(c->d, reason_find(REASON_OF_POD, list[i]->reason), NULL, "%s",
                                      str_or(list[i]->message, list[i]->reason));
                        return true;
                }
        return false;
}

/* The controller has to create the ComputeDomain, which has the name of the claim. */
static void diagnose_auto_domain(struct pod_case *c) {
        const char *ns = c->pod->o.meta.ns, *name = c->asks->claim;
        const struct compute_domain *cd = view_find(c->v, VIEW_DOMAINS, ns, name);
        if (cd && (!cd->channel || !streq(cd->channel->claim_name, name))) {
                diagnosis_add(
                        c->d, reason_find(REASON_OF_POD, REASON_AUTO_DOMAIN_NAME_TAKEN), NULL,
                        "the ComputeDomain %s has the name that the ComputeDomain of the pod needs, but "
                        "not its claim",
                        name);
        } else if (cd && cd->o.meta.deleted) {
                diagnosis_add(c->d, reason_find(REASON_OF_POD, REASON_AUTO_DOMAIN_ENDING),
                              "wait until it is deleted: then the controller creates that of the pod",
                              "the ComputeDomain %s of an earlier workload is being deleted", name);
        } else if (cd) {
                diagnose_claim_of_domain(c, cd);
        } else if (diagnose_auto_event(c, view_state(c->v, VIEW_DOMAINS, ns) == VIEW_COMPLETE) ||
                   controller_diagnose(c->d)) {
                return;
        } else if (auto_domains_are_off(c)) {
                add_auto_domains_off(c);
        } else if (diagnosis_needs(c->d, VIEW_DEPLOYMENTS, NULL)) {
                diagnosis_add(c->d, reason_cause(CAUSE_CLAIM_NOT_FOUND),
                              "wait some seconds, then ask a cluster admin for the log of the controller",
                              "the controller has not created the ComputeDomain %s yet", name);
        } else {
                diagnosis_possible(c->d, reason_cause(CAUSE_AUTO_DOMAINS_OFF),
                                   "the driver is installed without autoDomains");
                diagnosis_possible(c->d, reason_cause(CAUSE_NO_CONTROLLER),
                                   "no controller of the driver is ready");
        }
}

bool named_claim_diagnose(struct pod_case *c) {
        const char *ns = c->pod->o.meta.ns;
        if (c->template_name || c->claim || !c->asks->claim ||
            view_state(c->v, VIEW_CLAIMS, ns) != VIEW_COMPLETE)
                return false;
        if (view_not_served(c->v, VIEW_DOMAINS))
                diagnosis_no_domains(c->d);
        else if (named_claim_has_label(c) && streq(c->asks->name, AUTO_DOMAIN_ENTRY) &&
                 str_starts(c->asks->claim, "auto-"))
                diagnose_auto_domain(c);
        else if (c->cd)
                diagnose_claim_of_domain(c, c->cd);
        else
                diagnosis_add(c->d, reason_cause(CAUSE_CLAIM_NOT_FOUND), NULL,
                              "no claim \"%s\" in namespace %s", c->asks->claim, ns);
        return true;
}

bool named_claim_diagnose_taken(struct pod_case *c) {
        if (!c->named || c->named->o.meta.deleted || !c->claim ||
            streq(claim_domain_owner(&c->claim->claim), c->named->o.meta.uid))
                return false;
        if (c->claim->claim.o.meta.deleted)
                diagnosis_add(c->d, reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_CLAIM_TERMINATING), NULL,
                              "a claim with the name %s, which ComputeDomain %s needs, is being deleted",
                              c->asks->claim, c->named->o.meta.name);
        else
                diagnosis_add(c->d, reason_find(REASON_OF_COMPUTE_DOMAIN, REASON_CLAIM_NAME_TAKEN), NULL,
                              "the driver did not create the claim %s for ComputeDomain %s, which needs that "
                              "name",
                              c->asks->claim, c->named->o.meta.name);
        return true;
}

bool named_claim_diagnose_label(struct pod_case *c) {
        if (!named_claim_has_label(c) && !has_annotation(c))
                return false;
        for (size_t i = 0; i < c->pod->n_claims; i++)
                if (streq(c->pod->claims[i].name, AUTO_DOMAIN_ENTRY))
                        return false;
        diagnosis_line(c->d, TERM_BAD, "claim", "the pod names none, although it has the %s",
                       named_claim_has_label(c) ? "label" : "annotation");
        if (auto_domains_are_off(c))
                add_auto_domains_off(c);
        else
                diagnosis_add(c->d, reason_cause(CAUSE_AUTO_CLAIM_NOT_ADDED), NULL,
                              "no claim was added to the pod when it was created");
        return true;
}

bool named_claim_diagnose_ending(struct pod_case *c) {
        if (!c->asks || !named_claim_has_label(c) || !streq(c->asks->name, AUTO_DOMAIN_ENTRY) || !c->cd ||
            !c->cd->o.meta.deleted || c->pod->o.meta.created <= c->cd->o.meta.deleted)
                return false;
        diagnosis_add(c->d, reason_find(REASON_OF_POD, REASON_AUTO_DOMAIN_ENDING), NULL,
                      "the ComputeDomain %s of an earlier workload with the same name is being deleted",
                      c->cd_name);
        return true;
}
