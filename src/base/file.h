/* SPDX-License-Identifier: Apache-2.0 */
/* file: reads and writes whole small files. A crash during a write leaves either the old or the new file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Reads the whole file `path`. ERR_INVALID: the file has more than `limit` bytes. *ret ends with a NUL byte;
 * the caller frees it. ret_n may be NULL. */
int file_read(const char *path, size_t limit, char **ret, size_t *ret_n, struct err *e);

/* Like file_read(), for an open descriptor, always from the start of the file (pread). `name` is used in the
 * message. */
int file_read_fd(int fd, const char *name, size_t limit, char **ret, size_t *ret_n, struct err *e);

/* Opens a regular file for reading, without following a link in the last component of the path. Use it for
 * files that a less trusted process writes. */
int file_open_nofollow(const char *path, int *ret_fd, struct err *e);

/* Writes all bytes at the descriptor's offset, with several write(2) calls if necessary. `name` is used in
 * the message. */
int file_write_all(int fd, const char *name, const void *data, size_t n, struct err *e);

/* Replaces `path`: writes a temporary file in the same folder, calls fsync, renames it to `path`, and calls
 * fsync on the folder. The temporary file is named ".<base>.tmp.<pid>.<n>"; a failed call removes it. */
int file_replace(const char *path, const void *data, size_t n, mode_t mode, struct err *e);
/* Like file_replace(), with mode 0600. *ret is the status of the new file before the rename: if the file at
 * `path` has another status later, another process wrote it. */
int file_replace_known(const char *path, const void *data, size_t n, struct stat *ret, struct err *e);

/* Like file_replace(), without the two fsync calls, for files that are rebuilt after a reboot (tmpfs, state
 * files). */
int file_replace_volatile(const char *path, const void *data, size_t n, mode_t mode, struct err *e);

/* Removes the temporary files of killed processes that were replacing the file `base` in a folder. Call it
 * only while no other process replaces this file. Files that cannot be removed do no harm. */
void file_remove_temporary(const char *dir, const char *base);

/* Removes a file with unlink(). A missing file is success. */
int file_remove(const char *path, struct err *e);

/* Creates a folder and its missing parents, like mkdir -p. ERR_INVALID: the path is empty, or exists and is
 * not a folder. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Calls fn for each entry of a folder except "." and "..", in no particular order. `folder` is the folder's
 * descriptor, and fn may remove the entry. Returns -1 if fn returned -1 (with the *e that fn set), if the
 * folder does not exist (ERR_NOT_FOUND), or if reading failed. Then fn may not have been called for some
 * entries. */
typedef int(file_entry_fn)(void *u, int folder, const char *name, struct err *e);
int file_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

/* Returns "<dir>/<name>". The caller frees it. */
char *file_join(const char *dir, const char *name);

/* Whether both describe the same file with the same content, as far as stat() shows: device, inode, size and
 * time of the last change. */
bool file_same(const struct stat *a, const struct stat *b);

/* Reads the kernel's boot ID, 36 characters. `path` is FILE_BOOT_ID_PATH, except in tests. */
int file_boot_id(const char *path, char ret[static 37], struct err *e);
#define FILE_BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
