/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_runner.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "imex/imex_ctl.h"
#include "imex/imex_probe.h"
#include "imex/imex_process.h"

#define FILE_LIMIT ((size_t)1024 * 1024)
/* The pause before a failed write is retried. */
#define RETRY_MS 1000
/* After a change of its peers IMEX needs a moment to connect to them. */
#define CONNECT_MS 500

struct imex_runner {
        uv_loop_t *loop;
        struct imex_runner_options o;
        char *config_path, *nodes_path;
        const char *argv[4];
        struct loop_turn turn;
        struct loop_timer retry; /* the same, after a while */
        struct imex_process *process;
        struct imex_probe *probe;

        struct arena *want_arena, *run_arena;
        const struct imex_members *want;    /* NULL: not set yet */
        const struct imex_members *running; /* the members with which the process was started, including our
                                               own slot; NULL: never started */
        bool fresh;                         /* `want` is not saved to disk yet */

        struct imex_answers answers;
        struct imex_links links;       /* of this process */
        char ended[IMEX_REASON_MAX];   /* why the last process ended, a sentence; "" if it was stopped */
        char refused[IMEX_REASON_MAX]; /* why the wanted members cannot be used */
        bool usable;                   /* the files of the wanted members can be written */
        char last_error[sizeof(((struct err *)0)->msg)];

        struct imex_recovery recovery; /* of this process */
        struct loop_timer recovery_turn;
        uint64_t informed_since; /* loop time; 0: the members may be old */
        char awaited[IMEX_AWAITED_MAX];
        bool forget;            /* start the next process without the remembered nodes */
        unsigned renewals;

        bool stopping, stopped;
        struct imex_report reported; /* the last report delivered */
};

static void imex_runner_act(struct imex_runner *a);

/* Reports an error once, even if it occurs again. */
static void report_error(struct imex_runner *a, const struct err *e) {
        if (streq(a->last_error, e->msg))
                return;
        snprintf(a->last_error, sizeof a->last_error, "%s", e->msg);
        a->o.failing(a->o.u, e);
}

/* Members */

static bool imex_runner_member(const struct imex_members *m) {
        return m && m->own_index >= 0;
}

/* The members as the files need them: our own entry as we know it, and no other node in our slot or with our
 * address, because IMEX finds its ID by the address. */
static const struct imex_members *resolved(struct imex_runner *a, const struct imex_members *m,
                                           struct arena *to) {
        _cleanup_(freep) struct imex_peer *peers = xnew_n(struct imex_peer, m->n_peers + 1);
        struct imex_members r = { .own_index = m->own_index, .infix = m->infix, .peers = peers };

        peers[r.n_peers++] =
                (struct imex_peer){ .index = m->own_index, .ip = a->o.own_ip, .node = "this node" };
        for (size_t i = 0; i < m->n_peers; i++)
                if (m->peers[i].index != m->own_index && !streq(m->peers[i].ip, a->o.own_ip))
                        peers[r.n_peers++] = m->peers[i];
        return imex_members_copy(to, &r);
}

static unsigned peers_known(const struct imex_runner *a) {
        unsigned n = 0;

        for (size_t i = 0; imex_runner_member(a->want) && i < a->want->n_peers; i++)
                n += a->want->peers[i].index != a->want->own_index && *a->want->peers[i].ip &&
                     !streq(a->want->peers[i].ip, a->o.own_ip);
        return n;
}

/* Whether the process runs with the wanted slot and infix. Peers may change without a restart. */
static bool identity_current(const struct imex_runner *a) {
        return imex_runner_member(a->want) && a->running && a->running->own_index == a->want->own_index &&
               streq(a->running->infix, a->want->infix);
}

/* The report */

static bool imex_runner_running(const struct imex_runner *a) {
        return imex_process_state(a->process) == IMEX_PROCESS_RUNNING;
}

static struct imex_supervision_facts imex_runner_facts(const struct imex_runner *a) {
        bool current = identity_current(a);

