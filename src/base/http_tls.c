/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/watch_file.h"

enum { MAX_FILE = 1 << 20, N_FILES = 3 };

struct http_tls {
        uv_loop_t *loop;
        struct loop_turn turn;
        /* Authorities, certificate, key; NULL: no file. */
        char *file[N_FILES];
        struct watch_file watch[N_FILES], data_watch[N_FILES];
        struct http_tls_set *set;
        bool unwatched; /* still to be reported */
        struct err watch_err;
        void (*changed)(void *u, const struct err *e);
        void *u;
};

/* ---- sets ---- */

void http_tls_unref(struct http_tls_set *s) {
        if (!s || --s->refs > 0)
                return;
        X509_STORE_free(s->store);
        free(s->ca_pem);
        free(s->cert_pem);
        wipe(s->key_pem);
        free(s->trusted);
        free(s);
}

/* "client key '/path'", or without a path if the configuration itself contains it. */
static int invalid(struct err *e, const char *what, const char *file, const char *why) {
        ERR_clear_error();
        if (file)
                return err_set(e, ERR_INVALID, 0, "%s '%s' %s", what, file, why);
        return err_set(e, ERR_INVALID, 0, "%s of the configuration %s", what, why);
}

/* Reads all certificates of the text: the first into *ret_first, all into the store; both may be NULL. Text
 * around the certificates is allowed, as in bundles. */
static int read_certs(const char *pem, X509_STORE *store, X509 **ret_first, const char *what,
                      const char *file, struct err *e) {
        BIO *b = BIO_new_mem_buf(pem, -1);
        unsigned n = 0;
        X509 *x;

        BUG_ON(!b);
        ERR_clear_error();
        while ((x = PEM_read_bio_X509(b, NULL, NULL, NULL))) {
                n++;
                if (store)
                        X509_STORE_add_cert(store, x);
                if (n == 1 && ret_first)
                        *ret_first = x;
                else
                        X509_free(x);
        }
        BIO_free(b);
        /* The search for another certificate ends with this error. With any other error, a certificate is
         * damaged. */
        if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
                return invalid(e, what, file, "is cut off or damaged: put a whole PEM file there");
        ERR_clear_error();
        return n ? 0 : invalid(e, what, file, "contains no certificate: put PEM text there");
}

static int check_key(const struct http_tls_set *s, X509 *cert, const char *cert_file, const char *key_file,
                     struct err *e) {
        BIO *b = BIO_new_mem_buf(s->key_pem, -1);
        char no_password[] = ""; /* there is no one to ask for a password */
        EVP_PKEY *key;
        int fits;

        BUG_ON(!b);
        key = PEM_read_bio_PrivateKey(b, NULL, NULL, no_password);
        BIO_free(b);
        if (!key)
                return invalid(
                        e, "client key", key_file,
                        "is cut off, damaged or encrypted: put a whole PEM key without a password there");
        fits = X509_check_private_key(cert, key);
        EVP_PKEY_free(key);
        return fits == 1 ? 0
                         : invalid(e, "client certificate", cert_file,
                                   "does not belong to the client key: replace both");
}

