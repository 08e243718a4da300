/* SPDX-License-Identifier: Apache-2.0 */
/* magic: checks that a library's `void *` is an object of the expected type. The type begins with `unsigned
 * magic`, which has a value of that type from the object's creation to its end, and 0 afterwards. So a freed
 * object is noticed, too, if the compiler keeps that last store (debug builds). */
#pragma once

#include "base/stderr.h"

/* `u` as a pointer to `type`; ends the process when it is something else. */
#define MAGIC_CAST(type, u, number)                                                                          \
        (__extension__({                                                                                     \
                type *obj_ = (u);                                                                            \
                BUG_ON(!obj_ || obj_->magic != (number));                                                    \
                obj_;                                                                                        \
        }))
