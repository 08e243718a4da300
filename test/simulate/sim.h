/* SPDX-License-Identifier: Apache-2.0 */
/* sim: what every part of the simulated world shares: its time, its chance, its agenda and its verdict.
 *
 * One process, one thread, one libuv loop. Time passes only when the loop has nothing to do, and then it
 * jumps to the next timer; nothing is drawn but from the seed. So a run is a function of its arguments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Virtual milliseconds since the world began. */
int64_t sim_now_ms(void);
/* Seconds since 1970, by the world's clock. */
int64_t sim_wall_s(void);
/* Their clock is set forward; what they wait for is not. */
void sim_skip_s(int64_t s);
/* By how many seconds the clock of who runs now is ahead of the world's; what is put on the agenda meanwhile
 * runs by the same clock. sim_clock_set() returns the one before. */
int64_t sim_clock(void);
int64_t sim_clock_set(int64_t ahead_s);
/* Seconds of the machine that we run on, from some moment: for how long to go on. */
int64_t sim_real_s(void);

/* The world's own chance. The programs' (getrandom) is another sequence of the same seed, so that a draw of
 * theirs does not shift all that the world does afterwards. */
void sim_seed(uint64_t seed);
uint64_t sim_draw(uint64_t n);                    /* 0 .. n - 1 */
int64_t sim_between(int64_t least, int64_t most); /* both included */
bool sim_chance(unsigned percent);

/* Calls fn at that time, in the order of times, and of calls to sim_at() where they are equal. */
typedef void(sim_fn)(void *u);
struct sim_event;
struct sim_event *sim_at(int64_t ms, sim_fn *fn, void *u);
void sim_cancel(struct sim_event *e); /* NULL is allowed; not after fn was called */
void sim_agenda_init(uv_loop_t *loop);
void sim_agenda_done(void);

/* A promise is broken: the first one is kept and ends the run. */
void sim_broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *sim_first_broken(void); /* NULL: none */

/* A line of the log with the virtual time in front, with --log only; it counts into the trace in any case, by
 * which two runs are compared. */
void sim_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_log_show(bool on);
uint64_t sim_trace(void);
