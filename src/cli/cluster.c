/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/http1.h"
#include "cli/proxy.h"
#include "kube/kube_json.h"
#include "kube/kube_path.h"
#include "kube/kube_status.h"

/* Objects in a page. Objects have at most a few MiB as JSON, so a small page always fits into an answer. */
enum { PAGE_OBJECTS = 500, PAGE_SMALL = 5 };
enum { ANSWER_MS = 60 * 1000, PAGES_MAX = 10000 };

struct cluster {
        struct source source;
        struct proxy proxy;
        int fd;            /* a connection that can be used again; -1: none */
        bool has_answered; /* so the user has logged in: kubectl does that with the first request */
        char *ns, *version;
        const char *
                resource_api; /* the version of resource.k8s.io that the server serves; NULL: not known yet */
};

/* ---- one request ---- */

static int send_all(int fd, const char *p, size_t n, struct err *e) {
        while (n) {
                ssize_t k = write(fd, p, n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return err_errno(e, errno, "cannot send to kubectl proxy");
                p += k;
                n -= (size_t)k;
        }
        return 0;
}

static int receive_answer(int fd, int wait_ms, struct http1 *h, struct err *e) {
        _cleanup_(freep) char *chunk = xmalloc(64 << 10);
        while (!h->complete) {
                struct pollfd f = { .fd = fd, .events = POLLIN };
                int r = poll(&f, 1, wait_ms);
                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return err_set(e, ERR_RETRY, 0, "the API server does not answer");
                ssize_t k = read(fd, chunk, 64 << 10);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return err_errno(e, errno, "cannot read from kubectl proxy");
                if (k == 0)
                        return http1_end(h, e);
                if (http1_feed(h, chunk, (size_t)k, e) < 0)
                        return -1;
        }
        return 0;
}

static int exchange(struct cluster *c, const char *path, struct http1 *h, struct err *e) {
        _cleanup_(buf_done) struct buf request = BUF_INIT(KUBE_PATH_MAX + 1024);
        buf_addf(&request, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", path);
        /* kubectl may close a connection that was idle, so a second try needs a new one. */
        for (int attempt = 0;; attempt++) {
                bool reused = c->fd >= 0;
                int r = -1;
                if (!reused)
                        c->fd = proxy_connect(&c->proxy, e);
                http1_init(h);
                if (c->fd >= 0)
                        r = send_all(c->fd, request.p, request.n, e);
                if (r == 0)
                        r = receive_answer(c->fd, c->has_answered ? ANSWER_MS : KUBECTL_CALL_MS, h, e);
                c->has_answered = c->has_answered || r == 0;
                if (r == 0 && h->keeps)
                        return 0;
                closep(&c->fd);
                c->fd = -1;
                if (r == 0)
                        return 0;
                bool again = reused && attempt == 0 && h->status == 0;
                http1_done(h);
                if (!again)
                        return -1;
        }
}

/* The message of a Status, or the beginning of another text. An answer that is not from the API server shows
 * neither that permissions are missing nor that the kind is not served. */
static void cluster_status_error(int status, struct str body, struct err *e) {
        struct err ignored;
        yyjson_doc *doc = kube_json_read(body, &ignored);
        yyjson_val *root = yyjson_doc_get_root(doc);
        bool is = kube_status_is(root);
        enum err_kind kind = kube_status_unserved(status, body) ? ERR_NOT_FOUND
                             : is                               ? kube_status_kind(root, status)
                                                                : ERR_RETRY;
        const char *message = is ? yyjson_get_str(yyjson_obj_get(root, "message")) : NULL;
        struct str line = str_trim((struct str){ body.p, str_utf8_cut(body, 200) });
        err_set(e, kind, status, "%s%.*s", message ? message : "HTTP error: ", message ? 0 : (int)line.n,
                line.p);
        yyjson_doc_free(doc);
}

/* Gets a JSON document. The caller frees it. */
static yyjson_doc *cluster_get(struct cluster *c, const char *path, struct err *e) {
        struct http1 h;
        yyjson_doc *doc = NULL;
        if (exchange(c, path, &h, e) < 0)
                return NULL;
        struct str body = { buf_str(&h.body), h.body.n };
        if (h.status != 200)
                cluster_status_error(h.status, body, e);
        else
                doc = kube_json_read(body, e);
        http1_done(&h);
        return doc;
}

/* ---- lists ---- */

static int page_path(const struct source_query *q, const char *version, const char *next, int limit,
                     struct buf *path, struct err *e) {
        char objects[16];
        snprintf(objects, sizeof objects, "%d", limit);
        _cleanup_(buf_done) struct buf field = BUF_INIT(KUBE_PATH_MAX);
        unsigned n_query = 0;
        kube_path_version(path, q->res, version);
        if (kube_path_object(path, q->res, q->ns, NULL, NULL, e) < 0)
                return -1;
        if (q->name)
                buf_addf(&field, "metadata.name=%s", q->name);
        kube_path_query(path, &n_query, "limit", objects);
        kube_path_query(path, &n_query, "continue", next);
        kube_path_query(path, &n_query, "labelSelector", q->label);
        kube_path_query(path, &n_query, "fieldSelector", q->name ? buf_str(&field) : NULL);
        return path->failed ? err_set(e, ERR_INVALID, 0, "the path is too long") : 0;
}

static int list_version(struct cluster *c, const struct source_query *q, const char *version,
                        source_object_fn *fn, void *u, struct err *e) {
        _cleanup_(freep) char *next = NULL;
        int limit = PAGE_OBJECTS;
        for (unsigned pages = 0; pages < PAGES_MAX; pages++) {
                _cleanup_(buf_done) struct buf path = BUF_INIT(KUBE_PATH_MAX);
                if (page_path(q, version, next, limit, &path, e) < 0)
                        return -1;
                yyjson_doc *doc = cluster_get(c, buf_str(&path), e);
                /* The answer may be too large. A tenant can create that many large objects. */
                if (!doc && e->kind == ERR_INVALID && limit > PAGE_SMALL) {
                        limit /= 10;
                        continue;
                }
                if (!doc)
                        return -1;
                limit = limit * 10 < PAGE_OBJECTS ? limit * 10 : PAGE_OBJECTS;
                yyjson_val *root = yyjson_doc_get_root(doc), *object;
                yyjson_val *items = yyjson_obj_get(root, "items");
                const char *more =
                        yyjson_get_str(yyjson_obj_get(yyjson_obj_get(root, "metadata"), "continue"));
                if (!items) {
                        yyjson_doc_free(doc);
                        return err_set(e, ERR_INTERNAL, 0, "the answer is not a list");
                }
                size_t i, n;
                yyjson_arr_foreach (items, i, n, object)
                        fn(u, object);
                free(next);
                next = more && *more ? xstrdup(more) : NULL;
                yyjson_doc_free(doc);
                if (!next)
                        return 0;
        }
        return err_set(e, ERR_INTERNAL, 0, "the list does not end");
}

static int cluster_list(struct source *s, const struct source_query *q, source_object_fn *fn, void *u,
                        struct err *e) {
        struct cluster *c = CONTAINER(s, struct cluster, source);
        if (q->res->version)
                return list_version(c, q, q->res->version, fn, u, e);
        if (c->resource_api)
                return list_version(c, q, c->resource_api, fn, u, e);
        for (const char *const *version = q->res->versions; *version; version++) {
                int r = list_version(c, q, *version, fn, u, e);
                if (r == 0)
                        c->resource_api = *version;
                if (r == 0 || e->kind != ERR_NOT_FOUND)
                        return r;
        }
        return -1;
}

static const char *cluster_version(struct source *s) {
        return CONTAINER(s, struct cluster, source)->version;
}

/* Whether the API server answers at all. It may refuse to show its version. */
static int cluster_probe(struct cluster *c, struct err *e) {
        struct http1 h;
        struct err ignored;
        if (exchange(c, "/version", &h, e) < 0)
                return -1;
        struct str body = { buf_str(&h.body), h.body.n };
        yyjson_doc *doc = h.status == 200 ? kube_json_read(body, &ignored) : NULL;
        c->version = xstrdup_or_null(yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "gitVersion")));
        yyjson_doc_free(doc);
        int r = h.status >= 500 ? (cluster_status_error(h.status, body, e), -1) : 0;
        http1_done(&h);
        return r;
}

