/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/grants.h"

#include <stdio.h>
#include <sys/queue.h>

#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/devices.h"
#include "cd_plugin/readiness.h"
#include "imex/imex_grants.h"
#include "node/effects.h"

struct grant_file {
        LIST_ENTRY(grant_file) link;
        char domain[37], claim[37];
        bool wanted, there;
        struct disk_task *task;                   /* makes it so */
        char why[sizeof(((struct err *)0)->msg)]; /* why it could not be made; "" else */
};

struct grants {
        const char *plugin_dir;
        const struct claims *claims;
        grants_domain_fn *domain_of; /* NULL: none is made */
        void (*settled)(void *u);
        void *u;
        LIST_HEAD(, grant_file) files;
        struct disk *disk;
        bool looked; /* what an earlier process left is known */
        bool freed;  /* but for the job that is under way */
};

/* ---- on the disk ---- */

struct change {
        struct disk_task task;
        const char *dir, *claim;
        bool folder; /* of the domain, nobody's any more */
};

static int make(struct disk_task *t, struct err *e) {
        const struct change *c = (const struct change *)t;
        return imex_grants_put(c->dir, c->claim, e);
}

static int take_away(struct disk_task *t, struct err *e) {
        const struct change *c = (const struct change *)t;
        return imex_grants_remove(c->dir, c->claim, c->folder, e);
}

static void settle(struct grants *g);

static void destroy(struct grants *g) {
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
        f->task = NULL;
        if (!t)
                return;
        if (t->r == 0) {
                f->there = t->run == make;
                f->why[0] = '\0';
                return;
        }
        log_warn(t->run == make ? "cannot note a claim in the folder of its IMEX domain"
                                : "cannot remove the note of a claim from the folder of its IMEX domain",
                 kv_str("uid", f->claim), kv_str("domain", f->domain), kv_err(&t->e));
        snprintf(f->why, sizeof f->why, "%s", t->e.msg);
}

static void on_disk(void *u) {
        struct grants *g = u;
        struct grant_file *f;
        if (g->freed) {
                destroy(g);
                return;
        }
        LIST_FOREACH (f, &g->files, link) {
                take_result(f);
        }
        disk_clear(g->disk);
        settle(g);
        g->settled(g->u);
}

/* What failed is tried again when somebody asks again. */
static void settle(struct grants *g) {
        struct grant_file *f, *next;
        bool any = false;
        if (disk_running(g->disk))
                return;
        for (f = LIST_FIRST(&g->files); f; f = next) {
                next = LIST_NEXT(f, link);
                if (!f->wanted && !f->there) {
                        LIST_REMOVE(f, link);
                        free(f);
                        continue;
                }
                if (f->wanted == f->there || f->why[0])
                        continue;
                _cleanup_(freep) char *dir = readiness_domain_dir(g->plugin_dir, f->domain);
                struct change *c = disk_task(g->disk, sizeof *c, f->wanted ? make : take_away);
                c->dir = arena_strdup(c->task.arena, dir);
                c->claim = arena_strdup(c->task.arena, f->claim);
                c->folder = !effects_in_use(g->claims, f->domain);
                f->task = &c->task;
                any = true;
        }
        if (any)
                disk_run(g->disk, on_disk, g);
}

/* ---- what should be there ---- */

static struct grant_file *find(const struct grants *g, const char *domain, const char *claim) {
        struct grant_file *f;
        LIST_FOREACH (f, &g->files, link) {
                if (streq(f->claim, claim) && streq(f->domain, domain))
                        return f;
        }
        return NULL;
}

static struct grant_file *add(struct grants *g, const char *domain, const char *claim) {
        struct grant_file *f = find(g, domain, claim);
        if (f)
                return f;
        f = xnew(struct grant_file);
        snprintf(f->domain, sizeof f->domain, "%s", domain);
        snprintf(f->claim, sizeof f->claim, "%s", claim);
        LIST_INSERT_HEAD(&g->files, f, link);
        return f;
}

static void want(struct grants *g, const char *domain, const char *claim) {
        struct grant_file *f = add(g, domain, claim);
        f->wanted = true;
        f->why[0] = '\0';
}

void grants_put(struct grants *g, const char *domain_uid, const char *claim_uid) {
        want(g, domain_uid, claim_uid);
        settle(g);
}

enum grant_state grants_get(const struct grants *g, const char *domain_uid, const char *claim_uid,
                            const char **ret_why) {
        const struct grant_file *f = find(g, domain_uid, claim_uid);
        *ret_why = f ? f->why : "";
        if (!f || !f->wanted)
                return GRANT_ABSENT;
        if (f->there && !f->task)
                return GRANT_THERE;
        return f->why[0] ? GRANT_FAILED : GRANT_PENDING;
}

/* ---- what is there ---- */

struct look {
        struct grants *g;
        const char *domain;
};

static int look_at_grant(void *u, int folder, const char *name, struct err *e) {
        const struct look *l = u;
        add(l->g, l->domain, name)->there = true;
        return 0;
}

static int look_at_domain(void *u, int folder, const char *name, struct err *e) {
        struct grants *g = u;
        struct look l = { g, name };
        if (!str_is_uuid(name))
                return 0;
        _cleanup_(freep) char *dir = readiness_domain_dir(g->plugin_dir, name);
        return imex_grants_each(dir, look_at_grant, &l, e);
}

/* What cannot be read holds back whoever runs IMEX, and nobody else. */
static void look(struct grants *g) {
        _cleanup_(freep) char *path = file_join(g->plugin_dir, "domains");
        struct err e;
        if (file_each(path, look_at_domain, g, &e) < 0 && e.kind != ERR_NOT_FOUND)
                log_warn("cannot look which claims are noted in the folders of IMEX domains", kv_err(&e));
        g->looked = true;
}

static bool recorded(const struct claims *c, const char *claim) {
        const struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, claim);
        return entry && entry->state != CHECKPOINT_ABORTED;
}

void grants_follow(struct grants *g) {
        const struct claims *c = g->claims;
        struct grant_file *f;
        if (!g->looked)
                look(g);
        LIST_FOREACH (f, &g->files, link) {
                /* One that could not be made is not asked for until the claim is prepared again. */
                f->wanted = (recorded(c, f->claim) && (f->there || !f->why[0])) || ops_active(c, f->claim);
                if (!f->wanted)
                        f->why[0] = '\0';
        }
        CHECKPOINT_EACH_DEVICE (&c->journal.table, entry, d) {
                char domain[37];
                if (g->domain_of && !device_is_daemon(d) && str_is_uuid(entry->uid) &&
                    g->domain_of(g->u, entry, d, domain))
                        want(g, domain, entry->uid);
        }
        settle(g);
}

const char *const *grants_domains(const struct grants *g, const char *also, struct arena *a) {
        const struct grant_file *f;
        size_t n = 0;
        LIST_FOREACH (f, &g->files, link) {
                n++;
        }
        const char **list = arena_alloc(a, (n + 2) * sizeof *list);
        n = 0;
        LIST_FOREACH (f, &g->files, link) {
                if (f->wanted)
                        list[n++] = f->domain;
        }
        if (also)
                list[n++] = also;
        list[n] = NULL;
        return list;
}

bool grants_clearing(const struct grants *g, const char *domain_uid) {
        const struct grant_file *f;
        LIST_FOREACH (f, &g->files, link) {
                if (f->task && f->task->run == take_away && streq(f->domain, domain_uid))
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
        LIST_INIT(&g->files);
        return g;
}

void grants_free(struct grants *g) {
        if (!g)
                return;
        g->freed = true;
        if (!disk_running(g->disk))
                destroy(g);
}
