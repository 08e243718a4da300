#include "kube/kube_client.h"

#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/kube_client_priv.h"
#include "kube/kube_path.h"

enum {
        DEFAULT_TIMEOUT_MS = 30000,
        DEFAULT_ATTEMPTS = 5,
        BACKOFF_MIN_MS = 100,
        BACKOFF_MAX_MS = 10000,
        MAX_WAIT_S = 60, /* a server's Retry-After beyond it is not believed */
        /* Streams of one connection; more wait here, where a call costs a few hundred bytes and not a
           transfer of libcurl's. */
        MAX_IN_FLIGHT = 32,
        TOKEN_AGE_MS = 60000,
        TOKEN_BYTES = 64 << 10,
};

#define RESOURCE_API "resource.k8s.io"

const struct kube_resource kube_nodes = { "", "v1", "nodes", "Node", false };
const struct kube_resource kube_pods = { "", "v1", "pods", "Pod", true };
const struct kube_resource kube_events = { "", "v1", "events", "Event", true };
const struct kube_resource kube_leases = { "coordination.k8s.io", "v1", "leases", "Lease", true };
const struct kube_resource kube_daemonsets = { "apps", "v1", "daemonsets", "DaemonSet", true };
const struct kube_resource kube_crds = { "apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                         "CustomResourceDefinition", false };
const struct kube_resource kube_compute_domains = { "resource.nvidia.com", "v1beta1", "computedomains",
                                                    "ComputeDomain", true };
const struct kube_resource kube_cliques = { "resource.nvidia.com", "v1beta1", "computedomaincliques",
                                            "ComputeDomainClique", true };
const struct kube_resource kube_resource_claims = { RESOURCE_API, NULL, "resourceclaims", "ResourceClaim",
                                                    true };
const struct kube_resource kube_resource_claim_templates = { RESOURCE_API, NULL, "resourceclaimtemplates",
                                                             "ResourceClaimTemplate", true };
const struct kube_resource kube_resource_slices = { RESOURCE_API, NULL, "resourceslices", "ResourceSlice",
                                                    false };

enum call_state { CALL_WAITING, CALL_IN_FLIGHT, CALL_DONE };

struct kube_call {
        TAILQ_ENTRY(kube_call) entry; /* in client->waiting (by due time) or client->in_flight */
        struct kube_client *client;
        enum call_state state;
        uint64_t due_ms;
        unsigned attempts, failed, backoff_max_ms;
        bool token_refreshed;
        bool away;    /* waits because no answer came */
        bool refused; /* `refusal` is the whole answer: the request cannot be made */
        struct err refusal;
        const char *method, *content_type, *accept;
        char *path, *body;
        size_t body_len;
        unsigned timeout_ms;
        struct http_call *http;
        kube_done_fn *done;
        kube_retry_fn *retry;
        void *u;
};

struct waiter {
        TAILQ_ENTRY(waiter) entry;
        kube_ready_fn *fn;
        void *u;
};
TAILQ_HEAD(waiters, waiter);
TAILQ_HEAD(hopes, kube__hope);
TAILQ_HEAD(calls, kube_call);

struct kube_client {
        uv_loop_t *loop;
        struct http_client *http;
        uv_timer_t timer;
        struct calls waiting, in_flight;
        unsigned n_in_flight;
        bool closing;

        double qps, burst, tokens; /* the token bucket */
        uint64_t filled_ms;

        char *token, *token_file;
        uint64_t token_read_ms;
        bool token_stale;

        const char *resource_api; /* static text */
        struct waiters waiters;
        struct kube_call *discovery;

        struct hopes hopes;
        unsigned n_away; /* waiting calls that hope, too */
};

static void pump(struct kube_client *c);

static uint64_t now_ms(const struct kube_client *c) {
        uv_update_time(c->loop);
        return uv_now(c->loop);
}

/* ---- who we are ---- */

static bool token_is_clean(const char *s) {
        for (; *s; s++)
                if ((unsigned char)*s <= ' ' || *s == 0x7f)
                        return false;
        return true;
}

/* A file that cannot be read, or holds something else for a moment, leaves the last token in use: the server
 * judges it. */
static void read_token(struct kube_client *c) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n;

        c->token_stale = false;
        c->token_read_ms = uv_now(c->loop);
        if (file_read(c->token_file, TOKEN_BYTES, &text, &n, &e) < 0) {
                log_v(1, "cannot read the token", kv_err(&e));
                return;
        }
        struct str s = str_trim((struct str){ text, n });
        _cleanup_(freep) char *fresh = xstrndup(s.p, s.n);
        if (*fresh && token_is_clean(fresh)) {
                free(c->token);
                c->token = TAKE(fresh);
        } else {
                log_v(1, "the token file holds no token", kv_str("file", c->token_file));
        }
}

