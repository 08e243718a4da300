/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/event_recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"

#include <uthash.h>

enum {
        MAX_SERIES = 128,     /* series that are kept after they were written; the oldest is dropped first */
        MAX_UNWRITTEN = 1000, /* including those that are not written; the oldest of all is dropped first */
        MAX_IN_FLIGHT = 8,    /* Events of a server that hangs must not block the client's other requests */
        ATTEMPTS = 36, /* about five minutes with the client's pauses: so the Events of an outage can be read
                          after it */
        MAX_OBJECTS = 256, /* with a token bucket */
        OBJECT_BURST = 25,
        OBJECT_REFILL_MS = 5 * 60 * 1000,
        MAX_MESSAGE = 1024,
        MAX_NAME = 253,
        BODY_MAX = 64 << 10,
};

static const struct jd_field f_about[] = {
        JD_STR(struct event_about, "apiVersion", api_version),
        JD_STR(struct event_about, "kind", kind),
        JD_STR(struct event_about, "namespace", ns),
        JD_STR(struct event_about, "name", name),
        JD_STR(struct event_about, "uid", uid),
        JD_END,
};

/* One Event on the server, and how often it happened. */
struct series {
        UT_hash_handle hh;
        struct event_recorder *recorder;
        struct arena *arena; /* contains everything below */
        struct event_about about;
        const char *reason, *message;
        enum event_type type;
        char event_name[MAX_NAME + 1];
        int64_t first_s, last_s, count;
        bool exists; /* the server has it: patch instead of create */
        bool dirty;  /* changed since the write in flight began */
        bool waits;  /* in the recorder's list of series to be written */
        TAILQ_ENTRY(series) waiting;
        struct kube_call *call;
        const char *key;
};

struct object {
        UT_hash_handle hh;
        double tokens;
        uint64_t filled_ms;
        char key[];
};

struct event_recorder {
        struct kube_client *client;
        uv_loop_t *loop;
        struct loop_timer timer; /* for the flush */
        char *component, *host;
        struct series *series;
        TAILQ_HEAD(, series) waiting;
        struct object *objects;
        size_t n_in_flight;
        void (*flushed)(void *u);
        void *flushed_u;
};

/* ---- limits per object ---- */

static double refill(const struct event_recorder *r, struct object *o) {
        uint64_t now = uv_now(r->loop);
        o->tokens += (double)(now - o->filled_ms) / OBJECT_REFILL_MS;
        o->filled_ms = now;
        if (o->tokens > OBJECT_BURST)
                o->tokens = OBJECT_BURST;
        return o->tokens;
}

static void drop_object(struct event_recorder *r, struct object *o) {
        HASH_DEL(r->objects, o);
        free(o);
}

/* A full bucket can be dropped without effect. If none is full, drops the oldest. */
static void make_room_for_object(struct event_recorder *r) {
        struct object *o, *next;
        if (HASH_COUNT(r->objects) < MAX_OBJECTS)
                return;
        HASH_ITER (hh, r->objects, o, next) {
                if (refill(r, o) >= OBJECT_BURST)
                        drop_object(r, o);
        }
        if (HASH_COUNT(r->objects) >= MAX_OBJECTS)
                drop_object(r, r->objects);
}

static bool event_recorder_may_write(struct event_recorder *r, const struct event_about *about) {
        _cleanup_(freep) char *key = xasprintf("%s/%s/%s/%s", about->kind, about->ns ? about->ns : "",
                                               about->name, about->uid ? about->uid : "");
        struct object *o;

        HASH_FIND_STR(r->objects, key, o);
        if (!o) {
                make_room_for_object(r);
                o = xnew_keyed(struct object, key, key);
                o->tokens = OBJECT_BURST;
                o->filled_ms = uv_now(r->loop);
                HASH_ADD_STR(r->objects, key, o);
        }
        if (refill(r, o) < 1)
                return false;
        o->tokens -= 1;
        return true;
}

/* ---- series ---- */

