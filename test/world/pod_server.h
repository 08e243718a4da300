/* SPDX-License-Identifier: Apache-2.0 */
/* pod_server: an API server on loopback with one kind of object, whose lists, watches and failures the test
 * decides.
 *
 * pod_event() and pod_bookmark() send what kube-apiserver would (storage/cacher/cache_watcher.go, process()):
 * nothing up to the version that the watch was asked from, whatever the server's own version is, and no
 * bookmark below it. A watch from a version ahead of the server's is therefore accepted and silent. */
#pragma once

#include "world/fake_server.h"

struct pod_server {
        uv_loop_t *loop;
        struct fake_server *server;

        /* what it does */
        const char *kind;     /* of the items of lists */
        const char *pages[4]; /* answers to lists, in turn; the last one again and again */
        unsigned n_list_failures, n_watch_failures;
        int list_failure, watch_failure; /* their status */
        /* What refuses a watch instead of watch_failure, and what answers lists instead of pages. */
        void (*refuse_watch)(struct pod_server *s, struct fake_conn *c);
        void (*answer_list)(struct pod_server *s, struct fake_conn *c, const struct fake_request *r);
        bool hung; /* watches get no answer */
        bool answers_discovery;
        const char *group; /* the answer to it; NULL: v1 */

        /* what it was asked */
        unsigned n_lists, n_watches;
        struct fake_conn *watch; /* the last one that was accepted */
        bool watching;           /* there was one */
        char list_path[2048], watch_path[2048], watch_rv[64], head[4096];
};

/* On this port, 0: any. What it does stays. */
void pod_server_start(struct pod_server *s, uv_loop_t *loop, int port);
/* Events of the watch: of a pod in namespace "ns", and a bookmark. */
void pod_event(struct pod_server *s, const char *type, const char *name, unsigned rv, const char *node);
void pod_bookmark(struct pod_server *s, unsigned rv);

#define GROUP(versions)                                                                                      \
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"resource.k8s.io\",\"versions\":[" versions  \
        "]}"
#define ITEM(name, rv, node)                                                                                 \
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name                      \
        "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define LIST(rv, items) "{\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}"
#define PAGE(rv, next, items)                                                                                \
        "{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
