/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/folders.h"

#include <string.h>

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/standing.h"
#include "imex/imex_grants.h"
#include "imex/imex_lock.h"
#include "node/effects.h"

/* True for a ComputeDomain: our daemon's claim names none. */
static bool is_domain(const char *uid) {
        return str_is_uuid(str_or(uid, "")) && !streq(uid, CD_DAEMON_DOMAIN);
}

void folders_each(const struct checkpoint_claim *entry, node_resource_fn *fn, void *u) {
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (cd_device_is_daemon(&entry->devices[i]) && is_domain(entry->devices[i].domain))
                        fn(u, entry->devices[i].domain);
        }
        if (entry->n_devices || entry->state != CHECKPOINT_STARTED)
                return;
        struct arena *a = arena_new(4096);
        struct claim claim = { 0 };
        struct err e;
        _cleanup_(freep) char *text =
                xasprintf("{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"0\"},\"status\":%.*s}",
                          (int)entry->status.n, entry->status.p);
        if (jd_decode_text(claim_fields, str_from(text), "", a, &claim, &e) == 0) {
                for (size_t i = 0; i < claim.n_results; i++) {
                        struct opaque_config config;
                        if (claim_result_is_daemon(&claim.results[i]) &&
                            claim_config_for(&claim, &claim.results[i], false, a, &config, &e) == 0 &&
                            is_domain(config.domain_id))
                                fn(u, config.domain_id);
                }
        }
        arena_free(a);
}

void folders_undo_failed(const char *domain, const struct err *e) {
        /* The rest is removed at the next start, and a state file of this daemon no longer counts. */
        log_warn("cannot remove the folder of a domain", kv_str("domain", domain), kv_err(e));
}

struct life {
        const char *plugin_dir, *claim_uid;
        bool maybe;
};

char *folders_shared(const char *plugin_dir) {
        return file_join(plugin_dir, "domains");
}

/* Our daemon has one claim for all folders. */
static int look_for_daemon(void *u, int folder, const char *domain, struct err *e) {
        struct life *l = u;
        l->maybe = l->maybe ||
                   (str_is_uuid(domain) && readiness_has_daemon(l->plugin_dir, domain, l->claim_uid));
        return 0;
}

/* Only one daemon of ours has a prepared claim here, so its lock names none. A daemon of an earlier version
 * holds only the lock of its state file. */
bool folders_daemon_lives(const struct cd *cd, const char *claim_uid) {
        struct life l = { .plugin_dir = cd->o.plugin_dir, .claim_uid = claim_uid };
        _cleanup_(freep) char *dir = folders_shared(l.plugin_dir), *lock = file_join(dir, IMEX_DAEMON_LOCK);
        bool held;
        struct err e;
        if (imex_lock_held(lock, &held, &e) < 0)
                held = e.kind != ERR_NOT_FOUND && e.kind != ERR_INVALID;
        if (held)
                return true;
        return (file_each(dir, look_for_daemon, &l, &e) < 0 && e.kind != ERR_NOT_FOUND) || l.maybe;
}

bool folders_may_collect(void *u, const struct checkpoint_claim *entry) {
        const struct cd *cd = u;
        _cleanup_(freep) char *claim = xasprintf("%s/%s", entry->ns, entry->name);
        bool lives = entry->state == CHECKPOINT_COMPLETED && entry->n_devices &&
                     cd_device_is_own_daemon(entry->devices) && folders_daemon_lives(cd, entry->uid);
        if (lives)
                log_warn("a claim no longer exists, but its IMEX daemon runs: it stays prepared until the "
                         "daemon ends",
                         kv_str("claim", claim), kv_str("uid", entry->uid));
        return !lives;
}

/* The daemon that runs IMEX for it may be about to return. */
static bool folders_has_channel(const struct cd *cd, const char *domain) {
        char counts_on[37];
        CHECKPOINT_EACH_DEVICE (&cd->claims->journal.table, c, d) {
                if (!cd_device_is_daemon(d) &&
                    (streq(d->domain, domain) ||
                     (standing_domain_of(cd, c, d, counts_on) && streq(counts_on, domain))))
                        return true;
        }
        return false;
}

struct noted {
        const struct checkpoint *table;
        bool any;
};

static int look_at_grant(void *u, int folder, const char *claim, struct err *e) {
        struct noted *n = u;
        n->any = n->any || checkpoint_find(n->table, claim);
        return 0;
}

/* A grant there of a claim that still exists may be all that keeps a daemon from before a change of the mode
 * from stopping IMEX. */
static bool has_grant(const struct cd *cd, const char *domain) {
        _cleanup_(freep) char *dir = readiness_domain_dir(cd->o.plugin_dir, domain);
        struct noted n = { .table = &cd->claims->journal.table };
        struct err e;
        return imex_grants_each(dir, look_at_grant, &n, &e) < 0 || n.any;
}

static int sweep_one(void *u, int folder, const char *domain, struct err *e) {
        const struct cd *cd = u;
        struct err failed;
        if (!str_is_uuid(domain) || effects_in_use(cd->claims, domain) || folders_has_channel(cd, domain) ||
            has_grant(cd, domain) || readiness_has_daemon(cd->o.plugin_dir, domain, NULL))
                return 0;
        if (readiness_remove_dir(cd->o.plugin_dir, domain, &failed) < 0)
                log_warn("cannot remove the folder of a former domain", kv_str("domain", domain),
                         kv_err(&failed));
        return 0;
}

void folders_remove_unused(void *u, const struct checkpoint *table) {
        const struct cd *cd = u;
        _cleanup_(freep) char *path = file_join(cd->o.plugin_dir, "domains");
        struct err e;
        if (file_each(path, sweep_one, u, &e) < 0 && e.kind != ERR_NOT_FOUND)
                log_warn("cannot look for folders of former domains", kv_err(&e));
}
