/* SPDX-License-Identifier: Apache-2.0 */
/* What a leading controller reports about PodGroups whose Pods share a claim for a channel. The claims look
 * as kube-controller-manager and kube-scheduler of Kubernetes 1.37.2 write them. */
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
#include "controller/pod_groups.h"

#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

struct world {
        struct leading l;
        const char *claims;      /* items of the list */
        struct fake_conn *watch; /* of claims */
        const char *more;        /* other claims and claim templates in spec.channel */
        const char *conditions;  /* in the status of the ComputeDomain */
        const char *groups;      /* items of the list */
        struct fake_conn *of_groups; /* the watch */
        bool holds;                  /* the API server does not answer lists of PodGroups */
        struct fake_conn *held;      /* such a request */
        bool behind_proxy;           /* a proxy answers requests for PodGroups with 404 */
        bool another_shares;     /* another ComputeDomain names a shared claim, so PodGroups are watched */
        char event[4096];        /* the last one of a PodGroup */
        char status[8192];       /* the last one of the ComputeDomain */
        unsigned n_events;
};

#define ANOTHER                                                                                              \
        "{\"metadata\":{\"name\":\"another\",\"namespace\":\"team-a\",\"uid\":"                              \
        "\"bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60\",\"resourceVersion\":\"1\"},\"spec\":{\"channel\":{"        \
        "\"resourceClaim\":{\"name\":\"another\"}}}}"

static char *domain_of(const struct world *w) {
        return xasprintf("{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                         "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER
                         "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"%s\"}},\"spec\":{\"channel\":{"
                         "\"resourceClaimTemplate\":{\"name\":\"train-channel\"}%s}},"
                         "\"status\":{\"status\":\"Ready\"%s}}",
                         w->l.config.mode->name, w->more, w->conditions);
}
#define SPEC                                                                                                 \
        "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"channel\",\"exactly\":{\"deviceClassName\":"       \
        "\"" CD_CLASS_CHANNEL                                                                                \
        "\"}}],\"config\":[{\"requests\":[\"channel\"],\"opaque\":{\"driver\":\"" CD_DRIVER                  \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN "\"}}}]}}"
#define ALLOCATED                                                                                            \
        "\"allocation\":{\"devices\":{\"results\":[{\"request\":\"channel\",\"driver\":\"" CD_DRIVER         \
        "\",\"pool\":\"n1\",\"device\":\"channel-0\"}],\"config\":[]}}"
#define CLAIM(ns, owner, status) CLAIM_AT(2, ns, owner, status)
#define CLAIM_AT(version, ns, owner, status)                                                                 \
        "{\"metadata\":{\"name\":\"gang-channel-x7k2p\",\"namespace\":\"" ns                                 \
        "\",\"uid\":\"c\",\"resourceVersion\":\"" #version "\"" owner "}," SPEC ",\"status\":{" status "}}"
#define OWNED_BY(version, kind)                                                                              \
        ",\"ownerReferences\":[{\"apiVersion\":\"" version "\",\"kind\":\"" kind                             \
        "\",\"name\":\"gang\",\"uid\":\"g\",\"controller\":true}]"
#define RESERVED_FOR(group, resource)                                                                        \
        ALLOCATED ",\"reservedFor\":[{\"apiGroup\":\"" group "\",\"resource\":\"" resource                   \
                  "\",\"name\":\"gang\",\"uid\":\"g\"}]"

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/resourceclaims"))
                return xstrdup(w->claims);
        if (fake_has(path, "/resourceslices"))
                return xstrdup("");
        if (fake_has(path, "/podgroups"))
                return xstrdup(w->groups);
        if (!fake_has(path, "/computedomains"))
                return NULL;
        _cleanup_(freep) char *domain = domain_of(w);
        return xasprintf("%s%s", domain, w->another_shares ? "," ANOTHER : "");
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (streq(r->method, "GET")) {
                if (fake_has(r->path, "/resourceclaims") && fake_query(r, "watch"))
                        w->watch = c;
                if (fake_has(r->path, "/podgroups") && w->behind_proxy) {
                        fake_reply(c, 404, NULL, "<html>404 another server</html>");
                        return;
                }
                if (fake_has(r->path, "/podgroups") && fake_query(r, "watch"))
                        w->of_groups = c;
                else if (fake_has(r->path, "/podgroups") && w->holds) {
                        w->held = c;
                        return;
                }
                leading_read(c, r, items_of, u);
                return;
        }
        if (fake_has(r->path, "/computedomains/train/status"))
                snprintf(w->status, sizeof w->status, "%s", r->body);
        if (fake_has(r->path, "/events") && strstr(r->body, "PodGroupOnOneNode")) {
                snprintf(w->event, sizeof w->event, "%s", r->body);
                w->n_events++;
        }
        fake_refuse(c, 403, "not in this test");
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->claims = w->more = w->groups = w->conditions = "";
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", NULL);
        *state = w;
        return 0;
}

