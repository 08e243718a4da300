/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/readiness.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/log.h"
#include "base/watch_file.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/go_daemon.h"
#include "imex/imex_ctl.h"
#include "imex/imex_state.h"

struct domain {
        LIST_ENTRY(domain) link;
        struct readiness *r;
        char *uid, *claim_uid;
        bool ready, seen, taken;
        bool reported; /* that it cannot be watched */
        struct watch_file watch;
};

struct readiness {
        uv_loop_t *loop;
        struct readiness_options o;
        LIST_HEAD(, domain) domains;
};

char *readiness_domain_dir(const char *plugin_dir, const char *domain_uid) {
        BUG_ON(!str_is_uuid(domain_uid));
        return xasprintf("%s/domains/%s", plugin_dir, domain_uid);
}

static void read_state(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret) {
        _cleanup_(freep) char *dir = readiness_domain_dir(r->o.plugin_dir, domain_uid);
        ret->unread.kind = ERR_NONE;
        (void)imex_state_read(dir, &ret->state, &ret->held, &ret->unread);
}

static void look_at_go(const struct readiness *r, struct prepare_daemon *ret) {
        if (str_is_uuid(ret->go_domain)) { /* it becomes a path */
                _cleanup_(freep) char *dir = readiness_domain_dir(r->o.plugin_dir, ret->go_domain);
                go_folder_address(dir, ret->go_address);
        }
}

void readiness_get(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret) {
        *ret = (struct prepare_daemon){ .runner = PREPARE_RUNNER_NONE };
        CHECKPOINT_EACH_DEVICE (r->o.table, c, d) {
                if (!cd_device_is_daemon(d) || d->admin)
                        continue;
                ret->claim_uid = c->uid;
                if (cd_device_is_own_daemon(d)) {
                        ret->runner = PREPARE_RUNNER_OWN;
                        read_state(r, domain_uid, ret);
                } else {
                        ret->runner = PREPARE_RUNNER_GO;
                        ret->go_domain = str_or(d->domain, "");
                        ret->go_ns = str_or(c->ns, "");
                        look_at_go(r, ret);
                }
                return;
        }
}

bool readiness_check(const struct readiness *r, const char *domain_uid, struct prepare_daemon *ret,
                     char *reason, size_t n) {
        const struct prepare_question q = { .node = r->o.node,
                                            .boot_id = r->o.boot_id,
                                            .imex_uid = domain_uid };
        struct assignment_id assignment;
        readiness_get(r, domain_uid, ret);
        return may_prepare_daemon(&q, ret, &assignment, reason, n);
}

static void readiness_on_change(struct watch_file *w) {
        struct domain *d = w->u;
        struct readiness *r = d->r;
        struct prepare_daemon seen;
        char reason[400];
        bool was = d->ready, was_taken = d->taken;
        d->ready = readiness_check(r, d->uid, &seen, reason, sizeof reason);
        if (!was && d->ready)
                log_info("IMEX daemon is ready", kv_str("domain", d->uid));
        if (was && !d->ready) {
                log_info("IMEX daemon is no longer ready", kv_str("domain", d->uid),
                         kv_str("reason", reason));
                r->o.lost(r->o.u, d->uid);
        }
        d->taken = !d->ready && strstr(reason, IMEX_LOG_SESSION_TAKEN);
        if (d->taken && !was_taken)
                r->o.session_taken(r->o.u);
        r->o.changed(r->o.u);
}

static void domain_free(struct domain *d) {
        LIST_REMOVE(d, link);
        watch_file_stop(&d->watch);
        free(d->uid);
        free(d->claim_uid);
        free(d);
}

/* The kernel may refuse a watch for a while (fs.inotify.max_user_watches): each later call tries again. */
static void readiness_watch(struct domain *d) {
        _cleanup_(freep) char *dir = readiness_domain_dir(d->r->o.plugin_dir, d->uid);
        _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);
        struct prepare_daemon seen;
        char reason[400];
        struct err e;
        int r = file_mkdirs(dir, 0755, &e) < 0
                        ? -1
                        : watch_file_start(&d->watch, d->r->loop, path, readiness_on_change, &e);
        if (r < 0 && !d->reported)
                log_error("cannot watch the state of an IMEX daemon, so changes of its readiness are noticed "
                          "late",
                          kv_str("domain", d->uid), kv_err(&e));
        d->reported = r < 0;
        d->ready = readiness_check(d->r, d->uid, &seen, reason, sizeof reason);
}

