/* SPDX-License-Identifier: Apache-2.0 */
/* imex_settings: parses the settings with which an operator extends the driver's configuration file of
 * nvidia-imex.
 *
 * The text is a JSON object of strings, {"IMEX_NODE_DISCONNECTED_GRACE_TIME": "60"}, as the Go driver's chart
 * accepts it in resources.computeDomains.imex.config. The Go driver rejects IMEX_CMD_BIND_INTERFACE_IP,
 * IMEX_NODE_CONFIG_FILE and line breaks (kubernetes-sigs/dra-driver-nvidia-gpu#1497). This module rejects
 * every key that the driver relies on, each with the reason. Unknown keys are passed to nvidia-imex
 * unchanged, because only nvidia-imex knows which keys its version supports. Pure. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

struct imex_settings {
        struct jd_pair *pairs; /* key and value, in the order of the text */
        size_t n_pairs;
};

/* Parses the settings; "" means no settings. The result is allocated in `a`. ERR_INVALID names the key and
 * the reason. */
int imex_settings_parse(const char *text, struct arena *a, struct imex_settings *ret, struct err *e);
