/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of a hostile image on programs that write into it. The tests of vulnerabilities of NVIDIA's hooks
 * have the names of the CVEs. A folder beside the container's root must never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "driver_tree.h"
#include "hook/commands.h"
#include "hook/in_root.h"
#include "note_library.h"
#include "tree.h"

enum { RACES = 10000 };

static char *root; /* has c/, the container's root, and host/ */
static int fd;

static int setup(void **state) {
        (void)state;
        root = tree_new();
        tree_put(root, "host/canary", "alive");
        tree_put(root, "host/sub/canary", "alive");
        tree_put(root, "c/etc/hostname", "c");
        _cleanup_(freep) char *path = file_join(root, "c");
        fd = in_root_open(path);
        assert_true(fd >= 0);
        return 0;
}

static void unchanged(const char *path, const char *want) {
        struct err e;
        _cleanup_(freep) char *p = file_join(root, path);
        _cleanup_(freep) char *text = NULL;
        assert_int_equal(file_read(p, 256, &text, NULL, &e), 0);
        assert_string_equal(text, want);
}

static unsigned entries(const char *path) {
        return tree_entries(root, path);
}

static void host_is_as_it_was(void) {
        unchanged("host/canary", "alive");
        unchanged("host/sub/canary", "alive");
        assert_int_equal(entries("host"), 4);
        assert_int_equal(entries("host/sub"), 3);
        assert_int_equal(entries("."), 4);
}

static int teardown(void **state) {
        (void)state;
        host_is_as_it_was();
        close(fd);
        tree_remove(root);
        return 0;
}

static int link_it(const char *link) {
        return create_symlinks(fd, &(struct options){ .links = &link, .n_links = 1 });
}

static void link_contains(const char *path, const char *want) {
        char text[256];
        _cleanup_(freep) char *p = file_join(root, path);
        ssize_t n = readlink(p, text, sizeof text - 1);
        assert_true(n > 0);
        text[n] = '\0';
        assert_string_equal(text, want);
}

/* ---- the hook's work ---- */

static void links_are_created_with_their_folders(void **state) {
        (void)state;
        assert_int_equal(link_it("libcuda.so.1::/usr/lib64/libcuda.so"), 0);
        link_contains("c/usr/lib64/libcuda.so", "libcuda.so.1");
        assert_int_equal(link_it("libcuda.so.1::/usr/lib64/libcuda.so"), 0);
        assert_int_equal(link_it("libcuda.so.2::/usr/lib64/libcuda.so"), 0);
        link_contains("c/usr/lib64/libcuda.so", "libcuda.so.2");
        assert_int_equal(entries("c/usr/lib64"), 3); /* no temporary file remains */
}

static void links_of_the_image_are_followed_inside_it(void **state) {
        (void)state;
        driver_tree_link(root, "c/lib64", "/usr/lib64");
        tree_put(root, "c/usr/lib64/x", "");
        assert_int_equal(link_it("a::/lib64/gbm/b.so"), 0);
        link_contains("c/usr/lib64/gbm/b.so", "a");
}

static void a_file_in_the_way_is_replaced(void **state) {
        (void)state;
        tree_put(root, "c/usr/lib64/libcuda.so", "a stub");
        assert_int_equal(link_it("libcuda.so.1::/usr/lib64/libcuda.so"), 0);
        link_contains("c/usr/lib64/libcuda.so", "libcuda.so.1");
}

