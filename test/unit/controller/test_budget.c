/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests the controller sends, and how many bytes it reads, until all nodes of a new cluster have
 * their labels, and then until partitions have formed ComputeDomains: in virtual time, with an API server
 * in this process that counts. No change may visit all fabric objects, and many changes share a visit of all
 * daemons, because the work would otherwise grow with the square of the nodes. The Nodes have the size of
 * those of GPU machines (test/scale). A list is counted as it is, although a real API server compresses it.
 *
 *     test_budget [NODES]     default: 18 and 1,000 nodes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <cmocka.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/mem.h"
#include "controller/controller.h"
#include "controller/node_reads.h"
#include "world/kube_calls.h"

enum {
        CLIQUE = 18,
        PAGE = 500,
        TICK_MS = 20,
        IMAGES = 50,
        QUIET_MS = 3000,
        REPORT_TICKS = 50,
        BOOKMARK_MS = 60000
};

#define DRIVER_NS "driver"
#define BOOT_ID "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

/* What a test may need: requests per node and besides, and bytes per node. */
enum {
        PATCHES_PER_NODE = 1,
        OTHER_PER_PARTITION = 2,     /* its fabric object is created, and gets its own UID */
        OTHER = 30,                  /* lists of kinds without objects, the DaemonSet, its claim template */
        READ_PER_NODE = 2 * 8 << 10, /* the metadata, in the answer to the patch and in the event */
        READ_PER_PARTITION = 8 << 10,
        READ_OTHER = 64 << 10,
        LISTED_PER_NODE = 24 << 10, /* the Node and its ResourceSlice */
        WRITTEN_PER_NODE = 1 << 10,
        /* While ComputeDomains form: the writes of the fabric object, the ComputeDomain and its template, and
         * the events of claims and of the daemons' reports. */
        JOIN_PER_PARTITION = 6,
        JOIN_READ_PER_NODE = READ_PER_NODE + (3 << 10),
        JOIN_READ_PER_PARTITION = 16 << 10,
        JOIN_WRITTEN_PER_NODE = 1 << 10,
        DAEMON_VISITS = 2, /* one of all daemons, and one of all Nodes, in the time between two passes */
};

struct count {
        size_t requests, patches, reads, lists, read, listed, written;
};

/* An object that the controller has created. */
struct made {
        UT_hash_handle hh;
        char *json;
        char key[];
};

static struct {
        uv_loop_t loop;
        struct controller c;
        struct config config;
        size_t n_nodes, n_labelled, n_fabrics;
        bool *labelled, *joined; /* joined: the label of its ComputeDomain */
        bool *serves;            /* its daemon has reported its assignment */
        size_t n_joined, n_serving;
        bool forming;
        bool *reports_due;         /* of each partition */
        const char *peers;         /* that each daemon reports */
        size_t fabric_visits;      /* of all fabric objects */
        size_t daemon_visits;      /* of all daemons, or of all Nodes, since visits_since_ms */
        size_t most_daemon_visits; /* within CONTROLLER_ROLLOUT_MS */
        uint64_t visits_since_ms;
        int64_t *versions, version;
        struct made *made;
        struct count count;
        uint64_t last_ms;     /* of a request */
        uint64_t bookmark_ms; /* of the next bookmark */
} w;

/* ---- objects ---- */

static const char *clique_of(size_t i) {
        static char id[64];
        snprintf(id, sizeof id, "7a3b2f10-1111-4222-8333-444455556666.%zu", i / CLIQUE);
        return id;
}

static size_t partition_of(const char *clique) {
        return strtoul(strrchr(clique, '.') + 1, NULL, 10);
}

static size_t partitions(void) {
        return (w.n_nodes + CLIQUE - 1) / CLIQUE;
}

#define CLAIM_UID "40000000-8f4e-4f0e-9f0a-%012zu"
#define DOMAIN_UID "c0000000-8f4e-4f0e-9f0a-%012zu"

