/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit: does the NVIDIA container toolkit of this node give IMEX channels, or GPUs, to pods to which
 * Kubernetes has allocated none?
 *
 * A container may name channels in its environment (NVIDIA_IMEX_CHANNELS) or by a mount, and the toolkit,
 * as runtime or as hook, gives them, whatever Kubernetes has allocated, unless its config.toml says
 * features.ignore-imex-channel-requests = true. The setting exists since 1.17.5 (toolkit pull request 952),
 * for all of its modes; without it, requests are granted. The file is
 * /etc/nvidia-container-runtime/config.toml where the toolkit was installed as a package, and below the GPU
 * Operator's folder for the toolkit
 * (/usr/local/nvidia/toolkit unless told otherwise) in .config/nvidia-container-runtime/. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "nvidia/driver_root.h"

enum toolkit_answer {
        TOOLKIT_NOT_FOUND, /* no configuration at the places where it is known to be */
        TOOLKIT_IGNORES,   /* each that there is says that requests for channels are ignored */
        TOOLKIT_GIVES,     /* one does not, or cannot be read */
        TOOLKIT_ANSWERS,
};
extern const char *const toolkit_answer_names[TOOLKIT_ANSWERS]; /* for metrics */

#define TOOLKIT_SETTING "features.ignore-imex-channel-requests"

/* Pure; fuzzed. Does this config.toml say so? ERR_INVALID: what is wrong with it. */
int toolkit_ignores(struct str config, bool *ret, struct err *e);

/* Where a configuration may be, below a root. */
extern const char *const toolkit_paths[];

/* GPUs: a container of a pod without any claim gets all GPUs of the node, if its image or its environment
 * sets NVIDIA_VISIBLE_DEVICES, where the container runtime runs containers by nvidia-container-runtime unless
 * the pod names another RuntimeClass, and the toolkit's config.toml does not say
 * accept-nvidia-visible-devices-envvar-when-unprivileged = false (without the setting, or the file, it
 * accepts). The default runtime is `default_runtime_name` of containerd's CRI plugin, which has another name
 * in version 3 of its configuration (containerd 2), and `default_runtime` of CRI-O; drop-ins are read after
 * the file, in the order of their names. The names of NVIDIA's runtimes begin with "nvidia". Not seen: a
 * runtime of another name whose program is NVIDIA's, OCI hooks of older toolkits, and configurations at other
 * paths. */
enum toolkit_gpus {
        TOOLKIT_GPUS_BY_CLAIM, /* as far as can be seen, only claims give GPUs */
        TOOLKIT_GPUS_TO_ALL,
        TOOLKIT_GPUS_UNKNOWN, /* a configuration cannot be read */
};
#define TOOLKIT_ACCEPTS "accept-nvidia-visible-devices-envvar-when-unprivileged"

/* What toolkit_gives_gpus() reads beside toolkit_paths; NULL-terminated. A last name with '*' is a pattern
 * for the drop-ins of a folder. */
extern const char *const toolkit_runtime_paths[];

/* `why`: which file gives them or cannot be read, for people. */
enum toolkit_gpus toolkit_gives_gpus(const struct driver_root *roots, size_t n_roots, char *why, size_t n);

/* Looks at all of toolkit_paths below the roots. `why`: which file, and what of it, for people; "" when there
 * is nothing to say. */
enum toolkit_answer toolkit_look(const struct driver_root *roots, size_t n_roots, char *why, size_t n);
