/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/assignment.h"

#include <stdlib.h>
#include <string.h>

#include "imex/imex_files.h"
#include "rules/rules.h"
#include "rules/sorted.h"

enum { PORT_BITS = 12 };
_Static_assert(ASSIGNMENT_PORT_LAST - ASSIGNMENT_PORT_FIRST + 1 == 1 << PORT_BITS, "a port for each hash");

int64_t assignment_port(const char *infix) {
        uint32_t hash = 2166136261u; /* FNV-1a */
        for (const char *p = infix; *p; p++)
                hash = (hash ^ (unsigned char)*p) * 16777619u;
        return ASSIGNMENT_PORT_FIRST + (hash >> (32 - PORT_BITS));
}

/* ---- which epochs count ---- */

static bool assignment_counts(const struct assignment_node *n) {
        return n->trust != ASSIGNMENT_TRUST_NONE && n->report.pod_uid;
}

static int64_t seen_epoch(const struct assignment_node *n) {
        return n->report.seen > n->report.epoch ? n->report.seen : n->report.epoch;
}

/* The highest epoch that at least two nodes have seen, or that the only reporting node has seen. If the
 * object has given no epoch, nodes that have seen none do not count: they are as new as the object. */
static int64_t witnessed_epoch(const struct assignment_input *in) {
        int64_t first = 0, second = 0;
        size_t n = 0;
        for (size_t i = 0; i < in->n_nodes; i++) {
                int64_t seen = assignment_counts(&in->nodes[i]) ? seen_epoch(&in->nodes[i]) : 0;
                if (!assignment_counts(&in->nodes[i]) || (seen <= 0 && !in->epoch))
                        continue;
                n++;
                if (seen > first) {
                        second = first;
                        first = seen;
                } else if (seen > second) {
                        second = seen;
                }
        }
        return n == 1 && first <= ASSIGNMENT_EPOCH_ALONE ? first : second;
}

static int64_t max_epoch(const struct assignment_input *in) {
        int64_t witnessed = witnessed_epoch(in), base = witnessed > in->epoch ? witnessed : in->epoch;
        return base < INT64_MAX - DAEMON_REPORT_EPOCHS_AHEAD ? base + DAEMON_REPORT_EPOCHS_AHEAD : INT64_MAX;
}

/* The input without epochs that do not count. A daemon that has seen a later epoch accepts no lower one, so
 * its node gets no assignment. */
static struct assignment_input within_bounds(const struct assignment_input *in, struct arena *a) {
        struct assignment_input ret = *in;
        struct assignment_node *nodes = arena_alloc(a, (in->n_nodes + 1) * sizeof *nodes);
        int64_t most = max_epoch(in);
        for (size_t i = 0; i < in->n_nodes; i++) {
                struct assignment_report *r = &nodes[i].report;
                nodes[i] = in->nodes[i];
                nodes[i].ending = nodes[i].ending || seen_epoch(&nodes[i]) > most;
                if (r->epoch < 0 || r->epoch > most) {
                        r->domain = NULL;
                        r->epoch = 0;
                }
                if (r->seen > most)
                        r->seen = 0;
        }
        ret.nodes = nodes;
        return ret;
}

/* ---- what is known of a node ---- */

static int compare_name(const void *name, const void *node) {
        return strcmp(name, ((const struct assignment_node *)node)->name);
}

static const struct assignment_node *assignment_find_node(const struct assignment_input *in,
                                                          const char *name) {
        return in->n_nodes ? bsearch(name, in->nodes, in->n_nodes, sizeof *in->nodes, compare_name) : NULL;
}

static const struct assignment_domain *find_domain(const struct assignment_input *in, const char *uid) {
        for (size_t i = 0; i < in->n_domains; i++)
                if (streq(in->domains[i].owner.uid, uid))
                        return &in->domains[i];
        return NULL;
}

static bool assignment_is_set(const char *s) {
        return s && *s;
}

static bool differ(const char *a, const char *b) {
        return assignment_is_set(a) && assignment_is_set(b) && !streq(a, b);
}

static bool assignment_has_left(const struct assignment_node *n, int64_t epoch) {
        return n->trust == ASSIGNMENT_TRUST_FULL &&
               (daemon_report_has_epoch(n->report.left, n->report.n_left, epoch) ||
                daemon_report_has_epoch(n->more_left, n->n_more_left, epoch));
}

