/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_informer.h"

#include <string.h>
#include <sys/queue.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/kube_client_priv.h"
#include "kube/kube_error.h"
#include "kube/kube_freshness.h"
#include "kube/kube_pages.h"
#include "kube/kube_path.h"
#include "kube/object_cache.h"
#include "kube/watch_stream.h"

enum {
        /* etcd accepts objects of 1.5 MiB. Go writes some bytes of them, such as `<`, as six bytes of JSON.
         */
        MAX_EVENT = 16 << 20,
        BACKOFF_MIN_MS = 200,
        BACKOFF_MAX_MS = 10000,
        WATCH_S = 450, /* +-25 %: then the server ends the watch, so that load moves between API servers */
        SILENCE_MS = 130000,
        HEAD_MS = 30000, /* the headers of a watch come at once from a healthy server */
        SHORT_MS = 1000, /* a watch that ends sooner counts as a failure */
        LONG_MS = 10000, /* a watch that lasted longer proves that the server works */
        REPORT_AFTER = 3,
};

/* A change to report. */
struct note {
        STAILQ_ENTRY(note) entry;
        const struct kube_object *old, *now;
};

struct kube_informer {
        struct kube_client *client;
        uv_loop_t *loop;
        struct kube_informer_options o;
        char *ns, *label_selector, *field_selector;
        struct object_cache *cache;
        STAILQ_HEAD(, note) notes;

        struct loop_turn turn;    /* begins, and reports changes from answers */
        struct loop_timer timer;  /* back-off while nothing is in progress; silence during a watch */
        struct loop_timer relist; /* while fresh.relist */
        struct guard guard;

        bool begun, synced;
        struct kube_freshness fresh;
        struct kube_pages *list;
        struct http_call *watch;
        struct watch_stream stream;
        bool token_refreshed; /* the last watch was answered 401 */
        bool headed;          /* the watch was accepted */
        const char *watch_version; /* of the API */
        uint64_t watch_since_ms, watch_asked_ms;
        char *rv; /* the version to watch from, if fresh.listed */
        bool tried_cache;

        unsigned failures;
        bool away; /* the last failure was a missing answer */
        struct kube__on_recovery recovery;
        enum err_kind reported; /* the kind and code that were last reported; ERR_NONE: no failure */
        int reported_code;
};

static void step(struct kube_informer *i);

static void kube_informer_destroy(struct kube_informer *i);

static void kube_informer_leave(struct kube_informer *i) {
        if (guard_leave(&i->guard))
                kube_informer_destroy(i);
}

/* ---- reports to the user ---- */

static void on_note(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct kube_informer *i = u;
        struct note *n = xnew(struct note);

        n->old = old;
        n->now = now;
        STAILQ_INSERT_TAIL(&i->notes, n, entry);
}

static void note_free(struct note *n) {
        kube_object_unref(n->old);
        kube_object_unref(n->now);
        free(n);
}

/* In the order of the changes. Called inside the guard. */
static void report_notes(struct kube_informer *i) {
        struct note *n;

        while (!i->guard.dead && (n = STAILQ_FIRST(&i->notes))) {
                STAILQ_REMOVE_HEAD(&i->notes, entry);
                if (i->o.changed)
                        i->o.changed(i->o.u, n->old, n->now);
                note_free(n);
        }
}

static void report_undecodable(struct kube_informer *i, const struct err *e) {
        if (i->o.undecodable)
                i->o.undecodable(i->o.u, i->o.res, e);
        else
                log_v(2, "skipped an object", kv_str("resource", i->o.res->plural), kv_err(e));
}

static void report_failing(struct kube_informer *i, const struct err *e) {
        if (e->kind == i->reported && e->code == i->reported_code)
                return;
        if (e->kind == ERR_RETRY && i->failures < REPORT_AFTER)
                return;
        i->reported = e->kind;
        i->reported_code = e->code;
        if (i->o.failing)
                i->o.failing(i->o.u, i->o.res, e);
}

static void report_recovery(struct kube_informer *i) {
        bool was = i->reported != ERR_NONE;
        i->reported = ERR_NONE;
        i->reported_code = 0;
        if (was && i->o.failing)
                i->o.failing(i->o.u, i->o.res, NULL);
}

