/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

char *tree_new(void) {
        char *root = xstrdup("/tmp/test.XXXXXX");
        assert_non_null(mkdtemp(root));
        return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) {
        (void)st;
        (void)type;
        (void)f;
        return remove(path);
}

void tree_remove(char *root) {
        assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        free(root);
}

void tree_put(const char *root, const char *path, const char *text) {
        struct err e;
        _cleanup_(freep) char *p = file_join(root, path);
        _cleanup_(freep) char *dir = xstrndup(p, (size_t)(strrchr(p, '/') - p));
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        assert_int_equal(file_replace_volatile(p, text, strlen(text), 0755, &e), 0);
}

unsigned tree_entries(const char *root, const char *path) {
        _cleanup_(freep) char *p = file_join(root, path);
        unsigned n = 0;
        DIR *d = opendir(p);
        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}
