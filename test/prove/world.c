/* SPDX-License-Identifier: Apache-2.0 */
/* The events of the world, and its promises. */
#include "world.h"

#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "daemon/decision.h"
#include "memo.h"

enum { VERSION_OLDER = 2 };

/* ---- versions of the object ---- */

const struct object *world_view(const struct world *w, unsigned view) {
        return view == VIEW_NONE                ? NULL
               : view == VIEW_FROZEN            ? &w->frozen
               : view == VIEW_FROZEN_FOR_PLUGIN ? &w->frozen_for_plugin
                                                : &w->versions[view - VIEW_NEWEST];
}

static bool is_last(unsigned view) {
        return view == VERSIONS;
}

static void fall_behind(uint8_t *view) {
        if (*view != VIEW_NONE && *view < VIEW_FROZEN)
                ++*view;
}

bool world_publish(const struct row *row, struct world *w, const struct object *o) {
        for (unsigned n = 0; n < NODES; n++)
                if (is_last(w->hosts[n].view) || is_last(w->hosts[n].claim.view) ||
                    is_last(w->hosts[n].orphan.view))
                        return false;
        for (unsigned c = 0; c < CONTROLLERS; c++)
                if (is_last(w->controllers[c].view))
                        return false;
        for (unsigned n = 0; n < NODES; n++) {
                fall_behind(&w->hosts[n].view);
                fall_behind(&w->hosts[n].claim.view);
                fall_behind(&w->hosts[n].orphan.view);
        }
        for (unsigned c = 0; c < CONTROLLERS; c++) {
                struct controller *x = &w->controllers[c];
                if (row->late_views)
                        fall_behind(&x->view);
                if (x->base)
                        x->base = VERSION_OLDER;
                /* A write that will be refused counts as none. */
                if (!row->late_views)
                        x->base = 0;
                memset(&x->wanted, 0, sizeof x->wanted);
        }
        if (w->restored && ++w->restored > VERSIONS)
                w->restored = 0;
        memmove(&w->versions[1], &w->versions[0], (VERSIONS - 1) * sizeof w->versions[0]);
        w->versions[0] = *o;
        return true;
}

/* ---- claims ---- */

static bool take(uint8_t *budget) {
        return *budget && (*budget)--;
}

static bool ends(const struct world *w, unsigned domain) {
        return w->domain_ends >> (domain - 1) & 1;
}

static bool allocate(const struct row *row, struct world *w, unsigned n, unsigned d) {
        struct host *h = &w->hosts[n];
        if (d >= row->domains || h->claim.phase != CLAIM_NONE || h->cut || ends(w, d + 1) ||
            !take(&w->changes))
                return false;
        h->claim = (struct claim){ .domain = (uint8_t)(d + 1), .phase = CLAIM_WAITING };
        h->unseen = row->late_claims != 0;
        return true;
}

static void end_claim(struct host *h) {
        h->claim = (struct claim){ 0 };
        h->unseen = 0;
}

/* Somebody may force-delete the claim or its pod, so it may still be prepared, or its Prepare may run. */
static bool deallocate(const struct row *row, struct world *w, unsigned n) {
        struct host *h = &w->hosts[n];
        const struct claim *c = &h->claim;
        bool remains = c->phase == CLAIM_PREPARED || (c->phase == CLAIM_WAITING && row->late_prepares);
        if (c->phase == CLAIM_NONE || (c->note && !remains) || (remains && h->orphan.phase) ||
            !take(&w->changes))
                return false;
        if (remains)
                h->orphan = *c;
        end_claim(h);
        return true;
}

/* The claim is no longer needed. Until it is unprepared it counts as one that waits. */
static bool end_pod(const struct row *row, struct world *w, struct host *h) {
        if (h->claim.phase != CLAIM_PREPARED || h->cut || (!row->late_ends && !take(&w->changes)))
                return false;
        if (row->late_ends)
                h->claim.phase = CLAIM_ENDED;
        else
                end_claim(h);
        return true;
}

