#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "domain/names.h"
#include "imex/imex_log.h"
#include "plugin/claims_priv.h"

static uint64_t now_ns(void) {
        return uv_hrtime();
}

/* ---- operations ---- */

static void maybe_destroy(struct claims *c) {
        if (!c->freed || c->open)
                return;
        journal_done(&c->journal);
        free(c);
}

static void on_op_closed(uv_handle_t *h) {
        struct op *op = h->data;
        struct claims *c = op->c;
        free(op->ns);
        free(op->name);
        free(op->uid);
        free(op);
        c->open--;
        maybe_destroy(c);
}

static void op_free(struct op *op) {
        op->phase = OP_DONE;
        TAILQ_REMOVE(&op->c->ops, op, link);
        prepare_release(op);
        uv_close((uv_handle_t *)&op->timer, on_op_closed);
}

static void on_op_timer(uv_timer_t *t);

static struct op *op_new(struct claims *c, struct dra_op *dra, bool unprepare, const char *ns,
                         const char *name, const char *uid) {
        struct op *op = xnew(struct op);
        op->c = c;
        op->dra = dra;
        op->unprepare = unprepare;
        op->number = c->n_ops++;
        op->ns = xstrdup(ns);
        op->name = xstrdup(name);
        op->uid = xstrdup(uid);
        op->began_ns = now_ns();
        uv_timer_init(c->o.loop, &op->timer);
        op->timer.data = op;
        c->open++;
        TAILQ_INSERT_TAIL(&c->ops, op, link);
        if (dra)
                dra_op_set_data(dra, op);
        plugin_metrics_begin(c->o.metrics, !unprepare);
        return op;
}

bool claims__active(const struct claims *c, const char *uid) {
        const struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (streq(op->uid, uid))
                        return true;
        }
        return false;
}

/* ---- answers ---- */

static void finish(struct op *op, bool ok) {
        double total = (double)(now_ns() - op->began_ns) / 1e9,
               away = (double)(op->get_ns + op->waited_ns) / 1e9;
        plugin_metrics_end(op->c->o.metrics, !op->unprepare, ok, total, total > away ? total - away : 0);
        op_free(op);
}

void claims__fail(struct op *op, const char *msg) {
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        log_warn(op->unprepare ? "cannot unprepare claim" : "cannot prepare claim", kv_str("claim", claim),
                 kv_str("uid", op->uid), kv_str("err", msg));
        plugin_metrics_error(op->c->o.metrics, !op->unprepare, false);
        if (op->dra)
                dra_op_fail(op->dra, msg);
        finish(op, false);
}

static void succeed(struct op *op) {
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        if (op->unprepare) {
                log_info("unprepared claim", kv_str("claim", claim), kv_str("uid", op->uid));
                if (op->dra)
                        dra_op_unprepared(op->dra);
        } else {
                prepare_answer(op);
                log_info("prepared claim", kv_str("claim", claim), kv_str("uid", op->uid),
                         kv_int("total_us", (now_ns() - op->began_ns) / 1000),
                         kv_int("get_us", op->get_ns / 1000), kv_int("wait_us", op->waited_ns / 1000));
        }
        finish(op, true);
}

/* ---- waiting ---- */

static void start_timer(struct op *op, unsigned ms) {
        uv_update_time(op->c->o.loop);
        uv_timer_start(&op->timer, on_op_timer, ms, 0);
}

static void on_op_timer(uv_timer_t *t) {
        struct op *op = t->data;
        if (!op->closer && op->budget_ms > LOOK_CLOSER_MS) {
                op->closer = true;
                start_timer(op, op->budget_ms - LOOK_CLOSER_MS);
                if (op->phase == OP_WAITING)
                        prepare_look_closer(op);
                return;
        }
        claims__fail(op, op->msg[0] ? op->msg : "the Kubernetes API server has not answered in time");
}