        return (struct imex_supervision_facts){
                .stopping = a->stopping,
                .member = imex_runner_member(a->want),
                .process = imex_process_state(a->process),
                .identity_current = current,
                .index = current ? a->running->own_index : -1,
                .usable = a->usable,
                .refused = a->refused,
                .ended = a->ended,
                .awaited = a->awaited,
                .answers = &a->answers,
                .was_ready = a->reported.ready,
        };
}

static void supervise(const struct imex_runner *a, struct imex_supervision_verdict *ret) {
        struct imex_supervision_facts f = imex_runner_facts(a);

        imex_supervision_evaluate(&f, ret);
}

void imex_runner_report(struct imex_runner *a, struct imex_report *ret) {
        struct imex_supervision_verdict v;
        bool ours = imex_runner_running(a) && identity_current(a);
        uint64_t now = uv_now(a->loop);

        supervise(a, &v);
        *ret = (struct imex_report){
                .phase = v.phase,
                .ready = v.phase == IMEX_READY,
                .status = v.status,
                .index = identity_current(a) ? a->running->own_index : -1,
                .node_id = ours ? a->answers.node_id : -1,
                .peers_known = peers_known(a),
                .peers_connected = ours ? a->answers.connected : 0,
                .restarts = imex_process_restarts(a->process),
                .renewals = a->renewals,
                .members = a->want,
                .informed_ms = a->informed_since ? now - a->informed_since : 0,
                .waited_ms = a->recovery.since_ms ? now - a->recovery.since_ms : 0,
                .seen = a->recovery.seen,
                .n_seen = a->recovery.n_seen,
        };
        memcpy(ret->reason, v.reason, sizeof ret->reason);
        if (ret->ready)
                ret->lost_known = imex_links_lost(&a->links, ret->lost);
        if (ours) {
                memcpy(ret->awaited, a->awaited, sizeof a->awaited);
                memcpy(ret->version, a->answers.version, sizeof ret->version);
        }
}

static void imex_runner_deliver(struct imex_runner *a) {
        struct imex_report r;

        imex_runner_report(a, &r);
        if (r.phase == a->reported.phase && r.ready == a->reported.ready && r.status == a->reported.status &&
            streq(r.reason, a->reported.reason) && r.index == a->reported.index &&
            r.node_id == a->reported.node_id && r.peers_known == a->reported.peers_known &&
            r.peers_connected == a->reported.peers_connected && r.restarts == a->reported.restarts &&
            r.renewals == a->reported.renewals && r.lost_known == a->reported.lost_known &&
            streq(r.lost, a->reported.lost) && streq(r.awaited, a->reported.awaited) &&
            streq(r.version, a->reported.version))
                return;
        a->reported = r;
        a->o.changed(a->o.u, &a->reported);
}

/* First the report, then the process: readiness is withdrawn before its cause ends. */
static void imex_runner_on_turn(void *u) {
        struct imex_runner *a = u;

        loop_timer_stop(&a->retry);
        imex_runner_deliver(a);
        imex_runner_act(a);
        imex_runner_deliver(a);
}

static void imex_runner_retry(struct imex_runner *a) {
        if (!loop_timer_waits(&a->retry))
                loop_timer_start(&a->retry, RETRY_MS);
}

/* Files */

/* *ret_changed: the resolver now returns other answers. */
static int write_hosts(struct imex_runner *a, const struct imex_members *m, bool *ret_changed,
                       struct err *e) {
        _cleanup_(freep) char *current = NULL;
        _cleanup_(buf_done) struct buf text = BUF_INIT(2 * IMEX_HOSTS_MAX);
        size_t n;

        *ret_changed = false;
        if (file_read(a->o.hosts_path, IMEX_HOSTS_MAX, &current, &n, e) < 0)
                return -1;
        if (imex_hosts_render((struct str){ current, n }, m, a->o.max_nodes, &text, e) < 0)
                return -1;
        if (text.n == n && memcmp(text.p, current, n) == 0)
                return 0;
        *ret_changed = true;
        return imex_hosts_write(a->o.hosts_path, (struct str){ text.p, text.n }, e);
}

