/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/names.h"
#include "base/log.h"
#include "cd_plugin/devices.h"
#include "cdi/cdi.h"
#include "cd_plugin/claims_priv.h"

void unprepare_each_daemon_domain(const struct checkpoint_claim *entry,
                                  void (*fn)(void *u, const char *domain), void *u) {
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (device_is_daemon(&entry->devices[i]) && str_is_uuid(str_or(entry->devices[i].domain, "")))
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
        if (jd_decode_text(claim_fields, text, strlen(text), false, "", a, &claim, &e) == 0) {
                for (size_t i = 0; i < claim.n_results; i++) {
                        struct opaque_config config;
                        if (claim_result_is_daemon(&claim.results[i]) &&
                            claim_config_for(&claim, &claim.results[i], false, a, &config, &e) == 0 &&
                            str_is_uuid(config.domain_id))
                                fn(u, config.domain_id);
                }
        }
        arena_free(a);
}

struct in_use {
        const char *domain;
        bool yes;
};

static void compare(void *u, const char *domain) {
        struct in_use *s = u;
        s->yes = s->yes || streq(s->domain, domain);
}

struct removal {
        struct disk_task task;
        const char *root, *id; /* outlive the job; a copy */
};

static int remove_cdi(struct disk_task *t, struct err *e) {
        const struct removal *r = (const struct removal *)t;
        /* An id that cannot be the name of a file never was one. */
        return cdi_remove(r->root, CD_CDI_KIND_CLAIM, r->id, e) < 0 && e->kind != ERR_INVALID ? -1 : 0;
}

static int remove_folder(struct disk_task *t, struct err *e) {
        const struct removal *r = (const struct removal *)t;
        return readiness_remove_dir(r->root, r->id, e);
}

static struct disk_task *removal(struct claims *c, int (*run)(struct disk_task *t, struct err *e),
                                 const char *root, const char *id) {
        struct removal *r = disk_task(c->disk, sizeof *r, run);
        r->root = root;
        r->id = arena_strdup(r->task.arena, id);
        return &r->task;
}

struct disk_task *unprepare_start(struct claims *c, const char *uid) {
        return removal(c, remove_cdi, c->o.cdi_root, uid);
}

static void note_leaving(void *u, const char *domain) {
        struct claims *c = u;
        struct leaving *l = xnew(struct leaving);
        snprintf(l->domain, sizeof l->domain, "%s", domain);
        STAILQ_INSERT_TAIL(&c->leaving, l, link);
}

bool unprepare_end(struct claims *c, const char *uid) {
        struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        if (!entry || entry->state == CHECKPOINT_ABORTED)
                return false;
        unprepare_each_daemon_domain(entry, note_leaving, c);
        if (entry->state == CHECKPOINT_STARTED) {
                entry->state = CHECKPOINT_ABORTED;
                entry->aborted_at = time(NULL);
                entry->n_devices = 0;
                entry->prepared = (struct str){ 0 };
        } else {
                checkpoint_drop(&c->journal.table, entry);
        }
        return true;
}

void unprepare_start_leaving(struct claims *c) {
        struct leaving *l;
        STAILQ_FOREACH (l, &c->leaving, link) {
                struct in_use other = { .domain = l->domain };
                for (const struct checkpoint_claim *i = c->journal.table.claims; i; i = i->hh.next) {
                        if (i->state != CHECKPOINT_ABORTED)
                                unprepare_each_daemon_domain(i, compare, &other);
                }
                if (!other.yes)
                        l->task = removal(c, remove_folder, c->o.plugin_dir, l->domain);
        }
}

void unprepare_end_leaving(struct claims *c) {
        const struct leaving *l;
        /* What stays behind is removed at the next start, and a state file of this daemon convinces nobody
         * any more. */
        STAILQ_FOREACH (l, &c->leaving, link) {
                if (l->task && l->task->r < 0)
                        log_warn("cannot remove the folder of a domain", kv_str("domain", l->domain),
                                 kv_err(&l->task->e));
        }
        unprepare_drop_leaving(c);
}

void unprepare_drop_leaving(struct claims *c) {
        while (!STAILQ_EMPTY(&c->leaving)) {
                struct leaving *l = STAILQ_FIRST(&c->leaving);
                STAILQ_REMOVE_HEAD(&c->leaving, link);
                free(l);
        }
}
