/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "world/fake_server.h"
#include "kube/kube_client.h"
#include "kube/kube_error.h"

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct metrics *metrics;
        struct fake_conn *last;
        char method[16], path[2048], head[4096], body[4096];
        unsigned calls, failures_first; /* the first failures_first answers are `failure` */
        int failure;
        const char *failure_headers, *failure_body, *answer;
        bool silent;
        char token_file[64];

        bool done, ok;
        unsigned n_done, n_retries;
        struct err err;
        char name[256];
        struct kube_call *call;
        void (*on_done)(struct world *w);

        const char *kind, *object; /* of the last request */
        bool lists;
};

static void answer(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(freep) char *object = xasprintf("{\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"}}", w->kind,
                                                  str_or(w->object, "n"));
        if (w->answer)
                fake_reply(c, 200, NULL, w->answer);
        else if (w->lists)
                fake_list(c, r, w->kind, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
        else
                fake_reply(c, 200, NULL, object);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        w->last = c;
        snprintf(w->method, sizeof w->method, "%s", r->method);
        snprintf(w->path, sizeof w->path, "%s", r->path);
        snprintf(w->head, sizeof w->head, "%s", r->head);
        snprintf(w->body, sizeof w->body, "%s", r->body);
        w->calls++;
        if (w->silent)
                return;
        if (w->failures_first) {
                w->failures_first--;
                fake_reply(c, w->failure, w->failure_headers, w->failure_body ? w->failure_body : "");
                return;
        }
        answer(w, c, r);
}

static const struct kube_resource compute_domains = { "resource.nvidia.com", "v1beta1", "computedomains",
                                                      "ComputeDomain",       true,      NULL };

static int set_up_with(void **state, double qps, unsigned burst, bool token_file) {
        struct world *w = xnew(struct world);
        struct kube_config k = { 0 };
        struct err e;

        uv_loop_init(&w->loop);
        w->metrics = metrics_new();
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        k.server = xasprintf("http://127.0.0.1:%d", fake_server_port(w->server));
        if (token_file) {
                snprintf(w->token_file, sizeof w->token_file, "/tmp/kube-token-XXXXXX");
                int fd = mkstemp(w->token_file);
                assert_int_equal(write(fd, "first\n", 6), 6);
                close(fd);
                k.token_file = w->token_file;
        }
        assert_int_equal(kube_client_new(&w->loop,
                                         &(struct kube_client_options){ .config = &k,
                                                                        .user_agent = "t",
                                                                        .qps = qps,
                                                                        .burst = burst,
                                                                        .metrics = w->metrics,
                                                                        .metrics_prefix = "nvidia_dra" },
                                         &w->client, &e),
                         0);
        free(k.server);
        *state = w;
        return 0;
}

static int set_up(void **state) {
        return set_up_with(state, 0, 0, false);
}

static int set_up_slow(void **state) {
        return set_up_with(state, 20, 2, false);
}

static int set_up_token(void **state) {
        return set_up_with(state, 0, 0, true);
}

static int tear_down(void **state) {
        struct world *w = *state;
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        metrics_free(w->metrics);
        if (*w->token_file)
                unlink(w->token_file);
        free(w);
        return 0;
}

static void on_done(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;
        const char *name = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "name"));
        w->done = true;
        w->n_done++;
        w->ok = !e;
        w->call = NULL;
        if (e)
                w->err = *e;
        snprintf(w->name, sizeof w->name, "%s", name ? name : "");
        if (w->on_done)
                w->on_done(w);
}

static void start(struct world *w, struct kube_request r) {
        r.done = on_done;
        r.u = w;
        w->kind = r.res->kind;
        w->object = r.name;
        w->lists = r.verb == KUBE_LIST;
        w->done = false;
        w->call = kube_start(w->client, &r);
        assert_false(w->done);
}

static void finish(struct world *w, struct kube_request r) {
        start(w, r);
        run_until(&w->loop, &w->done);
}

