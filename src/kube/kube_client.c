/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_client.h"

#include <stdint.h>
#include <sys/queue.h>

#include "base/stderr.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/kube_client_priv.h"
#include "kube/kube_error.h"
#include "kube/kube_metrics.h"
#include "kube/kube_path.h"

enum {
        READ_TIMEOUT_MS = 30000,
        /* The API server waits for one admission webhook up to 30 s, and ends a request after a minute
         * (--request-timeout). A client that gives up before gets neither the result nor the error. */
        WRITE_TIMEOUT_MS = 65000,
        DEFAULT_ATTEMPTS = 5,
        BACKOFF_MIN_MS = 100,
        BACKOFF_MAX_MS = 10000,
};

/* The number of streams on one connection. More calls wait here, where each costs a few hundred bytes instead
 * of a transfer of libcurl. All of them together, and a watch for each informer, stay below the 100 that
 * libcurl puts on one connection. */
static const unsigned slots[] = {
        [KUBE_LANE_URGENT] = UINT_MAX,
        [KUBE_LANE_READ] = 32,
        [KUBE_LANE_WRITE] = 16,
        [KUBE_LANE_BULK] = KUBE_BULK_MAX,
};
#define N_LANES ARRAY_LEN(slots)

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

enum call_state { CALL_WAITING, CALL_IN_FLIGHT, CALL_DONE };

struct kube_call {
        TAILQ_ENTRY(kube_call) entry; /* in lane->waiting (by due time) or client->in_flight */
        struct kube_client *client;
        enum call_state state;
        struct kube_request r; /* with defaults filled in; ns, name, subresource and body are copies */
        struct arena *arena;   /* contains these copies and the call */
        uint64_t due_ms, sent_ms;
        unsigned failed;
        bool token_refreshed;
        bool refused; /* `refusal` is the result: the request cannot be made */
        struct kube__on_recovery recovery;
        struct err refusal;
        char *object;        /* the path after the version, which is chosen when the call is sent */
        char *path;          /* as sent last */
        const char *version; /* in it */
        struct http_call *http;
};

TAILQ_HEAD(recoveries, kube__on_recovery);
TAILQ_HEAD(calls, kube_call);
TAILQ_HEAD(room_list, kube_wants_room);

struct lane {
        struct calls waiting;
        unsigned n_waiting, n_in_flight;
};

struct kube_client {
        uv_loop_t *loop;
        struct http_client *http;
        struct loop_timer timer;
        struct lane lanes[N_LANES];
        struct calls in_flight;
        struct guard guard;

        double qps, burst, tokens; /* the token bucket */
        uint64_t filled_ms;

        struct kube_token token;

        unsigned version;   /* in use, of the resources that have several: an index of their list */
        bool none_reported; /* that the server serves none of them */

        struct recoveries recoveries;
        uint64_t answered_ms;

        struct room_list rooms;
        struct kube_metrics metrics; /* without families if there is no registry */

        unsigned bulk_failures;        /* in a row, while no call got an answer */
        uint64_t bulk_closed_until_ms; /* or until a call is answered */
        uint64_t bulk_asked_until_ms;  /* for which the server has asked */
};

static void kube_client_pump(struct kube_client *c);

/* ---- credentials ---- */

static const char *current_token(void *u) {
        struct kube_client *c = u;
        return kube_token_get(&c->token, uv_now(c->loop));
}

static void on_tls_changed(void *u, const struct err *e) {
        if (e)
                log_warn("the certificates for the API server have changed and cannot be used", kv_err(e));
        else
                log_info("the certificates for the API server have changed: new connections use them");
}

bool kube_client__refresh_token(struct kube_client *c) {
        c->token.stale = true;
        return c->token.file != NULL;
}

/* ---- calls ---- */

static void kube_client_call_free(struct kube_call *call) {
        free(call->object);
        free(call->path);
        arena_free(call->arena);
}

static void call_unlink(struct kube_call *call) {
        struct kube_client *c = call->client;
        struct lane *l = &c->lanes[call->r.lane];

        if (call->state == CALL_WAITING) {
                TAILQ_REMOVE(&l->waiting, call, entry);
                l->n_waiting--;
                kube_client__off_recovery(c, &call->recovery);
        } else if (call->state == CALL_IN_FLIGHT) {
                TAILQ_REMOVE(&c->in_flight, call, entry);
                l->n_in_flight--;
        }
        call->state = CALL_DONE;
}

