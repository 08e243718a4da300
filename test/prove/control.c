/* SPDX-License-Identifier: Apache-2.0 */
/* The decision of a controller: rules/assignment_facts and rules/assignment, with the facts that it has seen
 * in the world. */
#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "base/str.h"
#include "imex/imex_files.h"
#include "memo.h"
#include "model/daemon_report.h"
#include "rules/assignment_facts.h"
#include "rules/rules.h"
#include "world.h"

#define CLIQUE "33333333-4444-4555-8666-777777777777.1"
enum { REPORT_MAX = 2000, CREATED = 1000, MEMO_MIB = 512 };

/* All inputs of the decision. */
struct look {
        struct object object;
        struct {
                struct heard heard;
                uint8_t boot;   /* in the API server */
                uint8_t domain; /* of the allocated claim, if the controllers have seen it */
        } nodes[NODES];
        uint8_t idle, rolled_back, domain_ends;
};

struct source {
        const struct row *row;
        const struct look *look;
        struct arena *a;
        struct node nodes[NODES];
        struct compute_domain domains[DOMAINS];
};

/* ---- the object ---- */

static const char *const states[] = { [PLACE_ACTIVE] = NULL,
                                      [PLACE_RESERVED] = "Reserved",
                                      [PLACE_LEAVING] = "Leaving",
                                      [PLACE_ENDING] = "Ending" };

static enum place_state state_of(const struct fabric_assignment *x) {
        return fabric_is_active(x)     ? PLACE_ACTIVE
               : fabric_is_reserved(x) ? PLACE_RESERVED
               : fabric_is_ending(x)   ? PLACE_ENDING
                                       : PLACE_LEAVING;
}

static int by_index(const void *x, const void *y) {
        const struct fabric_assignment *a = x, *b = y;
        return a->index != b->index ? (a->index < b->index ? -1 : 1) : strcmp(a->node, b->node);
}

static void fill_domain(const struct object *o, unsigned d, const struct row *row, struct arena *a,
                        struct fabric_domain *ret) {
        char *infix = arena_alloc(a, 11);
        int64_t freed[NODES];
        ret->owner = (struct fabric_owner){ "ComputeDomain", "ns", "cd", uid_of(UID_DOMAIN, 0, d + 1) };
        imex_infix(ret->owner.uid, infix);
        ret->imex.infix = infix;
        ret->imex.slots = row->nodes;
        ret->imex.port = assignment_port(infix);
        for (unsigned i = 0; i < o->n_freed[d]; i++)
                freed[i] = o->freed[d][i];
        ret->freed = rules_freed_render(freed, o->n_freed[d], a);
        ret->assignments = arena_alloc(a, NODES * sizeof *ret->assignments);
        for (unsigned n = 0; n < NODES; n++) {
                const struct place *p = &o->places[d][n];
                if (p->state)
                        ret->assignments[ret->n_assignments++] =
                                (struct fabric_assignment){ .node = node_name(n),
                                                            .index = p->index,
                                                            .epoch = p->epoch,
                                                            .state = states[p->state],
                                                            .claim = uid_of(UID_CLAIM, n, p->claim),
                                                            .boot_id = uid_of(UID_BOOT, n, p->boot),
                                                            .ip = p->ip ? "10.0.0.1" : NULL };
        }
        qsort(ret->assignments, ret->n_assignments, sizeof *ret->assignments, by_index);
}

struct compute_domain_fabric *control_fabric(const struct object *o, const struct row *row, struct arena *a) {
        struct compute_domain_fabric *f = arena_alloc(a, sizeof *f);
        f->o.meta.name = CLIQUE;
        f->o.meta.uid = f->table_of = uid_of(UID_OBJECT, 0, o->uid);
        f->epoch = o->epoch;
        f->recount = o->recount;
        f->domains = arena_alloc(a, DOMAINS * sizeof *f->domains);
        f->removals = arena_alloc(a, NODES * sizeof *f->removals);
        for (unsigned i = 0; i < o->n_domains; i++)
                fill_domain(o, o->domains[i], row, a, &f->domains[f->n_domains++]);
        for (unsigned n = 0; n < NODES; n++)
                if (o->removals[n])
                        f->removals[f->n_removals++] =
                                (struct fabric_removal){ node_name(n), uid_of(UID_POD, n, o->removals[n]) };
        return f;
}

