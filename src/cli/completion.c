/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of shells. `completion words -- WORD...` prints the candidates for the last of the words that
 * follow the name of the tool, one per line: the word, and a description behind a tab. The last line is a
 * directive, ":4". This is the format of cobra's programs, in which kubectl reads the output of
 * `kubectl_complete-compute_domains`. */
#include <string.h>

#include "api/reasons.h"
#include "cli/command_table.h"

/* The directives of cobra. */
enum { NO_SPACE = 2, NO_FILES = 4 };

/* Adds a candidate if it begins with the word. Texts of this program only. */
static void candidate(struct buf *out, const char *word, const char *text, const char *about) {
        if (strncmp(text, word, strlen(word)) == 0)
                buf_addf(out, "%s%s%s\n", text, about ? "\t" : "", about ? about : "");
}

static const struct option *completion_find_option(const struct option *list, const char *word) {
        for (; list && list->name; list++)
                if ((word[1] == '-' && streq(list->name, word + 2)) ||
                    (word[1] && word[1] == list->letter && !word[2]))
                        return list;
        return NULL;
}

/* The option whose value is the word behind `word`; NULL: none. */
static const struct option *completion_expects(const struct command *command, const char *word) {
        if (word[0] != '-')
                return NULL;
        const struct option *o = completion_find_option(command ? command->options : NULL, word);
        if (!o)
                o = completion_find_option(options_common, word);
        return o && o->type == OPTION_TEXT ? o : NULL;
}

static void completion_options(struct buf *out, const struct option *list, const char *word) {
        _cleanup_(buf_done) struct buf name = BUF_INIT(1024);
        for (; list && list->name; list++) {
                buf_clear(&name);
                buf_addf(&name, "--%s", list->name);
                candidate(out, word, buf_str(&name), list->help);
        }
}

static unsigned completion_value(struct buf *out, const struct option *o, const char *word) {
        if (streq(o->name, "output")) {
                candidate(out, word, "table", NULL);
                candidate(out, word, "json", NULL);
                return NO_FILES;
        }
        bool file = streq(o->value, "FILE") || streq(o->value, "FOLDER") || streq(o->value, "BUNDLE");
        return file ? 0 : NO_FILES;
}

static void completion_reasons(struct buf *out, const char *word) {
        for (size_t i = 0; i < reason_count; i++) {
                bool again = i && streq(reason_list[i].name, reason_list[i - 1].name);
                if (!reason_list[i].is_message && !again)
                        candidate(out, word, reason_list[i].name, NULL);
        }
}

/* The words of `args` in small letters are alternatives: "bash|zsh|fish", "[pod/|job/]NAME". */
static unsigned completion_arguments(struct buf *out, const struct command *command, const char *word) {
        unsigned directive = strstr(command->args, "FILE") ? 0 : NO_FILES;
        if (strstr(command->args, "REASON"))
                completion_reasons(out, word);
        for (const char *p = command->args; *p;) {
                size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz-/");
                char text[32];
                if (n && n < sizeof(text)) {
                        memcpy(text, p, n);
                        text[n] = 0;
                        if (text[n - 1] == '/')
                                directive |= NO_SPACE;
                        candidate(out, word, text, NULL);
                }
                p += n ? n : 1;
        }
        return directive;
}

static void completion_words(struct buf *out, size_t n, const char *const *words) {
        const char *word = n ? words[n - 1] : "";
        const struct command *command = NULL;
        const struct option *o = n > 1 ? completion_expects(NULL, words[n - 2]) : NULL;
        unsigned directive = NO_FILES;
        for (size_t i = 0; i + 1 < n && !command; i++) {
                if (options_takes_next(words[i]))
                        i++;
                else
                        command = command_find(words[i]);
        }
        if (n > 1 && !o)
                o = completion_expects(command, words[n - 2]);
        if (o) {
                directive = completion_value(out, o, word);
        } else if (*word == '-') {
                completion_options(out, command ? command->options : NULL, word);
                completion_options(out, options_common, word);
        } else if (command) {
                directive = completion_arguments(out, command, word);
        } else {
                for (const struct command *const *x = command_list; *x; x++)
                        candidate(out, word, (*x)->name, (*x)->summary);
        }
        buf_addf(out, ":%u\n", directive);
}

static const char bash_script[] =
        "# Completion of bash for kubectl compute-domains. Behind kubectl it completes only this plugin.\n"
        "_kubectl_compute_domains_words() {\n"
        "\tlocal line directive=0\n"
        "\tCOMPREPLY=()\n"
        "\twhile IFS= read -r line; do\n"
        "\t\tcase $line in\n"
        "\t\t:*) directive=${line#:} ;;\n"
        "\t\t*) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
        "\t\tesac\n"
        "\tdone < <(kubectl-compute_domains completion words -- \"$@\" 2>/dev/null)\n"
        "\t(((directive & 2) == 0)) || compopt -o nospace 2>/dev/null\n"
        "\t((directive & 4)) || compopt -o default 2>/dev/null\n"
        "}\n"
        "_kubectl_compute_domains() {\n"
        "\tlocal i\n"
        "\tif [[ ${COMP_WORDS[0]##*/} == kubectl-compute_domains ]]; then\n"
        "\t\t_kubectl_compute_domains_words \"${COMP_WORDS[@]:1:COMP_CWORD}\"\n"
        "\t\treturn\n"
        "\tfi\n"
        "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
        "\t\tif [[ ${COMP_WORDS[i]} == compute-domains ]]; then\n"
        "\t\t\t_kubectl_compute_domains_words \"${COMP_WORDS[@]:i + 1:COMP_CWORD - i}\"\n"
        "\t\t\treturn\n"
        "\t\tfi\n"
        "\t\t[[ ${COMP_WORDS[i]} == -* ]] || break\n"
        "\tdone\n"
        "\t[[ -z $_kubectl_compute_domains_next ]] || \"$_kubectl_compute_domains_next\" \"$@\"\n"
        "}\n"
        "# kubectl's own completion, which may be loaded before this file.\n"
        "if [[ $(complete -p kubectl 2>/dev/null) =~ \\ -F\\ ([^ ]+) && ${BASH_REMATCH[1]} != "
        "_kubectl_compute_domains ]]; then\n"
        "\t_kubectl_compute_domains_next=${BASH_REMATCH[1]}\n"
        "fi\n"
        "complete -F _kubectl_compute_domains kubectl kubectl-compute_domains\n";

