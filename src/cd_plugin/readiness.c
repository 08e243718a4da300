/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/readiness.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/log.h"
#include "base/watch_file.h"
#include "cd_plugin/devices.h"
#include "imex/imex_log.h"
#include "imex/imex_state.h"

struct domain {
        LIST_ENTRY(domain) link;
        struct readiness *r;
        char *uid, *claim_uid;
        bool agent; /* the claim is an agent's */
        bool ready, seen, taken;
        bool told; /* that it cannot be watched */
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

/* NULL: ready. Else why not, in `text` or static. ret_seat: that of an agent, whose claim is the same in all
 * of its domains; NULL: the claim is a daemon's of this domain. */
static const char *refusal(const struct readiness *r, const char *domain_uid, const char *claim_uid,
                           struct agent_seat *ret_seat, char *text, size_t n) {
        _cleanup_(freep) char *dir = readiness_domain_dir(r->o.plugin_dir, domain_uid);
        struct imex_state s;
        struct err e;
        bool held = false;
        if (imex_state_read(dir, &s, &held, &e) < 0) {
                if (e.kind == ERR_NOT_FOUND && ret_seat)
                        return "the IMEX agent of this node has not joined this IMEX domain yet; while "
                               "another one uses the node, it leaves that first";
                if (e.kind == ERR_NOT_FOUND)
                        return "the IMEX daemon has not reported yet";
                snprintf(text, n, "the IMEX daemon's state cannot be read: %s", e.msg);
                return text;
        }
        bool ready = s.ready;
        s.ready = true;
        const char *why = imex_state_refusal(&s, held, r->o.boot_id, claim_uid);
        if (!why && ret_seat &&
            (!agent_seat_parse(s.seat, ret_seat) || !streq(ret_seat->domain_uid, domain_uid)))
                why = "the IMEX agent of this node is in another IMEX domain";
        if (why || ready)
                return why;
        /* The file can be believed, so say in the daemon's words what it waits for. */
        snprintf(text, n, "IMEX daemon is %s%s%s", str_or(s.status, "not ready"), s.reason[0] ? ": " : "",
                 s.reason);
        return text;
}

/* The claim of the daemon of this domain, or of the agent, which is one for any; or of the daemon that stands
 * in its way. */
static const struct checkpoint_claim *find_daemon(const struct checkpoint *table, const char *domain_uid,
                                                  bool *ret_agent,
                                                  const struct checkpoint_claim **ret_other) {
        *ret_other = NULL;
        *ret_agent = false;
        CHECKPOINT_EACH_DEVICE (table, c, d) {
                if (!device_is_daemon(d))
                        continue;
                *ret_agent = device_is_agent(d);
                if (*ret_agent || streq(d->domain, domain_uid))
                        return c;
                if (!d->admin)
                        *ret_other = c;
        }
        return NULL;
}

bool readiness_check(const struct readiness *r, const struct checkpoint *table, const char *domain_uid,
                     bool *ret_in_the_way, struct agent_seat *ret_seat, char *reason, size_t n) {
        bool agent;
        const struct checkpoint_claim *other, *daemon = find_daemon(table, domain_uid, &agent, &other);
        char text[320];
        *ret_in_the_way = !daemon && other;
        if (!daemon && other) {
                /* Whose it is concerns nobody else; the daemon's claim has a name made of its domain's. */
                snprintf(reason, n,
                         "%s: the IMEX daemon of another ComputeDomain has not left this node yet: it leaves "
                         "when that domain's last pod here has ended; wait, or choose another node",
                         r->o.node);
                return false;
        }
        if (!daemon) {
                snprintf(reason, n,
                         "%s: the IMEX daemon of this ComputeDomain has not been started on this node yet; "
                         "if that lasts, the DaemonSet of the domain, in the driver's namespace, says why no "
                         "pod of it is here",
                         r->o.node);
                return false;
        }
        if (!str_is_uuid(domain_uid)) {
                snprintf(reason, n, "%s: '%s' is not the UID of a ComputeDomain", r->o.node, domain_uid);
                return false;
        }
        const char *why = refusal(r, domain_uid, daemon->uid, agent ? ret_seat : NULL, text, sizeof text);
        if (why)
                snprintf(reason, n, "%s: %s", r->o.node, why);
        return !why;
}

static const char *refusal_now(const struct domain *d, char *text, size_t n) {
        struct agent_seat seat;
        return refusal(d->r, d->uid, d->claim_uid, d->agent ? &seat : NULL, text, n);
}

static void on_change(struct watch_file *w) {
        struct domain *d = w->u;
        struct readiness *r = d->r;
        char text[320];
        const char *why = refusal_now(d, text, sizeof text);
        bool was = d->ready;
        d->ready = !why;
        if (!was && !why)
                log_info("IMEX daemon is ready", kv_str("domain", d->uid));
        if (was && why)
                log_info("IMEX daemon is not ready any more", kv_str("domain", d->uid),
                         kv_str("reason", why));
        if (was && why)
                r->o.lost(r->o.u, d->uid);
        bool was_taken = d->taken;
        d->taken = why && strstr(why, IMEX_LOG_SESSION_TAKEN);
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
static void watch(struct domain *d) {
        _cleanup_(freep) char *dir = readiness_domain_dir(d->r->o.plugin_dir, d->uid);
        _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);
        char text[320];
        struct err e;
        int r = file_mkdirs(dir, 0755, &e) < 0 ? -1
                                               : watch_file_start(&d->watch, d->r->loop, path, on_change, &e);
        if (r < 0 && !d->told)
                log_error("cannot watch the state of an IMEX daemon, so its readiness is noticed late",
                          kv_str("domain", d->uid), kv_err(&e));
        d->told = r < 0;
        d->ready = !refusal_now(d, text, sizeof text);
}

/* The folder was made to be watched. An agent that never came removes none. */
static void unfollow(struct domain *d) {
        _cleanup_(freep) char *dir = d->agent ? readiness_domain_dir(d->r->o.plugin_dir, d->uid) : NULL;
        domain_free(d);
        if (dir)
                (void)rmdir(dir); /* unless something is in it */
}

static void follow(struct readiness *r, const char *domain_uid, const char *claim_uid, bool agent) {
        struct domain *d;
        LIST_FOREACH (d, &r->domains, link) {
                if (streq(d->uid, domain_uid) && streq(d->claim_uid, claim_uid)) {
                        d->seen = true;
                        if (!d->watch.active)
                                watch(d);
                        return;
                }
        }
        d = xnew(struct domain);
        d->r = r;
        d->uid = xstrdup(domain_uid);
        d->claim_uid = xstrdup(claim_uid);
        d->agent = agent;
        d->seen = true;
        d->watch.u = d;
        LIST_INSERT_HEAD(&r->domains, d, link);
        watch(d);
}

void readiness_follow(struct readiness *r, const struct checkpoint *table, const char *const *granted) {
        struct domain *d, *next;
        LIST_FOREACH (d, &r->domains, link) {
                d->seen = false;
        }
        CHECKPOINT_EACH_DEVICE (table, c, device) {
                if (device_is_daemon(device) && str_is_uuid(str_or(device->domain, "")))
                        follow(r, device->domain, c->uid, false);
                for (const char *const *g = granted; device_is_agent(device) && g && *g; g++)
                        follow(r, *g, c->uid, true);
        }
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

int readiness_prepare_dir(const char *plugin_dir, const char *domain_uid, bool keep_state, struct err *e) {
        _cleanup_(freep) char *dir = readiness_domain_dir(plugin_dir, domain_uid);
        _cleanup_(freep) char *state = file_join(dir, IMEX_STATE_FILE);
        if (file_mkdirs(dir, 0755, e) < 0)
                return -1;
        /* whatever our umask was */
        if (chmod(dir, 0755) < 0)
                return err_errno(e, errno, "chmod '%s'", dir);
        return keep_state ? 0 : file_remove(state, e);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) {
        return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int readiness_remove_dir(const char *plugin_dir, const char *domain_uid, struct err *e) {
        _cleanup_(freep) char *dir = readiness_domain_dir(plugin_dir, domain_uid);
        _cleanup_(freep) char *state = file_join(dir, IMEX_STATE_FILE);
        if (file_remove(state, e) < 0)
                return -1;
        /* A daemon wrote in there: links are removed, not followed. */
        if (nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
                return err_errno(e, errno, "remove '%s'", dir);
        return 0;
}

bool readiness_inhabited(const char *plugin_dir, const char *domain_uid, const char *claim_uid) {
        _cleanup_(freep) char *dir = readiness_domain_dir(plugin_dir, domain_uid);
        struct imex_state s;
        struct err e;
        bool held = false;
        if (imex_state_read(dir, &s, &held, &e) < 0)
                return e.kind != ERR_NOT_FOUND && e.kind != ERR_INVALID;
        return held && (!claim_uid || streq(s.claim_uid, claim_uid));
}
