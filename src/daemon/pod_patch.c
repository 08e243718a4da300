#include "daemon/pod_patch.h"

#include "base/log.h"
#include "base/mem.h"

#define BODY_MAX ((size_t)16 * 1024)
#define PAUSE_FIRST_MS 1000
#define PAUSE_MAX_MS 60000

/* A report with its own strings, and the patch made of it. */
struct copy {
        struct arena *a;
        struct pod_report r;
        struct buf body;
};

struct pod_patch {
        struct kube_client *client;
        char *ns, *name;
        uv_timer_t timer;
        uint64_t due; /* loop time of the timer */
        struct kube_call *call;
        struct copy *wanted, *sent; /* sent: what the server has, or is being given; NULL: nothing yet */
        unsigned pause_ms;
};

static void copy_free(struct copy *c) {
        if (!c)
                return;
        arena_free(c->a);
        buf_done(&c->body);
        free(c);
}

static struct copy *copy_new(const struct pod_report *r) {
        struct copy *c = xnew(struct copy);

        c->a = arena_new(256);
        c->r = *r;
        c->r.clique_id = arena_strdup(c->a, r->clique_id);
        c->r.state = arena_strdup(c->a, r->state);
        c->r.reason = arena_strdup(c->a, r->reason);
        c->body = BUF_INIT(BODY_MAX);
        pod_report_render(r, &c->body);
        return c;
}

static bool same(const struct copy *x, const struct copy *y) {
        return x && y && streq(buf_str(&x->body), buf_str(&y->body));
}

static void on_timer(uv_timer_t *t);

/* The earlier time wins. */
static void schedule(struct pod_patch *p, unsigned ms) {
        uint64_t due = uv_now(kube_client_loop(p->client)) + ms;

        if (uv_is_active((uv_handle_t *)&p->timer) && p->due <= due)
                return;
        p->due = due;
        uv_timer_start(&p->timer, on_timer, ms, 0);
}

static void on_done(void *u, yyjson_val *obj, const struct err *e) {
        struct pod_patch *p = u;

        (void)obj;
        p->call = NULL;
        if (!e) {
                p->pause_ms = 0;
        } else {
                copy_free(TAKE(p->sent)); /* unknown what the server has */
                if (e->kind == ERR_NOT_FOUND) {
                        log_v(2, "own pod is gone, nothing to report on", kv_str("pod", p->name));
                        return;
                }
                p->pause_ms = p->pause_ms ? p->pause_ms * 2 : PAUSE_FIRST_MS;
                if (p->pause_ms > PAUSE_MAX_MS)
                        p->pause_ms = PAUSE_MAX_MS;
                log_warn("cannot report on own pod, trying again", kv_str("pod", p->name), kv_err(e), kv_int("pause_ms", p->pause_ms));
        }
        if (!same(p->wanted, p->sent))
                schedule(p, p->pause_ms ? p->pause_ms : pod_report_patience(&p->sent->r, &p->wanted->r));
}

static void on_timer(uv_timer_t *t) {
        struct pod_patch *p = t->data;

        if (p->call || same(p->wanted, p->sent))
                return;
        copy_free(p->sent);
        p->sent = copy_new(&p->wanted->r);
        p->call = kube_start(p->client, &(struct kube_request){
                                                .verb = KUBE_MERGE_PATCH,
                                                .res = &kube_pods,
                                                .ns = p->ns,
                                                .name = p->name,
                                                .body = { buf_str(&p->sent->body), p->sent->body.n },
                                                .metadata_only = true,
                                                .done = on_done,
                                                .u = p,
                                        });
}

void pod_patch_set(struct pod_patch *p, const struct pod_report *r) {
        copy_free(p->wanted);
        p->wanted = copy_new(r);
        if (p->call || same(p->wanted, p->sent))
                return;
        /* While the server refuses us, the pause decides. */
        if (!p->pause_ms)
                schedule(p, pod_report_patience(p->sent ? &p->sent->r : NULL, r));
}

struct pod_patch *pod_patch_new(struct kube_client *c, const char *ns, const char *name) {
        struct pod_patch *p = xnew(struct pod_patch);

        p->client = c;
        p->ns = xstrdup(ns);
        p->name = xstrdup(name);
        uv_timer_init(kube_client_loop(c), &p->timer);
        p->timer.data = p;
        return p;
}

static void on_closed(uv_handle_t *h) {
        struct pod_patch *p = h->data;

        copy_free(p->wanted);
        copy_free(p->sent);
        free(p->ns);
        free(p->name);
        free(p);
}

void pod_patch_free(struct pod_patch *p) {
        if (!p)
                return;
        kube_cancel(p->call);
        uv_close((uv_handle_t *)&p->timer, on_closed);
}
