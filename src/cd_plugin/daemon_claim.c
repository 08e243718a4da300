/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/daemon_claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/edits.h"
#include "cd_plugin/folders.h"
#include "cd_plugin/unprepared_claims.h"
#include "node/claims.h"

/* Files that compute-domain-daemon reads. */
#define FABRIC_FILE "fabric"
#define EDITS_FILE "edits"

enum { FILE_MAX = 4096, EDITS_MAX = 1 << 20, RETRY_MS = 30000 };

static char *file_of(const struct cd *cd, const char *name) {
        _cleanup_(freep) char *dir = folders_shared(cd->o.plugin_dir);
        return file_join(dir, name);
}

/* Does the file have this content? The daemon's container can write in this folder. */
static bool shown(const struct cd *cd, const char *name, const char *what) {
        _cleanup_(freep) char *path = file_of(cd, name);
        _cleanup_(freep) char *text = NULL;
        _cleanup_(closep) int fd = -1;
        size_t n;
        struct err e;
        return file_open_nofollow(path, &fd, &e) == 0 &&
               file_read_fd(fd, path, FILE_MAX, &text, &n, &e) == 0 &&
               str_eq(str_trim((struct str){ text, n }), str_from(what));
}

static int show(struct cd *cd, const char *name, const char *what, struct err *e) {
        _cleanup_(freep) char *dir = folders_shared(cd->o.plugin_dir);
        _cleanup_(freep) char *path = file_of(cd, name);
        _cleanup_(freep) char *text = xasprintf("%s\n", what);
        cd->daemon.shown = true;
        if (shown(cd, name, what))
                return 0;
        file_remove_temporary(dir, name);
        return file_mkdirs(dir, 0755, e) < 0 ? -1 : file_replace_volatile(path, text, strlen(text), 0644, e);
}

/* The files that one daemon was shown do not count for the next. */
static void daemon_claim_forget(struct cd *cd) {
        static const char *const names[] = { FABRIC_FILE, EDITS_FILE };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(freep) char *path = file_of(cd, names[i]);
                (void)unlink(path);
        }
        cd->daemon.shown = false;
}

static int daemon_claim_identify(const struct cdi_edits *edits, char id[static 17], struct err *e) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(EDITS_MAX);
        const struct cdi_device device = { CD_DEVICE_DAEMON, *edits };
        cdi_render(&(struct cdi_spec){ .kind = CD_CDI_KIND_CLAIM, .devices = &device, .n_devices = 1 },
                   &text);
        if (text.failed)
                return err_set(e, ERR_INVALID, 0, "there are too many edits for the IMEX daemon");
        snprintf(id, 17, "%016" PRIx64, str_fnv64(buf_str(&text), text.n));
        return 0;
}

static void add_env(struct arena *a, struct cdi_edits *edits, const char *text) {
        size_t n = 0;
        while (edits->env[n])
                n++;
        const char **env = arena_alloc(a, (n + 2) * sizeof *env);
        memcpy(env, edits->env, n * sizeof *env);
        env[n] = text;
        env[n + 1] = NULL;
        edits->env = env;
}

static int make_edits(struct cd *cd, const char *uid, struct arena *a, struct cdi_edits *ret,
                      char id[static 17], struct err *e) {
        const struct facts *f = facts_get(cd->o.facts);
        _cleanup_(freep) char *dir = folders_shared(cd->o.plugin_dir);
        struct edits_daemon d = {
                .domain_dir = dir,
                .cdi_root = cd->claims->o.cdi_root,
                .clique_id = f->fabric.clique_id,
                .claim_uid = uid,
                .root = cd->o.root,
                .driver_version = f->driver_version,
                .dev_root = cd->o.dev_root,
                .proc_driver = cd->o.proc_driver,
        };
        if (show(cd, FABRIC_FILE, f->fabric.clique_id, e) < 0)
                return -1;
        if (*d.clique_id && facts_major(cd->o.facts, PROC_MAJOR_CAPS, &d.caps_major, e) < 0)
                return -1;
        if (edits_for_daemon(a, &d, ret, e) < 0 || daemon_claim_identify(ret, id, e) < 0)
                return -1;
        add_env(a, ret, arena_printf(a, "COMPUTE_DOMAIN_DAEMON_EDITS=%s", id));
        return 0;
}

int daemon_claim_edits(struct cd *cd, const char *uid, struct arena *a, struct cdi_edits *ret,
                       char id[static 17], struct err *e) {
        snprintf(cd->daemon.preparing, sizeof cd->daemon.preparing, "%s", uid);
        return make_edits(cd, uid, a, ret, id, e);
}

