/* SPDX-License-Identifier: Apache-2.0 */
/* Gives worlds that cannot be distinguished one form. Epochs, Pods and boots are numbered from 1 in their
 * order, and values that nothing reads any more are cleared.
 *
 * The decisions compare the epochs of one node, and a new epoch is higher than all that the object knows. If
 * the object always knows the highest epoch, only the order of each node's epochs counts, and they are
 * numbered for each node; control.c checks that this changes no decision. If etcd is restored, the object may
 * not know it, and the distances between all epochs stay the same. */
#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "world.h"

enum { MAX_OFFSETS = 256, NUMBERS = 64 };

struct group {
        uint16_t at[MAX_OFFSETS];
        unsigned n;
};

struct offsets {
        struct group pods[NODES], boots[NODES];
        struct group epochs[NODES],
                bounds[NODES]; /* epochs of the nodes' assignments; upper limits of epochs */
        struct group objects;  /* epochs of objects */
        struct group recounts, seen;
};

static void add(struct group *g, size_t at) {
        BUG_ON(g->n == MAX_OFFSETS);
        g->at[g->n++] = (uint16_t)at;
}

static void add_object(struct offsets *o, size_t at) {
        add(&o->objects, at + offsetof(struct object, epoch));
        add(&o->recounts, at + offsetof(struct object, recount));
        for (unsigned n = 0; n < NODES; n++) {
                add(&o->pods[n], at + offsetof(struct object, removals) + n);
                for (unsigned d = 0; d < DOMAINS; d++) {
                        size_t place =
                                at + offsetof(struct object, places) + (d * NODES + n) * sizeof(struct place);
                        add(&o->epochs[n], place + offsetof(struct place, epoch));
                        add(&o->pods[n], place + offsetof(struct place, claim));
                        add(&o->boots[n], place + offsetof(struct place, boot));
                }
        }
}

static void add_report(struct offsets *o, unsigned n, size_t at) {
        add(&o->pods[n], at + offsetof(struct report, pod));
        add(&o->boots[n], at + offsetof(struct report, boot));
        add(&o->epochs[n], at + offsetof(struct report, epoch));
        add(&o->recounts, at + offsetof(struct report, recount));
        add(&o->seen, at + offsetof(struct report, seen));
        for (unsigned i = 0; i < LEFT; i++)
                add(&o->epochs[n], at + offsetof(struct report, left) + i);
}

static void add_memory(struct offsets *o, unsigned n, size_t at) {
        add(&o->pods[n], at + offsetof(struct memory, pod));
        add(&o->pods[n], at + offsetof(struct memory, served));
        add(&o->epochs[n], at + offsetof(struct memory, epoch));
        add(&o->recounts, at + offsetof(struct memory, recount));
        add(&o->bounds[n], at + offsetof(struct memory, closed));
        add(&o->seen, at + offsetof(struct memory, seen));
        for (unsigned i = 0; i < LEFT; i++)
                add(&o->epochs[n], at + offsetof(struct memory, left) + i);
}

static void add_host(struct offsets *o, unsigned n, size_t at) {
        static const size_t pods[] = { offsetof(struct host, pod), offsetof(struct host, unprepared),
                                       offsetof(struct host, process), offsetof(struct host, last) };
        for (size_t i = 0; i < ARRAY_LEN(pods); i++)
                add(&o->pods[n], at + pods[i]);
        add(&o->boots[n], at + offsetof(struct host, boot));
        add(&o->boots[n], at + offsetof(struct host, boot_reported));
        add_report(o, n, at + offsetof(struct host, report));
        add_memory(o, n, at + offsetof(struct host, memory));
}

static void add_heard(struct offsets *o, unsigned n, size_t at) {
        add(&o->boots[n], at + offsetof(struct heard, boot));
        add(&o->pods[n], at + offsetof(struct heard, pod));
        add(&o->pods[n], at + offsetof(struct heard, unprepared));
        add_report(o, n, at + offsetof(struct heard, report));
}

