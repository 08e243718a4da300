/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "cd_plugin/edits.h"
#include "faults.h"
#include "tree.h"

static char *root;
static struct arena *arena;
static struct err e;
static struct edits_daemon d;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        arena = arena_new(4096);
        tree_put(root, "usr/lib64/libnvidia-ml.so.1", "x");
        tree_put(root, "usr/bin/nvidia-imex", "x");
        tree_put(root, "opt/bin/nvidia-imex-ctl", "x");
        tree_put(root, "capabilities/fabric-imex-mgmt", "DeviceFileMinor: 5\nDeviceFileMode: 256\n");
        d = (struct edits_daemon){ .domain_dir = "/d",
                                   .clique_id = "c.1",
                                   .domain_uid = "u",
                                   .domain_name = "n",
                                   .domain_ns = "ns",
                                   .claim_uid = "cu",
                                   .root = { .host = "/host", .here = root },
                                   .driver_version = "580.95.05",
                                   .dev_root = "/nowhere",
                                   .proc_driver = root,
                                   .caps_major = 236 };
        return 0;
}

static int teardown(void **state) {
        (void)state;
        arena_free(arena);
        tree_remove(root);
        return 0;
}

static const struct cdi_mount *mount_at(const struct cdi_edits *ed, const char *path) {
        for (size_t i = 0; i < ed->n_mounts; i++) {
                if (streq(ed->mounts[i].container_path, path))
                        return &ed->mounts[i];
        }
        return NULL;
}

static void programs_are_mounted_in_usr_bin_from_any_folder_of_the_driver(void **state) {
        (void)state;
        struct cdi_edits ed;
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), 0);
        assert_string_equal(mount_at(&ed, "/imexd")->host_path, "/d");
        assert_string_equal(mount_at(&ed, "/imexd")->options[0], "rw");
        assert_string_equal(mount_at(&ed, "/usr/bin/nvidia-imex")->host_path, "/host/usr/bin/nvidia-imex");
        assert_string_equal(mount_at(&ed, "/usr/bin/nvidia-imex-ctl")->host_path,
                            "/host/opt/bin/nvidia-imex-ctl");
        assert_string_equal(mount_at(&ed, "/usr/lib64/libnvidia-ml.so.1")->options[0], "ro");
        assert_string_equal(ed.env[0], "CLIQUE_ID=c.1");
        assert_string_equal(ed.env[5], "LD_LIBRARY_PATH=/usr/lib64");
        assert_int_equal(ed.n_nodes, 1);
        assert_string_equal(ed.nodes[0].path, "/dev/nvidia-caps/nvidia-cap5");
        assert_int_equal(ed.nodes[0].major, 236);
        assert_int_equal(ed.nodes[0].mode, 0400);
}

static void a_node_without_a_partition_needs_nothing_from_the_driver(void **state) {
        (void)state;
        struct cdi_edits ed;
        d.clique_id = "";
        d.root.here = d.proc_driver = "/nowhere";
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), 0);
        assert_int_equal(ed.n_mounts, 1);
        assert_int_equal(ed.n_nodes, 0);
        assert_string_equal(ed.env[0], "CLIQUE_ID=");
        assert_null(ed.env[5]);
}

static void missing_files_are_named(void **state) {
        (void)state;
        struct cdi_edits ed;
        _cleanup_(freep) char *imex = file_join(root, "usr/bin/nvidia-imex"),
                              *cap = file_join(root, "capabilities/fabric-imex-mgmt");
        assert_int_equal(unlink(cap), 0);
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_non_null(strstr(e.msg, "fabric-imex-mgmt"));
        tree_put(root, "capabilities/fabric-imex-mgmt", "DeviceFileMinor: x\n");
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_int_equal(unlink(imex), 0);
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), -1);
        assert_non_null(strstr(e.msg, "'nvidia-imex' is not in driver root '/host'"));
}

static void device(const char *path, unsigned minor_number) {
        _cleanup_(freep) char *p = file_join(root, path);
        _cleanup_(freep) char *dir = xstrndup(p, (size_t)(strrchr(p, '/') - p));
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        if (mknod(p, S_IFCHR | 0666, makedev(195, minor_number)) < 0)
                skip(); /* not possible as root */
}