static const char *current_token(void *u) {
        struct kube_client *c = u;
        if (c->token_file &&
            (!c->token || c->token_stale || uv_now(c->loop) - c->token_read_ms >= TOKEN_AGE_MS))
                read_token(c);
        return c->token;
}

void kube_client__refresh_token(struct kube_client *c) {
        c->token_stale = true;
}

void kube_client__reconnect(struct kube_client *c) {
        http_client_reconnect(c->http);
}

/* ---- errors ---- */

static enum err_kind kind_of_status(int status) {
        switch (status) {
        case 400:
        case 405:
        case 406:
        case 413:
        case 415:
        case 422:
                return ERR_INVALID;
        case 401:
        case 403:
                return ERR_DENIED;
        case 404:
                return ERR_NOT_FOUND;
        case 409:
                return ERR_CONFLICT;
        case 410:
                return ERR_GONE;
        default:
                return ERR_RETRY;
        }
}

void kube_client__status_error(yyjson_val *status, int code, struct err *e, int *ret_wait_s) {
        yyjson_val *wait = yyjson_obj_get(yyjson_obj_get(status, "details"), "retryAfterSeconds");
        const char *message = yyjson_get_str(yyjson_obj_get(status, "message"));
        const char *reason = yyjson_get_str(yyjson_obj_get(status, "reason"));

        if (code == 0)
                code = yyjson_get_int(yyjson_obj_get(status, "code"));
        if (yyjson_is_int(wait) && yyjson_get_int(wait) > 0)
                *ret_wait_s = yyjson_get_int(wait);
        if (message && *message)
                err_set(e, kind_of_status(code), code, "%s", message);
        else
                err_set(e, kind_of_status(code), code, "the server answered %d %s", code,
                        str_or(reason, "without a message"));
}

void kube_client__error(const struct http_response *r, struct err *e, int *ret_wait_s) {
        *ret_wait_s = r->retry_after_s;
        if (r->transport) {
                *e = *r->transport;
                err_wrap(e, "API server");
                return;
        }
        yyjson_doc *doc = yyjson_read(r->body, r->body_len, 0);
        if (doc && yyjson_is_obj(yyjson_doc_get_root(doc))) {
                int in_body = -1;
                kube_client__status_error(yyjson_doc_get_root(doc), r->status, e, &in_body);
                if (*ret_wait_s < 0)
                        *ret_wait_s = in_body;
        } else {
                struct str text = str_trim((struct str){ r->body, r->body_len > 200 ? 200 : r->body_len });
                err_set(e, kind_of_status(r->status), r->status, "the server answered %d: %.*s", r->status,
                        (int)text.n, text.p);
        }
        yyjson_doc_free(doc);
}

/* ---- calls ---- */

static void call_free(struct kube_call *call) {
        free(call->path);
        free(call->body);
        free(call);
}

static void call_unlink(struct kube_call *call) {
        struct kube_client *c = call->client;
        if (call->state == CALL_WAITING) {
                TAILQ_REMOVE(&c->waiting, call, entry);
                c->n_away -= call->away;
                call->away = false;
        } else if (call->state == CALL_IN_FLIGHT) {
                TAILQ_REMOVE(&c->in_flight, call, entry);
                c->n_in_flight--;
        }
        call->state = CALL_DONE;
}

static void call_wait(struct kube_call *call, uint64_t due_ms) {
        struct kube_client *c = call->client;
        struct kube_call *at;

        call->state = CALL_WAITING;
        call->due_ms = due_ms;
        TAILQ_FOREACH_REVERSE (at, &c->waiting, calls, entry)
                if (at->due_ms <= due_ms)
                        break;
        if (at)
                TAILQ_INSERT_AFTER(&c->waiting, at, call, entry);
        else
                TAILQ_INSERT_HEAD(&c->waiting, call, entry);
}

