/* SPDX-License-Identifier: Apache-2.0 */
/* standin-knob FILE [KEY=VALUE | KEY=]...: sets, removes (empty value) and prints the knobs in the extended
 * attribute of a stand-in. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "conf.h"

static int fail(const char *file, const char *what) {
        fprintf(stderr, "standin-knob: %s: %s: %s\n", file, what, strerror(errno));
        return 1;
}

/* A later argument has the same key. */
static bool replaced(const char *key, size_t n_key, char **argv, int argc) {
        for (int i = 0; i < argc; i++)
                if (!strncmp(argv[i], key, n_key) && argv[i][n_key] == '=')
                        return true;
        return false;
}

int main(int argc, char **argv) {
        char old[4097];
        char *text = NULL;
        size_t n_text = 0;
        struct conf c;
        FILE *out;
        ssize_t n;

        if (argc < 2) {
                fprintf(stderr, "usage: standin-knob FILE [KEY=VALUE | KEY=]...\n");
                return 2;
        }
        n = getxattr(argv[1], CONF_XATTR, old, sizeof(old) - 1);
        if (n < 0 && errno != ENODATA)
                return fail(argv[1], "cannot read " CONF_XATTR);
        old[n > 0 ? n : 0] = '\0';
        out = open_memstream(&text, &n_text);
        if (!out || conf_parse(&c, strdup(old)) != 0)
                return fail(argv[1], "bad knobs");
        for (size_t i = 0; i < c.n; i++)
                if (!replaced(c.v[i].key, strlen(c.v[i].key), argv + 2, argc - 2))
                        fprintf(out, "%s=%s\n", c.v[i].key, c.v[i].value);
        for (int i = 2; i < argc; i++) {
                const char *equals = strchr(argv[i], '=');

                if (!equals || equals == argv[i]) {
                        fprintf(stderr, "standin-knob: '%s' is not KEY=VALUE\n", argv[i]);
                        return 2;
                }
                if (equals[1] && !replaced(argv[i], (size_t)(equals - argv[i]), argv + i + 1, argc - i - 1))
                        fprintf(out, "%s\n", argv[i]);
        }
        conf_done(&c);
        if (fclose(out))
                return fail(argv[1], "out of memory");
        if (argc > 2 && setxattr(argv[1], CONF_XATTR, text, n_text, 0) < 0)
                return fail(argv[1], "cannot write " CONF_XATTR);
        fputs(text, stdout);
        free(text);
        return 0;
}
