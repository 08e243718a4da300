/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mode.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "base/str.h"

/* WAITING: HOST, and Prepare waits for the host's IMEX unless imex.waitForHost is set. */
enum cd_request { DRIVER, HOST, WAITING, ERROR };

static const struct {
        const char *gates, *mode, *isolation;
        enum cd_request want;
        const char *named[2]; /* parts of the error */
} cases[] = {
        { "", NULL, NULL, DRIVER, { 0 } },
        { "", "driverManaged", "domain", DRIVER, { 0 } },
        { "HostManagedIMEXDaemon=true", "driverManaged", "", DRIVER, { 0 } },
        { "HostManagedIMEX=true", "", "", HOST, { 0 } },
        { "HostManagedIMEX=true", "driverManaged", "domain", HOST, { 0 } },
        { "HostManagedIMEX=true,IMEXDaemonsWithDNSNames=true,ComputeDomainCliques=true",
          "",
          "",
          HOST,
          { 0 } },
        { "HostManagedIMEX=true,IMEXDaemonsWithDNSNames=false", "", "", HOST, { 0 } },
        { "IMEXDaemonsWithDNSNames=false", "", "", DRIVER, { 0 } }, /* it has no effect */
        { "HostManagedIMEX=true,DynamicMIG=true,MPSSupport=true", "", "", HOST, { 0 } }, /* without effect */
        { "", "hostManaged", "", HOST, { 0 } },
        { "HostManagedIMEX=true", "hostManaged", "domain", HOST, { 0 } },
        { "HostManagedIMEXDaemon=false", "hostManaged", "", HOST, { 0 } },
        { "IMEXDaemonsWithDNSNames=false", "hostManaged", "", HOST, { 0 } },
        { "HostManagedIMEX=true,HostManagedIMEXDaemon=true", "driverManaged", "", HOST, { 0 } },
        { "HostManagedIMEXDaemon=true", "hostManaged", "", WAITING, { 0 } },
        { "HostManagedIMEXDaemon=true", "hostManaged", "domain", WAITING, { 0 } },
        { "HostManagedIMEX=true,HostManagedIMEXDaemon=true", "hostManaged", "", WAITING, { 0 } },
        { "HostManagedIMEX=false",
          "hostManaged",
          "",
          ERROR,
          { "HostManagedIMEX=false", "imex.mode=hostManaged" } },
        { "HostManagedIMEX=false,HostManagedIMEXDaemon=true",
          "hostManaged",
          "",
          ERROR,
          { "HostManagedIMEX=false", "imex.mode=hostManaged" } },
        { "AllAlpha=true,DynamicMIG=false,DeviceMetadata=false,PassthroughSupport=false",
          "",
          "",
          ERROR,
          { "AllAlpha=true", "HostManagedIMEX" } },
        { "", "rackManaged", "", ERROR, { "imex.mode", "rackManaged" } },
        { "", "", "tenant", ERROR, { "imex.isolation", "tenant" } },
};

static int wait_for_host(const struct gates *g, const struct imex_mode *m, const char *mode, const char *text,
                         bool *ret) {
        struct err e;
        return mode_wait_for_host(m, g, mode, text, ret, &e);
}

static void settings_choose_the_mode_or_name_the_contradiction(void **state) {
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct imex_mode *m = NULL;
                struct gates g;
                struct err e;
                gates_init(&g);
                assert_int_equal(gates_parse(&g, cases[i].gates, &e), 0);
                int r = mode_resolve(&g, cases[i].mode, cases[i].isolation, &m, &e);
                assert_int_equal(r, cases[i].want == ERROR ? -1 : 0);
                for (size_t k = 0; k < 2 && cases[i].named[k]; k++)
                        assert_non_null(strstr(e.msg, cases[i].named[k]));
                if (r < 0)
                        continue;
                assert_int_equal(mode_runs_daemons(m), cases[i].want == DRIVER);
                assert_string_equal(m->name, cases[i].want == DRIVER ? "driverManaged" : "hostManaged");
                assert_int_equal(mode_needs_clique(m), cases[i].want != DRIVER);
                assert_int_equal(mode_one_channel(m), cases[i].want != DRIVER);
                bool waits;
                assert_int_equal(wait_for_host(&g, m, cases[i].mode, NULL, &waits), 0);
                assert_int_equal(waits, cases[i].want == WAITING);
                assert_int_equal(wait_for_host(&g, m, cases[i].mode, "false", &waits), 0);
                assert_false(waits);
                assert_int_equal(wait_for_host(&g, m, cases[i].mode, "true", &waits),
                                 cases[i].want == DRIVER ? -1 : 0);
                assert_true(waits);
        }
}

