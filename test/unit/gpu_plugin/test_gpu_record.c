/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that the Go driver has written (golden/checkpoint-go-*), and the same claims in both of its
 * dialects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "base/file.h"
#include "gpu_plugin/gpu_plan.h"
#include "gpu_plugin/gpu_record.h"
#include "node/checkpoint_layouts.h"
#include "node/claim_gc.h"

static struct err e;

static char *golden(const char *name) {
        _cleanup_(freep) char *path = xasprintf(GO_GOLDEN_DIR "/%s", name);
        char *text = NULL;
        size_t n = 0;
        if (file_read(path, CHECKPOINT_MAX_BYTES, &text, &n, &e) < 0)
                fail_msg("%s", e.msg);
        while (n && text[n - 1] == '\n')
                text[--n] = '\0';
        return text;
}

static void read_into(struct checkpoint *c, const char *name) {
        _cleanup_(freep) char *text = golden(name);
        if (checkpoint_decode(str_from(text), c, &e) < 0)
                fail_msg("%s: %s", name, e.msg);
}

static void encodes_to(const struct checkpoint *c, const char *name) {
        _cleanup_(freep) char *want = golden(name);
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        checkpoint_encode(c, &b);
        assert_string_equal(buf_str(&b), want);
        buf_done(&b);
}

/* failure: the checkpoint is of any Go driver version -> it is read and written unchanged */
static void a_checkpoint_of_the_go_driver_is_written_unchanged(void **state) {
        (void)state;
        static const char *const names[] = { "checkpoint-go-1.json", "checkpoint-go-2.json",
                                             "checkpoint-go-3.json", "checkpoint-go-4.json",
                                             "checkpoint-go-5.json", "one-main.json",
                                             "one-released.json",    "all-main.json",
                                             "all-released.json",    "rebuilt-released.json" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct checkpoint c = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_MAIN };
                if (strstr(names[i], "released"))
                        c.dialect = GPU_RECORD_RELEASED;
                read_into(&c, names[i]);
                encodes_to(&c, names[i]);
                checkpoint_done(&c);
        }
}

/* failure: the checkpoint has the layout of another Go driver version -> it is converted */
static void a_checkpoint_is_converted_to_the_configured_layout(void **state) {
        (void)state;
        struct checkpoint c = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_RELEASED };
        read_into(&c, "all-main.json");
        encodes_to(&c, "all-released.json");
        checkpoint_done(&c);
        c.dialect = GPU_RECORD_MAIN;
        read_into(&c, "all-released.json");
        encodes_to(&c, "all-main.json");
        checkpoint_done(&c);
}

/* The plugin's own form of the claims of golden/one-* and golden/all-*. */
static const struct node_device of_one[] = {
        { .name = "gpu-0",
          .pool = "node1",
          .requests = (const char *[]){ "gpu", NULL },
          .cdi_ids = (const char *[]){ "k8s.gpu.nvidia.com/claim=uid-1-gpu-0", NULL },
          .type = GPU_TYPE_FULL,
          .info = "{\"uuid\":\"GPU-00000000-0000-4000-8000-000000000000\"}" },
};

/* failure: the driver returns to the Go driver -> new entries have its form */
static void a_new_claim_is_written_as_go_would(void **state) {
        (void)state;
        static const char status[] =
                "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"gpu\",\"driver\":\""
                "gpu.nvidia.com\",\"pool\":\"node1\",\"device\":\"gpu-0\"}]}}}";
        const struct {
                int dialect;
                const char *name;
        } both[] = { { GPU_RECORD_MAIN, "one-main.json" }, { GPU_RECORD_RELEASED, "one-released.json" } };
        for (size_t i = 0; i < ARRAY_LEN(both); i++) {
                struct checkpoint c = { .codec = &gpu_record_codec,
                                        .boot_id = "boot-1",
                                        .dialect = both[i].dialect };
                struct checkpoint_claim *claim = checkpoint_put(&c, "uid-1", "ns", "a", STR(status));
                checkpoint_set_devices(claim, of_one, ARRAY_LEN(of_one));
                claim->state = CHECKPOINT_COMPLETED;
                encodes_to(&c, both[i].name);
                checkpoint_done(&c);
        }
}

static void devices_are_read_with_their_types(void **state) {
        (void)state;
        struct checkpoint c = { .codec = &gpu_record_codec };
        struct arena *a = arena_new(256);
        read_into(&c, "all-main.json");
        const struct checkpoint_claim *sliced = checkpoint_find(&c, "uid-2"),
                                      *mig = checkpoint_find(&c, "uid-3");
        assert_string_equal(sliced->devices[0].type, GPU_TYPE_FULL);
        assert_string_equal(sliced->devices[0].group_info, "{\"timeSliceApplied\":true}");
        assert_string_equal(gpu_record_uuid(&sliced->devices[0], a),
                            "GPU-00000000-0000-4000-8000-000000000001");
        assert_int_equal(mig->n_devices, 2);
        assert_string_equal(mig->devices[1].type, GPU_TYPE_MIG);
        assert_string_equal(mig->devices[1].name, "gpu-2-mig-2g47gb-14-2");
        assert_string_equal(mig->devices[1].requests[0], "m1");
        assert_string_equal(gpu_record_uuid(&mig->devices[1], a), "MIG-00000000-0000-5000-8000-000000000001");
        assert_int_equal(mig->devices[0].group, mig->devices[1].group);
        checkpoint_done(&c);
        read_into(&c, "checkpoint-go-2.json");
        assert_false(checkpoint_find(&c, "11111111-0000-4000-8000-000000000001")->devices[0].admin);
        assert_true(checkpoint_find(&c, "11111111-0000-4000-8000-000000000003")->devices[0].admin);
        checkpoint_done(&c);
        arena_free(a);
}

