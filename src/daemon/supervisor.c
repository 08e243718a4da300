/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/supervisor.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "api/resources.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "daemon/membership.h"
#include "daemon/pod_report.h"
#include "daemon/program.h"
#include "daemon/relay.h"
#include "daemon/state_file.h"
#include "imex/imex_agent.h"
#include "kube/kube_informer.h"

/* When a domain has formed, what the start took (TLS above all) is given back to the node: one daemon runs
 * per node and domain, and idles.
 */
#define SETTLED_MS 15000

struct supervisor {
        const struct supervisor_config *c;
        uv_loop_t *loop;
        void (*stopped)(void *u);
        void *u;
        struct loop_timer settled;
        struct state_file file;
        struct relay relay;

        struct kube_client *client;
        struct kube_informer *cliques;
        struct pod_patch *patch;
        struct imex_agent *agent; /* NULL without fabric */
        char *identity;           /* the agent's */

        bool watch_well, clique_told; /* the clique can be watched, and we have it as it is there */
        char awaited[160];            /* as it was logged */
        unsigned renewals;
        int64_t held;  /* the index that the agent was told last, -1: none */
        bool unlisted; /* it is ours though the clique does not say so */
        char why[256]; /* what keeps us out of the domain, by the clique */
};

static void on_settled(void *u) {
        malloc_trim(0);
}

/* What IMEX does */

static void log_recovery(struct supervisor *s, const struct imex_report *r) {
        if (r->renewals != s->renewals)
                log_info("IMEX is started anew, with nothing remembered: whoever it waited for has "
                         "connected, has rebooted, or is no member any more");
        else if (*r->awaited && !streq(s->awaited, r->awaited))
                log_warn("IMEX waits for nodes that may map this node's memory", kv_str("nodes", r->awaited));
        s->renewals = r->renewals;
        snprintf(s->awaited, sizeof s->awaited, "%s", r->awaited);
}

static const char *reason_of(const struct supervisor *s, const struct imex_report *r) {
        return r->phase == IMEX_IDLE && *s->why ? s->why : r->reason;
}

/* An IMEX that is ready is of no use to pods that cannot hear of it. */
static void tell_pod(struct supervisor *s, const struct imex_report *r, const char *reason) {
        const char *error = r->ready ? state_file_error(&s->file) : NULL;
        struct imex_report told = *r;

        told.ready = r->ready && !error;
        if (error)
                snprintf(told.reason, sizeof told.reason,
                         "new pods on this node wait, running ones go on: cannot write the state file: %s",
                         error);
        else
                snprintf(told.reason, sizeof told.reason, "%s", reason);
        pod_report_tell(s->patch, s->c->clique_id, &told);
}

static void on_report(void *u, const struct imex_report *r) {
        struct supervisor *s = u;
        const char *reason = reason_of(s, r);
        bool was_ready = s->file.state.ready;

        state_file_set(&s->file, r->ready, r->index, r->status, reason);
        log_recovery(s, r);
        if (r->ready && !was_ready) {
                log_info("IMEX daemon is ready", kv_int("index", r->index), kv_int("peers", r->peers_known));
                loop_timer_start(&s->settled, SETTLED_MS);
        } else if (r->phase == IMEX_BACKOFF) {
                log_warn("IMEX daemon is down, it is started again", kv_str("reason", reason),
                         kv_int("restarts", r->restarts));
        } else if (was_ready && !r->ready) {
                log_warn("IMEX daemon is not ready any more", kv_str("status", r->status),
                         kv_str("reason", reason));
        }
        tell_pod(s, r, reason);
}

static void on_state_error(void *u) {
        struct supervisor *s = u;
        struct imex_report r;

        if (!s->agent)
                return;
        imex_agent_report(s->agent, &r);
        tell_pod(s, &r, reason_of(s, &r));
}

static void on_output(void *u, struct str line) {
        struct supervisor *s = u;

        relay_line(&s->relay, line);
}

static void on_failing(void *u, const struct err *e) {
        log_warn("cannot do what the membership asks for, trying again", kv_err(e));
}

static void on_stopped(void *u) {
        struct supervisor *s = u;

        s->stopped(s->u);
}

/* What the clique says */

/* Absence is no statement: while the clique is not there or cannot be seen, what it said last goes on. */
static void tell_current(struct supervisor *s) {
        imex_agent_set_current(s->agent, s->watch_well && s->clique_told);
}

