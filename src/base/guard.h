/* SPDX-License-Identifier: Apache-2.0 */
/* guard: for an object that calls its owner, which may free it from inside that call.
 *
 * The object enters the guard before the call and leaves it afterwards. Calls may nest. x_free() stops
 * everything that would call again, and the memory is freed when no call is left:
 *
 *     guard_enter(&x->guard);
 *     x->fn(x->u);
 *     if (guard_leave(&x->guard))
 *             destroy(x);
 *
 *     void x_free(struct x *x) {
 *             if (guard_free(&x->guard))
 *                     destroy(x);
 *     }
 *
 * Between the two, `dead` shows the object's own code that there is nothing left to do. */
#pragma once

#include <stdbool.h>

/* Zero-initialised. */
struct guard {
        unsigned busy; /* depth of the object's calls to its owner */
        bool dead;
};

static inline void guard_enter(struct guard *g) {
        g->busy++;
}

/* True: the object was freed in the meantime and this was the outermost call, so destroy it now. */
static inline bool guard_leave(struct guard *g) {
        return --g->busy == 0 && g->dead;
}

/* True: destroy it now. False: guard_leave() will return true when it is time. */
static inline bool guard_free(struct guard *g) {
        g->dead = true;
        return g->busy == 0;
}
