/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/resident.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/resources.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "daemon/agent_folder.h"
#include "daemon/agent_memory.h"
#include "daemon/agent_report.h"
#include "daemon/life.h"
#include "daemon/relay.h"
#include "kube/kube_informer.h"

enum {
        /* What could not be written or removed is tried again. */
        RETRY_MS = 1000,
        /* What a start took is given back when all is quiet: one agent runs on each node, mostly idle. */
        SETTLED_MS = 15000,
};

struct resident {
        const struct resident_config *c;
        uv_loop_t *loop;
        void (*done)(void *u);
        void *u;
        struct loop_turn turn;
        struct loop_timer retry, settled;
        struct relay relay;
        char boot_id[37];

        char fabric[AGENT_WORD_MAX]; /* the clique's id; "" without */
        struct agent_folder folder;
        bool moved;    /* it is another one now */
        bool outdated; /* a container that starts now is given something else of the node */
        bool renewing; /* IMEX ends for that, and its seat is kept */

        struct kube_client *client;
        struct kube_informer *informer;
        struct pod_patch *patch;
        bool watch_well, told;            /* the object can be watched, and we have it as it is there */
        const struct kube_object *object; /* as it was last, referenced; NULL: never seen */

        struct arena *arena;
        struct agent_memory memory; /* as the file has it */
        struct life *life;          /* NULL: no seat */
        const char *held, *why;     /* static; "" */
        bool stopping, finished;
};

static void look_again(struct resident *r) {
        loop_turn_start(&r->turn);
}

static void tell_error(const struct resident *r, const struct err *e) {
        log_warn("cannot do what the fabric's object asks for, trying again",
                 kv_str("domain", str_or(r->memory.turns.now.domain, "")), kv_err(e));
}

/* ---- what is remembered ---- */

static struct agent_identity identity(const struct resident *r) {
        return (struct agent_identity){ r->boot_id, r->fabric, r->c->pod_uid };
}

/* Before anything counts on it. -1: it is tried again, and nothing may be done yet. */
static int remember(struct resident *r, const struct agent_memory *m) {
        const struct agent_identity of = identity(r);
        struct arena *fresh;
        struct err e;

        if (agent_memory_same(m, &r->memory))
                return 0;
        if (agent_memory_save(r->c->dir, &of, m, &e) < 0) {
                tell_error(r, &e);
                loop_timer_start(&r->retry, RETRY_MS);
                return -1;
        }
        fresh = arena_new(1024);
        agent_memory_copy(m, fresh, &r->memory);
        arena_free(r->arena);
        r->arena = fresh;
        return 0;
}

/* ---- the Pod ---- */

static void tell_pod(struct resident *r) {
        char text[IMEX_REASON_MAX + 100];
        struct imex_report imex;
        struct agent_report report = { .fabric = r->fabric,
                                       .fabric_uid = r->object ? r->object->meta.uid : "",
                                       .memory = &r->memory,
                                       .held = r->held,
                                       .reason = r->why };

        if (r->life) {
                const char *error = life_state_error(r->life);

                life_report(r->life, &imex);
                report.imex = &imex;
                report.reason = imex.reason;
                if (imex.ready && error) {
                        snprintf(text, sizeof text,
                                 "new pods on this node wait, running ones go on: cannot write the state "
                                 "file: %s",
                                 error);
                        report.reason = text;
                }
        }
        agent_report_tell(r->patch, &report);
}

/* ---- one seat ---- */

static void on_output(void *u, struct str line) {
        struct resident *r = u;

        relay_line(&r->relay, line);
}

static void on_failing(void *u, const struct err *e) {
        tell_error(u, e);
}

static void on_life(void *u) {
        look_again(u);
}

static int on_serves(void *u) {
        struct resident *r = u;
        struct agent_memory m = r->memory;

        m.served = true;
        return remember(r, &m);
}

static int begin_life(struct resident *r, struct err *e) {
        const struct turns_seat *s = &r->memory.turns.now;

        if (life_new(r->loop,
                     &(struct life_options){ .dir = r->c->dir,
                                             .fabric = r->fabric,
                                             .boot_id = r->boot_id,
                                             .claim_uid = r->c->claim_uid,
                                             .pod_uid = r->c->pod_uid,
                                             .seat = s,
                                             .imex = r->c->imex,
                                             .serves = on_serves,
                                             .changed = on_life,
                                             .output = on_output,
                                             .failing = on_failing,
                                             .u = r },
                     &r->life, e) < 0)
                return -1;
        log_info("running IMEX for a domain", kv_str("domain", s->domain), kv_int("index", s->index),
                 kv_int("epoch", s->epoch), kv_int("port", s->port));
        loop_timer_start(&r->settled, SETTLED_MS);
        return 0;
}

