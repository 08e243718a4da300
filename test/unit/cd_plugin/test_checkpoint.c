/* SPDX-License-Identifier: Apache-2.0 */
/* Golden vectors of the Go driver's checkpoint, and content that must be rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cd_plugin/cd_devices.h"
#include "node/checkpoint_layouts.h"

#define NONE                                                                                                 \
        { .codec = &cd_device_codec }

static const char empty[] =
        "{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":70045160,\"nodeBootID\":\"boot-1\"}}";

/* uid-1 completed, uid-2 started */
static const char full[] =
        "{\"checksum\":3945497490,\"v1\":{\"preparedClaims\":{\"uid-1\":{\"status\":{\"allocation\":{"
        "\"devices\":{"
        "\"results\":[{\"request\":\"channe"
        "l\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"node1\",\"device\":\"channel-0\"}],"
        "\"config\":[{"
        "\"source\":\"FromClaim\",\"requests\""
        ":[\"channel\"],\"opaque\":{\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
        "\"resource."
        "nvidia.com/v1beta1\",\"ki"
        "nd\":\"ComputeDomainChannelConfig\",\"domainID\":\"cd-uid\",\"allocationMode\":\"Single\"}}}]}}},"
        "\"preparedDevices\":[{\"devices\":[{\"c"
        "hannel\":{\"info\":{\"id\":0},\"device\":{\"Requests\":[\"channel\"],\"PoolName\":\"node1\","
        "\"DeviceName\":"
        "\"channel-0\",\"CDIDeviceIDs\":[\"k"
        "8s.compute-domain.nvidia.com/"
        "claim=uid-1-channel-0\"]}},\"daemon\":null}],\"configState\":{\"Type\":\"channel\","
        "\"ComputeDomain\":\""
        "cd-uid\"}}]}}},\"v2\":{\"checksum\":609914250,\"preparedClaims\":{\"uid-1\":{\"checkpointState\":"
        "\"PrepareCompleted\",\"status\":{\"allo"
        "cation\":{\"devices\":{\"results\":[{\"request\":\"channel\",\"driver\":\"compute-domain.nvidia."
        "com\",\"pool\":"
        "\"node1\",\"device\":\"channe"
        "l-0\"}],\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"channel\"],\"opaque\":{\"driver\":"
        "\"compute-"
        "domain.nvidia.com\",\"parameters"
        "\":{\"apiVersion\":\"resource.nvidia.com/"
        "v1beta1\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"cd-uid\",\"allocationMode\":\""
        "Single\"}}}]}}},\"preparedDevices\":[{\"devices\":[{\"channel\":{\"info\":{\"id\":0},\"device\":{"
        "\"Requests\":["
        "\"channel\"],\"PoolName\":\"n"
        "ode1\",\"DeviceName\":\"channel-0\",\"CDIDeviceIDs\":[\"k8s.compute-domain.nvidia.com/"
        "claim=uid-1-channel-0\"]}},\"daemon\":null}],"
        "\"configState\":{\"Type\":\"channel\",\"ComputeDomain\":\"cd-uid\"}}],\"name\":\"c\",\"namespace\":"
        "\"ns\"},"
        "\"uid-2\":{\"checkpointState\":\"Pre"
        "pareStarted\",\"status\":{},\"name\":\"d\",\"namespace\":\"ns\"}},\"nodeBootID\":\"boot-1\"}}";

/* 25.3: no v2 */
static const char only_v1[] =
        "{\"checksum\":3945497490,\"v1\":{\"preparedClaims\":{\"uid-1\":{\"status\":{\"allocation\":{"
        "\"devices\":{"
        "\"results\":[{\"request\":\"channe"
        "l\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"node1\",\"device\":\"channel-0\"}],"
        "\"config\":[{"
        "\"source\":\"FromClaim\",\"requests\""
        ":[\"channel\"],\"opaque\":{\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
        "\"resource.nvidia.com/v1beta1\",\"ki"
        "nd\":\"ComputeDomainChannelConfig\",\"domainID\":\"cd-uid\",\"allocationMode\":\"Single\"}}}]}}},"
        "\"preparedDevices\":[{\"devices\":[{\"c"
        "hannel\":{\"info\":{\"id\":0},\"device\":{\"Requests\":[\"channel\"],\"PoolName\":\"node1\","
        "\"DeviceName\":"
        "\"channel-0\",\"CDIDeviceIDs\":[\"k"
        "8s.compute-domain.nvidia.com/"
        "claim=uid-1-channel-0\"]}},\"daemon\":null}],\"configState\":{\"Type\":\"channel\","
        "\"ComputeDomain\":\""
        "cd-uid\"}}]}}}}";

