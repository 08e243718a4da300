/* SPDX-License-Identifier: Apache-2.0 */
/* gates: feature gates with the Go driver's names, defaults and dependencies. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum gate {
        /* umbrella of the alpha gates. true is refused: some of them exclude each other */
        GATE_ALL_ALPHA,
        /* umbrella of the beta gates */
        GATE_ALL_BETA,
        /* no effect: ComputeDomainFabrics list the nodes */
        GATE_COMPUTE_DOMAIN_CLIQUES,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_CONSUMABLE_SHARES,
        /* no effect */
        GATE_CONTEXTUAL_LOGGING,
        /* an error of the NVLink fabric withholds the devices of the node; if false, only its clique ID is
           missing */
        GATE_CRASH_ON_NVLINK_FABRIC_ERRORS,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_DRA_LIST_TYPE_ATTRIBUTES,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_DEVICE_METADATA,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_DYNAMIC_MIG,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_FABRIC_MANAGER_PARTITIONING,
        /* the same as imex.mode=hostManaged */
        GATE_HOST_MANAGED_IMEX,
        /* with imex.mode=hostManaged, the default of imex.waitForHost is true */
        GATE_HOST_MANAGED_IMEX_DAEMON,
        /* no effect: nvidia-imex always gets stable names of its peers */
        GATE_IMEX_DAEMONS_WITH_DNS_NAMES,
        /* no effect */
        GATE_LOGGING_ALPHA_OPTIONS,
        /* no effect */
        GATE_LOGGING_BETA_OPTIONS,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_MPS_SUPPORT,
        /* GPUs are monitored for XIDs, and their devices get taints */
        GATE_NVML_DEVICE_HEALTH_CHECK,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_PASSTHROUGH_SUPPORT,
        /* claims of GPUs may set the strategy TimeSlicing */
        GATE_TIME_SLICING_SETTINGS,
        GATE_COUNT,
};

struct gates {
        bool on[GATE_COUNT];
        bool named[GATE_COUNT];  /* set by name, to true or false */
        bool forced[GATE_COUNT]; /* switched off by another setting, although it was on */
};

void gates_init(struct gates *g); /* defaults */
/* Parses "Name=true,Other=false,". Unknown names and values are ERR_INVALID; empty segments are allowed.
 * AllAlpha and AllBeta apply to gates that are not named. */
int gates_parse(struct gates *g, const char *text, struct err *e);
/* Checks the Go driver's dependencies between gates. AllAlpha=true is refused, because it violates them. */
int gates_validate(const struct gates *g, struct err *e);
/* Renders all gates, sorted by name, each followed by a comma. */
void gates_render(const struct gates *g, struct buf *out);
/* Switches the gate off, because another setting makes it meaningless. */
void gates_force_off(struct gates *g, enum gate gate);
void gates_log_forced(const struct gates *g); /* logs each gate that gates_force_off() has changed */
/* Logs each gate that differs from its default and has no effect: ComputeDomainCliques and
 * IMEXDaemonsWithDNSNames. */
void gates_log_ineffective(const struct gates *g);
