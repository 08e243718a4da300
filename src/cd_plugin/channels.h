/* SPDX-License-Identifier: Apache-2.0 */
/* channels: which IMEX channels a container has been given, for a pod that wants to know before it begins,
 * and for `helm test`. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* A line for each channel in the folder, by number. -1: there is none; *e says what that means. */
int channels_list(const char *dir, struct buf *out, struct err *e);
/* main() of the subcommand: prints them; 0 when there is one. */
int channels_main(void);
