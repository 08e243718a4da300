/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests wait for which others, with a server that answers some and lets others hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "world/fake_client.h"
#include "kube/leader.h"

enum { NODES = 10000, MADE_MAX = 32 };

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        bool hang;       /* patches and reads of Pods get no answer */
        bool away;       /* a load balancer without backends answers */
        unsigned wait_s; /* Retry-After of patches, 0: they are answered */
        unsigned patches, lease_rv;
        char *lease; /* spec */
        struct fake_conn *waiting[128];
        unsigned n_waiting;

        struct leader *leader;
        bool leads, lost, done;
        unsigned n_done, n_failed;
        struct err err;
        /* of the user of the bulk lane */
        struct kube_wants_room wants;
        unsigned next, in_hand, most_in_hand; /* in_hand: made and not answered */
};

static void reply_lease(struct world *w, struct fake_conn *c) {
        _cleanup_(freep) char *text =
                xasprintf("{\"kind\":\"Lease\",\"metadata\":{\"namespace\":\"sys\",\"name\":\"l\","
                          "\"resourceVersion\":\"%u\"},\"spec\":%s}",
                          w->lease_rv, w->lease);
        fake_reply(c, 200, NULL, text);
}

static void on_lease(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        const char *spec = strstr(r->body, "\"spec\":");
        if (fake_query(r, "watch")) {
                fake_stream(c);
        } else if (streq(r->method, "GET") && !w->lease) {
                fake_list(c, r, "Lease", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
        } else {
                free(w->lease);
                w->lease = xstrndup(spec + 7, strlen(spec + 7) - 1);
                w->lease_rv++;
                reply_lease(w, c);
        }
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        const char *name = strrchr(r->path, '/') + 1;

        if (w->away) {
                fake_reply(c, 404, NULL, "404 page not found\n");
        } else if (fake_has(r->path, "/leases")) {
                on_lease(w, c, r);
        } else if (w->hang && !fake_has(r->path, "/nodes/served")) {
                w->waiting[w->n_waiting++ % ARRAY_LEN(w->waiting)] = c;
        } else if (w->wait_s) {
                char header[32];
                snprintf(header, sizeof header, "Retry-After: %u\r\n", w->wait_s);
                w->patches++;
                fake_reply(c, 503, header, "busy");
        } else {
                _cleanup_(freep) char *node =
                        xasprintf("{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"}}", name);
                w->patches += streq(r->method, "PATCH");
                fake_reply(c, 200, NULL, node);
        }
}

static int set_up_with(void **state, double qps, unsigned burst) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, qps, burst);
        *state = w;
        return 0;
}

static int set_up(void **state) {
        return set_up_with(state, 0, 0);
}

/* The proportions of the chart, ten times as fast. */
static int set_up_paced(void **state) {
        return set_up_with(state, 2000, 400);
}

static int tear_down(void **state) {
        struct world *w = *state;
        leader_free(w->leader);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        free(w->lease);
        free(w);
        return 0;
}

static void on_done(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;
        w->n_done++;
        w->n_failed += e != NULL;
        w->done = true;
        if (e)
                w->err = *e;
}

static void start(struct world *w, enum kube_verb verb, enum kube_lane lane, const char *name) {
        w->done = false;
        kube_start(w->client, &(struct kube_request){ .verb = verb,
                                                      .lane = lane,
                                                      .res = &kube_nodes,
                                                      .name = name,
                                                      .body = STR("{}"),
                                                      .done = on_done,
                                                      .u = w });
}

static void on_started(void *u) {
        ((struct world *)u)->leads = true;
}

static void on_lost(void *u) {
        ((struct world *)u)->lost = true;
}

static void lead(struct world *w, unsigned deadline_ms, unsigned retry_ms) {
        w->leader = leader_new(&(struct leader_options){ .client = w->client,
                                                         .ns = "sys",
                                                         .name = "l",
                                                         .identity = "me",
                                                         .duration_ms = 2 * deadline_ms,
                                                         .renew_deadline_ms = deadline_ms,
                                                         .retry_ms = retry_ms,
                                                         .started = on_started,
                                                         .lost = on_lost,
                                                         .u = w });
        run_until(&w->loop, &w->leads);
}

/* ---- lanes ---- */

/* failure: writes hang in an admission webhook -> the Lease and reads continue */
static void writes_that_hang_do_not_delay_the_lease_or_reads(void **state) {
        struct world *w = *state;
        w->hang = true;
        for (int i = 0; i < 100; i++) {
                start(w, KUBE_MERGE_PATCH, KUBE_LANE_BY_VERB, "hangs");
                start(w, KUBE_MERGE_PATCH, KUBE_LANE_BULK, "hangs");
        }
        RUN_UNTIL(&w->loop, w->n_waiting == 16 + 32);
        lead(w, 400, 100);
        start(w, KUBE_GET, KUBE_LANE_BY_VERB, "served");
        run_until(&w->loop, &w->done);
        run_for(&w->loop, 1000);
        assert_false(w->lost);
        assert_int_equal(w->n_waiting, 16 + 32);
}

/* failure: reads hang -> the Lease is renewed in time */
static void reads_that_hang_do_not_delay_the_lease(void **state) {
        struct world *w = *state;
        w->hang = true;
        lead(w, 400, 100);
        for (int i = 0; i < 100; i++)
                start(w, KUBE_GET, KUBE_LANE_BY_VERB, "hangs");
        RUN_UNTIL(&w->loop, w->n_waiting == 32);
        start(w, KUBE_MERGE_PATCH, KUBE_LANE_BY_VERB, "served");
        run_until(&w->loop, &w->done);
        run_for(&w->loop, 1000);
        assert_false(w->lost);
}

