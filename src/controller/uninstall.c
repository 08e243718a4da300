/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/uninstall.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/kinds.h"
#include "api/names.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/kube_informer.h"
#include "kube/kube_pages.h"
#include "model/daemon_report.h"

#define SCALE_DOWN "{\"spec\":{\"replicas\":0}}"
#define IN_BACKGROUND                                                                                        \
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Background\"}"
#define UNLABEL "{\"metadata\":{\"labels\":{\"" CD_LABEL_SHARED "\":null}}}"
enum { UNLABEL_AT_ONCE = 16 };

/* The subresource of a Deployment that is patched: its answer is a Scale. */
static const struct kube_resource deployment_scale = { "apps", "v1", "deployments", "Scale", true, NULL };

/* A place for one request that removes the label of a Node. */
struct unlabel {
        struct uninstall *x;
        struct kube_call *call;
};

struct uninstall {
        struct uninstall_options o;
        struct loop_timer deadline;
        struct kube_call *call;
        struct kube_informer *controllers, *daemons;
        struct kube_pages *nodes; /* Nodes with the label of shared claims */
        struct unlabel unlabel[UNLABEL_AT_ONCE];
        char **names;                    /* of these Nodes */
        size_t n_names, cap_names, next; /* the first `next` have been requested */
        size_t n_unlabelled, n_labelled; /* removed; not removed */
        struct err failing; /* why there is no progress, for the message at the time-out; kind 0: unknown */
};

static void unlabel_end(struct uninstall *x) {
        for (size_t i = 0; i < ARRAY_LEN(x->unlabel); i++)
                kube_cancel(TAKE(x->unlabel[i].call));
        kube_pages_free(TAKE(x->nodes));
        for (size_t i = 0; i < x->n_names; i++)
                free(x->names[i]);
        free(TAKE(x->names));
        x->n_names = x->cap_names = x->next = 0;
}

static void uninstall_finish(struct uninstall *x, const struct err *e) {
        loop_timer_stop(&x->deadline);
        kube_cancel(TAKE(x->call));
        unlabel_end(x);
        kube_informer_free(TAKE(x->controllers));
        kube_informer_free(TAKE(x->daemons));
        x->o.done(x->o.u, e);
}

/* ---- the daemons ---- */

struct left {
        unsigned in_use, others;
        bool log;
};

static void log_in_use(const struct daemon_pod *p, const struct daemon_report *r) {
        log_warn("a daemon is in use: its Pod ends when no claim of the ComputeDomain is prepared on its "
                 "node and a kubelet plugin runs there",
                 kv_str("node", str_or(p->pod.node, "")), kv_str("pod", p->pod.o.meta.name),
                 kv_str("computeDomain", r->assignment.domain_uid), kv_str("keptBy", r->waits_for));
}

static bool uninstall_count(void *u, const struct kube_object *o) {
        struct left *l = u;
        const struct daemon_pod *p = (const struct daemon_pod *)o;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct daemon_report r;
        struct err e;
        bool reported = p->report && daemon_report_decode(str_from(p->report), a, &r, &e) == 0;
        if (reported && r.has_assignment && r.ready && *r.waits_for) {
                l->in_use++;
                if (l->log)
                        log_in_use(p, &r);
        } else {
                l->others++;
                if (l->log)
                        log_warn("a daemon has not ended", kv_str("node", str_or(p->pod.node, "")),
                                 kv_str("pod", p->pod.o.meta.name));
        }
        return true;
}

static void uninstall_report(struct uninstall *x) {
        struct left l = { .log = true };
        kube_informer_each(x->daemons, uninstall_count, &l);
        log_info("the DaemonSet of the daemons is deleted", kv_int("daemonsInUse", l.in_use),
                 kv_int("otherDaemons", l.others));
        uninstall_finish(x, NULL);
}

static void check_daemons(struct uninstall *x) {
        struct left l = { 0 };
        if (!kube_informer_synced(x->daemons))
                return;
        kube_informer_each(x->daemons, uninstall_count, &l);
        if (!l.others)
                uninstall_report(x);
}

static void uninstall_daemon_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        check_daemons(u);
}

static void daemons_synced(void *u) {
        check_daemons(u);
}

static void uninstall_on_failing(void *u, const struct kube_resource *res, const struct err *e) {
        struct uninstall *x = u;
        if (!e) {
                x->failing = (struct err){ 0 };
                return;
        }
        x->failing = *e;
        log_warn("watch failed; retrying", kv_str("resource", res->plural), kv_err(e));
}

