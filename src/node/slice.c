/* SPDX-License-Identifier: Apache-2.0 */
#include "node/slice.h"

#include <string.h>

#include "base/json.h"
#include "kube/backoff.h"

/* ---- a device ---- */

void offered_add_attribute(struct offered_builder *b, struct offered_attribute attribute) {
        ARENA_GROW(b->a, b->attributes, b->n_attributes, b->room_attributes);
        b->attributes[b->n_attributes++] = attribute;
}

void offered_add_capacity(struct offered_builder *b, struct offered_capacity capacity) {
        ARENA_GROW(b->a, b->capacities, b->n_capacities, b->room_capacities);
        b->capacities[b->n_capacities++] = capacity;
}

static int by_attribute(const void *a, const void *b) {
        const struct offered_attribute *x = a, *y = b;
        return strcmp(x->name, y->name);
}

static int by_capacity(const void *a, const void *b) {
        const struct offered_capacity *x = a, *y = b;
        return strcmp(x->name, y->name);
}

struct offered_device offered_end(struct offered_builder *b, const char *name) {
        if (b->n_attributes)
                qsort(b->attributes, b->n_attributes, sizeof *b->attributes, by_attribute);
        if (b->n_capacities)
                qsort(b->capacities, b->n_capacities, sizeof *b->capacities, by_capacity);
        return (struct offered_device){ .name = name,
                                        .attributes = b->attributes,
                                        .n_attributes = b->n_attributes,
                                        .capacities = b->capacities,
                                        .n_capacities = b->n_capacities };
}

enum { DEVICE_MAX = 64 * 1024 };

static const struct jd_field f_attribute[] = {
        JD_STR(struct offered_attribute, "name", name),
        JD_STR(struct offered_attribute, "string", text),
        JD_STR(struct offered_attribute, "version", version),
        JD_INT(struct offered_attribute, "int", number),
        JD_END,
};
static const struct jd_field f_capacity[] = {
        JD_STR(struct offered_capacity, "name", name),
        JD_STR(struct offered_capacity, "value", quantity),
        JD_END,
};
const struct jd_field offered_device_fields[] = {
        JD_STR(struct offered_device, "name", name),
        JD_LIST(struct offered_device, "attributes", attributes, struct offered_attribute, f_attribute),
        JD_LIST(struct offered_device, "capacity", capacities, struct offered_capacity, f_capacity),
        JD_END,
};
static const struct jd_field f_taint[] = {
        JD_STR(struct own_taint, "key", key),
        JD_STR(struct own_taint, "value", value, .omit_empty = true),
        JD_STR(struct own_taint, "effect", effect),
        JD_STR(struct own_taint, "timeAdded", added),
        JD_END,
};
static const struct jd_field f_device[] = {
        JD_STR(struct own_slice_device, "name", name),
        JD_RAW(struct own_slice_device, "attributes", attributes),
        JD_RAW(struct own_slice_device, "basic>attributes", basic_attributes),
        JD_RAW(struct own_slice_device, "capacity", capacity),
        JD_RAW(struct own_slice_device, "basic>capacity", basic_capacity),
        JD_LIST(struct own_slice_device, "taints", taints, struct own_taint, f_taint),
        JD_LIST(struct own_slice_device, "basic>taints", basic_taints, struct own_taint, f_taint),
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
                if (a->text || a->version)
                        jw_str(w, a->text ? "string" : "version", str_or(a->text, a->version));
                else
                        jw_int(w, "int", a->number);
                jw_end_obj(w);
        }
        jw_end_obj(w);
}

/* Left out for a device without capacities, as in the server's objects. */
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

static bool sent(enum slice_taints taken, const struct offered_taint *t) {
        return taken == SLICE_TAINTS_ALL || (taken == SLICE_TAINTS_EFFECTIVE && !streq(t->effect, "None"));
}

static const struct own_taint *taints_there(const struct own_slice_device *d, size_t *ret_n) {
        *ret_n = d->n_taints ? d->n_taints : d->n_basic_taints;
        return d->n_taints ? d->taints : d->basic_taints;
}

static bool same_taint(const struct own_taint *there, const struct offered_taint *want) {
        return streq(there->key, want->key) && streq(str_or(there->value, ""), want->value) &&
               streq(there->effect, want->effect);
}

/* The server sets the time of a taint, and sets a new one if it is sent without. */
static const char *since(const struct own_slice *old, const char *device, const struct offered_taint *want) {
        for (size_t i = 0; old && i < old->n_devices; i++) {
                size_t n;
                const struct own_taint *there = taints_there(&old->devices[i], &n);
                for (size_t j = 0; streq(old->devices[i].name, device) && j < n; j++) {
                        if (same_taint(&there[j], want))
                                return there[j].added;
                }
        }
        return NULL;
}

