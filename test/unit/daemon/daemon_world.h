/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_world: the whole daemon in its own process, in the folder of programs.h. The test plays the API
 * server. `imexd` in the folder is the one that daemon and plugin share. The test binary is the daemon's,
 * too: its main() begins with `if (daemon_asked(argc, argv)) return be_the_daemon(argv);`. */
#pragma once

#include "program_world.h"

#include "daemon/node_daemon_run.h"
#include "imex/imex_state.h"

#define FABRIC "ffffffff-0000-0000-0000-000000000000.1"
#define A "aaaaaaaa-0000-4000-8000-000000000001"
#define B "bbbbbbbb-0000-4000-8000-000000000002"
#define CLAIM "cccccccc-0000-4000-8000-000000000003"
#define POD "dddddddd-0000-4000-8000-000000000004"

static int rv;
static char patches[32][4096];
static unsigned n_patches;
static const char *domains; /* NULL: there is no fabric object */
static const char *table_of;
static int epoch = 9; /* of the fabric object */
static int recount;
/* The Pod on the server: the metadata of the last patch. */
static char pod[4096];
static int pod_rv = 1;
static struct fake_conn *pod_watch;
/* Answers instead of the API server's. */
static unsigned refuse_patches, page_patches; /* how many reports get a refusal, or a page */
static enum { SERVES, PAGES_404 /* a load balancer's */, REFUSES_403, GONE_410 } serves;
static unsigned n_pages, n_lists,
        n_watches; /* requests for the fabric object; n_pages: those with a wrong answer */

/* Replaces each '@', which no text of the tests contains, by the boot ID of this machine. */
static inline char *with_boot(const char *text) {
        char id[37];
        struct err e;
        struct buf b = BUF_INIT(1 << 16);
        assert_int_equal(file_boot_id(FILE_BOOT_ID_PATH, id, &e), 0);
        for (; *text; text++)
                if (*text == '@')
                        buf_adds(&b, id);
                else
                        buf_addc(&b, *text);
        char *ret = xstrdup(buf_str(&b));
        buf_done(&b);
        return ret;
}

static inline char *object_json(void) {
        _cleanup_(freep) char *list = with_boot(domains);
        return xasprintf("{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainFabric\","
                         "\"metadata\":{\"name\":\"" FABRIC
                         "\",\"uid\":\"ffffffff-0000-4000-8000-00000000000f\",\"resourceVersion\":\"%d\"},"
                         "\"tableOf\":\"%s\",\"epoch\":%d,"
                         "\"domains\":[%s],\"recount\":%d}",
                         rv, table_of, epoch, list, recount);
}

#define PATCH_BEGIN "{\"metadata\":{"

/* `more`: the rest of its metadata. */
static inline void set_pod(const char *more) {
        snprintf(pod, sizeof pod,
                 "{\"apiVersion\":\"meta.k8s.io/v1\",\"kind\":\"PartialObjectMetadata\",\"metadata\":{"
                 "\"name\":\"daemon-x\",\"namespace\":\"driver\",\"uid\":\"" POD
                 "\",\"resourceVersion\":\"%d\",%s",
                 ++pod_rv, more);
}

/* A restore of etcd: the Pod is as before the last patches. */
static inline void roll_pod_back(const char *more) {
        set_pod(more);
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", pod);
        fake_chunk(pod_watch, event);
}

static inline void on_pod_request(struct fake_conn *c, const struct fake_request *r) {
        assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=daemon-x");
        if (fake_query(r, "watch")) {
                pod_watch = c;
                fake_stream(c);
                return;
        }
        _cleanup_(freep) char *list =
                xasprintf("{\"apiVersion\":\"meta.k8s.io/v1\",\"kind\":\"PartialObjectMetadataList\","
                          "\"metadata\":{\"resourceVersion\":\"%d\"},\"items\":[%s]}",
                          pod_rv, pod);
        fake_reply(c, 200, NULL, list);
}

#define STATUS(code, reason)                                                                                 \
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"" reason "\",\"code\":" #code "}"

static inline void on_report(struct fake_conn *c, const struct fake_request *r) {
        assert_true(fake_has(r->path, "/api/v1/namespaces/driver/pods/daemon-x"));
        assert_true(str_starts(r->body, PATCH_BEGIN));
        snprintf(patches[n_patches++ % 32], sizeof patches[0], "%s", r->body);
        if (page_patches) {
                page_patches--;
                fake_reply(c, 404, "Content-Type: text/plain\r\n", "404 page not found\n");
        } else if (refuse_patches) {
                refuse_patches--;
                fake_refuse(c, 403, "no");
        } else {
                set_pod(r->body + sizeof PATCH_BEGIN - 1);
                fake_reply(c, 200, NULL, pod);
        }
}

