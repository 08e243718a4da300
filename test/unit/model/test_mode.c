/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mode.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum want { DRIVER, HOST, HOST_DAEMON, ERROR };

static const struct {
        const char *gates, *mode, *isolation;
        enum want want;
        const char *says[2]; /* what an error names */
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
        { "HostManagedIMEX=true,IMEXDaemonsWithDNSNames=false",
          "",
          "",
          HOST,
          { 0 } }, /* by itself this fails the dependency check */
        { "IMEXDaemonsWithDNSNames=false",
          "",
          "",
          ERROR,
          { "ComputeDomainCliques", "IMEXDaemonsWithDNSNames" } },
        { "HostManagedIMEX=true,DynamicMIG=true,MPSSupport=true",
          "",
          "",
          ERROR,
          { "DynamicMIG", "MPSSupport" } },
        { "HostManagedIMEXDaemon=true", "hostManaged", "", HOST_DAEMON, { 0 } },
        { "HostManagedIMEXDaemon=true", "hostManaged", "domain", HOST_DAEMON, { 0 } },
        { "HostManagedIMEXDaemon=true,IMEXDaemonsWithDNSNames=false",
          "hostManaged",
          "",
          ERROR, /* the Go driver checks before it forces */
          { "ComputeDomainCliques", "IMEXDaemonsWithDNSNames" } },
        { "", "hostManaged", "", ERROR, { "imex.mode=hostManaged", "HostManagedIMEXDaemon=true" } },
        { "HostManagedIMEX=true",
          "hostManaged",
          "",
          ERROR,
          { "HostManagedIMEX=true", "imex.mode=hostManaged" } },
        { "AllAlpha=true,DynamicMIG=false,DeviceMetadata=false,PassthroughSupport=false",
          "",
          "",
          ERROR,
          { "AllAlpha=true", "HostManagedIMEX or HostManagedIMEXDaemon" } },
        { "", "rackManaged", "", ERROR, { "imex.mode", "rackManaged" } },
        { "", "", "tenant", ERROR, { "imex.isolation", "tenant" } },
        { "", "", "channel", ERROR, { "imex.isolation=channel", "imex.agents=true" } },
};

static void settings_choose_the_mode_or_name_what_contradicts(void **state) {
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct imex_mode *m = NULL;
                struct gates g;
                struct err e;
                gates_init(&g);
                assert_int_equal(gates_parse(&g, cases[i].gates, &e), 0);
                int r = mode_resolve(&g, cases[i].mode, cases[i].isolation, false, &m, &e);
                assert_int_equal(r, cases[i].want == ERROR ? -1 : 0);
                for (size_t k = 0; k < 2 && cases[i].says[k]; k++)
                        assert_non_null(strstr(e.msg, cases[i].says[k]));
                if (r < 0)
                        continue;
                assert_int_equal(mode_runs_daemons(m), cases[i].want == DRIVER);
                assert_string_equal(m->name, cases[i].want == DRIVER ? "driverManaged" : "hostManaged");
                assert_int_equal(mode_needs_clique(m), cases[i].want == HOST);
                assert_int_equal(mode_one_channel(m), cases[i].want == HOST);
                assert_int_equal(mode_waits_for_host(m), cases[i].want == HOST_DAEMON);
                assert_int_equal(mode_template_is_single(m), cases[i].want == HOST_DAEMON);
        }
}

static void host_managed_forces_two_gates_off_and_the_dependency_check_passes(void **state) {
        const struct imex_mode *m;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_true(g.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES] && g.on[GATE_COMPUTE_DOMAIN_CLIQUES]);
        assert_int_equal(gates_parse(&g, "HostManagedIMEX=true,ComputeDomainCliques=true", &e), 0);
        assert_int_equal(mode_resolve(&g, NULL, NULL, false, &m, &e), 0);
        assert_false(g.on[GATE_IMEX_DAEMONS_WITH_DNS_NAMES]);
        assert_false(g.on[GATE_COMPUTE_DOMAIN_CLIQUES]);
        assert_true(g.forced[GATE_IMEX_DAEMONS_WITH_DNS_NAMES] && g.forced[GATE_COMPUTE_DOMAIN_CLIQUES]);
        assert_int_equal(gates_validate(&g, &e), 0);
        /* What was off already is not said to have been forced. */
        gates_init(&g);
        assert_int_equal(gates_parse(&g, "HostManagedIMEX=true,ComputeDomainCliques=false", &e), 0);
        assert_int_equal(mode_resolve(&g, NULL, NULL, false, &m, &e), 0);
        assert_false(g.forced[GATE_COMPUTE_DOMAIN_CLIQUES]);
}

