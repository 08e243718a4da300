/* SPDX-License-Identifier: Apache-2.0 */
/* dra_messages: the DRA requests and responses as bytes. Pure functions; the contract is in dra.proto. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "dra/dra_plugin.h"

enum {
        DRA_MAX_CLAIMS = 1024, /* of one call */
        DRA_MAX_NAME = 253,
        DRA_MAX_ERROR = 16 << 10, /* bytes of a claim's error; the rest is cut off */
};

/* What became of one claim. */
struct dra_result {
        const char *uid;
        const char *error; /* not NULL: it failed, and the devices do not matter */
        const struct dra_device *devices;
        size_t n_devices;
};

/* Reads a NodePrepareResources or NodeUnprepareResources request into *a. ERR_INVALID, naming the claim, when
 * it is no such message, has no claim, or a claim lacks a member, repeats a UID or has a member that is no
 * Kubernetes name (they become parts of file names and URLs). */
int dra_messages_read_claims(struct str message, struct arena *a, struct dra_claim **ret, size_t *ret_n,
                             struct err *e);

/* Appends the response, in the order given. *a is for what is needed meanwhile. */
void dra_messages_write_results(bool prepare, const struct dra_result *results, size_t n, struct arena *a,
                                struct buf *out);

/* `s` with each byte that is not part of valid UTF-8 replaced by '?', cut at `max` bytes between characters:
 * protobuf text is UTF-8, and Go refuses a whole response for one wrong byte. */
char *dra_messages_text(struct arena *a, const char *s, size_t max);
