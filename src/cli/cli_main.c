/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/bundle.h"
#include "cli/cluster.h"
#include "cli/command.h"

static int open_source(struct cli *c, const struct command *command, struct err *e) {
        if (options.from && command->no_bundle)
                return err_set(e, ERR_INVALID, 0, "%s cannot read a bundle", command->name);
        if (options.from)
                return bundle_open(options.from, options.ns, &c->source, e);
        return cluster_open(&c->kubectl, options.ns, &c->source, e);
}

static int run_command(struct cli *c, const struct command *command) {
        struct err e;
        if (command->reads) {
                if (open_source(c, command, &e) < 0)
                        return command_usage(c, "%s", e.msg);
                view_init(&c->v, c->source);
        }
        int r = command->run(c);
        if (command->reads)
                view_done(&c->v);
        return r;
}

/* environment NO_COLOR of kubectl-compute_domains: any value switches off colours (no-color.org) */
/* environment TERM of kubectl-compute_domains: dumb switches off colours */
static void cli_setup_term(struct term *t) {
        *t = (struct term){ .out = BUF_INIT(TERM_OUT_MAX), .ascii = options.ascii };
        bool terminal = isatty(STDOUT_FILENO);
        const char *no_color = getenv("NO_COLOR"), *kind = getenv("TERM");
        t->color = terminal && !options.no_color && !(no_color && *no_color) && !streq(kind, "dumb");
}

/* `kubectl compute-domains -n NS why x` is possible, too: the command is the first positional argument. */
static const struct command *cli_main_command(int argc, char **argv) {
        const struct command *command = NULL;
        for (int i = 1; i < argc && !command; i++) {
                if (options_takes_next(argv[i]))
                        i++; /* a namespace may have the name of a command */
                else
                        command = command_find(argv[i]);
        }
        return command;
}

static int cli_main_run(struct cli *c, int argc, char **argv, struct options_parsed *parsed) {
        const struct command *command = cli_main_command(argc, argv);
        struct err e;
        int r = options_parse(command ? command->options : NULL, argc - 1, argv + 1, parsed, &e);
        c->args = parsed->args;
        c->n_args = parsed->n_args;
        c->kubectl = (struct kubectl){ "kubectl", parsed->kubectl, parsed->n_kubectl };
        cli_setup_term(&c->t);
        if (r < 0)
                return command_usage(c, "%s. --help lists the options", e.msg);
        const char *word = c->n_args ? c->args[0] : NULL;
        command = word ? command_find(word) : command_list[0];
        if (streq(word, "help-page")) {
                command_page(&c->t.out);
        } else if (streq(word, "man-page")) {
                command_man(&c->t.out);
        } else if (word && !command && !streq(word, "help")) {
                return command_usage(c, "unknown command '%s'. --help lists the commands", word);
        } else if (options.help || !command) {
                command_help(&c->t.out, word && command ? command
                                        : c->n_args > 1 ? command_find(c->args[1])
                                                        : NULL);
        } else {
                c->args += word != NULL;
                c->n_args -= word != NULL;
                return run_command(c, command);
        }
        return COMMAND_FINE;
}

int main(int argc, char **argv) {
        struct cli c = { .a = arena_new(16 << 10) };
        struct options_parsed parsed = { 0 };
        signal(SIGPIPE, SIG_IGN);
        int r = cli_main_run(&c, argc, argv, &parsed);
        if (command_flush(&c) < 0)
                r = COMMAND_FAILED;
        source_freep(&c.source);
        buf_done(&c.t.out);
        arena_free(c.a);
        free(parsed.args);
        free(parsed.kubectl);
        return r;
}
