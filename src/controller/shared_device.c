/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/shared_device.h"

#include "api/names.h"
#include "base/clock.h"
#include "base/log.h"

enum {
        MAX_BODY = 64 << 10,
        REFUSED_S = 600,    /* until the API server is asked again */
        INTERVAL_MS = 1000, /* if another client creates wrong slices again and again */
        REACH_S = 5,     /* how long no Node has the label until a condition reports it */
        CONFLICTS = 5    /* in a row, until a condition reports them */
};

static const struct slice *shared_slice(const struct controller *c) {
        return (const struct slice *)kube_informer_get(c->caches.slices, NULL, CD_SLICE_SHARED);
}

static bool allows_many(const struct slice *s) {
        return s->n_devices == 1 && s->devices[0].multiple && !s->node;
}

static bool is_served(const struct controller *c) {
        return streq(c->settings.resource_api, "v1");
}

static bool was_refused(const struct controller *c) {
        return c->memory.shared_refused && clock_mono_s() - c->memory.shared_refused < REFUSED_S;
}

enum shared_device_state shared_device_state(const struct controller *c) {
        const struct slice *s = shared_slice(c);
        if (!mode_assigns_channels(c->mode))
                return SHARED_DEVICE_PENDING;
        if (s && allows_many(s))
                return SHARED_DEVICE_PUBLISHED;
        return !is_served(c) || was_refused(c) ? SHARED_DEVICE_REFUSED : SHARED_DEVICE_PENDING;
}

/* ---- the ResourceSlice ---- */

static bool find_asking(void *u, const struct kube_object *o) {
        bool *found = u;
        *found = domain_shares((const struct compute_domain *)o) && !o->meta.deleted;
        return !*found;
}

static bool is_asked_for(const struct controller *c) {
        bool found = false;
        kube_informer_each(c->caches.cds, find_asking, &found);
        return found;
}

static bool queue_asking(void *u, const struct kube_object *o) {
        if (domain_shares((const struct compute_domain *)o))
                records_queue_domain(u, o->meta.uid);
        return true;
}

/* The cache contains only slices of the driver. A conflict may also mean that the cache is late. */
const char *shared_device_error(const struct controller *c) {
        return c->memory.shared_conflicts >= CONFLICTS && !shared_slice(c)
                       ? "a ResourceSlice of another driver has this name. Delete it"
                       : writes_error(c->writes, KEY_OF_SHARED);
}

/* Only the answer to the controller's own creation shows that the API server drops the field. A slice in the
 * cache may be that of another client. */
static void shared_device_on_made(void *u, const struct writes_target *made, yyjson_val *obj,
                                  const struct err *e) {
        struct controller *c = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct slice s = { 0 };
        struct err bad;
        c->memory.shared_conflicts = e && e->kind == ERR_CONFLICT ? c->memory.shared_conflicts + 1 : 0;
        if (c->memory.shared_conflicts == CONFLICTS)
                kube_informer_each(c->caches.cds, queue_asking, c);
        if (!e && jd_decode(slice_fields, obj, "", a, &s, &bad) == 0 && !allows_many(&s))
                c->memory.shared_refused = clock_mono_s();
}

static void shared_device_submit(struct controller *c, enum kube_verb verb, const struct buf *b) {
        writes_try(c->writes,
                   &(struct writes_request){ .requester = KEY_OF_SHARED,
                                             .verb = verb,
                                             .res = &kube_resource_slices,
                                             .name = CD_SLICE_SHARED,
                                             .body = { buf_str(b), b->n },
                                             .interval_ms = verb == KUBE_DELETE ? INTERVAL_MS : 0,
                                             .cache = c->caches.slices,
                                             .done = verb == KUBE_CREATE ? shared_device_on_made : NULL,
                                             .u = c });
}

static bool shared_device_queue_node(void *u, const struct kube_object *o) {
        records_queue_node(u, o->meta.name);
        return true;
}

enum shared_claim_reach shared_device_reach(const struct controller *c) {
        if (shared_device_state(c) != SHARED_DEVICE_PUBLISHED)
                return SHARED_REACH_UNKNOWN;
        return c->memory.shared_nodes ? SHARED_REACH_NODES
               : c->memory.unreached && clock_mono_s() - c->memory.unreached >= REACH_S
                       ? SHARED_REACH_NONE
                       : SHARED_REACH_UNKNOWN;
}

