/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/grants.h"

#include <stdio.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/readiness.h"
#include "imex/imex_grants.h"
#include "node/effects.h"

/* The content of a file. */
enum note { NOTE_NONE, NOTE_WAITING, NOTE_GRANTING, NOTE_UNKNOWN /* of an earlier process, or missing */ };

struct grant_file {
        LIST_ENTRY(grant_file) link;
        char domain[37], claim[37];
        enum note wanted, there;
        struct disk_task *task;                   /* writes it */
        bool again;                               /* the task's file may have been removed since */
        char why[sizeof(((struct err *)0)->msg)]; /* why it could not be written; otherwise "" */
};

enum { RETRY_MS = 1000 };

struct grants {
        const char *plugin_dir;
        const struct claims *claims;
        grants_domain_fn *domain_of; /* NULL: no grants are made */
        void (*settled)(void *u);
        void *u;
        LIST_HEAD(, grant_file) files;
        struct disk *disk;
        struct loop_timer retry; /* until another process has ended, which may use the files that it made */
        int lock;                /* shows the daemon that this process is alive; -1: not taken yet */
        bool existing_read;      /* the files of an earlier process have been read */
        bool read_failed;        /* ... and a failure was logged */
        bool freed;              /* except for the current job */
};

/* ---- on the disk ---- */

struct change {
        struct disk_task task;
        const char *dir, *claim;
        enum note to;
        const char *no_lock; /* why writes fail; NULL: the lock is taken */
        bool folder;         /* of a domain that is no longer in use */
};

static int write_note(struct disk_task *t, struct err *e) {
        const struct change *c = (const struct change *)t;
        if (c->no_lock)
                return err_set(e, ERR_INTERNAL, 0, "%s", c->no_lock);
        return imex_grants_put(c->dir, c->claim,
                               c->to == NOTE_GRANTING ? IMEX_GRANT_GRANTING : IMEX_GRANT_WAITING, e);
}

static int remove_note(struct disk_task *t, struct err *e) {
        const struct change *c = (const struct change *)t;
        return imex_grants_remove(c->dir, c->claim, c->folder, e);
}

static void grants_settle(struct grants *g);

/* Before the first grant. Without the lock, the daemon would assume that this process is dead. */
static int take_lock(struct grants *g, struct err *e) {
        _cleanup_(freep) char *dir = file_join(g->plugin_dir, "domains");
        return g->lock >= 0 ? 0 : file_mkdirs(dir, 0755, e) < 0 ? -1 : imex_grants_lock(dir, &g->lock, e);
}

static void grants_destroy(struct grants *g) {
        if (g->lock >= 0)
                close(g->lock);
        disk_free(g->disk);
        while (!LIST_EMPTY(&g->files)) {
                struct grant_file *f = LIST_FIRST(&g->files);
                LIST_REMOVE(f, link);
                free(f);
        }
        free(g);
}

static void take_result(struct grant_file *f) {
        const struct disk_task *t = f->task;
        bool again = f->again;
        f->task = NULL;
        f->again = false;
        if (!t)
                return;
        if (t->r == 0) {
                f->there = again ? NOTE_UNKNOWN : ((const struct change *)t)->to;
                f->why[0] = '\0';
                return;
        }
        log_warn(t->run == write_note
                         ? "cannot write the grant of a claim into the folder of its IMEX domain"
                         : "cannot remove the grant of a claim from the folder of its IMEX domain",
                 kv_str("uid", f->claim), kv_str("domain", f->domain), kv_err(&t->e));
        snprintf(f->why, sizeof f->why, "%s", t->e.msg);
}

static void grants_on_disk(void *u) {
        struct grants *g = u;
        struct grant_file *f;
        if (g->freed) {
                grants_destroy(g);
                return;
        }
        LIST_FOREACH (f, &g->files, link) {
                take_result(f);
        }
        disk_clear(g->disk);
        grants_settle(g);
        g->settled(g->u);
}

/* Failed writes are retried on the next request. */
static void grants_settle(struct grants *g) {
        struct grant_file *f, *next;
        struct err e;
        bool any = false;
        if (disk_running(g->disk))
                return;
        for (f = LIST_FIRST(&g->files); f; f = next) {
                next = LIST_NEXT(f, link);
                if (f->wanted == NOTE_NONE && f->there == NOTE_NONE) {
                        LIST_REMOVE(f, link);
                        free(f);
                        continue;
                }
                if (f->wanted == f->there || f->why[0])
                        continue;
                _cleanup_(freep) char *dir = readiness_domain_dir(g->plugin_dir, f->domain);
                struct change *c = disk_task(g->disk, sizeof *c, f->wanted ? write_note : remove_note);
                c->to = f->wanted;
                if (f->wanted && take_lock(g, &e) < 0)
                        c->no_lock = arena_strdup(c->task.arena, e.msg);
                c->dir = arena_strdup(c->task.arena, dir);
                c->claim = arena_strdup(c->task.arena, f->claim);
                c->folder = !effects_in_use(g->claims, f->domain);
                f->task = &c->task;
                any = true;
        }
        if (any)
                disk_run(g->disk, grants_on_disk, g);
}

