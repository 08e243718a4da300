/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_config.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "base/str.h"

/* ---- token ---- */

enum { TOKEN_AGE_MS = 60000, TOKEN_BYTES = 64 << 10 };

void kube_token_init(struct kube_token *t, const char *text, const char *file) {
        *t = (struct kube_token){ .text = xstrdup_or_null(text),
                                  .file = xstrdup_or_null(file),
                                  .stale = true };
}

void kube_token_done(struct kube_token *t) {
        wipe(t->text);
        free(t->file);
}

/* Returns whether the text contains no white space and no control characters, so that it can be put into an
 * HTTP header. */
static bool kube_token_is_clean(const char *s) {
        for (; *s; s++)
                if ((unsigned char)*s <= ' ' || *s == 0x7f)
                        return false;
        return true;
}

static void kube_token_read_file(struct kube_token *t, uint64_t now_ms) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n;

        t->stale = false;
        t->read_ms = now_ms;
        if (file_read(t->file, TOKEN_BYTES, &text, &n, &e) < 0) {
                log_warn("the token cannot be read, so the last one stays in use: make its file "
                         "readable again",
                         kv_err(&e));
                return;
        }
        struct str s = str_trim((struct str){ text, n });
        _cleanup_(freep) char *fresh = xstrndup(s.p, s.n);
        if (*fresh && kube_token_is_clean(fresh)) {
                free(t->text);
                t->text = TAKE(fresh);
        } else {
                log_warn("the token file contains no token, so the last one stays in use: put one line of "
                         "text there",
                         kv_str("file", t->file));
        }
}

const char *kube_token_get(struct kube_token *t, uint64_t now_ms) {
        if (t->file && (!t->text || t->stale || now_ms - t->read_ms >= TOKEN_AGE_MS))
                kube_token_read_file(t, now_ms);
        return t->text;
}

enum { MAX_FILE = 1 << 20 };

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* ---- in a pod ---- */

int kube_config__in_cluster(const char *host, const char *port, const char *dir, struct kube_config *ret,
                            struct err *e) {
        _cleanup_(freep) char *ns_path = file_join(dir, "namespace");
        _cleanup_(freep) char *ns = NULL;
        struct kube_config c = { 0 };
        struct err ignored;
        size_t n;

        if (!host || !*host || !port || !*port)
                return err_set(e, ERR_INVALID, 0,
                               "not in a cluster (KUBERNETES_SERVICE_HOST and _PORT are not set) and no "
                               "kubeconfig is given");
        c.token_file = file_join(dir, "token");
        c.ca_file = file_join(dir, "ca.crt");
        if (file_read(c.token_file, MAX_FILE, &c.token, &n, e) < 0 ||
            file_read(c.ca_file, MAX_FILE, &c.ca_pem, NULL, e) < 0) {
                kube_config_done(&c);
                return err_wrap(e, "service account");
        }
        /* Only the file is used: the token rotates. */
        free(TAKE(c.token));
        c.server = xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
        if (file_read(ns_path, MAX_FILE, &ns, &n, &ignored) == 0) {
                struct str s = str_trim((struct str){ ns, n });
                c.ns = s.n ? xstrndup(s.p, s.n) : NULL;
        }
        if (!c.ns)
                c.ns = xstrdup("default");
        *ret = c;
        return 0;
}

/* ---- kubeconfig: a YAML document, of which a few strings are used ---- */

static const char *scalar(const yaml_node_t *n) {
        return n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
}

