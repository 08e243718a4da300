/* SPDX-License-Identifier: Apache-2.0 */
/* compute-domain-controller: sets up the program. With "uninstall" as its first argument it runs
 * controller/uninstall instead. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "api/names.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/http_server.h"
#include "base/log.h"
#include "base/loop.h"
#include "controller/config.h"
#include "controller/controller.h"
#include "controller/controller_metrics.h"
#include "controller/uninstall.h"
#include "kube/leader.h"

#ifndef PROGRAM_VERSION
#define PROGRAM_VERSION "unknown"
#endif

enum { EVENTS_FLUSH_MS = 1500 };

struct program {
        uv_loop_t loop;
        struct loop_signal signals[3];
        struct config config;
        struct kube_client *client;
        struct event_recorder *events;
        struct metrics *metrics;
        struct http_server *http;
        struct leader *leader;
        struct controller controller;
        char *identity, *earlier;
        bool ending;
        int exit_status;
};

/* ---- shutdown ---- */

static void controller_main_on_flushed(void *u) {
        struct program *p = u;
        event_recorder_free(TAKE(p->events));
        http_server_free(TAKE(p->http));
        leader_free(TAKE(p->leader));
        kube_client_free(TAKE(p->client));
        for (size_t i = 0; i < ARRAY_LEN(p->signals); i++)
                loop_signal_done(&p->signals[i]);
}

static void on_released(void *u) {
        struct program *p = u;
        event_recorder_flush(p->events, EVENTS_FLUSH_MS, controller_main_on_flushed, p);
}

/* The controller stops writing before it releases the Lease, because the next leader may write at once. */
static void controller_main_end(struct program *p, int status) {
        if (p->ending)
                return;
        p->ending = true;
        p->exit_status = status;
        controller_stop(&p->controller);
        if (p->leader)
                leader_release(p->leader, on_released, p);
        else
                on_released(p);
}

static void dump_lease(struct program *p) {
        struct leader_view v;
        if (!p->leader) {
                log_info("lease", kv_bool("election", p->config.leader_election),
                         kv_bool("candidate", false));
                return;
        }
        leader_view(p->leader, &v);
        log_info("lease", kv_str("namespace", p->config.lease_ns), kv_str("name", p->config.lease_name),
                 kv_str("identity", p->identity), kv_bool("leads", v.leads), kv_str("holder", v.holder),
                 kv_int("observed_ms_ago", v.observed_ms), kv_int("renewed_ms_ago", v.renewed_ms),
                 kv_bool("request_under_way", v.writing));
}

static void dump(struct program *p) {
        log_info("state", kv_bool("ending", p->ending),
                 kv_str("resource.k8s.io", p->client ? kube_resource_api(p->client) : ""));
        dump_lease(p);
        controller_dump(&p->controller);
        log_info("end of state");
}

static void controller_main_on_signal(void *u, int signum) {
        struct program *p = u;
        if (signum == SIGUSR2) {
                dump(p);
                return;
        }
        log_info("ending", kv_str("signal", strsignal(signum)));
        controller_main_end(p, EXIT_SUCCESS);
}

/* ---- leading ---- */

static void controller_main_on_started(void *u) {
        struct program *p = u;
        log_info("leading", kv_str("identity", p->identity));
        controller_lead(&p->controller);
}

static void on_lost(void *u) {
        log_error("leadership is lost; exiting, so that two controllers never write at the same time");
        controller_main_end(u, EXIT_FAILURE);
}

static void on_observed(void *u, const char *identity) {
        log_info("leader observed", kv_str("identity", identity));
}

static void on_lease_failing(void *u, const struct err *e) {
        if (e)
                log_error("this replica cannot take part in leader election", kv_err(e));
        else
                log_info("this replica takes part in leader election again");
}

static int make_identity(struct program *p, struct err *e) {
        _cleanup_(freep) char *uuid = NULL;
        if (file_read("/proc/sys/kernel/random/uuid", 64, &uuid, NULL, e) < 0)
                return -1;
        /* The pod has one container, so a Lease holder with this pod's name is the process that this process
         * replaces. No name of a pod contains the separator. */
        p->earlier = xasprintf("%s_", p->config.pod_name);
        p->identity = xasprintf("%s%.*s", p->earlier, (int)str_trim(str_from(uuid)).n, uuid);
        return 0;
}

