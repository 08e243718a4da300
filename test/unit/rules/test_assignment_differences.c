/* SPDX-License-Identifier: Apache-2.0 */
/* What rules/assignment decides otherwise than the rule before it (rules/rosters), on the inputs of random
 * histories. Each difference belongs to a class that has a reason and a test in test_assignment.c; one that
 * belongs to none fails. HISTORIES says how many histories. */
#include "assignment_history.h"
#include "rules/rosters.h"

enum { HISTORIES_DEFAULT = 2000 };

enum class {
        SAME,
        PROOF,      /* the old rule frees what a Pod that the API does not show may still run */
        RESERVED,   /* the new rule keeps the index of an ended epoch for the node while claims are there */
        SUCCESSOR,  /* the new rule gives a new epoch to the next daemon, the old one kept that of the Pod before */
        BOOT,       /* the old rule kept an epoch over a reboot */
        UNPREPARED, /* the plugin's word is new */
        TRUST,      /* without a slice a report frees nothing */
        RECOUNT,    /* the old rule was told from outside that assignments may be missing */
        ROOM,       /* the old rule made an index active again for which the domain has no room */
        CONFLICT,   /* a node lies, or etcd was restored: who yields is decided by who may run */
        INDEX,      /* what comes gets another index, or none, because of another node's difference */
        N_CLASSES
};

static const struct {
        const char *name, *test;
} classes[N_CLASSES] = {
        [SAME] = { "same", "" },
        [PROOF] = { "proof", "no_word_of_the_daemon_frees_nothing" },
        [RESERVED] = { "reserved", "a_proof_reserves_the_index_of_a_node_with_claims" },
        [SUCCESSOR] = { "successor", "a_proof_reserves_the_index_of_a_node_with_claims" },
        [BOOT] = { "boot", "a_proof_frees_the_index_of_a_node_without_claims" },
        [UNPREPARED] = { "unprepared", "a_proof_frees_the_index_of_a_node_without_claims" },
        [TRUST] = { "trust", "without_a_slice_a_report_reserves_and_frees_nothing" },
        [RECOUNT] = { "recount", "each_sign_of_a_restore_starts_a_recount" },
        [ROOM] = { "room", "an_index_for_which_there_is_no_room_blocks_none" },
        [INDEX] = { "index", "a_proof_reserves_the_index_of_a_node_with_claims" },
        [CONFLICT] = { "conflict", "what_runs_counts_more_than_what_is_written" },
};

struct counts {
        uint64_t n[N_CLASSES];
        struct arena *a;
};

/* ---- the old rule on the new rule's input ---- */

static void translate_domains(const struct assignment_input *in, struct arena *a, struct fabric_domain *ret) {
        for (size_t i = 0; i < in->n_old; i++) {
                const struct fabric_domain *d = &in->old[i];
                ret[i] = (struct fabric_domain){ .owner = d->owner,
                                              .infix = d->infix,
                                              .slots = d->slots,
                                              .port = d->port,
                                              .freed = d->freed,
                                              .seats = arena_alloc(a, (d->n_assignments + 1) * sizeof *ret->seats),
                                              .leaving = arena_alloc(a, (d->n_assignments + 1) * sizeof *ret->leaving) };
                for (size_t j = 0; j < d->n_assignments; j++) {
                        const struct fabric_assignment *x = &d->assignments[j];
                        struct fabric_seat s = { .node = x->node, .index = x->index, .epoch = x->epoch };
                        if (fabric_is_leaving(x))
                                ret[i].leaving[ret[i].n_leaving++] = s;
                        else
                                ret[i].seats[ret[i].n_seats++] = s;
                }
        }
}

static void decide_as_before(const struct assignment_input *in, bool lost, struct arena *a, struct rosters *ret) {
        struct fabric_domain *old = arena_alloc(a, (in->n_old + 1) * sizeof *old);
        struct rosters_node *nodes = arena_alloc(a, (in->n_nodes + 1) * sizeof *nodes);
        struct rosters_domain *domains = arena_alloc(a, (in->n_domains + 1) * sizeof *domains);
        translate_domains(in, a, old);
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct assignment_node *n = &in->nodes[i];
                nodes[i] = (struct rosters_node){ .name = n->name,
                                                  .ip = n->ip,
                                                  .boot_id = n->boot_id,
                                                  .wanted = n->wanted,
                                                  .released = n->released,
                                                  .quiet = n->dead || !n->report.pod_uid,
                                                  .ending = n->ending,
                                                  .report = { n->report.domain, n->report.infix, n->report.index,
                                                              n->report.epoch, n->report.left, n->report.n_left,
                                                              n->report.seen } };
        }
        for (size_t i = 0; i < in->n_domains; i++)
                domains[i] = (struct rosters_domain){ .owner = in->domains[i].owner,
                                                      .infix = in->domains[i].infix,
                                                      .idle = in->domains[i].idle };
        rosters_make(&(struct rosters_input){ .old = old, .n_old = in->n_old, .epoch = in->epoch, .nodes = nodes,
                                              .n_nodes = in->n_nodes, .domains = domains,
                                              .n_domains = in->n_domains, .slots = in->slots, .lost = lost },
                     a, ret);
}

/* ---- the comparison ---- */

/* What one of the rules says of a node in a domain. */
struct word {
        bool is, leaving, reserved, fresh; /* fresh: the epoch is new */
        int64_t index;
};

