/* SPDX-License-Identifier: Apache-2.0 */
/* informer_world: an informer of pods against a pod_server, and a log of its callbacks: "+a@1 ", "~a@1>2 ",
 * "-a@2 ". */
#pragma once

#include "base/mem.h"
#include "base/metrics.h"
#include "base/str.h"
#include "kube/kube_informer.h"
#include "world/pod_server.h"

struct pod {
        struct kube_object o;
        const char *node;
        int64_t weight;
};

struct world {
        uv_loop_t loop;
        struct pod_server api;
        struct kube_client *client;
        char *token_file; /* for the next client; NULL: it has no token */
        struct kube_informer *informer;
        struct kube_informer_options o;
        struct metrics *metrics;

        /* what the informer reported */
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
void world_connect(struct world *w);                    /* creates the client */
const char *world_node_of(const struct kube_object *o); /* index 0; index 1 is the UID */
unsigned world_count_at(struct world *w, unsigned index, const char *key);
void world_begin(struct world *w);
void world_begin_watching(struct world *w);
void world_wait_for_log(struct world *w, const char *expected);
void world_wait_for_watch(struct world *w, unsigned n);
