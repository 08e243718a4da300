/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/rules.h"

#include <stddef.h>
#include <string.h>
#include <uthash.h>

#include "api/names.h"
#include "base/stderr.h"

const char *rules_label(const char *current, const struct allocation *claims, size_t n) {
        BUG_ON(n && !claims);
        const struct allocation *oldest = NULL;
        for (size_t i = 0; i < n; i++) {
                const struct allocation *c = &claims[i];
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
                return RULES_LABEL_PAUSE;
        return f->claimed || f->confirmed ? RULES_LABEL_WRITE : RULES_LABEL_ASK;
}

static bool is_justified(const char *uid, const struct allocation *claims, size_t n) {
        for (size_t i = 0; uid && i < n; i++)
                if (streq(claims[i].domain_uid, uid))
                        return true;
        return false;
}

const char *rules_label_check(const char *current, const char *right, const struct allocation *claims,
                              size_t n, const struct rules_label_facts *f) {
        if (right && !is_justified(right, claims, n))
                return "no claim justifies the new label";
        if (!current)
                return NULL;
        if (is_justified(current, claims, n))
                return "a claim justifies the present label";
        if (!f->ending && f->stale)
                return "the present label would be replaced while a cache is stale";
        if (!f->ending && !f->claimed && !f->confirmed)
                return "the present label would be replaced before its end is confirmed";
        return NULL;
}

bool rules_own_template(const struct compute_domain *cd, const char *const *namespaces, size_t n_namespaces,
                        const struct rct *r) {
        if (streq(r->target, CD_TARGET_DAEMON))
                return has_string(namespaces, n_namespaces, r->o.meta.ns);
        if (!cd)
                return has_string(r->finalizers, r->n_finalizers, CD_FINALIZER);
        return cd->channel && streq(r->o.meta.ns, cd->o.meta.ns) &&
               (streq(r->o.meta.name, cd->channel->template_name) ||
                streq(r->o.meta.name, cd->channel->shared_template_name));
}

bool rules_relabelled(const struct rules_relabel_facts *f) {
        return !streq(f->is, f->right) && !f->sending && !(f->wrote && streq(f->is, f->written));
}

bool rules_gpu_label(bool enabled, const char *current, const char *ours, const char *clique,
                     const char **ret_label, const char **ret_ours) {
        bool is_ours = current && streq(current, ours);
        *ret_label = current;
        *ret_ours = ours;
        if (current && !is_ours) {
                *ret_ours = NULL; /* another writer changed the label, so the value that the controller wrote
                                     no longer matters */
        } else if (!enabled || (clique && !*clique)) {
                *ret_label = *ret_ours = NULL;
        } else if (clique) {
                *ret_label = *ret_ours = clique;
        }
        return !streq(*ret_label, current) || !streq(*ret_ours, ours);
}

/* ---- the index rule ---- */

enum { NOWHERE = -1 };

/* Hash tables of nodes and indices: a ComputeDomain without a partition may have ten thousand nodes. */
struct node_known {
        UT_hash_handle hh;
        const char *node;
        ptrdiff_t first_held; /* position of its first entry in `held` */
        bool member;
};

struct index_known {
        UT_hash_handle hh;
        int64_t index;
        ptrdiff_t first_held; /* as above; NOWHERE: no node held it */
        bool freed, taken;    /* in the list of freed indices; used by a member */
};

struct known {
        struct arena *a;
        struct node_known *nodes;
        struct index_known *indices;
};

static struct node_known *know_node(struct known *k, const char *node) {
        struct node_known *x;
        HASH_FIND_STR(k->nodes, node, x);
        if (x)
                return x;
        x = arena_alloc(k->a, sizeof *x);
        *x = (struct node_known){ .node = node, .first_held = NOWHERE };
        HASH_ADD_KEYPTR(hh, k->nodes, node, strlen(node), x);
        return x;
}

static struct index_known *find_index(const struct known *k, int64_t index) {
        struct index_known *x;
        HASH_FIND(hh, k->indices, &index, sizeof index, x);
        return x;
}

static struct index_known *know_index(struct known *k, int64_t index) {
        struct index_known *x = find_index(k, index);
        if (x)
                return x;
        x = arena_alloc(k->a, sizeof *x);
        *x = (struct index_known){ .index = index, .first_held = NOWHERE };
        HASH_ADD(hh, k->indices, index, sizeof x->index, x);
        return x;
}

static void know_held(struct known *k, const struct rules_index *held, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct node_known *node = know_node(k, held[i].node);
                struct index_known *index = know_index(k, held[i].index);
                if (node->first_held == NOWHERE)
                        node->first_held = (ptrdiff_t)i;
                if (index->first_held == NOWHERE)
                        index->first_held = (ptrdiff_t)i;
        }
}

