/* SPDX-License-Identifier: Apache-2.0 */
#include "node/slice_publisher.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"
#include "node/slice_pool.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 30000, BODY_MAX = 1024 * 1024, WANT_MAX = 16 * BODY_MAX };
enum { UNLISTED_MS = 1000 }; /* until the informer is asked again: it does not report the end of a list */
#define KEY "slice"

struct slice_publisher {
        struct kube_client *client;
        char *node, *node_uid, *selector;
        struct kube_informer *informer;
        struct work_queue *queue;
        struct kube_call *call; /* at most one request at a time */
        bool started, published;
        bool creates;  /* `call` creates a slice */
        bool unlisted; /* an unanswered request may have created a slice that no list has shown yet */
        struct slice_content want; /* only the devices that the server accepts */
        struct slice_part writing; /* the part that is being written */
        int64_t target;            /* the generation that is being written; 0: none */
        slice_refused_fn *refused; /* NULL: a refusal concerns the whole content */
        void *u;
        slice_untainted_fn *untainted;
        void *untainted_u;
        const char *word; /* NULL: none */
        slice_annotation_fn *on_word;
        void *on_word_u;
        char *text; /* the JSON of `want`, to compare; NULL: not set */
        struct slice_floor floor;
        char error[400]; /* the last logged error, so that a long outage causes one line */
};

struct own_slices {
        const struct own_slice **v;
        size_t n, room;
};

static bool slice_publisher_gather(void *u, const struct kube_object *o) {
        struct own_slices *l = u;
        GROW(l->v, l->n, l->room);
        l->v[l->n++] = (const struct own_slice *)(const void *)o;
        return true;
}

static void slice_publisher_failed(struct slice_publisher *p, const char *what, const struct err *e) {
        if (!streq(p->error, e->msg))
                log_warn(what, kv_str("node", p->node), kv_err(e));
        snprintf(p->error, sizeof p->error, "%s", e->msg);
        work_queue_retry(p->queue, KEY);
}

static void slice_publisher_succeeded(struct slice_publisher *p) {
        p->error[0] = '\0';
        work_queue_forget(p->queue, KEY);
        work_queue_add(p->queue, KEY);
}

static void slice_publisher_on_node(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        p->call = NULL;
        if (e) {
                slice_publisher_failed(p, "cannot read the node", e);
                return;
        }
        free(p->node_uid);
        p->node_uid =
                xstrdup(str_or(yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "uid")), ""));
        slice_publisher_succeeded(p);
}

/* The number after "spec.devices[" in the server's message, which refers to the slice that was sent. */
static bool refused_device(const struct slice_publisher *p, const char *msg, size_t *ret) {
        static const char path[] = "spec.devices[";
        const char *at = strstr(msg, path);
        size_t i = 0;
        if (!at)
                return false;
        at += sizeof path - 1;
        if (*at < '0' || *at > '9')
                return false;
        for (; *at >= '0' && *at <= '9' && i <= SLICE_DEVICES_MAX; at++)
                i = i * 10 + (size_t)(*at - '0');
        *ret = p->writing.first + i;
        return *at == ']' && i < p->writing.n;
}

/* A device that the server refuses must not hide those that it accepts. */
static bool leave_out_refused(struct slice_publisher *p, const struct err *e) {
        struct offered_device *left;
        size_t refused;
        if (!p->refused || e->kind != ERR_INVALID || !refused_device(p, e->msg, &refused))
                return false;
        p->refused(p->u, p->want.devices[refused].name, e);
        left = arena_alloc(p->want.arena, p->want.n_devices * sizeof *left);
        for (size_t i = 0, n = 0; i < p->want.n_devices; i++)
                if (i != refused)
                        left[n++] = p->want.devices[i];
        p->want.devices = left;
        p->want.n_devices--;
        p->target = 0;
        work_queue_add(p->queue, KEY);
        return true;
}

static void publish_with(struct slice_publisher *p, enum slice_taints taken) {
        p->want.taints = taken;
        p->target = 0;
        work_queue_add(p->queue, KEY);
        if (p->untainted)
                p->untainted(p->untainted_u, taken);
}