static void add_labels(struct buf *b, bool fields, bool ours) {
        const char *prefix = fields ? "f:" : "", *value = fields ? "{}" : "\"true\"";
        buf_addf(b, "\"%snvidia.com/gpu.present\":%s", prefix, value);
        for (int k = 0; k < 40; k++)
                buf_addf(b, ",\"%sfeature.node.kubernetes.io/cpu-cpuid.FEATURE%02d\":%s", prefix, k, value);
        if (ours)
                buf_addf(b, ",\"%s" CD_LABEL_DAEMON "\":%s", prefix, value);
}

static void add_metadata(struct buf *b, size_t i) {
        bool ours = w.labelled[i];
        buf_addf(b, "\"metadata\":{\"name\":\"node-%zu\",\"uid\":\"10000000-8f4e-4f0e-9f0a-%012zu\",", i, i);
        buf_addf(b, "\"resourceVersion\":\"%lld\",\"labels\":{", (long long)w.versions[i]);
        add_labels(b, false, ours);
        if (ours)
                buf_addf(b, ",\"" GPU_CLIQUE_LABEL "\":\"%s\"", clique_of(i));
        if (w.joined[i])
                buf_addf(b, ",\"" CD_LABEL "\":\"" DOMAIN_UID "\"", i / CLIQUE);
        buf_adds(b, "},\"annotations\":{\"nfd.node.kubernetes.io/feature-labels\":\"");
        for (int k = 0; k < 40; k++)
                buf_adds(b, "cpu-cpuid.FEATURE,");
        buf_adds(b, "\"");
        if (ours)
                buf_addf(b, ",\"" CD_ANNOTATION_GPU_CLIQUE "\":\"%s\",\"" CD_ANNOTATION_CLIQUE "\":\"%s\"",
                         clique_of(i), clique_of(i));
        buf_adds(b, "},\"managedFields\":[{\"manager\":\"nfd-master\",\"operation\":\"Update\",\"time\":"
                    "\"2026-01-01T00:00:00Z\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{");
        add_labels(b, true, ours);
        buf_adds(b,
                 "}}}},{\"manager\":\"kubelet\",\"operation\":\"Update\",\"time\":\"2026-01-01T00:00:00Z\","
                 "\"fieldsV1\":{\"f:spec\":{\"f:taints\":{}},\"f:status\":{");
        for (int k = 0; k < 40; k++)
                buf_addf(b, "\"f:field-of-the-status-%02d\":{\".\":{}},", k);
        buf_adds(b, "\"f:images\":{}}}}]}");
}

static void make_node(size_t i, bool metadata_only, struct buf *b) {
        if (metadata_only) {
                buf_adds(b, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",");
                add_metadata(b, i);
                buf_adds(b, "}");
                return;
        }
        buf_adds(b, "{");
        add_metadata(b, i);
        buf_adds(b,
                 ",\"spec\":{\"taints\":[{\"key\":\"nvidia.com/gpu\",\"effect\":\"NoSchedule\"}]},"
                 "\"status\":{\"nodeInfo\":{\"bootID\":\"" BOOT_ID "\"},\"conditions\":[{\"type\":\"Ready\","
                 "\"status\":\"True\"}],\"images\":[");
        for (int k = 0; k < IMAGES; k++)
                buf_addf(b,
                         "%s{\"names\":[\"registry.example.com/nvidia/cloud-native/"
                         "component-number-%02d@sha256:"
                         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"registry."
                         "example."
                         "com/nvidia/cloud-native/"
                         "component-number-%02d:v25.3.1-ubuntu22.04\"],\"sizeBytes\":1}",
                         k ? "," : "", k, k);
        buf_adds(b, "]}}");
}

static void make_slice(size_t i, struct buf *b) {
        buf_addf(b,
                 "{\"metadata\":{\"name\":\"slice-%zu\",\"uid\":\"20000000-8f4e-4f0e-9f0a-%012zu\","
                 "\"resourceVersion\":\"1\"},\"spec\":{\"driver\":\"" CD_DRIVER
                 "\",\"nodeName\":\"node-%zu\",\"devices\":[",
                 i, i, i);
        for (int k = 0; k < 2; k++)
                buf_addf(b, "%s{\"name\":\"%s\",\"attributes\":{\"cliqueID\":{\"string\":\"%s\"}}}",
                         k ? "," : "", k ? "daemon-0" : "channel-0", clique_of(i));
        buf_adds(b, "]}}");
}

