/* SPDX-License-Identifier: Apache-2.0 */
/* Names, attributes and capacities of GPUs and MIG devices: exactly those of the Go driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "golden.h"
#include "gpu_plugin/gpu_devices.h"
#include "tree.h"

static char *sys;

/* Creates a PCI function in sysfs as the kernel does: a link into the tree of devices. */
static void put_function(const char *address, const char *root, const char *class, const char *numa) {
        _cleanup_(freep) char *to = xasprintf("../../../devices/%s/%s", root, address);
        _cleanup_(freep) char *link = xasprintf("%s/bus/pci/devices/%s", sys, address);
        const char *const files[][2] = { { "vendor", "0x10de\n" },
                                         { "class", class },
                                         { "numa_node", numa } };
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                _cleanup_(freep) char *path = xasprintf("devices/%s/%s/%s", root, address, files[i][0]);
                tree_put(sys, path, files[i][1]);
        }
        assert_int_equal(symlink(to, link), 0);
}

static int setup(void **state) {
        sys = tree_new();
        tree_put(sys, "bus/pci/devices/.keep", "");
        put_function("0000:16:00.0", "pci0000:15/0000:15:01.0", "0x030200\n", "0\n");
        put_function("0000:3a:00.0", "pci0000:38", "0x030200\n", "-1\n");
        put_function("0000:4b:00.0", "pci0000:4a", "0x030000\n", "1\n");
        put_function("0000:5c:00.0", "platform", "0x060400\n", "1\n");
        return 0;
}

static int teardown(void **state) {
        tree_remove(sys);
        return 0;
}

static struct gpu_devices described(const char *json) {
        struct arena *a = arena_new(4096);
        struct inventory in;
        struct gpu_devices d;
        struct err e = { 0 };
        if (inventory_decode(str_from(json), a, &in, &e) < 0)
                fail_msg("%s", e.msg);
        gpu_devices_describe(&in, sys, &d);
        arena_free(a);
        return d;
}

/* Writes one value per line. */
static void write_devices(struct buf *out, const struct gpu_devices *d) {
        for (size_t i = 0; i < d->n; i++) {
                const struct gpu_device *g = &d->items[i];
                buf_addf(out, "%s\n", g->name);
                for (size_t j = 0; j < g->offered.n_attributes; j++) {
                        const struct offered_attribute *a = &g->offered.attributes[j];
                        if (a->text || a->version)
                                buf_addf(out, "  %s: %s %s\n", a->name, a->text ? "string" : "version",
                                         a->text ?: a->version);
                        else
                                buf_addf(out, "  %s: int %lld\n", a->name, (long long)a->number);
                }
                for (size_t j = 0; j < g->offered.n_capacities; j++)
                        buf_addf(out, "  capacity %s: %s\n", g->offered.capacities[j].name,
                                 g->offered.capacities[j].quantity);
        }
        for (size_t i = 0; i < d->n_left_out; i++)
                buf_addf(out, "left out: %s: %s\n", d->left_out[i].what, d->left_out[i].why);
}

#define GPU_0                                                                                                \
        "{\"index\":0,\"minor\":0,\"uuid\":\"GPU-00000000-0000-4000-8000-000000000000\","                    \
        "\"name\":\"NVIDIA H200\",\"brand\":14,\"architecture\":9,\"cc\":\"9.0\",\"memory\":150754820096,"   \
        "\"pci\":\"00000000:16:00.0\",\"addressingMode\":\"HMM\",\"migMode\":0}"
