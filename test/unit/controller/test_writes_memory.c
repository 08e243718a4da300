/* SPDX-License-Identifier: Apache-2.0 */
/* Finished writes are remembered only as long as their interval requires. In virtual time (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "api/resources.h"
#include "base/mem.h"
#include "controller/writes.h"

enum { CLIQUES = 50, DOMAINS = 3, LONG_MS = 13000, SHORT_MS = WRITES_INTERVAL_MAX_MS };

/* Requesters "d/0", "d/1", ... that each want to write all cliques. */
struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct work_queue *queue;
        struct writes *writes;
        struct metrics *metrics;
        bool wanted, refused, gone;
        unsigned n_requests;
};

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        const char *name = strrchr(r->path, '/') + 1;
        _cleanup_(freep) char *body =
                xasprintf("{\"kind\":\"ComputeDomainClique\",\"metadata\":{\"name\":\"%.*s\"}}",
                          (int)strcspn(name, "?"), name);
        w->n_requests++;
        if (w->refused)
                fake_refuse(c, 422, "not like this");
        else
                fake_reply(c, 200, NULL, body);
}

static void on_key(void *u, const char *key) {
        struct world *w = u;
        if (w->gone) {
                writes_forget(w->writes, key);
                return;
        }
        writes_begin(w->writes, key);
        for (unsigned i = 0; w->wanted && i < CLIQUES; i++) {
                _cleanup_(freep) char *name = xasprintf("q-%u", i);
                writes_try(w->writes, &(struct writes_request){ .requester = key,
                                                                .verb = KUBE_MERGE_PATCH,
                                                                .res = &kube_cliques,
                                                                .ns = "driver",
                                                                .name = name,
                                                                .body = STR("{}"),
                                                                .interval_ms = WRITES_INTERVAL_MAX_MS });
        }
        writes_end(w->writes, key);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 10000, 1000);
        w->metrics = metrics_new();
        w->queue = work_queue_new(&w->loop, 10, 1000, on_key, w);
        w->writes = writes_new(&(struct writes_options){
                .client = w->client,
                .queue = w->queue,
                .manager = "test",
                .total = metric_add(w->metrics, METRIC_COUNTER, "t", "t",
                                    LABELS("resource", "verb", "result")),
        });
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        writes_free(w->writes);
        work_queue_free(w->queue);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        metrics_free(w->metrics);
        free(w);
        return 0;
}

/* Runs for `ms`, then gives each requester one pass. */
static void look_after(struct world *w, unsigned ms) {
        run_for(&w->loop, ms);
        for (char key[] = "d/0"; key[2] < '0' + DOMAINS; key[2]++)
                work_queue_add(w->queue, key);
        run_for(&w->loop, 1);
}

static void written_by_all(struct world *w) {
        w->wanted = true;
        look_after(w, 0);
        RUN_UNTIL(&w->loop, w->n_requests >= DOMAINS * CLIQUES && writes_in_flight(w->writes) == 0);
        w->wanted = false;
}

/* failure: thousands of objects were written -> each is forgotten after its interval */
static void a_written_object_is_remembered_for_its_interval_only(void **state) {
        struct world *w = *state;
        written_by_all(w);
        assert_int_equal(w->n_requests, DOMAINS * CLIQUES);
        look_after(w, SHORT_MS);
        assert_int_equal(writes_remembered(w->writes), DOMAINS * CLIQUES);
        look_after(w, LONG_MS);
        assert_int_equal(writes_remembered(w->writes), 0);
}

/* failure: the longest interval has not passed, and a pass did not want the write -> the write waits */
static void a_write_waits_for_the_longest_interval(void **state) {
        struct world *w = *state;
        written_by_all(w);
        look_after(w, WRITES_INTERVAL_MAX_MS - 2000); /* a pass that wants nothing */
        w->wanted = true;
        look_after(w, 1000);
        assert_int_equal(w->n_requests, DOMAINS * CLIQUES);
        RUN_UNTIL(&w->loop, w->n_requests == 2 * DOMAINS * CLIQUES);
}

static void writes_tidy_forgets_finished_writes_of_idle_requesters(void **state) {
        struct world *w = *state;
        written_by_all(w);
        look_after(w, 0); /* the last pass: the requesters want nothing */
        writes_expire(w->writes);
        assert_int_equal(writes_remembered(w->writes), DOMAINS * CLIQUES);
        run_for(&w->loop, LONG_MS);
        writes_expire(w->writes);
        assert_int_equal(writes_remembered(w->writes), 0);
}

/* failure: thousands of writes are refused -> each is remembered only while it is wanted */
static void a_refused_write_is_remembered_while_it_is_wanted(void **state) {
        struct world *w = *state;
        w->refused = true;
        written_by_all(w);
        w->wanted = true;
        look_after(w, LONG_MS);
        assert_int_equal(writes_remembered(w->writes), DOMAINS * CLIQUES);
        w->wanted = false;
        look_after(w, LONG_MS);
        look_after(w, LONG_MS); /* for writes that were in flight in the pass before */
        assert_int_equal(writes_remembered(w->writes), 0);
}

/* failure: thousands of ComputeDomains are deleted -> nothing is remembered of them */
static void nothing_is_remembered_of_a_deleted_domain(void **state) {
        struct world *w = *state;
        written_by_all(w);
        w->gone = true;
        look_after(w, 0);
        assert_int_equal(writes_remembered(w->writes), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_written_object_is_remembered_for_its_interval_only),
                T(a_write_waits_for_the_longest_interval),
                T(writes_tidy_forgets_finished_writes_of_idle_requesters),
                T(a_refused_write_is_remembered_while_it_is_wanted),
                T(nothing_is_remembered_of_a_deleted_domain),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
