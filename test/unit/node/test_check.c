/* SPDX-License-Identifier: Apache-2.0 */
/* What check-node judges for both plugins, and how it prints the results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "api/reasons.h"
#include "base/json.h"
#include "node/check_settings.h"
#include "world/check_items.h"

/* Checks the last item, and empties the list. `want` is a part of its text. */
static void expect(const char *name, enum check_state state, const char *want) {
        assert_true(list.n > 0);
        const struct check_item *it = &list.items[list.n - 1];
        assert_string_equal(it->name, name);
        assert_int_equal(it->state, state);
        if (!strstr(it->text, want))
                fail_msg("%s: %s", name, it->text);
        /* Each problem has a remedy. */
        assert_int_equal(it->remedy && *it->remedy, state == CHECK_PROBLEM);
        list.n = 0;
}

static void an_old_kernel_is_a_problem(void **state) {
        check_judge_kernel(&list, "5.5.0-28-amd64");
        expect("kernel", CHECK_PROBLEM, "older than 5.6");
        check_judge_kernel(&list, "4.18.0");
        expect("kernel", CHECK_PROBLEM, "older than 5.6");
        check_judge_kernel(&list, "5.6.0");
        expect("kernel", CHECK_OK, "5.6.0");
        check_judge_kernel(&list, "6.1-rc1");
        expect("kernel", CHECK_OK, "6.1");
        check_judge_kernel(&list, "unknown");
        expect("kernel", CHECK_SKIPPED, "unknown");
}