/* The folder was made for the watch. A daemon that never joined the domain does not remove it. */
static void unfollow(struct domain *d) {
        _cleanup_(freep) char *dir = readiness_domain_dir(d->r->o.plugin_dir, d->uid);
        domain_free(d);
        (void)rmdir(dir); /* fails if it is not empty */
}

static void readiness_follow_domain(struct readiness *r, const char *domain_uid, const char *claim_uid) {
        struct domain *d;
        LIST_FOREACH (d, &r->domains, link) {
                if (streq(d->uid, domain_uid) && streq(d->claim_uid, claim_uid)) {
                        d->seen = true;
                        if (!d->watch.active)
                                readiness_watch(d);
                        return;
                }
        }
        d = xnew(struct domain);
        d->r = r;
        d->uid = xstrdup(domain_uid);
        d->claim_uid = xstrdup(claim_uid);
        d->seen = true;
        d->watch.u = d;
        LIST_INSERT_HEAD(&r->domains, d, link);
        readiness_watch(d);
}

void readiness_follow(struct readiness *r, const char *const *granted) {
        const struct checkpoint_claim *claim = cd_device_own_daemon_claim(r->o.table);
        struct domain *d, *next;
        LIST_FOREACH (d, &r->domains, link) {
                d->seen = false;
        }
        for (const char *const *g = claim ? granted : NULL; g && *g; g++)
                readiness_follow_domain(r, *g, claim->uid);
        for (d = LIST_FIRST(&r->domains); d; d = next) {
                next = LIST_NEXT(d, link);
                if (!d->seen)
                        unfollow(d);
        }
}

struct readiness *readiness_new(uv_loop_t *loop, const struct readiness_options *o) {
        struct readiness *r = xnew(struct readiness);
        r->loop = loop;
        r->o = *o;
        LIST_INIT(&r->domains);
        return r;
}

void readiness_free(struct readiness *r) {
        if (!r)
                return;
        while (!LIST_EMPTY(&r->domains))
                domain_free(LIST_FIRST(&r->domains));
        free(r);
}

/* ---- the folders ---- */

int readiness_prepare_dir(const char *plugin_dir, const char *domain_uid, bool again, struct err *e) {
        _cleanup_(freep) char *dir = readiness_domain_dir(plugin_dir, domain_uid);
        if (file_mkdirs(dir, 0755, e) < 0)
                return -1;
        /* independent of our umask */
        if (chmod(dir, 0755) < 0)
                return err_errno(e, errno, "chmod '%s'", dir);
        return go_folder_fill(dir, e);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) {
        return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int readiness_remove_dir(const char *plugin_dir, const char *domain_uid, struct err *e) {
        _cleanup_(freep) char *dir = readiness_domain_dir(plugin_dir, domain_uid);
        _cleanup_(freep) char *state = file_join(dir, IMEX_STATE_FILE);
        if (file_remove(state, e) < 0)
                return -1;
        /* A daemon could write there: links are removed, not followed. */
        if (nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
                return err_errno(e, errno, "remove '%s'", dir);
        return 0;
}

static bool is_held(const char *dir, const char *claim_uid) {
        struct imex_state s;
        struct err e;
        bool held = false;
        if (imex_state_read(dir, &s, &held, &e) < 0)
                return e.kind != ERR_NOT_FOUND && e.kind != ERR_INVALID;
        return held && (!claim_uid || streq(s.claim_uid, claim_uid));
}

/* Twice, because a daemon that replaces its file between the two checks releases the lock of the old file. */
bool readiness_has_daemon(const char *plugin_dir, const char *domain_uid, const char *claim_uid) {
        _cleanup_(freep) char *dir = readiness_domain_dir(plugin_dir, domain_uid);
        return is_held(dir, claim_uid) || is_held(dir, claim_uid);
}
