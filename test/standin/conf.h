/* SPDX-License-Identifier: Apache-2.0 */
/* conf: KEY=VALUE texts, and the knobs by which a test steers a stand-in.
 *
 * Blank lines and lines that start with '#' are skipped, white space around key and value and one pair of
 * double quotes around the value are dropped; of a key given twice the last one counts. Values point into the
 * object and die with it.
 *
 * Knobs are found at the running program itself: in the extended attribute user.standin of its file, then in
 * the file "<program>.conf" beside it (which wins). The attribute is there because a container gets the
 * program as a bind mount of this one file: what lies beside it on the host is out of sight, its inode is
 * not. Both can be changed while the program runs. */
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

/* Takes `text`, which comes from malloc. On a line without '=' returns its number, else 0. */
int conf_parse(struct conf *c, char *text);
/* 0, a negative errno when the file cannot be read, or the number of a bad line. */
int conf_load(struct conf *c, const char *path);
void conf_load_knobs(struct conf *c);
void conf_done(struct conf *c);

/* NULL where the key is missing. */
const char *conf_find(const struct conf *c, const char *key);
/* `otherwise` where the key is missing or empty. */
const char *conf_text(const struct conf *c, const char *key, const char *otherwise);
/* `otherwise` where the key is missing, empty or not a whole number. */
long conf_number(const struct conf *c, const char *key, long otherwise);

/* The whole file, NUL-terminated, or NULL with errno. */
char *conf_read_file(const char *path);