/* There is proof that nothing runs with the epoch now or later. */
static bool has_ended(const struct assignment_node *n, const char *claim, const char *boot_id,
                      int64_t epoch) {
        return n->dead || n->moved || differ(n->boot_id, boot_id) || assignment_has_left(n, epoch) ||
               (assignment_is_set(claim) && streq(n->unprepared, claim));
}

/* The UID of the owner of the IMEX domain that the node runs, from a report that counts; NULL: none. */
static const char *assignment_running(const struct assignment_input *in, const struct assignment_node *n) {
        const struct assignment_report *r = &n->report;
        if (!assignment_counts(n) || !r->domain || r->index < 0 || r->index >= IMEX_SLOTS_MAX)
                return NULL;
        return has_ended(n, r->claim, r->boot_id, r->epoch) ? NULL : r->domain;
}

/* The same for an assignment that the object does not list. It does not count while the node is doubtful.
 * Otherwise, an ended assignment would be entered again as soon as the object has another version, for which
 * the API server has not confirmed the end yet. */
static const char *running_domain(const struct assignment_input *in, const struct assignment_node *n) {
        return n->doubtful ? NULL : assignment_running(in, n);
}

/* The IMEX domain in which the report of the node may add an assignment to the object; NULL: none. */
static const char *unlisted_domain(const struct assignment_input *in, const struct assignment_node *n) {
        size_t listed = 0;
        for (size_t i = 0; i < in->n_old; i++)
                listed += fabric_assignment_of(&in->old[i], n->name) != NULL;
        return listed < ASSIGNMENT_NODE_MAX ? running_domain(in, n) : NULL;
}

static bool runs(const struct assignment_input *in, const struct assignment_node *n, const char *uid,
                 int64_t epoch) {
        return n->report.epoch == epoch && streq(assignment_running(in, n), uid);
}

static const struct fabric_removal *find_removal(const struct fabric_removal *list, size_t n,
                                                 const char *node) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].node, node))
                        return &list[i];
        return NULL;
}

/* The object lists an assignment in another IMEX domain that the daemon may still have. */
static bool may_have_another(const struct assignment_input *in, const struct assignment_node *n,
                             const char *uid) {
        for (size_t i = 0; i < in->n_old; i++)
                for (size_t j = 0; j < in->old[i].n_assignments; j++) {
                        const struct fabric_assignment *a = &in->old[i].assignments[j];
                        if (streq(a->node, n->name) && !streq(in->old[i].owner.uid, uid) &&
                            streq(a->claim, n->report.claim) && !has_ended(n, a->claim, a->boot_id, a->epoch))
                                return true;
                }
        return false;
}

/* The Pod of the daemon has served no other IMEX domain. A report may be late: a daemon with an assignment
 * may have served it since then, until it reports that it has left. */
static bool is_fresh(const struct assignment_input *in, const struct assignment_node *n, const char *uid) {
        const struct assignment_report *r = &n->report;
        return (!r->served || streq(r->domain, uid)) && !may_have_another(in, n, uid);
}

/* The node has a daemon that may get an assignment. */
static bool can_take(const struct assignment_input *in, const struct assignment_node *n, const char *uid) {
        const struct assignment_report *r = &n->report;
        const struct fabric_removal *x = find_removal(in->removals, in->n_removals, n->name);
        if (n->trust != ASSIGNMENT_TRUST_FULL || !r->pod_uid || n->dead || n->doubtful || n->ending ||
            differ(n->boot_id, r->boot_id) || streq(n->unprepared, r->claim))
                return false;
        if (streq(n->remove, r->pod_uid) || (x && streq(x->pod_uid, r->pod_uid)))
                return false;
        return !in->fresh_pod_per_domain || is_fresh(in, n, uid);
}

/* ---- one IMEX domain ---- */

struct entry {
        struct fabric_assignment a;
        bool reported;     /* the node runs it */
        bool was_reserved; /* so it runs nowhere, even if it has lost its index */
};

struct work {
        const struct assignment_input *in;
        struct arena *arena;
        struct assignment *out;
        const struct fabric_domain *old;        /* NULL: the IMEX domain is new */
        const struct assignment_domain *domain; /* NULL: nothing is known of its owner */
        const char *uid;
        struct imex_domain imex; /* its settings */
        struct entry *entries;
        size_t n;
};

static struct entry *assignment_find_entry(struct work *w, const char *node) {
        for (size_t i = 0; i < w->n; i++)
                if (streq(w->entries[i].a.node, node))
                        return &w->entries[i];
        return NULL;
}

