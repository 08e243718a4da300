/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/live_read.h"

#include <string.h>
#include <sys/queue.h>
#include <uthash.h>

#include "api/claim.h"
#include "api/kinds.h"
#include "api/names.h"
#include "api/resources.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/kube_pages.h"

enum { VALID_MS = 10000, PAUSE_MS = 50, PAUSE_SHARE = 4, BACKOFF_MIN_MS = 500, BACKOFF_MAX_MS = 30000 };

enum state {
        WAITING, /* for the next list */
        ASKED,   /* the list under way will answer it */
        FOUND,   /* the object exists; the caches will get it */
        ABSENT
};

struct question {
        UT_hash_handle hh;
        LIST_ENTRY(question) of_scope;
        enum state state;
        bool repeated;     /* the last list showed the object, too */
        bool again;        /* ABSENT, and asked again since the last list, so the next one answers it, too */
        uint64_t until_ms; /* when FOUND and ABSENT expire, and WAITING after a failure if no caller asks */
        struct work_queue_waiter *requesters;
        char key[];
};

/* One list request and its questions. */
struct scope {
        UT_hash_handle hh;
        struct live_read *c;
        enum live_read_kind what;
        char *ns, *selector;
        struct kube_pages *list;
        LIST_HEAD(, question) questions;
        unsigned failures;
        uint64_t began_ms;       /* when the last list began */
        uint64_t not_before_ms;  /* when the next one may begin */
        struct loop_timer pause; /* waits for that time while questions wait, unless the last list failed */
        bool blind;              /* an object of the list could not be decoded; `unread` has the error */
        struct err unread;
        char key[];
};

struct live_read {
        struct live_read_options o;
        struct scope *scopes;
        struct question *questions;
        struct loop_timer expiry; /* runs while there are scopes */
};

static void on_expiry(void *u);

struct live_read *live_read_new(const struct live_read_options *o) {
        struct live_read *c = xnew(struct live_read);
        c->o = *o;
        c->o.valid_ms = o->valid_ms ? o->valid_ms : VALID_MS;
        c->o.pause_ms = o->pause_ms ? o->pause_ms : PAUSE_MS;
        loop_timer_init(&c->expiry, kube_client_loop(o->client), on_expiry, c);
        return c;
}

static uint64_t live_read_now_ms(const struct live_read *c) {
        return uv_now(kube_client_loop(c->o.client));
}

/* The caches get the object now, and it may be deleted at any time, so the question is soon asked again. Some
 * requesters ask as long as the object exists: they ask less often. */
static unsigned found_ms(const struct live_read *c, const struct question *q) {
        return q->repeated ? c->o.valid_ms : (c->o.valid_ms + 9) / 10;
}

static void drop_question(struct live_read *c, struct question *q) {
        HASH_DEL(c->questions, q);
        LIST_REMOVE(q, of_scope);
        work_queue_waiters_drop(&q->requesters);
        free(q);
}

static void drop_scope(struct scope *s) {
        struct question *q;
        while ((q = LIST_FIRST(&s->questions)))
                drop_question(s->c, q);
        HASH_DEL(s->c->scopes, s);
        loop_timer_done(&s->pause);
        kube_pages_free(s->list);
        free(s->ns);
        free(s->selector);
        free(s);
}

void live_read_free(struct live_read *c) {
        if (!c)
                return;
        for (struct scope *s = c->scopes, *next; s; s = next) {
                next = s->hh.next;
                drop_scope(s);
        }
        loop_timer_done(&c->expiry);
        free(c);
}

/* ---- expiry ---- */

static void expire_later(struct live_read *c) {
        if (c->scopes && !loop_timer_waits(&c->expiry))
                loop_timer_start(&c->expiry, c->o.valid_ms);
}

static void live_read_drop_expired(struct scope *s) {
        uint64_t now = live_read_now_ms(s->c);
        for (struct question *q = LIST_FIRST(&s->questions), *next; q; q = next) {
                next = LIST_NEXT(q, of_scope);
                if (q->until_ms < now && !(loop_timer_waits(&s->pause) && (q->state == WAITING || q->again)))
                        drop_question(s->c, q);
        }
}

