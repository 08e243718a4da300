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

static void comment_is_one_line_above(void **state) {
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
        assert_int_equal(rmdir(root), 0); /* nothing else was left */
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

static void validation_names_the_culprit(void **state) {
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(channel_claim_renders_as_the_reference),
                cmocka_unit_test(daemon_claim_renders_as_the_reference),
                cmocka_unit_test(comment_is_one_line_above),
                cmocka_unit_test(file_has_the_reference_name_and_mode),
                cmocka_unit_test(list_finds_its_own_kind_only),
                cmocka_unit_test(an_id_never_leaves_the_folder),
                cmocka_unit_test(validation_names_the_culprit),
        };
        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
