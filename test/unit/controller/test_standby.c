/* SPDX-License-Identifier: Apache-2.0 */
/* A controller that does not lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "world/fake_server.h"
#include "controller/controller.h"

static unsigned n_trims;
int __wrap_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad) {
        return (int)++n_trims;
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        static const char *const kinds[][2] = { { "/nodes", "Node" },
                                                { "/pods", "Pod" },
                                                { "/daemonsets", "DaemonSet" },
                                                { "/resourceclaimtemplates", "ResourceClaimTemplate" },
                                                { "/resourceclaims", "ResourceClaim" },
                                                { "/resourceslices", "ResourceSlice" },
                                                { "/computedomaincliques", "ComputeDomainClique" },
                                                { "/v1beta1/computedomainfabrics", "ComputeDomainFabric" },
                                                { "/computedomains", "ComputeDomain" } };
        if (fake_query(r, "watch")) {
                fake_stream(c);
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if (fake_has(r->path, kinds[i][0])) {
                        fake_list(c, r, kinds[i][1],
                                  "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}");
                        return;
                }
        fake_reply(c, 503, NULL, "the test has no such object");
}


/* The lists of a standby fragment the heap as those of a leader do. */
/* failure: a standby has listed everything -> it returns that memory */
static void a_standby_returns_the_memory_of_its_lists(void **state) {
        static const char *namespaces[] = { "driver" };
        struct config config = { .ns = "driver",
                                 .plugin_selector = "",
                                 .max_nodes = 18,
                                 .daemon = { .ns = "driver", .image = "i", .gates = "" },
                                 .namespaces = namespaces,
                                 .n_namespaces = 1 };
        struct controller c;
        struct gates gates;
        struct err e;
        uv_loop_t loop;
        gates_init(&gates);
        assert_int_equal(mode_resolve(&gates, NULL, NULL, &config.mode, &e), 0);
        uv_loop_init(&loop);
        struct fake_server *server = fake_server_new(&loop, 0, on_request, NULL);
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", fake_server_port(server));
        struct kube_config kube = { .server = url };
        struct kube_client *client;
        assert_int_equal(kube_client_new(&loop,
                                         &(struct kube_client_options){ .config = &kube, .user_agent = "t" },
                                         &client, &e),
                         0);
        struct event_recorder *events = event_recorder_new(client, "test", NULL);
        struct metrics *metrics = metrics_new();
        controller_start(&c,
                         &(struct controller_options){
                                 .config = &config, .client = client, .events = events, .metrics = metrics });
        RUN_UNTIL(&loop, records_synced(&c));
        assert_int_equal(n_trims, 0);
        RUN_UNTIL(&loop, n_trims);
        controller_stop(&c);
        event_recorder_free(events);
        kube_client_free(client);
        metrics_free(metrics);
        fake_server_free(server);
        loop_end(&loop);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(
                a_standby_returns_the_memory_of_its_lists) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
