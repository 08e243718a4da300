/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the controller's decisions: the real controller with its informers, caches, queue and writes, and
 * an API server of a few functions in this process (world/kube_calls). CPU time is measured from the watch
 * event to the decision, and until nothing happens any more. Memory is private dirty pages, without those of
 * the server. Every node has a daemon that is READY in the domain of its claim, with the assignment of the
 * fabric object.
 *
 *     plan NODES DOMAINS [NODE_BYTES]     defaults: 10000 1 2000 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <uthash.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/stderr.h"
#include "base/log.h"
#include "controller/controller.h"
#include "rules/assignment.h"
#include "world/kube_calls.h"

enum { CLIQUE = 18, PAGE = 500, QUIET_MS = 1400, CALM_MS = 5500, TICK_MS = 20 };

#define DRIVER_NS "nvidia-compute-domains"
#define USER_NS "team-ml"
#define BOOT_ID "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

static size_t n_nodes, n_domains, node_bytes;
static int64_t version = 1000000;
static uv_loop_t loop;
static struct controller c;
static struct config config;
static uint64_t last_ms; /* the time of the last request or answer */
static size_t n_writes;

/* ---- the memory of the server, which does not count ---- */

static char *own;
static size_t own_used;
enum { OWN_BYTES = 1 << 30 };

static char *keep(const char *text, size_t n) {
        char *p = own + own_used;
        BUG_ON(own_used + n + 1 > OWN_BYTES);
        memcpy(p, text, n);
        p[n] = '\0';
        own_used += n + 1;
        return p;
}

/* ---- stored objects ---- */

struct stored {
        UT_hash_handle hh;
        const char *json;
        char key[];
};
static struct stored *stored;

static struct stored *stored_at(const struct kube_resource *res, const char *ns, const char *name,
                                bool make) {
        char key[512];
        struct stored *s;
        int n = snprintf(key, sizeof key, "%s/%s/%s", res->plural, str_or(ns, ""), name);
        HASH_FIND_STR(stored, key, s);
        if (!s && make) {
                own_used = (own_used + 15) & ~(size_t)15;
                s = (struct stored *)(void *)(own + own_used);
                own_used += sizeof *s;
                keep(key, (size_t)n);
                HASH_ADD_STR(stored, key, s);
        }
        return s;
}

/* ---- generated objects ---- */

static size_t domain_of(size_t i) {
        return i * n_domains / n_nodes;
}

static void uid_of(char kind, size_t i, char ret[static 37]) {
        snprintf(ret, 37, "%c0000000-8f4e-4f0e-9f0a-%012zu", kind, i);
}

static void node_name(size_t i, char ret[static 64]) {
        snprintf(ret, 64, "gpu-rack-%04zu-node-%02zu", i / CLIQUE, i % CLIQUE);
}

static const char *clique_of(size_t i) {
        static char id[64];
        snprintf(id, sizeof id, "7a3b2f10-1111-4222-8333-444455556666.%zu", i / CLIQUE);
        return id;
}

static void meta(struct buf *b, const char *ns, const char *name, const char *uid, const char *rest) {
        buf_adds(b, "{\"metadata\":{");
        if (ns)
                buf_addf(b, "\"namespace\":\"%s\",", ns);
        buf_addf(b,
                 "\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%lld\",\"generation\":1,"
                 "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"%s}",
                 name, uid, (long long)++version, rest);
}

static void conditions(struct buf *b, const char *const *types, size_t n, const char *ready) {
        for (size_t i = 0; i < n; i++)
                buf_addf(b,
                         "%s{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"KubeletHasSufficientMemory\","
                         "\"message\":\"kubelet has sufficient memory available\","
                         "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}",
                         i ? "," : "", types[i], streq(types[i], "Ready") ? ready : "True");
}

