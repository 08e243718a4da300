/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: runs one program of the host on the files of a container, without access to anything else. The
 * program is a sealed copy in memory. Its namespaces contain neither the host's files nor /proc, /sys and
 * /dev of the container. It has only the capabilities to write as root of the container, it has resource
 * limits, and it may use only the system calls that ldconfig needs. */
#pragma once

/* Returns the copy, close-on-exec, or prints the reason and returns -1. Refuses a program that needs a
 * loader, because it would use the container's loader. */
int sandbox_program(const char *path);

/* Runs `prepare` and then the program inside the sandbox, and waits for its end. `prepare` gets the
 * descriptor of "/" and returns argv. `root` and `path`: the descriptor of the container's root, and its path
 * on the host. Returns 0, or prints the reason and returns -1. */
int sandbox_run(int program, int root, const char *path, char *const *(*prepare)(void *u, int root), void *u);