/* The callback may free the informer: call this inside the guard. */
static void informer_observe(struct kube_informer *i, const struct kube_observation *o) {
        bool was = i->fresh.current;

        i->fresh = kube_freshness_after(&i->fresh, o);
        if (!i->fresh.relist)
                loop_timer_stop(&i->relist);
        if (i->fresh.current != was && i->o.current)
                i->o.current(i->o.u, i->fresh.current);
}

static void informer_observe_sign(struct kube_informer *i, enum kube_sign sign) {
        informer_observe(i, &(struct kube_observation){ .sign = sign });
}

static void kube_informer_take(struct kube_informer *i, yyjson_val *object, enum cache_source source) {
        struct err e;
        bool known;
        if (object_cache_take(i->cache, object, source, &known, &e) < 0 && !known)
                report_undecodable(i, &e);
        if (source != CACHE_ANSWER)
                report_notes(i);
}

/* ---- after an end ---- */

/* Called inside the guard. */
static void kube_informer_fail(struct kube_informer *i, enum kube_sign sign, const struct err *e,
                               int wait_s) {
        uint64_t ms;

        /* A server that has just started refuses all requests for a moment, because it has not loaded the
         * roles yet: that counts as the first failure of another kind. */
        if (i->away && !kube_unreachable(e))
                i->failures = 0;
        i->away = kube_unreachable(e);
        i->failures++;
        ms = kube_wait_ms(backoff_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, i->failures), wait_s);
        log_v(2, "watch will be retried", kv_str("resource", i->o.res->plural), kv_int("in_ms", ms),
              kv_err(e));
        informer_observe_sign(i, sign);
        if (!i->guard.dead)
                report_failing(i, e);
        if (i->guard.dead)
                return;
        loop_timer_start(&i->timer, ms);
        kube_client__on_recovery(i->client, &i->recovery, i->away || (wait_s > 0 && e->code >= 500));
}

static void kube_informer_on_recovery(struct kube__on_recovery *h) {
        loop_timer_start(&CONTAINER(h, struct kube_informer, recovery)->timer, 0);
}

/* The server no longer has the history since our version. The first time in a row it lists at once. Inside
 * the guard. */
static void list_again(struct kube_informer *i) {
        informer_observe_sign(i, KUBE_HISTORY_GONE);
        if (!i->guard.dead)
                loop_timer_start(&i->timer,
                                 i->failures++ ? backoff_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, i->failures) : 0);
}

/* ---- list ---- */

/* Called inside the guard. */
static void end_list(struct kube_informer *i, const char *rv) {
        free(i->rv);
        i->rv = xstrdup(rv);
        informer_observe(i, &(struct kube_observation){ .sign = KUBE_LIST_ENDED,
                                                        .now_ms = loop_now_ms(i->loop),
                                                        .one_page = kube_pages_short(i->list),
                                                        .interrupted = kube_pages_interrupted(i->list) });
        object_cache_end_list(i->cache, rv);
        report_notes(i);
        if (i->guard.dead)
                return;
        report_recovery(i);
        if (!i->guard.dead && !i->synced) {
                i->synced = true;
                if (i->o.synced)
                        i->o.synced(i->o.u);
        }
        if (!i->guard.dead)
                step(i);
}

static void take_page(struct kube_informer *i, yyjson_val *list, bool last) {
        const char *rv = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(list, "metadata"), "resourceVersion"));
        yyjson_val *item;
        size_t n, max;

        object_cache_list_version(i->cache, rv);
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), n, max, item) {
                kube_informer_take(i, item, CACHE_LIST);
                if (i->guard.dead)
                        return;
        }
        if (last)
                end_list(i, rv);
}

static void kube_informer_on_page(void *u, yyjson_val *list, bool last, const struct err *e) {
        struct kube_informer *i = u;

        guard_enter(&i->guard);
        if (!e)
                take_page(i, list, last);
        else if (e->kind == ERR_GONE)
                list_again(i); /* the list took longer than the server keeps its history */
        else
                kube_informer_fail(i, KUBE_REQUEST_FAILED, e, -1);
        kube_informer_leave(i);
}

static void begin_list(struct kube_informer *i) {
        bool from_cache = i->o.first_from_cache && !i->synced && !i->tried_cache;

        i->tried_cache = true;
        informer_observe(
                i, &(struct kube_observation){ .sign = KUBE_LIST_BEGAN, .now_ms = loop_now_ms(i->loop) });
        object_cache_begin_list(i->cache);
        kube_pages_start(i->list, from_cache);
}

