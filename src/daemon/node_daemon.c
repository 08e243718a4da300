/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node_daemon.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "cdi/cdi.h"
#include "daemon/folder.h"
#include "daemon/memory.h"
#include "daemon/pod_report.h"
#include "daemon/relay.h"
#include "daemon/serving.h"
#include "imex/imex_lock.h"
#include "kube/kube_informer.h"

enum {
        /* The pause before a failed write or removal is retried. */
        RETRY_MS = 1000,
        /* Memory that the start needed is released when the daemon is idle: one runs on each node, usually
         * idle. */
        SETTLED_MS = 15000,
};

static const char no_partition[] = "this node is in no NVLink partition, so nothing runs here";

struct node_daemon {
        const struct node_daemon_config *c;
        uv_loop_t *loop;
        void (*done)(void *u);
        void *u;
        struct loop_turn turn;
        struct loop_timer retry, settled;
        int life; /* the lock that shows the plugin that this process is alive; -1: not taken */
        struct relay relay;
        char boot_id[37];

        char fabric[FOLDER_WORD_MAX]; /* the clique ID; "" without */
        struct folder folder;
        bool moved;    /* the node is in another partition now */
        bool outdated; /* a new container would get other device nodes or files of the node */

        struct kube_client *client;
        struct kube_informer *informer;
        struct pod_report *reporter;
        struct imex_version *version; /* until it has an answer */
        char imex_version[IMEX_VERSION_MAX], version_error[IMEX_REASON_MAX];
        bool version_asked;               /* one of the two is set: the first report waits for this */
        bool watch_well, current;         /* the fabric object can be watched, and is the present one */
        const struct kube_object *object; /* as last seen, referenced; NULL: never seen */
        bool restored;                    /* it returned to an earlier version */
        int64_t restored_seen; /* the highest epoch seen at that time: a recount has a higher one */

        struct arena *arena;
        struct memory memory;    /* the same as in the file, except what it has seen of the fabric object */
        bool forgotten;          /* the file was invalid: IMEX may have been READY in the next assignment */
        struct serving *serving; /* NULL: IMEX does not run */
        bool paused;             /* `serving` was stopped by DECISION_PAUSE */
        char *cdi_prefix;
        enum imex_use use;            /* of the present domain, as last read */
        struct imex_grants_seen seen; /* in the present domain */
        const char *waits_for, *why;  /* static; "" */
        bool needs_reboot;            /* `why` advises to reboot the node */
        bool terminating, finished;
};

static void decide_again(struct node_daemon *r) {
        loop_turn_start(&r->turn);
}

static void node_daemon_retry(struct node_daemon *r) {
        loop_timer_start(&r->retry, RETRY_MS);
}

static void log_failure(const struct node_daemon *r, const struct err *e) {
        log_warn("cannot follow the fabric object of the partition, will retry",
                 kv_str("domain", str_or(r->memory.decision.now.domain, "")), kv_err(e));
}

/* ---- memory ---- */

static struct memory_identity identity(const struct node_daemon *r) {
        return (struct memory_identity){ r->boot_id, r->fabric, r->c->pod_uid };
}

/* Before any action that relies on it. -1: it will be retried, and until then the daemon must not act on it
 * or report it. */
static int node_daemon_remember(struct node_daemon *r, const struct memory *m, struct err *e) {
        const struct memory_identity of = identity(r);
        struct arena *fresh;

        /* These come from the fabric object again after a restart, so a change of them needs no write. */
        r->memory.decision.seen = m->decision.seen;
        r->memory.decision.recount = m->decision.recount;
        if (memory_same(m, &r->memory))
                return 0;
        if (memory_save(r->c->dir, &of, m, e) < 0) {
                log_failure(r, e);
                node_daemon_retry(r);
                return -1;
        }
        fresh = arena_new(1024);
        memory_copy(m, fresh, &r->memory);
        arena_free(r->arena);
        r->arena = fresh;
        return 0;
}

