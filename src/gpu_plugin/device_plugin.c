/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/device_plugin.h"

#include "base/log.h"
#include "kube/kube_informer.h"

enum { OFFERS_MAX = 1024 };

struct device_plugin {
        struct kube_informer *informer;
        char *node, *last; /* last: reported offers; NULL: none yet */
        void (*changed)(void *u, const char *offers);
        void *u;
};

struct node_capacity {
        struct kube_object o;
        struct jd_pair *capacity;
        size_t n_capacity;
};
static const struct jd_field fields[] = {
        JD_OBJ(struct node_capacity, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct node_capacity, "status>capacity", capacity),
        JD_END,
};

/* The resource names of NVIDIA's device plugin: GPUs, shared GPUs, and MIG devices by their profile. */
static bool is_of_gpus(const char *resource) {
        return streq(resource, "nvidia.com/gpu") || streq(resource, "nvidia.com/gpu.shared") ||
               str_starts(resource, "nvidia.com/mig-");
}

static void device_plugin_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        const struct node_capacity *n = (const struct node_capacity *)now;
        struct device_plugin *d = u;
        struct buf offers = BUF_INIT(OFFERS_MAX);
        for (size_t i = 0; n && i < n->n_capacity; i++)
                if (is_of_gpus(n->capacity[i].key) && !streq(n->capacity[i].value, "0"))
                        buf_addf(&offers, "%s%s: %s", offers.n ? ", " : "", n->capacity[i].key,
                                 n->capacity[i].value);
        if (!streq(d->last, buf_str(&offers))) {
                free(d->last);
                d->last = xstrdup(buf_str(&offers));
                d->changed(d->u, d->last);
        }
        buf_done(&offers);
}

static void device_plugin_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        const struct device_plugin *d = u;
        if (e)
                log_warn("cannot watch the Node to detect a device plugin that also gives its GPUs to pods",
                         kv_str("node", d->node), kv_err(e));
}

struct device_plugin *device_plugin_new(struct kube_client *c, const char *node,
                                        void (*changed)(void *u, const char *offers), void *u) {
        struct device_plugin *d = xnew(struct device_plugin);
        _cleanup_(freep) char *selector = xasprintf("metadata.name=%s", node);
        d->node = xstrdup(node);
        d->changed = changed;
        d->u = u;
        d->informer = kube_informer_new(c, &(struct kube_informer_options){
                                                   .res = &kube_nodes,
                                                   .field_selector = selector,
                                                   .fields = fields,
                                                   .size = sizeof(struct node_capacity),
                                                   .first_from_cache = true,
                                                   .changed = device_plugin_on_changed,
                                                   .failing = device_plugin_on_failing,
                                                   .u = d,
                                           });
        return d;
}

void device_plugin_free(struct device_plugin *d) {
        if (!d)
                return;
        kube_informer_free(d->informer);
        free(d->node);
        free(d->last);
        free(d);
}