/* Copies the three texts. Each may be NULL. */
static int set_new(char *const pem[N_FILES], char *const file[N_FILES], struct http_tls_set **ret,
                   struct err *e) {
        struct http_tls_set *s = xnew(struct http_tls_set);
        X509 *cert = NULL;
        int r = 0;

        *s = (struct http_tls_set){ .refs = 1, .ca_pem = pem[0], .cert_pem = pem[1], .key_pem = pem[2] };
        s->trusted = !s->ca_pem ? xstrdup("the authorities of this system")
                     : file[0]  ? xasprintf("the authorities in '%s'", file[0])
                                : xstrdup("the authority in the configuration");
        if (s->ca_pem) {
                s->store = X509_STORE_new();
                BUG_ON(!s->store);
                /* As in libcurl's own stores and Go's pools: every listed certificate is trusted, also if it
                 * is not a root. */
                X509_STORE_set_flags(s->store, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
                r = read_certs(s->ca_pem, s->store, NULL, "certificate authority", file[0], e);
        }
        if (r == 0 && s->cert_pem) {
                r = read_certs(s->cert_pem, NULL, &cert, "client certificate", file[1], e);
                if (r == 0)
                        r = check_key(s, cert, file[1], file[2], e);
                X509_free(cert);
        }
        if (r < 0)
                http_tls_unref(s);
        else
                *ret = s;
        return r;
}

void http_tls_apply(const struct http_tls_set *s, struct ssl_ctx_st *ctx) {
        if (s->store)
                SSL_CTX_set1_cert_store(ctx, s->store);
}

void http_tls_explain(const struct http_tls_set *s, const char *reason, long verify_result, struct err *e) {
        /* libcurl compares names before it asks OpenSSL, and reports "unspecified" until then. */
        if (verify_result == X509_V_OK || verify_result == X509_V_ERR_UNSPECIFIED)
                err_set(e, ERR_RETRY, 0,
                        "TLS: %s: have the server's certificate issued for this name, or set tls-server-name",
                        reason);
        else if (verify_result == X509_V_ERR_CERT_HAS_EXPIRED ||
                 verify_result == X509_V_ERR_CERT_NOT_YET_VALID)
                err_set(e, ERR_RETRY, 0,
                        "TLS: %s: renew the server's certificate, or set the clock of this machine", reason);
        else
                err_set(e, ERR_RETRY, 0,
                        "TLS: %s: the server's certificate is checked with %s: add the authority "
                        "that signed it",
                        reason, s->trusted);
}

/* ---- files ---- */

static const char *const what_it_is[N_FILES] = { "certificate authority", "client certificate",
                                                 "client key" };

/* Texts without a file stay unchanged. */
static int read_set(struct http_tls *t, struct http_tls_set **ret, struct err *e) {
        const char *const now[N_FILES] = { t->set->ca_pem, t->set->cert_pem, t->set->key_pem };
        char *pem[N_FILES] = { 0 };

        for (unsigned i = 0; i < N_FILES; i++) {
                if (!t->file[i]) {
                        pem[i] = xstrdup_or_null(now[i]);
                } else if (file_read(t->file[i], MAX_FILE, &pem[i], NULL, e) < 0) {
                        for (unsigned k = 0; k < i; k++)
                                wipe(pem[k]);
                        return err_wrap(e, "%s must be readable again", what_it_is[i]);
                }
        }
        return set_new(pem, t->file, ret, e);
}

static bool http_tls_same(const struct http_tls_set *a, const struct http_tls_set *b) {
        return streq(str_or(a->ca_pem, ""), str_or(b->ca_pem, "")) &&
               streq(str_or(a->cert_pem, ""), str_or(b->cert_pem, "")) &&
               streq(str_or(a->key_pem, ""), str_or(b->key_pem, ""));
}

static void http_tls_on_turn(void *u) {
        struct http_tls *t = u;
        struct http_tls_set *fresh;
        struct err e;

        if (t->unwatched) {
                t->unwatched = false;
                http_tls_check(t);
                t->changed(t->u, &t->watch_err);
        } else if (read_set(t, &fresh, &e) < 0) {
                err_wrap(&e, "the certificates that were read before stay in use");
                t->changed(t->u, &e);
        } else if (http_tls_same(fresh, t->set)) {
                http_tls_unref(fresh);
        } else {
                http_tls_unref(t->set);
                t->set = fresh;
                t->changed(t->u, NULL);
        }
}

void http_tls_check(struct http_tls *t) {
        if (t->file[0] || t->file[1] || t->file[2])
                loop_turn_start(&t->turn);
}

static void http_tls_on_file(struct watch_file *w) {
        http_tls_check(w->u);
}

static void http_tls_watch(struct http_tls *t, struct watch_file *w, const char *path) {
        struct err e;

        w->u = t;
        if (watch_file_start(w, t->loop, path, http_tls_on_file, &e) == 0)
                return;
        t->watch_err = e;
        err_wrap(&t->watch_err, "a change of '%s' will be noticed only when a connection fails", path);
        t->unwatched = true;
        http_tls_check(t);
}

static void http_tls_watch_all(struct http_tls *t) {
        for (unsigned i = 0; i < N_FILES; i++) {
                if (!t->file[i])
                        continue;
                const char *slash = strrchr(t->file[i], '/');
                _cleanup_(freep) char *data =
                        xasprintf("%.*s..data", slash ? (int)(slash - t->file[i]) + 1 : 0, t->file[i]);
                http_tls_watch(t, &t->watch[i], t->file[i]);
                http_tls_watch(t, &t->data_watch[i], data);
        }
}

int http_tls_new(uv_loop_t *loop, const struct http_tls_options *o, struct http_tls **ret, struct err *e) {
        char *pem[N_FILES] = { xstrdup_or_null(o->ca_pem), xstrdup_or_null(o->cert_pem),
                               xstrdup_or_null(o->key_pem) };
        struct http_tls *t = xnew(struct http_tls);

        t->file[0] = xstrdup_or_null(o->ca_file);
        t->file[1] = xstrdup_or_null(o->cert_file);
        t->file[2] = xstrdup_or_null(o->key_file);
        if (set_new(pem, t->file, &t->set, e) < 0) {
                for (unsigned i = 0; i < N_FILES; i++)
                        free(t->file[i]);
                free(t);
                return -1;
        }
        t->loop = loop;
        t->changed = o->changed;
        t->u = o->u;
        loop_turn_init(&t->turn, loop, http_tls_on_turn, t);
        http_tls_watch_all(t);
        *ret = t;
        return 0;
}

void http_tls_free(struct http_tls *t) {
        if (!t)
                return;
        for (unsigned i = 0; i < N_FILES; i++) {
                watch_file_stop(&t->watch[i]);
                watch_file_stop(&t->data_watch[i]);
                free(t->file[i]);
        }
        http_tls_unref(t->set);
        loop_turn_done(&t->turn);
        free(t);
}

struct http_tls_set *http_tls_current(struct http_tls *t) {
        t->set->refs++;
        return t->set;
}