/* A file that is right already is not written, so that IMEX can be restarted while the disk is full. */
static int imex_runner_write_text(const char *path, const struct buf *text, struct err *e) {
        _cleanup_(freep) char *current = NULL;
        size_t n;

        if (text->failed)
                return err_set(e, ERR_INVALID, 0, "'%s' would be too large", path);
        if (file_read(path, FILE_LIMIT, &current, &n, e) == 0 && n == text->n &&
            memcmp(current, text->p, n) == 0)
                return 0;
        return file_replace_volatile(path, buf_str(text), text->n, 0644, e);
}

static int imex_runner_write_config(struct imex_runner *a, const struct imex_members *m, struct err *e) {
        _cleanup_(buf_done) struct buf config = BUF_INIT(FILE_LIMIT), nodes = BUF_INIT(FILE_LIMIT);

        imex_config_render(&a->o.config, &config);
        imex_nodes_render(m->infix, a->o.max_nodes, &nodes);
        return imex_runner_write_text(a->nodes_path, &nodes, e) < 0 ||
                               imex_runner_write_text(a->config_path, &config, e) < 0
                       ? -1
                       : 0;
}

static void imex_runner_remember(struct imex_runner *a) {
        struct err e;

        if (!a->fresh)
                return;
        if (imex_members_save(a->o.dir, a->o.identity, a->want, &e) < 0) {
                report_error(a, &e);
                imex_runner_retry(a);
                return;
        }
        a->fresh = false;
}

/* Recovery */

static void end_recovery(struct imex_runner *a) {
        imex_recovery_end(&a->recovery);
        loop_timer_stop(&a->recovery_turn);
        *a->awaited = '\0';
}

/* Records whether IMEX waits. */
static void note_recovery(struct imex_runner *a, bool waits) {
        if (!waits) {
                end_recovery(a);
        } else if (!a->recovery.since_ms) {
                imex_recovery_begin(&a->recovery, uv_now(a->loop));
                imex_probe_domain(a->probe, CONNECT_MS);
        }
}

/* A peer to which this process has connected knows that the earlier one has ended, and drops its mappings. */
static void note_seen(struct imex_runner *a, const struct imex_ctl_node *own) {
        const struct imex_members *m = a->want;

        for (size_t i = 0; a->recovery.since_ms && i < m->n_peers; i++)
                if (m->peers[i].index != m->own_index && imex_ctl_connected_to(own, m->peers[i].index))
                        imex_recovery_connected(&a->recovery, m->peers[i].node);
}

static void recover(struct imex_runner *a) {
        struct imex_recovery_verdict v;

        if (!a->recovery.since_ms)
                return;
        imex_recovery_update(&a->recovery, a->want, uv_now(a->loop), a->informed_since, a->o.recovery_ms, &v);
        memcpy(a->awaited, v.awaited, sizeof a->awaited);
        if (imex_supervision_connections_unknown(&a->answers))
                *a->awaited = '\0';
        if (v.again_ms)
                loop_timer_start(&a->recovery_turn, v.again_ms);
        if (!v.restart)
                return;
        end_recovery(a);
        a->forget = true;
        a->renewals++;
        imex_process_restart(a->process, false);
}

/* Called right before each start. */
static int prepare(void *u, struct err *e) {
        struct imex_runner *a = u;
        bool changed;

        imex_supervision_begin(&a->answers);
        imex_links_begin(&a->links, a->want, uv_now(a->loop));
        end_recovery(a);
        if (a->forget && imex_recovery_forget(a->o.run_dir, e) < 0)
                return -1;
        a->forget = false;
        struct arena *fresh = arena_new(1024);
        a->running = resolved(a, a->want, fresh);
        arena_free(a->run_arena);
        a->run_arena = fresh;
        if (write_hosts(a, a->running, &changed, e) < 0)
                return -1;
        return imex_runner_write_config(a, a->running, e);
}

/* From the desired state to the actual one */

/* Updates the peers of the running process. */
static void update_peers(struct imex_runner *a, const struct imex_members *m) {
        bool changed = false;
        struct err e;

        if (write_hosts(a, m, &changed, &e) < 0) {
                report_error(a, &e);
                imex_runner_retry(a);
                return;
        }
        if (!changed)
                return;
        imex_process_notify(a->process);
        imex_probe_domain(a->probe, CONNECT_MS);
}