static void uninstall_on_retry(void *u, const struct err *e) {
        struct uninstall *x = u;
        x->failing = *e;
        log_warn("request failed; retrying", kv_err(e));
}

static void uninstall_on_deleted(void *u, yyjson_val *obj, const struct err *e) {
        struct uninstall *x = u;
        x->call = NULL;
        x->failing = (struct err){ 0 };
        if (e && e->kind != ERR_NOT_FOUND) {
                struct err why = *e;
                err_wrap(&why, "DaemonSet %s", CD_DAEMON_OBJECT);
                uninstall_finish(x, &why);
                return;
        }
        x->daemons = kube_informer_new(x->o.client,
                                       &(struct kube_informer_options){
                                               .res = &kube_pods,
                                               .ns = x->o.ns,
                                               .label_selector = CD_LABEL_COMPONENT "=" CD_DAEMON_OBJECT,
                                               .fields = daemon_pod_fields,
                                               .size = sizeof(struct daemon_pod),
                                               .changed = uninstall_daemon_changed,
                                               .synced = daemons_synced,
                                               .failing = uninstall_on_failing,
                                               .u = x,
                                       });
}

/* ---- the controllers ---- */

struct controller_pod {
        struct kube_object o;
};
static const struct jd_field controller_pod_fields[] = {
        JD_OBJ(struct controller_pod, "metadata", o.meta, kube_f_meta), JD_END
};

static void delete_daemons(struct uninstall *x) {
        x->call = kube_start(x->o.client, &(struct kube_request){ .verb = KUBE_DELETE,
                                                                  .res = &kube_daemonsets,
                                                                  .ns = x->o.ns,
                                                                  .name = CD_DAEMON_OBJECT,
                                                                  .body = str_from(IN_BACKGROUND),
                                                                  .attempts = UINT_MAX,
                                                                  .done = uninstall_on_deleted,
                                                                  .retry = uninstall_on_retry,
                                                                  .u = x });
}

/* ---- what is left of shared claims ---- */

enum { UNLABEL_MS = 10000 };

static void unlabel_more(struct uninstall *x);

static void on_unlabelled(void *u, yyjson_val *obj, const struct err *e) {
        struct unlabel *p = u;
        struct uninstall *x = p->x;
        p->call = NULL;
        if (!e || e->kind == ERR_NOT_FOUND)
                x->n_unlabelled++;
        else if (!x->n_labelled++)
                log_warn("cannot remove the label of shared claims from a Node",
                         kv_str("label", CD_LABEL_SHARED), kv_err(e));
        if (e && e->kind == ERR_RETRY) { /* the others would hang, too */
                x->n_labelled += x->n_names - x->next;
                x->next = x->n_names;
        }
        unlabel_more(x);
}

/* The DaemonSet matters more than the labels: an error delays its deletion by two short attempts only. */
static void unlabel_more(struct uninstall *x) {
        bool busy = false;
        for (size_t i = 0; i < ARRAY_LEN(x->unlabel); i++) {
                struct unlabel *p = &x->unlabel[i];
                if (!p->call && x->next < x->n_names)
                        p->call = kube_start(x->o.client, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                                  .res = &kube_nodes,
                                                                                  .name = x->names[x->next++],
                                                                                  .body = str_from(UNLABEL),
                                                                                  .metadata_only = true,
                                                                                  .timeout_ms = UNLABEL_MS,
                                                                                  .attempts = 2,
                                                                                  .done = on_unlabelled,
                                                                                  .u = p });
                busy = busy || p->call;
        }
        if (busy)
                return;
        if (x->n_names)
                log_info("the label of shared claims is removed", kv_int("nodes", (int64_t)x->n_unlabelled),
                         kv_int("failed", (int64_t)x->n_labelled));
        unlabel_end(x);
        delete_daemons(x);
}

static void on_labelled(void *u, yyjson_val *list, bool last, const struct err *e) {
        struct uninstall *x = u;
        yyjson_val *item;
        size_t n, max;
        if (e) {
                log_warn("cannot list the Nodes with the label of shared claims",
                         kv_str("label", CD_LABEL_SHARED), kv_err(e));
                unlabel_end(x);
                delete_daemons(x);
                return;
        }
        yyjson_arr_foreach (yyjson_obj_get(list, "items"), n, max, item) {
                const char *name = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(item, "metadata"), "name"));
                if (!name)
                        continue;
                GROW(x->names, x->n_names, x->cap_names);
                x->names[x->n_names++] = xstrdup(name);
        }
        if (last)
                unlabel_more(x);
}

