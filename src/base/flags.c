/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flags.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/stderr.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

const char program_version[] = PROGRAM_VERSION;

enum { ENV_NAME_MAX = 128 };

/* "leader-election-enabled" -> "LEADER_ELECTION_ENABLED" */
static const char *env_name(const struct flag *f, char buf[static ENV_NAME_MAX]) {
        size_t i = 0;
        if (f->env)
                return f->env;
        for (; f->name[i]; i++) {
                BUG_ON(i + 1 >= ENV_NAME_MAX);
                buf[i] = f->name[i] == '-' ? '_' : (char)toupper((unsigned char)f->name[i]);
        }
        buf[i] = '\0';
        return buf;
}

/* Units of a Go duration in milliseconds; "ms" before "m" and "s", because the first match counts. */
static const struct {
        const char *suffix;
        double ms;
} units[] = { { "ns", 1e-6 }, { "us", 1e-3 }, { "ms", 1 }, { "s", 1e3 }, { "m", 6e4 }, { "h", 3.6e6 } };

static int parse_duration_ms(const char *text, int64_t *ret) {
        double total = 0;
        bool negative = *text == '-';
        const char *p = text + (*text == '-' || *text == '+');
        if (streq(p, "0")) {
                *ret = 0;
                return 0;
        }
        if (!*p)
                return -1;
        while (*p) {
                if (!isdigit((unsigned char)*p) && *p != '.')
                        return -1;
                /* strtod alone would also accept exponents, hexadecimal numbers and "inf" */
                char number[32];
                size_t n = strspn(p, "0123456789.");
                char *end = NULL;
                if (n >= sizeof number)
                        return -1;
                memcpy(number, p, n);
                number[n] = '\0';
                double v = strtod(number, &end);
                if (end == number || *end)
                        return -1;
                p += n;
                size_t u = 0;
                while (u < ARRAY_LEN(units) && !str_starts(p, units[u].suffix))
                        u++;
                if (u == ARRAY_LEN(units))
                        return -1;
                p += strlen(units[u].suffix);
                total += v * units[u].ms;
        }
        if (total > 9e15)
                return -1;
        *ret = (int64_t)(total + 0.5) * (negative ? -1 : 1);
        return 0;
}

static int set_value(const struct flag *f, const char *text, const char *origin, struct err *e) {
        switch (f->type) {
        case FLAG_STR:
                *(const char **)f->dest = text;
                return 0;
        case FLAG_INT:
                if (str_to_i64(str_from(text), f->dest)) {
                        int64_t value = *(int64_t *)f->dest;
                        if (!f->max || (value >= f->min && value <= f->max))
                                return 0;
                        return err_set(e, ERR_INVALID, 0,
                                       "%s: %" PRId64 " is not between %" PRId64 " and %" PRId64, origin,
                                       value, f->min, f->max);
                }
                return err_set(e, ERR_INVALID, 0, "%s: '%s' is not a whole number", origin, text);
        case FLAG_BOOL:
                if (str_to_bool(str_from(text), f->dest))
                        return 0;
                return err_set(e, ERR_INVALID, 0, "%s: '%s' is neither true nor false", origin, text);
        case FLAG_DURATION_MS:
                if (parse_duration_ms(text, f->dest) == 0)
                        return 0;
                return err_set(e, ERR_INVALID, 0, "%s: '%s' is not a duration such as 15s or 1m30s", origin,
                               text);
        default:
                return err_set(e, ERR_INTERNAL, 0, "%s: unknown flag type", origin);
        }
}

/* An empty variable counts as unset, except for strings: a chart renders "" for a value that is not set. */
static int set_from_env(const struct flag *f, struct err *e) {
        char buf[ENV_NAME_MAX];
        const char *names[] = { env_name(f, buf), f->alt_env };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const char *text = names[i] ? getenv(names[i]) : NULL;
                if (!text || (!*text && (f->type != FLAG_STR || f->alt_env)))
                        continue;
                return set_value(f, text, names[i], e);
        }
        return 0;
}

static const struct flag *flags_find(const struct flag *flags, const char *name, size_t n) {
        for (const struct flag *f = flags; f->name; f++) {
                if (strlen(f->name) == n && memcmp(f->name, name, n) == 0)
                        return f;
        }
        return NULL;
}

