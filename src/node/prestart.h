/* SPDX-License-Identifier: Apache-2.0 */
/* prestart: runs the init container of a plugin. It waits until the NVIDIA driver's files exist below the
 * driver root. While it waits, it logs what it is looking for. */
#pragma once

/* The main() of the subcommand; argv[0] is the name of the subcommand. */
int prestart_main(const char *program, int argc, char **argv);