/* The plugin first ends the work that it has begun for the claim. */
static bool unprepare(struct host *h) {
        if (!h->orphan.phase || h->orphan.note == NOTE_JUDGED || h->cut)
                return false;
        h->orphan = (struct claim){ 0 };
        return true;
}

/* ---- nodes ---- */

static bool crash(struct world *w, struct host *h) {
        unsigned process = h->process;
        bool terminating = h->terminating;
        if (!process || !h->memory.domain || !take(&w->crashes))
                return false; /* a daemon without an assignment only restarts */
        node_kill(h);
        /* The kubelet restarts no container of a terminating Pod. */
        if (!terminating)
                h->process = (uint8_t)process;
        return true;
}

static bool drain(struct world *w, struct host *h) {
        if (!h->pod || h->deleted || !take(&w->drains))
                return false;
        h->deleted = 1;
        return true;
}

static void pod_is_gone(struct host *h) {
        h->pod = h->deleted = 0;
        h->report = (struct report){ 0 };
}

static bool force(struct world *w, struct host *h) {
        if (!h->pod || !take(&w->forces))
                return false;
        pod_is_gone(h);
        return true;
}

static bool reboot(const struct run *r, struct world *w, unsigned n) {
        struct host *h = &w->hosts[n];
        if (!take(&w->reboots))
                return false;
        node_kill(h);
        h->boot = (uint8_t)(rename_last_boot(r, w, n) + 1);
        h->memory = (struct memory){ 0 };
        h->orphan = (struct claim){ 0 };
        h->hurt = h->claim.note = h->claim.view = 0;
        h->unprepared = 0; /* the plugin forgets it at a reboot */
        if (h->claim.phase == CLAIM_PREPARED)
                h->claim.phase = CLAIM_WAITING; /* its pod restarts, and the kubelet calls Prepare again */
        return true;
}

static bool report_boot(struct host *h) {
        if (h->cut || h->boot_reported == h->boot)
                return false;
        h->boot_reported = h->boot;
        return true;
}

static bool has_frozen(const struct host *h) {
        return h->cut || h->view == VIEW_FROZEN || h->claim.view == VIEW_FROZEN_FOR_PLUGIN ||
               h->orphan.view == VIEW_FROZEN_FOR_PLUGIN;
}

static void freeze_for_plugin(const struct row *row, struct world *w, unsigned n, struct claim *c) {
        if (c->phase != CLAIM_WAITING)
                return;
        node_project(row, world_view(w, c->view ? c->view : VIEW_NEWEST), n, &w->frozen_for_plugin);
        c->view = VIEW_FROZEN_FOR_PLUGIN;
}

static bool cut_off(const struct row *row, struct world *w, unsigned n) {
        struct host *h = &w->hosts[n];
        for (unsigned i = 0; i < NODES; i++)
                if (has_frozen(&w->hosts[i]))
                        return false;
        if ((h->claim.note && !row->late_prepares) || !take(&w->cuts))
                return false;
        h->cut = 1;
        if (row->late_prepares) {
                freeze_for_plugin(row, w, n, &h->orphan);
                freeze_for_plugin(row, w, n, &h->claim);
        } else {
                h->claim.view = 0;
        }
        if (h->view) {
                w->frozen = *world_view(w, h->view);
                h->view = VIEW_FROZEN;
        }
        return true;
}

static bool heal(struct host *h) {
        bool was = h->cut;
        h->cut = 0;
        return was;
}

/* The next version for a reader. After a restore the API server restarts, and unread versions from before are
 * never read. */
static uint8_t next_view(const struct world *w, unsigned view) {
        return (uint8_t)(w->restored && view > w->restored ? w->restored : view - 1);
}

/* A daemon decides at once when it sees a new version: no event in between changes what it sees. It may miss
 * versions. */
