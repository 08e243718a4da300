/* imex_ctl: asking a running nvidia-imex, by nvidia-imex-ctl. Parsers of foreign text (fuzzed) and one query that never blocks. */
#ifndef IMEX_IMEX_CTL_H
#define IMEX_IMEX_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/child.h"
#include "base/mem.h"

/* The word of `-q`: the last line that is exactly one of the known words (INITIALIZING, STARTING_AUTH_SERVER, WAITING_FOR_PEERS,
 * WAITING_FOR_RECOVERY, INIT_GPU, READY, SHUTTING_DOWN, UNAVAILABLE), so that a warning line in front does no harm; "" when none. */
const char *imex_ctl_parse_status(struct str out);

struct imex_ctl_node {
        int64_t id;
        const char *host, *status, *version;
        const char *connection; /* of the queried daemon to this node: CONNECTED, NEVER_CONNECTED, ... or NULL */
};
struct imex_ctl_domain {
        const char *status;     /* UP, DEGRADED, DOWN */
        struct imex_ctl_node *nodes;
        size_t n_nodes;
};
/* Output of `-N -j`. */
int imex_ctl_parse_domain(struct str out, struct arena *a, struct imex_ctl_domain *ret, struct err *e);

#endif
