/* SPDX-License-Identifier: Apache-2.0 */
/* channel_condition: which IMEX channels a ComputeDomain has, or why it has none, as one condition. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/domain.h"

/* A fabric on whose nodes claims of the domain are allocated. */
struct own_channel {
        const char *fabric; /* clique id, "": the node states none */
        const char *rack;   /* NULL: none */
        int64_t id;         /* -1: none is assigned */
        const char *why;    /* it has none, a sentence of the fabric's; NULL: nothing known */
};

/* Fills type, status, reason and message of condition ChannelAssigned. `list` is sorted by fabric, each once.
 * It changes with the fabrics, not with the nodes. */
void channel_condition(const struct own_channel *list, size_t n, struct arena *a, struct cd_condition *ret);
