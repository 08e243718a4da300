/* SPDX-License-Identifier: Apache-2.0 */
/* kube_config: the API server's address and our credentials, from the in-cluster service account or from a
 * kubeconfig file. */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct kube_config {
        char *server;             /* "https://host:port" */
        char *tls_server_name;    /* or NULL */
        char *ca_pem;             /* or NULL: the system's roots */
        char *cert_pem, *key_pem; /* client certificate, or NULL */
        /* The files that hold the text above, or NULL where the kubeconfig itself contains it. kube_client
         * notices when they are replaced. A kubeconfig is read once. */
        char *ca_file, *cert_file, *key_file;
        char *token;      /* or NULL */
        char *token_file; /* or NULL; read again when older than a minute, because it rotates */
        char *ns;         /* of the context or service account; "default" otherwise */
};

/* `kubeconfig` NULL or "": in-cluster (KUBERNETES_SERVICE_HOST/PORT and the service account folder). Relative
 * file names in a kubeconfig are relative to it. insecure-skip-tls-verify, exec and auth-provider entries are
 * rejected with an error that names them. */
int kube_config_load(const char *kubeconfig, struct kube_config *ret, struct err *e);
void kube_config_done(struct kube_config *c);

/* The two sources alone, without the environment. `path` is the file that the text came from. */
int kube_config__in_cluster(const char *host, const char *port, const char *dir, struct kube_config *ret,
                            struct err *e);
int kube_config__parse(const char *text, size_t n, const char *path, struct kube_config *ret, struct err *e);
