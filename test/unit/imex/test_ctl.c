/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "imex/imex_ctl.h"
#include "imex/imex_probe.h"

/* The output of nvidia-imex-ctl -N -j for a list of `slots` names of ours. */
static void print_domain(unsigned slots, FILE *f) {
        fputs("{\"nodes\":{", f);
        for (unsigned i = 0; i < slots; i++) {
                fprintf(f,
                        "%s\"%u\":{\"status\":\"READY\",\"host\":\"compute-domain-daemon-0123456789-%04u\","
                        "\"hostName\":\"node\",\"version\":\"580.95.05\",\"connections\":{",
                        i ? "," : "", i, i);
                for (unsigned j = 0; j < slots; j++)
                        fprintf(f,
                                "%s\"%u\":{\"host\":\"compute-domain-daemon-0123456789-%04u\","
                                "\"status\":\"NEVER_CONNECTED\",\"changed\":true}",
                                j ? "," : "", j, j);
                fputs("}}", f);
        }
        fputs("},\"timestamp\":\"1/1/2026 00:00:00.000\",\"status\":\"DOWN\"}\n", f);
}

struct asked {
        unsigned nodes, calls;
        size_t connections;
        char why[160];
        struct imex_probe *probe;
};

static void on_domain(void *u, const struct imex_ctl_domain *d, const char *text) {
        struct asked *a = u;

        a->calls++;
        a->nodes = d ? (unsigned)d->n_nodes : 0;
        a->connections = d && d->n_nodes ? d->nodes[d->n_nodes - 1].n_connections : 0;
        snprintf(a->why, sizeof a->why, "%s", text);
        imex_probe_stop(a->probe);
        uv_stop(uv_default_loop());
}

static void on_status(void *u, enum imex_status status, const char *text) {
}

/* The answer grows with the square of the slots. */
/* failure: the answer of nvidia-imex-ctl is very long -> it is read completely */
static void test_domain_of_many_slots_is_read(void **state) {
        static const unsigned slots[] = { 18, 64, 144, 1024 };

        for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
                char answer[] = "/tmp/imex-domain-XXXXXX", ctl[] = "/tmp/imex-ctl-XXXXXX";
                int fd = mkstemp(answer), ctl_fd = mkstemp(ctl);
                FILE *f = fdopen(fd, "w");
                struct asked asked = { 0 };

                print_domain(slots[i], f);
                fclose(f);
                dprintf(ctl_fd, "#!/bin/sh\nexec cat %s\n", answer);
                assert_int_equal(fchmod(ctl_fd, 0700), 0);
                close(ctl_fd);
                asked.probe = imex_probe_new(uv_default_loop(), &(struct imex_probe_options){
                                                                        .ctl_path = ctl,
                                                                        .config_path = "config",
                                                                        .slots = slots[i],
                                                                        .first_ms = 1,
                                                                        .slow_ms = 1000,
                                                                        .idle_ms = 1000,
                                                                        .timeout_ms = 60000,
                                                                        .status = on_status,
                                                                        .domain = on_domain,
                                                                        .u = &asked });
                imex_probe_domain(asked.probe, 0);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
                assert_int_equal(asked.calls, 1);
                assert_string_equal(asked.why, "");
                assert_int_equal(asked.nodes, slots[i]);
                assert_int_equal(asked.connections, slots[i]);
                imex_probe_free(asked.probe);
                uv_run(uv_default_loop(), UV_RUN_DEFAULT);
                unlink(answer);
                unlink(ctl);
        }
}

static void test_status(void **state) {
        assert_int_equal(imex_ctl_parse_status(STR("READY\n")), IMEX_STATE_READY);
        assert_int_equal(imex_ctl_parse_status(STR("READY")), IMEX_STATE_READY);
        assert_int_equal(imex_ctl_parse_status(STR("  WAITING_FOR_RECOVERY \r\n")),
                         IMEX_STATE_WAITING_FOR_RECOVERY);
        assert_int_equal(imex_ctl_parse_status(STR("warning: log file cannot be opened\nREADY\n\n")),
                         IMEX_STATE_READY);
        assert_int_equal(imex_ctl_parse_status(STR("INITIALIZING\nINIT_GPU\n")), IMEX_STATE_INIT_GPU);
        assert_int_equal(imex_ctl_parse_status(STR("UNAVAILABLE\n")), IMEX_STATE_UNAVAILABLE);
}

static void test_status_unknown(void **state) {
        assert_int_equal(imex_ctl_parse_status(STR("")), IMEX_STATE_NONE);
        assert_int_equal(imex_ctl_parse_status((struct str){ 0 }), IMEX_STATE_NONE);
        assert_int_equal(imex_ctl_parse_status(STR("NOT READY\n")), IMEX_STATE_NONE);
        assert_int_equal(imex_ctl_parse_status(STR("READY!\n")), IMEX_STATE_NONE);
        assert_int_equal(imex_ctl_parse_status(STR("ready\n")), IMEX_STATE_NONE);
        assert_int_equal(imex_ctl_parse_status(STR("Failed to connect to the server\n")), IMEX_STATE_NONE);
}

