/* SPDX-License-Identifier: Apache-2.0 */
/* gates: parses and checks the feature gates. They have the names and defaults of the Go driver's gates. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum gate {
        /* sets all alpha gates that are not named. true is refused, because some of these gates exclude each
         * other */
        GATE_ALL_ALPHA,
        /* sets all beta gates that are not named */
        GATE_ALL_BETA,
        /* no effect, because ComputeDomainFabrics list the nodes */
        GATE_COMPUTE_DOMAIN_CLIQUES,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_CONSUMABLE_SHARES,
        /* no effect */
        GATE_CONTEXTUAL_LOGGING,
        /* if true, a node with an error of the NVLink fabric withholds its devices; if false, only its clique
         * ID is missing */
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
        /* with imex.mode=hostManaged, but not with the gate HostManagedIMEX, the default of imex.waitForHost
         * is true */
        GATE_HOST_MANAGED_IMEX_DAEMON,
        /* no effect, because nvidia-imex always gets stable names of its peers */
        GATE_IMEX_DAEMONS_WITH_DNS_NAMES,
        /* no effect */
        GATE_LOGGING_ALPHA_OPTIONS,
        /* no effect */
        GATE_LOGGING_BETA_OPTIONS,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_MPS_SUPPORT,
        /* the GPU plugin monitors the GPUs for XIDs, and sets taints on their devices */
        GATE_NVML_DEVICE_HEALTH_CHECK,
        /* refused if GPUs are allocated, otherwise no effect */
        GATE_PASSTHROUGH_SUPPORT,
        /* claims of GPUs may set the strategy TimeSlicing */
        GATE_TIME_SLICING_SETTINGS,
        GATE_COUNT,
};

struct gates {
        bool on[GATE_COUNT];
        bool named[GATE_COUNT];  /* the text names the gate, with true or false */
        bool forced[GATE_COUNT]; /* another setting switched the gate off, although it was on */
};

void gates_init(struct gates *g); /* sets the defaults */
/* Parses "Name=true,Other=false,". ERR_INVALID: a name or a value is unknown. Empty segments are allowed.
 * AllAlpha and AllBeta apply to gates that are not named. */
int gates_parse(struct gates *g, const char *text, struct err *e);
/* ERR_INVALID: AllAlpha is true. It would enable gates of GPUs that exclude each other, and host-managed
 * IMEX. The Go driver also refuses some combinations of the gates of GPUs. Here at least one gate of each
 * combination is refused with GPUs (gpu_driver_check_gates()), and has no effect without them. */
int gates_validate(const struct gates *g, struct err *e);
/* Renders all gates in the form of gates_parse(), sorted by name, with a comma after each gate. */
void gates_render(const struct gates *g, struct buf *out);
/* Switches the gate off, because another setting makes it meaningless. */
void gates_force_off(struct gates *g, enum gate gate);
void gates_log_forced(const struct gates *g); /* logs each gate that gates_force_off() has changed */
/* Logs each gate that differs from its default and has no effect: ComputeDomainCliques and
 * IMEXDaemonsWithDNSNames. */
void gates_log_ineffective(const struct gates *g);
