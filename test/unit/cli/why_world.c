/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/cli/why_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "unit/golden.h"

struct cluster *cluster;

int why_set_up(void **state) {
        (void)state;
        cluster = cluster_new();
        return 0;
}

int why_tear_down(void **state) {
        (void)state;
        cluster_free(cluster);
        return 0;
}

int run_golden(const struct command *command, const char *arg, const char *golden) {
        struct cli c = {
                .a = arena_new(1024), .args = &arg, .n_args = arg ? 1 : 0, .source = cluster_source(cluster)
        };
        c.t = (struct term){ .out = BUF_INIT(TERM_OUT_MAX) };
        view_init(&c.v, c.source);
        int r = command->run(&c);
        golden_compare(golden, buf_str(&c.t.out));
        view_done(&c.v);
        buf_done(&c.t.out);
        arena_free(c.a);
        return r;
}

void pod_waits(const char *status, const char *more) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, NULL);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = "train-0",
                                                        .claim = "train-0.channel",
                                                        .status = status,
                                                        .more = more });
}

void pod_is_created(const char *message) {
        cluster_claim(cluster, "team-b", "train-0.channel", CLUSTER_BENCH, "a0");
        cluster_put_pod(cluster,
                        &(struct cluster_pod){ .name = "train-0", .claim = "train-0.channel", .node = "a0" });
        if (message)
                cluster_event(cluster, "Pod", "team-b", "train-0", "FailedPrepareDynamicResources", message);
}

void use_all(const char *ns, const char *uid, const char *nodes) {
        for (const char *p = nodes; *p; p += 2) {
                char node[3] = { p[0], p[1], 0 }, name[32];
                snprintf(name, sizeof name, "job-%s.channel", node);
                cluster_claim(cluster, ns, name, uid, node);
        }
}

void runs_on(const char *pod, const char *node, const char *containers) {
        char claim[64];
        snprintf(claim, sizeof claim, "%s.channel", pod);
        cluster_claim(cluster, "team-b", claim, CLUSTER_BENCH, node);
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = pod,
                                                        .claim = claim,
                                                        .node = node,
                                                        .phase = "Running",
                                                        .status = RUNS,
                                                        .containers = containers });
}

void pod_has_failed(const char *pod, const char *node) {
        cluster_put_pod(cluster, &(struct cluster_pod){ .name = pod, .node = node, .phase = "Failed" });
}