static bool deliver(struct run *r, struct world *w, unsigned n, unsigned what, const char **broken) {
        unsigned missed = what % 2, plugin_steps = what / 2;
        struct host *h = &w->hosts[n];
        bool begins = h->view == VIEW_NONE || h->view == VIEW_FROZEN;
        if (!h->process || h->cut || (begins ? missed : h->view <= VIEW_NEWEST))
                return false;
        uint8_t next = begins ? VIEW_NEWEST : next_view(w, h->view);
        if (next <= missed)
                return false;
        h->view = (uint8_t)(next - missed);
        return node_daemon(r, w, n, plugin_steps, broken) || !plugin_steps;
}

/* The daemon decides at once when its IMEX ends, too. The plugin may see that IMEX is READY before the daemon
 * decides. */
static bool imex(struct run *r, struct world *w, unsigned n, bool clean, bool decides, const char **broken) {
        bool starts = w->hosts[n].imex == DECISION_IMEX_RUNS;
        if (!node_imex(w, n, clean) || (!decides && !starts))
                return false;
        return (decides && node_daemon(r, w, n, 0, broken)) || true;
}

static bool plugin_sees(const struct row *row, const struct world *w, struct host *h) {
        bool frozen = false;
        if (h->cut)
                return false;
        for (size_t i = 0; i < 2; i++) {
                struct claim *c = i ? &h->orphan : &h->claim;
                if (c->view != VIEW_FROZEN_FOR_PLUGIN)
                        continue;
                c->view = row->late_plugin ? VIEW_NEWEST : VIEW_NONE;
                frozen = true;
        }
        if (frozen || h->claim.view <= VIEW_NEWEST)
                return frozen;
        h->claim.view = next_view(w, h->claim.view);
        return true;
}

/* The kubelet kills a daemon whose Pod no longer exists, and sends SIGTERM to one whose Pod is deleted. */
static bool kubelet_ends(struct host *h) {
        if (h->cut || !h->process)
                return false;
        if (h->process != h->pod)
                node_kill(h);
        else if (h->deleted && !h->terminating)
                h->terminating = 1;
        else
                return false;
        return true;
}

static bool unprepare_daemon(struct host *h) {
        if (h->cut || !h->last || h->process || (h->last == h->pod && !h->deleted))
                return false;
        h->unprepared = h->last;
        h->last = 0;
        return true;
}

static bool end_of_pod(struct host *h) {
        if (h->cut || !h->deleted || h->process || h->last)
                return false;
        pod_is_gone(h);
        return true;
}

static bool new_pod(const struct run *r, struct world *w, unsigned n) {
        struct host *h = &w->hosts[n];
        if (h->pod)
                return false;
        h->pod = (uint8_t)(rename_last_pod(r, w, n) + 1);
        return true;
}

/* The kubelet starts a Pod that it knows, even while it is cut off. */
static bool start(struct host *h) {
        bool known = h->last && h->last == h->pod;
        if (h->process || !h->pod || h->deleted || h->go || (h->last && !known) || (h->cut && !known))
                return false;
        node_start(h);
        return true;
}

/* ---- controllers ---- */

enum status_event { NEWS_PODS, NEWS_NODE, NEWS_PLUGIN, N_NEWS };

/* A controller sees different kinds of objects at different times. */
static bool hear(const struct row *row, const struct world *w, struct controller *c, unsigned n,
                 enum status_event news) {
        const struct host *h = &w->hosts[n];
        struct heard *x = &c->heard[n];
        const struct heard was = *x;
        switch (news) {
        case NEWS_PODS:
                x->pod = h->pod;
                x->deleted = h->deleted;
                x->report = h->report;
                if (!row->late_pods)
                        x->unprepared = h->unprepared;
                break;
        case NEWS_NODE:
                x->boot = h->boot_reported;
                break;
        case NEWS_PLUGIN:
        case N_NEWS:
                x->unprepared = h->unprepared;
                break;
        }
        return memcmp(&was, x, sizeof was) != 0;
}

