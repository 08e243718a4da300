/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "world/fake_client.h"
#include "kube/event_recorder.h"

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct event_recorder *r;
        struct fake_conn *waiting; /* the request without an answer */
        bool hold;
        unsigned creates, patches, want_creates;
        bool enough; /* enough creates have arrived */
        int patch_status, create_status;
        char method[16], path[512], body[8192];
        bool flushed;
};

/* status 0: the normal answer. */
static void answer(struct fake_conn *c, const struct fake_request *r, int status) {
        const char *name = strrchr(r->path, '/') + 1;
        _cleanup_(freep) char *event = xasprintf("{\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"}}", name);
        if (status == 404)
                fake_missing(c, "", "events", name);
        else if (status)
                fake_refuse(c, status, "no");
        else
                fake_reply(c, 200, NULL, event);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        bool patch = streq(r->method, "PATCH");

        snprintf(w->path, sizeof w->path, "%s", r->path);
        snprintf(w->body, sizeof w->body, "%s", r->body);
        w->creates += !patch;
        w->patches += patch;
        if (w->hold)
                w->waiting = c;
        else
                answer(c, r, patch ? w->patch_status : w->create_status);
        w->enough = w->creates >= w->want_creates;
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        w->r = event_recorder_new(w->client, "unit-test", "node-1");
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;
        event_recorder_free(w->r);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        free(w);
        return 0;
}

static const struct event_about cd = { "resource.nvidia.com/v1beta1", "ComputeDomain", "apps", "training",
                                       "uid-1" };
static const struct event_about node = { "v1", "Node", NULL, "n1", "uid-2" };

static void on_flushed(void *u) {
        ((struct world *)u)->flushed = true;
}

static void flush(struct world *w) {
        w->flushed = false;
        event_recorder_flush(w->r, 5000, on_flushed, w);
        assert_false(w->flushed);
        run_until(&w->loop, &w->flushed);
}

static void test_event(void **state) {
        struct world *w = *state;
        event_record(w->r, &cd, EVENT_WARNING, "NodeLost", "node %s \"left\"\n", "n7");
        flush(w);
        assert_string_equal(w->path, "/api/v1/namespaces/apps/events");
        assert_true(fake_has(w->body, "\"metadata\":{\"namespace\":\"apps\",\"name\":\"training."));
        assert_true(fake_has(w->body, "\"involvedObject\":{\"apiVersion\":\"resource.nvidia.com/"
                                      "v1beta1\",\"kind\":\"ComputeDomain\",\"namespace\":\"apps\",\"name\":"
                                      "\"training\",\"uid\":\"uid-1\"}"));
        assert_true(fake_has(
                w->body,
                "\"type\":\"Warning\",\"reason\":\"NodeLost\",\"message\":\"node n7 \\\"left\\\"\\n\""));
        assert_true(fake_has(w->body, "\"source\":{\"component\":\"unit-test\",\"host\":\"node-1\"}"));
        assert_true(
                fake_has(w->body, "\"reportingComponent\":\"unit-test\",\"reportingInstance\":\"node-1\""));
        assert_true(fake_has(w->body, "\"count\":1}"));
}

static void test_cluster_scoped_goes_to_default(void **state) {
        struct world *w = *state;
        event_record(w->r, &node, EVENT_NORMAL, "Joined", "x");
        flush(w);
        assert_string_equal(w->path, "/api/v1/namespaces/default/events");
        assert_true(fake_has(w->body,
                             "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\""));
}

static void test_repetition_counts_up_by_patch(void **state) {
        struct world *w = *state;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "node %d", 1);
        flush(w);
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "node %d", 1);
        flush(w);
        assert_true(w->creates == 1 && w->patches == 1);
        assert_true(fake_has(w->path, "/api/v1/namespaces/apps/events/training."));
        assert_true(fake_has(w->body, "\"count\":2}"));
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "node %d", 2);
        event_record(w->r, &cd, EVENT_WARNING, "Joined", "node %d", 1);
        event_record(w->r, &cd, EVENT_NORMAL, "Left", "node %d", 1);
        flush(w);
        assert_true(w->creates == 4 && w->patches == 1);
}

static void test_one_write_in_flight_per_series(void **state) {
        struct world *w = *state;
        w->hold = true;
        for (int i = 0; i < 10; i++)
                event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        RUN_UNTIL(&w->loop, w->waiting);
        run_for(&w->loop, 20);
        assert_int_equal(w->creates, 1);
        w->hold = false;
        fake_reply(w->waiting, 201, NULL, "{\"kind\":\"Event\",\"metadata\":{\"name\":\"e\"}}");
        flush(w);
        assert_true(w->creates == 1 && w->patches == 1);
        assert_true(fake_has(w->body, "\"count\":10}"));
}

static void test_event_that_the_server_deleted_is_recreated(void **state) {
        struct world *w = *state;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        w->patch_status = 404;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        assert_true(w->creates == 2 && w->patches == 1);
        assert_true(fake_has(w->body, "\"count\":2}"));
}

static void test_rejected_event_is_dropped(void **state) {
        struct world *w = *state;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        w->patch_status = 403;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        assert_true(w->creates == 1 && w->patches == 1);
}

static void test_burst_about_one_object_is_limited(void **state) {
        struct world *w = *state;
        for (int i = 0; i < 40; i++)
                event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x%d", i);
        event_record(w->r, &node, EVENT_NORMAL, "Joined", "x");
        flush(w);
        assert_int_equal(w->creates, 26);
}

