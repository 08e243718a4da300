/* SPDX-License-Identifier: Apache-2.0 */
#include "node/retry.h"

#include <stdio.h>
#include <time.h>

#include "api/names.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/backoff.h"
#include "kube/kube_pages.h"
#include "node/fetch.h"
#include "node/prepare_verdict.h"

/* A pod or a PodGroup for which a request was sent. */
struct retry_pod {
        LIST_ENTRY(retry_pod) link;
        char *uid;
        unsigned pause_ms;
        uint64_t next_ms; /* the earliest time of the next request */
};

struct retry_patch {
        LIST_ENTRY(retry_patch) link;
        struct kube_call *call;
        char *pod;    /* "<namespace>/<name>", for the log */
        bool foreign; /* the pod may be on another node */
};

/* A list of the pods that wait on this node: those of a PodGroup, or those that name a claim. */
struct retry_list {
        LIST_ENTRY(retry_list) link;
        struct retry *r;
        struct kube_pages *pages; /* its options borrow `ns` and `selector` */
        bool of_group;
        char *ns, *name, *selector; /* `name`: of the PodGroup or of the claim */
};

struct retry {
        struct claims *c;
        struct loop_timer timer;  /* fires when the first pause ends for which a claim waits */
        uint64_t timer_ms;        /* when it fires */
        struct loop_timer recent; /* fires a while after a registration */
        struct loop_turn sweep;
        LIST_HEAD(, retry_pod) pods;
        LIST_HEAD(, retry_patch) patches;
        LIST_HEAD(, retry_list) lists;
        bool off_logged, denied_logged;
};

/* ---- requests ---- */

static void patch_free(struct retry_patch *p) {
        LIST_REMOVE(p, link);
        free(p->pod);
        free(p);
}

/* A pod that no longer exists needs no retry, nor does one with another UID: then the API server answers that
 * the patch is invalid. */
static void retry_on_patched(void *u, yyjson_val *obj, const struct err *e) {
        struct retry_patch *p = u;
        if (e && p->foreign && e->kind == ERR_DENIED)
                log_v(2, "a pod of a shared claim may be on another node", kv_str("pod", p->pod), kv_err(e));
        else if (e && e->kind != ERR_NOT_FOUND && e->kind != ERR_INVALID)
                log_warn("cannot ask the kubelet to retry: it retries by itself after 60 to 90 s",
                         kv_str("pod", p->pod), kv_err(e));
        patch_free(p);
}

/* The value differs from that of any earlier request, also of another process. */
static void now_text(char ret[static 48]) {
        struct timespec now;
        char seconds[32];
        clock_gettime(CLOCK_REALTIME, &now);
        str_time(now.tv_sec, seconds);
        snprintf(ret, 48, "%.19s.%06ldZ", seconds, now.tv_nsec / 1000);
}

static void send_patch(struct retry *r, const char *ns, const char *name, const char *uid, bool foreign) {
        _cleanup_(buf_done) struct buf body = BUF_INIT(4096);
        struct retry_patch *p = xnew(struct retry_patch);
        struct jw w = JW(&body);
        char now[48];
        now_text(now);
        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        jw_str(&w, "uid", uid);
        jw_obj(&w, "annotations");
        jw_str(&w, CD_ANNOTATION_RETRY, now);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        p->pod = xasprintf("%s/%s", ns, name);
        p->foreign = foreign;
        LIST_INSERT_HEAD(&r->patches, p, link);
        p->call = kube_start(r->c->o.kube, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                   .res = &kube_pods,
                                                                   .ns = ns,
                                                                   .name = name,
                                                                   .body = { buf_str(&body), body.n },
                                                                   .metadata_only = true,
                                                                   .done = retry_on_patched,
                                                                   .u = p });
}

/* ---- pauses ---- */

static struct retry_pod *retry_find(const struct retry *r, const char *uid) {
        struct retry_pod *p;
        LIST_FOREACH (p, &r->pods, link) {
                if (streq(p->uid, uid))
                        return p;
        }
        return NULL;
}

static void forget_calm(struct retry *r, uint64_t now) {
        struct retry_pod *p, *next;
        for (p = LIST_FIRST(&r->pods); p; p = next) {
                next = LIST_NEXT(p, link);
                if (now < p->next_ms - p->pause_ms + RETRY_CALM_MS)
                        continue;
                LIST_REMOVE(p, link);
                free(p->uid);
                free(p);
        }
}

