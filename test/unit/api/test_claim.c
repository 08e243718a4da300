/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/claim.h"

#define UID "5d6a2d5c-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define UID2 "00000000-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define CHANNEL(uid)                                                                                         \
        "{'apiVersion':'resource.nvidia.com/v1beta1','kind':'ComputeDomainChannelConfig','domainID':'" uid   \
        "'}"
#define DAEMON(uid)                                                                                          \
        "{'apiVersion':'resource.nvidia.com/v1beta1','kind':'ComputeDomainDaemonConfig','domainID':'" uid "'}"
#define CONFIG(source, requests, params)                                                                     \
        "{'source':'" source "','requests':[" requests                                                       \
        "],'opaque':{'driver':'compute-domain.nvidia.com','parameters':" params "}}"
#define RESULT(request, device)                                                                              \
        "{'request':'" request "','driver':'compute-domain.nvidia.com','pool':'node-1','device':'" device "'}"
#define CLAIM(results, configs)                                                                              \
        "{'metadata':{'name':'c','namespace':'ns','uid':'u','resourceVersion':'1'},'status':{'allocation':{" \
        "'devices':{'results':[" results "],'config':[" configs "]}}}}"

/* Test data has ' instead of ", for readability. */
static struct claim *decode(struct arena *a, const char *text) {
        struct claim *c = arena_alloc(a, sizeof *c);
        char *json = arena_strdup(a, text);
        struct err e;
        for (char *p = json; *p; p++)
                if (*p == '\'')
                        *p = '"';
        if (jd_decode_text(claim_fields, str_from(json), "", a, c, &e) < 0)
                fail_msg("%s", e.msg);
        return c;
}

static const struct {
        const char *claim, *err, *domain;
} cases[] = {
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "'channel'", CHANNEL(UID))), NULL, UID },
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "", CHANNEL(UID))), NULL, UID },
        { CLAIM(RESULT("channel/fast", "channel-0"), CONFIG("FromClaim", "'channel'", CHANNEL(UID))), NULL,
          UID },
        { CLAIM(RESULT("channel/fast", "channel-0"), CONFIG("FromClaim", "'channel/fast'", CHANNEL(UID))),
          NULL, UID },
        { CLAIM(RESULT("channel/fast", "channel-0"), CONFIG("FromClaim", "'channel/slow'", CHANNEL(UID))),
          "no opaque configuration" },
        { CLAIM(RESULT("daemon", "daemon-0"), CONFIG("FromClaim", "'daemon'", DAEMON(UID))), NULL, UID },
        /* later before earlier */
        { CLAIM(RESULT("channel", "channel-0"),
                CONFIG("FromClaim", "", CHANNEL(UID2)) "," CONFIG("FromClaim", "", CHANNEL(UID))),
          NULL, UID },
        { CLAIM(RESULT("channel", "channel-0"),
                CONFIG("FromClaim", "'channel'", CHANNEL(UID2)) "," CONFIG("FromClaim", "", CHANNEL(UID))),
          NULL, UID },
        /* claim before class, in any order of the list */
        { CLAIM(RESULT("channel", "channel-0"),
                CONFIG("FromClaim", "", CHANNEL(UID)) "," CONFIG("FromClass", "", CHANNEL(UID2))),
          NULL, UID },
        { CLAIM(RESULT("channel", "channel-0"),
                CONFIG("FromClass", "", CHANNEL(UID2)) "," CONFIG("FromClaim", "", CHANNEL(UID))),
          NULL, UID },
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClass", "", CHANNEL(UID))), NULL, UID },
        { CLAIM(RESULT("channel", "channel-0"),
                CONFIG("FromClaim", "", CHANNEL(UID)) "," CONFIG("FromClaim", "'channel'", DAEMON(UID2))),
          "the configuration is for a daemon, but the device allocated is channel-0" },
        /* an unnamed one of the other kind is skipped, a named one is an error */
        { CLAIM(RESULT("channel", "channel-0"),
                CONFIG("FromClaim", "", CHANNEL(UID)) "," CONFIG("FromClaim", "", DAEMON(UID2))),
          NULL, UID },
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "'channel'", DAEMON(UID))),
          "the configuration is for a daemon, but the device allocated is channel-0" },
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "", DAEMON(UID))),
          "the configuration is for a daemon, but the device allocated is channel-0" },
        { CLAIM(RESULT("daemon", "daemon-0"), CONFIG("FromClaim", "", CHANNEL(UID))),
          "the configuration is for a channel, but the device allocated is daemon-0" },
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "'other'", CHANNEL(UID))),
          "no opaque configuration" },
        { CLAIM(RESULT("channel", "channel-0"),
                "{'source':'FromClaim','opaque':{'driver':'gpu.nvidia.com','parameters':{}}}"),
          "no opaque configuration" },
        { CLAIM(RESULT("channel", "channel-0"), ""), "no opaque configuration" },
        { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "", CHANNEL(""))), "domainID is empty" },
};