/* 25.3.0-rc2: other member names, no status */
static const char rc2[] = "{\"checksum\":1729198935,\"v1\":{\"preparedClaims\":{\"uid-1\":[{\"devices\":[{"
                          "\"channel\":{\"info\":{\"id\":0},"
                          "\"device\":{\"request_names"
                          "\":[\"channel\"],\"pool_name\":\"node1\",\"device_name\":\"channel-0\",\"cdi_"
                          "device_ids\":[\"k8s.compute-domain."
                          "nvidia.com/claim=uid-1"
                          "-channel-0\"]}},\"daemon\":null}],\"configState\":{\"Type\":\"channel\","
                          "\"ComputeDomain\":\"cd-uid\"}}]}}}";

static struct err e;

static void encodes_to(const struct checkpoint *c, const char *want) {
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        checkpoint_encode(c, &b);
        assert_string_equal(buf_str(&b), want);
        buf_done(&b);
}

static void the_checksum_is_that_of_the_go_driver(void **state) {
        (void)state;
        assert_int_equal(gojson_checksum(&STR("{\"a\":1}"), 1), 1187653614);
        assert_int_equal(gojson_checksum(&STR("\t\n\vcd"), 1), 258105033); /* 9, 10, 11, 99, 100 */
}

static void a_text_is_not_nested_too_deep(void **state) {
        enum { DEEPEST = 61 };
        (void)state;
        for (size_t n = DEEPEST; n <= DEEPEST + 1; n++) {
                char text[2 * (DEEPEST + 1)];
                struct buf b = BUF_INIT(4096);
                memset(text, '[', n);
                memset(text + n, ']', n);
                yyjson_doc *doc = yyjson_read(text, 2 * n, 0);
                assert_int_equal(gojson_canonical(yyjson_doc_get_root(doc), NULL, &b), n == DEEPEST);
                yyjson_doc_free(doc);
                buf_done(&b);
        }
}

static void an_empty_checkpoint_is_read_and_written(void **state) {
        (void)state;
        struct checkpoint c = { .codec = &cd_device_codec, .boot_id = "boot-1" };
        encodes_to(&c, empty);
        assert_int_equal(checkpoint_decode(str_from(empty), &c, &e), 0);
        assert_string_equal(c.boot_id, "boot-1");
        assert_null(c.claims);
        checkpoint_done(&c);
}

/* failure: the checkpoint is one of another version -> it loads and is written unchanged [go] */
static void a_golden_vector_is_read_and_written_unchanged(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        assert_int_equal(checkpoint_decode(str_from(full), &c, &e), 0);
        const struct checkpoint_claim *one = checkpoint_find(&c, "uid-1"),
                                      *two = checkpoint_find(&c, "uid-2");
        assert_int_equal(one->state, CHECKPOINT_COMPLETED);
        assert_string_equal(one->ns, "ns");
        assert_string_equal(one->name, "c");
        assert_int_equal(one->n_devices, 1);
        assert_string_equal(one->devices[0].name, "channel-0");
        assert_string_equal(one->devices[0].pool, "node1");
        assert_string_equal(one->devices[0].domain, "cd-uid");
        assert_string_equal(one->devices[0].requests[0], "channel");
        assert_string_equal(one->devices[0].cdi_ids[0],
                            "k8s.compute-domain.nvidia.com/claim=uid-1-channel-0");
        assert_null(one->devices[0].cdi_ids[1]);
        assert_false(cd_device_is_daemon(&one->devices[0]));
        assert_false(one->devices[0].admin);
        assert_int_equal(two->state, CHECKPOINT_STARTED);
        assert_int_equal(two->n_devices, 0);
        encodes_to(&c, full);
        checkpoint_done(&c);
}

