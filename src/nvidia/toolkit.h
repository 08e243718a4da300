/* SPDX-License-Identifier: Apache-2.0 */
/* toolkit: does the NVIDIA container toolkit of this node give IMEX channels to whoever asks?
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

/* Looks at all of toolkit_paths below the roots. `why`: which file, and what of it, for people; "" when there
 * is nothing to say. */
enum toolkit_answer toolkit_look(const struct driver_root *roots, size_t n_roots, char *why, size_t n);
