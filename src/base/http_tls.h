/* SPDX-License-Identifier: Apache-2.0 */
/* http_tls: the authorities that an HTTP client trusts, and its own certificate, from PEM text or from files
 * that are replaced while the process runs.
 *
 * The authorities, the client's certificate and its key form a set. A set never changes. When a file changes,
 * all are read again, and if all are valid, a new set replaces the old one. Holders of the old set keep it.
 * If a file is half written, or does not match the others, the old set stays in use.
 *
 * Files are watched by their own name. Where Kubernetes mounts them (Secret, ConfigMap, service account), it
 * replaces the link `..data` beside them, so that is watched, too. Loop thread only. */
#pragma once

#include <uv.h>

#include "base/err.h"

struct http_tls;
struct ssl_ctx_st; /* OpenSSL's */
struct x509_store_st;

struct http_tls_options {
        const char *ca_pem;             /* PEM text: only these authorities are trusted; NULL: the system's */
        const char *cert_pem, *key_pem; /* client certificate and key: both or neither */
        /* The files that the text above came from; NULL: it cannot change. */
        const char *ca_file, *cert_file, *key_file;
        /* The files have changed. e is NULL: new connections use them. Otherwise e names the file, the fault
         * and the remedy, and the old set stays in use. Never called from inside a function of this module.
         * NULL when there are no files. */
        void (*changed)(void *u, const struct err *e);
        void *u;
};

/* Copies the options. ERR_INVALID: a text is not PEM, or key and certificate do not belong together. */
int http_tls_new(uv_loop_t *loop, const struct http_tls_options *o, struct http_tls **ret, struct err *e);
void http_tls_free(struct http_tls *t);
/* Reads the files again in the next turn, for callers that suspect a missed change. */
void http_tls_check(struct http_tls *t);

struct http_tls_set {
        unsigned refs;
        char *ca_pem, *cert_pem, *key_pem; /* or NULL, as in the options */
        struct x509_store_st *store;       /* the only trusted authorities; NULL: the system's */
        char *trusted;                     /* "the authorities in '/path'", for people */
};

/* A reference to the set in use. */
struct http_tls_set *http_tls_current(struct http_tls *t);
void http_tls_unref(struct http_tls_set *s);
/* Makes a new connection trust only the set's authorities. */
void http_tls_apply(const struct http_tls_set *s, struct ssl_ctx_st *ctx);
/* Sets *e, with a remedy, for a server's certificate that was rejected. reason is the library's,
 * verify_result OpenSSL's (X509_V_OK or unspecified: the name does not match). */
void http_tls_explain(const struct http_tls_set *s, const char *reason, long verify_result, struct err *e);
