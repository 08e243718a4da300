/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `doctor --from-go`: the table of docs/how-to/migrate.md. */
#include <string.h>

#include "api/names.h"
#include "api/states.h"
#include "cli/doctor.h"
#include "rules/message.h"

/* The release of the Go driver; NULL: not known. */
static const char *release_of(const struct doctor *d) {
        return d->go && !d->go_unclear
                       ? jd_pair_get(d->go->labels, d->go->n_labels, "app.kubernetes.io/instance")
                       : NULL;
}

static void check_release(struct doctor *d) {
        static const char suffix[] = "-kubelet-plugin";
        if (!d->go) {
                if (doctor_needs(d, VIEW_DAEMON_SETS, NULL))
                        doctor_fail(d, FAULT_GO_MISSING, "kubectl compute-domains doctor --pre",
                                    "no DaemonSet of the Go driver manages ComputeDomains");
                return;
        }
        const char *name = d->go->o.meta.name, *release = release_of(d);
        if (d->go_unclear) {
                doctor_skip(d, "the Go driver may be any of: %s. Name its namespace: --namespace NAMESPACE",
                            d->go_all);
                d->results[d->n - 1].failed = true;
                return;
        }
        size_t n = strlen(name) - (str_ends(name, suffix) ? sizeof suffix - 1 : 0);
        doctor_ok(d, "RELEASE=%s NAMESPACE=%s, nameOverride=%s",
                  release ? term_shell_word(d->a, release) : "?", term_shell_word(d->a, d->ns),
                  term_shell_word(d->a, arena_strndup(d->a, name, n)));
}

/* The values are in a Secret of Helm, which this program does not read. */
static void check_values(struct doctor *d) {
        doctor_skip(d, "Helm knows them: helm get values %s -n %s -o yaml > mine.yaml",
                    term_shell_word(d->a, str_or(release_of(d), "RELEASE")),
                    d->go_unclear ? "NAMESPACE" : term_shell_word(d->a, d->ns));
}

static void check_gpu_class(struct doctor *d) {
        if (!doctor_needs(d, VIEW_CLASSES, NULL))
                return;
        if (view_find(d->v, VIEW_CLASSES, NULL, "gpu.nvidia.com"))
                doctor_fail(d, FAULT_GO_GPU_CLASS, "Decide as described in docs/how-to/migrate.md#gpus.",
                            "the DeviceClass gpu.nvidia.com exists: the Go driver also allocates GPUs");
        else
                doctor_ok(d, "no DeviceClass gpu.nvidia.com");
}

static void check_go_domains(struct doctor *d) {
        struct message_list bad = { 0 };
        size_t n = 0;
        if (!doctor_needs(d, VIEW_DOMAINS, NULL))
                return;
        VIEW_EACH(d->v, VIEW_DOMAINS, struct compute_domain, cd) {
                n++;
                if (domain_status_decode(cd->status) != DOMAIN_READY)
                        message_add(&bad, "%s/%s", cd->o.meta.ns, cd->o.meta.name);
        }
        const char *list = message_end(&bad, d->a);
        if (*list)
                doctor_fail(d, FAULT_GO_DOMAINS, "Fix or delete them before the migration.", "not Ready: %s",
                            list);
        else
                doctor_ok(d, "%zu ComputeDomain%s", n, n == 1 ? "" : "s");
}

static bool has_clique(const struct doctor *d, const char *uid) {
        VIEW_EACH(d->v, VIEW_CLIQUES, struct clique_object, c)
        if (streq(c->domain_uid, uid) || str_starts(c->o.meta.name, str_or(uid, "-")))
                return true;
        return false;
}

/* A ComputeDomain in use has nodes. */
static void check_cliques(struct doctor *d) {
        struct message_list bad = { 0 };
        size_t n = 0;
        if (!doctor_needs(d, VIEW_DOMAINS, NULL) || !doctor_needs(d, VIEW_CLIQUES, NULL))
                return;
        VIEW_EACH(d->v, VIEW_DOMAINS, struct compute_domain, cd) {
                n += cd->n_nodes > 0;
                if (cd->n_nodes && !has_clique(d, cd->o.meta.uid))
                        message_add(&bad, "%s/%s", cd->o.meta.ns, cd->o.meta.name);
        }
        const char *list = message_end(&bad, d->a);
        if (*list)
                doctor_fail(d, FAULT_GO_CLIQUES, "Delete them, and create them again.",
                            "formed before 0.4 or without ComputeDomainCliques: %s", list);
        else
                doctor_ok(d, "%zu ComputeDomain%s in use", n, n == 1 ? " is" : "s are");
}

static bool is_of_driver(const struct claim_object *c) {
        for (size_t i = 0; i < c->n_asks; i++)
                if (str_ends(str_or(str_or(c->asks[i].device_class, c->asks[i].device_class_v1beta1), ""),
                             ".nvidia.com"))
                        return true;
        return false;
}

static void check_claims(struct doctor *d) {
        struct message_list bad = { 0 };
        size_t n = 0;
        if (!doctor_needs(d, VIEW_CLAIMS, NULL))
                return;
        VIEW_EACH(d->v, VIEW_CLAIMS, struct claim_object, c) {
                if (!is_of_driver(c))
                        continue;
                n++;
                if (!c->claim.n_results)
                        message_add(&bad, "%s/%s", c->claim.o.meta.ns, c->claim.o.meta.name);
        }
        const char *list = message_end(&bad, d->a);
        if (*list)
                doctor_fail(d, FAULT_GO_CLAIMS, "Wait until they are allocated, or delete their pods.",
                            "pending: %s", list);
        else
                doctor_ok(d, "%zu claim%s, none pending", n, n == 1 ? "" : "s");
}

static void check_image(struct doctor *d) {
        doctor_skip(d, "a pod has to run it: kubectl run probe --rm -it --image=IMAGE -- "
                       "compute-domain-daemon --version");
}

static void check_owners(struct doctor *d) {
        static const char *const names[] = { "computedomains." CD_GROUP, "computedomaincliques." CD_GROUP };
        size_t before = d->n;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (!doctor_needs_one(d, VIEW_CRDS, names[i]))
                        return;
                const struct crd_object *crd = view_find(d->v, VIEW_CRDS, NULL, names[i]);
                const char *by =
                        crd ? jd_pair_get(crd->labels, crd->n_labels, "app.kubernetes.io/managed-by") : NULL;
                if (crd && crd->n_owners)
                        by = arena_printf(d->a, "%s %s", str_or(crd->owners[0].kind, "an object"),
                                          str_or(crd->owners[0].name, ""));
                if (by && !streq(by, "Helm"))
                        doctor_fail(d, FAULT_GO_CRDS,
                                    "Install with `crds.applyAtStart=false`. See "
                                    "docs/how-to/platforms.md#gpu-operator.",
                                    "%s owns %s", by, names[i]);
        }
        if (d->n == before)
                doctor_ok(d, "no operator owns the CustomResourceDefinitions");
}

const struct doctor_check doctor_go_checks[] = {
        { "release", DOCTOR_GO, check_release },
        { "values", DOCTOR_GO, check_values },
        { "gpu-class", DOCTOR_GO, check_gpu_class },
        { "computedomains", DOCTOR_GO, check_go_domains },
        { "cliques", DOCTOR_GO, check_cliques },
        { "claims", DOCTOR_GO, check_claims },
        { "image", DOCTOR_GO, check_image },
        { "crds", DOCTOR_GO, check_owners },
        { 0 },
};