static void call_wait(struct kube_call *call, uint64_t due_ms) {
        struct lane *l = &call->client->lanes[call->r.lane];
        struct kube_call *at;

        call->state = CALL_WAITING;
        call->due_ms = due_ms;
        l->n_waiting++;
        TAILQ_FOREACH_REVERSE (at, &l->waiting, calls, entry)
                if (at->due_ms <= due_ms)
                        break;
        if (at)
                TAILQ_INSERT_AFTER(&l->waiting, at, call, entry);
        else
                TAILQ_INSERT_HEAD(&l->waiting, call, entry);
}

/* ---- recovery of the server ---- */

void kube_client__on_recovery(struct kube_client *c, struct kube__on_recovery *h, bool away) {
        bool called = h->called;

        h->called = false;
        if (!away || called || h->waits)
                return;
        h->waits = true;
        TAILQ_INSERT_TAIL(&c->recoveries, h, entry);
}

void kube_client__off_recovery(struct kube_client *c, struct kube__on_recovery *h) {
        if (!h->waits)
                return;
        h->waits = false;
        TAILQ_REMOVE(&c->recoveries, h, entry);
}

static void kube_client_on_recovery(struct kube__on_recovery *h) {
        struct kube_call *call = CONTAINER(h, struct kube_call, recovery);
        call_unlink(call);
        call_wait(call, 0);
}

void kube_client__answered(struct kube_client *c) {
        struct kube__on_recovery *h;

        if (c->guard.dead)
                return;
        c->answered_ms = loop_now_ms(c->loop);
        c->bulk_failures = 0;
        c->bulk_closed_until_ms = 0;
        while ((h = TAILQ_FIRST(&c->recoveries))) {
                kube_client__off_recovery(c, h);
                h->called = true;
                h->fn(h);
        }
        kube_client_pump(c);
}

/* ---- answers ---- */

bool kube_answered_since(const struct kube_client *c, uint64_t ms) {
        return c->answered_ms >= ms;
}

static void kube_client_call_finish(struct kube_call *call, yyjson_val *obj, const struct err *e) {
        struct kube_client *c = call->client;
        call_unlink(call);
        call->r.done(call->r.u, obj, e);
        kube_client_call_free(call);
        kube_client_pump(c);
}

static uint64_t bulk_closed_until_ms(const struct kube_client *c) {
        return c->bulk_closed_until_ms > c->bulk_asked_until_ms ? c->bulk_closed_until_ms
                                                                : c->bulk_asked_until_ms;
}

/* Users of the bulk lane make bodies only when there is room, so the lane as a whole backs off: if no call
 * has been answered since the failed request was sent, or if the server asks for time. */
static void close_bulk(struct kube_client *c, const struct kube_call *call, const struct err *e, int wait_s) {
        bool away = kube_unreachable(e) && !kube_answered_since(c, call->sent_ms);

        if (call->r.lane != KUBE_LANE_BULK || e->kind != ERR_RETRY || !(away || wait_s > 0))
                return;
        uint64_t now = loop_now_ms(c->loop);
        if (now < bulk_closed_until_ms(c))
                return; /* it was sent before the lane closed, and failed for the same reason */
        c->bulk_failures += away;
        uint64_t ms = backoff_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, c->bulk_failures ? c->bulk_failures : 1);
        if (wait_s > 0)
                c->bulk_asked_until_ms = now + kube_wait_ms(ms, wait_s);
        else
                c->bulk_closed_until_ms = now + ms;
}

static void call_again(struct kube_call *call, const struct err *e, int wait_s) {
        struct kube_client *c = call->client;
        uint64_t ms = kube_wait_ms(backoff_ms(BACKOFF_MIN_MS, call->r.backoff_max_ms, call->failed), wait_s);

        log_v(2, "API request will be retried", kv_str("method", verbs[call->r.verb].method),
              kv_str("path", call->path), kv_int("in_ms", ms), kv_err(e));
        call_unlink(call);
        call_wait(call, loop_now_ms(c->loop) + ms);
        kube_client__on_recovery(c, &call->recovery, kube_unreachable(e));
        if (call->r.retry)
                call->r.retry(call->r.u, e); /* the callback may cancel it */
        kube_client_pump(c);
}

static void kube_client_leave(struct kube_client *c) {
        if (guard_leave(&c->guard))
                free(c);
}

