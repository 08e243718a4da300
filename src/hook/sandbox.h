/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: runs one program of the host on the files of a container, without access to anything else. The
 * program runs from a sealed copy in memory. Its namespaces contain neither the host's files nor the
 * container's /proc, /sys and /dev. It has only the capabilities that it needs to write as the container's
 * root user. Its resources are limited, and it may use only the system calls that ldconfig needs. */
#pragma once

/* Copies the program. Returns the descriptor of the copy, which is close-on-exec, or prints the reason and
 * returns -1. Rejects a program that needs a loader, because the kernel would use the container's loader. */
int sandbox_program(const char *path);

/* Runs `prepare` and then the program inside the sandbox, and waits until the program has ended. `prepare`
 * gets the descriptor of "/" and returns the program's argv. `root` is the descriptor of the container's
 * root, and `path` its path on the host. Returns 0, or prints the reason and returns -1. */
int sandbox_run(int program, int root, const char *path, char *const *(*prepare)(void *u, int root), void *u);