static yaml_node_t *get(yaml_document_t *d, yaml_node_t *map, const char *key) {
        if (!map || map->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
                if (streq(scalar(yaml_document_get_node(d, p->key)), key))
                        return yaml_document_get_node(d, p->value);
        return NULL;
}

/* NULL for absent, null and empty: kubectl writes all three for "not set". */
static const char *get_str(yaml_document_t *d, yaml_node_t *map, const char *key) {
        yaml_node_t *n = get(d, map, key);
        const char *s = scalar(n);
        if (!s || !*s)
                return NULL;
        bool plain = n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        return plain && (streq(s, "null") || streq(s, "~")) ? NULL : s;
}

static bool get_true(yaml_document_t *d, yaml_node_t *map, const char *key) {
        const char *s = get_str(d, map, key);
        return s && (strcasecmp(s, "true") == 0 || strcasecmp(s, "yes") == 0 || strcasecmp(s, "on") == 0 ||
                     strcasecmp(s, "y") == 0);
}

/* The member `what` ("cluster") of the entry `name` in the list `list` ("clusters"). */
static yaml_node_t *named(yaml_document_t *d, yaml_node_t *root, const char *list, const char *what,
                          const char *name, struct err *e) {
        yaml_node_t *l = get(d, root, list);
        if (l && l->type == YAML_SEQUENCE_NODE) {
                for (yaml_node_item_t *i = l->data.sequence.items.start; i < l->data.sequence.items.top;
                     i++) {
                        yaml_node_t *entry = yaml_document_get_node(d, *i);
                        if (streq(get_str(d, entry, "name"), name)) {
                                yaml_node_t *part = get(d, entry, what);
                                if (part && part->type == YAML_MAPPING_NODE)
                                        return part;
                        }
                }
        }
        err_set(e, ERR_INVALID, 0, "there is no %s '%s'", what, name);
        return NULL;
}

/* Standard alphabet; line breaks are allowed, as in a folded scalar. */
static int base64_decode(const char *s, char **ret) {
        _cleanup_(freep) char *out = xmalloc(strlen(s) + 1);
        EVP_ENCODE_CTX *c = EVP_ENCODE_CTX_new();
        int n = 0, rest = 0;

        BUG_ON(!c);
        EVP_DecodeInit(c);
        /* OpenSSL treats '-' as the end of the text. */
        bool ok = !strchr(s, '-') &&
                  EVP_DecodeUpdate(c, (unsigned char *)out, &n, (const unsigned char *)s, (int)strlen(s)) >=
                          0 &&
                  EVP_DecodeFinal(c, (unsigned char *)out + n, &rest) == 1;
        EVP_ENCODE_CTX_free(c);
        n += rest;
        if (!ok || memchr(out, '\0', (size_t)n))
                return -1;
        out[n] = '\0';
        *ret = TAKE(out);
        return 0;
}

static char *relative_to(const char *kubeconfig, const char *path) {
        const char *slash = strrchr(kubeconfig, '/');
        if (path[0] == '/' || !slash)
                return xstrdup(path);
        return xasprintf("%.*s/%s", (int)(slash - kubeconfig), kubeconfig, path);
}

/* A kubeconfig. Paths in it are relative to its folder. */
struct document {
        yaml_document_t *yaml;
        const char *path; /* of the file */
};

/* The PEM text of `key` ("client-key"): from <key>-data, which has precedence as in kubectl, or from the file
 * that it names, which *ret_file then is. */
static int get_pem(const struct document *d, yaml_node_t *map, const char *key, char **ret, char **ret_file,
                   struct err *e) {
        _cleanup_(freep) char *data_key = xasprintf("%s-data", key);
        const char *data = get_str(d->yaml, map, data_key), *file = get_str(d->yaml, map, key);

        if (data) {
                if (base64_decode(data, ret) < 0)
                        return err_set(e, ERR_INVALID, 0, "%s is not base64 text", data_key);
        } else if (file) {
                *ret_file = relative_to(d->path, file);
                if (file_read(*ret_file, MAX_FILE, ret, NULL, e) < 0)
                        return err_wrap(e, "%s", key);
        }
        return 0;
}

static int read_cluster(const struct document *d, yaml_node_t *cluster, struct kube_config *c,
                        struct err *e) {
        const char *server = get_str(d->yaml, cluster, "server"),
                   *name = get_str(d->yaml, cluster, "tls-server-name");

        if (get_true(d->yaml, cluster, "insecure-skip-tls-verify"))
                return err_set(
                        e, ERR_INVALID, 0,
                        "insecure-skip-tls-verify is not supported: give certificate-authority(-data)");
        if (get_str(d->yaml, cluster, "proxy-url"))
                return err_set(e, ERR_INVALID, 0, "proxy-url is not supported: set HTTPS_PROXY");
        if (!server || (!str_starts(server, "https://") && !str_starts(server, "http://")))
                return err_set(e, ERR_INVALID, 0, "server '%s' is not an http or https URL",
                               str_or(server, ""));
        c->server = xstrdup(server);
        c->tls_server_name = xstrdup_or_null(name);
        return get_pem(d, cluster, "certificate-authority", &c->ca_pem, &c->ca_file, e);
}

static int read_user(const struct document *d, yaml_node_t *user, struct kube_config *c, struct err *e) {
        static const char *const refused[] = { "exec", "auth-provider", "username",  "password",
                                               "as",   "as-uid",        "as-groups", "as-user-extra" };
        const char *token = get_str(d->yaml, user, "token"),
                   *token_file = get_str(d->yaml, user, "tokenFile");

        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                yaml_node_t *n = get(d->yaml, user, refused[i]);
                if (n && (n->type != YAML_SCALAR_NODE || get_str(d->yaml, user, refused[i])))
                        return err_set(e, ERR_INVALID, 0,
                                       "'%s' is not supported: use token, tokenFile or a client certificate",
                                       refused[i]);
        }
        c->token = xstrdup_or_null(token);
        if (token && !kube_token_is_clean(token))
                return err_set(e, ERR_INVALID, 0, "the token contains white space or control characters");
        c->token_file = token_file ? relative_to(d->path, token_file) : NULL;
        if (get_pem(d, user, "client-certificate", &c->cert_pem, &c->cert_file, e) < 0 ||
            get_pem(d, user, "client-key", &c->key_pem, &c->key_file, e) < 0)
                return -1;
        if (!c->cert_pem != !c->key_pem)
                return err_set(e, ERR_INVALID, 0, "client-certificate and client-key must both be given");
        return 0;
}