/* ---- the server is back ---- */

/* Transport errors carry libcurl's number, all others the HTTP status. */
bool kube_client__away(const struct err *e) {
        return e->kind == ERR_RETRY && e->code > 0 && e->code < 100;
}

void kube_client__hope(struct kube_client *c, struct kube__hope *h) {
        if (h->waits)
                return;
        h->waits = true;
        TAILQ_INSERT_TAIL(&c->hopes, h, entry);
}

void kube_client__unhope(struct kube_client *c, struct kube__hope *h) {
        if (!h->waits)
                return;
        h->waits = false;
        TAILQ_REMOVE(&c->hopes, h, entry);
}

void kube_client__heard(struct kube_client *c) {
        struct kube_call *call, *next;
        struct kube__hope *h;

        while ((h = TAILQ_FIRST(&c->hopes))) {
                kube_client__unhope(c, h);
                h->fn(h);
        }
        if (c->n_away == 0)
                return;
        for (call = TAILQ_FIRST(&c->waiting); call; call = next) {
                next = TAILQ_NEXT(call, entry);
                if (call->away) {
                        call_unlink(call);
                        call_wait(call, 0);
                }
        }
        pump(c);
}

static void call_finish(struct kube_call *call, yyjson_val *obj, const struct err *e) {
        struct kube_client *c = call->client;
        call_unlink(call);
        call->done(call->u, obj, e);
        call_free(call);
        pump(c);
}

/* True: the answer is a success, and *ret what it holds (NULL: nothing). */
static bool take_answer(const struct http_response *r, yyjson_doc **ret, struct err *e, int *ret_wait_s) {
        *ret = NULL;
        if (r->transport || r->status < 200 || r->status >= 300) {
                kube_client__error(r, e, ret_wait_s);
                return false;
        }
        *ret = r->body_len ? yyjson_read(r->body, r->body_len, 0) : NULL;
        if (!r->body_len || *ret)
                return true;
        *ret_wait_s = -1;
        err_set(e, ERR_RETRY, r->status, "the answer is no JSON");
        return false;
}

static void on_answer(void *u, const struct http_response *r) {
        struct kube_call *call = u;
        struct kube_client *c = call->client;
        yyjson_doc *doc;
        struct err e;
        int wait_s;

        call->http = NULL;
        if (!r->transport && r->status < 500)
                kube_client__heard(c);
        if (take_answer(r, &doc, &e, &wait_s)) {
                call_finish(call, doc ? yyjson_doc_get_root(doc) : NULL, NULL);
                yyjson_doc_free(doc);
                return;
        }
        if (r->status == 401 && c->token_file && !call->token_refreshed) {
                call->token_refreshed = true;
                c->token_stale = true;
                call_unlink(call);
                call_wait(call, now_ms(c));
                pump(c);
                return;
        }
        call->failed++;
        /* A write that was cut off may have been done: a repeated create then says "already exists", and all
         * our other verbs can be repeated. */
        if (e.kind != ERR_RETRY || call->failed >= call->attempts) {
                call_finish(call, NULL, &e);
                return;
        }
        uint64_t ms = backoff_ms(BACKOFF_MIN_MS, call->backoff_max_ms, call->failed);
        if (wait_s > 0) {
                uint64_t asked = (uint64_t)(wait_s > MAX_WAIT_S ? MAX_WAIT_S : wait_s) * 1000;
                ms = ms < asked ? asked + ms
                                : ms; /* never earlier than asked, and not all at the same moment */
        }
        log_v(2, "API request will be retried", kv_str("method", call->method), kv_str("path", call->path),
              kv_int("in_ms", ms), kv_err(&e));
        call_unlink(call);
        call_wait(call, now_ms(c) + ms);
        call->away = kube_client__away(&e);
        c->n_away += call->away;
        if (call->retry)
                call->retry(call->u, &e); /* it may be cancelled in there */
        pump(c);
}

static void call_send(struct kube_call *call) {
        struct kube_client *c = call->client;
        struct http_request r = {
                .method = call->method,
                .path = call->path,
                .content_type = call->content_type,
                .accept = call->accept,
                .body = call->body,
                .body_len = call->body_len,
                .timeout_ms = call->timeout_ms,
                .done = on_answer,
                .u = call,
        };
        call_unlink(call);
        TAILQ_INSERT_TAIL(&c->in_flight, call, entry);
        call->state = CALL_IN_FLIGHT;
        c->n_in_flight++;
        call->http = http_start(c->http, &r);
}

