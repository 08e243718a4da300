/* SPDX-License-Identifier: Apache-2.0 */
#include "node/slice.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "kube/backoff.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 30000, BODY_MAX = 64 * 1024 };
#define KEY "slice"

/* ---- pure part ---- */

static const struct jd_field f_device[] = {
        JD_STR(struct own_slice_device, "name", name),
        JD_RAW(struct own_slice_device, "attributes", attributes),
        JD_RAW(struct own_slice_device, "basic>attributes", basic_attributes),
        JD_RAW(struct own_slice_device, "capacity", capacity),
        JD_RAW(struct own_slice_device, "basic>capacity", basic_capacity),
        JD_END,
};
const struct jd_field own_slice_fields[] = {
        JD_OBJ(struct own_slice, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct own_slice, "metadata>annotations", annotations),
        JD_STR(struct own_slice, "spec>driver", driver),
        JD_STR(struct own_slice, "spec>nodeName", node),
        JD_STR(struct own_slice, "spec>pool>name", pool),
        JD_INT(struct own_slice, "spec>pool>generation", generation),
        JD_INT(struct own_slice, "spec>pool>resourceSliceCount", count),
        JD_LIST(struct own_slice, "spec>devices", devices, struct own_slice_device, f_device),
        JD_END,
};

static void attributes(struct jw *w, const char *key, const struct offered_device *d) {
        jw_obj(w, key);
        for (size_t i = 0; i < d->n_attributes; i++) {
                const struct offered_attribute *a = &d->attributes[i];
                jw_obj(w, a->name);
                if (a->text)
                        jw_str(w, a->kind == OFFERED_VERSION ? "version" : "string", a->text);
                else
                        jw_int(w, "int", a->number);
                jw_end_obj(w);
        }
        jw_end_obj(w);
}

/* Of a device without any it is left out, as the server leaves it out. */
static void capacities(struct jw *w, const char *key, const struct offered_device *d) {
        if (!d->n_capacities)
                return;
        jw_obj(w, key);
        for (size_t i = 0; i < d->n_capacities; i++) {
                jw_obj(w, d->capacities[i].name);
                jw_str(w, "value", d->capacities[i].quantity);
                jw_end_obj(w);
        }
        jw_end_obj(w);
}

