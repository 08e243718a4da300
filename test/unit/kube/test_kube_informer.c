/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "informer_world.h"

static void on_got(void *u, yyjson_val *obj, const struct err *e) {
        ((struct world *)u)->got = true;
}

static void test_list_then_watch(void **state) {
        struct world *w = *state;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n2"));
        w->o.ns = "ns";
        w->o.label_selector = "app=x";
        world_begin_watching(w);
        assert_string_equal(w->api.list_path, "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&limit=500");
        assert_true(fake_has(w->api.watch_path,
                             "/api/v1/namespaces/ns/"
                             "pods?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds="));
        assert_true(fake_has(w->api.watch_path, "&labelSelector=app%3Dx"));
        assert_true(fake_has(w->api.head, "Accept: application/json\r\n"));
        world_wait_for_log(w, "+a@3 +b@4 ");
        assert_int_equal(w->n_synced, 1);
        assert_int_equal(kube_informer_count(w->informer), 2);
        assert_string_equal(
                ((const struct pod *)(const void *)kube_informer_get(w->informer, "ns", "a"))->node, "n1");
        assert_null(kube_informer_get(w->informer, "ns", "c"));

        pod_event(&w->api, "ADDED", "c", 11, "n1");
        pod_event(&w->api, "MODIFIED", "a", 12, "n2");
        pod_event(&w->api, "DELETED", "b", 13, "n2");
        pod_event(&w->api, "DELETED", "unknown", 14, "n2");
        world_wait_for_log(w, "+a@3 +b@4 +c@11 ~a@3>12 -b@4 ");
        assert_int_equal(kube_informer_count(w->informer), 2);
        assert_int_equal(w->n_synced, 1);
        assert_int_equal(w->n_trouble, 0);
}

static void assert_metrics_contain(struct world *w, const char *line) {
        struct buf b = BUF_INIT(1 << 20);
        metrics_render(w->metrics, &b);
        if (!strstr(buf_str(&b), line))
                fail_msg("no '%s' in\n%s", line, buf_str(&b));
        buf_done(&b);
}

static void test_watches_are_counted_when_they_begin_or_cannot(void **state) {
        struct world *w = *state;
        w->api.n_watch_failures = 1;
        w->api.watch_failure = 503;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"watch\",resource=\"pods\",code=\"503\"} 1\n");
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"watch\",resource=\"pods\",code=\"200\"} 1\n");
        assert_metrics_contain(
                w, "nvidia_dra_kube_requests_total{verb=\"list\",resource=\"pods\",code=\"200\"} 1\n");
}

/* Only the first list: after a 410, the API server's cache may be too old. */
/* failure: the API server's cache is old -> only the first list is read from it */
static void test_first_list_from_the_cache(void **state) {
        struct world *w = *state;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1"));
        w->o.first_from_cache = true;
        world_begin_watching(w);
        assert_string_equal(w->api.list_path, "/api/v1/pods?resourceVersion=0");
        pod_event(&w->api, "ADDED", "b", 11, "n1"); /* not yet in the API server's cache */
        world_wait_for_log(w, "+a@3 +b@11 ");
        w->api.pages[0] = LIST("20", ITEM("a", "3", "n1"));
        fake_chunk(w->api.watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                                 "\"code\":410,\"reason\":"
                                 "\"Expired\",\"message\":\"too old\"}}\n");
        world_wait_for_log(w, "+a@3 +b@11 -b@11 ");
        assert_string_equal(w->api.list_path, "/api/v1/pods?limit=500");
}

static void test_events_cut_anywhere(void **state) {
        struct world *w = *state;
        const char *text = "{\"type\":\"ADDED\",\"object\":" ITEM(
                "a", "11", "n1") "}\n\n{\"type\":\"ADDED\",\"object\":" ITEM("b", "12", "n1") "}\n";
        world_begin_watching(w);
        for (size_t at = 0, n = strlen(text); at < n; at += 7) {
                _cleanup_(freep) char *piece = xstrndup(text + at, n - at < 7 ? n - at : 7);
                fake_chunk(w->api.watch, piece);
                run_for(&w->loop, 1);
        }
        world_wait_for_log(w, "+a@11 +b@12 ");
}

