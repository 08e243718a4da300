/* SPDX-License-Identifier: Apache-2.0 */
#include "shortages.h"

#include <stdio.h>
#include <string.h>

#include "api/reasons.h"
#include "base/mem.h"
#include "channels.h"
#include "racks.h"

/* How long a condition may stay after it is no longer true: it must settle, and be looked at again. */
enum { STAYS_MS = 1000 * (3 * SHORTAGE_SETTLES_S + SHORTAGE_LOOKS_S) };

const struct shortage_facts *shortages_facts(const struct domain *d) {
        static struct shortage_node nodes[MAX_NODES];
        static const char *own[MAX_NODES];
        static struct shortage_facts f;
        const struct version *cd = object_of(d);
        f = (struct shortage_facts){ .nodes = nodes, .own = own, .rack = d->of_rack ? "its" : NULL };
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct node *n = &w.nodes[i];
                if (!n->exists)
                        continue;
                struct shortage_node *x = &nodes[f.n_nodes++];
                bool holds = false;
                *x = (struct shortage_node){ .partition = n->clique, .up = n->ready };
                for (size_t k = 0; k < store_count(K_SLICE); k++) {
                        const struct version *s = store_nth(K_SLICE, k);
                        if (!streq(s->node, n->name))
                                continue;
                        x->channels += s->channels;
                        if (d->of_rack && racks_may_run(d->name, s))
                                x->rack = "its";
                }
                for (size_t k = 0; k < store_count(K_CLAIM); k++) {
                        const struct version *c = store_nth(K_CLAIM, k);
                        if (!streq(c->pool, n->name) || !c->device || !str_starts(c->device, "channel-"))
                                continue;
                        x->used++;
                        holds = holds || (cd && streq(c->ns, cd->ns) && strstr(c->json, d->uid));
                }
                for (size_t k = 0; k < f.n_own; k++)
                        holds = holds && !streq(own[k], n->clique);
                if (holds)
                        own[f.n_own++] = n->clique;
        }
        return &f;
}

/* The condition of the ComputeDomain; type NULL: none. */
static struct cd_condition condition_of(const struct version *cd) {
        size_t i, max;
        yyjson_val *x;
        yyjson_arr_foreach (yyjson_ptr_get(cd->root, "/status/conditions"), i, max, x)
                if (yyjson_equals_str(yyjson_obj_get(x, "type"), CONDITION_CHANNEL_AVAILABLE))
                        return (struct cd_condition){
                                .type = yyjson_get_str(yyjson_obj_get(x, "type")),
                                .status = yyjson_get_str(yyjson_obj_get(x, "status")),
                                .reason = yyjson_get_str(yyjson_obj_get(x, "reason")),
                                .message = yyjson_get_str(yyjson_obj_get(x, "message")),
                        };
        return (struct cd_condition){ 0 };
}

static bool has_waiting_pod(const struct domain *d) {
        for (unsigned i = 0; i < d->n_pods; i++)
                if (d->pods[i].state == POD_CLAIMED)
                        return true;
        return false;
}

/* Why the condition is wrong; NULL: it is right, or absent. In a static buffer. */
static const char *shortages_wrong(const struct domain *d, const struct version *cd) {
        static char text[256];
        const struct cd_condition c = condition_of(cd);
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        if (!c.type)
                return NULL;
        const char *wrong = has_waiting_pod(d) ? shortage_check(shortages_facts(d), &c, a) : "no pod waits";
        snprintf(text, sizeof text, "%s", str_or(wrong, ""));
        return wrong ? text : NULL;
}

/* failure: a channel becomes free in the simulation -> no ComputeDomain reports that none is free [simulation]
 */
void shortages_look(void) {
        static int64_t wrong_since[MAX_DOMAINS]; /* 0: it is not wrong */
        for (unsigned i = 0; i < w.n_domains && !channels_change(); i++) {
                const struct domain *d = &w.domains[i];
                const struct version *cd = object_of(d);
                const char *wrong = cd && !version_deleted(cd) ? shortages_wrong(d, cd) : NULL;
                if (!wrong)
                        wrong_since[i] = 0;
                else if (!wrong_since[i])
                        wrong_since[i] = sim_now_ms();
                else if (sim_now_ms() - wrong_since[i] > STAYS_MS)
                        sim_broken("ComputeDomain %s reports %s for %d s, although %s", d->name,
                                   condition_of(cd).reason, STAYS_MS / 1000, wrong);
        }
}

/* failure: a pod waits for a channel in the simulation, and none is free -> its ComputeDomain reports it
 * [simulation] */
const char *shortages_misses(void) {
        static char text[512];
        for (unsigned i = 0; i < w.n_domains && !channels_change(); i++) {
                const struct domain *d = &w.domains[i];
                const struct version *cd = object_of(d);
                if (!cd || version_deleted(cd) || channels_other_mode(cd))
                        continue;
                _cleanup_(arena_freep) struct arena *a = arena_new(1024);
                struct cd_condition right;
                const char *wrong = shortages_wrong(d, cd);
                bool reports = condition_of(cd).type,
                     should = has_waiting_pod(d) && shortage_condition(shortages_facts(d), a, &right);
                if (wrong)
                        snprintf(text, sizeof text, "ComputeDomain %s reports %s, although %s", d->name,
                                 condition_of(cd).reason, wrong);
                else if (should && !reports)
                        snprintf(text, sizeof text, "ComputeDomain %s does not report %s: %s", d->name,
                                 right.reason, right.message);
                else
                        continue;
                return text;
        }
        return NULL;
}