static void begin_pause(struct retry *r, const char *uid, uint64_t now) {
        struct retry_pod *p = retry_find(r, uid);
        if (!p) {
                p = xnew(struct retry_pod);
                p->uid = xstrdup(uid);
                LIST_INSERT_HEAD(&r->pods, p, link);
        }
        p->pause_ms = !p->pause_ms                           ? RETRY_PAUSE_MS
                      : p->pause_ms < RETRY_PAUSE_MAX_MS / 2 ? p->pause_ms * 2
                                                             : RETRY_PAUSE_MAX_MS;
        p->next_ms = now + p->pause_ms;
}

/* ---- pods that status.reservedFor does not name, or too many ---- */

static void list_free(struct retry_list *l) {
        LIST_REMOVE(l, link);
        kube_pages_free(l->pages);
        free(l->ns);
        free(l->name);
        free(l->selector);
        free(l);
}

static const char *text_at(yyjson_val *o, const char *path) {
        return str_or(yyjson_get_str(yyjson_ptr_get(o, path)), "");
}

static bool names_claim(yyjson_val *pod, const char *claim) {
        size_t i, max;
        yyjson_val *o;
        yyjson_arr_foreach (yyjson_ptr_get(pod, "/spec/resourceClaims"), i, max, o)
                if (streq(text_at(o, "/resourceClaimName"), claim))
                        return true;
        return false;
}

/* A pod whose Prepare has failed has no container yet, so it is Pending. */
static bool waits_here(const struct retry_list *l, yyjson_val *pod) {
        return (l->of_group ? streq(text_at(pod, "/spec/schedulingGroup/podGroupName"), l->name)
                            : names_claim(pod, l->name)) &&
               streq(text_at(pod, "/spec/nodeName"), l->r->c->o.node) &&
               streq(text_at(pod, "/status/phase"), "Pending") &&
               !yyjson_ptr_get(pod, "/metadata/deletionTimestamp") &&
               yyjson_arr_size(yyjson_ptr_get(pod, "/spec/resourceClaims"));
}

static void report_list_error(struct retry_list *l, const struct err *e) {
        struct retry *r = l->r;
        if (e->kind != ERR_DENIED)
                log_warn("cannot list pods: the kubelet retries by itself after 60 to 90 s",
                         kv_str("namespace", l->ns), kv_str(l->of_group ? "podGroup" : "claim", l->name),
                         kv_err(e));
        else if (!r->denied_logged)
                log_info("the kubelet retries the pods of PodGroups, and of claims with many pods, by itself "
                         "after 60 to 90 s: the account of this plugin may not list pods in their namespace",
                         kv_str("namespace", l->ns), kv_str(l->of_group ? "podGroup" : "claim", l->name),
                         kv_err(e));
        r->denied_logged = r->denied_logged || e->kind == ERR_DENIED;
}

static void retry_on_pods(void *u, yyjson_val *page, bool last, const struct err *e) {
        struct retry_list *l = u;
        size_t i, max;
        yyjson_val *o;
        yyjson_arr_foreach (yyjson_obj_get(page, "items"), i, max, o) {
                const char *name = text_at(o, "/metadata/name"), *uid = text_at(o, "/metadata/uid");
                if (!waits_here(l, o) || !*name || !*uid)
                        continue;
                log_v(2, "a pod waits", kv_str("namespace", l->ns),
                      kv_str(l->of_group ? "podGroup" : "claim", l->name), kv_str("pod", name));
                send_patch(l->r, l->ns, name, uid, false);
        }
        if (e)
                report_list_error(l, e);
        if (last || e)
                list_free(l);
}

static void list_waiting(struct retry *r, const char *ns, bool of_group, const char *name) {
        struct retry_list *l;
        LIST_FOREACH (l, &r->lists, link) {
                if (l->of_group == of_group && streq(l->ns, ns) && streq(l->name, name)) {
                        /* Its pages so far may lack a pod that waits since then. */
                        kube_pages_start(l->pages, false);
                        return;
                }
        }
        l = xnew(struct retry_list);
        l->r = r;
        l->of_group = of_group;
        l->ns = xstrdup(ns);
        l->name = xstrdup(name);
        l->selector = xasprintf("spec.nodeName=%s,status.phase=Pending", r->c->o.node);
        l->pages = kube_pages_new(r->c->o.kube, &(struct kube_pages_options){ .res = &kube_pods,
                                                                              .ns = l->ns,
                                                                              .field_selector = l->selector,
                                                                              .page = retry_on_pods,
                                                                              .u = l });
        LIST_INSERT_HEAD(&r->lists, l, link);
        kube_pages_start(l->pages, false);
}

