/* SPDX-License-Identifier: Apache-2.0 */
/* command: what every command of the tool gets and returns. To add a command, define a struct command in its
 * own file, and list it in cli/commands.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/kubectl_run.h"
#include "cli/options.h"
#include "cli/source.h"
#include "cli/term.h"
#include "cli/view.h"

/* The exit codes. */
enum {
        COMMAND_FINE = 0,
        COMMAND_PROBLEM = 1, /* the output names a cause or a problem */
        COMMAND_FAILED =
                2,         /* wrong usage or another error, for example no API server or a list that failed */
        COMMAND_DENIED = 3 /* missing permissions prevented an answer */
};

struct cli {
        const char **args; /* positional arguments behind the name of the command */
        size_t n_args;
        struct kubectl kubectl; /* with the options of the user */
        struct source *source; /* NULL unless the command reads */
        struct view v;         /* only if the command reads */
        struct term t;         /* the output, which main() prints */
        struct arena *a;
};

struct command {
        const char *name, *args; /* "why", "[pod/|job/]NAME" */
        const char *summary;     /* one line for the list of commands */
        const char *text; /* paragraphs for the help text, separated by "\n\n"; lines that begin with a space
                             are examples */
        const struct option *options; /* its own options; NULL: none */
        bool reads;                   /* it reads a cluster or a bundle */
        bool no_bundle;               /* it cannot read a bundle */
        void (*page)(struct buf *out); /* appends to its section of the documentation; NULL: nothing */
        int (*run)(struct cli *c);    /* returns an exit code */
};

extern const struct command *const command_list[]; /* ends with NULL; the first one is the default */
const struct command *command_find(const char *name);

/* Reports wrong usage, or another error, on stderr. Returns COMMAND_FAILED. */
int command_usage(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes a file. A new file can only be read by the user, because names of other tenants may be in it. With
 * `replaces`, the file may exist, and keeps its permissions. */
int command_write(const char *path, bool replaces, struct str text, struct err *e);
/* Prints the output that has been built so far, and empties it. Returns -1 after an error, which it reports
 * unless the reader has closed the pipe. */
int command_flush(struct cli *c);
/* Whether these lists of the whole cluster were read completely. If not, reports them on stderr, and returns
 * the exit code. */
int command_needs(const struct cli *c, const char *command, const enum view_kind *kinds, size_t n);

/* Add the help text of a command, or of the tool (NULL), as text for a terminal, or as the page of the
 * documentation, or as the man page of the tool. */
void command_help(struct buf *out, const struct command *command);
void command_page(struct buf *out);
void command_man(struct buf *out);