static void on_clique(void *u, const struct kube_object *old, const struct kube_object *now) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct supervisor *s = u;
        const struct clique *c = (const struct clique *)now;
        struct imex_report r;
        struct membership m;

        if (!now) {
                /* Somebody deleted it; the controller writes it anew. What runs goes on with what it knows.
                 */
                log_warn("the clique object is gone, waiting for its return",
                         kv_str("domain", s->c->domain_uid));
                s->clique_told = false;
                tell_current(s);
                return;
        }
        if (c->domain_uid && !streq(c->domain_uid, s->c->domain_uid)) {
                log_warn("the clique object is labelled with another domain, it is ignored",
                         kv_str("label", c->domain_uid));
                return;
        }
        membership_of(&c->imex, s->c->node, s->c->imex.dns_names, s->held, a, &m);
        s->held = m.members.own_index;
        if (m.unlisted && !s->unlisted)
                log_warn("the clique object has no entry of this node: IMEX goes on with its index, which "
                         "nobody else has",
                         kv_int("index", s->held));
        s->unlisted = m.unlisted;
        if (!streq(s->why, m.why)) {
                snprintf(s->why, sizeof s->why, "%s", m.why);
                if (*s->why)
                        log_info("not a member of the domain yet", kv_str("reason", s->why));
                imex_agent_report(s->agent, &r);
                on_report(s, &r);
        }
        log_v(2, "clique", kv_int("index", m.members.own_index), kv_int("peers", m.members.n_peers),
              kv_str("resourceVersion", now->meta.rv));
        imex_agent_set_members(s->agent, &m.members);
        s->clique_told = true;
        tell_current(s);
}

static void on_cliques_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct supervisor *s = u;

        s->watch_well = !e;
        tell_current(s);
        if (e)
                log_warn("cannot watch the clique object, IMEX goes on with what is known", kv_err(e));
        else
                log_info("watching the clique object again");
}

static void on_undecodable(void *u, const struct kube_resource *res, const struct err *e) {
        struct supervisor *s = u;

        s->clique_told = false;
        tell_current(s);
        log_error("the clique object cannot be read, IMEX goes on with what is known", kv_err(e));
}

/* What is known, for people */

static void dump_imex(const struct supervisor *s, const struct imex_report *r) {
        log_info("imex", kv_str("status", r->status), kv_bool("ready", r->ready),
                 kv_str("reason", reason_of(s, r)), kv_int("index", r->index), kv_int("node_id", r->node_id),
                 kv_int("peers_known", r->peers_known), kv_int("peers_connected", r->peers_connected),
                 kv_int("restarts", r->restarts));
        log_info("recovery", kv_int("waited_ms", r->waited_ms), kv_str("awaited", r->awaited),
                 kv_int("seen", r->n_seen), kv_int("informed_ms", r->informed_ms),
                 kv_int("renewals", r->renewals));
        for (size_t i = 0; r->waited_ms && i < r->n_seen; i++)
                log_info("connected since the recovery began", kv_str("node", r->seen[i]));
}

static void dump_clique(const struct supervisor *s, const struct imex_members *m) {
        _cleanup_(buf_done) struct buf name = BUF_INIT(1024);

        clique_object_name(s->c->domain_uid, s->c->clique_id, &name);
        const struct kube_object *o =
                s->cliques ? kube_informer_get(s->cliques, s->c->pod_ns, buf_str(&name)) : NULL;
        log_info("clique", kv_str("name", buf_str(&name)), kv_bool("there", o != NULL),
                 kv_str("resourceVersion", o ? o->meta.rv : ""), kv_bool("watched", s->watch_well),
                 kv_bool("current", s->cliques && kube_informer_current(s->cliques)),
                 kv_int("index", s->held), kv_bool("unlisted", s->unlisted), kv_str("why", s->why));
        for (size_t i = 0; m && i < m->n_peers; i++)
                log_info("peer", kv_int("index", m->peers[i].index), kv_str("node", m->peers[i].node),
                         kv_str("ip", m->peers[i].ip), kv_bool("ready", m->peers[i].ready),
                         kv_str("boot", str_or(m->peers[i].boot_id, "")));
}

void supervisor_dump(struct supervisor *s) {
        struct imex_report r;

        log_info("state", kv_str("domain", s->c->domain_uid), kv_str("clique", s->c->clique_id),
                 kv_str("file", s->file.state.status), kv_bool("ready", s->file.state.ready),
                 kv_str("error", str_or(state_file_error(&s->file), "")));
        if (s->agent) {
                imex_agent_report(s->agent, &r);
                dump_imex(s, &r);
                dump_clique(s, r.members);
        }
        log_info("end of state");
}

/* Life cycle */

void supervisor_stop(struct supervisor *s) {
        if (s->agent) {
                imex_agent_stop(s->agent);
                return;
        }
        state_file_set(&s->file, false, -1, "STOPPED", "the IMEX daemon is being stopped");
        s->stopped(s->u);
}

static int start_agent(struct supervisor *s, struct err *e) {
        const struct supervisor_config *c = s->c;
        const struct imex_members *known;
        struct imex_agent_options o = c->imex;

        s->identity = xasprintf("boot=%s pod=%s claim=%s domain=%s clique=%s ip=%s max=%u names=%d",
                                s->file.state.boot_id, c->pod_uid, c->claim_uid, c->domain_uid, c->clique_id,
                                o.own_ip, o.max_nodes, o.dns_names);
        o.identity = s->identity;
        o.changed = on_report;
        o.stopped = on_stopped;
        o.output = on_output;
        o.failing = on_failing;
        o.u = s;
        if (imex_agent_new(s->loop, &o, &s->agent, &known, e) < 0)
                return -1;
        if (known && known->own_index >= 0) {
                s->held = known->own_index;
                log_info("starting with the members known before the restart",
                         kv_int("index", known->own_index), kv_int("peers", known->n_peers));
        }
        return 0;
}