/* ---- claims ---- */

/* A pod, or a PodGroup whose pods can be found. */
static bool can_ask(const struct claim_consumer *c) {
        return c->name && c->uid && (claim_consumer_is_group(c) || streq(c->resource, "pods"));
}

/* Several pods on this node may wait for the claim. */
static bool has_several_pods(const struct claim *c) {
        return c->n_consumers > 1 || (c->n_consumers && claim_consumer_is_group(&c->consumers[0]));
}

/* False: a pod of the claim had a request a short while ago, so the next one is sent later. */
static bool retry_ask(struct retry *r, const struct op *op) {
        uint64_t now = loop_now_ms(r->c->o.loop), due = 0;
        forget_calm(r, now);
        for (size_t i = 0; i < op->claim.n_consumers; i++) {
                const struct claim_consumer *x = &op->claim.consumers[i];
                const struct retry_pod *p = can_ask(x) ? retry_find(r, x->uid) : NULL;
                if (p && p->next_ms > due)
                        due = p->next_ms;
        }
        if (due > now) {
                if (!loop_timer_waits(&r->timer) || due < r->timer_ms)
                        loop_timer_at(&r->timer, r->timer_ms = due);
                return false;
        }
        bool many = op->claim.n_consumers > RETRY_PODS_MAX;
        if (many)
                list_waiting(r, op->ns, false, op->name);
        for (size_t i = 0; i < op->claim.n_consumers; i++) {
                const struct claim_consumer *x = &op->claim.consumers[i];
                bool is_group = claim_consumer_is_group(x);
                if (!can_ask(x))
                        continue;
                begin_pause(r, x->uid, now);
                if (many && !is_group)
                        continue;
                log_info("asking the kubelet to call Prepare again", kv_str("namespace", op->ns),
                         kv_str("claim", op->name), kv_str(is_group ? "podGroup" : "pod", x->name),
                         kv_str("was", op->msg));
                if (is_group)
                        list_waiting(r, op->ns, true, x->name);
                else
                        send_patch(r, op->ns, x->name, x->uid, op->claim.n_consumers > 1);
        }
        return true;
}

static bool is_off(struct retry *r) {
        if (r->c->o.retries)
                return false;
        if (!r->off_logged)
                log_info("the kubelet retries failed Prepares by itself after 60 to 90 s: --retry-prepares "
                         "is off, so this plugin does not ask for an earlier retry");
        r->off_logged = true;
        return true;
}

/* ---- kept operations ---- */

static void retry_expired(void *u) {
        struct op *op = u;
        struct claims *c = op->c;
        op_drop(op);
        ops_kick(c); /* the driver learns what still waits */
}

static void keep(struct op *op) {
        loop_timer_done(&op->timer);
        loop_timer_init(&op->timer, op->c->o.loop, retry_expired, op);
        loop_timer_start(&op->timer, RETRY_KEEP_MS);
}

void retry_fail(struct op *op, const char *msg) {
        struct claims *c = op->c;
        bool of_kubelet = op->dra || op->late;
        if (!of_kubelet || is_off(c->retry)) {
                if (msg)
                        op_fail(op, msg);
                else
                        op_drop(op);
                return;
        }
        retry_forget(c, op->uid);
        op->retry_any = op->progress < OP_FETCHED;
        op_keep(op, msg);
        keep(op);
        if (op->phase != OP_FAILED && op->phase != OP_FETCHING)
                fetch_start(op);
}

/* A claim has at most one. */
static struct op *kept_of(const struct claims *c, const char *uid) {
        struct op *op;
        TAILQ_FOREACH (op, &c->failed, link) {
                if (streq(op->uid, uid))
                        return op;
        }
        return NULL;
}

void retry_forget(struct claims *c, const char *uid) {
        struct op *op = kept_of(c, uid);
        if (op)
                op_drop(op);
}

void retry_prepare(struct claims *c, const char *uid) {
        struct op *op = kept_of(c, uid);
        if (op && !has_several_pods(&op->claim))
                op_drop(op);
}

/* Keeps a Prepare for a recorded claim, unless it has one. The claim is read first, because the record does
 * not have its pods. */
static void keep_recorded(struct claims *c, const struct checkpoint_claim *e, const char *msg) {
        if (!e->ns || !*e->ns || !e->name || !*e->name || kept_of(c, e->uid) || is_off(c->retry))
                return;
        struct op *op = op_new(c, NULL, false, &(struct dra_claim){ e->ns, e->name, e->uid }, NULL);
        op->of_record = op->retry_any = true;
        snprintf(op->msg, sizeof op->msg, "%s", msg);
        op_keep(op, NULL);
        keep(op);
        fetch_start(op);
}

