/* SPDX-License-Identifier: Apache-2.0 */
/* What a leading controller reports on a ComputeDomain when plugins report the state of their hosts' IMEX. */
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

#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

struct world {
        struct leading l;
        const char *ready; /* the condition Ready of the newer plugin */
        char status[8192];
};

/* The older one has not ended yet. */
#define PLUGIN(name, created, ready, reason)                                                                 \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"driver\",\"uid\":\"" name                      \
        "\",\"resourceVersion\":\"1\",\"creationTimestamp\":\"" created                                      \
        "\",\"annotations\":{\"" IMEX_ANNOTATION_HOST_REASON "\":\"" reason                                  \
        "\"}},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"   \
        "\"Ready\",\"status\":\"" ready "\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}"

static char *items_of(void *u, const char *path) {
        const struct world *w = u;
        if (fake_has(path, "/nodes"))
                return xstrdup("{\"metadata\":{\"name\":\"n1\",\"uid\":\"n\",\"resourceVersion\":\"1\"},"
                               "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
        if (fake_has(path, "/pods") && fake_has(path, "plugin"))
                return xasprintf(PLUGIN("old", "2026-01-01T00:00:00Z", "True", "no answer") "," PLUGIN(
                                         "new", "2026-01-02T00:00:00Z", "%s", "there is no config.cfg"),
                                 w->ready);
        if (fake_has(path, "/resourceclaims"))
                return xstrdup("{\"metadata\":{\"name\":\"c\",\"namespace\":\"team-a\",\"uid\":\"c\","
                               "\"resourceVersion\":\"2\"},\"status\":{\"allocation\":{\"devices\":{"
                               "\"results\":[{\"request\":\"r\",\"driver\":\"" CD_DRIVER
                               "\",\"pool\":\"n1\",\"device\":\"channel-0\"}],\"config\":[{\"source\":"
                               "\"FromClaim\",\"opaque\":{\"driver\":\"" CD_DRIVER
                               "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION
                               "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN
                               "\"}}}]}}}}");
        if (fake_has(path, "/computedomains"))
                return xstrdup("{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                               "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER
                               "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"" MODE_HOST_MANAGED
                               "\",\"" CD_ANNOTATION_START_GATE
                               "\":\"true\"}},\"spec\":{\"numNodes\":1,\"channel\":{"
                               "\"resourceClaimTemplate\":{\"name\":\"t\"}}},"
                               "\"status\":{\"status\":\"Ready\"}}");
        return NULL;
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (streq(r->method, "GET")) {
                leading_read(c, r, items_of, w);
                return;
        }
        if (fake_has(r->path, "/computedomains/train/status"))
                snprintf(w->status, sizeof w->status, "%s", r->body);
        fake_refuse(c, 409, "not in this test");
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", "");
        *state = w;
        return 0;
}

/* failure: the plugin cannot query the host's nvidia-imex -> the condition of a closed start gate has its
 * reason */
static void a_closed_gate_states_why_the_state_of_a_host_is_unknown(void **state) {
        static const char *const ready[] = { "True", "False" };
        static const char *const expected[] = { "there is no config.cfg", "no answer" };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(ready); i++) {
                w->ready = ready[i];
                w->status[0] = 0;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, strstr(w->status, "n1: the state of its IMEX is not known: "));
                assert_non_null(strstr(w->status, expected[i]));
                controller_stop(&w->l.c);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_closed_gate_states_why_the_state_of_a_host_is_unknown,
                                                setup, leading_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