static bool assignment_is_ending(const struct work *w) {
        return w->domain && (w->domain->ending || w->domain->gone);
}

static bool assignment_is_wanted(const struct work *w, const struct assignment_node *n) {
        return streq(n->wanted, w->uid) && !assignment_is_ending(w);
}

/* No claim for the IMEX domain is on the node. A cache that shows none is not enough. */
static bool assignment_is_released(const struct work *w, const struct assignment_node *n) {
        return assignment_is_ending(w) || (!assignment_is_wanted(w, n) && (n->released || n->wanted));
}

/* The node runs another IMEX domain. Its report counts more than the object: a restored object may list the
 * node as active in an earlier IMEX domain. */
static bool runs_another(const struct work *w, const struct assignment_node *n) {
        const char *uid = running_domain(w->in, n);
        return uid && !streq(uid, w->uid);
}

/* An assignment that is Leaving stays Leaving until claims return, because the daemon may be stopping
 * IMEX. */
static enum fabric_state assignment_state_of(const struct work *w, const struct assignment_node *n,
                                             bool was_leaving) {
        if (assignment_is_ending(w))
                return FABRIC_ENDING;
        if (assignment_is_wanted(w, n))
                return FABRIC_ACTIVE;
        return was_leaving || assignment_is_released(w, n) || runs_another(w, n) ? FABRIC_LEAVING
                                                                                 : FABRIC_ACTIVE;
}

static bool has_room(const struct work *w, int64_t index) {
        return index >= 0 && index < w->imex.slots;
}

/* The node runs a later epoch in the same IMEX domain, so this epoch has ended. Or it runs this epoch in
 * another IMEX domain: the object was restored, and gave the epoch again. The node never takes it. */
static bool is_overtaken(const struct work *w, const struct assignment_node *n, int64_t epoch) {
        const char *uid = running_domain(w->in, n);
        return uid && (streq(uid, w->uid) ? n->report.epoch > epoch : n->report.epoch == epoch);
}

static void assignment_keep(struct work *w, const struct fabric_assignment *a) {
        const struct assignment_node *n = assignment_find_node(w->in, a->node);
        struct entry e = { .a = *a };
        if (!n) /* an entry without the name of a node, which the controller never writes */
                return;
        if (assignment_find_entry(w, a->node) || is_overtaken(w, n, a->epoch))
                return;
        if (fabric_is_reserved(a) || has_ended(n, a->claim, a->boot_id, a->epoch)) {
                if (assignment_is_released(w, n) || !has_room(w, a->index))
                        return;
                e.was_reserved = true;
                e.a.state = fabric_state_name(FABRIC_RESERVED);
                e.a.claim = e.a.boot_id = e.a.ip = NULL;
        } else {
                e.reported = !n->doubtful && runs(w->in, n, w->uid, a->epoch);
                /* The daemon that runs the assignment names itself and its index. The object may differ:
                 * it was restored, or another process on the node had written a false report. */
                if (e.reported) {
                        e.a.index = n->report.index;
                        e.a.claim = n->report.claim;
                        e.a.boot_id = n->report.boot_id;
                }
                e.a.state = fabric_state_name(has_room(w, e.a.index)
                                                      ? assignment_state_of(w, n, fabric_is_leaving(a))
                                                      : FABRIC_LEAVING);
        }
        w->entries[w->n++] = e;
}

/* A node's report counts more than the object, which may have been deleted or restored. So an assignment that
 * the node runs is added to the object. It is Leaving if its index is beyond the slots. */
static void adopt(struct work *w, const struct assignment_node *n) {
        const struct assignment_report *r = &n->report;
        if (!streq(unlisted_domain(w->in, n), w->uid) || assignment_find_entry(w, n->name))
                return;
        w->entries[w->n++] = (struct entry){
                .a = { .node = n->name,
                       .index = r->index,
                       .epoch = r->epoch,
                       .claim = r->claim,
                       .boot_id = r->boot_id,
                       .state = fabric_state_name(has_room(w, r->index) ? assignment_state_of(w, n, false)
                                                                        : FABRIC_LEAVING) },
                .reported = true,
        };
}

/* Two entries have the same index: does x give it up? An entry that was reserved gives it up first, because
 * nothing runs with it. A node that reports that it runs with the index keeps it. Otherwise the first entry
 * keeps it. */