/* Milliseconds until a request may be sent; 0 takes a token. */
static uint64_t take_token(struct kube_client *c, uint64_t now) {
        c->tokens += (double)(now - c->filled_ms) * c->qps / 1000;
        c->filled_ms = now;
        if (c->tokens > c->burst)
                c->tokens = c->burst;
        if (c->tokens >= 1) {
                c->tokens -= 1;
                return 0;
        }
        return (uint64_t)((1 - c->tokens) * 1000 / c->qps) + 1;
}

static void on_timer(uv_timer_t *t);

/* Sends what is due and allowed, and sets the timer for the rest. Calls nobody back: refused calls wait for
 * the timer. */
static void pump(struct kube_client *c) {
        struct kube_call *call, *next;
        uint64_t now;

        if (c->closing)
                return;
        now = now_ms(c);
        uv_timer_stop(&c->timer);
        for (call = TAILQ_FIRST(&c->waiting); call; call = next) {
                next = TAILQ_NEXT(call, entry);
                if (call->refused) {
                        uv_timer_start(&c->timer, on_timer, 0, 0);
                        return;
                }
                if (call->due_ms > now) {
                        uv_timer_start(&c->timer, on_timer, call->due_ms - now, 0);
                        return;
                }
                if (c->n_in_flight >= MAX_IN_FLIGHT)
                        return; /* an answer pumps again */
                uint64_t ms = take_token(c, now);
                if (ms) {
                        uv_timer_start(&c->timer, on_timer, ms, 0);
                        return;
                }
                call_send(call);
        }
        if (c->resource_api && !TAILQ_EMPTY(&c->waiters))
                uv_timer_start(&c->timer, on_timer, 0, 0);
}

/* One by one from the front, because a callback may ask again, take others back or free the client. */
static void tell_waiters(struct kube_client *c, const struct err *e) {
        struct waiter *w;
        unsigned n = 0;

        TAILQ_FOREACH (w, &c->waiters, entry)
                n++;
        while (n-- && !c->closing && (w = TAILQ_FIRST(&c->waiters))) {
                struct waiter told = *w;
                TAILQ_REMOVE(&c->waiters, w, entry);
                free(w);
                told.fn(told.u, e);
        }
}

static void on_timer(uv_timer_t *t) {
        struct kube_client *c = CONTAINER(t, struct kube_client, timer);
        struct kube_call *call;

        while (!c->closing && (call = TAILQ_FIRST(&c->waiting)) && call->refused)
                call_finish(call, NULL, &call->refusal);
        if (!c->closing && c->resource_api)
                tell_waiters(c, NULL);
        pump(c);
}

static const struct {
        const char *method, *content_type;
} verbs[] = {
        [KUBE_GET] = { "GET", NULL },
        [KUBE_LIST] = { "GET", NULL },
        [KUBE_CREATE] = { "POST", "application/json" },
        [KUBE_APPLY] = { "PATCH", "application/apply-patch+yaml" },
        [KUBE_MERGE_PATCH] = { "PATCH", "application/merge-patch+json" },
        [KUBE_UPDATE] = { "PUT", "application/json" },
        [KUBE_DELETE] = { "DELETE", "application/json" },
};

static const char *accept_of(bool metadata_only, bool list) {
        if (!metadata_only)
                return "application/json";
        return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
                    : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
}

static const char *version_of(const struct kube_client *c, const struct kube_resource *res) {
        return res->version ? res->version : c->resource_api;
}

