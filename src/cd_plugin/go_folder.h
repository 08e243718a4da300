/* SPDX-License-Identifier: Apache-2.0 */
/* go_folder: the files that a daemon of the Go driver expects in the folder of a ComputeDomain, and those
 * that it writes. The folder is `/imexd` in its container. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* An IPv6 address as text, with NUL. */
enum { GO_FOLDER_ADDRESS_SIZE = 46 };

/* Writes the template of nvidia-imex's configuration, without which that daemon does not start. A file of the
 * Go driver's plugin is kept. */
int go_folder_fill(const char *dir, struct err *e);
/* The address of the last daemon that was started here: at each start it writes the address into
 * nvidia-imex's configuration. "": none was started. The folder is removed when the daemon's claim is
 * unprepared and after a reboot, so this is never the address of an earlier boot. */
void go_folder_address(const char *dir, char ret[static GO_FOLDER_ADDRESS_SIZE]);