static void wait_for_host_names_the_contradicting_setting(void **state) {
        const struct imex_mode *m;
        struct gates g;
        struct err e;
        bool waits;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, NULL, NULL, &m, &e), 0);
        assert_int_equal(mode_wait_for_host(m, &g, NULL, "true", &waits, &e), -1);
        assert_non_null(
                strstr(e.msg, "imex.waitForHost=true (IMEX_WAIT_FOR_HOST) requires imex.mode=hostManaged"));
        assert_non_null(strstr(e.msg, "imex.mode=driverManaged"));
        assert_int_equal(mode_wait_for_host(m, &g, NULL, "perhaps", &waits, &e), -1);
        assert_non_null(strstr(e.msg, "\"perhaps\" is neither true nor false"));
}

static void host_managed_forces_two_gates_off(void **state) {
        const struct imex_mode *m;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_true(g.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES] && g.on[GATE_COMPUTE_DOMAIN_CLIQUES]);
        assert_int_equal(gates_parse(&g, "HostManagedIMEX=true,ComputeDomainCliques=true", &e), 0);
        assert_int_equal(mode_resolve(&g, NULL, NULL, &m, &e), 0);
        assert_false(g.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES]);
        assert_false(g.on[GATE_COMPUTE_DOMAIN_CLIQUES]);
        assert_true(g.forced[GATE_IMEX_DAEMONS_WITH_DNS_NAMES] && g.forced[GATE_COMPUTE_DOMAIN_CLIQUES]);
        assert_int_equal(gates_validate(&g, &e), 0);
        /* A gate that was off already is not reported as forced. */
        gates_init(&g);
        assert_int_equal(gates_parse(&g, "HostManagedIMEX=true,ComputeDomainCliques=false", &e), 0);
        assert_int_equal(mode_resolve(&g, NULL, NULL, &m, &e), 0);
        assert_false(g.forced[GATE_COMPUTE_DOMAIN_CLIQUES]);
}

static void driver_managed_forces_nothing(void **state) {
        const struct imex_mode *m;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, NULL, NULL, &m, &e), 0);
        assert_true(mode_runs_daemons(m) && g.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES] &&
                    g.on[GATE_COMPUTE_DOMAIN_CLIQUES]);
        for (int i = 0; i < GATE_COUNT; i++)
                assert_false(g.forced[i]);
}

static const struct imex_mode *mode_of(const char *gates) {
        const struct imex_mode *m = NULL;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(gates_parse(&g, gates, &e), 0);
        assert_int_equal(mode_resolve(&g, NULL, NULL, &m, &e), 0);
        return m;
}

static void traces_show_the_mode_in_which_a_domain_was_formed(void **state) {
        /* Finalizer, status, daemon and workload claim template, condition PeersConnected. */
        enum { F = 1, S = 2, D = 4, W = 8, P = 16 };
        static const struct {
                const char *gates, *recorded;
                unsigned traces;
                bool other;
        } rows[] = {
                { "", MODE_DRIVER_MANAGED, F | S | D | W, false },
                { "", MODE_DRIVER_MANAGED, F | S | W, false }, /* the recorded mode counts */
                { "", MODE_HOST_MANAGED, F | S | W, true },
                { "", MODE_HOST_MANAGED, F | W, true }, /* its status was not written yet */
                { "", MODE_HOST_MANAGED, F | S, true }, /* its claim template was force-deleted */
                { "", MODE_HOST_MANAGED, S, true },     /* and so was its finalizer */
                { "", MODE_HOST_MANAGED, F, false },    /* created from an exported manifest */
                { "", MODE_HOST_MANAGED, 0, false },    /* from which the finalizer was removed */
                { "", MODE_HOST_MANAGED, F | S | D | W, true },
                { "", NULL, F | S | D | W, false },
                { "", NULL, F | D, false },
                { "", NULL, F, false },     /* it has no trace, so it is adopted */
                { "", NULL, S | W, false }, /* made by hand */
                { "", NULL, 0, false },
                { "", NULL, F | S | W, true },      /* the Go driver's, on hosts */
                { "", NULL, F | S | W | P, false }, /* formed by this driver, and somebody has removed the
                                                       annotation */
                { "HostManagedIMEX=true", NULL, F | S | W | P, true },
                { "HostManagedIMEX=true", MODE_HOST_MANAGED, F | S | W, false },
                { "HostManagedIMEX=true", MODE_HOST_MANAGED, F | S, false },
                { "HostManagedIMEX=true", MODE_HOST_MANAGED, F, false },
                { "HostManagedIMEX=true", MODE_HOST_MANAGED, F | S | D | W, false },
                { "HostManagedIMEX=true", MODE_DRIVER_MANAGED, F | S | W, true },
                { "HostManagedIMEX=true", MODE_DRIVER_MANAGED, F | S, true },
                { "HostManagedIMEX=true", MODE_DRIVER_MANAGED, F, false },
                { "HostManagedIMEX=true", NULL, F | S | D | W, true },
                { "HostManagedIMEX=true", NULL, F | S | W, false },
                { "HostManagedIMEX=true", NULL, 0, false },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const unsigned t = rows[i].traces;
                const struct mode_traces traces = { t & F, t & S, t & D, t & W, t & P };
                if (mode_is_other(mode_of(rows[i].gates), rows[i].recorded, traces) != rows[i].other)
                        fail_msg("row %zu", i);
        }
}

