/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/oci_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hook/hook_log.h"

enum { DEPTH_MAX = 64 };

/* ---- a JSON parser that keeps only one string ---- */

struct reader {
        const char *p, *end;
        unsigned depth;
};

static void oci_state_skip_blanks(struct reader *r) {
        while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
                r->p++;
}

static bool take_next(struct reader *r, char c) {
        if (r->p == r->end || *r->p != c)
                return false;
        r->p++;
        return true;
}

static bool oci_state_take(struct reader *r, char c) {
        oci_state_skip_blanks(r);
        return take_next(r, c);
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static bool take_hex4(struct reader *r, uint32_t *ret) {
        *ret = 0;
        for (int i = 0; i < 4; i++) {
                int digit = r->p < r->end ? hex_digit(*r->p++) : -1;
                if (digit < 0)
                        return false;
                *ret = *ret << 4 | (uint32_t)digit;
        }
        return true;
}

/* The destination of a string; without a destination the string is skipped. */
struct sink {
        char *to;
        size_t size, n;
        bool bad; /* the string does not fit, or is not valid in C */
};

static void oci_state_put(struct sink *s, uint32_t byte) {
        if (!s)
                return;
        if (byte == 0 || s->n + 1 >= s->size)
                s->bad = true;
        else
                s->to[s->n++] = (char)byte;
}

static void put_character(struct sink *s, uint32_t c) {
        if (c < 0x80) {
                oci_state_put(s, c);
        } else if (c < 0x800) {
                oci_state_put(s, 0xc0 | c >> 6);
                oci_state_put(s, 0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
                oci_state_put(s, 0xe0 | c >> 12);
                oci_state_put(s, 0x80 | (c >> 6 & 0x3f));
                oci_state_put(s, 0x80 | (c & 0x3f));
        } else {
                oci_state_put(s, 0xf0 | c >> 18);
                oci_state_put(s, 0x80 | (c >> 12 & 0x3f));
                oci_state_put(s, 0x80 | (c >> 6 & 0x3f));
                oci_state_put(s, 0x80 | (c & 0x3f));
        }
}

/* Reads the digits behind the u of an escape. A surrogate must be followed by its other half. */
static bool take_unicode(struct reader *r, struct sink *s) {
        uint32_t c, low;
        if (!take_hex4(r, &c))
                return false;
        if (c >= 0xd800 && c < 0xe000) {
                if (c >= 0xdc00 || !take_next(r, '\\') || !take_next(r, 'u') || !take_hex4(r, &low) ||
                    low < 0xdc00 || low >= 0xe000)
                        return false;
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
        put_character(s, c);
        return true;
}

static bool oci_state_take_escape(struct reader *r, struct sink *s) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        char c = r->p < r->end ? *r->p++ : '\0';
        const char *known = c ? strchr(from, c) : NULL;
        if (c == 'u')
                return take_unicode(r, s);
        if (!known)
                return false;
        oci_state_put(s, (unsigned char)to[known - from]);
        return true;
}

static bool oci_state_take_string(struct reader *r, struct sink *s) {
        if (!oci_state_take(r, '"'))
                return false;
        while (r->p < r->end && *r->p != '"') {
                unsigned char c = (unsigned char)*r->p++;
                if (c < ' ' || (c == '\\' && !oci_state_take_escape(r, s)))
                        return false;
                if (c != '\\')
                        oci_state_put(s, c);
        }
        if (s)
                s->to[s->n] = '\0';
        return oci_state_take(r, '"');
}

static bool skip_value(struct reader *r);

static bool skip_list(struct reader *r, char end, bool members) {
        if (++r->depth > DEPTH_MAX)
                return false;
        if (!oci_state_take(r, end)) {
                do {
                        if ((members && (!oci_state_take_string(r, NULL) || !oci_state_take(r, ':'))) ||
                            !skip_value(r))
                                return false;
                } while (oci_state_take(r, ','));
                if (!oci_state_take(r, end))
                        return false;
        }
        r->depth--;
        return true;
}

/* Skips a number, true, false or null. */
static bool skip_word(struct reader *r) {
        const char *start = r->p;
        while (r->p < r->end && *r->p && strchr("+-.0123456789Eaeflnrstu", *r->p))
                r->p++;
        return r->p > start;
}

static bool skip_value(struct reader *r) {
        oci_state_skip_blanks(r);
        if (r->p == r->end)
                return false;
        if (*r->p == '"')
                return oci_state_take_string(r, NULL);
        if (oci_state_take(r, '{'))
                return skip_list(r, '}', true);
        if (oci_state_take(r, '['))
                return skip_list(r, ']', false);
        return skip_word(r);
}

/* Advances behind the colon of member `name` of the object that begins here. 1: found. 0: the object does not
 * have it, and has been skipped. -1: the text is not JSON. The first of several members counts. */
static int oci_state_enter(struct reader *r, const char *name) {
        char key[64];
        if (!oci_state_take(r, '{'))
                return -1;
        if (oci_state_take(r, '}'))
                return 0;
        do {
                struct sink s = { key, sizeof key, 0, false };
                if (!oci_state_take_string(r, &s) || !oci_state_take(r, ':'))
                        return -1;
                if (!s.bad && strcmp(key, name) == 0)
                        return 1;
                if (!skip_value(r))
                        return -1;
        } while (oci_state_take(r, ','));
        return oci_state_take(r, '}') ? 0 : -1;
}

int oci_json_find(const char *text, size_t n, const char *a, const char *b, char *ret, size_t size) {
        struct reader r = { text, text + n, 0 };
        struct sink s = { ret, size, 0, false };
        int there = oci_state_enter(&r, a);
        if (there > 0 && b) {
                oci_state_skip_blanks(&r);
                if (r.p == r.end)
                        return -1;
                there = *r.p == '{' ? oci_state_enter(&r, b) : 0;
        }
        if (there <= 0)
                return there;
        oci_state_skip_blanks(&r);
        if (r.p == r.end)
                return -1;
        if (*r.p != '"')
                return 0;
        return oci_state_take_string(&r, &s) && !s.bad ? 1 : -1;
}

/* ---- files ---- */

/* Reads the whole file. The caller frees the terminated text. */
static char *read_all(int fd, const char *what, size_t limit, size_t *ret_n) {
        size_t n = 0, cap = 16384;
        char *text = malloc(cap);
        while (text) {
                ssize_t r = read(fd, text + n, cap - n);
                if (r < 0) {
                        if (errno == EINTR)
                                continue;
                        hook_log_errno("read %s", what);
                        break;
                }
                if (r == 0) {
                        *ret_n = n;
                        return text;
                }
                n += (size_t)r;
                if (n > limit) {
                        hook_log("%s is larger than %zu bytes", what, limit);
                        break;
                }
                if (n == cap) {
                        char *more = realloc(text, cap *= 2);
                        if (!more)
                                break;
                        text = more;
                }
        }
        free(text);
        return NULL;
}

/* `path` is from config.json, and may be relative to the bundle. */
static int oci_state_join(const char *bundle, const char *path, char ret[static OCI_PATH_MAX]) {
        int n = *path == '/' ? snprintf(ret, OCI_PATH_MAX, "%s", path)
                             : snprintf(ret, OCI_PATH_MAX, "%s/%s", bundle, path);
        return (size_t)n < OCI_PATH_MAX ? 0 : hook_log("a path in the bundle '%.64s...' is too long", bundle);
}

static int from_bundle(const char *bundle, char ret[static OCI_PATH_MAX]) {
        char config[OCI_PATH_MAX], path[OCI_PATH_MAX];
        size_t n = 0;
        if (*bundle != '/')
                return hook_log("the runtime's state has a bundle '%s', which is not an absolute path",
                                bundle);
        if (oci_state_join(bundle, "config.json", config) < 0)
                return -1;
        int fd = open(config, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return hook_log_errno("open '%s'", config);
        char *text = read_all(fd, config, OCI_CONFIG_MAX, &n);
        close(fd);
        int found = text ? oci_json_find(text, n, "root", "path", path, sizeof path) : -1;
        free(text);
        if (found != 1 || !*path)
                return hook_log("'%s' lacks the root of the container (root.path)", config);
        return oci_state_join(bundle, path, ret);
}

int oci_state_root(int fd, char ret[static OCI_PATH_MAX]) {
        char bundle[OCI_PATH_MAX];
        size_t n = 0;
        char *text = read_all(fd, "the container's state", OCI_STATE_MAX, &n);
        if (!text)
                return -1;
        /* crun writes the root itself. */
        int root = oci_json_find(text, n, "root", NULL, ret, OCI_PATH_MAX);
        int there = oci_json_find(text, n, "bundle", NULL, bundle, sizeof bundle);
        free(text);
        if (root > 0 && *ret == '/')
                return 0;
        if (there != 1)
                return hook_log("the runtime's state on standard input has no bundle: this program is a "
                                "createContainer hook and "
                                "is not for people to run");
        return from_bundle(bundle, ret);
}