/* failure: the driver is downgraded to the Go driver -> its checkpoint has the Go driver's form [go] */
static void our_own_entries_give_the_golden_vector(void **state) {
        (void)state;
        struct checkpoint golden = NONE, c = { .codec = &cd_device_codec, .boot_id = "boot-1" };
        assert_int_equal(checkpoint_decode(str_from(full), &golden, &e), 0);
        checkpoint_put(&c, "uid-2", "ns", "d", STR("{}"));
        struct checkpoint_claim *one =
                checkpoint_put(&c, "uid-1", "ns", "c", checkpoint_find(&golden, "uid-1")->status);
        one->state = CHECKPOINT_COMPLETED;
        const char *requests[] = { "channel", NULL },
                   *ids[] = { "k8s.compute-domain.nvidia.com/claim=uid-1-channel-0", NULL };
        struct node_device d = {
                .name = "channel-0", .pool = "node1", .domain = "cd-uid", .requests = requests, .cdi_ids = ids
        };
        checkpoint_set_devices(one, &d, 1);
        encodes_to(&c, full);
        checkpoint_done(&golden);
        checkpoint_done(&c);
}

/* The number of a channel device differs from the ID of the channel that its claim was assigned. */
static void a_channels_id_is_not_the_number_of_its_device(void **state) {
        (void)state;
        struct checkpoint c = { .codec = &cd_device_codec, .boot_id = "boot-1" }, again = NONE, old = NONE;
        const char *requests[] = { "channel", NULL }, *ids[] = { NULL };
        struct node_device d = { .name = "channel-3",
                                 .pool = "node1",
                                 .domain = "cd-uid",
                                 .requests = requests,
                                 .cdi_ids = ids,
                                 .id = 17 };
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct checkpoint_claim *claim = checkpoint_put(&c, "uid-1", "ns", "c", STR("{}"));
        claim->state = CHECKPOINT_COMPLETED;
        checkpoint_set_devices(claim, &d, 1);
        checkpoint_encode(&c, &b);
        assert_non_null(strstr(buf_str(&b), "\"channel\":{\"info\":{\"id\":17},"));
        assert_int_equal(checkpoint_decode((struct str){ b.p, b.n }, &again, &e), 0);
        assert_string_equal(checkpoint_find(&again, "uid-1")->devices[0].name, "channel-3");
        assert_int_equal(checkpoint_find(&again, "uid-1")->devices[0].id, 17);
        assert_int_equal(checkpoint_decode(str_from(full), &old, &e), 0);
        assert_int_equal(checkpoint_find(&old, "uid-1")->devices[0].id, 0);
        buf_done(&b);
        checkpoint_done(&c);
        checkpoint_done(&again);
        checkpoint_done(&old);
}

/* An ID that is none: that of the device's name counts. */
static void the_id_of_a_channel_is_not_negative(void **state) {
        static const struct {
                const char *name;
                int64_t written, read;
        } rows[] = { { "channel-3", 0, 0 }, { "channel-3", -1, 3 }, { "odd", -1, 0 } };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct checkpoint c = { .codec = &cd_device_codec, .boot_id = "boot-1" }, again = NONE;
                const char *requests[] = { "channel", NULL }, *ids[] = { NULL };
                struct node_device d = { .name = rows[i].name,
                                         .pool = "node1",
                                         .domain = "cd-uid",
                                         .requests = requests,
                                         .cdi_ids = ids,
                                         .id = rows[i].written };
                struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
                struct checkpoint_claim *claim = checkpoint_put(&c, "uid-1", "ns", "c", STR("{}"));
                claim->state = CHECKPOINT_COMPLETED;
                checkpoint_set_devices(claim, &d, 1);
                checkpoint_encode(&c, &b);
                assert_int_equal(checkpoint_decode((struct str){ b.p, b.n }, &again, &e), 0);
                assert_int_equal(checkpoint_find(&again, "uid-1")->devices[0].id, rows[i].read);
                buf_done(&b);
                checkpoint_done(&c);
                checkpoint_done(&again);
        }
}