/* Finds out whether these members can be used at all. */
static void check_members(struct imex_runner *a, const struct imex_members *m) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(IMEX_HOSTS_MAX);
        struct err e;

        *a->refused = '\0';
        a->usable = imex_hosts_render(STR(""), m, a->o.max_nodes, &text, &e) == 0;
        if (a->usable)
                return;
        if (!imex_runner_running(a) || !identity_current(a))
                snprintf(a->refused, sizeof a->refused, "%s", e.msg);
        else
                report_error(a, &e);
}

/* This node leaves, or the owner stops. */
static void leave(struct imex_runner *a, bool stop) {
        *a->refused = '\0';
        if (a->want)
                imex_runner_remember(a); /* also that this node is not a member: after a restart the old index
                                            must not count */
        if (stop)
                imex_process_stop(a->process);
        if (a->stopping && imex_process_state(a->process) == IMEX_PROCESS_DOWN && !a->stopped) {
                a->stopped = true;
                a->o.stopped(a->o.u);
        }
}

static void imex_runner_act(struct imex_runner *a) {
        _cleanup_(arena_freep) struct arena *tmp = arena_new(1024);
        bool leaves = a->stopping || !imex_runner_member(a->want);
        const struct imex_members *m = leaves ? NULL : resolved(a, a->want, tmp);
        struct imex_supervision_verdict v;

        if (!leaves)
                check_members(a, m);
        supervise(a, &v);
        if (leaves) {
                leave(a, v.step == IMEX_STEP_STOP);
                return;
        }
        switch (v.step) {
        case IMEX_STEP_NONE:
                return;
        case IMEX_STEP_STOP:
                imex_process_stop(a->process);
                return;
        case IMEX_STEP_RESTART:
                imex_process_restart(a->process, false);
                break;
        case IMEX_STEP_UPDATE:
                update_peers(a, m);
                recover(a);
                break;
        case IMEX_STEP_START:
                imex_process_start(a->process);
                break;
        }
        imex_runner_remember(a);
}

/* Events of the process */

static void keep_from_oom(struct imex_runner *a) {
        _cleanup_(freep) char *path = xasprintf("/proc/%d/oom_score_adj", (int)imex_process_pid(a->process));
        _cleanup_(closep) int fd = a->o.oom_score_adj ? open(path, O_WRONLY | O_CLOEXEC) : -EBADF;
        struct err e;

        if (!a->o.oom_score_adj)
                return;
        if (fd < 0)
                err_errno(&e, errno, "open '%s'", path);
        else if (file_write_all(fd, path, a->o.oom_score_adj, strlen(a->o.oom_score_adj), &e) == 0)
                return;
        report_error(a, &e);
}

static void on_process(void *u, enum imex_process_state s, enum imex_process_end end, const char *why) {
        struct imex_runner *a = u;
        struct imex_supervision_facts f = imex_runner_facts(a);

        if (s == IMEX_PROCESS_RUNNING) {
                keep_from_oom(a);
                imex_probe_speed_up(a->probe);
        } else {
                imex_probe_stop(a->probe);
                a->answers.status = IMEX_STATE_NONE;
                end_recovery(a);
        }
        if (s == IMEX_PROCESS_WAITING)
                imex_supervision_explain_end(&f, end, why, a->ended, sizeof a->ended);
        else if (s == IMEX_PROCESS_DOWN)
                *a->ended = '\0';
        loop_turn_start(&a->turn);
}

static void imex_runner_on_line(void *u, struct str line) {
        struct imex_runner *a = u;
        const char *fault = imex_log_fault(line);
        int64_t id;

        a->o.output(a->o.u, line);
        if (imex_log_node_id(line, &id) && id != a->answers.node_id) {
                a->answers.node_id = id;
                loop_turn_start(&a->turn);
        }
        if (imex_links_note_line(&a->links, line) && a->reported.ready) {
                imex_probe_domain_changed(a->probe);
                loop_turn_start(&a->turn);
        }
        if (fault && fault != a->answers.fault && !a->reported.ready) {
                a->answers.fault = fault;
                loop_turn_start(&a->turn);
        }
}

