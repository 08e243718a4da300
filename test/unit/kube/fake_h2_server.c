/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_h2_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "base/str.h"

struct fake_h2_stream {
        LIST_ENTRY(fake_h2_stream) entry;
        struct conn *conn;
        int32_t id;
        char *method, *path, *authorization, *accept_encoding;
        struct buf out;
        size_t sent;
        bool end, gone;
};

struct conn {
        LIST_ENTRY(conn) entry;
        struct fake_h2 *f;
        uv_tcp_t tcp;
        SSL *ssl;
        BIO *in, *out;
        nghttp2_session *session;
        bool open, deaf;
        char buffer[64 << 10];
};

struct identity {
        X509 *cert;
        EVP_PKEY *key;
};

struct fake_h2 {
        uv_loop_t *loop;
        uv_tcp_t listener;
        SSL_CTX *ctx;
        LIST_HEAD(, conn) conns;
        LIST_HEAD(, fake_h2_stream) streams;
        fake_h2_fn *fn;
        void *u;
        unsigned accepted, resets, pending;
        int port;
        bool freed;
        char *name;
        bool client_auth;
        unsigned generation;
        X509_STORE *client_cas;
        char *ca, *other_ca, *client_cert, *client_key;
};

/* ---- certificates ---- */

static void add_extension(X509 *cert, int nid, const char *value) {
        X509V3_CTX ctx;
        X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
        X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        assert_non_null(x);
        X509_add_ext(cert, x, -1);
        X509_EXTENSION_free(x);
}

static struct identity make_identity(const char *cn, const char *alt_name, const struct identity *issuer) {
        static long serial = 1;
        struct identity id = { X509_new(), EVP_EC_gen("P-256") };
        X509_NAME *name = X509_get_subject_name(id.cert);

