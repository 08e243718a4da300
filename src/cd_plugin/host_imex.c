/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/host_imex.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/watch_file.h"
#include "imex/imex_command.h"
#include "imex/imex_probe.h"

enum {
        FIRST_MS = 10,
        SLOW_MS = 1000,
        TIMEOUT_MS = 5000,
        SLOTS_MAX = 1024, /* a longer answer about the domain than for so many nodes is not read */
        /* On a busy machine, one failed query means little. */
        UNANSWERED_MAX = 2,
        CONFIG_MAX = 64 << 10,
};

/* ---- the place of the tool and its socket ---- */

/* Paths for the arguments of the tool, borrowed or in the arena; NULL: the file does not exist. */
struct place {
        struct arena *a;
        const char *ctl, *socket, *config, *chroot;
};

static void place_done(struct place *p) {
        arena_free(p->a);
        *p = (struct place){ 0 };
}

static bool same_place(const struct place *a, const struct place *b) {
        return streq(a->ctl, b->ctl) && streq(a->socket, b->socket) && streq(a->config, b->config) &&
               streq(a->chroot, b->chroot);
}

/* A path below `root` as this container sees it. */
static char *see(const char *root, const char *path) {
        return root ? file_join(root, *path == '/' ? path + 1 : path) : xstrdup(path);
}

static const char *if_exists(const char *root, const char *path) {
        _cleanup_(freep) char *seen = see(root, path);
        return access(seen, F_OK) == 0 ? path : NULL;
}

struct host_imex {
        uv_loop_t *loop;
        struct host_imex_options o;
        struct loop_timer search; /* the next search for the tool and its socket */
        char *config_path;
        bool waiting, settling;
        enum host_imex_own own;
        /* Of the socket, or of the first folder on its path that does not exist. */
        struct watch_file watch;
        struct place place;
        struct imex_probe *probe; /* NULL: there is nothing to query */
        unsigned unanswered;
        bool reached;       /* it has answered at this place */
        enum imex_status imex; /* the last state of nvidia-imex; IMEX_STATE_NONE: none, or not here */
        bool domain_due;    /* queried since nvidia-imex became READY, without an answer yet */
        bool domain_failed; /* the last query failed */
        struct host_imex_status domain, status;
};

static int locate(const struct host_imex *h, struct place *ret, struct err *e) {
        struct driver_file ctl;
        *ret = (struct place){ .a = arena_new(512) };
        if (driver_root_find_binary(&h->o.root, "nvidia-imex-ctl", ret->a, &ctl, e) < 0)
                return err_wrap(e, "there is no nvidia-imex-ctl for queries");
        for (int here = 0; here < (h->o.only_with_socket ? 1 : 2) && !ret->ctl; here++) {
                const char *root = here ? NULL : h->o.root.here;
                ret->socket = if_exists(root, h->o.socket_path);
                ret->config = if_exists(root, h->config_path);
                if (ret->socket || (ret->config && !h->o.only_with_socket)) {
                        ret->ctl = here ? ctl.here : ctl.inside;
                        ret->chroot = root;
                }
        }
        if (!ret->ctl && h->o.only_with_socket)
                return err_set(e, ERR_NOT_FOUND, 0, "the host has no command socket '%s'", h->o.socket_path);
        if (!ret->ctl)
                return err_set(e, ERR_NOT_FOUND, 0,
                               "there is neither a command socket '%s' nor a configuration '%s': is "
                               "nvidia-imex installed, and its command service enabled (IMEX_CMD_ENABLED, "
                               "IMEX_CMD_UNIX_DOMAIN_PATH)?",
                               h->o.socket_path, h->config_path);
        return 0;
}

/* ---- queries ---- */

/* Why a missing answer proves nothing, or NULL: nvidia-imex may be reachable only in the host's network. */
static const char *out_of_reach(const struct host_imex *h) {
        _cleanup_(freep) char *path = NULL, *text = NULL;
        size_t n;
        struct err e;
        if (h->reached || h->place.socket)
                return NULL;
        path = see(h->place.chroot, h->place.config);
        return file_read(path, CONFIG_MAX, &text, &n, &e) < 0
                       ? NULL
                       : imex_command_unreachable((struct str){ text, n });
}

