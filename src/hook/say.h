/* SPDX-License-Identifier: Apache-2.0 */
/* say: prints errors of the hook to stderr. Runtimes show stderr in the Event of a container that did not
 * start. */
#pragma once

/* Prints one line. Returns -1, so that `return say(...)` handles an error. say_errno() adds errno's text. */
int say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int say_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