static struct made *made_at(const struct kube_resource *res, const char *name) {
        char key[256];
        struct made *m;
        int n = snprintf(key, sizeof key, "%s/%s", res->plural, name);
        HASH_FIND_STR(w.made, key, m);
        if (!m) {
                m = xcalloc(1, sizeof *m + (size_t)n + 1);
                memcpy(m->key, key, (size_t)n + 1);
                HASH_ADD_STR(w.made, key, m);
        }
        return m;
}

/* ---- the requests of the controller ---- */

void __wrap_kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u);
void __real_kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u);

void __wrap_kube_informer_each(const struct kube_informer *i, kube_visit_fn *fn, void *u) {
        w.fabric_visits += i == w.c.caches.fabrics;
        if (i == w.c.caches.daemons || i == w.c.caches.nodes) {
                uint64_t now_ms = uv_now(&w.loop);
                if (!w.daemon_visits || now_ms >= w.visits_since_ms + CONTROLLER_ROLLOUT_MS) {
                        w.visits_since_ms = now_ms;
                        w.daemon_visits = 0;
                }
                if (++w.daemon_visits > w.most_daemon_visits)
                        w.most_daemon_visits = w.daemon_visits;
        }
        __real_kube_informer_each(i, fn, u);
}

static void on_started(const struct kube_request *q) {
        w.last_ms = uv_now(&w.loop);
        if (q->res != &kube_events)
                w.count.requests++;
        w.count.written += q->body.n;
        w.count.patches += q->res == &kube_nodes && q->verb == KUBE_MERGE_PATCH;
        w.count.reads += q->verb == KUBE_GET;
        w.count.lists += q->verb == KUBE_LIST;
}

static void on_watched(void) {
        w.count.requests++;
}

/* ---- the server ---- */

/* `of_daemons`: a Pod of a daemon, or another object with the daemons' name. */
static void send_object(const struct kube_resource *res, const char *ns, bool of_daemons,
                        const char *object) {
        w.count.read += kube_calls_send(&(struct kube_calls_event){
                .res = res, .ns = ns, .of_daemons = of_daemons, .object = str_from(object) });
}

static void send_node(size_t i) {
        struct buf whole = BUF_INIT(1 << 20), metadata = BUF_INIT(1 << 20);
        make_node(i, false, &whole);
        make_node(i, true, &metadata);
        w.count.read += kube_calls_send(&(struct kube_calls_event){
                .res = &kube_nodes, .object = { whole.p, whole.n }, .metadata = { metadata.p, metadata.n } });
        buf_done(&whole);
        buf_done(&metadata);
}

static void answer_list(struct kube_call *x) {
        struct buf b = BUF_INIT(64 << 20);
        bool nodes = x->q.res == &kube_nodes;
        size_t all = nodes || x->q.res == &kube_resource_slices ? w.n_nodes : 0;
        const struct kube_calls_page page = kube_calls_page_of(x, all, PAGE);
        buf_adds(&b, "{\"kind\":\"List\",\"items\":[");
        for (size_t i = page.first; i < page.end; i++) {
                buf_adds(&b, i > page.first ? "," : "");
                if (nodes)
                        make_node(i, x->q.metadata_only, &b);
                else
                        make_slice(i, &b);
        }
        kube_calls_list_end(&page, all, w.version, &b);
        w.count.listed += b.n;
        kube_calls_answer_buf(x, &b);
}

static void answer_node(struct kube_call *x) {
        struct buf b = BUF_INIT(1 << 20);
        size_t i = strtoul(x->name + strlen("node-"), NULL, 10);
        if (x->q.verb == KUBE_MERGE_PATCH) {
                bool *is = w.forming ? w.joined : w.labelled;
                assert_non_null(strstr(x->body, w.forming ? CD_LABEL : CD_LABEL_DAEMON));
                assert_false(is[i]);
                is[i] = true;
                ++*(w.forming ? &w.n_joined : &w.n_labelled);
                w.versions[i] = ++w.version;
        }
        make_node(i, x->q.metadata_only, &b);
        w.count.read += b.n;
        kube_calls_answer_buf(x, &b);
        if (x->q.verb == KUBE_MERGE_PATCH)
                send_node(i);
}

