/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pod_patch.h"

#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_MAX_MS 60000

struct entry {
        void *report;
        char *body;
};

struct pod_patch {
        struct pod_patch_options o;
        char *ns, *name;
        struct loop_timer timer;
        uint64_t due; /* loop time of the timer */
        struct kube_call *call;
        struct entry wanted, sent; /* body NULL: none. sent: what the server has, or is being given; moved
                                      there from wanted */
        unsigned pause_ms;
};

static void drop(struct pod_patch *p, struct entry *e) {
        if (e->body)
                p->o.drop(e->report);
        free(e->body);
        *e = (struct entry){ 0 };
}

static bool settled(const struct pod_patch *p) {
        return !p->wanted.body || streq(p->wanted.body, p->sent.body);
}

static unsigned patience(const struct pod_patch *p) {
        return p->o.patience(p->sent.report, p->wanted.report);
}

/* The earlier time wins. */
static void schedule(struct pod_patch *p, unsigned ms) {
        uint64_t due = uv_now(kube_client_loop(p->o.client)) + ms;

        if (loop_timer_waits(&p->timer) && p->due <= due)
                return;
        p->due = due;
        loop_timer_at(&p->timer, due);
}

static void on_done(void *u, yyjson_val *obj, const struct err *e) {
        struct pod_patch *p = u;

        (void)obj;
        p->call = NULL;
        if (!e) {
                p->pause_ms = 0;
        } else {
                if (p->wanted.body)
                        drop(p, &p->sent);
                else
                        p->wanted = p->sent;
                p->sent = (struct entry){ 0 }; /* unknown what the server has */
                p->pause_ms = p->pause_ms ? p->pause_ms * 2 : PAUSE_FIRST_MS;
                if (p->pause_ms > PAUSE_MAX_MS)
                        p->pause_ms = PAUSE_MAX_MS;
                log_warn("cannot report on own pod, trying again", kv_str("pod", p->name), kv_err(e),
                         kv_int("pause_ms", p->pause_ms));
        }
        if (!settled(p))
                schedule(p, p->pause_ms ? p->pause_ms : patience(p));
}

static void on_timer(void *u) {
        struct pod_patch *p = u;

        if (p->call || settled(p))
                return;
        drop(p, &p->sent);
        p->sent = p->wanted;
        p->wanted = (struct entry){ 0 };
        p->call = kube_start(p->o.client, &(struct kube_request){
                                                  .verb = KUBE_MERGE_PATCH,
                                                  .res = &kube_pods,
                                                  .ns = p->ns,
                                                  .name = p->name,
                                                  .body = str_from(p->sent.body),
                                                  .metadata_only = true,
                                                  .done = on_done,
                                                  .u = p,
                                          });
}

void pod_patch_set(struct pod_patch *p, void *report, struct str body) {
        drop(p, &p->wanted);
        p->wanted = (struct entry){ report, xstrndup(body.p, body.n) };
        if (p->call || settled(p))
                return;
        /* While the server refuses us, the pause decides. */
        if (!p->pause_ms)
                schedule(p, patience(p));
}

struct pod_patch *pod_patch_new(const struct pod_patch_options *o) {
        struct pod_patch *p = xnew(struct pod_patch);

        p->o = *o;
        p->o.ns = p->ns = xstrdup(o->ns);
        p->o.name = p->name = xstrdup(o->name);
        loop_timer_init(&p->timer, kube_client_loop(o->client), on_timer, p);
        return p;
}

void pod_patch_free(struct pod_patch *p) {
        if (!p)
                return;
        kube_cancel(p->call);
        loop_timer_done(&p->timer);
        drop(p, &p->wanted);
        drop(p, &p->sent);
        free(p->ns);
        free(p->name);
        free(p);
}
