/* SPDX-License-Identifier: Apache-2.0 */
#include "world/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "kube/event_recorder.h"

enum { KINDS_MAX = 8, LIST_BYTES = 1 << 20 };

struct api api;

struct kube_call {
        TAILQ_ENTRY(kube_call) link;
        enum kube_verb verb;
        const struct kube_resource *res;
        char ns[64], name[100];
        char *body;        /* body of a patch; NULL: none */
        bool cached, ends; /* a list from the cache; fails after some attempts */
        kube_done_fn *done;
        kube_retry_fn *retry;
        void *u;
};
static TAILQ_HEAD(calls, kube_call) calls = TAILQ_HEAD_INITIALIZER(calls);

static struct gets {
        const struct kube_resource *res;
        unsigned n;
} gets[KINDS_MAX];

void api_begin(uv_loop_t *loop) {
        memset(&api, 0, sizeof api);
        memset(gets, 0, sizeof gets);
        api.loop = loop;
}

void api_end(void) {
        store_done(&api.store);
}

static unsigned *gets_of(const struct kube_resource *res) {
        struct gets *g = gets;
        while (g->res && g->res != res)
                assert_true(++g < gets + KINDS_MAX);
        g->res = res;
        return &g->n;
}

unsigned api_gets(const struct kube_resource *res) {
        return *gets_of(res);
}

/* ---- the client ---- */

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = xnew(struct kube_call);
        call->verb = r->verb;
        call->res = r->res;
        snprintf(call->ns, sizeof call->ns, "%s", str_or(r->ns, ""));
        snprintf(call->name, sizeof call->name, "%s", str_or(r->name, ""));
        call->cached = r->query && strstr(r->query, "resourceVersion=0");
        call->ends = r->attempts != UINT_MAX;
        call->done = r->done;
        call->retry = r->retry;
        call->u = r->u;
        TAILQ_INSERT_TAIL(&calls, call, link);
        api.requests++;
        if (r->verb == KUBE_MERGE_PATCH) {
                snprintf(api.patch, sizeof api.patch, "%.*s", (int)r->body.n, r->body.p);
                call->body = xstrndup(r->body.p, r->body.n);
        }
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call)
                return;
        TAILQ_REMOVE(&calls, call, link);
        free(call->body);
        free(call);
}

uv_loop_t *kube_client_loop(const struct kube_client *c) {
        return api.loop;
}

const char *kube_resource_api(const struct kube_client *c) {
        return "v1";
}

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        size_t n = strlen(api.events);
        va_list ap;
        n += (size_t)snprintf(api.events + n, sizeof api.events - n, "%s/%s %s: ", about->kind, about->name,
                              reason);
        va_start(ap, fmt);
        if (n < sizeof api.events)
                vsnprintf(api.events + n, sizeof api.events - n, fmt, ap);
        va_end(ap);
}

/* ---- the server ---- */

/* The request is removed from the queue first, because its callback may start others. */
static void end(struct kube_call *call, yyjson_val *answer, const struct err *e) {
        TAILQ_REMOVE(&calls, call, link);
        call->done(call->u, answer, e);
        free(call->body);
        free(call);
}

static void list(const struct kube_call *call, struct buf *out) {
        size_t n = 0;
        api.lists++;
        buf_adds(out, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
        for (const struct object *o = api.store.items; o < api.store.items + STORE_MAX; o++) {
                if (!o->json || o->res != call->res || (*call->ns && !streq(o->ns, call->ns)) ||
                    (call->cached && api.old_cache))
                        continue;
                buf_adds(out, n++ ? "," : "");
                buf_adds(out, o->json);
        }
        buf_adds(out, "]}");
}

static void answer(struct kube_call *call) {
        struct object *o = store_find(&api.store, call->res, call->ns, call->name);
        struct buf text = BUF_INIT(LIST_BYTES);
        struct err e;
        if (o && call->body && !store_patch(&api.store, o, call->body, false)) {
                err_set(&e, ERR_INVALID, 422, "metadata.uid: field is immutable");
                end(call, NULL, &e);
                return;
        }
        if (call->verb == KUBE_LIST)
                list(call, &text);
        else if (o)
                buf_adds(&text, o->json);
        *gets_of(call->res) += call->verb == KUBE_GET;
        yyjson_doc *doc = text.n ? store_read(text.p, text.n) : NULL;
        if (!doc)
                err_set(&e, ERR_NOT_FOUND, 404, "%s%s%s \"%s\" not found", call->res->plural,
                        *call->res->group ? "." : "", call->res->group, call->name);
        end(call, doc ? yyjson_doc_get_root(doc) : NULL, doc ? NULL : &e);
        yyjson_doc_free(doc);
        buf_done(&text);
}

/* Like the client: a request without a number of attempts stays. */
static bool refuse(void) {
        struct kube_call *call;
        struct err e;
        err_set(&e, ERR_RETRY, 503, "%s", api.refuses);
        TAILQ_FOREACH (call, &calls, link) {
                if (call->ends) {
                        end(call, NULL, &e);
                        return true;
                }
                if (call->retry)
                        call->retry(call->u, &e);
        }
        return false;
}

bool api_serve(void) {
        struct kube_call *call = TAILQ_FIRST(&calls);
        struct err e;
        if (api.refuses)
                return refuse();
        while (call && call->res == api.holds)
                call = TAILQ_NEXT(call, link);
        if (!call || api.down || api.hold)
                return false;
        if (api.fails_for && streq(call->name, api.fails_for)) {
                err_set(&e, api.fails_with, 0, "refused");
                end(call, NULL, &e);
        } else {
                answer(call);
        }
        return true;
}

void api_answer(bool fails, bool retry) {
        struct kube_call *call = TAILQ_LAST(&calls, calls);
        struct err e;
        err_set(&e, ERR_RETRY, 0, "the server is busy");
        assert_non_null(call);
        if (retry)
                call->retry(call->u, &e);
        else if (fails)
                end(call, NULL, &e);
        else
                answer(call);
}
