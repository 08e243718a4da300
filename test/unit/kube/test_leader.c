/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates against a server that keeps one Lease like a real one: versions, conflicts, watches. */
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
#include "kube/leader.h"

enum { MAX_WATCHES = 8 };

struct candidate {
        struct kube_client *client;
        struct leader *leader;
        bool started, lost, released;
        unsigned n_started;
        char observed[64];
        uint64_t started_at;
        bool free_on_lost;
};

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct fake_conn *watches[MAX_WATCHES];
        unsigned n_watches;
        char *spec; /* of the Lease; NULL: there is none */
        unsigned rv, writes, conflicts, creates, reads;
        bool deaf;       /* writes get no answer */
        bool slow;       /* the next write is done, but gets no answer */
        bool arrived;    /* that write was done */
        bool no_events;  /* watches are silent */
        unsigned refuse; /* number of writes that are answered with 403 */
        bool blind;      /* lists are answered with 403 */
        bool stubborn;   /* each write conflicts */
        struct candidate a, b;
};

static char *lease_json(struct world *w) {
        return xasprintf("{\"kind\":\"Lease\",\"metadata\":{\"namespace\":\"sys\",\"name\":\"lock\","
                         "\"resourceVersion\":\"%u\"},"
                         "\"spec\":%s}",
                         w->rv, w->spec);
}

static void notify_watches(struct world *w, const char *type) {
        _cleanup_(freep) char *lease = lease_json(w),
                              *line = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, lease);
        for (unsigned i = 0; i < w->n_watches && !w->no_events; i++)
                fake_chunk(w->watches[i], line);
}

static void set_lease(struct world *w, const char *spec) {
        const char *type = w->spec ? "MODIFIED" : "ADDED";
        free(w->spec);
        w->spec = xstrdup(spec);
        w->rv++;
        notify_watches(w, type);
}

static const char *field(struct world *w, const char *name) {
        static char value[128];
        _cleanup_(freep) char *key = xasprintf("\"%s\":", name);
        const char *p = w->spec ? strstr(w->spec, key) : NULL;
        if (!p)
                return NULL;
        p += strlen(key);
        snprintf(value, sizeof value, "%.*s", (int)strcspn(p, ",}"), p);
        return value;
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        _cleanup_(freep) char *lease = w->spec ? lease_json(w) : NULL;

        if (fake_query(r, "watch")) {
                assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=lock");
                assert_true(w->n_watches < MAX_WATCHES);
                w->watches[w->n_watches++] = c;
                fake_stream(c);
        } else if (streq(r->method, "GET") &&
                   str_starts(r->path, "/apis/coordination.k8s.io/v1/namespaces/sys/leases?")) {
                if (w->blind) {
                        fake_refuse(c, 403, "leases is forbidden");
                        return;
                }
                _cleanup_(freep) char *list =
                        xasprintf("{\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[%s]}", w->rv,
                                  lease ? lease : "");
                fake_list(c, r, "Lease", list);
        } else if (streq(r->method, "GET")) {
                w->reads++;
                if (lease)
                        fake_reply(c, 200, NULL, lease);
                else
                        fake_missing(c, "coordination.k8s.io", "leases", "lock");
        } else if (!w->deaf) {
                const char *spec = strstr(r->body, "\"spec\":");
                bool create = streq(r->method, "POST");
                char version[48];
                assert_non_null(spec);
                w->writes++;
                w->creates += create;
                snprintf(version, sizeof version, "\"resourceVersion\":\"%u\"", w->rv);
                if (w->refuse) {
                        w->refuse--;
                        fake_refuse(c, 403, "no");
                } else if (w->stubborn || create ? w->spec != NULL : !fake_has(r->body, version)) {
                        w->conflicts++;
                        fake_refuse(c, 409, "conflict");
                } else {
                        _cleanup_(freep) char *text = xstrndup(spec + 7, strlen(spec + 7) - 1);
                        set_lease(w, text);
                        if (w->slow) {
                                w->slow = false;
                                w->arrived = true;
                                return;
                        }
                        _cleanup_(freep) char *now = lease_json(w);
                        fake_reply(c, create ? 201 : 200, NULL, now);
                }
        }
}

