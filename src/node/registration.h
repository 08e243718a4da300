/* SPDX-License-Identifier: Apache-2.0 */
/* registration: lets a plugin notice when the kubelet has registered another plugin of the node.
 *
 * The kubelet does not report this to others, and the registration socket exists before the registration. So
 * each plugin replaces a file in its folder when it is registered, and the other one watches this file. Loop
 * thread only. */
#pragma once

#include <uv.h>

struct registration_watch;

/* Shows the watches of other plugins that this plugin has been registered. Logs an error. */
void registration_announce(const char *plugin_dir);

/* Watches the registrations of this driver's plugin, whose folder is in `plugins_dir` and need not exist yet.
 * `registered` is called after each of them, never from inside this call. If the file cannot be watched, the
 * function logs the reason, and `registered` is not called. */
struct registration_watch *registration_watch_new(uv_loop_t *loop, const char *plugins_dir,
                                                  const char *driver, void (*registered)(void *u), void *u);
void registration_watch_free(struct registration_watch *w); /* NULL is allowed */
