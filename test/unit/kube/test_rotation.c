/* SPDX-License-Identifier: Apache-2.0 */
/* Authorities, certificates, keys and tokens are replaced while a client runs, and no request fails. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/file.h"
#include "base/http_client.h"
#include "base/http_tls.h"
#include "base/mem.h"
#include "base/str.h"
#include "fake_h2_server.h"
#include "world/fake_server.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"
#include "tree.h"

struct world {
        uv_loop_t loop;
        struct fake_h2 *server;
        struct http_client *client;
        char *dir, *ca, *cert, *key; /* ca, cert, key: paths */
        const char *token;
        const char *wanted_token; /* that the server requires; NULL: any */

        struct fake_h2_stream *watch; /* on the server's side */
        bool watching, watch_ended;
        size_t watch_bytes;

        bool hammering; /* sends one request after the other */
        bool asking;
        unsigned answers, objects; /* answers: of the client that hammers; objects: of a kube_client */
        unsigned failures;
        struct err failure;
        char *seen_client, *seen_token;

        unsigned changes, refusals;
        struct err refusal;
};

static const char node[] = "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}";

static void on_request(void *u, struct fake_h2_stream *s, const char *method, const char *path) {
        struct world *w = u;

        bool known = !w->wanted_token || streq(fake_h2_authorization(s), w->wanted_token);
        fake_h2_begin(s, known ? 200 : 401);
        if (streq(path, "/watch")) {
                w->watch = s;
                return;
        }
        free(w->seen_client);
        free(w->seen_token);
        w->seen_client = fake_h2_client(s);
        w->seen_token = xstrdup(fake_h2_authorization(s));
        fake_h2_data(s, node, sizeof node - 1);
        fake_h2_end(s);
}

static void on_changed(void *u, const struct err *e) {
        struct world *w = u;

        if (e) {
                w->refusals++;
                w->refusal = *e;
        } else {
                w->changes++;
        }
}

static const char *current_token(void *u) {
        return ((struct world *)u)->token;
}

static void ask(struct world *w);

static void on_done(void *u, const struct http_response *r) {
        struct world *w = u;

        w->asking = false;
        w->answers++;
        if (r->transport || r->status != 200) {
                w->failures++;
                if (r->transport)
                        w->failure = *r->transport;
        }
        if (w->hammering)
                ask(w);
}

static void ask(struct world *w) {
        w->asking = true;
        http_start(w->client,
                   &(struct http_request){
                           .method = "GET", .path = "/x", .timeout_ms = 5000, .done = on_done, .u = w });
}

static void rest(struct world *w) {
        w->hammering = false;
        RUN_UNTIL(&w->loop, !w->asking);
}

/* New requests are answered. */
static void answered(struct world *w) {
        unsigned before = w->answers;
        RUN_UNTIL(&w->loop, w->answers >= before + 3);
}

static void on_watch_head(void *u, const char *content_type) {
        ((struct world *)u)->watching = true;
}

static void on_watch_data(void *u, const char *p, size_t n) {
        ((struct world *)u)->watch_bytes += n;
}

static void on_watch_done(void *u, const struct http_response *r) {
        ((struct world *)u)->watch_ended = true;
}

static void put(const char *path, const char *text) {
        struct err e;
        assert_int_equal(file_replace_volatile(path, text, strlen(text), 0600, &e), 0);
}