/* The second GPU by index is the third by minor number. */
#define GPU_2_MIG                                                                                            \
        "{\"index\":1,\"minor\":2,\"uuid\":\"GPU-00000000-0000-4000-8000-000000000002\","                    \
        "\"name\":\"NVIDIA H200\",\"brand\":14,\"architecture\":9,\"cc\":\"9.0\",\"memory\":150754820096,"   \
        "\"pci\":\"00000000:3A:00.0\",\"migMode\":1,\"mig\":["                                               \
        "{\"uuid\":\"MIG-b\",\"gi\":9,\"ci\":0,\"giProfile\":0,\"profileID\":19,\"start\":4,\"size\":1,"     \
        "\"g\":1,\"c\":1,\"sm\":16,\"ce\":1,\"dec\":1,\"enc\":0,\"jpeg\":1,\"ofa\":0,\"memoryMB\":16896},"   \
        "{\"uuid\":\"MIG-a\",\"gi\":2,\"ci\":0,\"giProfile\":2,\"profileID\":9,\"start\":0,\"size\":4,"      \
        "\"g\":3,\"c\":3,\"sm\":60,\"ce\":3,\"dec\":3,\"enc\":0,\"jpeg\":3,\"ofa\":0,\"memoryMB\":71424},"   \
        "{\"uuid\":\"MIG-c\",\"gi\":10,\"ci\":1,\"giProfile\":2,\"profileID\":9,\"start\":5,\"size\":2,"     \
        "\"g\":3,\"c\":1,\"sm\":60,\"ce\":3,\"dec\":3,\"enc\":0,\"jpeg\":3,\"ofa\":0,\"memoryMB\":71424},"   \
        "{\"uuid\":\"MIG-d\",\"gi\":11,\"ci\":0,\"giProfile\":7,\"profileID\":20,\"start\":7,\"size\":1,"    \
        "\"g\":1,\"c\":1,\"sm\":16,\"ce\":1,\"dec\":1,\"enc\":0,\"jpeg\":1,\"ofa\":1,\"memoryMB\":16896}]}"
#define NODE(gpus) "{\"driverVersion\":\"580.95.05\",\"cudaDriverVersion\":13000,\"gpus\":[" gpus "]}"

/* failure: the devices of a node are published -> they are those of the Go driver, also for odd GPUs */
static void devices_are_those_of_the_go_driver(void **state) {
        static const char json[] = NODE(
                GPU_0 "," GPU_2_MIG ",{\"index\":2,\"minor\":1,\"uuid\":\"GPU-1\",\"name\":\"Tesla "
                      "V100\",\"brand\":99,\"architecture\":77,\"cc\":\"7.0\",\"pci\":\"00000000:4B:00.0\"},"
                      "{\"index\":3,\"minor\":3,\"uuid\":\"GPU-3\",\"name\":\"NVIDIA DGX Display\"},"
                      "{\"index\":4,\"call\":\"nvmlDeviceGetUUID\",\"error\":15},"
                      "{\"index\":5,\"minor\":5,\"uuid\":\"GPU-5\",\"name\":\"x\",\"migMode\":1,\"mig\":"
                      "[{\"call\":\"nvmlDeviceGetUUID\",\"error\":999},"
                      "{\"uuid\":\"MIG-5\",\"giProfile\":30,\"profileID\":40,\"name\":\"MIG 5g.1gb+new\"},"
                      "{\"uuid\":\"MIG-6\",\"giProfile\":30,\"profileID\":41}]},"
                      "{\"index\":6,\"minor\":6,\"uuid\":\"GPU-6\",\"pci\":\"00010000:5C:00.0\"},"
                      "{\"index\":7,\"minor\":7,\"uuid\":\"GPU-7\",\"pci\":\"00000000:5C:00.0\"},"
                      "{\"index\":8,\"minor\":7,\"uuid\":\"GPU-8\"}");
        struct gpu_devices d = described(json);
        struct buf text = BUF_INIT(1 << 20);
        write_devices(&text, &d);
        golden_compare("gpu-devices.txt", buf_str(&text));
        buf_done(&text);
        gpu_devices_done(&d);
}

/* failure: the API server serves v1 or v1beta1 -> slices have the form of that version */
static void slices_have_the_form_of_their_version(void **state) {
        static const char *const versions[] = { "v1", "v1beta1" };
        struct gpu_devices d = described(NODE(GPU_0 "," GPU_2_MIG));
        struct offered_device offered[8];
        struct buf text = BUF_INIT(1 << 20);
        for (size_t i = 0; i < d.n; i++)
                offered[i] = d.items[i].offered;
        const struct slice_content want = { .driver = "gpu.nvidia.com", .devices = offered, .n_devices = 2 };
        for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
                slice_render(versions[i], "n0", "node-uid", NULL, &want, &text);
                buf_adds(&text, "\n");
        }
        golden_compare("gpu-slice.txt", buf_str(&text));
        buf_done(&text);
        gpu_devices_done(&d);
}

