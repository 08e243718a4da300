/* SPDX-License-Identifier: Apache-2.0 */
/* stage: what the programs of this folder need to run a world: the loop, the files of the nodes, and a
 * process for each seed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "store.h"

/* Creates the loop and the folder with the files of the nodes, which becomes the current folder, and begins
 * the world. Call it after sim_seed() and after the functions that choose the features of the world. */
void stage_begin(uv_loop_t *loop, void (*on_changed)(enum kind k, const struct change *c), unsigned n_nodes,
                 unsigned n_domains);
void stage_start_replicas(uv_loop_t *loop);
/* Runs the loop until this virtual time. Returns false if a promise was broken before. */
bool stage_run(uv_loop_t *loop, int64_t end_ms);
void stage_remove_folder(void);
/* Removes the folder, and ends the process without freeing anything. */
_Noreturn void stage_end(int status);

/* Processes of which at most `jobs` run at a time. */
struct stage_processes {
        unsigned jobs, running, failed;
};
/* Starts a process, when fewer than `jobs` run. Returns true in this process. */
bool stage_fork(struct stage_processes *p);
/* Waits until all of them have ended. Returns true if none failed. */
bool stage_wait(struct stage_processes *p);