static void list_labelled(struct uninstall *x) {
        for (size_t i = 0; i < ARRAY_LEN(x->unlabel); i++)
                x->unlabel[i].x = x;
        x->n_unlabelled = x->n_labelled = 0;
        x->nodes =
                kube_pages_new(x->o.client, &(struct kube_pages_options){ .res = &kube_nodes,
                                                                          .label_selector = CD_LABEL_SHARED,
                                                                          .metadata_only = true,
                                                                          .page = on_labelled,
                                                                          .u = x });
        kube_pages_start(x->nodes, false);
}

static void on_slice_deleted(void *u, yyjson_val *obj, const struct err *e) {
        struct uninstall *x = u;
        x->call = NULL;
        x->failing = (struct err){ 0 };
        if (e && e->kind != ERR_NOT_FOUND)
                log_warn("cannot delete the ResourceSlice of shared claims", kv_str("name", CD_SLICE_SHARED),
                         kv_err(e));
        list_labelled(x);
}

static void check_controllers(struct uninstall *x) {
        if (!kube_informer_synced(x->controllers) || kube_informer_count(x->controllers))
                return;
        kube_informer_free(TAKE(x->controllers));
        log_info("the controller is stopped");
        x->call = kube_start(x->o.client, &(struct kube_request){ .verb = KUBE_DELETE,
                                                                  .res = &kube_resource_slices,
                                                                  .name = CD_SLICE_SHARED,
                                                                  .attempts = UINT_MAX,
                                                                  .done = on_slice_deleted,
                                                                  .retry = uninstall_on_retry,
                                                                  .u = x });
}

static void controller_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        check_controllers(u);
}

static void controllers_synced(void *u) {
        check_controllers(u);
}

static void on_scaled(void *u, yyjson_val *obj, const struct err *e) {
        struct uninstall *x = u;
        x->call = NULL;
        x->failing = (struct err){ 0 };
        /* 404 for the subresource: the Deployment does not exist, so no controller runs. */
        if (e && e->code != 404) {
                struct err why = *e;
                err_wrap(&why, "Deployment %s", x->o.deployment);
                uninstall_finish(x, &why);
                return;
        }
        x->controllers = kube_informer_new(x->o.client, &(struct kube_informer_options){
                                                                .res = &kube_pods,
                                                                .ns = x->o.ns,
                                                                .label_selector = x->o.selector,
                                                                .field_selector = KUBE_PODS_NOT_ENDED,
                                                                .fields = controller_pod_fields,
                                                                .size = sizeof(struct controller_pod),
                                                                .metadata_only = true,
                                                                .changed = controller_changed,
                                                                .synced = controllers_synced,
                                                                .failing = uninstall_on_failing,
                                                                .u = x,
                                                        });
}

/* ---- start and time-out ---- */

static void uninstall_on_deadline(void *u) {
        struct uninstall *x = u;
        struct err e;
        if (x->daemons && kube_informer_synced(x->daemons)) {
                uninstall_report(x);
                return;
        }
        if (x->failing.kind)
                e = x->failing;
        else if (x->controllers)
                err_set(&e, ERR_RETRY, 0, "Pods of the Deployment %s have not ended", x->o.deployment);
        else
                err_set(&e, ERR_RETRY, 0, "the API server has not answered");
        uninstall_finish(x, &e);
}

struct uninstall *uninstall_start(const struct uninstall_options *o) {
        struct uninstall *x = xnew(struct uninstall);
        x->o = *o;
        loop_timer_init(&x->deadline, kube_client_loop(o->client), uninstall_on_deadline, x);
        loop_timer_start(&x->deadline, o->timeout_ms);
        x->call = kube_start(o->client, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                .res = &deployment_scale,
                                                                .subresource = "scale",
                                                                .ns = o->ns,
                                                                .name = o->deployment,
                                                                .body = str_from(SCALE_DOWN),
                                                                .attempts = UINT_MAX,
                                                                .done = on_scaled,
                                                                .retry = uninstall_on_retry,
                                                                .u = x });
        return x;
}