/* As the kubelet does for a volume: a folder with a new name, and a link that is moved to it. */
static void put_volume(struct world *w, const char *generation, const char *ca) {
        _cleanup_(freep) char *file = xasprintf("%s/ca.crt", generation);
        _cleanup_(freep) char *fresh = file_join(w->dir, "..data_tmp"), *data = file_join(w->dir, "..data");

        tree_put(w->dir, file, ca);
        assert_int_equal(symlink(generation, fresh), 0);
        assert_int_equal(rename(fresh, data), 0);
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        struct err e;

        uv_loop_init(&w->loop);
        w->dir = tree_new();
        w->ca = file_join(w->dir, "ca.crt");
        w->cert = file_join(w->dir, "tls.crt");
        w->key = file_join(w->dir, "tls.key");
        w->server = fake_h2_new(&w->loop, "127.0.0.1", true, on_request, w);
        w->token = "first";
        put_volume(w, "..1", fake_h2_ca(w->server));
        assert_int_equal(symlink("..data/ca.crt", w->ca), 0);
        put(w->cert, fake_h2_client_cert(w->server));
        put(w->key, fake_h2_client_key(w->server));

        _cleanup_(freep) char *url = xasprintf("https://127.0.0.1:%d", fake_h2_port(w->server));
        const struct http_client_options o = {
                .base_url = url,
                .tls.ca_pem = fake_h2_ca(w->server),
                .tls.cert_pem = fake_h2_client_cert(w->server),
                .tls.key_pem = fake_h2_client_key(w->server),
                .tls.ca_file = w->ca,
                .tls.cert_file = w->cert,
                .tls.key_file = w->key,
                .tls.changed = on_changed,
                .tls.u = w,
                .token = current_token,
                .token_u = w,
        };
        assert_int_equal(http_client_new(&w->loop, &o, &w->client, &e), 0);
        http_start(w->client, &(struct http_request){ .method = "GET",
                                                      .path = "/watch",
                                                      .head = on_watch_head,
                                                      .data = on_watch_data,
                                                      .done = on_watch_done,
                                                      .u = w });
        w->hammering = true;
        ask(w);
        run_until(&w->loop, &w->watching);
        answered(w);
        assert_int_equal(fake_h2_accepted(w->server), 1);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;

        w->hammering = false;
        http_client_free(w->client);
        fake_h2_free(w->server);
        loop_end(&w->loop);
        tree_remove(w->dir);
        free(w->ca);
        free(w->cert);
        free(w->key);
        free(w->seen_client);
        free(w->seen_token);
        free(w);
        return 0;
}

static void nothing_failed(struct world *w) {
        if (w->failures)
                fail_msg("%u of %u failed: %s", w->failures, w->answers, w->failure.msg);
}

/* The watch stays on its first connection. */
static void watch_continues(struct world *w) {
        size_t before = w->watch_bytes;

        fake_h2_data(w->watch, "event\n", 6);
        RUN_UNTIL(&w->loop, w->watch_bytes == before + 6);
        assert_false(w->watch_ended);
}

/* failure: the cluster's CA is replaced -> connections continue with the new one */
static void test_authority_and_server_certificate(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *old = xstrdup(fake_h2_ca(w->server));

        fake_h2_renew(w->server);
        _cleanup_(freep) char *both = xasprintf("%s%s", old, fake_h2_ca(w->server));
        put_volume(w, "..2", both);
        RUN_UNTIL(&w->loop, w->changes == 1);
        /* On a new connection, to the server's new certificate. */
        RUN_UNTIL(&w->loop, fake_h2_accepted(w->server) == 2);
        answered(w);
        nothing_failed(w);
        watch_continues(w);

        put_volume(w, "..3", fake_h2_ca(w->server));
        RUN_UNTIL(&w->loop, w->changes == 2 && fake_h2_accepted(w->server) == 3);
        answered(w);
        nothing_failed(w);
        watch_continues(w);
        assert_int_equal(w->refusals, 0);

        /* After the watch has ended normally, the next one uses the new connection, too. */
        fake_h2_end(w->watch);
        RUN_UNTIL(&w->loop, w->watch_ended);
        answered(w);
        assert_int_equal(fake_h2_accepted(w->server), 3);
        nothing_failed(w);
}

/* failure: the client's certificate is replaced before its key -> the pair is used when both match */
static void test_client_certificate(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *ca = xstrdup(fake_h2_ca(w->server));

        assert_string_equal(w->seen_client, "client 0");
        fake_h2_renew(w->server);
        _cleanup_(freep) char *both = xasprintf("%s%s", ca, fake_h2_ca(w->server));
        put_volume(w, "..2", both);
        RUN_UNTIL(&w->loop, w->changes == 1);
        /* The two files are not replaced at once. In between they do not match. */
        put(w->cert, fake_h2_client_cert(w->server));
        RUN_UNTIL(&w->loop, w->refusals == 1);
        assert_non_null(strstr(w->refusal.msg, w->cert));
        assert_non_null(strstr(w->refusal.msg, "does not belong to the client key: replace both"));
        answered(w);
        assert_string_equal(w->seen_client, "client 0");
        put(w->key, fake_h2_client_key(w->server));
        RUN_UNTIL(&w->loop, w->changes == 2);
        answered(w);
        assert_string_equal(w->seen_client, "client 1");
        nothing_failed(w);
        watch_continues(w);
}