static int64_t rules_keep(struct known *k, const struct rules_index *held, const char *member) {
        struct node_known *node = know_node(k, member);
        node->member = true;
        if (node->first_held == NOWHERE || held[node->first_held].index < 0)
                return -1;
        struct index_known *index = find_index(k, held[node->first_held].index);
        if (index->first_held != node->first_held)
                return -1; /* another node holds it, too, and comes first */
        index->taken = true;
        return index->index;
}

/* Where the search for a free index continues. Indices that it has passed do not become free again. */
struct search {
        int64_t unused; /* the lowest index that may never have been used */
        size_t freed;   /* the first index in the list that may be free */
};

/* The lowest index that was never used, or else the index that has been free for longest, or else -1. */
static int64_t take_free(struct known *k, struct search *s, const int64_t *freed, size_t n_freed,
                         int64_t max_nodes) {
        struct index_known *x;
        for (; s->unused < max_nodes; s->unused++) {
                x = find_index(k, s->unused);
                if (x && (x->taken || x->freed))
                        continue;
                know_index(k, s->unused)->taken = true;
                return s->unused;
        }
        for (; s->freed < n_freed; s->freed++) {
                x = find_index(k, freed[s->freed]);
                if (x->index < 0 || x->index >= max_nodes || x->taken)
                        continue;
                x->taken = true;
                return x->index;
        }
        return -1;
}

void rules_indices(const struct rules_indices_input *in, struct arena *a, struct rules_index *ret_indices,
                   const int64_t **ret_freed, size_t *ret_n_freed) {
        BUG_ON(!ret_indices || !ret_freed || !ret_n_freed);
        /* An index that is freed in this step is appended to the list, so it is reused last. */
        int64_t *list = arena_alloc(a, (in->n_freed + in->n_held + 1) * sizeof *list);
        size_t n_list = 0, n = 0;
        struct known k = { .a = a };
        struct search search = { 0 };
        know_held(&k, in->held, in->n_held);
        for (size_t i = 0; i < in->n_freed; i++) {
                struct index_known *x = know_index(&k, in->freed[i]);
                if (!x->freed && x->first_held == NOWHERE)
                        list[n_list++] = in->freed[i];
                x->freed = x->freed || x->first_held == NOWHERE;
        }
        for (size_t i = 0; i < in->n_members; i++)
                ret_indices[i] = (struct rules_index){ .node = in->members[i],
                                                       .index = rules_keep(&k, in->held, in->members[i]) };
        for (size_t i = 0; i < in->n_held; i++) {
                struct index_known *x = find_index(&k, in->held[i].index);
                if (know_node(&k, in->held[i].node)->member || x->index < 0 || x->taken || x->freed)
                        continue;
                x->freed = true;
                list[n_list++] = x->index;
        }
        for (size_t i = 0; i < in->n_members; i++)
                if (ret_indices[i].index < 0)
                        ret_indices[i].index = take_free(&k, &search, list, n_list, in->max_nodes);
        for (size_t i = 0; i < n_list; i++)
                if (!find_index(&k, list[i])->taken)
                        list[n++] = list[i];
        HASH_CLEAR(hh, k.nodes);
        HASH_CLEAR(hh, k.indices);
        *ret_freed = list;
        *ret_n_freed = n;
}

size_t rules_freed_parse(const char *freed, struct arena *a, int64_t **ret) {
        struct str rest = str_from(freed), part;
        size_t n = 0;
        *ret = arena_alloc(a, (rest.n + 1) * sizeof **ret);
        while (rest.n && str_next_field(&rest, ',', &part))
                if (str_to_i64(str_trim(part), &(*ret)[n]))
                        n++;
        return n;
}

const char *rules_freed_render(const int64_t *freed, size_t n, struct arena *a) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        for (size_t i = 0; i < n; i++)
                buf_addf(&b, "%s%lld", i ? "," : "", (long long)freed[i]);
        return n && !b.failed ? arena_strdup(a, buf_str(&b)) : NULL;
}

bool rules_is_down(const struct pod *p) {
        for (size_t i = 0; i < p->n_containers; i++)
                if (pod_container_down(&p->containers[i]))
                        return true;
        return false;
}
