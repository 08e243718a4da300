/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/writes.h"

#include <sys/queue.h>
#include <uthash.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "kube/backoff.h"
#include "kube/kube_metrics.h"

enum {
        BACKOFF_MIN_MS = 50,
        BACKOFF_MAX_MS = 30000,
        BACKOFF_AWAY_MS = 5000, /* of an object; the client's lane has its own back-off */
        SHOWN_AFTER = 3,        /* failures in a row */
        SHOWN_AFTER_AWAY_MS = 60000,
        SHOWN_AFTER_DENIED_MS = 15000,
        HANGS_MS = 60000, /* without an answer */
        HEARD_MS = 30000, /* after this part of it, the API server has still answered other requests */
        REMEMBERED_MS = WRITES_INTERVAL_MAX_MS + 2000,
        CLASS_MAX = KUBE_BULK_MAX - WRITES_RESERVED, /* urgent writes in flight, and others in flight */
};

/* An object that is being written, was written lately, or cannot be written. */
struct target {
        UT_hash_handle hh;
        LIST_ENTRY(target) of_requester;
        struct writes *w;
        struct kube_call *call; /* not NULL: in flight */
        struct kube_informer *cache;
        writes_done_fn *done;
        void *u;
        enum kube_verb verb;
        const struct kube_resource *res;
        char *requester, *ns, *name;
        bool subresource, urgent;
        char *answered; /* the version of the object after the last write; NULL: unknown */
        uint64_t sent;  /* the hash of the last body */
        uint64_t sent_ms;
        bool undone; /* the last write changed nothing, so only another body may change something */
        char *error; /* of the last attempt, NULL when it succeeded or only lost a race */
        enum err_kind error_kind;
        unsigned failures, away;
        uint64_t failing_since_ms;
        uint64_t pass;            /* the requester's pass in which it was tried last */
        uint64_t first_wanted_ms; /* when the request that waits now was first tried; 0: none waits */
        uint64_t last_ms;         /* when the last write succeeded */
        uint64_t not_before_ms;   /* the end of the back-off */
        int64_t generation;
        char key[];
};

struct requester {
        UT_hash_handle hh;
        LIST_HEAD(, target) targets;
        uint64_t pass; /* the number of its passes */
        bool reported; /* whether the last call of writes_options.error_changed was about an error */
        bool urgent;
        bool waits; /* it waits for room, in writes->waiting */
        TAILQ_ENTRY(requester) waiting;
        uint64_t invited; /* the round in which its key was queued because there was room; 0: none */
        bool arrived;     /* the key has had its turn since */
        char key[];
};

TAILQ_HEAD(requesters, requester);

struct writes {
        struct writes_options o;
        struct target *targets;
        struct requester *requesters;
        size_t failing; /* targets with an error */
        struct kube_wants_room room;
        uint64_t round;
        /* [true]: of urgent requesters, [false]: of the others. */
        unsigned in_flight[2];
        struct requesters waiting[2]; /* requesters that found no room, in the order of their requests */
        unsigned n_invited[2];        /* in this round, and not arrived yet */
};

static void on_room(struct kube_wants_room *r);

struct writes *writes_new(const struct writes_options *o) {
        struct writes *w = xnew(struct writes);
        BUG_ON(!o->client || !o->queue || !o->manager);
        w->o = *o;
        w->room.fn = on_room;
        w->round = 1;
        TAILQ_INIT(&w->waiting[false]);
        TAILQ_INIT(&w->waiting[true]);
        w->o.away_ms = o->away_ms ? o->away_ms : SHOWN_AFTER_AWAY_MS;
        w->o.denied_ms = o->denied_ms ? o->denied_ms : SHOWN_AFTER_DENIED_MS;
        return w;
}

static struct requester *find_requester(const struct writes *w, const char *key) {
        struct requester *r;
        HASH_FIND_STR(w->requesters, key, r);
        return r;
}

/* ---- room ---- */

static bool is_invited(const struct writes *w, const struct requester *r) {
        return r->invited == w->round;
}