static void wait_on(struct op *op) {
        if (!op->waiting_since_ns)
                op->waiting_since_ns = now_ns();
        if (op->phase != OP_WAITING && op->for_host)
                host_imex_hurry(op->c->o.host);
        if (op->phase != OP_WAITING && op->closer && !op->watch)
                prepare_look_closer(op);
        op->phase = OP_WAITING;
}

static void stop_waiting(struct op *op) {
        if (op->waiting_since_ns)
                op->waited_ns += now_ns() - op->waiting_since_ns;
        op->waiting_since_ns = 0;
}

static void update_hurry(struct claims *c) {
        const struct op *op;
        bool facts = false, host = false;
        TAILQ_FOREACH (op, &c->ops, link) {
                facts = facts || (op->phase == OP_WAITING && op->for_facts);
                host = host || (op->phase == OP_WAITING && op->for_host);
        }
        facts_hurry(c->o.facts, facts);
        if (!host && c->o.host)
                host_imex_relax(c->o.host);
}

void claims__reevaluate(struct claims *c) {
        struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                bool for_host = op->for_host;
                if (op->phase != OP_WAITING)
                        continue;
                if (prepare_judge(op) != VERDICT_WAIT) {
                        stop_waiting(op);
                        claims__queue(op);
                } else if (op->for_host && !for_host) {
                        host_imex_hurry(c->o.host);
                }
        }
        update_hurry(c);
}

void claims_facts_changed(struct claims *c) {
        claims__reevaluate(c);
}

void claims_host_answered(struct claims *c) {
        claims__reevaluate(c);
}

static void on_changed(void *u) {
        claims__reevaluate(u);
}

/* Another plugin process wrote the checkpoint. */
static void on_journal_changed(void *u) {
        claims__kick(u);
}

static void tell_lost(struct claims *c, const char *domain, const char *reason) {
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next) {
                for (size_t i = 0; i < e->n_devices && e->state == CHECKPOINT_COMPLETED && e->name; i++) {
                        if (e->devices[i].is_daemon || !streq(e->devices[i].domain, domain))
                                continue;
                        struct event_about about = { "resource.k8s.io/v1", "ResourceClaim", e->ns, e->name,
                                                     e->uid };
                        event_record(c->o.events, &about, EVENT_WARNING, "IMEXDaemonNotReady",
                                     "the channel is in use, but is not served: %s", reason);
                }
        }
}

static void on_grace(uv_timer_t *t) {
        struct claims *c = t->data;
        char reason[400];
        bool in_the_way;
        while (!LIST_EMPTY(&c->lost)) {
                struct lost *l = LIST_FIRST(&c->lost);
                if (!readiness_check(c->readiness, &c->journal.table, l->domain, &in_the_way, reason,
                                     sizeof reason))
                        tell_lost(c, l->domain, reason);
                LIST_REMOVE(l, link);
                free(l);
        }
}

static void on_session_taken(void *u) {
        struct claims *c = u;
        struct event_about node = { "v1", "Node", NULL, c->o.node, c->o.node };
        log_warn("the host's own nvidia-imex keeps that of a ComputeDomain from starting");
        event_record(c->o.events, &node, EVENT_WARNING, "HostIMEXInTheWay",
                     IMEX_LOG_SESSION_TAKEN ", so that ComputeDomains cannot run theirs: stop and disable "
                                            "the host's nvidia-imex.service, or "
                                            "install with featureGates.HostManagedIMEX=true");
}

static void on_ready_lost(void *u, const char *domain_uid) {
        struct claims *c = u;
        struct lost *l;
        LIST_FOREACH (l, &c->lost, link) {
                if (streq(l->domain, domain_uid))
                        return;
        }
        l = xnew(struct lost);
        snprintf(l->domain, sizeof l->domain, "%s", domain_uid);
        LIST_INSERT_HEAD(&c->lost, l, link);
        if (!uv_is_active((uv_handle_t *)&c->grace))
                uv_timer_start(&c->grace, on_grace, LOST_GRACE_MS, 0);
}

