/* SPDX-License-Identifier: Apache-2.0 */
/* guard: delays the destruction of an object whose owner frees it inside one of the object's callbacks.
 *
 * The object enters the guard before it calls its owner, and leaves the guard afterwards. Calls may nest.
 * x_free() stops everything that would call the owner again. The memory is freed when the last call has
 * returned:
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
 * Between x_free() and destroy(), `dead` shows the object's own code that there is nothing left to do. */
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

/* Returns true if the object was freed in the meantime and this was the outermost call: destroy it now. */
static inline bool guard_leave(struct guard *g) {
        return --g->busy == 0 && g->dead;
}

/* Returns true if the object must be destroyed now. False: guard_leave() will return true when the outermost
 * call returns. */
static inline bool guard_free(struct guard *g) {
        g->dead = true;
        return g->busy == 0;
}