static bool is_recent(const struct claims *c, const struct checkpoint_claim *e) {
        return e->state == CHECKPOINT_COMPLETED && e->answered_ms &&
               loop_now_ms(c->o.loop) - e->answered_ms < RETRY_RECENT_MS;
}

void retry_succeeded(struct claims *c, const char *uid) {
        struct op *kept = kept_of(c, uid);
        if (kept) /* for several pods: an earlier request had no effect on one of them */
                kept->retry_asked = false;
        else
                keep_recorded(c, checkpoint_find(&c->journal.table, uid), "the Prepare took too long");
}

void retry_registered(struct claims *c) {
        const struct checkpoint_claim *e;
        struct op *op;
        for (e = c->journal.table.claims; e; e = e->hh.next) {
                if (e->state == CHECKPOINT_STARTED && !ops_active(c, e->uid))
                        keep_recorded(c, e, "its Prepare did not finish before the plugin was registered");
        }
        loop_timer_start(&c->retry->recent, backoff_spread(RETRY_REGISTERED_MS));
        for (e = c->journal.earlier.claims; e; e = e->hh.next) {
                if (e->state != CHECKPOINT_ABORTED && !checkpoint_find(&c->journal.table, e->uid) &&
                    !ops_active(c, e->uid))
                        keep_recorded(c, e, "the node was rebooted");
        }
        checkpoint_done(&c->journal.earlier);
        /* The kubelet did not call the plugin after an earlier request. */
        TAILQ_FOREACH (op, &c->failed, link) {
                op->retry_asked = false;
        }
}

static void on_recent(void *u) {
        struct claims *c = u;
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next) {
                if (is_recent(c, e) && !ops_active(c, e->uid))
                        keep_recorded(c, e, "another plugin of the node may not have been registered");
        }
}

/* The kubelet is asked once, and again only if the cause returns and goes. */
static void judge_kept(struct retry *r, struct op *op) {
        enum verdict v = prepare_verdict(op);
        bool may = v == VERDICT_GO || v == VERDICT_ANSWER || (v == VERDICT_WAIT && op->retry_any);
        if (may && !op->retry_asked)
                op->retry_asked = retry_ask(r, op);
        else if (!may)
                op->retry_asked = false;
        op->retry_over = v == VERDICT_REFUSE || v == VERDICT_FAIL || (v == VERDICT_ANSWER && op->retry_asked);
}

void retry_reevaluate(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->failed, link) {
                if (op->phase == OP_FAILED && !ops_active(c, op->uid))
                        judge_kept(c->retry, op);
                if (op->retry_over)
                        loop_turn_start(&c->retry->sweep);
        }
}

/* Not at once, because the caller may be a callback of something that the operation has. */
static void retry_sweep(void *u) {
        struct retry *r = u;
        struct op *op, *next;
        for (op = TAILQ_FIRST(&r->c->failed); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->retry_over)
                        op_drop(op);
        }
        ops_kick(r->c); /* the driver learns what still waits */
}

/* ---- the module ---- */

static void on_pause_end(void *u) {
        struct retry *r = u;
        retry_reevaluate(r->c);
}

struct retry *retry_new(struct claims *c) {
        struct retry *r = xnew(struct retry);
        r->c = c;
        LIST_INIT(&r->pods);
        LIST_INIT(&r->patches);
        LIST_INIT(&r->lists);
        loop_timer_init(&r->timer, c->o.loop, on_pause_end, r);
        loop_timer_init(&r->recent, c->o.loop, on_recent, c);
        loop_turn_init(&r->sweep, c->o.loop, retry_sweep, r);
        return r;
}

void retry_free(struct retry *r) {
        struct retry_patch *p;
        struct retry_list *l;
        struct retry_pod *pod;
        while ((l = LIST_FIRST(&r->lists)))
                list_free(l);
        while ((p = LIST_FIRST(&r->patches))) {
                kube_cancel(p->call);
                patch_free(p);
        }
        while ((pod = LIST_FIRST(&r->pods))) {
                LIST_REMOVE(pod, link);
                free(pod->uid);
                free(pod);
        }
        loop_timer_done(&r->timer);
        loop_timer_done(&r->recent);
        loop_turn_done(&r->sweep);
        free(r);
}