static void hear_all(const struct row *row, const struct world *w, struct controller *c) {
        for (unsigned n = 0; n < row->nodes; n++)
                for (enum status_event news = NEWS_PODS; news < N_NEWS; news++)
                        (void)hear(row, w, c, n, news);
}

static void note_restore(struct controller *c, const struct object *o) {
        c->rolled_back = 1;
        c->went_epoch = o->epoch;
}

static void show(const struct world *w, struct controller *c, unsigned view) {
        const struct object *was = world_view(w, c->view), *is = world_view(w, view);
        if (was && w->restored && view == w->restored && view != c->view &&
            memcmp(was, is, sizeof *is) != 0) {
                note_restore(c, is);
        } else if (c->rolled_back && is->recount > c->went_epoch) {
                c->rolled_back = c->went_epoch = 0;
        }
        c->view = (uint8_t)view;
}

static bool see(struct world *w, struct controller *c) {
        if (c->view <= VIEW_NEWEST)
                return false;
        show(w, c, next_view(w, c->view));
        return true;
}

static bool resume(const struct run *r, struct world *w, struct controller *c) {
        if (!c->waits)
                return false;
        for (unsigned n = 0; n < r->row->nodes; n++)
                if (!node_is_reported(r->row, w, n))
                        return false;
        hear_all(r->row, w, c);
        c->waits = 0;
        c->view = VIEW_NEWEST;
        return true;
}

static bool has_empty_domain(const struct object *o) {
        bool any = false;
        for (unsigned i = 0; i < o->n_domains; i++) {
                bool empty = true;
                for (unsigned n = 0; n < NODES; n++)
                        empty = empty && !o->places[o->domains[i]][n].state;
                any = any || empty;
        }
        return any;
}

/* failure: etcd was not restored -> no recount begins [search] */
static bool control(struct run *r, struct world *w, unsigned n, unsigned what, const char **broken) {
        struct controller *c = &w->controllers[n];
        const uint8_t *order = orders[what / 2];
        uint8_t back[NODES];
        const struct row *row = r->row;
        bool idle = what % 2;
        if (c->waits || c->base || !c->view || (idle && !has_empty_domain(world_view(w, c->view))))
                return false;
        const struct control *x = control_decide(r, w, n, idle, order);
        if (x->broken)
                *broken = r->broken;
        if (!x->changed)
                return x->broken;
        struct object wanted = x->object;
        if (!row_recounts(row) && c->view == VIEW_NEWEST && wanted.recount)
                *broken = "a recount begins although etcd was not restored";
        for (uint8_t i = 0; i < NODES; i++)
                back[order[i]] = i;
        rename_order(&wanted, back);
        if (row->late_writes) {
                c->wanted = wanted;
                c->base = c->view > VIEW_NEWEST ? VERSION_OLDER : VIEW_NEWEST;
                return true;
        }
        if (!world_publish(row, w, &wanted))
                return false;
        show(w, c, VIEW_NEWEST);
        return true;
}

/* The API server accepts a write that is based on the newest version. */
static bool serve(const struct row *row, struct world *w, struct controller *c, bool answered) {
        struct object wanted = c->wanted;
        if (!c->base)
                return false;
        if (c->base == VIEW_NEWEST) {
                if (!world_publish(row, w, &wanted))
                        return false;
                if (answered)
                        show(w, c, VIEW_NEWEST);
        }
        c->base = 0;
        memset(&c->wanted, 0, sizeof c->wanted);
        return true;
}

static bool lose(const struct row *row, struct world *w, struct controller *c) {
        return c->base == VIEW_NEWEST && take(&w->lost) && serve(row, w, c, false);
}

static bool report(const struct row *row, struct world *w, unsigned n) {
        if (node_is_reported(row, w, n))
                return false;
        node_report(row, w, n);
        return true;
}

/* ---- etcd ---- */