static void test_verbs(void **state) {
        struct world *w = *state;

        finish(w, (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        assert_true(w->ok);
        assert_string_equal(w->name, "p");
        assert_string_equal(w->method, "GET");
        assert_string_equal(w->path, "/api/v1/namespaces/a/pods/p");
        assert_true(fake_has(w->head, "Accept: application/json\r\n"));

        finish(w, (struct kube_request){ .verb = KUBE_LIST,
                                         .res = &kube_pods,
                                         .label_selector = "a=b,c in (d,e)",
                                         .field_selector = "spec.nodeName=x",
                                         .query = "limit=7",
                                         .metadata_only = true });
        assert_string_equal(
                w->path,
                "/api/v1/"
                "pods?labelSelector=a%3Db%2Cc%20in%20%28d%2Ce%29&fieldSelector=spec.nodeName%3Dx&limit=7");
        assert_true(fake_has(w->head,
                             "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n"));

        finish(w, (struct kube_request){ .verb = KUBE_CREATE,
                                         .res = &kube_leases,
                                         .ns = "a",
                                         .name = "ignored",
                                         .body = STR("{}"),
                                         .manager = "m e" });
        assert_string_equal(w->method, "POST");
        assert_string_equal(w->path, "/apis/coordination.k8s.io/v1/namespaces/a/leases?fieldManager=m%20e");
        assert_string_equal(w->body, "{}");
        assert_true(fake_has(w->head, "Content-Type: application/json\r\n"));

        finish(w, (struct kube_request){ .verb = KUBE_APPLY,
                                         .res = &kube_daemonsets,
                                         .ns = "a",
                                         .name = "d",
                                         .body = STR("{\"x\":1}"),
                                         .manager = "m" });
        assert_string_equal(w->method, "PATCH");
        assert_string_equal(w->path, "/apis/apps/v1/namespaces/a/daemonsets/d?fieldManager=m&force=true");
        assert_true(fake_has(w->head, "Content-Type: application/apply-patch+yaml\r\n"));

        finish(w, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                         .res = &compute_domains,
                                         .ns = "a",
                                         .name = "d",
                                         .subresource = "status",
                                         .body = STR("{}") });
        assert_string_equal(w->path,
                            "/apis/resource.nvidia.com/v1beta1/namespaces/a/computedomains/d/status");
        assert_true(fake_has(w->head, "Content-Type: application/merge-patch+json\r\n"));

        finish(w, (struct kube_request){
                          .verb = KUBE_UPDATE, .res = &kube_nodes, .name = "n1", .body = STR("{}") });
        assert_string_equal(w->method, "PUT");
        assert_string_equal(w->path, "/api/v1/nodes/n1");

        finish(w, (struct kube_request){ .verb = KUBE_DELETE,
                                         .res = &kube_crds,
                                         .name = "x.y",
                                         .body = STR("{\"preconditions\":{}}") });
        assert_string_equal(w->method, "DELETE");
        assert_string_equal(w->path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x.y");
        assert_string_equal(w->body, "{\"preconditions\":{}}");
}

static void test_names_cannot_become_paths(void **state) {
        static const char *const bad[] = { "", ".", ".." };
        struct world *w = *state;

        finish(w, (struct kube_request){
                          .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "../../nodes?x=y#z" });
        assert_string_equal(w->path, "/api/v1/namespaces/a/pods/..%2F..%2Fnodes%3Fx%3Dy%23z");
        unsigned calls = w->calls;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                finish(w, (struct kube_request){
                                  .verb = KUBE_DELETE, .res = &kube_pods, .ns = "a", .name = bad[i] });
                assert_int_equal(w->err.kind, ERR_INVALID);
                finish(w, (struct kube_request){
                                  .verb = KUBE_DELETE, .res = &kube_pods, .ns = bad[i], .name = "x" });
                assert_int_equal(w->err.kind, ERR_INVALID);
        }
        finish(w, (struct kube_request){ .verb = KUBE_DELETE, .res = &kube_pods, .ns = "a" });
        assert_int_equal(w->err.kind, ERR_INVALID);
        finish(w, (struct kube_request){ .verb = KUBE_DELETE, .res = &kube_pods, .name = "a" });
        assert_int_equal(w->err.kind, ERR_INVALID);
        finish(w, (struct kube_request){ .verb = KUBE_CREATE, .res = &kube_pods, .body = STR("{}") });
        assert_int_equal(w->err.kind, ERR_INVALID);
        assert_int_equal(w->calls, calls);
}

/* ---- metrics of requests ---- */

static void assert_metrics_contain(struct world *w, const char *line) {
        struct buf b = BUF_INIT(1 << 20);
        _cleanup_(freep) char *whole = xasprintf("\n%s\n", line);
        kube_client_metrics(w->client);
        metrics_render(w->metrics, &b);
        if (!strstr(buf_str(&b), whole))
                fail_msg("no '%s' in\n%s", line, buf_str(&b));
        buf_done(&b);
}

static void test_each_attempt_is_counted_by_its_result(void **state) {
        const struct kube_request get = { .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" };
        struct world *w = *state;
        w->failures_first = 2;
        w->failure = 503;
        finish(w, get);
        assert_true(w->ok);
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"get\",resource=\"pods\",code=\"503\"} 2");
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"get\",resource=\"pods\",code=\"200\"} 1");
        assert_metrics_contain(
                w, "nvidia_dra_kube_request_duration_seconds_count{verb=\"get\",resource=\"pods\"} 3");
        finish(w, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                         .res = &compute_domains,
                                         .ns = "a",
                                         .name = "d",
                                         .subresource = "status",
                                         .body = STR("{}") });
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"patch\",resource=\"computedomains/status\","
                   "code=\"200\"} 1");
        /* Status numbers that no server should send do not create series. */
        w->failures_first = 1;
        w->failure = 999;
        finish(w, (struct kube_request){ .verb = KUBE_GET, .res = &kube_nodes, .name = "n", .attempts = 1 });
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"get\",resource=\"nodes\",code=\"error\"} 1");
}

