/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cdi/cdi.h"

#define KIND "k8s.compute-domain.nvidia.com/claim"
#define CLAIM "11111111-2222-3333-4444-555555555555"

static char dir[] = "/tmp/test_cdi.XXXXXX";

static int make_dir(void **state) {
        (void)state;
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
        (void)state;
        return rmdir(dir);
}

static const struct cdi_node channel0 = { "/dev/nvidia-caps-imex-channels/channel0", 234, 0, 0666 };
static const struct cdi_device channel_device = { .name = CLAIM "-channel-0",
                                                  .edits = { .nodes = &channel0, .n_nodes = 1 } };
static const struct cdi_spec channel_spec = { .kind = KIND, .devices = &channel_device, .n_devices = 1 };

/* failure: a channel is prepared -> its CDI file has device nodes only, and mounts no /dev */
static void channel_claim_renders_as_the_reference(void **state) {
        (void)state;
        struct buf b = BUF_INIT(4096);
        cdi_render(&channel_spec, &b);
        assert_string_equal(
                buf_str(&b),
                "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.compute-domain.nvidia.com/claim\",\"devices\":[{"
                "\"name\":\"11111111-2222-3333-4444-555555555555-channel-0\",\"containerEdits\":{"
                "\"deviceNodes\":[{"
                "\"path\":\"/dev/nvidia-caps-imex-channels/channel0\",\"hostPath\":\"/dev/"
                "nvidia-caps-imex-channels/channel0\","
                "\"type\":\"c\",\"major\":234,\"fileMode\":438}]}}]}\n");
        buf_done(&b);
}

/* failure: a daemon claim is prepared -> its CDI file has the device fabric-imex-mgmt and no hooks */
static void daemon_claim_renders_as_the_reference(void **state) {
        (void)state;
        struct cdi_node cap = { "/dev/nvidia-caps/nvidia-cap5", 236, 5, 0400 };
        struct cdi_mount domain = { "/var/lib/kubelet/plugins/compute-domain.nvidia.com/domains/u", "/imexd",
                                    (const char *const[]){ "rw", "nosuid", "nodev", "bind", NULL } };
        struct cdi_device d = {
                .name = "aaaaaaaa-2222-3333-4444-555555555555-daemon-0",
                .edits = { .env = (const char *const[]){ "CLIQUE_ID=a.1", "COMPUTE_DOMAIN_UUID=u",
                                                         "COMPUTE_DOMAIN_NAME=n",
                                                         "COMPUTE_DOMAIN_NAMESPACE=ns", NULL },
                           .nodes = &cap,
                           .n_nodes = 1,
                           .mounts = &domain,
                           .n_mounts = 1 },
        };
        struct cdi_spec s = { .kind = KIND, .devices = &d, .n_devices = 1 };
        struct buf b = BUF_INIT(4096);
        cdi_render(&s, &b);
        assert_string_equal(
                buf_str(&b),
                "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.compute-domain.nvidia.com/claim\",\"devices\":[{"
                "\"name\":\"aaaaaaaa-2222-3333-4444-555555555555-daemon-0\",\"containerEdits\":{"
                "\"env\":[\"CLIQUE_ID=a.1\",\"COMPUTE_DOMAIN_UUID=u\",\"COMPUTE_DOMAIN_NAME=n\",\"COMPUTE_"
                "DOMAIN_NAMESPACE=ns\"],"
                "\"deviceNodes\":[{\"path\":\"/dev/nvidia-caps/nvidia-cap5\",\"hostPath\":\"/dev/nvidia-caps/"
                "nvidia-cap5\","
                "\"type\":\"c\",\"major\":236,\"minor\":5,\"fileMode\":256}],"
                "\"mounts\":[{\"hostPath\":\"/var/lib/kubelet/plugins/compute-domain.nvidia.com/domains/"
                "u\",\"containerPath\":\"/imexd\","
                "\"options\":[\"rw\",\"nosuid\",\"nodev\",\"bind\"]}]}}]}\n");
        buf_done(&b);
}

