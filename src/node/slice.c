/* SPDX-License-Identifier: Apache-2.0 */
#include "node/slice.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/backoff.h"
#include "kube/kube_informer.h"
#include "kube/work_queue.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 30000, BODY_MAX = 64 * 1024 };
#define KEY "slice"

/* ---- pure part ---- */

static const struct jd_field f_basic[] = { JD_RAW(struct own_slice_device, "attributes", basic_attributes),
                                           JD_END };
static const struct jd_field f_device[] = {
        JD_STR(struct own_slice_device, "name", name),
        JD_RAW(struct own_slice_device, "attributes", attributes),
        JD_IN(struct own_slice_device, "basic", f_basic),
        JD_END,
};
static const struct jd_field f_pool[] = {
        JD_STR(struct own_slice, "name", pool),
        JD_INT(struct own_slice, "generation", generation),
        JD_INT(struct own_slice, "resourceSliceCount", count),
        JD_END,
};
static const struct jd_field f_spec[] = {
        JD_STR(struct own_slice, "driver", driver),
        JD_STR(struct own_slice, "nodeName", node),
        JD_IN(struct own_slice, "pool", f_pool),
        JD_LIST(struct own_slice, "devices", devices, struct own_slice_device, f_device),
        JD_END,
};
static const struct jd_field f_annotations[] = {
        JD_STR(struct own_slice, CD_ANNOTATION_SLICE_CLIQUE, clique_id), JD_END
};
static const struct jd_field f_slice_meta[] = { JD_IN(struct own_slice, "annotations", f_annotations),
                                                JD_END };
const struct jd_field own_slice_fields[] = {
        JD_OBJ(struct own_slice, "metadata", o.meta, kube_f_meta),
        JD_IN(struct own_slice, "metadata", f_slice_meta),
        JD_IN(struct own_slice, "spec", f_spec),
        JD_END,
};

static const struct {
        const char *name, *type;
} devices[] = { { CD_DEVICE_CHANNEL_PREFIX "0", "channel" }, { CD_DEVICE_DAEMON, "daemon" } };

static size_t device_count(const struct slice_content *want) {
        return !want->devices ? 0 : want->daemon ? ARRAY_LEN(devices) : 1;
}

static void attribute(struct jw *w, const char *name, const char *text) {
        jw_obj(w, name);
        if (text)
                jw_str(w, "string", text);
        else
                jw_int(w, "int", 0);
        jw_end_obj(w);
}

/* What no daemon of ours serves has type and id, and nothing else (design note HostManagedIMEX, 7.1); the
 * controller learns the clique all the same, for the label of the Node. */
static const char *attribute_clique(const struct slice_content *want) {
        return want->daemon ? want->clique_id : "";
}

static const char *annotation_clique(const struct slice_content *want) {
        return want->devices && !want->daemon ? want->clique_id : NULL;
}

/* Sorted by name, as the server sorts them: its text can then be compared with ours. */
static void attributes(struct jw *w, const char *key, const char *type, const char *clique_id) {
        jw_obj(w, key);
        if (*clique_id)
                attribute(w, "cliqueID", clique_id);
        attribute(w, "id", NULL);
        attribute(w, "type", type);
        jw_end_obj(w);
}

