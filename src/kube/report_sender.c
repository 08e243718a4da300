/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/report_sender.h"

#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/stderr.h"

enum { PAUSE_FIRST_MS = 1000, PAUSE_MAX_MS = 60000, BODY_MAX = 1 << 20 };

struct report_sender {
        struct report_sender_options o;
        char *ns, *name;
        struct kube_informer *informer;
        struct kube_call *call;
        struct loop_timer timer;
        uint64_t due;      /* loop time of the timer */
        unsigned pause_ms; /* after a failure; 0: none */
};

static uint64_t report_sender_now(const struct report_sender *s) {
        return loop_now_ms(kube_client_loop(s->o.client));
}

const struct kube_object *report_sender_object(const struct report_sender *s) {
        return kube_informer_get(s->informer, s->ns, s->name);
}

/* The earlier time counts. After a failure only the pause counts. */
void report_sender_check(struct report_sender *s) {
        int wait_ms = s->o.wait_ms(s->o.u);
        if (wait_ms < 0 || s->call)
                return;
        uint64_t due = report_sender_now(s) + (unsigned)wait_ms;
        if (loop_timer_waits(&s->timer) && (s->pause_ms || s->due <= due))
                return;
        s->due = due;
        loop_timer_at(&s->timer, due);
}

static void report_sender_fail(struct report_sender *s, const struct err *e) {
        s->pause_ms = s->pause_ms ? s->pause_ms * 2 : PAUSE_FIRST_MS;
        if (s->pause_ms > PAUSE_MAX_MS)
                s->pause_ms = PAUSE_MAX_MS;
        log_warn("cannot report on own Pod, will retry", kv_str("pod", s->name), kv_err(e),
                 kv_int("pause_ms", s->pause_ms));
        loop_timer_start(&s->timer, s->pause_ms);
}

static void report_sender_on_answer(void *u, yyjson_val *obj, const struct err *e) {
        struct report_sender *s = u;
        struct err differs;
        s->call = NULL;
        if (!e)
                kube_informer_answer(s->informer, obj);
        if (!s->o.sent(s->o.u, e != NULL) && !e) {
                err_set(&differs, ERR_RETRY, 0,
                        "the API server has another report than the one that was sent");
                e = &differs;
        }
        if (e) {
                report_sender_fail(s, e);
                return;
        }
        s->pause_ms = 0;
        report_sender_check(s);
}

static void report_sender_on_timer(void *u) {
        struct report_sender *s = u;
        _cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
        if (s->call)
                return;
        if (s->o.wait_ms(s->o.u) < 0) {
                s->pause_ms = 0;
                return;
        }
        s->o.render(s->o.u, &body);
        BUG_ON(body.failed);
        s->call = kube_start(s->o.client, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                  .res = &kube_pods,
                                                                  .ns = s->ns,
                                                                  .name = s->name,
                                                                  .body = { buf_str(&body), body.n },
                                                                  .metadata_only = true,
                                                                  .done = report_sender_on_answer,
                                                                  .u = s });
}

static void report_sender_on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        if (now)
                report_sender_check(u);
}

static void report_sender_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct report_sender *s = u;
        if (e) {
                log_warn("cannot watch own Pod: if a restore of etcd removes a report, it is written again "
                         "only with the next change",
                         kv_str("pod", s->name), kv_err(e));
        } else if (s->pause_ms && !s->call) {
                s->pause_ms = 0;
                s->due = report_sender_now(s);
                loop_timer_at(&s->timer, s->due);
        }
}

struct report_sender *report_sender_new(const struct report_sender_options *o) {
        struct report_sender *s = xnew(struct report_sender);
        s->o = *o;
        s->ns = xstrdup(o->ns);
        s->name = xstrdup(o->name);
        loop_timer_init(&s->timer, kube_client_loop(o->client), report_sender_on_timer, s);
        s->informer = kube_informer_new(o->client,
                                        &(struct kube_informer_options){ .res = &kube_pods,
                                                                         .ns = s->ns,
                                                                         .name = o->name,
                                                                         .fields = o->fields,
                                                                         .size = o->size,
                                                                         .metadata_only = true,
                                                                         .first_from_cache = true,
                                                                         .changed = report_sender_on_changed,
                                                                         .failing = report_sender_on_failing,
                                                                         .u = s });
        return s;
}

void report_sender_free(struct report_sender *s) {
        if (!s)
                return;
        kube_cancel(s->call);
        kube_informer_free(s->informer);
        loop_timer_done(&s->timer);
        free(s->ns);
        free(s->name);
        free(s);
}