static enum host_imex_own judge_own(const struct host_imex *h, enum imex_status imex, bool unreached) {
        if (imex == IMEX_STATE_READY)
                return HOST_IMEX_READY;
        if (unreached)
                return HOST_IMEX_NOT_KNOWN;
        if (imex || h->unanswered >= UNANSWERED_MAX)
                return HOST_IMEX_NOT_READY;
        return h->own == HOST_IMEX_NOT_ASKED ? HOST_IMEX_NOT_KNOWN : h->own;
}

static void host_imex_answer(struct host_imex *h, enum imex_status imex, const char *why) {
        bool silent = !imex || imex == IMEX_STATE_UNAVAILABLE;
        const char *unreached = silent ? out_of_reach(h) : NULL;
        h->own = judge_own(h, imex, unreached);
        h->reached = h->reached || !silent;
        h->imex = unreached ? IMEX_STATE_NONE : imex;
        if (unreached) {
                h->status = (struct host_imex_status){ .state = HOST_UNKNOWN };
                snprintf(h->status.reason, sizeof h->status.reason,
                         "nvidia-imex does not answer, but may still run: %s", unreached);
        } else if (imex != IMEX_STATE_READY || !h->domain_due) {
                /* Without the domain's answer there is no state: nvidia-imex that is READY in a domain that
                 * is not would first be reported as UP. */
                host_status_evaluate(imex, why, &h->domain, &h->status);
        }
        h->o.answered(h->o.u);
}

static void host_imex_on_status(void *u, enum imex_status imex, const char *why) {
        struct host_imex *h = u;
        h->unanswered = imex ? 0 : h->unanswered + 1;
        if (h->unanswered && h->unanswered < UNANSWERED_MAX && h->status.state != HOST_UNKNOWN) {
                imex_probe_speed_up(h->probe);
                return;
        }
        if (h->o.domain && h->place.config && h->imex != IMEX_STATE_READY && imex == IMEX_STATE_READY) {
                h->domain_due = true;
                imex_probe_domain(h->probe, 0);
        }
        if (!h->waiting && !h->settling)
                imex_probe_slow_down(h->probe);
        host_imex_answer(h, imex, why);
}

static void host_imex_on_domain(void *u, const struct imex_ctl_domain *d, const char *why) {
        struct host_imex *h = u;
        bool again = !d && !h->domain_failed;
        h->domain_failed = !d;
        if (again) {
                imex_probe_domain(h->probe, 0);
                return;
        }
        h->domain_due = false;
        h->domain = (struct host_imex_status){ 0 };
        if (d)
                host_status_summarize(d, h->o.node, &h->domain);
        else
                snprintf(h->domain.reason, sizeof h->domain.reason, "%s", why);
        if (h->imex)
                host_imex_answer(h, h->imex, "");
}

static void drop_probe(struct host_imex *h) {
        imex_probe_free(h->probe);
        h->probe = NULL;
        place_done(&h->place);
        h->domain = (struct host_imex_status){ 0 };
        h->imex = IMEX_STATE_NONE;
        h->domain_due = h->domain_failed = h->reached = false;
        h->unanswered = 0;
}

static void ask_at(struct host_imex *h, struct place *p) {
        drop_probe(h);
        h->place = *p;
        h->probe = imex_probe_new(h->loop, &(struct imex_probe_options){
                                                   .ctl_path = p->ctl,
                                                   .config_path = p->config,
                                                   .socket_path = p->socket,
                                                   .chroot = p->chroot,
                                                   .slots = SLOTS_MAX,
                                                   .first_ms = FIRST_MS,
                                                   .slow_ms = SLOW_MS,
                                                   .idle_ms = h->o.interval_ms,
                                                   .timeout_ms = TIMEOUT_MS,
                                                   .status = host_imex_on_status,
                                                   .domain = host_imex_on_domain,
                                                   .u = h,
                                           });
        if (h->o.domain && !p->config)
                snprintf(h->domain.reason, sizeof h->domain.reason, "there is no configuration '%s'",
                         h->config_path);
        imex_probe_speed_up(h->probe);
}