static void make_node(size_t i, struct buf *b) {
        static const char *const types[] = { "NetworkUnavailable", "MemoryPressure", "DiskPressure",
                                             "PIDPressure", "Ready" };
        char name[64], uid[37], cd[37], rest[1024];
        node_name(i, name);
        uid_of('1', i, uid);
        uid_of('c', domain_of(i), cd);
        snprintf(rest, sizeof rest,
                 ",\"labels\":{\"" CD_LABEL "\":\"%s\",\"" CD_LABEL_DAEMON "\":\"true\",\"" GPU_CLIQUE_LABEL
                 "\":\"%s\",\"nvidia.com/gpu.present\":\"true\"},\"annotations\":{\"" CD_ANNOTATION_GPU_CLIQUE
                 "\":\"%s\"}",
                 cd, clique_of(i), clique_of(i));
        size_t from = b->n;
        meta(b, NULL, name, uid, rest);
        buf_adds(b, ",\"spec\":{\"taints\":[{\"key\":\"nvidia.com/gpu\",\"effect\":\"NoSchedule\"}]},"
                    "\"status\":{\"nodeInfo\":{\"bootID\":\"" BOOT_ID "\"},"
                    "\"conditions\":[");
        conditions(b, types, ARRAY_LEN(types), "True");
        buf_adds(b, "],\"images\":[");
        for (size_t k = 0; b->n - from < node_bytes; k++)
                buf_addf(b,
                         "%s{\"names\":[\"registry.example.com/team/image@sha256:"
                         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"],\"sizeBytes\":%"
                         "zu}",
                         k ? "," : "", k);
        buf_adds(b, "]}}");
}

static void make_slice(size_t i, struct buf *b) {
        char node[64], name[128], uid[37];
        node_name(i, node);
        uid_of('2', i, uid);
        snprintf(name, sizeof name, "00000-%s-%s-x%04zu", CD_DRIVER, node, i);
        meta(b, NULL, name, uid, "");
        buf_addf(b,
                 ",\"spec\":{\"driver\":\"" CD_DRIVER
                 "\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\"},\"devices\":[",
                 node, node);
        for (int k = 0; k < 2; k++)
                buf_addf(b,
                         "%s{\"name\":\"%s\",\"attributes\":{\"cliqueID\":{\"string\":\"%s\"},\"id\":{"
                         "\"int\":0},"
                         "\"type\":{\"string\":\"%s\"}}}",
                         k ? "," : "", k ? "daemon-0" : "channel-0", clique_of(i), k ? "daemon" : "channel");
        buf_adds(b, "]}}");
}

/* The channel claims first, then those of the daemons. */
static void make_claim(size_t i, struct buf *b) {
        bool daemon = i >= n_nodes;
        const char *what = daemon ? "daemon" : "channel";
        char node[64], name[128], uid[37], cd[37], pod[37];
        size_t k = daemon ? i - n_nodes : i;
        node_name(k, node);
        uid_of(daemon ? '4' : '3', k, uid);
        uid_of('c', domain_of(k), cd);
        uid_of(daemon ? '5' : '6', k, pod);
        snprintf(name, sizeof name, "training-%05zu-%s-abcde", k, what);
        meta(b, daemon ? DRIVER_NS : USER_NS, name, uid,
             ",\"annotations\":{\"resource.kubernetes.io/pod-claim-name\":\"channel\"}");
        buf_addf(b,
                 ",\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"%s\",\"driver\":"
                 "\"" CD_DRIVER "\",\"pool\":\"%s\",\"device\":\"%s-0\"}],\"config\":[{\"source\":"
                 "\"FromClaim\",\"requests\":[\"%s\"],"
                 "\"opaque\":{\"driver\":\"" CD_DRIVER "\",\"parameters\":{%s\"apiVersion\":\"" CD_API_VERSION
                 "\",\"domainID\":\"%s\",\"kind\":\"ComputeDomain%sConfig\"}}}]}},"
                 "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"training-%05zu\",\"uid\":\"%s\"}]}}",
                 what, node, what, what, daemon ? "" : "\"allocationMode\":\"Single\",",
                 daemon ? CD_DAEMON_DOMAIN : cd, daemon ? "Daemon" : "Channel", k, pod);
}

