/* SPDX-License-Identifier: Apache-2.0 */
/* Which ComputeDomains of racks a leading controller creates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"
#include "leading.h"
#include "rules/racks.h"

#define RACK "s0-011"
#define A_NODE                                                                                               \
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"n\",\"resourceVersion\":\"1\"},\"status\":{"               \
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define A_CONTROL_PLANE                                                                                      \
        ",{\"metadata\":{\"name\":\"cp\",\"uid\":\"cp\",\"resourceVersion\":\"1\"},\"status\":{}}"
#define A_SLICE                                                                                              \
        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"resourceVersion\":\"1\"},\"spec\":{"                  \
        "\"driver\":\"" CD_DRIVER "\",\"nodeName\":\"n1\",\"devices\":[{\"name\":\"channel-0\","             \
        "\"attributes\":{\"cliqueID\":{\"string\":\"3f7c1b2a-1111-2222-3333-444455556666.1\"},"              \
        "\"rack\":{\"string\":\"" RACK "\"}}}]}}"
#define A_NAMESPACE_AT(version, value) "{" A_NAMESPACE_TAIL(version, value)
#define A_NAMESPACE_TAIL(version, value)                                                                     \
        "\"metadata\":{\"name\":\"team-a\",\"uid\":\"t\",\"resourceVersion\":\"" #version "\",\"labels\":{" \
        "\"" CD_LABEL_RACK_DOMAINS "\":\"" value "\"}}}"
#define A_NAMESPACE A_NAMESPACE_AT(1, "enabled")

struct world {
        struct leading l;
        size_t n_others;   /* existing ComputeDomains of other racks */
        bool of_a_tenant;  /* these are in a namespace that does not want them */
        bool over_quota;   /* the API server refuses writes */
        const char *also;  /* another ComputeDomain; NULL: none */
        const char *namespace;
        const char *slice;
        struct fake_conn *slices;     /* the watch of ResourceSlices */
        unsigned n_racks;             /* created in the driver's namespace */
        struct fake_conn *namespaces; /* the watch of Namespaces */
        unsigned n_events;            /* about team-a */
        unsigned n_made;   /* created in team-a */
        char name[64];     /* of the last of these */
        char event[4096];  /* the last one about team-a */
        bool made_unwanted; /* one was made of a rack that no node states */
};

/* ComputeDomains of racks that no longer exist. */
static void others(size_t n, const char *ns, struct buf *out) {
        for (size_t i = 0; i < n; i++)
                buf_addf(out,
                         "%s{\"metadata\":{\"name\":\"r%zu\",\"namespace\":\"%s\",\"uid\":\"u%zu\","
                         "\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER
                         "\"],\"labels\":{\"" CD_LABEL_RACK "\":\"r%zu\"},\"annotations\":{"
                         "\"" CD_ANNOTATION_RACK_UID "\":\"u%zu\"}},\"spec\":{\"numNodes\":0,\"channel\":{"
                         "\"resourceClaimTemplate\":{\"name\":\"imex-channel-r%zu\"}}}}",
                         i ? "," : "", i, ns, i, i, i, i);
}

static void answer_made(const struct world *w, struct fake_conn *c, const struct fake_request *r) {
        static const char meta[] = "\"metadata\":{";
        const char *at = strstr(r->body, meta);
        assert_non_null(at);
        at += strlen(meta);
        _cleanup_(freep) char *answer = xasprintf("%.*s\"uid\":\"m%u\",\"resourceVersion\":\"%u\",%s",
                                                  (int)(at - r->body), r->body, w->n_racks, 100 + w->n_racks,
                                                  at);
        fake_reply(c, 201, NULL, answer);
}

static void on_write(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        if (fake_has(r->path, "/events")) {
                if (strstr(r->body, "TooManyRacksOfNode"))
                        snprintf(w->event, sizeof w->event, "%s", r->body);
                w->n_events += strstr(r->body, "team-a") != NULL;
                if (strstr(r->body, "team-a"))
                        snprintf(w->event, sizeof w->event, "%s", r->body);
                fake_reply(c, 201, NULL, r->body);
                return;
        }
        if (fake_has(r->path, "/computedomains") && streq(r->method, "POST") && !strstr(r->body, RACK))
                w->made_unwanted = true;
        if (fake_has(r->path, "/namespaces/team-a/computedomains") && streq(r->method, "POST")) {
                const char *name = strstr(r->body, "\"name\":\"");
                snprintf(w->name, sizeof w->name, "%.63s", name ? name + strlen("\"name\":\"") : "");
                w->name[strcspn(w->name, "\"")] = '\0';
                w->n_made++;
        }
        if (w->slices && fake_has(r->path, "/namespaces/driver/computedomains") && streq(r->method, "POST")) {
                w->n_racks++;
                answer_made(w, c, r);
        } else if (w->over_quota)
                fake_refuse(c, 403, "exceeded quota");
        else
                fake_refuse(c, 409, "not in this test");
}