static void test_paging(void **state) {
        struct world *w = *state;
        w->api.pages[0] = PAGE("10", "next/one&", ITEM("a", "3", "n1"));
        w->api.pages[1] = PAGE("10", "two", ITEM("b", "3", "n1"));
        w->api.pages[2] = LIST("10", ITEM("c", "3", "n1"));
        world_begin_watching(w);
        assert_string_equal(buf_str(&w->log), "+a@3 +b@3 +c@3 ");
        assert_int_equal(w->api.n_lists, 3);
        assert_string_equal(w->api.list_path, "/api/v1/pods?limit=500&continue=two");
        assert_int_equal(w->n_synced, 1);
}

static void test_list_that_takes_too_long_begins_again(void **state) {
        struct world *w = *state;
        w->api.n_list_failures = 1;
        w->api.list_failure = 410;
        w->api.pages[0] = LIST("20", ITEM("a", "3", "n1"));
        world_begin_watching(w);
        assert_string_equal(buf_str(&w->log), "+a@3 ");
        assert_int_equal(w->n_trouble, 0);
}

static void test_resume_from_the_last_version(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
        fake_close(w->api.watch);
        world_wait_for_watch(w, 2);
        assert_string_equal(w->api.watch_rv, "11");
        pod_bookmark(&w->api, 500);
        run_for(&w->loop, 20);
        fake_close(w->api.watch);
        world_wait_for_watch(w, 3);
        assert_string_equal(w->api.watch_rv, "500");
        assert_int_equal(w->api.n_lists, 1);
        assert_string_equal(buf_str(&w->log), "+a@11 ");
}

static void test_watch_that_ends_at_once_backs_off(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        for (unsigned n = 2; n < 5; n++) {
                fake_end(w->api.watch);
                world_wait_for_watch(w, n);
        }
        assert_true(w->trouble);
        assert_int_equal(w->api.n_lists, 1);
}

/* failure: the history of a watch is compacted (410) -> a list reports the difference */
static void test_history_gone_lists_again_and_reports_the_difference(void **state) {
        struct world *w = *state;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n1") "," ITEM("c", "5", "n1"));
        w->api.pages[1] =
                LIST("30", ITEM("a", "3", "n1") "," ITEM("c", "25", "n9") "," ITEM("d", "28", "n1"));
        world_begin_watching(w);
        buf_clear(&w->log);
        fake_chunk(w->api.watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                                 "\"code\":410,\"reason\":"
                                 "\"Expired\",\"message\":\"too old\"}}\n");
        world_wait_for_watch(w, 2);
        assert_string_equal(buf_str(&w->log), "~c@5>25 +d@28 -b@4 ");
        assert_string_equal(w->api.watch_rv, "30");
        assert_int_equal(w->n_synced, 1);
        assert_int_equal(world_count_at(w, 0, "n1"), 2);
}

/* failure: a watch is refused with 410 -> a list is made, and the watch continues */
static void test_410_as_the_answer_to_a_watch(void **state) {
        struct world *w = *state;
        w->api.n_watch_failures = 1;
        w->api.watch_failure = 410;
        world_begin_watching(w);
        assert_int_equal(w->api.n_lists, 2);
        assert_int_equal(w->n_trouble, 0);
}

static void test_server_gone_and_back(void **state) {
        struct world *w = *state;
        int port = fake_server_port(w->api.server);
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
        fake_server_free(w->api.server);
        w->api.server = NULL;
        run_until(&w->loop, &w->trouble);
        assert_int_equal(w->err.kind, ERR_RETRY);
        assert_int_equal(kube_informer_count(w->informer), 1);
        pod_server_start(&w->api, &w->loop, port);
        run_until(&w->loop, &w->well);
        pod_event(&w->api, "DELETED", "a", 12, "n1");
        world_wait_for_log(w, "+a@11 -a@11 ");
        assert_string_equal(w->api.watch_rv, "11");
        assert_int_equal(w->n_trouble, 2);
        assert_int_equal(w->api.n_lists, 1);
}