static void the_configuration_of_a_result_is_found(void **state) {
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct arena *a = arena_new(1024);
                struct claim *c = decode(a, cases[i].claim);
                struct opaque_config got;
                struct err e = { 0 };
                assert_non_null(c->allocated);
                int r = claim_config_for(c, &c->results[0], true, a, &got, &e);
                if (cases[i].err) {
                        if (r == 0 || !strstr(e.msg, cases[i].err))
                                fail_msg("case %zu: %d '%s'", i, r, e.msg);
                } else {
                        if (r != 0)
                                fail_msg("case %zu: '%s'", i, e.msg);
                        assert_string_equal(got.domain_id, cases[i].domain);
                }
                arena_free(a);
        }
}

static void a_claim_has_a_place_only_when_it_justifies_a_label(void **state) {
        static const struct {
                const char *claim;
                bool counts;
        } places[] = {
                { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "", CHANNEL(UID))), true },
                { CLAIM(RESULT("channel", "channel-7"), CONFIG("FromClaim", "", CHANNEL(UID))), true },
                { CLAIM(RESULT("daemon", "daemon-0"), CONFIG("FromClaim", "", DAEMON(UID))), false },
                { CLAIM(RESULT("channel", "channel-0"), CONFIG("FromClaim", "", CHANNEL("not-a-uid"))),
                  false },
                { CLAIM("{'request':'r','driver':'compute-domain.nvidia.com','pool':'n','device':'channel-0',"
                        "'adminAccess':true}",
                        CONFIG("FromClaim", "", CHANNEL(UID))),
                  false },
                /* As Kubernetes 1.32 and 1.33 write a request without a configuration. */
                { CLAIM("{'request':'r','driver':'compute-domain.nvidia.com','pool':'node-1',"
                        "'device':'channel-0','adminAccess':null}",
                        CONFIG("FromClaim", "", CHANNEL(UID))),
                  true },
                { CLAIM("{'request':'r','driver':'gpu.nvidia.com','pool':'n','device':'channel-0'}",
                        CONFIG("FromClaim", "", CHANNEL(UID))),
                  false },
                { CLAIM("{'request':'g','driver':'gpu.nvidia.com','pool':'n','device':'gpu-0'}," RESULT(
                                "channel", "channel-0"),
                        CONFIG("FromClaim", "", CHANNEL(UID))),
                  true },
                { "{'metadata':{'name':'c','uid':'u','resourceVersion':'1'},'status':{}}", false },
                { "{'metadata':{'name':'c','uid':'u','resourceVersion':'1'}}", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(places); i++) {
                struct arena *a = arena_new(1024);
                struct claim_place p;
                if (claim_place(decode(a, places[i].claim), false, a, &p) != places[i].counts)
                        fail_msg("case %zu", i);
                if (places[i].counts) {
                        assert_string_equal(p.node, "node-1");
                        assert_string_equal(p.domain_uid, UID);
                }
                arena_free(a);
        }
}

/* The sanitizer sees a read behind the end of the lists. */
static void the_pod_group_of_a_claim_is_its_owner_or_consumer(void **state) {
        static const struct claim_owner pod = { "v1", "Pod", "p", "u" },
                                        group = { "scheduling.k8s.io/v1alpha2", "PodGroup", "g", "u" };
        static const struct claim_consumer other = { "pods", "p", "u" },
                                           group_too = { "podgroups", "h", "v" };
        static const struct claim_config foreign = { .driver = "gpu.nvidia.com" };
        for (int i = 0; i < 6; i++) {
                struct arena *a = arena_new(1024);
                struct claim_owner *owners = xnew_n(struct claim_owner, 2);
                struct claim_consumer *consumers = xnew_n(struct claim_consumer, 2);
                struct claim_config *asked = xnew_n(struct claim_config, 2);
                struct claim c = { .owners = owners,
                                   .n_owners = 2,
                                   .consumers = consumers,
                                   .n_consumers = 2,
                                   .asked = asked,
                                   .n_asked = 2 };
                struct claim_group g;
                char *text = arena_strdup(a, i == 4 ? "{}" : CHANNEL(UID));
                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                owners[0] = pod;
                owners[1] = i == 0 ? group : pod;
                consumers[0] = other;
                consumers[1] = i == 1 || i >= 3 ? group_too : other;
                asked[0] = foreign;
                asked[1] = (struct claim_config){ .driver = i == 3 ? foreign.driver
                                                                   : "compute-domain.nvidia.com",
                                                  .parameters = str_from(text) };
                bool is = claim_of_group(&c, a, &g);
                assert_int_equal(is, i == 0 || i == 1 || i == 5);
                if (is) {
                        assert_string_equal(g.name, i == 0 ? "g" : "h");
                        assert_string_equal(g.domain_uid, UID);
                }
                free(owners);
                free(consumers);
                free(asked);
                arena_free(a);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_configuration_of_a_result_is_found),
                cmocka_unit_test(the_pod_group_of_a_claim_is_its_owner_or_consumer),
                cmocka_unit_test(a_claim_has_a_place_only_when_it_justifies_a_label)
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
