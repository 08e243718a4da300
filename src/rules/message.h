/* SPDX-License-Identifier: Apache-2.0 */
/* message: texts for people, which go into conditions and Events and have their limits. */
#pragma once

#include "base/mem.h"

/* printf into an arena, 4 KiB at most: what a Pod says of itself may be longer. */
const char *message_of(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