static void comment_is_one_line_at_the_top(void **state) {
        (void)state;
        struct err e;
        struct cdi_spec s = channel_spec;
        struct buf b = BUF_INIT(4096);
        s.comment = "claim ns/name";
        assert_int_equal(cdi_validate(&s, &e), 0);
        cdi_render(&s, &b);
        assert_true(str_starts(buf_str(&b), "# claim ns/name\n{\"cdiVersion\""));
        buf_done(&b);
        s.comment = "a\nkind: evil";
        assert_int_equal(cdi_validate(&s, &e), -1);
}

static void file_has_the_reference_name_and_mode(void **state) {
        (void)state;
        struct err e;
        struct stat st;
        _cleanup_(freep) char *root = xasprintf("%s/cdi", dir);
        _cleanup_(freep) char *path = cdi_path(root, KIND, CLAIM);
        _cleanup_(freep) char *want =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM ".yaml", root);
        assert_string_equal(path, want);
        assert_int_equal(cdi_write(root, CLAIM, &channel_spec, &e), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(stat(root, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0750);
        assert_int_equal(cdi_write(root, CLAIM, &channel_spec, &e), 0);
        assert_int_equal(cdi_remove(root, KIND, CLAIM, &e), 0);
        assert_int_equal(cdi_remove(root, KIND, CLAIM, &e), 0);
        assert_int_equal(rmdir(root), 0); /* no other file remains */
}

static void collect(void *u, const char *id) {
        struct buf *b = u;
        buf_addf(b, "[%s]", id);
}

static void list_finds_its_own_kind_only(void **state) {
        (void)state;
        struct err e;
        struct buf ids = BUF_INIT(1024);
        static const char *const names[] = { "k8s.compute-domain.nvidia.com-claim_a.yaml",
                                             "k8s.compute-domain.nvidia.com-device_base.yaml",
                                             "k8s.gpu.nvidia.com-claim_b.yaml",
                                             ".k8s.compute-domain.nvidia.com-claim_a.yaml.tmp.1.1",
                                             "k8s.compute-domain.nvidia.com-claim_.yaml" };
        assert_int_equal(cdi_list("/tmp/there/is/no/such/folder", KIND, collect, &ids, &e), 0);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(freep) char *p = file_join(dir, names[i]);
                assert_int_equal(file_replace(p, "", 0, 0600, &e), 0);
        }
        assert_int_equal(cdi_list(dir, KIND, collect, &ids, &e), 0);
        assert_string_equal(buf_str(&ids), "[a]");
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(freep) char *p = file_join(dir, names[i]);
                unlink(p);
        }
        buf_done(&ids);
}

/* failure: a CDI ID is a path -> no file is written or removed outside of the folder [tenants] */
static void an_id_never_leaves_the_folder(void **state) {
        (void)state;
        static const char *const bad[] = { "", "../x", "a/b", ".", "..", "-", "a\n", "a\xc3\xa4z" };
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_int_equal(cdi_write(dir, bad[i], &channel_spec, &e), -1);
                assert_int_equal(e.kind, ERR_INVALID);
                assert_int_equal(cdi_remove(dir, KIND, bad[i], &e), -1);
        }
}

static void validation_names_the_invalid_part(void **state) {
        (void)state;
        struct err e;
        struct cdi_node relative = { "dev/x", 1, 0, 0666 }, no_major = { "/dev/x", 0, 0, 0666 };
        struct cdi_mount mount = { "/a", "b", NULL };
        const struct {
                struct cdi_spec s;
                const char *part;
        } bad[] = {
                { { .kind = "nokind", .devices = &channel_device, .n_devices = 1 }, "nokind" },
                { { .kind = "1v/c", .devices = &channel_device, .n_devices = 1 }, "1v/c" },
                { { .kind = KIND }, "no device" },
                { { .kind = KIND, .devices = &(struct cdi_device){ .name = "a b" }, .n_devices = 1 }, "a b" },
                { { .kind = KIND,
                    .devices = (struct cdi_device[]){ { .name = "x" }, { .name = "x" } },
                    .n_devices = 2 },
                  "twice" },
                { { .kind = KIND,
                    .devices = &(struct cdi_device){ .name = "x",
                                                     .edits = { .nodes = &relative, .n_nodes = 1 } },
                    .n_devices = 1 },
                  "dev/x" },
                { { .kind = KIND,
                    .devices = &(struct cdi_device){ .name = "x",
                                                     .edits = { .nodes = &no_major, .n_nodes = 1 } },
                    .n_devices = 1 },
                  "major" },
                { { .kind = KIND,
                    .devices =
                            &(struct cdi_device){ .name = "x", .edits = { .mounts = &mount, .n_mounts = 1 } },
                    .n_devices = 1 },
                  "'b'" },
                { { .kind = KIND,
                    .devices = &channel_device,
                    .n_devices = 1,
                    .common = { .env = (const char *const[]){ "=v", NULL } } },
                  "=v" },
        };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_int_equal(cdi_validate(&bad[i].s, &e), -1);
                assert_non_null(strstr(e.msg, bad[i].part));
        }
        assert_int_equal(cdi_validate(&channel_spec, &e), 0);
}

