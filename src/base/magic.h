/* SPDX-License-Identifier: Apache-2.0 */
/* magic: checks that the `void *` that a library passes back points to an object of the expected type. The
 * struct begins with `unsigned magic`, which holds a number of that type from the object's creation until its
 * end, and 0 afterwards. So the check also detects a freed object, if the compiler keeps that last store
 * (debug builds). */
#pragma once

#include "base/stderr.h"

/* Returns `u` as a pointer to `type`. Ends the process if `u` is NULL or its magic is not `number`. */
#define MAGIC_CAST(type, u, number)                                                                          \
        (__extension__({                                                                                     \
                type *obj_ = (u);                                                                            \
                BUG_ON(!obj_ || obj_->magic != (number));                                                    \
                obj_;                                                                                        \
        }))