static void on_way_changed(struct watch_file *w) {
        struct host_imex *h = w->u;
        loop_timer_start(&h->search, 0);
}

/* Starts the watch again after each search: it watches the first part of the socket's path that does not
 * exist, or the socket. */
static void watch_the_way(struct host_imex *h) {
        _cleanup_(freep) char *path = see(h->o.root.here, h->o.socket_path);
        struct err e;
        watch_file_stop(&h->watch);
        h->watch.u = h;
        if (watch_file_start_below(&h->watch, h->loop, h->o.root.here, path, on_way_changed, &e) < 0) {
                log_warn("cannot watch for the socket of the host's own nvidia-imex: the plugin searches for "
                         "it at intervals",
                         kv_err(&e));
                loop_timer_start(&h->search, h->o.interval_ms);
        }
}

/* The tool, the socket and the configuration appear and disappear with the host's packages and services. */
static void on_search(void *u) {
        struct host_imex *h = u;
        struct place now;
        struct err e;
        if (h->o.only_with_socket)
                watch_the_way(h);
        else
                loop_timer_start(&h->search,
                                 h->waiting && h->o.interval_ms > SLOW_MS ? SLOW_MS : h->o.interval_ms);
        if (locate(h, &now, &e) < 0) {
                place_done(&now);
                drop_probe(h);
                h->own = HOST_IMEX_NOT_KNOWN;
                h->status = (struct host_imex_status){ .state = HOST_UNKNOWN };
                snprintf(h->status.reason, sizeof h->status.reason, "%s", e.msg);
                h->o.answered(h->o.u);
        } else if (h->probe && same_place(&now, &h->place)) {
                place_done(&now);
        } else {
                ask_at(h, &now);
        }
}

const struct host_imex_status *host_imex_get(const struct host_imex *h) {
        return &h->status;
}

bool host_imex_ready(const struct host_imex *h, uint64_t since_ns, char *reason, size_t n) {
        bool fresh = h->probe && imex_probe_asked_ns(h->probe) > since_ns;
        if (fresh && h->imex == IMEX_STATE_READY)
                return true;
        if (h->imex && h->imex != IMEX_STATE_READY)
                snprintf(reason, n, "%s: the host's nvidia-imex is %s, and this pod waits for READY",
                         h->o.node, imex_status_name(h->imex));
        else
                snprintf(reason, n, "%s: %s", h->o.node,
                         h->status.reason[0] && h->imex != IMEX_STATE_READY
                                 ? h->status.reason
                                 : "the host's nvidia-imex has not answered yet");
        return false;
}

void host_imex_poll_fast(struct host_imex *h) {
        h->waiting = true;
        if (h->probe)
                imex_probe_speed_up(h->probe);
        else
                loop_timer_start(&h->search, 0);
}

void host_imex_poll_slow(struct host_imex *h) {
        if (h->waiting && !h->settling && h->probe)
                imex_probe_slow_down(h->probe);
        h->waiting = false;
}

enum host_imex_own host_imex_own(const struct host_imex *h) {
        return h->own;
}

void host_imex_settle(struct host_imex *h, bool on) {
        if (h->settling == on)
                return;
        h->settling = on;
        if (h->probe && !h->waiting)
                (on ? imex_probe_speed_up : imex_probe_slow_down)(h->probe);
}

struct host_imex *host_imex_new(uv_loop_t *loop, const struct host_imex_options *o) {
        struct host_imex *h = xnew(struct host_imex);
        const char *slash = strrchr(o->socket_path, '/');
        h->loop = loop;
        h->o = *o;
        h->config_path =
                xasprintf("%.*s/config.cfg", slash ? (int)(slash - o->socket_path) : 0, o->socket_path);
        loop_timer_init(&h->search, loop, on_search, h);
        loop_timer_start(&h->search, 0);
        return h;
}

void host_imex_free(struct host_imex *h) {
        if (!h)
                return;
        drop_probe(h);
        watch_file_stop(&h->watch);
        loop_timer_done(&h->search);
        free(h->config_path);
        free(h);
}

/* ---- reports ---- */

enum { REASON_MS = 3000 };

