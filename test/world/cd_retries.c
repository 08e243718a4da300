/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cd_retries.h"

#include <stdio.h>
#include <string.h>

#include "base/loop.h"

void put_pod(const char *name, const char *uid) {
        char json[300];
        snprintf(json, sizeof json,
                 "{\"metadata\":{\"namespace\":\"user\",\"name\":\"%s\",\"uid\":\"%s\","
                 "\"resourceVersion\":\"1\"}}",
                 name, uid);
        store_set(&api.store, &kube_pods, "user", name, json);
}

/* The value of the annotation, "" without one. */
const char *asked(const char *name) {
        static char value[64];
        const struct object *pod = store_find(&api.store, &kube_pods, "user", name);
        yyjson_doc *doc = store_read(pod->json, strlen(pod->json));
        yyjson_val *meta = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");
        const char *text =
                yyjson_get_str(yyjson_obj_get(yyjson_obj_get(meta, "annotations"), CD_ANNOTATION_RETRY));
        snprintf(value, sizeof value, "%s", str_or(text, ""));
        yyjson_doc_free(doc);
        return value;
}

bool is_asked(const char *name) {
        return *asked(name);
}

/* The kubelet has seen the annotation. */
bool take_request(const char *name) {
        bool is = is_asked(name);
        put_pod(name, "p");
        return is;
}

static void on_time(void *u) {
        *(bool *)u = true;
}

void pass(unsigned ms) {
        struct loop_timer t;
        bool over = false;
        loop_timer_init(&t, &w.loop, on_time, &over);
        loop_timer_start(&t, ms);
        while (!over) {
                world_turn();
                if (!over)
                        uv_run(&w.loop, UV_RUN_ONCE);
        }
        loop_timer_done(&t);
        world_turn();
}

void fails(const char *name, const char *uid) {
        struct dra_op op = { .timeout_ms = RETRIES_TIMEOUT_MS };
        prepare(&op, name, uid);
        world_wait(&op, FAILED);
        world_turn();
}

void prepares(const char *name, const char *uid) {
        struct dra_op op = { 0 };
        prepare(&op, name, uid);
        world_wait(&op, PREPARED);
}

void imex_is_ready(void) {
        daemon_ready();
        world_turn();
}

int retries_setup(void **state) {
        if (world_setup(state) < 0)
                return -1;
        w.retries = true;
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        put_pod("pod-c1", "p");
        put_pod("pod-c2", "p");
        put_pod("pod-d", "q");
        return 0;
}