/* ---- GPUs ---- */

static const struct cdi_node
        gpu0 = { "/dev/nvidia0", 195, 0, 0666, "/run/nvidia/driver/dev/nvidia0", "rwm", 0 },
        modeset = {
                "/dev/nvidia-modeset", 195, 254, 0660, "/run/nvidia/driver/dev/nvidia-modeset", "rwm", 44
        };
static const struct cdi_hook ldcache = { "createContainer", "/hook",
                                         (const char *const[]){ "hook", "update-ldcache", NULL },
                                         (const char *const[]){ "NVIDIA_CTK_DEBUG=false", NULL } };

static void a_gpu_claim_renders_as_the_reference(void **state) {
        (void)state;
        struct cdi_device d = { .name = "u-gpu-0", .edits = { .nodes = &gpu0, .n_nodes = 1 } };
        struct cdi_spec s = { .kind = "k8s.gpu.nvidia.com/claim",
                              .devices = &d,
                              .n_devices = 1,
                              .common = { .nodes = &modeset,
                                          .n_nodes = 1,
                                          .hooks = &ldcache,
                                          .n_hooks = 1,
                                          .gids = (const unsigned[]){ 44 },
                                          .n_gids = 1 } };
        struct err e;
        struct buf b = BUF_INIT(4096);
        assert_int_equal(cdi_validate(&s, &e), 0);
        cdi_render(&s, &b);
        assert_string_equal(
                buf_str(&b),
                "{\"cdiVersion\":\"0.7.0\",\"kind\":\"k8s.gpu.nvidia.com/"
                "claim\",\"devices\":[{\"name\":\"u-gpu-0\","
                "\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia0\",\"hostPath\":\"/run/nvidia/"
                "driver/dev/"
                "nvidia0\",\"type\":\"c\",\"major\":195,\"fileMode\":438,\"permissions\":\"rwm\"}]}}],"
                "\"containerEdits\":{"
                "\"deviceNodes\":"
                "[{\"path\":\"/dev/nvidia-modeset\",\"hostPath\":\"/run/nvidia/driver/dev/"
                "nvidia-modeset\",\"type\":\"c\",\"major\":195,"
                "\"minor\":254,\"fileMode\":432,\"permissions\":\"rwm\",\"gid\":44}],\"hooks\":[{"
                "\"hookName\":"
                "\"createContainer\",\"path\":\"/hook\",\"args\":[\"hook\",\"update-ldcache\"],\"env\":["
                "\"NVIDIA_CTK_DEBUG=false\"]}],\"additionalGids\":[44]}}\n");
        buf_done(&b);
}

static void tidy_edits_are_sorted_and_without_duplicates(void **state) {
        (void)state;
        struct arena *a = arena_new(1024);
        const struct cdi_mount at_etc = { "/etc/a/b", "/etc/a/b", NULL },
                               at_usr = { "/usr/b", "/usr/b", NULL }, at_run = { "/run/x", "/run/x", NULL };
        const struct cdi_node nodes[] = { modeset, gpu0, modeset };
        const struct cdi_mount mounts[] = { at_etc, at_usr, at_run, at_usr };
        const struct cdi_hook hooks[] = { ldcache, ldcache };
        const char *const env[] = { "Z=1", "A=1", "Z=1", NULL };
        struct cdi_edits all = { .env = env,
                                 .nodes = nodes,
                                 .n_nodes = 3,
                                 .mounts = mounts,
                                 .n_mounts = 4,
                                 .hooks = hooks,
                                 .n_hooks = 2,
                                 .gids = (const unsigned[]){ 44, 44 },
                                 .n_gids = 2 };
        struct cdi_edits tidy = cdi_normalize(&all, NULL, a);
        assert_int_equal(tidy.n_nodes, 2);
        assert_string_equal(tidy.nodes[0].path, "/dev/nvidia-modeset");
        assert_int_equal(tidy.n_mounts, 3);
        assert_string_equal(tidy.mounts[0].container_path, "/run/x");
        assert_string_equal(tidy.mounts[1].container_path, "/usr/b");
        assert_string_equal(tidy.mounts[2].container_path, "/etc/a/b");
        assert_int_equal(tidy.n_hooks, 1);
        assert_int_equal(tidy.n_gids, 1);
        assert_string_equal(tidy.env[0], "Z=1");
        assert_string_equal(tidy.env[1], "A=1");
        assert_null(tidy.env[2]);
        arena_free(a);
}

