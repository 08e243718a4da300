/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/ldconf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/in_root.h"

enum { DEPTH_MAX = 4, ENTRIES_MAX = 4096 };

static const char blanks[] = " \t\r\f\v";

static void take_folder(struct ldconf *c, const char *line, size_t n) {
        /* Very old loaders have "/usr/lib=libc6". */
        const char *equals = memchr(line, '=', n);
        if (equals)
                n = (size_t)(equals - line);
        while (n > 1 && (line[n - 1] == '/' || strchr(blanks, line[n - 1])))
                n--;
        for (size_t i = 0; i < c->n_folders; i++) {
                if (strlen(c->folders[i]) == n && memcmp(c->folders[i], line, n) == 0)
                        c->known[i] = true;
        }
}

static void take_include(const char *patterns, size_t n, ldconf_include_fn *include, void *u) {
        while (n) {
                size_t skip = 0, length = 0;
                char pattern[PATH_MAX];
                while (skip < n && strchr(blanks, patterns[skip]) && patterns[skip])
                        skip++;
                patterns += skip;
                n -= skip;
                while (length < n && patterns[length] && !strchr(blanks, patterns[length]))
                        length++;
                if (!length)
                        return; /* the end, or a byte 0, which is in no path */
                int made = *patterns == '/'
                                   ? snprintf(pattern, sizeof pattern, "%.*s", (int)length, patterns)
                                   : snprintf(pattern, sizeof pattern, "/etc/%.*s", (int)length, patterns);
                if ((size_t)made < sizeof pattern)
                        include(u, pattern);
                patterns += length;
                n -= length;
        }
}

static void ldconf_take_line(struct ldconf *c, const char *line, size_t n, ldconf_include_fn *include,
                             void *u) {
        static const char word[] = "include";
        const char *comment = memchr(line, '#', n);
        if (comment)
                n = (size_t)(comment - line);
        while (n && *line && strchr(blanks, *line)) {
                line++;
                n--;
        }
        if (n > strlen(word) && memcmp(line, word, strlen(word)) == 0 && line[strlen(word)] &&
            strchr(blanks, line[strlen(word)]))
                take_include(line + strlen(word), n - strlen(word), include, u);
        else if (n && *line == '/')
                take_folder(c, line, n);
}

void ldconf_parse(struct ldconf *c, const char *text, size_t n, ldconf_include_fn *include, void *u) {
        while (n) {
                const char *end = memchr(text, '\n', n);
                size_t length = end ? (size_t)(end - text) : n;
                ldconf_take_line(c, text, length, include, u);
                length += end != NULL;
                text += length;
                n -= length;
        }
}

/* ---- files ---- */

struct reading {
        struct ldconf *c;
        int root;
        unsigned depth;
};

static void ldconf_read_file(struct reading *r, const char *path);

/* Supports patterns in the last part only, as all distributions use them. */
static void include_files(void *u, const char *pattern) {
        struct reading *r = u;
        char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
        const char *slash = strrchr(pattern, '/');
        const struct dirent *entry;
        unsigned seen = 0;
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - pattern), pattern);
        if (strcmp(folder, "/etc/ld.so.conf.d") == 0 && fnmatch(slash + 1, "00-nvcr-0.conf", 0) == 0)
                r->c->includes_files = true;
        int fd = in_root(r->root, *folder ? folder : "/", O_RDONLY | O_DIRECTORY, 0);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                if (fd >= 0)
                        close(fd);
                return;
        }
        while ((entry = readdir(dir)) && seen++ < ENTRIES_MAX) {
                if (fnmatch(slash + 1, entry->d_name, FNM_PERIOD) != 0)
                        continue;
                snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
                ldconf_read_file(r, path);
        }
        closedir(dir);
}

static void ldconf_read_file(struct reading *r, const char *path) {
        static char texts[DEPTH_MAX][LDCONF_FILE_BYTES];
        struct stat st;
        if (r->depth == DEPTH_MAX || r->c->n_files == LDCONF_FILES_MAX)
                return;
        /* Do not wait for a writer if the path is a FIFO. */
        int fd = in_root(r->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return;
        r->c->n_files++;
        char *text = texts[r->depth];
        ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, text, LDCONF_FILE_BYTES) : -1;
        close(fd);
        /* Of a larger file, the last line may be incomplete. */
        if (n == LDCONF_FILE_BYTES)
                while (n && text[n - 1] != '\n')
                        n--;
        r->depth++;
        if (n > 0)
                ldconf_parse(r->c, text, (size_t)n, include_files, r);
        r->depth--;
}

void ldconf_read(struct ldconf *c, int root) {
        struct reading r = { c, root, 0 };
        ldconf_read_file(&r, "/etc/ld.so.conf");
}
