/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

static char dir[] = "/tmp/test_file_XXXXXX";

static int make_dir(void **state) {
        (void)state;
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
        (void)state;
        _cleanup_(freep) char *cmd = xasprintf("rm -rf '%s'", dir);
        return system(cmd);
}

static size_t entries(const char *path) {
        size_t n = 0;
        DIR *d = opendir(path);
        for (struct dirent *f; (f = readdir(d));)
                n += f->d_name[0] != '.' || strlen(f->d_name) > 2;
        closedir(d);
        return n;
}

static void replaces_whole_files_and_leaves_no_temporaries(void **state) {
        (void)state;
        struct err e;
        struct stat st;
        _cleanup_(freep) char *path = file_join(dir, "a");
        assert_int_equal(file_replace(path, "one", 3, 0600, &e), 0);
        assert_int_equal(file_replace(path, "second", 6, 0640, &e), 0);
        _cleanup_(freep) char *text = NULL;
        size_t n;
        assert_int_equal(file_read(path, 100, &text, &n, &e), 0);
        assert_string_equal(text, "second");
        assert_int_equal(n, 6);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
        assert_int_equal(entries(dir), 1);
        assert_int_equal(file_remove(path, &e), 0);
        assert_int_equal(file_remove(path, &e), 0);
}

static void a_failed_replace_keeps_the_old_file(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *sub = file_join(dir, "is-a-folder");
        assert_int_equal(file_mkdirs(sub, 0755, &e), 0);
        assert_int_equal(file_replace(sub, "x", 1, 0600, &e), -1);
        assert_int_equal(entries(dir), 1);
        assert_int_equal(rmdir(sub), 0);
        assert_int_equal(file_replace("/nonexistent/x", "x", 1, 0600, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void refuses_links_fifos_and_large_files(void **state) {
        (void)state;
        struct err e;
        int fd;
        _cleanup_(freep) char *target = file_join(dir, "t"), *link = file_join(dir, "l"),
                              *fifo = file_join(dir, "f"), *text = NULL;
        assert_int_equal(file_replace(target, "0123456789", 10, 0600, &e), 0);
        assert_int_equal(symlink(target, link), 0);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        assert_int_equal(file_open_nofollow(link, &fd, &e), -1);
        assert_int_equal(file_open_nofollow(fifo, &fd, &e), -1);
        assert_int_equal(file_open_nofollow(target, &fd, &e), 0);
        assert_int_equal(file_read_fd(fd, target, 9, &text, NULL, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_int_equal(file_read_fd(fd, target, 10, &text, NULL, &e), 0);
        close(fd);
        unlink(link);
        unlink(fifo);
        unlink(target);
}

static void makes_folders_and_reads_the_boot_id(void **state) {
        (void)state;
        struct err e;
        char id[37];
        _cleanup_(freep) char *deep = file_join(dir, "x/y/z"), *f = file_join(deep, "boot_id");
        assert_int_equal(file_mkdirs(deep, 0750, &e), 0);
        assert_int_equal(file_mkdirs(deep, 0750, &e), 0);
        assert_int_equal(file_replace(f, "e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8\n", 37, 0600, &e), 0);
        assert_int_equal(file_boot_id(f, id, &e), 0);
        assert_string_equal(id, "e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8");
        assert_int_equal(file_replace(f, "\n", 1, 0600, &e), 0);
        assert_int_equal(file_boot_id(f, id, &e), -1);
        assert_int_equal(file_boot_id(FILE_BOOT_ID_PATH, id, &e), 0);
}

/* failure: the path of a folder is empty -> the error gives that reason */
static void a_folder_without_a_name_is_refused(void **state) {
        struct err e = { 0 };
        assert_int_equal(file_mkdirs("", 0755, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_string_equal(e.msg, "the path of a folder is empty");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(replaces_whole_files_and_leaves_no_temporaries),
                cmocka_unit_test(a_failed_replace_keeps_the_old_file),
                cmocka_unit_test(refuses_links_fifos_and_large_files),
                cmocka_unit_test(makes_folders_and_reads_the_boot_id),
                cmocka_unit_test(a_folder_without_a_name_is_refused),
        };
        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
