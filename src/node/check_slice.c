/* SPDX-License-Identifier: Apache-2.0 */
#include "node/check_slice.h"

#include "kube/kube_client.h"

enum { SLICE_TIMEOUT_MS = 5000, SLICE_ATTEMPTS = 3, SLICE_BACKOFF_MS = 200 };

struct slice_query {
        uv_loop_t loop;
        struct arena *a;
        const char *driver;
        struct slice *items;
        size_t n, cap;
        bool ok;
        struct err e;
};

static void check_slice_done(void *u, yyjson_val *list, const struct err *e) {
        struct slice_query *q = u;
        yyjson_val *item;
        size_t i, max;

        uv_stop(&q->loop);
        if (e) {
                q->e = *e;
                return;
        }
        q->ok = true;
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), i, max, item) {
                struct slice s = { 0 };
                if (jd_decode(slice_fields, item, "", q->a, &s, &q->e) < 0) {
                        q->ok = false;
                        return;
                }
                if (!streq(s.driver, q->driver))
                        continue;
                ARENA_GROW(q->a, q->items, q->n, q->cap);
                q->items[q->n++] = s;
        }
}

static int check_slice_list(struct slice_query *q, const struct check_node_options *o, struct err *e) {
        _cleanup_(freep) char *selector = xasprintf("spec.nodeName=%s", o->flags->node);
        struct kube_client *client;
        struct kube_config config = { 0 };

        if (kube_config_load(o->flags->kubeconfig, &config, e) < 0)
                return -1;
        int r = kube_client_new(&q->loop,
                                &(struct kube_client_options){ .config = &config, .user_agent = CHECK_NODE },
                                &client, e);
        kube_config_done(&config);
        if (r < 0)
                return -1;
        kube_start(client, &(struct kube_request){ .verb = KUBE_LIST,
                                                   .res = &kube_resource_slices,
                                                   .field_selector = selector,
                                                   .timeout_ms = SLICE_TIMEOUT_MS,
                                                   .attempts = SLICE_ATTEMPTS,
                                                   .backoff_max_ms = SLICE_BACKOFF_MS,
                                                   .done = check_slice_done,
                                                   .u = q });
        uv_run(&q->loop, UV_RUN_DEFAULT);
        kube_client_free(client);
        uv_run(&q->loop, UV_RUN_DEFAULT);
        if (!q->ok)
                *e = q->e;
        return q->ok ? 0 : -1;
}

void check_slice_compare(struct check_list *l, const struct check_node_options *o, const char *clique,
                         int64_t devices) {
        struct slice_query q = { .a = l->arena, .driver = o->driver_name };
        struct err e;

        uv_loop_init(&q.loop);
        if (check_slice_list(&q, o, &e) < 0)
                check_list_skipped(l, "resource-slice", "%s", e.msg);
        else
                check_settings_slices(
                        l, &(struct check_slices){
                                   .items = q.items, .n = q.n, .clique = clique, .devices = devices });
        uv_loop_close(&q.loop);
}