static void add_controller(struct offsets *o, size_t at) {
        add(&o->recounts, at + offsetof(struct controller, went_epoch));
        add_object(o, at + offsetof(struct controller, wanted));
        for (unsigned n = 0; n < NODES; n++)
                add_heard(o, n, at + offsetof(struct controller, heard) + n * sizeof(struct heard));
}

struct offsets *rename_new(void) {
        struct offsets *o = xnew(struct offsets);
        size_t snapshot = offsetof(struct world, snapshot);
        for (unsigned i = 0; i < VERSIONS; i++)
                add_object(o, offsetof(struct world, versions) + i * sizeof(struct object));
        add_object(o, offsetof(struct world, frozen));
        add_object(o, offsetof(struct world, frozen_for_plugin));
        add_object(o, snapshot + offsetof(struct snapshot, object));
        for (unsigned c = 0; c < CONTROLLERS; c++)
                add_controller(o, offsetof(struct world, controllers) + c * sizeof(struct controller));
        for (unsigned n = 0; n < NODES; n++) {
                add_host(o, n, offsetof(struct world, hosts) + n * sizeof(struct host));
                add_report(o, n, snapshot + offsetof(struct snapshot, reports) + n * sizeof(struct report));
                add(&o->pods[n], snapshot + offsetof(struct snapshot, pods) + n);
        }
        return o;
}

/* ---- numbers ---- */

static uint64_t used(const struct group *g, const struct world *w) {
        const uint8_t *p = (const uint8_t *)w;
        uint64_t set = 0;
        for (unsigned i = 0; i < g->n; i++) {
                BUG_ON(p[g->at[i]] >= NUMBERS);
                set |= UINT64_C(1) << p[g->at[i]];
        }
        return set & ~UINT64_C(1);
}

static void apply(const struct group *g, struct world *w, const uint8_t *map) {
        uint8_t *p = (uint8_t *)w;
        for (unsigned i = 0; i < g->n; i++)
                p[g->at[i]] = map[p[g->at[i]]];
}

/* Numbers the set in its order, from 1 on; `tight`: without gaps. A value outside of the set gets the number
 * of the next lower one in it. */
static void number(uint64_t set, bool tight, uint8_t map[static NUMBERS]) {
        unsigned first = set ? (unsigned)__builtin_ctzll(set) : 0, rank = 0;
        map[0] = 0;
        for (unsigned i = 1; i < NUMBERS; i++) {
                rank += (unsigned)(set >> i & 1);
                map[i] = (uint8_t)(i < first || !set ? 0 : tight ? rank : i - first + 1);
        }
}

/* The set already has the numbers from 1 on. */
static bool is_numbered(uint64_t set) {
        return ((set >> 1) & ((set >> 1) + 1)) == 0;
}

static void number_group(const struct group *g, struct world *w) {
        uint64_t set = used(g, w);
        uint8_t map[NUMBERS];
        if (is_numbered(set))
                return;
        number(set, true, map);
        apply(g, w, map);
}

static unsigned highest(uint64_t set) {
        return set ? 63U - (unsigned)__builtin_clzll(set) : 0;
}

unsigned rename_last_pod(const struct run *r, const struct world *w, unsigned node) {
        return highest(used(&r->offsets->pods[node], w));
}

unsigned rename_last_boot(const struct run *r, const struct world *w, unsigned node) {
        return highest(used(&r->offsets->boots[node], w));
}

/* ---- values that nothing reads ---- */

static bool lists(const struct object *o, unsigned node, unsigned epoch) {
        for (unsigned d = 0; d < DOMAINS; d++)
                if (o->places[d][node].state && o->places[d][node].epoch == epoch)
                        return true;
        return false;
}

static bool is_listed(const struct world *w, unsigned node, unsigned epoch) {
        bool any = lists(&w->frozen, node, epoch) || lists(&w->snapshot.object, node, epoch);
        for (unsigned i = 0; i < VERSIONS; i++)
                any = any || lists(&w->versions[i], node, epoch);
        for (unsigned c = 0; c < CONTROLLERS; c++)
                any = any || lists(&w->controllers[c].wanted, node, epoch);
        return any;
}