/* ---- batches ---- */

static bool expired(const struct checkpoint_claim *e, int64_t now) {
        /* Without a time it is of nobody knows when; a time in the future is of a clock that was set back. */
        return e->state == CHECKPOINT_ABORTED &&
               (e->aborted_at + ABORTED_TTL_S <= now || e->aborted_at > now + ABORTED_TTL_S);
}

static bool drop_expired(struct claims *c) {
        struct checkpoint_claim *e, *tmp;
        bool any = false;
        int64_t now = time(NULL);
        HASH_ITER (hh, c->journal.table.claims, e, tmp) {
                if (expired(e, now)) {
                        checkpoint_drop(&c->journal.table, e);
                        any = true;
                }
        }
        return any;
}

static void on_expiry(uv_timer_t *t) {
        claims__kick(t->data);
}

static void schedule_expiry(struct claims *c) {
        int64_t now = time(NULL), first = INT64_MAX;
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next) {
                if (e->state == CHECKPOINT_ABORTED && e->aborted_at < first)
                        first = e->aborted_at;
        }
        if (first == INT64_MAX)
                uv_timer_stop(&c->expiry);
        else
                uv_timer_start(
                        &c->expiry, on_expiry,
                        (uint64_t)(first + ABORTED_TTL_S + 1 > now ? first + ABORTED_TTL_S + 1 - now : 1) *
                                1000,
                        0);
}

/* A Prepare that is still on its way when its claim is unprepared must not succeed any more. */
static void supersede(struct op *unprepare) {
        struct op *op;
        TAILQ_FOREACH (op, &unprepare->c->ops, link) {
                if (op->unprepare || op->number > unprepare->number || !streq(op->uid, unprepare->uid))
                        continue;
                op->phase = OP_QUEUED;
                op->verdict = VERDICT_FAIL;
                snprintf(op->msg, sizeof op->msg, "the claim was unprepared while it was being prepared");
        }
}

static void set_verdict(struct op *op, int r, const struct err *e) {
        op->verdict = r < 0 ? VERDICT_FAIL : VERDICT_GO;
        if (r < 0)
                snprintf(op->msg, sizeof op->msg, "%s", e->msg);
}

static bool unprepare_all(struct claims *c) {
        struct op *op;
        bool changed = false;
        struct err e;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_QUEUED || !op->unprepare)
                        continue;
                supersede(op);
                set_verdict(op, unprepare_carry_out(c, op->uid, &changed, &e), &e);
        }
        return changed;
}

/* Judges, and records what will be tried or waited for, before any side effect. */
static bool judge_all(struct claims *c) {
        struct op *op;
        bool changed = false;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_QUEUED || op->unprepare || op->verdict == VERDICT_FAIL)
                        continue;
                op->verdict = prepare_judge(op);
                if ((op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT) && !op->recorded &&
                    !op->redo) {
                        checkpoint_put(&c->journal.table, op->uid, op->ns, op->name, op->status);
                        op->recorded = changed = true;
                }
        }
        return changed;
}

static bool carry_out_all(struct claims *c) {
        struct op *op;
        bool changed = false;
        struct err e;
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase != OP_QUEUED || op->unprepare || op->verdict != VERDICT_GO)
                        continue;
                /* Again, because an operation before it in this batch may have taken its device. */
                op->verdict = prepare_judge(op);
                if (op->verdict != VERDICT_GO)
                        continue;
                set_verdict(op, prepare_carry_out(op, &e), &e);
                changed = changed || op->verdict == VERDICT_GO;
        }
        return changed;
}

/* What counted on a write that failed. The table is again what the file holds, if that can be told. */
static void write_failed(struct claims *c, const struct err *e) {
        struct op *op;
        log_error("cannot write the checkpoint", kv_err(e));
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase == OP_QUEUED && (op->verdict == VERDICT_GO || op->verdict == VERDICT_WAIT))
                        set_verdict(op, -1, e);
        }
}