static void driver_managed_forces_nothing(void **state) {
        const struct imex_mode *m;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, NULL, NULL, false, &m, &e), 0);
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
        assert_int_equal(mode_resolve(&g, NULL, NULL, false, &m, &e), 0);
        return m;
}

static void the_mode_a_domain_was_formed_in(void **state) {
        enum { F = 1, S = 2, D = 4, W = 8 }; /* finalizer, status, daemon and workload claim template */
        static const struct {
                const char *gates, *recorded;
                unsigned traces;
                bool other;
        } rows[] = {
                { "", MODE_DRIVER_MANAGED, F | S | D | W, false },
                { "", MODE_DRIVER_MANAGED, F | S | W, false }, /* what is recorded counts */
                { "", MODE_HOST_MANAGED, F | S | W, true },
                { "", MODE_HOST_MANAGED, F | W, true }, /* its status could not be written yet */
                { "", MODE_HOST_MANAGED, F | S, true }, /* its template was removed by force */
                { "", MODE_HOST_MANAGED, S, true },     /* and its finalizer */
                { "", MODE_HOST_MANAGED, F, false },    /* made of an exported manifest */
                { "", MODE_HOST_MANAGED, 0, false },    /* of which the finalizer was cut out */
                { "", MODE_HOST_MANAGED, F | S | D | W, true },
                { "", NULL, F | S | D | W, false },
                { "", NULL, F | D, false },
                { "", NULL, F, false },     /* nothing tells, so it is taken in */
                { "", NULL, S | W, false }, /* made by hand */
                { "", NULL, 0, false },
                { "", NULL, F | S | W, true }, /* the Go driver's, on hosts */
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
                const struct mode_traces traces = { t & F, t & S, t & D, t & W };
                if (mode_is_other(mode_of(rows[i].gates), rows[i].recorded, traces) != rows[i].other)
                        fail_msg("row %zu", i);
        }
}

static const struct imex_mode *own_channels(const char *gates, const char *imex_mode) {
        const struct imex_mode *m = NULL;
        struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(gates_parse(&g, gates, &e), 0);
        assert_int_equal(mode_resolve(&g, imex_mode, "channel", false, &m, &e), 0);
        return m;
}

static void own_channels_ask_for_seats_a_clique_and_one_channel(void **state) {
        const struct imex_mode *at_once = own_channels("HostManagedIMEX=true", NULL),
                               *waits = own_channels("HostManagedIMEXDaemon=true", "hostManaged");
        assert_true(mode_assigns_channels(at_once) && mode_has_fabrics(at_once));
        assert_false(mode_waits_for_host(at_once) || mode_runs_daemons(at_once));
        assert_int_equal(mode_seats(at_once), 16);
        assert_string_equal(at_once->name, "hostManagedChannel");
        assert_string_equal(waits->name, "hostManagedChannel");
        assert_true(mode_needs_clique(waits) && mode_one_channel(waits) && mode_waits_for_host(waits));
        assert_false(mode_template_is_single(waits)); /* All is refused, not read as Single */
        assert_int_equal(mode_seats(mode_of("")), 1);
        assert_false(mode_has_fabrics(mode_of("HostManagedIMEX=true")));
}