/* No rule looks for an epoch that no object has. */
static void forget_left(const struct world *w, unsigned node, uint8_t *n_left, uint8_t left[static LEFT]) {
        unsigned kept = 0;
        for (unsigned i = 0; i < *n_left; i++)
                if (is_listed(w, node, left[i]))
                        left[kept++] = left[i];
        memset(left + kept, 0, LEFT - kept);
        *n_left = (uint8_t)kept;
}

static void catch_up(const struct row *row, const struct world *w, unsigned node, uint8_t *view) {
        struct object has, next;
        while (*view > VIEW_NEWEST && *view <= VERSIONS) {
                node_project(row, world_view(w, *view), node, &has);
                node_project(row, world_view(w, *view - 1U), node, &next);
                if (memcmp(&has, &next, sizeof has) != 0)
                        return;
                --*view;
        }
}

void rename_views(const struct row *row, struct world *w) {
        for (unsigned n = 0; n < row->nodes; n++) {
                catch_up(row, w, n, &w->hosts[n].view);
                catch_up(row, w, n, &w->hosts[n].claim.view);
                catch_up(row, w, n, &w->hosts[n].orphan.view);
        }
}

static void forget_versions(struct world *w) {
        unsigned last = VIEW_NEWEST;
        bool frozen = false, frozen_for_plugin = false;
        for (unsigned n = 0; n < NODES; n++) {
                const struct host *h = &w->hosts[n];
                const uint8_t views[] = { h->view, h->claim.view, h->orphan.view };
                for (size_t i = 0; i < ARRAY_LEN(views); i++) {
                        frozen = frozen || views[i] == VIEW_FROZEN;
                        frozen_for_plugin = frozen_for_plugin || views[i] == VIEW_FROZEN_FOR_PLUGIN;
                        if (views[i] < VIEW_FROZEN && views[i] > last)
                                last = views[i];
                }
        }
        for (unsigned c = 0; c < CONTROLLERS; c++)
                if (w->controllers[c].view > last)
                        last = w->controllers[c].view;
        if (last < VERSIONS)
                memset(&w->versions[last], 0, (VERSIONS - last) * sizeof w->versions[0]);
        if (w->restored >= last)
                w->restored = 0;
        if (!frozen)
                memset(&w->frozen, 0, sizeof w->frozen);
        if (!frozen_for_plugin)
                memset(&w->frozen_for_plugin, 0, sizeof w->frozen_for_plugin);
}

static void forget(const struct run *r, struct world *w) {
        forget_versions(w);
        for (unsigned n = 0; n < r->row->nodes; n++) {
                struct host *h = &w->hosts[n];
                forget_left(w, n, &h->memory.n_left, h->memory.left);
                forget_left(w, n, &h->report.n_left, h->report.left);
                forget_left(w, n, &w->snapshot.reports[n].n_left, w->snapshot.reports[n].left);
                for (unsigned c = 0; c < r->row->controllers; c++) {
                        struct report *x = &w->controllers[c].heard[n].report;
                        forget_left(w, n, &x->n_left, x->left);
                }
                if (h->claim.phase != CLAIM_PREPARED && h->claim.note != NOTE_JUDGED &&
                    h->orphan.phase != CLAIM_PREPARED && h->orphan.note != NOTE_JUDGED)
                        h->hurt = 0;
        }
}

static void each_object(struct world *w, void (*fn)(struct object *o, const uint8_t *x), const uint8_t *x) {
        for (unsigned i = 0; i < VERSIONS; i++)
                fn(&w->versions[i], x);
        fn(&w->frozen, x);
        fn(&w->frozen_for_plugin, x);
        fn(&w->snapshot.object, x);
        for (unsigned c = 0; c < CONTROLLERS; c++)
                fn(&w->controllers[c].wanted, x);
}