static struct word old_word(const struct rosters *r, const char *uid, const char *node, int64_t last) {
        for (size_t i = 0; i < r->n_domains; i++)
                for (size_t j = 0; j < r->domains[i].n_seats + r->domains[i].n_leaving; j++) {
                        const struct fabric_domain *d = &r->domains[i];
                        bool leaving = j >= d->n_seats;
                        const struct fabric_seat *s = leaving ? &d->leaving[j - d->n_seats] : &d->seats[j];
                        if (streq(d->owner.uid, uid) && streq(s->node, node))
                                return (struct word){ true, leaving, false, s->epoch > last, s->index };
                }
        return (struct word){ 0 };
}

static const struct fabric_assignment *find(const struct fabric_domain *d, size_t n, const char *uid, const char *node) {
        for (size_t i = 0; i < n; i++)
                if (streq(d[i].owner.uid, uid))
                        return fabric_assignment_of(&d[i], node);
        return NULL;
}

static struct word new_word(const struct assignment *r, const char *uid, const char *node, int64_t last) {
        const struct fabric_assignment *x = find(r->domains, r->n_domains, uid, node);
        if (!x)
                return (struct word){ 0 };
        return (struct word){ true, fabric_is_leaving(x), fabric_is_reserved(x), x->epoch > last, x->index };
}

static bool is_same(const struct word *x, const struct word *y) {
        return x->is == y->is && (!x->is || (x->leaving == y->leaving && x->reserved == y->reserved &&
                                             x->fresh == y->fresh && x->index == y->index));
}

static bool reports_left(const struct assignment_node *n, int64_t epoch) {
        for (size_t i = 0; i < n->report.n_left; i++)
                if (n->report.left[i] == epoch)
                        return true;
        return false;
}

/* Does the domain list two nodes with this index, or does a node report that it runs with it? */
static bool is_contested(const struct assignment_input *in, const char *uid, const char *node, int64_t index) {
        for (size_t i = 0; i < in->n_nodes; i++) {
                const struct fabric_assignment *x = find(in->old, in->n_old, uid, in->nodes[i].name);
                if (streq(in->nodes[i].name, node))
                        continue;
                if ((x && x->index == index) ||
                    (streq(in->nodes[i].report.domain, uid) && in->nodes[i].report.index == index))
                        return true;
        }
        return false;
}

static enum class classify(const struct assignment_input *in, const struct assignment *out, const char *uid,
                           const struct assignment_node *n, const struct word *was, const struct word *is) {
        const struct fabric_assignment *x = find(in->old, in->n_old, uid, n->name);
        const char *claim = x ? x->claim : n->report.claim, *boot = x ? x->boot_id : n->report.boot_id;
        if (is_same(was, is))
                return SAME;
        if (x && fabric_is_reserved(x))
                return RESERVED;
        if (n->trust != ASSIGNMENT_TRUST_FULL)
                return TRUST;
        if (claim && streq(n->unprepared, claim))
                return UNPREPARED;
        if (boot && n->boot_id && !streq(n->boot_id, boot))
                return BOOT;
        if (x && streq(n->report.domain, uid) && n->report.epoch == x->epoch && n->report.index != x->index)
                return CONFLICT;
        if (n->report.domain && reports_left(n, n->report.epoch))
                return CONFLICT; /* the report contradicts itself */
        if (x && x->index >= in->slots)
                return ROOM;
        if (x && !n->report.pod_uid && !n->dead)
                return PROOF;
        if (x && (n->dead || reports_left(n, x->epoch)) && is->is && (is->reserved || is->fresh))
                return is->reserved ? RESERVED : SUCCESSOR;
        if (out->recount)
                return RECOUNT;
        if ((is->is && is_contested(in, uid, n->name, is->index)) ||
            (was->is && is_contested(in, uid, n->name, was->index)))
                return CONFLICT;
        return was->fresh || is->fresh ? INDEX : N_CLASSES;
}

static void compare(void *u, const struct assignment_input *in, const struct assignment *out) {
        struct counts *c = u;
        struct arena *a = arena_new(1 << 16);
        struct rosters old;
        decide_as_before(in, out->recount != 0, a, &old);
        for (size_t d = 0; d < in->n_domains; d++) {
                uint64_t others = 0, follow = 0;
                for (size_t i = 0; i < in->n_nodes; i++) {
                        const char *uid = in->domains[d].owner.uid;
                        const struct assignment_node *n = &in->nodes[i];
                        struct word was = old_word(&old, uid, n->name, in->epoch),
                                    is = new_word(out, uid, n->name, in->epoch);
                        enum class k = classify(in, out, uid, n, &was, &is);
                        if (k == N_CLASSES)
                                fail_msg("%s of %s: is %d leaving %d fresh %d index %lld before, is %d leaving %d reserved "
                                         "%d fresh %d index %lld now",
                                         n->name, uid, was.is, was.leaving, was.fresh, (long long)was.index, is.is,
                                         is.leaving, is.reserved, is.fresh, (long long)is.index);
                        c->n[k]++;
                        follow += k == INDEX;
                        others += k != INDEX && k != SAME;
                }
                if (follow && !others)
                        fail_msg("an index differs in %s, and nothing else", in->domains[d].owner.uid);
        }
        arena_free(a);
}

static void each_difference_has_a_class(void **state) {
        const char *n = getenv("HISTORIES");
        uint64_t count = n ? strtoull(n, NULL, 10) : HISTORIES_DEFAULT;
        struct counts c = { 0 };
        for (uint64_t i = 0; i < count; i++)
                run_history(i, i % 4 == 3, compare, &c);
        for (size_t i = 0; i < N_CLASSES; i++)
                print_message("%-12s %12llu  %s\n", classes[i].name, (unsigned long long)c.n[i], classes[i].test);
        for (size_t i = 0; i < N_CLASSES; i++)
                assert_int_not_equal(c.n[i], 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_difference_has_a_class) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
