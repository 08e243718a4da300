/* SPDX-License-Identifier: Apache-2.0 */
/* prestart: the init container. It waits until the NVIDIA driver's files exist below the driver root, and
 * logs in the meantime what it looks for. */
#pragma once

/* main() of the subcommand; argv[0] is its name. */
int prestart_main(const char *program, int argc, char **argv);
