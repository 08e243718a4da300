/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: one program of the host runs on the files of a container, and can reach nothing else. It is a
 * sealed copy in memory, in its own namespaces, in which neither the host's files nor /proc, /sys and /dev of
 * the container are mounted. It has no capability except to write as root of the container, it has limits,
 * and it may use only the system calls that ldconfig needs. */
#pragma once

/* The copy, close-on-exec, or -1 with the reason said. Refuses what needs a loader: that would be the
 * container's. */
int sandbox_program(const char *path);

/* Runs `prepare` and then the program (argv) inside, where `root` is the descriptor of "/", and waits for its
 * end. `root` and `path`: the container's root, as opened and as the host calls it. 0, or -1 with the reason
 * said. */
int sandbox_run(int program, int root, const char *path, char *const *(*prepare)(void *u, int root), void *u);