/* ---- watch ---- */

/* Returns false when the stream must not be read any further. */
static bool kube_informer_on_event(void *u, enum watch_type type, yyjson_val *object) {
        struct kube_informer *i = u;
        const char *rv =
                yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "resourceVersion"));
        struct err e;
        int wait_s = -1;

        if (type == WATCH_ERROR) {
                http_cancel(TAKE(i->watch));
                kube_error_event(object, &e, &wait_s);
                if (e.kind == ERR_GONE) {
                        list_again(i);
                } else {
                        kube_informer_fail(i, KUBE_ERROR_EVENT, &e, wait_s);
                }
                return false;
        }

        i->failures = 0;
        informer_observe_sign(i, KUBE_WATCH_EVENT);
        report_notes(i); /* changes from earlier answers come first */
        if (!i->guard.dead && (type == WATCH_ADDED || type == WATCH_MODIFIED))
                kube_informer_take(i, object, CACHE_EVENT);
        else if (!i->guard.dead && type == WATCH_DELETED)
                object_cache_delete(i->cache, object);
        if (!i->guard.dead && rv) {
                free(i->rv);
                i->rv = xstrdup(rv);
                object_cache_reached(i->cache, rv);
        }
        report_notes(i);
        return !i->guard.dead;
}

/* Inside the guard. */
static void end_watch(struct kube_informer *i) {
        http_cancel(TAKE(i->watch));
        step(i);
}

static void on_relist(void *u) {
        struct kube_informer *i = u;

        guard_enter(&i->guard);
        informer_observe_sign(i, KUBE_RELIST_DUE);
        end_watch(i);
        kube_informer_leave(i);
}

static void on_head(void *u, const char *content_type) {
        struct kube_informer *i = u;
        struct err e;

        guard_enter(&i->guard);
        if (str_starts(content_type, "application/json")) {
                i->headed = true;
                i->token_refreshed = false;
                kube_client__watched(i->client, i->o.res, 200);
                kube_client__answered(i->client);
                loop_timer_start(&i->timer, i->o.silence_ms);
                report_recovery(i);
                if (!i->guard.dead)
                        informer_observe(
                                i, &(struct kube_observation){ .sign = KUBE_WATCH_ACCEPTED,
                                                               .now_ms = loop_now_ms(i->loop),
                                                               .urgent = i->o.current,
                                                               .relist_ms = backoff_spread(KUBE_RELIST_MS) });
                if (!i->guard.dead && i->fresh.relist)
                        loop_timer_at(&i->relist, i->fresh.relist_at_ms);
        } else {
                http_cancel(TAKE(i->watch));
                kube_client__watched(i->client, i->o.res, 0); /* there was no answer */
                kube_error_page(&e, content_type);
                kube_informer_fail(i, KUBE_REQUEST_FAILED, &e, -1);
        }
        kube_informer_leave(i);
}

static void kube_informer_on_data(void *u, const char *p, size_t n) {
        struct kube_informer *i = u;
        struct err e;

        guard_enter(&i->guard);
        loop_timer_start(&i->timer, i->o.silence_ms);
        if (watch_stream_feed(&i->stream, p, n, &e) < 0) {
                http_cancel(TAKE(i->watch));
                kube_informer_fail(i, KUBE_WATCH_UNREADABLE, &e, -1);
        }
        kube_informer_leave(i);
}

static void on_watch_end(void *u, const struct http_response *r) {
        struct kube_informer *i = u;
        uint64_t lasted = uv_now(i->loop) - i->watch_since_ms;
        struct err e;
        int wait_s = -1;

        guard_enter(&i->guard);
        i->watch = NULL;
        loop_timer_stop(&i->timer);
        if (lasted >= LONG_MS && i->headed)
                i->failures = 0;
        if (!i->headed)
                kube_client__watched(i->client, i->o.res, r->transport ? 0 : r->status);
        if (r->transport || r->status < 200 || r->status >= 300) {
                kube_error_watch(r, i->o.res, &e, &wait_s);
                kube_client__unserved(i->client, i->o.res, i->watch_version, r);
                bool refreshed = i->token_refreshed;
                i->token_refreshed = r->status == 401 && kube_client__refresh_token(i->client);
                if (e.kind == ERR_GONE)
                        list_again(i);
                else if (i->token_refreshed && !refreshed)
                        step(i); /* with another token, as calls do; not reported */
                else
                        kube_informer_fail(i, KUBE_REQUEST_FAILED, &e, wait_s);
        } else if (lasted < SHORT_MS) {
                err_set(&e, ERR_RETRY, 0, "the server ended the watch at once");
                kube_informer_fail(i, KUBE_REQUEST_FAILED, &e, -1);
        } else {
                informer_observe(i, &(struct kube_observation){ .sign = KUBE_WATCH_ENDED,
                                                                .lasted_ms = lasted,
                                                                .asked_ms = i->watch_asked_ms });
                if (!i->guard.dead)
                        step(i);
        }
        kube_informer_leave(i);
}