static bool yields(const struct entry *x, const struct entry *y, bool x_is_first) {
        if (x->was_reserved != y->was_reserved)
                return x->was_reserved;
        return x->reported == y->reported ? !x_is_first : y->reported;
}

static void resolve_conflicts(struct work *w) {
        size_t n = 0;
        for (size_t i = 0; i < w->n; i++)
                for (size_t j = 0; j < w->n && !fabric_is_leaving(&w->entries[i].a); j++)
                        if (i != j && w->entries[i].a.index == w->entries[j].a.index &&
                            yields(&w->entries[i], &w->entries[j], i < j))
                                w->entries[i].a.state = fabric_state_name(FABRIC_LEAVING);
        /* A reservation that gives up its index ends at once. */
        for (size_t i = 0; i < w->n; i++)
                if (!w->entries[i].was_reserved || fabric_is_reserved(&w->entries[i].a))
                        w->entries[n++] = w->entries[i];
        w->n = n;
}

static struct fabric_assignment given(const struct work *w, const struct assignment_node *n, int64_t index) {
        return (struct fabric_assignment){ .node = n->name,
                                           .index = index,
                                           .epoch = ++w->out->epoch,
                                           .claim = n->report.claim,
                                           .boot_id = n->report.boot_id };
}

/* The nodes that join: wanted, with a daemon that can take an assignment, and without an entry. */
static size_t find_coming(struct work *w, const struct assignment_node **ret) {
        const struct assignment_input *in = w->in;
        size_t n = 0;
        for (size_t i = 0; i < in->n_nodes; i++)
                if (assignment_is_wanted(w, &in->nodes[i]) && can_take(in, &in->nodes[i], w->uid) &&
                    !assignment_find_entry(w, in->nodes[i].name))
                        ret[n++] = &in->nodes[i];
        return n;
}

/* Gives epochs to nodes. A node with a reserved index gets the same index again. A node that joins gets an
 * index that was never used, or the one that has been free for longest. Returns the list of free indices that
 * were used before. */
static const char *assignment_assign(struct work *w) {
        size_t n_old = w->old ? w->old->n_assignments : 0, n_held = 0, n_members = 0;
        struct rules_index *held = arena_alloc(w->arena, (n_old + w->n + 1) * sizeof *held),
                           *indices = arena_alloc(w->arena, (w->n + w->in->n_nodes + 1) * sizeof *indices);
        const char **members = arena_alloc(w->arena, (w->n + w->in->n_nodes + 1) * sizeof *members);
        const struct assignment_node **coming = arena_alloc(w->arena, (w->in->n_nodes + 1) * sizeof *coming);
        const int64_t *freed;
        int64_t *before;
        size_t n_before = rules_freed_parse(w->old ? w->old->freed : NULL, w->arena, &before), n_freed;
        bool may_assign = w->in->object && !w->in->copy && !w->out->recount && !w->out->unsure &&
                          w->out->epoch < INT64_MAX - (int64_t)(w->n + w->in->n_nodes);
        size_t n_kept = w->n, n_coming = may_assign ? find_coming(w, coming) : 0;
        for (size_t i = 0; i < n_kept; i++)
                held[n_held++] = (struct rules_index){ .node = members[n_members++] = w->entries[i].a.node,
                                                       .index = w->entries[i].a.index };
        /* An index that is freed now is reused last, even by the node that had it. */
        for (size_t i = 0; i < n_old; i++)
                if (!assignment_find_entry(w, w->old->assignments[i].node))
                        held[n_held++] =
                                (struct rules_index){ .node = arena_printf(w->arena, "%s (before)",
                                                                           w->old->assignments[i].node),
                                                      .index = w->old->assignments[i].index };
        for (size_t i = 0; i < n_coming; i++)
                members[n_members++] = coming[i]->name;
        struct rules_indices_input in = { held, n_held, before, n_before, members, n_members, w->imex.slots };
        rules_indices(&in, w->arena, indices, &freed, &n_freed);
        for (size_t i = 0; i < n_kept && may_assign; i++) {
                struct entry *e = &w->entries[i];
                const struct assignment_node *n = assignment_find_node(w->in, e->a.node);
                if (fabric_is_reserved(&e->a) && assignment_is_wanted(w, n) && can_take(w->in, n, w->uid))
                        e->a = given(w, n, e->a.index);
        }
        for (size_t i = 0; i < n_coming; i++)
                if (indices[n_kept + i].index >= 0)
                        w->entries[w->n++].a = given(w, coming[i], indices[n_kept + i].index);
        return rules_freed_render(freed, n_freed, w->arena);
}

