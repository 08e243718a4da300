/* SPDX-License-Identifier: Apache-2.0 */
/* A report on the program's own Pod: when it is written, and when it is retried. In virtual time
 * (world/clock.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/loop.h"
#include "base/mem.h"
#include "kube/report_sender.h"
#include "world/fake_client.h"

struct pod {
        struct kube_object o;
        const char *report;
};
static const struct jd_field f_pod[] = { JD_OBJ(struct pod, "metadata", o.meta, kube_f_meta),
                                         JD_STR(struct pod, "metadata>annotations>report", report), JD_END };

static struct {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct report_sender *sender;
        struct fake_conn *watch;
        const char *wanted, *sent; /* sent: NULL: not known */
        int wait_ms;
        char stored[16];                            /* the report on the server's Pod */
        unsigned rv, n_patches, n_refused, n_reads; /* n_refused: patches while it was down */
        bool down;                                  /* the API server is overloaded */
        bool drops;                                 /* the API server drops reports */
        bool holds;                                 /* patches get no answer */
        struct fake_conn *held;
} t;

/* ---- the API server ---- */

static const char *pod_text(void) {
        static char text[512];
        snprintf(text, sizeof text,
                 "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                 "\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"%u\","
                 "\"annotations\":{\"report\":\"%s\"}}}",
                 t.rv, t.stored);
        return text;
}

static void on_patch(struct fake_conn *c, const struct fake_request *r) {
        const char *at = strstr(r->body, "\"report\":\"");
        t.n_patches++;
        t.rv++;
        assert_non_null(at);
        if (!t.drops)
                snprintf(t.stored, sizeof t.stored, "%.*s", (int)strcspn(at + 10, "\""), at + 10);
        if (t.holds)
                t.held = c;
        else
                fake_reply(c, 200, NULL, pod_text());
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        char list[1024];
        if (t.down) {
                t.n_refused += streq(r->method, "PATCH") ? 1 : 0;
                fake_refuse(c, 503, "overloaded");
                return;
        }
        t.n_reads += streq(r->method, "GET");
        if (streq(r->method, "PATCH")) {
                on_patch(c, r);
        } else if (fake_query(r, "watch")) {
                t.watch = c;
                fake_stream(c);
        } else {
                snprintf(list, sizeof list, "{\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[%s]}",
                         t.rv, pod_text());
                fake_list(c, r, "Pod", list);
        }
}

/* Somebody else writes the report, or a restore of etcd brings an earlier one back. */
static void write_report(const char *report) {
        t.rv++;
        snprintf(t.stored, sizeof t.stored, "%s", report);
        _cleanup_(freep) char *line = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", pod_text());
        fake_chunk(t.watch, line);
}

/* ---- the program ---- */

static int wait_ms(void *u) {
        const struct pod *pod = (const struct pod *)(const void *)report_sender_object(t.sender);
        return streq(pod ? pod->report : t.sent, t.wanted) ? -1 : t.wait_ms;
}

static void render(void *u, struct buf *out) {
        t.sent = t.wanted;
        buf_addf(out, "{\"metadata\":{\"annotations\":{\"report\":\"%s\"}}}", t.wanted);
}

static bool sent(void *u, bool failed) {
        const struct pod *pod = (const struct pod *)(const void *)report_sender_object(t.sender);
        if (failed)
                t.sent = NULL;
        return !pod || streq(pod->report, t.sent);
}

static void set(const char *report, int may_wait_ms) {
        t.wanted = report;
        t.wait_ms = may_wait_ms;
        report_sender_check(t.sender);
}