static void cluster_free(struct source *s) {
        struct cluster *c = CONTAINER(s, struct cluster, source);
        closep(&c->fd);
        proxy_stop(&c->proxy);
        free(c->ns);
        free(c->version);
        free(c);
}

/* environment KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT of kubectl-compute_domains: both are set in a
 * pod by the kubelet */
/* environment POD_NAMESPACE of kubectl-compute_domains: the namespace in a pod, if the context has none;
 * default: that of the service account */
char *cluster_pod_namespace(const char *dir) {
        _cleanup_(freep) char *token = xasprintf("%s/token", dir), *path = xasprintf("%s/namespace", dir);
        const char *named = str_or(getenv("POD_NAMESPACE"), "");
        char text[128] = "";
        if (!*str_or(getenv("KUBERNETES_SERVICE_HOST"), "") ||
            !*str_or(getenv("KUBERNETES_SERVICE_PORT"), "") || access(token, F_OK) < 0)
                return NULL;
        if (str_is_dns_label(named))
                return xstrdup(named);
        FILE *f = fopen(path, "re");
        bool read = f && fgets(text, sizeof text, f);
        if (f)
                fclose(f);
        struct str s = str_trim(str_from(text));
        char *ns = read ? xstrndup(s.p, s.n) : NULL;
        if (ns && !str_is_dns_label(ns))
                free(TAKE(ns));
        return ns;
}

/* The namespace of the context, or of the pod. */
static char *own_namespace(const struct kubectl *k) {
        static const char *const args[] = { "config", "view", "--minify", "-o", "jsonpath={..namespace}" };
        const struct kubectl_call call = { .args = args, .n_args = ARRAY_LEN(args), .limit = 64 << 10 };
        char *ns = NULL;
        struct err e;
        if (kubectl_run(k, &call, &ns, &e) == 0 && str_is_dns_label(ns))
                return ns;
        free(ns);
        ns = cluster_pod_namespace("/var/run/secrets/kubernetes.io/serviceaccount");
        return ns ? ns : xstrdup("default");
}

int cluster_open(const struct kubectl *k, const char *ns, struct source **ret, struct err *e) {
        struct cluster *c = xnew(struct cluster);
        c->fd = -1;
        if (proxy_start(&c->proxy, k, e) < 0) {
                free(c);
                return -1;
        }
        c->ns = ns ? xstrdup(ns) : own_namespace(k);
        c->source = (struct source){
                .list = cluster_list, .server_version = cluster_version, .free = cluster_free, .ns = c->ns
        };
        if (cluster_probe(c, e) < 0) {
                cluster_free(&c->source);
                return -1;
        }
        c->source.now = (int64_t)time(NULL); /* after a login, which may take minutes */
        *ret = &c->source;
        return 0;
}
