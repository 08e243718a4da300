/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_world: the whole daemon in a process of its own, against an API server that the test plays, in the
 * folder of programs.h. The test's own program is the daemon's, too: its main() begins with `if
 * (daemon_asked(argc, argv)) return be_the_daemon(argv);`. */
#pragma once

#include "program_world.h"

#include "daemon/supervisor.h"
#include "imex/imex_state.h"

#define DOMAIN "dddddddd-0000-0000-0000-000000000000"
#define CLAIM "cccccccc-0000-0000-0000-000000000000"
#define POD "bbbbbbbb-0000-0000-0000-000000000000"
#define CLIQUE "aaaaaaaa-0000-0000-0000-000000000000.1"

static char patches[16][2048];
static unsigned n_patches, refuse_patches, n_lists, n_watches;
static const char *clique_daemons; /* NULL: there is no clique object */
/* What whoever stands in the API server's place says of cliques. */
static enum { SERVES, PAGES_404 /* a page, as a load balancer has it */, REFUSES_403, GONE_410 } serves;
static unsigned lists_from_cache;
static unsigned n_pages;      /* answered so */
static unsigned page_patches; /* so many reports get a 404 page */
static int rv = 1;

static inline char *clique_json(void) {
        return xasprintf(
                "{\"apiVersion\":\"resource.nvidia.com/"
                "v1beta1\",\"kind\":\"ComputeDomainClique\",\"metadata\":{\"name\":\"" DOMAIN "." CLIQUE
                "\",\"namespace\":\"driver\",\"uid\":\"u\",\"resourceVersion\":\"%d\",\"labels\":{\"resource."
                "nvidia.com/computeDomain\":\"" DOMAIN
                "\"},\"annotations\":{\"resource.nvidia.com/imex-name-infix\":\"ab\",\"resource.nvidia.com/"
                "num-nodes\":\"2\"}},\"daemons\":[%s]}",
                rv, clique_daemons);
}

static inline void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(freep) char *item = clique_daemons ? clique_json() : xstrdup(""), *list = NULL;

        if (streq(r->method, "PATCH")) {
                assert_true(fake_has(r->path, "/api/v1/namespaces/driver/pods/daemon-x"));
                snprintf(patches[n_patches++ % 16], sizeof patches[0], "%s", r->body);
                if (page_patches) {
                        page_patches--;
                        fake_reply(c, 404, "Content-Type: text/plain\r\n", "404 page not found\n");
                } else if (refuse_patches) {
                        refuse_patches--;
                        fake_refuse(c, 403, "no");
                } else {
                        fake_reply(c, 200, NULL, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"daemon-x\"}}");
                }
        } else if (serves == PAGES_404) {
                n_pages++;
                fake_reply(c, 404, "Content-Type: text/plain\r\n", "404 page not found\n");
        } else if (serves == REFUSES_403) {
                n_pages++;
                fake_reply(
                        c, 403, NULL,
                        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403}");
        } else if (serves == GONE_410 && fake_query(r, "watch")) {
                serves = SERVES;
                fake_reply(
                        c, 410, NULL,
                        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}");
        } else if (fake_query(r, "watch")) {
                n_watches++;
                watch = c;
                fake_stream(c);
        } else {
                n_lists++;
                lists_from_cache += streq(fake_query(r, "resourceVersion"), "0");
                assert_true(fake_has(r->path, "/namespaces/driver/computedomaincliques"));
                assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=" DOMAIN "." CLIQUE);
                list = xasprintf("{\"kind\":\"ComputeDomainCliqueList\",\"metadata\":{\"resourceVersion\":\"%"
                                 "d\"},\"items\":[%s]}",
                                 rv, item);
                fake_reply(c, 200, NULL, list);
        }
}

static inline void tell(const char *daemons) {
        _cleanup_(freep) char *item = NULL, *event = NULL;
        const char *type = clique_daemons ? "MODIFIED" : "ADDED";

        rv++;
        clique_daemons = daemons;
        item = clique_json();
        event = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, item);
        fake_chunk(watch, event);
}

static inline void start_server(int port) {
        serve(port, on_request);
}

/* The folder that daemon and plugin share: the test's own, or one in it, when there is one. */
static inline char *shared_in(const char *test_dir) {
        char *inner = file_join(test_dir, "imexd");

        if (access(inner, F_OK) == 0)
                return inner;
        free(inner);
        return xstrdup(test_dir);
}

static inline int be_the_daemon(char **argv) {
        _cleanup_(freep) char *kubeconfig = file_join(argv[2], "kubeconfig"),
                              *hosts = file_join(argv[2], "hosts"), *imex = file_join(argv[2], "imex"),
                              *ctl = file_join(argv[2], "ctl"), *run = file_join(argv[2], "run"),
                              *shared = shared_in(argv[2]);
        const struct supervisor_config c = {
                .clique_id = argv[3],
                .domain_uid = DOMAIN,
                .claim_uid = CLAIM,
                .node = "n0",
                .pod_uid = POD,
                .pod = "daemon-x",
                .pod_ns = "driver",
                .kubeconfig = kubeconfig,
                .imex = { .dir = shared,
                          .hosts_path = hosts,
                          .run_dir = run,
                          .imex_path = imex,
                          .ctl_path = ctl,
                          .own_ip = "10.0.0.1",
                          .max_nodes = 4,
                          .dns_names = streq(argv[4], "names"),
                          .term_grace_ms = 500,
                          .recovery_ms = 300 },
        };
        struct err e;

        if (supervisor_run(&c, &e) == 0)
                return 0;
        fprintf(stderr, "%s\n", e.msg);
        return 1;
}

static inline bool daemon_asked(int argc, char **argv) {
        return argc == 5 && streq(argv[1], "--daemon");
}

static inline void run_daemon_by(const char *const *before, const char *clique_id, bool dns_names) {
        run_program(before, (const char *const[]){ "--daemon", dir, clique_id,
                                                   dns_names ? "names" : "addresses", NULL });
}

static inline void run_daemon(const char *clique_id, bool dns_names) {
        run_daemon_by(NULL, clique_id, dns_names);
}

static struct imex_state state_now;
static bool held;

static inline bool read_state(void) {
        _cleanup_(freep) char *shared = shared_in(dir);
        struct err e;

        return imex_state_read(shared, &state_now, &held, &e) == 0;
}

static inline bool state_ready(void) {
        return read_state() && held && state_now.ready;
}
static inline bool patched(void) {
        return n_patches > 0;
}
static inline bool patched_ready(void) {
        return patched() && strstr(patches[n_patches - 1], "imex.resource.nvidia.com/ready\":\"true\"");
}

#define ME                                                                                                   \
        "{\"nodeName\":\"n0\",\"ipAddress\":\"\",\"cliqueID\":\"" CLIQUE                                     \
        "\",\"index\":2,\"status\":\"NotReady\"}"
#define PEER                                                                                                 \
        "{\"nodeName\":\"n1\",\"ipAddress\":\"10.0.0.2\",\"cliqueID\":\"" CLIQUE                             \
        "\",\"index\":0,\"status\":\"NotReady\"}"
