/* SPDX-License-Identifier: Apache-2.0 */
/* slice: renders the JSON of a node's ResourceSlices, and checks whether a slice on the server has the
 * desired content. The driver determines the content: a node that cannot serve offers no devices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "kube/kube_object.h"

/* The desired content, with all memory in `arena`. */
struct offered_attribute {
        const char *name;
        const char *text, *version; /* one at most is set; both are NULL: the value is `number` */
        int64_t number;
};
struct offered_capacity {
        const char *name;
        const char *quantity; /* as the server writes it, for example "40Gi" */
};
/* The effect NoSchedule: a claim that does not tolerate the taint is not allocated the device. The effect
 * None: the taint is information only. */
struct offered_taint {
        const char *key, *value; /* value "": none */
        const char *effect;
};
/* The lists of attributes and capacities are sorted by name, like those of the server, so that the texts can
 * be compared. */
struct offered_device {
        const char *name;
        const struct offered_attribute *attributes;
        size_t n_attributes;
        const struct offered_capacity *capacities;
        size_t n_capacities;
        const struct offered_taint *taints;
        size_t n_taints;
};
extern const struct jd_field offered_device_fields[]; /* to copy and compare a device without its taints */
/* A device under construction. Its lists grow, and offered_end() sorts them. All members are zero at the
 * start, except the arena. */
struct offered_builder {
        struct arena *a;
        struct offered_attribute *attributes;
        struct offered_capacity *capacities;
        size_t n_attributes, n_capacities, room_attributes, room_capacities;
};
/* These functions build a device. The strings are borrowed. */
void offered_add_attribute(struct offered_builder *b, struct offered_attribute attribute);
void offered_add_capacity(struct offered_builder *b, struct offered_capacity capacity);
struct offered_device offered_end(struct offered_builder *b, const char *name);

/* Defines which taints this API server accepts. Other taints are neither sent nor expected in its answer. */
enum slice_taints {
        SLICE_TAINTS_ALL,
        SLICE_TAINTS_EFFECTIVE, /* all except those with effect None, which servers before 1.36 reject */
        SLICE_TAINTS_NONE,      /* none: the server drops them because it is older than 1.33 or lacks the
                                   feature gate DRADeviceTaints */
};
struct slice_content {
        struct arena *arena; /* NULL: the content is static */
        const char *driver;
        const struct offered_device *devices;
        size_t n_devices;
        struct jd_pair annotation; /* the driver's own annotation; value NULL: the slice must not have it */
        /* A user's annotation (slice_on_annotation()), which the next write removes; NULL: none. */
        const char *word;
        enum slice_taints taints;
        size_t part_max; /* the number of devices in a slice; 0: as many as a slice may have */
};

/* A slice of this plugin, as the server has it. */
struct own_taint {
        const char *key, *value, *effect, *added;
};
struct own_slice_device {
        const char *name;
        struct str attributes, capacity;             /* v1, v1beta2 */
        struct str basic_attributes, basic_capacity; /* v1beta1 */
        struct own_taint *taints, *basic_taints;
        size_t n_taints, n_basic_taints;
};
struct own_slice {
        struct kube_object o;
        const char *driver, *node, *pool;
        int64_t generation, count;
        struct jd_pair *annotations;
        size_t n_annotations;
        struct own_slice_device *devices;
        size_t n_devices;
};
extern const struct jd_field own_slice_fields[];

/* One of several slices. It contains `n` devices, beginning with device `first`. */
struct slice_part {
        size_t place, of; /* the position of this slice, from 0, and the number of slices */
        size_t first, n;
        int64_t generation;
};

/* The Node that owns the slices. */
struct slice_owner {
        const char *node, *uid;
};

/* Renders the object to create (`old` NULL), or to replace `old` with. `version` is the version of
 * resource.k8s.io. Pure. */
void slice_part_render(const char *version, struct slice_owner owner, const struct own_slice *old,
                       const struct slice_content *want, const struct slice_part *part, struct buf *out);
/* Renders all devices in one slice, with the generation of `old`. */
void slice_render(const char *version, const char *node, const char *node_uid, const struct own_slice *old,
                  const struct slice_content *want, struct buf *out);
/* Returns whether the slice has the desired content of this part; its generation is ignored. Pure. */
bool slice_part_matches(const struct own_slice *s, const char *node, const struct slice_content *want,
                        const struct slice_part *part);
/* Returns whether the slice has the annotation `word`; false if `word` is NULL. Pure. */
bool slice_has_annotation(const struct own_slice *s, const char *word);
/* Returns whether `a` is kept when only one of two slices can be: the slice with the newer generation is
 * kept, or with equal generations, the older slice. Pure. */
bool slice_outranks(const struct own_slice *a, const struct own_slice *b);

/* Limits how often a write is repeated. During an update, two plugin processes may want different content.
 * Each would then treat the other's write as drift, and write again without a pause. So when a write is
 * undone for the first time (by a person or a restore), it is repeated at once. After that it is repeated at
 * growing intervals of up to SLICE_FLOOR_MAX_MS, until it has lasted for SLICE_STABLE_MS. Pure. */
enum { SLICE_FLOOR_MIN_MS = 1000, SLICE_FLOOR_MAX_MS = 300000, SLICE_STABLE_MS = 600000 };
struct slice_floor {
        bool wrote, noticed;
        uint64_t wrote_ms, due_ms;
        unsigned undone; /* the number of writes that were undone one after the other */
};
/* Returns how long to wait before the next write, in milliseconds, when the server does not have the desired
 * content; 0: write now. */
uint64_t slice_floor_wait(struct slice_floor *f, uint64_t now_ms);
void slice_floor_wrote(struct slice_floor *f, uint64_t now_ms);
