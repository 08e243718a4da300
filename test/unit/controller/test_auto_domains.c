/* SPDX-License-Identifier: Apache-2.0 */
/* Which ComputeDomains a leading controller creates for pods with the label. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "leading.h"
#include "api/names.h"

#define UID "1a2b3c4d-1111-2222-3333-444455556666"
#define POD(name, more, kind, owner)                                                                         \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"team\",\"uid\":\"" name                        \
        "-uid\",\"resourceVersion\":\"1\",\"creationTimestamp\":\"2026-02-01T00:00:00Z\",\"labels\":{"       \
        "\"" CD_LABEL_AUTO "\":\"enabled\",\"" LWS_LABEL_NAME "\":\"lws\"}" more                             \
        ",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"" kind "\",\"name\":\"" owner             \
        "\",\"uid\":\"" UID "\",\"controller\":true}]}}"
#define JOB_POD(name, more) POD(name, more, "Job", "train")
#define DOMAIN(more, claim)                                                                                  \
        "{\"metadata\":{\"name\":\"auto-train-1a2b3c4d\",\"namespace\":\"team\",\"uid\":\"d\","              \
        "\"resourceVersion\":\"30\",\"finalizers\":[\"" CD_FINALIZER "\"]" more                              \
        "},\"spec\":{\"numNodes\":0,\"channel\":{" claim "}}}"
#define CLAIM "\"resourceClaim\":{\"name\":\"auto-train-1a2b3c4d\"}"

enum { BODY = 4096 };

struct world {
        struct leading l;
        const char *pods, *domains;
        struct fake_conn *watch; /* of ComputeDomains */
        int refused; /* HTTP status of the answer to a creation; 0: it succeeds */
        unsigned n_made, n_events;
        char path[256], made[BODY], event[BODY], selection[1024];
};

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/api/v1/pods?")) {
                snprintf(w->selection, sizeof w->selection, "%s", path);
                return xstrdup(w->pods);
        }
        return fake_has(path, "/computedomains") ? xstrdup(w->domains) : NULL;
}

static void made(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        static const char meta[] = "\"metadata\":{";
        const char *at = strstr(r->body, meta);
        w->n_made++;
        snprintf(w->path, sizeof w->path, "%s", r->path);
        snprintf(w->made, sizeof w->made, "%s", r->body);
        if (w->refused) {
                fake_refuse(c, w->refused, "exceeded quota");
                return;
        }
        assert_non_null(at);
        at += strlen(meta);
        _cleanup_(freep) char *answer = xasprintf("%.*s\"uid\":\"new\",\"resourceVersion\":\"20\",%s",
                                                  (int)(at - r->body), r->body, at);
        fake_reply(c, 201, NULL, answer);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (streq(r->method, "GET") && fake_has(r->path, "/computedomains?") && fake_query(r, "watch"))
                w->watch = c;
        if (streq(r->method, "GET")) {
                leading_read(c, r, items_of, u);
        } else if (fake_has(r->path, "/computedomains") && streq(r->method, "POST")) {
                made(w, c, r);
        } else if (fake_has(r->path, "/namespaces/team/events")) {
                w->n_events++;
                snprintf(w->event, sizeof w->event, "%s", r->body);
                fake_reply(c, 201, NULL, r->body);
        } else {
                fake_refuse(c, 403, "not in this test");
        }
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "", "channel");
        w->l.config.auto_domains = true;
        w->pods = w->domains = "";
        *state = w;
        return 0;
}

static void settle(struct world *w) {
        const uint64_t end = uv_now(&w->l.loop) + 5000;
        RUN_UNTIL(&w->l.loop, uv_now(&w->l.loop) >= end);
}

static void the_pods_of_a_job_get_one_computedomain_that_the_job_owns(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "") "," JOB_POD("p2", "");
        leading_start(&w->l);
        settle(w);
        assert_int_equal(w->n_made, 1);
        assert_non_null(strstr(w->path, "/namespaces/team/computedomains"));
        assert_string_equal(
                w->made,
                "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomain\",\"metadata\":{"
                "\"name\":\"auto-train-1a2b3c4d\",\"namespace\":\"team\",\"labels\":{"
                "\"resource.nvidia.com/auto-domain\":\"enabled\"},\"ownerReferences\":[{"
                "\"apiVersion\":\"x/v1\",\"kind\":\"Job\",\"name\":\"train\",\"uid\":\"" UID
                "\"}]},\"spec\":{\"channel\":{\"resourceClaim\":{\"name\":\"auto-train-1a2b3c4d\"}},"
                "\"numNodes\":0}}");
        assert_int_equal(w->n_events, 0);
}