/* Only a current cache shows that no Node has the label. */
static void note_reach(struct controller *c) {
        bool counts = shared_device_state(c) == SHARED_DEVICE_PUBLISHED && !c->memory.shared_nodes;
        if (!counts)
                c->memory.unreached = 0;
        else if (!c->memory.unreached && kube_informer_current(c->caches.nodes))
                c->memory.unreached = clock_mono_s();
        enum shared_claim_reach now = shared_device_reach(c);
        if (counts && now != SHARED_REACH_NONE)
                work_queue_add_after(c->queue, KEY_OF_SHARED, REACH_S * 1000U);
        if (now == c->memory.reach_was)
                return;
        c->memory.reach_was = now;
        kube_informer_each(c->caches.cds, queue_asking, c);
}

/* The state decides the labels of all Nodes, and whether claims are created. */
static void note_state(struct controller *c) {
        enum shared_device_state now = shared_device_state(c);
        note_reach(c);
        if (now == c->memory.shared_was)
                return;
        c->memory.shared_was = now;
        if (now == SHARED_DEVICE_REFUSED)
                log_warn("the API server does not support a device for any number of claims, so there are no "
                         "claims for pods on several nodes",
                         kv_str("resourceAPI", c->settings.resource_api));
        kube_informer_each(c->caches.cds, queue_asking, c);
        kube_informer_each(c->caches.nodes, shared_device_queue_node, c);
}

static void shared_device_on_rechecked(void *u, yyjson_val *obj, const struct err *e) {
        struct controller *c = u;
        c->memory.api_call = NULL;
        if (!e)
                shared_device_changed(c);
}

/* An upgrade of the cluster changes no object, and the client keeps the version that it uses. */
static void recheck_api(struct controller *c) {
        int64_t now = clock_mono_s();
        if (c->memory.api_call || (c->memory.api_asked && now - c->memory.api_asked < REFUSED_S))
                return;
        c->memory.api_asked = now;
        c->memory.api_call = kube_recheck_resource_api(c->client, shared_device_on_rechecked, c);
}

void shared_device_stop(struct controller *c) {
        kube_cancel(TAKE(c->memory.api_call));
}

void shared_device_reconcile(struct controller *c) {
        const struct slice *s = shared_slice(c);
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        /* Without assigned channels, the controller may not write slices, and the chart has no class that
         * selects the device. */
        if (!mode_assigns_channels(c->mode))
                return;
        writes_begin(c->writes, KEY_OF_SHARED);
        bool wrong = s && !allows_many(s), rechecks = !is_served(c) && (s || is_asked_for(c));
        if (wrong) {
                objects_delete(&s->o.meta, s->o.meta.rv, &b);
                shared_device_submit(c, KUBE_DELETE, &b);
        } else if (!s && is_served(c) && !was_refused(c) && is_asked_for(c)) {
                objects_shared_slice(&b);
                shared_device_submit(c, KUBE_CREATE, &b);
        }
        writes_end(c->writes, KEY_OF_SHARED);
        note_state(c);
        if (rechecks)
                recheck_api(c);
        if (rechecks || was_refused(c))
                work_queue_add_after(c->queue, KEY_OF_SHARED, REFUSED_S * 1000U);
}

/* ---- Node labels ---- */

static bool count_offered(void *u, const struct kube_object *o) {
        const struct slice *s = (const struct slice *)o;
        const char *clique;
        if (slice_clique(s, &clique) && *clique)
                *(int64_t *)u += s->n_channels;
        return true;
}

/* The plugin withholds its channel devices while IMEX does not stand on the node, or its channels would not
 * work or not be isolated. */
bool shared_device_is_on(const struct controller *c, const struct node *n) {
        int64_t offered = 0;
        if (shared_device_state(c) != SHARED_DEVICE_PUBLISHED)
                return n->shared && mode_assigns_channels(c->mode) &&
                       !kube_informer_current(c->caches.slices);
        kube_informer_each_at(c->caches.slices, CONTROLLER_BY_NODE, n->o.meta.name, count_offered, &offered);
        return offered || (n->shared && !kube_informer_current(c->caches.slices));
}

/* ---- changes ---- */

void shared_device_changed(struct controller *c) {
        if (c->leading)
                work_queue_add(c->queue, KEY_OF_SHARED);
}

void shared_device_node_changed(struct controller *c, const struct node *was, const struct node *is) {
        bool had = was && was->shared, has = is && is->shared;
        if (had == has)
                return;
        c->memory.shared_nodes += has;
        c->memory.shared_nodes -= had;
        /* Others change nothing for the condition. */
        if (c->memory.shared_nodes <= 1)
                shared_device_changed(c);
}

void shared_device_begin(struct controller *c) {
        c->memory.unreached = 0;
        c->memory.shared_was = shared_device_state(c);
        c->memory.reach_was = shared_device_reach(c);
        if (shared_slice(c) || is_asked_for(c))
                shared_device_changed(c);
}
