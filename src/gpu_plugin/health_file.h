/* SPDX-License-Identifier: Apache-2.0 */
/* health_file: keeps the health of the GPUs in a file in the plugin's folder, so that it survives a restart
 * of the plugin. The ResourceSlices cannot replace the file, because the kubelet deletes them when it starts
 * and while the plugin is down. The module does not sync the file, because a file of an earlier boot is not
 * used. Loop thread only. */
#pragma once

#include "gpu_plugin/health.h"

struct health_file {
        char *path, *boot_id;
        char *text;  /* the last written text; NULL: not written yet */
        char *error; /* the last logged error, so that a full disk is logged once; NULL: none */
};
/* Reads the file into `h`, a new object. If the file cannot be read, the module logs this and later
 * overwrites the file. */
void health_file_init(struct health_file *f, const char *folder, const char *boot_id, struct health *h);
/* Writes the file if its text has changed. The caller calls it on each change of the health. A failure is
 * logged, and the write is retried on the next call. */
void health_file_keep(struct health_file *f, const struct health *h);
void health_file_done(struct health_file *f);