static void begin_watch(struct kube_informer *i) {
        struct err e;
        unsigned head_ms = i->o.silence_ms < HEAD_MS ? i->o.silence_ms : HEAD_MS, n = 1,
                 seconds = backoff_spread(WATCH_S);
        struct buf query = BUF_INIT(KUBE_PATH_MAX);

        watch_stream_reset(&i->stream);
        i->headed = false;
        i->watch_version = kube_version(i->client, i->o.res);
        buf_adds(&query, "watch=true&allowWatchBookmarks=true");
        kube_path_query(&query, &n, "resourceVersion", i->rv);
        buf_addf(&query, "&timeoutSeconds=%u", seconds);
        kube_path_query(&query, &n, "labelSelector", i->label_selector);
        kube_path_query(&query, &n, "fieldSelector", i->field_selector);
        struct kube_request r = {
                .verb = KUBE_LIST,
                .res = i->o.res,
                .ns = i->ns,
                .query = buf_str(&query),
                .metadata_only = i->o.metadata_only || i->o.inherit,
                .u = i,
        };
        if (query.failed)
                err_set(&e, ERR_INVALID, 0, "request path longer than %zu bytes", query.limit);
        else
                i->watch =
                        kube_client__watch(i->client, &r, on_head, kube_informer_on_data, on_watch_end, &e);
        buf_done(&query);
        if (!i->watch) {
                kube_informer_fail(i, KUBE_REQUEST_FAILED, &e, -1);
                return;
        }
        loop_timer_start(&i->timer, head_ms);
        i->watch_since_ms = uv_now(i->loop);
        i->watch_asked_ms = 1000 * (uint64_t)seconds;
}

/* ---- the next step ---- */

/* Nothing is in progress: begins what is needed next. Called inside the guard. */
static void step(struct kube_informer *i) {
        loop_timer_stop(&i->timer);
        loop_timer_stop(&i->relist);
        kube_client__off_recovery(i->client, &i->recovery);
        if (i->fresh.listed)
                begin_watch(i);
        else
                begin_list(i);
}

static void kube_informer_on_timer(void *u) {
        struct kube_informer *i = u;
        struct err e;

        guard_enter(&i->guard);
        if (!i->watch) {
                step(i);
        } else {
                if (i->headed) {
                        informer_observe_sign(i, KUBE_WATCH_SILENT);
                        if (!i->guard.dead)
                                end_watch(i);
                } else {
                        http_give_up(TAKE(i->watch));
                        err_set(&e, ERR_RETRY, 0, "the server does not answer");
                        kube_informer_fail(i, KUBE_REQUEST_FAILED, &e, -1);
                }
        }
        kube_informer_leave(i);
}

static void kube_informer_on_turn(void *u) {
        struct kube_informer *i = u;

        guard_enter(&i->guard);
        if (!i->begun) {
                i->begun = true;
                step(i);
        }
        report_notes(i);
        kube_informer_leave(i);
}

/* ---- the informer ---- */

struct kube_informer *kube_informer_new(struct kube_client *c, const struct kube_informer_options *o) {
        struct kube_informer *i = xnew(struct kube_informer);