/* The assignment of a node: its index is its number in the partition, its epoch is one more. */
static size_t index_of(size_t i) {
        return i % CLIQUE;
}

static void infix_of(size_t domain, char ret[static 11]) {
        snprintf(ret, 11, "%010zx", domain);
}

/* The report of a daemon, as in the annotation: a JSON string in JSON. */
static void make_report(size_t i, struct buf *b) {
        char claim[37], cd[37], fabric[37];
        uid_of('4', i, claim);
        uid_of('c', domain_of(i), cd);
        uid_of('f', i / CLIQUE, fabric);
        buf_addf(b,
                 "{\\\"claimUID\\\":\\\"%s\\\",\\\"bootID\\\":\\\"" BOOT_ID
                 "\\\",\\\"fabricUID\\\":\\\"%s\\\",\\\"assignment\\\":\\\"%s/%s/%zu/"
                 "%zu\\\",\\\"ready\\\":true,\\\"left\\\":\\\"\\\",\\\"seen\\\":%d,\\\"recount\\\":0,"
                 "\\\"served\\\":true,"
                 "\\\"waitsFor\\\":\\\"\\\"}",
                 claim, fabric, clique_of(i), cd, index_of(i), index_of(i) + 1, CLIQUE);
}

static void make_pod(size_t i, bool ready, struct buf *b) {
        static const char *const types[] = { "PodReadyToStartContainers", "Initialized", "Ready",
                                             "ContainersReady", "PodScheduled" };
        char node[64], name[128], uid[37], cd[37], hash[17];
        struct buf rest = BUF_INIT(4096);
        node_name(i, node);
        uid_of('5', i, uid);
        uid_of('c', domain_of(i), cd);
        snprintf(name, sizeof name, CD_DAEMON_OBJECT "-%05zu", i);
        objects_daemonset_hash(&c.settings, hash);
        buf_addf(&rest,
                 ",\"labels\":{\"" CD_LABEL_COMPONENT "\":\"" CD_DAEMON_OBJECT "\",\"" CD_LABEL
                 "\":\"%s\",\"" CD_LABEL_CLIQUE "\":\"%s\"},\"annotations\":{\"" CD_ANNOTATION_TEMPLATE
                 "\":\"%s\",\"" IMEX_ANNOTATION_STATE "\":\"%s\",\"" IMEX_ANNOTATION_INDEX
                 "\":\"%zu\",\"" IMEX_ANNOTATION_PEERS "\":\"17/17\",\"" IMEX_ANNOTATION_READY
                 "\":\"%s\",\"" IMEX_ANNOTATION_REPORT "\":\"",
                 cd, clique_of(i), hash, ready ? "READY" : "STARTING", index_of(i), ready ? "true" : "false");
        make_report(i, &rest);
        buf_adds(&rest, "\"}");
        meta(b, DRIVER_NS, name, uid, buf_str(&rest));
        buf_done(&rest);
        buf_addf(b,
                 ",\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"10."
                 "%zu.%zu.%zu\"}],"
                 "\"conditions\":[",
                 node, i >> 16 & 255, i >> 8 & 255, i & 255);
        conditions(b, types, ARRAY_LEN(types), ready ? "True" : "False");
        buf_adds(b, "],\"containerStatuses\":[{\"state\":{\"running\":{}},\"restartCount\":0}]}}");
}

static void make_assignment(size_t i, struct buf *b) {
        char node[64], claim[37];
        node_name(i, node);
        uid_of('4', i, claim);
        buf_addf(b,
                 "{\"node\":\"%s\",\"index\":%zu,\"epoch\":%zu,\"claimUID\":\"%s\",\"bootID\":\"" BOOT_ID
                 "\",\"ip\":\"10.%zu.%zu.%zu\"}",
                 node, index_of(i), index_of(i) + 1, claim, i >> 16 & 255, i >> 8 & 255, i & 255);
}

