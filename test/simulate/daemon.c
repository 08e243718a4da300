/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/mem.h"
#include "daemon/relay.h"
#include "daemon/supervisor.h"
#include "imex.h"
#include "plugin.h"
#include "sim.h"
#include "world.h"

enum { SLOTS = 18, TERM_GRACE_MS = 7000 };

struct daemon {
        struct supervisor_config config;
        struct supervisor *supervisor;
        struct arena *texts;
        bool stopping, left;
};

/* daemon/relay.h: what nvidia-imex prints is in our log. */
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
                   *plugin_dir = arena_printf(a, PLUGIN_DIR(node));
        d->config = (struct supervisor_config){
                .clique_id = arena_strdup(a, o->clique),
                .domain_uid = arena_strdup(a, o->domain),
                .claim_uid = arena_strdup(a, o->claim_uid),
                .node = node,
                .pod_uid = arena_strdup(a, o->pod_uid),
                .pod = arena_strdup(a, o->pod),
                .pod_ns = DRIVER_NS,
                .kubeconfig = arena_printf(a, "node-%u/kubeconfig", o->node),
                .imex = { .dir = arena_printf(a, "%s/domains/%s", plugin_dir, o->domain),
                          .hosts_path = arena_printf(a, IMEX_HOSTS(o->node, o->domain)),
                          .run_dir = arena_printf(a, "node-%u/run", o->node),
                          .imex_path = "nvidia-imex",
                          .ctl_path = "nvidia-imex-ctl",
                          .own_ip = arena_strdup(a, o->ip),
                          .max_nodes = SLOTS,
                          .dns_names = true,
                          .term_grace_ms = TERM_GRACE_MS },
        };
        put(d->config.kubeconfig, server);
        put(d->config.imex.hosts_path, "127.0.0.1\tlocalhost\n");
        if (supervisor_new(loop, &d->config, o->boot_id, on_stopped, d, &d->supervisor, &e) < 0)
                sim_broken("the daemon of %s does not start on node-%u: %s", o->domain, o->node, e.msg);
        return d;
}

void daemon_stop(struct daemon *d) {
        if (d->stopping)
                return;
        d->stopping = true;
        supervisor_stop(d->supervisor);
}

bool daemon_left(const struct daemon *d) {
        return d->left;
}

void daemon_kill(struct daemon *d) {
        struct err e;
        if (!d)
                return;
        supervisor_end(d->supervisor);
        supervisor_free(d->supervisor);
        (void)file_remove(d->config.imex.hosts_path, &e);
        arena_free(d->texts);
        free(d);
}
