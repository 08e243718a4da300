/* SPDX-License-Identifier: Apache-2.0 */
/* magic: tells an object that comes back through a library's `void *` from anything else. Its type begins
 * with `unsigned magic`, which has one value, the type's own, from its making to its end; set to 0 there, it
 * gives a freed object away too, where the compiler leaves such a store in (debug builds). */
#pragma once

#include "base/diag.h"

/* `u` as a pointer to `type`; ends the process when it is none. */
#define MAGIC_CAST(type, u, number)                                                                          \
        (__extension__({                                                                                     \
                type *obj_ = (u);                                                                            \
                BUG_ON(!obj_ || obj_->magic != (number));                                                    \
                obj_;                                                                                        \
        }))