static bool snapshot(const struct row *row, struct world *w) {
        struct snapshot *s = &w->snapshot;
        if (!w->restores || s->taken)
                return false;
        s->taken = 1;
        s->object = w->versions[0];
        for (unsigned n = 0; n < row->nodes; n++) {
                s->reports[n] = w->hosts[n].report;
                s->pods[n] = w->hosts[n].pod;
        }
        return true;
}

/* A Pod that is younger than the snapshot is created again, and has not reported. */
static bool restore(const struct row *row, struct world *w, bool restarts) {
        struct snapshot s = w->snapshot;
        if (s.taken != 1 || !world_publish(row, w, &s.object) || !take(&w->restores))
                return false;
        for (unsigned n = 0; n < row->nodes; n++) {
                struct host *h = &w->hosts[n];
                h->report = s.pods[n] == h->pod ? s.reports[n] : (struct report){ 0 };
        }
        w->restored = VIEW_NEWEST;
        for (unsigned c = 0; c < row->controllers && !row->late_views; c++)
                note_restore(&w->controllers[c], &w->versions[0]);
        for (unsigned c = 0; c < row->controllers && restarts; c++) {
                memset(&w->controllers[c], 0, sizeof w->controllers[c]);
                w->controllers[c].waits = 1;
        }
        memset(&w->snapshot, 0, sizeof w->snapshot);
        w->snapshot.taken = 2;
        return true;
}

/* ---- one step ---- */

static bool step_user(struct run *r, struct world *w, unsigned kind, unsigned who, unsigned what,
                      const char **broken) {
        const struct row *row = r->row;
        struct host *h = &w->hosts[who];
        switch (kind) {
        case STEP_ALLOCATE:
                return allocate(row, w, who, what);
        case STEP_DEALLOCATE:
                return deallocate(row, w, who);
        case STEP_END:
                return end_pod(row, w, h);
        case STEP_CRASH:
                return crash(w, h);
        case STEP_UNCLEAN:
                return w->unclean && imex(r, w, who, false, true, broken) && take(&w->unclean);
        case STEP_DRAIN:
                return drain(w, h);
        case STEP_FORCE:
                return force(w, h);
        case STEP_REBOOT:
                return reboot(r, w, who);
        case STEP_CUT:
                return cut_off(row, w, who);
        case STEP_HEAL:
                return heal(h);
        default:
                return false;
        }
}

static bool step_node(struct run *r, struct world *w, unsigned kind, unsigned who, unsigned what,
                      const char **broken) {
        struct host *h = &w->hosts[who];
        bool was;
        switch (kind) {
        case STEP_SEE_CLAIM:
                was = h->unseen;
                h->unseen = 0;
                return was;
        case STEP_PLUGIN:
                return node_plugin(r, w, who, false, broken);
        case STEP_PLUGIN_LATE:
                return node_plugin(r, w, who, true, broken);
        case STEP_PLUGIN_SEES:
                return plugin_sees(r->row, w, h);
        case STEP_DELIVER:
                return deliver(r, w, who, what, broken);
        case STEP_DAEMON:
                return node_daemon(r, w, who, what, broken);
        case STEP_IMEX:
                return imex(r, w, who, true, !what, broken);
        case STEP_REPORT:
                return report(r->row, w, who);
        case STEP_UNPREPARE:
                return unprepare(h);
        case STEP_KILL:
                return kubelet_ends(h);
        case STEP_UNPREPARE_DAEMON:
                return unprepare_daemon(h);
        case STEP_POD_GONE:
                return end_of_pod(h);
        case STEP_NEW_POD:
                return new_pod(r, w, who);
        case STEP_START:
                return start(h);
        case STEP_TELL_BOOT:
                return report_boot(h);
        case STEP_GO_ENDS:
                was = h->go;
                h->go = 0;
                return was;
        default:
                return step_user(r, w, kind, who, what, broken);
        }
}

