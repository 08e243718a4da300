/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "hostile.h"
#include "sim.h"
#include "world_state.h"

#define OWNER "/metadata/ownerReferences/0/uid"
#define THIEF "thief"

static bool used;
/* The ComputeDomains that labelled pods have asked for, as "<namespace>/<name>/<owner's UID>". */
static char **asked;
static size_t n_asked, cap_asked;

void workloads_use(void) {
        used = true;
}

bool workloads_used(void) {
        return used;
}

void workloads_done(void) {
        for (size_t i = 0; i < n_asked; i++)
                free(asked[i]);
        free(asked);
}

static bool was_asked(const char *ns, const char *name, const char *owner) {
        _cleanup_(freep) char *key = xasprintf("%s/%s/%s", ns, name, str_or(owner, ""));
        for (size_t i = 0; i < n_asked; i++)
                if (streq(asked[i], key))
                        return true;
        return false;
}

static void note_asked(const char *ns, const char *name, const char *owner) {
        if (was_asked(ns, name, owner))
                return;
        GROW(asked, n_asked, cap_asked);
        asked[n_asked++] = xasprintf("%s/%s/%s", ns, name, owner);
}

/* ---- owners ---- */

void workloads_begin(struct domain *d) {
        unsigned serial = ++w.serial;
        d->of_workload = d->owned = true;
        d->of_jobset = sim_chance(30);
        d->uid[0] = '\0';
        snprintf(d->owner, sizeof d->owner, "%08x-0000-4000-8000-%012u", serial, serial);
        snprintf(d->cd, sizeof d->cd, "auto-job-%s-%08x", d->name, serial);
        snprintf(d->claim, sizeof d->claim, "%s", d->cd);
        sim_log("%s job-%s is created", d->of_jobset ? "JobSet" : "Job", d->name);
        if (sim_chance(5))
                world_create(K_DOMAIN, USER_NS,
                             "{'apiVersion':'" CD_API_VERSION
                             "','metadata':{'name':'%s'},'spec':{'numNodes':0,'channel':{"
                             "'resourceClaimTemplate':{'name':'t-%s'}}}}",
                             d->cd, d->cd);
}

static bool owner_exists(const char *ns, const char *uid) {
        for (unsigned i = 0; i < w.n_domains; i++)
                if (w.domains[i].of_workload && w.domains[i].owned && streq(w.domains[i].owner, uid))
                        return streq(ns, USER_NS);
        return false;
}

/* ---- pods ---- */

/* The policy adds the claim. The name of the ComputeDomain follows from the owner's name and UID. */
static void create(const struct domain *d, const char *ns, const char *pod) {
        _cleanup_(freep) char *labels =
                d->of_jobset ? xasprintf(",'" JOBSET_LABEL_NAME "':'job-%s','" JOBSET_LABEL_UID "':'%s'",
                                         d->name, d->owner)
                             : xstrdup("");
        note_asked(ns, d->cd, d->owner);
        world_create(
                K_POD, ns,
                "{'metadata':{'name':'%s','labels':{'" CD_LABEL_AUTO "':'enabled'%s},'ownerReferences':["
                "{'apiVersion':'batch/v1','kind':'Job','name':'job-%s%s','uid':'%s','controller':true}]},"
                "'spec':{'resourceClaims':[{'name':'auto-domain','resourceClaimName':'%s'}]},'status':{"
                "'phase':'Pending'}}",
                pod, labels, d->name, d->of_jobset ? "-workers-0" : "", d->owner, d->cd);
}

static const struct version *object_of_pod(const struct user_pod *p) {
        return used && *p->name ? store_get(K_POD, USER_NS, p->name) : NULL;
}

void workloads_create_pod(const struct domain *d, struct user_pod *p) {
        snprintf(p->name, sizeof p->name, "p-%s-%u", d->name, ++w.serial);
        create(d, USER_NS, p->name);
}

void workloads_bind_pod(const struct user_pod *p) {
        const struct version *v = object_of_pod(p);
        if (v)
                world_patch(K_POD, v, false, "{'spec':{'nodeName':'%s'}}", p->node->name);
}

/* Others end by themselves. */
void workloads_end_pod(const struct user_pod *p) {
        const struct version *v = object_of_pod(p);
        if (v && !version_deleted(v) && sim_chance(70))
                world_delete(K_POD, v, false);
}

void workloads_pod_gone(const struct user_pod *p, bool forced) {
        const struct version *v = object_of_pod(p);
        if (v && (forced || version_deleted(v) || !p->ran || sim_chance(50)))
                world_delete(K_POD, v, true);
        else if (v)
                world_patch(K_POD, v, true, "{'status':{'phase':'Succeeded'}}");
}

/* ---- users ---- */