/* After a long absence, the pauses have grown to 6 s and more. When the server answers again, they start
 * again. */
static void test_server_that_is_back_and_refuses_at_first(void **state) {
        struct world *w = *state;
        int port = fake_server_port(w->api.server);
        world_begin_watching(w);
        fake_server_free(w->api.server);
        w->api.server = NULL;
        run_for(&w->loop, 6000);
        w->api.watching = false;
        w->api.n_watch_failures = 4;
        w->api.watch_failure = 403;
        pod_server_start(&w->api, &w->loop, port);
        /* Up to 8 s until the next request, and four pauses, beginning with 0.2 s. */
        RUN_UNTIL(&w->loop, w->api.watching);
        assert_int_equal(w->api.n_lists, 1);
}

/* The token was replaced, and the server rejects ours: the watch starts with the new one at once. A second
 * 401 in a row is reported. */
/* failure: a watch is refused with 401 -> a new token is tried at once, and a second 401 is reported */
static void test_401_is_reported_when_a_new_token_does_not_help(void **state) {
        struct world *w = *state;
        char path[] = "/tmp/token.XXXXXX";
        int fd = mkstemp(path);
        assert_int_equal(write(fd, "first\n", 6), 6);
        close(fd);
        kube_client_free(w->client);
        w->token_file = path;
        world_connect(w);
        w->api.watch_failure = 401;
        w->api.n_watch_failures = 1;
        world_begin_watching(w);
        assert_int_equal(w->api.n_watches, 2);
        assert_int_equal(w->n_trouble, 0);

        w->api.watching = false;
        w->api.n_watch_failures = 2;
        fake_close(w->api.watch);
        RUN_UNTIL(&w->loop, w->api.watching);
        assert_int_equal(w->api.n_lists, 1);
        assert_true(w->trouble);
        assert_int_equal(w->err.kind, ERR_DENIED);
        unlink(path);
}

/* Each one waits in its own back-off. The first that gets an answer wakes the others. */
static void test_first_answer_ends_all_back_offs(void **state) {
        struct world *w = *state;
        struct kube_informer *more[7];
        struct kube_call *call;
        int port = fake_server_port(w->api.server);
        uint64_t first = 0, last = 0;

        world_begin_watching(w);
        w->o.changed = NULL;
        w->o.synced = NULL;
        w->o.failing = NULL;
        for (size_t i = 0; i < ARRAY_LEN(more); i++)
                more[i] = kube_informer_new(w->client, &w->o);
        world_wait_for_watch(w, 8);
        fake_server_free(w->api.server);
        w->api.server = NULL;
        call = kube_start(w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                             .res = &kube_pods,
                                                             .ns = "ns",
                                                             .name = "a",
                                                             .attempts = UINT32_MAX,
                                                             .done = on_got,
                                                             .u = w });
        assert_non_null(call);
        run_for(&w->loop, 3500);
        pod_server_start(&w->api, &w->loop, port);
        w->api.n_watches = 0;
        for (int i = 0; i < 10000 && (w->api.n_watches < 8 || !w->got); i++) {
                run_for(&w->loop, 1);
                if (!first && fake_server_requests(w->api.server))
                        first = uv_hrtime();
                last = uv_hrtime();
        }
        assert_true(w->got && w->api.n_watches == 8);
        assert_in_range((last - first) / 1000000, 0, 150);
        for (size_t i = 0; i < ARRAY_LEN(more); i++)
                kube_informer_free(more[i]);
}

static void test_refusal_is_reported_once_and_retried(void **state) {
        struct world *w = *state;
        w->api.n_list_failures = 3;
        w->api.list_failure = 403;
        world_begin(w);
        run_until(&w->loop, &w->trouble);
        assert_int_equal(w->err.kind, ERR_DENIED);
        assert_string_equal(w->err.msg, "no list");
        run_until(&w->loop, &w->api.watching);
        assert_int_equal(w->n_trouble, 2);
        assert_true(w->well && w->synced);
}

