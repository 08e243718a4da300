/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "channels.h"
#include "daemon.h"
#include "racks.h"
#include "replica.h"
#include "server.h"
#include "sim.h"

enum {
        ALL = -1,
        FOREVER_S = 3600,
        BACKUP_MS = 30000,
        BACKUPS = 21, /* ten minutes */
        RESTORE_PERCENT = 4,
        WAIT_MS = 60000,  /* from the first answer of the API server until the controllers start */
        REPORT_MS = 20000 /* the time in which a node reports when it reaches the API server again */
};

/* A fault that lasts for a time, or has ended. */
struct fault {
        const struct sort *sort;
        int64_t from_ms, until_ms;
        int program, k; /* ALL */
        unsigned percent;
        int status, wait_s;
        int64_t lag_ms;
        const char *reason;
};

/* The effect of a fault of this sort on a request that it applies to; *ret is FATE_SERVED before. */
typedef void(fate_fn)(const struct fault *f, bool watch, bool writes, struct fate *ret);

struct sort {
        const char *name;
        /* Draws the program and the kind. A fault without duration happens here. */
        void (*begin)(struct fault *f);
        fate_fn *fate; /* NULL: it does not affect requests */
        bool of_world;
};

static struct {
        const struct faults_hooks *hooks;
        struct fault *list;
        size_t n;
        const char *names;
        unsigned programs;
        int64_t end_ms;
        bool restores, careless;
        bool restoring;                  /* until the controllers start again */
        int64_t reached_ms;              /* during a restore: since when all nodes reach the API server */
        struct backup *backups[BACKUPS]; /* oldest first */
        size_t n_backups;
        int64_t restored_ms, served_ms; /* the last restore, and when the API server answers again after it */
} all = { .restored_ms = -1, .served_ms = -1 };

static int some_replica(void) {
        return (int)sim_draw(REPLICAS);
}

/* A program: a controller more often than a node. */
static int some_program(void) {
        return sim_chance(60) ? some_replica() : (int)sim_between(REPLICAS, all.programs - 1);
}

static void lasts(struct fault *f, int64_t least_s, int64_t most_s) {
        f->until_ms = f->from_ms + 1000 * sim_between(least_s, most_s);
}

/* ---- the sorts of faults ---- */

static void gone(struct fault *f) {
        lasts(f, 1, 60);
}

static void unreachable(struct fault *f) {
        f->program = some_program();
        lasts(f, 1, 60);
}

static void refused(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        ret->what = FATE_REFUSED;
}

/* Sometimes longer than an informer waits. */
static void silent(struct fault *f) {
        f->program = some_program();
        lasts(f, 2, sim_chance(20) ? 200 : 30);
}

static void silence(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        ret->what = FATE_SILENT;
        ret->until_ms = f->until_ms;
}

static void pages(struct fault *f) {
        static const int statuses[] = { 404, 404, 403, 503 };
        f->program = sim_chance(50) ? ALL : some_program();
        f->status = statuses[sim_draw(ARRAY_LEN(statuses))];
        f->wait_s = sim_chance(20) ? FOREVER_S : -1;
        /* For a node also as long as its plugin needs to confirm that a claim is deleted. */
        lasts(f, 2, f->program >= REPLICAS && sim_chance(50) ? 1500 : 60);
}

static void page(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        ret->what = FATE_PAGE;
        ret->status = f->status;
        ret->wait_s = f->wait_s;
}

/* As with a role that lacks a rule, or a server that has just started. */
static void blind(struct fault *f) {
        static const enum kind seen[] = { K_CLAIM, K_CLAIM,  K_DOMAIN,   K_NODE,  K_POD,
                                          K_SET,   K_CLIQUE, K_TEMPLATE, K_FABRIC };
        f->program = some_replica();
        f->k = seen[sim_draw(ARRAY_LEN(seen))];
        f->percent = sim_chance(50) ? 100 : 0; /* also of lists */
        lasts(f, 5, 120);
        /* A standby without reads has no visible effect until it leads. */
        if (sim_chance(60))
                all.hooks->stop((unsigned)(1 - f->program));
}

static void forbidden(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        if (!watch && (writes || !f->percent))
                return;
        *ret = (struct fate){ FATE_STATUS, 0, 403, -1, "Forbidden" };
}

static void lag(struct fault *f) {
        f->program = some_program();
        f->k = sim_chance(50) ? ALL : (int)sim_draw(channels_pod_groups() ? K_COUNT : K_POD_GROUP);
        f->lag_ms = sim_between(50, 20000);
        lasts(f, 3, 60);
}