static char *items_of(void *u, const char *path) {
        const struct world *w = u;
        if (fake_has(path, "/nodes"))
                return xstrdup(A_NODE A_CONTROL_PLANE);
        if (fake_has(path, "/namespaces?"))
                return xstrdup(w->namespace);
        if (fake_has(path, "/resourceslices"))
                return xstrdup(w->slice);
        if (!fake_has(path, "/computedomains"))
                return NULL;
        _cleanup_(buf_done) struct buf b = BUF_INIT(2 << 20);
        others(w->n_others, w->of_a_tenant ? "team-b" : "driver", &b);
        if (w->also)
                buf_addf(&b, "%s%s", w->n_others ? "," : "", w->also);
        return xstrdup(buf_str(&b));
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/namespaces?") && fake_query(r, "watch"))
                w->namespaces = c;
        if (fake_has(r->path, "/resourceslices?") && fake_query(r, "watch"))
                w->slices = c;
        if (streq(r->method, "GET"))
                leading_read(c, r, items_of, u);
        else
                on_write(u, c, r);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->namespace = A_NAMESPACE;
        w->slice = A_SLICE;
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "", NULL);
        w->l.config.racks = true;
        *state = w;
        return 0;
}

static void start(struct world *w, size_t n_others) {
        w->n_others = n_others;
        leading_start(&w->l);
}

static void a_labelled_namespace_gets_a_computedomain_of_an_existing_rack(void **state) {
        struct world *w = *state;
        start(w, 2);
        RUN_UNTIL(&w->l.loop, w->n_made);
        assert_string_equal(w->event, "");
}

static void the_number_of_rack_computedomains_is_limited_and_an_event_reports_it(void **state) {
        struct world *w = *state;
        start(w, RACKS_MAX);
        RUN_UNTIL(&w->l.loop, *w->event || w->n_made);
        assert_non_null(strstr(w->event, "TooManyRackDomains"));
        assert_non_null(strstr(w->event, "no ComputeDomain is created here for rack " RACK
                                         ", because 2000 ComputeDomains of"));
        assert_int_equal(w->n_made, 0);
}

/* failure: a quota refuses the ComputeDomain of a rack -> an Event of the Namespace reports it */
static void a_refused_rack_computedomain_is_reported(void **state) {
        struct world *w = *state;
        w->over_quota = true;
        start(w, 0);
        RUN_UNTIL(&w->l.loop, *w->event);
        assert_non_null(strstr(w->event, "RackDomainNotCreated"));
        assert_non_null(strstr(w->event, "the ComputeDomain '" RACK "' of rack " RACK
                                         " cannot be created here: exceeded quota"));
}

/* failure: the label of a namespace has another value -> an Event of the Namespace reports it once */
static void a_label_without_effect_is_reported(void **state) {
        struct world *w = *state;
        w->namespace = A_NAMESPACE_AT(1, "true");
        start(w, 0);
        RUN_UNTIL(&w->l.loop, *w->event && w->namespaces);
        assert_non_null(strstr(w->event, "RackDomainsLabelInvalid"));
        assert_non_null(strstr(w->event, "the value 'true' of the label " CD_LABEL_RACK_DOMAINS));
        fake_chunk(w->namespaces, "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\","
                                  "\"apiVersion\":\"meta.k8s.io/v1\","
                                  "" A_NAMESPACE_TAIL(11, "true") "}\n");
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_events, 1);
        assert_int_equal(w->n_made, 0);
        fake_chunk(w->namespaces, "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\","
                                  "\"apiVersion\":\"meta.k8s.io/v1\","
                                  "" A_NAMESPACE_TAIL(12, "enabled") "}\n");
        RUN_UNTIL(&w->l.loop, w->n_made);
}

/* The ResourceSlice of n1 states this rack. */
static void state_rack(struct world *w, unsigned version, unsigned rack) {
        _cleanup_(freep) char *event = xasprintf(
                "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"ResourceSlice\",\"apiVersion\":"
                "\"resource.k8s.io/v1\",\"metadata\":{\"name\":\"s\",\"uid\":\"s\","
                "\"resourceVersion\":\"%u\"},\"spec\":{\"driver\":\"" CD_DRIVER
                "\",\"nodeName\":\"n1\",\"devices\":[{\"name\":\"channel-0\",\"attributes\":{"
                "\"cliqueID\":{\"string\":\"3f7c1b2a-1111-2222-3333-444455556666.1\"},"
                "\"rack\":{\"string\":\"new-%u\"}}}]}}}\n",
                version, rack);
        fake_chunk(w->slices, event);
        run_for(&w->l.loop, 100);
}