static void arrive(struct writes *w, struct requester *r) {
        if (is_invited(w, r) && !r->arrived) {
                r->arrived = true;
                w->n_invited[r->urgent]--;
        }
}

static bool has_place(const struct writes *w, bool urgent) {
        return w->in_flight[urgent] < CLASS_MAX;
}

/* Whether there is room for one more request than those of the invited requesters. */
static bool has_more_room(const struct writes *w, bool urgent) {
        return kube_room(w->o.client) > w->n_invited[false] + w->n_invited[true] &&
               w->in_flight[urgent] + w->n_invited[urgent] < CLASS_MAX;
}

static void invite(struct writes *w, struct requester *r) {
        TAILQ_REMOVE(&w->waiting[r->urgent], r, waiting);
        r->waits = false;
        r->invited = w->round;
        r->arrived = false;
        w->n_invited[r->urgent]++;
        work_queue_add(w->o.queue, r->key);
}

/* Whether requesters of the class wait only for room in the client. */
static bool lacks_room(const struct writes *w, bool urgent) {
        return !TAILQ_EMPTY(&w->waiting[urgent]) && has_place(w, urgent);
}

/* Waits for room in the client. While requesters lack only a place, the client would call in each turn of the
 * loop. The end of a write then calls this again. */
static void await_room(struct writes *w) {
        if (lacks_room(w, true) || lacks_room(w, false))
                kube_on_room(w->o.client, &w->room);
}

/* Queues as many waiting requesters as there is room for, in the order of their requests. */
static void on_room(struct kube_wants_room *room) {
        struct writes *w = CONTAINER(room, struct writes, room);
        struct requester *r;

        if (work_queue_depth(w->o.queue) == 0) { /* all invited requesters have had their turn */
                w->round++;
                w->n_invited[false] = w->n_invited[true] = 0;
        }
        while ((r = TAILQ_FIRST(&w->waiting[true])) && has_more_room(w, true))
                invite(w, r);
        while ((r = TAILQ_FIRST(&w->waiting[false])) && has_more_room(w, false))
                invite(w, r);
        /* Ask again even if there is room, but only for the invited ones: then the next call comes in the
         * next turn of the loop, which the work queue needs anyway. */
        await_room(w);
}

/* Whether a write may start now. If not, the requester is queued again when it is its turn. */
static bool writes_may_write(struct writes *w, struct requester *r) {
        bool first = is_invited(w, r);

        arrive(w, r);
        if (first ? kube_room(w->o.client) && has_place(w, r->urgent)
                  : TAILQ_EMPTY(&w->waiting[r->urgent]) && (r->urgent || !lacks_room(w, true)) &&
                            has_more_room(w, r->urgent))
                return true;
        r->invited = 0;
        if (!r->waits) {
                r->waits = true;
                TAILQ_INSERT_TAIL(&w->waiting[r->urgent], r, waiting);
        }
        await_room(w);
        return false;
}

/* ---- targets ---- */

static void drop_if_empty(struct writes *w, struct requester *r) {
        if (!LIST_EMPTY(&r->targets))
                return;
        arrive(w, r);
        if (r->waits)
                TAILQ_REMOVE(&w->waiting[r->urgent], r, waiting);
        HASH_DEL(w->requesters, r);
        free(r);
}

static void set_error(struct target *t, char *error) {
        t->w->failing += (error != NULL) - (size_t)(t->error != NULL);
        free(t->error);
        t->error = error;
}

static void writes_drop(struct target *t) {
        struct writes *w = t->w;
        HASH_DEL(w->targets, t);
        LIST_REMOVE(t, of_requester);
        if (t->call) {
                kube_cancel(t->call);
                w->in_flight[t->urgent]--;
        }
        free(t->requester);
        free(t->ns);
        free(t->name);
        free(t->answered);
        set_error(t, NULL);
        free(t);
}

