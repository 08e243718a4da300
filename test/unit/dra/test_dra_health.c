/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of health reports, on the plugin's socket. */
#include "dra/dra_plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/mem.h"
#include "peer.h"

#define V1 "/v1.DRAResourceHealth/NodeWatchResources"
#define V1ALPHA1 "/v1alpha1.DRAResourceHealth/NodeWatchResources"

struct bed {
        uv_loop_t loop;
        struct dra_plugin *plugin;
        char *dir, *dra_path, *registration_path;
        enum dra_health_state state;
        const char *message;
        bool pending;
        unsigned asked;
};

static void health(void *u, struct arena *a, struct dra_health_list *ret) {
        struct bed *b = u;
        struct dra_device_health *d = arena_alloc(a, sizeof *d);
        *d = (struct dra_device_health){
                .pool = "n0", .device = "channel-0", .state = b->state, .message = b->message
        };
        *ret = (struct dra_health_list){ .devices = d, .n = 1, .pending = b->pending };
        b->asked++;
}

static const struct dra_plugin_ops ops;

static struct bed *bed_new(dra_health_fn *fn) {
        struct bed *b = xnew(struct bed);
        char dir[] = "/tmp/dra.XXXXXX";
        struct err e;
        assert_non_null(mkdtemp(dir));
        b->dir = xstrdup(dir);
        b->dra_path = file_join(dir, "dra.sock");
        b->registration_path = file_join(dir, "x-reg.sock");
        b->message = "";
        uv_loop_init(&b->loop);
        const struct dra_plugin_options o = {
                .driver_name = "x", .plugin_dir = dir, .registrar_dir = dir, .ops = &ops, .health = fn, .u = b
        };
        assert_int_equal(dra_plugin_new(&b->loop, &o, &b->plugin, &e), 0);
        return b;
}

static void bed_free(struct bed *b) {
        dra_plugin_free(b->plugin);
        uv_run(&b->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&b->loop), 0);
        assert_int_equal(rmdir(b->dir), 0);
        free(b->dir);
        free(b->dra_path);
        free(b->registration_path);
        free(b);
}

/* Returns the last message that the stream has received; empty: none. */
static struct str last(const struct h2_call *call, unsigned *ret_n) {
        struct str rest = { buf_str(&call->reply), call->reply.n }, found = { 0 };
        *ret_n = 0;
        while (rest.n >= 5) {
                size_t n = (size_t)(unsigned char)rest.p[3] << 8 | (unsigned char)rest.p[4];
                assert_true(rest.n >= 5 + n);
                found = (struct str){ rest.p + 5, n };
                rest = (struct str){ rest.p + 5 + n, rest.n - 5 - n };
                ++*ret_n;
        }
        return found;
}

static void on_time(void *u) {
        *(bool *)u = true;
}

/* Runs the loop for this time, or until the stream has received n messages. */
static void run_for(struct bed *b, const struct h2_call *call, unsigned n, unsigned ms) {
        struct loop_timer t = { 0 };
        bool over = false;
        unsigned got = 0;
        loop_timer_init(&t, &b->loop, on_time, &over);
        loop_timer_start(&t, ms);
        while (!over && (last(call, &got), got < n))
                uv_run(&b->loop, UV_RUN_ONCE);
        loop_timer_done(&t);
}

static void wait_messages(struct bed *b, const struct h2_call *call, unsigned n) {
        unsigned got;
        run_for(b, call, n, 20000);
        (void)last(call, &got);
        assert_int_equal(got, n);
}

/* Everything up to the time, which is the third member of the device. */
static void assert_device(const struct h2_call *call, const char *state, const char *message) {
        unsigned n;
        struct str m = last(call, &n);
        static const char id[] = "\x0a\x0f\x0a\x02n0\x12\x09"
                                 "channel-0";
        assert_true(m.n > 2 && m.p[0] == '\x0a');
        assert_memory_equal(m.p + 2, id, sizeof id - 1);
        assert_memory_equal(m.p + 2 + sizeof id - 1, state, strlen(state));
        assert_non_null(memmem(m.p, m.n, message, strlen(message)));
}

static void a_new_stream_gets_the_present_list(void **state) {
        static const char *const paths[] = { V1, V1ALPHA1 };
        for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
                struct bed *b = bed_new(health);
                b->state = DRA_HEALTH_BAD;
                b->message = "lost n1";
                struct peer *p = peer_unix(&b->loop, b->dra_path);
                struct h2_call *call = peer_call(p, paths[i], NULL, 0, NULL);
                wait_messages(b, call, 1);
                assert_device(call, "\x10\x02\x18", "lost n1");
                peer_free(p, &b->loop);
                bed_free(b);
        }
}