static void read_domain(const struct fabric_domain *x, struct arena *a, struct object *ret) {
        unsigned d = uid_number(x->owner.uid) - 1;
        int64_t *freed;
        size_t n = rules_freed_parse(x->freed, a, &freed);
        BUG_ON(d >= DOMAINS || n > NODES || ret->n_domains >= DOMAINS);
        ret->domains[ret->n_domains++] = (uint8_t)d;
        ret->n_freed[d] = (uint8_t)n;
        for (size_t i = 0; i < n; i++)
                ret->freed[d][i] = (uint8_t)freed[i];
        for (size_t i = 0; i < x->n_assignments; i++) {
                const struct fabric_assignment *y = &x->assignments[i];
                BUG_ON(y->epoch > 200 || y->index < 0 || y->index > 200);
                ret->places[d][node_number(y->node)] =
                        (struct place){ .state = (uint8_t)state_of(y),
                                        .index = (uint8_t)y->index,
                                        .epoch = (uint8_t)y->epoch,
                                        .claim = (uint8_t)uid_number(y->claim),
                                        .boot = (uint8_t)uid_number(y->boot_id),
                                        .ip = y->ip != NULL };
        }
}

static void read_decision(const struct assignment *x, const struct object *was, struct arena *a,
                          struct object *ret) {
        *ret = (struct object){ .uid = was->uid, .epoch = (uint8_t)x->epoch, .recount = (uint8_t)x->recount };
        for (size_t i = 0; i < x->n_domains; i++)
                read_domain(&x->domains[i], a, ret);
        for (size_t i = 0; i < x->n_removals; i++)
                ret->removals[node_number(x->removals[i].node)] = (uint8_t)uid_number(x->removals[i].pod_uid);
}

/* ---- the source ---- */

static const struct node *get_node(void *u, const char *name) {
        struct source *s = u;
        return &s->nodes[node_number(name)];
}

static bool is_node_gone(void *u, const char *name) {
        return false;
}

static const char *get_slice(void *u, const char *node) {
        return CLIQUE;
}

static const char *get_fabric(void *u, const char *clique) {
        return NULL;
}

static const char *render_report(const struct source *s, unsigned n, const struct report *r) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(REPORT_MAX);
        int64_t left[LEFT];
        struct daemon_report d = { .claim = uid_of(UID_CLAIM, n, r->pod),
                                   .boot_id = uid_of(UID_BOOT, n, r->boot),
                                   .fabric = str_or(uid_of(UID_OBJECT, 0, r->object), ""),
                                   .has_assignment = r->domain,
                                   .ready = r->ready,
                                   .left = left,
                                   .n_left = r->n_left,
                                   .seen = r->seen,
                                   .recount = r->recount,
                                   .served = r->served,
                                   .waits_for = "",
                                   .imex_version = "" };
        for (unsigned i = 0; i < r->n_left; i++)
                left[i] = r->left[i];
        if (r->domain) {
                snprintf(d.assignment.clique_id, sizeof d.assignment.clique_id, "%s", CLIQUE);
                snprintf(d.assignment.domain_uid, sizeof d.assignment.domain_uid, "%s",
                         uid_of(UID_DOMAIN, 0, r->domain));
                d.assignment.index = r->index;
                d.assignment.epoch = r->epoch;
        }
        daemon_report_render(&d, &b);
        BUG_ON(b.failed);
        return arena_strdup(s->a, buf_str(&b));
}

static void each_daemon(void *u, const char *node, assignment_daemon_fn *fn, void *v) {
        static struct pod_ip ip = { "10.0.0.1" };
        const struct source *s = u;
        unsigned n = node_number(node);
        const struct heard *h = &s->look->nodes[n].heard;
        if (!h->pod)
                return;
        struct daemon_pod *p = arena_alloc(s->a, sizeof *p);
        p->pod.o.meta = (struct kube_meta){ .ns = "driver",
                                            .name = uid_of(UID_POD, n, h->pod),
                                            .uid = uid_of(UID_POD, n, h->pod),
                                            .created = CREATED + h->pod,
                                            .deleted = h->deleted ? CREATED : 0 };
        p->pod.node = node;
        p->pod.phase = "Running";
        p->pod.ips = &ip;
        p->pod.n_ips = 1;
        p->report = h->report.pod ? render_report(s, n, &h->report) : NULL;
        fn(v, p);
}