/* The Go driver crashes if a prepared claim has no allocation. */
/* failure: the Go driver returns after the checkpoint was rebuilt -> it reads the allocation of each GPU
 * claim */
static void a_rebuilt_claim_has_the_allocation_that_go_reads(void **state) {
        (void)state;
        static const struct node_driver driver = { .name = GPU_DRIVER,
                                                   .codec = &gpu_record_codec,
                                                   .rebuild = gpu_plan_rebuild };
        static const struct claims_options o = { .driver = &driver,
                                                 .node = "node1",
                                                 .boot_id = "11111111-1111-4111-8111-111111111111" };
        static const char *const files[][2] = {
                { "uid-1",
                  "# claim ns/a devices [{\"name\":\"gpu-0\",\"type\":\"gpu\",\"info\":{\"uuid\":"
                  "\"GPU-00000000-0000-4000-8000-000000000000\"}}] boot "
                  "11111111-1111-4111-8111-111111111111\n{\"devices\":[{\"name\":\"uid-1-gpu-0\"}]}" },
                { "uid-2",
                  "# claim ns/b devices [{\"name\":\"gpu-0\",\"type\":\"gpu\",\"admin\":true,\"info\":"
                  "{\"uuid\":\"GPU-00000000-0000-4000-8000-000000000000\"}}] boot "
                  "11111111-1111-4111-8111-111111111111\n{\"devices\":[{\"name\":\"uid-2-gpu-0\"}]}" },
                { "uid-3", "devices:\n  - name: uid-3-gpu-1\n  - name: uid-3-gpu-2-mig-1g24gb-19-0\n" },
        };
        struct checkpoint c = { .codec = &gpu_record_codec,
                                .boot_id = "boot-1",
                                .dialect = GPU_RECORD_RELEASED };
        for (size_t i = 0; i < ARRAY_LEN(files); i++)
                assert_true(claim_gc_rebuild(&c, &o, files[i][0], str_from(files[i][1]), true));
        encodes_to(&c, "rebuilt-released.json");
        checkpoint_done(&c);
}

/* The Go driver's GPU plugin does not know this state, and would exit because of a file with it. */
static void an_unprepared_claim_is_not_in_the_file(void **state) {
        (void)state;
        struct checkpoint c = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_MAIN };
        read_into(&c, "one-main.json");
        struct checkpoint_claim *gone = checkpoint_put(&c, "uid-9", "ns", "g", STR("{}"));
        gone->state = CHECKPOINT_ABORTED;
        gone->aborted_at = 1700000000;
        encodes_to(&c, "one-main.json");
        checkpoint_done(&c);
}

/* The Go driver would report a checkpoint with an empty member, or with a member from a newer API server, as
 * corrupt. */