static int request_path(struct kube_client *c, const struct kube_request *r, char **ret, struct err *e) {
        struct buf b = BUF_INIT(KUBE_PATH_MAX);
        bool collection = r->verb == KUBE_LIST || r->verb == KUBE_CREATE;
        unsigned n = 0;
        int rc;

        if (!version_of(c, r->res))
                return err_set(e, ERR_RETRY, 0, "the version of %s is not known yet", r->res->group);
        /* Without a name a DELETE would mean the whole collection. */
        if (!collection && !r->name)
                return err_set(e, ERR_INVALID, 0, "%s without a name", r->res->kind);
        if (r->verb == KUBE_CREATE && r->res->namespaced && !r->ns)
                return err_set(e, ERR_INVALID, 0, "%s without a namespace", r->res->kind);
        rc = kube_path_add(&b, r->res, version_of(c, r->res), r->ns, collection ? NULL : r->name,
                           r->subresource, e);
        kube_path_query(&b, &n, "labelSelector", r->label_selector);
        kube_path_query(&b, &n, "fieldSelector", r->field_selector);
        kube_path_query(&b, &n, "fieldManager", r->manager);
        kube_path_query(&b, &n, "force", r->verb == KUBE_APPLY ? "true" : NULL);
        kube_path_query_raw(&b, &n, r->query);
        if (rc == 0 && b.failed)
                rc = err_set(e, ERR_INVALID, 0, "request path longer than %zu bytes", b.limit);
        if (rc == 0)
                *ret = buf_steal(&b);
        buf_done(&b);
        return rc;
}

static struct kube_call *call_new(struct kube_client *c, kube_done_fn *done, void *u) {
        struct kube_call *call = xnew(struct kube_call);
        BUG_ON(!done);
        call->client = c;
        call->attempts = DEFAULT_ATTEMPTS;
        call->backoff_max_ms = BACKOFF_MAX_MS;
        call->timeout_ms = DEFAULT_TIMEOUT_MS;
        call->done = done;
        call->u = u;
        return call;
}

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = call_new(c, r->done, r->u);

        call->method = verbs[r->verb].method;
        call->content_type = verbs[r->verb].content_type;
        call->accept = accept_of(r->metadata_only, r->verb == KUBE_LIST);
        if (r->attempts)
                call->attempts = r->attempts;
        if (r->timeout_ms)
                call->timeout_ms = r->timeout_ms;
        if (r->backoff_max_ms)
                call->backoff_max_ms = r->backoff_max_ms;
        call->retry = r->retry;
        if (r->body.n) {
                call->body = xstrndup(r->body.p, r->body.n);
                call->body_len = r->body.n;
        }
        call->refused = request_path(c, r, &call->path, &call->refusal) < 0;
        call_wait(call, call->refused ? 0 : now_ms(c));
        pump(c);
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call || call->state == CALL_DONE)
                return;
        struct kube_client *c = call->client;
        http_cancel(call->http);
        call_unlink(call);
        call_free(call);
        pump(c);
}

struct http_call *kube_client__watch(struct kube_client *c, const struct kube__watch *w, struct err *e) {
        struct buf b = BUF_INIT(KUBE_PATH_MAX);
        struct http_call *call = NULL;
        char seconds[16];
        unsigned n = 0;

        if (!version_of(c, w->res)) {
                err_set(e, ERR_RETRY, 0, "the version of %s is not known yet", w->res->group);
                return NULL;
        }
        if (kube_path_add(&b, w->res, version_of(c, w->res), w->ns, NULL, NULL, e) == 0) {
                snprintf(seconds, sizeof seconds, "%u", w->timeout_s);
                kube_path_query(&b, &n, "watch", "true");
                kube_path_query(&b, &n, "allowWatchBookmarks", "true");
                kube_path_query(&b, &n, "resourceVersion", w->resource_version);
                kube_path_query(&b, &n, "timeoutSeconds", seconds);
                kube_path_query(&b, &n, "labelSelector", w->label_selector);
                kube_path_query(&b, &n, "fieldSelector", w->field_selector);
                struct http_request r = {
                        .method = "GET",
                        .path = b.p,
                        .accept = accept_of(w->metadata_only, false),
                        .head = w->head,
                        .data = w->data,
                        .done = w->done,
                        .u = w->u,
                };
                if (b.failed)
                        err_set(e, ERR_INVALID, 0, "request path longer than %zu bytes", b.limit);
                else
                        call = http_start(c->http, &r);
        }
        buf_done(&b);
        return call;
}

/* ---- discovery ---- */

static const char *const resource_apis[] = { "v1", "v1beta2", "v1beta1" };

static bool group_offers(yyjson_val *group, const char *version) {
        size_t i, max;
        yyjson_val *v;
        yyjson_arr_foreach (yyjson_obj_get(group, "versions"), i, max, v)
                if (streq(yyjson_get_str(yyjson_obj_get(v, "version")), version))
                        return true;
        return false;
}