static void a_burst_of_writes_does_not_delay_the_lease(void **state) {
        struct world *w = *state;
        lead(w, 400, 100);
        for (int i = 0; i < 3000; i++)
                start(w, KUBE_MERGE_PATCH, KUBE_LANE_BY_VERB, "n");
        RUN_UNTIL(&w->loop, w->n_done == 3000);
        assert_false(w->lost);
}

/* ---- room in the bulk lane ---- */

static void on_pulled(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;
        w->in_hand--;
        on_done(u, obj, e);
        if (e) { /* it must be sent again */
                w->next--;
                kube_on_room(w->client, &w->wants);
        }
}

static void pull(struct kube_wants_room *r) {
        struct world *w = CONTAINER(r, struct world, wants);
        while (w->next < NODES && kube_room(w->client)) {
                w->next++;
                w->in_hand++;
                w->most_in_hand = w->in_hand > w->most_in_hand ? w->in_hand : w->most_in_hand;
                kube_start(w->client, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                              .lane = KUBE_LANE_BULK,
                                                              .res = &kube_nodes,
                                                              .name = "n",
                                                              .body = STR("{}"),
                                                              .attempts = 1,
                                                              .done = on_pulled,
                                                              .u = w });
        }
        if (w->next < NODES)
                kube_on_room(w->client, &w->wants);
}

static void pull_from(struct world *w, unsigned next) {
        w->next = next;
        w->wants.fn = pull;
        kube_on_room(w->client, &w->wants);
        assert_int_equal(w->in_hand, 0); /* only in a later turn */
}

/* failure: ten thousand patches are due -> the Lease is renewed in time */
static void ten_thousand_patches_do_not_delay_the_lease_and_are_current(void **state) {
        struct world *w = *state;
        lead(w, 1000, 200);
        pull_from(w, 0);
        RUN_UNTIL(&w->loop, w->n_done == NODES);
        assert_false(w->lost);
        assert_int_equal(w->n_failed, 0);
        assert_int_equal(w->patches, NODES);
        assert_in_range(w->most_in_hand, 2, MADE_MAX);
}

static void room_is_what_can_be_sent_at_once(void **state) {
        struct world *w = *state;
        w->hang = true;
        assert_int_equal(kube_room(w->client), MADE_MAX);
        for (unsigned i = 1; i <= MADE_MAX; i++) {
                start(w, KUBE_MERGE_PATCH, KUBE_LANE_BULK, "hangs");
                assert_int_equal(kube_room(w->client), MADE_MAX - i);
        }
        pull_from(w, NODES - 1);
        RUN_UNTIL(&w->loop, w->n_waiting == MADE_MAX);
        run_for(&w->loop, 50);
        assert_int_equal(w->in_hand, 0);
        fake_reply(w->waiting[7], 200, NULL, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"hangs\"}}");
        RUN_UNTIL(&w->loop, w->in_hand == 1);
        assert_int_equal(kube_room(w->client), 0);
}

/* No body is made while the server is unreachable. The lane retries with one request after each back-off. */
static void an_absent_server_has_no_room(void **state) {
        struct world *w = *state;
        w->away = true;
        pull_from(w, 0);
        RUN_UNTIL(&w->loop, w->n_failed);
        assert_int_equal(kube_room(w->client), 0);
        run_for(&w->loop, 1000);
        assert_true(kube_unreachable(&w->err));
        /* As many as may be in flight, at 0, 100, 300 and 700 ms, less 25 %. */
        assert_in_range(w->n_failed, 2, 5 * MADE_MAX);
        w->away = false;
        RUN_UNTIL(&w->loop, w->n_done - w->n_failed == NODES);
}

static void the_first_answer_of_a_server_makes_room(void **state) {
        struct world *w = *state;
        w->away = true;
        pull_from(w, NODES - 1);
        run_for(&w->loop, 2500); /* now the pause is at least 1.2 s long */
        w->away = false;
        unsigned failed = w->n_failed;
        start(w, KUBE_GET, KUBE_LANE_BY_VERB, "n");
        RUN_UNTIL(&w->loop, w->n_done - w->n_failed == 2);
        assert_int_equal(w->n_failed, failed);
}

/* failure: the API server asks for time (Retry-After) -> bulk writes wait, although other requests succeed */
static void a_server_that_asks_for_time_gets_no_requests(void **state) {
        struct world *w = *state;
        w->wait_s = 1;
        pull_from(w, NODES - 1);
        RUN_UNTIL(&w->loop, w->n_failed == 1);
        w->wait_s = 0;
        uint64_t begin = uv_hrtime();
        start(w, KUBE_GET, KUBE_LANE_BY_VERB, "n");
        RUN_UNTIL(&w->loop, w->n_done == 2);
        assert_int_equal(kube_room(w->client), 0);
        RUN_UNTIL(&w->loop, w->n_done == 3);
        assert_true(uv_hrtime() - begin >= 900 * 1000000ULL);
}

static void a_user_that_left_gets_no_room(void **state) {
        struct world *w = *state;
        pull_from(w, 0);
        kube_off_room(w->client, &w->wants);
        run_for(&w->loop, 20);
        assert_int_equal(w->next, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(writes_that_hang_do_not_delay_the_lease_or_reads),
                T(reads_that_hang_do_not_delay_the_lease),
                T(a_burst_of_writes_does_not_delay_the_lease),
                cmocka_unit_test_setup_teardown(ten_thousand_patches_do_not_delay_the_lease_and_are_current,
                                                set_up_paced, tear_down),
                T(room_is_what_can_be_sent_at_once),
                T(an_absent_server_has_no_room),
                T(the_first_answer_of_a_server_makes_room),
                T(a_server_that_asks_for_time_gets_no_requests),
                T(a_user_that_left_gets_no_room),
        };
        return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
