/* SPDX-License-Identifier: Apache-2.0 */
/* go_folder: the files in the folder of a ComputeDomain that a daemon of the Go driver expects, and those
 * that it writes (reference sections 3.4, 7.9 and 8.3). The folder is `/imexd` in its container. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* An IPv6 address as text, with NUL. */
enum { GO_FOLDER_ADDRESS_SIZE = 46 };

/* The template of nvidia-imex's configuration, without which that daemon does not start. One that the Go
 * driver's plugin has written stays. */
int go_folder_fill(const char *dir, struct err *e);
/* The address of the daemon that was started here last: it writes it into nvidia-imex's configuration at each
 * start. "": none was started. The folder is removed when the daemon's claim is unprepared and after a
 * reboot, so this is never the address of an earlier boot. */
void go_folder_address(const char *dir, char ret[static GO_FOLDER_ADDRESS_SIZE]);