static void sometimes(struct fault *f) {
        f->program = sim_chance(50) ? ALL : some_program();
        f->percent = (unsigned)sim_between(5, 60);
        lasts(f, 2, 40);
}

static void lost(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        ret->what = FATE_LOST;
}

static void busy(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        *ret = (struct fate){ FATE_STATUS, 0, 429, 1, "TooManyRequests" };
}

static void internal(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        *ret = (struct fate){ FATE_STATUS, 0, 500, -1, "InternalError" };
}

static void admission(struct fault *f) {
        static const enum kind written[] = {
                K_NODE, K_NODE, K_DOMAIN, K_SET, K_TEMPLATE, K_FABRIC, K_FABRIC
        };
        static const struct {
                int status;
                const char *reason;
        } answers[] = { { 403, "Forbidden" }, { 422, "Invalid" }, { 500, "InternalError" } };
        size_t i = sim_draw(ARRAY_LEN(answers));
        f->k = written[sim_draw(ARRAY_LEN(written))];
        f->status = answers[i].status;
        f->reason = answers[i].reason;
        lasts(f, 2, 60);
}

static void not_admitted(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        if (writes)
                *ret = (struct fate){ FATE_STATUS, 0, f->status, -1, f->reason };
}

static void lease(struct fault *f) {
        f->program = some_replica();
        f->k = K_LEASE;
        lasts(f, 2, 40);
}

static void hanging(const struct fault *f, bool watch, bool writes, struct fate *ret) {
        if (writes)
                silence(f, watch, writes, ret);
}

/* Calls of one kind hang, as in a webhook that does not answer. */
static void webhook(struct fault *f) {
        static const enum kind written[] = { K_NODE, K_DOMAIN, K_EVENT, K_FABRIC, K_FABRIC };
        f->k = written[sim_draw(ARRAY_LEN(written))];
        lasts(f, 5, 60);
}

static void cut(struct fault *f) {
        all.hooks->cut((unsigned)some_program());
}

static void compacted(struct fault *f) {
        server_compact();
        for (unsigned i = 0; i < all.programs; i++)
                if (sim_chance(70))
                        all.hooks->cut(i);
}

static struct fault fault_now(const struct sort *s);
static void add(struct fault f);
static void gone_for_restore(struct fault *f);

static const struct sort api_stopped = { "restored", gone_for_restore, refused, false };

/* The API server refuses all connections until it has restarted. That takes longer than a leader keeps its
 * Lease. */
static void gone_for_restore(struct fault *f) {
        lasts(f, 12, 40);
}

/* Restores the latest backup or the oldest one. */
static void restore_now(void) {
        struct fault f = fault_now(&api_stopped);
        gone_for_restore(&f);
        add(f);
        all.restored_ms = sim_now_ms();
        all.served_ms = all.list[all.n - 1].until_ms;
        server_restore(all.backups[sim_chance(50) ? 0 : all.n_backups - 1], false, true);
        for (unsigned i = 0; i < all.programs; i++)
                all.hooks->cut(i);
        /* Backups that are newer than the restored one belong to the previous history. */
        while (all.n_backups)
                backup_free(all.backups[--all.n_backups]);
        all.backups[all.n_backups++] = store_backup();
}

static void on_restored(void *u) {
        all.restoring = false;
        all.hooks->scale(true);
}

static bool is_on(const struct fault *f, unsigned program, int k, int64_t now);

static bool all_nodes_reach(void) {
        for (size_t i = 0; i < all.n; i++)
                for (unsigned p = REPLICAS; p < all.programs; p++) {
                        const struct fault *f = &all.list[i];
                        if (f->sort->fate && f->k == ALL && !f->percent && is_on(f, p, ALL, sim_now_ms()))
                                return false;
                }
        return true;
}

/* The operator starts the controllers after a minute, when all nodes have reported. */
static void on_waiting(void *u) {
        int64_t now = sim_now_ms();
        if (!all_nodes_reach())
                all.reached_ms = now;
        if (now - all.served_ms >= WAIT_MS && now - all.reached_ms >= REPORT_MS)
                on_restored(NULL);
        else
                sim_at(now + 1000, on_waiting, NULL);
}

static void on_stopped(void *u) {
        if (sim_now_ms() >= all.end_ms) {
                on_restored(NULL);
                return;
        }
        restore_now();
        all.reached_ms = all.served_ms;
        sim_at(all.served_ms, on_waiting, NULL);
}