/* One argument that begins with '-'. Increments *i if the value is the next argument. */
static int set_from_arg(const struct flag *flags, int argc, char **argv, int *i, struct err *e) {
        const char *name = argv[*i] + 1;
        if (*name == '-')
                name++;
        const char *equals = strchr(name, '=');
        size_t n = equals ? (size_t)(equals - name) : strlen(name);
        const struct flag *f = flags_find(flags, name, n);
        char origin[ENV_NAME_MAX];
        if (!f)
                return err_set(e, ERR_INVALID, 0, "unknown flag '%s'", argv[*i]);
        snprintf(origin, sizeof origin, "--%s", f->name);
        if (equals)
                return set_value(f, equals + 1, origin, e);
        if (f->type == FLAG_BOOL)
                return set_value(f, "true", origin, e);
        if (*i + 1 >= argc)
                return err_set(e, ERR_INVALID, 0, "%s needs a value", origin);
        return set_value(f, argv[++*i], origin, e);
}

int flags_parse(const struct flag *flags, int argc, char **argv, int *ret_rest, bool *ret_help,
                struct err *e) {
        int i = 1;
        bool help = false;
        for (const struct flag *f = flags; f->name; f++) {
                if (set_from_env(f, e) < 0)
                        return -1;
        }
        for (; i < argc; i++) {
                if (argv[i][0] != '-' || !argv[i][1])
                        break;
                if (streq(argv[i], "--")) {
                        i++;
                        break;
                }
                if (streq(argv[i], "--help") || streq(argv[i], "-h"))
                        help = true;
                else if (set_from_arg(flags, argc, argv, &i, e) < 0)
                        return -1;
        }
        /* With --help, required flags may be missing. */
        for (const struct flag *f = flags; f->name && !help; f++) {
                char buf[ENV_NAME_MAX];
                if (f->required && f->type == FLAG_STR && !*str_or(*(const char **)f->dest, ""))
                        return err_set(e, ERR_INVALID, 0, "--%s (or %s) is required", f->name,
                                       env_name(f, buf));
        }
        *ret_rest = i;
        *ret_help = help;
        return 0;
}

static void format_value(const struct flag *f, struct buf *out) {
        switch (f->type) {
        case FLAG_STR:
                buf_adds(out, str_or(*(const char **)f->dest, "\"\""));
                break;
        case FLAG_INT:
                buf_addf(out, "%lld", (long long)*(int64_t *)f->dest);
                break;
        case FLAG_BOOL:
                buf_adds(out, *(bool *)f->dest ? "true" : "false");
                break;
        case FLAG_DURATION_MS:
                buf_addf(out, "%lldms", (long long)*(int64_t *)f->dest);
                break;
        }
}

void flag_env(const struct flag *f, struct buf *out) {
        char name[ENV_NAME_MAX];

        buf_adds(out, env_name(f, name));
}

void flag_value(const struct flag *f, struct buf *out) {
        if (f->type != FLAG_STR)
                format_value(f, out);
        else
                buf_adds(out, str_or(*(const char **)f->dest, ""));
}

void flags_usage(const struct flag *flags, FILE *to) {
        for (const struct flag *f = flags; f->name; f++) {
                char name[ENV_NAME_MAX];
                struct buf value = BUF_INIT(LOG_LINE_MAX);
                format_value(f, &value);
                fprintf(to, "  --%s\n        %s (env %s%s%s, default %s)\n", f->name, str_or(f->help, ""),
                        env_name(f, name), f->alt_env ? " or " : "", f->alt_env ? f->alt_env : "",
                        buf_str(&value));
                buf_done(&value);
        }
}

void flags_log(const struct flag *flags) {
        struct buf line = BUF_INIT(LOG_LINE_MAX);
        for (const struct flag *f = flags; f->name; f++) {
                buf_addf(&line, "%s--%s=", f == flags ? "" : " ", f->name);
                format_value(f, &line);
        }
        log_info("flags", kv_str("values", buf_str(&line)));
        buf_done(&line);
}

bool version_asked(int argc, char **argv, const char *program) {
        if (argc != 2 || !streq(argv[1], "--version"))
                return false;
        printf("%s %s\n", program, program_version);
        return true;
}
