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
        return cluster_open("kubectl", c->kubectl, c->n_kubectl, options.ns, &c->source, e);
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
static int cli_main_run(struct cli *c, int argc, char **argv) {
        const struct command *command = NULL;
        struct err e;
        for (int i = 1; i < argc && !command; i++)
                command = command_find(argv[i]);
        struct options_parsed parsed;
        int r = options_parse(command ? command->options : NULL, argc - 1, argv + 1, &parsed, &e);
        c->args = parsed.args;
        c->n_args = parsed.n_args;
        c->kubectl = parsed.kubectl;
        c->n_kubectl = parsed.n_kubectl;
        cli_setup_term(&c->t);
        if (r < 0)
                return command_usage(c, "%s. --help lists the options", e.msg);
        const char **all = c->args;
        bool named = c->n_args > 0;
        command = named ? command_find(c->args[0]) : command_list[0];
        if (named && !command && !streq(c->args[0], "help") && !streq(c->args[0], "help-page") &&
            !streq(c->args[0], "man-page"))
                r = command_usage(c, "unknown command '%s'. --help lists the commands", c->args[0]);
        else if (named && streq(c->args[0], "help-page"))
                command_page(&c->t.out);
        else if (named && streq(c->args[0], "man-page"))
                command_man(&c->t.out);
        else if (options.help || !command)
                command_help(&c->t.out, named && command ? command
                                        : c->n_args > 1  ? command_find(c->args[1])
                                                         : NULL);
        else {
                c->args += named;
                c->n_args -= named;
                r = run_command(c, command);
        }
        c->args = all;
        return r;
}

int main(int argc, char **argv) {
        struct cli c = { .a = arena_new(16 << 10) };
        signal(SIGPIPE, SIG_IGN);
        int r = cli_main_run(&c, argc, argv);
        command_flush(&c);
        source_freep(&c.source);
        buf_done(&c.t.out);
        arena_free(c.a);
        free(c.args);
        free(c.kubectl);
        return r;
}