/* As docs/how-to/restore.md describes it: the operator stops the controllers first, and starts them a minute
 * after the first answer of the API server, when all nodes reach it. */
static void restored(struct fault *f) {
        if (all.restoring)
                return;
        if (all.careless) {
                restore_now();
                return;
        }
        all.restoring = true;
        all.hooks->scale(false);
        sim_at(sim_now_ms() + sim_between(2000, 20000), on_stopped, NULL);
}

static void killed(struct fault *f) {
        all.hooks->kill((unsigned)some_replica());
}

static void stopped(struct fault *f) {
        all.hooks->stop((unsigned)some_replica());
}

static void in_world(struct fault *f) {
        all.hooks->world(f->sort->name);
}

static const struct sort sorts[] = {
        { "gone", gone, refused, false },
        { "unreachable", unreachable, refused, false },
        { "silent", silent, silence, false },
        { "pages", pages, page, false },
        { "blind", blind, forbidden, false },
        { "lag", lag, NULL, false },
        { "lost", sometimes, lost, false },
        { "busy", sometimes, busy, false },
        { "internal", sometimes, internal, false },
        { "admission", admission, not_admitted, false },
        { "lease", lease, hanging, false },
        { "webhook", webhook, hanging, false },
        { "cut", cut, NULL, false },
        { "compacted", compacted, NULL, false },
        { "killed", killed, NULL, false },
        { "stopped", stopped, NULL, false },
        { "power", in_world, NULL, true },
        { "cut_off", in_world, NULL, true },
        { "node_deleted", in_world, NULL, true },
        { "daemon_killed", in_world, NULL, true },
        { "daemon_deleted", in_world, NULL, true },
        { "objects_deleted", in_world, NULL, true },
        { "plugin_killed", in_world, NULL, true },
        { "plugin_stopped", in_world, NULL, true },
        { "imex_killed", in_world, NULL, true },
        /* With racks only. */
        { "rack_deleted", in_world, NULL, true },
        { "rack_moved", in_world, NULL, true },
        { "rack_namespace", in_world, NULL, true },
        { "fabric_deleted", in_world, NULL, true },
        { "fabric_restored", in_world, NULL, true },
        { "forced", in_world, NULL, true },
};
enum { OF_RACKS = 3, OF_FABRICS = 3 };

/* The sorts of faults in this world. */
static const struct sort *some_sort(void) {
        size_t n = ARRAY_LEN(sorts) - OF_FABRICS - OF_RACKS;
        size_t i = sim_draw(n + OF_FABRICS + (racks_used() ? OF_RACKS : 0));
        return &sorts[i >= n && !racks_used() ? i + OF_RACKS : i];
}
static const struct sort restore = { "restore", restored, NULL, false };
static const struct sort off_the_net = { "cut_off", NULL, silence, true };

/* ---- effects ---- */

static bool is_on(const struct fault *f, unsigned program, int k, int64_t now) {
        return f->from_ms <= now && now < f->until_ms && (f->program == ALL || f->program == (int)program) &&
               (f->k == ALL || f->k == k);
}

struct fate faults_fate(unsigned program, bool about_kind, enum kind k, bool watch, bool writes) {
        struct fate fate = { .what = FATE_SERVED, .wait_s = -1 };
        for (size_t i = 0; i < all.n && fate.what == FATE_SERVED; i++) {
                const struct fault *f = &all.list[i];
                if (!f->sort->fate || !is_on(f, program, about_kind ? (int)k : K_COUNT, sim_now_ms()))
                        continue;
                if (!f->percent || f->sort->begin == blind || sim_chance(f->percent))
                        f->sort->fate(f, watch, writes, &fate);
        }
        return fate;
}

int64_t faults_lag_ms(unsigned program, enum kind k) {
        int64_t ms = 0;
        for (size_t i = 0; i < all.n; i++)
                if (all.list[i].lag_ms > ms && is_on(&all.list[i], program, (int)k, sim_now_ms()))
                        ms = all.list[i].lag_ms;
        return ms;
}

int64_t faults_silent_until_ms(unsigned program) {
        int64_t until = 0;
        for (size_t i = 0; i < all.n; i++)
                if (all.list[i].sort->fate == silence && all.list[i].until_ms > until &&
                    is_on(&all.list[i], program, ALL, sim_now_ms()))
                        until = all.list[i].until_ms;
        return until;
}