/* failure: the hook gets invalid arguments -> it changes nothing */
static void an_invalid_command_changes_nothing(void **state) {
        (void)state;
        static const char *const bad[] = { "a",          "::/a",    "a::b",    "a::/", "a::/..",
                                           "a::/x/../y", "a::/./y", "a::/x/.", "a::",  "a::/etc/hostname/y" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_int_equal(link_it(bad[i]), -1);
        assert_int_equal(entries("c"), 3);
        unchanged("c/etc/hostname", "c");
}

/* failure: an image has a newer CUDA compatibility library -> it is preferred */
static void a_newer_compatibility_library_of_the_image_is_preferred(void **state) {
        (void)state;
        const struct options o = { .driver_version = "570.86.10" };
        assert_int_equal(enable_cuda_compat(fd, &o), 0); /* there is none */
        tree_put(root, "c/usr/local/cuda/compat/libcuda.so.570.124.06", "");
        assert_int_equal(enable_cuda_compat(fd, &o), 0); /* it is not newer */
        assert_int_equal(entries("c/etc"), 3);
        tree_put(root, "c/usr/local/cuda/compat/libcuda.so.580.10.2", "");
        assert_int_equal(enable_cuda_compat(fd, &o), 0); /* which of them? */
        assert_int_equal(entries("c/etc"), 3);
        _cleanup_(freep) char *old = file_join(root, "c/usr/local/cuda/compat/libcuda.so.570.124.06");
        assert_int_equal(unlink(old), 0);
        driver_tree_link(root, "c/usr/local/cuda/compat/libcuda.so.1", "libcuda.so.580.10.2");
        assert_int_equal(enable_cuda_compat(fd, &o), 0);
        assert_int_equal(entries("c/etc/ld.so.conf.d"), 3);
        /* A library with a list supports only the drivers in it. */
        struct note_library l;
        struct err e;
        _cleanup_(freep) char *library = file_join(root, "c/usr/local/cuda/compat/libcuda.so.580.10.2");
        note_library_make(&l, ".note.cuda.fwd_compatibility", "NVIDIA Corporation",
                          "{\"Driver\": [550, 580]}");
        assert_int_equal(file_replace_volatile(library, (const char *)&l, sizeof l, 0644, &e), 0);
        unsigned before = entries("c/etc/ld.so.conf.d");
        assert_int_equal(enable_cuda_compat(fd, &o), 0); /* 570 */
        assert_int_equal(entries("c/etc/ld.so.conf.d"), before);
        assert_int_equal(enable_cuda_compat(fd, &(struct options){ .driver_version = "550.1" }), 0);
        assert_int_equal(entries("c/etc/ld.so.conf.d"), before + 1);
        assert_int_equal(enable_cuda_compat(fd, &(struct options){ .driver_version = "580.1" }), 0);
        assert_int_equal(entries("c/etc/ld.so.conf.d"), before + 1); /* not newer */
        assert_int_equal(enable_cuda_compat(fd, &(struct options){ .driver_version = "new" }), -1);
        assert_int_equal(enable_cuda_compat(fd, &(struct options){ 0 }), -1);
}

#define PROFILE "c/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"
#define PROFILE_OF(mask)                                                                                     \
        "{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\"," mask             \
        "]}],\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}"

static void need_node(const char *path, unsigned minor) {
        if (!driver_tree_node(root, path, 195, minor, 0666, 0))
                skip();
}

/* The minor counts, not the number in the name. */
static void the_profile_has_the_gpus_of_the_container(void **state) {
        (void)state;
        struct stat st;
        _cleanup_(freep) char *path = file_join(root, PROFILE);
        need_node("c/dev/nvidia0", 1);
        need_node("c/dev/nvidia10", 63);
        need_node("c/dev/nvidia64", 64); /* it has no bit */
        need_node("c/dev/nvidia-modeset", 6);
        need_node("c/dev/nvidiactl", 7);
        need_node("c/dev/nvidia", 8);
        need_node("c/dev/xnvidia9", 9);
        need_node("c/dev/nvidia9x", 9);
        tree_put(root, "c/dev/nvidia11", "a file");
        driver_tree_link(root, "c/dev/nvidia12", "nvidia10");
        for (int i = 0; i < 2; i++) { /* the hooks of two claims */
                assert_int_equal(update_application_profile(fd), 0);
                unchanged(PROFILE, PROFILE_OF("0x8000000000000002"));
                assert_int_equal(entries("c/etc/nvidia/nvidia-application-profiles-rc.d"), 3);
        }
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0444);
}

