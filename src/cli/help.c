/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define PLUGIN "kubectl compute-domains"
static const char about[] = "Shows why pods that use ComputeDomains do not start, and the state of the "
                            "driver. It reads with the caller's own "
                            "permissions, through `kubectl proxy`. Only `test` writes, and "
                            "only `doctor --node` runs a program in a pod.";
static const struct {
        int code;
        const char *text;
} exits[] = {
        { COMMAND_FINE, "everything is fine" },
        { COMMAND_PROBLEM, "the output names a cause or a problem" },
        { COMMAND_FAILED, "wrong usage or another error, for example no API server or a list that failed" },
        { COMMAND_DENIED, "missing permissions prevented an answer" },
};

/* Adds words, with lines of at most `width` columns after an indent. */
static void add_wrapped(struct buf *out, const char *text, size_t n, size_t indent, size_t width) {
        size_t at = 0;
        for (size_t i = 0; i < n;) {
                size_t k = 0;
                while (i + k < n && text[i + k] != ' ')
                        k++;
                if (at && at + 1 + k > width) {
                        buf_addf(out, "\n%*s", (int)indent, "");
                        at = 0;
                } else if (at) {
                        buf_addc(out, ' ');
                        at++;
                }
                buf_add(out, text + i, k);
                at += k;
                for (i += k; i < n && text[i] == ' '; i++)
                        ;
        }
        buf_addc(out, '\n');
}

/* Adds the paragraphs of a text. Examples, whose lines begin with a space, stay as they are. */
static void add_text(struct buf *out, const char *text, bool page) {
        for (const char *p = text; *p;) {
                const char *end = strstr(p, "\n\n");
                size_t n = end ? (size_t)(end - p) : strlen(p);
                if (*p == ' ') {
                        for (size_t i = 0; i < n;) {
                                const char *line = memchr(p + i, '\n', n - i);
                                size_t k = line ? (size_t)(line - p) - i : n - i;
                                buf_addf(out, "%s%.*s\n", page ? "   " : " ", (int)k, p + i);
                                i += k + 1;
                        }
                } else {
                        add_wrapped(out, p, n, 0, page ? 109 : 79);
                }
                p += n;
                while (*p == '\n')
                        p++;
                if (*p)
                        buf_addc(out, '\n');
        }
}

/* Adds an option to a text. `name`: "-o, --output FORMAT". */
typedef void(option_fn)(struct buf *out, const struct option *o, const struct buf *name);

static void option_name(const struct option *o, struct buf *out) {
        if (o->letter)
                buf_addf(out, "-%c, ", o->letter);
        buf_addf(out, "--%s", o->name);
        if (o->value)
                buf_addf(out, " %s", o->value);
}

/* Adds the options that kubectl gets (`passed`), or all others. `list` may be NULL. */
static void each_option(struct buf *out, const struct option *list, bool passed, option_fn *add) {
        for (; list && list->name; list++) {
                _cleanup_(buf_done) struct buf name = BUF_INIT(1024);
                bool only_passed = !list->dest;
                if (only_passed != passed)
                        continue;
                option_name(list, &name);
                add(out, list, &name);
        }
}

static void add_option(struct buf *out, const struct option *o, const struct buf *name) {
        buf_addf(out, "  %-28s ", buf_str(name));
        if (name->n > 28)
                buf_addf(out, "\n%*s", 31, "");
        add_wrapped(out, o->help, strlen(o->help), 31, 48);
}

static void add_exits(struct buf *out) {
        buf_adds(out, "\nExit codes:\n");
        for (size_t i = 0; i < ARRAY_LEN(exits); i++)
                buf_addf(out, "  %d  %s\n", exits[i].code, exits[i].text);
}

void command_help(struct buf *out, const struct command *command) {
        if (command) {
                buf_addf(out, "Usage: " PLUGIN " %s%s%s [OPTION...]\n\n", command->name,
                         *command->args ? " " : "", command->args);
                add_text(out, command->text, false);
                if (command->options) {
                        buf_adds(out, "\nOptions of this command:\n");
                        each_option(out, command->options, false, add_option);
                }
        } else {
                buf_adds(out, "Usage: " PLUGIN " [COMMAND] [OPTION...]\n\n");
                add_text(out, about, false);
                buf_adds(out, "\nCommands:\n");
                for (const struct command *const *x = command_list; *x; x++)
                        buf_addf(out, "  %-11s %s\n", (*x)->name, (*x)->summary);
                buf_adds(out, "\n" PLUGIN " COMMAND --help describes a command.\n");
        }
        buf_adds(out, "\nOptions:\n");
        each_option(out, options_common, false, add_option);
        if (!command) {
                buf_adds(out, "\nOptions of kubectl:\n");
                each_option(out, options_common, true, add_option);
        }
        add_exits(out);
}

static void page_option(struct buf *out, const struct option *o, const struct buf *name) {
        buf_addf(out, "| `%s` | %s |\n", buf_str(name), o->help);
}