/* ---- the Pod ---- */

/* NULL: it does not exist, or is a copy and does not count. */
static const struct compute_domain_fabric *node_daemon_fabric_of(const struct node_daemon *r) {
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)r->object;

        return f && fabric_is_own(f) ? f : NULL;
}

static void node_daemon_report(struct node_daemon *r) {
        const struct compute_domain_fabric *f = node_daemon_fabric_of(r);
        char text[IMEX_REASON_MAX + 100];
        struct imex_report imex;
        struct pod_report_content report = { .claim = r->c->claim_uid,
                                             .boot_id = r->boot_id,
                                             .fabric = r->fabric,
                                             .fabric_uid = r->object ? r->object->meta.uid : "",
                                             .memory = &r->memory,
                                             .waits_for = r->waits_for,
                                             .imex_version = r->imex_version,
                                             .reason = *r->version_error ? r->version_error : r->why };

        if (r->memory.inherited)
                return; /* the assignment belongs to the earlier Pod */
        if (*r->fabric && !r->version_asked)
                return;
        if (r->serving) {
                const char *error = serving_state_error(r->serving), *unsaved = serving_unsaved(r->serving);

                serving_report(r->serving, &imex);
                report.imex = &imex;
                report.reason = imex.reason;
                if (unsaved) {
                        imex.ready = false; /* pods on this node wait */
                        imex.status = IMEX_STATE_STARTING;
                        report.reason = unsaved;
                } else if (imex.ready && error) {
                        snprintf(text, sizeof text,
                                 "new pods on this node wait, running pods continue: cannot write the state "
                                 "file: %s",
                                 error);
                        report.reason = text;
                } else if (r->needs_reboot) {
                        report.reason = r->why;
                }
        }
        pod_report_set(r->reporter, &report, f && f->epoch < r->memory.decision.seen);
}

/* ---- one assignment ---- */

static void on_version(void *u, const char *version, const char *why) {
        struct node_daemon *r = u;

        r->version_asked = true;
        snprintf(r->imex_version, sizeof r->imex_version, "%s", version);
        snprintf(r->version_error, sizeof r->version_error, "%s", why);
        if (*version)
                imex_version_free(TAKE(r->version));
        else
                log_warn("nvidia-imex cannot be used, will retry", kv_str("why", why));
        decide_again(r);
}

static void node_daemon_on_output(void *u, struct str line) {
        struct node_daemon *r = u;

        relay_line(&r->relay, line);
}

static void node_daemon_on_failing(void *u, const struct err *e) {
        log_failure(u, e);
}

static void on_serving(void *u) {
        decide_again(u);
}

static int node_daemon_on_ready(void *u, struct err *e) {
        struct node_daemon *r = u;
        struct memory m = r->memory;

        m.served = m.decision.ready = true;
        return node_daemon_remember(r, &m, e);
}

static int node_daemon_begin(struct node_daemon *r, struct err *e) {
        const struct decision_assignment *now = &r->memory.decision.now;

        if (serving_new(r->loop,
                        &(struct serving_options){ .dir = r->c->dir,
                                                   .cdi_dir = r->c->cdi_dir,
                                                   .fabric = r->fabric,
                                                   .boot_id = r->boot_id,
                                                   .claim_uid = r->c->claim_uid,
                                                   .pod_uid = r->c->pod_uid,
                                                   .assignment = now,
                                                   .terminating = r->terminating,
                                                   .imex = r->c->imex,
                                                   .ready = node_daemon_on_ready,
                                                   .changed = on_serving,
                                                   .output = node_daemon_on_output,
                                                   .failing = node_daemon_on_failing,
                                                   .u = r },
                        &r->serving, e) < 0)
                return -1;
        log_info("running IMEX for a domain", kv_str("domain", now->domain), kv_int("index", now->index),
                 kv_int("epoch", now->epoch), kv_int("port", now->imex.port));
        loop_timer_start(&r->settled, SETTLED_MS);
        return 0;
}

