/* SPDX-License-Identifier: Apache-2.0 */
/* unpack: runs protobuf-c's decoder with a memory budget.
 *
 * protobuf-c makes several allocations for each field of a message, known or unknown, empty or not, before it
 * returns: two bytes of a request cost up to 90 bytes of memory, and 4 MiB cost 181 MiB. This module limits
 * the memory before it is allocated. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"

/* Decodes a message. NULL: the bytes are not such a message, or the message needs more than `budget` bytes.
 * The caller frees the message with its free_unpacked function and a NULL allocator. */
void *unpack_message(const ProtobufCMessageDescriptor *type, struct str message, size_t budget);
