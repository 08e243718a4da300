/* SPDX-License-Identifier: Apache-2.0 */
/* flags: a table of options. Each is a long flag and the environment variable of the same name in capitals.
 * The command line has precedence over the environment, and the environment over the default. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum flag_type { FLAG_STR, FLAG_INT, FLAG_BOOL, FLAG_DURATION_MS /* Go style: "15s", "1m30s", "250ms" */ };

struct flag {
        const char *name; /* "leader-election-enabled"; "v" is also accepted as -v N */
        const char *env;  /* NULL: derived from the name ("LEADER_ELECTION_ENABLED") */
        enum flag_type type;
        void *dest; /* const char ** | int64_t * | bool * | int64_t * ; holds the default before flags_parse
                     */
        bool required;
        const char *help;
        const char *alt_env; /* a second variable that is read, too, or NULL */
};
/* A row: FLAG(STR, "node-name", &node, "name of this node", .required = true). */
#define FLAG(t, n, d, h, ...)                                                                                \
        { .name = (n), .type = FLAG_##t, .dest = (d), .help = (h), __VA_ARGS__ }

/* Accepts --name value, --name=value, --bool, -v N. Strings point into argv or the environment. Stops at the
 * first positional argument and returns its index in *ret_rest (argc when none). --help sets *ret_help. */
int flags_parse(const struct flag *flags, int argc, char **argv, int *ret_rest, bool *ret_help,
                struct err *e);
void flags_usage(const struct flag *flags, FILE *to);
/* Logs all values in one line, at info. */
void flags_log(const struct flag *flags);

extern const char version[]; /* of the whole project, such as "0.1.0" */
/* Whether "--version" is the only argument: then it prints "<program> <version>", and main() ends with
 * success. This needs no required flag and no environment. */
bool version_asked(int argc, char **argv, const char *program);