/* Keeps the questions of a list that is under way or waits, because they wait for its answer. */
static void on_expiry(void *u) {
        struct live_read *c = u;
        uint64_t now = live_read_now_ms(c);
        for (struct scope *s = c->scopes, *next; s; s = next) {
                next = s->hh.next;
                if (kube_pages_under_way(s->list))
                        continue;
                live_read_drop_expired(s);
                if (LIST_EMPTY(&s->questions) && s->not_before_ms <= now)
                        drop_scope(s);
        }
        expire_later(c);
}

size_t live_read_count(const struct live_read *c) {
        return HASH_COUNT(c->questions) + HASH_COUNT(c->scopes);
}

void live_read_on_node(const char *domain_uid, const char *node, struct buf *out) {
        buf_addf(out, "%s/%s", domain_uid, node);
}

void live_read_node(const char *node, const char *boot_id, const char *tag, struct buf *out) {
        buf_addf(out, "%s/%s/%s", node, str_or(boot_id, ""), tag);
}

/* A Node can be listed by its name. */
static struct str selected_by(enum live_read_kind what, const char *key) {
        return what == LIVE_READ_NODE ? (struct str){ key, strcspn(key, "/") } : STR("");
}

static void scope_key(enum live_read_kind what, const char *ns, const char *key, struct buf *out) {
        struct str by = selected_by(what, key);
        buf_addf(out, "%d|%s|%.*s", (int)what, str_or(ns, ""), (int)by.n, by.p);
}

static struct question *live_read_find(const struct live_read *c, enum live_read_kind what, const char *ns,
                                       const char *key) {
        struct question *q;
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        scope_key(what, ns, key, &b);
        buf_addf(&b, "|%s", key);
        HASH_FIND_STR(c->questions, buf_str(&b), q);
        return q;
}

static void live_read_on_page(void *u, yyjson_val *list, bool last, const struct err *e);
static void live_read_begin(void *u);

static const struct kube_resource *resource_of(enum live_read_kind what) {
        static const struct kube_resource *const resources[] = {
                [LIVE_READ_DOMAIN] = &kube_compute_domains,
                [LIVE_READ_CLAIM] = &kube_resource_claims,
                [LIVE_READ_NODE] = &kube_nodes,
        };
        return resources[what];
}

static struct scope *make_scope(struct live_read *c, enum live_read_kind what, const char *ns,
                                const char *key) {
        struct str by = selected_by(what, key);
        struct scope *s;
        _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
        scope_key(what, ns, key, &b);
        HASH_FIND_STR(c->scopes, buf_str(&b), s);
        if (s)
                return s;
        s = xnew_keyed(struct scope, key, buf_str(&b));
        s->c = c;
        s->what = what;
        s->ns = xstrdup_or_null(ns);
        if (by.n)
                s->selector = xasprintf("metadata.name=%.*s", (int)by.n, by.p);
        s->list = kube_pages_new(c->o.client, &(struct kube_pages_options){ .res = resource_of(what),
                                                                            .ns = s->ns,
                                                                            .field_selector = s->selector,
                                                                            .page = live_read_on_page,
                                                                            .u = s });
        loop_timer_init(&s->pause, kube_client_loop(c->o.client), live_read_begin, s);
        LIST_INIT(&s->questions);
        HASH_ADD_STR(c->scopes, key, s);
        return s;
}

static struct question *make_question(struct scope *s, const char *key) {
        struct question *q = live_read_find(s->c, s->what, s->ns, key);
        if (q)
                return q;
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        buf_addf(&b, "%s|%s", s->key, key);
        q = xnew_keyed(struct question, key, buf_str(&b));
        LIST_INSERT_HEAD(&s->questions, q, of_scope);
        HASH_ADD_STR(s->c->questions, key, q);
        expire_later(s->c);
        return q;
}

/* ---- the list ---- */

/* A tenant can cause questions as often as it writes an object, and a list of a large cluster costs the API
 * server much. */
