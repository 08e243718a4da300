/* SPDX-License-Identifier: Apache-2.0 */
/* interop_server: a DRA plugin for the Go client in interop/, and for the kubelets of test/bench/claims. The
 * claim's name chooses its answer.
 *
 *     interop_server <folder> [<plugin folder>]
 *
 * Serves <plugin folder>/dra.sock (default: <folder>/plugin) and <folder>/test.example.com-reg.sock, prints
 * "ready", then a line for each action of the kubelet's side, and ends on SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "dra/dra_plugin.h"

struct waiting {
        LIST_ENTRY(waiting) link;
        struct dra_op *op;
};

static LIST_HEAD(, waiting) waiting = LIST_HEAD_INITIALIZER(waiting);
static struct dra_plugin *plugin;
static bool changed;

static void report(const char *what, const char *about) {
        printf("%s %s\n", what, about);
        fflush(stdout);
}

static void answer(struct dra_op *op, const char *name) {
        const struct dra_device devices[] = {
                { .requests = (const char *[]){ "channel/first", "other", NULL },
                  .pool = "node-1",
                  .device = "channel-0",
                  .cdi_ids = (const char *[]){ "k8s.compute-domain.nvidia.com/claim=a",
                                               "k8s.compute-domain.nvidia.com/claim=b", NULL } },
                { .requests = (const char *[]){ NULL },
                  .pool = "node-1",
                  .device = "daemon-0",
                  .cdi_ids = (const char *[]){ NULL } },
        };
        if (str_starts(name, "fail"))
                dra_op_fail(op, "claim is \"b\xc3\xa4"
                                "d\": 100% wrong");
        else if (str_starts(name, "none"))
                dra_op_prepared(op, NULL, 0);
        else
                dra_op_prepared(op, devices, ARRAY_LEN(devices));
}

/* A claim named wait-* is answered when a claim named release arrives. */
static void prepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        if (str_starts(claim->name, "wait")) {
                struct waiting *w = xnew(struct waiting);
                w->op = op;
                dra_op_set_data(op, w);
                LIST_INSERT_HEAD(&waiting, w, link);
                report("waiting", claim->name);
                return;
        }
        if (streq(claim->name, "release")) {
                while (!LIST_EMPTY(&waiting)) {
                        struct waiting *w = LIST_FIRST(&waiting);
                        LIST_REMOVE(w, link);
                        answer(w->op, "waited");
                        free(w);
                }
        }
        answer(op, claim->name);
}

static void unprepare(void *u, struct dra_op *op, const struct dra_claim *claim) {
        changed = true;
        dra_plugin_health_changed(plugin);
        if (str_starts(claim->name, "fail"))
                dra_op_fail(op, "cannot unprepare");
        else
                dra_op_unprepared(op);
}

static void cancelled(void *u, struct dra_op *op, void *op_data) {
        struct waiting *w = op_data;
        LIST_REMOVE(w, link);
        free(w);
        report("cancelled", "-");
}

static void registered(void *u, bool ok, const char *error) {
        report(ok ? "registered" : "refused", error);
}

/* An operation changes the health. */
static void health(void *u, struct arena *a, struct dra_health_list *ret) {
        static struct dra_device_health devices[] = {
                { .pool = "node-1", .device = "channel-0", .state = DRA_HEALTH_GOOD, .message = "" },
                { .pool = "node-1", .device = "channel-1", .state = DRA_HEALTH_UNKNOWN, .message = "" },
        };
        devices[0].state = changed ? DRA_HEALTH_BAD : DRA_HEALTH_GOOD;
        devices[0].message = changed ? "lost n\xc3\xb6"
                                       "de-2"
                                     : "";
        *ret = (struct dra_health_list){ .devices = devices, .n = ARRAY_LEN(devices) };
}

static const struct dra_plugin_ops ops = { prepare, unprepare, cancelled, registered };

static void on_signal(uv_signal_t *s, int signum) {
        dra_plugin_free(TAKE(plugin));
        uv_close((uv_handle_t *)s, NULL);
}

int main(int argc, char **argv) {
        uv_loop_t loop;
        uv_signal_t term;
        struct err e;
        if (argc != 2 && argc != 3)
                return 2;
        _cleanup_(freep) char *dir = argc == 3 ? xstrdup(argv[2]) : file_join(argv[1], "plugin");
        const struct dra_plugin_options options = {
                .driver_name = "test.example.com",
                .plugin_dir = dir,
                .registrar_dir = argv[1],
                .ops = &ops,
                .health = health,
        };
        uv_loop_init(&loop);
        if (dra_plugin_new(&loop, &options, &plugin, &e) < 0) {
                fprintf(stderr, "%s\n", e.msg);
                return 1;
        }
        uv_signal_init(&loop, &term);
        uv_signal_start(&term, on_signal, SIGTERM);
        puts("ready");
        fflush(stdout);
        uv_run(&loop, UV_RUN_DEFAULT);
        return uv_loop_close(&loop) == 0 ? 0 : 1;
}
