/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "cd_plugin/devices.h"
#include "imex/imex_log.h"
#include "cd_plugin/claims_priv.h"

static uint64_t now_ns(void) {
        return uv_hrtime();
}

/* ---- operations ---- */

static void free_options(struct claims_options *o) {
        const char **strings[] = {
                &o->node,    &o->ns,        &o->more_ns,   &o->plugin_dir, &o->cdi_root,
                &o->boot_id, &o->root.host, &o->root.here, &o->dev_root,   &o->proc_driver
        };
        for (size_t i = 0; i < ARRAY_LEN(strings); i++)
                freep(strings[i]);
}

static void maybe_destroy(struct claims *c) {
        if (!c->freed || c->open)
                return;
        disk_free(c->disk);
        journal_done(&c->journal);
        free_options(&c->o);
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
        op->task = NULL;
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
        plugin_metrics_pending(c->o.metrics, !unprepare, 1);
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
        plugin_metrics_pending(op->c->o.metrics, !op->unprepare, -1);
        plugin_metrics_answered(op->c->o.metrics, !op->unprepare, ok, total, total > away ? total - away : 0);
        op_free(op);
}

void claims__fail(struct op *op, const char *msg) {
        _cleanup_(freep) char *claim = xasprintf("%s/%s", op->ns, op->name);
        log_warn(op->permanent   ? "Permanent error: cannot prepare claim"
                 : op->unprepare ? "cannot unprepare claim"
                                 : "cannot prepare claim",
                 kv_str("claim", claim), kv_str("uid", op->uid), kv_str("err", msg));
        if (op->dra)
                dra_op_fail(op->dra, msg);
        finish(op, false);
}

/* Nobody waits for a Prepare any more, but the thread is at work for it: its batch carries it to its end. */
static void let_go(struct op *op) {
        uv_timer_stop(&op->timer);
        op->dra = NULL;
}

void claims__succeed(struct op *op) {
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
        if (op->phase == OP_BATCH) {
                _cleanup_(freep) char *msg = xasprintf(
                        "%s: the disk under '%s' has not taken the record of this claim in time; the "
                        "claim is prepared when it has: look at the disk and its load",
                        op->c->o.node, op->c->o.plugin_dir);
                dra_op_fail(op->dra, msg);
                let_go(op);
        } else
                claims__fail(op, op->msg[0] ? op->msg
                                            : "the Kubernetes API server has not answered in time: is it "
                                              "reached from this "
                                              "node? The kubelet asks again by itself");
}

void claims__wait(struct op *op) {
        if (!op->dra) {
                finish(op, false);
                return;
        }
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

/* In a watch of domains. */
static void on_changed(void *u) {
        struct claims *c = u;
        struct op *op;
        claims__reevaluate(c);
        TAILQ_FOREACH (op, &c->ops, link) {
                if (op->phase == OP_WAITING)
                        prepare_doubt(op);
        }
}

/* Another plugin process wrote the checkpoint. */
static void on_journal_changed(void *u) {
        claims__kick(u);
}

static void tell_lost(struct claims *c, const char *domain, const char *reason) {
        for (const struct checkpoint_claim *e = c->journal.table.claims; e; e = e->hh.next) {
                for (size_t i = 0; i < e->n_devices && e->state == CHECKPOINT_COMPLETED && e->name; i++) {
                        if (device_is_daemon(&e->devices[i]) || !streq(e->devices[i].domain, domain))
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

/* What ends the plugin at its start, and each operation later, until somebody sees to it. */
void claims__tell_unreadable(struct claims *c, const struct err *e) {
        static const char remedy[] = "check the disk and its file system; no claim is prepared or unprepared "
                                     "on this node until it can be "
                                     "read, or has been moved away: then it is rebuilt from the CDI files";
        struct event_about node = { "v1", "Node", NULL, c->o.node, c->o.node };
        log_error("the checkpoint cannot be read", kv_str("path", c->journal.path), kv_str("remedy", remedy),
                  kv_err(e));
        event_record(c->o.events, &node, EVENT_WARNING, "CheckpointUnreadable",
                     "the kubelet plugin's checkpoint cannot be read (%s): %s", e->msg, remedy);
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
        if (op->unprepare || op->phase == OP_BATCH)
                let_go(op); /* it is carried out nevertheless */
        else
                finish(op, false);
        update_hurry(c);
}

void claims_dump(const struct claims *c) {
        static const char *const phases[] = {
                [OP_FETCHING] = "fetching", [OP_QUEUED] = "queued", [OP_BATCH] = "on the disk",
                [OP_WAITING] = "waiting",   [OP_DONE] = "done",
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
                if (!c->unserved)
                        log_error("claims cannot be read from this API server: waiting until it serves "
                                  "resource.k8s.io. If it does not by itself, switch it on there "
                                  "(--runtime-config)",
                                  kv_err(e));
                c->unserved = true;
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
        o->more_ns = xstrdup(str_or(o->more_ns, ""));
        o->plugin_dir = xstrdup(o->plugin_dir);
        o->cdi_root = xstrdup(o->cdi_root);
        o->boot_id = xstrdup(o->boot_id);
        o->root.host = xstrdup(o->root.host);
        o->root.here = xstrdup(o->root.here);
        o->dev_root = xstrdup(o->dev_root);
        o->proc_driver = xstrdup(o->proc_driver);
}

void claims__closed(struct claims *c) {
        c->open--;
        maybe_destroy(c);
}

static void on_closed(uv_handle_t *h) {
        claims__closed(h->data);
}

bool claims_manages(const struct claims_options *o, const char *ns) {
        struct str rest = str_from(str_or(o->more_ns, "")), field;
        bool found = streq(o->ns, ns);
        while (!found && str_next_field(&rest, ',', &field))
                found = str_eq(str_trim(field), str_from(ns));
        return found;
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
        journal_init(&c->journal, &cd_device_codec, o->plugin_dir, o->boot_id);
        c->readiness = readiness_new(o->loop, &(struct readiness_options){ .plugin_dir = o->plugin_dir,
                                                                           .node = o->node,
                                                                           .boot_id = o->boot_id,
                                                                           .changed = on_changed,
                                                                           .lost = on_ready_lost,
                                                                           .session_taken = on_session_taken,
                                                                           .u = c });
        c->watches = lookup_watches_new(o->kube, on_changed, c);
        c->sweep = sweep_new(c);
        batch_init(c);
        uv_timer_init(o->loop, &c->grace);
        c->grace.data = c;
        c->open++;
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
        if (c->journal.watch.active)
                watch_file_stop(&c->journal.watch, NULL);
        c->freed = true;
        batch_free(c);
        uv_close((uv_handle_t *)&c->grace, on_closed);
}
