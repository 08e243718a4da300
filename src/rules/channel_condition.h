/* SPDX-License-Identifier: Apache-2.0 */
/* channel_condition: makes the condition that shows which assigned channels a ComputeDomain has, or why it
 * has none. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/domain.h"

/* A partition in which claims of the ComputeDomain are allocated. */
struct own_channel {
        const char *fabric; /* clique ID; "": the node has no partition */
        const char *rack;   /* NULL: none */
        int64_t id;         /* channel ID; -1: none is assigned */
        const char *why;    /* why no channel is assigned: a sentence from the fabric object; NULL: unknown */
        bool unknown;       /* `fabric` is "" because the node's partition is not known */
};

/* Fills type, status, reason and message of the condition ChannelAssigned. `list` is sorted by `fabric`,
 * without duplicates. The message depends only on the partitions, so a node that joins a listed partition
 * does not change it. */
void channel_condition(const struct own_channel *list, size_t n, struct arena *a, struct cd_condition *ret);
