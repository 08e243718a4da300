/* SPDX-License-Identifier: Apache-2.0 */
/* guard: for an object that calls its owner, who may free it from inside that call.
 *
 * The object enters before it calls and leaves behind it; calls may nest. x_free() stops what would call
 * again, and the memory goes when nobody is inside any more:
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
 * Between the two, `dead` tells the object's own code that there is nothing left to do. */
#pragma once

#include <stdbool.h>

/* Zero-initialised. */
struct guard {
        unsigned busy; /* depth of our calls to the owner */
        bool dead;
};

static inline void guard_enter(struct guard *g) {
        g->busy++;
}

/* True: it was freed meanwhile and this was the outermost call, so destroy it now. */
static inline bool guard_leave(struct guard *g) {
        return --g->busy == 0 && g->dead;
}

/* True: destroy it now. False: guard_leave() will say when. */
static inline bool guard_free(struct guard *g) {
        g->dead = true;
        return g->busy == 0;
}