static void node_daemon_start(struct node_daemon *r) {
        struct err e;

        if (r->serving)
                log_warn("IMEX ended uncleanly: starting it again so that its peers recover",
                         kv_str("domain", r->memory.decision.now.domain));
        serving_free(TAKE(r->serving));
        r->paused = false;
        if (node_daemon_begin(r, &e) == 0)
                return;
        log_failure(r, &e);
        node_daemon_retry(r);
}

static void node_daemon_enter(struct node_daemon *r, const struct decision *d) {
        struct memory m = r->memory;
        struct err e;

        m.decision = d->memory;
        m.decision.now = d->assignment;
        if (r->forgotten)
                m.served = m.decision.ready = true;
        if (node_daemon_remember(r, &m, &e) < 0)
                return;
        r->forgotten = false;
        node_daemon_start(r);
}

/* True: readiness has just been withdrawn, so read again which claims use the domain. */
static bool node_daemon_withdraw(struct node_daemon *r, bool was_withdrawn) {
        serving_withdraw(r->serving);
        if (!was_withdrawn && serving_withdrawn(r->serving)) {
                decide_again(r);
                return true;
        }
        node_daemon_retry(r);
        return false;
}

static void node_daemon_stop_imex(struct node_daemon *r, bool pause) {
        log_info(!pause           ? "leaving a domain"
                 : r->terminating ? "IMEX stops, because the Pod is deleted"
                                  : "the CDI edits for this container have changed: IMEX stops, and starts "
                                    "again in a new container",
                 kv_str("domain", r->memory.decision.now.domain));
        r->paused = pause;
        serving_stop(r->serving);
}

/* Ends the present assignment for good, or retries. */
static void node_daemon_forget(struct node_daemon *r) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct memory m = r->memory;
        struct err e;
        int cleared = r->serving ? serving_clear(r->serving, &e)
                                 : serving_clear_after(r->c->dir, r->memory.decision.now.domain, &e);

        if (cleared < 0) {
                log_failure(r, &e);
                node_daemon_retry(r);
                return;
        }
        decision_left(&r->memory.decision, a, &m.decision);
        m.inherited = false;
        if (node_daemon_remember(r, &m, &e) < 0)
                return;
        log_info("left a domain");
        r->seen.n = 0;
        serving_free(TAKE(r->serving));
        decide_again(r);
}

/* ---- the next step ---- */

static void show_peers(struct node_daemon *r, const struct compute_domain_fabric *f) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct imex_peer *peers = NULL;
        size_t n = 0;
        bool known = f && decision_peers(f, r->c->node, &r->memory.decision.now, a, &peers, &n) &&
                     n < IMEX_SLOTS_MAX;

        serving_set_peers(r->serving, known ? peers : NULL, known ? n : 0,
                          known && r->watch_well && r->current);
}

static enum decision_imex imex_of(const struct node_daemon *r) {
        struct imex_report i;
        bool clean;

        if (!r->serving)
                return DECISION_IMEX_NONE;
        if (serving_ended(r->serving, &clean))
                return clean ? DECISION_IMEX_ENDED : DECISION_IMEX_KILLED;
        if (serving_stopping(r->serving))
                return DECISION_IMEX_STOPS;
        serving_report(r->serving, &i);
        return i.ready                   ? DECISION_IMEX_READY
               : i.phase == IMEX_BACKOFF ? DECISION_IMEX_FAILS
                                         : DECISION_IMEX_RUNS;
}

static enum imex_use read_use(struct node_daemon *r) {
        const struct imex_grants_folder place = { r->c->dir, r->c->cdi_dir, r->cdi_prefix, &r->seen };
        enum imex_use use = IMEX_USE_NONE;
        struct err e;

