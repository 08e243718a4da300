/* SPDX-License-Identifier: Apache-2.0 */
/* http_tls: whom an HTTP client trusts and who it says it is, from PEM text or from files that are replaced
 * while we run.
 *
 * What belongs together is a set: the authorities, the client's certificate and its key. A set never changes;
 * when a file does, all are read again, and a new set takes its place if all of it is well: whoever holds the
 * old one keeps it. A file that is half written, or does not fit to the others, leaves the old set in use.
 *
 * Files are watched by their own name and, where Kubernetes mounts them (Secret, ConfigMap, service account),
 * by the link `..data` beside them, which is what is replaced there. Loop thread only. */
#pragma once

#include <uv.h>

#include "base/err.h"

struct http_tls;
struct ssl_ctx_st; /* OpenSSL's */
struct x509_store_st;

struct http_tls_options {
        const char *ca_pem; /* PEM text: these and no others are trusted; NULL: the system's roots */
        const char *cert_pem, *key_pem; /* client certificate, both or none */
        /* Where the text above came from; NULL: it cannot change. */
        const char *ca_file, *cert_file, *key_file;
        /* The files have changed. e is NULL: what connects from now on uses them; otherwise it names the
         * file, what is wrong and what to do, and the old ones stay in use. Never from inside a call of ours.
         * NULL when there are no files. */
        void (*changed)(void *u, const struct err *e);
        void *u;
};

/* Copies what it needs. ERR_INVALID when a text is no PEM, or key and certificate do not belong together. */
int http_tls_new(uv_loop_t *loop, const struct http_tls_options *o, struct http_tls **ret, struct err *e);
void http_tls_free(struct http_tls *t);
/* Reads the files again in the next turn, for who suspects that a change was missed. */
void http_tls_check(struct http_tls *t);

struct http_tls_set {
        unsigned refs;
        char *ca_pem, *cert_pem, *key_pem; /* or NULL, as in the options */
        struct x509_store_st *store;       /* the authorities, and no others; NULL: the system's */
        char *trusted;                     /* "the authorities in '/path'", for people */
};

/* A reference to the set in use. */
struct http_tls_set *http_tls_current(struct http_tls *t);
void http_tls_unref(struct http_tls_set *s);
/* A connection that is about to be made trusts the set's authorities alone. */
void http_tls_apply(const struct http_tls_set *s, struct ssl_ctx_st *ctx);
/* *e for a server's certificate that was not believed: reason is the library's, verify_result OpenSSL's
 * (X509_V_OK or unspecified: it is the name that is wrong). Says what to do. */
void http_tls_explain(const struct http_tls_set *s, const char *reason, long verify_result, struct err *e);