static void only_changes_are_sent(void **state) {
        struct bed *b = bed_new(health);
        unsigned n;
        b->state = DRA_HEALTH_GOOD;
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = peer_call(p, V1, NULL, 0, NULL);
        wait_messages(b, call, 1);
        assert_device(call, "\x10\x01\x18", "");
        dra_plugin_health_changed(b->plugin);
        run_for(b, call, 2, 3 * DRA_HEALTH_SETTLE_MS);
        (void)last(call, &n);
        assert_int_equal(n, 1);
        assert_int_equal(b->asked, 2);
        b->state = DRA_HEALTH_BAD;
        b->message = "IMEX ended";
        dra_plugin_health_changed(b->plugin);
        dra_plugin_health_changed(b->plugin);
        wait_messages(b, call, 2);
        assert_device(call, "\x10\x02\x18", "IMEX ended");
        assert_int_equal(b->asked, 3);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void a_list_that_is_pending_is_sent_at_its_next_change(void **state) {
        struct bed *b = bed_new(health);
        unsigned n;
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = peer_call(p, V1, NULL, 0, NULL);
        wait_messages(b, call, 1);
        b->message = "not known yet";
        b->pending = true;
        dra_plugin_health_changed(b->plugin);
        run_for(b, call, 2, 3 * DRA_HEALTH_SETTLE_MS);
        (void)last(call, &n);
        assert_int_equal(n, 1);
        b->pending = false;
        dra_plugin_health_changed(b->plugin);
        wait_messages(b, call, 2);
        peer_free(p, &b->loop);
        bed_free(b);
}

/* failure: the kubelet drops a health report after 30 s -> the plugin repeats it in time */
static void a_report_is_repeated_before_it_expires(void **state) {
        struct bed *b = bed_new(health);
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = peer_call(p, V1, NULL, 0, NULL);
        wait_messages(b, call, 1);
        uint64_t began = loop_now_ms(&b->loop);
        wait_messages(b, call, 2);
        assert_true(loop_now_ms(&b->loop) - began < 15000);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void streams_end_with_the_plugin(void **state) {
        struct bed *b = bed_new(health);
        struct peer *p = peer_unix(&b->loop, b->dra_path);
        struct h2_call *call = peer_call(p, V1, NULL, 0, NULL), *other = peer_call(p, V1, NULL, 0, NULL);
        wait_messages(b, other, 1);
        dra_plugin_health_changed(b->plugin);
        dra_plugin_free(TAKE(b->plugin));
        peer_wait(p, call);
        assert_int_equal(call->grpc_status, GRPC_UNAVAILABLE);
        peer_free(p, &b->loop);
        bed_free(b);
}

static void a_plugin_without_health_offers_no_service(void **state) {
        struct bed *b = bed_new(NULL);
        struct peer *p = peer_unix(&b->loop, b->dra_path), *q = peer_unix(&b->loop, b->registration_path);
        struct h2_call *call = peer_call(p, V1ALPHA1, NULL, 0, NULL),
                       *info = peer_call(q, "/pluginregistration.Registration/GetInfo", NULL, 0, NULL);
        peer_wait(p, call);
        assert_int_equal(call->grpc_status, GRPC_UNIMPLEMENTED);
        peer_wait(q, info);
        assert_null(memmem(info->reply.p, info->reply.n, "Health", 6));
        dra_plugin_health_changed(b->plugin);
        peer_free(p, &b->loop);
        peer_free(q, &b->loop);
        bed_free(b);
}

static void a_plugin_with_health_lists_both_versions(void **state) {
        static const char want[] = "\x22\x14v1.DRAResourceHealth\x22\x1av1alpha1.DRAResourceHealth";
        struct bed *b = bed_new(health);
        struct peer *q = peer_unix(&b->loop, b->registration_path);
        struct h2_call *info = peer_call(q, "/pluginregistration.Registration/GetInfo", NULL, 0, NULL);
        peer_wait(q, info);
        assert_non_null(memmem(info->reply.p, info->reply.n, want, sizeof want - 1));
        peer_free(q, &b->loop);
        bed_free(b);
}

/* The kubelet rejects a whole message because of one byte that is not UTF-8. */
static void a_message_is_cut_and_valid(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        _cleanup_(buf_done) struct buf out = BUF_INIT(8192);
        char text[2 * DRA_HEALTH_MESSAGE_MAX];
        memset(text, 'x', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        text[0] = '\xff';
        memcpy(text + DRA_HEALTH_MESSAGE_MAX - 1, "\xc3\xa4", 2);
        const struct dra_device_health d = { "p", "d", DRA_HEALTH_UNKNOWN, text };
        dra_health_render(&(struct dra_health_list){ &d, 1, false }, 0, a, &out);
        assert_null(memchr(out.p, '\xff', out.n));
        assert_null(memchr(out.p + 4, '\xc3', out.n - 4));
        assert_non_null(memmem(out.p, out.n, "?xxx", 4));
        assert_true(out.n < DRA_HEALTH_MESSAGE_MAX + 20);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_new_stream_gets_the_present_list),
                cmocka_unit_test(only_changes_are_sent),
                cmocka_unit_test(a_list_that_is_pending_is_sent_at_its_next_change),
                cmocka_unit_test(a_report_is_repeated_before_it_expires),
                cmocka_unit_test(streams_end_with_the_plugin),
                cmocka_unit_test(a_plugin_without_health_offers_no_service),
                cmocka_unit_test(a_plugin_with_health_lists_both_versions),
                cmocka_unit_test(a_message_is_cut_and_valid),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
