/* SPDX-License-Identifier: Apache-2.0 */
/* hook_log: prints errors of the hook to stderr. Runtimes show stderr in the Event of a container that did
 * not start. */
#pragma once

/* Prints one line. Returns -1, so that a caller can write `return hook_log(...)`. hook_log_errno() appends
 * the text of errno. */
int hook_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int hook_log_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