void slice_render(const char *version, const char *node, const char *node_uid, const struct own_slice *old,
                  const struct slice_content *want, struct buf *out) {
        struct jw w = JW(out);
        bool basic = streq(version, "v1beta1");
        jw_obj(&w, NULL);
        jw_strf(&w, "apiVersion", "resource.k8s.io/%s", version);
        jw_str(&w, "kind", "ResourceSlice");
        jw_obj(&w, "metadata");
        jw_strf(&w, "generateName", "00000-%s-%s-", want->driver, node);
        if (old) {
                jw_str(&w, "name", old->o.meta.name);
                jw_str(&w, "resourceVersion", old->o.meta.rv);
        }
        if (want->annotation.value)
                jw_map(&w, "annotations", &want->annotation, 1);
        jw_arr(&w, "ownerReferences");
        jw_obj(&w, NULL);
        jw_str(&w, "apiVersion", "v1");
        jw_str(&w, "kind", "Node");
        jw_str(&w, "name", node);
        jw_str(&w, "uid", node_uid);
        jw_bool(&w, "controller", true);
        jw_end_obj(&w);
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_obj(&w, "spec");
        jw_str(&w, "driver", want->driver);
        jw_str(&w, "nodeName", node);
        jw_obj(&w, "pool");
        jw_str(&w, "name", node);
        jw_int(&w, "generation", old && old->generation > 0 ? old->generation : 1);
        jw_int(&w, "resourceSliceCount", 1);
        jw_end_obj(&w);
        jw_arr(&w, "devices");
        for (size_t i = 0; i < want->n_devices; i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "name", want->devices[i].name);
                if (basic)
                        jw_obj(&w, "basic");
                attributes(&w, "attributes", &want->devices[i]);
                capacities(&w, "capacity", &want->devices[i]);
                if (basic)
                        jw_end_obj(&w);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

static bool device_matches(const struct own_slice_device *d, const struct offered_device *want) {
        struct buf a = BUF_INIT(BODY_MAX), c = BUF_INIT(BODY_MAX);
        struct jw aw = JW(&a), cw = JW(&c);
        attributes(&aw, NULL, want);
        capacities(&cw, NULL, want);
        struct str attributes_there = d->attributes.n ? d->attributes : d->basic_attributes,
                   capacity_there = d->capacity.n ? d->capacity : d->basic_capacity;
        bool ok = streq(d->name, want->name) && str_eq(attributes_there, (struct str){ a.p, a.n }) &&
                  str_eq(capacity_there, (struct str){ c.p, c.n });
        buf_done(&a);
        buf_done(&c);
        return ok;
}

bool slice_matches(const struct own_slice *s, const char *node, const struct slice_content *want) {
        if (!streq(s->driver, want->driver) || !streq(s->node, node) || !streq(s->pool, node) ||
            s->count != 1 || s->generation < 1 || s->n_devices != want->n_devices ||
            (want->annotation.key &&
             !streq(jd_pair_get(s->annotations, s->n_annotations, want->annotation.key),
                    want->annotation.value)))
                return false;
        for (size_t i = 0; i < s->n_devices; i++) {
                if (!device_matches(&s->devices[i], &want->devices[i]))
                        return false;
        }
        return true;
}

bool slice_outranks(const struct own_slice *a, const struct own_slice *b) {
        if (a->generation != b->generation)
                return a->generation > b->generation;
        if (a->o.meta.created != b->o.meta.created)
                return a->o.meta.created < b->o.meta.created;
        return strcmp(a->o.meta.name, b->o.meta.name) < 0;
}

uint64_t slice_floor_wait(struct slice_floor *f, uint64_t now_ms) {
        if (f->wrote && !f->noticed) {
                f->noticed = true;
                f->undone = now_ms - f->wrote_ms >= SLICE_CALM_MS ? 1 : f->undone + 1;
                f->due_ms = now_ms;
                if (f->undone > 1)
                        f->due_ms += backoff_ms(SLICE_FLOOR_MIN_MS, SLICE_FLOOR_MAX_MS, f->undone - 1);
        }
        return f->due_ms > now_ms ? f->due_ms - now_ms : 0;
}

void slice_floor_wrote(struct slice_floor *f, uint64_t now_ms) {
        f->wrote = true;
        f->noticed = false;
        f->wrote_ms = now_ms;
}

/* ---- the publisher ---- */

struct slice_publisher {
        struct kube_client *client;
        char *node, *node_uid, *selector;
        struct kube_informer *informer;
        struct work_queue *queue;
        struct kube_call *call; /* at most one request at a time */
        bool published;
        struct slice_content want;
        char *text; /* of `want`, to compare; NULL: it has not been set */
        struct slice_floor floor;
        char error[400]; /* last error that was logged, so that a long outage is one line */
};

struct choice {
        const struct own_slice *keep, *surplus;
};

static bool choose(void *u, const struct kube_object *o) {
        struct choice *c = u;
        const struct own_slice *s = (const struct own_slice *)(const void *)o;
        if (!c->keep) {
                c->keep = s;
        } else if (slice_outranks(s, c->keep)) {
                c->surplus = c->keep;
                c->keep = s;
        } else {
                c->surplus = s;
        }
        return true;
}

static void failed(struct slice_publisher *p, const char *what, const struct err *e) {
        if (!streq(p->error, e->msg))
                log_warn(what, kv_str("node", p->node), kv_err(e));
        snprintf(p->error, sizeof p->error, "%s", e->msg);
        work_queue_retry(p->queue, KEY);
}

static void succeeded(struct slice_publisher *p) {
        p->error[0] = '\0';
        work_queue_forget(p->queue, KEY);
        work_queue_add(p->queue, KEY);
}

static void on_node(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        p->call = NULL;
        if (e) {
                failed(p, "cannot read the node", e);
                return;
        }
        free(p->node_uid);
        p->node_uid =
                xstrdup(str_or(yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "uid")), ""));
        succeeded(p);
}

