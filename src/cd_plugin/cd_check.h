/* SPDX-License-Identifier: Apache-2.0 */
/* cd_check: the subcommand check-node of the plugin for ComputeDomains (node/check_node.h). It also checks
 * the NVLink fabric, the IMEX channels of the NVIDIA driver, the programs of IMEX, and the host's
 * nvidia-imex. */
#pragma once

#include "cd_plugin/host_status.h"
#include "model/mode.h"
#include "node/check_node.h"
#include "nvidia/gpu_fabric.h"

struct cd_check_options {
        struct check_node_options node;
        const struct imex_mode *mode;
        bool strict_fabric;      /* as facts_options.strict */
        const char *socket_path; /* of the host's nvidia-imex */
        bool queries_host;       /* the plugin queries the host's nvidia-imex */
        bool trusts_toolkit;     /* as the flag trust-container-toolkit */
};
void cd_check_run(struct check_list *l, const struct cd_check_options *o);
/* Reads the files of the kernel and of the driver, and adds the items imex-parameters and imex-channels. */
void cd_check_read_channels(struct check_list *l, const struct check_node_options *o,
                            const struct imex_mode *mode);

/* The following functions are pure. They are exported for tests. */

/* Judges the partition, by the answer of NVML, and returns what it is. */
enum gpu_fabric_kind cd_check_fabric(struct check_list *l, const struct nvml_facts *f,
                                     const struct imex_mode *mode, bool strict);
/* Judges the class of device numbers of the channels in /proc/devices. */
void cd_check_channels(struct check_list *l, struct str proc_devices, unsigned count);
/* Judges the parameters of the NVIDIA kernel module that concern IMEX channels (/proc/driver/nvidia/params).
 */
void cd_check_parameters(struct check_list *l, const struct imex_mode *mode, struct str params);
/* Judges the answer of the host's nvidia-imex. */
void cd_check_host(struct check_list *l, const struct imex_mode *mode, const struct host_imex_status *s);