/* failure: a node changes its rack again and again -> it uses up only a few of the racks [tenants] */
static void a_node_that_changes_its_rack_gets_few_racks(void **state) {
        struct world *w = *state;
        start(w, 0);
        RUN_UNTIL(&w->l.loop, w->slices && w->n_made);
        w->n_racks = 0;
        for (unsigned i = 0; i < 2 * RACKS_PER_NODE; i++)
                state_rack(w, 11 + i, i);
        RUN_UNTIL(&w->l.loop, *w->event);
        assert_non_null(strstr(w->event, "TooManyRacksOfNode"));
        assert_in_range(w->n_racks, 1, RACKS_PER_NODE);
}

/* failure: a node states its racks again each day -> it gets no more racks [tenants] */
static void a_node_that_returns_to_its_racks_gets_few_racks(void **state) {
        struct world *w = *state;
        unsigned version = 11;
        start(w, 0);
        RUN_UNTIL(&w->l.loop, w->slices && w->n_made);
        w->n_racks = 0;
        /* A day of the count takes a minute here. */
        first_seen_free(w->l.c.memory.brought);
        w->l.c.memory.brought = first_seen_new(60);
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < RACKS_PER_NODE; i++)
                        state_rack(w, version++, i);
                run_for(&w->l.loop, 40000);
        }
        assert_int_equal(w->n_racks, RACKS_PER_NODE);
        for (unsigned i = 0; i < RACKS_PER_NODE; i++)
                state_rack(w, version++, 100 + i);
        assert_int_equal(w->n_racks, RACKS_PER_NODE);
}

#define ONE(ns, name, uid, rack, nodes)                                                                      \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"" ns "\",\"uid\":\"" uid                       \
        "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER "\"],\"labels\":{\"" CD_LABEL_RACK    \
        "\":\"" rack "\"},\"annotations\":{\"" CD_ANNOTATION_RACK_UID "\":\"" uid                            \
        "\",\"" CD_ANNOTATION_RACK_NODES "\":\"" nodes                                                       \
        "\"}},\"spec\":{\"numNodes\":0,\"channel\":{\"resourceClaimTemplate\":{\"name\":\"imex-channel-"     \
        "" name "\"}}}}"

/* No ResourceSlice has these racks, and the Node in the list has no ResourceSlice. */
/* failure: a tenant's ComputeDomain states a rack -> no ComputeDomain is created in other namespaces
 * [tenants] */
static void a_tenants_computedomain_creates_none_in_other_namespaces(void **state) {
        struct world *w = *state;
        w->also = ONE("team-b", "evil", "e", "no-such-rack", "cp") "," ONE("team-a", "evil", "f",
                                                                           "no-such-rack-either", "cp");
        start(w, 0);
        RUN_UNTIL(&w->l.loop, w->n_made);
        run_for(&w->l.loop, 500);
        assert_false(w->made_unwanted);
}

/* failure: a tenant's ComputeDomain states the nodes and name of a rack -> the rack keeps its name [tenants]
 * */
static void a_tenants_computedomain_does_not_name_a_rack(void **state) {
        struct world *w = *state;
        w->also = ONE("team-b", "evil", "e", RACK, "n1");
        start(w, 0);
        RUN_UNTIL(&w->l.loop, w->n_made);
        assert_string_equal(w->name, RACK);
}

static void a_computedomain_in_the_drivers_namespace_names_a_rack(void **state) {
        struct world *w = *state;
        w->also = ONE("driver", "other", "o", RACK, "n1");
        start(w, 0);
        RUN_UNTIL(&w->l.loop, w->n_made);
        assert_string_equal(w->name, "other");
}

/* failure: tenants create thousands of rack ComputeDomains -> they do not count for the limit [tenants] */
static void computedomains_of_tenants_do_not_count_for_the_limit(void **state) {
        struct world *w = *state;
        w->of_a_tenant = true;
        start(w, RACKS_MAX);
        RUN_UNTIL(&w->l.loop, w->n_made);
        assert_string_equal(w->event, "");
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, leading_teardown)
        const struct CMUnitTest tests[] = {
                T(a_labelled_namespace_gets_a_computedomain_of_an_existing_rack),
                T(the_number_of_rack_computedomains_is_limited_and_an_event_reports_it),
                T(a_refused_rack_computedomain_is_reported),
                T(a_node_that_changes_its_rack_gets_few_racks),
                T(a_node_that_returns_to_its_racks_gets_few_racks),
                T(a_label_without_effect_is_reported),
                T(a_tenants_computedomain_creates_none_in_other_namespaces),
                T(a_tenants_computedomain_does_not_name_a_rack),
                T(a_computedomain_in_the_drivers_namespace_names_a_rack),
                T(computedomains_of_tenants_do_not_count_for_the_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
