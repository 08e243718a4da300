/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/census.h"

const char *const census_names[CENSUS_STATES] = {
        [CENSUS_READY] = "ready", [CENSUS_STARTING] = "starting", [CENSUS_FAILING] = "failing",
        [CENSUS_LOST] = "lost",   [CENSUS_LEAVING] = "leaving",
};

struct census census_daemons(const struct formation *f, size_t peers_missing) {
        static const enum census_state states[] = {
                [FORMATION_READY] = CENSUS_READY,     [FORMATION_STARTING] = CENSUS_STARTING,
                [FORMATION_FAILING] = CENSUS_FAILING, [FORMATION_LOST] = CENSUS_LOST,
                [FORMATION_HELD] = CENSUS_FAILING,    [FORMATION_FULL] = CENSUS_FAILING,
                [FORMATION_LEAVING] = CENSUS_LEAVING,
        };
        struct census c = { .peers_missing = peers_missing };
        for (size_t i = 0; i < f->n_members; i++)
                c.nodes[states[f->members[i].why]]++;
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
