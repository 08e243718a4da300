/* SPDX-License-Identifier: Apache-2.0 */
/* gates: feature gates with the Go driver's names, defaults and dependencies (reference section 4). */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum gate {
        GATE_ALL_ALPHA,
        GATE_ALL_BETA,
        GATE_COMPUTE_DOMAIN_CLIQUES,
        GATE_CONSUMABLE_SHARES,
        GATE_CONTEXTUAL_LOGGING,
        GATE_CRASH_ON_NVLINK_FABRIC_ERRORS,
        GATE_DRA_LIST_TYPE_ATTRIBUTES,
        GATE_DEVICE_METADATA,
        GATE_DYNAMIC_MIG,
        GATE_FABRIC_MANAGER_PARTITIONING,
        GATE_HOST_MANAGED_IMEX,
        GATE_HOST_MANAGED_IMEX_DAEMON,
        GATE_IMEX_DAEMONS_WITH_DNS_NAMES,
        GATE_LOGGING_ALPHA_OPTIONS,
        GATE_LOGGING_BETA_OPTIONS,
        GATE_MPS_SUPPORT,
        GATE_NVML_DEVICE_HEALTH_CHECK,
        GATE_PASSTHROUGH_SUPPORT,
        GATE_TIME_SLICING_SETTINGS,
        GATE_COUNT,
};

struct gates {
        bool on[GATE_COUNT];
        bool named[GATE_COUNT];  /* set by name, to whichever value */
        bool forced[GATE_COUNT]; /* switched off by another setting, though it was on */
};

void gates_init(struct gates *g); /* defaults */
/* "Name=true,Other=false,": unknown names and values are ERR_INVALID; empty segments are fine. AllAlpha and
 * AllBeta apply to gates that are not named. */
int gates_parse(struct gates *g, const char *text, struct err *e);
/* The dependencies of 4.3; and AllAlpha is refused, which they make useless. */
int gates_validate(const struct gates *g, struct err *e);
void gates_render(const struct gates *g,
                  struct buf *out); /* all gates, sorted by name, each followed by a comma (4.1) */
void gates_force_off(struct gates *g,
                     enum gate gate); /* whatever was said, because another setting leaves it no meaning */
void gates_log_forced(const struct gates *g); /* logs each gate that gates_force_off() has changed */
/* Logs each gate that differs from its default and has no effect: ComputeDomainCliques and
 * IMEXDaemonsWithDNSNames. */
void gates_log_ineffective(const struct gates *g);
