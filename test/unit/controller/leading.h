/* SPDX-License-Identifier: Apache-2.0 */
/* leading: a leading controller and an API server that the test simulates. It offers resource.k8s.io/v1. */
#pragma once

#include "world/fake_client.h"
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
        l->client = fake_client_new(&l->loop, l->server, 0, 0);
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

/* Starts the controller, which does not lead. */
static inline void leading_stand_by(struct leading *l) {
        controller_start(&l->c, &(struct controller_options){ .config = &l->config,
                                                              .client = l->client,
                                                              .events = l->events,
                                                              .metrics = l->metrics });
}

static inline void leading_start(struct leading *l) {
        leading_stand_by(l);
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

/* A fixture of cmocka, for a world whose first member is a struct leading. */
static inline int leading_teardown(void **state) {
        leading_done(*state);
        free(*state);
        return 0;
}

static inline const char *leading_kind_of(const char *path) {
        static const char *const kinds[][2] = { { "/nodes", "Node" },
                                                { "/namespaces?", "Namespace" },
                                                { "/leases", "Lease" },
                                                { "/daemonsets", "DaemonSet" },
                                                { "/pods", "Pod" },
                                                { "/podgroups", "PodGroup" },
                                                { "/resourceslices", "ResourceSlice" },
                                                { "/resourceclaimtemplates", "ResourceClaimTemplate" },
                                                { "/resourceclaims", "ResourceClaim" },
                                                { "/computedomaincliques", "ComputeDomainClique" },
                                                { "/v1beta1/computedomainfabrics", "ComputeDomainFabric" },
                                                { "/computedomains", "ComputeDomain" } };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if (fake_has(path, kinds[i][0]))
                        return kinds[i][1];
        return NULL;
}

/* The items of the list at a path, which the caller frees; NULL: the list is empty. */
typedef char *leading_items_fn(void *u, const char *path);

/* Answers a GET: a watch on which nothing happens, or a list of these items. */
static inline void leading_read(struct fake_conn *c, const struct fake_request *r, leading_items_fn *items_of,
                                void *u) {
        const char *kind = leading_kind_of(r->path);
        if (fake_query(r, "watch")) {
                fake_stream(c);
                return;
        }
        if (!kind) {
                fake_reply(c, 503, NULL, "the test has no such object");
                return;
        }
        _cleanup_(freep) char *items = items_of(u, r->path);
        _cleanup_(freep) char *list =
                xasprintf("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", str_or(items, ""));
        fake_list(c, r, kind, list);
}