static void device_records_have_what_prepare_needs(void **state) {
        struct gpu_devices d = described(NODE(GPU_0 "," GPU_2_MIG));
        const struct gpu_device *full = gpu_device_find(&d, "gpu-0"),
                                *mig = gpu_device_find(&d, "gpu-2-mig-3g71gb-9-0");
        assert_string_equal(d.driver_version, "580.95.05");
        assert_non_null(full);
        assert_int_equal(full->kind, GPU_FULL);
        assert_string_equal(full->uuid, "GPU-00000000-0000-4000-8000-000000000000");
        assert_string_equal(full->address, "0000:16:00.0");
        assert_non_null(mig);
        assert_int_equal(mig->kind, GPU_MIG);
        assert_string_equal(mig->uuid, "MIG-a");
        assert_string_equal(mig->parent_uuid, "GPU-00000000-0000-4000-8000-000000000002");
        assert_int_equal(mig->minor, 2);
        assert_int_equal(mig->gpu_instance, 2);
        assert_false(mig->graphics);
        assert_null(gpu_device_find(&d, "gpu-2"));
        gpu_devices_done(&d);
}

static void the_same_devices_in_another_order_are_the_same(void **state) {
        struct gpu_devices a = described(NODE(GPU_0 "," GPU_2_MIG)), b = described(NODE(GPU_2_MIG "," GPU_0)),
                           c = described(NODE(GPU_0));
        assert_true(gpu_devices_equal(&a, &b));
        assert_false(gpu_devices_equal(&a, &c));
        gpu_devices_done(&a);
        gpu_devices_done(&b);
        gpu_devices_done(&c);
}

static const char *version_of(const char *text) {
        static char v[64];
        return gpu_version(text, v, sizeof v) ? v : "none";
}

static void versions_are_semantic_versions(void **state) {
        assert_string_equal(version_of("580.95.05"), "580.95.5");
        assert_string_equal(version_of("550.163.01"), "550.163.1");
        assert_string_equal(version_of("9.0"), "9.0.0");
        assert_string_equal(version_of("12"), "12.0.0");
        assert_string_equal(version_of("1.2.3.4-beta"), "1.2.3");
        assert_string_equal(version_of("00.000"), "0.0.0");
        assert_string_equal(version_of("r580"), "none");
        assert_string_equal(version_of(""), "none");
        assert_string_equal(version_of("99999999999999999999.1.1"), "none");
}

static const char *quantity_of(int64_t v) {
        static char q[32];
        gpu_quantity(v, q, sizeof q);
        return q;
}

static void quantities_are_canonical(void **state) {
        assert_string_equal(quantity_of(0), "0");
        assert_string_equal(quantity_of(14), "14");
        assert_string_equal(quantity_of(1000), "1k");
        assert_string_equal(quantity_of(1023), "1023");
        assert_string_equal(quantity_of(1024), "1Ki");
        assert_string_equal(quantity_of(2000), "2000");
        assert_string_equal(quantity_of(INT64_C(4864) << 20), "4864Mi");
        assert_string_equal(quantity_of(INT64_C(5120) << 20), "5Gi");
        assert_string_equal(quantity_of(INT64_C(40) << 30), "40Gi");
        assert_string_equal(quantity_of(150754820096), "143771Mi");
        assert_string_equal(quantity_of(INT64_C(1) << 62), "4Ei");
        assert_string_equal(quantity_of(INT64_MAX), "9223372036854775807");
}

static void in_names(const char *profile, const char *name) {
        char ret[40];
        gpu_profile_in_name(profile, ret, sizeof ret);
        assert_string_equal(ret, name);
}

static void profiles_in_names_have_letters_digits_and_hyphens(void **state) {
        in_names("1g.5gb", "1g5gb");
        in_names("1g.35gb+me", "1g35gb-me");
        in_names("1g.12gb+me.all", "1g12gb-meall");
        in_names("1g.18gb-me", "1g18gb-me");
        in_names("1C.3G.71GB", "1c3g71gb");
}

