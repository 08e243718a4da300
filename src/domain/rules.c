/* SPDX-License-Identifier: Apache-2.0 */
#include "domain/rules.h"

#include <string.h>

#include "domain/names.h"

const char *rules_label(const char *current, const struct rules_claim *claims, size_t n) {
        const struct rules_claim *oldest = NULL;
        for (size_t i = 0; i < n; i++) {
                const struct rules_claim *c = &claims[i];
                if (streq(c->domain_uid, current))
                        return current;
                if (!oldest || c->created < oldest->created ||
                    (c->created == oldest->created && strcmp(c->claim_uid, oldest->claim_uid) < 0))
                        oldest = c;
        }
        return oldest ? oldest->domain_uid : NULL;
}

enum rules_label_step rules_label_step(const char *current, const struct rules_label_facts *f) {
        if (!current || f->ending)
                return RULES_LABEL_WRITE;
        if (f->stale)
                return RULES_LABEL_HOLD;
        return f->claimed || f->confirmed ? RULES_LABEL_WRITE : RULES_LABEL_ASK;
}

bool rules_own_template(const struct compute_domain *cd, const char *const *namespaces, size_t n_namespaces,
                        const struct rct *r) {
        if (streq(r->target, CD_TARGET_DAEMON))
                return has_string(namespaces, n_namespaces, r->o.meta.ns);
        if (!cd)
                return has_string(r->finalizers, r->n_finalizers, CD_FINALIZER);
        return cd->channel && streq(r->o.meta.ns, cd->o.meta.ns) &&
               streq(r->o.meta.name, cd->channel->template_name);
}

bool rules_gpu_label(bool enabled, const char *current, const char *ours, const char *clique,
                     const char **ret_label, const char **ret_ours) {
        bool is_ours = current && streq(current, ours);
        *ret_label = current;
        *ret_ours = ours;
        if (current && !is_ours) {
                *ret_ours = NULL; /* another owner took over: what we wrote once means nothing any more */
        } else if (!enabled || (clique && !*clique)) {
                *ret_label = *ret_ours = NULL;
        } else if (clique) {
                *ret_label = *ret_ours = clique;
        }
        return !streq(*ret_label, current) || !streq(*ret_ours, ours);
}

static const struct rules_slot *find_node(const struct rules_slot *s, size_t n, const char *node) {
        for (size_t i = 0; i < n; i++)
                if (streq(s[i].node, node))
                        return &s[i];
        return NULL;
}

static bool has_index(const struct rules_slot *s, size_t n, int64_t index) {
        for (size_t i = 0; i < n; i++)
                if (s[i].index == index)
                        return true;
        return false;
}

static bool has_i64(const int64_t *list, size_t n, int64_t v) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == v)
                        return true;
        return false;
}

static bool is_member(const char *const *members, size_t n, const char *node) {
        for (size_t i = 0; i < n; i++)
                if (streq(members[i], node))
                        return true;
        return false;
}

/* The lowest index that was never used, else the one that has been free for longest, else -1. `taken` holds
 * what nobody else may get. */
static int64_t take_free(const struct rules_slot *taken, size_t n, const int64_t *freed, size_t n_freed,
                         int64_t max_nodes) {
        for (int64_t i = 0; i < max_nodes; i++)
                if (!has_index(taken, n, i) && !has_i64(freed, n_freed, i))
                        return i;
        for (size_t i = 0; i < n_freed; i++)
                if (freed[i] >= 0 && freed[i] < max_nodes && !has_index(taken, n, freed[i]))
                        return freed[i];
        return -1;
}

void rules_indices(const struct rules_slot *held, size_t n_held, const int64_t *freed, size_t n_freed,
                   const char *const *members, size_t n_members, int64_t max_nodes, struct arena *a,
                   struct rules_slot *ret_slots, const int64_t **ret_freed, size_t *ret_n_freed) {
        /* What leaves in this very step is freed in it too: its index goes to the end of the list, the last
         * to be given again. */
        int64_t *list = arena_alloc(a, (n_freed + n_held + 1) * sizeof *list);
        size_t n_list = 0;
        for (size_t i = 0; i < n_freed; i++)
                if (!has_i64(list, n_list, freed[i]) && !has_index(held, n_held, freed[i]))
                        list[n_list++] = freed[i];
        for (size_t i = 0; i < n_members; i++) {
                const struct rules_slot *s = find_node(held, n_held, members[i]);
                bool keeps = s && s->index >= 0 && !has_index(held, (size_t)(s - held), s->index);
                ret_slots[i] = (struct rules_slot){ members[i], keeps ? s->index : -1 };
        }
        for (size_t i = 0; i < n_held; i++)
                if (!is_member(members, n_members, held[i].node) && held[i].index >= 0 &&
                    !has_index(ret_slots, n_members, held[i].index) && !has_i64(list, n_list, held[i].index))
                        list[n_list++] = held[i].index;
        for (size_t i = 0; i < n_members; i++)
                if (ret_slots[i].index < 0)
                        ret_slots[i].index = take_free(ret_slots, n_members, list, n_list, max_nodes);
        size_t n = 0;
        for (size_t i = 0; i < n_list; i++)
                if (!has_index(ret_slots, n_members, list[i]))
                        list[n++] = list[i];
        *ret_freed = list;
        *ret_n_freed = n;
}

static bool never_ran(const struct pod *p, int64_t now) {
        const struct condition *scheduled = condition_find(p->conditions, p->n_conditions, "PodScheduled");
        if (!streq(p->phase, "Pending") || p->state || p->ready)
                return false;
        if (!p->node || !*p->node)
                return true;
        for (size_t i = 0; i < p->n_containers; i++) {
                const struct pod_container_why *w = p->containers[i].waiting;
                if (w && !streq(w->reason, "ContainerCreating") && !streq(w->reason, "PodInitializing"))
                        return true;
        }
        return scheduled && scheduled->since + RULES_UNSTARTED_S <= now;
}

bool rules_replace_daemon(const struct pod *p, const char *template_hash, bool in_use, int64_t now) {
        if (p->o.meta.deleted || streq(p->template_hash, template_hash))
                return false;
        return !in_use || never_ran(p, now);
}