static void answer_all(struct claims *c) {
        struct op *op, *next;
        for (op = TAILQ_FIRST(&c->ops); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->phase != OP_QUEUED)
                        continue;
                switch (op->verdict) {
                case VERDICT_GO:
                case VERDICT_ANSWER:
                        succeed(op);
                        break;
                case VERDICT_FAIL:
                        claims__fail(op, op->msg);
                        break;
                case VERDICT_WAIT:
                        wait_on(op);
                        break;
                case VERDICT_FETCH:
                        prepare_fetch(op);
                        break;
                }
        }
}

static void fail_queued(struct claims *c, const struct err *e, bool lock) {
        struct op *op, *next;
        for (op = TAILQ_FIRST(&c->ops); op; op = next) {
                next = TAILQ_NEXT(op, link);
                if (op->phase != OP_QUEUED)
                        continue;
                if (lock)
                        plugin_metrics_error(c->o.metrics, !op->unprepare, true);
                claims__fail(op, e->msg);
        }
}

static void tell_started(struct claims *c, const struct err *e) {
        void (*started)(void *, const struct err *) = c->started;
        c->started = NULL;
        if (started)
                started(c->started_u, e);
}

/* What ends the plugin at its start, and each operation later, until somebody sees to it. */
static void tell_unreadable(struct claims *c, const struct err *e) {
        static const char remedy[] = "check the disk and its file system; no claim is prepared or unprepared "
                                     "on this node until it can be "
                                     "read, or has been moved away: then it is rebuilt from the CDI files";
        struct event_about node = { "v1", "Node", NULL, c->o.node, c->o.node };
        log_error("the checkpoint cannot be read", kv_str("path", c->journal.path), kv_str("remedy", remedy),
                  kv_err(e));
        event_record(c->o.events, &node, EVENT_WARNING, "CheckpointUnreadable",
                     "the kubelet plugin's checkpoint cannot be read (%s): %s", e->msg, remedy);
}

static void with_lock(struct claims *c) {
        enum journal_event event;
        _cleanup_(freep) char *aside = NULL;
        struct err e;
        bool changed;
        if (journal_sync(&c->journal, &event, &aside, &e) < 0 ||
            sweep_after_sync(c, event, aside, &changed, &e) < 0) {
                tell_unreadable(c, &e);
                node_lock_release(c->lock);
                fail_queued(c, &e, false);
                tell_started(c, &e);
                return;
        }
        if (c->started) {
                sweep_files(c);
                changed = true; /* a first checkpoint, with the boot id */
        }
        changed = drop_expired(c) || changed;
        changed = unprepare_all(c) || changed;
        changed = judge_all(c) || changed;
        if (changed && journal_write(&c->journal, &e) < 0)
                write_failed(c, &e);
        if (carry_out_all(c) && journal_write(&c->journal, &e) < 0)
                write_failed(c, &e);
        node_lock_release(c->lock);
        readiness_follow(c->readiness, &c->journal.table);
        plugin_metrics_prepared(c->o.metrics, &c->journal.table);
        schedule_expiry(c);
        answer_all(c);
        claims__reevaluate(c);
        tell_started(c, NULL);
}

static void on_lock(void *u, const struct err *e) {
        struct claims *c = u;
        c->locking = false;
        if (!e) {
                with_lock(c);
                return;
        }
        fail_queued(c, e, true);
        tell_started(c, e);
}

static void on_kick(uv_timer_t *t) {
        struct claims *c = t->data;
        if (c->locking)
                return; /* what is queued goes along when the lock comes */
        if (node_lock_try(c->lock)) {
                with_lock(c);
        } else {
                c->locking = true;
                node_lock_wait(c->lock, LOCK_LIMIT_MS, on_lock, c);
        }
}