/* The best version of resource.k8s.io. A fixed version never changes the version in use when it is not
 * served. */
static const struct kube_resource best_api = { "resource.k8s.io", "v1",  "resourceslices",
                                               "ResourceSlice",   false, NULL };

static void kube_client_answered(struct kube_call *call, const struct http_response *r) {
        struct kube_client *c = call->client;
        yyjson_doc *doc;
        struct err e;
        int wait_s;

        call->http = NULL;
        kube_metrics_answered(&c->metrics, call->r.verb, call->r.res, call->r.subresource,
                              r->transport ? 0 : r->status,
                              (double)(loop_now_ms(c->loop) - call->sent_ms) / 1000);
        if (kube_answer(r, &call->r, &doc, &e, &wait_s) == 0) {
                if (!call->r.res->version)
                        c->none_reported = false;
                if (call->r.res == &best_api)
                        c->version = 0;
                kube_client_call_finish(call, yyjson_doc_get_root(doc), NULL);
                yyjson_doc_free(doc);
                kube_client__answered(c);
                return;
        }
        if (!kube_unreachable(&e) && !r->transport && r->status < 500)
                kube_client__answered(c);
        if (r->status == 401 && c->token.file && !call->token_refreshed) {
                call->token_refreshed = true;
                c->token.stale = true;
                call_unlink(call);
                call_wait(call, loop_now_ms(c->loop));
                kube_client_pump(c);
                return;
        }
        kube_client__unserved(c, call->r.res, call->version, r);
        close_bulk(c, call, &e, wait_s);
        call->failed++;
        /* An interrupted write may have been done: a repeated create then returns "already exists" (the
         * caller of a create with generateName allows one attempt), and all our other verbs can be
         * repeated. */
        if (e.kind != ERR_RETRY || call->failed >= call->r.attempts)
                kube_client_call_finish(call, NULL, &e);
        else
                call_again(call, &e, wait_s);
}

static void kube_client_on_answer(void *u, const struct http_response *r) {
        struct kube_call *call = u;
        struct kube_client *c = call->client;

        guard_enter(&c->guard);
        kube_client_answered(call, r);
        kube_client_leave(c);
}

static const char *accept_of(bool metadata_only, bool list) {
        if (!metadata_only)
                return "application/json";
        return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
                    : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
}

static char *whole_path(const struct kube_client *c, const struct kube_resource *res, const char *object) {
        struct buf b = BUF_INIT(KUBE_PATH_MAX + 1024);

        kube_path_version(&b, res, kube_version(c, res));
        buf_adds(&b, object);
        return buf_steal(&b);
}

static void call_send(struct kube_call *call) {
        struct kube_client *c = call->client;
        free(call->path);
        call->path = whole_path(c, call->r.res, call->object);
        call->version = kube_version(c, call->r.res);
        struct http_request r = {
                .method = verbs[call->r.verb].method,
                .path = call->path,
                .content_type = verbs[call->r.verb].content_type,
                .accept = accept_of(call->r.metadata_only, call->r.verb == KUBE_LIST),
                .body = call->r.body.p,
                .body_len = call->r.body.n,
                .fresh = call->r.fresh,
                .large = call->r.verb == KUBE_LIST,
                .timeout_ms = call->r.timeout_ms,
                .done = kube_client_on_answer,
                .u = call,
        };
        call_unlink(call);
        TAILQ_INSERT_TAIL(&c->in_flight, call, entry);
        call->state = CALL_IN_FLIGHT;
        call->sent_ms = uv_now(c->loop);
        c->lanes[call->r.lane].n_in_flight++;
        call->http = http_start(c->http, &r);
}

/* ---- which call is next ---- */

static void fill_bucket(struct kube_client *c, uint64_t now) {
        c->tokens += (double)(now - c->filled_ms) * c->qps / 1000;
        c->filled_ms = now;
        if (c->tokens > c->burst)
                c->tokens = c->burst;
}

/* Milliseconds until the next token. */
static uint64_t token_in(const struct kube_client *c) {
        return c->tokens >= 1 ? 0 : (uint64_t)((1 - c->tokens) * 1000 / c->qps) + 1;
}

/* The next call to send, or NULL: then *ret_ms is when there may be one. Urgent calls come first, the others
 * in the order of their times. */
static struct kube_call *next_call(struct kube_client *c, uint64_t now, uint64_t *ret_ms) {
        struct kube_call *best = NULL;

