/* SPDX-License-Identifier: Apache-2.0 */
/* What the world shows to the promises: what runs where, what is missing, and what is left over. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "channels.h"
#include "daemon.h"
#include "hostile.h"
#include "imex.h"
#include "looks.h"
#include "lying.h"
#include "racks.h"
#include "replica.h"
#include "sharers.h"
#include "sim.h"
#include "world_state.h"

const char *world_runs_imex(const char *node) {
        return imex_domain(number_of(node_named(node)));
}

int64_t world_runs_ms(const char *node, const char *domain_uid) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++) {
                        const struct user_pod *p = &w.domains[d].pods[i];
                        /* A kubelet before 1.37 may unprepare the claim of a running pod. */
                        if (p->state == POD_RUNS && !p->held.undone && streq(p->node->name, node) &&
                            streq(domain_uid,
                                  channels_imex_domain(p->own, w.domains[d].uid, p->node->clique)))
                                return sim_now_ms() - p->since_ms;
                }
        return -1;
}

bool world_is_given_up(unsigned node) {
        return !w.nodes[node].exists && sim_now_ms() - w.nodes[node].gone_ms > NODE_GONE_MS;
}

bool world_is_calm(void) {
        return w.calm;
}

bool world_same_clique(unsigned node, unsigned other) {
        return streq(w.nodes[node].clique, w.nodes[other].clique);
}

/* The daemon sees the end of a ComputeDomain itself, and runs IMEX while its Pod terminates. */
static bool is_ending(const char *domain_uid) {
        if (channels_stands(domain_uid))
                return false; /* it belongs to no ComputeDomain */
        for (size_t i = 0; i < store_count(K_DOMAIN); i++)
                if (streq(store_nth(K_DOMAIN, i)->uid, domain_uid))
                        return version_deleted(store_nth(K_DOMAIN, i));
        return true;
}

void world_pod_serves(unsigned node, const char *claim_uid, const char *domain_uid) {
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                struct run *r = &w.nodes[node].runs[k];
                if (r->used && streq(r->held.uid, claim_uid))
                        snprintf(r->served, sizeof r->served, "%s", domain_uid);
        }
}

/* failure: a daemon's Pod has served a ComputeDomain -> with a fresh Pod for each, it serves no other
 * [simulation] */
void world_begins_imex(unsigned node, const char *ip, const char *domain_uid) {
        for (unsigned k = 0; k < MAX_RUNS && replicas_fresh_pods(); k++) {
                const struct run *r = &w.nodes[node].runs[k];
                if (r->used && streq(r->ip, ip) && *r->served && !streq(r->served, domain_uid) &&
                    !lying_excuses(node))
                        sim_broken("Pod %s has served ComputeDomain %s, and runs nvidia-imex of %s", r->pod,
                                   r->served, domain_uid);
        }
}

/* failure: any faults meet in the simulation -> no daemon stops IMEX that a pod uses [simulation] */
void world_ends_imex(unsigned node, const char *domain_uid) {
        const struct node *n = &w.nodes[node];
        const char *fault = is_ending(domain_uid) ? "the ComputeDomain is deleted" : NULL;
        for (unsigned k = 0; k < MAX_RUNS; k++)
                if (n->runs[k].used && n->runs[k].killed_by)
                        fault = n->runs[k].killed_by;
        looks_ended(node, domain_uid, fault);
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                const struct run *r = &n->runs[k];
                bool is_its = !r->forced && !is_ending(domain_uid);
                if (r->used && r->up && is_its && world_runs_ms(n->name, domain_uid) > 0 &&
                    !lying_excuses(node))
                        sim_broken("the daemon stops IMEX of %s on %s while a pod uses it", domain_uid,
                                   n->name);
        }
}

static const char *describe(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *describe(const char *fmt, ...) {
        static char text[256];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        return text;
}

static const char *wanted_label(const char *node) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++) {
                        const struct user_pod *p = &w.domains[d].pods[i];
                        if (p->state == POD_RUNS && streq(p->node->name, node) && !p->own)
                                return w.domains[d].uid;
                }
        return NULL;
}