/* ---- the desired files ---- */

static struct grant_file *grants_find(const struct grants *g, const char *domain, const char *claim) {
        struct grant_file *f;
        LIST_FOREACH (f, &g->files, link) {
                if (streq(f->claim, claim) && streq(f->domain, domain))
                        return f;
        }
        return NULL;
}

static struct grant_file *grants_add(struct grants *g, const char *domain, const char *claim) {
        struct grant_file *f = grants_find(g, domain, claim);
        if (f)
                return f;
        f = xnew(struct grant_file);
        snprintf(f->domain, sizeof f->domain, "%s", domain);
        snprintf(f->claim, sizeof f->claim, "%s", claim);
        LIST_INSERT_HEAD(&g->files, f, link);
        return f;
}

static void want(struct grants *g, const char *domain, const char *claim, enum note note) {
        struct grant_file *f = grants_add(g, domain, claim);
        f->wanted = note;
        f->why[0] = '\0';
}

void grants_put(struct grants *g, const char *domain_uid, const char *claim_uid,
                enum imex_grant_state state) {
        want(g, domain_uid, claim_uid, state == IMEX_GRANT_GRANTING ? NOTE_GRANTING : NOTE_WAITING);
        grants_settle(g);
}

static enum grant_state grants_state_of(const struct grant_file *f) {
        if (f->why[0])
                return GRANT_FAILED;
        if (f->wanted != f->there || f->task)
                return GRANT_PENDING;
        return f->there == NOTE_GRANTING ? GRANT_GRANTING : GRANT_WAITING;
}

static bool grants_is_undecided(const struct grant_file *f) {
        return f->wanted == NOTE_NONE || f->wanted == NOTE_UNKNOWN;
}

enum grant_state grants_get(const struct grants *g, const char *domain_uid, const char *claim_uid,
                            const char **ret_why) {
        const struct grant_file *f = grants_find(g, domain_uid, claim_uid);
        *ret_why = f ? f->why : "";
        return f && !grants_is_undecided(f) ? grants_state_of(f) : GRANT_ABSENT;
}

static bool is_prepared(const struct grants *g, const struct grant_file *f) {
        const struct checkpoint_claim *entry = checkpoint_find(&g->claims->journal.table, f->claim);
        return f->wanted && entry && entry->state == CHECKPOINT_COMPLETED;
}

void grants_wait(struct grants *g, const char *claim_uid) {
        struct grant_file *f;
        LIST_FOREACH (f, &g->files, link) {
                if (f->wanted == NOTE_GRANTING && streq(f->claim, claim_uid) && !is_prepared(g, f))
                        f->wanted = NOTE_WAITING;
        }
        grants_settle(g);
}

void grants_renew(struct grants *g) {
        struct grant_file *f;
        LIST_FOREACH (f, &g->files, link) {
                if (!is_prepared(g, f))
                        continue;
                f->there = NOTE_UNKNOWN;
                f->again = f->task;
                f->why[0] = '\0';
        }
        grants_settle(g);
}

enum grant_state grants_renewed(const struct grants *g, const char **ret_why) {
        const struct grant_file *f;
        enum grant_state ret = GRANT_GRANTING;
        LIST_FOREACH (f, &g->files, link) {
                if (!is_prepared(g, f) || grants_state_of(f) == GRANT_GRANTING)
                        continue;
                *ret_why = f->why;
                ret = grants_state_of(f) == GRANT_FAILED ? GRANT_FAILED : GRANT_PENDING;
                if (ret == GRANT_FAILED)
                        break;
        }
        return ret;
}

/* ---- the existing files ---- */

struct found_domain {
        struct grants *g;
        const char *domain;
};

static int add_found_grant(void *u, int folder, const char *name, struct err *e) {
        const struct found_domain *l = u;
        struct grant_file *f = grants_add(l->g, l->domain, name);
        if (f->there == NOTE_NONE)
                f->there = NOTE_UNKNOWN;
        return 0;
}

