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

void standing_get(struct cd *cd, struct standing *ret) {
        char uid[37];
        const struct prepare_question q = { .boot_id = cd->o.boot_id, .imex_uid = uid };
        struct assignment_id assignment;
        struct prepare_daemon d;
        *ret = (struct standing){ 0 };
        if (!cd->followed || !standing_uid(cd, uid))
                return;
        readiness_get(cd->readiness, uid, &d);
        if (may_prepare_daemon(&q, &d, &assignment, ret->why, sizeof ret->why)) {
                ret->state = STANDING_READY;
        } else {
                bool left = d.runner != PREPARE_RUNNER_OWN || d.unread.kind != ERR_NONE ||
                            imex_status_decode(d.state.status) == IMEX_STATE_LEAVING;
                ret->state = cd->standing_was_ready && !left ? STANDING_NOT_READY : STANDING_NOT_JOINED;
        }
        ret->terminating = may_prepare_terminating(&q, &d);
        cd->standing_was_ready = ret->state != STANDING_NOT_JOINED;
        snprintf(ret->version, sizeof ret->version, "%s", d.state.version);
}