static void test_many_series_and_objects_are_bounded(void **state) {
        struct world *w = *state;
        for (int i = 0; i < 600; i++) {
                _cleanup_(freep) char *name = xasprintf("cd-%d", i);
                event_record(w->r, &(struct event_about){ "v1", "Pod", "apps", name, NULL }, EVENT_NORMAL,
                             "Joined", "x");
        }
        flush(w);
        assert_int_equal(w->creates, 600);
}

/* failure: the API server is down -> Events wait and are sent later */
static void test_an_event_waits_for_a_server_that_is_down(void **state) {
        struct world *w = *state;
        int port = fake_server_port(w->server);
        w->want_creates = 1;
        fake_server_kill(w->server);
        for (int i = 0; i < 3; i++)
                event_record(w->r, &node, EVENT_WARNING, "HostIMEXDown", "x");
        run_for(&w->loop, 2500); /* longer than the client retries without the recorder */
        fake_server_free(w->server);
        w->server = fake_server_new(&w->loop, port, on_request, w);
        run_until(&w->loop, &w->enough);
        flush(w);
        assert_true(w->creates == 1 && w->patches == 1);
        assert_true(fake_has(w->body, "\"count\":3}"));
}

/* An API server without time answers 504, and may still have written the Event. */
/* failure: the API server answers an Event with 504 -> it is retried without a duplicate */
static void test_an_event_that_timed_out_is_retried(void **state) {
        struct world *w = *state;
        w->want_creates = 2;
        w->create_status = 504;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        run_until(&w->loop, &w->enough);
        w->create_status = 409;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        assert_true(w->creates == 3 && w->patches == 1);
        assert_true(fake_has(w->body, "\"count\":2}"));
}

/* failure: the API server is down for long -> the number of waiting Events is limited */
static void test_waiting_events_are_bounded(void **state) {
        struct world *w = *state;
        int port = fake_server_port(w->server);
        w->want_creates = 1000;
        fake_server_kill(w->server);
        for (int i = 0; i < 1500; i++) {
                _cleanup_(freep) char *name = xasprintf("cd-%d", i);
                event_record(w->r, &(struct event_about){ "v1", "Pod", "apps", name, NULL }, EVENT_NORMAL,
                             "Joined", "x");
        }
        run_for(&w->loop, 50);
        fake_server_free(w->server);
        w->server = fake_server_new(&w->loop, port, on_request, w);
        run_until(&w->loop, &w->enough);
        flush(w);
        assert_int_equal(w->creates, 1000); /* the newest ones */
        assert_true(fake_has(w->body, "\"name\":\"cd-149"));
}

static void test_create_with_a_lost_answer_is_not_a_failure(void **state) {
        struct world *w = *state;
        w->create_status = 409;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        flush(w);
        assert_true(w->creates == 1 && w->patches == 1);
        assert_true(fake_has(w->body, "\"count\":2}"));
}

static void test_a_hanging_server_gets_few_requests_at_a_time(void **state) {
        struct world *w = *state;
        w->hold = true;
        for (int i = 0; i < 20; i++)
                event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x%d", i);
        RUN_UNTIL(&w->loop, w->waiting);
        run_for(&w->loop, 50);
        assert_in_range(w->creates, 1, 8);
}

static size_t event_name_length(const struct world *w) {
        static const char before[] = "\"metadata\":{\"namespace\":\"apps\",\"name\":\"";
        return strcspn(strstr(w->body, before) + sizeof before - 1, "\"");
}

static void test_long_texts(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *name = xcalloc(1, 254), *text = xcalloc(1, 3001);
        memset(name, 'n', 253);
        for (int i = 0; i < 3000; i += 3)
                memcpy(text + i, "\xe2\x82\xac", 3);
        event_record(w->r, &(struct event_about){ "v1", "Pod", "apps", name, NULL }, EVENT_NORMAL, "Joined",
                     "%s", text);
        flush(w);
        const char *message = strstr(w->body, "\"message\":\"");
        assert_non_null(message);
        assert_int_equal(strcspn(message + 11, "\"") % 3, 0);
        assert_in_range(strcspn(message + 11, "\""), 1000, 1024);
        assert_int_equal(event_name_length(w), 253);
        name[235] = '-'; /* the cut would be here, and "-." is no valid name */
        event_record(w->r, &(struct event_about){ "v1", "Pod", "apps", name, NULL }, EVENT_NORMAL, "Joined",
                     "x");
        flush(w);
        assert_int_equal(event_name_length(w), 252);
}

static void test_flush_has_a_limit(void **state) {
        struct world *w = *state;
        w->hold = true;
        event_record(w->r, &cd, EVENT_NORMAL, "Joined", "x");
        event_recorder_flush(w->r, 50, on_flushed, w);
        run_until(&w->loop, &w->flushed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_event),
                T(test_cluster_scoped_goes_to_default),
                T(test_repetition_counts_up_by_patch),
                T(test_one_write_in_flight_per_series),
                T(test_event_that_the_server_deleted_is_recreated),
                T(test_rejected_event_is_dropped),
                T(test_burst_about_one_object_is_limited),
                T(test_many_series_and_objects_are_bounded),
                T(test_an_event_waits_for_a_server_that_is_down),
                T(test_an_event_that_timed_out_is_retried),
                T(test_waiting_events_are_bounded),
                T(test_create_with_a_lost_answer_is_not_a_failure),
                T(test_a_hanging_server_gets_few_requests_at_a_time),
                T(test_long_texts),
                T(test_flush_has_a_limit),
        };
        return cmocka_run_group_tests_name("event_recorder", tests, NULL, NULL);
}