static const struct imex_mode *own_channels(const char *mode) {
        const struct imex_mode *m = NULL;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, mode, "channel", &m, &e), 0);
        return m;
}

/* failure: the isolation is channel -> a node offers 16 channel devices, and needs a partition */
static void channel_isolation_needs_channel_devices_a_partition_and_one_channel(void **state) {
        const struct imex_mode *m = own_channels("hostManaged");
        assert_string_equal(m->name, "hostManagedChannel");
        assert_true(mode_assigns_channels(m) && mode_needs_clique(m) && mode_one_channel(m));
        assert_false(mode_runs_daemons(m));
        assert_int_equal(mode_channel_devices(m), 16);
        assert_int_equal(mode_channel_devices(mode_of("")), 1);
}

/* failure: a ComputeDomain was formed before channel isolation -> it counts as of another mode [upgrade] */
static void a_domain_without_an_assigned_channel_has_another_mode(void **state) {
        enum { F = 1, S = 2, D = 4, W = 8, P = 16 };
        static const struct {
                const char *recorded;
                unsigned traces;
                const char *formed_in; /* NULL: in this mode, or not formed */
        } rows[] = {
                { MODE_HOST_CHANNEL, F | S | W, NULL },
                { MODE_HOST_MANAGED, F | S | W, MODE_HOST_MANAGED },
                { MODE_DRIVER_MANAGED, F | S | D | W, MODE_DRIVER_MANAGED },
                { NULL, F | S | W, MODE_HOST_MANAGED }, /* the Go driver's, on hosts */
                { NULL, F | S | D | W, MODE_DRIVER_MANAGED },
                { NULL, F | S | W | P, MODE_DRIVER_MANAGED },
                { NULL, F, NULL },
                { MODE_HOST_MANAGED, F, NULL }, /* created from an exported manifest */
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const unsigned t = rows[i].traces;
                const struct mode_traces traces = { t & F, t & S, t & D, t & W, t & P };
                bool other = mode_is_other(own_channels("hostManaged"), rows[i].recorded, traces);
                if (other != (rows[i].formed_in != NULL) ||
                    (other && !streq(mode_other_name(own_channels("hostManaged"), rows[i].recorded, traces),
                                     rows[i].formed_in)))
                        fail_msg("row %zu", i);
        }
        const struct mode_traces formed = { true, true, false, true, false };
        const char *const gates[] = { "", "HostManagedIMEX=true" };
        for (size_t i = 0; i < 2; i++) {
                const struct imex_mode *m = mode_of(gates[i]);
                assert_true(mode_is_other(m, MODE_HOST_CHANNEL, formed));
                assert_string_equal(mode_other_name(m, MODE_HOST_CHANNEL, formed), MODE_HOST_CHANNEL);
        }
        assert_string_equal(mode_other_name(mode_of(""), NULL, formed), MODE_HOST_MANAGED);
        assert_string_equal(mode_other_name(mode_of("HostManagedIMEX=true"), NULL, formed),
                            MODE_DRIVER_MANAGED);
}