static void watch_clique(struct supervisor *s) {
        _cleanup_(buf_done) struct buf selector = BUF_INIT(1024);

        buf_adds(&selector, "metadata.name=");
        clique_object_name(s->c->domain_uid, s->c->clique_id, &selector);
        s->cliques = kube_informer_new(s->client, &(struct kube_informer_options){
                                                          .res = &kube_cliques,
                                                          .ns = s->c->pod_ns,
                                                          .field_selector = buf_str(&selector),
                                                          /* What was started before is not judged by an
                                                           * old list. */
                                                          .first_from_cache = s->held < 0,
                                                          .fields = clique_fields,
                                                          .size = sizeof(struct clique),
                                                          .changed = on_clique,
                                                          .undecodable = on_undecodable,
                                                          .failing = on_cliques_failing,
                                                          .u = s,
                                                  });
}

static int connect_api(struct supervisor *s, struct err *e) {
        struct kube_config config;

        if (kube_config_load(s->c->kubeconfig, &config, e) < 0)
                return -1;
        int r = kube_client_new(
                s->loop,
                &(struct kube_client_options){ .config = &config, .user_agent = "compute-domain-daemon" },
                &s->client, e);
        kube_config_done(&config);
        return r;
}

static void report_no_fabric(struct supervisor *s) {
        log_info("this node has no NVLink fabric: nothing to do until the end of the pod");
        loop_timer_start(&s->settled, SETTLED_MS);
        state_file_set(&s->file, true, -1, "NO_FABRIC", "");
        pod_report_tell(
                s->patch, "",
                &(struct imex_report){ .status = "NO_FABRIC", .ready = true, .index = -1, .node_id = -1 });
}

void supervisor_end(struct supervisor *s) {
        kube_informer_free(s->cliques);
        pod_patch_free(s->patch);
        imex_agent_free(s->agent);
        kube_client_free(s->client);
        loop_timer_done(&s->settled);
        state_file_stop(&s->file);
}

void supervisor_free(struct supervisor *s) {
        state_file_unlock(&s->file);
        free(s->identity);
        free(s);
}

int supervisor_new(uv_loop_t *loop, const struct supervisor_config *c, const char *boot_id,
                   void (*stopped)(void *u), void *u, struct supervisor **ret, struct err *e) {

        if (file_mkdirs(c->imex.dir, 0755, e) < 0)
                return -1;
        struct supervisor *s = xnew(struct supervisor);
        *s = (struct supervisor){ .c = c,
                                  .loop = loop,
                                  .stopped = stopped,
                                  .u = u,
                                  .held = -1,
                                  .watch_well = true,
                                  .relay = { STDERR_FILENO },
                                  .file = { .dir = c->imex.dir, .changed = on_state_error, .u = s } };
        snprintf(s->file.state.boot_id, sizeof s->file.state.boot_id, "%s", boot_id);
        snprintf(s->file.state.claim_uid, sizeof s->file.state.claim_uid, "%s", c->claim_uid);
        snprintf(s->file.state.pod_uid, sizeof s->file.state.pod_uid, "%s", c->pod_uid);
        loop_timer_init(&s->settled, loop, on_settled, NULL);
        state_file_start(&s->file, loop);
        int r = connect_api(s, e);
        if (r == 0) {
                s->patch = pod_report_patch_new(s->client, c->pod_ns, c->pod);
                if (!*c->clique_id) {
                        report_no_fabric(s);
                } else {
                        r = start_agent(s, e);
                        if (r == 0)
                                watch_clique(s);
                }
        }
        *ret = s;
        if (r < 0) {
                supervisor_end(s);
                supervisor_free(TAKE(*ret));
        }
        return r;
}

/* The process around it */

static void stop(void *owner) {
        supervisor_stop(owner);
}

static void dump(void *owner) {
        supervisor_dump(owner);
}

int supervisor_run(const struct supervisor_config *c, struct err *e) {
        struct supervisor *s = NULL;
        struct program p;
        char boot_id[37];

        if (file_boot_id(FILE_BOOT_ID_PATH, boot_id, e) < 0)
                return -1;
        program_start(&p, stop, dump);
        int r = supervisor_new(p.loop, c, boot_id, program_done, &p, &s, e);
        if (r == 0) {
                p.owner = s;
                uv_run(p.loop, UV_RUN_DEFAULT);
                supervisor_end(s);
        }
        program_stop(&p);
        /* nvidia-imex, if it was killed, is gone before somebody may take the state file for nobody's. */
        uv_run(p.loop, UV_RUN_DEFAULT);
        if (r == 0)
                supervisor_free(s);
        return r;
}