static void event_recorder_series_free(struct series *s) {
        struct event_recorder *r = s->recorder;
        HASH_DEL(r->series, s);
        if (s->waits)
                TAILQ_REMOVE(&r->waiting, s, waiting);
        if (s->call)
                r->n_in_flight--;
        kube_cancel(s->call);
        arena_free(s->arena);
}

static void make_room_for_series(struct event_recorder *r) {
        struct series *s, *next;
        if (HASH_COUNT(r->series) < MAX_SERIES)
                return;
        /* uthash keeps the order of insertion. */
        HASH_ITER (hh, r->series, s, next) {
                if (!s->call && !s->waits) {
                        event_recorder_series_free(s);
                        return;
                }
        }
        if (HASH_COUNT(r->series) >= MAX_UNWRITTEN) {
                log_v(2, "event was not written, because too many wait", kv_str("reason", r->series->reason));
                event_recorder_series_free(r->series);
        }
}

/* The same scheme as client-go: the object's name and the time, which together are unique enough for one
 * component. */
static void name_event(struct series *s) {
        int n = (int)strnlen(s->about.name, MAX_NAME - 17);
        while (n && strchr(".-", s->about.name[n - 1])) /* a dot follows */
                n--;
        snprintf(s->event_name, sizeof s->event_name, "%.*s.%016" PRIx64, n, s->about.name,
                 (uint64_t)clock_wall_ns());
}

static struct series *event_recorder_find_or_add(struct event_recorder *r, const struct event_about *about,
                                                 enum event_type type, const char *reason,
                                                 const char *message) {
        _cleanup_(freep) char *key =
                xasprintf("%s\n%s\n%s\n%s\n%d\n%s\n%s", about->kind, about->ns ? about->ns : "", about->name,
                          about->uid ? about->uid : "", (int)type, reason, message);
        struct series *s;

        HASH_FIND_STR(r->series, key, s);
        if (s)
                return s;
        make_room_for_series(r);
        struct arena *a = arena_new(sizeof *s + 2 * strlen(key));
        s = arena_alloc(a, sizeof *s);
        s->recorder = r;
        s->arena = a;
        jd_copy(f_about, about, a, &s->about);
        s->reason = arena_strdup(a, reason);
        s->message = arena_strdup(a, message);
        s->type = type;
        s->key = arena_strdup(a, key);
        HASH_ADD_KEYPTR(hh, r->series, s->key, strlen(s->key), s);
        return s;
}

/* ---- writing ---- */

static void end_flush(struct event_recorder *r) {
        void (*flushed)(void *u) = r->flushed;
        r->flushed = NULL;
        loop_timer_stop(&r->timer);
        if (flushed)
                flushed(r->flushed_u);
}

static void write_event(struct series *s);

/* Writes waiting series, up to the limit of requests in flight. */
static void event_recorder_pump(struct event_recorder *r) {
        struct series *s;
        while (r->n_in_flight < MAX_IN_FLIGHT && (s = TAILQ_FIRST(&r->waiting))) {
                TAILQ_REMOVE(&r->waiting, s, waiting);
                s->waits = false;
                write_event(s);
        }
}

static void want_written(struct series *s) {
        TAILQ_INSERT_TAIL(&s->recorder->waiting, s, waiting);
        s->waits = true;
}

static void event_recorder_on_written(void *u, yyjson_val *obj, const struct err *e) {
        struct series *s = u;
        struct event_recorder *r = s->recorder;

        s->call = NULL;
        r->n_in_flight--;
        if (e && e->kind == ERR_NOT_FOUND && s->exists) {
                /* The server deletes Events after an hour: create another one. */
                s->exists = false;
                s->dirty = true;
        } else if (e && e->kind == ERR_CONFLICT && !s->exists) {
                s->exists = true; /* only we use this name: the answer to an earlier attempt was lost */
        } else if (e) {
                log_v(2, "event was not written", kv_str("reason", s->reason), kv_err(e));
                s->dirty = false;
        } else {
                s->exists = true;
        }
        if (s->dirty)
                want_written(s);
        else if (HASH_COUNT(r->series) > MAX_SERIES)
                event_recorder_series_free(s);
        event_recorder_pump(r);
        if (r->n_in_flight == 0 && r->flushed)
                end_flush(r);
}