static int by_index(const void *x, const void *y) {
        const struct fabric_assignment *a = x, *b = y;
        if (a->index != b->index)
                return a->index < b->index ? -1 : 1;
        return strcmp(a->node, b->node);
}

static void write_entries(const struct work *w, struct fabric_domain *ret) {
        ret->assignments = arena_alloc(w->arena, (w->n + 1) * sizeof *ret->assignments);
        ret->n_assignments = w->n;
        for (size_t i = 0; i < w->n; i++) {
                ret->assignments[i] = w->entries[i].a;
                ret->assignments[i].ip = NULL;
        }
        if (w->n)
                qsort(ret->assignments, w->n, sizeof *ret->assignments, by_index);
}

/* An IMEX domain that the object does not list. Its infix and port depend on its UID only: no report can
 * influence them for other nodes. */
static struct imex_domain new_settings(const struct work *w) {
        struct imex_domain imex = w->domain ? w->domain->imex : (struct imex_domain){ .slots = w->in->slots };
        char *infix = arena_alloc(w->arena, IMEX_INFIX_SIZE);
        imex_infix(w->uid, infix);
        imex.infix = infix;
        imex.port = assignment_port(infix);
        return imex;
}

/* False: the IMEX domain is removed from the object. */
static bool make_domain(struct work *w, struct fabric_domain *ret) {
        const struct assignment_input *in = w->in;
        size_t n_old = w->old ? w->old->n_assignments : 0;
        w->entries = arena_alloc(w->arena, (in->n_nodes + n_old + 1) * sizeof *w->entries);
        w->imex = w->old ? w->old->imex : new_settings(w);
        for (size_t i = 0; i < n_old; i++)
                assignment_keep(w, &w->old->assignments[i]);
        for (size_t i = 0; i < in->n_nodes; i++)
                adopt(w, &in->nodes[i]);
        resolve_conflicts(w);
        *ret = w->old ? *w->old
                      : (struct fabric_domain){ .owner = { .kind = "ComputeDomain", .uid = w->uid } };
        ret->imex = w->imex;
        if (w->domain)
                ret->owner = w->domain->owner;
        ret->freed = assignment_assign(w);
        write_entries(w, ret);
        return w->n ||
               (w->old && !(w->domain && (w->domain->gone || w->domain->is_standing || w->domain->idle)));
}

/* ---- is the object complete? ---- */

/* The object lists the assignment that the node runs, or a later epoch of it, or the node runs none. A later
 * epoch was given after the earlier one had ended, so a report of the earlier one is old. */
static bool is_known(const struct assignment_input *in, const struct assignment_node *n) {
        const char *uid = assignment_running(in, n);
        for (size_t i = 0; i < in->n_old && uid; i++)
                for (size_t j = 0; j < in->old[i].n_assignments; j++)
                        if (streq(in->old[i].owner.uid, uid) &&
                            streq(in->old[i].assignments[j].node, n->name) &&
                            in->old[i].assignments[j].epoch >= n->report.epoch)
                                return true;
        return !uid;
}

/* The node that has seen the highest epoch; NULL: no node has seen one. */
static const struct assignment_node *foremost(const struct assignment_input *in) {
        const struct assignment_node *first = NULL;
        for (size_t i = 0; i < in->n_nodes; i++)
                if (assignment_counts(&in->nodes[i]) &&
                    seen_epoch(&in->nodes[i]) > (first ? seen_epoch(first) : 0))
                        first = &in->nodes[i];
        return first;
}

/* The highest epoch that any node has seen; 0: none. */
static int64_t reported_epoch(const struct assignment_input *in) {
        const struct assignment_node *first = foremost(in);
        return first ? seen_epoch(first) : 0;
}

/* The report of this node shows that the object may lack assignments that daemons have. */
static bool has_sign(const struct assignment_input *in, const struct assignment_node *n) {
        const struct assignment_report *r = &n->report;
        if (n->trust != ASSIGNMENT_TRUST_FULL || !r->pod_uid || n->dead || n->doubtful)
                return false;
        if (assignment_is_set(r->object) && !streq(r->object, in->object))
                return true;
        return !is_known(in, n);
}

static bool has_answered(const struct assignment_node *n, const char *object, int64_t recount) {
        return assignment_counts(n) && streq(n->report.object, object) && n->report.recount >= recount;
}