/* failure: a claim is for a ComputeDomain of another mode -> no node joins it [upgrade] */
static void no_claim_joins_a_domain_of_another_mode(void **state) {
        static const struct {
                const char *gates;
                bool other, has_label, labels;
        } rows[] = {
                { "", false, false, true },
                { "", false, true, true },
                { "", true, false, false }, /* host-managed: it has no daemons, so a label has no use */
                { "", true, true, false },
                { "HostManagedIMEX=true", false, false, false },
                { "HostManagedIMEX=true", false, true, false },
                { "HostManagedIMEX=true", true, false,
                  false }, /* with daemons: members stay, and no node joins */
                { "HostManagedIMEX=true", true, true, true },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (mode_labels_node(mode_of(rows[i].gates), rows[i].other, rows[i].has_label) !=
                    rows[i].labels)
                        fail_msg("row %zu", i);
}

static void by_default_daemons_run_an_imex_domain_for_each_computedomain(void **state) {
        const struct imex_mode *m = mode_of("");
        (void)state;
        assert_true(mode_runs_daemons(m) && mode_forms_domains(m));
        assert_false(mode_is_standing(m) || mode_assigns_channels(m) || mode_one_channel(m));
        assert_int_equal(mode_channel_devices(m), 1);
}

static void daemons_with_channels_run_one_domain_for_all(void **state) {
        const struct mode_traces formed = { .finalizer = true, .status = true, .workload_template = true },
                                 of_go = { .daemon_template = true, .status = true };
        const struct imex_mode *m = own_channels(""), *domains = mode_of("");
        (void)state;
        assert_string_equal(m->name, MODE_DRIVER_CHANNEL);
        assert_true(mode_is_standing(m) && mode_runs_daemons(m) && mode_assigns_channels(m) &&
                    mode_needs_clique(m) && mode_one_channel(m));
        assert_false(mode_forms_domains(m));
        assert_int_equal(mode_channel_devices(m), MODE_CHANNEL_DEVICES);
        /* Neither mode adopts a ComputeDomain that the other one has formed, and a node keeps only an earlier
         * label. */
        assert_true(mode_is_other(m, MODE_DRIVER_MANAGED, formed) && mode_is_other(m, NULL, of_go) &&
                    mode_is_other(m, NULL, formed) && mode_is_other(domains, MODE_DRIVER_CHANNEL, formed));
        assert_false(mode_is_other(m, MODE_DRIVER_CHANNEL, formed));
        assert_string_equal(mode_other_name(m, NULL, of_go), MODE_DRIVER_MANAGED);
        assert_string_equal(mode_other_name(m, NULL, formed), MODE_HOST_MANAGED);
        assert_string_equal(mode_other_name(domains, MODE_DRIVER_CHANNEL, formed), MODE_DRIVER_CHANNEL);
        assert_false(mode_labels_node(m, false, true) || mode_labels_node(m, true, false));
        assert_true(mode_labels_node(m, true, true));
}

static void the_condition_peersconnected_is_a_trace_of_this_drivers_daemons(void **state) {
        struct cd_condition ready = { .type = "Ready" }, both[] = { ready, { .type = "PeersConnected" } };
        const struct compute_domain hosts = { .conditions = &ready, .n_conditions = 1 },
                                    ours = { .conditions = both, .n_conditions = 2 };
        (void)state;
        assert_false(mode_traces_of(&hosts).peers);
        assert_true(mode_traces_of(&ours).peers);
}

/* failure: the mode of a ComputeDomain with a shared template is removed -> its own mode is recorded again */
static void a_template_of_shared_claims_is_no_trace(void **state) {
        struct rct_request request = { .device_class = CD_CLASS_SHARED };
        const struct rct r = { .requests = &request, .n_requests = 1 };
        struct mode_traces t = { .finalizer = true };
        (void)state;
        mode_traces_add(&t, &r);
        assert_false(mode_is_other(own_channels("hostManaged"), NULL, t));
        request.device_class = CD_CLASS_CHANNEL;
        mode_traces_add(&t, &r);
        assert_true(mode_is_other(own_channels("hostManaged"), NULL, t));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(by_default_daemons_run_an_imex_domain_for_each_computedomain),
                cmocka_unit_test(daemons_with_channels_run_one_domain_for_all),
                cmocka_unit_test(the_condition_peersconnected_is_a_trace_of_this_drivers_daemons),
                cmocka_unit_test(a_template_of_shared_claims_is_no_trace),
                cmocka_unit_test(settings_choose_the_mode_or_name_the_contradiction),
                cmocka_unit_test(wait_for_host_names_the_contradicting_setting),
                cmocka_unit_test(host_managed_forces_two_gates_off),
                cmocka_unit_test(driver_managed_forces_nothing),
                cmocka_unit_test(traces_show_the_mode_in_which_a_domain_was_formed),
                cmocka_unit_test(channel_isolation_needs_channel_devices_a_partition_and_one_channel),
                cmocka_unit_test(a_domain_without_an_assigned_channel_has_another_mode),
                cmocka_unit_test(no_claim_joins_a_domain_of_another_mode),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