static void on_started(void *u) {
        struct candidate *c = u;
        c->started = true;
        c->n_started++;
        c->started_at = uv_hrtime() / 1000000;
}

static void on_lost(void *u) {
        struct candidate *c = u;
        c->lost = true;
        if (c->free_on_lost)
                leader_free(TAKE(c->leader));
}

static bool in_trouble;
static char words[400];

static void on_trouble(void *u, const struct err *e) {
        in_trouble = e != NULL;
        if (e)
                snprintf(words, sizeof words, "%s", e->msg);
}

static void on_observed(void *u, const char *identity) {
        struct candidate *c = u;
        snprintf(c->observed, sizeof c->observed, "%s", identity);
}

static void on_released(void *u) {
        struct candidate *c = u;
        c->released = true;
}

static void stand_again(struct world *w, struct candidate *c, const char *identity, const char *earlier) {
        c->client = fake_client_new(&w->loop, w->server, 0, 0);
        c->leader =
                leader_new(&(struct leader_options){ .client = c->client,
                                                     .ns = "sys",
                                                     .name = "lock",
                                                     .identity = identity,
                                                     .earlier = earlier,
                                                     .failing = on_trouble,
                                                     .duration_ms = 900, /* the Lease has 1 s: rounded up */
                                                     .renew_deadline_ms = 600,
                                                     .retry_ms = 100,
                                                     .started = on_started,
                                                     .lost = on_lost,
                                                     .observed = on_observed,
                                                     .u = c });
        assert_false(c->started);
}

static void stand(struct world *w, struct candidate *c, const char *identity) {
        stand_again(w, c, identity, NULL);
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->rv = 1;
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        *state = w;
        return 0;
}

static void end(struct candidate *c) {
        leader_free(TAKE(c->leader));
        kube_client_free(TAKE(c->client));
}

static int tear_down(void **state) {
        struct world *w = *state;
        end(&w->a);
        end(&w->b);
        fake_server_free(w->server);
        loop_end(&w->loop);
        free(w->spec);
        free(w);
        return 0;
}

static void test_takes_a_missing_lease_and_renews_it(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        assert_int_equal(w->creates, 1);
        assert_string_equal(field(w, "holderIdentity"), "\"me\"");
        assert_string_equal(field(w, "leaseDurationSeconds"), "1");
        assert_string_equal(field(w, "leaseTransitions"), "0");
        char acquired[64], renewed[64];
        snprintf(acquired, sizeof acquired, "%s", field(w, "acquireTime"));
        snprintf(renewed, sizeof renewed, "%s", field(w, "renewTime"));
        assert_true(strlen(acquired) == strlen("\"2026-01-01T00:00:00.000000Z\""));
        run_for(&w->loop, 450);
        assert_in_range(w->writes, 3, 6);
        assert_int_equal(w->conflicts, 0);
        assert_string_equal(field(w, "acquireTime"), acquired);
        assert_string_not_equal(field(w, "renewTime"), renewed);
        assert_string_equal(w->a.observed, "me");
        assert_int_equal(w->a.n_started, 1);
        assert_false(w->a.lost);
}

static void test_second_candidate_waits_without_polling(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        run_until(&w->loop, &w->a.started);
        stand(w, &w->b, "two");
        unsigned before = fake_server_requests(w->server), writes = w->writes;
        run_for(&w->loop, 1300);
        assert_false(w->b.started);
        assert_string_equal(w->b.observed, "one");
        assert_int_equal(fake_server_requests(w->server) - before - (w->writes - writes),
                         2); /* only its list and its watch */
}