        *ret_ms = UINT64_MAX;
        for (size_t i = KUBE_LANE_URGENT; i < N_LANES; i++) {
                struct lane *l = &c->lanes[i];
                struct kube_call *call = TAILQ_FIRST(&l->waiting);
                if (!call)
                        continue;
                if (call->refused || call->due_ms > now) {
                        uint64_t ms = call->refused ? 0 : call->due_ms - now;
                        *ret_ms = ms < *ret_ms ? ms : *ret_ms;
                } else if (i == KUBE_LANE_URGENT) {
                        return call;
                } else if (l->n_in_flight < slots[i] && (!best || call->due_ms < best->due_ms)) {
                        best = call;
                }
        }
        if (best && c->tokens < 1) {
                uint64_t ms = token_in(c);
                *ret_ms = ms < *ret_ms ? ms : *ret_ms;
                return NULL;
        }
        return best;
}

/* Milliseconds until there may be room for a waiting user; UINT64_MAX: the next answer decides. */
static uint64_t room_in(struct kube_client *c, uint64_t now) {
        const struct lane *l = &c->lanes[KUBE_LANE_BULK];

        if (TAILQ_EMPTY(&c->rooms))
                return UINT64_MAX;
        if (kube_room(c)) /* not 0: a user that asks again from inside would keep the loop in its timers */
                return 1;
        if (now < bulk_closed_until_ms(c))
                return bulk_closed_until_ms(c) - now;
        return l->n_in_flight + l->n_waiting < slots[KUBE_LANE_BULK] ? token_in(c) + 1 : UINT64_MAX;
}

/* Sends the calls that are due and allowed, and sets the timer for the rest. Calls no callbacks: the timer
 * does that. Each answer calls this again. */
static void kube_client_pump(struct kube_client *c) {
        struct kube_call *call;
        uint64_t now, ms, room;

        if (c->guard.dead)
                return;
        now = loop_now_ms(c->loop);
        fill_bucket(c, now);
        while ((call = next_call(c, now, &ms))) {
                if (call->r.lane != KUBE_LANE_URGENT)
                        c->tokens -= 1;
                call_send(call);
        }
        room = room_in(c, now);
        ms = room < ms ? room : ms;
        loop_timer_at(&c->timer, ms == UINT64_MAX ? UINT64_MAX : now + ms);
}

static void notify_room(struct kube_client *c) {
        struct kube_wants_room *r, *last = TAILQ_LAST(&c->rooms, room_list);
        bool end = !last;

        while (!c->guard.dead && !end && kube_room(c) && (r = TAILQ_FIRST(&c->rooms))) {
                end = r == last; /* users that asked again in the meantime have had their turn */
                kube_off_room(c, r);
                r->fn(r);
        }
}

static void kube_client_on_timer(void *u) {
        struct kube_client *c = u;
        struct kube_call *call;

        guard_enter(&c->guard);
        for (size_t i = 0; i < N_LANES; i++)
                while (!c->guard.dead && (call = TAILQ_FIRST(&c->lanes[i].waiting)) && call->refused)
                        kube_client_call_finish(call, NULL, &call->refusal);
        if (!c->guard.dead)
                notify_room(c);
        kube_client_pump(c);
        kube_client_leave(c);
}

/* ---- room in the bulk lane ---- */

/* How many of the lane's calls wait only for tokens. */
static unsigned n_ready(const struct kube_client *c, enum kube_lane lane, uint64_t now) {
        const struct lane *l = &c->lanes[lane];
        const struct kube_call *call = TAILQ_FIRST(&l->waiting);
        unsigned n = 0;

        for (; call && call->due_ms <= now && l->n_in_flight + n < slots[lane];
             call = TAILQ_NEXT(call, entry))
                n++;
        return n;
}

unsigned kube_room(struct kube_client *c) {
        const struct lane *l = &c->lanes[KUBE_LANE_BULK];
        unsigned used = l->n_in_flight + l->n_waiting, first;
        uint64_t now = loop_now_ms(c->loop);

        if (c->guard.dead || now < bulk_closed_until_ms(c) || used >= slots[KUBE_LANE_BULK])
                return 0;
        fill_bucket(c, now);
        first = n_ready(c, KUBE_LANE_READ, now) + n_ready(c, KUBE_LANE_WRITE, now);
        if (c->tokens < first + 1)
                return 0;
        unsigned tokens = (unsigned)c->tokens - first;
        return tokens < slots[KUBE_LANE_BULK] - used ? tokens : slots[KUBE_LANE_BULK] - used;
}