static inline void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(freep) char *item = domains ? object_json() : xstrdup(""), *list = NULL;

        if (streq(r->method, "PATCH")) {
                on_report(c, r);
        } else if (fake_has(r->path, "/api/v1/namespaces/driver/pods")) {
                on_pod_request(c, r);
        } else if (serves == PAGES_404) {
                n_pages++;
                fake_reply(c, 404, "Content-Type: text/plain\r\n", "404 page not found\n");
        } else if (serves == REFUSES_403) {
                n_pages++;
                fake_reply(c, 403, NULL, STATUS(403, "Forbidden"));
        } else if (serves == GONE_410 && fake_query(r, "watch")) {
                serves = SERVES;
                fake_reply(c, 410, NULL, STATUS(410, "Expired"));
        } else if (fake_query(r, "watch")) {
                n_watches++;
                watch = c;
                fake_stream(c);
        } else {
                n_lists++;
                assert_true(fake_has(r->path, "/computedomainfabrics"));
                assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=" FABRIC);
                /* An object that the API server's cache does not have yet would look deleted. */
                assert_string_not_equal(str_or(fake_query(r, "resourceVersion"), ""), "0");
                list = xasprintf("{\"kind\":\"ComputeDomainFabricList\",\"metadata\":{\"resourceVersion\":"
                                 "\"%d\"},\"items\":[%s]}",
                                 rv, item);
                fake_reply(c, 200, NULL, list);
        }
}

static inline void set_object(const char *now) {
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
        _cleanup_(freep) char *cdi = in_dir("cdi");
        struct err e;

        assert_int_equal(file_mkdirs(cdi, 0755, &e), 0);
        *pod = '\0';
        pod_watch = NULL;
        serve(port, on_request);
}

static inline bool daemon_asked(int argc, char **argv) {
        return argc == 3 && streq(argv[1], "--daemon");
}

/* If the file "patient" exists, it does not kill an IMEX that SIGTERM does not end. */
static inline int be_the_daemon(char **argv) {
        _cleanup_(freep) char *kubeconfig = file_join(argv[2], "kubeconfig"),
                              *hosts = file_join(argv[2], "hosts"), *imex = file_join(argv[2], "imex"),
                              *ctl = file_join(argv[2], "ctl"), *run = file_join(argv[2], "run"),
                              *shared = file_join(argv[2], "imexd"), *cdi = file_join(argv[2], "cdi"),
                              *patient = file_join(argv[2], "patient");
        const struct node_daemon_config c = {
                .dir = shared,
                .cdi_dir = cdi,
                .claim_uid = CLAIM,
                .edits = "e1",
                .node = "n0",
                .pod_uid = POD,
                .pod = "daemon-x",
                .pod_ns = "driver",
                .kubeconfig = kubeconfig,
                .imex = { .hosts_path = hosts,
                          .run_dir = run,
                          .imex_path = imex,
                          .ctl_path = ctl,
                          .own_ip = "10.0.0.1",
                          .term_grace_ms = access(patient, F_OK) == 0 ? 60000 : 500,
                          .recovery_ms = 300 },
        };
        struct err e;

        if (node_daemon_run(&c, &e) == 0)
                return 0;
        fprintf(stderr, "%s\n", e.msg);
        return 1;
}

static inline void run_daemon_by(const char *const *before) {
        run_program(before, (const char *const[]){ "--daemon", dir, NULL });
}

static inline void run_daemon(void) {
        run_daemon_by(NULL);
}

/* The same, with the log in the file "log". */
static inline void run_daemon_with_log(void) {
        _cleanup_(freep) char *command = xasprintf("exec \"$@\" 2>>%s/log", dir);

        run_daemon_by((const char *const[]){ "sh", "-c", command, "sh", NULL });
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

static inline bool reported(const char *what) {
        return n_patches && strstr(patches[(n_patches - 1) % 32], what);
}

/* The content of the fabric object. */
#define DOMAIN(uid, infix, port, assignments)                                                                \
        "{\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"" uid "\"},\"infix\":\"" infix                     \
        "\",\"slots\":4,\"port\":" port ",\"assignments\":[" assignments "]}"
#define ASSIGNMENT(node, index, epoch, more)                                                                 \
        "{\"node\":\"" node "\",\"index\":" index ",\"epoch\":" epoch ",\"bootID\":\"@\"," more "}"
#define OURS "\"claimUID\":\"" CLAIM "\""
#define ACTIVE(node, index, epoch, ip) ASSIGNMENT(node, index, epoch, OURS ",\"ip\":\"" ip "\"")
#define LEAVING(node, index, epoch) ASSIGNMENT(node, index, epoch, OURS ",\"state\":\"Leaving\"")
#define ENDING(node, index, epoch) ASSIGNMENT(node, index, epoch, OURS ",\"state\":\"Ending\"")
#define IN_A DOMAIN(A, "aa", "51001", ACTIVE("n0", "2", "1", "10.0.0.1"))
#define A_PEER ACTIVE("n1", "0", "2", "10.0.0.2")
#define IN_A_WITH_A_PEER DOMAIN(A, "aa", "51001", A_PEER "," ACTIVE("n0", "2", "1", "10.0.0.1"))
#define LEAVING_A DOMAIN(A, "aa", "51001", LEAVING("n0", "2", "1"))
#define LEAVING_A_WITH_A_PEER DOMAIN(A, "aa", "51001", A_PEER "," LEAVING("n0", "2", "1"))
#define AWAITED_IN_B DOMAIN(B, "bb", "51002", ACTIVE("n0", "0", "3", ""))