static void test_hand_over_by_release_is_immediate(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        run_until(&w->loop, &w->a.started);
        stand(w, &w->b, "two");
        run_for(&w->loop, 100);
        uint64_t before = uv_hrtime() / 1000000;
        leader_release(w->a.leader, on_released, &w->a);
        assert_false(w->a.released);
        run_until(&w->loop, &w->b.started);
        assert_in_range(w->b.started_at - before, 0, 100);
        assert_true(w->a.released);
        assert_false(w->a.lost);
        assert_string_equal(field(w, "holderIdentity"), "\"two\"");
        assert_string_equal(field(w, "leaseTransitions"), "1");
        run_for(&w->loop, 300);
        assert_string_equal(field(w, "holderIdentity"), "\"two\"");
}

static void test_hand_over_by_expiry(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        run_until(&w->loop, &w->a.started);
        stand(w, &w->b, "two");
        run_for(&w->loop, 150);
        uint64_t before = uv_hrtime() / 1000000;
        end(&w->a); /* as if killed */
        run_until(&w->loop, &w->b.started);
        assert_true(w->b.started_at - before >= 850);
}

static void test_foreign_lease_is_kept_until_it_expires(void **state) {
        struct world *w = *state;
        set_lease(w, "{\"holderIdentity\":\"go\",\"leaseDurationSeconds\":1,\"acquireTime\":\"2020-01-01T00:"
                     "00:00.000000Z\","
                     "\"renewTime\":\"2020-01-01T00:00:00.000000Z\",\"leaseTransitions\":41}");
        uint64_t before = uv_hrtime() / 1000000;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        assert_true(w->a.started_at - before >=
                    1000); /* the clock of the other holder does not count, ours does */
        assert_string_equal(field(w, "leaseTransitions"), "42");
        assert_string_equal(w->a.observed, "me");
}

static void test_released_and_empty_leases_are_taken_at_once(void **state) {
        static const char *const specs[] = { "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":3600}", "{}",
                                             "{\"holderIdentity\":null}" };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                set_lease(w, specs[i]);
                stand(w, &w->a, "me");
                run_until(&w->loop, &w->a.started);
                end(&w->a);
                memset(&w->a, 0, sizeof w->a);
        }
}

static void test_lease_of_an_earlier_process_with_another_identity_is_taken_at_once(void **state) {
        struct world *w = *state;
        set_lease(
                w,
                "{\"holderIdentity\":\"pod-1-first\",\"leaseDurationSeconds\":3600,\"leaseTransitions\":7}");
        stand_again(w, &w->a, "pod-1-second", "pod-1-");
        run_until(&w->loop, &w->a.started);
        assert_string_equal(field(w, "leaseTransitions"), "8");
}

static void test_lease_of_a_namesake_is_respected(void **state) {
        struct world *w = *state;
        set_lease(
                w,
                "{\"holderIdentity\":\"pod-12-first\",\"leaseDurationSeconds\":3600,\"leaseTransitions\":7}");
        stand_again(w, &w->a, "pod-1-second", "pod-1-");
        run_for(&w->loop, 300);
        assert_false(w->a.started);
}

static void test_own_lease_of_an_earlier_process_is_renewed(void **state) {
        struct world *w = *state;
        set_lease(w, "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":1,\"acquireTime\":\"2020-01-01T00:"
                     "00:00.000000Z\","
                     "\"leaseTransitions\":7}");
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        assert_string_equal(field(w, "leaseTransitions"), "7");
        assert_string_equal(field(w, "acquireTime"), "\"2020-01-01T00:00:00.000000Z\"");
}

static void test_lost_when_renewals_get_no_answer(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        uint64_t before = uv_hrtime() / 1000000;
        w->deaf = true;
        run_until(&w->loop, &w->a.lost);
        assert_in_range(uv_hrtime() / 1000000 - before, 400,
                        900); /* before others may acquire it, 1 s after the last renewal */
        run_for(&w->loop, 300);
        assert_int_equal(w->a.n_started, 1);
}

static void test_lost_when_the_server_is_gone(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        fake_server_kill(w->server);
        w->a.free_on_lost = true;
        run_until(&w->loop, &w->a.lost);
}