static void test_missing_kind_appears(void **state) {
        struct world *w = *state;
        w->api.n_list_failures = 15; /* three lists, each with five attempts */
        w->api.list_failure = 404;
        world_begin(w);
        run_until(&w->loop, &w->trouble);
        assert_int_equal(w->err.kind, ERR_RETRY);
        run_until(&w->loop, &w->api.watching);
        assert_true(w->well);
}

static void test_429_on_watch_keeps_the_version(void **state) {
        struct world *w = *state;
        w->api.n_watch_failures = 2;
        w->api.watch_failure = 429;
        world_begin_watching(w);
        assert_int_equal(w->api.n_lists, 1);
        assert_int_equal(w->api.n_watches, 3);
        assert_string_equal(w->api.watch_rv, "10");
}

static void test_error_event_other_than_410(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        fake_chunk(w->api.watch,
                   "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd event received "
                   "with PrevKv=nil\"}}\n");
        world_wait_for_watch(w, 2);
        assert_int_equal(w->api.n_lists, 1);
}

static void test_garbage_in_the_stream_lists_again(void **state) {
        static const char *const garbage[] = { "<html>\n", "{\"type\":\"ADDED\"}\n",
                                               "{\"type\":\"SURPRISE\",\"object\":{}}\n", "[1]\n",
                                               "{\"type\":\"ADDED\",\"object\":[]}\n" };
        struct world *w = *state;
        world_begin_watching(w);
        for (unsigned i = 0; i < 2; i++) {
                fake_chunk(w->api.watch, garbage[i]);
                world_wait_for_watch(w, i + 2);
        }
        assert_int_equal(w->api.n_lists, 3);
}

static void test_watch_without_an_answer_takes_another_connection(void **state) {
        struct world *w = *state;
        w->o.silence_ms = 100;
        w->api.hung = true;
        world_begin(w);
        run_until(&w->loop, &w->synced);
        world_wait_for_watch(w, 2);
        w->api.hung = false;
        run_until(&w->loop, &w->api.watching);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        world_wait_for_log(w, "+a@11 ");
}

static void test_page_does_not_count_as_a_watch(void **state) {
        struct world *w = *state;
        w->api.n_watch_failures = 1;
        w->api.watch_failure = 200; /* "application/json", and a Status */
        world_begin_watching(w);
        assert_int_equal(w->api.n_watches, 2);
}

/* ---- ends ---- */

static void free_it(struct world *w) {
        kube_informer_free(w->informer);
        w->informer = NULL;
}

static void test_free_at_once(void **state) {
        struct world *w = *state;
        world_begin(w);
        free_it(w);
        run_for(&w->loop, 20);
        assert_int_equal(fake_server_requests(w->api.server), 0);
}

static void test_free_during_the_list(void **state) {
        struct world *w = *state;
        world_begin(w);
        while (!*w->api.list_path)
                uv_run(&w->loop, UV_RUN_ONCE);
        free_it(w);
        run_for(&w->loop, 20);
        assert_false(w->synced);
}

static void test_free_from_inside_changed_of_a_list(void **state) {
        struct world *w = *state;
        w->on_changed = free_it;
        w->api.pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n2"));
        world_begin(w);
        run_until(&w->loop, &w->changed);
        run_for(&w->loop, 20);
        assert_string_equal(buf_str(&w->log), "+a@3 ");
}

static void test_free_from_inside_changed_of_a_watch(void **state) {
        struct world *w = *state;
        w->on_changed = free_it;
        world_begin_watching(w);
        fake_chunk(w->api.watch,
                   "{\"type\":\"ADDED\",\"object\":" ITEM(
                           "a", "11", "n1") "}\n{\"type\":\"ADDED\",\"object\":" ITEM("b", "12", "n1") "}\n");
        run_until(&w->loop, &w->changed);
        RUN_UNTIL(&w->loop, !fake_is_open(w->api.watch));
        run_for(&w->loop, 20);
        assert_string_equal(buf_str(&w->log), "+a@11 ");
}