/* Merges a patch or an apply, and sets what the server sets. */
static void answer_write(struct kube_call *x) {
        yyjson_doc *change = yyjson_read(x->body, strlen(x->body), 0);
        const char *name =
                x->name ? x->name
                        : yyjson_get_str(yyjson_obj_get(
                                  yyjson_obj_get(yyjson_doc_get_root(change), "metadata"), "name"));
        struct made *m = made_at(x->q.res, name);
        w.n_fabrics += !m->json && x->q.res == &kube_fabrics;
        if (!m->json)
                m->json = xasprintf(
                        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"e0000000-8f4e-4f0e-9f0a-%012lld\"}}", name,
                        (long long)w.version);
        char *merged = kube_calls_merge(m->json, x->body, ++w.version);
        free(m->json);
        m->json = merged;
        w.count.read += strlen(m->json);
        kube_calls_answer(x, str_from(m->json));
        send_object(x->q.res, x->ns, streq(name, CD_DAEMON_OBJECT), m->json);
        if (x->q.res == &kube_fabrics)
                w.reports_due[partition_of(name)] = true;
        yyjson_doc_free(change);
}

static void answer(struct kube_call *x) {
        w.last_ms = uv_now(&w.loop);
        if (x->q.verb == KUBE_LIST)
                answer_list(x);
        else if (x->q.res == &kube_crds || x->q.res == &kube_events)
                kube_calls_answer_empty(x);
        else if (x->q.res == &kube_nodes)
                answer_node(x);
        else if (x->q.verb == KUBE_GET || x->q.verb == KUBE_DELETE)
                kube_calls_not_found(x);
        else
                answer_write(x);
}

static void send_reports(void);

static void on_tick(uv_timer_t *t) {
        kube_calls_serve(answer);
        if (uv_now(&w.loop) >= w.bookmark_ms) {
                w.count.read += kube_calls_bookmark(w.version);
                w.bookmark_ms = uv_now(&w.loop) + BOOKMARK_MS;
        }
        if (w.forming)
                send_reports();
}

/* ---- the daemons ---- */

/* `assignment`: of the fabric object; NULL: the daemon is idle. */
static void send_pod(size_t i, const char *fabric_uid, yyjson_val *assignment) {
        struct buf b = BUF_INIT(1 << 16);
        char hash[17];
        int64_t epoch = yyjson_get_sint(yyjson_obj_get(assignment, "epoch")),
                index = yyjson_get_sint(yyjson_obj_get(assignment, "index"));
        objects_daemonset_hash(&w.c.settings, hash);
        buf_addf(&b,
                 "{\"metadata\":{\"namespace\":\"" DRIVER_NS "\",\"name\":\"daemon-%zu\",\"uid\":"
                 "\"50000000-8f4e-4f0e-9f0a-%012zu\",\"resourceVersion\":\"%lld\",\"labels\":{"
                 "\"" CD_LABEL_CLIQUE "\":\"%s\"},\"annotations\":{\"" CD_ANNOTATION_TEMPLATE "\":\"%s\",",
                 i, i, (long long)++w.version, clique_of(i), hash);
        if (assignment)
                buf_addf(&b,
                         "\"" IMEX_ANNOTATION_STATE "\":\"READY\",\"" IMEX_ANNOTATION_READY
                         "\":\"true\",\"" IMEX_ANNOTATION_PEERS "\":\"%s\",",
                         w.peers);
        buf_addf(&b,
                 "\"" IMEX_ANNOTATION_REPORT "\":\"{\\\"claimUID\\\":\\\"" CLAIM_UID
                 "\\\",\\\"bootID\\\":\\\"" BOOT_ID "\\\",\\\"fabricUID\\\":\\\"%s\\\",",
                 i, fabric_uid);
        if (assignment)
                buf_addf(&b, "\\\"assignment\\\":\\\"%s/" DOMAIN_UID "/%lld/%lld\\\",\\\"ready\\\":true,",
                         clique_of(i), i / CLIQUE, (long long)index, (long long)epoch);
        buf_addf(&b,
                 "\\\"seen\\\":%lld,\\\"served\\\":%s}\"}},\"spec\":{\"nodeName\":\"node-%zu\"},\"status\":{"
                 "\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"10.%zu.%zu.%zu\"}],\"conditions\":[{\"type\":"
                 "\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"state\":{\"running\":{}}}]}}",
                 (long long)epoch, assignment ? "true" : "false", i, i >> 16 & 255, i >> 8 & 255, i & 255);
        send_object(&kube_pods, DRIVER_NS, true, buf_str(&b));
        buf_done(&b);
}