static void a_container_without_a_gpu_gets_no_profile(void **state) {
        (void)state;
        assert_int_equal(update_application_profile(fd), 0); /* it has no /dev */
        tree_put(root, "c/dev/nvidia0", "a file");
        need_node("c/dev/nvidiactl", 255);
        assert_int_equal(update_application_profile(fd), 0);
        assert_int_equal(entries("c/etc"), 3);
}

/* ---- attacks ---- */

/* failure: an image redirects the application profile -> it is written inside the image */
static void a_profile_is_written_inside_the_image(void **state) {
        (void)state;
        _cleanup_(freep) char *host = file_join(root, "host"), *canary = file_join(root, "host/canary"),
                              *link = file_join(root, "c/etc/nvidia");
        need_node("c/dev/nvidia0", 0);
        driver_tree_link(root, "c/etc/nvidia", host);
        assert_int_equal(update_application_profile(fd), -1);
        assert_int_equal(unlink(link), 0);
        driver_tree_link(root, PROFILE, canary);
        assert_int_equal(update_application_profile(fd), 0);
        unchanged(PROFILE, PROFILE_OF("0x1"));
}

/* failure: the /dev of a container is a link to the host -> the host's GPUs are not counted */
static void the_gpus_of_the_host_are_not_counted(void **state) {
        (void)state;
        _cleanup_(freep) char *dev = file_join(root, "host/dev"), *node = file_join(root, "host/dev/nvidia0");
        need_node("host/dev/nvidia0", 0);
        driver_tree_link(root, "c/dev", dev);
        assert_int_equal(update_application_profile(fd), 0);
        assert_int_equal(entries("c/etc"), 3);
        assert_int_equal(unlink(node), 0);
        assert_int_equal(rmdir(dev), 0);
}

/* failure: an image's compat folder is a link to the host (CVE-2024-0132) -> it is not entered */
static void cve_2024_0132_a_compat_folder_that_leads_to_the_host_is_not_entered(void **state) {
        (void)state;
        _cleanup_(freep) char *host = file_join(root, "host");
        tree_put(root, "c/usr/local/cuda/x", "");
        driver_tree_link(root, "c/usr/local/cuda/compat", host);
        assert_int_equal(enable_cuda_compat(fd, &(struct options){ .driver_version = "570.1" }), 0);
        assert_int_equal(entries("c/etc"), 3);
        assert_int_equal(in_root(fd, "/usr/local/cuda/compat/canary", O_PATH, 0), -1);
}

/* failure: links of an image lead out of it (CVE-2024-0133) -> nothing is created on the host */
static void cve_2024_0133_nothing_is_created_on_the_host(void **state) {
        (void)state;
        _cleanup_(freep) char *host = file_join(root, "host");
        driver_tree_link(root, "c/up", "../../host");
        driver_tree_link(root, "c/abs", host);
        assert_int_equal(link_it("x::/up/made"), -1);      /* the container has no "/host" */
        assert_int_equal(link_it("x::/abs/sub/made"), -1); /* and not this folder */
        assert_int_equal(link_it("x::/up/deep/er/made"), -1);
}

/* failure: an image has a link where the hook writes (CVE-2024-0134) -> it is replaced, not followed */
static void cve_2024_0134_an_existing_link_is_replaced_and_not_followed(void **state) {
        (void)state;
        _cleanup_(freep) char *canary = file_join(root, "host/canary");
        driver_tree_link(root, "c/usr/lib64/libcuda.so", canary);
        assert_int_equal(link_it("libcuda.so.1::/usr/lib64/libcuda.so"), 0);
        link_contains("c/usr/lib64/libcuda.so", "libcuda.so.1");
}

/* failure: an image redirects configuration files (CVE-2025-23267) -> they are written inside the image */
static void cve_2025_23267_configuration_files_are_written_inside_the_image(void **state) {
        (void)state;
        _cleanup_(freep) char *host = file_join(root, "host");
        tree_put(root, "c/usr/local/cuda/compat/libcuda.so.580.10.2", "");
        driver_tree_link(root, "c/etc/ld.so.conf.d", host);
        assert_int_equal(enable_cuda_compat(fd, &(struct options){ .driver_version = "570.1" }), -1);
}