static void test_lost_when_another_holds_it(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        set_lease(w, "{\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":1}");
        run_until(&w->loop, &w->a.lost);
        assert_string_equal(w->a.observed, "thief");
}

static void test_short_failures_are_survived(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        w->refuse = 3;
        run_for(&w->loop, 1500);
        assert_false(w->a.lost);
        assert_int_equal(w->refuse, 0);
}

static void counts_without_answer(struct world *w, bool is_watched) {
        struct leader_view before, after;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        w->no_events = !is_watched;
        w->slow = true;
        run_until(&w->loop, &w->arrived);
        leader_view(w->a.leader, &before);
        uint64_t arrived_ms = uv_now(&w->loop);
        if (is_watched) {
                w->deaf = true;
                RUN_UNTIL(&w->loop, uv_now(&w->loop) > arrived_ms + 50);
        } else {
                w->stubborn = true; /* so that no later renewal succeeds */
                RUN_UNTIL(&w->loop, w->reads);
                run_for(&w->loop, 20);
        }
        leader_view(w->a.leader, &after);
        assert_true(after.leads);
        assert_true(after.renewed_ms < before.renewed_ms + (uv_now(&w->loop) - arrived_ms));
}

/* failure: the API server answers a renewal too late -> the renewal counts when a read shows it */
static void test_a_renewal_without_an_answer_counts_when_it_is_read(void **state) {
        counts_without_answer(*state, false);
}

static void test_a_renewal_without_an_answer_counts_when_the_watch_shows_it(void **state) {
        counts_without_answer(*state, true);
}

/* Another program annotated the Lease, and the watch did not report it. */
static void test_conflict_while_the_watch_is_silent(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        w->no_events = true;
        w->rv += 5;
        run_for(&w->loop, 800);
        assert_false(w->a.lost);
        assert_int_equal(w->conflicts, 1);
        assert_int_equal(w->reads, 1);
}

/* etcd was restored from a backup: the Lease has an older version, and no watch shows it. */
static void restore(struct world *w, const char *spec) {
        w->no_events = true;
        w->rv = 1001;
        free(w->spec);
        w->spec = xstrdup(spec);
}

/* failure: etcd is restored under a leader -> it renews the older Lease and stays leader [etcd] */
static void test_a_restored_lease_is_renewed(void **state) {
        struct world *w = *state;
        w->rv = 1200;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        restore(w, "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":1}");
        unsigned before = w->writes;
        run_for(&w->loop, 1500);
        assert_false(w->a.lost);
        assert_in_range(w->conflicts, 1, 2);
        assert_in_range(w->writes - before, 5, 25);
}

/* failure: a restored Lease has an earlier holder -> a standby acquires it when it expires [etcd] */
static void test_a_standby_takes_a_restored_lease_when_it_expires(void **state) {
        struct world *w = *state;
        w->rv = 1200;
        set_lease(w, "{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":1}");
        stand(w, &w->a, "me");
        run_for(&w->loop, 100);
        restore(w, "{\"holderIdentity\":\"another\",\"leaseDurationSeconds\":1}");
        run_until(&w->loop, &w->a.started);
        assert_string_equal(w->a.observed, "me");
        assert_in_range(w->conflicts, 1, 2);
        assert_in_range(w->reads, 1, 2);
}

/* failure: the restored etcd lacks the Lease -> the leader creates it [etcd] */
static void test_a_lease_that_the_backup_lacks_is_created(void **state) {
        struct world *w = *state;
        w->rv = 1200;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        restore(w, "");
        free(TAKE(w->spec));
        run_for(&w->loop, 1500);
        assert_false(w->a.lost);
        assert_int_equal(w->creates, 2);
}