/* What came from outside becomes a path and goes into files. */
static bool valid(const struct turns_seat *s) {
        return str_is_uuid(s->domain) && imex_infix_valid(s->infix) && s->slots > 0 &&
               s->slots <= FABRIC_SLOTS_MOST && s->index >= 0 && s->index < s->slots && s->port > 0 &&
               s->port <= 65535;
}

static void enter(struct resident *r, const struct turns *t) {
        struct agent_memory m = { .turns = t->memory };
        struct err e;

        if (!valid(&t->seat)) {
                r->why = "the fabric's object has a seat for this node that cannot be: its domain is no UID, "
                         "or "
                         "a number is out of range";
                return;
        }
        m.turns.now = t->seat;
        if (remember(r, &m) < 0)
                return;
        r->why = "";
        if (begin_life(r, &e) < 0) {
                tell_error(r, &e);
                loop_timer_start(&r->retry, RETRY_MS);
        }
}

/* Nobody else is in the domain, as far as the object is known to be that of now. */
static bool alone(const struct resident *r, const struct compute_domain_fabric *f) {
        const struct fabric_domain *d =
                f && r->watch_well && r->told ? fabric_domain_of(f, r->memory.turns.now.domain) : NULL;

        return d && d->n_seats + d->n_leaving == 1;
}

/* Others may map this node's memory: whoever ends now must come back once and make that good, even where the
 * ComputeDomain is being deleted. */
static bool may_end(const struct resident *r, const struct compute_domain_fabric *f) {
        struct imex_report i;

        life_report(r->life, &i);
        return i.ready || !r->memory.served || alone(r, f);
}

static void leave(struct resident *r, const struct compute_domain_fabric *f, bool whoever) {
        if (!may_end(r, f)) {
                r->held = "IMEX ended uncleanly here, and waits for the nodes that had imported its memory";
                return;
        }
        if (life_leave(r->life, whoever, &r->held))
                log_info("leaving a domain", kv_str("domain", r->memory.turns.now.domain));
}

/* Of what does not run, or has never been ready, nobody has anything to lose. */
static void renew(struct resident *r) {
        struct imex_report i;
        const char *why;

        if (!r->life || life_leaving(r->life))
                return;
        life_report(r->life, &i);
        r->renewing = life_leave(r->life, !r->memory.served || i.phase == IMEX_BACKOFF, &why);
        if (r->renewing)
                log_info("what this node has for IMEX has changed: IMEX ends, and starts in a new container",
                         kv_str("domain", r->memory.turns.now.domain));
}

/* The seat of `now` is left for good, or that is tried again: -1. */
static int forget_seat(struct resident *r) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct agent_memory m = r->memory;

        turns_left(&r->memory.turns, a, &m.turns);
        m.served = m.inherited = false;
        return remember(r, &m);
}

/* Where no agent's Pod is, nothing runs: the controller may have given the seat to another node before this
 * Pod came. */
static int drop_inherited(struct resident *r) {
        struct err e;

        if (life_clear_after(r->c->dir, r->memory.turns.now.domain, &e) < 0) {
                tell_error(r, &e);
                loop_timer_start(&r->retry, RETRY_MS);
                return -1;
        }
        return forget_seat(r);
}

/* nvidia-imex is gone. */
static void end_life(struct resident *r, bool clean) {
        struct err e;

        if (!clean && r->memory.served) {
                /* Killed: its peers do not know. It comes back, and leaves when they know. */
                log_warn("IMEX had to be killed, it is started again so that its peers hear of its end",
                         kv_str("domain", r->memory.turns.now.domain));
                life_free(TAKE(r->life));
                return;
        }
        if (life_clear(r->life, &e) < 0) {
                tell_error(r, &e);
                loop_timer_start(&r->retry, RETRY_MS);
                return;
        }
        if (forget_seat(r) < 0)
                return;
        log_info("left a domain");
        life_free(TAKE(r->life));
        r->held = "";
}

/* ---- what the object says ---- */

static void show_peers(struct resident *r, const struct compute_domain_fabric *f) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct imex_peer *peers = NULL;
        size_t n = 0;
        bool told =
                f && turns_peers(f, r->c->node, &r->memory.turns.now, a, &peers, &n) && n < IMEX_MEMBERS_MAX;

        life_set_peers(r->life, told ? peers : NULL, told ? n : 0, told && r->watch_well && r->told);
}