static void what_was_formed_without_channels_of_its_own_is_of_another_mode(void **state) {
        enum { F = 1, S = 2, D = 4, W = 8 };
        static const struct {
                const char *recorded;
                unsigned traces;
                const char *formed_in; /* NULL: in this one, or not at all */
        } rows[] = {
                { MODE_HOST_CHANNEL, F | S | W, NULL },
                { MODE_HOST_MANAGED, F | S | W, MODE_HOST_MANAGED },
                { MODE_DRIVER_MANAGED, F | S | D | W, MODE_DRIVER_MANAGED },
                { NULL, F | S | W, MODE_HOST_MANAGED }, /* the Go driver's, on hosts */
                { NULL, F | S | D | W, MODE_DRIVER_MANAGED },
                { NULL, F, NULL },
                { MODE_HOST_MANAGED, F, NULL }, /* made of an exported manifest */
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const unsigned t = rows[i].traces;
                const struct mode_traces traces = { t & F, t & S, t & D, t & W };
                bool other =
                        mode_is_other(own_channels("HostManagedIMEX=true", NULL), rows[i].recorded, traces);
                if (other != (rows[i].formed_in != NULL) ||
                    (other && !streq(mode_other_name(own_channels("HostManagedIMEX=true", NULL),
                                                     rows[i].recorded, traces),
                                     rows[i].formed_in)))
                        fail_msg("row %zu", i);
        }
        const struct mode_traces formed = { true, true, false, true };
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

static void nobody_gets_into_a_domain_of_another_mode(void **state) {
        static const struct {
                const char *gates;
                bool other, has_label, labels;
        } rows[] = {
                { "", false, false, true },
                { "", false, true, true },
                { "", true, false, false }, /* of hosts: it has no daemons, so a label there is of no use */
                { "", true, true, false },
                { "HostManagedIMEX=true", false, false, false },
                { "HostManagedIMEX=true", false, true, false },
                { "HostManagedIMEX=true", true, false,
                  false }, /* with daemons: who is in stays, nobody gets in */
                { "HostManagedIMEX=true", true, true, true },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (mode_labels_node(mode_of(rows[i].gates), rows[i].other, rows[i].has_label) !=
                    rows[i].labels)
                        fail_msg("row %zu", i);
}

static int resolve_agents(const char *gates, const char *mode, const char *isolation,
                          const struct imex_mode **ret, struct err *e) {
        struct gates g;
        gates_init(&g);
        assert_int_equal(gates_parse(&g, gates, e), 0);
        return mode_resolve(&g, mode, isolation, true, ret, e);
}

static void agents_run_imex_where_the_driver_does_and_names_do_not_change(void **state) {
        static const struct {
                const char *gates, *mode, *isolation, *says;
        } refused[] = {
                { "HostManagedIMEX=true", "", "", "leaves to the hosts" },
                { "HostManagedIMEXDaemon=true", "hostManaged", "", "leaves to the hosts" },
                { "IMEXDaemonsWithDNSNames=false,ComputeDomainCliques=false", "", "",
                  "requires feature gate IMEXDaemonsWithDNSNames=true" },
        };
        const struct imex_mode *m;
        struct err e;
        assert_int_equal(resolve_agents("", "", "", &m, &e), 0);
        assert_string_equal(m->name, MODE_DRIVER_AGENTS);
        assert_true(mode_runs_daemons(m) && mode_runs_agents(m) && mode_has_fabrics(m) &&
                    mode_forms_domains(m));
        assert_false(mode_assigns_channels(m) || mode_waits_for_host(m) || mode_one_channel(m));
        assert_int_equal(mode_seats(m), 1);
        assert_false(mode_runs_agents(mode_of("")) || mode_has_fabrics(mode_of("")));
        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                assert_int_equal(
                        resolve_agents(refused[i].gates, refused[i].mode, refused[i].isolation, &m, &e), -1);
                assert_non_null(strstr(e.msg, refused[i].says));
        }
}

static void agents_with_channels_run_one_domain_for_all(void **state) {
        const struct mode_traces formed = { .finalizer = true, .status = true, .workload_template = true },
                                 with_daemons = { .daemon_template = true, .status = true };
        const struct imex_mode *m, *agents, *pods = mode_of("");
        struct err e;
        (void)state;
        assert_int_equal(resolve_agents("", "", "channel", &m, &e), 0);
        assert_int_equal(resolve_agents("", "", "", &agents, &e), 0);
        assert_string_equal(m->name, MODE_DRIVER_CHANNEL);
        assert_true(mode_is_standing(m) && mode_runs_agents(m) && mode_runs_daemons(m) &&
                    mode_assigns_channels(m) && mode_has_fabrics(m) && mode_needs_clique(m) &&
                    mode_one_channel(m));
        assert_false(mode_forms_domains(m) || mode_waits_for_host(m) || mode_template_is_single(m) ||
                     mode_is_standing(agents) || mode_is_standing(pods));
        assert_int_equal(mode_seats(m), MODE_SEATS);
        /* Neither takes over what the other has formed, and a node keeps no label but one of before. */
        assert_true(mode_serves(m, MODE_DRIVER_CHANNEL));
        assert_false(mode_serves(m, MODE_DRIVER_AGENTS) || mode_serves(m, MODE_DRIVER_MANAGED) ||
                     mode_serves(m, MODE_HOST_CHANNEL) || mode_serves(agents, MODE_DRIVER_CHANNEL));
        assert_true(mode_is_other(m, MODE_DRIVER_AGENTS, formed) && mode_is_other(m, NULL, with_daemons) &&
                    mode_is_other(m, NULL, formed) && mode_is_other(agents, MODE_DRIVER_CHANNEL, formed));
        assert_false(mode_is_other(m, MODE_DRIVER_CHANNEL, formed));
        assert_string_equal(mode_other_name(m, NULL, with_daemons), MODE_DRIVER_MANAGED);
        assert_string_equal(mode_other_name(m, NULL, formed), MODE_HOST_MANAGED);
        assert_string_equal(mode_other_name(agents, MODE_DRIVER_CHANNEL, formed), MODE_DRIVER_CHANNEL);
        assert_ptr_equal(mode_of_domain(m, MODE_DRIVER_AGENTS, formed, true), m);
        assert_false(mode_labels_node(m, false, true) || mode_labels_node(m, true, false));
        assert_true(mode_labels_node(m, true, true));
}

static void a_domain_keeps_the_runner_that_it_was_formed_with(void **state) {
        const struct imex_mode *pods = mode_of(""), *agents, *hosts = mode_of("HostManagedIMEX=true");
        const struct mode_traces fresh = { .finalizer = true },
                                 formed = { .finalizer = true, .status = true, .workload_template = true },
                                 with_daemons = { .daemon_template = true, .status = true };
        struct err e;
        assert_int_equal(resolve_agents("", "", "", &agents, &e), 0);
        /* What comes with a manifest counts for nothing. */
        assert_ptr_equal(mode_of_domain(agents, MODE_DRIVER_MANAGED, fresh, false), agents);
        assert_ptr_equal(mode_of_domain(pods, MODE_DRIVER_AGENTS, fresh, false), pods);
        assert_ptr_equal(mode_of_domain(agents, MODE_DRIVER_MANAGED, formed, false), pods);
        assert_ptr_equal(mode_of_domain(pods, MODE_DRIVER_AGENTS, formed, false), agents);
        assert_ptr_equal(mode_of_domain(agents, NULL, with_daemons, false), pods); /* the Go driver's */
        /* What its owner writes on it changes nothing. */
        assert_ptr_equal(mode_of_domain(agents, MODE_DRIVER_AGENTS, with_daemons, false), pods);
        assert_ptr_equal(mode_of_domain(agents, MODE_DRIVER_MANAGED, formed, true), agents);
        assert_ptr_equal(mode_of_domain(hosts, MODE_DRIVER_AGENTS, formed, true), hosts);
        assert_false(mode_is_other(agents, MODE_DRIVER_MANAGED, formed));
        assert_false(mode_is_other(pods, MODE_DRIVER_AGENTS, formed));
        assert_true(mode_is_other(agents, MODE_HOST_MANAGED, formed));
        assert_true(mode_is_other(hosts, MODE_DRIVER_AGENTS, formed));
        assert_string_equal(mode_other_name(hosts, MODE_DRIVER_AGENTS, formed), MODE_DRIVER_AGENTS);
        assert_true(mode_serves(pods, MODE_DRIVER_AGENTS) && mode_serves(agents, MODE_DRIVER_MANAGED));
        assert_false(mode_serves(hosts, MODE_DRIVER_AGENTS) || mode_serves(agents, MODE_HOST_CHANNEL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(agents_run_imex_where_the_driver_does_and_names_do_not_change),
                cmocka_unit_test(agents_with_channels_run_one_domain_for_all),
                cmocka_unit_test(a_domain_keeps_the_runner_that_it_was_formed_with),
                cmocka_unit_test(settings_choose_the_mode_or_name_what_contradicts),
                cmocka_unit_test(host_managed_forces_two_gates_off_and_the_dependency_check_passes),
                cmocka_unit_test(driver_managed_forces_nothing),
                cmocka_unit_test(the_mode_a_domain_was_formed_in),
                cmocka_unit_test(own_channels_ask_for_seats_a_clique_and_one_channel),
                cmocka_unit_test(what_was_formed_without_channels_of_its_own_is_of_another_mode),
                cmocka_unit_test(nobody_gets_into_a_domain_of_another_mode),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