static void on_group(void *u, yyjson_val *obj, const struct err *e) {
        struct kube_client *c = u;
        struct err none;

        c->discovery = NULL;
        for (size_t i = 0; !e && i < ARRAY_LEN(resource_apis) && !c->resource_api; i++)
                if (group_offers(obj, resource_apis[i]))
                        c->resource_api = resource_apis[i];
        if ((e && e->kind == ERR_NOT_FOUND) || (!e && !c->resource_api)) {
                err_set(&none, ERR_INVALID, e ? e->code : 0,
                        "the server offers no version of %s that we know (v1, v1beta2, v1beta1)",
                        RESOURCE_API);
                e = &none;
        }
        tell_waiters(c, e);
}

void kube_discover_resource_api(struct kube_client *c, kube_ready_fn *fn, void *u) {
        struct waiter *w = xnew(struct waiter);

        w->fn = fn;
        w->u = u;
        TAILQ_INSERT_TAIL(&c->waiters, w, entry);
        if (!c->resource_api && !c->discovery) {
                c->discovery = call_new(c, on_group, c);
                c->discovery->method = "GET";
                c->discovery->path = xstrdup("/apis/" RESOURCE_API);
                c->discovery->attempts = UINT32_MAX;
                call_wait(c->discovery, now_ms(c));
        }
        pump(c);
}

void kube_undiscover_resource_api(struct kube_client *c, kube_ready_fn *fn, void *u) {
        struct waiter *w, *next;
        for (w = TAILQ_FIRST(&c->waiters); w; w = next) {
                next = TAILQ_NEXT(w, entry);
                if (w->fn == fn && w->u == u) {
                        TAILQ_REMOVE(&c->waiters, w, entry);
                        free(w);
                }
        }
}

const char *kube_resource_api(const struct kube_client *c) {
        return c->resource_api;
}

bool kube_client__knows(const struct kube_client *c, const struct kube_resource *res) {
        return version_of(c, res) != NULL;
}

/* ---- the client ---- */

int kube_client_new(uv_loop_t *loop, const struct kube_client_options *o, struct kube_client **ret,
                    struct err *e) {
        const struct kube_config *k = o->config;
        struct kube_client *c = xnew(struct kube_client);
        struct http_client_options h = {
                .base_url = k->server,
                .ca_pem = k->ca_pem,
                .cert_pem = k->cert_pem,
                .key_pem = k->key_pem,
                .tls_server_name = k->tls_server_name,
                .user_agent = o->user_agent,
                .token = k->token || k->token_file ? current_token : NULL,
                .token_u = c,
        };

        if (http_client_new(loop, &h, &c->http, e) < 0) {
                free(c);
                return -1;
        }
        c->loop = loop;
        c->token = k->token ? xstrdup(k->token) : NULL;
        c->token_file = k->token_file ? xstrdup(k->token_file) : NULL;
        c->token_stale = true;
        c->qps = o->qps > 0 ? o->qps : 1000;
        c->burst = o->burst ? o->burst : 2000;
        c->tokens = c->burst;
        c->filled_ms = uv_now(loop);
        TAILQ_INIT(&c->waiting);
        TAILQ_INIT(&c->in_flight);
        TAILQ_INIT(&c->waiters);
        TAILQ_INIT(&c->hopes);
        uv_timer_init(loop, &c->timer);
        *ret = c;
        return 0;
}

static void on_closed(uv_handle_t *h) {
        free(CONTAINER((uv_timer_t *)h, struct kube_client, timer));
}

void kube_client_free(struct kube_client *c) {
        struct kube_call *call;
        struct waiter *w;

        if (!c || c->closing)
                return;
        c->closing = true;
        http_client_free(c->http);
        while ((call = TAILQ_FIRST(&c->waiting)) || (call = TAILQ_FIRST(&c->in_flight))) {
                call_unlink(call);
                call_free(call);
        }
        while ((w = TAILQ_FIRST(&c->waiters))) {
                TAILQ_REMOVE(&c->waiters, w, entry);
                free(w);
        }
        if (c->token)
                explicit_bzero(c->token, strlen(c->token));
        free(c->token);
        free(c->token_file);
        uv_close((uv_handle_t *)&c->timer, on_closed);
}

uv_loop_t *kube_client_loop(const struct kube_client *c) {
        return c->loop;
}
