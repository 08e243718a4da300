/* SPDX-License-Identifier: Apache-2.0 */
#include "conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { CONF_MAX_BYTES = 1 << 20 };

static void *must(void *p) {
        if (!p)
                abort();
        return p;
}

char *conf_read_file(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n = 0, cap = 4096;
        char *text;

        if (fd < 0)
                return NULL;
        text = must(malloc(cap));
        for (;;) {
                ssize_t got = read(fd, text + n, cap - n - 1);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0 || n + (size_t)got > CONF_MAX_BYTES) {
                        int error = got < 0 ? errno : EFBIG;

                        free(text);
                        close(fd);
                        errno = error;
                        return NULL;
                }
                if (got == 0)
                        break;
                n += (size_t)got;
                if (cap - n < 2)
                        text = must(realloc(text, cap *= 2));
        }
        close(fd);
        text[n] = '\0';
        return text;
}

static char *trim(char *s) {
        char *end;

        while (isspace((unsigned char)*s))
                s++;
        end = s + strlen(s);
        while (end > s && isspace((unsigned char)end[-1]))
                *--end = '\0';
        return s;
}

static char *unquote(char *s) {
        size_t n = strlen(s);

        if (n < 2 || s[0] != '"' || s[n - 1] != '"')
                return s;
        s[n - 1] = '\0';
        return s + 1;
}

int conf_parse(struct conf *c, char *text) {
        char *rest = text;
        char *raw;
        int number = 0, bad = 0;

        *c = (struct conf){ .text = text };
        while ((raw = strsep(&rest, "\n"))) {
                char *line = trim(raw);
                char *equals = strchr(line, '=');

                number++;
                if (*line == '\0' || *line == '#')
                        continue;
                if (!equals) {
                        bad = bad ? bad : number;
                        continue;
                }
                *equals = '\0';
                c->v = must(realloc(c->v, (c->n + 1) * sizeof(*c->v)));
                c->v[c->n++] = (struct conf_pair){ trim(line), unquote(trim(equals + 1)) };
        }
        return bad;
}

int conf_load(struct conf *c, const char *path) {
        char *text = conf_read_file(path);

        *c = (struct conf){ 0 };
        return text ? conf_parse(c, text) : -errno;
}

void conf_load_knobs(struct conf *c) {
        static const char self[] = "/proc/self/exe";
        char path[PATH_MAX + sizeof ".conf"];
        char inode[4097];
        ssize_t n_inode = getxattr(self, CONF_XATTR, inode, sizeof(inode) - 1);
        ssize_t n_path = readlink(self, path, PATH_MAX);
        char *beside = NULL;
        char *text = NULL;

        inode[n_inode > 0 ? n_inode : 0] = '\0';
        if (n_path > 0) {
                memcpy(path + n_path, ".conf", sizeof ".conf");
                beside = conf_read_file(path);
        }
        if (asprintf(&text, "%s\n%s\n", inode, beside ? beside : "") < 0)
                abort();
        free(beside);
        conf_parse(c, text);
}

void conf_done(struct conf *c) {
        free(c->v);
        free(c->text);
        *c = (struct conf){ 0 };
}

const char *conf_find(const struct conf *c, const char *key) {
        for (size_t i = c->n; i-- > 0;)
                if (!strcmp(c->v[i].key, key))
                        return c->v[i].value;
        return NULL;
}

const char *conf_text(const struct conf *c, const char *key, const char *otherwise) {
        const char *value = conf_find(c, key);

        return value && *value ? value : otherwise;
}

long conf_number(const struct conf *c, const char *key, long otherwise) {
        const char *value = conf_find(c, key);
        char *end;
        long number;

        if (!value || !*value)
                return otherwise;
        errno = 0;
        number = strtol(value, &end, 0);
        return errno || *end ? otherwise : number;
}