static yyjson_doc *fabric_of(size_t i) {
        const char *json = made_at(&kube_fabrics, clique_of(i))->json;
        return yyjson_read(json, strlen(json), 0);
}

static const char *uid_of(yyjson_doc *object) {
        return yyjson_get_str(yyjson_ptr_get(yyjson_doc_get_root(object), "/metadata/uid"));
}

/* The daemons report the assignments that the fabric objects list, in about REPORT_TICKS turns. */
static void send_reports(void) {
        yyjson_val *d, *x;
        size_t k, max, j, most, room = 1 + partitions() / REPORT_TICKS;
        for (size_t p = 0; p < partitions() && room; p++) {
                if (!w.reports_due[p])
                        continue;
                w.reports_due[p] = false;
                room--;
                yyjson_doc *f = fabric_of(p * CLIQUE);
                yyjson_arr_foreach (yyjson_obj_get(yyjson_doc_get_root(f), "domains"), k, max, d)
                        yyjson_arr_foreach (yyjson_obj_get(d, "assignments"), j, most, x) {
                                const char *node = yyjson_get_str(yyjson_obj_get(x, "node"));
                                size_t i = strtoul(node + strlen("node-"), NULL, 10);
                                if (w.serves[i])
                                        continue;
                                w.serves[i] = true;
                                w.n_serving++;
                                send_pod(i, uid_of(f), x);
                        }
                yyjson_doc_free(f);
        }
}

/* ---- the users ---- */

static void make_domain(size_t d) {
        char name[64];
        snprintf(name, sizeof name, "domain-%zu", d);
        struct made *m = made_at(&kube_compute_domains, name);
        m->json = xasprintf("{\"metadata\":{\"namespace\":\"user\",\"name\":\"%s\",\"uid\":\"" DOMAIN_UID
                            "\",\"resourceVersion\":\"%lld\",\"generation\":1},\"spec\":{\"numNodes\":0,"
                            "\"channel\":{\"resourceClaimTemplate\":{\"name\":\"%s-channel\"}}}}",
                            name, d, (long long)++w.version, name);
        send_object(&kube_compute_domains, "user", false, m->json);
}

static void allocate(size_t i) {
        struct buf b = BUF_INIT(1 << 16);
        buf_addf(&b,
                 "{\"metadata\":{\"namespace\":\"user\",\"name\":\"claim-%zu\",\"uid\":"
                 "\"30000000-8f4e-4f0e-9f0a-%012zu\",\"resourceVersion\":\"%lld\"},\"status\":{"
                 "\"allocation\":{"
                 "\"devices\":{\"results\":[{\"request\":\"channel\",\"driver\":\"" CD_DRIVER
                 "\",\"pool\":\"node-%zu\",\"device\":\"channel-0\"}],\"config\":[{\"source\":\"FromClaim\","
                 "\"requests\":[\"channel\"],\"opaque\":{\"driver\":\"" CD_DRIVER
                 "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION "\",\"domainID\":\"" DOMAIN_UID
                 "\",\"kind\":\"ComputeDomainChannelConfig\"}}}]}},\"reservedFor\":[{\"resource\":\"pods\","
                 "\"name\":\"worker-%zu\",\"uid\":\"60000000-8f4e-4f0e-9f0a-%012zu\"}]}}",
                 i, i, (long long)++w.version, i, i / CLIQUE, i, i);
        send_object(&kube_resource_claims, "user", false, buf_str(&b));
        buf_done(&b);
}