static void test_waiting_requests_are_counted_by_lane(void **state) {
        const struct kube_request get = { .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" };
        struct world *w = *state;
        assert_metrics_contain(w, "nvidia_dra_kube_requests_waiting{lane=\"write\"} 0");
        w->silent = true;
        for (size_t i = 0; i < 40; i++) /* 32 are sent at a time */
                start(w, get);
        assert_metrics_contain(w, "nvidia_dra_kube_requests_in_flight{lane=\"read\"} 32");
        assert_metrics_contain(w, "nvidia_dra_kube_requests_waiting{lane=\"read\"} 8");
}

/* As the API server writes it; %s: more members. */
#define STATUS(members)                                                                                      \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"     \
        "\"pods \\\"p\\\" and so on\",\"code\":1" members "}"
#define REASON(r) STATUS(",\"reason\":\"" r "\"")
#define NOT_FOUND(details) STATUS(",\"reason\":\"NotFound\",\"details\":{" details "}")
#define THE_POD "\"name\":\"p\",\"kind\":\"pods\""

static void test_errors_have_the_kind_of_their_cause(void **state) {
        static const struct {
                int status;
                const char *body;
                enum err_kind kind;
        } cases[] = {
                { 400, REASON("BadRequest"), ERR_INVALID },
                { 401, REASON("Unauthorized"), ERR_DENIED },
                { 403, REASON("Forbidden"), ERR_DENIED },
                { 403, STATUS(""), ERR_DENIED },
                { 404, NOT_FOUND(THE_POD), ERR_NOT_FOUND },
                { 409, REASON("Conflict"), ERR_CONFLICT },
                { 409, REASON("AlreadyExists"), ERR_CONFLICT },
                { 410, REASON("Expired"), ERR_GONE },
                { 410, REASON("Gone"), ERR_GONE },
                { 413, STATUS(""), ERR_INVALID },
                { 415, REASON("UnsupportedMediaType"), ERR_INVALID },
                { 422, REASON("Invalid"), ERR_INVALID },
        };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                unsigned calls = w->calls;
                w->failures_first = 1;
                w->failure = cases[i].status;
                w->failure_body = cases[i].body;
                finish(w,
                       (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
                assert_false(w->ok);
                assert_int_equal(w->err.kind, cases[i].kind);
                assert_int_equal(w->err.code, cases[i].status);
                assert_string_equal(w->err.msg, "pods \"p\" and so on");
                assert_int_equal(w->calls, calls + 1);
                assert_false(kube_unreachable(&w->err));
        }
}

/* An answer that Kubernetes did not write is a failure, not an answer. */
/* failure: a page with any status answers -> it counts as a failure, and not as an answer */
static void test_pages_do_not_count_as_answers(void **state) {
        static const int statuses[] = { 400, 401, 403, 404, 405, 409, 410, 422, 503 };
        static const char *const pages[] = { "404 page not found\n",
                                             "<html><title>404</title></html>",
                                             "",
                                             "{\"kind\":\"Status\",\"code\":404}",
                                             "{\"message\":\"no\"}",
                                             "[]" };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
                for (size_t k = 0; k < ARRAY_LEN(pages); k++) {
                        w->failures_first = 1;
                        w->failure = statuses[i];
                        w->failure_body = pages[k];
                        finish(w, (struct kube_request){ .verb = KUBE_GET,
                                                         .res = &kube_pods,
                                                         .ns = "a",
                                                         .name = "p",
                                                         .attempts = 1 });
                        assert_false(w->ok);
                        assert_int_equal(w->err.kind, ERR_RETRY);
                        assert_true(kube_unreachable(&w->err));
                }
        }
        w->failures_first = 1;
        w->failure = 404;
        w->failure_body = "404 page not found\n";
        finish(w, (struct kube_request){
                          .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p", .attempts = 1 });
        assert_string_equal(
                w->err.msg,
                "the server answered 404, which is not an answer of Kubernetes: 404 page not found");
}

/* failure: a 404 names another object -> it does not count as NotFound */
static void test_a_404_must_name_the_requested_object(void **state) {
        static const struct {
                enum kube_verb verb;
                const char *subresource, *body;
                enum err_kind kind;
        } cases[] = {
                { KUBE_GET, NULL, NOT_FOUND(THE_POD), ERR_NOT_FOUND },
                { KUBE_DELETE, NULL, NOT_FOUND(THE_POD), ERR_NOT_FOUND },
                { KUBE_MERGE_PATCH, NULL, NOT_FOUND(THE_POD), ERR_NOT_FOUND },
                { KUBE_UPDATE, NULL, NOT_FOUND(THE_POD), ERR_NOT_FOUND },
                /* The subresource may be missing. */
                { KUBE_MERGE_PATCH, "status", NOT_FOUND(THE_POD), ERR_CONFLICT },
                { KUBE_GET, NULL, NOT_FOUND("\"name\":\"q\",\"kind\":\"pods\""), ERR_RETRY },
                { KUBE_GET, NULL, NOT_FOUND("\"name\":\"p\",\"kind\":\"nodes\""), ERR_RETRY },
                { KUBE_GET, NULL, NOT_FOUND("\"group\":\"apps\"," THE_POD), ERR_RETRY },
                { KUBE_GET, NULL, NOT_FOUND(""), ERR_RETRY },
                { KUBE_GET, NULL, REASON("NotFound"), ERR_RETRY },
                { KUBE_GET, NULL, STATUS(",\"details\":{" THE_POD "}"), ERR_RETRY },
                { KUBE_LIST, NULL, NOT_FOUND(THE_POD), ERR_RETRY },
                /* The namespace is missing. */
                { KUBE_CREATE, NULL, NOT_FOUND("\"name\":\"a\",\"kind\":\"namespaces\""), ERR_NOT_FOUND },
                { KUBE_APPLY, NULL, NOT_FOUND("\"name\":\"a\",\"kind\":\"namespaces\""), ERR_NOT_FOUND },
                { KUBE_GET, NULL, NOT_FOUND("\"name\":\"a\",\"kind\":\"namespaces\""), ERR_RETRY },
                { KUBE_CREATE, NULL, NOT_FOUND("\"name\":\"b\",\"kind\":\"namespaces\""), ERR_RETRY },
        };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->failures_first = 1;
                w->failure = 404;
                w->failure_body = cases[i].body;
                finish(w, (struct kube_request){ .verb = cases[i].verb,
                                                 .res = &kube_pods,
                                                 .ns = "a",
                                                 .name = "p",
                                                 .subresource = cases[i].subresource,
                                                 .body = STR("{}"),
                                                 .attempts = 1 });
                assert_false(w->ok);
                assert_int_equal(w->err.kind, cases[i].kind);
        }
}

/* Nor is a 200 with other content an answer. */
/* failure: a 200 contains something else -> it does not count as an answer */
static void test_a_success_must_be_the_requested_object(void **state) {
        static const struct {
                enum kube_verb verb;
                const char *body;
                bool ok;
        } cases[] = {
                { KUBE_GET, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}", true },
                { KUBE_GET, "", false },
                { KUBE_GET, "<html>", false },
                { KUBE_GET, "{}", false },
                { KUBE_GET, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"q\"}}", false },
                { KUBE_GET, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"p\"}}", false },
                { KUBE_GET, "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"p\"}}", false },
                { KUBE_MERGE_PATCH, "{\"status\":\"ok\"}", false },
                { KUBE_CREATE, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"generated\"}}", true },
                { KUBE_CREATE, "{\"kind\":\"Pod\"}", false },
                { KUBE_DELETE, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}", true },
                { KUBE_DELETE, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}", true },
                { KUBE_DELETE, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"}", false },
                { KUBE_DELETE, "", false },
                { KUBE_LIST, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"}}", true },
                { KUBE_LIST, "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}", false },
                { KUBE_LIST, "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}",
                  false },
                { KUBE_LIST, "{\"items\":[]}", false },
                { KUBE_LIST, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":3}",
                  false },
        };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->answer = cases[i].body;
                finish(w, (struct kube_request){ .verb = cases[i].verb,
                                                 .res = &kube_pods,
                                                 .ns = "a",
                                                 .name = "p",
                                                 .body = STR("{}"),
                                                 .attempts = 1 });
                assert_int_equal(w->ok, cases[i].ok);
                if (!w->ok)
                        assert_true(w->err.kind == ERR_RETRY && kube_unreachable(&w->err));
        }
}

static void on_other(void *u, yyjson_val *obj, const struct err *e) {
        ++*(unsigned *)u;
}

/* The first answer of a server that is back wakes all waiting requests. Pages do not count as answers, or
 * requests would wake each other forever. */
/* failure: pages answer while requests wait -> they do not wake other requests */
static void test_pages_do_not_wake_waiting_requests(void **state) {
        struct world *w = *state;
        unsigned n = 0;
        w->failures_first = UINT_MAX;
        w->failure = 404;
        w->failure_body = "404 page not found\n";
        for (unsigned i = 0; i < 10; i++)
                kube_start(w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                              .res = &kube_pods,
                                                              .ns = "a",
                                                              .name = "p",
                                                              .attempts = UINT_MAX,
                                                              .done = on_other,
                                                              .u = &n });
        run_for(&w->loop, 1000); /* only after their back-off: at 0, 100, 300 and 700 ms, less 25 % */
        assert_in_range(w->calls, 10, 50);
        assert_int_equal(n, 0);
}