static void missing_capabilities_are_named(void **state) {
        check_judge_capabilities(&list, STR("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        expect("capabilities", CHECK_OK, "privileged");
        check_judge_capabilities(&list, STR("CapEff:\t00000000a80425fb\n")); /* containerd's default */
        expect("capabilities", CHECK_PROBLEM, "lacks SYS_ADMIN");
        check_judge_capabilities(&list, STR("CapEff:\t0000000000000000\n"));
        expect("capabilities", CHECK_PROBLEM, "SYS_CHROOT, SYS_ADMIN, MKNOD");
        check_judge_capabilities(&list, STR("CapPrm:\t000001ffffffffff\n"));
        expect("capabilities", CHECK_SKIPPED, "status");
}

static void missing_kernel_modules_are_problems(void **state) {
        check_judge_modules(&list, &(struct check_modules){ 0 });
        expect("kernel-modules", CHECK_PROBLEM, "nvidia is not loaded");
        check_judge_modules(&list, &(struct check_modules){ .nvidia = true });
        expect("kernel-modules", CHECK_PROBLEM, "nvidia_uvm is not loaded");
        check_judge_modules(&list, &(struct check_modules){ .nvidia = true, .uvm = true });
        expect("kernel-modules", CHECK_OK, "loaded");
}

static void versions_of_library_and_module_must_be_equal(void **state) {
        check_judge_driver_version(&list, "580.95.05", "580.95.05", "570.158.01");
        expect("driver-version", CHECK_OK, "580.95.05");
        check_judge_driver_version(&list, "580.95.05", "580.105.08", NULL);
        expect("driver-version", CHECK_PROBLEM, "580.105.08");
        check_judge_driver_version(&list, NULL, "570.124.06", "570.158.01");
        expect("driver-version", CHECK_PROBLEM, "older than 570.158.01");
        check_judge_driver_version(&list, NULL, "570.124.06", NULL);
        expect("driver-version", CHECK_OK, "570.124.06");
        check_judge_driver_version(&list, "580.95.05", NULL, "570.158.01");
        expect("driver-version", CHECK_OK, "580.95.05");
        check_judge_driver_version(&list, NULL, NULL, "570.158.01");
        expect("driver-version", CHECK_SKIPPED, "not known");
}

static void each_wrong_device_node_is_a_problem(void **state) {
        struct check_device_node nodes[] = {
                { .path = "/dev/a",
                  .there = true,
                  .is_char = true,
                  .major = 195,
                  .minor = 255,
                  .want_major = 195,
                  .want_minor = 255 },
                { .path = "/dev/b",
                  .there = true,
                  .is_char = true,
                  .major = 511,
                  .minor = 0,
                  .want_major = 511 },
        };
        check_judge_device_nodes(&list, nodes, 2);
        assert_int_equal(list.n, 1);
        expect("device-nodes", CHECK_OK, "2 device nodes");
        nodes[0].there = false;
        nodes[1].major = 510; /* the module was loaded again */
        check_judge_device_nodes(&list, nodes, 2);
        assert_int_equal(list.n, 2);
        assert_non_null(strstr(list.items[0].text, "/dev/a does not exist"));
        expect("device-nodes", CHECK_PROBLEM, "/dev/b is device 510:0, and the driver's is 511:0");
        nodes[1].is_char = false;
        check_judge_device_nodes(&list, nodes + 1, 1);
        expect("device-nodes", CHECK_PROBLEM, "is not a device node");
        check_judge_device_nodes(&list, NULL, 0);
        expect("device-nodes", CHECK_SKIPPED, "not known");
}

static void folders_must_be_writable(void **state) {
        check_judge_folder(&list, "cdi-folder", "/var/run/cdi", 0, false, "Create it.");
        expect("cdi-folder", CHECK_OK, "/var/run/cdi");
        check_judge_folder(&list, "cdi-folder", "/var/run/cdi", ENOENT, false, "Create it.");
        expect("cdi-folder", CHECK_PROBLEM, "No such file or directory");
        check_judge_folder(&list, "cdi-folder", "/var/run/cdi", 0, true, "Create it.");
        expect("cdi-folder", CHECK_PROBLEM, "read-only");
}

static void a_full_disk_is_a_problem(void **state) {
        check_judge_space(&list, "/p", &(struct check_space){ 1 << 20, 100000, 200000 });
        expect("disk-space", CHECK_PROBLEM, "1024 KiB free");
        check_judge_space(&list, "/p", &(struct check_space){ 1 << 30, 10, 200000 });
        expect("disk-space", CHECK_PROBLEM, "10 free inodes");
        check_judge_space(&list, "/p", &(struct check_space){ 1 << 30, 0, 0 }); /* btrfs */
        expect("disk-space", CHECK_OK, "1024 MiB free");
}

#define CONFIG(f, t) ((struct check_config){ .file = (f), .text = STR(t) })
static void the_runtime_must_use_cdi(void **state) {
        static const char v1[] = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = ";
        struct check_config files[] = {
                CONFIG("/etc/containerd/config.toml", "version = 2\n"),
                CONFIG("/etc/containerd/conf.d/cdi.toml",
                       "[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = true\n"),
                CONFIG("/etc/crio/crio.conf", "")
        };
        check_judge_runtime(&list, files, 1);
        expect("container-runtime", CHECK_SKIPPED, "containerd 1.7 does not");
        check_judge_runtime(&list, files, 3);
        expect("container-runtime", CHECK_OK, "/etc/containerd/conf.d/cdi.toml' enables CDI");
        check_judge_runtime(&list, files + 2, 1);
        expect("container-runtime", CHECK_OK, "CRI-O");
        check_judge_runtime(&list, NULL, 0);
        expect("container-runtime", CHECK_SKIPPED, "no configuration");
        _cleanup_(freep) char *off = xasprintf("%sfalse\n", v1);
        files[0].text = str_from(off);
        check_judge_runtime(&list, files, 1);
        expect("container-runtime", CHECK_PROBLEM, "disables CDI");
        files[0].text = STR("version = [\n");
        check_judge_runtime(&list, files, 1);
        expect("container-runtime", CHECK_SKIPPED, "cannot be read");
}

static void lockdown_and_selinux_are_problems_only_if_they_stop_something(void **state) {
        check_settings_security(&list, &(struct check_security){ 0 });
        expect("security-modules", CHECK_SKIPPED, "neither");
        check_settings_security(&list,
                                &(struct check_security){ .lockdown = "none [integrity] confidentiality\n" });
        expect("security-modules", CHECK_PROBLEM, "lockdown is integrity");
        check_settings_security(&list,
                                &(struct check_security){ .lockdown = "none [integrity] confidentiality\n",
                                                          .nvidia_loaded = true });
        expect("security-modules", CHECK_OK, "lockdown is integrity");
        check_settings_security(&list, &(struct check_security){ .lockdown = "[none] integrity\n" });
        expect("security-modules", CHECK_OK, "lockdown is none, SELinux is off");
        check_settings_security(&list, &(struct check_security){ .lockdown = "garbage", .enforce = "1\n" });
        expect("security-modules", CHECK_OK, "lockdown is unknown, SELinux enforces");
        check_settings_security(
                &list,
                &(struct check_security){ .enforce = "1", .context = "system_u:system_r:container_t:s0:c1" });
        expect("security-modules", CHECK_PROBLEM, "runs as container_t");
        check_settings_security(
                &list, &(struct check_security){ .enforce = "1", .context = "system_u:system_r:spc_t:s0" });
        expect("security-modules", CHECK_OK, "enforces");
        check_settings_security(
                &list,
                &(struct check_security){ .enforce = "0", .context = "system_u:system_r:container_t:s0" });
        expect("security-modules", CHECK_OK, "permissive");
        /* A profile of AppArmor. */
        check_settings_security(&list, &(struct check_security){ .enforce = "1", .context = "unconfined\n" });
        expect("security-modules", CHECK_OK, "enforces");
}

static void spec_dirs(const char *text, enum check_state state, const char *want) {
        const struct check_config c = { "/etc/containerd/config.toml", str_from(text) };
        check_settings_spec_dirs(&list, &c, 1, "/var/run/cdi");
        expect("cdi-spec-dirs", state, want);
}

static void the_runtime_must_read_the_folder_of_the_cdi_files(void **state) {
#define TABLE "[plugins.'io.containerd.cri.v1.runtime']\n"
        spec_dirs("version = 3\n", CHECK_OK, "no configuration sets cdi_spec_dirs");
        spec_dirs(TABLE "cdi_spec_dirs = ['/etc/cdi', \"/var/run/cdi\"]\n", CHECK_OK,
                  "contains '/var/run/cdi'");
        spec_dirs(TABLE "cdi_spec_dirs = [\n '/etc/cdi',\n '/run/cdi/' ]\n", CHECK_OK, "contains");
        spec_dirs(TABLE "cdi_spec_dirs = ['/etc/cdi']\n", CHECK_PROBLEM, "does not contain '/var/run/cdi'");
        spec_dirs(TABLE "cdi_spec_dirs = []\n", CHECK_PROBLEM, "does not contain");
        spec_dirs(TABLE "cdi_spec_dirs = ['/opt/run/cdi', '/run/cdi2', 'var/run/cdi']\n", CHECK_PROBLEM,
                  "does not");
        spec_dirs(TABLE "cdi_spec_dirs = '/var/run/cdi'\n", CHECK_PROBLEM, "does not contain");
        spec_dirs("[plugins.'io.containerd.grpc.v1.cri']\ncdi_spec_dirs = ['/var/run/cdi']\n", CHECK_OK,
                  "contains");
        spec_dirs("[crio.runtime]\ncdi_spec_dirs = [ \"/etc/cdi\" ]\n", CHECK_PROBLEM, "does not contain");
        spec_dirs(TABLE "cdi_spec_dirs = ['/run/cdi'\n", CHECK_SKIPPED, "cannot be read");
        check_settings_spec_dirs(&list, NULL, 0, "/var/run/cdi");
        expect("cdi-spec-dirs", CHECK_SKIPPED, "sees no configuration");
#undef TABLE
        /* A drop-in replaces the list of the main file. */
        const struct check_config two[] = {
                { "/etc/containerd/config.toml",
                  STR("[plugins.'io.containerd.cri.v1.runtime']\ncdi_spec_dirs=['/run/cdi']") },
                { "/etc/containerd/conf.d/x.toml",
                  STR("[plugins.'io.containerd.cri.v1.runtime']\ncdi_spec_dirs=['/x']") }
        };
        check_settings_spec_dirs(&list, two, 2, "/var/run/cdi");
        expect("cdi-spec-dirs", CHECK_PROBLEM, "x.toml");
}

static void resource_slices_must_match_the_node(void **state) {
        struct slice_device devices[] = { { .name = "channel-0", .clique_id = "f.1" },
                                          { .name = "daemon-0", .clique_id = "f.1" } };
        struct slice slice = { .devices = devices, .n_devices = 2 }, empty = { 0 };
        check_settings_slices(
                &list, &(struct check_slices){ .items = &slice, .n = 1, .clique = "f.1", .devices = -1 });
        expect("resource-slice", CHECK_OK, "1 ResourceSlice with 2 devices");
        check_settings_slices(&list, &(struct check_slices){ .items = &slice, .n = 1, .devices = -1 });
        expect("resource-slice", CHECK_OK, "2 devices");
        check_settings_slices(
                &list, &(struct check_slices){ .items = &slice, .n = 1, .clique = "f.2", .devices = -1 });
        expect("resource-slice", CHECK_PROBLEM, "partition 'f.1', and the GPUs report 'f.2'");
        check_settings_slices(&list,
                              &(struct check_slices){ .items = &slice, .n = 1, .clique = "", .devices = -1 });
        expect("resource-slice", CHECK_PROBLEM, "report ''");
        check_settings_slices(&list, &(struct check_slices){ .items = &slice, .n = 1, .devices = 3 });
        expect("resource-slice", CHECK_PROBLEM, "have 2 devices, and the node has 3");
        check_settings_slices(
                &list, &(struct check_slices){ .items = &empty, .n = 1, .clique = "f.1", .devices = -1 });
        expect("resource-slice", CHECK_PROBLEM, "has no device");
        check_settings_slices(&list, &(struct check_slices){ .items = &empty, .n = 1, .devices = 0 });
        expect("resource-slice", CHECK_OK, "0 devices");
        check_settings_slices(&list, &(struct check_slices){ .devices = -1 });
        expect("resource-slice", CHECK_PROBLEM, "no ResourceSlice of this node");
}

static void without_a_setting_the_runtime_reads_its_default_folders(void **state) {
        const struct check_config c = CONFIG("/etc/containerd/config.toml", "version = 3\n");
        static const char *const read[] = { "/etc/cdi", "/var/run/cdi", "/run/cdi", "/etc/cdi/" },
                                 *const others[] = { "/opt/cdi", "/var/run/cdi/nvidia", "/etc", "/cdi" };
        for (size_t i = 0; i < ARRAY_LEN(read); i++) {
                check_settings_spec_dirs(&list, &c, 1, read[i]);
                expect("cdi-spec-dirs", CHECK_OK, read[i]);
        }
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
                check_settings_spec_dirs(&list, &c, 1, others[i]);
                expect("cdi-spec-dirs", CHECK_PROBLEM, others[i]);
        }
}

static void a_subfolder_of_the_folder_is_another_one(void **state) {
#define LIST(folder) "[crio.runtime]\ncdi_spec_dirs = ['" folder "']\n"
        spec_dirs(LIST("/var/run/cdi/nvidia"), CHECK_PROBLEM, "does not contain");
        spec_dirs(LIST("/run/cdi/nvidia"), CHECK_PROBLEM, "does not contain");
        spec_dirs(LIST("/var/run/cdi//"), CHECK_OK, "contains");
#undef LIST
        const struct check_config c =
                CONFIG("/etc/crio/crio.conf", "[crio.runtime]\ncdi_spec_dirs = ['/var/opt/cdi']\n");
        check_settings_spec_dirs(&list, &c, 1, "/opt/cdi");
        expect("cdi-spec-dirs", CHECK_PROBLEM, "does not contain '/opt/cdi'");
}

/* failure: host-managed IMEX, where all ComputeDomains share channel 0 -> only the annotation has the
 * partition, and check-node accepts it */
static void the_annotation_of_a_slice_may_have_the_partition(void **state) {
        struct slice_device device = { .name = "channel-0" };
        struct slice slice = { .devices = &device, .n_devices = 1, .clique_id = "f.1" };
        check_settings_slices(
                &list, &(struct check_slices){ .items = &slice, .n = 1, .clique = "f.1", .devices = -1 });
        expect("resource-slice", CHECK_OK, "1 device");
        check_settings_slices(
                &list, &(struct check_slices){ .items = &slice, .n = 1, .clique = "f.2", .devices = -1 });
        expect("resource-slice", CHECK_PROBLEM, "partition 'f.1', and the GPUs report 'f.2'");
        slice.clique_id = "";
        check_settings_slices(&list,
                              &(struct check_slices){ .items = &slice, .n = 1, .clique = "", .devices = -1 });
        expect("resource-slice", CHECK_OK, "1 device");
}

static void each_item_is_one_line_of_text(void **state) {
        struct buf b = BUF_INIT(4096);
        check_list_ok(&list, "kernel", "Linux %d", 6);
        check_list_problem(&list, "nvml", "Restart the node.", "NVML fails:\nunknown error");
        check_list_skipped(&list, "fabric", "NVML does not answer");
        check_list_text(&list, &b);
        assert_string_equal(buf_str(&b),
                            "ok       kernel              Linux 6\n"
                            "problem  nvml                NVML fails: unknown error. Fix: Restart the node.\n"
                            "skipped  fabric              NVML does not answer\n");
        assert_int_equal(check_list_status(&list), 1);
        buf_done(&b);
}

static void only_a_problem_changes_the_exit_status(void **state) {
        check_list_ok(&list, "kernel", "Linux 6");
        check_list_skipped(&list, "fabric", "NVML does not answer");
        assert_int_equal(check_list_status(&list), 0);
        check_list_problem(&list, "nvml", "Restart the node.", "NVML fails");
        assert_int_equal(check_list_status(&list), 1);
}

static void the_json_has_its_documented_form(void **state) {
        static const char rest[] = "\",\"node\":\"n\",\"problems\":1,\"items\":["
                                   "{\"name\":\"kernel\",\"state\":\"ok\",\"text\":\"Linux \\\"6\\\"\"},"
                                   "{\"name\":\"nvml\",\"state\":\"problem\",\"text\":\"NVML fails\","
                                   "\"remedy\":\"Restart the node.\"},"
                                   "{\"name\":\"fabric\",\"state\":\"skipped\",\"text\":\"no answer\"}]}\n";
        static const char start[] = "{\"version\":1,\"program\":\"p\",\"programVersion\":\"";
        struct buf b = BUF_INIT(4096);
        check_list_ok(&list, "kernel", "Linux \"6\"");
        check_list_problem(&list, "nvml", "Restart the node.", "NVML fails");
        check_list_skipped(&list, "fabric", "no answer");
        check_list_json(&list, "p", "n", &b);
        assert_memory_equal(buf_str(&b), start, sizeof start - 1);
        assert_true(str_ends(buf_str(&b), rest));
        buf_done(&b);
}

static void the_catalogue_has_the_remedies_of_reasons(void **state) {
        check_list_reason(&list, "imex-channels", REASON_NO_IMEX_CHANNELS, "no class");
        assert_null(strchr(list.items[0].remedy, '`'));
        assert_non_null(strstr(list.items[0].remedy, "NVreg_ImexChannelCount"));
        expect("imex-channels", CHECK_PROBLEM, "no class");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_old_kernel_is_a_problem, begin, end),
                cmocka_unit_test_setup_teardown(missing_capabilities_are_named, begin, end),
                cmocka_unit_test_setup_teardown(missing_kernel_modules_are_problems, begin, end),
                cmocka_unit_test_setup_teardown(versions_of_library_and_module_must_be_equal, begin, end),
                cmocka_unit_test_setup_teardown(each_wrong_device_node_is_a_problem, begin, end),
                cmocka_unit_test_setup_teardown(folders_must_be_writable, begin, end),
                cmocka_unit_test_setup_teardown(a_full_disk_is_a_problem, begin, end),
                cmocka_unit_test_setup_teardown(the_runtime_must_use_cdi, begin, end),
                cmocka_unit_test_setup_teardown(lockdown_and_selinux_are_problems_only_if_they_stop_something,
                                                begin, end),
                cmocka_unit_test_setup_teardown(the_runtime_must_read_the_folder_of_the_cdi_files, begin,
                                                end),
                cmocka_unit_test_setup_teardown(without_a_setting_the_runtime_reads_its_default_folders,
                                                begin, end),
                cmocka_unit_test_setup_teardown(a_subfolder_of_the_folder_is_another_one, begin, end),
                cmocka_unit_test_setup_teardown(resource_slices_must_match_the_node, begin, end),
                cmocka_unit_test_setup_teardown(the_annotation_of_a_slice_may_have_the_partition, begin, end),
                cmocka_unit_test_setup_teardown(each_item_is_one_line_of_text, begin, end),
                cmocka_unit_test_setup_teardown(only_a_problem_changes_the_exit_status, begin, end),
                cmocka_unit_test_setup_teardown(the_json_has_its_documented_form, begin, end),
                cmocka_unit_test_setup_teardown(the_catalogue_has_the_remedies_of_reasons, begin, end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