/* The assignments of the nodes in the domain of node `first`. Returns the first node of the next domain. */
static size_t make_fabric_domain(size_t first, size_t end, struct buf *b) {
        char uid[37], infix[11];
        size_t i = first, d = domain_of(first);
        uid_of('c', d, uid);
        infix_of(d, infix);
        buf_addf(b,
                 "{\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"" USER_NS
                 "\",\"name\":\"training-%05zu\",\"uid\":\"%s\"},\"infix\":\"%s\",\"slots\":%d,\"port\":%lld,"
                 "\"assignments\":[",
                 d, uid, infix, CLIQUE, (long long)assignment_port(infix));
        for (; i < end && domain_of(i) == d; i++) {
                buf_adds(b, i > first ? "," : "");
                make_assignment(i, b);
        }
        buf_adds(b, "]}");
        return i;
}

static void make_fabric(size_t k, struct buf *b) {
        size_t first = k * CLIQUE, end = first + CLIQUE < n_nodes ? first + CLIQUE : n_nodes;
        char uid[37], node[64];
        uid_of('f', k, uid);
        meta(b, NULL, clique_of(first), uid, "");
        buf_addf(b, ",\"tableOf\":\"%s\",\"epoch\":%d,\"nodes\":%zu,\"members\":[", uid, CLIQUE, end - first);
        for (size_t i = first; i < end; i++) {
                node_name(i, node);
                buf_addf(b, "%s\"%s\"", i > first ? "," : "", node);
        }
        buf_adds(b, "],\"domains\":[");
        for (size_t i = first; i < end;) {
                buf_adds(b, i > first ? "," : "");
                i = make_fabric_domain(i, end, b);
        }
        buf_adds(b, "]}");
}

static void make_domain(size_t i, struct buf *b) {
        char name[64], uid[37];
        uid_of('c', i, uid);
        snprintf(name, sizeof name, "training-%05zu", i);
        meta(b, USER_NS, name, uid, "");
        buf_addf(b,
                 ",\"spec\":{\"numNodes\":0,\"channel\":{\"allocationMode\":\"Single\","
                 "\"resourceClaimTemplate\":{"
                 "\"name\":\"%s-channel\"}}}}",
                 name);
}

static size_t gone_claim = SIZE_MAX;

static size_t count_of(const struct kube_resource *res) {
        return res == &kube_compute_domains   ? n_domains
               : res == &kube_resource_claims ? 2 * n_nodes
               : res == &kube_fabrics         ? (n_nodes + CLIQUE - 1) / CLIQUE
               : res == &kube_nodes || res == &kube_resource_slices || res == &kube_pods ? n_nodes
                                                                                         : 0;
}

static void make(const struct kube_resource *res, size_t i, struct buf *b) {
        if (res == &kube_nodes)
                make_node(i, b);
        else if (res == &kube_resource_slices)
                make_slice(i, b);
        else if (res == &kube_resource_claims)
                make_claim(i, b);
        else if (res == &kube_pods)
                make_pod(i, true, b);
        else if (res == &kube_fabrics)
                make_fabric(i, b);
        else
                make_domain(i, b);
}

/* ---- the requests of the controller ---- */

static void on_started(const struct kube_request *q) {
        last_ms = uv_now(&loop);
        n_writes += q->verb != KUBE_LIST && q->verb != KUBE_GET && q->res != &kube_events;
}

static void on_watched(void) {
}

/* ---- the server ---- */

static void send_event(const struct kube_resource *res, const char *ns, bool of_daemons, const char *type,
                       struct str object) {
        kube_calls_send(&(struct kube_calls_event){
                .res = res, .ns = ns, .type = type, .of_daemons = of_daemons, .object = object });
}

static void answer_list(struct kube_call *x) {
        struct buf b = BUF_INIT(64 << 20);
        bool first = true;
        /* All Pods are those of daemons. */
        size_t all =
                x->q.res == &kube_pods && !kube_calls_selects(x->selection, true) ? 0 : count_of(x->q.res);
        const struct kube_calls_page page = kube_calls_page_of(x, all, PAGE);
        buf_adds(&b, "{\"kind\":\"List\",\"items\":[");
        for (size_t i = page.first; i < page.end; i++) {
                if (x->q.res == &kube_resource_claims &&
                    (i == gone_claim || (x->q.ns && streq(x->ns, i < n_nodes ? DRIVER_NS : USER_NS))))
                        continue;
                if (!first)
                        buf_adds(&b, ",");
                first = false;
                make(x->q.res, i, &b);
        }
        kube_calls_list_end(&page, all, version, &b);
        kube_calls_answer_buf(x, &b);
}

