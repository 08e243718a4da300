/* SPDX-License-Identifier: Apache-2.0 */
/* health_file: what is known of the GPUs' health, in a file of the plugin's folder, so that it outlives the
 * process. It is not in the ResourceSlices alone, because the kubelet deletes those when it starts and when
 * the plugin is away. A reboot ends it, so it is not synced. Loop thread only. */
#pragma once

#include "gpu_plugin/health.h"

struct health_file {
        char *path, *boot_id;
        char *text;  /* as it was written last; NULL: not yet */
        char *error; /* that was logged last, so that a full disk is one line; NULL: none */
};
/* Reads it into `h`, which knows nothing yet. One that cannot be read is logged, and written over. */
void health_file_init(struct health_file *f, const char *folder, const char *boot_id, struct health *h);
/* To be called at each change: writes what differs. A failure is logged, and tried again at the next change.
 */
void health_file_keep(struct health_file *f, const struct health *h);
void health_file_done(struct health_file *f);
