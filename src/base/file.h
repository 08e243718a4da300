/* SPDX-License-Identifier: Apache-2.0 */
/* file: whole small files, written so that a crash at any point leaves either the old or the new file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Reads all of `path`. ERR_INVALID: it has more than `limit` bytes. *ret is terminated; the caller frees it.
 * ret_n may be NULL. */
int file_read(const char *path, size_t limit, char **ret, size_t *ret_n, struct err *e);

/* The same for an open descriptor, always from the start of the file (pread). `name` is for the message. */
int file_read_fd(int fd, const char *name, size_t limit, char **ret, size_t *ret_n, struct err *e);

/* Opens a regular file below a folder without following a link in the last component. For files that a less
 * trusted process writes. */
int file_open_nofollow(const char *path, int flags, int *ret_fd, struct err *e);

/* Writes all bytes at the descriptor's offset, in as many calls as that takes. `name` is for the message. */
int file_write_all(int fd, const char *name, const void *data, size_t n, struct err *e);

/* Replaces `path`: temporary file beside it, write, fsync, rename, fsync of the folder. The temporary file is
 * named ".<base>.tmp.<pid>.<n>", and is removed on failure. */
int file_replace(const char *path, const void *data, size_t n, mode_t mode, struct err *e);
/* The same. *ret is the status of the new file before it got its name: if the file under the name differs,
 * another process wrote it. */
int file_replace_known(const char *path, const void *data, size_t n, mode_t mode, struct stat *ret,
                       struct err *e);

/* file_replace() without the two fsyncs, for files that are rebuilt after a reboot (tmpfs, state files). */
int file_replace_volatile(const char *path, const void *data, size_t n, mode_t mode, struct err *e);

/* unlink(); a missing file is success. */
int file_remove(const char *path, struct err *e);

/* mkdir -p. ERR_INVALID: the path is empty, or leads to something other than a folder. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Calls fn for each entry of a folder except "." and "..", in no order. `folder` is the folder's descriptor,
 * and fn may remove the entry. -1: fn returned it, with its own *e; or ERR_NOT_FOUND, the folder does not
 * exist; or reading failed. Entries may remain that fn was not called for. */
typedef int(file_entry_fn)(void *u, int folder, const char *name, struct err *e);
int file_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

/* "<dir>/<name>". The caller frees it. */
char *file_join(const char *dir, const char *name);

/* The kernel's boot ID, 36 characters. `path` is FILE_BOOT_ID_PATH, except in tests. */
int file_boot_id(const char *path, char ret[static 37], struct err *e);
#define FILE_BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