/* Steps of a controller, a domain, or etcd. */
static bool step_other(struct run *r, struct world *w, unsigned kind, unsigned who, unsigned what,
                       const char **broken) {
        struct controller *c = &w->controllers[who % CONTROLLERS];
        switch (kind) {
        case STEP_DELETE_DOMAIN:
                if (ends(w, who + 1) || !take(&w->deletes))
                        return false;
                w->domain_ends |= (uint8_t)(1U << who);
                return true;
        case STEP_SNAPSHOT:
                return snapshot(r->row, w);
        case STEP_RESTORE:
                return restore(r->row, w, what);
        case STEP_LOSE:
                return lose(r->row, w, c);
        case STEP_SEE:
                return see(w, c);
        case STEP_CONTROL:
                return control(r, w, who, what, broken);
        case STEP_SERVE:
                return serve(r->row, w, c, true);
        case STEP_RESUME:
                return resume(r, w, c);
        default:
                return false;
        }
}

static bool is_other(unsigned kind) {
        return kind == STEP_DELETE_DOMAIN || (kind >= STEP_SNAPSHOT && kind <= STEP_LOSE) ||
               (kind >= STEP_SEE && kind <= STEP_RESUME);
}

/* The number of values of `what`. */
static unsigned choices(const struct row *row, unsigned kind) {
        unsigned plugin_steps = row->late_prepares ? PLUGIN_STEPS_OF_BOTH : PLUGIN_STEPS;
        switch (kind) {
        case STEP_ALLOCATE:
                return row->domains;
        case STEP_DAEMON:
                return plugin_steps;
        case STEP_DELIVER:
                return 2 * plugin_steps;
        case STEP_PLUGIN_LATE:
                return row->late_prepares;
        case STEP_IMEX:
        case STEP_RESTORE:
                return 2;
        case STEP_CONTROL:
                return row->plain ? 2 : row->nodes == 2 ? 4 : 2 * ORDERS;
        case STEP_HEAR:
                return CONTROLLERS * (row->late_pods ? N_NEWS : NEWS_PLUGIN);
        case STEP_REPORT:
                return row->late_reports;
        case STEP_SEE:
        case STEP_LOSE:
                return row->late_views;
        default:
                return 1;
        }
}

static unsigned actors(const struct row *row, unsigned kind) {
        return kind == STEP_DELETE_DOMAIN                      ? row->domains
               : kind == STEP_SNAPSHOT || kind == STEP_RESTORE ? 1
               : is_other(kind)                                ? row->controllers
                                                               : row->nodes;
}

static void find_steps(struct run *r) {
        for (unsigned kind = 0; kind < N_STEPS; kind++)
                for (unsigned who = 0; who < actors(r->row, kind); who++)
                        for (unsigned what = 0; what < choices(r->row, kind); what++) {
                                BUG_ON(r->n_steps == STEPS_MAX);
                                r->steps[r->n_steps++] =
                                        (uint16_t)((kind * STEP_WHO + who) * STEP_WHAT + what);
                        }
}

static bool step_any(struct run *r, struct world *w, unsigned step, const char **broken) {
        unsigned kind = step / (STEP_WHO * STEP_WHAT), who = step / STEP_WHAT % STEP_WHO,
                 what = step % STEP_WHAT;
        if (is_other(kind))
                return step_other(r, w, kind, who, what, broken);
        if (kind == STEP_HEAR)
                return what % 2 < r->row->controllers && !w->controllers[what % 2].waits &&
                       hear(r->row, w, &w->controllers[what % 2], who, what / 2);
        return step_node(r, w, kind, who, what, broken);
}

/* Without late_reports a report is stored at once. This is equivalent to a later decision of the daemon. */
static bool do_step(void *u, void *state, unsigned step, const char **broken) {
        struct run *r = u;
        if (!step_any(r, state, step, broken))
                return false;
        for (unsigned n = 0; n < r->row->nodes && !r->row->late_reports; n++)
                (void)report(r->row, state, n);
        rename_views(r->row, state);
        return true;
}

