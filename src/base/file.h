/* SPDX-License-Identifier: Apache-2.0 */
/* file: whole small files, written so that a crash at any line leaves either the old or the new one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Reads all of `path`, which may have at most `limit` bytes (ERR_INVALID beyond). *ret is terminated; caller
 * frees. ret_n may be NULL. */
int file_read(const char *path, size_t limit, char **ret, size_t *ret_n, struct err *e);

/* Same for an open descriptor, from its start, whatever its offset (pread). `name` is for the message. */
int file_read_fd(int fd, const char *name, size_t limit, char **ret, size_t *ret_n, struct err *e);

/* Opens a regular file below a folder without following a link in its last component: for files that another,
 * less trusted process writes. */
int file_open_nofollow(const char *path, int flags, int *ret_fd, struct err *e);

/* Writes all of it at the descriptor's offset, however many calls that takes. `name` is for the message. */
int file_write_all(int fd, const char *name, const void *data, size_t n, struct err *e);

/* Replaces `path`: temporary file beside it, write, fsync, rename, fsync of the folder. The temporary file is
 * named
 * ".<base>.tmp.<pid>.<n>" and removed on failure. */
int file_replace(const char *path, const void *data, size_t n, mode_t mode, struct err *e);
/* The same; *ret is the new file as it was before it got its name, so whatever is found under the name and
 * differs is somebody else's. */
int file_replace_known(const char *path, const void *data, size_t n, mode_t mode, struct stat *ret,
                       struct err *e);

/* file_replace() without the two fsyncs: for files that are rebuilt after a reboot anyway (tmpfs, state
 * files). */
int file_replace_volatile(const char *path, const void *data, size_t n, mode_t mode, struct err *e);

/* unlink(); a missing file is success. */
int file_remove(const char *path, struct err *e);

/* mkdir -p. ERR_INVALID for an empty path, and for one that leads to something else than a folder. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Tells each entry of a folder but "." and "..", in no order; `folder` is its descriptor, and the entry may
 * be removed. -1: fn said so, with its own *e; ERR_NOT_FOUND, there is no such folder; or it cannot be read
 * (on): then what was not told may be there all the same. */
typedef int(file_entry_fn)(void *u, int folder, const char *name, struct err *e);
int file_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

/* "<dir>/<name>", caller frees. */
char *file_join(const char *dir, const char *name);

/* The kernel's boot id, 36 characters. `path` is /proc/sys/kernel/random/boot_id but for tests. */
int file_boot_id(const char *path, char ret[static 37], struct err *e);
#define FILE_BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