static void each_plugin(void *u, const char *node, assignment_plugin_fn *fn, void *v) {
        const struct source *s = u;
        unsigned n = node_number(node);
        struct plugin_pod *p = arena_alloc(s->a, sizeof *p);
        p->o.meta.name = "plugin";
        p->unprepared = uid_of(UID_CLAIM, n, s->look->nodes[n].heard.unprepared);
        fn(v, p);
}

static void each_allocation(void *u, const char *node, assignment_allocation_fn *fn, void *v) {
        const struct source *s = u;
        const char *uid = uid_of(UID_DOMAIN, 0, s->look->nodes[node_number(node)].domain);
        if (uid)
                fn(v, &(struct allocation){ .claim_uid = node, .ns = "ns", .domain_uid = uid, .node = node });
}

static const struct compute_domain *get_domain(void *u, const char *uid) {
        struct source *s = u;
        return &s->domains[uid_number(uid) - 1];
}

static bool takes(void *u, const struct compute_domain *cd, const char *current) {
        return domain_takes(cd, current);
}

static bool is_idle(void *u, const struct fabric_domain *d) {
        return ((struct source *)u)->look->idle;
}

static const char *get_removal(void *u, const char *node) {
        return NULL;
}

/* The API server answers with the present state. */
static bool is_absent(void *u, enum assignment_question q, const char *name, const char *other) {
        const struct source *s = u;
        switch (q) {
        case ASSIGNMENT_ASK_NODE:
        case ASSIGNMENT_ASK_DOMAIN:
                return false;
        case ASSIGNMENT_ASK_BOOT:
                return s->look->nodes[node_number(name)].boot != uid_number(other);
        case ASSIGNMENT_ASK_CLAIM:
                return s->look->nodes[node_number(other)].domain != uid_number(name);
        }
        return false;
}

/* ---- the decision ---- */

static void fill(struct source *s) {
        for (unsigned n = 0; n < NODES; n++)
                s->nodes[n] = (struct node){ .o.meta = { .name = node_name(n), .uid = node_name(n) },
                                             .imex_daemon = "true",
                                             .boot_id = uid_of(UID_BOOT, n, s->look->nodes[n].heard.boot) };
        for (unsigned d = 0; d < DOMAINS; d++)
                s->domains[d].o.meta = (struct kube_meta){ .ns = "ns",
                                                           .name = "cd",
                                                           .uid = uid_of(UID_DOMAIN, 0, d + 1),
                                                           .deleted = s->look->domain_ends >> d & 1 };
}

static void decide(struct run *r, const struct look *look, struct control *ret) {
        static const char *const names[] = { "n1", "n2", "n3" };
        _cleanup_(arena_freep) struct arena *a = arena_new(16 << 10);
        struct source s = { .row = r->row, .look = look, .a = a };
        struct assignment_facts facts;
        struct assignment decision;
        fill(&s);
        const struct assignment_source source = {
                .clique = CLIQUE,
                .object = control_fabric(&look->object, r->row, a),
                .names = names,
                .n_names = r->row->nodes,
                .rolled_back = look->rolled_back,
                .slots = r->row->nodes,
                .node = get_node,
                .node_missing = is_node_gone,
                .slice = get_slice,
                .fabric = get_fabric,
                .daemons = each_daemon,
                .plugins = each_plugin,
                .allocations = each_allocation,
                .domain = get_domain,
                .takes = takes,
                .idle = is_idle,
                .removes = get_removal,
                .absent = is_absent,
                .u = &s,
        };
        assignment_facts_make(&source, a, &facts);
        assignment_make(&facts.input, a, &decision);
        const char *broken = assignment_check(&facts.input, &decision, a);
        memset(ret, 0, sizeof *ret);
        ret->broken = broken != NULL;
        if (broken) /* a wrong decision is not written */
                snprintf(r->broken, sizeof r->broken, "a controller makes a wrong decision: %s", broken);
        read_decision(&decision, &look->object, a, &ret->object);
        ret->changed = decision.changed;
}

/* ---- check of the renaming ---- */

/* Makes the epochs of all nodes different, in the same order for each node. */
static uint8_t spread_epoch(uint8_t epoch, unsigned n) {
        return epoch ? (uint8_t)(epoch * NODES + n) : 0;
}