/* A device without edits would make the whole file invalid for a runtime. */
static void common_edits_are_removed_from_each_device_unless_nothing_is_left(void **state) {
        (void)state;
        struct arena *a = arena_new(1024);
        const struct cdi_node both[] = { gpu0, modeset };
        struct cdi_edits common = { .nodes = &modeset, .n_nodes = 1 };
        struct cdi_edits tidy = cdi_normalize(&(struct cdi_edits){ .nodes = both, .n_nodes = 2 }, &common, a);
        assert_int_equal(tidy.n_nodes, 1);
        assert_string_equal(tidy.nodes[0].path, "/dev/nvidia0");
        tidy = cdi_normalize(&common, &common, a);
        assert_int_equal(tidy.n_nodes, 1);
        assert_string_equal(tidy.nodes[0].path, "/dev/nvidia-modeset");
        arena_free(a);
}

static void a_copy_does_not_point_to_the_original(void **state) {
        (void)state;
        struct arena *a = arena_new(1024), *b = arena_new(1024);
        struct cdi_edits *common = arena_alloc(a, sizeof *common);
        *common = (struct cdi_edits){ .nodes = &modeset, .n_nodes = 1, .hooks = &ldcache, .n_hooks = 1 };
        struct cdi_mount mount = { arena_strdup(a, "/h"), arena_strdup(a, "/c"), NULL };
        common->mounts = &mount;
        common->n_mounts = 1;
        struct cdi_edits copy = cdi_copy(common, b);
        arena_free(a);
        assert_string_equal(copy.mounts[0].host_path, "/h");
        assert_string_equal(copy.nodes[0].host_path, modeset.host_path);
        assert_string_equal(copy.hooks[0].args[1], "update-ldcache");
        assert_true(copy.hooks[0].args != ldcache.args && copy.nodes[0].path != modeset.path);
        assert_null(copy.env[0]);
        arena_free(b);
}

static void a_hook_needs_a_name_that_runtimes_support(void **state) {
        (void)state;
        struct err e;
        struct cdi_hook bad = ldcache;
        struct cdi_spec s = channel_spec;
        s.common = (struct cdi_edits){ .hooks = &bad, .n_hooks = 1 };
        assert_int_equal(cdi_validate(&s, &e), 0);
        bad.name = "whenever";
        assert_int_equal(cdi_validate(&s, &e), -1);
        bad = ldcache;
        bad.path = "hook";
        assert_int_equal(cdi_validate(&s, &e), -1);
        bad = ldcache;
        bad.env = (const char *const[]){ "=", NULL };
        assert_int_equal(cdi_validate(&s, &e), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(channel_claim_renders_as_the_reference),
                cmocka_unit_test(daemon_claim_renders_as_the_reference),
                cmocka_unit_test(comment_is_one_line_at_the_top),
                cmocka_unit_test(file_has_the_reference_name_and_mode),
                cmocka_unit_test(list_finds_its_own_kind_only),
                cmocka_unit_test(an_id_never_leaves_the_folder),
                cmocka_unit_test(validation_names_the_invalid_part),
                cmocka_unit_test(a_gpu_claim_renders_as_the_reference),
                cmocka_unit_test(tidy_edits_are_sorted_and_without_duplicates),
                cmocka_unit_test(common_edits_are_removed_from_each_device_unless_nothing_is_left),
                cmocka_unit_test(a_copy_does_not_point_to_the_original),
                cmocka_unit_test(a_hook_needs_a_name_that_runtimes_support),
        };
        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