/* failure: a token is replaced -> requests use the new one, and watches continue */
static void test_token(void **state) {
        struct world *w = *state;

        assert_string_equal(w->seen_token, "Bearer first");
        w->token = "second";
        answered(w);
        assert_string_equal(w->seen_token, "Bearer second");
        nothing_failed(w);
        watch_continues(w);
        assert_int_equal(fake_h2_accepted(w->server), 1);
}

/* failure: a certificate file is half-written or missing -> the old one is used, and the error names the file
 * */
static void test_half_written_and_missing_files(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *half = xstrndup(fake_h2_ca(w->server), strlen(fake_h2_ca(w->server)) / 2);
        const struct {
                const char *text, *expected;
        } bad[] = { { half, "is cut off or damaged: put a whole PEM file there" },
                    { "not yet\n", "contains no certificate: put PEM text there" },
                    { "", "contains no certificate: put PEM text there" } };

        for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(freep) char *generation = xasprintf("..bad%u", i);
                put_volume(w, generation, bad[i].text);
                RUN_UNTIL(&w->loop, w->refusals == i + 1);
                assert_non_null(strstr(w->refusal.msg, w->ca));
                assert_non_null(strstr(w->refusal.msg, bad[i].expected));
                assert_non_null(strstr(w->refusal.msg, "the certificates that were read before stay in use"));
        }
        assert_int_equal(unlink(w->key), 0);
        RUN_UNTIL(&w->loop, w->refusals == ARRAY_LEN(bad) + 1);
        answered(w);
        nothing_failed(w);
        watch_continues(w);
        /* Back to the earlier content: nothing changes, and nothing is reported. */
        put(w->key, fake_h2_client_key(w->server));
        put_volume(w, "..good", fake_h2_ca(w->server));
        answered(w);
        run_for(&w->loop, 50);
        assert_int_equal(w->changes, 0);
        assert_int_equal(fake_h2_accepted(w->server), 1);
        nothing_failed(w);
}

/* The server's new certificate comes before the new authority's file: the failure names the remedy, and ends
 * when the file comes. */
/* failure: the server's certificate is replaced before our CA -> requests fail with a remedy until the CA
 * comes */
static void test_server_was_renewed_first(void **state) {
        struct world *w = *state;

        fake_h2_renew(w->server);
        fake_h2_goaway(w->server);
        RUN_UNTIL(&w->loop, w->failures > 0);
        rest(w);
        assert_int_equal(w->failure.kind, ERR_RETRY);
        assert_true(str_starts(w->failure.msg, "TLS: "));
        assert_non_null(strstr(w->failure.msg, w->ca));
        assert_non_null(strstr(w->failure.msg, "add the authority that signed it"));
        put_volume(w, "..2", fake_h2_ca(w->server));
        RUN_UNTIL(&w->loop, w->changes == 1);
        w->failures = 0;
        w->hammering = true;
        ask(w);
        answered(w);
        nothing_failed(w);
        watch_continues(w);
}

