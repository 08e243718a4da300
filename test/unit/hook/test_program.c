/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the program as a runtime does, in the test's own mount namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "driver_tree.h"
#include "note_library.h"
#include "tree.h"

static char *program, *probe;
static char *root;
static bool mounts; /* this machine allows our own mount namespace */

static int setup(void **state) {
        (void)state;
        root = tree_new();
        tree_put(root, "host/canary", "alive");
        tree_put(root, "c/etc/hostname", "c");
        tree_put(root, "c/tmp/x", "");
        _cleanup_(freep) char *config = xasprintf("{\"root\":{\"path\":\"%s/c\"}}", root);
        _cleanup_(freep) char *container = file_join(root, "c");
        tree_put(root, "config.json", config);
        /* Only a mount can become a root. */
        if (mounts && mount(container, container, NULL, MS_BIND, NULL) < 0)
                return -1;
        return 0;
}

static int teardown(void **state) {
        (void)state;
        _cleanup_(freep) char *container = file_join(root, "c");
        struct err e;
        _cleanup_(freep) char *path = file_join(root, "host/canary");
        _cleanup_(freep) char *text = NULL;
        assert_int_equal(file_read(path, 64, &text, NULL, &e), 0);
        assert_string_equal(text, "alive");
        if (mounts)
                umount2(container, MNT_DETACH);
        tree_remove(root);
        return 0;
}

/* The output is in root/output. */
static pid_t start(char *const argv[], char *const envp[]) {
        _cleanup_(freep) char *state = xasprintf("{\"ociVersion\":\"1.2.0\",\"bundle\":\"%s\"}", root);
        _cleanup_(freep) char *output = file_join(root, "output");
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], state, strlen(state)), strlen(state));
        close(fds[1]);
        pid_t child = fork();
        if (child == 0) {
                _cleanup_(freep) char *cwd = file_join(root, "c");
                if (chdir(cwd) < 0 || dup2(fds[0], 0) < 0 ||
                    dup2(open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2) < 0)
                        _exit(99);
                execve(program, argv, envp);
                _exit(98);
        }
        close(fds[0]);
        return child;
}