bool faults_touched_lease(unsigned replica, int64_t since_ms) {
        for (size_t i = 0; i < all.n; i++) {
                const struct fault *f = &all.list[i];
                if (f->sort->fate && f->sort->begin != blind && f->until_ms >= since_ms &&
                    (f->program == ALL || f->program == (int)replica) && (f->k == ALL || f->k == K_LEASE))
                        return true;
        }
        return false;
}

/* ---- times ---- */

static bool is_chosen(const char *names, const char *name) {
        struct str rest = str_from(names), one;
        while (names && str_next_field(&rest, ',', &one))
                if (str_eq(one, str_from(name)))
                        return true;
        return !names;
}

static void add(struct fault f) {
        if (f.until_ms > all.end_ms)
                f.until_ms = all.end_ms;
        all.list = xrealloc(all.list, (all.n + 1) * sizeof *all.list);
        all.list[all.n++] = f;
        sim_log("FAULT %s program=%d kind=%s for %lld ms, status %d, lag %lld ms", f.sort->name, f.program,
                f.k == ALL ? "all" : kinds[f.k].plural, (long long)(f.until_ms - f.from_ms), f.status,
                (long long)f.lag_ms);
}

static struct fault fault_now(const struct sort *s) {
        return (struct fault){ .sort = s,
                               .from_ms = sim_now_ms(),
                               .until_ms = sim_now_ms(),
                               .program = ALL,
                               .k = ALL,
                               .wait_s = -1 };
}

void faults_cut_off(unsigned program, int64_t until_ms) {
        struct fault f = fault_now(&off_the_net);
        f.program = (int)program;
        f.until_ms = until_ms;
        add(f);
}

void faults_refuse(enum kind k) {
        static const struct sort refuses = { "refused", NULL, not_admitted, false };
        struct fault f = fault_now(&refuses);
        f.k = (int)k;
        f.status = 403;
        f.reason = "Forbidden";
        f.until_ms = all.end_ms = INT64_MAX;
        add(f);
}

void faults_forbid(enum kind k, unsigned program) {
        static const struct sort forbids = { "forbidden", NULL, forbidden, false };
        struct fault f = fault_now(&forbids);
        f.k = (int)k;
        f.program = (int)program;
        f.percent = 100;
        f.until_ms = all.end_ms = INT64_MAX;
        add(f);
}

static void strike(void *u) {
        const struct sort *s = all.restores && sim_chance(RESTORE_PERCENT) ? &restore : NULL;
        if (sim_now_ms() >= all.end_ms)
                return;
        while (!s || (s != &restore && !is_chosen(all.names, s->name)))
                s = some_sort();
        struct fault f = fault_now(s);
        s->begin(&f);
        add(f);
        sim_at(sim_now_ms() + sim_between(500, 20000), strike, NULL);
}

bool faults_known(const char *names, struct buf *ret) {
        struct str rest = str_from(names), one;
        bool good = true;
        for (size_t i = 0; i < ARRAY_LEN(sorts); i++)
                buf_addf(ret, "%s%s", i ? "," : "", sorts[i].name);
        while (names && str_next_field(&rest, ',', &one)) {
                bool known = false;
                for (size_t i = 0; i < ARRAY_LEN(sorts); i++)
                        known = known || str_eq(one, str_from(sorts[i].name));
                good = good && known;
        }
        return good;
}

static void back_up(void *u) {
        if (all.n_backups == BACKUPS) {
                backup_free(all.backups[0]);
                memmove(all.backups, all.backups + 1, --all.n_backups * sizeof all.backups[0]);
        }
        all.backups[all.n_backups++] = store_backup();
        sim_at(sim_now_ms() + BACKUP_MS, back_up, NULL);
}

void faults_use_restores(bool careless) {
        all.restores = true;
        all.careless = careless;
        store_back_up_fabrics();
}

bool faults_careless(void) {
        return all.careless;
}

int64_t faults_restored_ms(void) {
        return all.restored_ms;
}

int64_t faults_served_ms(void) {
        return all.served_ms;
}

void faults_begin(const struct faults_hooks *h, const char *names, unsigned programs, int64_t until_ms) {
        all.hooks = h;
        all.names = names;
        all.programs = programs;
        all.end_ms = until_ms;
        if (all.restores)
                back_up(NULL);
        sim_at(sim_now_ms() + sim_between(0, 20000), strike, NULL);
}

void faults_done(void) {
        while (all.n_backups)
                backup_free(all.backups[--all.n_backups]);
        free(all.list);
}