#define DOMAIN                                                                                               \
        "{\"nodes\":{"                                                                                       \
        "\"0\":{\"status\":\"READY\",\"host\":\"10.0.0.1\",\"hostName\":\"a\",\"version\":\"580.95.05\","    \
        "\"connections\":{\"0\":{\"host\":\"10.0.0.1\",\"status\":\"CONNECTED\",\"changed\":true},"          \
        "\"1\":{\"host\":\"10.0.0.2\",\"status\":\"CONNECTED\",\"changed\":true},\"2\":{\"host\":\"127.0.0." \
        "2\",\"status\":\"NEVER_CONNECTED\"}}},"                                                             \
        "\"1\":{\"status\":\"READY\",\"host\":\"10.0.0.2\",\"hostName\":\"b\",\"version\":\"580.95.05\","    \
        "\"connections\":{}},"                                                                               \
        "\"2\":{\"status\":\"UNAVAILABLE\",\"host\":\"127.0.0.2\",\"hostName\":\"N/A\"}},"                   \
        "\"timestamp\":\"9/4/2026 00:00:00.000\",\"status\":\"DEGRADED\"}"

static void check_domain(struct str text) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct imex_ctl_domain d;
        struct err e;

        assert_int_equal(imex_ctl_parse_domain(text, a, &d, &e), 0);
        assert_string_equal(d.status, "DEGRADED");
        assert_int_equal(d.n_nodes, 3);
        assert_int_equal(d.nodes[2].id, 2);
        assert_string_equal(d.nodes[2].version, "");
        assert_int_equal(d.nodes[2].n_connections, 0);
        assert_ptr_equal(imex_ctl_find(&d, "10.0.0.2", NULL), &d.nodes[1]);
        assert_ptr_equal(imex_ctl_find(&d, NULL, "a"), &d.nodes[0]);
        assert_null(imex_ctl_find(&d, "10.0.0.9", "x"));
        assert_null(imex_ctl_find(&d, "10.0.0.1", "b")); /* two matches count as none */
        assert_int_equal(imex_ctl_connected(&d.nodes[0]), 1);
        assert_int_equal(imex_ctl_connected(&d.nodes[2]), 0);
}

/* The sanitizer sees a read behind the end of the lists. */
static void the_last_node_and_connection_count_and_nothing_behind_them(void **state) {
        struct imex_ctl_node *nodes = calloc(2, sizeof *nodes);
        struct imex_ctl_connection *connections = calloc(2, sizeof *connections);
        const struct imex_ctl_domain d = { .nodes = nodes, .n_nodes = 2 };
        nodes[0].host = "10.0.0.1";
        nodes[1].host = "10.0.0.2";
        assert_ptr_equal(imex_ctl_find(&d, "10.0.0.2", "n2"), &nodes[1]);
        nodes[0].connections = connections;
        nodes[0].n_connections = 2;
        connections[0] = (struct imex_ctl_connection){ .to = 1 };
        connections[1] = (struct imex_ctl_connection){ .to = 2, .connected = true };
        assert_true(imex_ctl_connected_to(&nodes[0], 2));
        assert_false(imex_ctl_connected_to(&nodes[0], 3));
        assert_int_equal(imex_ctl_connected(&nodes[0]), 1);
        free(nodes);
        free(connections);
}

static void a_domain_has_at_most_4096_nodes_and_connections(void **state) {
        enum { MOST = 4096 };
        for (int i = 0; i < 4; i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(1024);
                struct buf b = BUF_INIT(1 << 20);
                struct imex_ctl_domain d;
                struct err e;
                int n = MOST + i % 2;
                buf_adds(&b, i < 2 ? "{\"nodes\":{" : "{\"nodes\":{\"0\":{\"connections\":{");
                for (int k = 0; k < n; k++)
                        buf_addf(&b, "%s\"%d\":{}", k ? "," : "", k);
                buf_adds(&b, i < 2 ? "}}" : "}}}}");
                assert_int_equal(imex_ctl_parse_domain(str_from(buf_str(&b)), a, &d, &e), n > MOST ? -1 : 0);
                buf_done(&b);
        }
}

static void test_domain(void **state) {
        check_domain(STR(DOMAIN));
        check_domain(STR("a warning\n" DOMAIN "\nand more\n"));
}

static void test_domain_refused(void **state) {
        static const char *const bad[] = {
                "",
                "no object",
                "{",
                "{}",
                "[]",
                "{\"nodes\":[]}",
                "{\"nodes\":{\"x\":{}}}",
                "{\"nodes\":{\"-1\":{}}}",
                "{\"nodes\":{\"0\":{\"connections\":{\"one\":{}}}}}",
                "{\"nodes\":{\"99999999999999999999\":{}}}",
        };
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct imex_ctl_domain d;
        struct err e;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(imex_ctl_parse_domain(str_from(bad[i]), a, &d, &e), -1);
        assert_int_equal(imex_ctl_parse_domain(STR("{\"nodes\":{\"0\":7}}"), a, &d, &e),
                         0); /* unusual, but no node in it counts */
        assert_string_equal(d.nodes[0].host, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_domain_of_many_slots_is_read),
                cmocka_unit_test(test_status_unknown),
                cmocka_unit_test(the_last_node_and_connection_count_and_nothing_behind_them),
                cmocka_unit_test(a_domain_has_at_most_4096_nodes_and_connections),
                cmocka_unit_test(test_domain),
                cmocka_unit_test(test_domain_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
