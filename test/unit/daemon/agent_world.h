/* SPDX-License-Identifier: Apache-2.0 */
/* agent_world: the whole agent in a process of its own, against an API server that the test plays, in the
 * folder of programs.h: `imexd` in it is the one that agent and plugin share. The test's own program is the
 * agent's, too: its main() begins with `if (agent_asked(argc, argv)) return be_the_agent(argv);`. */
#pragma once

#include "program_world.h"

#include "daemon/resident_run.h"
#include "imex/imex_state.h"

#define FABRIC "ffffffff-0000-0000-0000-000000000000.1"
#define A "aaaaaaaa-0000-4000-8000-000000000001"
#define B "bbbbbbbb-0000-4000-8000-000000000002"
#define CLAIM "cccccccc-0000-4000-8000-000000000003"
#define POD "dddddddd-0000-4000-8000-000000000004"

static int rv;
static char patches[32][4096];
static unsigned n_patches;
static const char *domains; /* NULL: there is no object */
static const char *table_of;

static inline char *object_json(void) {
        return xasprintf("{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainFabric\","
                         "\"metadata\":{\"name\":\"" FABRIC
                         "\",\"uid\":\"fu\",\"resourceVersion\":\"%d\"},\"tableOf\":\"%s\",\"epoch\":9,"
                         "\"domains\":[%s]}",
                         rv, table_of, domains);
}

static inline void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(freep) char *item = domains ? object_json() : xstrdup(""), *list = NULL;

        if (streq(r->method, "PATCH")) {
                assert_true(fake_has(r->path, "/api/v1/namespaces/driver/pods/agent-x"));
                snprintf(patches[n_patches++ % 32], sizeof patches[0], "%s", r->body);
                fake_reply(c, 200, NULL, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"agent-x\"}}");
        } else if (fake_query(r, "watch")) {
                watch = c;
                fake_stream(c);
        } else {
                assert_true(fake_has(r->path, "/computedomainfabrics"));
                assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=" FABRIC);
                list = xasprintf("{\"kind\":\"ComputeDomainFabricList\",\"metadata\":{\"resourceVersion\":"
                                 "\"%d\"},\"items\":[%s]}",
                                 rv, item);
                fake_reply(c, 200, NULL, list);
        }
}

static inline void tell(const char *now) {
        const char *type = domains ? "MODIFIED" : "ADDED";

        rv++;
        domains = now;
        if (!watch)
                return;
        _cleanup_(freep) char *item = object_json(),
                              *event = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, item);
        fake_chunk(watch, event);
}

static inline void start_server(int port) {
        serve(port, on_request);
}

static inline bool agent_asked(int argc, char **argv) {
        return argc == 3 && streq(argv[1], "--agent");
}

static inline int be_the_agent(char **argv) {
        _cleanup_(freep) char *kubeconfig = file_join(argv[2], "kubeconfig"),
                              *hosts = file_join(argv[2], "hosts"), *imex = file_join(argv[2], "imex"),
                              *ctl = file_join(argv[2], "ctl"), *run = file_join(argv[2], "run"),
                              *shared = file_join(argv[2], "imexd");
        const struct resident_config c = {
                .dir = shared,
                .claim_uid = CLAIM,
                .edits = "e1",
                .node = "n0",
                .pod_uid = POD,
                .pod = "agent-x",
                .pod_ns = "driver",
                .kubeconfig = kubeconfig,
                .imex = { .hosts_path = hosts,
                          .run_dir = run,
                          .imex_path = imex,
                          .ctl_path = ctl,
                          .own_ip = "10.0.0.1",
                          .term_grace_ms = 500,
                          .recovery_ms = 300 },
        };
        struct err e;

        if (resident_run(&c, &e) == 0)
                return 0;
        fprintf(stderr, "%s\n", e.msg);
        return 1;
}

static inline void run_agent_by(const char *const *before) {
        run_program(before, (const char *const[]){ "--agent", dir, NULL });
}

static inline void run_agent(void) {
        run_agent_by(NULL);
}

static struct imex_state seen;
static bool held;

static inline bool ready_in(const char *domain) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        return imex_state_read(folder, &seen, &held, &e) == 0 && held && seen.ready;
}
static inline bool ready_in_a(void) {
        return ready_in(A);
}
static inline bool ready_in_b(void) {
        return ready_in(B);
}

static inline bool there(const char *name) {
        _cleanup_(freep) char *path = in_dir(name);

        return access(path, F_OK) == 0;
}

static inline bool told(const char *what) {
        return n_patches && strstr(patches[(n_patches - 1) % 32], what);
}

/* What the fabric's object says. */
#define DOMAIN(uid, infix, port, seats, leaving)                                                             \
        "{\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" uid "\"},\"infix\":\"" infix                     \
        "\",\"slots\":4,\"port\":" port ",\"seats\":[" seats "],\"leaving\":[" leaving "]}"
#define SEAT(node, index, epoch, ip)                                                                         \
        "{\"node\":\"" node "\",\"index\":" index ",\"epoch\":" epoch ",\"ip\":\"" ip "\"}"
#define IN_A DOMAIN(A, "aa", "51001", SEAT("n0", "2", "1", "10.0.0.1"), "")
#define IN_A_WITH_A_PEER                                                                                     \
        DOMAIN(A, "aa", "51001", SEAT("n1", "0", "2", "10.0.0.2") "," SEAT("n0", "2", "1", "10.0.0.1"), "")
#define LEAVING_A DOMAIN(A, "aa", "51001", "", SEAT("n0", "2", "1", ""))
#define LEAVING_A_WITH_A_PEER                                                                                \
        DOMAIN(A, "aa", "51001", SEAT("n1", "0", "2", "10.0.0.2"), SEAT("n0", "2", "1", ""))
#define AWAITED_IN_B DOMAIN(B, "bb", "51002", SEAT("n0", "0", "3", ""), "")
