/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "api/gates.h"
#include "base/mem.h"

#define DEFAULTS                                                                                             \
        "AllAlpha=false,AllBeta=false,ComputeDomainCliques=true,ConsumableShares=false,ContextualLogging="   \
        "true,"                                                                                              \
        "CrashOnNVLinkFabricErrors=true,DRAListTypeAttributes=false,DeviceMetadata=false,DynamicMIG=false,"  \
        "FabricManagerPartitioning=false,HostManagedIMEX=false,HostManagedIMEXDaemon=false,"                 \
        "IMEXDaemonsWithDNSNames=true,"                                                                      \
        "LoggingAlphaOptions=false,LoggingBetaOptions=true,MPSSupport=false,NVMLDeviceHealthCheck=false,"    \
        "PassthroughSupport=false,TimeSlicingSettings=false,"

static void defaults_render_as_in_the_go_driver(void **state) {
        struct gates g;
        struct buf b = BUF_INIT(4096);
        gates_init(&g);
        gates_render(&g, &b);
        assert_string_equal(buf_str(&b), DEFAULTS);
        struct err e;
        struct gates again = { 0 };
        assert_int_equal(gates_parse(&again, buf_str(&b), &e), 0);
        assert_memory_equal(again.on, g.on, sizeof g.on);
        for (int i = 0; i < GATE_COUNT; i++)
                assert_true(again.named[i] && !g.named[i]);
        buf_done(&b);
}

/* failure: a feature gate has an unknown name or value -> the program refuses to start and names it [chart]
 * */
static void gates_are_parsed_and_unknown_ones_refused(void **state) {
        static const struct {
                const char *text, *want_err;
                enum gate gate;
                bool on;
        } cases[] = {
                { "", NULL, GATE_COMPUTE_DOMAIN_CLIQUES, true },
                { ",, ,", NULL, GATE_COMPUTE_DOMAIN_CLIQUES, true },
                { "ComputeDomainCliques=false", NULL, GATE_COMPUTE_DOMAIN_CLIQUES, false },
                { " ComputeDomainCliques = F ,", NULL, GATE_COMPUTE_DOMAIN_CLIQUES, false },
                { "AllAlpha=true", NULL, GATE_MPS_SUPPORT, true },
                { "AllAlpha=true", NULL, GATE_COMPUTE_DOMAIN_CLIQUES, true },
                { "AllAlpha=true", NULL, GATE_TIME_SLICING_SETTINGS, true },
                { "MPSSupport=false,AllAlpha=true", NULL, GATE_MPS_SUPPORT, false },
                { "AllBeta=false", NULL, GATE_IMEX_DAEMONS_WITH_DNS_NAMES, false },
                { "AllBeta=false", NULL, GATE_CONTEXTUAL_LOGGING, true },
                { "Nonsense=true", "unrecognized feature gate: Nonsense" },
                { "computedomaincliques=true", "unrecognized feature gate: computedomaincliques" },
                { "ComputeDomainCliques",
                  "feature gate \"ComputeDomainCliques\": want Name=true or Name=false" },
                { "ComputeDomainCliques=maybe",
                  "invalid value \"maybe\" of feature gate ComputeDomainCliques: want true or false" },
                { "ComputeDomainCliques=",
                  "invalid value \"\" of feature gate ComputeDomainCliques: want true or false" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct gates g;
                struct err e;
                gates_init(&g);
                int r = gates_parse(&g, cases[i].text, &e);
                if (cases[i].want_err) {
                        assert_int_equal(r, -1);
                        assert_string_equal(e.msg, cases[i].want_err);
                } else {
                        assert_int_equal(r, 0);
                        assert_int_equal(g.on[cases[i].gate], cases[i].on);
                }
        }
}

/* failure: gates of GPUs exclude each other, but no GPUs are allocated -> the programs run, because these gates
 *   have no effect [chart] */
static void gates_of_gpus_do_not_depend_on_each_other(void **state) {
        static const struct {
                const char *text;
                bool good;
        } cases[] = {
                { "", true },
                { "IMEXDaemonsWithDNSNames=false", true },
                { "DynamicMIG=true,MPSSupport=true,PassthroughSupport=true,NVMLDeviceHealthCheck=true", true },
                { "DeviceMetadata=true", true },
                { "AllAlpha=true", false },
                { "AllAlpha=false", true },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct gates g;
                struct err e;
                gates_init(&g);
                assert_int_equal(gates_parse(&g, cases[i].text, &e), 0);
                assert_int_equal(gates_validate(&g, &e), cases[i].good ? 0 : -1);
        }
}

/* The text that a function logs. */
static void logged(void (*log)(const struct gates *g), const struct gates *g, char ret[1000]) {
        FILE *file = tmpfile();
        int before = dup(2);
        assert_true(file && before >= 0);
        dup2(fileno(file), 2);
        log(g);
        fflush(stderr);
        dup2(before, 2);
        close(before);
        rewind(file);
        ret[fread(ret, 1, 999, file)] = '\0';
        fclose(file);
}

static void gates_without_effect_are_logged(void **state) {
        struct gates g;
        char text[1000];
        gates_init(&g);
        logged(gates_log_forced, &g, text);
        assert_string_equal(text, "");
        logged(gates_log_ineffective, &g, text);
        assert_string_equal(text, "");
        g.on[GATE_TIME_SLICING_SETTINGS] = true;
        gates_force_off(&g, GATE_TIME_SLICING_SETTINGS);
        logged(gates_log_forced, &g, text);
        assert_non_null(strstr(text, "TimeSlicingSettings"));
        g.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES] = false;
        logged(gates_log_ineffective, &g, text);
        assert_non_null(strstr(text, "IMEXDaemonsWithDNSNames"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(defaults_render_as_in_the_go_driver),
                cmocka_unit_test(gates_are_parsed_and_unknown_ones_refused),
                cmocka_unit_test(gates_of_gpus_do_not_depend_on_each_other),
                cmocka_unit_test(gates_without_effect_are_logged),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
