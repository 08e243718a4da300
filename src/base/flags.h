/* SPDX-License-Identifier: Apache-2.0 */
/* flags: parses a program's options from a table. Each option is a long flag, and an environment variable
 * with the same name in capitals. The command line has precedence over the environment, and the environment
 * over the default. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

enum flag_type { FLAG_STR, FLAG_INT, FLAG_BOOL, FLAG_DURATION_MS /* Go style: "15s", "1m30s", "250ms" */ };

struct flag {
        const char *name; /* "leader-election-enabled"; "v" is also accepted as -v N */
        const char *env;  /* NULL: derived from the name ("LEADER_ELECTION_ENABLED") */
        enum flag_type type;
        void *dest; /* const char ** | int64_t * | bool * | int64_t * ; holds the default before flags_parse
                     */
        bool required;
        const char *help;
        const char *alt_env; /* a second environment variable for the same option, or NULL */
        int64_t min, max;    /* of FLAG_INT, if max is not 0 */
};
/* A row of the table: FLAG(STR, "node-name", &node, "name of this node", .required = true). */
#define FLAG(t, n, d, h, ...)                                                                                \
        { .name = (n), .type = FLAG_##t, .dest = (d), .help = (h), __VA_ARGS__ }

/* The C type of the variable of a flag, for tables that also declare the variables. */
#define FLAG_C_STR const char *
#define FLAG_C_INT int64_t
#define FLAG_C_BOOL bool
#define FLAG_C_DURATION_MS int64_t

/* Parses the environment and argv. Accepts --name value, --name=value, --bool and -v N. Strings point into
 * argv or the environment. Stops at the first positional argument and returns its index in *ret_rest (argc
 * when there is none). --help sets *ret_help. */
int flags_parse(const struct flag *flags, int argc, char **argv, int *ret_rest, bool *ret_help,
                struct err *e);
void flags_usage(const struct flag *flags, FILE *to);
/* Logs all values in one line at level info. */
void flags_log(const struct flag *flags);
/* Appends the name of the flag's environment variable, or its value as set_from_env() reads it. */
void flag_env(const struct flag *f, struct buf *out);
void flag_value(const struct flag *f, struct buf *out);

extern const char program_version[]; /* of the whole project, such as "0.2.0" */
/* If "--version" is the only argument, prints "<program> <version>" and returns true; main() then ends with
 * success. Needs no required flag and no environment. */
bool version_asked(int argc, char **argv, const char *program);
