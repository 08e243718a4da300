/* SPDX-License-Identifier: Apache-2.0 */
/* imex_settings: the settings of an operator for the configuration file of nvidia-imex, in addition to the
 * driver's own.
 *
 * The text is a JSON object of strings, {"IMEX_NODE_DISCONNECTED_GRACE_TIME": "60"}, as the Go driver's chart
 * accepts it in resources.computeDomains.imex.config. The Go driver rejects IMEX_CMD_BIND_INTERFACE_IP,
 * IMEX_NODE_CONFIG_FILE and line breaks (kubernetes-sigs/dra-driver-nvidia-gpu#1497). This module rejects
 * every key that the driver relies on, each with the reason. Unknown keys are passed on: nvidia-imex knows
 * which keys its version supports. Pure. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

struct imex_settings {
        struct jd_pair *pairs; /* key and value, in the order of the text */
        size_t n_pairs;
};

/* "" means no settings. The result lives in `a`. ERR_INVALID names the key and the reason. */
int imex_settings_parse(const char *text, struct arena *a, struct imex_settings *ret, struct err *e);
