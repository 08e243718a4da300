/* SPDX-License-Identifier: Apache-2.0 */
/* check_judge: judges facts of a node for check-node, and adds the results to a list. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/check_list.h"

/* The kernel, by its release ("6.8.0-45-generic"). The programs need Linux 5.6 (openat2). */
void check_judge_kernel(struct check_list *l, const char *release);

/* The capabilities of the process, CapEff of /proc/self/status: as a plugin, it needs those of a privileged
 * container. */
void check_judge_capabilities(struct check_list *l, struct str status);

/* The kernel modules of the NVIDIA driver that are loaded. */
struct check_modules {
        bool nvidia, uvm;
        const char *version; /* of the module nvidia; NULL: unknown */
};
void check_judge_modules(struct check_list *l, const struct check_modules *m);

/* The version of the NVIDIA driver: of the kernel module, and as its library returns it (NULL: unknown).
 * `min` NULL: any. */
void check_judge_driver_version(struct check_list *l, const char *module, const char *library,
                                const char *min);

/* A device node of the driver. */
struct check_device_node {
        const char *path;
        bool there, is_char;
        unsigned major, minor;
        unsigned want_major; /* 0: any */
        unsigned want_minor;
};
/* One result for all nodes if they are right, otherwise one for each wrong node. */
void check_judge_device_nodes(struct check_list *l, const struct check_device_node *nodes, size_t n);

/* A folder that the plugin writes to. `error` is that of the access (an errno), `read_only` a property of the
 * mount. `remedy` is for a missing folder. */
void check_judge_folder(struct check_list *l, const char *name, const char *path, int error, bool read_only,
                        const char *remedy);

/* Whether the container runtime uses CDI, by its configuration files (toolkit_runtime_paths of
 * nvidia/toolkit.h), in the order in which the runtime reads them. */
struct check_config {
        const char *file; /* on the host */
        struct str text;
};
void check_judge_runtime(struct check_list *l, const struct check_config *files, size_t n);

/* Free space for files of the plugin. inodes 0 of 0: the file system has no limit. */
struct check_space {
        uint64_t free_bytes, free_inodes, inodes;
};
void check_judge_space(struct check_list *l, const char *path, const struct check_space *s);
