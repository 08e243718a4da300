/* SPDX-License-Identifier: Apache-2.0 */
/* A leader whose API server's host dies silently, with the single HTTP/2 connection of a program. In virtual
 * time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "fake_h2_server.h"
#include "world/fake_server.h"
#include "kube/leader.h"

static struct fake_h2 *server;
static unsigned rv = 10, watches;
static bool leads, lost;

static void reply(struct fake_h2_stream *s, int status, const char *body) {
        fake_h2_begin(s, status);
        fake_h2_data(s, body, strlen(body));
        fake_h2_end(s);
}

static void on_request(void *u, struct fake_h2_stream *s, const char *method, const char *path) {
        char lease[256];

        snprintf(lease, sizeof lease,
                 "{\"kind\":\"Lease\",\"metadata\":{\"namespace\":\"sys\",\"name\":\"lock\","
                 "\"resourceVersion\":\"%u\"},\"spec\":{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":"
                 "15}}",
                 ++rv);
        watches += strstr(path, "watch=true") != NULL;
        if (strstr(path, "watch=true"))
                fake_h2_begin(s, 200);
        else if (streq(method, "GET"))
                reply(s, 200,
                      "{\"kind\":\"LeaseList\",\"apiVersion\":\"coordination.k8s.io/v1\","
                      "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}");
        else
                reply(s, streq(method, "POST") ? 201 : 200, lease);
}

static void on_started(void *u) {
        leads = true;
}

static void on_lost(void *u) {
        lost = true;
}

/* failure: the API server's host dies silently -> the leader keeps its Lease, and watches again */
static void a_host_that_dies_silently_does_not_end_leadership(void **state) {
        uv_loop_t loop;
        struct kube_client *client;
        struct err e;
        char url[64];

        uv_loop_init(&loop);
        server = fake_h2_new(&loop, "127.0.0.1", false, on_request, NULL);
        snprintf(url, sizeof url, "https://127.0.0.1:%d", fake_h2_port(server));
        struct kube_config k = { .server = url, .ca_pem = (char *)(uintptr_t)fake_h2_ca(server) };
        assert_int_equal(kube_client_new(&loop,
                                         &(struct kube_client_options){ .config = &k, .user_agent = "t" },
                                         &client, &e),
                         0);
        struct leader *l = leader_new(&(struct leader_options){ .client = client,
                                                                .ns = "sys",
                                                                .name = "lock",
                                                                .identity = "me",
                                                                .duration_ms = 15000,
                                                                .renew_deadline_ms = 10000,
                                                                .retry_ms = 2000,
                                                                .started = on_started,
                                                                .lost = on_lost });
        run_until(&loop, &leads);
        for (unsigned n = 0; n < 5; n++) {
                unsigned accepted = fake_h2_accepted(server), before = rv;
                run_for(&loop, 5000);
                fake_h2_deafen(server);
                run_for(&loop, 20000);
                assert_false(lost);
                assert_true(rv > before + 2);
                assert_in_range(fake_h2_accepted(server) - accepted, 1, 4);
        }
        /* Renewals on new connections are answered all the time. They do not show that the watches are alive.
         */
        unsigned before = watches;
        fake_h2_deafen(server);
        run_for(&loop, 60000);
        assert_true(watches > before);
        assert_false(lost);
        leader_free(l);
        kube_client_free(client);
        fake_h2_free(server);
        loop_end(&loop);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(
                a_host_that_dies_silently_does_not_end_leadership) };
        return cmocka_run_group_tests_name("leader_connection", tests, NULL, NULL);
}