static void only_devices_of_the_driver_are_added(void **state) {
        (void)state;
        static const char *const want[] = { "/dev/nvidia-caps/nvidia-cap5", "/dev/nvidia0",
                                            "/dev/nvidiactl" };
        struct cdi_edits ed;
        umask(0);
        device("dev/nvidia0", 0);
        device("dev/nvidiactl", 255);
        device("dev/nvidia-fs1", 9);
        device("dev/nvidia-nvswitch0", 10);
        device("dev/nvidia-nvlink", 11);
        device("dev/null", 3);
        device("dev/nvidia-caps-imex-channels/channel3", 3); /* made for a claim */
        device("dev/nvidia-caps/nvidia-cap5", 5);            /* the management capability itself: only once */
        tree_put(root, "dev/nvidia-text", "no device");
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), 0);
        assert_int_equal(ed.n_nodes, ARRAY_LEN(want));
        for (size_t i = 0; i < ARRAY_LEN(want); i++)
                assert_string_equal(ed.nodes[i].path, want[i]);
        assert_int_equal(ed.nodes[0].major,
                         236); /* from /proc, not from a node in /dev, which may be stale */
        assert_int_equal(ed.nodes[2].major, 195);
        assert_int_equal(ed.nodes[2].minor, 255);
        assert_int_equal(ed.nodes[2].mode, 0666);
}

/* failure: the driver root gets its dev folder only after the plugin has started -> its device nodes count */
static void device_nodes_are_looked_up_at_each_use(void **state) {
        (void)state;
        struct cdi_edits ed;
        char *other = tree_new();
        d.dev_root = other;
        _cleanup_(freep) char *ctl = file_join(other, "dev/nvidiactl");
        tree_put(other, "dev/x", "");
        if (mknod(ctl, S_IFCHR | 0666, makedev(195, 255)) < 0)
                skip();
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), 0);
        assert_int_equal(ed.n_nodes, 2);
        device("dev/nvidia0", 0);
        device("dev/nvidia1", 1);
        assert_int_equal(edits_for_daemon(arena, &d, &ed, &e), 0);
        assert_int_equal(ed.n_nodes, 3);
        assert_string_equal(ed.nodes[1].path, "/dev/nvidia0");
        assert_string_equal(ed.nodes[2].path, "/dev/nvidia1");
        tree_remove(other);
}

static void channel_count_comes_from_the_driver(void **state) {
        (void)state;
        struct cdi_edits ed;
        assert_int_equal(edits_channel_count(root), 2048);
        tree_put(root, "params", "ImexChannelCount: 3\n");
        assert_int_equal(edits_channel_count(root), 3);
        tree_put(root, "params", "ImexChannelCount: 0\n");
        assert_int_equal(edits_channel_count(root), 2048);
        edits_channels(arena, 234, 0, 3, &ed);
        assert_int_equal(ed.n_nodes, 3);
        assert_string_equal(ed.nodes[2].path, "/dev/nvidia-caps-imex-channels/channel2");
        assert_int_equal(ed.nodes[2].minor, 2);
        edits_channels(arena, 234, 17, 1, &ed);
        assert_int_equal(ed.n_nodes, 1);
        assert_string_equal(ed.nodes[0].path, "/dev/nvidia-caps-imex-channels/channel17");
        assert_int_equal(ed.nodes[0].minor, 17);
}

/* A folder that cannot be read (on) is not one without devices or libraries: the daemon's claim waits. */
static void an_unreadable_folder_does_not_count_as_empty(void **state) {
        (void)state;
        tree_put(root, "dev/nvidia-caps/x", "");
        unsigned n = 0;
        for (;; n++) {
                struct err failure = { 0 };
                struct cdi_edits ed;
                faults_at("readdir64", n + 1);
                int r = edits_for_daemon(arena, &d, &ed, &failure);
                if (!faults_off())
                        break;
                assert_int_equal(r, -1);
                assert_non_null(strstr(failure.msg, root));
        }
        assert_in_range(n, 4, 40); /* the end of each folder, at least */
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(programs_are_mounted_in_usr_bin_from_any_folder_of_the_driver),
                T(a_node_without_a_partition_needs_nothing_from_the_driver),
                T(missing_files_are_named),
                T(only_devices_of_the_driver_are_added),
                T(device_nodes_are_looked_up_at_each_use),
                T(channel_count_comes_from_the_driver),
                T(an_unreadable_folder_does_not_count_as_empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
