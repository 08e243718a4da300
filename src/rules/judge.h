/* SPDX-License-Identifier: Apache-2.0 */
/* judge: how a member of a domain is, and what to say of it. Pure. */
#pragma once

#include "base/mem.h"
#include "rules/seat_facts.h"

/* What judging needs beyond the node, and when it would say something else though nothing happens. */
struct judging {
        struct arena *a; /* of the messages */
        int64_t now, recheck_s;
        bool stale;  /* who is not seen may be there */
        bool no_pod; /* somebody waits for a daemon pod */
};

/* Fills in address, status, peers, listed, why and message; the indices are known. */
void judge_member(struct formed_seat *m, const struct seat_facts *n, struct judging *j);

/* In so many seconds; not positive: no need. The earliest counts. */
void judge_look_again(struct judging *j, int64_t left_s);
/* How long the index of a node whose Node object is gone is still kept. */
int64_t judge_gone_left_s(int64_t now, const struct seat_facts *n);
/* The address of its daemon pod, "" while unknown. */
const char *judge_ip(const struct seat_facts *n);
