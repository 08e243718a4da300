/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/unpack.h"

#include <stdlib.h>

static void *unpack_take(void *u, size_t n) {
        size_t *left = u;
        if (n > *left)
                return NULL;
        *left -= n;
        return malloc(n);
}

static void give(void *u, void *p) {
        free(p);
}

void *unpack_message(const ProtobufCMessageDescriptor *type, struct str message, size_t budget) {
        ProtobufCAllocator allocator = { .alloc = unpack_take, .free = give, .allocator_data = &budget };
        return protobuf_c_message_unpack(type, &allocator, message.n, (const uint8_t *)message.p);
}