/* Merges patches and applies, and sets members that the server would set. */
static void answer_write(struct kube_call *x) {
        struct stored *s = stored_at(x->q.res, x->ns, x->name, true);
        struct buf made = BUF_INIT(1 << 20);
        const char *was = s->json;
        if (!was && x->q.res == &kube_compute_domains)
                make_domain(strtoul(x->name + strlen("training-"), NULL, 10), &made);
        else if (!was && x->q.res == &kube_fabrics)
                make_fabric(strtoul(strrchr(x->name, '.') + 1, NULL, 10), &made);
        else if (!was && x->q.res == &kube_nodes)
                make_node(CLIQUE * strtoul(x->name + strlen("gpu-rack-"), NULL, 10) +
                                  strtoul(x->name + strlen("gpu-rack-0000-node-"), NULL, 10),
                          &made);
        else if (!was)
                buf_addf(&made, "{\"metadata\":{\"uid\":\"e0000000-8f4e-4f0e-9f0a-%012lld\"}}",
                         (long long)version);
        was = was ? was : buf_str(&made);
        char *text = kube_calls_merge(was, x->body, ++version);
        s->json = keep(text, strlen(text));
        free(text);
        buf_done(&made);
        kube_calls_answer(x, str_from(s->json));
        send_event(x->q.res, x->ns, streq(x->name, CD_DAEMON_OBJECT), "MODIFIED", str_from(s->json));
}

static void answer(struct kube_call *x) {
        last_ms = uv_now(&loop);
        if (x->q.verb == KUBE_LIST)
                answer_list(x);
        else if (x->q.res == &kube_crds)
                kube_calls_answer_empty(x); /* up to date */
        else if (x->q.verb == KUBE_GET || x->q.verb == KUBE_DELETE || x->q.res == &kube_events)
                kube_calls_not_found(x);
        else
                answer_write(x);
}

static void on_tick(uv_timer_t *t) {
        kube_calls_serve(answer);
}

/* ---- measuring ---- */

static double cpu_ms(void) {
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Private dirty pages in KiB, without those of the server. */
static size_t dirty_kib(void) {
        char line[256];
        size_t kib = 0;
        malloc_trim(0);
        FILE *f = fopen("/proc/self/smaps_rollup", "re");
        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "Private_Dirty: %zu kB", &kib) == 1)
                        break;
        if (f)
                fclose(f);
        return kib - (own_used + 4095) / 4096 * 4;
}

static size_t peak_kib(void) {
        char line[256];
        size_t kib = 0;
        FILE *f = fopen("/proc/self/status", "re");
        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "VmHWM: %zu kB", &kib) == 1)
                        break;
        if (f)
                fclose(f);
        return kib;
}

static void until_quiet_for(uint64_t ms) {
        do
                uv_run(&loop, UV_RUN_ONCE);
        while (!kube_calls_empty() || work_queue_depth(c.queue) || uv_now(&loop) < last_ms + ms);
}

/* Waits for the decision, and then until nothing happens any more. */
static void measure(const char *what, double begin) {
        size_t writes = n_writes;
        for (int turn = 0; turn < 3 || work_queue_depth(c.queue); turn++)
                uv_run(&loop, UV_RUN_NOWAIT);
        double decided = cpu_ms();
        last_ms = uv_now(&loop);
        until_quiet_for(QUIET_MS);
        printf("%-44s %9.2f ms decided, %9.2f ms until quiet, %zu writes\n", what, decided - begin,
               cpu_ms() - begin, n_writes - writes);
}