/* failure: a link of an image leads to another process -> it is not followed */
static void a_link_to_another_process_is_not_followed(void **state) {
        (void)state;
        driver_tree_link(root, "c/usr/lib64", "/proc/1/root/tmp");
        assert_int_equal(link_it("x::/usr/lib64/made"), -1);
}

/* ---- CVE-2025-23359, 2026-24260: a container with a shared volume changes a path after its check ---- */

struct racer {
        pthread_t thread;
        atomic_bool stop;
        char *place, *folder, *to_host;
};

/* The folder that the hook writes into alternates between a folder and a link to the host. */
static void *swap(void *u) {
        struct racer *r = u;
        while (!atomic_load(&r->stop)) {
                (void)renameat2(AT_FDCWD, r->place, AT_FDCWD, r->to_host, RENAME_EXCHANGE);
        }
        return NULL;
}

static void race(const char *at, const char *target) {
        struct racer r = { .place = file_join(root, at), .to_host = file_join(root, "c/evil") };
        unsigned made = 0;
        _cleanup_(freep) char *keep = xasprintf("%s/keep", at);
        tree_put(root, keep, "");
        assert_int_equal(symlink(target, r.to_host), 0);
        assert_int_equal(pthread_create(&r.thread, NULL, swap, &r), 0);
        /* Each refusal is printed. */
        int saved = dup(2), nowhere = open("/dev/null", O_WRONLY);
        assert_true(saved >= 0 && dup2(nowhere, 2) == 2);
        for (unsigned i = 0; i < RACES; i++) {
                _cleanup_(freep) char *link = xasprintf("t%u::/usr/lib64/nvidia/x%u/lib.so", i, i % 7);
                made += link_it(link) == 0;
        }
        assert_int_equal(dup2(saved, 2), 2);
        close(saved);
        close(nowhere);
        atomic_store(&r.stop, true);
        pthread_join(r.thread, NULL);
        host_is_as_it_was();
        /* If it always failed, the test would prove nothing. */
        assert_true(made > 0);
        free(r.place);
        free(r.to_host);
}

/* failure: a folder becomes an absolute link during the hook (CVE-2025-23359) -> nothing outside changes */
static void cve_2025_23359_a_folder_becomes_an_absolute_link_during_the_hook(void **state) {
        (void)state;
        _cleanup_(freep) char *host = file_join(root, "host");
        race("c/usr/lib64/nvidia", host);
}

/* failure: a parent folder becomes a relative link during the hook (CVE-2026-24260) -> nothing outside
 * changes */
static void cve_2026_24260_a_parent_becomes_a_relative_link_during_the_hook(void **state) {
        (void)state;
        race("c/usr", "../host");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(links_are_created_with_their_folders),
                T(links_of_the_image_are_followed_inside_it),
                T(a_file_in_the_way_is_replaced),
                T(an_invalid_command_changes_nothing),
                T(a_newer_compatibility_library_of_the_image_is_preferred),
                T(the_profile_has_the_gpus_of_the_container),
                T(a_container_without_a_gpu_gets_no_profile),
                T(a_profile_is_written_inside_the_image),
                T(the_gpus_of_the_host_are_not_counted),
                T(cve_2024_0132_a_compat_folder_that_leads_to_the_host_is_not_entered),
                T(cve_2024_0133_nothing_is_created_on_the_host),
                T(cve_2024_0134_an_existing_link_is_replaced_and_not_followed),
                T(cve_2025_23267_configuration_files_are_written_inside_the_image),
                T(a_link_to_another_process_is_not_followed),
                T(cve_2025_23359_a_folder_becomes_an_absolute_link_during_the_hook),
                T(cve_2026_24260_a_parent_becomes_a_relative_link_during_the_hook),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
