/* SPDX-License-Identifier: Apache-2.0 */
/* pod_server: runs a simulated API server with one kind of object, on loopback. The test decides lists,
 * watches and failures.
 *
 * pod_event() and pod_bookmark() send what kube-apiserver would send (storage/cacher/cache_watcher.go,
 * process()): no event up to the version from which the watch was requested, whatever the server's own
 * version is, and no bookmark below the requested version. So a watch from a version ahead of the server's is
 * accepted and silent. */
#pragma once

#include "world/fake_server.h"

struct pod_server {
        uv_loop_t *loop;
        struct fake_server *server;

        /* the behaviour of the server, which the test sets */
        const char *kind;     /* kind of the items of lists */
        const char *pages[4]; /* answers to lists, in turn; the last one is repeated */
        unsigned n_list_failures, n_watch_failures;
        int list_failure, watch_failure; /* status of the failures */
        /* These functions refuse a watch instead of watch_failure, and answer lists instead of `pages`. */
        void (*refuse_watch)(struct pod_server *s, struct fake_conn *c);
        void (*answer_list)(struct pod_server *s, struct fake_conn *c, const struct fake_request *r);
        bool hung; /* watches get no answer */

        /* the requests that the server has received */
        unsigned n_lists, n_watches;
        struct fake_conn *watch; /* the last accepted watch */
        bool watching;           /* a watch was accepted */
        char list_path[2048], watch_path[2048], watch_rv[64], head[4096];
};

/* Starts the server on this port; 0: any port. Keeps the settings above. */
void pod_server_start(struct pod_server *s, uv_loop_t *loop, int port);
/* Send events on the watch: of a pod in namespace "ns", and a bookmark. */
void pod_event(struct pod_server *s, const char *type, const char *name, unsigned rv, const char *node);
void pod_bookmark(struct pod_server *s, unsigned rv);

#define ITEM(name, rv, node)                                                                                 \
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name                      \
        "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define LIST(rv, items) "{\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}"
#define PAGE(rv, next, items)                                                                                \
        "{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
