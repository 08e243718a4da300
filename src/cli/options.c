/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { IMAGE_MAX = 512 };

struct options options = { .output = "table" };

#define PASS_TEXT(n, v, h)                                                                                   \
        { .name = (n), .type = OPTION_TEXT, .value = (v), .help = (h), .passes = true }
#define PASS_BOOL(n, h)                                                                                      \
        { .name = (n), .type = OPTION_BOOL, .help = (h), .passes = true }

const struct option options_common[] = {
        { "namespace", 'n', OPTION_TEXT, &options.ns, "NAMESPACE",
          "namespace of the object; default: that of the context, or of the pod", true },
        { "all-namespaces", 'A', OPTION_BOOL, &options.all_namespaces, NULL,
          "show the ComputeDomains of all namespaces", false },
        { "output", 'o', OPTION_TEXT, &options.output, "FORMAT", "table or json", false },
        { "from", 0, OPTION_TEXT, &options.from, "BUNDLE",
          "read a file or folder that `bundle` wrote instead of a cluster", false },
        { "no-color", 0, OPTION_BOOL, &options.no_color, NULL, "no colours, as with the variable NO_COLOR",
          false },
        { "ascii", 0, OPTION_BOOL, &options.ascii, NULL, "only ASCII characters", false },
        { "help", 'h', OPTION_BOOL, &options.help, NULL, "show the help text of the command", false },
        PASS_TEXT("context", "NAME", "context of the kubeconfig"),
        PASS_TEXT("kubeconfig", "FILE", "the kubeconfig"),
        PASS_TEXT("cluster", "NAME", "cluster of the kubeconfig"),
        PASS_TEXT("user", "NAME", "user of the kubeconfig"),
        PASS_TEXT("as", "USER", "impersonate this user"),
        PASS_TEXT("as-group", "GROUP", "impersonate this group; may be repeated"),
        PASS_TEXT("as-uid", "UID", "impersonate this UID"),
        PASS_TEXT("server", "URL", "address of the API server"),
        PASS_TEXT("token", "TOKEN", "bearer token for the API server"),
        PASS_TEXT("certificate-authority", "FILE", "certificate of the API server's authority"),
        PASS_TEXT("client-certificate", "FILE", "certificate of the user"),
        PASS_TEXT("client-key", "FILE", "key of the user"),
        PASS_TEXT("tls-server-name", "NAME", "name in the API server's certificate"),
        PASS_TEXT("cache-dir", "FOLDER", "kubectl's cache"),
        PASS_TEXT("request-timeout", "TIME",
                  "time limit of kubectl for one request; reads have their own limit: one minute, and five "
                  "minutes for the first, which may wait for a login"),
        PASS_BOOL("insecure-skip-tls-verify", "do not check the API server's certificate"),
        PASS_BOOL("disable-compression", "do not compress answers"),
        { 0 },
};

static const struct option *find_in(const struct option *list, const char *name, size_t n) {
        for (; list && list->name; list++)
                if (strlen(list->name) == n && strncmp(list->name, name, n) == 0)
                        return list;
        return NULL;
}

static const struct option *find_letter(const struct option *list, char letter) {
        for (; list && list->name; list++)
                if (list->letter && list->letter == letter)
                        return list;
        return NULL;
}

bool options_takes_next(const char *word) {
        bool is_long = word[0] == '-' && word[1] == '-', is_letter = word[0] == '-' && word[1] && !word[2];
        const struct option *o = is_long     ? find_in(options_common, word + 2, strlen(word + 2))
                                 : is_letter ? find_letter(options_common, word[1])
                                             : NULL;
        return o && o->type == OPTION_TEXT;
}

bool options_is_image(const char *text) {
        static const char ends[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
        size_t n = strlen(text);
        while (*text && (strchr(ends, *text) || strchr("./:@-", *text)))
                text++;
        return n && n <= IMAGE_MAX && !*text && strchr(ends, text[-1]) && strchr(ends, *(text - n));
}

struct word_list {
        const char **items;
        size_t n, cap;
};

static void add_word(struct word_list *l, const char *word) {
        GROW(l->items, l->n, l->cap);
        l->items[l->n++] = word;
}

/* Reads one option at argv[*i], and its value. */
static int take_option(const struct option *own, int argc, char **argv, int *i, struct word_list *kubectl,
                       struct err *e) {
        char *word = argv[*i];
        bool is_long = word[1] == '-';
        const char *name = word + (is_long ? 2 : 1), *value = is_long ? strchr(name, '=') : NULL;
        size_t n = value ? (size_t)(value - name) : strlen(name);
        const struct option *o = is_long ? find_in(own, name, n) : find_letter(own, *name);
        int first = *i;
        if (!o)
                o = is_long ? find_in(options_common, name, n) : find_letter(options_common, *name);
        if (!o)
                return err_set(e, ERR_INVALID, 0, "unknown option %s", word);
        if (value)
                value++;
        else if (!is_long && name[1])
                value = name + 1 + (name[1] == '='); /* -nNAME, -n=NAME */
        if (o->type == OPTION_BOOL) {
                bool on = true;
                if (value && !str_to_bool(str_from(value), &on))
                        return err_set(e, ERR_INVALID, 0, "option %s: not true or false", word);
                if (o->dest)
                        *(bool *)o->dest = on;
        } else {
                if (!value && ++*i >= argc)
                        return err_set(e, ERR_INVALID, 0, "option %s needs a value", word);
                value = value ? value : argv[*i];
                if (o->dest)
                        *(const char **)o->dest = value;
        }
        for (int k = first; o->passes && k <= *i; k++)
                add_word(kubectl, argv[k]);
        return 0;
}

int options_parse(const struct option *own, int argc, char **argv, struct options_parsed *ret,
                  struct err *e) {
        struct word_list args = { 0 }, kubectl = { 0 };
        bool ended = false;
        int r = 0;
        for (int i = 0; i < argc && r == 0; i++) {
                if (!ended && streq(argv[i], "--"))
                        ended = true;
                else if (!ended && argv[i][0] == '-' && argv[i][1])
                        r = take_option(own, argc, argv, &i, &kubectl, e);
                else
                        add_word(&args, argv[i]);
        }
        *ret = (struct options_parsed){ args.items, kubectl.items, args.n, kubectl.n };
        if (r == 0 && !streq(options.output, "table") && !streq(options.output, "json"))
                r = err_set(e, ERR_INVALID, 0, "--output is '%s', but may be table or json", options.output);
        return r;
}