static void taints(struct jw *w, const struct own_slice *old, const struct offered_device *d,
                   enum slice_taints taken) {
        bool any = false;
        for (size_t i = 0; i < d->n_taints; i++) {
                const struct offered_taint *t = &d->taints[i];
                if (!sent(taken, t))
                        continue;
                if (!any)
                        jw_arr(w, "taints");
                any = true;
                jd_encode(f_taint, &(struct own_taint){ t->key, t->value, t->effect, since(old, d->name, t) },
                          w, NULL);
        }
        if (any)
                jw_end_arr(w);
}

void slice_part_render(const char *version, struct slice_owner owner, const struct own_slice *old,
                       const struct slice_content *want, const struct slice_part *part, struct buf *out) {
        struct jw w = JW(out);
        bool basic = streq(version, "v1beta1");
        jw_obj(&w, NULL);
        jw_strf(&w, "apiVersion", "resource.k8s.io/%s", version);
        jw_str(&w, "kind", "ResourceSlice");
        jw_obj(&w, "metadata");
        jw_strf(&w, "generateName", "%05zx-%s-%s-", part->place, want->driver, owner.node);
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
        jw_str(&w, "name", owner.node);
        jw_str(&w, "uid", owner.uid);
        jw_bool(&w, "controller", true);
        jw_end_obj(&w);
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_obj(&w, "spec");
        jw_str(&w, "driver", want->driver);
        jw_str(&w, "nodeName", owner.node);
        jw_obj(&w, "pool");
        jw_str(&w, "name", owner.node);
        jw_int(&w, "generation", part->generation);
        jw_int(&w, "resourceSliceCount", (int64_t)part->of);
        jw_end_obj(&w);
        jw_arr(&w, "devices");
        for (size_t i = part->first; i < part->first + part->n; i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "name", want->devices[i].name);
                if (basic)
                        jw_obj(&w, "basic");
                attributes(&w, "attributes", &want->devices[i]);
                capacities(&w, "capacity", &want->devices[i]);
                taints(&w, old, &want->devices[i], want->taints);
                if (basic)
                        jw_end_obj(&w);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void slice_render(const char *version, const char *node, const char *node_uid, const struct own_slice *old,
                  const struct slice_content *want, struct buf *out) {
        slice_part_render(
                version, (struct slice_owner){ node, node_uid }, old, want,
                &(struct slice_part){ .of = 1,
                                      .n = want->n_devices,
                                      .generation = old && old->generation > 0 ? old->generation : 1 },
                out);
}

/* In the order in which they were sent. Taints that are not sent are ignored: the server drops them, or
 * another client has added them. */
static bool taints_match(const struct own_slice_device *d, const struct offered_device *want,
                         enum slice_taints taken) {
        size_t n, at = 0;
        const struct own_taint *there = taints_there(d, &n);
        for (size_t i = 0; i < want->n_taints; i++) {
                if (!sent(taken, &want->taints[i]))
                        continue;
                if (at == n || !same_taint(&there[at++], &want->taints[i]))
                        return false;
        }
        return at == n;
}

static bool device_matches(const struct own_slice_device *d, const struct offered_device *want,
                           enum slice_taints taken) {
        struct buf a = BUF_INIT(DEVICE_MAX), c = BUF_INIT(DEVICE_MAX);
        struct jw aw = JW(&a), cw = JW(&c);
        attributes(&aw, NULL, want);
        capacities(&cw, NULL, want);
        struct str attributes_there = d->attributes.n ? d->attributes : d->basic_attributes,
                   capacity_there = d->capacity.n ? d->capacity : d->basic_capacity;
        bool ok = streq(d->name, want->name) && str_eq(attributes_there, (struct str){ a.p, a.n }) &&
                  str_eq(capacity_there, (struct str){ c.p, c.n }) && taints_match(d, want, taken);
        buf_done(&a);
        buf_done(&c);
        return ok;
}

bool slice_has_annotation(const struct own_slice *s, const char *word) {
        return word && jd_pair_get(s->annotations, s->n_annotations, word);
}

bool slice_part_matches(const struct own_slice *s, const char *node, const struct slice_content *want,
                        const struct slice_part *part) {
        if (!streq(s->driver, want->driver) || !streq(s->node, node) || !streq(s->pool, node) ||
            s->count != (int64_t)part->of || s->generation < 1 || s->n_devices != part->n ||
            (want->annotation.key &&
             !streq(jd_pair_get(s->annotations, s->n_annotations, want->annotation.key),
                    want->annotation.value)) ||
            slice_has_annotation(s, want->word))
                return false;
        for (size_t i = 0; i < s->n_devices; i++) {
                if (!device_matches(&s->devices[i], &want->devices[part->first + i], want->taints))
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
                f->undone = now_ms - f->wrote_ms >= SLICE_STABLE_MS ? 1 : f->undone + 1;
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
