/* SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulate/server.h"
#include "api/names.h"
#include "base/file.h"
#include "base/mem.h"
#include "bodies.h"
#include "pairs.h"

/* NO_TIME_S: for a watch that is closed earlier. */
enum { WORDS = 7, MOST_OBJECTS = 14, WRONG_PERCENT = 4, NO_TIME_S = 600 };

static struct form {
        char text[FORM_MAX];
        char words[WORDS][FORM_MAX];
        enum kind k;
        bool covered;
} * forms;
static size_t n_forms, cap_forms;

/* Lists with a continuation. */
static struct {
        char *path, *token;
        char form[FORM_MAX]; /* of a request for the next page */
} going[24];
static size_t n_going;
static int64_t listed[K_COUNT];
static bool direct;

enum word { VERB, RESOURCE, SPACE, BODY, ACCEPT, QUERY, CONDITIONS };

/* ---- random numbers ---- */

static uint64_t state;

void draw_seed(uint64_t seed) {
        state = seed;
}

/* splitmix64 */
uint64_t draw_below(uint64_t n) {
        uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

bool draw_chance(unsigned percent) {
        return draw_below(100) < percent;
}

#define ONE_OF(list) ((list)[draw_below(ARRAY_LEN(list))])

/* ---- forms ---- */

static bool find_resource(const char *resource, enum kind *ret) {
        for (enum kind k = 0; k < K_COUNT; k++) {
                _cleanup_(freep) char *name =
                        xasprintf("%s%s%s", kinds[k].plural, *kinds[k].group ? "." : "", kinds[k].group);
                size_t n = strlen(name);
                if (strncmp(resource, name, n) == 0 && (!resource[n] || resource[n] == '/')) {
                        *ret = k;
                        return true;
                }
        }
        return false;
}

static bool is_left_out(const char *resource, const char *left_out) {
        struct str rest = str_from(left_out), line;
        while (rest.n && str_next_line(&rest, &line))
                if (str_eq(str_trim(line), str_from(resource)))
                        return true;
        return false;
}

static int add_form(struct str line, const char *left_out, struct err *e) {
        struct form f = { .k = K_COUNT };
        struct str rest = line, word;
        size_t n = 0;
        snprintf(f.text, sizeof f.text, "%.*s", (int)line.n, line.p);
        while (rest.n && n < WORDS && str_next_field(&rest, ' ', &word))
                snprintf(f.words[n++], FORM_MAX, "%.*s", (int)word.n, word.p);
        if (n != WORDS)
                return err_set(e, ERR_INVALID, 0, "not a form: %s", f.text);
        for (size_t i = 0; i < n_forms; i++)
                if (streq(forms[i].text, f.text))
                        return 0;
        if (is_left_out(f.words[RESOURCE], left_out))
                return 0;
        if (!find_resource(f.words[RESOURCE], &f.k))
                return err_set(e, ERR_INVALID, 0, "the simulation does not have the resource of the form: %s",
                               f.text);
        GROW(forms, n_forms, cap_forms);
        forms[n_forms++] = f;
        return 0;
}

/* The words of a query are sorted, so "continue" is the first. */
static void form_of_next_page(const char *form, char ret[FORM_MAX]) {
        struct str rest = str_from(form), word;
        struct buf b = BUF_INIT(FORM_MAX - 1);
        for (enum word i = VERB; rest.n && str_next_field(&rest, ' ', &word); i++)
                buf_addf(&b, "%s%s%.*s", i == VERB ? "" : " ", i == QUERY ? "continue," : "", (int)word.n,
                         word.p);
        snprintf(ret, FORM_MAX, "%s", buf_str(&b));
        buf_done(&b);
}

/* A list in pages has a continuation if there are enough objects, which no unit test has. */
static int add_forms(struct str line, const char *left_out, struct err *e) {
        char next[FORM_MAX];
        _cleanup_(freep) char *form = xstrndup(line.p, line.n);
        bool pages = str_starts(form, "list ") && strstr(form, "limit ") && !strstr(form, "continue");
        if (add_form(line, left_out, e) < 0)
                return -1;
        form_of_next_page(form, next);
        return pages ? add_form(str_from(next), left_out, e) : 0;
}

int draw_load(const char *path, const char *left_out, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        struct str rest, line;
        if (file_read(path, 1 << 20, &text, NULL, e) < 0)
                return -1;
        rest = str_from(text);
        while (rest.n && str_next_line(&rest, &line)) {
                line = str_trim(line);
                if (line.n && *line.p != '#' && add_forms(line, left_out, e) < 0)
                        return err_wrap(e, "%s", path);
        }
        return 0;
}

void draw_covered(const char *form) {
        for (size_t i = 0; i < n_forms; i++)
                if (streq(forms[i].text, form))
                        forms[i].covered = true;
}

void draw_uncovered(struct buf *out) {
        for (size_t i = 0; i < n_forms; i++)
                if (!forms[i].covered)
                        buf_addf(out, "%s\n", forms[i].text);
}

void draw_done(void) {
        draw_forget_lists();
        free(forms);
}

/* The list of words has "name", or "name=value". */
static bool has_word(const char *list, const char *name, char *ret_value, size_t n) {
        struct str rest = str_from(list), word, key;
        while (rest.n && str_next_field(&rest, ',', &word)) {
                str_next_field(&word, '=', &key);
                if (!str_eq(key, str_from(name)))
                        continue;
                if (ret_value)
                        snprintf(ret_value, n, "%.*s", (int)word.n, word.n ? word.p : "");
                return true;
        }
        return false;
}

/* ---- continuations of lists ---- */

static void forget_token(size_t i) {
        free(going[i].path);
        free(going[i].token);
        going[i] = going[--n_going];
}

static void note_token(const char *form, const char *path, const char *token) {
        if (n_going == ARRAY_LEN(going))
                forget_token(draw_below(n_going));
        form_of_next_page(form, going[n_going].form);
        going[n_going].path = xstrdup(path);
        going[n_going++].token = xstrdup(token);
}

void draw_forget_lists(void) {
        memset(listed, 0, sizeof listed);
        while (n_going)
                forget_token(0);
}

void draw_note_answer(const struct request *r, const char *path, yyjson_val *answer) {
        const char *rv = yyjson_get_str(yyjson_ptr_get(answer, "/metadata/resourceVersion")),
                   *token = yyjson_get_str(yyjson_ptr_get(answer, "/metadata/continue"));
        char *more = strstr(path, "&continue=");
        if (!yyjson_obj_get(answer, "items") || !rv)
                return;
        listed[r->k] = strtoll(rv, NULL, 10);
        _cleanup_(freep) char *first = xstrndup(path, more ? (size_t)(more - path) : strlen(path));
        char form[FORM_MAX];
        if (token && form_of(r->method, first, NULL, r->accept, (struct str){ NULL, 0 }, form))
                note_token(form, first, token);
}

/* ---- the object of a request ---- */

static const struct version *some(enum kind k) {
        return store_count(k) ? store_nth(k, draw_below(store_count(k))) : NULL;
}

struct about {
        char ns[64], name[256];
        const struct version *v; /* NULL: it does not exist */
};

/* Usually an existing object. */
static void choose(enum kind k, bool fresh, struct about *a) {
        static const char *const spaces[] = DRAW_SPACES;
        const struct version *v = draw_chance(fresh ? 15 : 90) ? some(k) : NULL;
        snprintf(a->ns, sizeof a->ns, "%s", v ? v->ns : draw_chance(3) ? "nowhere" : ONE_OF(spaces));
        if (v)
                snprintf(a->name, sizeof a->name, "%s", v->name);
        else
                snprintf(a->name, sizeof a->name, "%s%" PRIu64, k == K_NODE ? "n" : "x",
                         draw_below(k == K_NODE ? 4 : 6));
        if (draw_chance(1))
                snprintf(a->name, sizeof a->name, "%s", "no_name");
        a->v = store_get(k, kinds[k].namespaced ? a->ns : "", a->name);
}

static void add_path(enum kind k, bool ns, const struct about *a, const char *sub, struct buf *out) {
        buf_addf(out, *kinds[k].group ? "/apis/%s/%s" : "/api%s/%s", kinds[k].group, kinds[k].version);
        if (ns)
                buf_addf(out, "/namespaces/%s", a->ns);
        buf_addf(out, "/%s", kinds[k].plural);
        if (*a->name)
                buf_addf(out, "/%s%s%s", a->name, sub ? "/" : "", sub ? sub : "");
}

/* ---- the query ---- */

static void add_label_term(const char *key, struct str shape, struct buf *out) {
        static const char *const values[] = BODY_VALUES;
        struct str rest = str_from(key), part;
        bool first = true;
        while (rest.n && str_next_field(&rest, '/', &part)) {
                buf_addf(out, "%s%.*s", first ? "" : "%2F", (int)part.n, part.p);
                first = false;
        }
        if (!str_eq(shape, STR("key")))
                buf_addf(out, "%s%%3D%s", str_eq(shape, STR("key!=value")) ? "%21" : "", ONE_OF(values));
}

/* A shape with several terms, as "key+key!=value", has another key in each term. */
static void add_label_selector(const char *shape, struct buf *out) {
        static const char *const keys[] = BODY_LABELS;
        struct str rest = str_from(shape), term;
        size_t i = draw_below(ARRAY_LEN(keys));
        bool first = true;
        while (rest.n && str_next_field(&rest, '+', &term)) {
                buf_adds(out, first ? "" : "%2C");
                add_label_term(keys[i++ % ARRAY_LEN(keys)], term, out);
                first = false;
        }
}

static void add_field_selector(enum kind k, const char *shape, struct buf *out) {
        struct str rest = str_from(shape), field;
        bool first = true;
        while (rest.n && str_next_field(&rest, '+', &field)) {
                struct about a;
                choose(k, false, &a);
                buf_addf(out, "%s%.*s%%3D", first ? "" : "%2C", (int)field.n, field.p);
                if (str_eq(field, STR("metadata.name")))
                        buf_adds(out, a.name);
                else if (str_eq(field, STR("spec.nodeName")))
                        buf_addf(out, "n%" PRIu64, draw_below(3));
                else
                        buf_adds(out, draw_chance(80) ? BODY_DRIVER : "gpu.nvidia.com");
                first = false;
        }
}

/* The version of a list, or of one of the last few events of the kind. For others the version of the real
 * server is unknown. */
static int64_t version_to_watch(enum kind k) {
        enum { RECENT = 20, FEW = 40 };
        const struct change *c;
        size_t n = store_history(k, &c);
        if (draw_chance(4))
                return 1; /* compacted long ago */
        if (listed[k] && draw_chance(40) && (n < FEW || listed[k] >= c[n - FEW].rv))
                return listed[k];
        int64_t rv = n ? c[n - 1 - draw_below(n < RECENT ? n : RECENT)].rv : 0;
        return pairs_know_version(rv) && draw_chance(60) ? rv : store_rv();
}

static void add_term(const struct form *f, struct str term, struct buf *out) {
        char key[64], value[256];
        struct str name;
        str_next_field(&term, '=', &name);
        snprintf(key, sizeof key, "%.*s", (int)name.n, name.p);
        snprintf(value, sizeof value, "%.*s", (int)term.n, term.n ? term.p : "");
        buf_addf(out, "%s=", key);
        if (streq(key, "labelSelector"))
                add_label_selector(value, out);
        else if (streq(key, "fieldSelector"))
                add_field_selector(f->k, value, out);
        else if (streq(key, "limit"))
                buf_addf(out, "%" PRIu64, draw_chance(50) ? 500 : 1 + draw_below(4));
        else if (streq(key, "resourceVersion") && !*value)
                buf_addf(out, MARK_VERSION "%" PRId64 MARK_END, version_to_watch(f->k));
        else if (streq(key, "timeoutSeconds"))
                buf_addf(out, "%" PRIu64, draw_chance(95) ? NO_TIME_S : 4 + draw_below(3));
        else if (streq(key, "fieldManager"))
                buf_adds(out, "compute-domain-controller");
        else
                buf_adds(out, value);
}

/* The first page of a list has another form than the other pages. */
static bool add_token(const struct form *f, struct buf *out) {
        for (size_t i = 0; i < n_going; i++)
                if (streq(going[i].form, f->text)) {
                        buf_addf(out, "%s&continue=" MARK_TOKEN "%s" MARK_END, going[i].path, going[i].token);
                        forget_token(i);
                        return true;
                }
        return false;
}

static void add_query(const struct form *f, struct buf *out) {
        struct str rest = str_from(f->words[QUERY]), term;
        bool first = true;
        if (streq(f->words[QUERY], "-"))
                return;
        while (rest.n && str_next_field(&rest, ',', &term)) {
                buf_adds(out, first ? "?" : "&");
                add_term(f, term, out);
                first = false;
        }
}

/* ---- the body ---- */

static void add_conditions(const struct form *f, const struct version *v, struct buf *out) {
        if (has_word(f->words[CONDITIONS], "uid", NULL, 0))
                buf_addf(out, "'uid':'" MARK_UID "%s" MARK_END "',",
                         v && draw_chance(85) ? v->uid : "00000000-0000-4000-8000-000000000000");
        if (has_word(f->words[CONDITIONS], "resourceVersion", NULL, 0))
                buf_addf(out, "'resourceVersion':'" MARK_VERSION "%" PRId64 MARK_END "',",
                         v && draw_chance(75) ? v->rv : pairs_some_version(draw_below(1 << 20)));
}

static void add_delete(const struct form *f, const struct version *v, struct buf *out) {
        char grace[16];
        buf_adds(out, "{'apiVersion':'v1','kind':'DeleteOptions',");
        if (has_word(f->words[CONDITIONS], "gracePeriodSeconds", grace, sizeof grace))
                buf_addf(out, "'gracePeriodSeconds':%s,", grace);
        buf_adds(out, "'preconditions':{");
        add_conditions(f, v, out);
        buf_adds(out, "}}");
}

static void add_body(const struct form *f, const struct about *a, struct buf *out) {
        const char *verb = f->words[VERB], *sub = strchr(f->words[RESOURCE], '/');
        struct buf b = BUF_INIT(1 << 20), meta = BUF_INIT(1 << 16);
        add_conditions(f, a->v, &meta);
        if (streq(verb, "delete"))
                add_delete(f, a->v, &b);
        else if (streq(verb, "patch") && sub)
                bodies_status(f->k, a->v, buf_str(&meta), &b);
        else if (streq(verb, "patch"))
                bodies_patch(f->k, a->v, buf_str(&meta), &b);
        else
                bodies_object(f->k, a->ns, a->name,
                              has_word(f->words[CONDITIONS], "generateName", NULL, 0) && !a->v, a->v,
                              buf_str(&meta), &b);
        /* The text has ' instead of "; no value contains either. */
        for (const char *p = buf_str(&b); *p; p++) {
                if (*p == ',' && (p[1] == '}' || p[1] == ']'))
                        continue;
                buf_addc(out, *p == '\'' ? '"' : *p);
        }
        buf_done(&b);
        buf_done(&meta);
}

/* ---- requests ---- */

void request_done(struct request *r) {
        free(r->method);
        free(r->path);
        free(r->content_type);
        free(r->accept);
        free(r->body);
        *r = (struct request){ .k = K_COUNT };
}

static const char *method_of(const char *verb) {
        static const char *const methods[][2] = { { "create", "POST" },
                                                  { "update", "PUT" },
                                                  { "patch", "PATCH" },
                                                  { "apply", "PATCH" },
                                                  { "delete", "DELETE" } };
        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
                if (streq(verb, methods[i][0]))
                        return methods[i][1];
        return "GET";
}

static const char *content_type_of(const char *word) {
        return streq(word, "merge")   ? "application/merge-patch+json"
               : streq(word, "apply") ? "application/apply-patch+yaml"
               : streq(word, "-")     ? NULL
                                      : "application/json";
}

static void make(const struct form *f, struct request *r) {
        const char *verb = f->words[VERB];
        bool whole = streq(verb, "list") || streq(verb, "watch") || streq(verb, "create");
        struct buf path = BUF_INIT(1 << 16), body = BUF_INIT(1 << 20);
        char *sub = strchr(f->words[RESOURCE], '/');
        struct about a = { .v = NULL }, at;
        char value[16];
        *r = (struct request){ .k = f->k, .watch = streq(verb, "watch") };
        choose(f->k, streq(verb, "create") || streq(verb, "apply"), &a);
        at = a;
        if (whole)
                *at.name = '\0';
        if (!has_word(f->words[QUERY], "continue", NULL, 0) || !add_token(f, &path)) {
                add_path(f->k, streq(f->words[SPACE], "ns"), &at, sub ? sub + 1 : NULL, &path);
                add_query(f, &path);
        }
        r->from_cache =
                has_word(f->words[QUERY], "resourceVersion", value, sizeof value) && streq(value, "0");
        if (!streq(f->words[BODY], "-")) {
                add_body(f, &a, &body);
                r->body = buf_steal(&body);
        }
        r->method = xstrdup(method_of(verb));
        r->path = buf_steal(&path);
        r->content_type = xstrdup_or_null(content_type_of(f->words[BODY]));
        r->accept = xstrdup(streq(f->words[ACCEPT], "json") ? "application/json"
                            : streq(verb, "list")
                                    ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
                                    : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        buf_done(&path);
        buf_done(&body);
}

/* A version or a resource that is not served. The client then tries the next version of the group. */
static void spoil_resource(struct request *r) {
        struct buf path = BUF_INIT(1 << 16);
        bool other = draw_chance(50);
        buf_addf(&path, *kinds[r->k].group ? "/apis/%s/%s/%s" : "/api%s/%s/%s", kinds[r->k].group,
                 other ? kinds[r->k].version : "v9", other ? "nothing" : kinds[r->k].plural);
        free(r->path);
        r->path = buf_steal(&path);
        r->k = K_COUNT;
        r->from_cache = false;
}

/* Requests that our programs should not send, but whose answers have a status that they handle. */
static void spoil(struct request *r) {
        enum { TOO_LARGE = (3 << 20) + 4096 };
        bool body = r->body != NULL;
        switch (draw_below(9)) {
        case 0:
                r->caller = CALLER_NOBODY;
                break;
        case 1:
                r->caller = CALLER_STRANGER;
                break;
        case 2:
                free(r->accept);
                r->accept = xstrdup("text/plain");
                break;
        case 3:
                if (body) {
                        free(r->content_type);
                        r->content_type = xstrdup("text/plain");
                }
                break;
        case 4:
                if (body && !streq(r->method, "DELETE")) {
                        free(r->body);
                        r->body = xstrdup(draw_chance(50) ? "{" : "[1]");
                }
                break;
        case 5:
                if (!strchr(r->path, '?') && !strstr(r->path, "/status") &&
                    !streq(r->method, "POST")) {
                        char *path = xasprintf("%s/nothing", r->path);
                        free(r->path);
                        r->path = path;
                }
                break;
        case 6:
                if (streq(r->method, "POST")) {
                        free(r->method);
                        r->method = xstrdup("PUT");
                }
                break;
        case 7:
                spoil_resource(r);
                break;
        default:
                if (body && draw_chance(20)) {
                        free(r->body);
                        r->body = xmalloc(TOO_LARGE + 1);
                        memset(r->body, ' ', TOO_LARGE);
                        r->body[TOO_LARGE] = '\0';
                }
                break;
        }
}

/* Fewer reads: otherwise most requests would be reads, and a list waits until the real server's cache is
 * current. */
static bool is_write(const struct form *f) {
        return !streq(f->words[VERB], "get") && !streq(f->words[VERB], "list") &&
               !streq(f->words[VERB], "watch");
}

static bool is_full(const struct form *f) {
        return streq(f->words[VERB], "create") && store_count(f->k) > MOST_OBJECTS;
}

static bool is_direct(const struct form *f) {
        return !streq(f->words[VERB], "list") && !streq(f->words[VERB], "watch");
}

void draw_direct(bool is) {
        direct = is;
}

void draw_next(struct request *r) {
        const struct form *f;
        do
                f = &forms[draw_below(n_forms)];
        while ((!is_write(f) && draw_chance(is_direct(f) ? 50 : 85)) || is_full(f) ||
               (direct && !is_direct(f)));
        make(f, r);
        if (draw_chance(WRONG_PERCENT) && !r->watch)
                spoil(r);
}

void draw_catch_up(enum kind k, struct request *r) {
        const struct about all = { .v = NULL };
        struct buf path = BUF_INIT(4096);
        add_path(k, false, &all, NULL, &path);
        *r = (struct request){ .k = k,
                               .method = xstrdup("GET"),
                               .path = buf_steal(&path),
                               .accept = xstrdup("application/json") };
}