static void page_options(struct buf *out, const struct option *list, bool passed) {
        buf_adds(out, "\n| Option | Meaning |\n|---|---|\n");
        each_option(out, list, passed, page_option);
}

void command_page(struct buf *out) {
        buf_adds(out, "# kubectl compute-domains\n\nThis page is generated by `make reference` from "
                      "`src/cli`. Do not edit it.\n\n");
        add_text(out, about, true);
        buf_adds(
                out,
                "\nThe program is `kubectl-compute_domains`. kubectl finds it on the `PATH`, and runs it as\n"
                "`kubectl compute-domains`.\n\n| Command | Purpose |\n|---|---|\n");
        for (const struct command *const *x = command_list; *x; x++)
                buf_addf(out, "| [`%s`](#%s) | %s |\n", (*x)->name, (*x)->name, (*x)->summary);
        buf_adds(out, "\n## Exit codes\n\n| Code | Meaning |\n|---|---|\n");
        for (size_t i = 0; i < ARRAY_LEN(exits); i++)
                buf_addf(out, "| %d | %s |\n", exits[i].code, exits[i].text);
        buf_adds(out, "\n## Options\n\nAll commands have these options:\n");
        page_options(out, options_common, false);
        buf_adds(out, "\nThese options have the same meaning as for kubectl, which gets them:\n");
        page_options(out, options_common, true);
        for (const struct command *const *x = command_list; *x; x++) {
                buf_addf(out, "\n## %s\n\n    " PLUGIN " %s%s%s\n\n", (*x)->name, (*x)->name,
                         *(*x)->args ? " " : "", (*x)->args);
                add_text(out, (*x)->text, true);
                if ((*x)->options)
                        page_options(out, (*x)->options, false);
                if ((*x)->page)
                        (*x)->page(out);
        }
}

/* Adds a text for troff. Words between backticks are bold. */
static void man_words(struct buf *out, const char *text, size_t n) {
        bool code = false;
        for (size_t i = 0; i < n; i++) {
                bool begins = i == 0 || text[i - 1] == '\n';
                if (begins && (text[i] == '.' || text[i] == '\''))
                        buf_adds(out, "\\&");
                if (text[i] == '`') {
                        code = !code;
                        buf_adds(out, code ? "\\fB" : "\\fR");
                } else if (text[i] == '\\' || text[i] == '-') {
                        buf_adds(out, text[i] == '-' ? "\\-" : "\\e");
                } else {
                        buf_addc(out, text[i]);
                }
        }
        buf_addc(out, '\n');
}

static void man_text(struct buf *out, const char *text) {
        for (const char *p = text; *p;) {
                const char *end = strstr(p, "\n\n");
                size_t n = end ? (size_t)(end - p) : strlen(p);
                bool example = *p == ' ';
                buf_adds(out, example ? ".PP\n.nf\n" : ".PP\n");
                man_words(out, p, n);
                buf_adds(out, example ? ".fi\n" : "");
                for (p += n; *p == '\n';)
                        p++;
        }
}

static void man_option(struct buf *out, const struct option *o, const struct buf *name) {
        buf_adds(out, ".TP\n.B ");
        man_words(out, buf_str(name), name->n);
        man_words(out, o->help, strlen(o->help));
}

void command_man(struct buf *out) {
        buf_adds(
                out,
                ".\\\" This page is generated from the help texts of the program.\n"
                ".TH KUBECTL\\-COMPUTE_DOMAINS 1 \"\" \"compute-domains " PROGRAM_VERSION
                "\" \"User Commands\"\n"
                ".SH NAME\nkubectl\\-compute_domains \\- show why pods that use ComputeDomains do not start\n"
                ".SH SYNOPSIS\n.B kubectl compute\\-domains\n[\\fICOMMAND\\fR] [\\fIOPTION\\fR...]\n"
                ".SH DESCRIPTION\n");
        man_text(out, about);
        man_text(out, "kubectl finds the program on the `PATH`, and runs it as `kubectl compute-domains`.");
        buf_adds(out, ".SH COMMANDS\n");
        for (const struct command *const *x = command_list; *x; x++) {
                buf_adds(out, ".SS \"");
                buf_addf(out, "%s%s%s\"\n", (*x)->name, *(*x)->args ? " " : "", (*x)->args);
                man_text(out, (*x)->text);
                each_option(out, (*x)->options, false, man_option);
        }
        buf_adds(out, ".SH OPTIONS\nAll commands have these options:\n");
        each_option(out, options_common, false, man_option);
        buf_adds(out, ".SH OPTIONS OF KUBECTL\nThese options have the same meaning as for kubectl, which "
                      "gets them:\n");
        each_option(out, options_common, true, man_option);
        buf_adds(out, ".SH EXIT STATUS\n");
        for (size_t i = 0; i < ARRAY_LEN(exits); i++) {
                buf_addf(out, ".TP\n.B %d\n", exits[i].code);
                man_words(out, exits[i].text, strlen(exits[i].text));
        }
        buf_adds(out, ".SH SEE ALSO\n.BR kubectl (1)\n");
}
