#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cdi/cdi.h"
#include "domain/names.h"
#include "plugin/claims_priv.h"

void unprepare_each_daemon_domain(const struct checkpoint_claim *entry,
                                  void (*fn)(void *u, const char *domain), void *u) {
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (entry->devices[i].is_daemon && str_is_uuid(str_or(entry->devices[i].domain, "")))
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

struct undo {
        struct claims *c;
        const struct checkpoint_claim *entry;
};

static void leave_domain(void *u, const char *domain) {
        struct undo *s = u;
        struct in_use other = { .domain = domain };
        struct err e;
        for (const struct checkpoint_claim *i = s->c->journal.table.claims; i; i = i->hh.next) {
                if (i != s->entry && i->state != CHECKPOINT_ABORTED)
                        unprepare_each_daemon_domain(i, compare, &other);
        }
        /* What stays behind is removed at the next start, and a state file of this daemon convinces nobody
         * any more. */
        if (!other.yes && readiness_remove_dir(s->c->o.plugin_dir, domain, &e) < 0)
                log_warn("cannot remove the folder of a domain", kv_str("domain", domain), kv_err(&e));
}

int unprepare_carry_out(struct claims *c, const char *uid, bool *ret_changed, struct err *e) {
        struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        /* An id that cannot be the name of a file never was one. */
        if (cdi_remove(c->o.cdi_root, CD_CDI_KIND_CLAIM, uid, e) < 0 && e->kind != ERR_INVALID)
                return -1;
        if (!entry || entry->state == CHECKPOINT_ABORTED)
                return 0;
        struct undo undo = { .c = c, .entry = entry };
        unprepare_each_daemon_domain(entry, leave_domain, &undo);
        if (entry->state == CHECKPOINT_STARTED) {
                entry->state = CHECKPOINT_ABORTED;
                entry->aborted_at = time(NULL);
                entry->n_devices = 0;
                entry->prepared = (struct str){ 0 };
        } else {
                checkpoint_drop(&c->journal.table, entry);
        }
        *ret_changed = true;
        return 0;
}