void writes_free(struct writes *w) {
        if (!w)
                return;
        kube_off_room(w->o.client, &w->room);
        for (struct target *t = w->targets, *next; t; t = next) {
                next = t->hh.next;
                writes_drop(t);
        }
        for (struct requester *r = w->requesters, *next; r; r = next) {
                next = r->hh.next;
                drop_if_empty(w, r);
        }
        free(w);
}

/* Two ComputeDomains may want the same claim template; each has its own failures. A name may be longer than
 * the API server accepts, because a ComputeDomain of an earlier definition may contain such a name. */
static char *make_key(const char *requester, const struct kube_resource *res, const char *ns,
                      const char *name, const char *subresource) {
        return xasprintf("%s|%s/%s/%s/%s", requester, res->plural, str_or(ns, ""), name,
                         str_or(subresource, ""));
}

static struct target *writes_find(const struct writes *w, const char *requester,
                                  const struct kube_resource *res, const char *ns, const char *name,
                                  const char *subresource) {
        struct target *t;
        _cleanup_(freep) char *key = make_key(requester, res, ns, name, subresource);
        HASH_FIND_STR(w->targets, key, t);
        return t;
}

static struct requester *make_requester(struct writes *w, const char *key) {
        struct requester *r = find_requester(w, key);
        if (!r) {
                r = xnew_keyed(struct requester, key, key);
                LIST_INIT(&r->targets);
                r->urgent = w->o.is_urgent && w->o.is_urgent(key);
                HASH_ADD_STR(w->requesters, key, r);
        }
        return r;
}

static struct target *writes_make(struct writes *w, const struct writes_request *q) {
        _cleanup_(freep) char *key = make_key(q->requester, q->res, q->ns, q->name, q->subresource);
        struct target *t = xnew_keyed(struct target, key, key);
        t->w = w;
        t->res = q->res;
        t->ns = xstrdup_or_null(q->ns);
        t->name = xstrdup(q->name);
        t->subresource = q->subresource != NULL;
        t->requester = xstrdup(q->requester);
        HASH_ADD_STR(w->targets, key, t);
        struct requester *r = make_requester(w, q->requester);
        t->urgent = r->urgent;
        LIST_INSERT_HEAD(&r->targets, t, of_requester);
        return t;
}

static uint64_t writes_now_ms(const struct writes *w) {
        return uv_now(kube_client_loop(w->o.client));
}

static void reset_failures(struct target *t) {
        t->failures = t->away = 0;
        t->not_before_ms = 0;
        set_error(t, NULL);
}

/* The answer to a DELETE is a Status, or, for kinds with ReturnDeletedObject such as Pods and claim
 * templates, the object. The object still exists if finalizers or a grace period keep it. Without them, a
 * write to an object that was deleted before ends it, too, and the answer has the version that the object had
 * before. Source: ShouldDeleteDuringUpdate() in
 * staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go. */
static bool ended_object(const struct target *t, yyjson_val *obj) {
        yyjson_val *meta = yyjson_obj_get(obj, "metadata");
        return streq(yyjson_get_str(yyjson_obj_get(obj, "kind")), "Status") ||
               ((t->verb == KUBE_DELETE || yyjson_obj_get(meta, "deletionTimestamp")) &&
                !yyjson_arr_size(yyjson_obj_get(meta, "finalizers")) &&
                yyjson_get_sint(yyjson_obj_get(meta, "deletionGracePeriodSeconds")) <= 0);
}

/* Names and answers of the server can have any length, and the text must fit into a status. */
static char *error_text(const struct target *t, const char *why) {
        return xasprintf("%s %s %.63s%s%.253s: %.1024s", kube_verb_name(t->verb), t->res->kind,
                         str_or(t->ns, ""), t->ns ? "/" : "", t->name, why);
}

/* No API server answered, so the write has neither succeeded nor failed. */
static void got_no_answer(struct target *t, const struct err *e) {
        t->away++;
        t->failures = 0;
        t->not_before_ms = writes_now_ms(t->w) + backoff_ms(BACKOFF_MIN_MS, BACKOFF_AWAY_MS, t->away);
        set_error(t, NULL);
        _cleanup_(freep) char *text = error_text(t, e->msg);
        log_v(2, "write got no answer", kv_str("write", text));
}

