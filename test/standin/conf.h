/* SPDX-License-Identifier: Apache-2.0 */
/* conf: KEY=VALUE texts, and the knobs by which a test controls a stand-in.
 *
 * Blank lines and lines that start with '#' are skipped. White space around key and value, and one pair of
 * double quotes around the value, are dropped. The last value of a key counts. Values point into the object,
 * and are valid as long as it.
 *
 * The knobs belong to the file of the running program. They are in its extended attribute user.standin, and
 * in the file "<program>.conf" beside it, which takes precedence. The attribute exists because a container
 * gets the program as a bind mount of this one file: it sees the inode, but no file beside it. Both can be
 * changed while the program runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONF_XATTR "user.standin"

struct conf_pair {
        const char *key, *value;
};
struct conf {
        char *text;
        struct conf_pair *v;
        size_t n;
};

/* Takes `text`, which comes from malloc. Returns 0, or the number of the first line without '='. */
int conf_parse(struct conf *c, char *text);
/* Returns 0, a negative errno if the file cannot be read, or the number of a bad line. */
int conf_load(struct conf *c, const char *path);
void conf_load_knobs(struct conf *c);
void conf_done(struct conf *c);

/* NULL if the key is missing. */
const char *conf_find(const struct conf *c, const char *key);
/* `otherwise` if the key is missing or empty. */
const char *conf_text(const struct conf *c, const char *key, const char *otherwise);
/* `otherwise` if the key is missing, empty or not an integer. */
long conf_number(const struct conf *c, const char *key, long otherwise);

/* Returns the whole file, NUL-terminated, or NULL with errno. The caller frees it. */
char *conf_read_file(const char *path);