static void test_free_from_inside_synced(void **state) {
        struct world *w = *state;
        w->on_synced = free_it;
        world_begin(w);
        run_until(&w->loop, &w->synced);
        run_for(&w->loop, 20);
        assert_int_equal(w->api.n_watches, 0);
}

static void free_all(struct world *w) {
        free_it(w);
        kube_client_free(w->client);
        w->client = NULL;
}

static void test_free_with_the_client_from_inside_changed(void **state) {
        struct world *w = *state;
        w->on_changed = free_all;
        world_begin_watching(w);
        pod_event(&w->api, "ADDED", "a", 11, "n1");
        run_until(&w->loop, &w->changed);
        run_for(&w->loop, 20);
}

static void test_free_during_back_off(void **state) {
        struct world *w = *state;
        w->api.n_list_failures = 100;
        w->api.list_failure = 403;
        world_begin(w);
        run_until(&w->loop, &w->trouble);
        free_it(w);
        run_for(&w->loop, 20);
}

static void test_the_first_version_is_tried_first(void **state) {
        struct world *w = *state;
        w->o.res = &kube_resource_claims;
        world_begin_watching(w);
        assert_string_equal(w->api.list_path, "/apis/resource.k8s.io/v1/resourceclaims?limit=500");
}

static void test_free_during_the_first_list(void **state) {
        struct world *w = *state;
        w->o.res = &kube_resource_claims;
        w->api.n_list_failures = 100;
        w->api.list_failure = 503;
        world_begin(w);
        run_for(&w->loop, 50);
        free_it(w);
        run_for(&w->loop, 20);
}

static void test_metadata_only(void **state) {
        struct world *w = *state;
        w->o.metadata_only = true;
        world_begin_watching(w);
        assert_true(fake_has(w->api.head, "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"));
}

static void test_many_objects(void **state) {
        struct world *w = *state;
        world_begin_watching(w);
        struct buf b = BUF_INIT(16 << 20);
        for (unsigned i = 0; i < 5000; i++)
                buf_addf(&b,
                         "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p%"
                         "u\",\"uid\":\"u%u\","
                         "\"resourceVersion\":\"%u\"},"
                         "\"spec\":{\"nodeName\":\"n%u\"}}}\n",
                         i, i, 100 + i, i % 10);
        fake_chunk(w->api.watch, buf_str(&b));
        buf_done(&b);
        RUN_UNTIL(&w->loop, kube_informer_count(w->informer) >= 5000);
        assert_int_equal(kube_informer_count(w->informer), 5000);
        assert_int_equal(world_count_at(w, 0, "n3"), 500);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
                T(test_list_then_watch),
                T(test_watches_are_counted_when_they_begin_or_cannot),
                T(test_first_list_from_the_cache),
                T(test_events_cut_anywhere),
                T(test_paging),
                T(test_list_that_takes_too_long_begins_again),
                T(test_resume_from_the_last_version),
                T(test_watch_that_ends_at_once_backs_off),
                T(test_history_gone_lists_again_and_reports_the_difference),
                T(test_410_as_the_answer_to_a_watch),
                T(test_401_is_reported_when_a_new_token_does_not_help),
                T(test_server_gone_and_back),
                T(test_server_that_is_back_and_refuses_at_first),
                T(test_first_answer_ends_all_back_offs),
                T(test_refusal_is_reported_once_and_retried),
                T(test_missing_kind_appears),
                T(test_429_on_watch_keeps_the_version),
                T(test_error_event_other_than_410),
                T(test_page_does_not_count_as_a_watch),
                T(test_garbage_in_the_stream_lists_again),
                T(test_watch_without_an_answer_takes_another_connection),
                T(test_free_at_once),
                T(test_free_during_the_list),
                T(test_free_from_inside_changed_of_a_list),
                T(test_free_from_inside_changed_of_a_watch),
                T(test_free_from_inside_synced),
                T(test_free_with_the_client_from_inside_changed),
                T(test_free_during_back_off),
                T(test_the_first_version_is_tried_first),
                T(test_free_during_the_first_list),
                T(test_metadata_only),
                T(test_many_objects),
        };
        return cmocka_run_group_tests_name("kube_informer", tests, NULL, NULL);
}