static void test_server_errors_are_retried(void **state) {
        struct world *w = *state;
        w->failures_first = 2;
        w->failure = 503;
        finish(w, (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        assert_true(w->ok);
        assert_int_equal(w->calls, 3);
        assert_int_equal(w->n_done, 1);
}

static void test_attempts_end(void **state) {
        struct world *w = *state;
        w->failures_first = 100;
        w->failure = 500;
        w->failure_body = STATUS(",\"reason\":\"InternalError\"");
        finish(w, (struct kube_request){
                          .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p", .attempts = 2 });
        assert_int_equal(w->err.kind, ERR_RETRY);
        assert_string_equal(w->err.msg, "pods \"p\" and so on");
        assert_int_equal(w->calls, 2);
}

static void test_retry_after_is_kept(void **state) {
        struct world *w = *state;
        uint64_t before = uv_hrtime();
        w->failures_first = 1;
        w->failure = 429;
        w->failure_headers = "Retry-After: 1\r\n";
        finish(w, (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        assert_true(w->ok);
        assert_true(uv_hrtime() - before >= 1000000000U);
}

static void test_retry_after_in_the_status_is_kept(void **state) {
        struct world *w = *state;
        uint64_t before = uv_hrtime();
        w->failures_first = 1;
        w->failure = 429;
        w->failure_body = STATUS(",\"details\":{\"retryAfterSeconds\":1}");
        finish(w, (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        assert_true(w->ok);
        assert_true(uv_hrtime() - before >= 1000000000U);
}

/* A maintenance page asks for an hour. Its load balancer does not know when the server is back, which must be
 * noticed within seconds. */
static void test_a_page_cannot_ask_for_long(void **state) {
        const struct kube_request asked = { .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" };
        static const char status[] = STATUS(",\"reason\":\"ServiceUnavailable\"");
        struct http_response page = { .status = 503, .retry_after_s = 3600, .body = "<html>", .body_len = 6 };
        struct http_response own = {
                .status = 503, .retry_after_s = 3600, .body = status, .body_len = sizeof status - 1
        };
        yyjson_doc *doc;
        struct err e;
        int wait_s;

        assert_int_equal(kube_answer(&page, &asked, &doc, &e, &wait_s), -1);
        assert_int_equal(wait_s, 10);
        kube_error_watch(&page, &kube_pods, &e, &wait_s);
        assert_int_equal(wait_s, 10);
        assert_int_equal(kube_answer(&own, &asked, &doc, &e, &wait_s), -1);
        assert_int_equal(wait_s, 3600);
        assert_int_equal(kube_wait_ms(1, wait_s), 60001);
}

/* failure: the connection is lost -> the request is retried when the server is back */
static void test_connection_loss_is_retried(void **state) {
        struct world *w = *state;
        int port = fake_server_port(w->server);
        fake_server_free(w->server);
        w->server = NULL;
        start(w,
              (struct kube_request){
                      .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p", .attempts = UINT32_MAX });
        run_for(&w->loop, 300);
        assert_false(w->done);
        w->server = fake_server_new(&w->loop, port, on_request, w);
        run_until(&w->loop, &w->done);
        assert_true(w->ok);
}

static void on_retry(void *u, const struct err *e) {
        struct world *w = u;
        w->n_retries++;
        w->err = *e;
}

/* 100, 200, 250, 250 ms, ... each +-25 %, for each kind of failure that may end. */
/* failure: the API server keeps failing -> retries have growing delays */
static void test_retries_have_growing_delays(void **state) {
        static const int statuses[] = { 503, 501, 505, 500, 429, 408, 302, 200 };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
                w->calls = w->n_retries = w->n_done = 0;
                w->failures_first = UINT_MAX;
                w->failure = statuses[i];
                w->failure_body = "etcd is asleep";
                start(w, (struct kube_request){ .verb = KUBE_GET,
                                                .res = &kube_pods,
                                                .ns = "a",
                                                .name = "p",
                                                .attempts = UINT_MAX,
                                                .backoff_max_ms = 250,
                                                .retry = on_retry });
                run_for(&w->loop, 700);
                assert_int_equal(w->n_done, 0);
                assert_in_range(w->calls, 3, 6);
                assert_in_range(w->n_retries, w->calls - 1, w->calls);
                assert_int_equal(w->err.kind, ERR_RETRY);
                assert_non_null(strstr(w->err.msg, "etcd is asleep"));
                w->failures_first = 0;
                run_until(&w->loop, &w->done);
                assert_true(w->ok);
        }
}

static void test_hung_server_is_retried(void **state) {
        struct world *w = *state;
        w->silent = true;
        start(w, (struct kube_request){ .verb = KUBE_GET,
                                        .res = &kube_pods,
                                        .ns = "a",
                                        .name = "p",
                                        .timeout_ms = 100,
                                        .attempts = 10 });
        run_for(&w->loop, 150);
        w->silent = false;
        run_until(&w->loop, &w->done);
        assert_true(w->ok);
        assert_true(fake_server_accepted(w->server) >= 2);
}

static void test_cancel_in_each_phase(void **state) {
        struct world *w = *state;
        struct kube_request r = { .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" };

        kube_cancel(NULL);
        start(w, r); /* before it is sent */
        kube_cancel(w->call);
        w->silent = true;
        start(w, r); /* after it is sent */
        while (w->calls == 0)
                uv_run(&w->loop, UV_RUN_ONCE);
        kube_cancel(w->call);
        w->silent = false;
        w->failures_first = 1;
        w->failure = 503;
        start(w, r); /* during its back-off */
        while (w->failures_first)
                uv_run(&w->loop, UV_RUN_ONCE);
        run_for(&w->loop, 20);
        kube_cancel(w->call);
        r.name = "";
        start(w, r); /* after it is rejected */
        kube_cancel(w->call);
        run_for(&w->loop, 200);
        assert_int_equal(w->n_done, 0);
}

static void free_client(struct world *w) {
        kube_client_free(w->client);
        w->client = NULL;
}

static void test_free_from_inside_done(void **state) {
        struct world *w = *state;
        for (int i = 0; i < 50; i++)
                start(w,
                      (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        w->on_done = free_client;
        run_until(&w->loop, &w->done);
        run_for(&w->loop, 20);
        assert_int_equal(w->n_done, 1);
}

static void test_free_from_inside_a_refused_call(void **state) {
        struct world *w = *state;
        for (int i = 0; i < 3; i++)
                start(w, (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "" });
        w->on_done = free_client;
        run_until(&w->loop, &w->done);
        run_for(&w->loop, 20);
        assert_int_equal(w->n_done, 1);
}

static void test_many_calls_share_few_connections(void **state) {
        struct world *w = *state;
        for (int i = 0; i < 500; i++)
                start(w,
                      (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        while (w->n_done < 500)
                uv_run(&w->loop, UV_RUN_ONCE);
        assert_true(fake_server_accepted(w->server) <= 32 + 4);
}

static void test_rate(void **state) {
        struct world *w = *state;
        uint64_t before = uv_hrtime();
        for (int i = 0; i < 6; i++)
                start(w,
                      (struct kube_request){ .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" });
        while (w->n_done < 6)
                uv_run(&w->loop, UV_RUN_ONCE);
        /* two at once, then four more at 20 a second */
        assert_in_range((uv_hrtime() - before) / 1000000, 180, 1000);
}

static void put_token(struct world *w, const char *text) {
        FILE *f = fopen(w->token_file, "w");
        fputs(text, f);
        fclose(f);
}

static void test_token_file_is_read_again_on_401(void **state) {
        struct world *w = *state;
        struct kube_request r = { .verb = KUBE_GET, .res = &kube_pods, .ns = "a", .name = "p" };
        finish(w, r);
        assert_true(fake_has(w->head, "Authorization: Bearer first\r\n"));
        put_token(w, "second\n");
        finish(w, r);
        assert_true(fake_has(w->head, "Authorization: Bearer first\r\n"));
        w->failures_first = 1;
        w->failure = 401;
        finish(w, r);
        assert_true(w->ok);
        assert_true(fake_has(w->head, "Authorization: Bearer second\r\n"));

        /* Neither an empty file nor one with line breaks replaces a token or is sent to the server. */
        put_token(w, "bad\r\nX-Evil: 1\n");
        w->failures_first = 1;
        finish(w, r);
        assert_true(fake_has(w->head, "Authorization: Bearer second\r\n"));
        assert_false(fake_has(w->head, "Evil"));
        put_token(w, "");
        w->failures_first = 2;
        w->failure_body = REASON("Unauthorized");
        finish(w, r);
        assert_false(w->ok);
        assert_int_equal(w->err.kind, ERR_DENIED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_verbs),
                T(test_names_cannot_become_paths),
                T(test_errors_have_the_kind_of_their_cause),
                T(test_pages_do_not_count_as_answers),
                T(test_a_404_must_name_the_requested_object),
                T(test_a_success_must_be_the_requested_object),
                T(test_pages_do_not_wake_waiting_requests),
                T(test_server_errors_are_retried),
                T(test_attempts_end),
                T(test_retry_after_is_kept),
                T(test_a_page_cannot_ask_for_long),
                T(test_retry_after_in_the_status_is_kept),
                T(test_connection_loss_is_retried),
                T(test_retries_have_growing_delays),
                T(test_hung_server_is_retried),
                T(test_cancel_in_each_phase),
                T(test_free_from_inside_done),
                T(test_free_from_inside_a_refused_call),
                T(test_many_calls_share_few_connections),
                T(test_each_attempt_is_counted_by_its_result),
                T(test_waiting_requests_are_counted_by_lane),
                cmocka_unit_test_setup_teardown(test_rate, set_up_slow, tear_down),
                cmocka_unit_test_setup_teardown(test_token_file_is_read_again_on_401, set_up_token,
                                                tear_down),
        };
        return cmocka_run_group_tests_name("kube_client", tests, NULL, NULL);
}