static bool has_bound(const struct domain *d) {
        for (unsigned i = 0; i < d->n_pods; i++)
                if (d->pods[i].node)
                        return true;
        return false;
}

void workloads_step(struct domain *d) {
        const struct version *v = store_get(K_DOMAIN, USER_NS, d->cd);
        bool ours = v && streq(version_str(v, OWNER), d->owner), same = ours && streq(v->uid, d->uid);
        if (ours && !same && !has_bound(d)) {
                snprintf(d->uid, sizeof d->uid, "%s", v->uid);
                sim_log("the ComputeDomain of job-%s has the UID %s", d->name, d->uid);
        } else if (!d->ends && *d->uid && (!same || version_deleted(v))) {
                for (unsigned i = 0; i < d->n_pods; i++)
                        if (d->pods[i].node)
                                end_pod(&d->pods[i]);
        } else if (same && !version_deleted(v) && !w.calm && !d->steady && !sim_draw(3000)) {
                sim_log("somebody deletes the ComputeDomain of job-%s", d->name);
                world_delete(K_DOMAIN, v, false);
        }
}

/* ---- the garbage collector ---- */

static bool is_user_pod(const char *name) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++)
                        if (streq(w.domains[d].pods[i].name, name))
                                return true;
        return false;
}

/* A ComputeDomain without an owner is that of a user, and is deleted at some time. */
static bool ends(const struct version *v) {
        const char *owner = version_str(v, OWNER);
        if (version_deleted(v) || !str_starts(v->name, "auto-"))
                return false;
        return owner ? !owner_exists(v->ns, owner) && soon() : w.calm || !sim_draw(300);
}

static void collect_domains(void) {
        for (size_t i = 0; i < store_count(K_DOMAIN); i++)
                if (ends(store_nth(K_DOMAIN, i))) {
                        world_delete(K_DOMAIN, store_nth(K_DOMAIN, i), false);
                        i = SIZE_MAX; /* the list may have changed */
                }
}

/* The users end the other pods. */
static void collect_finished_pods(void) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *v = store_nth(K_POD, i);
                if (streq(v->ns, USER_NS) && version_label(v, CD_LABEL_AUTO) && !is_user_pod(v->name) &&
                    !owner_exists(v->ns, version_str(v, OWNER)) && soon()) {
                        world_delete(K_POD, v, true);
                        i = SIZE_MAX;
                }
        }
}

/* The owner does not exist in the namespace of this tenant, so the ComputeDomain is deleted again and again.
 */
static void step_thief(void) {
        const struct version *v = store_get(K_POD, HOSTILE_NS, THIEF);
        const struct domain *d = &w.domains[sim_draw(w.n_domains)];
        if (v && (w.calm || !sim_draw(400)))
                world_delete(K_POD, v, true);
        else if (!v && !w.calm && d->of_workload && d->owned && !sim_draw(400))
                create(d, HOSTILE_NS, THIEF);
}

void workloads_collect(void) {
        if (!used)
                return;
        collect_domains();
        collect_finished_pods();
        step_thief();
}

/* ---- promises ---- */

/* failure: any faults meet in the simulation -> an owner of labelled pods has at most one ComputeDomain
 * [simulation] */
static void look_at_creation(const struct version *cd) {
        const char *owner = version_str(cd, OWNER);
        if (!was_asked(cd->ns, cd->name, owner))
                sim_broken("%s creates ComputeDomain %s/%s of the owner %s, for which no pod has asked",
                           store_writer(), cd->ns, cd->name, str_or(owner, "none"));
        if (!streq(version_str(cd, "/spec/channel/resourceClaim/name"), cd->name))
                sim_broken("%s creates ComputeDomain %s/%s with another claim", store_writer(), cd->ns,
                           cd->name);
        for (size_t i = 0; i < store_count(K_DOMAIN); i++) {
                const struct version *v = store_nth(K_DOMAIN, i);
                if (!streq(v->uid, cd->uid) && streq(v->ns, cd->ns) && streq(version_str(v, OWNER), owner))
                        sim_broken("%s creates ComputeDomain %s/%s, and its owner has %s", store_writer(),
                                   cd->ns, cd->name, v->name);
        }
}

/* failure: any faults meet in the simulation -> no controller deletes the ComputeDomain of a workload
 * [simulation] */
void workloads_look(enum kind k, const struct change *c) {
        if (!used || k != K_DOMAIN || !str_starts(store_writer(), "controller-"))
                return;
        if (!c->was)
                look_at_creation(c->now);
        else if (!version_deleted(c->was) && (c->gone || version_deleted(c->now)))
                sim_broken("%s deletes ComputeDomain %s/%s", store_writer(), c->was->ns, c->was->name);
}