void slice_render(const char *version, const char *node, const char *node_uid, const struct own_slice *old,
                  const struct slice_content *want, struct buf *out) {
        struct jw w = JW(out);
        bool basic = streq(version, "v1beta1");
        _cleanup_(freep) char *api = xasprintf("resource.k8s.io/%s", version);
        _cleanup_(freep) char *prefix = xasprintf("00000-" CD_DRIVER "-%s-", node);
        jw_obj(&w, NULL);
        jw_str(&w, "apiVersion", api);
        jw_str(&w, "kind", "ResourceSlice");
        jw_obj(&w, "metadata");
        jw_str(&w, "generateName", prefix);
        if (old) {
                jw_str(&w, "name", old->o.meta.name);
                jw_str(&w, "resourceVersion", old->o.meta.rv);
        }
        if (annotation_clique(want))
                jw_map(&w, "annotations",
                       (const struct jd_pair[]){ { CD_ANNOTATION_SLICE_CLIQUE, annotation_clique(want) } },
                       1);
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
        jw_str(&w, "driver", CD_DRIVER);
        jw_str(&w, "nodeName", node);
        jw_obj(&w, "pool");
        jw_str(&w, "name", node);
        jw_int(&w, "generation", old && old->generation > 0 ? old->generation : 1);
        jw_int(&w, "resourceSliceCount", 1);
        jw_end_obj(&w);
        jw_arr(&w, "devices");
        for (size_t i = 0; i < device_count(want); i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "name", devices[i].name);
                if (basic)
                        jw_obj(&w, "basic");
                attributes(&w, "attributes", devices[i].type, attribute_clique(want));
                if (basic)
                        jw_end_obj(&w);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

static bool device_matches(const struct own_slice_device *d, size_t i, const char *clique_id) {
        struct buf want = BUF_INIT(1024);
        struct jw w = JW(&want);
        attributes(&w, NULL, devices[i].type, clique_id);
        struct str have = d->attributes.n ? d->attributes : d->basic_attributes;
        bool ok = streq(d->name, devices[i].name) && str_eq(have, (struct str){ want.p, want.n });
        buf_done(&want);
        return ok;
}

bool slice_matches(const struct own_slice *s, const char *node, const struct slice_content *want) {
        if (!streq(s->driver, CD_DRIVER) || !streq(s->node, node) || !streq(s->pool, node) || s->count != 1 ||
            s->generation < 1 || s->n_devices != device_count(want) ||
            !streq(s->clique_id, annotation_clique(want)))
                return false;
        for (size_t i = 0; i < s->n_devices; i++) {
                if (!device_matches(&s->devices[i], i, attribute_clique(want)))
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
        bool set, published;
        struct slice_content want;
        char clique_id[80];
        struct slice_floor floor;
        char trouble[400]; /* last error that was logged, so that a long outage is one line */
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
        if (!streq(p->trouble, e->msg))
                log_warn(what, kv_str("node", p->node), kv_err(e));
        snprintf(p->trouble, sizeof p->trouble, "%s", e->msg);
        work_queue_retry(p->queue, KEY);
}

static void succeeded(struct slice_publisher *p) {
        p->trouble[0] = '\0';
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
                kube_informer_learn(p->informer, obj);
        slice_floor_wrote(&p->floor, uv_now(kube_client_loop(p->client)));
        succeeded(p);
}

static void on_deleted(void *u, yyjson_val *obj, const struct err *e) {
        struct slice_publisher *p = u;
        (void)obj;
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
        (void)key;
        if (p->call || !p->set)
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
                                 "is a "
                                 "second kubelet plugin running on this node?",
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

static void on_trouble(void *u, const struct err *e) {
        struct slice_publisher *p = u;
        if (e)
                log_warn("cannot watch the ResourceSlices of this node", kv_str("node", p->node), kv_err(e));
        else
                work_queue_add(p->queue, KEY);
}

struct slice_publisher *slice_publisher_new(struct kube_client *c, const char *node) {
        struct slice_publisher *p = xnew(struct slice_publisher);
        p->client = c;
        p->node = xstrdup(node);
        p->selector = xasprintf("spec.nodeName=%s,spec.driver=" CD_DRIVER, node);
        p->queue = work_queue_new(kube_client_loop(c), BACKOFF_MIN_MS, BACKOFF_MAX_MS, reconcile, p);
        p->informer = kube_informer_new(c, &(struct kube_informer_options){
                                                   .res = &kube_resource_slices,
                                                   .field_selector = p->selector,
                                                   .fields = own_slice_fields,
                                                   .size = sizeof(struct own_slice),
                                                   .changed = on_changed,
                                                   .synced = on_synced,
                                                   .trouble = on_trouble,
                                                   .u = p,
                                           });
        return p;
}

void slice_set(struct slice_publisher *p, const struct slice_content *want) {
        bool same = p->set && p->want.devices == want->devices && p->want.daemon == want->daemon &&
                    streq(p->clique_id, want->clique_id);
        if (!same) /* what was written before is not undone by it */
                p->floor = (struct slice_floor){ 0 };
        snprintf(p->clique_id, sizeof p->clique_id, "%s", want->clique_id);
        p->want = *want;
        p->want.clique_id = p->clique_id;
        p->set = true;
        work_queue_add(p->queue, KEY);
}

bool slice_published(const struct slice_publisher *p) {
        return p->published;
}

const char *slice_node_uid(const struct slice_publisher *p) {
        return p->node_uid;
}

void slice_publisher_free(struct slice_publisher *p) {
        if (!p)
                return;
        kube_cancel(p->call);
        kube_informer_free(p->informer);
        work_queue_free(p->queue);
        free(p->node);
        free(p->node_uid);
        free(p->selector);
        free(p);
}