static void writes_failed(struct target *t, const struct err *e) {
        uint64_t now = writes_now_ms(t->w);
        t->away = 0;
        if (!t->failures++)
                t->failing_since_ms = now;
        t->not_before_ms = now + backoff_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, t->failures);
        set_error(t, NULL);
        char *text = error_text(t, e->msg);
        /* After a conflict, or if the object no longer exists, the cache is only late. It is current when the
         * key has its next turn. */
        if (e->kind == ERR_CONFLICT || e->kind == ERR_NOT_FOUND) {
                log_v(3, "write lost a race", kv_str("write", text));
                free(text);
        } else {
                /* A policy can deny the writes of thousands of objects: attempts 1, 2, 4, 8, ... are logged.
                 */
                if (!(t->failures & (t->failures - 1)))
                        log_warn("write failed", kv_str("write", text), kv_int("attempt", t->failures));
                set_error(t, text);
                t->error_kind = e->kind;
        }
}

/* Something delays writes of this kind. If the connection or the API server were the cause, nothing would
 * have been answered for some time. */
static bool does_hang(const struct target *t) {
        return writes_now_ms(t->w) - t->sent_ms >= HANGS_MS &&
               kube_answered_since(t->w->o.client, t->sent_ms + HEARD_MS);
}

static void writes_hung(struct target *t, const struct err *cause) {
        struct err e = *cause;
        err_wrap(&e,
                 "the API server answers other requests, but not this one: an admission webhook may hang");
        writes_failed(t, &e);
}

/* The previous write of the requester left the object in the same version. Without a back-off, the requester
 * would try again at once, without end. */
static bool changes_nothing(struct target *t, yyjson_val *obj) {
        const char *rv = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "resourceVersion"));
        bool same = rv && streq(rv, t->answered) && (t->verb == KUBE_APPLY || t->verb == KUBE_MERGE_PATCH);
        free(t->answered);
        t->answered = xstrdup_or_null(rv);
        return same;
}

static void writes_succeeded(struct target *t, yyjson_val *obj) {
        if (t->verb == KUBE_APPLY)
                t->generation =
                        yyjson_get_sint(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "generation"));
        if (t->generation == WRITES_MADE_GENERATION) /* need not be remembered, see writes_generation() */
                t->generation = 0;
        bool ended = ended_object(t, obj);
        if (t->cache && ended)
                kube_informer_answer_deleted(t->cache, t->ns, t->name, obj);
        else if (t->cache)
                kube_informer_answer(t->cache, obj);
        t->last_ms = writes_now_ms(t->w);
        if (!changes_nothing(t, obj) || ended) {
                reset_failures(t);
                return;
        }
        t->undone = true;
        struct err e;
        err_set(&e, ERR_INVALID, 0,
                "the API server accepts this write, but the object stays as it is: an admission webhook may "
                "undo the change, or the CustomResourceDefinition may be older than this controller");
        writes_failed(t, &e);
}

static uint64_t shown_after_ms(const struct target *t) {
        return t->error_kind == ERR_RETRY    ? t->w->o.away_ms
               : t->error_kind == ERR_DENIED ? t->w->o.denied_ms
                                             : 0;
}

static bool is_shown(const struct requester *r, const struct target *t) {
        return t->error && !t->subresource && t->pass == r->pass && t->failures >= SHOWN_AFTER &&
               writes_now_ms(t->w) - t->failing_since_ms >= shown_after_ms(t);
}

static const char *writes_error_of(const struct requester *r) {
        struct target *t;
        LIST_FOREACH (t, &r->targets, of_requester)
                if (is_shown(r, t))
                        return t->error;
        return NULL;
}

static void writes_report(struct writes *w, struct requester *r) {
        bool bad = writes_error_of(r) != NULL;
        if (bad == r->reported)
                return;
        r->reported = bad;
        if (w->o.error_changed)
                w->o.error_changed(w->o.u, r->key);
}