/* A group that needs several nodes stays unscheduled, and its claim unallocated. */
/* failure: a PodGroup names a claim -> an Event reports that the group must run on one node */
static void a_claim_of_a_group_is_reported_before_it_is_allocated(void **state) {
        struct world *w = *state;
        w->claims = CLAIM("team-a", OWNED_BY("scheduling.k8s.io/v1beta1", "PodGroup"), "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_events);
        assert_non_null(strstr(w->event, "\"kind\":\"PodGroup\""));
        assert_non_null(strstr(w->event, "\"apiVersion\":\"scheduling.k8s.io/v1beta1\""));
        assert_non_null(strstr(w->event, "\"name\":\"gang\""));
        assert_non_null(strstr(w->event, "\"type\":\"Warning\""));
        assert_non_null(strstr(w->event, "ResourceClaim gang-channel-x7k2p"));
        assert_non_null(strstr(w->event, "ComputeDomain 'train'"));
        assert_non_null(strstr(w->event, "claim template train-channel"));
}

/* failure: a named claim is reserved for a PodGroup -> an Event reports it */
static void a_named_claim_is_reported_when_it_is_reserved_for_a_group(void **state) {
        struct world *w = *state;
        w->claims = CLAIM("team-a", "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->watch);
        run_for(&w->l.loop, 200);
        assert_int_equal(w->n_events, 0);
        fake_chunk(w->watch, "{\"type\":\"MODIFIED\",\"object\":" CLAIM_AT(
                                     3, "team-a", "", RESERVED_FOR("scheduling.k8s.io", "podgroups")) "}\n");
        RUN_UNTIL(&w->l.loop, w->n_events);
        assert_non_null(strstr(w->event, "\"kind\":\"PodGroup\""));
}

/* failure: a claim belongs to a pod or another namespace -> no Event is created */
static void a_claim_of_a_pod_or_of_another_namespace_reports_nothing(void **state) {
        static const char *const claims[] = {
                CLAIM("team-a", OWNED_BY("v1", "Pod"), RESERVED_FOR("", "pods")),
                CLAIM("team-b", OWNED_BY("scheduling.k8s.io/v1beta1", "PodGroup"), ""),
        };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
                w->claims = claims[i];
                leading_start(&w->l);
                run_for(&w->l.loop, 300);
                assert_int_equal(w->n_events, 0);
                controller_stop(&w->l.c);
        }
}

/* ---- the watch of PodGroups ---- */

#define SHARES ",\"resourceClaim\":{\"name\":\"train-shared\"}"
#define BY_HAND CLAIM("team-a", "", "")
#define GROUP(ns, more, claim)                                                                               \
        "{\"metadata\":{\"name\":\"gang\",\"namespace\":\"" ns                                               \
        "\",\"uid\":\"g\",\"resourceVersion\":\"3\"" more                                                    \
        "},\"spec\":{\"resourceClaims\":[{\"name\":\"channel\","                                             \
        "\"resourceClaimName\":\"" claim "\"}]}}"
#define NAMES_IT GROUP("team-a", "", "gang-channel-x7k2p")

/* failure: a PodGroup names a claim for one node -> an Event and a condition report it before a pod fits */
static void a_group_that_names_a_claim_is_reported_at_once(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->more = SHARES;
        for (int claim_first = 0; claim_first < 2; claim_first++) {
                w->claims = claim_first ? BY_HAND : "";
                w->groups = claim_first ? "" : NAMES_IT;
                w->n_events = 0;
                w->status[0] = 0;
                w->watch = w->of_groups = NULL;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, w->watch && w->of_groups);
                run_for(&w->l.loop, 2000);
                assert_int_equal(w->n_events, 0);
                fake_chunk(claim_first ? w->of_groups : w->watch,
                           claim_first ? "{\"type\":\"ADDED\",\"object\":" NAMES_IT "}\n"
                                       : "{\"type\":\"ADDED\",\"object\":" BY_HAND "}\n");
                RUN_UNTIL(&w->l.loop, w->n_events);
                assert_non_null(strstr(w->event, "\"apiVersion\":\"scheduling.k8s.io/v1beta1\""));
                assert_non_null(strstr(w->event, "\"name\":\"gang\",\"uid\":\"g\""));
                assert_non_null(strstr(w->event, "recreate the PodGroup with ResourceClaim train-shared"));
                controller_stop(&w->l.c);
        }
}

