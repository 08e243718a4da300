/* SPDX-License-Identifier: Apache-2.0 */
/* imex: nvidia-imex and nvidia-imex-ctl, played: they take the place of base/process.h's programs. An
 * nvidia-imex is known by the folder of its configuration, which is that of a domain on a node; its id is
 * that of its address in the pod's hosts file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the hosts file of the daemon's Pod on a node is. */
#define IMEX_HOSTS(node) "/proc/self/cwd/node-%u/hosts", (node)

/* The id of the one that lives there; -1: none. */
int64_t imex_id(unsigned node, const char *domain);
bool imex_serves(unsigned node, const char *domain);
/* The domain whose nvidia-imex lives there, which is not ending; NULL: none does. */
const char *imex_domain(unsigned node);
/* No two that live have one index of a domain in a partition: what an earlier lie has caused is over. */
void imex_check(void);
/* It dies. */
void imex_crash(unsigned node, const char *domain);