static void spread_object(struct object *o) {
        o->epoch = spread_epoch(o->epoch, NODES - 1);
        for (unsigned d = 0; d < DOMAINS; d++)
                for (unsigned n = 0; n < NODES; n++)
                        o->places[d][n].epoch = spread_epoch(o->places[d][n].epoch, n);
}

static void spread(struct look *look) {
        spread_object(&look->object);
        for (unsigned n = 0; n < NODES; n++) {
                struct report *x = &look->nodes[n].heard.report;
                x->epoch = spread_epoch(x->epoch, n);
                x->ready = x->domain != 0;
                x->served = 1;
                for (unsigned i = 0; i < x->n_left; i++)
                        x->left[i] = spread_epoch(x->left[i], n);
        }
}

/* New epochs are higher than all others, and keep their order. */
static void same_form(struct object *o, unsigned most) {
        o->epoch = 0;
        for (unsigned n = 0; n < NODES; n++) {
                uint8_t *x = &o->places[0][n].epoch, *y = &o->places[1][n].epoch;
                bool x_new = *x > most, y_new = *y > most, swapped = *x > *y;
                if (x_new)
                        *x = y_new && swapped ? 201 : 200;
                if (y_new)
                        *y = x_new && !swapped ? 201 : 200;
        }
}

static void check_renaming(struct run *r, const struct look *look, const struct control *answer) {
        struct look other = *look;
        struct control x = *answer, y;
        spread(&other);
        decide(r, &other, &y);
        unsigned most = look->object.epoch;
        spread_object(&x.object);
        for (unsigned d = 0; d < DOMAINS; d++)
                for (unsigned n = 0; n < NODES; n++)
                        if (answer->object.places[d][n].epoch > most)
                                x.object.places[d][n].epoch = answer->object.places[d][n].epoch + 150;
        same_form(&x.object, spread_epoch((uint8_t)most, NODES - 1));
        same_form(&y.object, other.object.epoch);
        BUG_ON(memcmp(&x, &y, sizeof x) != 0);
}

/* The order of domains does not matter. */
static void swap_domains(struct look *look) {
        rename_swap(&look->object);
        for (unsigned n = 0; n < NODES; n++) {
                look->nodes[n].domain = rename_swapped(look->nodes[n].domain);
                look->nodes[n].heard.report.domain = rename_swapped(look->nodes[n].heard.report.domain);
        }
        look->domain_ends = (uint8_t)(look->domain_ends >> 1 | (look->domain_ends & 1) << 1);
}

static void check_swapping(struct run *r, const struct look *look, const struct control *answer) {
        struct look other = *look;
        struct control x;
        swap_domains(&other);
        decide(r, &other, &x);
        rename_swap(&x.object);
        BUG_ON(memcmp(&x, answer, sizeof x) != 0);
}

static void look_at(const struct run *r, const struct world *w, unsigned controller,
                    const uint8_t order[static NODES], struct look *ret) {
        const struct controller *c = &w->controllers[controller];
        memset(ret, 0, sizeof *ret);
        ret->object = *world_view(w, c->view);
        rename_order(&ret->object, order);
        ret->rolled_back = c->rolled_back;
        ret->domain_ends = w->domain_ends;
        for (unsigned n = 0; n < r->row->nodes; n++) {
                const struct host *h = &w->hosts[order[n]];
                ret->nodes[n].heard = c->heard[order[n]];
                ret->nodes[n].boot = h->boot_reported;
                ret->nodes[n].domain = h->unseen ? 0 : h->claim.domain;
        }
}

const struct control *control_decide(struct run *r, const struct world *w, unsigned controller, bool idle,
                                     const uint8_t order[static NODES]) {
        struct look look;
        struct control answer;
        look_at(r, w, controller, order, &look);
        look.idle = idle;
        const struct control *known = memo_get(r->controls, &look);
        if (known && !known->broken)
                return known;
        decide(r, &look, &answer);
        if (!row_recounts(r->row) && !r->row->drains && !answer.broken && !answer.object.recount)
                check_renaming(r, &look, &answer);
        if (!r->row->plain && r->row->domains == DOMAINS && !answer.broken)
                check_swapping(r, &look, &answer);
        memo_put(r->controls, &look, &answer);
        return memo_get(r->controls, &look);
}

struct memo *control_memo(void) {
        return memo_new(sizeof(struct look), sizeof(struct control), (size_t)MEMO_MIB << 20);
}