void claims__kick(struct claims *c) {
        if (!uv_is_active((uv_handle_t *)&c->kick))
                uv_timer_start(&c->kick, on_kick, 0, 0);
}

void claims__queue(struct op *op) {
        op->phase = OP_QUEUED;
        claims__kick(op->c);
}

/* ---- what others call ---- */

static unsigned budget(const struct dra_op *dra) {
        uint64_t given = dra_op_timeout_ms(dra);
        if (!given || given > BUDGET_MS + 1000)
                return BUDGET_MS;
        return (unsigned)(given > 2000 ? given - 1000 : given / 2);
}

void claims_prepare(struct claims *c, struct dra_op *dra, const struct dra_claim *claim) {
        struct op *op = op_new(c, dra, false, claim->namespace, claim->name, claim->uid);
        const struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, claim->uid);
        op->budget_ms = budget(dra);
        start_timer(op, op->budget_ms > LOOK_CLOSER_MS ? LOOK_CLOSER_MS : op->budget_ms);
        if (entry && entry->state == CHECKPOINT_COMPLETED)
                claims__queue(op); /* needs nothing of the API, usually */
        else
                prepare_fetch(op);
}

void claims_unprepare(struct claims *c, struct dra_op *dra, const struct dra_claim *claim) {
        claims__queue(op_new(c, dra, true, claim->namespace, claim->name, claim->uid));
}

struct op *claims__own_unprepare(struct claims *c, const char *ns, const char *name, const char *uid) {
        struct op *op = op_new(c, NULL, true, ns, name, uid);
        claims__queue(op);
        return op;
}

void claims_cancelled(struct claims *c, struct dra_op *dra, void *op_data) {
        struct op *op = op_data;
        (void)dra;
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        log_info("the kubelet no longer waits for a claim", kv_str("claim", claim), kv_str("uid", op->uid),
                 kv_str("state", op->msg));
        if (op->unprepare)
                op->dra = NULL; /* it is carried out nevertheless */
        else
                finish(op, false);
        update_hurry(c);
}

void claims_dump(const struct claims *c) {
        static const char *const phases[] = {
                [OP_FETCHING] = "fetching",
                [OP_QUEUED] = "queued",
                [OP_WAITING] = "waiting",
                [OP_DONE] = "done",
        };
        static const char *const states[] = {
                [CHECKPOINT_STARTED] = "started",
                [CHECKPOINT_COMPLETED] = "completed",
                [CHECKPOINT_ABORTED] = "aborted",
        };
        const struct op *op;
        TAILQ_FOREACH (op, &c->ops, link) {
                log_info("operation", kv_str("kind", op->unprepare ? "unprepare" : "prepare"),
                         kv_str("namespace", op->ns), kv_str("claim", op->name), kv_str("uid", op->uid),
                         kv_str("phase", phases[op->phase]), kv_str("why", op->msg),
                         kv_int("age_ms", (now_ns() - op->began_ns) / 1000000));
        }
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next)
                log_info("recorded claim", kv_str("namespace", str_or(e->ns, "")),
                         kv_str("claim", str_or(e->name, "")), kv_str("uid", e->uid),
                         kv_str("state", states[e->state]),
                         kv_str("device", e->n_devices ? str_or(e->devices[0].name, "") : ""),
                         kv_str("domain", e->n_devices ? str_or(e->devices[0].domain, "") : ""));
}

static void on_api_known(void *u, const struct err *e) {
        struct claims *c = u;
        struct op *op;
        if (e && e->kind == ERR_RETRY) { /* it is asked again */
                log_warn("the API server does not say yet which versions of resource.k8s.io it serves: "
                         "waiting",
                         kv_err(e));
                return;
        }
        if (e) {
                log_error("claims cannot be read from this API server", kv_err(e));
                return;
        }
        TAILQ_FOREACH (op, &c->ops, link) {
                if (!op->unprepare)
                        prepare_api_known(op);
        }
}

