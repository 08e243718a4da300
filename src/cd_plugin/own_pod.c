/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/own_pod.h"

#include "base/stderr.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/kube_informer.h"

enum { PAUSE_FIRST_MS = 1000, PAUSE_MAX_MS = 60000, BODY_MAX = 1 << 20 };

struct annotation {
        const char *key;
        char *value;   /* the desired value; NULL: no annotation */
        char *written; /* the last one that was written, or is being written */
        bool doubtful; /* it is not known whether the write succeeded */
};

struct own_pod {
        struct kube_client *client;
        char *ns, *pod;
        struct kube_informer *informer;
        struct annotation list[OWN_POD_KEYS];
        size_t n;
        struct loop_timer timer;
        uint64_t due; /* loop time of the timer */
        struct kube_call *call;
        unsigned pause_ms; /* after a refusal; 0: none */
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
        const struct annotated_pod *pod =
                (const struct annotated_pod *)kube_informer_get(p->informer, p->ns, p->pod);
        return pod ? !streq(jd_pair_get(pod->annotations, pod->n_annotations, a->key), a->value)
                   : a->doubtful || !streq(a->written, a->value);
}

static bool any_differs(const struct own_pod *p) {
        for (size_t i = 0; i < p->n; i++)
                if (differs(p, &p->list[i]))
                        return true;
        return false;
}

/* The earlier time wins. After a refusal the pause decides. */
static void own_pod_schedule(struct own_pod *p, unsigned ms) {
        uint64_t due = loop_now_ms(kube_client_loop(p->client)) + ms;
        if (p->pause_ms || (loop_timer_waits(&p->timer) && p->due <= due))
                return;
        p->due = due;
        loop_timer_at(&p->timer, due);
}

static void own_pod_render(struct own_pod *p, struct buf *out) {
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

/* ---- writing ---- */

static void own_pod_on_written(void *u, yyjson_val *obj, const struct err *e) {
        struct own_pod *p = u;
        p->call = NULL;
        if (e) {
                unsigned pause_ms = p->pause_ms ? p->pause_ms * 2 : PAUSE_FIRST_MS;
                if (pause_ms > PAUSE_MAX_MS)
                        pause_ms = PAUSE_MAX_MS;
                log_warn("cannot report on own pod, retrying", kv_str("pod", p->pod), kv_err(e),
                         kv_int("pause_ms", pause_ms));
                p->pause_ms = pause_ms;
                loop_timer_start(&p->timer, pause_ms);
                return;
        }
        p->pause_ms = 0;
        for (size_t i = 0; i < p->n; i++)
                p->list[i].doubtful = false;
        kube_informer_answer(p->informer, obj);
        if (!loop_timer_waits(&p->timer) && any_differs(p))
                own_pod_schedule(p, 0);
}

static void own_pod_on_timer(void *u) {
        struct own_pod *p = u;
        _cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
        if (p->call)
                return;
        if (!any_differs(p)) {
                p->pause_ms = 0;
                return;
        }
        own_pod_render(p, &body);
        BUG_ON(body.failed);
        p->call = kube_start(p->client, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                .res = &kube_pods,
                                                                .ns = p->ns,
                                                                .name = p->pod,
                                                                .body = { buf_str(&body), body.n },
                                                                .metadata_only = true,
                                                                .done = own_pod_on_written,
                                                                .u = p });
}

/* ---- the watch ---- */

static void own_pod_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct own_pod *p = u;
        if (now && !p->call && !loop_timer_waits(&p->timer) && any_differs(p))
                own_pod_schedule(p, 0);
}

/* When the API server answers again, the report is retried at once. After a restore of etcd, the controllers
 * wait one minute for the reports, and the pause can be as long. */
static void own_pod_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct own_pod *p = u;
        if (!e && p->pause_ms && !p->call) {
                p->pause_ms = 0;
                p->due = loop_now_ms(kube_client_loop(p->client));
                loop_timer_at(&p->timer, p->due);
        }
        if (e)
                log_warn("cannot watch own pod: if a restore of etcd removes a report, the plugin writes it "
                         "again only after a restart",
                         kv_str("pod", p->pod), kv_err(e));
}

static struct kube_informer *own_pod_watch(struct own_pod *p) {
        _cleanup_(freep) char *selector = xasprintf("metadata.name=%s", p->pod);
        return kube_informer_new(p->client,
                                 &(struct kube_informer_options){ .res = &kube_pods,
                                                                  .ns = p->ns,
                                                                  .field_selector = selector,
                                                                  .fields = fields,
                                                                  .size = sizeof(struct annotated_pod),
                                                                  .metadata_only = true,
                                                                  .first_from_cache = true,
                                                                  .changed = own_pod_on_changed,
                                                                  .failing = own_pod_on_failing,
                                                                  .u = p });
}

void own_pod_set(struct own_pod *p, const char *key, const char *value, unsigned wait_ms) {
        struct annotation *a = p->list;
        if (!p->informer)
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
        free(a->value);
        a->value = value ? xstrdup(value) : NULL;
        if (differs(p, a))
                own_pod_schedule(p, wait_ms);
}

struct own_pod *own_pod_new(struct kube_client *c, const char *ns, const char *pod) {
        struct own_pod *p = xnew(struct own_pod);
        p->client = c;
        p->ns = xstrdup(ns);
        p->pod = xstrdup(pod);
        loop_timer_init(&p->timer, kube_client_loop(c), own_pod_on_timer, p);
        p->informer = *pod ? own_pod_watch(p) : NULL;
        return p;
}

void own_pod_free(struct own_pod *p) {
        if (!p)
                return;
        kube_cancel(p->call);
        kube_informer_free(p->informer);
        loop_timer_done(&p->timer);
        for (size_t i = 0; i < p->n; i++) {
                free(p->list[i].value);
                free(p->list[i].written);
        }
        free(p->ns);
        free(p->pod);
        free(p);
}