        if (r->memory.decision.now.domain)
                use = imex_grants_use(&place, r->memory.decision.now.domain, &e);
        if (use == IMEX_USE_UNKNOWN && r->use != IMEX_USE_UNKNOWN)
                log_warn("cannot see which claims use this domain, so the node stays in it",
                         kv_str("domain", r->memory.decision.now.domain), kv_err(&e));
        return r->use = use;
}

static bool is_restored(struct node_daemon *r) {
        const struct compute_domain_fabric *f = node_daemon_fabric_of(r);

        if (f && f->recount > r->restored_seen)
                r->restored = false;
        return r->restored;
}

static void decide(struct node_daemon *r, struct arena *a, struct decision *ret) {
        /* The order matters. */
        bool withdrawn = r->serving && serving_withdrawn(r->serving);
        enum imex_use use = read_use(r);
        const struct decision_input in = { .fabric = node_daemon_fabric_of(r),
                                           .current = r->watch_well && r->current,
                                           .restored = is_restored(r),
                                           .node = r->c->node,
                                           .claim = r->c->claim_uid,
                                           .boot_id = r->boot_id,
                                           .memory = &r->memory.decision,
                                           .inherited = r->memory.inherited,
                                           .imex = imex_of(r),
                                           .paused = r->paused,
                                           .withdrawn = withdrawn,
                                           .use = use,
                                           .terminating = r->terminating,
                                           .moved = r->moved,
                                           .outdated = r->outdated };

        decision_make(&in, a, ret);
        /* Nothing reports that a plugin has died, or that the use can be read again. */
        if (use == IMEX_USE_GRANTING || use == IMEX_USE_UNKNOWN)
                node_daemon_retry(r);
}

static void node_daemon_finish(struct node_daemon *r, const char *why) {
        if (why)
                log_info("exiting, so that the container starts again", kv_str("why", why));
        r->finished = true;
        r->done(r->u);
}

/* True: decide again. */
static bool node_daemon_act(struct node_daemon *r, const struct decision *d) {
        switch (d->step) {
        case DECISION_STAY:
                if (r->serving)
                        serving_show(r->serving);
                return false;
        case DECISION_ENTER:
                node_daemon_enter(r, d);
                return false;
        case DECISION_START:
                node_daemon_start(r);
                return false;
        case DECISION_WITHDRAW:
                return node_daemon_withdraw(r, serving_withdrawn(r->serving));
        case DECISION_LEAVE:
        case DECISION_PAUSE:
                node_daemon_stop_imex(r, d->step == DECISION_PAUSE);
                return false;
        case DECISION_FORGET:
                node_daemon_forget(r);
                return false;
        case DECISION_EXIT:
                node_daemon_finish(r, r->terminating ? NULL
                                      : r->moved     ? "the node is in another partition"
                                                     : "the CDI edits for this container have changed");
                return true;
        }
        return false;
}

static void node_daemon_on_turn(void *u) {
        struct node_daemon *r = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct memory m;
        struct decision d;
        struct err e;

        loop_timer_stop(&r->retry);
        if (r->finished)
                return;
        decide(r, a, &d);
        if (d.step != DECISION_ENTER) {
                m = r->memory;
                m.decision = d.memory;
                (void)node_daemon_remember(r, &m, &e); /* if it cannot be saved, it is not reported */
        }
        r->why = *r->fabric ? d.why : no_partition;
        r->needs_reboot = *r->fabric && d.needs_reboot;
        r->waits_for = d.waits_for;
        if (node_daemon_act(r, &d))
                return;
        if (r->serving && !serving_stopping(r->serving))
                show_peers(r, node_daemon_fabric_of(r));
        node_daemon_report(r);
}

static void node_daemon_note_version(struct node_daemon *r, const struct kube_object *now) {
        const struct kube_object *was = r->object;

        if (!was || !streq(was->meta.uid, now->meta.uid) ||
            kube_object_version(now->meta.rv) >= kube_object_version(was->meta.rv))
                return;
        log_warn("the fabric object of the partition is older than before, as after a restore of etcd: "
                 "nothing new is started until the controller has finished a recount",
                 kv_str("partition", r->fabric));
        r->restored = true;
        r->restored_seen = r->memory.decision.seen;
}