/* NULL: it is not there, or says nothing. */
static const struct compute_domain_fabric *roster(const struct resident *r) {
        const struct compute_domain_fabric *f = (const struct compute_domain_fabric *)r->object;

        return f && !r->moved && fabric_is_own(f) ? f : NULL;
}

static void follow(struct resident *r) {
        const struct compute_domain_fabric *f = roster(r);
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct turns t;
        struct agent_memory m = { .served = r->memory.served };

        turns_decide(f, r->c->node, &r->memory.turns, a, &t);
        if (t.step != TURNS_ENTER) {
                m.turns = t.memory;
                if (remember(r, &m) < 0)
                        return;
        }
        r->why = t.why;
        r->held = "";
        if (r->life && (t.step == TURNS_LEAVE || t.step == TURNS_END || r->moved))
                leave(r, f, t.step == TURNS_END);
        else if (t.step == TURNS_ENTER)
                enter(r, &t);
        if (r->life && !life_leaving(r->life))
                show_peers(r, f);
}

static void finish(struct resident *r) {
        if (r->finished)
                return;
        r->finished = true;
        r->done(r->u);
}

static void on_turn(void *u) {
        struct resident *r = u;
        bool clean;
        struct err e;

        loop_timer_stop(&r->retry);
        if (r->finished)
                return;
        if (r->stopping) {
                if (!r->life || life_ended(r->life, &clean))
                        finish(r);
                return;
        }
        if (r->renewing ? life_ended(r->life, &clean) : r->outdated && !r->life) {
                log_info("what this node has for IMEX has changed: the container starts anew");
                finish(r);
                return;
        }
        if (r->life && !r->renewing && life_ended(r->life, &clean))
                end_life(r, clean);
        if (r->memory.inherited && drop_inherited(r) < 0)
                return;
        /* What it remembers it takes up, without asking anybody. */
        if (!r->life && r->memory.turns.now.domain && begin_life(r, &e) < 0) {
                tell_error(r, &e);
                loop_timer_start(&r->retry, RETRY_MS);
        }
        if (r->life ? !life_leaving(r->life) : !r->memory.turns.now.domain)
                follow(r);
        if (r->outdated)
                renew(r);
        if (r->moved && !r->life) {
                log_info("the fabric of this node is another one now: the container starts anew");
                finish(r);
                return;
        }
        tell_pod(r);
}

static void on_object(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct resident *r = u;

        if (!now) {
                log_warn("the fabric's object is gone, waiting for its return: IMEX goes on",
                         kv_str("fabric", r->fabric));
                r->told = false;
        } else {
                kube_object_unref(r->object);
                r->object = kube_object_ref(now);
                r->told = true;
        }
        look_again(r);
}

static void on_watch(void *u, const struct kube_resource *res, const struct err *e) {
        struct resident *r = u;

        r->watch_well = !e;
        if (e)
                log_warn("cannot watch the fabric's object, IMEX goes on with what is known", kv_err(e));
        else
                log_info("watching the fabric's object again");
        look_again(r);
}

static void on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        struct resident *r = u;

        r->told = false;
        log_error("the fabric's object cannot be read, IMEX goes on with what is known", kv_err(e));
        look_again(r);
}

/* ---- the node ---- */

static void on_folder(void *u) {
        struct resident *r = u;
        char now[AGENT_WORD_MAX];
        struct err e;

        if (agent_folder_fabric(&r->folder, now, &e) == 0)
                r->moved = !streq(now, r->fabric);
        r->outdated = agent_folder_outdated(&r->folder, r->c->edits);
        look_again(r);
}

static int find_fabric(struct resident *r, struct err *e) {
        if (agent_folder_start(&r->folder, r->loop, r->c->dir, on_folder, r, e) < 0 ||
            agent_folder_fabric(&r->folder, r->fabric, e) < 0)
                return -1;
        r->outdated = agent_folder_outdated(&r->folder, r->c->edits);
        return 0;
}

/* ---- life cycle ---- */

static void on_settled(void *u) {
        malloc_trim(0);
}

static int connect_api(struct resident *r, struct err *e) {
        struct kube_config config;

        if (kube_config_load(r->c->kubeconfig, &config, e) < 0)
                return -1;
        int ret = kube_client_new(
                r->loop,
                &(struct kube_client_options){ .config = &config, .user_agent = "compute-domain-agent" },
                &r->client, e);
        kube_config_done(&config);
        return ret;
}

