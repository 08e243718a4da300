/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_TEXT = 1 << 20 };

static void keep(const char *path, const char *text) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
}

static int line_length(const char *s) {
        return (int)strcspn(s, "\n");
}

void golden_compare(const char *name, const char *text) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", GOLDEN_DIR, name);
        _cleanup_(freep) char *kept = NULL;
        struct err e;
        if (streq(getenv("GOLDEN"), "write"))
                keep(path, text);
        if (file_read(path, MAX_TEXT, &kept, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        const char *want = kept, *is = text;
        for (unsigned line = 1; *want || *is; line++) {
                int n = line_length(want), m = line_length(is);
                if (n != m || strncmp(want, is, (size_t)n) != 0)
                        fail_msg("%s:%u: is\n%.*s\nand should be\n%.*s", path, line, m, is, n, want);
                want += n + (want[n] != '\0');
                is += m + (is[m] != '\0');
        }
}