        X509_set_version(id.cert, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(id.cert), serial++);
        X509_gmtime_adj(X509_getm_notBefore(id.cert), -3600);
        X509_gmtime_adj(X509_getm_notAfter(id.cert), 3600);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
        X509_set_issuer_name(id.cert, issuer ? X509_get_subject_name(issuer->cert) : name);
        X509_set_pubkey(id.cert, id.key);
        add_extension(id.cert, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
        if (alt_name)
                add_extension(id.cert, NID_subject_alt_name, alt_name);
        assert_true(X509_sign(id.cert, issuer ? issuer->key : id.key, EVP_sha256()) > 0);
        return id;
}

static void free_identity(struct identity id) {
        X509_free(id.cert);
        EVP_PKEY_free(id.key);
}

static char *pem_of(struct identity id, bool key) {
        BIO *b = BIO_new(BIO_s_mem());
        char *p;
        if (key)
                PEM_write_bio_PrivateKey(b, id.key, NULL, NULL, 0, NULL, NULL);
        else
                PEM_write_bio_X509(b, id.cert);
        long n = BIO_get_mem_data(b, &p);
        char *text = xstrndup(p, (size_t)n);
        BIO_free(b);
        return text;
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
                     unsigned in_n, void *u) {
        static const unsigned char h2[] = "\x02h2";
        for (unsigned i = 0; i + 3 <= in_n; i += in[i] + 1U) {
                if (memcmp(in + i, h2, 3) == 0) {
                        *out = in + i + 1;
                        *n = 2;
                        return SSL_TLSEXT_ERR_OK;
                }
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void free_tls(struct fake_h2 *f) {
        SSL_CTX_free(f->ctx);
        free(f->ca);
        free(f->other_ca);
        free(f->client_cert);
        free(f->client_key);
}

static void make_tls(struct fake_h2 *f) {
        const char *name = f->name;
        _cleanup_(freep) char *alt =
                xasprintf("%s:%s", name[0] >= '0' && name[0] <= '9' ? "IP" : "DNS", name);
        _cleanup_(freep) char *ca_name = xasprintf("ca %u", f->generation);
        _cleanup_(freep) char *client_name = xasprintf("client %u", f->generation);
        struct identity ca = make_identity(ca_name, NULL, NULL),
                        other = make_identity("other ca", NULL, NULL);
        struct identity server = make_identity("server", alt, &ca),
                        client = make_identity(client_name, NULL, &ca);

        f->ca = pem_of(ca, false);
        f->other_ca = pem_of(other, false);
        f->client_cert = pem_of(client, false);
        f->client_key = pem_of(client, true);
        f->ctx = SSL_CTX_new(TLS_server_method());
        assert_int_equal(SSL_CTX_use_certificate(f->ctx, server.cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(f->ctx, server.key), 1);
        SSL_CTX_set_alpn_select_cb(f->ctx, choose_h2, NULL);
        if (f->client_auth) {
                X509_STORE_add_cert(f->client_cas, ca.cert);
                SSL_CTX_set1_cert_store(f->ctx, f->client_cas);
                SSL_CTX_set_verify(f->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        }
        free_identity(ca);
        free_identity(other);
        free_identity(server);
        free_identity(client);
}

void fake_h2_renew(struct fake_h2 *f) {
        free_tls(f);
        f->generation++;
        make_tls(f);
}

char *fake_h2_client(const struct fake_h2_stream *s) {
        char name[64] = "";
        X509 *x = SSL_get1_peer_certificate(s->conn->ssl);
        if (!x)
                return NULL;
        X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof name);
        X509_free(x);
        return xstrdup(name);
}

const char *fake_h2_authorization(const struct fake_h2_stream *s) {
        return str_or(s->authorization, "");
}

const char *fake_h2_accept_encoding(const struct fake_h2_stream *s) {
        return str_or(s->accept_encoding, "");
}

/* ---- bytes ---- */

static void maybe_free(struct fake_h2 *f) {
        struct conn *c;
        struct fake_h2_stream *s;

        if (!f->freed || f->pending)
                return;
        while ((s = LIST_FIRST(&f->streams))) {
                LIST_REMOVE(s, entry);
                free(s->method);
                free(s->path);
                free(s->authorization);
                free(s->accept_encoding);
                buf_done(&s->out);
                free(s);
        }
        while ((c = LIST_FIRST(&f->conns))) {
                LIST_REMOVE(c, entry);
                nghttp2_session_del(c->session);
                SSL_free(c->ssl);
                free(c);
        }
        free_tls(f);
        X509_STORE_free(f->client_cas);
        free(f->name);
        free(f);
}

static void conn_closed(uv_handle_t *h) {
        struct conn *c = CONTAINER((uv_tcp_t *)h, struct conn, tcp);
        c->f->pending--;
        maybe_free(c->f);
}

static void conn_close(struct conn *c) {
        struct fake_h2_stream *s;
        if (!c->open)
                return;
        c->open = false;
        LIST_FOREACH (s, &c->f->streams, entry)
                if (s->conn == c)
                        s->gone = true;
        uv_close((uv_handle_t *)&c->tcp, conn_closed);
}

struct written {
        uv_write_t req;
        char *p;
};

static void on_written(uv_write_t *req, int status) {
        struct written *w = CONTAINER(req, struct written, req);
        free(w->p);
        free(w);
}

static void flush_tls(struct conn *c) {
        char *p;
        long n = BIO_get_mem_data(c->out, &p);
        if (n <= 0 || !c->open)
                return;
        struct written *w = xnew(struct written);
        w->p = xmalloc((size_t)n);
        memcpy(w->p, p, (size_t)n);
        BIO_reset(c->out);
        uv_buf_t b = uv_buf_init(w->p, (unsigned)n);
        if (uv_write(&w->req, (uv_stream_t *)&c->tcp, &b, 1, on_written) < 0)
                on_written(&w->req, 0);
}

static void pump(struct conn *c) {
        if (c->deaf)
                return;
        const uint8_t *p;
        ssize_t n;
        if (!c->open)
                return;
        while ((n = nghttp2_session_mem_send(c->session, &p)) > 0)
                SSL_write(c->ssl, p, (int)n);
        flush_tls(c);
}

/* ---- HTTP/2 ---- */

static ssize_t read_data(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                         nghttp2_data_source *source, void *u) {
        struct fake_h2_stream *s = source->ptr;
        size_t left = s->out.n - s->sent, k = left < n ? left : n;
        if (k == 0 && !s->end)
                return NGHTTP2_ERR_DEFERRED;
        memcpy(p, buf_str(&s->out) + s->sent, k);
        s->sent += k;
        if (s->end && s->sent == s->out.n)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)k;
}

static void begin(struct fake_h2_stream *s, int status, bool gzip) {
        char text[8];
        snprintf(text, sizeof text, "%d", status);
        uint8_t name[] = ":status", encoding[] = "content-encoding", packed[] = "gzip";
        const nghttp2_nv nv[] = {
                { name, (uint8_t *)text, 7, strlen(text), NGHTTP2_NV_FLAG_NONE },
                { encoding, packed, 16, 4, NGHTTP2_NV_FLAG_NONE },
        };
        nghttp2_data_provider provider = { .source.ptr = s, .read_callback = read_data };
        if (s->gone)
                return;
        nghttp2_submit_response(s->conn->session, s->id, nv, gzip ? 2 : 1, &provider);
        pump(s->conn);
}

void fake_h2_begin(struct fake_h2_stream *s, int status) {
        begin(s, status, false);
}

void fake_h2_gzip(struct fake_h2_stream *s, const void *packed, size_t n) {
        begin(s, 200, true);
        fake_h2_data(s, packed, n);
        fake_h2_end(s);
}

void fake_h2_data(struct fake_h2_stream *s, const void *p, size_t n) {
        if (s->gone)
                return;
        buf_add(&s->out, p, n);
        nghttp2_session_resume_data(s->conn->session, s->id);
        pump(s->conn);
}

void fake_h2_end(struct fake_h2_stream *s) {
        if (s->gone)
                return;
        s->end = true;
        nghttp2_session_resume_data(s->conn->session, s->id);
        pump(s->conn);
}

bool fake_h2_gone(const struct fake_h2_stream *s) {
        return s->gone;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *u) {
        struct conn *c = u;
        struct fake_h2_stream *s = xnew(struct fake_h2_stream);
        s->conn = c;
        s->id = frame->hd.stream_id;
        s->out = BUF_INIT(64 << 20);
        LIST_INSERT_HEAD(&c->f->streams, s, entry);
        nghttp2_session_set_stream_user_data(session, s->id, s);
        return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *u) {
        struct fake_h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (name_n == 7 && memcmp(name, ":method", 7) == 0)
                s->method = xstrndup((const char *)value, value_n);
        else if (name_n == 5 && memcmp(name, ":path", 5) == 0)
                s->path = xstrndup((const char *)value, value_n);
        else if (name_n == 13 && memcmp(name, "authorization", 13) == 0)
                s->authorization = xstrndup((const char *)value, value_n);
        else if (name_n == 15 && memcmp(name, "accept-encoding", 15) == 0)
                s->accept_encoding = xstrndup((const char *)value, value_n);
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *u) {
        struct conn *c = u;
        struct fake_h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (s && frame->hd.type == NGHTTP2_HEADERS)
                c->f->fn(c->f->u, s, s->method, s->path);
        if (frame->hd.type == NGHTTP2_RST_STREAM)
                c->f->resets++;
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *u) {
        struct fake_h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
        if (s)
                s->gone = true;
        return 0;
}

static void make_session(struct conn *c) {
        nghttp2_session_callbacks *cb;
        nghttp2_session_callbacks_new(&cb);
        nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
        nghttp2_session_server_new(&c->session, cb, c);
        nghttp2_session_callbacks_del(cb);
        nghttp2_settings_entry limit = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100 };
        nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &limit, 1);
}

/* ---- connections ---- */

static void give_buffer(uv_handle_t *h, size_t n, uv_buf_t *b) {
        struct conn *c = CONTAINER((uv_tcp_t *)h, struct conn, tcp);
        *b = uv_buf_init(c->buffer, sizeof c->buffer);
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *b) {
        struct conn *c = CONTAINER((uv_tcp_t *)tcp, struct conn, tcp);
        uint8_t plain[16 << 10];

        if (n < 0) {
                conn_close(c);
                return;
        }
        BIO_write(c->in, b->base, (int)n);
        if (!SSL_is_init_finished(c->ssl)) {
                int r = SSL_accept(c->ssl);
                flush_tls(c);
                if (r <= 0) {
                        if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
                                conn_close(c);
                        return;
                }
        }
        for (int k; (k = SSL_read(c->ssl, plain, sizeof plain)) > 0;)
                if (nghttp2_session_mem_recv(c->session, plain, (size_t)k) < 0) {
                        conn_close(c);
                        return;
                }
        pump(c);
}

static void on_connection(uv_stream_t *listener, int status) {
        struct fake_h2 *f = CONTAINER((uv_tcp_t *)listener, struct fake_h2, listener);
        struct conn *c = xnew(struct conn);

        c->f = f;
        uv_tcp_init(f->loop, &c->tcp);
        assert_int_equal(uv_accept(listener, (uv_stream_t *)&c->tcp), 0);
        c->ssl = SSL_new(f->ctx);
        c->in = BIO_new(BIO_s_mem());
        c->out = BIO_new(BIO_s_mem());
        SSL_set_bio(c->ssl, c->in, c->out);
        make_session(c);
        c->open = true;
        f->accepted++;
        f->pending++;
        LIST_INSERT_HEAD(&f->conns, c, entry);
        uv_read_start((uv_stream_t *)&c->tcp, give_buffer, on_read);
}

struct fake_h2 *fake_h2_new(uv_loop_t *loop, const char *name, bool client_auth, fake_h2_fn *fn, void *u) {
        struct fake_h2 *f = xnew(struct fake_h2);
        struct sockaddr_in a;
        struct sockaddr_storage bound;
        int n = sizeof bound;

