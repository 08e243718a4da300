/* SPDX-License-Identifier: Apache-2.0 */
/* channel_nodes: lists the IMEX channels of a container, for a pod that checks them before it starts, and for
 * `helm test`. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Prints a line for each channel in the folder, by number. -1: there is none; *e has the meaning. */
int channel_nodes_list(const char *dir, struct buf *out, struct err *e);
/* main() of the subcommand: prints the channels; 0 if there is one. */
int channel_nodes_main(void);
