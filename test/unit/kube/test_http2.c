/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client with TLS and HTTP/2: the authorities that it trusts, and many streams on one connection. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "fake_h2_server.h"
#include "world/fake_server.h"

enum { MAX_CALLS = 64, BIG = 3 << 20 };

struct one {
        struct world *w;
        struct http_call *call;
        unsigned i;
        bool done, failed, headed;
        int status;
        struct err err;
        struct str body;
        size_t got;
        uint64_t hash;
};

/* gzip -9n of {"ok":true}, and of 20,000 times the letter x */
static const char packed[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\xcf\x56\xb2"
                             "\x2a\x29\x2a\x4d\xad\x05\x00\x90\x5f\xd4\xa7\x0b\x00\x00\x00";
static const char packed_bomb[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x31\x01\x00\x00"
                                  "\x00\xc2\xa0\xda\x8b\x6f\x0d\x0f\xa0\x00\x00\x00\x00\x00\x00\x00"
                                  "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x78\x30\x03\x47"
                                  "\x65\x41\x20\x4e\x00\x00";

struct world {
        uv_loop_t loop;
        struct fake_h2 *server;
        struct http_client *client;
        struct one calls[MAX_CALLS];
        struct fake_h2_stream *streams[MAX_CALLS];
        unsigned n_streams, n_done;
        char *big;
        bool all_done;
};

static void on_request(void *u, struct fake_h2_stream *s, const char *method, const char *path) {
        struct world *w = u;
        assert_string_equal(method, "GET");
        if (str_starts(path, "/stream")) {
                assert_string_equal(fake_h2_accept_encoding(s), "");
                w->streams[w->n_streams++] = s;
                fake_h2_begin(s, 200);
        } else if (streq(path, "/big")) {
                fake_h2_begin(s, 200);
                fake_h2_data(s, w->big, BIG);
                fake_h2_end(s);
        } else if (streq(path, "/packed") || streq(path, "/bomb")) {
                bool bomb = streq(path, "/bomb");
                assert_non_null(strstr(fake_h2_accept_encoding(s), "gzip"));
                fake_h2_gzip(s, bomb ? packed_bomb : packed,
                             bomb ? sizeof packed_bomb - 1 : sizeof packed - 1);
        } else if (!streq(path, "/silent")) {
                fake_h2_begin(s, 200);
                fake_h2_data(s, "{}", 2);
                fake_h2_end(s);
        }
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        for (unsigned i = 0; i < MAX_CALLS; i++)
                w->calls[i] = (struct one){ .w = w, .i = i };
        w->big = xmalloc(BIG);
        for (size_t i = 0; i < BIG; i++)
                w->big[i] = (char)(i * 2654435761U >> 13);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;
        http_client_free(w->client);
        fake_h2_free(w->server);
        loop_end(&w->loop);
        free(w->big);
        free(w);
        return 0;
}

static void connect_with(struct world *w, struct http_client_options o) {
        _cleanup_(freep) char *url = xasprintf("https://127.0.0.1:%d", fake_h2_port(w->server));
        struct err e;
        o.base_url = url;
        o.user_agent = "test";
        assert_int_equal(http_client_new(&w->loop, &o, &w->client, &e), 0);
}

static void serve_impatiently(struct world *w, unsigned silence_ms) {
        w->server = fake_h2_new(&w->loop, "127.0.0.1", false, on_request, w);
        connect_with(w, (struct http_client_options){ .tls.ca_pem = fake_h2_ca(w->server),
                                                      .silence_ms = silence_ms });
}

static void serve(struct world *w) {
        serve_impatiently(w, 0);
}

static void on_done(void *u, const struct http_response *r) {
        struct one *o = u;
        o->done = true;
        o->call = NULL;
        o->status = r->status;
        o->failed = r->transport != NULL;
        if (r->transport)
                o->err = *r->transport;
        if (r->body_len) {
                o->got = r->body_len;
                o->hash = str_fnv64(r->body, r->body_len);
        }
        o->w->n_done++;
}

static void on_data(void *u, const char *p, size_t n) {
        struct one *o = u;
        o->got += n;
}

static void on_head(void *u, const char *content_type) {
        ((struct one *)u)->headed = true;
}

static struct one *get(struct world *w, unsigned i, const char *path, unsigned timeout_ms) {
        struct one *o = &w->calls[i];
        o->done = false;
        o->call = http_start(
                w->client,
                &(struct http_request){
                        .method = "GET", .path = path, .timeout_ms = timeout_ms, .done = on_done, .u = o });
        return o;
}

static struct one *stream(struct world *w, unsigned i) {
        struct one *o = &w->calls[i];
        o->call = http_start(w->client, &(struct http_request){ .method = "GET",
                                                                .path = "/stream",
                                                                .head = on_head,
                                                                .data = on_data,
                                                                .done = on_done,
                                                                .u = o });
        return o;
}

static void test_trusted(void **state) {
        struct world *w = *state;
        serve(w);
        run_until(&w->loop, &get(w, 0, "/x", 5000)->done);
        assert_false(w->calls[0].failed);
        assert_int_equal(w->calls[0].status, 200);
}

static void expect_refusal(struct world *w, const char *expected) {
        run_until(&w->loop, &get(w, 0, "/x", 5000)->done);
        assert_true(w->calls[0].failed);
        assert_int_equal(w->calls[0].err.kind, ERR_RETRY);
        if (!strstr(w->calls[0].err.msg, expected))
                fail_msg("'%s' without '%s'", w->calls[0].err.msg, expected);
}

/* failure: the server's certificate is from another CA -> the connection is refused */
static void test_another_authority(void **state) {
        struct world *w = *state;
        w->server = fake_h2_new(&w->loop, "127.0.0.1", false, on_request, w);
        connect_with(w, (struct http_client_options){ .tls.ca_pem = fake_h2_other_ca(w->server) });
        expect_refusal(w, "TLS: ");
        assert_non_null(strstr(w->calls[0].err.msg,
                               "is checked with the authority in the configuration: add the authority"));
}

static void test_system_roots_do_not_contain_it(void **state) {
        struct world *w = *state;
        w->server = fake_h2_new(&w->loop, "127.0.0.1", false, on_request, w);
        connect_with(w, (struct http_client_options){ 0 });
        expect_refusal(w, "is checked with the authorities of this system: add the authority that signed it");
}

static void test_another_name(void **state) {
        struct world *w = *state;
        w->server = fake_h2_new(&w->loop, "api.example", false, on_request, w);
        connect_with(w, (struct http_client_options){ .tls.ca_pem = fake_h2_ca(w->server) });
        expect_refusal(w, "127.0.0.1");
        assert_non_null(strstr(w->calls[0].err.msg, "issued for this name, or set tls-server-name"));
}

static void test_server_name(void **state) {
        struct world *w = *state;
        w->server = fake_h2_new(&w->loop, "api.example", false, on_request, w);
        connect_with(w, (struct http_client_options){ .tls.ca_pem = fake_h2_ca(w->server),
                                                      .tls_server_name = "api.example" });
        run_until(&w->loop, &get(w, 0, "/x", 5000)->done);
        assert_false(w->calls[0].failed);
}

static void test_client_certificate(void **state) {
        struct world *w = *state;
        w->server = fake_h2_new(&w->loop, "127.0.0.1", true, on_request, w);
        connect_with(w, (struct http_client_options){ .tls.ca_pem = fake_h2_ca(w->server),
                                                      .tls.cert_pem = fake_h2_client_cert(w->server),
                                                      .tls.key_pem = fake_h2_client_key(w->server) });
        run_until(&w->loop, &get(w, 0, "/x", 5000)->done);
        assert_false(w->calls[0].failed);
}

static void test_client_certificate_missing(void **state) {
        struct world *w = *state;
        w->server = fake_h2_new(&w->loop, "127.0.0.1", true, on_request, w);
        connect_with(w, (struct http_client_options){ .tls.ca_pem = fake_h2_ca(w->server) });
        expect_refusal(w, "the server wants a client certificate");
}

static void open_streams(struct world *w, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                stream(w, i);
        for (unsigned i = 0; i < n; i++)
                run_until(&w->loop, &w->calls[i].headed);
}

static void test_streams_share_one_connection(void **state) {
        struct world *w = *state;
        serve(w);
        open_streams(w, 20);
        run_until(&w->loop, &get(w, 30, "/x", 5000)->done);
        assert_int_equal(fake_h2_accepted(w->server), 1);
        for (unsigned i = 0; i < 20; i++)
                fake_h2_data(w->streams[i], "event\n", 6);
        for (unsigned i = 0; i < 20; i++)
                RUN_UNTIL(&w->loop, w->calls[i].got == 6);
}

static void test_cancel_resets_one_stream_only(void **state) {
        struct world *w = *state;
        serve(w);
        open_streams(w, 5);
        http_cancel(w->calls[2].call);
        /* libcurl 7.88 sends the reset together with the next frame. */
        run_until(&w->loop, &get(w, 30, "/x", 5000)->done);
        assert_int_equal(fake_h2_resets(w->server), 1);
        unsigned gone = 0;
        for (unsigned i = 0; i < 5; i++) {
                gone += fake_h2_gone(w->streams[i]);
                if (!fake_h2_gone(w->streams[i]))
                        fake_h2_data(w->streams[i], "event\n", 6);
        }
        for (unsigned i = 0; i < 5; i++)
                RUN_UNTIL(&w->loop, i == 2 || w->calls[i].got == 6);
        assert_int_equal(gone, 1);
        assert_int_equal(w->calls[2].got, 0);
        assert_int_equal(fake_h2_accepted(w->server), 1);
        assert_int_equal(w->n_done, 1);
}

static void test_cancel_while_connecting(void **state) {
        struct world *w = *state;
        serve(w);
        get(w, 0, "/x", 5000);
        get(w, 1, "/x", 5000);
        http_cancel(w->calls[0].call);
        run_until(&w->loop, &w->calls[1].done);
        assert_false(w->calls[0].done || w->calls[1].failed);
}

/* Repeatedly more data at once over one connection than any buffer of libcurl holds. */
static void test_many_large_answers_are_complete(void **state) {
        struct world *w = *state;
        uint64_t hash = str_fnv64(w->big, BIG);
        serve(w);
        for (unsigned round = 0; round < 3; round++) {
                w->n_done = 0;
                if (round == 0)
                        open_streams(w, 3);
                for (unsigned i = 10; i < 26; i++)
                        get(w, i, "/big", 0);
                for (unsigned i = 10; i < 26; i++)
                        run_until(&w->loop, &w->calls[i].done);
                for (unsigned i = 10; i < 26; i++) {
                        assert_false(w->calls[i].failed);
                        assert_int_equal(w->calls[i].got, BIG);
                        assert_true(w->calls[i].hash == hash);
                }
        }
        assert_int_equal(fake_h2_accepted(w->server), 1);
}

/* Compressed lists are an order of magnitude smaller. The limit applies to the uncompressed size. */
/* failure: a compressed answer is very large when unpacked -> it is refused */
static void test_compressed_answers(void **state) {
        struct world *w = *state;
        serve(w);
        run_until(&w->loop, &get(w, 0, "/packed", 5000)->done);
        assert_false(w->calls[0].failed);
        assert_int_equal(w->calls[0].got, 11);
        assert_true(w->calls[0].hash == str_fnv64("{\"ok\":true}", 11));

        struct one *o = &w->calls[1];
        http_start(w->client,
                   &(struct http_request){
                           .method = "GET", .path = "/bomb", .max_body = 5000, .done = on_done, .u = o });
        run_until(&w->loop, &o->done);
        assert_true(o->failed);
        assert_int_equal(o->err.kind, ERR_INVALID);
        assert_non_null(strstr(o->err.msg, "larger than 5000 bytes"));
        stream(w, 2); /* its events must not wait in a compressor's buffer */
        run_until(&w->loop, &w->calls[2].headed);
}

static void test_goaway_leaves_running_streams(void **state) {
        struct world *w = *state;
        serve(w);
        open_streams(w, 2);
        fake_h2_goaway(w->server);
        run_for(&w->loop, 20);
        run_until(&w->loop, &get(w, 10, "/x", 5000)->done);
        assert_false(w->calls[10].failed);
        assert_int_equal(fake_h2_accepted(w->server), 2);
        fake_h2_data(w->streams[0], "event\n", 6);
        fake_h2_data(w->streams[1], "event\n", 6);
        RUN_UNTIL(&w->loop, w->calls[0].got == 6 && w->calls[1].got == 6);
        assert_int_equal(w->n_done, 1);
}

static void test_silent_connection_is_dropped(void **state) {
        struct world *w = *state;
        serve_impatiently(w, 80);
        open_streams(w, 2);
        run_for(&w->loop, 20);
        run_until(&w->loop, &get(w, 10, "/silent", 100)->done);
        run_until(&w->loop, &w->calls[1].done);
        assert_true(w->calls[0].failed && w->calls[1].failed && w->calls[10].failed);
        RUN_UNTIL(&w->loop, fake_h2_open(w->server) == 0);
        run_until(&w->loop, &get(w, 10, "/x", 5000)->done);
        assert_false(w->calls[10].failed);
        assert_int_equal(fake_h2_accepted(w->server), 2);
}

static void test_time_out_of_one_call_keeps_a_connection_that_delivers(void **state) {
        struct world *w = *state;
        serve(w);
        open_streams(w, 2);
        struct one *o = get(w, 10, "/silent", 200);
        for (int i = 0; i < 10 && !o->done; i++) {
                fake_h2_data(w->streams[0], "event\n", 6);
                run_for(&w->loop, 30);
        }
        assert_true(o->done && o->failed);
        run_for(&w->loop, 50);
        assert_false(w->calls[0].done || w->calls[1].done);
        assert_int_equal(fake_h2_accepted(w->server), 1);
}

static void test_free_with_streams(void **state) {
        struct world *w = *state;
        serve(w);
        open_streams(w, 8);
        http_client_free(TAKE(w->client));
        RUN_UNTIL(&w->loop, fake_h2_open(w->server) == 0);
        assert_int_equal(w->n_done, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_trusted),
                T(test_another_authority),
                T(test_system_roots_do_not_contain_it),
                T(test_another_name),
                T(test_server_name),
                T(test_client_certificate),
                T(test_client_certificate_missing),
                T(test_streams_share_one_connection),
                T(test_cancel_resets_one_stream_only),
                T(test_cancel_while_connecting),
                T(test_many_large_answers_are_complete),
                T(test_compressed_answers),
                T(test_goaway_leaves_running_streams),
                T(test_silent_connection_is_dropped),
                T(test_time_out_of_one_call_keeps_a_connection_that_delivers),
                T(test_free_with_streams),
        };
        signal(SIGPIPE, SIG_IGN); /* for the server: clients in this test disconnect early */
        return cmocka_run_group_tests_name("http2", tests, NULL, NULL);
}