static void the_controller_reads_only_labelled_pods_that_have_not_ended(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        settle(w);
        assert_non_null(strstr(w->selection, "labelSelector=resource.nvidia.com%2Fauto-domain%3Denabled"));
        assert_non_null(strstr(w->selection, "fieldSelector=status.phase%21%3DSucceeded"));
        assert_int_equal(w->n_made, 0);
}

static void the_owner_of_a_group_is_that_of_its_leader(void **state) {
        struct world *w = *state;
        w->pods = POD("lws-0-1", "", "StatefulSet", "lws-0") "," POD("lws-0", "", "StatefulSet", "lws") ","
                POD("lws-0-2", "", "StatefulSet", "lws-0");
        leading_start(&w->l);
        settle(w);
        assert_int_equal(w->n_made, 1);
        assert_non_null(strstr(w->made, "\"name\":\"auto-lws-0-group\""));
        assert_non_null(strstr(w->made, "\"kind\":\"StatefulSet\",\"name\":\"lws\""));
}

static void a_pod_that_is_being_deleted_causes_no_computedomain(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", ",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\"");
        leading_start(&w->l);
        settle(w);
        assert_int_equal(w->n_made, 0);
}

static void an_existing_computedomain_with_the_claim_is_used(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        w->domains = DOMAIN("", CLAIM);
        leading_start(&w->l);
        settle(w);
        assert_int_equal(w->n_made, 0);
        assert_null(strstr(w->event, "AutoDomain"));
}

/* The garbage collector deletes it, because the pod names an owner that does not exist. */
/* failure: a pod names an owner that does not exist -> its ComputeDomain is not created again at once
 * [tenants] */
static void a_deleted_computedomain_is_not_created_again_at_once(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->watch);
        fake_chunk(w->watch, "{\"type\":\"ADDED\",\"object\":" DOMAIN("", CLAIM) "}\n");
        run_for(&w->l.loop, 2000);
        const unsigned before = w->n_made;
        fake_chunk(w->watch, "{\"type\":\"DELETED\",\"object\":" DOMAIN("", CLAIM) "}\n");
        run_for(&w->l.loop, 6000);
        assert_int_equal(w->n_made, before);
        run_for(&w->l.loop, 4000);
        assert_int_equal(w->n_made, before + 1);
}

static void an_event_reports_a_name_that_is_taken(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        w->domains = DOMAIN("", "\"resourceClaim\":{\"name\":\"other\"}");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->event, "AutoDomain"));
        assert_non_null(strstr(w->event, "\"AutoDomainNameTaken\""));
        assert_non_null(strstr(w->event, "\"name\":\"p1\""));
        assert_int_equal(w->n_made, 0);
}

static void an_event_reports_a_pod_that_meets_the_ending_computedomain_of_an_earlier_one(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        w->domains = DOMAIN(",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", CLAIM);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->event, "AutoDomain"));
        assert_non_null(strstr(w->event, "\"AutoDomainEnding\""));
        assert_int_equal(w->n_made, 0);
}

static void no_event_reports_the_pods_of_an_owner_that_is_being_deleted(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        w->domains = DOMAIN(",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\"", CLAIM);
        leading_start(&w->l);
        settle(w);
        assert_null(strstr(w->event, "AutoDomain"));
        assert_int_equal(w->n_made, 0);
}

static void an_event_reports_that_the_api_server_refuses_the_computedomain(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        w->refused = 403;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->event);
        assert_non_null(strstr(w->event, "\"AutoDomainNotCreated\""));
        assert_non_null(strstr(w->event, "exceeded quota"));
        assert_true(w->n_made > 0);
}

static void no_event_reports_a_creation_that_may_succeed_later(void **state) {
        struct world *w = *state;
        w->pods = JOB_POD("p1", "");
        w->refused = 500;
        leading_start(&w->l);
        settle(w);
        assert_string_equal(w->event, "");
        assert_true(w->n_made > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_pods_of_a_job_get_one_computedomain_that_the_job_owns,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(the_controller_reads_only_labelled_pods_that_have_not_ended,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(the_owner_of_a_group_is_that_of_its_leader, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_pod_that_is_being_deleted_causes_no_computedomain, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(an_existing_computedomain_with_the_claim_is_used, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_deleted_computedomain_is_not_created_again_at_once, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(an_event_reports_a_name_that_is_taken, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(
                        an_event_reports_a_pod_that_meets_the_ending_computedomain_of_an_earlier_one, setup,
                        leading_teardown),
                cmocka_unit_test_setup_teardown(no_event_reports_the_pods_of_an_owner_that_is_being_deleted,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(
                        an_event_reports_that_the_api_server_refuses_the_computedomain, setup,
                        leading_teardown),
                cmocka_unit_test_setup_teardown(no_event_reports_a_creation_that_may_succeed_later, setup,
                                                leading_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