void kube_on_room(struct kube_client *c, struct kube_wants_room *r) {
        if (r->waits)
                return;
        r->waits = true;
        TAILQ_INSERT_TAIL(&c->rooms, r, entry);
        kube_client_pump(c);
}

void kube_off_room(struct kube_client *c, struct kube_wants_room *r) {
        if (!r->waits)
                return;
        r->waits = false;
        TAILQ_REMOVE(&c->rooms, r, entry);
}

/* ---- requests ---- */

static int object_path(const struct kube_client *c, const struct kube_request *r, char **ret, struct err *e) {
        struct buf b = BUF_INIT(KUBE_PATH_MAX);
        bool collection = r->verb == KUBE_LIST || (r->verb == KUBE_CREATE && !r->subresource);
        unsigned n = 0;
        int rc;

        /* Without a name a DELETE would mean the whole collection. */
        if (!collection && !r->name)
                return err_set(e, ERR_INVALID, 0, "%s without a name", r->res->kind);
        if (r->verb == KUBE_CREATE && r->res->namespaced && !r->ns)
                return err_set(e, ERR_INVALID, 0, "%s without a namespace", r->res->kind);
        rc = kube_path_object(&b, r->res, r->ns, collection ? NULL : r->name, r->subresource, e);
        kube_path_query(&b, &n, "labelSelector", r->label_selector);
        kube_path_query(&b, &n, "fieldSelector", r->field_selector);
        kube_path_query(&b, &n, "fieldManager", r->manager);
        kube_path_query(&b, &n, "force", r->verb == KUBE_APPLY ? "true" : NULL);
        if (r->query)
                buf_addf(&b, "%c%s", n ? '&' : '?', r->query);
        if (rc == 0 && b.failed)
                rc = err_set(e, ERR_INVALID, 0, "request path longer than %zu bytes", b.limit);
        if (rc == 0)
                *ret = buf_steal(&b);
        buf_done(&b);
        return rc;
}

static bool is_read(enum kube_verb verb) {
        return verb == KUBE_GET || verb == KUBE_LIST;
}

static enum kube_lane lane_of(const struct kube_request *r) {
        if (r->lane != KUBE_LANE_BY_VERB)
                return r->lane;
        return is_read(r->verb) ? KUBE_LANE_READ : KUBE_LANE_WRITE;
}

static struct kube_call *call_new(struct kube_client *c, const struct kube_request *r) {
        struct arena *a = arena_new(sizeof(struct kube_call) + r->body.n);
        struct kube_call *call = arena_alloc(a, sizeof *call);

        BUG_ON(!r->done);
        call->client = c;
        call->arena = a;
        call->r = *r;
        call->r.lane = lane_of(r);
        call->r.ns = arena_strdup_or_null(a, r->ns);
        call->r.name = arena_strdup_or_null(a, r->name);
        call->r.subresource = arena_strdup_or_null(a, r->subresource);
        call->r.body.p = r->body.n ? arena_strndup(a, r->body.p, r->body.n) : NULL;
        call->r.attempts = r->attempts ? r->attempts : DEFAULT_ATTEMPTS;
        if (!r->timeout_ms)
                call->r.timeout_ms = is_read(r->verb) ? READ_TIMEOUT_MS : WRITE_TIMEOUT_MS;
        call->r.backoff_max_ms = r->backoff_max_ms ? r->backoff_max_ms : BACKOFF_MAX_MS;
        call->recovery.fn = kube_client_on_recovery;
        return call;
}

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = call_new(c, r);

        call->refused = object_path(c, r, &call->object, &call->refusal) < 0;
        call_wait(call, call->refused ? 0 : loop_now_ms(c->loop));
        kube_client_pump(c);
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call || call->state == CALL_DONE)
                return;
        struct kube_client *c = call->client;
        http_cancel(call->http);
        call_unlink(call);
        kube_client_call_free(call);
        kube_client_pump(c);
}

struct http_call *kube_client__watch(struct kube_client *c, const struct kube_request *r, http_head_fn *head,
                                     http_data_fn *data, http_done_fn *done, struct err *e) {
        _cleanup_(freep) char *object = NULL, *path = NULL;

        if (object_path(c, r, &object, e) < 0)
                return NULL;
        path = whole_path(c, r->res, object);
        return http_start(c->http, &(struct http_request){
                                           .method = "GET",
                                           .path = path,
                                           .accept = accept_of(r->metadata_only, false),
                                           .head = head,
                                           .data = data,
                                           .done = done,
                                           .u = r->u,
                                   });
}