        f->loop = loop;
        f->fn = fn;
        f->u = u;
        LIST_INIT(&f->conns);
        LIST_INIT(&f->streams);
        f->name = xstrdup(name);
        f->client_auth = client_auth;
        f->client_cas = X509_STORE_new();
        make_tls(f);
        uv_tcp_init(loop, &f->listener);
        assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &a), 0);
        assert_int_equal(uv_tcp_bind(&f->listener, (struct sockaddr *)&a, 0), 0);
        assert_int_equal(uv_listen((uv_stream_t *)&f->listener, 64, on_connection), 0);
        assert_int_equal(uv_tcp_getsockname(&f->listener, (struct sockaddr *)&bound, &n), 0);
        f->port = ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port);
        f->pending = 1;
        return f;
}

static void listener_closed(uv_handle_t *h) {
        struct fake_h2 *f = CONTAINER((uv_tcp_t *)h, struct fake_h2, listener);
        f->pending--;
        maybe_free(f);
}

void fake_h2_free(struct fake_h2 *f) {
        struct conn *c;
        if (!f)
                return;
        f->freed = true;
        LIST_FOREACH (c, &f->conns, entry)
                conn_close(c);
        uv_close((uv_handle_t *)&f->listener, listener_closed);
}

int fake_h2_port(const struct fake_h2 *f) {
        return f->port;
}