static void elect(void *u) {
        struct program *p = u;
        if (!p->config.leader_election) {
                controller_lead(&p->controller);
                return;
        }
        p->leader = leader_new(&(struct leader_options){
                .client = p->client,
                .ns = p->config.lease_ns,
                .name = p->config.lease_name,
                .identity = p->identity,
                .earlier = p->earlier,
                .duration_ms = (unsigned)p->config.lease_duration_ms,
                .renew_deadline_ms = (unsigned)p->config.renew_deadline_ms,
                .retry_ms = (unsigned)p->config.retry_period_ms,
                .started = controller_main_on_started,
                .lost = on_lost,
                .observed = on_observed,
                .failing = on_lease_failing,
                .u = p,
        });
}

/* ---- startup ---- */

static int controller_main_on_http(void *u, const char *path, struct buf *out,
                                   const char **ret_content_type) {
        struct program *p = u;
        if (streq(path, p->config.metrics_path)) {
                controller_metrics(&p->controller);
                kube_client_metrics(p->client);
                metrics_render(p->metrics, out);
                *ret_content_type = METRICS_CONTENT_TYPE;
                return 200;
        }
        if (streq(path, "/healthz")) {
                buf_adds(out, "ok\n");
                return 200;
        }
        if (streq(path, "/readyz")) {
                bool ready = records_synced(&p->controller) && !p->ending;
                buf_adds(out, ready ? "ok\n" : "caches are not filled yet\n");
                return ready ? 200 : 503;
        }
        buf_adds(out, "not found\n");
        return 404;
}

static void watch_signals(struct program *p) {
        static const int signums[ARRAY_LEN(p->signals)] = { SIGTERM, SIGINT, SIGUSR2 };
        for (size_t i = 0; i < ARRAY_LEN(p->signals); i++)
                (void)loop_signal_init(&p->signals[i], &p->loop, signums[i], controller_main_on_signal, p);
}

static int controller_main_begin(struct program *p, struct err *e) {
        struct kube_config kc = { 0 };
        watch_signals(p);
        if (make_identity(p, e) < 0 || kube_config_load(p->config.kubeconfig, &kc, e) < 0)
                return -1;
        p->metrics = metrics_new();
        int r = kube_client_new(&p->loop,
                                &(struct kube_client_options){
                                        .config = &kc,
                                        .user_agent = "compute-domain-controller/" PROGRAM_VERSION,
                                        .qps = (double)p->config.qps,
                                        .burst = (unsigned)p->config.burst,
                                        .metrics = p->metrics,
                                        .metrics_prefix = CD_METRICS_PREFIX,
                                },
                                &p->client, e);
        kube_config_done(&kc);
        if (r < 0)
                return -1;
        if (*p->config.http_endpoint &&
            http_server_new(&p->loop,
                            &(struct http_server_options){ .endpoint = p->config.http_endpoint,
                                                           .fn = controller_main_on_http,
                                                           .u = p },
                            &p->http, e) < 0)
                return err_wrap(e, "--http-endpoint (HTTP_ENDPOINT) %s", p->config.http_endpoint);
        p->events = event_recorder_new(p->client, "compute-domain-controller", NULL);
        gates_log_ineffective(&p->config.gates);
        controller_start(&p->controller, &(struct controller_options){ &p->config, p->client, p->events,
                                                                       p->metrics, elect, p });
        return 0;
}

static int controller_main_fail(const struct err *e) {
        fprintf(stderr, "Error: %s\n", e->msg);
        return EXIT_FAILURE;
}

int main(int argc, char **argv) {
        static struct program p;
        struct err e;
        signal(SIGPIPE, SIG_IGN);
        if (version_asked(argc, argv, "compute-domain-controller"))
                return EXIT_SUCCESS;
        if (argc > 1 && streq(argv[1], "uninstall"))
                return uninstall_main(argc - 1, argv + 1);
        if (config_load(&p.config, argc, argv, &e) < 0)
                return controller_main_fail(&e);
        if (p.config.help) {
                config_usage();
                return EXIT_SUCCESS;
        }
        uv_loop_init(&p.loop);
        if (controller_main_begin(&p, &e) < 0)
                return controller_main_fail(&e);
        uv_run(&p.loop, UV_RUN_DEFAULT);
        uv_loop_close(&p.loop);
        metrics_free(p.metrics);
        config_done(&p.config);
        free(p.identity);
        free(p.earlier);
        return p.exit_status;
}