/* After an answer. */
static void imex_runner_evaluate(struct imex_runner *a) {
        struct imex_supervision_verdict v;

        supervise(a, &v);
        switch (v.reaction) {
        case IMEX_REACTION_NONE:
                break;
        case IMEX_REACTION_RESTART:
                imex_probe_stop(a->probe);
                imex_process_restart(a->process, true);
                break;
        case IMEX_REACTION_ASK_ID:
                imex_probe_domain(a->probe, 0);
                break;
        case IMEX_REACTION_SLOW_DOWN:
                *a->ended = '\0';
                imex_probe_slow_down(a->probe);
                imex_probe_domain(a->probe, peers_known(a) ? CONNECT_MS : a->o.ask_idle_ms);
                break;
        case IMEX_REACTION_SPEED_UP:
                imex_probe_speed_up(a->probe);
                break;
        }
        loop_turn_start(&a->turn);
}

static void imex_runner_on_status(void *u, enum imex_status status, const char *why) {
        struct imex_runner *a = u;

        if (!imex_runner_running(a))
                return;
        imex_process_drain(a->process);
        bool missed = a->answers.unanswered > 0;
        if (!imex_supervision_note_status(&a->answers, status, why)) {
                imex_probe_speed_up(a->probe);
                return;
        }
        if (imex_supervision_takes_signals(status))
                imex_process_up(a->process);
        if (status)
                note_recovery(a, status == IMEX_STATE_WAITING_FOR_RECOVERY);
        if (missed && status == IMEX_STATE_READY && a->reported.ready) /* nothing has changed */
                imex_probe_slow_down(a->probe);
        imex_runner_evaluate(a);
}

static void imex_runner_on_domain(void *u, const struct imex_ctl_domain *d, const char *why) {
        struct imex_runner *a = u;
        const struct imex_ctl_node *own;
        _cleanup_(buf_done) struct buf name = BUF_INIT(256);

        if (!imex_runner_running(a) || !identity_current(a))
                return;
        imex_process_drain(a->process);
        imex_slot_name(a->running->infix, (unsigned)a->running->own_index, &name);
        own = imex_supervision_note_domain(&a->answers, d, a->o.own_ip, buf_str(&name), why);
        if (own)
                note_seen(a, own);
        if (imex_links_note_answer(&a->links, own, uv_now(a->loop)))
                imex_probe_domain_changed(a->probe);
        else if (own && !a->recovery.since_ms && imex_links_complete(&a->links))
                /* The log reports each change. */
                imex_probe_domain(a->probe, a->o.ask_idle_ms);
        imex_runner_evaluate(a);
}

/* Life cycle */

void imex_runner_set_members(struct imex_runner *a, const struct imex_members *m) {
        BUG_ON(!m || (m->n_peers && !m->peers));
        if (a->want && imex_members_equal(a->want, m))
                return;
        struct arena *fresh = arena_new(1024);
        const struct imex_members *copy = imex_members_copy(fresh, m);
        imex_links_note_members(&a->links, a->want, copy, uv_now(a->loop));
        arena_free(a->want_arena);
        a->want_arena = fresh;
        a->want = copy;
        a->fresh = true;
        loop_turn_start(&a->turn);
}

void imex_runner_set_current(struct imex_runner *a, bool current) {
        if (current == (a->informed_since != 0))
                return;
        a->informed_since = current ? uv_now(a->loop) : 0;
        loop_turn_start(&a->turn);
}