static int set_up(void **state) {
        memset(&t, 0, sizeof t);
        t.rv = 10;
        t.wanted = t.sent = "";
        uv_loop_init(&t.loop);
        t.server = fake_server_new(&t.loop, 0, on_request, NULL);
        t.client = fake_client_new(&t.loop, t.server, 0, 0);
        t.sender = report_sender_new(&(struct report_sender_options){ .client = t.client,
                                                                      .ns = "ns",
                                                                      .name = "a",
                                                                      .fields = f_pod,
                                                                      .size = sizeof(struct pod),
                                                                      .wait_ms = wait_ms,
                                                                      .render = render,
                                                                      .sent = sent });
        RUN_UNTIL(&t.loop, t.watch);
        return 0;
}

static int tear_down(void **state) {
        report_sender_free(t.sender);
        kube_client_free(t.client);
        fake_server_free(t.server);
        loop_end(&t.loop);
        return 0;
}

/* ---- the tests ---- */

static void a_report_is_written_once(void **state) {
        set("one", 0);
        run_for(&t.loop, 500);
        assert_string_equal(t.stored, "one");
        report_sender_check(t.sender);
        run_for(&t.loop, 5000);
        assert_int_equal(t.n_patches, 1);
}

static void the_earlier_of_two_times_counts(void **state) {
        set("one", 10000);
        run_for(&t.loop, 1000);
        set("two", 60000);
        run_for(&t.loop, 5000);
        assert_int_equal(t.n_patches, 0);
        run_for(&t.loop, 5000);
        assert_string_equal(t.stored, "two");
        set("three", 60000);
        set("four", 0);
        run_for(&t.loop, 500);
        assert_string_equal(t.stored, "four");
        assert_int_equal(t.n_patches, 2);
}

static void a_report_that_changes_during_a_patch_is_written_after_it(void **state) {
        t.holds = true;
        set("one", 0);
        RUN_UNTIL(&t.loop, t.held);
        set("two", 0);
        run_for(&t.loop, 1000);
        assert_int_equal(t.n_patches, 1);
        t.holds = false;
        fake_reply(t.held, 200, NULL, pod_text());
        run_for(&t.loop, 500);
        assert_string_equal(t.stored, "two");
        assert_int_equal(t.n_patches, 2);
}

/* failure: a restore of etcd brings an earlier report back -> it is written again at once [etcd] */
static void a_report_that_the_pod_loses_is_written_again(void **state) {
        set("one", 0);
        run_for(&t.loop, 500);
        write_report("zero");
        run_for(&t.loop, 500);
        assert_string_equal(t.stored, "one");
        assert_int_equal(t.n_patches, 2);
}

/* failure: the API server does not answer for a while -> reports are retried when it answers again [etcd] */
static void a_report_is_retried_when_the_api_server_answers_again(void **state) {
        t.down = true;
        fake_close(t.watch);
        set("one", 0);
        run_for(&t.loop, 120000);
        unsigned n = t.n_refused;
        RUN_UNTIL(&t.loop, t.n_refused > n);
        run_for(&t.loop, 10000); /* the retry has failed, and a back-off of a minute has begun */
        t.down = false;
        n = t.n_reads;
        for (unsigned s = 0; s < 20 && t.n_reads == n; s++)
                run_for(&t.loop, 1000);
        assert_true(t.n_reads > n);
        run_for(&t.loop, 1000);
        assert_string_equal(t.stored, "one");
}

static void a_report_that_the_api_server_drops_is_retried_with_back_off(void **state) {
        t.drops = true;
        set("one", 0);
        run_for(&t.loop, 62000);
        assert_in_range(t.n_patches, 5, 6); /* after 1, 2, 4, 8, 16 and 32 seconds */
        t.drops = false;
        run_for(&t.loop, 60000);
        assert_string_equal(t.stored, "one");
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(a_report_is_written_once),
                T(the_earlier_of_two_times_counts),
                T(a_report_that_changes_during_a_patch_is_written_after_it),
                T(a_report_that_the_pod_loses_is_written_again),
                T(a_report_is_retried_when_the_api_server_answers_again),
                T(a_report_that_the_api_server_drops_is_retried_with_back_off),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