static void writes_on_done(void *u, yyjson_val *obj, const struct err *e) {
        struct target *t = u;
        struct writes *w = t->w;
        bool gone = e && t->verb == KUBE_DELETE && e->kind == ERR_NOT_FOUND;
        t->call = NULL;
        t->undone = false;
        w->in_flight[t->urgent]--;
        await_room(w);
        if (!e)
                writes_succeeded(t, obj);
        else if (kube_unreachable(e) && does_hang(t))
                writes_hung(t, e);
        else if (kube_unreachable(e))
                got_no_answer(t, e);
        else
                writes_failed(t, e);
        metric_inc(w->o.total, 1,
                   LABELS(t->res->plural, kube_verb_name(t->verb),
                          e && !gone  ? err_kind_name(e->kind)
                          : t->undone ? err_kind_name(ERR_INVALID)
                                      : "success"));
        if (t->done)
                t->done(t->u, &(struct writes_target){ t->requester, t->ns, t->name }, obj, e);
        work_queue_add(w->o.queue, t->requester);
        writes_report(w, find_requester(w, t->requester));
}

static uint64_t later(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

void writes_begin(struct writes *w, const char *requester) {
        make_requester(w, requester)->pass++;
}

/* Whether a write of any part of the object is in flight. A write that starts now may name the version that
 * the other write is about to change. */
static bool is_being_written(const struct requester *r, const struct target *t) {
        const struct target *o;
        LIST_FOREACH (o, &r->targets, of_requester)
                if (o->call && o->res == t->res && streq(o->name, t->name) && streq(o->ns, t->ns))
                        return true;
        return false;
}

bool writes_try(struct writes *w, const struct writes_request *q) {
        struct target *t = writes_find(w, q->requester, q->res, q->ns, q->name, q->subresource);
        uint64_t now = writes_now_ms(w);
        BUG_ON(q->interval_ms > WRITES_INTERVAL_MAX_MS);
        if (!t)
                t = writes_make(w, q);
        struct requester *r = find_requester(w, q->requester);
        t->pass = r->pass;
        if (is_being_written(r, t))
                return false;
        if (!t->first_wanted_ms)
                t->first_wanted_ms = now;
        bool differs = t->undone && str_fnv64(q->body.p, q->body.n) != t->sent;
        uint64_t due =
                later(differs ? 0 : t->not_before_ms,
                      later(t->first_wanted_ms + q->batch_ms, t->last_ms ? t->last_ms + q->interval_ms : 0));
        if (due > now) {
                work_queue_add_after(w->o.queue, q->requester, (unsigned)(due - now));
                return false;
        }
        if (!writes_may_write(w, r))
                return false;
        t->first_wanted_ms = 0;
        t->sent = str_fnv64(q->body.p, q->body.n);
        t->sent_ms = now;
        t->verb = q->verb;
        t->cache = q->cache;
        t->done = q->done;
        t->u = q->u;
        w->in_flight[t->urgent]++;
        t->call = kube_start(w->o.client, &(struct kube_request){
                                                  .verb = q->verb,
                                                  .lane = KUBE_LANE_BULK,
                                                  .attempts = 1, /* a retry needs a new body */
                                                  .res = q->res,
                                                  .ns = q->ns,
                                                  .name = q->name,
                                                  .subresource = q->subresource,
                                                  .metadata_only = q->metadata_only,
                                                  .manager = w->o.manager,
                                                  .body = q->body,
                                                  .done = writes_on_done,
                                                  .u = t,
                                          });
        return true;
}

void writes_cannot(struct writes *w, const struct writes_request *q, const char *why) {
        struct target *t = writes_find(w, q->requester, q->res, q->ns, q->name, q->subresource);
        if (!t)
                t = writes_make(w, q);
        t->pass = find_requester(w, q->requester)->pass;
        if (t->call)
                return;
        t->verb = q->verb;
        char *text = error_text(t, why);
        if (!streq(t->error, text)) {
                log_error("an object cannot be written", kv_str("write", text));
                metric_inc(w->o.total, 1, LABELS(t->res->plural, kube_verb_name(t->verb), "invalid"));
                t->failing_since_ms = writes_now_ms(w);
        }
        t->first_wanted_ms = 0;
        t->failures = t->failures > SHOWN_AFTER ? t->failures : SHOWN_AFTER;
        t->error_kind = ERR_INVALID;
        set_error(t, text);
}

void writes_end(struct writes *w, const char *requester) {
        struct requester *r = find_requester(w, requester);
        for (struct target *t = LIST_FIRST(&r->targets), *next; t; t = next) {
                next = LIST_NEXT(t, of_requester);
                if (t->pass == r->pass)
                        continue;
                t->first_wanted_ms = 0;
                reset_failures(t);
                if (!t->call && !t->generation && writes_now_ms(w) - t->last_ms >= REMEMBERED_MS)
                        writes_drop(t);
        }
        if (is_invited(w, r)) { /* it wanted no write */
                arrive(w, r);
                r->invited = 0;
        }
        writes_report(w, r);
        drop_if_empty(w, r);
}

int64_t writes_generation(const struct writes *w, const char *requester, const struct kube_resource *res,
                          const char *ns, const char *name) {
        const struct target *t = writes_find(w, requester, res, ns, name, NULL);
        return t ? t->generation : 0;
}

bool writes_sending(const struct writes *w, const char *requester, const struct kube_resource *res,
                    const char *ns, const char *name) {
        const struct target *t = writes_find(w, requester, res, ns, name, NULL);
        return t && t->call;
}

const char *writes_error(const struct writes *w, const char *requester) {
        const struct requester *r = find_requester(w, requester);
        return r ? writes_error_of(r) : NULL;
}

bool writes_failing(const struct writes *w) {
        return w->failing > 0;
}

void writes_forget(struct writes *w, const char *requester) {
        struct requester *r = find_requester(w, requester);
        if (!r)
                return;
        for (struct target *t = LIST_FIRST(&r->targets), *next; t; t = next) {
                next = LIST_NEXT(t, of_requester);
                t->pass = r->pass - 1;
                if (!t->call)
                        writes_drop(t);
        }
        writes_report(w, r);
        drop_if_empty(w, r);
}

void writes_expire(struct writes *w) {
        for (struct target *t = w->targets, *next; t; t = next) {
                next = t->hh.next;
                if (t->call || t->error || t->failures || t->away || t->generation || t->first_wanted_ms ||
                    writes_now_ms(w) - t->last_ms < REMEMBERED_MS)
                        continue;
                struct requester *r = find_requester(w, t->requester);
                writes_drop(t);
                drop_if_empty(w, r);
        }
}

size_t writes_in_flight(const struct writes *w) {
        return w->in_flight[false] + w->in_flight[true];
}

size_t writes_remembered(const struct writes *w) {
        return HASH_COUNT(w->targets);
}

void writes_dump(const struct writes *w) {
        const uint64_t now = writes_now_ms(w);
        const struct requester *r;
        const struct target *t;

        for (t = w->targets; t; t = t->hh.next)
                if (t->call || t->first_wanted_ms || t->error)
                        log_info("write", kv_str("object", t->key), kv_bool("in_flight", t->call != NULL),
                                 kv_int("waits_ms", t->first_wanted_ms ? now - t->first_wanted_ms : 0),
                                 kv_int("backs_off_ms", t->not_before_ms > now ? t->not_before_ms - now : 0),
                                 kv_int("unanswered", t->away), kv_int("failures", t->failures),
                                 kv_str("error", str_or(t->error, "")));
        for (size_t i = 0; i < ARRAY_LEN(w->waiting); i++)
                TAILQ_FOREACH (r, &w->waiting[i], waiting)
                        log_info("waits for room to write", kv_str("key", r->key));
}

size_t writes_waiting(const struct writes *w) {
        const struct requester *r;
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_LEN(w->waiting); i++)
                TAILQ_FOREACH (r, &w->waiting[i], waiting)
                        n++;
        return n;
}
