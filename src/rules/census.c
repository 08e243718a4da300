/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/census.h"

#include "api/states.h"

const char *const census_names[CENSUS_STATES] = {
        [CENSUS_READY] = NODE_STATE_READY,     [CENSUS_STARTING] = NODE_STATE_STARTING,
        [CENSUS_FAILING] = NODE_STATE_FAILING, [CENSUS_LOST] = NODE_STATE_LOST,
        [CENSUS_LEAVING] = NODE_STATE_LEAVING,
};

struct census census_daemons(const struct membership *all, size_t peers_missing) {
        static const enum census_state states[] = {
                [MEMBER_READY] = CENSUS_READY,     [MEMBER_STARTING] = CENSUS_STARTING,
                [MEMBER_FAILING] = CENSUS_FAILING, [MEMBER_LOST] = CENSUS_LOST,
                [MEMBER_HELD] = CENSUS_FAILING,    [MEMBER_FULL] = CENSUS_FAILING,
                [MEMBER_LEAVING] = CENSUS_LEAVING,
        };
        struct census c = { .peers_missing = peers_missing };
        for (size_t i = 0; i < all->n_members; i++)
                c.nodes[states[all->members[i].why]]++;
        return c;
}

struct census census_hosts(const struct host *hosts, size_t n) {
        struct census c = { 0 };
        for (size_t i = 0; i < n; i++)
                c.nodes[!hosts[i].state                  ? CENSUS_LOST
                        : streq(hosts[i].state, HOST_UP) ? CENSUS_READY
                                                         : CENSUS_FAILING]++;
        return c;
}