const char *fake_h2_ca(const struct fake_h2 *f) {
        return f->ca;
}

const char *fake_h2_other_ca(const struct fake_h2 *f) {
        return f->other_ca;
}

const char *fake_h2_client_cert(const struct fake_h2 *f) {
        return f->client_cert;
}

const char *fake_h2_client_key(const struct fake_h2 *f) {
        return f->client_key;
}

unsigned fake_h2_accepted(const struct fake_h2 *f) {
        return f->accepted;
}

unsigned fake_h2_resets(const struct fake_h2 *f) {
        return f->resets;
}

unsigned fake_h2_open(const struct fake_h2 *f) {
        struct conn *c;
        unsigned n = 0;
        LIST_FOREACH (c, &f->conns, entry)
                n += c->open;
        return n;
}

void fake_h2_goaway(struct fake_h2 *f) {
        struct conn *c;
        LIST_FOREACH (c, &f->conns, entry) {
                if (!c->open)
                        continue;
                nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
                                      nghttp2_session_get_last_proc_stream_id(c->session), NGHTTP2_NO_ERROR,
                                      NULL, 0);
                pump(c);
        }
}

void fake_h2_deafen(struct fake_h2 *f) {
        struct conn *c;
        LIST_FOREACH (c, &f->conns, entry) {
                c->deaf = true;
                uv_read_stop((uv_stream_t *)&c->tcp);
        }
}
