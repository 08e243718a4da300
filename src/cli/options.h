/* SPDX-License-Identifier: Apache-2.0 */
/* options: parses the command line. All commands have the common options; a command may have its own table,
 * too. The options of kubectl that choose a cluster and a user are collected for `kubectl proxy`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum option_type { OPTION_BOOL, OPTION_TEXT };

struct option {
        const char *name; /* without "--" */
        char letter;      /* 0: none */
        enum option_type type;
        void *dest;        /* bool * or const char **; NULL: the option is only passed to kubectl */
        const char *value; /* the name of the value in the help text; NULL for OPTION_BOOL */
        const char *help;
        bool passes; /* kubectl gets the option, too */
};

/* The values of the common options. */
struct options {
        bool help, all_namespaces, no_color, ascii;
        const char *ns;     /* NULL: not given */
        const char *output; /* "table" or "json" */
        const char *from;   /* the folder or file of a bundle; NULL: the cluster */
};
extern struct options options;
extern const struct option options_common[]; /* ends with a name of NULL */

struct options_parsed {
        const char **args, **kubectl; /* positional arguments, and those for kubectl */
        size_t n_args, n_kubectl;
};

/* Parses the arguments after the program's name. `own` is the table of the command; NULL: none. Options and
 * positional arguments may be mixed; "--" ends the options. The caller frees the two lists, whose strings are
 * those of argv, even after an error. ERR_INVALID: unknown option, or missing value. */
int options_parse(const struct option *own, int argc, char **argv, struct options_parsed *ret, struct err *e);
/* Whether the word is a common option whose value is the next word. */
bool options_takes_next(const char *word);

/* Whether a text can be the name of an image, which needs no quotation marks in YAML or only those of a
 * number. */
bool options_is_image(const char *text);