/* "spec.devices[0].taints[1].effect: Unsupported value: \"None\"" */
static bool leave_out_taints(struct slice_publisher *p, const struct err *e) {
        if (e->kind != ERR_INVALID || p->want.taints == SLICE_TAINTS_NONE || !strstr(e->msg, "].taints["))
                return false;
        bool only_none = p->want.taints == SLICE_TAINTS_ALL && strstr(e->msg, "\"None\"");
        publish_with(p, only_none ? SLICE_TAINTS_EFFECTIVE : SLICE_TAINTS_NONE);
        return true;
}

/* A server without the feature gate accepts the object, and drops the taints. */
static void look_for_dropped(struct slice_publisher *p, yyjson_val *obj) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct own_slice s = { 0 };
        struct slice_content without = p->want;
        struct err ignored;
        without.taints = SLICE_TAINTS_NONE;
        if (p->want.taints != SLICE_TAINTS_NONE &&
            jd_decode(own_slice_fields, obj, "", a, &s, &ignored) == 0 &&
            !slice_part_matches(&s, p->node, &p->want, &p->writing) &&
            slice_part_matches(&s, p->node, &without, &p->writing))
                publish_with(p, SLICE_TAINTS_NONE);
}

static void slice_publisher_on_written(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        p->call = NULL;
        if (e) {
                if (p->creates && e->kind == ERR_RETRY) {
                        p->unlisted = true;
                        kube_informer_relist(p->informer);
                }
                if (!leave_out_taints(p, e) && !leave_out_refused(p, e))
                        slice_publisher_failed(p, "cannot publish the devices of this node", e);
                return;
        }
        if (obj) {
                kube_informer_answer(p->informer, obj);
                look_for_dropped(p, obj);
        }
        slice_floor_wrote(&p->floor, uv_now(kube_client_loop(p->client)));
        slice_publisher_succeeded(p);
}

static void slice_publisher_on_deleted(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        p->call = NULL;
        if (e && e->kind != ERR_NOT_FOUND)
                slice_publisher_failed(p, "cannot delete a surplus ResourceSlice", e);
        else
                work_queue_retry(p->queue, KEY); /* compares again after the watch had time to catch up */
}

static void write_slice(struct slice_publisher *p, const struct own_slice *old,
                        const struct slice_part *part) {
        struct buf body = BUF_INIT(BODY_MAX);
        p->writing = *part;
        p->creates = !old;
        slice_part_render(kube_resource_api(p->client), (struct slice_owner){ p->node, p->node_uid }, old,
                          &p->want, part, &body);
        p->call = kube_start(p->client, &(struct kube_request){
                                                .verb = old ? KUBE_UPDATE : KUBE_CREATE,
                                                .res = &kube_resource_slices,
                                                .name = old ? old->o.meta.name : NULL,
                                                .body = { buf_str(&body), body.n },
                                                /* The server chooses the name, so each try may create a
                                                 * slice. libcurl, too, repeats a request if a connection that
                                                 * it reused ends without an answer. */
                                                .attempts = old ? 0 : 1,
                                                .fresh = !old,
                                                .done = slice_publisher_on_written,
                                                .u = p,
                                        });
        buf_done(&body);
}

static void delete_slice(struct slice_publisher *p, const struct own_slice *s) {
        p->call = kube_start(p->client, &(struct kube_request){ .verb = KUBE_DELETE,
                                                                .res = &kube_resource_slices,
                                                                .name = s->o.meta.name,
                                                                .done = slice_publisher_on_deleted,
                                                                .u = p });
}

/* A difference that was not there before: 0, or how long to leave it. The writes of one generation count as
 * one.
 */
static uint64_t pause_before(struct slice_publisher *p, bool begun) {
        return begun ? 0 : slice_floor_wait(&p->floor, uv_now(kube_client_loop(p->client)));
}

static void reconcile(void *u, const char *key) {
        struct slice_publisher *p = u;
        struct own_slices have = { 0 };
        if (p->call || !p->text)
                return;
        if (!p->node_uid) {
                p->call = kube_start(p->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                        .res = &kube_nodes,
                                                                        .name = p->node,
                                                                        .done = slice_publisher_on_node,
                                                                        .u = p });
                return;
        }
        if (!p->started || !kube_informer_synced(p->informer))
                return;
        kube_informer_each(p->informer, slice_publisher_gather, &have);
        bool begun = p->target != 0;
        struct slice_step step = slice_pool_next(have.v, have.n, p->node, &p->want, &p->target);
        p->published = step.kind == SLICE_DONE;
        p->unlisted = p->unlisted && !kube_informer_current(p->informer);
        if (step.kind == SLICE_CREATE && p->unlisted) {
                work_queue_add_after(p->queue, KEY, UNLISTED_MS);
        } else if (step.kind == SLICE_DELETE) {
                delete_slice(p, step.slice);
        } else if (!p->published) {
                uint64_t wait = pause_before(p, begun);
                if (!wait) {
                        write_slice(p, step.slice, &step.part);
                } else {
                        p->target = 0;
                        log_warn("another client has overwritten the ResourceSlice of this node again: is a "
                                 "second kubelet plugin running on this node?",
                                 kv_str("node", p->node), kv_int("next_write_ms", wait));
                        work_queue_add_after(p->queue, KEY, (unsigned)wait);
                }
        }
        free(have.v);
}