static void take_options(struct imex_runner *a, const struct imex_runner_options *o) {
        a->o = *o;
        a->o.term_grace_ms = o->term_grace_ms ?: 10000;
        a->o.usr1_interval_ms = o->usr1_interval_ms ?: 5500;
        a->o.backoff_first_ms = o->backoff_first_ms ?: 100;
        a->o.backoff_max_ms = o->backoff_max_ms ?: 30000;
        a->o.stable_ms = o->stable_ms ?: 60000;
        a->o.ask_first_ms = o->ask_first_ms ?: 20;
        a->o.ask_slow_ms = o->ask_slow_ms ?: 1000;
        a->o.ask_idle_ms = o->ask_idle_ms ?: 30000;
        a->o.ask_timeout_ms = o->ask_timeout_ms ?: 5000;
        a->o.recovery_ms = o->recovery_ms ?: 60000;
        a->config_path = file_join(o->dir, "imexd.cfg");
        a->nodes_path = file_join(o->dir, "nodes.cfg");
        a->o.config.cmd_bind_ip = o->own_ip;
        a->o.config.nodes_file = a->nodes_path;
        a->o.config.domain.port = o->config.domain.port ?: IMEX_SERVER_PORT;
        a->argv[0] = o->imex_path;
        a->argv[1] = "-c";
        a->argv[2] = a->config_path;
}

int imex_runner_new(uv_loop_t *loop, const struct imex_runner_options *o, struct imex_runner **ret,
                    const struct imex_members **ret_members, struct err *e) {
        struct imex_members *known = NULL;

        BUG_ON(!o->dir || !o->hosts_path || !o->run_dir || !o->imex_path || !o->ctl_path || !o->own_ip);
        BUG_ON(!o->identity || !o->max_nodes || !o->changed || !o->stopped || !o->output || !o->failing);
        *ret_members = NULL;
        if (file_mkdirs(o->dir, 0755, e) < 0)
                return -1;
        struct imex_runner *a = xnew(struct imex_runner);
        take_options(a, o);
        a->loop = loop;
        imex_supervision_begin(&a->answers);
        a->reported.index = -2; /* no report equals it, so the first one is always delivered */
        loop_turn_init(&a->turn, loop, imex_runner_on_turn, a);
        loop_timer_init(&a->retry, loop, imex_runner_on_turn, a);
        loop_timer_init(&a->recovery_turn, loop, imex_runner_on_turn, a);
        a->process = imex_process_new(loop, &(struct imex_process_options){
                                                    .argv = a->argv,
                                                    .term_grace_ms = a->o.term_grace_ms,
                                                    .usr1_interval_ms = a->o.usr1_interval_ms,
                                                    .backoff_first_ms = a->o.backoff_first_ms,
                                                    .backoff_max_ms = a->o.backoff_max_ms,
                                                    .stable_ms = a->o.stable_ms,
                                                    .prepare = prepare,
                                                    .line = imex_runner_on_line,
                                                    .changed = on_process,
                                                    .u = a,
                                            });
        a->probe = imex_probe_new(loop, &(struct imex_probe_options){
                                                .ctl_path = a->o.ctl_path,
                                                .config_path = a->config_path,
                                                .first_ms = a->o.ask_first_ms,
                                                .slow_ms = a->o.ask_slow_ms,
                                                .idle_ms = a->o.ask_idle_ms,
                                                .slots = a->o.max_nodes,
                                                .timeout_ms = a->o.ask_timeout_ms,
                                                .status = imex_runner_on_status,
                                                .domain = imex_runner_on_domain,
                                                .u = a,
                                        });
        a->want_arena = arena_new(1024);
        if (imex_members_load(a->o.dir, a->o.identity, a->want_arena, &known, e) == 0) {
                a->want = known;
                *ret_members = known;
        } else if (e->kind != ERR_NOT_FOUND) {
                report_error(a, e);
        }
        loop_turn_start(&a->turn);
        *ret = a;
        return 0;
}

bool imex_runner_killed(const struct imex_runner *a) {
        return imex_process_killed(a->process);
}

void imex_runner_stop(struct imex_runner *a) {
        a->stopping = true;
        loop_turn_start(&a->turn);
}

void imex_runner_free(struct imex_runner *a) {
        if (!a)
                return;
        imex_probe_free(a->probe);
        imex_process_free(a->process);
        loop_turn_done(&a->turn);
        loop_timer_done(&a->retry);
        loop_timer_done(&a->recovery_turn);
        imex_recovery_end(&a->recovery);
        arena_free(a->want_arena);
        arena_free(a->run_arena);
        free(a->config_path);
        free(a->nodes_path);
        free(a);
}
