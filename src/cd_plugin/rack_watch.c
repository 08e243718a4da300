/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/rack_watch.h"

#include "base/log.h"
#include "kube/kube_informer.h"

struct rack_watch {
        struct kube_informer *informer;
        char *node, *label;
        void (*changed)(void *u);
        void *u;
};

struct labelled_node {
        struct kube_object o;
        struct jd_pair *labels;
        size_t n_labels;
};
static const struct jd_field fields[] = {
        JD_OBJ(struct labelled_node, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct labelled_node, "metadata>labels", labels),
        JD_END,
};

static const char *value(const struct rack_watch *w, const struct kube_object *o) {
        const struct labelled_node *n = (const struct labelled_node *)o;
        return n ? jd_pair_get(n->labels, n->n_labels, w->label) : NULL;
}

static void rack_watch_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct rack_watch *w = u;
        if (!old || !streq(value(w, old), value(w, now)))
                w->changed(w->u);
}

static void rack_watch_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct rack_watch *w = u;
        if (e)
                log_warn("cannot watch the node for the label of its rack", kv_str("node", w->node),
                         kv_str("label", w->label), kv_err(e));
}

struct rack_watch *rack_watch_new(struct kube_client *c, const char *node, const char *label,
                                  void (*changed)(void *u), void *u) {
        struct rack_watch *w = xnew(struct rack_watch);
        _cleanup_(freep) char *selector = xasprintf("metadata.name=%s", node);
        w->node = xstrdup(node);
        w->label = xstrdup(label);
        w->changed = changed;
        w->u = u;
        w->informer = kube_informer_new(c, &(struct kube_informer_options){
                                                   .res = &kube_nodes,
                                                   .field_selector = selector,
                                                   .fields = fields,
                                                   .size = sizeof(struct labelled_node),
                                                   .metadata_only = true,
                                                   .first_from_cache = true,
                                                   .changed = rack_watch_on_changed,
                                                   .failing = rack_watch_on_failing,
                                                   .u = w,
                                           });
        return w;
}

bool rack_watch_value(const struct rack_watch *w, const char **ret) {
        const struct kube_object *o = kube_informer_get(w->informer, NULL, w->node);
        *ret = value(w, o);
        return o != NULL;
}

void rack_watch_free(struct rack_watch *w) {
        if (!w)
                return;
        kube_informer_free(w->informer);
        free(w->node);
        free(w->label);
        free(w);
}