static void on_object(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct node_daemon *r = u;

        if (!now) {
                log_warn("the fabric object of the partition does not exist any longer, waiting for it: IMEX "
                         "continues to run",
                         kv_str("partition", r->fabric));
                r->current = false;
        } else {
                node_daemon_note_version(r, now);
                kube_object_unref(r->object);
                r->object = kube_object_ref(now);
                r->current = true;
        }
        decide_again(r);
}

static void node_daemon_on_watch(void *u, const struct kube_resource *res, const struct err *e) {
        struct node_daemon *r = u;

        r->watch_well = !e;
        if (e)
                log_warn(
                        "cannot watch the fabric object of the partition: IMEX continues with its last state",
                        kv_err(e));
        else
                log_info("watching the fabric object of the partition again");
        decide_again(r);
}

static void node_daemon_on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        struct node_daemon *r = u;

        r->current = false;
        log_error("the fabric object of the partition cannot be read: IMEX continues with its last state",
                  kv_err(e));
        decide_again(r);
}

/* ---- the node ---- */

static void on_folder(void *u) {
        struct node_daemon *r = u;
        char now[FOLDER_WORD_MAX];
        struct err e;

        if (folder_fabric(&r->folder, now, &e) == 0)
                r->moved = !streq(now, r->fabric);
        r->outdated = folder_outdated(&r->folder, r->c->edits);
        decide_again(r);
}

static int find_fabric(struct node_daemon *r, struct err *e) {
        folder_start(&r->folder, r->loop, r->c->dir, on_folder, r);
        if (folder_fabric(&r->folder, r->fabric, e) < 0)
                return -1;
        r->outdated = folder_outdated(&r->folder, r->c->edits);
        return 0;
}

/* ---- start and end ---- */

static void on_settled(void *u) {
        malloc_trim(0);
}

/* Without the lock, the plugin knows this process by its state file alone. */
static void show_life(struct node_daemon *r) {
        _cleanup_(freep) char *path = file_join(r->c->dir, IMEX_DAEMON_LOCK);
        struct err e;

        if (imex_lock_take(path, &r->life, &e) < 0)
                log_warn("cannot show the kubelet plugin that this daemon is alive", kv_err(&e));
}

static int connect_api(struct node_daemon *r, struct err *e) {
        struct kube_config config;

        if (kube_config_load(r->c->kubeconfig, &config, e) < 0)
                return -1;
        int ret = kube_client_new(
                r->loop,
                &(struct kube_client_options){ .config = &config, .user_agent = "compute-domain-daemon" },
                &r->client, e);
        kube_config_done(&config);
        return ret;
}

static void watch_object(struct node_daemon *r) {
        r->informer = kube_informer_new(r->client, &(struct kube_informer_options){
                                                           .res = &kube_fabrics,
                                                           .name = r->fabric,
                                                           .fields = compute_domain_fabric_fields,
                                                           .size = sizeof(struct compute_domain_fabric),
                                                           .changed = on_object,
                                                           .undecodable = node_daemon_on_undecodable,
                                                           .failing = node_daemon_on_watch,
                                                           .u = r,
                                                   });
}

static int recall(struct node_daemon *r, struct err *e) {
        const struct memory_identity of = identity(r);

        memory_remove_temporary(r->c->dir);
        if (memory_load(r->c->dir, &of, r->arena, &r->memory, e) == 0) {
                if (r->memory.inherited)
                        log_info("not resuming the assignment of the earlier Pod: its index may "
                                 "be another node's by now",
                                 kv_str("domain", r->memory.decision.now.domain));
                else if (r->memory.decision.now.domain)
                        log_info("resuming the assignment from before the restart",
                                 kv_str("domain", r->memory.decision.now.domain));
                return 0;
        }
        if (e->kind != ERR_NOT_FOUND && e->kind != ERR_INVALID)
                return -1;
        r->memory = (struct memory){ 0 };
        r->forgotten = e->kind == ERR_INVALID;
        if (r->forgotten)
                log_warn("the memory file is invalid", kv_err(e));
        return 0;
}