static uint64_t live_read_pause_ms(const struct scope *s, uint64_t now) {
        uint64_t ms = s->c->o.pause_ms + PAUSE_SHARE * (now - s->began_ms);
        return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

/* Answers each question that the list was started for. Later questions wait for the next list. Absent objects
 * that are still of interest are confirmed again: a caller with several questions may need their answers at
 * one time, and an answer may expire before the next list ends. */
static void on_complete(struct scope *s) {
        uint64_t now = live_read_now_ms(s->c), until = now + s->c->o.valid_ms;
        s->failures = 0;
        s->not_before_ms = now + live_read_pause_ms(s, now);
        for (struct question *q = LIST_FIRST(&s->questions), *next; q; q = next) {
                next = LIST_NEXT(q, of_scope);
                if (q->state == ASKED || (q->state == ABSENT && q->again)) {
                        q->state = ABSENT;
                        q->repeated = q->again = false;
                        q->until_ms = until;
                        work_queue_waiters_queue(&q->requesters, s->c->o.queue, 0);
                } else if (q->state == FOUND) {
                        work_queue_waiters_queue(&q->requesters, s->c->o.queue, found_ms(s->c, q));
                        q->repeated = true;
                }
        }
        live_read_begin(s);
}

static void live_read_on_failed(struct scope *s, const struct err *e) {
        unsigned ms = backoff_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, ++s->failures);
        struct question *q;
        log_warn("cannot ask the API server whether an object is deleted, so it counts as existing",
                 kv_str("resource", resource_of(s->what)->plural), kv_str("namespace", str_or(s->ns, "")),
                 kv_err(e));
        s->not_before_ms = live_read_now_ms(s->c) + ms;
        LIST_FOREACH (q, &s->questions, of_scope) {
                if (q->state != ASKED && q->state != WAITING)
                        continue;
                q->state = WAITING;
                q->until_ms = s->not_before_ms + s->c->o.valid_ms;
                work_queue_waiters_queue(&q->requesters, s->c->o.queue, ms);
        }
}

static void live_read_found(struct scope *s, const char *key, yyjson_val *object) {
        struct question *q = live_read_find(s->c, s->what, s->ns, key);
        if (!q || q->state == WAITING)
                return;
        q->state = FOUND;
        q->again = false;
        q->until_ms = live_read_now_ms(s->c) + found_ms(s->c, q);
        s->c->o.found(s->c->o.u, s->what, object);
}

/* The object that cannot be decoded may be the one in question. */
static void cannot_read(struct scope *s, yyjson_val *object, const struct err *e) {
        yyjson_val *meta = yyjson_obj_get(object, "metadata");
        if (s->blind)
                return;
        s->blind = true;
        s->unread = *e;
        err_wrap(&s->unread, "%s %.63s/%.253s cannot be read", resource_of(s->what)->kind,
                 str_or(yyjson_get_str(yyjson_obj_get(meta, "namespace")), ""),
                 str_or(yyjson_get_str(yyjson_obj_get(meta, "name")), ""));
}

static void found_on_node(struct scope *s, const char *domain_uid, const char *node, yyjson_val *object) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        live_read_on_node(domain_uid, node, &key);
        live_read_found(s, buf_str(&key), object);
}

/* Answers the questions about any node: their keys are "<scope>|<UID>/<node>". */
static void found_anywhere(struct scope *s, const char *domain_uid, yyjson_val *object) {
        struct question *q, *next;
        size_t n = strlen(domain_uid);
        for (q = LIST_FIRST(&s->questions); q; q = next) {
                next = LIST_NEXT(q, of_scope);
                const char *key = q->key + strlen(s->key) + 1;
                if (strncmp(key, domain_uid, n) == 0 && key[n] == '/')
                        live_read_found(s, key, object);
        }
}

static void live_read_check_domain(struct scope *s, yyjson_val *object) {
        const char *uid = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "uid"));
        struct err e;
        if (uid) {
                live_read_found(s, uid, object);
                return;
        }
        err_set(&e, ERR_INVALID, 0, "it has no metadata.uid");
        cannot_read(s, object, &e);
}

static void live_read_check_claim(struct scope *s, yyjson_val *object) {
        _cleanup_(arena_freep) struct arena *a = arena_new(2048);
        struct claim claim = { 0 };
        struct claim_place place;
        struct err e;
        if (jd_decode(claim_fields, object, "", a, &claim, &e) < 0) {
                cannot_read(s, object, &e);
                return;
        }
        /* A claim that was allocated with another isolation may still be in use. */
        for (int own_channel = 0; own_channel < 2; own_channel++)
                if (claim_place(&claim, own_channel, a, &place)) {
                        if (streq(place.node, CD_POOL_SHARED))
                                found_anywhere(s, place.domain_uid, object);
                        found_on_node(s, place.domain_uid, place.node, object);
                        found_on_node(s, place.domain_uid, "", object);
                }
}