static bool is_progress(void *u, unsigned step) {
        return step / (STEP_WHO * STEP_WHAT) >= STEP_SEE_CLAIM;
}

/* ---- promises ---- */

/* failure: any fault strikes at any step -> IMEX runs for every prepared claim, and no index has two IMEX
 * processes [search] */
static const char *check(void *u, const void *state) {
        const struct run *r = u;
        const struct world *w = state;
        for (unsigned i = 0; i < r->row->nodes; i++) {
                const struct host *x = &w->hosts[i];
                bool living = node_has_living_imex(x);
                unsigned used = x->claim.phase == CLAIM_PREPARED ? x->claim.domain : 0;
                for (unsigned j = 0; j < i && living; j++) {
                        const struct host *y = &w->hosts[j];
                        if (node_has_living_imex(y) && x->memory.domain == y->memory.domain &&
                            x->memory.index == y->memory.index)
                                return "two running IMEX processes have the same index of a domain";
                }
                if (used && !x->hurt && !ends(w, used) && (!living || x->memory.domain != used))
                        return "a claim is prepared, and no IMEX of its domain runs on the node";
        }
        return NULL;
}

/* failure: faults end at any step -> no claim waits forever [search] */
static bool is_served(void *u, const void *state) {
        const struct run *r = u;
        const struct world *w = state;
        for (unsigned n = 0; n < r->row->nodes; n++) {
                const struct host *h = &w->hosts[n];
                if (h->claim.phase == CLAIM_WAITING && !h->cut && !ends(w, h->claim.domain))
                        return false;
        }
        return true;
}

/* ---- the beginning ---- */

static void begin(void *u, void *state) {
        const struct row *row = ((const struct run *)u)->row;
        struct world *w = state;
        memset(w, 0, sizeof *w);
        w->versions[0].uid = 1;
        for (unsigned n = 0; n < row->nodes; n++) {
                struct host *h = &w->hosts[n];
                h->boot = h->boot_reported = h->pod = 1;
                h->go = n < row->go;
                if (h->go)
                        continue;
                node_start(h);
                h->view = VIEW_NEWEST;
                node_report(row, w, n);
        }
        for (unsigned c = 0; c < row->controllers; c++) {
                w->controllers[c].view = VIEW_NEWEST;
                hear_all(row, w, &w->controllers[c]);
        }
        w->changes = (uint8_t)row->changes;
        w->crashes = (uint8_t)row->crashes;
        w->unclean = (uint8_t)row->unclean;
        w->restores = (uint8_t)row->restores;
        w->lost = (uint8_t)row->lost;
        w->cuts = (uint8_t)row->cuts;
        w->forces = (uint8_t)row->forces;
        w->drains = (uint8_t)row->drains;
        w->reboots = (uint8_t)row->reboots;
        w->deletes = (uint8_t)row->deletes;
}

static void rename_state(void *u, void *state) {
        rename_world(u, state);
}

static void print(void *u, const void *before, unsigned step, const void *after, FILE *out) {
        print_step(before, step, after, out);
}

void world_describe(struct run *r, struct search_world *ret) {
        BUG_ON(r->row->late_prepares && r->row->late_plugin);
        *ret = (struct search_world){ .name = r->row->name,
                                      .size = sizeof(struct world),
                                      .steps = r->steps,
                                      .n_steps = r->n_steps,
                                      .begin = begin,
                                      .step = do_step,
                                      .rename = rename_state,
                                      .check = check,
                                      .is_progress = is_progress,
                                      .is_served = is_served,
                                      .print = print,
                                      .u = r };
}

struct run *world_new(const struct row *row) {
        struct run *r = xnew(struct run);
        r->row = row;
        r->controls = control_memo();
        r->decisions = node_memo();
        r->offsets = rename_new();
        find_steps(r);
        return r;
}

void world_free(struct run *r) {
        memo_free(r->controls);
        memo_free(r->decisions);
        free(r->offsets);
        free(r);
}
