/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/claim.h"
#include "api/names.h"

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
        static const struct claim_consumer other = { NULL, "pods", "p", "u" },
                                           group_too = { CLAIM_GROUP_API, CLAIM_GROUP_RESOURCE, "h", "v" };
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

/* The sanitizer sees a read behind the end of the lists. */
static void the_last_owner_and_the_last_consumer_of_a_claim_count(void **state) {
        struct claim_owner *owners = xnew_n(struct claim_owner, 2);
        struct claim_consumer *consumers = xnew_n(struct claim_consumer, 2);
        struct claim c = { .owners = owners, .n_owners = 2 };
        owners[0] = (struct claim_owner){ "apps/v1", "Deployment", "p", UID2 };
        owners[1] = owners[0];
        assert_null(claim_domain_owner(&c));
        assert_false(claim_is_made_for(&c, UID));
        owners[1] = (struct claim_owner){ CD_API_VERSION, CD_KIND, "d", UID };
        assert_string_equal(claim_domain_owner(&c), UID);
        assert_true(claim_is_made_for(&c, UID));
        assert_false(claim_is_made_for(&c, UID2));
        owners[1] = (struct claim_owner){ "v1", "Pod", "p", UID2 };
        assert_true(claim_is_made_for(&c, UID));
        consumers[0] = (struct claim_consumer){ NULL, "pods", "p", UID };
        consumers[1] = (struct claim_consumer){ NULL, "pods", "q", UID2 };
        assert_true(claim_is_reserved_for(consumers, 2, UID) && claim_is_reserved_for(consumers, 2, UID2));
        assert_false(claim_is_reserved_for(consumers, 2, "another"));
        free(owners);
        free(consumers);
}

static void a_pod_awaits_the_channel_of_its_claim(void **state) {
        struct claim_owner *owners = xnew_n(struct claim_owner, 2);
        struct claim_request *requests = xnew_n(struct claim_request, 2);
        struct arena *a = arena_new(1024);
        struct claim c = *decode(a, CLAIM("", ""));
        char text[] = CHANNEL(UID);
        struct claim_config config = { .driver = CD_DRIVER, .parameters = { text, sizeof text - 1 } };
        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        c.owners = owners;
        c.asked_requests = requests;
        c.n_owners = c.n_asked_requests = 2;
        c.asked = &config;
        c.n_asked = 1;
        c.allocated = NULL;
        owners[0] = (struct claim_owner){ "apps/v1", "Deployment", "p", UID2 };
        owners[1] = (struct claim_owner){ "v1", "Pod", "p", UID2 };
        requests[0] = (struct claim_request){ "gpu", "gpu.nvidia.com" };
        requests[1] = (struct claim_request){ "channel", CD_CLASS_CHANNEL };
        assert_string_equal(claim_awaits(&c, a), UID);
        requests[1].device_class = CD_CLASS_SHARED;
        assert_null(claim_awaits(&c, a));
        requests[1].device_class = CD_CLASS_CHANNEL;
        owners[1] = owners[0];
        assert_null(claim_awaits(&c, a));
        free(owners);
        free(requests);
        arena_free(a);
}

#define ASKS(request, class, configs, reserved)                                                              \
        "{'metadata':{'name':'c','uid':'u','resourceVersion':'1'},'spec':{'devices':{'requests':[{'name':"   \
        "'" request                                                                                          \
        "','exactly':{'deviceClassName':'" class "'}}],'config':[" configs                                   \
                                                 "]}},'status':{'allocation':{'devices':{'results':[{'"      \
                                                 "request':'channel','driver':'" CD_DRIVER                   \
                                                 "','pool':'" CD_POOL_SHARED "','device':'" CD_DEVICE_SHARED \
                                                 "'}],'config':["                                            \
                                                 "{'source':'FromClaim','opaque':{'driver':'" CD_DRIVER      \
                                                 "','parameters':" OWN(UID) "}}]}}" reserved "}}"
#define OWN(uid)                                                                                             \
        "{'apiVersion':'" CD_API_VERSION "','kind':'ComputeDomainChannelConfig','domainID':'" uid            \
        "','isolation':'Channel'}"
#define OURS "{'opaque':{'driver':'" CD_DRIVER "','parameters':" OWN(UID) "}}"

/* The controller allocates such a claim without a look at its other requests. */
static void only_the_spec_that_the_controller_writes_asks_for_the_shared_device(void **state) {
        static const struct {
                const char *claim;
                bool asks;
        } specs[] = {
                { ASKS("channel", CD_CLASS_SHARED, OURS, ""), true },
                { ASKS("channel", CD_CLASS_SHARED, "{'opaque':{'driver':'" CD_DRIVER "','parameters':{}}}",
                       ""),
                  false },
                { ASKS("other", CD_CLASS_SHARED, OURS, ""), false },
                { ASKS("channel", CD_CLASS_CHANNEL, OURS, ""), false },
                { ASKS("channel", CD_CLASS_SHARED, OURS "," OURS, ""), false },
                { ASKS("channel", CD_CLASS_SHARED, "", ""), false },
                { ASKS("channel", CD_CLASS_SHARED "'}},{'name':'gpu','exactly':{'deviceClassName':'g", OURS,
                       ""),
                  false },
                { ASKS("channel", CD_CLASS_SHARED,
                       "{'opaque':{'driver':'" CD_DRIVER "','parameters':" CHANNEL(UID) "}}", ""),
                  false },
        };
        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                struct arena *a = arena_new(1024);
                const char *uid = claim_asks_for_shared(decode(a, specs[i].claim), a);
                if (!uid != !specs[i].asks || (uid && !streq(uid, UID)))
                        fail_msg("case %zu", i);
                arena_free(a);
        }
}

/* The controller allocates a shared claim before a pod uses it. */
static void a_shared_claim_has_a_place_only_while_it_is_reserved(void **state) {
        struct arena *a = arena_new(1024);
        struct claim_place p;
        assert_false(claim_place(decode(a, ASKS("channel", CD_CLASS_SHARED, OURS, "")), true, a, &p));
        assert_false(claim_place(decode(a, ASKS("channel", CD_CLASS_SHARED, OURS, ",'reservedFor':[]")), true,
                                 a, &p));
        assert_true(claim_place(decode(a, ASKS("channel", CD_CLASS_SHARED, OURS,
                                               ",'reservedFor':[{'apiGroup':'scheduling.k8s.io','resource':"
                                               "'podgroups','name':'g','uid':'g'}]")),
                                true, a, &p));
        assert_string_equal(p.node, CD_POOL_SHARED);
        assert_string_equal(p.domain_uid, UID);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_configuration_of_a_result_is_found),
                cmocka_unit_test(only_the_spec_that_the_controller_writes_asks_for_the_shared_device),
                cmocka_unit_test(a_shared_claim_has_a_place_only_while_it_is_reserved),
                cmocka_unit_test(the_pod_group_of_a_claim_is_its_owner_or_consumer),
                cmocka_unit_test(the_last_owner_and_the_last_consumer_of_a_claim_count),
                cmocka_unit_test(a_pod_awaits_the_channel_of_its_claim),
                cmocka_unit_test(a_claim_has_a_place_only_when_it_justifies_a_label)
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
