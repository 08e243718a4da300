/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gates.h"

#include "base/log.h"
#include "base/mem.h"

enum stage { STAGE_UMBRELLA, STAGE_FIXED /* not part of AllAlpha or AllBeta */, STAGE_ALPHA, STAGE_BETA };

/* Sorted by name and in the order of enum gate, as gates_render() promises. */
static const struct {
        const char *name;
        enum stage stage;
        bool on;
} gate_table[GATE_COUNT] = {
        [GATE_ALL_ALPHA] = { "AllAlpha", STAGE_UMBRELLA, false },
        [GATE_ALL_BETA] = { "AllBeta", STAGE_UMBRELLA, false },
        [GATE_COMPUTE_DOMAIN_CLIQUES] = { "ComputeDomainCliques", STAGE_BETA, true },
        [GATE_CONSUMABLE_SHARES] = { "ConsumableShares", STAGE_ALPHA, false },
        [GATE_CONTEXTUAL_LOGGING] = { "ContextualLogging", STAGE_FIXED, true },
        [GATE_CRASH_ON_NVLINK_FABRIC_ERRORS] = { "CrashOnNVLinkFabricErrors", STAGE_BETA, true },
        [GATE_DRA_LIST_TYPE_ATTRIBUTES] = { "DRAListTypeAttributes", STAGE_ALPHA, false },
        [GATE_DEVICE_METADATA] = { "DeviceMetadata", STAGE_ALPHA, false },
        [GATE_DYNAMIC_MIG] = { "DynamicMIG", STAGE_ALPHA, false },
        [GATE_FABRIC_MANAGER_PARTITIONING] = { "FabricManagerPartitioning", STAGE_ALPHA, false },
        [GATE_HOST_MANAGED_IMEX] = { "HostManagedIMEX", STAGE_ALPHA, false },
        [GATE_HOST_MANAGED_IMEX_DAEMON] = { "HostManagedIMEXDaemon", STAGE_ALPHA, false },
        [GATE_IMEX_DAEMONS_WITH_DNS_NAMES] = { "IMEXDaemonsWithDNSNames", STAGE_BETA, true },
        [GATE_LOGGING_ALPHA_OPTIONS] = { "LoggingAlphaOptions", STAGE_ALPHA, false },
        [GATE_LOGGING_BETA_OPTIONS] = { "LoggingBetaOptions", STAGE_BETA, true },
        [GATE_MPS_SUPPORT] = { "MPSSupport", STAGE_ALPHA, false },
        [GATE_NVML_DEVICE_HEALTH_CHECK] = { "NVMLDeviceHealthCheck", STAGE_ALPHA, false },
        [GATE_PASSTHROUGH_SUPPORT] = { "PassthroughSupport", STAGE_ALPHA, false },
        [GATE_TIME_SLICING_SETTINGS] = { "TimeSlicingSettings", STAGE_ALPHA, false },
};

void gates_init(struct gates *g) {
        *g = (struct gates){ 0 };
        for (int i = 0; i < GATE_COUNT; i++)
                g->on[i] = gate_table[i].on;
}

static int gates_find(struct str name) {
        for (int i = 0; i < GATE_COUNT; i++)
                if (str_eq(name, str_from(gate_table[i].name)))
                        return i;
        return -1;
}

int gates_parse(struct gates *g, const char *text, struct err *e) {
        struct str rest = str_from(text), part;
        struct gates to = *g;
        while (str_next_field(&rest, ',', &part)) {
                struct str name;
                part = str_trim(part);
                if (!part.n)
                        continue;
                struct str value = part;
                if (!str_next_field(&value, '=', &name) || !value.p)
                        return err_set(e, ERR_INVALID, 0,
                                       "feature gate \"%.*s\": want Name=true or Name=false", (int)part.n,
                                       part.p);
                name = str_trim(name);
                value = str_trim(value);
                int i = gates_find(name);
                if (i < 0)
                        return err_set(e, ERR_INVALID, 0, "unrecognized feature gate: %.*s", (int)name.n,
                                       name.p);
                if (!str_to_bool(value, &to.on[i]))
                        return err_set(e, ERR_INVALID, 0,
                                       "invalid value \"%.*s\" of feature gate %s: want true or false",
                                       (int)value.n, value.p, gate_table[i].name);
                to.named[i] = true;
        }
        for (int i = 0; i < GATE_COUNT; i++) {
                if (gate_table[i].stage == STAGE_ALPHA && to.named[GATE_ALL_ALPHA] && !to.named[i])
                        to.on[i] = to.on[GATE_ALL_ALPHA];
                if (gate_table[i].stage == STAGE_BETA && to.named[GATE_ALL_BETA] && !to.named[i])
                        to.on[i] = to.on[GATE_ALL_BETA];
        }
        *g = to;
        return 0;
}

int gates_validate(const struct gates *g, struct err *e) {
        if (g->on[GATE_ALL_ALPHA])
                return err_set(
                        e, ERR_INVALID, 0,
                        "feature gate AllAlpha=true switches on gates that exclude each other: set the "
                        "ones that you need by name (HostManagedIMEX, "
                        "NVMLDeviceHealthCheck, TimeSlicingSettings)");
        return 0;
}

void gates_render(const struct gates *g, struct buf *out) {
        for (int i = 0; i < GATE_COUNT; i++)
                buf_addf(out, "%s=%s,", gate_table[i].name, g->on[i] ? "true" : "false");
}

void gates_force_off(struct gates *g, enum gate gate) {
        g->forced[gate] = g->forced[gate] || g->on[gate];
        g->on[gate] = false;
}

void gates_log_forced(const struct gates *g) {
        for (int i = 0; i < GATE_COUNT; i++)
                if (g->forced[i])
                        log_info("feature gate forced off: it has no meaning when the host runs IMEX",
                                 kv_str("gate", gate_table[i].name));
}

void gates_log_ineffective(const struct gates *g) {
        static const enum gate gates[] = { GATE_COMPUTE_DOMAIN_CLIQUES, GATE_IMEX_DAEMONS_WITH_DNS_NAMES };
        for (size_t i = 0; i < ARRAY_LEN(gates); i++)
                if (g->on[gates[i]] != gate_table[gates[i]].on && !g->forced[gates[i]])
                        log_info("feature gate has no effect: this driver always uses stable names and "
                                 "ComputeDomainFabrics",
                                 kv_str("gate", gate_table[gates[i]].name));
}