static const char zsh_script[] =
        "#compdef kubectl-compute_domains\n"
        "# Completion of zsh for kubectl compute-domains. Behind kubectl it completes only this plugin.\n"
        "_kubectl_compute_domains_words() {\n"
        "\tlocal -a found\n"
        "\tlocal line directive=0\n"
        "\tfor line in \"${(@f)$(kubectl-compute_domains completion words -- \"$@\" 2>/dev/null)}\"; do\n"
        "\t\tcase $line in\n"
        "\t\t:*) directive=${line#:} ;;\n"
        "\t\t*$'\\t'*) found+=(\"${line%%$'\\t'*}:${line#*$'\\t'}\") ;;\n"
        "\t\t?*) found+=(\"$line\") ;;\n"
        "\t\tesac\n"
        "\tdone\n"
        "\tlocal -a no_space\n"
        "\t((directive & 2)) && no_space=(-S '')\n"
        "\t_describe -V 'kubectl compute-domains' found $no_space\n"
        "\t((directive & 4)) || _files\n"
        "}\n"
        "_kubectl_compute_domains() {\n"
        "\tlocal i\n"
        "\tif [[ ${words[1]:t} == kubectl-compute_domains ]]; then\n"
        "\t\t_kubectl_compute_domains_words \"${(@)words[2,CURRENT]}\"\n"
        "\t\treturn\n"
        "\tfi\n"
        "\tfor ((i = 2; i < CURRENT; i++)); do\n"
        "\t\tif [[ $words[i] == compute-domains ]]; then\n"
        "\t\t\t_kubectl_compute_domains_words \"${(@)words[i + 1,CURRENT]}\"\n"
        "\t\t\treturn\n"
        "\t\tfi\n"
        "\t\t[[ $words[i] == -* ]] || break\n"
        "\tdone\n"
        "\t[[ -z $_kubectl_compute_domains_next ]] || $_kubectl_compute_domains_next\n"
        "}\n"
        "# kubectl's own completion, which may be loaded before this file.\n"
        "[[ ${_comps[kubectl]-} == _kubectl_compute_domains ]] || "
        "typeset -g _kubectl_compute_domains_next=${_comps[kubectl]-}\n"
        "compdef _kubectl_compute_domains kubectl kubectl-compute_domains\n";

static const char fish_script[] =
        "# Completion of fish for kubectl compute-domains.\n"
        "function __kubectl_compute_domains\n"
        "    set -l words (commandline -opc)[2..-1] (commandline -ct)\n"
        "    if set -l plugin (contains -i -- compute-domains $words)\n"
        "        set words $words[(math $plugin + 1)..-1]\n"
        "    end\n"
        "    kubectl-compute_domains completion words -- $words 2>/dev/null | string match -v -r '^:'\n"
        "end\n"
        "# This loads kubectl's own completion, which would delete rules that exist before it.\n"
        "complete -C 'kubectl ' >/dev/null 2>&1\n"
        "complete -c kubectl -n '__fish_seen_subcommand_from compute-domains' -f -a "
        "'(__kubectl_compute_domains)'\n"
        "complete -c kubectl-compute_domains -f -a '(__kubectl_compute_domains)'\n";

static const char helper[] = "#!/bin/sh\n"
                             "# kubectl runs this program, kubectl_complete-compute_domains, to complete the "
                             "words of the plugin.\n"
                             "exec kubectl-compute_domains completion words -- \"$@\"\n";

static int completion_run(struct cli *c) {
        static const struct {
                const char *name, *script;
        } scripts[] = {
                { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script }, { "helper", helper }
        };
        if (c->n_args && streq(c->args[0], "words")) {
                completion_words(&c->t.out, c->n_args - 1, c->args + 1);
                return COMMAND_FINE;
        }
        for (size_t i = 0; c->n_args == 1 && i < ARRAY_LEN(scripts); i++)
                if (streq(c->args[0], scripts[i].name)) {
                        buf_adds(&c->t.out, scripts[i].script);
                        return COMMAND_FINE;
                }
        return command_usage(c, "completion needs one argument: bash, zsh, fish or helper");
}

const struct command command_completion = {
        .name = "completion",
        .args = "bash|zsh|fish|helper",
        .summary = "script that completes commands and options in a shell",
        .text = "Prints a script that completes the commands and options of this tool, also behind "
                "`kubectl`. "
                "Load it after the completion of kubectl. Needs no cluster.\n\n"
                " source <(kubectl compute-domains completion bash)\n"
                " source <(kubectl compute-domains completion zsh)\n"
                " kubectl compute-domains completion fish | source\n\n"
                "If the completion of kubectl is loaded, the `helper` is sufficient in all shells. kubectl "
                "runs "
                "it under the name `kubectl_complete-compute_domains`.\n\n"
                " kubectl compute-domains completion helper >~/bin/kubectl_complete-compute_domains\n"
                " chmod +x ~/bin/kubectl_complete-compute_domains",
        .run = completion_run,
};