/* failure: a claim's status has members that Go's types lack -> the checkpoint omits them */
static void a_status_is_written_as_gos_types_would(void **state) {
        (void)state;
        const struct {
                const char *sent, *written;
        } cases[] = {
                { "{\"allocation\":{\"devices\":{\"results\":[{\"device\":\"d\",\"pool\":\"p\",\"driver\":"
                  "\"x\",\"request\":\"r\","
                  "\"adminAccess\":null,\"newer\":{\"a\":1}}],\"config\":[]}}}",
                  "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"x\",\"pool\":"
                  "\"p\",\"device\":\"d\"}]}}"
                  "}" },
                { "{\"allocation\":{\"devices\":{\"config\":[{\"opaque\":{\"parameters\":{\"b\":1,\"a\":\"<"
                  "\"},\"driver\":\"x\"},"
                  "\"requests\":[\"r\"],\"source\":\"FromClaim\"}]}}}",
                  "{\"allocation\":{\"devices\":{\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"r\"],"
                  "\"opaque\":{\"driver\":"
                  "\"x\",\"parameters\":{\"b\":1,\"a\":\"\\u003c\"}}}]}}}" },
                { "{\"allocation\":{\"nodeSelector\":{}},\"reservedFor\":[{\"uid\":\"u\",\"name\":\"n\","
                  "\"resource\":\"pods\"}]}",
                  "{\"allocation\":{\"devices\":{},\"nodeSelector\":{\"nodeSelectorTerms\":null}},"
                  "\"reservedFor\":[{\"resource\":"
                  "\"pods\",\"name\":\"n\",\"uid\":\"u\"}]}" },
                { "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"x\",\"pool\":"
                  "\"p\",\"device\":\"d\","
                  "\"consumedCapacity\":{},\"adminAccess\":false}]}}}",
                  "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"x\",\"pool\":"
                  "\"p\",\"device\":\"d\","
                  "\"adminAccess\":false}]}}}" },
                { "{\"devices\":[]}", "{}" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct buf b = BUF_INIT(4096);
                yyjson_doc *doc = json_parse(str_from(cases[i].sent), YYJSON_READ_NUMBER_AS_RAW, &e);
                assert_non_null(doc);
                assert_true(checkpoint_status(yyjson_doc_get_root(doc), &b));
                assert_string_equal(buf_str(&b), cases[i].written);
                yyjson_doc_free(doc);
                buf_done(&b);
        }
}

/* An unknown member in a group belongs to another version. It stays, even if the dialect changes. */
/* failure: the checkpoint has unknown members -> they stay unchanged */
static void unknown_members_stay_unchanged(void **state) {
        (void)state;
        struct checkpoint c = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_MAIN, .boot_id = "boot-1" },
                          again = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_RELEASED };
        struct checkpoint_claim *claim = checkpoint_put(&c, "uid-1", "ns", "a", STR("{}"));
        static const char strange[] = "[{\"devices\":[],\"configState\":{},\"newer\":1}]";
        claim->prepared = STR(strange);
        claim->state = CHECKPOINT_COMPLETED;
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        checkpoint_encode(&c, &b);
        assert_int_equal(checkpoint_decode((struct str){ b.p, b.n }, &again, &e), 0);
        struct str kept = checkpoint_find(&again, "uid-1")->prepared;
        assert_true(str_eq(kept, STR(strange)));
        checkpoint_done(&again);
        checkpoint_done(&c);
        buf_done(&b);
}

static void a_claim_without_devices_has_an_empty_list(void **state) {
        struct checkpoint c = { .codec = &gpu_record_codec, .dialect = GPU_RECORD_MAIN };
        struct checkpoint_claim *claim = checkpoint_put(&c, "uid-1", "ns", "a", STR("{}"));
        checkpoint_set_devices(claim, NULL, 0);
        assert_true(str_eq(claim->prepared, STR("[]")));
        checkpoint_done(&c);
}

/* failure: the checkpoint's entry of a claim is corrupt -> the error is reported */
static void a_corrupt_entry_is_an_error(void **state) {
        static const char *const texts[] = { "7", "{\"preparedDevices\":7}", "[7]",
                                             "[{\"devices\":[{\"gpu\":7}]}]",
                                             "[{\"devices\":[{\"gpu\":{\"device\":7}}]}]" };
        struct arena *a = arena_new(256);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct node_device *devices;
                size_t n;
                yyjson_doc *doc = json_parse(str_from(texts[i]), YYJSON_READ_NOFLAG, &e);
                assert_int_equal(gpu_record_codec.decode(yyjson_doc_get_root(doc), a, &devices, &n, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                yyjson_doc_free(doc);
        }
        arena_free(a);
}

/* failure: the configuration in a claim's entry is not an object -> the written checkpoint is valid JSON */
static void a_configuration_that_is_not_an_object_is_read_as_empty(void **state) {
        static const char text[] = "[{\"devices\":[{\"gpu\":{\"device\":{}}}],\"configState\":\"x\"}]";
        struct arena *a = arena_new(256);
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct jw w = JW(&b);
        struct node_device *devices;
        size_t n;
        yyjson_doc *doc = json_parse(str_from(text), YYJSON_READ_NOFLAG, &e);
        assert_int_equal(gpu_record_codec.decode(yyjson_doc_get_root(doc), a, &devices, &n, &e), 0);
        yyjson_doc_free(doc);
        assert_int_equal(n, 1);
        assert_string_equal(devices[0].group_info, "{}");
        gpu_record_codec.encode(&w, devices, n, GPU_RECORD_RELEASED);
        doc = json_parse((struct str){ b.p, b.n }, YYJSON_READ_NOFLAG, &e);
        assert_non_null(doc);
        yyjson_doc_free(doc);
        buf_done(&b);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_checkpoint_of_the_go_driver_is_written_unchanged),
                cmocka_unit_test(a_checkpoint_is_converted_to_the_configured_layout),
                cmocka_unit_test(a_new_claim_is_written_as_go_would),
                cmocka_unit_test(devices_are_read_with_their_types),
                cmocka_unit_test(a_rebuilt_claim_has_the_allocation_that_go_reads),
                cmocka_unit_test(an_unprepared_claim_is_not_in_the_file),
                cmocka_unit_test(a_status_is_written_as_gos_types_would),
                cmocka_unit_test(unknown_members_stay_unchanged),
                cmocka_unit_test(a_claim_without_devices_has_an_empty_list),
                cmocka_unit_test(a_corrupt_entry_is_an_error),
                cmocka_unit_test(a_configuration_that_is_not_an_object_is_read_as_empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