/* Begins and ends a recount. During a recount no assignment is given, until each daemon that may have an
 * assignment has reported again. */
static void count_again(const struct assignment_input *in, struct arena *a, struct assignment *ret) {
        /* A reported epoch above the object's is a sign that assignments are missing, on any node where it
         * was seen. The object takes it over in this write, so it is a sign only once. If a recount runs, the
         * object is one of an earlier time, and the answers may be from that time, too: all daemons have to
         * answer again. */
        bool is_older = reported_epoch(in) > in->epoch, sign = in->copy || is_older;
        ret->unsure = in->vanished;
        ret->silent = arena_alloc(a, (in->n_nodes + 1) * sizeof *ret->silent);
        for (size_t i = 0; i < in->n_nodes; i++) {
                sign = sign || has_sign(in, &in->nodes[i]);
                ret->unsure = ret->unsure || (in->nodes[i].doubtful && !is_known(in, &in->nodes[i]));
        }
        ret->recount = in->recount;
        if ((in->rolled_back || is_older || (sign && !in->recount)) && ret->epoch < INT64_MAX)
                ret->recount = ++ret->epoch;
        const struct assignment_node *first = in->recount && is_older ? foremost(in) : NULL;
        ret->ahead = first ? first->name : NULL;
        for (size_t i = 0; i < in->n_nodes && ret->recount; i++)
                if (in->nodes[i].expected && !in->nodes[i].dead &&
                    (in->nodes[i].doubtful || !has_answered(&in->nodes[i], in->object, ret->recount)))
                        ret->silent[ret->n_silent++] = in->nodes[i].name;
        if (in->recount && ret->recount == in->recount && !ret->n_silent && !in->settling)
                ret->recount = 0;
}

/* The highest epoch that any node or the object knows. A restored object must not give it again. */
static int64_t last_epoch(const struct assignment_input *in) {
        int64_t reported = reported_epoch(in), last = reported > in->epoch ? reported : in->epoch;
        for (size_t i = 0; i < in->n_old; i++)
                for (size_t j = 0; j < in->old[i].n_assignments; j++)
                        last = in->old[i].assignments[j].epoch > last ? in->old[i].assignments[j].epoch
                                                                      : last;
        return last;
}

/* ---- daemons that are to be removed ---- */

static bool has_assignment(const struct assignment *out, const char *claim) {
        for (size_t i = 0; i < out->n_domains; i++)
                for (size_t j = 0; j < out->domains[i].n_assignments; j++)
                        if (streq(out->domains[i].assignments[j].claim, claim))
                                return true;
        return false;
}

/* The daemon is idle: it has no assignment, or its IMEX has never been READY in it. */
static bool assignment_is_idle(const struct assignment *out, const struct assignment_node *n) {
        const struct assignment_report *r = &n->report;
        return !streq(r->pod_uid, n->remove) || !r->ready || !has_assignment(out, r->claim);
}

/* A mark stays as long as its Pod may exist, because it forbids assignments to that Pod. */
static void mark_removals(const struct assignment_input *in, struct arena *a, struct assignment *ret) {
        ret->removals = arena_alloc(a, (in->n_nodes + 1) * sizeof *ret->removals);
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct assignment_node *n = &in->nodes[i];
                const struct fabric_removal *was = find_removal(in->removals, in->n_removals, n->name);
                if (n->remove && assignment_is_idle(ret, n))
                        ret->removals[ret->n_removals++] = (struct fabric_removal){ n->name, n->remove };
                else if (was && !n->dead && n->expected && !differ(n->report.pod_uid, was->pod_uid))
                        ret->removals[ret->n_removals++] = *was;
        }
}

/* ---- all IMEX domains ---- */

static bool assignment_is_listed(const struct assignment_input *in, const char *uid) {
        for (size_t i = 0; i < in->n_old; i++)
                if (streq(in->old[i].owner.uid, uid))
                        return true;
        return false;
}

/* The IMEX domains that the object does not list yet: those that nodes run, and those that nodes are wanted
 * in. */
static size_t find_new(const struct assignment_input *in, const char **ret) {
        size_t n = 0;
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct assignment_node *node = &in->nodes[i];
                const char *uids[] = { unlisted_domain(in, node), node->wanted };
                for (size_t j = 0; j < ARRAY_LEN(uids); j++)
                        if (uids[j] && !assignment_is_listed(in, uids[j]) && !has_string(ret, n, uids[j]) &&
                            (j == 0 || find_domain(in, uids[j])))
                                ret[n++] = uids[j];
        }
        return n;
}