static void live_read_check_node(struct scope *s, yyjson_val *object) {
        _cleanup_(arena_freep) struct arena *a = arena_new(2048);
        struct node node = { 0 };
        struct question *q, *next;
        struct err e;
        if (jd_decode(node_fields, object, "", a, &node, &e) < 0) {
                cannot_read(s, object, &e);
                return;
        }
        for (q = LIST_FIRST(&s->questions); q; q = next) {
                next = LIST_NEXT(q, of_scope);
                /* "<scope>|<node>/<boot ID>/<tag>" */
                struct str rest = str_from(q->key + strlen(s->key) + 1), name, boot;
                str_next_field(&rest, '/', &name);
                str_next_field(&rest, '/', &boot);
                if (str_eq(name, str_from(node.o.meta.name)) &&
                    (boot.n ? str_eq(boot, str_from(node_boot_id(&node))) : !node_out_of_service(&node)))
                        live_read_found(s, q->key + strlen(s->key) + 1, object);
        }
}

static void live_read_on_page(void *u, yyjson_val *list, bool last, const struct err *e) {
        static void (*const check[])(struct scope *, yyjson_val *) = {
                [LIVE_READ_DOMAIN] = live_read_check_domain,
                [LIVE_READ_CLAIM] = live_read_check_claim,
                [LIVE_READ_NODE] = live_read_check_node,
        };
        struct scope *s = u;
        yyjson_val *item;
        size_t n, max;
        if (e) {
                live_read_on_failed(s, e);
                return;
        }
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), n, max, item)
                check[s->what](s, item);
        if (last && s->blind)
                live_read_on_failed(s, &s->unread);
        else if (last)
                on_complete(s);
}

/* Starts a list for the questions that wait, or waits for the end of the pause. */
static void live_read_begin(void *u) {
        struct scope *s = u;
        struct question *q;
        uint64_t now = live_read_now_ms(s->c);
        bool any = false;
        if (kube_pages_under_way(s->list))
                return;
        LIST_FOREACH (q, &s->questions, of_scope)
                any = any || q->state == WAITING;
        if (!any)
                return;
        if (s->not_before_ms > now) {
                loop_timer_at(&s->pause, s->not_before_ms);
                return;
        }
        LIST_FOREACH (q, &s->questions, of_scope)
                if (q->state == WAITING)
                        q->state = ASKED;
        s->blind = false;
        s->began_ms = now;
        kube_pages_start(s->list, false);
}

/* ---- questions ---- */

static bool is_answered_absent(const struct live_read *c, const struct question *q) {
        return q && q->state == ABSENT && q->until_ms >= live_read_now_ms(c);
}

bool live_read_known(const struct live_read *c, enum live_read_kind what, const char *ns, const char *key) {
        return is_answered_absent(c, live_read_find(c, what, ns, key));
}

bool live_read_absent(struct live_read *c, enum live_read_kind what, const char *ns, const char *key,
                      const char *requester) {
        struct scope *s;
        struct question *q = live_read_find(c, what, ns, key);
        uint64_t now = live_read_now_ms(c);
        if (is_answered_absent(c, q)) {
                q->again = true;
                return true;
        }
        s = make_scope(c, what, ns, key);
        q = make_question(s, key);
        if (q->state == FOUND && q->until_ms >= now) {
                work_queue_add_after(c->o.queue, requester, (unsigned)(q->until_ms - now) + 1);
                return false;
        }
        if (q->state == FOUND || q->state == ABSENT)
                q->state = WAITING; /* the answer has expired */
        work_queue_waiters_add(&q->requesters, requester);
        if (!kube_pages_under_way(s->list) && s->failures && s->not_before_ms > now) {
                q->until_ms = s->not_before_ms + c->o.valid_ms;
                work_queue_add_after(c->o.queue, requester, (unsigned)(s->not_before_ms - now));
                return false;
        }
        live_read_begin(s);
        return false;
}