/* The daemon of the standing domain terminates. It serves the running pods until the last has ended. A pod
 * waits if it was scheduled to the node before the slice withheld the channels. */
static bool awaits_next_daemon(const struct node *n) {
        for (unsigned k = 0; k < MAX_RUNS; k++) {
                const struct version *pod = store_get(K_POD, DRIVER_NS, n->runs[k].pod);
                if (n->runs[k].used && pod && version_deleted(pod))
                        return channels_standing() &&
                               world_runs_ms(n->name, channels_imex_domain(true, "", n->clique)) >= 0;
        }
        return false;
}

/* A pod or a claim of the ComputeDomain is on the node without power, so it does not end until its kubelet
 * returns. */
static bool is_held_by_off_node(const struct domain *d) {
        _cleanup_(freep) char *pool = w.off ? xasprintf("\"pool\":\"%s\"", w.off->name) : NULL;
        for (size_t i = 0; pool && i < store_count(K_CLAIM); i++) {
                const char *json = store_nth(K_CLAIM, i)->json;
                if (*d->uid && strstr(json, pool) && strstr(json, d->uid))
                        return true;
        }
        for (unsigned i = 0; pool && i < d->n_pods; i++)
                if (d->pods[i].node == w.off)
                        return true;
        return false;
}

/* A restore of etcd removed the Pod of a daemon that still serves, or it was force-deleted while the node was
 * cut off. The daemon cannot report, and its replacement starts when the last pod of the node has ended. */
static bool daemon_is_lost(const struct node *n) {
        for (unsigned k = 0; k < MAX_RUNS; k++)
                if (n->runs[k].used && n->runs[k].up && n->runs[k].lost)
                        return true;
        return false;
}

static bool has_lost_daemon(const char *clique) {
        for (unsigned i = 0; i < w.n_nodes; i++)
                if (streq(w.nodes[i].clique, clique) && daemon_is_lost(&w.nodes[i]))
                        return true;
        return false;
}

/* A node of the partition has not reported since the fabric object was lost. Until it reports, the missing
 * entries are unknown. So no node gets a new assignment, and channels that it may hold are not reused. */
static bool report_is_awaited(const struct node *n) {
        bool off = w.off && streq(n->clique, w.off->clique);
        const struct version *v =
                off || has_lost_daemon(n->clique) ? store_get(K_FABRIC, "", n->clique) : NULL;
        return v && (strstr(v->json, "\"AssignmentsIncomplete\"") ||
                     strstr(v->json, "\"ChannelsIncomplete\"") || strstr(v->json, "\"ChannelsExhausted\""));
}

/* Excused: a pod on a node without power, and a pod that its partition cannot serve. */
static bool waits_for_report(const struct node *n) {
        return n && (n == w.off || report_is_awaited(n));
}

bool world_pod_may_wait(const struct node *n) {
        return waits_for_report(n) || awaits_next_daemon(n);
}

bool world_daemon_may_be_unknown(const char *node) {
        const struct node *n = node ? node_named(node) : NULL;
        return waits_for_report(n) || (n && daemon_is_lost(n));
}

