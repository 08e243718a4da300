/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/node_counts.h"

#include "api/states.h"
#include "base/stderr.h"

const char *const node_counts_names[NODE_COUNTS_STATES] = {
        [NODE_COUNTS_READY] = NODE_STATE_READY,     [NODE_COUNTS_STARTING] = NODE_STATE_STARTING,
        [NODE_COUNTS_FAILING] = NODE_STATE_FAILING, [NODE_COUNTS_LOST] = NODE_STATE_LOST,
        [NODE_COUNTS_LEAVING] = NODE_STATE_LEAVING,
};

struct node_counts node_counts_daemons(const struct membership *all, size_t peers_missing) {
        static const enum node_counts_state states[] = {
                [MEMBER_READY] = NODE_COUNTS_READY,      [MEMBER_STARTING] = NODE_COUNTS_STARTING,
                [MEMBER_FAILING] = NODE_COUNTS_FAILING,  [MEMBER_LOST] = NODE_COUNTS_LOST,
                [MEMBER_OCCUPIED] = NODE_COUNTS_FAILING, [MEMBER_FULL] = NODE_COUNTS_FAILING,
                [MEMBER_LEAVING] = NODE_COUNTS_LEAVING,
        };
        struct node_counts c = { .peers_missing = peers_missing };
        for (size_t i = 0; i < all->n_members; i++) {
                BUG_ON((size_t)all->members[i].why >= ARRAY_LEN(states));
                c.nodes[states[all->members[i].why]]++;
        }
        return c;
}

struct node_counts node_counts_hosts(const struct host *hosts, size_t n) {
        BUG_ON(n && !hosts);
        struct node_counts c = { 0 };
        for (size_t i = 0; i < n; i++)
                c.nodes[!hosts[i].reported          ? NODE_COUNTS_LOST
                        : hosts[i].state == HOST_UP ? NODE_COUNTS_READY
                                                    : NODE_COUNTS_FAILING]++;
        return c;
}