static int read_document(const struct document *d, struct kube_config *c, struct err *e) {
        yaml_node_t *root = yaml_document_get_root_node(d->yaml), *context, *cluster, *user;
        const char *name = get_str(d->yaml, root, "current-context"), *ns, *cluster_name, *user_name;

        if (!root || root->type != YAML_MAPPING_NODE)
                return err_set(e, ERR_INVALID, 0, "not a YAML mapping");
        if (!name)
                return err_set(e, ERR_INVALID, 0, "current-context is not set");
        if (!(context = named(d->yaml, root, "contexts", "context", name, e)))
                return -1;
        ns = get_str(d->yaml, context, "namespace");
        cluster_name = get_str(d->yaml, context, "cluster");
        user_name = get_str(d->yaml, context, "user");
        if (!cluster_name)
                return err_set(e, ERR_INVALID, 0, "context '%s' names no cluster", name);
        if (!(cluster = named(d->yaml, root, "clusters", "cluster", cluster_name, e)))
                return -1;
        if (read_cluster(d, cluster, c, e) < 0)
                return err_wrap(e, "cluster '%s'", cluster_name);
        if (user_name) {
                if (!(user = named(d->yaml, root, "users", "user", user_name, e)))
                        return -1;
                if (read_user(d, user, c, e) < 0)
                        return err_wrap(e, "user '%s'", user_name);
        }
        c->ns = xstrdup(str_or(ns, "default"));
        return 0;
}

int kube_config__parse(const char *text, size_t n, const char *path, struct kube_config *ret, struct err *e) {
        struct kube_config c = { 0 };
        yaml_parser_t parser;
        yaml_document_t doc;
        int r;

        if (!yaml_parser_initialize(&parser))
                return err_set(e, ERR_INTERNAL, 0, "libyaml does not start");
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
        if (!yaml_parser_load(&parser, &doc)) {
                r = err_set(e, ERR_INVALID, 0, "line %zu: %s", parser.problem_mark.line + 1,
                            str_or(parser.problem, "no YAML"));
        } else {
                r = read_document(&(struct document){ &doc, path }, &c, e);
                yaml_document_delete(&doc);
        }
        yaml_parser_delete(&parser);
        if (r < 0)
                kube_config_done(&c);
        else
                *ret = c;
        return r;
}

int kube_config_load(const char *kubeconfig, struct kube_config *ret, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t n;

        if (!kubeconfig || !*kubeconfig)
                /* environment KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT of compute-domain-controller,
                 * compute-domain-daemon, compute-domain-kubelet-plugin, gpu-kubelet-plugin: the address of
                 * the API server if --kubeconfig is empty. The kubelet sets them */
                return kube_config__in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
                                               getenv("KUBERNETES_SERVICE_PORT"), SERVICE_ACCOUNT_DIR, ret,
                                               e);
        if (file_read(kubeconfig, MAX_FILE, &text, &n, e) < 0)
                return err_wrap(e, "kubeconfig");
        int r = kube_config__parse(text, n, kubeconfig, ret, e);
        if (r < 0)
                err_wrap(e, "kubeconfig '%s'", kubeconfig);
        explicit_bzero(text, n);
        return r;
}

void kube_config_done(struct kube_config *c) {
        free(TAKE(c->server));
        free(TAKE(c->tls_server_name));
        free(TAKE(c->ca_pem));
        free(TAKE(c->cert_pem));
        free(TAKE(c->ca_file));
        free(TAKE(c->cert_file));
        free(TAKE(c->key_file));
        wipe(TAKE(c->key_pem));
        wipe(TAKE(c->token));
        free(TAKE(c->token_file));
        free(TAKE(c->ns));
}