/* ---- the budgets ---- */

static void until_quiet(void) {
        do
                uv_run(&w.loop, UV_RUN_ONCE);
        while (!kube_calls_empty() || work_queue_depth(w.c.queue) || uv_now(&w.loop) < w.last_ms + QUIET_MS);
}

static void assert_budget(const char *what, size_t is, size_t most) {
        printf("%zu nodes: %s: %zu, at most %zu\n", w.n_nodes, what, is, most);
        if (is > most)
                fail_msg("%zu nodes: %s: %zu are more than %zu", w.n_nodes, what, is, most);
}

/* Each partition forms a ComputeDomain of all its nodes. */
static void form_domains(void) {
        size_t n = w.n_nodes;
        for (size_t i = 0; i < n; i++) {
                yyjson_doc *f = fabric_of(i);
                send_pod(i, uid_of(f), NULL);
                yyjson_doc_free(f);
        }
        until_quiet();
        w.forming = true;
        w.count = (struct count){ 0 };
        w.fabric_visits = w.most_daemon_visits = 0;
        for (size_t d = 0; d < partitions(); d++)
                make_domain(d);
        until_quiet();
        for (size_t i = 0; i < n; i++)
                allocate(i);
        w.last_ms = uv_now(&w.loop);
        until_quiet();
        assert_int_equal(w.n_serving, n);
        assert_int_equal(w.n_joined, n);
        assert_budget("joining: patches of Nodes", w.count.patches, PATCHES_PER_NODE * n);
        assert_budget("joining: reads of single objects", w.count.reads, 0);
        assert_budget("joining: all requests", w.count.requests,
                      PATCHES_PER_NODE * n + JOIN_PER_PARTITION * partitions());
        assert_budget("joining: bytes read", w.count.read,
                      JOIN_READ_PER_NODE * n + JOIN_READ_PER_PARTITION * partitions());
        assert_budget("joining: bytes written", w.count.written, JOIN_WRITTEN_PER_NODE * n);
        assert_budget("joining: visits of all fabric objects", w.fabric_visits, 0);
        assert_budget("joining: visits of all daemons and Nodes in half a second", w.most_daemon_visits,
                      DAEMON_VISITS);
}

/* Each daemon loses a peer, which does not concern the rollout of the daemons. */
static void lose_peers(void) {
        w.peers = "16/17";
        w.n_serving = w.fabric_visits = w.most_daemon_visits = 0;
        for (size_t i = 0; i < w.n_nodes; i++) {
                w.serves[i] = false;
                w.reports_due[i / CLIQUE] = true;
        }
        w.last_ms = uv_now(&w.loop);
        until_quiet();
        assert_int_equal(w.n_serving, w.n_nodes);
        assert_budget("a daemon loses a peer: visits of all fabric objects", w.fabric_visits, 0);
        assert_budget("a daemon loses a peer: visits of all daemons and Nodes", w.most_daemon_visits, 0);
}