static void watch_object(struct resident *r) {
        _cleanup_(buf_done) struct buf selector = BUF_INIT(1024);

        buf_addf(&selector, "metadata.name=%s", r->fabric);
        r->informer = kube_informer_new(r->client, &(struct kube_informer_options){
                                                           .res = &kube_fabrics,
                                                           .field_selector = buf_str(&selector),
                                                           .fields = compute_domain_fabric_fields,
                                                           .size = sizeof(struct compute_domain_fabric),
                                                           .changed = on_object,
                                                           .undecodable = on_undecodable,
                                                           .failing = on_watch,
                                                           .u = r,
                                                   });
}

static void recall(struct resident *r) {
        const struct agent_identity of = identity(r);
        struct err e;

        agent_memory_tidy(r->c->dir);
        if (agent_memory_load(r->c->dir, &of, r->arena, &r->memory, &e) == 0) {
                if (r->memory.inherited)
                        log_info("the seat of the Pod before this one is not taken up: it may be another "
                                 "node's by now",
                                 kv_str("domain", r->memory.turns.now.domain));
                else if (r->memory.turns.now.domain)
                        log_info("taking up the seat of before the restart",
                                 kv_str("domain", r->memory.turns.now.domain));
                return;
        }
        r->memory = (struct agent_memory){ 0 };
        if (e.kind != ERR_NOT_FOUND)
                log_warn("what was remembered cannot be read", kv_err(&e));
}

void resident_stop(struct resident *r) {
        const char *why;

        r->stopping = true;
        if (r->life)
                (void)life_leave(r->life, true, &why);
        look_again(r);
}

void resident_dump(const struct resident *r) {
        const struct turns_seat *s = &r->memory.turns.now;
        struct imex_report i;

        log_info("state", kv_str("fabric", r->fabric), kv_bool("object", r->object != NULL),
                 kv_bool("watched", r->watch_well), kv_str("domain", str_or(s->domain, "")),
                 kv_int("index", s->domain ? s->index : -1), kv_int("epoch", s->epoch),
                 kv_int("entered", r->memory.turns.entered), kv_int("seen", r->memory.turns.seen),
                 kv_bool("served", r->memory.served), kv_str("held", r->held), kv_str("why", r->why));
        if (r->life) {
                life_report(r->life, &i);
                log_info("imex", kv_str("status", i.status), kv_bool("ready", i.ready),
                         kv_str("reason", i.reason), kv_int("index", i.index),
                         kv_int("peers_known", i.peers_known), kv_int("peers_connected", i.peers_connected),
                         kv_int("restarts", i.restarts), kv_bool("leaving", life_leaving(r->life)));
        }
        log_info("end of state");
}

void resident_free(struct resident *r) {
        if (!r)
                return;
        kube_informer_free(r->informer);
        pod_patch_free(r->patch);
        life_free(r->life);
        kube_client_free(r->client);
        kube_object_unref(r->object);
        agent_folder_stop(&r->folder);
        loop_timer_done(&r->retry);
        loop_timer_done(&r->settled);
        loop_turn_done(&r->turn);
        arena_free(r->arena);
        free(r);
}

int resident_new(uv_loop_t *loop, const struct resident_config *c, const char *boot_id, void (*done)(void *u),
                 void *u, struct resident **ret, struct err *e) {
        struct resident *r = xnew(struct resident);

        *r = (struct resident){ .c = c,
                                .loop = loop,
                                .done = done,
                                .u = u,
                                .watch_well = true,
                                .held = "",
                                .why = "",
                                .arena = arena_new(1024),
                                .relay = { STDERR_FILENO } };
        snprintf(r->boot_id, sizeof r->boot_id, "%s", boot_id);
        loop_turn_init(&r->turn, loop, on_turn, r);
        loop_timer_init(&r->retry, loop, on_turn, r);
        loop_timer_init(&r->settled, loop, on_settled, NULL);
        if (find_fabric(r, e) < 0 || connect_api(r, e) < 0) {
                resident_free(r);
                return -1;
        }
        r->patch = agent_report_patch_new(r->client, c->pod_ns, c->pod);
        if (*r->fabric) {
                recall(r);
                watch_object(r);
        } else {
                r->why = "this node has no NVLink fabric: there is nothing to run here";
                log_info("this node has no NVLink fabric: nothing to do until it has one");
        }
        look_again(r);
        *ret = r;
        return 0;
}