void uninstall_free(struct uninstall *x) {
        if (!x)
                return;
        kube_cancel(x->call);
        unlabel_end(x);
        kube_informer_free(x->controllers);
        kube_informer_free(x->daemons);
        loop_timer_done(&x->deadline);
        free(x);
}

/* ---- the program ---- */

struct settings {
        const char *ns, *deployment, *selector, *kubeconfig, *log_format;
        int64_t limit_ms, verbosity;
};

struct program {
        uv_loop_t loop;
        struct kube_client *client;
        struct uninstall *uninstall;
        int exit_status;
};

static int uninstall_load(struct settings *s, int argc, char **argv, bool *ret_help, struct err *e) {
        const struct flag table[] = {
                FLAG(STR, "namespace", &s->ns, "namespace of the driver", .required = true),
                FLAG(STR, "controller-deployment", &s->deployment, "Deployment of the controller",
                     .required = true),
                FLAG(STR, "controller-selector", &s->selector, "label selector of the controller's pods",
                     .required = true),
                FLAG(DURATION_MS, "uninstall-timeout", &s->limit_ms,
                     "maximum time to wait for the controller and for idle daemons to end"),
                FLAG(STR, "kubeconfig", &s->kubeconfig,
                     "kubeconfig file; empty: the service account of this pod"),
                FLAG(STR, "logging-format", &s->log_format, "log format, text or json"),
                FLAG(INT, "v", &s->verbosity, "log verbosity, 0 to 7"),
                { .name = NULL },
        };
        int rest;
        *s = (struct settings){ .kubeconfig = "", .log_format = "text", .limit_ms = 240000 };
        if (flags_parse(table, argc, argv, &rest, ret_help, e) < 0)
                return -1;
        if (*ret_help) {
                printf("compute-domain-controller uninstall: deletes the DaemonSet %s.\n\n",
                       CD_DAEMON_OBJECT);
                flags_usage(table, stdout);
                return 0;
        }
        if (rest < argc)
                return err_set(e, ERR_INVALID, 0, "arguments are not supported: \"%s\"", argv[rest]);
        if (s->limit_ms < 1 || s->limit_ms > INT_MAX)
                return err_set(e, ERR_INVALID, 0, "--uninstall-timeout (UNINSTALL_TIMEOUT) is out of range");
        log_setup(streq(s->log_format, "json") ? LOG_JSON : LOG_TEXT, (int)s->verbosity);
        return 0;
}

static void uninstall_on_done(void *u, const struct err *e) {
        struct program *p = u;
        if (e)
                log_error("cannot remove the daemons", kv_err(e));
        p->exit_status = e ? EXIT_FAILURE : EXIT_SUCCESS;
        uninstall_free(TAKE(p->uninstall));
        kube_client_free(TAKE(p->client));
}

static int uninstall_begin(struct program *p, const struct settings *s, struct err *e) {
        struct kube_config kc = { 0 };
        if (kube_config_load(s->kubeconfig, &kc, e) < 0)
                return -1;
        int r = kube_client_new(
                &p->loop,
                &(struct kube_client_options){ .config = &kc, .user_agent = "compute-domain-controller" },
                &p->client, e);
        kube_config_done(&kc);
        if (r < 0)
                return -1;
        p->uninstall = uninstall_start(&(struct uninstall_options){ .client = p->client,
                                                                    .ns = s->ns,
                                                                    .deployment = s->deployment,
                                                                    .selector = s->selector,
                                                                    .timeout_ms = (unsigned)s->limit_ms,
                                                                    .done = uninstall_on_done,
                                                                    .u = p });
        return 0;
}

int uninstall_main(int argc, char **argv) {
        struct program p = { .exit_status = EXIT_FAILURE };
        struct settings s;
        struct err e;
        bool help = false;
        signal(SIGPIPE, SIG_IGN);
        if (uninstall_load(&s, argc, argv, &help, &e) < 0) {
                fprintf(stderr, "Error: %s\n", e.msg);
                return EXIT_FAILURE;
        }
        if (help)
                return EXIT_SUCCESS;
        uv_loop_init(&p.loop);
        if (uninstall_begin(&p, &s, &e) < 0) {
                fprintf(stderr, "Error: %s\n", e.msg);
                return EXIT_FAILURE;
        }
        uv_run(&p.loop, UV_RUN_DEFAULT);
        uv_loop_close(&p.loop);
        return p.exit_status;
}
