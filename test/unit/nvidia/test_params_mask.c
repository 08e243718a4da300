/* SPDX-License-Identifier: Apache-2.0 */
/* Another file of /proc, whose text a process can set, replaces the driver's parameters: the domain name of
 * the UTS namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvidia/params_mask.h"

#define FOLDER "sys/kernel"
#define FILE_NAME "domainname"
#define PATH "/proc/" FOLDER "/" FILE_NAME
#define ON "ModifyDeviceFiles: 1"

static bool namespaces; /* this machine allows our own namespaces */

static void reads(const char *path, char text[static 256]) {
        int fd = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, text, 255);
        if (fd >= 0)
                close(fd);
        text[n > 0 ? n : 0] = '\0';
}

/* The mounts on PATH. The machine's other mounts may change. */
static unsigned mounts_there(void) {
        char line[4096];
        unsigned n = 0;
        FILE *f = fopen("/proc/self/mountinfo", "r");
        while (f && fgets(line, sizeof line, f))
                n += strstr(line, " " PATH " ") != NULL;
        if (f)
                fclose(f);
        return n;
}

#define EXPECT(x)                                                                                            \
        do {                                                                                                 \
                if (!(x)) {                                                                                  \
                        fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #x, why);                    \
                        _exit(1);                                                                            \
                }                                                                                            \
        } while (0)

static void cover_twice(void) {
        char why[PARAMS_MASK_WHY] = "", text[256];
        struct statvfs v;
        EXPECT(params_mask_unshared(FOLDER, FILE_NAME, why) == 0);
        reads(PATH, text);
        EXPECT(strcmp(text, "ModifyDeviceFiles: 0\n") == 0);
        EXPECT(statvfs(PATH, &v) == 0 && (v.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC)) ==
                                                 (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC));
        EXPECT(open(PATH, O_WRONLY) < 0);
        unsigned n = mounts_there();
        int folder = open("/proc/" FOLDER, O_PATH | O_DIRECTORY);
        EXPECT(params_mask(folder, FILE_NAME, why) == 0);
        EXPECT(mounts_there() == n);
        /* Only that file is covered. */
        EXPECT(umount2(PATH, MNT_DETACH) == 0);
        reads(PATH, text);
        EXPECT(strcmp(text, ON "\n") == 0);
        EXPECT(access("/proc/sys/kernel/osrelease", R_OK) == 0);
        _exit(0);
}

static void in_a_child(void (*f)(void)) {
        int status = -1;
        if (!namespaces)
                skip();
        assert_int_equal(setdomainname(ON, strlen(ON)), 0);
        pid_t child = fork();
        if (child == 0)
                f();
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/* failure: the driver's parameters are covered twice in a container -> only that container is affected */
static void the_file_is_covered_in_its_namespace_only(void **state) {
        char text[256];
        (void)state;
        unsigned n = mounts_there();
        in_a_child(cover_twice);
        assert_int_equal(mounts_there(), n);
        reads(PATH, text);
        assert_string_equal(text, ON "\n");
}

static void leave_as_it_is(void) {
        char why[PARAMS_MASK_WHY] = "";
        unsigned n = mounts_there();
        EXPECT(setdomainname("ModifyDeviceFiles: 10", 21) == 0);
        EXPECT(params_mask_unshared(FOLDER, FILE_NAME, why) == 0);
        EXPECT(params_mask_unshared(FOLDER, "no-such-file", why) == 0);
        EXPECT(params_mask_unshared("no-such-folder", FILE_NAME, why) == 0);
        EXPECT(mounts_there() == n);
        _exit(0);
}

/* failure: a container has no driver parameters -> nothing changes */
static void other_texts_and_missing_files_are_left_alone(void **state) {
        (void)state;
        in_a_child(leave_as_it_is);
}

/* A volume over /proc could have such a file. */
static void refuse_what_is_not_the_kernels(void) {
        static const char text[] = "Other: 1\nModifyDeviceFiles: 1\n";
        char why[PARAMS_MASK_WHY] = "", dir[] = "/tmp/params.XXXXXX", path[64];
        EXPECT(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/params", dir);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        EXPECT(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        int folder = open(dir, O_PATH | O_DIRECTORY);
        EXPECT(params_mask(folder, "params", why) == -1 && strstr(why, "not the kernel's file"));
        EXPECT(pwrite(fd, "0", 1, (off_t)strlen(text) - 2) == 1);
        EXPECT(params_mask(folder, "params", why) == 0);
        unlink(path);
        EXPECT(symlink("/etc/passwd", path) == 0);
        EXPECT(params_mask(folder, "params", why) == -1 && strncmp(why, "open: ", 6) == 0);
        unlink(path);
        rmdir(dir);
        _exit(0);
}

/* failure: the parameters of a container are not the kernel's file -> they are refused */
static void a_file_that_is_not_the_kernels_is_refused_unless_it_contains_0(void **state) {
        (void)state;
        in_a_child(refuse_what_is_not_the_kernels);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_file_is_covered_in_its_namespace_only),
                cmocka_unit_test(other_texts_and_missing_files_are_left_alone),
                cmocka_unit_test(a_file_that_is_not_the_kernels_is_refused_unless_it_contains_0),
        };
        namespaces = unshare(CLONE_NEWUTS) == 0;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
