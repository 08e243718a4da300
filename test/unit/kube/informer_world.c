/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "informer_world.h"

enum { WAIT_MS = 10000 };

static const struct jd_field f_pod[] = { JD_OBJ(struct pod, "metadata", o.meta, kube_f_meta),
                                         JD_STR(struct pod, "spec>nodeName", node),
                                         JD_INT(struct pod, "spec>weight", weight), JD_END };

const char *world_node_of(const struct kube_object *o) {
        return ((const struct pod *)(const void *)o)->node;
}

static const char *uid_of(const struct kube_object *o) {
        return o->meta.uid;
}

/* "+a@1 ", "~a@1>2 ", "-a@2 " */
static void on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct world *w = u;
        if (!old)
                buf_addf(&w->log, "+%s@%s ", now->meta.name, now->meta.rv);
        else if (!now)
                buf_addf(&w->log, "-%s@%s ", old->meta.name, old->meta.rv);
        else
                buf_addf(&w->log, "~%s@%s>%s ", now->meta.name, old->meta.rv, now->meta.rv);
        if (now)
                assert_ptr_equal(kube_informer_get(w->informer, now->meta.ns, now->meta.name), now);
        w->changed = true;
        if (w->on_changed)
                w->on_changed(w);
}

static void on_synced(void *u) {
        struct world *w = u;
        w->synced = true;
        w->n_synced++;
        assert_true(kube_informer_synced(w->informer));
        if (w->on_synced)
                w->on_synced(w);
}

static void on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        struct world *w = u;
        w->undecodable = true;
        w->n_undecodable++;
        w->err = *e;
}

static void on_trouble(void *u, const struct kube_resource *res, const struct err *e) {
        struct world *w = u;
        w->n_trouble++;
        if (e) {
                w->trouble = true;
                w->err = *e;
        } else {
                w->well = true;
        }
}

void world_connect(struct world *w) {
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", fake_server_port(w->api.server));
        struct kube_config k = { .server = url, .token_file = w->token_file };
        struct err e;
        assert_int_equal(kube_client_new(&w->loop,
                                         &(struct kube_client_options){ .config = &k,
                                                                        .user_agent = "t",
                                                                        .metrics = w->metrics,
                                                                        .metrics_prefix = "nvidia_dra" },
                                         &w->client, &e),
                         0);
}

int world_set_up(void **state) {
        struct world *w = xnew(struct world);

        uv_loop_init(&w->loop);
        w->log = BUF_INIT(1 << 20);
        w->metrics = metrics_new();
        pod_server_start(&w->api, &w->loop, 0);
        world_connect(w);
        w->api.pages[0] = "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}";
        w->o = (struct kube_informer_options){
                .res = &kube_pods,
                .fields = f_pod,
                .size = sizeof(struct pod),
                .index = { world_node_of, uid_of },
                .changed = on_changed,
                .synced = on_synced,
                .undecodable = on_undecodable,
                .failing = on_trouble,
                .u = w,
        };
        *state = w;
        return 0;
}

int world_tear_down(void **state) {
        struct world *w = *state;
        kube_informer_free(w->informer);
        kube_object_unref(w->held);
        kube_client_free(w->client);
        fake_server_free(w->api.server);
        loop_end(&w->loop);
        metrics_free(w->metrics);
        buf_done(&w->log);
        free(w);
        return 0;
}

void world_begin(struct world *w) {
        w->api.kind = w->o.res->kind;
        w->informer = kube_informer_new(w->client, &w->o);
        assert_false(w->synced || w->changed);
}

void world_begin_watching(struct world *w) {
        world_begin(w);
        run_until(&w->loop, &w->api.watching);
}

void world_wait_for_log(struct world *w, const char *expected) {
        uint64_t end_ns = uv_hrtime() + WAIT_MS * UINT64_C(1000000);
        for (unsigned ms = RUN_FIRST_MS; !streq(buf_str(&w->log), expected) && uv_hrtime() < end_ns;)
                run_once(&w->loop, &ms);
        assert_string_equal(buf_str(&w->log), expected);
        w->changed = false;
}

void world_wait_for_watch(struct world *w, unsigned n) {
        uint64_t end_ns = uv_hrtime() + WAIT_MS * UINT64_C(1000000);
        for (unsigned ms = RUN_FIRST_MS; w->api.n_watches < n && uv_hrtime() < end_ns;)
                run_once(&w->loop, &ms);
        assert_int_equal(w->api.n_watches, n);
        run_for(&w->loop, 20);
}

static bool count(void *u, const struct kube_object *o) {
        ++*(unsigned *)u;
        return true;
}

unsigned world_count_at(struct world *w, unsigned index, const char *key) {
        unsigned n = 0;
        kube_informer_each_at(w->informer, index, key, count, &n);
        return n;
}