static void label_and_form(size_t n) {
        static const char *namespaces[] = { DRIVER_NS };
        struct kube_config kube = { .server = (char *)(uintptr_t) "http://127.0.0.1:9" };
        struct kube_client *client;
        struct gates gates;
        struct err e;
        uv_timer_t tick;
        memset(&w, 0, sizeof w);
        kube_calls_begin(on_started, on_watched);
        w.n_nodes = n;
        w.version = 1000;
        w.peers = "17/17";
        w.labelled = xnew_n(bool, n);
        w.joined = xnew_n(bool, n);
        w.serves = xnew_n(bool, n);
        w.reports_due = xnew_n(bool, partitions());
        w.versions = xnew_n(int64_t, n);
        for (size_t i = 0; i < n; i++)
                w.versions[i] = 1;
        gates_init(&gates);
        w.config = (struct config){ .ns = DRIVER_NS,
                                    .daemon = { .ns = DRIVER_NS,
                                                .image = "i",
                                                .log_verbosity = "4",
                                                .gates = "",
                                                .priority_class = "",
                                                .imex_config = "" },
                                    .plugin_selector = "",
                                    .max_nodes = CLIQUE,
                                    .gpu_clique_label = true,
                                    .namespaces = namespaces,
                                    .n_namespaces = 1 };
        uv_loop_init(&w.loop);
        assert_int_equal(mode_resolve(&gates, NULL, NULL, &w.config.mode, &e), 0);
        assert_int_equal(kube_client_new(&w.loop,
                                         &(struct kube_client_options){ .config = &kube, .user_agent = "t" },
                                         &client, &e),
                         0);
        struct event_recorder *events = event_recorder_new(client, "t", NULL);
        struct metrics *metrics = metrics_new();
        uv_timer_init(&w.loop, &tick);
        uv_timer_start(&tick, on_tick, 0, TICK_MS);
        controller_start(&w.c,
                         &(struct controller_options){ &w.config, client, events, metrics, NULL, NULL });
        controller_lead(&w.c);
        while (!records_synced(&w.c) || w.n_labelled < n)
                uv_run(&w.loop, UV_RUN_ONCE);
        until_quiet();
        assert_int_equal(w.n_fabrics, partitions());
        assert_int_equal(w.n_labelled, n);
        assert_budget("patches of Nodes", w.count.patches, PATCHES_PER_NODE * n);
        assert_budget("reads of single objects", w.count.reads, OTHER);
        assert_budget("all requests", w.count.requests,
                      PATCHES_PER_NODE * n + OTHER_PER_PARTITION * partitions() + n / 100 + n / PAGE + OTHER);
        assert_budget("bytes read in answers and events", w.count.read,
                      READ_PER_NODE * n + READ_PER_PARTITION * partitions() + READ_OTHER);
        assert_budget("bytes read in lists", w.count.listed, LISTED_PER_NODE * n + READ_OTHER);
        assert_budget("bytes written", w.count.written, WRITTEN_PER_NODE * n + READ_OTHER);

        /* A report of each kubelet that changes nothing. */
        w.count = (struct count){ 0 };
        for (size_t i = 0; i < n; i++) {
                w.versions[i] = ++w.version;
                send_node(i);
        }
        w.last_ms = uv_now(&w.loop);
        until_quiet();
        assert_budget("requests after a report of each kubelet", w.count.requests, 0);
        assert_budget("bytes read in these reports", w.count.read, READ_PER_NODE / 2 * n);

        form_domains();
        lose_peers();
        controller_stop(&w.c);
        metrics_free(metrics);
        event_recorder_free(events);
        kube_client_free(client);
        uv_close((uv_handle_t *)&tick, NULL);
        uv_run(&w.loop, UV_RUN_DEFAULT);
        uv_loop_close(&w.loop);
        for (struct made *m = w.made, *next; m; m = next) {
                next = m->hh.next;
                HASH_DEL(w.made, m);
                free(m->json);
                free(m);
        }
        free(w.labelled);
        free(w.joined);
        free(w.serves);
        free(w.reports_due);
        free(w.versions);
}

static size_t given; /* the number of nodes on the command line; 0: none */

static void a_partition_keeps_the_budget(void **state) {
        label_and_form(given ? given : CLIQUE);
}

static void a_thousand_nodes_keep_the_budget(void **state) {
        label_and_form(1000);
}

int main(int argc, char **argv) {
        given = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
        const struct CMUnitTest one[] = { cmocka_unit_test(a_partition_keeps_the_budget) },
                                both[] = { cmocka_unit_test(a_partition_keeps_the_budget),
                                           cmocka_unit_test(a_thousand_nodes_keep_the_budget) };
        return given ? cmocka_run_group_tests_name("budget", one, NULL, NULL)
                     : cmocka_run_group_tests_name("budget", both, NULL, NULL);
}