static void set_epoch(struct object *o, const uint8_t *epoch) {
        if (o->uid)
                o->epoch = *epoch;
}

/* For worlds in which the object knows all epochs. */
static void number_by_node(const struct run *r, struct world *w) {
        const struct offsets *o = r->offsets;
        uint8_t map[NUMBERS], most = 0;
        for (unsigned n = 0; n < r->row->nodes; n++) {
                uint64_t set = used(&o->epochs[n], w);
                unsigned last = (unsigned)__builtin_popcountll(set);
                most = last > most ? (uint8_t)last : most;
                if (is_numbered(set) && !(used(&o->bounds[n], w) & ~set))
                        continue;
                number(set, true, map);
                apply(&o->epochs[n], w, map);
                apply(&o->bounds[n], w, map);
        }
        each_object(w, set_epoch, &most);
}

/* For worlds with recounts, which compare the epochs of all nodes. */
static void number_all(const struct run *r, struct world *w) {
        const struct offsets *o = r->offsets;
        uint8_t map[NUMBERS];
        uint64_t set = used(&o->objects, w) | used(&o->recounts, w), bounds = used(&o->seen, w);
        for (unsigned n = 0; n < r->row->nodes; n++) {
                set |= used(&o->epochs[n], w);
                bounds |= used(&o->bounds[n], w);
        }
        if (r->row->restores && set)
                set |= bounds & ~((UINT64_C(1) << __builtin_ctzll(set)) - 1);
        number(set, !r->row->restores, map);
        for (unsigned n = 0; n < r->row->nodes; n++) {
                apply(&o->epochs[n], w, map);
                apply(&o->bounds[n], w, map);
        }
        apply(&o->objects, w, map);
        apply(&o->recounts, w, map);
        apply(&o->seen, w, map);
}

/* ---- interchangeable things ---- */

const uint8_t orders[ORDERS][NODES] = { { 0, 1, 2 }, { 1, 0, 2 }, { 0, 2, 1 },
                                        { 2, 0, 1 }, { 1, 2, 0 }, { 2, 1, 0 } };

void rename_order(struct object *o, const uint8_t order[static NODES]) {
        struct object was = *o;
        for (unsigned n = 0; n < NODES; n++) {
                o->removals[n] = was.removals[order[n]];
                for (unsigned d = 0; d < DOMAINS; d++)
                        o->places[d][n] = was.places[d][order[n]];
        }
}

uint8_t rename_swapped(uint8_t domain) {
        return domain ? (uint8_t)(DOMAINS + 1 - domain) : 0;
}

void rename_swap(struct object *o) {
        const struct object was = *o;
        for (unsigned i = 0; i < o->n_domains; i++)
                o->domains[i] = (uint8_t)(DOMAINS - 1 - was.domains[i]);
        for (unsigned d = 0; d < DOMAINS; d++) {
                o->n_freed[d] = was.n_freed[DOMAINS - 1 - d];
                memcpy(o->freed[d], was.freed[DOMAINS - 1 - d], sizeof o->freed[d]);
                memcpy(o->places[d], was.places[DOMAINS - 1 - d], sizeof o->places[d]);
        }
}

static void order_object(struct object *o, const uint8_t *order) {
        rename_order(o, order);
}

static void swap_object(struct object *o, const uint8_t *order) {
        rename_swap(o);
}

static void order_nodes(struct world *w, const uint8_t order[static NODES]) {
        struct host hosts[NODES];
        struct heard heard[NODES];
        struct report reports[NODES];
        uint8_t pods[NODES];
        each_object(w, order_object, order);
        memcpy(hosts, w->hosts, sizeof hosts);
        memcpy(reports, w->snapshot.reports, sizeof reports);
        memcpy(pods, w->snapshot.pods, sizeof pods);
        for (unsigned n = 0; n < NODES; n++) {
                w->hosts[n] = hosts[order[n]];
                w->snapshot.reports[n] = reports[order[n]];
                w->snapshot.pods[n] = pods[order[n]];
        }
        for (unsigned c = 0; c < CONTROLLERS; c++) {
                memcpy(heard, w->controllers[c].heard, sizeof heard);
                for (unsigned n = 0; n < NODES; n++)
                        w->controllers[c].heard[n] = heard[order[n]];
        }
}

