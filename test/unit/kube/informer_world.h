/* SPDX-License-Identifier: Apache-2.0 */
/* informer_world: an informer of pods against a scripted server, and a log of what it says: "+a@1 ", "~a@1>2
 * ", "-a@2 ".
 *
 * world_event() and world_bookmark() send what kube-apiserver would (storage/cacher/cache_watcher.go,
 * process()): nothing up to the version that the watch was asked from, whatever the server's own version is,
 * and no bookmark below it. A watch from a version ahead of the server's is therefore accepted and silent. */
#pragma once

#include "base/mem.h"
#include "base/metrics.h"
#include "base/str.h"
#include "fake_server.h"
#include "kube/kube_informer.h"

struct pod {
        struct kube_object o;
        const char *node;
        int64_t weight;
};

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        char *token_file; /* of the next client; NULL: it has no token */
        struct kube_informer *informer;
        struct kube_informer_options o;

        /* what the server does */
        const char *pages[4]; /* answers to lists, in turn; the last one again and again */
        unsigned n_lists, n_watches, n_list_failures, n_watch_failures;
        int list_failure, watch_failure;
        /* What refuses a watch instead of watch_failure, and what answers lists instead of pages. */
        void (*refuse_watch)(struct world *w, struct fake_conn *c);
        void (*answer_list)(struct world *w, struct fake_conn *c, const struct fake_request *r);
        bool hung; /* watches get no answer */
        bool answers_discovery;
        const char *group; /* the answer to it; NULL: v1 */
        struct fake_conn *watch;
        struct metrics *metrics;
        char list_path[2048], watch_path[2048], watch_rv[64], head[4096];
        bool watching;

        /* what the informer said */
        struct buf log;
        bool synced, changed, undecodable, trouble, well, got;
        unsigned n_synced, n_undecodable, n_trouble;
        struct err err;
        void (*on_changed)(struct world *w);
        void (*on_synced)(struct world *w);
        const struct kube_object *held;
};

int world_set_up(void **state);
int world_tear_down(void **state);
void world_connect(struct world *w); /* makes the client */
void world_on_request(void *u, struct fake_conn *c, const struct fake_request *r);
const char *world_node_of(const struct kube_object *o); /* index 0; index 1 is the UID */
unsigned world_count_at(struct world *w, unsigned index, const char *key);
void world_begin(struct world *w);
void world_begin_watching(struct world *w);
/* An event of a pod in namespace "ns". */
void world_event(struct world *w, const char *type, const char *name, unsigned rv, const char *node);
void world_bookmark(struct world *w, unsigned rv);
void world_wait_for_log(struct world *w, const char *expected);
void world_wait_for_watch(struct world *w, unsigned n);

#define GROUP(versions)                                                                                      \
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"resource.k8s.io\",\"versions\":[" versions  \
        "]}"
#define ITEM(name, rv, node)                                                                                 \
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name                      \
        "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define LIST(rv, items) "{\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}"
#define PAGE(rv, next, items)                                                                                \
        "{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
