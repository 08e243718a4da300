#include "daemon/supervisor.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/watch_file.h"
#include "daemon/membership.h"
#include "daemon/orphans.h"
#include "daemon/pod_report.h"
#include "domain/names.h"
#include "domain/resources.h"
#include "imex/imex_agent.h"
#include "imex/imex_state.h"
#include "kube/kube_informer.h"

/* A state file that could not be written is tried again after this. */
#define STATE_RETRY_MS 1000
/* When a domain has formed, what the start took (TLS above all) is given back to the node: one daemon runs
 * per node and domain, and idles.
 */
#define SETTLED_MS 15000

struct supervisor {
        const struct supervisor_config *c;
        uv_loop_t *loop;
        uv_signal_t sigterm, sigint;
        uv_timer_t state_retry, settled;
        struct watch_file state_watch;
        struct orphans orphans;

        struct kube_client *client;
        struct kube_informer *cliques;
        struct pod_patch *patch;
        struct imex_agent *agent; /* NULL without fabric */

        struct imex_state state; /* as it should be in the file */
        bool state_written;
        int state_lock;
        bool started;  /* IMEX has had its members: without names the list is fixed since */
        char why[256]; /* what keeps us out of the domain, by the clique */
};

/* The state file */

/* Readiness that cannot be withdrawn by a new file is withdrawn by having none. */
static void drop_state(struct supervisor *s) {
        _cleanup_(freep) char *path = file_join(s->c->dir, IMEX_STATE_FILE);
        struct err e;

        if (file_remove(path, &e) < 0)
                log_error("cannot remove the state file", kv_err(&e));
        if (s->state_lock >= 0)
                close(TAKE_FD(s->state_lock));
}

static void on_state_retry(uv_timer_t *t);

static void write_state(struct supervisor *s) {
        struct err e;

        s->state.generation++;
        s->state_written = imex_state_write(s->c->dir, &s->state, &s->state_lock, &e) == 0;
        if (s->state_written)
                return;
        log_error("cannot write the state file, trying again", kv_err(&e));
        drop_state(s);
        uv_timer_start(&s->state_retry, on_state_retry, STATE_RETRY_MS, 0);
}

/* The plugin believes in our file only, so one that was removed or replaced is written again. But not while
 * another daemon holds it, which can only be one on its way out after a forced deletion: two that insist
 * would take turns for ever. */
