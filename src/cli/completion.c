/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of shells. kubectl runs `kubectl_complete-compute_domains`, which is not part of a plugin, so
 * `completion` prints it. The words come from `completion words`. */
#include <string.h>

#include "api/reasons.h"
#include "cli/command_table.h"

static const char helper[] =
        "#!/bin/sh\n"
        "# Save as kubectl_complete-compute_domains in a folder of the PATH, and make it executable.\n"
        "exec kubectl compute-domains completion words -- \"$@\"\n";
static const char bash_script[] = "# source <(kubectl compute-domains completion bash)\n"
                                  "_kubectl_compute_domains() {\n"
                                  "  COMPREPLY=($(kubectl-compute_domains completion words -- "
                                  "\"${COMP_WORDS[@]:1:COMP_CWORD}\" | grep -v '^:' | cut -f1))\n"
                                  "}\n"
                                  "complete -F _kubectl_compute_domains kubectl-compute_domains\n";
static const char zsh_script[] = "# source <(kubectl compute-domains completion zsh)\n"
                                 "_kubectl_compute_domains() {\n"
                                 "  compadd -- ${(f)\"$(kubectl-compute_domains completion words -- "
                                 "\"${words[@]:1:CURRENT-1}\" | grep -v '^:' | cut -f1)\"}\n"
                                 "}\n"
                                 "compdef _kubectl_compute_domains kubectl-compute_domains\n";
static const char fish_script[] = "# kubectl compute-domains completion fish | source\n"
                                  "complete -c kubectl-compute_domains -f -a \"(kubectl-compute_domains "
                                  "completion words -- (commandline -opc)[2..-1] "
                                  "(commandline -ct) | grep -v '^:')\"\n";

static const struct {
        const char *shell, *text;
} scripts[] = {
        { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script }, { "helper", helper }
};

static void add_completion(struct cli *c, const char *begin, const char *text) {
        if (str_starts(text, begin))
                term_line(&c->t, "%s", text);
}

/* The form is that of cobra: a word and a description in each line, then ":4", which means: no names of
 * files. */
static void completion_words(struct cli *c, const char *const *args, size_t n) {
        const char *begin = n ? args[n - 1] : "";
        static const char *const kinds[] = { "pod/", "job/", "computedomain/", "node/" };
        const struct command *command = n > 1 ? command_find(args[0]) : NULL;
        if (n <= 1)
                for (const struct command *const *x = command_list; *x; x++)
                        add_completion(c, begin, (*x)->name);
        else if (command == &command_explain)
                for (size_t i = 0; i < reason_count; i++)
                        add_completion(c, begin,
                                       reason_list[i].is_message ? reason_list[i].anchor
                                                                 : reason_list[i].name);
        else if (command == &command_why || command == &command_watch)
                for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                        add_completion(c, begin, kinds[i]);
        else if (command == &command_completion)
                for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
                        add_completion(c, begin, scripts[i].shell);
        if (str_starts(begin, "-"))
                for (const struct option *o = options_common; o->name; o++)
                        add_completion(c, begin, arena_printf(c->a, "--%s", o->name));
        term_line(&c->t, command == &command_why || command == &command_watch ? ":2" : ":4");
}

static int completion_run(struct cli *c) {
        if (c->n_args && streq(c->args[0], "words")) {
                completion_words(c, c->args + 1, c->n_args - 1);
                return COMMAND_FINE;
        }
        for (size_t i = 0; c->n_args == 1 && i < ARRAY_LEN(scripts); i++)
                if (streq(scripts[i].shell, c->args[0])) {
                        buf_adds(&c->t.out, scripts[i].text);
                        return COMMAND_FINE;
                }
        return command_usage(c, "usage: completion bash|zsh|fish|helper");
}

const struct command command_completion = {
        .name = "completion",
        .args = "bash|zsh|fish|helper",
        .summary = "completion for a shell",
        .text = "Prints the completion of `kubectl-compute_domains` for a shell. `helper` prints the program "
                "with which kubectl completes "
                "`kubectl compute-domains`: save it as `kubectl_complete-compute_domains` in a folder of the "
                "PATH.\n\n"
                " source <(kubectl compute-domains completion bash)",
        .run = completion_run,
};