        i->client = c;
        i->loop = kube_client_loop(c);
        i->o = *o;
        i->o.silence_ms = o->silence_ms ? o->silence_ms : SILENCE_MS;
        i->ns = xstrdup_or_null(o->ns);
        i->label_selector = xstrdup_or_null(o->label_selector);
        i->field_selector = o->name ? xasprintf("metadata.name=%s", o->name)
                                    : xstrdup_or_null(o->field_selector);
        i->cache = object_cache_new(o, on_note, i);
        i->list = kube_pages_new(c, &(struct kube_pages_options){
                                            .res = o->res,
                                            .ns = i->ns,
                                            .label_selector = i->label_selector,
                                            .field_selector = i->field_selector,
                                            .metadata_only = o->metadata_only,
                                            .limit = o->limit,
                                            .page = kube_informer_on_page,
                                            .u = i,
                                    });
        STAILQ_INIT(&i->notes);
        watch_stream_init(&i->stream, MAX_EVENT, kube_informer_on_event, i);
        i->recovery.fn = kube_informer_on_recovery;
        loop_turn_init(&i->turn, i->loop, kube_informer_on_turn, i);
        loop_timer_init(&i->timer, i->loop, kube_informer_on_timer, i);
        loop_timer_init(&i->relist, i->loop, on_relist, i);
        loop_turn_start(&i->turn);
        return i;
}

static void kube_informer_destroy(struct kube_informer *i) {
        struct note *n;

        while ((n = STAILQ_FIRST(&i->notes))) {
                STAILQ_REMOVE_HEAD(&i->notes, entry);
                note_free(n);
        }
        object_cache_free(i->cache);
        watch_stream_done(&i->stream);
        free(i->ns);
        free(i->label_selector);
        free(i->field_selector);
        free(i->rv);
        free(i);
}

void kube_informer_free(struct kube_informer *i) {
        if (!i || i->guard.dead)
                return;
        loop_turn_done(&i->turn);
        loop_timer_done(&i->timer);
        loop_timer_done(&i->relist);
        kube_pages_free(TAKE(i->list));
        http_cancel(TAKE(i->watch));
        kube_client__off_recovery(i->client, &i->recovery);
        if (guard_free(&i->guard))
                kube_informer_destroy(i);
}

bool kube_informer_synced(const struct kube_informer *i) {
        return i->synced;
}

bool kube_informer_current(const struct kube_informer *i) {
        return i->fresh.current;
}

size_t kube_informer_count(const struct kube_informer *i) {
        return object_cache_count(i->cache);
}

const struct kube_object *kube_informer_get(const struct kube_informer *i, const char *ns, const char *name) {
        return object_cache_get(i->cache, ns, name);
}

void kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u) {
        object_cache_each(i->cache, fn, u);
}

void kube_informer_each_at(const struct kube_informer *i, unsigned index, const char *key, kube_visit_fn *fn,
                           void *u) {
        object_cache_each_at(i->cache, index, key, fn, u);
}

void kube_informer_each_with(const struct kube_informer *i, const char *key, kube_visit_fn *fn, void *u) {
        object_cache_each_with(i->cache, key, fn, u);
}

const struct kube_object *kube_informer_first_at(const struct kube_informer *i, unsigned index,
                                                 const char *key) {
        return object_cache_first_at(i->cache, index, key);
}

void kube_informer_relist(struct kube_informer *i) {
        if (i->guard.dead || !i->fresh.listed)
                return; /* it will list in any case */
        guard_enter(&i->guard);
        informer_observe_sign(i, KUBE_HISTORY_CHANGED);
        if (!i->guard.dead && i->watch)
                end_watch(i);
        kube_informer_leave(i);
}

static void report_later(struct kube_informer *i) {
        if (!i->guard.dead && !STAILQ_EMPTY(&i->notes))
                loop_turn_start(&i->turn);
}

void kube_informer_answer(struct kube_informer *i, yyjson_val *obj) {
        /* The answer to a delete may be a Status. */
        if (!yyjson_is_obj(obj) || !yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "name"))
                return;
        guard_enter(&i->guard);
        kube_informer_take(i, obj, CACHE_ANSWER);
        report_later(i);
        kube_informer_leave(i);
}

void kube_informer_answer_deleted(struct kube_informer *i, const char *ns, const char *name,
                                  yyjson_val *answer) {
        yyjson_val *details = yyjson_obj_get(answer, "details"), *meta = yyjson_obj_get(answer, "metadata");
        const char *uid = yyjson_get_str(yyjson_obj_get(details, "uid"));
        if (!uid)
                uid = yyjson_get_str(yyjson_obj_get(meta, "uid"));
        object_cache_delete_uid(i->cache, ns, name, uid);
        report_later(i);
}

void kube_informer_notify(struct kube_informer *i) {
        if (!i || STAILQ_EMPTY(&i->notes))
                return;
        guard_enter(&i->guard);
        report_notes(i);
        kube_informer_leave(i);
}
