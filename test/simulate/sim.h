/* SPDX-License-Identifier: Apache-2.0 */
/* sim: provides what all parts of the simulated world share: the time, the random numbers, the agenda and the
 * first broken promise.
 *
 * There is one process, one thread and one libuv loop. Time passes only when the loop has nothing to do, and
 * then it jumps to the next timer. All random numbers come from the seed. So a run is a function of its
 * arguments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Returns the virtual milliseconds since the world began. */
int64_t sim_now_ms(void);
/* Returns the seconds since 1970, by the world's clock. */
int64_t sim_wall_s(void);
/* Sets the wall clock forward. Timers are not affected. */
void sim_skip_s(int64_t s);
/* Return and set how far the clock of the present machine is ahead of the world's, in seconds. A call on the
 * agenda runs with the clock that was set when it was added. sim_clock_set() returns the previous value. */
int64_t sim_clock(void);
int64_t sim_clock_set(int64_t ahead_s);
/* Returns a number that increases with each change of a folder by this process. */
uint64_t sim_files_changes(void);
/* Returns the real seconds since an arbitrary moment. It is used to limit how long the simulation runs. */
int64_t sim_real_s(void);

/* Draw the random numbers of the world. Those of the programs (getrandom) are another sequence of the same
 * seed, so that a number that a program draws does not change the later events of the world. */
void sim_seed(uint64_t seed);
uint64_t sim_draw(uint64_t n);                    /* 0 .. n - 1 */
int64_t sim_between(int64_t least, int64_t most); /* both included */
bool sim_chance(unsigned percent);

/* Calls fn at that time. Calls with equal times run in the order of their sim_at(). */
typedef void(sim_fn)(void *u);
struct sim_event;
struct sim_event *sim_at(int64_t ms, sim_fn *fn, void *u);
void sim_cancel(struct sim_event *e); /* NULL is allowed; not after fn was called */
void sim_agenda_init(uv_loop_t *loop);
void sim_agenda_done(void);

/* Reports a broken promise. The first one is recorded and ends the run. */
void sim_broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *sim_first_broken(void); /* NULL: none */

/* With --log, prints a line that begins with the virtual time. Also without --log, adds the line to the hash
 * that sim_trace() returns, by which two runs are compared. */
void sim_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_log_show(bool on);
uint64_t sim_trace(void);