static bool is_run(const struct assignment_input *in, const char *uid) {
        for (size_t i = 0; i < in->n_nodes; i++)
                if (streq(assignment_running(in, &in->nodes[i]), uid))
                        return true;
        return false;
}

/* If there is no room for n_more, IMEX domains without assignments are dropped, the oldest first. */
static void assignment_make_room(struct assignment *r, size_t n_more) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_domains; i++)
                if (r->domains[i].n_assignments || r->n_domains - (i - n) + n_more <= ASSIGNMENT_DOMAINS_MAX)
                        r->domains[n++] = r->domains[i];
        r->n_domains = n;
}

static void make_domains(const struct assignment_input *in, struct arena *a, struct assignment *ret) {
        const char **fresh = arena_alloc(a, (2 * in->n_nodes + 1) * sizeof *fresh);
        size_t n_fresh = find_new(in, fresh);
        ret->domains = arena_alloc(a, (in->n_old + n_fresh + 1) * sizeof *ret->domains);
        for (size_t i = 0; i < in->n_old + n_fresh; i++) {
                struct work w = {
                        .in = in, .arena = a, .out = ret, .old = i < in->n_old ? &in->old[i] : NULL
                };
                w.uid = w.old ? w.old->owner.uid : fresh[i - in->n_old];
                if (i == in->n_old)
                        assignment_make_room(ret, n_fresh);
                if (!w.old && ret->n_domains >= ASSIGNMENT_DOMAINS_MAX && !is_run(in, w.uid)) {
                        ret->n_refused++;
                        continue;
                }
                w.domain = find_domain(in, w.uid);
                if (make_domain(&w, &ret->domains[ret->n_domains]))
                        ret->n_domains++;
        }
}

static bool is_elsewhere(const struct assignment *r, const struct fabric_domain *d, const char *node) {
        for (size_t i = 0; i < r->n_domains; i++)
                if (&r->domains[i] != d && fabric_assignment_of(&r->domains[i], node))
                        return true;
        return false;
}

/* The object showed the address of the node in this IMEX domain before. */
static bool was_shown(const struct assignment_input *in, const char *uid, const struct fabric_assignment *x) {
        for (size_t i = 0; i < in->n_old; i++) {
                const struct fabric_assignment *was = fabric_assignment_of(&in->old[i], x->node);
                if (was && streq(in->old[i].owner.uid, uid) && was->epoch == x->epoch)
                        return assignment_is_set(was->ip);
        }
        return false;
}

/* The peers accept a node when they see its address, and anyone with the token of a node can write a report.
 * So an address is added only while a claim for the IMEX domain is on the node. During a recount, the object
 * may lack the IMEX domain that the node runs, so the node has to answer first. A new object gets the
 * addresses of its predecessor, so that running IMEX processes keep their peers. */
static bool may_show(const struct assignment_input *in, const struct assignment *r, const char *uid,
                     const struct assignment_node *n, const struct fabric_assignment *x) {
        bool knows = !r->recount || !in->object || has_answered(n, in->object, r->recount);
        return was_shown(in, uid, x) || (streq(n->wanted, uid) && knows);
}

/* Shows the address of a node in one IMEX domain at a time: nvidia-imex never reconnects two nodes that first
 * connected with different node lists. */
static void show_addresses(const struct assignment_input *in, struct assignment *r) {
        for (size_t i = 0; i < r->n_domains; i++)
                for (size_t j = 0; j < r->domains[i].n_assignments; j++) {
                        struct fabric_assignment *x = &r->domains[i].assignments[j];
                        const struct assignment_node *n = assignment_find_node(in, x->node);
                        if (fabric_is_active(x) && streq(n->report.claim, x->claim) &&
                            assignment_is_set(n->ip) && may_show(in, r, r->domains[i].owner.uid, n, x) &&
                            !is_elsewhere(r, &r->domains[i], x->node))
                                x->ip = n->ip;
                }
}