const char *world_misses(void) {
        for (unsigned d = 0; d < w.n_domains; d++) {
                const struct domain *x = &w.domains[d];
                const struct version *v = object_of(x);
                bool runs = false, excused = false;
                if (x->of_rack && !racks_has(x->name))
                        continue;
                if (is_held_by_off_node(x) && (!x->lives || x->ends || !v))
                        continue;
                if (!x->lives || x->ends || !v)
                        return describe("ComputeDomain %s does not exist", x->name);
                for (unsigned i = 0; i < x->n_pods; i++) {
                        enum state s = x->pods[i].state;
                        runs = runs || s == POD_RUNS;
                        excused = excused || (s == POD_RUNS && daemon_is_lost(x->pods[i].node));
                        if (waits_for_report(x->pods[i].node)) {
                                excused = true;
                                continue;
                        }
                        if (s == POD_ALLOCATED && awaits_next_daemon(x->pods[i].node))
                                continue;
                        if (s == POD_WAITS && x->shares && !sharers_can_run(x))
                                continue;
                        if (s != POD_RUNS && (s != POD_CLAIMED || choose_node(x)))
                                return describe("pod %u of ComputeDomain %s does not run (state %d, on %s)",
                                                i, x->name, (int)s,
                                                x->pods[i].node ? x->pods[i].node->name : "no node");
                }
                if (sharers_unreserved_group(x))
                        return describe("the claim of ComputeDomain %s is not reserved for PodGroup %s",
                                        x->name, sharers_unreserved_group(x));
                if (runs && !excused && !streq(version_str(v, "/status/status"), "Ready"))
                        return describe("ComputeDomain %s is not Ready", x->name);
        }
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct version *n = store_get(K_NODE, "", w.nodes[i].name);
                const char *label = n ? n->domain : NULL;
                if (waits_for_report(&w.nodes[i]))
                        continue;
                if (held_strays(i))
                        return held_strays(i);
                if (!n || !streq(label, wanted_label(n->name)))
                        return describe("%s has the label %s", w.nodes[i].name,
                                        label ? label : "of no ComputeDomain");
        }
        return str_or(racks_misses(), hostile_misses());
}

bool world_shares_wait(void) {
        for (unsigned d = 0; d < w.n_domains; d++) {
                const struct domain *x = &w.domains[d];
                for (unsigned i = 0; x->shares && i < x->n_pods; i++)
                        if (x->pods[i].state == POD_WAITS)
                                return true;
        }
        return false;
}

bool world_daemon_ends(void) {
        for (size_t i = 0; i < store_count(K_POD); i++) {
                const struct version *v = store_nth(K_POD, i);
                if (version_deleted(v) && streq(version_label(v, CD_LABEL_COMPONENT), CD_DAEMON_OBJECT))
                        return true;
        }
        return false;
}

/* Daemons are not leftovers. */
static bool is_of_daemons(enum kind k, const struct version *v) {
        return streq(version_label(v, CD_LABEL_COMPONENT), CD_DAEMON_OBJECT) ||
               (k == K_CLAIM && streq(v->ns, DRIVER_NS));
}

const char *world_leftover(void) {
        static const enum kind made[] = { K_DOMAIN, K_SET, K_TEMPLATE, K_CLIQUE, K_POD, K_CLAIM };
        for (size_t i = 0; i < ARRAY_LEN(made); i++)
                for (size_t j = 0; j < store_count(made[i]); j++)
                        if (!racks_keeps(store_nth(made[i], j)) &&
                            !is_of_daemons(made[i], store_nth(made[i], j)) &&
                            !streq(version_label(store_nth(made[i], j), "app"), CHANNELS_LABEL))
                                return describe("%s %s/%s is left", kinds[made[i]].kind,
                                                store_nth(made[i], j)->ns, store_nth(made[i], j)->name);
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct version *n = store_get(K_NODE, "", w.nodes[i].name);
                if (n && n->domain)
                        return describe("%s has a label", n->name);
                /* The leftovers of a node without power disappear when it starts. */
                if (w.nodes[i].power && held_strays(i))
                        return held_strays(i);
                if (imex_domain(i) && !channels_standing())
                        return describe("IMEX of %s is left on %s", imex_domain(i), w.nodes[i].name);
        }
        if (racks_over() && store_count(K_FABRIC))
                return describe("fabric object %s is left", store_nth(K_FABRIC, 0)->name);
        for (size_t i = 0; i < store_count(K_FABRIC) && !channels_standing(); i++)
                if (yyjson_arr_size(yyjson_obj_get(store_nth(K_FABRIC, i)->root, "domains")))
                        return describe("fabric object %s has an IMEX domain", store_nth(K_FABRIC, i)->name);
        return NULL;
}
