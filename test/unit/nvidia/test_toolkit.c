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

#include "nvidia/toolkit.h"
#include "tree.h"

#define PACKAGE "etc/nvidia-container-runtime/config.toml"
#define OPERATOR "usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"
#define IGNORES "disable-require = false\n[features]\nignore-imex-channel-requests = true\n"
#define GIVES "disable-require = false\n[nvidia-container-runtime]\nmode = \"auto\"\n"

static char *one, *two, why[400];

static int setup(void **state) {
        (void)state;
        one = tree_new();
        two = tree_new();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        tree_remove(one);
        tree_remove(two);
        return 0;
}

static enum toolkit_answer look(void) {
        const struct driver_root roots[] = { { "/run/nvidia/driver", one }, { "/", two } };
        return toolkit_check(roots, 2, why, sizeof why);
}

static void a_toolkit_without_a_configuration_is_not_found(void **state) {
        (void)state;
        assert_int_equal(look(), TOOLKIT_NOT_FOUND);
        assert_string_equal(why, "");
}

/* failure: several container toolkits are configured -> each must ignore channel requests [channels] */
static void each_toolkit_configuration_must_ignore_channel_requests(void **state) {
        (void)state;
        tree_put(two, OPERATOR, IGNORES);
        assert_int_equal(look(), TOOLKIT_IGNORES);
        tree_put(one, PACKAGE, IGNORES);
        assert_int_equal(look(), TOOLKIT_IGNORES);
        tree_put(two, PACKAGE, GIVES);
        assert_int_equal(look(), TOOLKIT_GIVES);
        assert_non_null(
                strstr(why, "/etc/nvidia-container-runtime/config.toml does not set " TOOLKIT_SETTING));
        tree_put(two, PACKAGE, "[features]\nignore-imex-channel-requests = false\n");
        assert_int_equal(look(), TOOLKIT_GIVES);
        tree_put(two, PACKAGE, IGNORES);
        assert_int_equal(look(), TOOLKIT_IGNORES);
}

/* failure: GKE or Talos has the toolkit's configuration at its own path -> it is found [channels] */
static void each_path_of_a_toolkit_configuration_is_read(void **state) {
        (void)state;
        static const char *const paths[] = {
                PACKAGE, OPERATOR, "usr/local/etc/nvidia-container-runtime/config.toml",
                "home/kubernetes/bin/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"
        };
        for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
                tree_put(two, paths[i], GIVES);
                assert_int_equal(look(), TOOLKIT_GIVES);
                assert_non_null(strstr(why, paths[i]));
                tree_put(two, paths[i], IGNORES);
                assert_int_equal(look(), TOOLKIT_IGNORES);
        }
}

/* failure: the toolkit's configuration is broken -> it counts as giving channels to any container [channels]
 * */
static void an_unreadable_toolkit_configuration_counts_as_unsafe(void **state) {
        (void)state;
        tree_put(one, PACKAGE, "[features]\nignore-imex-channel-requests = 1\n");
        assert_int_equal(look(), TOOLKIT_GIVES);
        assert_non_null(strstr(why, "cannot be read (line 2: "));
        tree_put(one, PACKAGE, IGNORES);
        tree_put(two, PACKAGE "/file", "x");
        assert_int_equal(look(), TOOLKIT_GIVES);
        assert_non_null(strstr(why, "is not a regular file"));
}

/* A link of the host leads to a file of the host, not to one of our container. */
/* failure: the toolkit's configuration is a link of the host -> the host's file is read [channels] */
static void links_stay_below_the_root(void **state) {
        (void)state;
        _cleanup_(freep) char *link = NULL;
        tree_put(two, "opt/toolkit.toml", IGNORES);
        tree_put(two, "etc/nvidia-container-runtime/other", "x");
        link = xasprintf("%s/" PACKAGE, two);
        assert_int_equal(symlink("/opt/toolkit.toml", link), 0);
        assert_int_equal(look(), TOOLKIT_IGNORES);
        tree_put(two, "opt/toolkit.toml", GIVES);
        assert_int_equal(look(), TOOLKIT_GIVES);
}

/* ---- GPUs for pods without a claim ---- */

#define CONTAINERD "etc/containerd/config.toml"
#define DEFAULT_IN_2(name)                                                                                   \
        "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = \"" name    \
        "\"\n"
#define DEFAULT_IN_3(name)                                                                                   \
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = '" name    \
        "'\n"
#define REFUSES TOOLKIT_ACCEPTS " = false\n"

static enum toolkit_gpus gpus_for(void) {
        const struct driver_root roots[] = { { "/run/nvidia/driver", one }, { "/", two } };
        return toolkit_gives_gpus(roots, 2, why, sizeof why);
}

/* failure: NVIDIA's container runtime is the default -> it counts as giving GPUs to all pods */
static void only_nvidias_runtime_as_the_default_gives_gpus_to_all(void **state) {
        (void)state;
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_BY_CLAIM);
        tree_put(two, PACKAGE, GIVES);
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_BY_CLAIM);
        tree_put(two, CONTAINERD, DEFAULT_IN_2("runc"));
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_BY_CLAIM);
        tree_put(two, CONTAINERD, DEFAULT_IN_2("nvidia"));
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_TO_ALL);
        assert_non_null(strstr(why, "/etc/containerd/config.toml"));
        tree_put(two, CONTAINERD, DEFAULT_IN_3("nvidia-cdi"));
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_TO_ALL);
        /* A drop-in takes precedence. */
        tree_put(two, "etc/containerd/conf.d/99-x.toml", DEFAULT_IN_3("runc"));
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_BY_CLAIM);
        tree_put(two, "etc/crio/crio.conf.d/99-nvidia.conf",
                 "[crio.runtime]\ndefault_runtime = \"nvidia\"\n");
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_TO_ALL);
        assert_non_null(strstr(why, "/etc/crio/crio.conf.d/99-nvidia.conf"));
}

/* failure: several container toolkits are installed -> each must refuse GPUs without a claim */
static void each_installed_toolkit_must_refuse(void **state) {
        (void)state;
        tree_put(two, CONTAINERD, DEFAULT_IN_3("nvidia"));
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_TO_ALL); /* its default, without a file */
        tree_put(two, PACKAGE, REFUSES);
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_BY_CLAIM);
        tree_put(two, OPERATOR, "disable-require = false\n");
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_TO_ALL);
        tree_put(two, OPERATOR, REFUSES);
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_BY_CLAIM);
        tree_put(two, OPERATOR, TOOLKIT_ACCEPTS " = true\n");
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_TO_ALL);
}

static void an_unreadable_configuration_gives_an_unknown_answer(void **state) {
        (void)state;
        tree_put(two, CONTAINERD, "default_runtime_name = \n");
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_UNKNOWN);
        assert_non_null(strstr(why, "'/etc/containerd/config.toml': line 1"));
        tree_put(two, CONTAINERD, DEFAULT_IN_3("nvidia"));
        tree_put(two, PACKAGE, "disable-require = \n");
        assert_int_equal(gpus_for(), TOOLKIT_GPUS_UNKNOWN);
        assert_non_null(strstr(why, "config.toml': line 1"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_toolkit_without_a_configuration_is_not_found),
                T(each_toolkit_configuration_must_ignore_channel_requests),
                T(each_path_of_a_toolkit_configuration_is_read),
                T(an_unreadable_toolkit_configuration_counts_as_unsafe),
                T(links_stay_below_the_root),
                T(only_nvidias_runtime_as_the_default_gives_gpus_to_all),
                T(each_installed_toolkit_must_refuse),
                T(an_unreadable_configuration_gives_an_unknown_answer),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