static bool has_word(const struct slice_publisher *p, const struct kube_object *o) {
        return o && slice_has_annotation((const struct own_slice *)(const void *)o, p->word);
}

static void slice_publisher_on_changed(void *u, const struct kube_object *old,
                                       const struct kube_object *now) {
        struct slice_publisher *p = u;
        if (has_word(p, now) && !has_word(p, old))
                p->on_word(p->on_word_u);
        /* Another client deleted it: perhaps because the Node that owns it was deleted and recreated. */
        if (old && !now && !p->call) {
                free(p->node_uid);
                p->node_uid = NULL;
        }
        work_queue_add(p->queue, KEY);
}

static void slice_publisher_on_synced(void *u) {
        struct slice_publisher *p = u;
        work_queue_add(p->queue, KEY);
}

static void slice_publisher_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct slice_publisher *p = u;
        if (e)
                log_warn("cannot watch the ResourceSlices of this node", kv_str("node", p->node), kv_err(e));
        else
                work_queue_add(p->queue, KEY);
}

struct slice_publisher *slice_publisher_new(struct kube_client *c, const char *driver, const char *node) {
        struct slice_publisher *p = xnew(struct slice_publisher);
        p->client = c;
        p->node = xstrdup(node);
        p->selector = xasprintf("spec.nodeName=%s,spec.driver=%s", node, driver);
        p->queue = work_queue_new(kube_client_loop(c), BACKOFF_MIN_MS, BACKOFF_MAX_MS, reconcile, p);
        p->informer = kube_informer_new(c, &(struct kube_informer_options){
                                                   .res = &kube_resource_slices,
                                                   .field_selector = p->selector,
                                                   .fields = own_slice_fields,
                                                   .size = sizeof(struct own_slice),
                                                   .changed = slice_publisher_on_changed,
                                                   .synced = slice_publisher_on_synced,
                                                   .failing = slice_publisher_on_failing,
                                                   .u = p,
                                           });
        return p;
}

void slice_start(struct slice_publisher *p) {
        p->started = true;
        work_queue_add(p->queue, KEY);
}

void slice_on_refused(struct slice_publisher *p, slice_refused_fn *fn, void *u) {
        p->refused = fn;
        p->u = u;
}

void slice_on_untainted(struct slice_publisher *p, slice_untainted_fn *fn, void *u) {
        p->untainted = fn;
        p->untainted_u = u;
}

void slice_on_annotation(struct slice_publisher *p, const char *word, slice_annotation_fn *fn, void *u) {
        p->word = word;
        p->on_word = fn;
        p->on_word_u = u;
}

void slice_set(struct slice_publisher *p, const struct slice_content *want) {
        struct buf text = BUF_INIT(WANT_MAX);
        slice_render("v1", "", "", NULL, want, &text);
        if (!streq(p->text, buf_str(&text))) { /* a change of the content is not drift */
                p->floor = (struct slice_floor){ 0 };
                p->target = 0;
        } else if (p->refused) {
                arena_free(
                        want->arena); /* including what the server refuses, which is known for our content */
                buf_done(&text);
                return;
        }
        arena_free(p->want.arena);
        free(p->text);
        p->want = *want;
        p->want.word = p->word;
        p->text = buf_steal(&text);
        work_queue_add(p->queue, KEY);
}

bool slice_published(const struct slice_publisher *p) {
        return p->published;
}

void slice_publisher_free(struct slice_publisher *p) {
        if (!p)
                return;
        kube_cancel(p->call);
        kube_informer_free(p->informer);
        work_queue_free(p->queue);
        arena_free(p->want.arena);
        free(p->node);
        free(p->node_uid);
        free(p->selector);
        free(p->text);
        free(p);
}
