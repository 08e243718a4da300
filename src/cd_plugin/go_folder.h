/* SPDX-License-Identifier: Apache-2.0 */
/* go_folder: writes the files that a daemon of the Go driver expects in the folder of its ComputeDomain, and
 * reads those that the daemon writes. The folder is `/imexd` in the daemon's container. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The size of an IPv6 address as text, including the NUL. */
enum { GO_FOLDER_ADDRESS_SIZE = 46 };

/* Writes the template of nvidia-imex's configuration, without which the daemon does not start. Keeps a file
 * that the Go driver's plugin has written. */
int go_folder_fill(const char *dir, struct err *e);
/* Reads the address of the last daemon that was started here. The daemon writes it into nvidia-imex's
 * configuration at each start. "": no daemon was started. The folder is removed when the daemon's claim is
 * unprepared and after a reboot, so the address is never that of an earlier boot. */
void go_folder_address(const char *dir, char ret[static GO_FOLDER_ADDRESS_SIZE]);