void claims_start(struct claims *c, void (*done)(void *u, const struct err *e), void *u) {
        struct err e;
        c->started = done;
        c->started_u = u;
        if (journal_watch(&c->journal, c->o.loop, on_journal_changed, c, &e) < 0)
                log_warn("cannot watch the checkpoint: writes of another plugin process are seen at the next "
                         "operation only",
                         kv_err(&e));
        kube_discover_resource_api(c->o.kube, on_api_known, c);
        claims__kick(c);
}

static void copy_options(struct claims_options *o) {
        o->node = xstrdup(o->node);
        o->ns = xstrdup(o->ns);
        o->plugin_dir = xstrdup(o->plugin_dir);
        o->cdi_root = xstrdup(o->cdi_root);
        o->boot_id = xstrdup(o->boot_id);
        o->root.host = xstrdup(o->root.host);
        o->root.here = xstrdup(o->root.here);
        o->dev_root = xstrdup(o->dev_root);
        o->proc_driver = xstrdup(o->proc_driver);
}

static void free_options(struct claims_options *o) {
        const char **strings[] = { &o->node,      &o->ns,        &o->plugin_dir, &o->cdi_root,   &o->boot_id,
                                   &o->root.host, &o->root.here, &o->dev_root,   &o->proc_driver };
        for (size_t i = 0; i < ARRAY_LEN(strings); i++)
                freep(strings[i]);
}

static void on_closed(uv_handle_t *h) {
        struct claims *c = h->data;
        c->open--;
        maybe_destroy(c);
}

int claims_new(const struct claims_options *o, struct claims **ret, struct err *e) {
        _cleanup_(freep) char *lock_path = file_join(o->plugin_dir, "pu.lock");
        struct node_lock *lock;
        if (node_lock_new(o->loop, lock_path, &lock, e) < 0)
                return -1;
        struct claims *c = xnew(struct claims);
        c->o = *o;
        copy_options(&c->o);
        c->lock = lock;
        TAILQ_INIT(&c->ops);
        journal_init(&c->journal, o->plugin_dir, o->boot_id);
        c->readiness = readiness_new(o->loop, &(struct readiness_options){ .plugin_dir = o->plugin_dir,
                                                                           .node = o->node,
                                                                           .boot_id = o->boot_id,
                                                                           .changed = on_changed,
                                                                           .lost = on_ready_lost,
                                                                           .session_taken = on_session_taken,
                                                                           .u = c });
        c->watches = lookup_watches_new(o->kube, on_changed, c);
        c->sweep = sweep_new(c);
        uv_timer_init(o->loop, &c->kick);
        uv_timer_init(o->loop, &c->expiry);
        uv_timer_init(o->loop, &c->grace);
        c->kick.data = c->expiry.data = c->grace.data = c;
        c->open = 3;
        LIST_INIT(&c->lost);
        *ret = c;
        return 0;
}

bool claims_stuck(const struct claims *c) {
        return c && node_lock_stuck(c->lock);
}

void claims_free(struct claims *c) {
        if (!c)
                return;
        kube_undiscover_resource_api(c->o.kube, on_api_known, c);
        while (!TAILQ_EMPTY(&c->ops))
                op_free(TAILQ_FIRST(&c->ops));
        while (!LIST_EMPTY(&c->lost)) {
                struct lost *l = LIST_FIRST(&c->lost);
                LIST_REMOVE(l, link);
                free(l);
        }
        sweep_free(c->sweep);
        lookup_watches_free(c->watches);
        readiness_free(c->readiness);
        node_lock_free(c->lock);
        if (c->journal.watch.active)
                watch_file_stop(&c->journal.watch, NULL);
        free_options(&c->o);
        c->freed = true;
        uv_close((uv_handle_t *)&c->kick, on_closed);
        uv_close((uv_handle_t *)&c->expiry, on_closed);
        uv_close((uv_handle_t *)&c->grace, on_closed);
}
