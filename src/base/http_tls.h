/* SPDX-License-Identifier: Apache-2.0 */
/* http_tls: loads the certificate authorities that an HTTP client trusts, and the client's certificate and
 * key, from PEM text, and loads them again when their files are replaced.
 *
 * The authorities, the client's certificate and its key form a set. A set never changes. When a file changes,
 * the module reads all files again, and if all are valid, a new set replaces the old one. Holders of the old
 * set keep it. If a file is half written, or does not match the others, the old set stays in use.
 *
 * The module watches the name of each file. In the volumes that Kubernetes mounts (Secret, ConfigMap, service
 * account), the kubelet replaces the link `..data` in the same folder, so the module also watches this link.
 * Loop thread only. */
#pragma once

#include <uv.h>

#include "base/err.h"

struct http_tls;
struct ssl_ctx_st; /* OpenSSL's */
struct x509_store_st;

struct http_tls_options {
        const char *ca_pem;             /* PEM text: only these authorities are trusted; NULL: the system's */
        const char *cert_pem, *key_pem; /* client certificate and key: both or neither */
        /* The files from which the caller read the texts above; NULL: the text cannot change. */
        const char *ca_file, *cert_file, *key_file;
        /* Called after the files have changed. If e is NULL, new connections use the new content. Otherwise e
         * names the file, the fault and the remedy, and the old set stays in use. Never called from inside a
         * function of this module. `changed` may be NULL if there are no files. */
        void (*changed)(void *u, const struct err *e);
        void *u;
};

/* Loads the first set. Copies the options. ERR_INVALID: a text is not PEM, or key and certificate do not
 * belong together. */
int http_tls_new(uv_loop_t *loop, const struct http_tls_options *o, struct http_tls **ret, struct err *e);
void http_tls_free(struct http_tls *t);
/* Reads the files again in the next turn, for callers that suspect a missed change. */
void http_tls_check(struct http_tls *t);

struct http_tls_set {
        unsigned refs;
        char *ca_pem, *cert_pem, *key_pem; /* or NULL, as in the options */
        struct x509_store_st *store;       /* the only trusted authorities; NULL: the system's */
        char *trusted;                     /* for messages: "the authorities in '/path'" */
};

/* Returns a new reference to the set in use; release it with http_tls_unref(). */
struct http_tls_set *http_tls_current(struct http_tls *t);
void http_tls_unref(struct http_tls_set *s);
/* Makes a new connection trust only the set's authorities. */
void http_tls_apply(const struct http_tls_set *s, struct ssl_ctx_st *ctx);
/* Sets *e, with a remedy, for a server certificate that was rejected. `reason` comes from the HTTP library,
 * verify_result from OpenSSL (X509_V_OK or unspecified: the name does not match). */
void http_tls_explain(const struct http_tls_set *s, const char *reason, long verify_result, struct err *e);