static void check_state_file(struct supervisor *s) {
        _cleanup_(freep) char *path = file_join(s->c->dir, IMEX_STATE_FILE);
        struct stat ours, there;
        struct imex_state other;
        bool held = false;
        struct err e;

        if (fstat(s->state_lock, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
            ours.st_dev == there.st_dev)
                return;
        if (imex_state_read(s->c->dir, &other, &held, &e) == 0 && held) {
                uv_timer_start(&s->state_retry, on_state_retry, STATE_RETRY_MS, 0);
                return;
        }
        log_warn("the state file is not ours any more, it is written again", kv_str("path", path));
        write_state(s);
}

static void on_state_retry(uv_timer_t *t) {
        struct supervisor *s = t->data;

        if (s->state_written)
                check_state_file(s);
        else
                write_state(s);
}

static void on_state_file(struct watch_file *w) {
        struct supervisor *s = w->u;

        if (s->state_written)
                check_state_file(s);
}

static void watch_state(struct supervisor *s) {
        _cleanup_(freep) char *path = file_join(s->c->dir, IMEX_STATE_FILE);
        struct err e;

        s->state_watch.u = s;
        if (watch_file_start(&s->state_watch, s->loop, path, on_state_file, &e) < 0)
                log_warn("cannot watch the state file", kv_err(&e));
}

static void set_state(struct supervisor *s, bool ready, int64_t index, const char *status,
                      const char *reason) {
        struct imex_state was = s->state;

        s->state.ready = ready;
        s->state.index = index;
        snprintf(s->state.status, sizeof s->state.status, "%s", status);
        snprintf(s->state.reason, sizeof s->state.reason, "%s", reason);
        if (!s->state_written || was.ready != ready || was.index != index ||
            !streq(was.status, s->state.status) || !streq(was.reason, s->state.reason))
                write_state(s);
}

static void on_settled(uv_timer_t *t) {
        (void)t;
        malloc_trim(0);
}

/* What IMEX does */

static void on_report(void *u, const struct imex_report *r) {
        struct supervisor *s = u;
        const char *reason = r->phase == IMEX_IDLE && *s->why ? s->why : r->reason;
        bool was_ready = s->state.ready;

        set_state(s, r->ready, r->index, r->status, reason);
        if (r->ready && !was_ready) {
                log_info("IMEX daemon is ready", kv_int("index", r->index), kv_int("peers", r->peers_known));
                uv_timer_start(&s->settled, on_settled, SETTLED_MS, 0);
        } else if (r->phase == IMEX_BACKOFF) {
                log_warn("IMEX daemon is down, it is started again", kv_str("reason", reason),
                         kv_int("restarts", r->restarts));
        } else if (was_ready && !r->ready) {
                log_warn("IMEX daemon is not ready any more", kv_str("status", r->status),
                         kv_str("reason", reason));
        }
        pod_report_tell(s->patch, &(struct pod_report){
                                          .clique_id = s->c->clique_id,
                                          .state = r->status,
                                          .reason = reason,
                                          .ready = r->ready,
                                          .index = r->index,
                                          .node_id = r->node_id,
                                          .peers_connected = r->peers_connected,
                                          .peers_known = r->peers_known,
                                  });
}

/* The lines of nvidia-imex have their own form, and go on as they are. */
static void on_output(void *u, struct str line) {
        (void)u;
        fprintf(stderr, "%.*s\n", (int)line.n, line.p);
}

static void on_trouble(void *u, const struct err *e) {
        (void)u;
        log_warn("cannot do what the membership asks for, trying again", kv_err(e));
}

static void on_stopped(void *u) {
        struct supervisor *s = u;

        uv_stop(s->loop);
}

/* What the clique says */

static void on_clique(void *u, const struct kube_object *old, const struct kube_object *now) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct supervisor *s = u;
        const struct clique *c = (const struct clique *)now;
        struct imex_report r;
        struct membership m;

        (void)old;
        if (!now) {
                /* Somebody deleted it; the controller writes it anew. What runs goes on with what it knows.
                 */
                log_warn("the clique object is gone, waiting for its return",
                         kv_str("domain", s->c->domain_uid));
                return;
        }
        if (c->domain_uid && !streq(c->domain_uid, s->c->domain_uid)) {
                log_warn("the clique object is labelled with another domain, it is ignored",
                         kv_str("label", c->domain_uid));
                return;
        }
        membership_of(c, s->c->node, s->c->dns_names, s->started, a, &m);
        s->started = s->started || m.members.own_index >= 0;
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
}

static void on_cliques_trouble(void *u, const struct err *e) {
        (void)u;
        if (e)
                log_warn("cannot watch the clique object, IMEX goes on with what is known", kv_err(e));
        else
                log_info("watching the clique object again");
}

static void on_undecodable(void *u, const struct err *e) {
        (void)u;
        log_error("the clique object cannot be read, IMEX goes on with what is known", kv_err(e));
}

/* Life cycle */

static void on_signal(uv_signal_t *h, int signum) {
        struct supervisor *s = h->data;

        log_info("leaving", kv_int("signal", signum));
        if (s->agent) {
                imex_agent_stop(s->agent);
                return;
        }
        set_state(s, false, -1, "STOPPED", "the IMEX daemon is being stopped");
        uv_stop(s->loop);
}

static int start_agent(struct supervisor *s, struct err *e) {
        const struct supervisor_config *c = s->c;
        _cleanup_(freep) char *identity =
                xasprintf("boot=%s pod=%s claim=%s domain=%s clique=%s ip=%s max=%lld names=%d",
                          s->state.boot_id, c->pod_uid, c->claim_uid, c->domain_uid, c->clique_id, c->pod_ip,
                          (long long)c->max_nodes, c->dns_names);
        const struct imex_members *known;
        struct imex_agent_options o = {
                .dir = c->dir,
                .hosts_path = c->hosts_path,
                .imex_path = c->imex_path,
                .ctl_path = c->ctl_path,
                .own_ip = c->pod_ip,
                .identity = identity,
                .max_nodes = (unsigned)c->max_nodes,
                .dns_names = c->dns_names,
                .term_grace_ms = c->term_grace_ms,
                .changed = on_report,
                .stopped = on_stopped,
                .output = on_output,
                .trouble = on_trouble,
                .u = s,
        };

        if (imex_agent_new(s->loop, &o, &s->agent, &known, e) < 0)
                return -1;
        if (known && known->own_index >= 0) {
                s->started = true;
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
                                                          .first_from_cache = true,
                                                          .fields = clique_fields,
                                                          .size = sizeof(struct clique),
                                                          .changed = on_clique,
                                                          .undecodable = on_undecodable,
                                                          .trouble = on_cliques_trouble,
                                                          .u = s,
                                                  });
}

