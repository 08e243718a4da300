/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/mem.h"
#include "daemon/relay.h"
#include "daemon/resident.h"
#include "daemon/supervisor.h"
#include "imex.h"
#include "plugin.h"
#include "sim.h"
#include "world.h"

enum { SLOTS = 18, TERM_GRACE_MS = 7000, FILE_MAX_BYTES = 1 << 20 };

struct daemon {
        /* One of the two. */
        struct supervisor_config config;
        struct supervisor *supervisor;
        struct resident_config agent_config;
        struct resident *agent;
        const char *hosts_path;
        struct arena *texts;
        bool stopping, left;
};

static bool agents;

void agents_use(void) {
        agents = true;
}

bool agents_used(void) {
        return agents;
}

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

/* What the runtime puts into the container's environment. */
static const char *edits_of(struct arena *a, const char *cdi_file) {
        static const char name[] = "COMPUTE_DOMAIN_AGENT_EDITS=";
        _cleanup_(freep) char *text = NULL;
        struct err e;
        const char *at = file_read(cdi_file, FILE_MAX_BYTES, &text, NULL, &e) < 0 ? NULL : strstr(text, name);
        return at ? arena_strndup(a, at + sizeof name - 1, strcspn(at + sizeof name - 1, "\"\n")) : "";
}

/* In the folder that it shares with the plugin; an agent's are those of all domains. */
static struct imex_agent_options imex_options(struct arena *a, const struct daemon_options *o,
                                              const char *hosts_path) {
        return (struct imex_agent_options){ .hosts_path = hosts_path,
                                            .run_dir = arena_printf(a, "node-%u/run", o->node),
                                            .imex_path = "nvidia-imex",
                                            .ctl_path = "nvidia-imex-ctl",
                                            .own_ip = arena_strdup(a, o->ip),
                                            .term_grace_ms = TERM_GRACE_MS };
}

static int start_supervisor(struct daemon *d, uv_loop_t *loop, const struct daemon_options *o,
                            const char *node, const char *domains, const char *kubeconfig, struct err *e) {
        struct arena *a = d->texts;
        d->config = (struct supervisor_config){
                .clique_id = arena_strdup(a, o->clique),
                .domain_uid = arena_strdup(a, o->domain),
                .claim_uid = arena_strdup(a, o->claim_uid),
                .node = node,
                .pod_uid = arena_strdup(a, o->pod_uid),
                .pod = arena_strdup(a, o->pod),
                .pod_ns = DRIVER_NS,
                .kubeconfig = kubeconfig,
                .imex = imex_options(a, o, d->hosts_path),
        };
        d->config.imex.dir = arena_printf(a, "%s/%s", domains, o->domain);
        d->config.imex.max_nodes = SLOTS;
        d->config.imex.dns_names = true;
        return supervisor_new(loop, &d->config, o->boot_id, on_stopped, d, &d->supervisor, e);
}

static int start_agent(struct daemon *d, uv_loop_t *loop, const struct daemon_options *o, const char *node,
                       const char *domains, const char *kubeconfig, struct err *e) {
        struct arena *a = d->texts;
        d->agent_config = (struct resident_config){
                .dir = domains,
                .claim_uid = arena_strdup(a, o->claim_uid),
                .edits = edits_of(a, o->cdi_file),
                .node = node,
                .pod_uid = arena_strdup(a, o->pod_uid),
                .pod = arena_strdup(a, o->pod),
                .pod_ns = DRIVER_NS,
                .kubeconfig = kubeconfig,
                .imex = imex_options(a, o, d->hosts_path),
        };
        return resident_new(loop, &d->agent_config, o->boot_id, on_stopped, d, &d->agent, e);
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
        d->hosts_path = arena_printf(a, IMEX_HOSTS(o->node, o->domain ? o->domain : IMEX_HOSTS_OF_AGENT));
        put(kubeconfig, server);
        put(d->hosts_path, "127.0.0.1\tlocalhost\n");
        int r = o->domain ? start_supervisor(d, loop, o, node, domains, kubeconfig, &e)
                          : start_agent(d, loop, o, node, domains, kubeconfig, &e);
        if (r < 0)
                sim_broken("the %s of %s does not start on %s: %s", o->domain ? "daemon" : "agent",
                           o->domain ? o->domain : "nobody", node, e.msg);
        return d;
}

void daemon_stop(struct daemon *d) {
        if (d->stopping)
                return;
        d->stopping = true;
        if (d->agent)
                resident_stop(d->agent);
        else
                supervisor_stop(d->supervisor);
}

bool daemon_left(const struct daemon *d) {
        return d->left;
}

void daemon_kill(struct daemon *d) {
        struct err e;
        if (!d)
                return;
        if (d->supervisor) {
                supervisor_end(d->supervisor);
                supervisor_free(d->supervisor);
        }
        resident_free(d->agent);
        (void)file_remove(d->hosts_path, &e);
        arena_free(d->texts);
        free(d);
}
