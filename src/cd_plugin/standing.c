/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/standing.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cd_plugin/cd_devices.h"
#include "node/ops.h"

bool standing_uid(const struct cd *cd, char ret[static 37]) {
        const struct facts *f = facts_get(cd->o.facts);
        if (!mode_is_standing(cd->o.mode) || !f->usable || !*f->fabric.clique_id)
                return false;
        fabric_standing_uid(f->fabric.clique_id, ret);
        return true;
}

/* An assigned channel is never channel 0, and the shared channel always is. */
bool standing_domain_of(const struct cd *cd, const struct checkpoint_claim *entry,
                        const struct node_device *d, char ret[static 37]) {
        const char *clique;
        if (d->id < 1) {
                snprintf(ret, 37, "%s", str_or(d->domain, ""));
                return str_is_uuid(ret);
        }
        if (!mode_is_standing(cd->o.mode))
                return false;
        clique = str_or(holdings_clique(cd->o.holdings, entry->uid), fabric_watch_clique(cd->o.fabric));
        if (*clique)
                fabric_standing_uid(clique, ret);
        return *clique;
}

/* Without the node's name. */
static void keep_reason(struct standing *ret, const char *msg) {
        const char *why = strstr(msg, ": ");
        snprintf(ret->why, sizeof ret->why, "%s", why ? why + 2 : msg);
}

void standing_get(struct cd *cd, struct standing *ret) {
        const struct prepare_question q = { .boot_id = cd->o.boot_id };
        char uid[37], msg[sizeof ret->why];
        struct prepare_daemon d;
        *ret = (struct standing){ 0 };
        if (!cd->followed || !standing_uid(cd, uid))
                return;
        if (readiness_check(cd->readiness, uid, &d, msg, sizeof msg)) {
                ret->state = STANDING_READY;
        } else {
                bool left = d.runner != PREPARE_RUNNER_OWN || d.unread.kind != ERR_NONE ||
                            streq(d.state.status, IMEX_STATE_LEAVING);
                keep_reason(ret, msg);
                ret->state = cd->standing_was_ready && !left ? STANDING_NOT_READY : STANDING_NOT_JOINED;
        }
        ret->terminating = may_prepare_terminating(&q, &d);
        cd->standing_was_ready = ret->state != STANDING_NOT_JOINED;
        snprintf(ret->version, sizeof ret->version, "%s", d.state.version);
}
