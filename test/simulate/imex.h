/* SPDX-License-Identifier: Apache-2.0 */
/* imex: simulates nvidia-imex and nvidia-imex-ctl, instead of the programs that base/process.h would start.
 * An nvidia-imex is identified by the folder of its configuration, which belongs to an IMEX domain on a node.
 * Its index is the index of its address in the Pod's hosts file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The path of the hosts file of the daemon's Pod on a node. */
#define IMEX_HOSTS(node) "/proc/self/cwd/node-%u/hosts", (node)

/* Returns the index of the nvidia-imex that runs there, or -1 if none runs. */
int64_t imex_id(unsigned node, const char *domain);
bool imex_serves(unsigned node, const char *domain);
/* Returns the IMEX domain whose nvidia-imex runs on the node and is not ending, or NULL if there is none. */
const char *imex_domain(unsigned node);
/* Returns whether the nvidia-imex of imex_domain() began before a restore for which nobody stopped the
 * controllers. A controller that leads before the daemon has reported again does not know it
 * (docs/how-to/restore.md). */
bool imex_predates_restore(unsigned node);
/* Checks that no two running nvidia-imex of a partition have the same index in an IMEX domain. Call it when
 * the consequences of earlier false reports have ended. */
void imex_check(void);
/* A daemon of the Go driver starts and stops its nvidia-imex, which is READY at once. `fault`: static; why it
 * ends. */
void imex_go_starts(unsigned node, const char *domain, int64_t id);
void imex_go_ends(unsigned node, const char *domain, const char *fault);
/* Every nvidia-imex on the node exits when it has started. */
void imex_break(unsigned node);
/* No nvidia-imex on the node becomes READY. */
void imex_hang(unsigned node);
/* Lets the nvidia-imex crash. */
void imex_crash(unsigned node, const char *domain);
