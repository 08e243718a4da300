/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/own_pod.h"

#include "base/stderr.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/report_sender.h"

struct annotation {
        const char *key;
        char *value;   /* the desired value; NULL: no annotation */
        char *written; /* the last one that was written, or is being written */
        bool doubtful; /* it is not known whether the write succeeded */
};

struct own_pod {
        struct kube_client *client;
        struct report_sender *sender; /* NULL: nothing is reported */
        struct annotation list[OWN_POD_KEYS];
        size_t n;
        uint64_t due; /* loop time when the present differences have to be written */
};

struct annotated_pod {
        struct kube_object o;
        struct jd_pair *annotations;
        size_t n_annotations;
};
static const struct jd_field fields[] = {
        JD_OBJ(struct annotated_pod, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct annotated_pod, "metadata>annotations", annotations),
        JD_END,
};

/* ---- the differences ---- */

/* Before the Pod has been seen, annotations of an earlier process are not known, and not removed. */
static bool differs(const struct own_pod *p, const struct annotation *a) {
        const struct annotated_pod *pod = (const struct annotated_pod *)report_sender_object(p->sender);
        return pod ? !streq(jd_pair_get(pod->annotations, pod->n_annotations, a->key), a->value)
                   : a->doubtful || !streq(a->written, a->value);
}

static bool any_differs(const struct own_pod *p) {
        for (size_t i = 0; i < p->n; i++)
                if (differs(p, &p->list[i]))
                        return true;
        return false;
}

/* ---- what the sender asks ---- */

static int own_pod_wait_ms(void *u) {
        const struct own_pod *p = u;
        uint64_t now = loop_now_ms(kube_client_loop(p->client));
        if (!any_differs(p))
                return -1;
        return p->due > now ? (int)(p->due - now) : 0;
}

static void own_pod_render(void *u, struct buf *out) {
        struct own_pod *p = u;
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        jw_obj(&w, "annotations");
        for (size_t i = 0; i < p->n; i++) {
                struct annotation *a = &p->list[i];
                if (!differs(p, a))
                        continue;
                jw_str(&w, a->key, a->value);
                free(a->written);
                a->written = a->value ? xstrdup(a->value) : NULL;
                a->doubtful = true;
        }
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

static bool own_pod_sent(void *u, bool failed) {
        struct own_pod *p = u;
        const struct annotated_pod *pod = (const struct annotated_pod *)report_sender_object(p->sender);
        bool has = true;
        for (size_t i = 0; i < p->n && !failed; i++) {
                struct annotation *a = &p->list[i];
                if (a->doubtful && pod &&
                    !streq(jd_pair_get(pod->annotations, pod->n_annotations, a->key), a->written))
                        has = false;
                a->doubtful = false;
        }
        return has;
}

/* ---- the module ---- */

void own_pod_set(struct own_pod *p, const char *key, const char *value, unsigned wait_ms) {
        struct annotation *a = p->list;
        if (!p->sender)
                return;
        while (a < p->list + p->n && !streq(a->key, key))
                a++;
        if (a == p->list + p->n) {
                BUG_ON(p->n == OWN_POD_KEYS);
                p->n++;
                a->key = key;
        } else if (streq(a->value, value)) {
                return;
        }
        uint64_t due = loop_now_ms(kube_client_loop(p->client)) + wait_ms;
        if (due < p->due || !any_differs(p))
                p->due = due;
        free(a->value);
        a->value = value ? xstrdup(value) : NULL;
        report_sender_check(p->sender);
}

struct own_pod *own_pod_new(struct kube_client *c, const char *ns, const char *pod) {
        struct own_pod *p = xnew(struct own_pod);
        p->client = c;
        if (*pod)
                p->sender = report_sender_new(
                        &(struct report_sender_options){ .client = c,
                                                         .ns = ns,
                                                         .name = pod,
                                                         .fields = fields,
                                                         .size = sizeof(struct annotated_pod),
                                                         .wait_ms = own_pod_wait_ms,
                                                         .render = own_pod_render,
                                                         .sent = own_pod_sent,
                                                         .u = p });
        return p;
}

void own_pod_free(struct own_pod *p) {
        if (!p)
                return;
        report_sender_free(p->sender);
        for (size_t i = 0; i < p->n; i++) {
                free(p->list[i].value);
                free(p->list[i].written);
        }
        free(p);
}