struct host_report {
        struct host_report_options o;
        bool any;        /* something was reported */
        bool in_the_way; /* of our daemons, as last reported */
        struct host_imex_status reported;
};

/* A change of state is written at once. A change of its reason, which names nodes as they come and go, waits
 * for other writes. */
static void annotate(const struct host_report *r, const struct host_imex_status *s, bool state) {
        own_pod_set(r->o.own_pod, IMEX_ANNOTATION_HOST_STATE,
                    s->state == HOST_UNKNOWN ? NULL : host_state_name(s->state), 0);
        own_pod_set(r->o.own_pod, IMEX_ANNOTATION_HOST_REASON, *s->reason ? s->reason : NULL,
                    state ? 0 : REASON_MS);
}

/* The host runs IMEX. */
static void report_state(struct host_report *r, const struct host_imex_status *s) {
        const struct event_about *node = EVENT_NODE(r->o.node);
        switch (s->state) {
        case HOST_UP:
                if (r->any) /* the first answer after a start is no change */
                        event_record(r->o.events, node, EVENT_NORMAL, REASON_HOST_IMEX_UP,
                                     "the host's nvidia-imex is READY, and its domain is %s",
                                     str_or(s->domain, "not known"));
                break;
        case HOST_DEGRADED:
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_DEGRADED, "%s", s->reason);
                break;
        case HOST_DOWN:
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_DOWN,
                             "%s; the driver does not start nvidia-imex on hosts: start it with systemctl, "
                             "or with the tool that runs it on this host",
                             s->reason);
                break;
        case HOST_UNKNOWN:
        case HOST_STATES:
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_UNKNOWN,
                             "the state of the host's nvidia-imex is not known: %s", s->reason);
                break;
        }
}

/* We run IMEX in pods: the host's nvidia-imex would hold the driver's only session. One that does not answer
 * may still hold it. */
static void report_conflict(struct host_report *r, const struct host_imex_status *s) {
        const struct event_about *node = EVENT_NODE(r->o.node);
        bool gone = s->imex == IMEX_STATE_UNAVAILABLE || (!s->imex && s->state == HOST_UNKNOWN),
             runs = s->imex && !gone;
        if (runs && !r->in_the_way)
                event_record(r->o.events, node, EVENT_WARNING, REASON_HOST_IMEX_CONFLICT,
                             "nvidia-imex runs on this host (%s) and holds the driver's only IMEX session, "
                             "so that ComputeDomains cannot run theirs here: stop and disable "
                             "nvidia-imex.service. To use the host's IMEX instead, follow "
                             "docs/how-to/upgrade.md#changing-the-imex-mode",
                             imex_status_name(s->imex));
        else if (gone && r->in_the_way)
                event_record(r->o.events, node, EVENT_NORMAL, REASON_HOST_IMEX_STOPPED,
                             "nvidia-imex no longer runs on this host");
        r->in_the_way = runs || (r->in_the_way && !gone);
}

void host_report_update(struct host_report *r, const struct host_imex_status *s) {
        if (s->state == HOST_UNKNOWN && !*s->reason)
                return; /* the state is not known yet */
        bool state = !r->any || s->state != r->reported.state;
        bool reason = !r->any || !streq(s->reason, r->reported.reason);
        cd_metrics_host(r->o.metrics, s);
        if (state || reason)
                log_info("the host's nvidia-imex", kv_str("state", host_state_name(s->state)),
                         kv_str("status", imex_status_name(s->imex)), kv_str("domain", s->domain),
                         kv_int("nodes", s->nodes), kv_int("ready", s->nodes_ready),
                         kv_str("why", s->reason));
        if (mode_runs_daemons(r->o.mode))
                report_conflict(r, s);
        else if (state)
                report_state(r, s);
        if ((state || reason) && r->o.own_pod && !mode_runs_daemons(r->o.mode))
                annotate(r, s, state);
        r->reported = *s;
        r->any = true;
}

struct host_report *host_report_new(const struct host_report_options *o) {
        struct host_report *r = xnew(struct host_report);
        r->o = *o;
        return r;
}

void host_report_free(struct host_report *r) {
        free(r);
}
