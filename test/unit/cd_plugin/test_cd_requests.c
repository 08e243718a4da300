/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "cd_plugin/cd_requests.h"

#define DOMAIN "5d6a2d5c-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define PARAMETERS(kind, more)                                                                               \
        "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" kind "\",\"domainID\":\"" DOMAIN       \
        "\"" more "}"
#define CHANNEL PARAMETERS("ComputeDomainChannelConfig", "")
#define CHANNELS(mode) PARAMETERS("ComputeDomainChannelConfig", ",\"allocationMode\":\"" mode "\"")
#define OWN_CHANNEL PARAMETERS("ComputeDomainChannelConfig", ",\"isolation\":\"Channel\"")
#define DAEMON PARAMETERS("ComputeDomainDaemonConfig", "")

enum { MANY = 3 };

/* A claim for devices of this node, and the plugin in one of its modes. */
struct claim_world {
        struct arena *a;
        struct gates gates;
        struct cd cd;
        struct op op;
        struct claim_result results[MANY];
        struct node_request requests[MANY];
        struct err e;
};

static void claim_init(struct claim_world *w, const char *mode, const char *isolation) {
        *w = (struct claim_world){ .a = arena_new(4096) };
        gates_init(&w->gates);
        assert_int_equal(mode_resolve(&w->gates, mode, isolation, &w->cd.o.mode, &w->e), 0);
        w->cd.o.node = "node-1";
        w->cd.o.ns = "driver";
        w->cd.o.more_ns = "";
        static char ns[] = "team", name[] = "c", uid[] = "u";
        w->op = (struct op){ .arena = w->a, .ns = ns, .name = name, .uid = uid, .requests = w->requests };
}

/* Adds a configuration. The sanitizer sees a read behind the last one. */
static void add_config(struct claim_world *w, const char *driver, const char *parameters) {
        struct claim *c = &w->op.claim;
        c->configs = xrealloc(c->configs, (c->n_configs + 1) * sizeof *c->configs);
        c->configs[c->n_configs++] = (struct claim_config){ .source = "FromClaim",
                                                            .driver = driver,
                                                            .parameters = str_from(parameters) };
}

/* Adds a device to the claim, and checks its request. */
static int take_from(struct claim_world *w, const char *pool, const char *device) {
        size_t i = w->op.n_requests++;
        w->results[i] = (struct claim_result){
                .request = "channel", .driver = CD_DRIVER, .pool = pool, .device = device
        };
        w->requests[i].result = &w->results[i];
        return cd_requests_take(&w->cd, &w->op, &w->requests[i], &w->e);
}

static int take(struct claim_world *w, const char *device) {
        return take_from(w, "node-1", device);
}

static void claim_done(struct claim_world *w) {
        free(w->op.claim.configs);
        arena_free(w->a);
}

static void expect_refused(struct claim_world *w, int r, enum err_kind kind, const char *part) {
        assert_int_equal(r, -1);
        assert_int_equal(w->e.kind, kind);
        if (!strstr(w->e.msg, part))
                fail_msg("'%s' is not in: %s", part, w->e.msg);
}

/* With assigned channels, the number of the device only counts pods. */
static void any_channel_device_of_the_driver_is_a_place_for_a_pod_with_an_assigned_channel(void **st) {
        static const struct {
                const char *device;
                bool taken;
        } cases[] = { { "channel-0", true },     { "channel-15", true },  { "channel-2047", true },
                      { "channel-2048", false }, { "channel--1", false }, { "channel-01", false },
                      { "channel", false },      { "channel-x", false },  { "gpu-0", false } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct claim_world w;
                claim_init(&w, "driverManaged", "channel");
                add_config(&w, CD_DRIVER, OWN_CHANNEL);
                int r = take(&w, cases[i].device);
                if (cases[i].taken)
                        assert_int_equal(r, 0);
                else
                        expect_refused(&w, r, ERR_INVALID, "node 'node-1' has no device '");
                claim_done(&w);
        }
}

static void without_assigned_channels_a_node_has_one_channel_device(void **st) {
        struct claim_world w;
        claim_init(&w, "driverManaged", "domain");
        add_config(&w, CD_DRIVER, CHANNEL);
        assert_int_equal(take(&w, "channel-0"), 0);
        expect_refused(&w, take(&w, "channel-1"), ERR_INVALID, "node 'node-1' has no device 'channel-1'");
        claim_done(&w);
}

static void a_claim_for_a_shared_channel_gets_no_assigned_one_nor_the_other_way_round(void **st) {
        struct claim_world w;
        claim_init(&w, "driverManaged", "channel");
        add_config(&w, CD_DRIVER, CHANNEL);
        expect_refused(&w, take(&w, "channel-0"), ERR_INVALID, "isolation is missing");
        claim_done(&w);
        claim_init(&w, "driverManaged", "domain");
        add_config(&w, CD_DRIVER, OWN_CHANNEL);
        expect_refused(&w, take(&w, "channel-0"), ERR_INVALID, "unknown field \"isolation\"");
        claim_done(&w);
}