static void on_written(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        p->call = NULL;
        if (e) {
                failed(p, "cannot publish the devices of this node", e);
                return;
        }
        if (obj)
                kube_informer_answer(p->informer, obj);
        slice_floor_wrote(&p->floor, uv_now(kube_client_loop(p->client)));
        succeeded(p);
}

static void on_deleted(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        p->call = NULL;
        if (e && e->kind != ERR_NOT_FOUND)
                failed(p, "cannot delete a surplus ResourceSlice", e);
        else
                work_queue_retry(p->queue, KEY); /* looks again when the watch has had time to tell */
}

static void write_slice(struct slice_publisher *p, const struct own_slice *old) {
        struct buf body = BUF_INIT(BODY_MAX);
        slice_render(kube_resource_api(p->client), p->node, p->node_uid, old, &p->want, &body);
        p->call = kube_start(p->client, &(struct kube_request){
                                                .verb = old ? KUBE_UPDATE : KUBE_CREATE,
                                                .res = &kube_resource_slices,
                                                .name = old ? old->o.meta.name : NULL,
                                                .body = { buf_str(&body), body.n },
                                                .done = on_written,
                                                .u = p,
                                        });
        buf_done(&body);
}

static void reconcile(void *u, const char *key) {
        struct slice_publisher *p = u;
        struct choice c = { 0 };
        if (p->call || !p->text)
                return;
        if (!p->node_uid) {
                p->call = kube_start(p->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                        .res = &kube_nodes,
                                                                        .name = p->node,
                                                                        .done = on_node,
                                                                        .u = p });
                return;
        }
        if (!kube_informer_synced(p->informer) || !kube_resource_api(p->client))
                return;
        kube_informer_each(p->informer, choose, &c);
        p->published = c.keep && !c.surplus && slice_matches(c.keep, p->node, &p->want);
        if (c.surplus) {
                p->call = kube_start(p->client, &(struct kube_request){ .verb = KUBE_DELETE,
                                                                        .res = &kube_resource_slices,
                                                                        .name = c.surplus->o.meta.name,
                                                                        .done = on_deleted,
                                                                        .u = p });
        } else if (!p->published) {
                uint64_t wait = slice_floor_wait(&p->floor, uv_now(kube_client_loop(p->client)));
                if (!wait) {
                        write_slice(p, c.keep);
                } else {
                        log_warn("the ResourceSlice of this node was written over by somebody else, again: "
                                 "is a second kubelet plugin running on this node?",
                                 kv_str("node", p->node), kv_int("next_write_ms", wait));
                        work_queue_add_after(p->queue, KEY, (unsigned)wait);
                }
        }
}

static void on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct slice_publisher *p = u;
        /* Deleted under us: perhaps because the Node that owns it was, and is a new one now. */
        if (old && !now && !p->call) {
                free(p->node_uid);
                p->node_uid = NULL;
        }
        work_queue_add(p->queue, KEY);
}

static void on_synced(void *u) {
        struct slice_publisher *p = u;
        work_queue_add(p->queue, KEY);
}

static void on_failing(void *u, const struct kube_resource *res, const struct err *e) {
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
                                                   .changed = on_changed,
                                                   .synced = on_synced,
                                                   .failing = on_failing,
                                                   .u = p,
                                           });
        return p;
}

void slice_set(struct slice_publisher *p, const struct slice_content *want) {
        struct buf text = BUF_INIT(BODY_MAX);
        slice_render("v1", "", "", NULL, want, &text);
        if (!streq(p->text, buf_str(&text))) /* what was written before is not undone by it */
                p->floor = (struct slice_floor){ 0 };
        arena_free(p->want.arena);
        free(p->text);
        p->want = *want;
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
