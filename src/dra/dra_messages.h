/* SPDX-License-Identifier: Apache-2.0 */
/* dra_messages: decodes DRA requests and encodes responses. Pure. dra.proto defines the format. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "dra/dra_plugin.h"

/* Runs protobuf-c's decoder with a memory budget.
 *
 * protobuf-c makes several allocations for each field of a message, known or unknown, empty or not, before it
 * returns: two bytes of a request cost up to 90 bytes of memory, and 4 MiB cost 181 MiB. This module limits
 * the memory before it is allocated.
 *
 * Decodes a message. NULL: the bytes are not such a message, or the message needs more than `budget` bytes.
 * The caller frees the message with its free_unpacked function and a NULL allocator. */
void *unpack_message(const ProtobufCMessageDescriptor *type, struct str message, size_t budget);

enum {
        DRA_MAX_CLAIMS = 1024, /* the number of claims in one call */
        DRA_MAX_NAME = 253,
        DRA_MAX_ERROR = 16 << 10, /* bytes of the error text of a claim; the rest is cut off */
};

/* The result for one claim. */
struct dra_result {
        const char *uid;
        const char *error; /* not NULL: the operation failed, and `devices` is ignored */
        const struct dra_device *devices;
        size_t n_devices;
};

/* Reads a NodePrepareResources or NodeUnprepareResources request; all memory is in *a. ERR_INVALID: the bytes
 * are not such a message, the message has no claim, or a claim lacks a member, repeats a UID or has a member
 * that is not a Kubernetes name (members become parts of file names and URLs). The error text names the
 * claim. */
int dra_messages_read_claims(struct str message, struct arena *a, struct dra_claim **ret, size_t *ret_n,
                             struct err *e);

/* Appends the response with the results in their order. *a is for temporary memory. */
void dra_messages_write_results(bool prepare, const struct dra_result *results, size_t n, struct arena *a,
                                struct buf *out);

/* Returns the text for a message that is packed: protobuf-c does not write to it, although its types are not
 * const. */
char *dra_messages_unconst(const char *s);

/* Returns a copy of `s` in which each byte that is not part of valid UTF-8 is replaced by '?'. The copy is
 * cut between characters, after at most `max` bytes. Protobuf text is UTF-8, and Go rejects a whole response
 * because of one invalid byte. */
char *dra_messages_text(struct arena *a, const char *s, size_t max);