/* failure: a claim for the shared device is not one of the driver, or has another device -> it is refused */
static void a_shared_claim_is_one_that_the_driver_has_created(void **st) {
        static struct claim_owner owner = { CD_API_VERSION, CD_KIND, "cd", DOMAIN },
                                  other = { CD_API_VERSION, CD_KIND, "cd", "another" };
        static const struct {
                const char *isolation, *device;
                struct claim_owner *owner;
                enum err_kind kind; /* ERR_NONE: the claim is accepted */
                const char *error;
        } cases[] = {
                { "channel", CD_DEVICE_SHARED, &owner, ERR_NONE, "" },
                { "channel", "channel-0", &owner, ERR_INVALID, "has no device 'channel-0'" },
                { "channel", CD_DEVICE_SHARED, &other, ERR_DENIED, "the driver did not create this claim" },
                { "domain", CD_DEVICE_SHARED, &owner, ERR_INVALID, "need imex.isolation=channel" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct claim_world w;
                claim_init(&w, "driverManaged", cases[i].isolation);
                add_config(&w, CD_DRIVER, OWN_CHANNEL);
                w.op.claim.owners = cases[i].owner;
                w.op.claim.n_owners = 1;
                int r = take_from(&w, CD_POOL_SHARED, cases[i].device);
                if (cases[i].kind == ERR_NONE)
                        assert_int_equal(r, 0);
                else
                        expect_refused(&w, r, cases[i].kind, cases[i].error);
                claim_done(&w);
        }
}

/* The author of a daemon's configuration means a daemon, with any device. */
static void where_the_hosts_run_imex_no_claim_for_a_daemon_is_prepared(void **st) {
        static const struct {
                const char *drivers[2], *parameters[2];
                bool refused;
        } cases[] = {
                { { CD_DRIVER, CD_DRIVER }, { CHANNEL, DAEMON }, true },
                { { CD_DRIVER, CD_DRIVER }, { DAEMON, CHANNEL }, true },
                { { CD_DRIVER, CD_DRIVER }, { CHANNEL, CHANNEL }, false },
                { { CD_DRIVER, "gpu.nvidia.com" }, { CHANNEL, DAEMON }, false },
                { { "gpu.nvidia.com", CD_DRIVER }, { "{}", CHANNEL }, false },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct claim_world w;
                claim_init(&w, "hostManaged", "domain");
                for (size_t k = 0; k < 2; k++)
                        add_config(&w, cases[i].drivers[k], cases[i].parameters[k]);
                int r = take(&w, "channel-0");
                if (cases[i].refused)
                        expect_refused(&w, r, ERR_DENIED, "daemon claims are disabled");
                else
                        assert_int_equal(r, 0);
                claim_done(&w);
        }
        struct claim_world w;
        claim_init(&w, "hostManaged", "domain");
        expect_refused(&w, take(&w, "daemon-0"), ERR_DENIED, "daemon claims are disabled");
        claim_done(&w);
        /* A configuration that cannot be read asks for nothing, and is reported as what it is. */
        claim_init(&w, "hostManaged", "domain");
        add_config(&w, CD_DRIVER, "[]");
        expect_refused(&w, take(&w, "channel-0"), ERR_INVALID, "request 'channel': opaque configuration");
        claim_done(&w);
}

static void with_assigned_channels_or_host_managed_imex_a_claim_has_exactly_one_channel(void **st) {
        static const struct {
                const char *mode, *isolation, *parameters;
        } modes[] = { { "hostManaged", "domain", CHANNEL }, { "driverManaged", "channel", OWN_CHANNEL } };
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
                struct claim_world w;
                claim_init(&w, modes[i].mode, modes[i].isolation);
                add_config(&w, CD_DRIVER, modes[i].parameters);
                assert_int_equal(take(&w, "channel-0"), 0);
                assert_int_equal(cd_requests_check(&w.cd, &w.op, &w.e), 0);
                assert_int_equal(take(&w, "channel-0"), 0);
                expect_refused(&w, cd_requests_check(&w.cd, &w.op, &w.e), ERR_INVALID,
                               "2 devices of this driver");
                claim_done(&w);
        }
        struct claim_world w;
        claim_init(&w, "driverManaged", "domain");
        add_config(&w, CD_DRIVER, CHANNEL);
        for (size_t i = 0; i < MANY; i++)
                assert_int_equal(take(&w, "channel-0"), 0);
        assert_int_equal(cd_requests_check(&w.cd, &w.op, &w.e), 0);
        claim_done(&w);
}

static void with_host_managed_imex_no_claim_gets_all_channels(void **st) {
        struct claim_world w;
        claim_init(&w, "hostManaged", "domain");
        add_config(&w, CD_DRIVER, CHANNELS("All"));
        assert_int_equal(take(&w, "channel-0"), 0);
        expect_refused(&w, cd_requests_check(&w.cd, &w.op, &w.e), ERR_INVALID,
                       "allocationMode \"All\" is not possible with host-managed IMEX");
        claim_done(&w);
        claim_init(&w, "hostManaged", "domain");
        add_config(&w, CD_DRIVER, CHANNELS("Single"));
        assert_int_equal(take(&w, "channel-0"), 0);
        assert_int_equal(cd_requests_check(&w.cd, &w.op, &w.e), 0);
        claim_done(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        any_channel_device_of_the_driver_is_a_place_for_a_pod_with_an_assigned_channel),
                cmocka_unit_test(without_assigned_channels_a_node_has_one_channel_device),
                cmocka_unit_test(a_claim_for_a_shared_channel_gets_no_assigned_one_nor_the_other_way_round),
                cmocka_unit_test(a_shared_claim_is_one_that_the_driver_has_created),
                cmocka_unit_test(where_the_hosts_run_imex_no_claim_for_a_daemon_is_prepared),
                cmocka_unit_test(with_assigned_channels_or_host_managed_imex_a_claim_has_exactly_one_channel),
                cmocka_unit_test(with_host_managed_imex_no_claim_gets_all_channels),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
