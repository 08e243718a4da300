/* SPDX-License-Identifier: Apache-2.0 */
/* unpack: protobuf-c's decoder with a budget.
 *
 * protobuf-c makes several allocations for each field of a message before anybody sees one, known or unknown,
 * empty or not: two bytes of request cost up to 90 bytes of memory, 4 MiB cost 181. What a message may cost
 * is decided here, before it is spent. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"

/* NULL when it is no such message, or would take more than `budget` bytes. Freed by the message's own
 * free_unpacked function, with NULL for the allocator. */
void *unpack_message(const ProtobufCMessageDescriptor *type, struct str message, size_t budget);