/* failure: a checkpoint has only the layout v1 -> it is read [go] */
static void a_layout_with_v1_only_is_read(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        assert_int_equal(checkpoint_decode(str_from(only_v1), &c, &e), 0);
        assert_string_equal(c.boot_id, "");
        const struct checkpoint_claim *one = checkpoint_find(&c, "uid-1");
        assert_int_equal(one->state, CHECKPOINT_COMPLETED);
        assert_null(one->name);
        assert_string_equal(one->devices[0].name, "channel-0");
        checkpoint_done(&c);
}

/* failure: the checkpoint has the layout of Go driver 25.3.0-rc.2 -> it is read [go] */
static void the_layout_of_25_3_0_rc2_is_read(void **state) {
        (void)state;
        struct checkpoint c = NONE, again = NONE;
        assert_int_equal(checkpoint_decode(str_from(rc2), &c, &e), 0);
        const struct checkpoint_claim *one = checkpoint_find(&c, "uid-1");
        assert_int_equal(one->state, CHECKPOINT_COMPLETED);
        assert_string_equal(one->devices[0].name, "channel-0");
        assert_string_equal(one->devices[0].cdi_ids[0],
                            "k8s.compute-domain.nvidia.com/claim=uid-1-channel-0");
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        checkpoint_encode(&c, &b);
        assert_int_equal(checkpoint_decode((struct str){ b.p, b.n }, &again, &e), 0);
        assert_non_null(strstr(b.p, "\"DeviceName\":\"channel-0\""));
        assert_string_equal(checkpoint_find(&again, "uid-1")->devices[0].requests[0], "channel");
        buf_done(&b);
        checkpoint_done(&c);
        checkpoint_done(&again);
}

/* A text of the form {"checksum":N,"v1":{},"v2":{"checksum":N<tail>} with the right sums. */
static char *with_tail(const char *tail) {
        char *zero = xasprintf("{\"checksum\":0%s", tail);
        char *text = xasprintf("{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":%lu%s}",
                               (unsigned long)gojson_checksum(&(struct str){ zero, strlen(zero) }, 1), tail);
        free(zero);
        return text;
}

static int decode_tail(const char *tail, struct checkpoint *c) {
        _cleanup_(freep) char *text = with_tail(tail);
        return checkpoint_decode(str_from(text), c, &e);
}

/* failure: a checkpoint has members of another version -> they are kept [go] */
static void members_of_other_versions_survive(void **state) {
        (void)state;
        static const char tail[] = ",\"preparedClaims\":{\"u\":{\"checkpointState\":\"PrepareStarted\","
                                   "\"status\":{\"allocation\":{\"devices\":{"
                                   "\"new\":[1.50,1e3,18446744073709551615,-0],\"x\":"
                                   "\"\\u003c\\u003e\\u0026\"}}},\"preparedDevices\":[{\"devices\":[{"
                                   "\"channel\":"
                                   "{\"device\":{\"DeviceName\":\"channel-0\",\"Metadata\":{\"a\":null}}},"
                                   "\"daemon\":null}],\"more\":true}]}},\"nodeBootID\":"
                                   "\"b\"}";
        struct checkpoint c = NONE;
        assert_int_equal(decode_tail(tail, &c), 0);
        _cleanup_(freep) char *want = with_tail(tail);
        encodes_to(&c, want);
        checkpoint_done(&c);
}

static void aborted_entries_keep_their_time(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        static const char tail[] = ",\"preparedClaims\":{\"u\":{\"checkpointState\":\"PrepareAborted\","
                                   "\"status\":{},\"abortedAt\":\"2026-"
                                   "06-10T10:00:00Z\"}}}";
        assert_int_equal(decode_tail(tail, &c), 0);
        assert_int_equal(checkpoint_find(&c, "u")->state, CHECKPOINT_ABORTED);
        assert_int_equal(checkpoint_find(&c, "u")->aborted_at, 1781085600);
        _cleanup_(freep) char *want = with_tail(tail);
        encodes_to(&c, want);
        checkpoint_done(&c);
}