static void swap_domains(struct world *w) {
        each_object(w, swap_object, NULL);
        for (unsigned n = 0; n < NODES; n++) {
                struct host *h = &w->hosts[n];
                h->claim.domain = rename_swapped(h->claim.domain);
                h->orphan.domain = rename_swapped(h->orphan.domain);
                h->memory.domain = rename_swapped(h->memory.domain);
                h->report.domain = rename_swapped(h->report.domain);
                w->snapshot.reports[n].domain = rename_swapped(w->snapshot.reports[n].domain);
                for (unsigned c = 0; c < CONTROLLERS; c++) {
                        struct report *x = &w->controllers[c].heard[n].report;
                        x->domain = rename_swapped(x->domain);
                }
        }
        w->domain_ends = (uint8_t)(w->domain_ends >> 1 | (w->domain_ends & 1) << 1);
}

/* All parts of a world that belong to a node. */
struct node_part {
        struct host host;
        struct heard heard[CONTROLLERS];
        struct place places[VERSIONS + 3 + CONTROLLERS][DOMAINS];
        uint8_t removals[VERSIONS + 3 + CONTROLLERS];
        struct report report;
        uint8_t pod;
};

static void take_part(const struct object *o, unsigned n, unsigned i, struct node_part *ret) {
        for (unsigned d = 0; d < DOMAINS; d++)
                ret->places[i][d] = o->places[d][n];
        ret->removals[i] = o->removals[n];
}

static void part_of(const struct world *w, unsigned n, struct node_part *ret) {
        unsigned k = 0;
        memset(ret, 0, sizeof *ret);
        ret->host = w->hosts[n];
        for (unsigned i = 0; i < VERSIONS; i++)
                take_part(&w->versions[i], n, k++, ret);
        take_part(&w->frozen, n, k++, ret);
        take_part(&w->frozen_for_plugin, n, k++, ret);
        take_part(&w->snapshot.object, n, k++, ret);
        for (unsigned c = 0; c < CONTROLLERS; c++) {
                take_part(&w->controllers[c].wanted, n, k++, ret);
                ret->heard[c] = w->controllers[c].heard[n];
        }
        ret->report = w->snapshot.reports[n];
        ret->pod = w->snapshot.pods[n];
}

/* Nodes with equal parts are interchangeable. */
static void sort_nodes(const struct run *r, struct world *w) {
        struct node_part parts[NODES];
        uint8_t order[NODES] = { 0, 1, 2 };
        for (unsigned n = 0; n < r->row->nodes; n++)
                part_of(w, n, &parts[n]);
        for (unsigned i = 1; i < r->row->nodes; i++)
                for (unsigned j = i;
                     j > 0 && memcmp(&parts[order[j]], &parts[order[j - 1]], sizeof parts[0]) > 0; j--) {
                        uint8_t was = order[j];
                        order[j] = order[j - 1];
                        order[j - 1] = was;
                }
        order_nodes(w, order);
}

static void sort_all(const struct run *r, struct world *w) {
        struct world swapped = *w;
        sort_nodes(r, w);
        if (r->row->domains < DOMAINS)
                return;
        swap_domains(&swapped);
        sort_nodes(r, &swapped);
        if (memcmp(&swapped, w, sizeof swapped) < 0)
                *w = swapped;
}

void rename_world(const struct run *r, struct world *w) {
        const struct offsets *o = r->offsets;
        forget(r, w);
        if (row_recounts(r->row))
                number_all(r, w);
        else
                number_by_node(r, w);
        for (unsigned n = 0; n < r->row->nodes; n++) {
                number_group(&o->pods[n], w);
                number_group(&o->boots[n], w);
        }
        if (!r->row->plain)
                sort_all(r, w);
}
