/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/mem.h"
#include "daemon/relay.h"
#include "daemon/node_daemon.h"
#include "imex.h"
#include "plugin.h"
#include "sim.h"
#include "world.h"

enum { TERM_GRACE_MS = 7000, FILE_MAX_BYTES = 1 << 20 };

struct daemon {
        struct node_daemon_config config;
        struct node_daemon *resident;
        const char *hosts_path;
        struct arena *texts;
        bool stopping, left;
};

/* daemon/relay.h: our log gets the output of nvidia-imex. */
void relay_line(struct relay *r, struct str line) {
        sim_log("  nvidia-imex: %.*s", (int)line.n, line.p);
}

static void put(const char *path, const char *text) {
        struct err e;
        BUG_ON(file_replace_volatile(path, text, strlen(text), 0644, &e) < 0);
}

static void on_stopped(void *u) {
        struct daemon *d = u;
        d->left = true;
}

/* A variable that the container runtime sets in the container. */
static const char *edits_of(struct arena *a, const char *cdi_file) {
        static const char name[] = "COMPUTE_DOMAIN_DAEMON_EDITS=";
        _cleanup_(freep) char *text = NULL;
        struct err e;
        const char *at = file_read(cdi_file, FILE_MAX_BYTES, &text, NULL, &e) < 0 ? NULL : strstr(text, name);
        return at ? arena_strndup(a, at + sizeof name - 1, strcspn(at + sizeof name - 1, "\"\n")) : "";
}

static struct imex_runner_options imex_options(struct arena *a, const struct daemon_options *o,
                                               const char *hosts_path) {
        return (struct imex_runner_options){ .hosts_path = hosts_path,
                                             .run_dir = arena_printf(a, "node-%u/run", o->node),
                                             .imex_path = "nvidia-imex",
                                             .ctl_path = "nvidia-imex-ctl",
                                             .own_ip = arena_strdup(a, o->ip),
                                             .term_grace_ms = TERM_GRACE_MS };
}

struct daemon *daemon_start(uv_loop_t *loop, const struct daemon_options *o) {
        struct daemon *d = xnew(struct daemon);
        struct arena *a = d->texts = arena_new(1024);
        struct err e;
        const char *server = arena_printf(
                a,
                "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":[{"
                "\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}],\"clusters\":[{\"name\":"
                "\"c\",\"cluster\":{\"server\":\"http://daemon-%u\"}}],\"users\":[{\"name\":\"u\",\"user\":"
                "{}}]}",
                o->node);
        const char *node = arena_printf(a, "node-%u", o->node),
                   *plugin_dir = arena_printf(a, PLUGIN_DIR(node)),
                   *domains = arena_printf(a, "%s/domains", plugin_dir),
                   *kubeconfig = arena_printf(a, "node-%u/kubeconfig", o->node);
        d->hosts_path = arena_printf(a, IMEX_HOSTS(o->node));
        put(kubeconfig, server);
        put(d->hosts_path, "127.0.0.1\tlocalhost\n");
        d->config = (struct node_daemon_config){
                .dir = domains,
                .cdi_dir = arena_printf(a, PLUGIN_CDI(node)),
                .claim_uid = arena_strdup(a, o->claim_uid),
                .edits = edits_of(a, o->cdi_file),
                .node = node,
                .pod_uid = arena_strdup(a, o->pod_uid),
                .pod = arena_strdup(a, o->pod),
                .pod_ns = DRIVER_NS,
                .kubeconfig = kubeconfig,
                .boot_id = arena_strdup(a, o->boot_id),
                .imex = imex_options(a, o, d->hosts_path),
        };
        if (node_daemon_new(loop, &d->config, on_stopped, d, &d->resident, &e) < 0)
                sim_broken("the daemon on %s does not start: %s", node, e.msg);
        return d;
}

void daemon_stop(struct daemon *d) {
        if (d->stopping)
                return;
        d->stopping = true;
        node_daemon_stop(d->resident);
}

bool daemon_left(const struct daemon *d) {
        return d->left;
}

void daemon_kill(struct daemon *d) {
        struct err e;
        if (!d)
                return;
        node_daemon_free(d->resident);
        (void)file_remove(d->hosts_path, &e);
        arena_free(d->texts);
        free(d);
}