static void admin_access_comes_from_the_status(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        assert_int_equal(decode_tail(",\"preparedClaims\":{\"u\":{\"checkpointState\":\"PrepareCompleted\","
                                     "\"status\":{\"allocation\":{"
                                     "\"devices\":{\"results\":["
                                     "{\"request\":\"r\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n\","
                                     "\"device\":\"channel-0\"},"
                                     "{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":"
                                     "\"n\",\"device\":\"channel-0\","
                                     "\"adminAccess\":true}]}}},"
                                     "\"preparedDevices\":[{\"devices\":[{\"channel\":{\"device\":{"
                                     "\"DeviceName\":\"channel-0\"}},"
                                     "\"daemon\":null}]}]}}}",
                                     &c),
                         0);
        assert_true(checkpoint_find(&c, "u")->devices[0].admin);
        checkpoint_done(&c);
}

static void trailing_newline_is_no_corruption(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        _cleanup_(freep) char *text = xasprintf("%s\n", full);
        assert_int_equal(checkpoint_decode(str_from(text), &c, &e), 0);
        checkpoint_done(&c);
}

/* failure: a checkpoint is truncated anywhere -> it is detected as corrupt */
static void every_truncation_is_corruption(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        for (size_t n = 0; n < strlen(full); n++) {
                assert_int_equal(checkpoint_decode((struct str){ full, n }, &c, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
        }
}

/* failure: any byte of a checkpoint changes -> it is detected as corrupt */
static void every_changed_byte_is_corruption(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        const char *v2 = strstr(full, "\"v2\"");
        for (size_t i = 0; i < strlen(full); i++) {
                if (full + i == v2 + 1 || full + i == v2 + 2)
                        continue; /* with another name it is a future layout, and v1 counts */
                _cleanup_(freep) char *text = xstrdup(full);
                text[i] = text[i] == '5' ? '6' : '5';
                assert_int_equal(checkpoint_decode(str_from(text), &c, &e), -1);
        }
}

static void nonsense_is_corruption(void **state) {
        (void)state;
        static const char *const bad[] = {
                "",
                "null",
                "[]",
                "{}",
                "{\"checksum\":0}",
                "{\"checksum\":1083090442,\"v1\":[]}",
                "\x01\x02",
                "{\"checksum\":1083090442,\"v1\":{},\"v2\":{}}",
                "{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"nodeBootID\":\"b\",\"checksum\":1}}"
        };
        struct checkpoint c = NONE;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(checkpoint_decode(str_from(bad[i]), &c, &e), -1);
        assert_int_equal(
                decode_tail(",\"preparedClaims\":{\"u\":{\"checkpointState\":\"Nonsense\",\"status\":{}}}}",
                            &c),
                -1);
        assert_non_null(strstr(e.msg, "Nonsense"));
        assert_int_equal(decode_tail(",\"preparedClaims\":{\"u\":7}}", &c), -1);
        assert_int_equal(decode_tail(",\"preparedClaims\":[]}", &c), -1);
        struct buf deep = BUF_INIT(1 << 16);
        buf_adds(&deep,
                 ",\"preparedClaims\":{\"u\":{\"checkpointState\":\"PrepareStarted\",\"status\":{\"a\":");
        for (int i = 0; i < 2000; i++)
                buf_addc(&deep, '[');
        for (int i = 0; i < 2000; i++)
                buf_addc(&deep, ']');
        buf_adds(&deep, "}}}}");
        assert_int_equal(decode_tail(buf_str(&deep), &c), -1);
        buf_done(&deep);
}

/* The right checksum proves only that the writer meant it. */
/* failure: a checkpoint has the right checksum and a member of a wrong type -> it is reported as corrupt */
static void a_member_of_a_wrong_type_is_corruption(void **state) {
        (void)state;
        static const char *const bad[] = { "'checkpointState':'PrepareStarted','name':7",
                                           "'checkpointState':'PrepareCompleted','preparedDevices':7",
                                           "'checkpointState':'PrepareCompleted','preparedDevices':[{"
                                           "'devices':7}]" };
        struct checkpoint c = NONE;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(freep) char *tail = xasprintf(",'preparedClaims':{'u':{%s}}}", bad[i]);
                for (char *p = tail; *p; p++)
                        if (*p == '\'')
                                *p = '"';
                assert_int_equal(decode_tail(tail, &c), -1);
                assert_non_null(strstr(e.msg, "preparedClaims['u']: "));
        }
        /* In the layout of 25.3.0-rc2. */
        static const char old[] = "{\"preparedClaims\":{\"u\":[{\"devices\":7}]}}";
        char *zero = xasprintf("{\"checksum\":0,\"v1\":%s}", old);
        _cleanup_(freep) char *text =
                xasprintf("{\"checksum\":%lu,\"v1\":%s}",
                          (unsigned long)gojson_checksum(&(struct str){ zero, strlen(zero) }, 1), old);
        free(zero);
        assert_int_equal(checkpoint_decode(str_from(text), &c, &e), -1);
        assert_non_null(strstr(e.msg, "preparedClaims['u']: "));
}

/* The checksums cover the text, so the code finds the members in the text. */
static void quoted_braces_commas_and_colons_belong_to_the_text(void **state) {
        (void)state;
        static const char tail[] =
                ",\"a\\\",\\\"b\":\"}],{[:\\\\\",\"c:{\":\"]\",\"[\":1,\"nodeBootID\":\"b\"}";
        struct checkpoint c = NONE;
        assert_int_equal(decode_tail(tail, &c), 0);
        assert_string_equal(c.boot_id, "b");
        checkpoint_done(&c);
        /* The same beside v1 and v2. */
        _cleanup_(freep) char *plain = with_tail(",\"nodeBootID\":\"b\"}");
        _cleanup_(freep) char *text =
                xasprintf("{\"a\\\",\\\"b\":\"}],{[:\\\\\",\"c:{\":\"]\",\"[\":\"[\",%s", plain + 1);
        assert_int_equal(checkpoint_decode(str_from(text), &c, &e), 0);
        assert_string_equal(c.boot_id, "b");
        checkpoint_done(&c);
}

static void a_second_v2_is_corruption(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        static const char *const second[] = { "7", "{}", "\"\"" };
        for (size_t i = 0; i < ARRAY_LEN(second); i++) {
                _cleanup_(freep) char *text =
                        xasprintf("%.*s,\"v2\":%s}", (int)strlen(full) - 1, full, second[i]);
                assert_int_equal(checkpoint_decode(str_from(text), &c, &e), -1);
                assert_string_equal(e.msg, "v2 has no checksum");
        }
}

static void a_checkpoint_has_at_most_32_mib(void **state) {
        (void)state;
        struct checkpoint c = NONE;
        size_t n = strlen(full);
        char *text = xmalloc(CHECKPOINT_MAX_BYTES + 1);
        memcpy(text, full, n);
        memset(text + n, ' ', CHECKPOINT_MAX_BYTES + 1 - n);
        assert_int_equal(checkpoint_decode((struct str){ text, CHECKPOINT_MAX_BYTES }, &c, &e), 0);
        checkpoint_done(&c);
        c = (struct checkpoint)NONE;
        assert_int_equal(checkpoint_decode((struct str){ text, CHECKPOINT_MAX_BYTES + 1 }, &c, &e), -1);
        assert_string_equal(e.msg, "larger than 33554432 bytes");
        free(text);
}

/* A claim with several configurations has a group for each. */
static void the_devices_of_all_groups_are_read(void **state) {
        (void)state;
#define DEVICE(name) "{\"channel\":{\"device\":{\"DeviceName\":\"" name "\"}},\"daemon\":null}"
        struct checkpoint c = NONE;
        assert_int_equal(
                decode_tail(",\"preparedClaims\":{\"u\":{\"checkpointState\":\"PrepareCompleted\","
                            "\"preparedDevices\":[{\"devices\":[" DEVICE(
                                    "channel-0") "]},{"
                                                 "\"devices\":[" DEVICE("channel-1") "," DEVICE(
                                                         "channel-2") "," DEVICE("channel-3") "]}]}}}",
                            &c),
                0);
        const struct checkpoint_claim *claim = checkpoint_find(&c, "u");
        assert_int_equal(claim->n_devices, 4);
        assert_string_equal(claim->devices[3].name, "channel-3");
        checkpoint_done(&c);
#undef DEVICE
}

static void status_is(const char *json, const char *want) {
        struct buf b = BUF_INIT(1 << 16);
        yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
        assert_non_null(doc);
        assert_true(checkpoint_status(yyjson_doc_get_root(doc), &b));
        assert_string_equal(buf_str(&b), want);
        yyjson_doc_free(doc);
        buf_done(&b);
}

/* A reinstalled Go driver computes the checksums over the members that its types have. */
/* failure: a newer API server adds fields to a claim's status -> the checkpoint omits them, and the Go driver
 * accepts it [go] */
static void members_of_a_newer_api_server_are_not_recorded(void **state) {
        static const char known[] =
                "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"d\",\"pool\":"
                "\"p\","
                "\"device\":\"channel-0\",\"adminAccess\":true,\"tolerations\":[{\"key\":\"k\",\"operator\":"
                "\"Exists\",\"tolerationSeconds\":5}],\"shareID\":\"s\",\"consumedCapacity\":{\"a\":\"1\"}}],"
                "\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"r\"],\"opaque\":{\"driver\":\"d\","
                "\"parameters\":{\"kind\":\"K\",\"any\":{\"thing\":[1]}}}}]},\"nodeSelector\":{"
                "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
                "\"values\":[\"n0\"]}]}]},\"allocationTimestamp\":\"2026-01-01T00:00:00Z\"},\"reservedFor\":["
                "{"
                "\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"u\"}],\"devices\":[{\"driver\":\"d\","
                "\"pool\":"
                "\"p\",\"device\":\"x\",\"conditions\":[{\"type\":\"T\",\"status\":\"True\","
                "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"reason\":\"R\",\"message\":\"m\"}],"
                "\"data\":{"
                "\"z\":1},"
                "\"networkData\":{\"ips\":[\"10.0.0.1\"]}}]}";
        status_is(known, known);
        status_is(
                "{\"new\":1,\"allocation\":{\"new\":{},\"devices\":{\"results\":[{\"request\":\"r\","
                "\"new\":[1],"
                "\"device\":\"channel-0\"}],\"config\":[{\"source\":\"FromClaim\",\"new\":1,\"opaque\":{"
                "\"driver\":"
                "\"d\",\"new\":1,\"parameters\":{\"new\":1}}}]}},\"reservedFor\":[{\"name\":\"p\",\"new\":"
                "1}]}",
                /* Go's types also write the members that every server sends when they are missing. */
                "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"\",\"pool\":\"\","
                "\"device\":\"channel-0\"}],"
                "\"config\":[{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"d\",\"parameters\":{"
                "\"new\":1}}}]}},"
                "\"reservedFor\":[{\"resource\":\"\",\"name\":\"p\",\"uid\":\"\"}]}");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(members_of_a_newer_api_server_are_not_recorded),
                cmocka_unit_test(the_checksum_is_that_of_the_go_driver),
                cmocka_unit_test(a_text_is_not_nested_too_deep),
                cmocka_unit_test(an_empty_checkpoint_is_read_and_written),
                cmocka_unit_test(a_golden_vector_is_read_and_written_unchanged),
                cmocka_unit_test(our_own_entries_give_the_golden_vector),
                cmocka_unit_test(a_channels_id_is_not_the_number_of_its_device),
                cmocka_unit_test(the_id_of_a_channel_is_not_negative),
                cmocka_unit_test(a_layout_with_v1_only_is_read),
                cmocka_unit_test(the_layout_of_25_3_0_rc2_is_read),
                cmocka_unit_test(members_of_other_versions_survive),
                cmocka_unit_test(aborted_entries_keep_their_time),
                cmocka_unit_test(admin_access_comes_from_the_status),
                cmocka_unit_test(trailing_newline_is_no_corruption),
                cmocka_unit_test(every_truncation_is_corruption),
                cmocka_unit_test(every_changed_byte_is_corruption),
                cmocka_unit_test(nonsense_is_corruption),
                cmocka_unit_test(a_member_of_a_wrong_type_is_corruption),
                cmocka_unit_test(quoted_braces_commas_and_colons_belong_to_the_text),
                cmocka_unit_test(a_second_v2_is_corruption),
                cmocka_unit_test(a_checkpoint_has_at_most_32_mib),
                cmocka_unit_test(the_devices_of_all_groups_are_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
