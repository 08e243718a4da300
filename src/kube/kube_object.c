/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube_object.h"

#include "base/stderr.h"
#include "base/mem.h"

const struct jd_field kube_f_meta[] = {
        JD_STR(struct kube_meta, "namespace", ns),
        JD_STR(struct kube_meta, "name", name, .required = true),
        JD_STR(struct kube_meta, "uid", uid),
        JD_STR(struct kube_meta, "resourceVersion", rv, .required = true, .not_compared = true),
        JD_INT(struct kube_meta, "generation", generation),
        JD_TIME(struct kube_meta, "creationTimestamp", created),
        JD_TIME(struct kube_meta, "deletionTimestamp", deleted),
        JD_END,
};

/* The count is the only member of a cached object that changes. So the casts are needed: for all others the
 * object is const. */
static struct kube_object *counted(const struct kube_object *o) {
        union {
                const struct kube_object *in;
                struct kube_object *out;
        } u = { .in = o };
        return u.out;
}

const struct kube_object *kube_object_ref(const struct kube_object *o) {
        if (o)
                counted(o)->refs++;
        return o;
}

void kube_object_unref(const struct kube_object *o) {
        if (!o)
                return;
        BUG_ON(o->refs == 0);
        if (--counted(o)->refs == 0)
                arena_free(o->arena);
}

uint64_t kube_object_version(const char *rv) {
        int64_t v;
        return rv && str_to_i64(str_from(rv), &v) && v > 0 ? (uint64_t)v : 0;
}