/* failure: an attribute of a GPU is too long -> it is cut between characters */
static void texts_that_are_too_long_are_cut_between_characters(void **state) {
        /* 62 letters and a character of three bytes, which contains the 64th byte. */
        struct gpu_devices d = described(
                NODE("{\"index\":0,\"minor\":0,\"uuid\":\"GPU-0\",\"name\":"
                     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\u20acb\"}"));
        const struct offered_device *o = &d.items[0].offered;
        for (size_t i = 0; i < o->n_attributes; i++)
                if (streq(o->attributes[i].name, "productName"))
                        assert_int_equal(strlen(o->attributes[i].text), 62);
        gpu_devices_done(&d);
}

#define PART(uuid, ci, c)                                                                                    \
        "{\"uuid\":\"" uuid "\",\"gi\":1,\"ci\":" #ci                                                        \
        ",\"giProfile\":2,\"profileID\":9,\"start\":4,\"size\":4,"                                           \
        "\"g\":3,\"c\":" #c ",\"memoryMB\":40448}"
#define PARTS(list)                                                                                          \
        "{\"driverVersion\":\"580.95.05\",\"gpus\":[{\"index\":0,\"minor\":0,\"uuid\":\"GPU-0\","            \
        "\"memory\":85520809984,\"migMode\":1,\"mig\":[" list "]}]}"

/* A name must not move from one compute instance to another when others are created or destroyed. */
/* failure: several compute instances share a GPU instance -> each has a lasting name */
static void compute_instances_of_one_gpu_instance_have_different_names(void **state) {
        struct gpu_devices d =
                described(PARTS(PART("MIG-0", 0, 1) "," PART("MIG-1", 1, 1) "," PART("MIG-2", 2, 1)));
        assert_int_equal(d.n, 3);
        assert_int_equal(d.n_left_out, 0);
        assert_string_equal(gpu_device_find(&d, "gpu-0-mig-1c3g40gb-9-4")->uuid, "MIG-0");
        assert_string_equal(gpu_device_find(&d, "gpu-0-mig-1c3g40gb-9-4-1")->uuid, "MIG-1");
        assert_string_equal(gpu_device_find(&d, "gpu-0-mig-1c3g40gb-9-4-2")->uuid, "MIG-2");
        gpu_devices_done(&d);
        d = described(PARTS(PART("MIG-2", 2, 1)));
        assert_string_equal(gpu_device_find(&d, "gpu-0-mig-1c3g40gb-9-4-2")->uuid, "MIG-2");
        gpu_devices_done(&d);
        /* A compute instance with its whole GPU instance has the name of the Go driver. */
        d = described(PARTS(PART("MIG-3", 3, 3)));
        assert_string_equal(gpu_device_find(&d, "gpu-0-mig-3g40gb-9-4")->uuid, "MIG-3");
        gpu_devices_done(&d);
}

/* failure: a GPU has more MIG devices than this driver knows -> they are left out by name */
static void excess_mig_devices_are_left_out_by_name(void **state) {
        struct gpu_devices d = described(
                "{\"driverVersion\":\"580.95.05\",\"gpus\":[{\"index\":0,\"minor\":0,\"uuid\":\"GPU-0\","
                "\"memory\":85520809984,\"migMode\":1,\"migMore\":3,\"mig\":[" PART("MIG-0", 0, 3) "]}]}");
        assert_int_equal(d.n, 1);
        assert_int_equal(d.n_left_out, 1);
        assert_string_equal(d.left_out[0].what, "MIG device 1 of gpu-0 and those after it");
        gpu_devices_done(&d);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(devices_are_those_of_the_go_driver),
                T(slices_have_the_form_of_their_version),
                T(device_records_have_what_prepare_needs),
                T(the_same_devices_in_another_order_are_the_same),
                T(versions_are_semantic_versions),
                T(quantities_are_canonical),
                T(profiles_in_names_have_letters_digits_and_hyphens),
                T(texts_that_are_too_long_are_cut_between_characters),
                T(compute_instances_of_one_gpu_instance_have_different_names),
                T(excess_mig_devices_are_left_out_by_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