/* failure: a proxy answers 404 for PodGroups for a while -> they are watched again soon */
static void groups_are_watched_again_after_a_404_of_a_proxy(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->more = SHARES;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->of_groups);
        w->behind_proxy = true;
        fake_end(w->of_groups);
        run_for(&w->l.loop, POD_GROUPS_RETRY_MS * 3 / 2);
        w->behind_proxy = false;
        w->of_groups = NULL;
        run_for(&w->l.loop, POD_GROUPS_RETRY_MS);
        assert_non_null(w->of_groups);
}

/* failure: a proxy answers 404 for PodGroups when a controller becomes the leader -> they are watched soon */
static void groups_are_watched_after_a_404_to_a_new_leader(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->more = SHARES;
        w->behind_proxy = true;
        leading_start(&w->l);
        run_for(&w->l.loop, POD_GROUPS_RETRY_MS / 2);
        assert_null(w->of_groups);
        w->behind_proxy = false;
        run_for(&w->l.loop, POD_GROUPS_RETRY_MS);
        assert_non_null(w->of_groups);
}

static void a_group_that_is_listed_with_its_claim_is_reported_once(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->more = SHARES;
        w->claims = BY_HAND;
        w->groups = NAMES_IT;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_events);
        run_for(&w->l.loop, 20000);
        assert_null(strstr(w->event, "\"count\":2"));
}

/* failure: a PodGroup of another namespace, or one that ends, names a claim -> no Event is created */
static void a_group_that_cannot_use_the_claim_is_not_reported(void **state) {
        static const char *const groups[] = {
                GROUP("team-b", "", "gang-channel-x7k2p"),
                GROUP("team-a", ",\"deletionTimestamp\":\"2026-02-01T00:00:00Z\"", "gang-channel-x7k2p"),
                GROUP("team-a", "", "other"),
        };
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->more = SHARES;
        w->claims = BY_HAND;
        for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
                w->groups = groups[i];
                leading_start(&w->l);
                run_for(&w->l.loop, 2000);
                assert_int_equal(w->n_events, 0);
                controller_stop(&w->l.c);
        }
}

/* ---- the condition of the ComputeDomain ---- */

#define OF_A_GROUP CLAIM("team-a", OWNED_BY("scheduling.k8s.io/v1beta1", "PodGroup"), "")
#define ON_ONE_NODE "\"reason\":\"PodGroupOnOneNode\""

/* failure: a PodGroup names a claim for one node -> a condition of the ComputeDomain reports cause and remedy
 */