/* Returns the exit status. */
static int run(char *const argv[], char *const envp[]) {
        int status = 0;
        pid_t child = start(argv, envp);
        assert_int_equal(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void must_run(char *const argv[]) {
        char *const none[] = { NULL };
        int status = run(argv, none);
        if (status) {
                struct err e;
                _cleanup_(freep) char *path = file_join(root, "output");
                _cleanup_(freep) char *text = NULL;
                (void)file_read(path, 4096, &text, NULL, &e);
                fail_msg("status %d: %s", status, text);
        }
}

static bool is_there(const char *path) {
        _cleanup_(freep) char *p = file_join(root, path);
        return access(p, F_OK) == 0;
}

static bool cache_has(const char *name) {
        _cleanup_(freep) char *path = file_join(root, "c/etc/ld.so.cache");
        _cleanup_(freep) char *text = NULL;
        struct err e;
        size_t n = 0;
        return file_read(path, 1 << 20, &text, &n, &e) == 0 && memmem(text, n, name, strlen(name));
}

#define ARGV(...)                                                                                            \
        (char *const[]) {                                                                                    \
                (char[]){ "cdi-hook" }, __VA_ARGS__, NULL                                                    \
        }
#define A(s)                                                                                                 \
        (char[]) {                                                                                           \
                s                                                                                            \
        }

/* A library that ldconfig accepts: a copy of one of this machine's libraries. */
static void put_library(const char *path) {
        static const char *const here[] = { "/lib/x86_64-linux-gnu/libz.so.1",
                                            "/lib/aarch64-linux-gnu/libz.so.1",
                                            "/lib/x86_64-linux-gnu/libm.so.6",
                                            "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6" };
        struct err e;
        _cleanup_(freep) char *to = file_join(root, path);
        tree_put(root, path, "");
        for (size_t i = 0; i < ARRAY_LEN(here); i++) {
                _cleanup_(freep) char *text = NULL;
                size_t n = 0;
                if (file_read(here[i], 16 << 20, &text, &n, &e) < 0)
                        continue;
                assert_int_equal(file_replace_volatile(to, text, n, 0755, &e), 0);
                return;
        }
        skip();
}

/* failure: an image has no configuration of the loader -> the mounted libraries are found */
static void the_loader_finds_mounted_libraries(void **state) {
        (void)state;
        if (!mounts)
                skip();
        put_library("c/usr/lib64/libcuda.so.550.1");
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64"), A("--folder=/usr/lib64/vdpau")));
        assert_true(is_there("c/etc/ld.so.conf"));
        assert_true(cache_has("/usr/lib64/lib"));
        /* Again: the folder is in the configuration now. */
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        assert_true(cache_has("/usr/lib64/lib"));
}

/* failure: an image's loader configuration includes nothing -> the mounted libraries are found */
static void a_configuration_without_includes_gets_the_folders(void **state) {
        (void)state;
        if (!mounts)
                skip();
        tree_put(root, "c/etc/ld.so.conf", "/nowhere\n");
        put_library("c/usr/lib64/libcuda.so.550.1");
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        assert_true(cache_has("/usr/lib64/lib"));
}

/* The content of the cache: ldconfig prints it in the loader's search order. */
static bool cache_prefers(const char *first, const char *second) {
        _cleanup_(freep) char *path = file_join(root, "c/etc/ld.so.cache");
        _cleanup_(freep) char *command = xasprintf("/sbin/ldconfig -p -C %s", path);
        char line[4096];
        int at_first = -1, at_second = -1, i = 0;
        FILE *f = popen(command, "r");
        assert_non_null(f);
        for (; fgets(line, sizeof line, f); i++) {
                if (strstr(line, first) && at_first < 0)
                        at_first = i;
                if (strstr(line, second) && at_second < 0)
                        at_second = i;
        }
        assert_int_equal(pclose(f), 0);
        return at_first >= 0 && at_second > at_first;
}

/* An image of a Red Hat distribution, on a host whose driver is in /usr/lib64, too. */
/* failure: an image prefers its own copy of a library -> that copy stays preferred */
static void a_library_that_the_image_prefers_stays_preferred(void **state) {
        (void)state;
        if (!mounts)
                skip();
        static const char *const configurations[] = { "include ld.so.conf.d/*.conf\n", "/usr/local/lib\n" };
        for (size_t i = 0; i < ARRAY_LEN(configurations); i++) {
                tree_put(root, "c/etc/ld.so.conf", configurations[i]);
                tree_put(root, "c/etc/ld.so.conf.d/local.conf", "/usr/local/lib\n");
                put_library("c/usr/local/lib/libsame.so.1");
                put_library("c/usr/lib64/libsame.so.1");
                put_library("c/usr/lib/libother.so.1");
                must_run(ARGV(A("update-ldcache"), A("--folder=/usr/lib64")));
                assert_true(cache_prefers("=> /usr/local/lib/lib", "=> /usr/lib64/lib"));
                assert_true(cache_has("/usr/lib/lib"));
                must_run(ARGV(A("update-ldcache"), A("--folder=/usr/lib64")));
                assert_true(cache_prefers("=> /usr/local/lib/lib", "=> /usr/lib64/lib"));
        }
        /* A folder that is not a system folder comes first. */
        put_library("c/opt/driver/libsame.so.1");
        must_run(ARGV(A("update-ldcache"), A("--folder=/opt/driver")));
        must_run(ARGV(A("update-ldcache"), A("--folder=/usr/lib64"))); /* the hook of another claim */
        assert_true(cache_prefers("=> /opt/driver/lib", "=> /usr/local/lib/lib"));
}

/* failure: an image has a library of more than 1 GiB -> it stays in the loader's cache */
static void a_library_of_more_than_a_gibibyte_stays_in_the_cache(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *path = file_join(root, "c/opt/big/libbig.so.1");
        tree_put(root, "c/etc/ld.so.conf.d/big.conf", "/opt/big\n");
        put_library("c/opt/big/libbig.so.1");
        assert_int_equal(truncate(path, (off_t)1200 << 20), 0);
        must_run(ARGV(A("update-ldcache"), A("--folder=/usr/lib64")));
        assert_true(cache_has("/opt/big/lib"));
}

static int take_compat(void *u, int folder, const char *name, struct err *e) {
        *(unsigned *)u += str_starts(name, "00-compat-") && unlinkat(folder, name, 0) == 0;
        return 0;
}

/* True if the loader prefers the image's compatibility library, of driver 590. */
static bool is_preferred(const char *drivers, const char *host_version) {
        struct err e;
        struct note_library l;
        unsigned n = 0;
        _cleanup_(freep) char *library = file_join(root, "c/usr/local/cuda/compat/libcuda.so.590.44.01"),
                              *option = xasprintf("--host-driver-version=%s", host_version),
                              *folder = file_join(root, "c/etc/ld.so.conf.d");
        tree_put(root, "c/usr/local/cuda/compat/libcuda.so.590.44.01", "");
        if (drivers) {
                note_library_make(&l, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", drivers);
                assert_int_equal(file_replace_volatile(library, &l, sizeof l, 0755, &e), 0);
        }
        must_run(ARGV(A("enable-cuda-compat"), option));
        (void)file_each(folder, take_compat, &n, &e);
        return n;
}

/* cuInit fails with a library that does not support the driver. */
static void a_compatibility_library_is_used_for_its_listed_drivers(void **state) {
        (void)state;
        assert_true(is_preferred("{\"Driver\": [550, 580]}", "580.95.05"));
        assert_false(is_preferred("{\"Driver\": [550, 580]}", "570.158.01"));
        assert_false(is_preferred("{\"Driver\": [550, 580]}", "590.44.01"));
        assert_true(is_preferred(NULL, "570.158.01"));
        assert_false(is_preferred(NULL, "590.44.01"));
}

/* failure: an image uses musl -> the mounted libraries are found */
static void musl_is_configured_by_its_own_file(void **state) {
        (void)state;
        struct err e;
        if (!mounts)
                skip();
        tree_put(root, "c/lib/ld-musl-x86_64.so.1", "");
        tree_put(root, "c/lib/ld-musl-aarch64.so.1", "");
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        _cleanup_(freep) char *path =
                file_join(root, is_there("c/etc/ld-musl-x86_64.path") ? "c/etc/ld-musl-x86_64.path"
                                                                      : "c/etc/ld-musl-aarch64.path");
        _cleanup_(freep) char *text = NULL;
        assert_int_equal(file_read(path, 4096, &text, NULL, &e), 0);
        assert_string_equal(text, "/lib:/usr/local/lib:/usr/lib\n/usr/lib64\n");
}

/* Absolute links of an image lead into the image. */
/* failure: folders of an image are absolute links -> they stay inside the image */
static void folders_of_the_image_that_are_links_stay_inside_it(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *etc = file_join(root, "c/etc"), *to = file_join(root, "c/real-etc");
        assert_int_equal(rename(etc, to), 0);
        assert_int_equal(symlink("/real-etc", etc), 0);
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        assert_true(is_there("c/real-etc/ld.so.cache"));
}

/* failure: /etc and /lib64 of an image are absolute links -> the hook works inside the image */
static void images_whose_etc_and_lib64_are_absolute_links_are_supported(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *etc = file_join(root, "c/etc"), *to = file_join(root, "c/real-etc");
        assert_int_equal(rename(etc, to), 0);
        assert_int_equal(symlink("/real-etc", etc), 0);
        put_library("c/real-lib64/libcuda.so.550.1");
        driver_tree_link(root, "c/usr/lib64", "/real-lib64");
        must_run(ARGV(A("create-symlinks"), A("--link"), A("libcuda.so.550.1::/usr/lib64/libcuda.so")));
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        _cleanup_(freep) char *link = file_join(root, "c/real-lib64/libcuda.so");
        struct stat st;
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_true(is_there("c/real-etc/ld.so.cache"));
        /* The same link with the container's path. */
        assert_int_equal(unlink(etc), 0);
        assert_int_equal(rename(to, etc), 0);
        assert_true(cache_has("/usr/lib64/lib"));
}

/* A link through the root of a process, in the container's own /proc. */
/* failure: a loader configuration leads to another process -> nothing outside changes */
static void a_configuration_that_leads_to_another_process_is_not_followed(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *proc = file_join(root, "c/proc"), *host = file_join(root, "host");
        _cleanup_(freep) char *to = xasprintf("/proc/%d/root%s", getpid(), host);
        put_library("c/usr/lib64/libcuda.so.550.1");
        tree_put(root, "c/proc/x", "");
        tree_put(root, "c/usr/local/cuda/compat/libcuda.so.580.10.2", "");
        assert_int_equal(mount("proc", proc, "proc", 0, NULL), 0);
        driver_tree_link(root, "c/etc/ld.so.conf.d", to);
        char *const none[] = { NULL };
        (void)run(ARGV(A("enable-cuda-compat"), A("--host-driver-version=570.1")), none);
        (void)run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")), none);
        assert_int_equal(tree_entries(root, "host"), 3); /* the canary */
        umount2(proc, MNT_DETACH);
}

/* failure: libraries are in a read-only volume -> they are found */
static void libraries_in_a_read_only_volume_are_found(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *volume = file_join(root, "c/usr/lib64");
        put_library("c/usr/lib64/libcuda.so.550.1");
        assert_int_equal(mount(volume, volume, NULL, MS_BIND, NULL), 0);
        assert_int_equal(mount(NULL, volume, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        assert_true(cache_has("/usr/lib64/lib"));
        umount2(volume, MNT_DETACH);
}

/* failure: an image brings its own ldconfig (CVE-2024-0135) -> it is not executed */
static void cve_2024_0135_the_ldconfig_of_the_image_is_not_run_nor_is_its_loader(void **state) {
        (void)state;
        if (!mounts)
                skip();
        /* a program that would leave a trace if it ran */
        tree_put(root, "c/sbin/ldconfig", "#!/bin/sh\necho > /tmp/ran\n");
        must_run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")));
        assert_false(is_there("c/tmp/ran"));
        _cleanup_(freep) char *script = file_join(root, "c/sbin/ldconfig");
        _cleanup_(freep) char *option = xasprintf("--ldconfig-path=%s", script);
        char *const none[] = { NULL };
        assert_int_equal(run(ARGV(A("update-ldcache"), option), none), 1);
        assert_int_equal(run(ARGV(A("update-ldcache"), A("--ldconfig-path=/bin/sh")), none),
                         1); /* needs a loader */
}

/* failure: a container sets LD_PRELOAD and similar (CVE-2025-23266) -> the hook ignores it */
static void cve_2025_23266_the_environment_of_the_container_has_no_effect(void **state) {
        (void)state;
        if (!mounts)
                skip();
        tree_put(root, "c/x.so", "not a library");
        char *const evil[] = { A("LD_PRELOAD=./x.so"),
                               A("LD_LIBRARY_PATH=."),
                               A("LD_AUDIT=./x.so"),
                               A("GLIBC_TUNABLES=glibc.malloc.check=3"),
                               A("PATH=."),
                               NULL };
        assert_int_equal(run(ARGV(A("create-symlinks"), A("--link"), A("a::/usr/b")), evil), 0);
        assert_int_equal(run(ARGV(A("update-ldcache"), A("--folder"), A("/usr")), evil), 0);
}

/* failure: links of an image redirect ldconfig's files (CVE-2025-23267) -> nothing outside changes */
static void cve_2025_23267_links_of_the_image_do_not_redirect_ldconfig(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *canary = file_join(root, "host/canary"), *host = file_join(root, "host");
        driver_tree_link(root, "c/etc/ld.so.cache", canary);
        driver_tree_link(root, "c/etc/ld.so.cache~", canary);
        driver_tree_link(root, "c/etc/ld.so.conf", canary);
        driver_tree_link(root, "c/etc/ld.so.conf.d", host);
        char *const none[] = { NULL };
        (void)run(ARGV(A("update-ldcache"), A("--folder"), A("/usr/lib64")),
                  none); /* the canary shows a violation */
}

/* failure: the hook gets an unknown command -> it is refused */
static void unknown_commands_are_refused(void **state) {
        (void)state;
        char *const none[] = { NULL };
        assert_int_equal(run(ARGV(A("chmod"), A("--path"), A("/x")), none), 1);
        assert_int_equal(run(ARGV(A("create-symlinks"), A("--links"), A("a::/b")), none), 1);
        assert_int_equal(run(ARGV(A("create-symlinks"), A("--link")), none), 1);
        assert_int_equal(run(ARGV(A("update-ldcache"), A("--folder"), A("relative")), none), 1);
        assert_int_equal(run(ARGV(A("update-ldcache"), A("--folder"), A("/a\n/b")), none), 1);
        assert_int_equal(run(ARGV(A("")), none), 1);
}

static void the_command_lines_of_nvidias_programs_are_accepted(void **state) {
        (void)state;
        must_run(ARGV(A("hook"), A("create-symlinks"), A("--link=a::/usr/b")));
        _cleanup_(freep) char *link = file_join(root, "c/usr/b");
        struct stat st;
        assert_int_equal(lstat(link, &st), 0);
}

/* ---- a program that replaces ldconfig ---- */

static char *read_output(void) {
        struct err e;
        _cleanup_(freep) char *path = file_join(root, "output");
        char *text = NULL;
        assert_int_equal(file_read(path, 1 << 16, &text, NULL, &e), 0);
        return text;
}

static void mount_kernel_files(void) {
        _cleanup_(freep) char *proc = file_join(root, "c/proc"), *sys = file_join(root, "c/sys"),
                              *dev = file_join(root, "c/dev");
        tree_put(root, "c/proc/x", "");
        tree_put(root, "c/sys/x", "");
        tree_put(root, "c/dev/x", "");
        assert_int_equal(mount("proc", proc, "proc", 0, NULL), 0);
        assert_int_equal(mount("/sys", sys, NULL, MS_BIND | MS_REC, NULL), 0);
        assert_int_equal(mount("tmpfs", dev, "tmpfs", 0, NULL), 0);
        tree_put(root, "c/dev/kmsg", "");
        tree_put(root, "c/dev/mqueue/x", "");
}

/* failure: a library of the image takes over ldconfig -> it has no /proc, /sys or /dev */
static void a_replaced_ldconfig_has_no_proc_sys_or_dev(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *option = xasprintf("--ldconfig-path=@%s", probe);
        char *const none[] = { NULL };
        mount_kernel_files();
        int status = run(ARGV(A("update-ldcache"), option), none);
        _cleanup_(freep) char *output = read_output();
        if (status || !strstr(output, "probe: done: well"))
                fail_msg("status %d: %s", status, output);
        /* The container itself still has them. */
        assert_true(is_there("c/proc/self/status"));
        assert_true(is_there("c/dev/kmsg"));
}

/* The probe waits for a FIFO of the image forever, as for a file on a server that does not answer. */
/* failure: an image's files are slow to read -> the hook ends with an error after its time limit */
static void a_hook_that_takes_too_long_reports_it_and_ends_with_its_ldconfig(void **state) {
        (void)state;
        if (!mounts)
                skip();
        _cleanup_(freep) char *option = xasprintf("--ldconfig-path=@%s", probe),
                              *fifo = file_join(root, "c/wait");
        char *const none[] = { NULL }, byte[1];
        int status = 0;
        assert_int_equal(mkfifo(fifo, 0600), 0);
        pid_t child = start(ARGV(A("update-ldcache"), option), none);
        int fd = open(fifo, O_RDONLY); /* until the probe has opened it */
        assert_true(fd >= 0);
        /* Replaces the five minutes. */
        assert_int_equal(kill(child, SIGALRM), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        assert_int_equal(read(fd, byte, 1), 0); /* it is no longer open */
        close(fd);
        _cleanup_(freep) char *output = read_output();
        assert_non_null(strstr(output, "cdi-hook: not finished within 300 s"));
}

/* The plugin runs this before it publishes a GPU. */
/* failure: a node cannot run the hook -> the self-test shows it before GPUs are offered */
static void the_self_test_passes_and_leaves_nothing(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *before = NULL, *after = NULL;
        if (!mounts)
                skip();
        assert_int_equal(file_read("/proc/self/mountinfo", 1 << 20, &before, NULL, &e), 0);
        must_run(ARGV(A("self-test")));
        assert_int_equal(file_read("/proc/self/mountinfo", 1 << 20, &after, NULL, &e), 0);
        assert_string_equal(before, after);
        assert_true(access("/sys/kernel", F_OK) == 0);
}

/* failure: a policy forbids mounts -> the self-test names the call */
static void a_self_test_that_may_not_mount_names_the_call(void **state) {
        (void)state;
        int status = 0;
        if (!mounts)
                skip();
        _cleanup_(freep) char *path = file_join(root, "output");
        pid_t child = fork();
        if (child == 0) {
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
                if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) < 0 || dup2(fd, 2) < 0)
                        _exit(99);
                execl(program, "cdi-hook", "self-test", (char *)NULL);
                _exit(98);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        _cleanup_(freep) char *output = read_output();
        assert_string_equal(output,
                            "cdi-hook: unshare of mount and UTS namespace: Operation not permitted\n");
}

static void no_loader_of_the_image_is_named_by_the_hook(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *content = NULL;
        size_t n = 0;
        assert_int_equal(file_read(program, 64 << 20, &content, &n, &e), 0);
        const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)content;
        const Elf64_Phdr *s = (const Elf64_Phdr *)(const void *)(content + h->e_phoff);
        assert_true(n > sizeof *h && h->e_phnum && h->e_phoff + h->e_phnum * sizeof *s <= n);
        for (unsigned i = 0; i < h->e_phnum; i++)
                assert_int_not_equal(s[i].p_type, PT_INTERP);
}

/* ---- under a runtime ---- */

static bool copy_to(const char *from, const char *path) {
        struct err e;
        _cleanup_(freep) char *to = file_join(root, path);
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        tree_put(root, path, "");
        return file_read(from, 16 << 20, &text, &n, &e) == 0 &&
               file_replace_volatile(to, text, n, 0755, &e) == 0;
}

static void add_hook(struct buf *b, const char *args) {
        buf_addf(b, "%s{\"path\":\"%s\",\"args\":[\"cdi-hook\",%s],\"env\":[\"NVIDIA_CTK_DEBUG=false\"]}",
                 str_ends(buf_str(b), "[") ? "" : ",", program, args);
}

/* The container runs ldconfig to print the cache. It is static, so the image needs nothing else. */
static void make_bundle(struct buf *b, const char *library) {
        buf_addf(b,
                 "{\"ociVersion\":\"1.0.2\",\"process\":{\"cwd\":\"/\",\"args\":[\"/"
                 "ldconfig\",\"-p\"],\"env\":[\"LD_PRELOAD=/x.so\"],"
                 "\"user\":{\"uid\":0,\"gid\":0}},\"root\":{\"path\":\"c\"},\"mounts\":[{\"destination\":\"/"
                 "proc\",\"type\":\"proc\","
                 "\"source\":\"proc\"},{\"destination\":\"/usr/lib64/"
                 "libz.so.1.2\",\"type\":\"none\",\"source\":\"%s\",\"options\":["
                 "\"ro\",\"rbind\",\"rprivate\"]}],\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":"
                 "\"mount\"},{\"type\":\"ipc\"},"
                 "{\"type\":\"uts\"},{\"type\":\"network\"}],\"devices\":[{\"path\":\"/dev/"
                 "nvidia5\",\"type\":\"c\","
                 "\"major\":195,\"minor\":5}]},\"hooks\":{\"createContainer\":[",
                 library);
        add_hook(b, "\"create-symlinks\",\"--link\",\"libz.so.1.2::/usr/lib64/libcuda.so\"");
        add_hook(b, "\"enable-cuda-compat\",\"--host-driver-version=580.95.05\"");
        add_hook(b, "\"update-ldcache\",\"--folder\",\"/usr/lib64\"");
        add_hook(b, "\"disable-device-node-modification\"");
        add_hook(b, "\"update-application-profile\"");
        buf_adds(b, "]}}");
}

static void a_container_of_runc_finds_mounted_libraries(void **state) {
        (void)state;
        if (!mounts || access("/usr/sbin/runc", X_OK) < 0 || access("/sys/fs/cgroup", W_OK) < 0)
                skip();
        _cleanup_(freep) char *bundle = xasprintf("--bundle=%s", root);
        _cleanup_(freep) char *id = xasprintf("hook-%s", strrchr(root, '.') + 1);
        _cleanup_(freep) char *container = file_join(root, "c");
        _cleanup_(freep) char *runtime = xasprintf("--root=%s/runtime", root);
        _cleanup_(freep) char *library = file_join(root, "host/libz.so.1");
        int status = 0;
        /* runc makes the root a mount itself */
        umount2(container, MNT_DETACH);
        put_library("host/libz.so.1");
        assert_true(copy_to("/sbin/ldconfig.real", "c/ldconfig") || copy_to("/sbin/ldconfig", "c/ldconfig"));
        struct buf b = BUF_INIT(1 << 16);
        make_bundle(&b, library);
        tree_put(root, "config.json", buf_str(&b));
        buf_done(&b);
        _cleanup_(freep) char *output = file_join(root, "output");
        pid_t child = fork();
        if (child == 0) {
                int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
                if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
                        _exit(99);
                execl("/usr/sbin/runc", "runc", runtime, "run", bundle, id, (char *)NULL);
                _exit(98);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        struct err e;
        _cleanup_(freep) char *text = NULL;
        assert_int_equal(file_read(output, 1 << 16, &text, NULL, &e), 0);
        if (status || !strstr(text, "=> /usr/lib64/lib"))
                fail_msg("status %d: %s", status, text);
        /* runc creates the device nodes before it runs the hooks. */
        _cleanup_(freep) char *profile =
                file_join(root, "c/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
        freep(&text);
        assert_int_equal(file_read(profile, 256, &text, NULL, &e), 0);
        assert_non_null(strstr(text, "\"EGLVisibleDGPUDevices\",0x20]"));
        assert_int_equal(mount(container, container, NULL, MS_BIND, NULL), 0); /* for the teardown */
}

int main(int argc, char **argv) {
        program = realpath(argv[argc - 2], NULL); /* it runs in another folder */
        probe = realpath(argv[argc - 1], NULL);
        if (!program || !probe)
                return 1;
        mounts = unshare(CLONE_NEWNS) == 0 && mount("", "/", "", MS_PRIVATE | MS_REC, "") == 0;
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(the_loader_finds_mounted_libraries),
                T(a_configuration_without_includes_gets_the_folders),
                T(a_library_that_the_image_prefers_stays_preferred),
                T(a_library_of_more_than_a_gibibyte_stays_in_the_cache),
                T(a_compatibility_library_is_used_for_its_listed_drivers),
                T(musl_is_configured_by_its_own_file),
                T(folders_of_the_image_that_are_links_stay_inside_it),
                T(images_whose_etc_and_lib64_are_absolute_links_are_supported),
                T(a_configuration_that_leads_to_another_process_is_not_followed),
                T(libraries_in_a_read_only_volume_are_found),
                T(cve_2024_0135_the_ldconfig_of_the_image_is_not_run_nor_is_its_loader),
                T(cve_2025_23266_the_environment_of_the_container_has_no_effect),
                T(cve_2025_23267_links_of_the_image_do_not_redirect_ldconfig),
                T(a_replaced_ldconfig_has_no_proc_sys_or_dev),
                T(a_hook_that_takes_too_long_reports_it_and_ends_with_its_ldconfig),
                T(the_self_test_passes_and_leaves_nothing),
                T(a_self_test_that_may_not_mount_names_the_call),
                T(no_loader_of_the_image_is_named_by_the_hook),
                T(unknown_commands_are_refused),
                T(the_command_lines_of_nvidias_programs_are_accepted),
                T(a_container_of_runc_finds_mounted_libraries),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        free(program);
        free(probe);
        return r;
}