static void watch_signal(struct supervisor *s, uv_signal_t *h, int signum) {
        uv_signal_init(s->loop, h);
        h->data = s;
        uv_signal_start(h, on_signal, signum);
}

static int connect_api(struct supervisor *s, struct err *e) {
        struct kube_config config;
        int r;

        if (kube_config_load(s->c->kubeconfig, &config, e) < 0)
                return -1;
        r = kube_client_new(
                s->loop,
                &(struct kube_client_options){ .config = &config, .user_agent = "compute-domain-daemon" },
                &s->client, e);
        kube_config_done(&config);
        return r;
}

static void report_no_fabric(struct supervisor *s) {
        log_info("this node has no NVLink fabric: nothing to do until the end of the pod");
        uv_timer_start(&s->settled, on_settled, SETTLED_MS, 0);
        set_state(s, true, -1, "NO_FABRIC", "");
        pod_report_tell(s->patch, &(struct pod_report){ .clique_id = "",
                                                        .state = "NO_FABRIC",
                                                        .reason = "",
                                                        .ready = true,
                                                        .index = -1,
                                                        .node_id = -1 });
}

static void done(struct supervisor *s) {
        kube_informer_free(s->cliques);
        pod_patch_free(s->patch);
        imex_agent_free(s->agent);
        kube_client_free(s->client);
        if (uv_is_active((uv_handle_t *)&s->sigterm)) {
                uv_close((uv_handle_t *)&s->sigterm, NULL);
                uv_close((uv_handle_t *)&s->sigint, NULL);
                uv_close((uv_handle_t *)&s->state_retry, NULL);
                uv_close((uv_handle_t *)&s->settled, NULL);
                orphans_stop(&s->orphans);
                watch_file_stop(&s->state_watch, NULL);
        }
        uv_run(s->loop, UV_RUN_DEFAULT);
        if (s->state_lock >= 0)
                close(s->state_lock);
}

int supervisor_run(const struct supervisor_config *c, struct err *e) {
        struct supervisor s = { .c = c, .loop = uv_default_loop(), .state_lock = -1 };
        int r;

        if (file_mkdirs(c->dir, 0755, e) < 0 || file_boot_id(FILE_BOOT_ID_PATH, s.state.boot_id, e) < 0)
                return -1;
        snprintf(s.state.claim_uid, sizeof s.state.claim_uid, "%s", c->claim_uid);
        snprintf(s.state.pod_uid, sizeof s.state.pod_uid, "%s", c->pod_uid);

        /* Whoever reads our log may go; we stay. */
        signal(SIGPIPE, SIG_IGN);
        /* First of all: as the first process of a container we are sent no signal that we do not handle. */
        watch_signal(&s, &s.sigterm, SIGTERM);
        watch_signal(&s, &s.sigint, SIGINT);
        uv_timer_init(s.loop, &s.state_retry);
        uv_timer_init(s.loop, &s.settled);
        s.state_retry.data = &s;
        orphans_start(&s.orphans, s.loop);
        watch_state(&s);

        r = connect_api(&s, e);
        if (r == 0) {
                s.patch = pod_report_patch_new(s.client, c->pod_ns, c->pod);
                if (!*c->clique_id) {
                        report_no_fabric(&s);
                } else {
                        r = start_agent(&s, e);
                        if (r == 0)
                                watch_clique(&s);
                }
        }
        if (r == 0)
                uv_run(s.loop, UV_RUN_DEFAULT);
        done(&s);
        return r;
}
