/* SPDX-License-Identifier: Apache-2.0 */
/* leading: a leading controller and an API server that the test simulates. It offers resource.k8s.io/v1. */
#pragma once

#include "world/fake_server.h"
#include "controller/controller.h"

struct leading {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct event_recorder *events;
        struct metrics *metrics;
        struct config config; /* the minimum, and what the test adds before leading_start() */
        struct controller c;
};

/* `on_request` answers, with u. */
static inline void leading_init(struct leading *l, fake_fn *on_request, void *u) {
        static const char *namespaces[] = { "driver" };
        struct err e;

        l->config = (struct config){ .ns = "driver",
                                     .plugin_selector = "app=plugin",
                                     .daemon = { .ns = "driver",
                                                 .image = "i",
                                                 .log_verbosity = "4",
                                                 .gates = "",
                                                 .priority_class = "",
                                                 .pull_policy = "IfNotPresent" },
                                     .max_nodes = 18,
                                     .namespaces = namespaces,
                                     .n_namespaces = 1 };
        uv_loop_init(&l->loop);
        l->server = fake_server_new(&l->loop, 0, on_request, u);
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", fake_server_port(l->server));
        struct kube_config kube = { .server = url };
        assert_int_equal(kube_client_new(&l->loop,
                                         &(struct kube_client_options){ .config = &kube, .user_agent = "t" },
                                         &l->client, &e),
                         0);
        l->events = event_recorder_new(l->client, "test", NULL);
        l->metrics = metrics_new();
}

/* Sets the mode that these settings choose (model/mode.h). */
static inline void leading_set_mode(struct leading *l, const char *gates_text, const char *isolation) {
        static struct gates gates;
        struct err e;

        gates_init(&gates);
        assert_int_equal(gates_parse(&gates, gates_text, &e), 0);
        assert_int_equal(mode_resolve(&gates, NULL, isolation, &l->config.mode, &e), 0);
}

static inline void leading_start(struct leading *l) {
        controller_start(&l->c, &(struct controller_options){ .config = &l->config,
                                                              .client = l->client,
                                                              .events = l->events,
                                                              .metrics = l->metrics });
        controller_lead(&l->c);
        RUN_UNTIL(&l->loop, records_synced(&l->c));
}

static inline void leading_done(struct leading *l) {
        controller_stop(&l->c);
        metrics_free(l->metrics);
        event_recorder_free(l->events);
        kube_client_free(l->client);
        fake_server_free(l->server);
        loop_end(&l->loop);
}

/* The items of the list at a path, which the caller frees, and what they are; NULL: the test has none. */
typedef char *leading_items_fn(void *u, const char *path, const char **ret_kind);
static inline const char *leading_kind_of(const char *path) {
        static const char *const kinds[][2] = { { "/daemonsets", "DaemonSet" },
                                                { "/pods", "Pod" },
                                                { "/computedomaincliques", "ComputeDomainClique" },
                                                { "/computedomainfabrics", "ComputeDomainFabric" },
                                                { "/resourceclaimtemplates", "ResourceClaimTemplate" } };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if (fake_has(path, kinds[i][0]))
                        return kinds[i][1];
        return NULL;
}

/* Answers a GET: a watch on which nothing happens, or a list of these items. */
static inline void leading_read(struct fake_conn *c, const struct fake_request *r, leading_items_fn *items_of,
                                void *u) {
        const char *kind = NULL;
        if (fake_query(r, "watch")) {
                fake_stream(c);
                return;
        }
        _cleanup_(freep) char *items = items_of(u, r->path, &kind);
        if (!items)
                kind = leading_kind_of(r->path);
        if (!kind) {
                fake_reply(c, 503, NULL, "the test has no such object");
                return;
        }
        _cleanup_(freep) char *list =
                xasprintf("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", str_or(items, ""));
        fake_list(c, r, kind, list);
}
