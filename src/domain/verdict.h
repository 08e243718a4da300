/* verdict: what the status of a ComputeDomain says about a formation, and what Events tell of the change. Pure. */
#ifndef DOMAIN_VERDICT_H
#define DOMAIN_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "domain/formation.h"

/* Something that concerns the domain as a whole. The first of a list that applies becomes the reason of the condition Ready. */
struct verdict_problem {
        const char *reason, *message; /* reason NULL: none */
};

enum { VERDICT_CONDITIONS = 2 };

struct verdict {
        const char *status; /* "Ready" or "NotReady" */
        struct cd_node *nodes;
        size_t n_nodes;
        int64_t nodes_ready, nodes_wanted, cliques;
        struct cd_condition conditions[VERDICT_CONDITIONS]; /* Ready, PeersConnected */
        bool warns;                                         /* the reason of Ready is something a person should look at */
        bool changed;                                       /* it differs from what the object says */
};

/* `now` in seconds since 1970, for transitions. `conditions` false: the server's schema drops what the Go driver's does not have, so
 * differences there do not count. */
void verdict_make(const struct compute_domain *cd, const struct formation *f, const struct verdict_problem *problem, bool conditions,
                  int64_t now, struct arena *a, struct verdict *ret);

struct verdict_event {
        bool warning;
        const char *reason, *message;
};
/* What a person would want to know of the step from what the object says to the verdict. Returns the number; *ret is from the arena. */
size_t verdict_events(const struct compute_domain *cd, const struct formation *f, const struct verdict *v, struct arena *a,
                      struct verdict_event **ret);

#endif
