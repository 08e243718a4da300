/* SPDX-License-Identifier: Apache-2.0 */
/* prestart: the init container: waits until the NVIDIA driver's files are under the driver root, and says
 * meanwhile what it looks for. */
#pragma once

/* main() of the subcommand, argv[0] being its name. */
int prestart_main(const char *program, int argc, char **argv);
