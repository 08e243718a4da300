/* SPDX-License-Identifier: Apache-2.0 */
/* say: errors of the hook. They go to stderr, which runtimes show in the Event of a container that did not
 * start. */
#pragma once

/* One line; -1, so that `return say(...)` is a whole error path. say_errno() adds errno's text. */
int say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int say_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