/* One attempt every 75 to 125 ms, each with one read. */
/* failure: writes of the Lease conflict without a reason -> they are retried after a delay [etcd] */
static void test_a_conflict_that_a_read_does_not_explain_is_retried_after_a_pause(void **state) {
        struct world *w = *state;
        set_lease(w, "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1}");
        w->stubborn = true;
        stand(w, &w->a, "me");
        run_for(&w->loop, 2000);
        assert_in_range(w->writes, 2, 28);
        assert_in_range(w->reads, 2, 28);
}

static void test_deleted_lease_is_recreated(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "me");
        run_until(&w->loop, &w->a.started);
        w->rv++;
        notify_watches(w, "DELETED");
        free(TAKE(w->spec));
        run_for(&w->loop, 500);
        assert_non_null(w->spec);
        assert_int_equal(w->creates, 2);
        assert_false(w->a.lost);
}

static void test_two_at_once(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        stand(w, &w->b, "two");
        run_for(&w->loop, 600);
        assert_true(w->a.started != w->b.started);
        assert_in_range(w->conflicts, 0, 1);
}

static void test_release_without_leading(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        run_until(&w->loop, &w->a.started);
        stand(w, &w->b, "two");
        run_for(&w->loop, 100);
        leader_release(w->b.leader, on_released, &w->b);
        run_until(&w->loop, &w->b.released);
        assert_string_equal(field(w, "holderIdentity"), "\"one\"");
}

static void test_release_while_the_server_is_gone_ends_in_time(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        run_until(&w->loop, &w->a.started);
        fake_server_kill(w->server);
        leader_release(w->a.leader, on_released, &w->a);
        run_until(&w->loop, &w->a.released);
}

static void test_release_before_anything_is_known(void **state) {
        struct world *w = *state;
        stand(w, &w->a, "one");
        leader_release(w->a.leader, on_released, &w->a);
        run_until(&w->loop, &w->a.released);
        run_for(&w->loop, 200);
        assert_false(w->a.started);
}

/* failure: a candidate may not watch the Lease -> it reports that */
static void test_a_candidate_that_cannot_watch_the_lease_reports_it(void **state) {
        struct world *w = *state;
        w->blind = true;
        in_trouble = false;
        stand_again(w, &w->a, "a", NULL);
        RUN_UNTIL(&w->loop, in_trouble);
        assert_non_null(strstr(words, "the Lease sys/lock cannot be watched"));
        assert_non_null(strstr(words, "leases is forbidden"));
        w->blind = false;
        RUN_UNTIL(&w->loop, !in_trouble);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_takes_a_missing_lease_and_renews_it),
                T(test_second_candidate_waits_without_polling),
                T(test_hand_over_by_release_is_immediate),
                T(test_hand_over_by_expiry),
                T(test_foreign_lease_is_kept_until_it_expires),
                T(test_released_and_empty_leases_are_taken_at_once),
                T(test_own_lease_of_an_earlier_process_is_renewed),
                T(test_lease_of_an_earlier_process_with_another_identity_is_taken_at_once),
                T(test_lease_of_a_namesake_is_respected),
                T(test_lost_when_renewals_get_no_answer),
                T(test_lost_when_the_server_is_gone),
                T(test_lost_when_another_holds_it),
                T(test_short_failures_are_survived),
                T(test_a_renewal_without_an_answer_counts_when_it_is_read),
                T(test_a_renewal_without_an_answer_counts_when_the_watch_shows_it),
                T(test_conflict_while_the_watch_is_silent),
                T(test_a_restored_lease_is_renewed),
                T(test_a_standby_takes_a_restored_lease_when_it_expires),
                T(test_a_lease_that_the_backup_lacks_is_created),
                T(test_a_conflict_that_a_read_does_not_explain_is_retried_after_a_pause),
                T(test_deleted_lease_is_recreated),
                T(test_two_at_once),
                T(test_release_without_leading),
                T(test_release_while_the_server_is_gone_ends_in_time),
                T(test_release_before_anything_is_known),
                T(test_a_candidate_that_cannot_watch_the_lease_reports_it),
        };
        return cmocka_run_group_tests_name("leader", tests, NULL, NULL);
}
