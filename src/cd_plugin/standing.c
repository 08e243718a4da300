/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/standing.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cd_plugin/devices.h"
#include "cd_plugin/own_seat.h"
#include "imex/imex_state.h"
#include "node/ops.h"

bool standing_uid(const struct cd *cd, char ret[static 37]) {
        const struct facts *f = facts_get(cd->o.facts);
        if (!mode_is_standing(cd->o.mode) || !f->usable || !*f->fabric.clique_id)
                return false;
        fabric_standing_uid(f->fabric.clique_id, ret);
        return true;
}

/* A channel of a ComputeDomain's own is never 0, and one that all share always is. */
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

static bool read_state(const struct cd *cd, const char *uid, struct imex_state *ret) {
        _cleanup_(freep) char *dir = readiness_domain_dir(cd->o.plugin_dir, uid);
        bool held;
        struct err e;
        return imex_state_read(dir, ret, &held, &e) == 0;
}

static bool is_ready(const struct cd *cd, const char *uid, struct agent_seat *ret, char *msg, size_t n) {
        bool in_the_way;
        return readiness_check(cd->readiness, &cd->claims->journal.table, uid, &in_the_way, ret, msg, n);
}

void standing_get(struct cd *cd, struct standing *ret) {
        struct imex_state s = { 0 };
        struct agent_seat seat;
        char uid[37], msg[sizeof ret->why];
        *ret = (struct standing){ 0 };
        if (!cd->followed || !standing_uid(cd, uid))
                return;
        bool is_there = read_state(cd, uid, &s);
        if (!device_agent_claim(&cd->claims->journal.table)) {
                snprintf(ret->why, sizeof ret->why, "no IMEX agent runs on this node");
                ret->state = STANDING_APART;
        } else if (is_ready(cd, uid, &seat, msg, sizeof msg)) {
                ret->state = STANDING_READY;
        } else {
                /* Without the node's name. */
                const char *why = strstr(msg, ": ");
                snprintf(ret->why, sizeof ret->why, "%s", why ? why + 2 : msg);
                ret->state = cd->standing_was_ready && is_there && !streq(s.status, IMEX_STATE_LEAVING)
                                     ? STANDING_NOT_READY
                                     : STANDING_APART;
        }
        cd->standing_was_ready = ret->state != STANDING_APART;
        snprintf(ret->version, sizeof ret->version, "%s", s.version);
}

bool standing_serves(const struct cd *cd, const struct compute_domain_fabric *f, char *msg, size_t n) {
        const struct facts *facts = facts_get(cd->o.facts);
        struct agent_seat ready = { 0 };
        char uid[37];
        if (!standing_uid(cd, uid)) {
                snprintf(msg, n, "%s: this node is in no NVLink fabric", cd->o.node);
                return false;
        }
        const struct own_seat_question q = {
                .node = cd->o.node, .clique_id = facts->fabric.clique_id, .domain_uid = uid, .stands = true
        };
        const struct fabric_seat *seat = own_seat(f, &q, msg, n);
        return seat && is_ready(cd, uid, &ready, msg, n) && own_seat_is(seat, &ready, &q, msg, n);
}
