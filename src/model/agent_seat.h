/* SPDX-License-Identifier: Apache-2.0 */
/* agent_seat: how a resident agent names the seat that it has, in its state file for the kubelet plugin and
 * on its Pod for the controller: "<clique id>/<UID of the ComputeDomain>/<index>/<epoch>". Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"

/* A clique id has 63 bytes at most. */
enum { AGENT_SEAT_MAX = 160 };

struct agent_seat {
        char clique_id[64], domain_uid[37];
        int64_t index, epoch;
};

void agent_seat_render(const char *clique_id, const char *domain_uid, int64_t index, int64_t epoch,
                       struct buf *out);
/* False: it is none, so nothing is known. */
bool agent_seat_parse(const char *text, struct agent_seat *ret);

/* Epochs by comma. What is no number is left out; NULL: none. In the arena. */
void agent_epochs_render(const int64_t *epochs, size_t n, struct buf *out);
size_t agent_epochs_parse(const char *text, struct arena *a, int64_t **ret);
