/* SPDX-License-Identifier: Apache-2.0 */
/* channel_nodes: lists the device nodes of IMEX channels that a container has, for pods that check their
 * channels before they start, for `helm test` and for `kubectl compute-domains test`. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Appends one line for each channel in the folder `dir` to *out, sorted by number. -1: the folder has no
 * channel; *e has the reason. */
int channel_nodes_list(const char *dir, struct buf *out, struct err *e);
/* The main() of the subcommand: prints the channels. Returns 0 if there is at least one. With --wait, it then
 * waits for SIGTERM or SIGINT first. 2: a wrong argument. */
int channel_nodes_main(int argc, char **argv);