void node_daemon_stop(struct node_daemon *r) {
        if (!r->terminating && r->memory.decision.ready)
                log_info("SIGTERM: IMEX continues until no claim of its domain is prepared on this node",
                         kv_str("domain", r->memory.decision.now.domain));
        r->terminating = true;
        if (r->serving)
                serving_terminate(r->serving);
        decide_again(r);
}

void node_daemon_dump(const struct node_daemon *r) {
        const struct decision_assignment *s = &r->memory.decision.now;
        struct imex_report i;

        log_info("state", kv_str("partition", r->fabric), kv_bool("object", r->object != NULL),
                 kv_bool("watched", r->watch_well), kv_str("domain", str_or(s->domain, "")),
                 kv_int("index", s->domain ? s->index : -1), kv_int("epoch", s->epoch),
                 kv_int("closed", r->memory.decision.closed), kv_int("seen", r->memory.decision.seen),
                 kv_bool("ready", r->memory.decision.ready), kv_str("waitsFor", r->waits_for),
                 kv_str("why", r->why));
        if (r->serving) {
                serving_report(r->serving, &i);
                log_info("imex", kv_str("status", imex_status_name(i.status)), kv_bool("ready", i.ready),
                         kv_str("reason", i.reason), kv_int("index", i.index),
                         kv_int("peers_known", i.peers_known), kv_int("peers_connected", i.peers_connected),
                         kv_int("restarts", i.restarts), kv_bool("stopping", serving_stopping(r->serving)));
        }
        log_info("end of state");
}

void node_daemon_free(struct node_daemon *r) {
        if (!r)
                return;
        kube_informer_free(r->informer);
        pod_report_free(r->reporter);
        imex_version_free(r->version);
        serving_free(r->serving);
        kube_client_free(r->client);
        kube_object_unref(r->object);
        folder_stop(&r->folder);
        loop_timer_done(&r->retry);
        loop_timer_done(&r->settled);
        loop_turn_done(&r->turn);
        arena_free(r->arena);
        if (r->life >= 0)
                close(r->life);
        free(r->cdi_prefix);
        free(r->seen.uids);
        free(r);
}

int node_daemon_new(uv_loop_t *loop, const struct node_daemon_config *c, void (*done)(void *u), void *u,
                    struct node_daemon **ret, struct err *e) {
        struct node_daemon *r = xnew(struct node_daemon);

        *r = (struct node_daemon){ .c = c,
                                   .loop = loop,
                                   .life = -1,
                                   .done = done,
                                   .u = u,
                                   .watch_well = true,
                                   .cdi_prefix = cdi_prefix(CD_CDI_KIND_CLAIM),
                                   .waits_for = "",
                                   .why = "",
                                   .arena = arena_new(1024),
                                   .relay = { STDERR_FILENO } };
        snprintf(r->boot_id, sizeof r->boot_id, "%s", c->boot_id);
        loop_turn_init(&r->turn, loop, node_daemon_on_turn, r);
        loop_timer_init(&r->retry, loop, node_daemon_on_turn, r);
        loop_timer_init(&r->settled, loop, on_settled, NULL);
        show_life(r);
        if (find_fabric(r, e) < 0 || (*r->fabric && recall(r, e) < 0) || connect_api(r, e) < 0) {
                node_daemon_free(r);
                return -1;
        }
        r->reporter = pod_report_new(r->client, c->pod_ns, c->pod);
        if (*r->fabric) {
                r->version = imex_version_new(loop, c->imex.imex_path, on_version, r);
                watch_object(r);
        } else {
                log_info("this node is in no NVLink partition: waiting until it is in one");
        }
        decide_again(r);
        *ret = r;
        return 0;
}
