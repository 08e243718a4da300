/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a claim without a record, from its CDI file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "api/names.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/rebuild.h"

#define UID "c0000000-0000-4000-8000-000000000001"
#define DOMAIN "aaaaaaaa-0000-4000-8000-000000000001"
#define CLIQUE "2df84740-d3cb-b5ce-4e7e-98352b5a71b5.2"
#define BOOT "11111111-1111-4111-8111-111111111111"
#define FILE_OF(comment, device)                                                                             \
        "# claim user/c1 " comment " boot " BOOT "\n{\"devices\":[{\"name\":\"" UID "-" device "\"}]}"

static struct arena *a;
static struct node_device *devices;

static int setup(void **state) {
        (void)state;
        a = arena_new(1024);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        arena_free(a);
        return 0;
}

static size_t rebuild(const char *text) {
        return rebuild_devices(text, UID, a, &devices);
}

static void name_id_owner_and_partition_come_from_the_comment(void **state) {
        (void)state;
        const char *comment = rebuild_comment(a, DOMAIN, "channel-3", 17, CLIQUE);
        assert_string_equal(comment, "domain " DOMAIN " channel channel-3=17 clique " CLIQUE);
        const char *text = FILE_OF("domain " DOMAIN " channel channel-3=17 clique " CLIQUE, "channel-3");
        assert_int_equal(rebuild(text), 1);
        assert_string_equal(devices[0].name, "channel-3");
        assert_string_equal(devices[0].type, DEVICE_CHANNEL);
        assert_string_equal(devices[0].domain, DOMAIN);
        assert_int_equal(devices[0].id, 17);
        assert_string_equal(rebuild_clique(text, a), CLIQUE);
}

static void only_whole_names_of_devices_count(void **state) {
        static const struct {
                const char *name;
                size_t n;
        } rows[] = { { "/" UID "-channel-3", 1 }, { "^" UID "-channel-3", 1 }, { "`" UID "-channel-3", 1 },
                     { "." UID "-channel-3", 0 }, { "_" UID "-channel-3", 0 }, { "-" UID "-channel-3", 0 },
                     { UID "-channel-3/", 1 },    { UID "-channel-3^", 1 },    { UID "-channel-3`", 1 },
                     { UID "-channel-3.", 0 },    { UID "-channel-3_", 0 },    { UID "-channel-0", 1 },
                     { UID "-channel--1", 0 },    { UID "-channel-", 0 },      { UID "-daemon-0", 1 } };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rebuild(rows[i].name) != rows[i].n)
                        fail_msg("row %zu", i);
}

/* failure: the checkpoint is rebuilt while channel-1 and channel-10 are prepared -> they are not confused */
static void channel_1_does_not_match_channel_10(void **state) {
        (void)state;
        assert_int_equal(
                rebuild(FILE_OF("domain " DOMAIN " channel channel-10=1 clique " CLIQUE, "channel-10")), 1);
        assert_string_equal(devices[0].name, "channel-10");
        assert_int_equal(devices[0].id, 1);
        assert_int_equal(
                rebuild(FILE_OF("domain " DOMAIN " channel channel-1=10 clique " CLIQUE, "channel-1")), 1);
        assert_string_equal(devices[0].name, "channel-1");
        assert_int_equal(devices[0].id, 10);
        /* The ID of another device is ignored. */
        assert_int_equal(
                rebuild(FILE_OF("domain " DOMAIN " channel channel-10=7 clique " CLIQUE, "channel-1")), 1);
        assert_int_equal(devices[0].id, 1);
}

static void files_with_the_shared_channel_need_no_channel_in_the_comment(void **state) {
        (void)state;
        static const char text[] = FILE_OF("domain " DOMAIN, "channel-0");
        assert_string_equal(rebuild_comment(a, DOMAIN, "channel-0", 0, NULL), "domain " DOMAIN);
        assert_int_equal(rebuild(text), 1);
        assert_string_equal(devices[0].name, "channel-0");
        assert_int_equal(devices[0].id, 0);
        assert_null(rebuild_clique(text, a));
}

/* As the Go driver writes it: YAML without a comment. */
static void a_file_without_a_comment_is_read(void **state) {
        (void)state;
        static const char text[] = "cdiVersion: 0.5.0\ndevices:\n- containerEdits:\n    env:\n"
                                   "    - COMPUTE_DOMAIN_UUID=" DOMAIN "\n  name: " UID "-daemon-0\n"
                                   "- name: " UID "-channel-5\n";
        assert_int_equal(rebuild(text), 2);
        assert_string_equal(devices[0].type, DEVICE_DAEMON);
        assert_string_equal(devices[0].domain, DOMAIN);
        assert_string_equal(devices[1].name, "channel-5");
        assert_int_equal(devices[1].id, 5);
        assert_null(rebuild_clique(text, a));
}

static void a_daemon_of_an_unknown_computedomain_has_a_configuration(void **state) {
        (void)state;
        assert_int_equal(rebuild("name: " UID "-daemon-0\n"), 1);
        assert_string_equal(rebuild_config(&devices[0], a),
                            "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":"
                            "\"ComputeDomainDaemonConfig\",\"domainID\":\"" CD_DAEMON_DOMAIN "\"}");
}

static void names_of_other_devices_are_ignored(void **state) {
        (void)state;
        static const char *const texts[] = {
                "",
                "name: x" UID "-channel-0",
                "name: " UID "-channel-",
                "name: " UID "-channel-x",
                "name: " UID "-channel-01",
                "name: " UID "-channel-1x",
                "name: " UID "-channel--1",
                "name: " UID "-daemon-1",
                "name: " UID "-gpu-0",
                "name: d0000000-0000-4000-8000-000000000001-channel-0",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                if (rebuild(texts[i]) != 0)
                        fail_msg("case %zu", i);
        }
        /* A duplicate counts once. */
        assert_int_equal(rebuild("name: " UID "-channel-4\nname: " UID "-channel-4\n"), 1);
}

/* A claim has no more devices, so the file is damaged. */
static void at_most_128_devices_are_read(void **state) {
        struct buf text = BUF_INIT(1 << 16);
        (void)state;
        for (int i = 0; i < 130; i++)
                buf_addf(&text, "name: " UID "-channel-%d\n", i);
        assert_int_equal(rebuild(buf_str(&text)), 128);
        buf_done(&text);
}

static void an_invalid_clique_id_is_ignored(void **state) {
        (void)state;
        assert_null(rebuild_clique(FILE_OF("domain " DOMAIN " clique ../etc", "channel-0"), a));
        assert_null(rebuild_clique(FILE_OF("domain " DOMAIN " clique ", "channel-0"), a));
        assert_null(rebuild_clique("{}\n# claim x/y clique " CLIQUE " boot", a));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(only_whole_names_of_devices_count),
                T(name_id_owner_and_partition_come_from_the_comment),
                T(channel_1_does_not_match_channel_10),
                T(files_with_the_shared_channel_need_no_channel_in_the_comment),
                T(a_file_without_a_comment_is_read),
                T(a_daemon_of_an_unknown_computedomain_has_a_configuration),
                T(names_of_other_devices_are_ignored),
                T(at_most_128_devices_are_read),
                T(an_invalid_clique_id_is_ignored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