/* failure: a certificate file is damaged at the start -> the error names the file */
static void test_damaged_from_the_start(void **state) {
        struct world *w = *state;
        struct http_client *c;
        struct err e;

        assert_int_equal(http_client_new(&w->loop,
                                         &(struct http_client_options){ .base_url = "https://127.0.0.1:1",
                                                                        .tls.ca_pem = "no certificate",
                                                                        .tls.ca_file = w->ca },
                                         &c, &e),
                         -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_non_null(strstr(e.msg, w->ca));
        assert_int_equal(
                http_client_new(&w->loop,
                                &(struct http_client_options){ .base_url = "https://127.0.0.1:1",
                                                               .tls.cert_pem = fake_h2_client_cert(w->server),
                                                               .tls.key_pem = "no key" },
                                &c, &e),
                -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_non_null(strstr(e.msg, "client key of the configuration is cut off, damaged or encrypted"));
}

/* Also if libcurl itself loads authorities: newer versions load the machine's, although they were set to
 * load none. */
/* failure: the machine's CAs are loaded by a library -> only the cluster's CA is trusted */
static void test_only_the_clusters_authorities(void **state) {
        struct world *w = *state;
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        BIO *b = BIO_new_mem_buf(fake_h2_other_ca(w->server), -1);
        X509 *machines = PEM_read_bio_X509(b, NULL, NULL, NULL);
        struct http_tls *t;
        struct err e;

        X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), machines);
        assert_int_equal(
                http_tls_new(&w->loop, &(struct http_tls_options){ .ca_pem = fake_h2_ca(w->server) }, &t, &e),
                0);
        struct http_tls_set *set = http_tls_current(t);
        http_tls_apply(set, ctx);
        const STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
        assert_int_equal(sk_X509_OBJECT_num(all), 1);
        assert_int_not_equal(X509_cmp(X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, 0)), machines), 0);
        http_tls_unref(set);
        http_tls_free(t);
        X509_free(machines);
        BIO_free(b);
        SSL_CTX_free(ctx);
}

static void on_object(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;

        w->objects++;
        if (e) {
                w->failures++;
                w->failure = *e;
        }
}

static void ask_kube(struct world *w, struct kube_client *k) {
        unsigned before = w->objects;

        kube_start(k, &(struct kube_request){
                              .verb = KUBE_GET, .res = &kube_nodes, .name = "n", .done = on_object, .u = w });
        RUN_UNTIL(&w->loop, w->objects == before + 1);
        nothing_failed(w);
}

/* The same from a kubeconfig: the files that it names are read again. */
/* failure: files of a kubeconfig are replaced -> they are read again */
static void test_files_of_a_kubeconfig(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *path = file_join(w->dir, "config"), *token = file_join(w->dir, "token");
        _cleanup_(freep) char *text = xasprintf("current-context: x\n"
                                                "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                                "clusters: [{name: c, cluster: {server: "
                                                "'https://127.0.0.1:%d', certificate-authority: ca.crt}}]\n"
                                                "users: [{name: u, user: {client-certificate: tls.crt, "
                                                "client-key: tls.key, tokenFile: token}}]\n",
                                                fake_h2_port(w->server));
        struct kube_config config;
        struct kube_client *k;
        struct err e;

        rest(w); /* the other client of this test is not used here */
        put(path, text);
        put(token, "one\n");
        w->wanted_token = "Bearer one";
        assert_int_equal(kube_config_load(path, &config, &e), 0);
        assert_int_equal(
                kube_client_new(&w->loop, &(struct kube_client_options){ .config = &config }, &k, &e), 0);
        kube_config_done(&config);
        ask_kube(w, k);
        assert_string_equal(w->seen_client, "client 0");

        put(token, "two\n");
        w->wanted_token = "Bearer two";
        ask_kube(w, k);

        _cleanup_(freep) char *ca = xstrdup(fake_h2_ca(w->server));
        fake_h2_renew(w->server);
        _cleanup_(freep) char *both = xasprintf("%s%s", ca, fake_h2_ca(w->server));
        put_volume(w, "..2", both);
        put(w->cert, fake_h2_client_cert(w->server));
        put(w->key, fake_h2_client_key(w->server));
        RUN_UNTIL(&w->loop, (ask_kube(w, k), streq(w->seen_client, "client 1")));
        kube_client_free(k);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_authority_and_server_certificate),
                T(test_client_certificate),
                T(test_token),
                T(test_half_written_and_missing_files),
                T(test_server_was_renewed_first),
                T(test_damaged_from_the_start),
                T(test_only_the_clusters_authorities),
                T(test_files_of_a_kubeconfig),
        };
        signal(SIGPIPE, SIG_IGN); /* for the server: clients in this test disconnect early */
        return cmocka_run_group_tests_name("rotation", tests, NULL, NULL);
}
