/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "driver_tree.h"
#include "hook/in_root.h"
#include "hook/ldconf.h"
#include "tree.h"

static const char *const folders[] = { "/usr/lib64", "/usr/lib64/vdpau", "/opt/x", "/" };
static bool known[ARRAY_LEN(folders)];
static struct ldconf c;
static char *root;
static int fd;

static int setup(void **state) {
        (void)state;
        memset(known, 0, sizeof known);
        c = (struct ldconf){ .folders = folders, .n_folders = ARRAY_LEN(folders), .known = known };
        root = tree_new();
        fd = in_root_open(root);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        close(fd);
        tree_remove(root);
        return 0;
}

static void included_files_count(void **state) {
        (void)state;
        tree_put(root, "etc/ld.so.conf",
                 "# comment\ninclude ld.so.conf.d/*.conf /etc/more.conf\n/usr/lib64/  # x\n");
        tree_put(root, "etc/ld.so.conf.d/a.conf", "  /opt/x=libc6\n");
        tree_put(root, "etc/ld.so.conf.d/b.txt", "/usr/lib64/vdpau\n");
        tree_put(root, "etc/more.conf", "include /etc/more.conf\nhwcap 1 nosegneg\n");
        ldconf_read(&c, fd);
        assert_true(known[0]);
        assert_false(known[1]);
        assert_true(known[2]);
        assert_true(c.includes_files);
}

static void a_folder_may_end_with_slashes_and_blanks(void **state) {
        static const struct {
                const char *line;
                size_t folder;
        } lines[] = { { "/usr/lib64", 0 }, { "/usr/lib64// \t/ ", 0 }, { "/", 3 }, { "//", 3 }, { "/ ", 3 } };
        for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
                memset(known, 0, sizeof known);
                tree_put(root, "etc/ld.so.conf", lines[i].line);
                ldconf_read(&c, fd);
                for (size_t k = 0; k < ARRAY_LEN(known); k++)
                        assert_int_equal(known[k], k == lines[i].folder);
        }
}

static char included[2 * PATH_MAX];

static void note_pattern(void *u, const char *pattern) {
        strcat(strcat(included, *included ? " " : ""), pattern);
}

/* The sanitizer finds a byte that is read behind the text. */
static const char *patterns(const char *text) {
        size_t n = strlen(text);
        char *exact = memcpy(malloc(n), text, n);
        *included = '\0';
        ldconf_parse(&c, exact, n, note_pattern, NULL);
        free(exact);
        return included;
}

static void an_include_may_have_several_patterns(void **state) {
        assert_string_equal(patterns("include a.conf"), "/etc/a.conf");
        assert_string_equal(patterns("include /a.conf  b/*.conf\t/\n"), "/a.conf /etc/b/*.conf /");
        assert_string_equal(patterns("include /a"), "/a");
        assert_string_equal(patterns("include 0 ."), "/etc/0 /etc/.");
        assert_string_equal(patterns("include a  "), "/etc/a");
        assert_string_equal(patterns("include"), "");
        assert_string_equal(patterns("include "), "");
        assert_string_equal(patterns("included a"), "");
}

static void a_pattern_is_shorter_than_PATH_MAX(void **state) {
        for (size_t n = PATH_MAX - 1; n <= PATH_MAX; n++) {
                char text[PATH_MAX + 16] = "include /";
                memset(text + strlen(text), 'x', n - 1);
                assert_string_equal(patterns(text), n < PATH_MAX ? strchr(text, '/') : "");
        }
}

static void a_missing_file_does_not_count(void **state) {
        ldconf_read(&c, fd);
        assert_int_equal(c.n_files, 0);
        tree_put(root, "etc/ld.so.conf", "include x/*\ninclude y.conf\n");
        ldconf_read(&c, fd);
        assert_int_equal(c.n_files, 1);
}

/* failure: a file of the loader's configuration is larger than 64 KiB -> the line at the limit is ignored */
static void the_line_at_the_limit_is_ignored(void **state) {
        static const char end[] = "\n/usr/lib64\n/opt/x";
        static char text[LDCONF_FILE_BYTES + 16];
        memset(text, ' ', LDCONF_FILE_BYTES);
        memcpy(text + LDCONF_FILE_BYTES - strlen(end), end, strlen(end));
        strcpy(text + LDCONF_FILE_BYTES, "yz\n");
        tree_put(root, "etc/ld.so.conf", text);
        ldconf_read(&c, fd);
        assert_true(known[0]);
        assert_false(known[2]);
}

/* failure: an image has a folder with endless configurations -> 4096 entries are compared with a pattern */
static void a_folder_has_at_most_4096_entries(void **state) {
        enum { LIMIT = 4096 };
        char path[64], names[2][32] = { "" };
        struct dirent *entry;
        tree_put(root, "etc/d/0", "");
        for (int i = 1; i < LIMIT + 10; i++) {
                snprintf(path, sizeof path, "etc/d/%d", i);
                int new = openat(fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                assert_true(new >= 0);
                close(new);
        }
        DIR *dir = fdopendir(openat(fd, "etc/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (int i = 1; (entry = readdir(dir)); i++)
                if (i == LIMIT || i == LIMIT + 1)
                        snprintf(names[i - LIMIT], sizeof names[0], "%.31s", entry->d_name);
        closedir(dir);
        for (int i = 0; i < 2; i++) {
                snprintf(path, sizeof path, "etc/d/%s", names[i]);
                tree_put(root, path, folders[2 * i]);
        }
        snprintf(path, sizeof path, "include d/%s d/%s", names[0], names[1]);
        tree_put(root, "etc/ld.so.conf", path);
        ldconf_read(&c, fd);
        assert_true(known[0]);
        assert_false(known[2]);
}

static void a_configuration_without_includes_is_recognized(void **state) {
        (void)state;
        ldconf_read(&c, fd);
        assert_false(c.includes_files);
        tree_put(root, "etc/ld.so.conf", "/usr/lib64");
        ldconf_read(&c, fd);
        assert_true(known[0]);
        assert_false(c.includes_files);
}

/* The files of the image may be links, devices, FIFOs or folders. */
static void only_regular_files_are_read(void **state) {
        (void)state;
        tree_put(root, "etc/ld.so.conf", "include /etc/*.conf\n");
        driver_tree_link(root, "etc/a.conf", "/../../../../../../etc/ld.so.conf");
        driver_tree_link(root, "etc/b.conf", "/dev/zero");
        _cleanup_(freep) char *fifo = xasprintf("%s/etc/c.conf", root);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        tree_put(root, "etc/d.conf/x", "");
        ldconf_read(&c, fd);
        assert_false(known[0]);
        assert_true(c.n_files < LDCONF_FILES_MAX);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(included_files_count),
                T(a_folder_may_end_with_slashes_and_blanks),
                T(an_include_may_have_several_patterns),
                T(a_pattern_is_shorter_than_PATH_MAX),
                T(a_missing_file_does_not_count),
                T(the_line_at_the_limit_is_ignored),
                T(a_folder_has_at_most_4096_entries),
                T(a_configuration_without_includes_is_recognized),
                T(only_regular_files_are_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
