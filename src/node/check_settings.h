/* SPDX-License-Identifier: Apache-2.0 */
/* check_settings: judges settings of the node and of the API server for check-node, and adds the results to a
 * list. Pure. */
#pragma once

#include "api/kinds.h"
#include "node/check_judge.h"

/* Security modules of the kernel. Each text is that of a file, or NULL if the container does not see it. */
struct check_security {
        const char *lockdown; /* /sys/kernel/security/lockdown: "none [integrity] confidentiality" */
        const char *enforce;  /* /sys/fs/selinux/enforce: "1" */
        const char *
                context; /* /proc/self/attr/current: "system_u:system_r:spc_t:s0", or a profile of AppArmor */
        bool nvidia_loaded; /* the kernel module of the driver is loaded */
};
void check_settings_security(struct check_list *l, const struct check_security *s);

/* Whether the container runtime reads the CDI files in the folder `cdi_root`, by its configuration files. */
void check_settings_spec_dirs(struct check_list *l, const struct check_config *files, size_t n,
                              const char *cdi_root);

/* The ResourceSlices of the node and one driver, as the API server has them, compared with the node. */
struct check_slices {
        const struct slice *items;
        size_t n;
        const char
                *clique; /* the partition that NVML reports, "" without one; NULL: unknown or not compared */
        int64_t devices; /* the number of devices of the node; -1: unknown or not compared */
};
void check_settings_slices(struct check_list *l, const struct check_slices *s);