static void the_condition_reports_a_group_until_its_claim_is_deleted(void **state) {
        static const char *const modes[] = { "", "HostManagedIMEX=true" };
        struct world *w = *state;
        w->claims = OF_A_GROUP;
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
                leading_set_mode(&w->l, modes[i], NULL);
                w->status[0] = 0;
                w->watch = NULL;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, strstr(w->status, ON_ONE_NODE));
                assert_non_null(strstr(w->status, "\"SharedClaimAvailable\",\"status\":\"False\""));
                assert_non_null(strstr(w->status, "PodGroup gang share ResourceClaim gang-channel-x7k2p"));
                assert_non_null(strstr(w->status, "let each Pod name the claim template train-channel"));
                RUN_UNTIL(&w->l.loop, w->watch);
                fake_chunk(w->watch, "{\"type\":\"DELETED\",\"object\":" OF_A_GROUP "}\n");
                RUN_UNTIL(&w->l.loop, !strstr(w->status, "PodGroupOnOneNode"));
                assert_null(strstr(w->status, "SharedClaimAvailable"));
                controller_stop(&w->l.c);
        }
}

#define KEPT                                                                                                 \
        ",\"conditions\":[{\"type\":\"SharedClaimAvailable\",\"status\":\"False\",\"reason\":"               \
        "\"PodGroupOnOneNode\",\"message\":\"kept\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]"

/* failure: a PodGroup names a claim for one node -> the condition reports it until the PodGroup is deleted */
static void the_condition_reports_a_group_that_names_a_claim(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->another_shares = true;
        w->claims = BY_HAND;
        w->groups = NAMES_IT;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, ON_ONE_NODE));
        assert_non_null(strstr(w->status, "PodGroup gang share ResourceClaim gang-channel-x7k2p"));
        RUN_UNTIL(&w->l.loop, w->of_groups);
        fake_chunk(w->of_groups, "{\"type\":\"DELETED\",\"object\":" NAMES_IT "}\n");
        RUN_UNTIL(&w->l.loop, !strstr(w->status, "PodGroupOnOneNode"));
}

/* failure: a new controller leads -> a condition about a PodGroup stays until the PodGroups are known */
static void a_new_leader_keeps_the_condition_until_it_knows_the_groups(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->another_shares = w->holds = true;
        w->conditions = KEPT;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->held);
        run_for(&w->l.loop, 3000);
        assert_true(!*w->status || strstr(w->status, "kept"));
        w->holds = false;
        fake_reply(w->held, 404, NULL, "404 page not found\n");
        RUN_UNTIL(&w->l.loop, *w->status && !strstr(w->status, "PodGroupOnOneNode"));
}

/* failure: a PodGroup names a claim for one node, with imex.isolation=channel -> the remedy is the claim
 * template for several nodes */
static void with_channels_the_remedy_is_the_claim_template_for_several_nodes(void **state) {
        static const struct {
                const char *more, *remedy;
        } cases[] = {
                { ",\"sharedResourceClaimTemplate\":{\"name\":\"train-shared\"}",
                  "recreate the PodGroup with the claim template train-shared" },
                { "", "use a ComputeDomain with spec.channel.sharedResourceClaimTemplate" },
        };
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        w->claims = OF_A_GROUP;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->more = cases[i].more;
                w->n_events = 0;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, w->n_events);
                assert_non_null(strstr(w->event, cases[i].remedy));
                controller_stop(&w->l.c);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_claim_of_a_group_is_reported_before_it_is_allocated, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_named_claim_is_reported_when_it_is_reserved_for_a_group,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_claim_of_a_pod_or_of_another_namespace_reports_nothing,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(the_condition_reports_a_group_until_its_claim_is_deleted,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(a_group_that_names_a_claim_is_reported_at_once, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(groups_are_watched_again_after_a_404_of_a_proxy, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(groups_are_watched_after_a_404_to_a_new_leader, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_group_that_is_listed_with_its_claim_is_reported_once, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_group_that_cannot_use_the_claim_is_not_reported, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(the_condition_reports_a_group_that_names_a_claim, setup,
                                                leading_teardown),
                cmocka_unit_test_setup_teardown(a_new_leader_keeps_the_condition_until_it_knows_the_groups,
                                                setup, leading_teardown),
                cmocka_unit_test_setup_teardown(
                        with_channels_the_remedy_is_the_claim_template_for_several_nodes, setup,
                        leading_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
