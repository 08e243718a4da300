/* SPDX-License-Identifier: Apache-2.0 */
#include "clocks.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/loop.h"
#include "base/mem.h"
#include "replica.h"
#include "sim.h"
#include "world_state.h"

enum { MACHINES = REPLICAS + MAX_NODES, WRONG_S = 300 };

static int64_t ahead_s[MACHINES];
static bool used;

int64_t clocks_use(void) {
        used = true;
        for (unsigned i = 0; i < MACHINES; i++)
                ahead_s[i] = sim_between(-WRONG_S, WRONG_S);
        return 2 * (int64_t)WRONG_S;
}

int64_t clocks_ahead_s(unsigned machine) {
        assert(machine < MACHINES);
        return ahead_s[machine];
}

/* ---- timers and turns of base/loop.h: the linker replaces them by these functions ---- */

/* An initialized timer or turn, and the clock of its program. */
struct caller {
        LIST_ENTRY(caller) entry;
        const void *of; /* the timer or the turn: the key */
        loop_fn *fn;
        void *u;
        int64_t ahead_s;
};

enum { BUCKETS = 1024 }; /* by address, because a world has thousands of timers */
static LIST_HEAD(, caller) callers[BUCKETS];

static unsigned bucket_of(const void *of) {
        return (unsigned)(((uintptr_t)of >> 4) % BUCKETS);
}

static void call(void *u) {
        const struct caller *c = u; /* the callback may free it */
        int64_t before = sim_clock_set(c->ahead_s);
        c->fn(c->u);
        sim_clock_set(before);
}

static struct caller *caller_new(const void *of, loop_fn *fn, void *u) {
        struct caller *c = xnew(struct caller);
        *c = (struct caller){ .of = of, .fn = fn, .u = u, .ahead_s = sim_clock() };
        LIST_INSERT_HEAD(&callers[bucket_of(of)], c, entry);
        return c;
}

/* x_done() may be called twice, and without x_init(). */
static void caller_free(const void *of) {
        struct caller *c;
        LIST_FOREACH (c, &callers[bucket_of(of)], entry)
                if (c->of == of)
                        break;
        if (!c)
                return;
        LIST_REMOVE(c, entry);
        free(c);
}

void __real_loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u);
void __real_loop_timer_done(struct loop_timer *t);
void __real_loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u);
void __real_loop_turn_done(struct loop_turn *t);
void __wrap_loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u);
void __wrap_loop_timer_done(struct loop_timer *t);
void __wrap_loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u);
void __wrap_loop_turn_done(struct loop_turn *t);

void __wrap_loop_timer_init(struct loop_timer *t, uv_loop_t *loop, loop_fn *fn, void *u) {
        if (used)
                __real_loop_timer_init(t, loop, call, caller_new(t, fn, u));
        else
                __real_loop_timer_init(t, loop, fn, u);
}

void __wrap_loop_timer_done(struct loop_timer *t) {
        caller_free(t);
        __real_loop_timer_done(t);
}

void __wrap_loop_turn_init(struct loop_turn *t, uv_loop_t *loop, loop_fn *fn, void *u) {
        if (used)
                __real_loop_turn_init(t, loop, call, caller_new(t, fn, u));
        else
                __real_loop_turn_init(t, loop, fn, u);
}

void __wrap_loop_turn_done(struct loop_turn *t) {
        caller_free(t);
        __real_loop_turn_done(t);
}