void daemon_claim_written(struct cd *cd, const char *uid, const char *id) {
        struct err e;
        snprintf(cd->daemon.compared, sizeof cd->daemon.compared, "%s", uid);
        cd->daemon.preparing[0] = '\0';
        if (show(cd, EDITS_FILE, id, &e) == 0)
                return;
        log_warn("cannot show the edits of its container to the IMEX daemon, retrying", kv_err(&e));
        loop_timer_start(&cd->daemon.retry, RETRY_MS);
}

/* Compares the present content of the daemon's CDI file with the content that it would have now. */
static void daemon_claim_compare(struct cd *cd) {
        const struct checkpoint_claim *claim = cd_device_own_daemon_claim(&cd->claims->journal.table);
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct cdi_edits edits;
        char id[17];
        struct err e;
        loop_timer_stop(&cd->daemon.retry);
        if (!claim || !facts_get(cd->o.facts)->usable)
                return;
        snprintf(cd->daemon.compared, sizeof cd->daemon.compared, "%s", claim->uid);
        if (make_edits(cd, claim->uid, a, &edits, id, &e) < 0) {
                log_warn("cannot find out which devices and files of this node the IMEX daemon's container "
                         "needs now: it keeps those that it has",
                         kv_err(&e));
                loop_timer_start(&cd->daemon.retry, RETRY_MS);
                return;
        }
        if (shown(cd, EDITS_FILE, id))
                return;
        log_info("the devices or files of this node for the IMEX daemon's container have changed: the "
                 "container restarts when its IMEX is not in use",
                 kv_str("claim", claim->uid));
        claims_renew(cd->claims, claim->uid);
        loop_timer_start(&cd->daemon.retry, RETRY_MS);
}

/* The kubelet unprepares the claims of pods that the API server no longer has, whether or not their
 * containers have ended. */
int daemon_claim_unprepare(void *u, const struct checkpoint_claim *entry, struct err *e) {
        const struct cd *cd = u;
        struct err why;
        if (!entry->n_devices || !cd_device_is_own_daemon(entry->devices))
                return 0;
        if (folders_daemon_lives(cd, entry->uid))
                return err_set(
                        e, ERR_RETRY, 0,
                        "%s: the IMEX daemon of ResourceClaim '%s/%s' still runs, for example because its "
                        "Pod was force-deleted: the claim is unprepared when it has ended",
                        cd->o.node, str_or(entry->ns, "?"), str_or(entry->name, entry->uid));
        if (str_is_uuid(entry->uid) &&
            unprepared_claims_add(cd->o.plugin_dir, cd->o.boot_id, entry->uid, &why) < 0)
                log_warn("cannot record that the claim of an IMEX daemon is unprepared, so it is not "
                         "reported, and the index of this node stays reserved until its next daemon reports",
                         kv_str("claim", entry->uid), kv_err(&why));
        return 0;
}

void daemon_claim_report(const struct cd *cd) {
        char uid[37];
        struct err e;
        if (unprepared_claims_newest(cd->o.plugin_dir, cd->o.boot_id, &cd->claims->journal.table, uid, &e) <
            0)
                log_warn("cannot report which daemon claim was unprepared", kv_err(&e));
        else
                own_pod_set(cd->o.own_pod, IMEX_ANNOTATION_UNPREPARED, *uid ? uid : NULL, 0);
}

static void daemon_claim_on_retry(void *u) {
        daemon_claim_compare(u);
}

void daemon_claim_facts(struct cd *cd) {
        daemon_claim_compare(cd);
}

/* A claim that is being prepared is compared when that has finished. */
void daemon_claim_follow(struct cd *cd) {
        const struct checkpoint_claim *claim = cd_device_own_daemon_claim(&cd->claims->journal.table);
        if (!claim && cd->daemon.shown && !ops_active(cd->claims, cd->daemon.preparing))
                daemon_claim_forget(cd);
        else if (claim && !streq(claim->uid, cd->daemon.compared) && !ops_active(cd->claims, claim->uid))
                daemon_claim_compare(cd);
}

void daemon_claim_init(struct cd *cd) {
        loop_timer_init(&cd->daemon.retry, cd->o.loop, daemon_claim_on_retry, cd);
        cd->daemon.shown = true; /* by an earlier process */
}

void daemon_claim_done(struct cd *cd) {
        loop_timer_done(&cd->daemon.retry);
}
