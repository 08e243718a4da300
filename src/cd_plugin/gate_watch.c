/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/gate_watch.h"

#include "api/names.h"
#include "api/resources.h"
#include "base/log.h"
#include "kube/kube_informer.h"

struct gate_watch {
        char *ns, *name;
        struct kube_informer *informer;
        void (*changed)(void *u);
        void *u;
};

static const struct jd_field gated_fields[] = {
        JD_OBJ(struct gated_domain, "metadata", o.meta, kube_f_meta),
        JD_STR(struct gated_domain, "metadata>annotations>" CD_ANNOTATION_START_GATE, start_gate),
        JD_LIST(struct gated_domain, "status>conditions", conditions, struct cd_condition,
                cd_condition_fields),
        JD_END,
};

static void gate_watch_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct gate_watch *w = u;
        w->changed(w->u);
}

static void gate_watch_on_synced(void *u) {
        struct gate_watch *w = u;
        w->changed(w->u);
}

static void gate_watch_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        const struct gate_watch *w = u;
        if (e)
                log_warn("cannot watch a ComputeDomain with a start gate: its pods wait",
                         kv_str("namespace", w->ns), kv_str("domain", w->name), kv_err(e));
        else
                log_info("the watch of a ComputeDomain with a start gate works again",
                         kv_str("namespace", w->ns), kv_str("domain", w->name));
}

static void gate_watch_on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        const struct gate_watch *w = u;
        log_error("a ComputeDomain with a start gate cannot be decoded", kv_str("namespace", w->ns),
                  kv_str("domain", w->name), kv_err(e));
}

struct gate_watch *gate_watch_new(struct kube_client *c, const char *ns, const char *name,
                                  void (*changed)(void *u), void *u) {
        struct gate_watch *w = xnew(struct gate_watch);
        w->ns = xstrdup(ns);
        w->name = xstrdup(name);
        w->changed = changed;
        w->u = u;
        w->informer = kube_informer_new(c, &(struct kube_informer_options){
                                                   .res = &kube_compute_domains,
                                                   .ns = w->ns,
                                                   .name = name,
                                                   .fields = gated_fields,
                                                   .size = sizeof(struct gated_domain),
                                                   .changed = gate_watch_on_changed,
                                                   .synced = gate_watch_on_synced,
                                                   .failing = gate_watch_on_failing,
                                                   .undecodable = gate_watch_on_undecodable,
                                                   .u = w,
                                           });
        return w;
}

bool gate_watch_see(const struct gate_watch *w, const char *uid, const struct gated_domain **ret) {
        const struct kube_object *o = kube_informer_get(w->informer, w->ns, w->name);
        *ret = o && streq(o->meta.uid, uid) ? (const struct gated_domain *)o : NULL;
        return kube_informer_synced(w->informer);
}

void gate_watch_free(struct gate_watch *w) {
        if (!w)
                return;
        kube_informer_free(w->informer);
        free(w->ns);
        free(w->name);
        free(w);
}