static void create_json(struct jw *w, const struct series *s, const char *ns) {
        const struct event_recorder *r = s->recorder;

        jw_str(w, "apiVersion", "v1");
        jw_str(w, "kind", "Event");
        jw_obj(w, "metadata");
        jw_str(w, "namespace", ns);
        jw_str(w, "name", s->event_name);
        jw_end_obj(w);
        jd_encode(f_about, &s->about, w, "involvedObject");
        jw_str(w, "type", s->type == EVENT_WARNING ? "Warning" : "Normal");
        jw_str(w, "reason", s->reason);
        jw_str(w, "message", s->message);
        jw_obj(w, "source");
        jw_str(w, "component", r->component);
        if (r->host)
                jw_str(w, "host", r->host);
        jw_end_obj(w);
        jw_str(w, "reportingComponent", r->component);
        jw_str(w, "reportingInstance", r->host ? r->host : r->component);
        jw_time(w, "firstTimestamp", s->first_s);
}

static void write_event(struct series *s) {
        struct event_recorder *r = s->recorder;
        const char *ns = s->about.ns ? s->about.ns : "default";
        struct buf b = BUF_INIT(BODY_MAX);
        struct jw w = JW(&b);

        s->dirty = false;
        jw_obj(&w, NULL);
        if (!s->exists) {
                name_event(s);
                create_json(&w, s, ns);
        }
        jw_time(&w, "lastTimestamp", s->last_s);
        jw_int(&w, "count", s->count);
        jw_end_obj(&w);
        r->n_in_flight++;
        struct kube_request request = {
                .verb = s->exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
                .res = &kube_events,
                .ns = ns,
                .name = s->event_name,
                .body = { b.p, b.n },
                .attempts = ATTEMPTS,
                .done = event_recorder_on_written,
                .u = s,
        };
        s->call = kube_start(r->client, &request);
        buf_done(&b);
}

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        struct buf text = BUF_INIT(BODY_MAX);
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        _cleanup_(freep) char *message = buf_steal(&text);
        message[str_utf8_cut(str_from(message), MAX_MESSAGE)] = '\0';

        struct series *s = event_recorder_find_or_add(r, about, type, reason, message);
        s->last_s = clock_wall_s();
        if (s->count++ == 0)
                s->first_s = s->last_s;
        if (s->call) {
                s->dirty = true;
                return;
        }
        if (s->waits)
                return;
        if (event_recorder_may_write(r, about)) {
                want_written(s);
                event_recorder_pump(r);
        } else {
                log_v(2, "event was not written, because there are too many about this object",
                      kv_str("object", s->about.name), kv_str("reason", reason));
        }
}

/* ---- the recorder ---- */

static void event_recorder_on_timer(void *u) {
        end_flush(u);
}

void event_recorder_flush(struct event_recorder *r, unsigned limit_ms, void (*done)(void *u), void *u) {
        r->flushed = done;
        r->flushed_u = u;
        loop_timer_start(&r->timer, r->n_in_flight ? limit_ms : 0);
}

struct event_recorder *event_recorder_new(struct kube_client *c, const char *component, const char *host) {
        struct event_recorder *r = xnew(struct event_recorder);
        r->client = c;
        r->loop = kube_client_loop(c);
        r->component = xstrdup(component);
        r->host = xstrdup_or_null(host);
        TAILQ_INIT(&r->waiting);
        loop_timer_init(&r->timer, r->loop, event_recorder_on_timer, r);
        return r;
}

void event_recorder_free(struct event_recorder *r) {
        struct series *s, *next;
        struct object *o, *next_object;

        if (!r)
                return;
        HASH_ITER (hh, r->series, s, next)
                event_recorder_series_free(s);
        HASH_ITER (hh, r->objects, o, next_object)
                drop_object(r, o);
        free(r->component);
        free(r->host);
        loop_timer_done(&r->timer);
        free(r);
}