static void flip(size_t i, bool ready) {
        struct buf b = BUF_INIT(1 << 16);
        make_pod(i, ready, &b);
        double begin = cpu_ms();
        send_event(&kube_pods, DRIVER_NS, true, "MODIFIED", (struct str){ buf_str(&b), b.n });
        measure(ready ? "one daemon becomes ready again" : "one daemon becomes not ready", begin);
        buf_done(&b);
}

static void claim(size_t i, const char *type, const char *what) {
        struct buf b = BUF_INIT(1 << 16);
        make_claim(i, &b);
        gone_claim = streq(type, "DELETED") ? i : SIZE_MAX;
        double begin = cpu_ms();
        send_event(&kube_resource_claims, USER_NS, false, type, (struct str){ buf_str(&b), b.n });
        measure(what, begin);
        buf_done(&b);
}

static void steady(void) {
        char uid[37];
        uid_of('c', n_domains / 2, uid);
        double begin = cpu_ms();
        records_queue_domain(&c, uid);
        measure("steady: one domain is reconciled", begin);
}

static void on_synced(void *u) {
}

int main(int argc, char **argv) {
        static const char *namespaces[] = { DRIVER_NS };
        struct kube_config kube = { .server = (char *)(uintptr_t) "http://127.0.0.1:9" };
        struct kube_client *client;
        struct gates gates;
        struct err e;
        uv_timer_t tick;
        n_nodes = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
        n_domains = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
        node_bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 2000;
        own = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0);
        gates_init(&gates);
        config = (struct config){ .ns = DRIVER_NS,
                                  .daemon = { .ns = DRIVER_NS,
                                              .image = "image:1",
                                              .log_verbosity = "4",
                                              .gates = "IMEXDaemonsWithDNSNames=true,",
                                              .priority_class = "system-node-critical",
                                              .imex_config = "" },
                                  .plugin_selector = "",
                                  .max_nodes = CLIQUE,
                                  .gpu_clique_label = true,
                                  .namespaces = namespaces,
                                  .n_namespaces = 1 };
        uv_loop_init(&loop);
        if (mode_resolve(&gates, NULL, NULL, &config.mode, &e) < 0 ||
            kube_client_new(&loop, &(struct kube_client_options){ .config = &kube, .user_agent = "bench" },
                            &client, &e) < 0) {
                fprintf(stderr, "%s\n", e.msg);
                return 1;
        }
        struct event_recorder *events = event_recorder_new(client, "bench", NULL);
        struct metrics *metrics = metrics_new();
        size_t before = dirty_kib();
        uv_timer_init(&loop, &tick);
        uv_timer_start(&tick, on_tick, 0, TICK_MS);
        double begin = cpu_ms();
        kube_calls_begin(on_started, on_watched);
        controller_start(&c,
                         &(struct controller_options){ &config, client, events, metrics, on_synced, NULL });
        while (!records_synced(&c))
                uv_run(&loop, UV_RUN_ONCE);
        printf("%zu nodes of %zu bytes, %zu domains, %zu claims\n", n_nodes, node_bytes, n_domains,
               2 * n_nodes);
        printf("%-44s %9.2f ms (including generation of the lists), peak resident memory %zu KiB\n",
               "caches filled", cpu_ms() - begin, peak_kib());
        size_t synced = dirty_kib() - before;
        begin = cpu_ms();
        controller_lead(&c);
        measure("first plan of everything", begin);
        until_quiet_for(CALM_MS);
        size_t idle = dirty_kib() - before;
        printf("%-44s %9zu KiB after sync, %zu KiB when formed: %zu bytes a node\n", "private dirty", synced,
               idle, idle * 1024 / n_nodes);
        for (int i = 0; i < 3; i++)
                steady();
        for (int i = 0; i < 2; i++) {
                flip(n_nodes / 2, false);
                flip(n_nodes / 2, true);
        }
        claim(n_nodes / 2, "DELETED", "one claim is deleted");
        claim(n_nodes / 2, "ADDED", "one claim is created");
        printf("%-44s %9zu KiB at the end\n", "private dirty", dirty_kib() - before);
        return 0;
}
