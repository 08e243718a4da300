/* SPDX-License-Identifier: Apache-2.0 */
/* imex_settings: what an operator sets in the configuration file of nvidia-imex, beside what the driver
 * needs.
 *
 * The text is a JSON object of strings, {"IMEX_NODE_DISCONNECTED_GRACE_TIME": "60"}, as the Go driver's chart
 * takes it in resources.computeDomains.imex.config. The Go driver refuses IMEX_CMD_BIND_INTERFACE_IP,
 * IMEX_NODE_CONFIG_FILE and line breaks (kubernetes-sigs/dra-driver-nvidia-gpu#1497); here every key that the
 * driver relies on is refused, each with the reason. Keys that are not known are passed on: nvidia-imex
 * knows what its version understands. Pure. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

struct imex_settings {
        struct jd_pair *pairs; /* key and value, in the order of the text */
        size_t n_pairs;
};

/* "" is no settings. What is returned lives in `a`. ERR_INVALID names the key and says why it is refused. */
int imex_settings_parse(const char *text, struct arena *a, struct imex_settings *ret, struct err *e);