static void find_full(const struct assignment_input *in, struct arena *a, struct assignment *r) {
        r->full = arena_alloc(a, (in->n_nodes + 1) * sizeof *r->full);
        for (size_t i = 0; i < r->n_domains && !r->recount && !r->unsure; i++) {
                const struct fabric_domain *d = &r->domains[i];
                const struct assignment_domain *known = find_domain(in, d->owner.uid);
                if (!known || !known->is_standing)
                        continue;
                r->slots = d->imex.slots;
                for (size_t j = 0; j < in->n_nodes; j++)
                        if (streq(in->nodes[j].wanted, d->owner.uid) &&
                            can_take(in, &in->nodes[j], d->owner.uid) &&
                            !fabric_assignment_of(d, in->nodes[j].name))
                                r->full[r->n_full++] = in->nodes[j].name;
        }
}

static bool is_changed(const struct assignment_input *in, const struct assignment *r) {
        return r->epoch != in->epoch || r->recount != in->recount ||
               !jd_equal_list(fabric_domain_fields, r->domains, r->n_domains, in->old, in->n_old,
                              sizeof *in->old) ||
               !jd_equal_list(fabric_removal_fields, r->removals, r->n_removals, in->removals, in->n_removals,
                              sizeof *in->removals);
}

void assignment_make(const struct assignment_input *in, struct arena *a, struct assignment *ret) {
        BUG_ON_UNSORTED(in->nodes, in->n_nodes, name);
        BUG_ON(in->slots < 1 || in->slots > IMEX_SLOTS_MAX);
        const struct assignment_input bounded = within_bounds(in, a);
        *ret = (struct assignment){ .epoch = last_epoch(&bounded) };
        count_again(&bounded, a, ret);
        make_domains(&bounded, a, ret);
        show_addresses(&bounded, ret);
        mark_removals(&bounded, a, ret);
        find_full(&bounded, a, ret);
        ret->changed = is_changed(&bounded, ret);
}

/* ---- what must hold ---- */

/* Did the object list this epoch before, or does the node run it? */
static bool is_old(const struct assignment_input *in, const char *uid, const struct fabric_assignment *x) {
        const struct assignment_node *n = assignment_find_node(in, x->node);
        if (n && runs(in, n, uid, x->epoch))
                return true;
        for (size_t i = 0; i < in->n_old; i++)
                for (size_t j = 0; j < in->old[i].n_assignments; j++)
                        if (streq(in->old[i].owner.uid, uid) &&
                            streq(in->old[i].assignments[j].node, x->node) &&
                            in->old[i].assignments[j].epoch == x->epoch)
                                return true;
        return false;
}

static const char *assignment_check_domain(const struct assignment_input *in, const struct fabric_domain *d,
                                           struct arena *a) {
        const char *uid = d->owner.uid;
        for (size_t i = 0; i < d->n_assignments; i++) {
                const struct fabric_assignment *x = &d->assignments[i];
                if (!fabric_is_leaving(x) && (x->index < 0 || x->index >= d->imex.slots))
                        return arena_printf(a, "index %lld of %s is not below the %lld slots of domain %s",
                                            (long long)x->index, x->node, (long long)d->imex.slots, uid);
                for (size_t j = 0; j < i; j++) {
                        const struct fabric_assignment *y = &d->assignments[j];
                        bool both = !fabric_is_leaving(x) && !fabric_is_leaving(y);
                        if (streq(x->node, y->node))
                                return arena_printf(a, "domain %s lists node %s twice", uid, x->node);
                        if (x->index == y->index && (both || !is_old(in, uid, x) || !is_old(in, uid, y)))
                                return arena_printf(a, "domain %s gives index %lld to %s and %s", uid,
                                                    (long long)x->index, y->node, x->node);
                }
        }
        return NULL;
}

const char *assignment_check(const struct assignment_input *in, const struct assignment *out,
                             struct arena *a) {
        const struct assignment_input bounded = within_bounds(in, a);
        for (size_t i = 0; i < out->n_domains; i++) {
                const char *broken = assignment_check_domain(&bounded, &out->domains[i], a);
                if (broken)
                        return broken;
                for (size_t j = 0; j < i; j++)
                        for (size_t k = 0; k < out->domains[i].n_assignments; k++) {
                                const struct fabric_assignment *x = &out->domains[i].assignments[k];
                                const struct fabric_assignment *y =
                                        fabric_assignment_of(&out->domains[j], x->node);
                                if (fabric_is_active(x) && y && fabric_is_active(y))
                                        return arena_printf(a, "node %s is active in domains %s and %s",
                                                            x->node, out->domains[j].owner.uid,
                                                            out->domains[i].owner.uid);
                        }
        }
        return NULL;
}
