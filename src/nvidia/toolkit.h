/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit: detects whether the NVIDIA container toolkit of this node gives IMEX channels or GPUs to pods to
 * which Kubernetes has not allocated any.
 *
 * A container may request channels in its environment (NVIDIA_IMEX_CHANNELS) or by a mount. The toolkit, as
 * runtime or as hook, grants them regardless of Kubernetes' allocations, unless its config.toml has
 * features.ignore-imex-channel-requests = true. The setting exists since 1.17.5 (toolkit pull request 952),
 * for all of its modes. Without it, the toolkit grants requests. The file is
 * /etc/nvidia-container-runtime/config.toml if the toolkit was installed as a package, and
 * /usr/local/etc/nvidia-container-runtime/config.toml on Talos (siderolabs/extensions). The GPU Operator
 * installs it in toolkit/.config/nvidia-container-runtime/ below its toolkit.installDir, which is
 * /usr/local/nvidia by default, and /home/kubernetes/bin/nvidia in NVIDIA's guide for GKE. Not detected: a
 * toolkit that is installed elsewhere. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "nvidia/driver_root.h"

enum toolkit_answer {
        TOOLKIT_NOT_FOUND, /* no configuration at the known paths */
        TOOLKIT_IGNORES,   /* all configurations ignore requests for channels */
        TOOLKIT_GIVES,     /* a configuration does not, or cannot be read */
        TOOLKIT_ANSWERS,
};
extern const char *const toolkit_answer_names[TOOLKIT_ANSWERS]; /* values of a metric label */

#define TOOLKIT_SETTING "features.ignore-imex-channel-requests"

/* Sets *ret to whether this config.toml sets TOOLKIT_SETTING to true. ERR_INVALID: the message states the
 * mistake in the file. Pure; fuzzed. */
int toolkit_ignores(struct str config, bool *ret, struct err *e);

/* The possible paths of a configuration, below a root; NULL-terminated. */
enum { TOOLKIT_PATHS = 4 };
extern const char *const toolkit_paths[TOOLKIT_PATHS + 1];

/* GPUs: a container of a pod without any claim gets all GPUs of the node if all of these hold:
 *   * its image or its environment sets NVIDIA_VISIBLE_DEVICES;
 *   * nvidia-container-runtime is the default runtime of the container runtime, and the pod names no other
 *     RuntimeClass;
 *   * the toolkit's config.toml does not have accept-nvidia-visible-devices-envvar-when-unprivileged = false
 *     (without the setting, or the file, the toolkit accepts).
 * The default runtime is `default_runtime_name` of containerd's CRI plugin, which has another name in version
 * 3 of its configuration (containerd 2), and `default_runtime` of CRI-O. Drop-ins are read after the file, in
 * the order of their names. The names of NVIDIA's runtimes begin with "nvidia". Not detected: a runtime with
 * another name whose program is NVIDIA's, OCI hooks of older toolkits, and configurations at other paths. */
enum toolkit_gpus {
        TOOLKIT_GPUS_BY_CLAIM, /* as far as can be detected, only claims give GPUs */
        TOOLKIT_GPUS_TO_ALL,
        TOOLKIT_GPUS_UNKNOWN, /* a configuration cannot be read */
};
#define TOOLKIT_ACCEPTS "accept-nvidia-visible-devices-envvar-when-unprivileged"

/* The files that toolkit_gives_gpus() reads besides toolkit_paths; NULL-terminated. If the
 * last part of a path contains '*', it is a pattern for the drop-ins of a folder. */
enum { TOOLKIT_RUNTIME_PATHS = 6 };
extern const char *const toolkit_runtime_paths[TOOLKIT_RUNTIME_PATHS + 1];

/* Determines how pods get GPUs. `why` becomes the file that gives GPUs or cannot be read, for people. */
enum toolkit_gpus toolkit_gives_gpus(const struct driver_root *roots, size_t n_roots, char *why, size_t n);

/* Reads all files of toolkit_paths below the roots. `why` becomes the file and the problem, for people; "" if
 * there is no problem. */
enum toolkit_answer toolkit_check(const struct driver_root *roots, size_t n_roots, char *why, size_t n);