void kube_client__watched(struct kube_client *c, const struct kube_resource *res, int status) {
        kube_metrics_watched(&c->metrics, res, status);
}

/* ---- versions ---- */

const char *kube_version(const struct kube_client *c, const struct kube_resource *res) {
        return res->version ? res->version : res->versions[c->version];
}

static void report_no_version(struct kube_client *c, const struct kube_resource *res) {
        struct buf names = BUF_INIT(256);

        for (const char *const *v = res->versions; *v; v++)
                buf_addf(&names, "%s%s", v == res->versions ? "" : ", ", *v);
        log_error("the API server serves no known version of an API group: retrying. Enable the group there "
                  "(--runtime-config)",
                  kv_str("group", res->group), kv_str("versions", buf_str(&names)));
        buf_done(&names);
        c->none_reported = true;
}

/* Several requests may have used a version that is not served: the first answer decides. */
void kube_client__unserved(struct kube_client *c, const struct kube_resource *res, const char *version,
                           const struct http_response *r) {
        if (res->version || !streq(version, res->versions[c->version]) || !kube_error_unserved(r))
                return;
        if (res->versions[++c->version])
                return;
        c->version = 0;
        if (!c->none_reported)
                report_no_version(c, res);
}

const char *kube_resource_api(const struct kube_client *c) {
        return kube_version(c, &kube_resource_claims);
}

struct kube_call *kube_recheck_resource_api(struct kube_client *c, kube_done_fn *done, void *u) {
        BUG_ON(!streq(best_api.version, kube_resource_claims.versions[0]));
        return kube_start(c, &(struct kube_request){ .verb = KUBE_LIST,
                                                     .res = &best_api,
                                                     .query = "limit=1",
                                                     .attempts = 1,
                                                     .done = done,
                                                     .u = u });
}

/* ---- the client ---- */

int kube_client_new(uv_loop_t *loop, const struct kube_client_options *o, struct kube_client **ret,
                    struct err *e) {
        const struct kube_config *k = o->config;
        struct kube_client *c = xnew(struct kube_client);
        struct http_client_options h = {
                .base_url = k->server,
                .tls = { .ca_pem = k->ca_pem,
                         .cert_pem = k->cert_pem,
                         .key_pem = k->key_pem,
                         .ca_file = k->ca_file,
                         .cert_file = k->cert_file,
                         .key_file = k->key_file,
                         .changed = on_tls_changed },
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
        kube_token_init(&c->token, k->token, k->token_file);
        c->qps = o->qps > 0 ? o->qps : 1000;
        c->burst = o->burst ? o->burst : 2000;
        c->tokens = c->burst;
        c->filled_ms = uv_now(loop);
        for (size_t i = 0; i < N_LANES; i++)
                TAILQ_INIT(&c->lanes[i].waiting);
        TAILQ_INIT(&c->in_flight);
        TAILQ_INIT(&c->recoveries);
        TAILQ_INIT(&c->rooms);
        if (o->metrics)
                kube_metrics_init(&c->metrics, o);
        loop_timer_init(&c->timer, loop, kube_client_on_timer, c);
        *ret = c;
        return 0;
}

void kube_client_free(struct kube_client *c) {
        struct kube_call *call;

        if (!c || c->guard.dead)
                return;
        http_client_free(c->http);
        for (size_t i = 0; i < N_LANES; i++)
                while ((call = TAILQ_FIRST(&c->lanes[i].waiting))) {
                        call_unlink(call);
                        kube_client_call_free(call);
                }
        while ((call = TAILQ_FIRST(&c->in_flight))) {
                call_unlink(call);
                kube_client_call_free(call);
        }
        kube_token_done(&c->token);
        loop_timer_done(&c->timer);
        if (guard_free(&c->guard))
                free(c);
}

uv_loop_t *kube_client_loop(const struct kube_client *c) {
        return c->loop;
}

void kube_client_metrics(struct kube_client *c) {
        for (enum kube_lane i = KUBE_LANE_URGENT; i < N_LANES; i++)
                kube_metrics_lane(&c->metrics, i, c->lanes[i].n_waiting, c->lanes[i].n_in_flight);
}