static void read_failed(struct grants *g, const struct err *e) {
        g->existing_read = false;
        if (!g->read_failed)
                log_warn("cannot list the grants in the folders of IMEX domains, will retry", kv_err(e));
        g->read_failed = true;
}

static int add_found_domain(void *u, int folder, const char *name, struct err *e) {
        struct grants *g = u;
        struct found_domain l = { g, name };
        if (!str_is_uuid(name))
                return 0;
        _cleanup_(freep) char *dir = readiness_domain_dir(g->plugin_dir, name);
        struct err failed;
        imex_grants_remove_empty(dir);
        if (imex_grants_each(dir, add_found_grant, &l, &failed) < 0)
                read_failed(g, &failed);
        return 0;
}

/* A file that cannot be read keeps the daemon in its domain until the next call can read it, and has no other
 * effect. */
static void read_existing(struct grants *g) {
        _cleanup_(freep) char *path = file_join(g->plugin_dir, "domains");
        struct err e;
        g->existing_read = true;
        if (file_each(path, add_found_domain, g, &e) < 0 && e.kind != ERR_NOT_FOUND)
                read_failed(g, &e);
}

/* Another process, as during an update, may be about to write the CDI file of a claim with such a grant. */
static bool is_of_living_process(struct grants *g, const struct grant_file *f) {
        struct err e;
        if (!grants_is_undecided(f) || f->there != NOTE_UNKNOWN || f->task || take_lock(g, &e) < 0 ||
            !imex_grants_lock_shared(g->lock))
                return false;
        loop_timer_start(&g->retry, RETRY_MS);
        return true;
}

/* The desired content of an existing file, or of one that was to be written, by the table and the operations.
 */
static enum note judge_note(struct grants *g, const struct grant_file *f) {
        const struct checkpoint_claim *entry = checkpoint_find(&g->claims->journal.table, f->claim);
        if (entry && entry->state == CHECKPOINT_COMPLETED)
                return NOTE_GRANTING;
        if (is_of_living_process(g, f))
                return NOTE_UNKNOWN;
        if (ops_active(g->claims, f->claim))
                return grants_is_undecided(f) ? NOTE_WAITING : f->wanted;
        /* One that could not be written is not retried until the claim is prepared again. */
        bool failed = f->there == NOTE_NONE && f->why[0];
        return entry && entry->state == CHECKPOINT_STARTED && !failed ? NOTE_WAITING : NOTE_NONE;
}

void grants_follow(struct grants *g) {
        struct grant_file *f;
        if (!g->existing_read)
                read_existing(g);
        LIST_FOREACH (f, &g->files, link) {
                f->wanted = judge_note(g, f);
                if (!f->wanted)
                        f->why[0] = '\0';
        }
        CHECKPOINT_EACH_DEVICE (&g->claims->journal.table, entry, d) {
                char domain[37];
                if (g->domain_of && !cd_device_is_daemon(d) && str_is_uuid(entry->uid) &&
                    g->domain_of(g->u, entry, d, domain))
                        want(g, domain, entry->uid, NOTE_GRANTING);
        }
        grants_settle(g);
}

static void grants_on_retry(void *u) {
        grants_follow(u);
}

const char **grants_domains(const struct grants *g, size_t n_more, struct arena *a, size_t *ret_n) {
        const struct grant_file *f;
        size_t n = 0;
        LIST_FOREACH (f, &g->files, link) {
                n++;
        }
        const char **list = arena_alloc(a, (n + n_more + 1) * sizeof *list);
        n = 0;
        LIST_FOREACH (f, &g->files, link) {
                if (f->wanted)
                        list[n++] = f->domain;
        }
        *ret_n = n;
        return list;
}

bool grants_clearing(const struct grants *g, const char *domain_uid) {
        const struct grant_file *f;
        LIST_FOREACH (f, &g->files, link) {
                if (f->task && f->task->run == remove_note && streq(f->domain, domain_uid))
                        return true;
        }
        return false;
}

struct grants *grants_new(uv_loop_t *loop, const struct claims *c, const char *plugin_dir,
                          grants_domain_fn *domain_of, void (*settled)(void *u), void *u) {
        struct grants *g = xnew(struct grants);
        g->plugin_dir = plugin_dir;
        g->claims = c;
        g->domain_of = domain_of;
        g->settled = settled;
        g->u = u;
        g->disk = disk_new(loop);
        g->lock = -1;
        loop_timer_init(&g->retry, loop, grants_on_retry, g);
        LIST_INIT(&g->files);
        return g;
}

void grants_free(struct grants *g) {
        if (!g)
                return;
        g->freed = true;
        loop_timer_done(&g->retry);
        if (!disk_running(g->disk))
                grants_destroy(g);
}
