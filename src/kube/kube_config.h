/* SPDX-License-Identifier: Apache-2.0 */
/* kube_config: reads the API server's address and our credentials from the in-cluster service account or from
 * a kubeconfig file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Keeps the bearer token for the API server. The token's file may be replaced at any time. The
 * token is never logged. */
struct kube_token {
        char *text, *file; /* file NULL: the text never changes; both NULL: there is none */
        uint64_t read_ms;
        bool stale; /* the file is read at the next kube_token_get() */
};

/* Initialises the token. Copies both strings; either may be NULL. */
void kube_token_init(struct kube_token *t, const char *text, const char *file);
void kube_token_done(struct kube_token *t);
/* Returns the present token, or NULL if there is none. Reads the file if the last read is a minute ago, or if
 * `stale` is set. If the file cannot be read, or briefly contains something else, the last token stays in
 * use, and the server decides whether it is still valid. */
const char *kube_token_get(struct kube_token *t, uint64_t now_ms);

struct kube_config {
        char *server;             /* "https://host:port" */
        char *tls_server_name;    /* or NULL */
        char *ca_pem;             /* or NULL: the system's roots */
        char *cert_pem, *key_pem; /* client certificate, or NULL */
        /* The files that contain the three texts above; NULL for a text that the kubeconfig itself contains.
         * kube_client notices when these files are replaced. A kubeconfig is read only once. */
        char *ca_file, *cert_file, *key_file;
        char *token;      /* or NULL */
        char *token_file; /* or NULL; read again every minute, because tokens rotate */
        char *ns;         /* the namespace of the context or service account; otherwise "default" */
};

/* Loads the configuration from the file `kubeconfig`. If it is NULL or "", uses the in-cluster configuration
 * (KUBERNETES_SERVICE_HOST/PORT and the service account folder). Relative file names in a kubeconfig are
 * relative to its folder. The entries insecure-skip-tls-verify, exec and auth-provider are rejected with an
 * error that names them. */
int kube_config_load(const char *kubeconfig, struct kube_config *ret, struct err *e);
void kube_config_done(struct kube_config *c);

/* Load the configuration from one of the two sources, without reading the environment. `path` is the file
 * that the text was read from. */
int kube_config__in_cluster(const char *host, const char *port, const char *dir, struct kube_config *ret,
                            struct err *e);
int kube_config__parse(const char *text, size_t n, const char *path, struct kube_config *ret, struct err *e);
