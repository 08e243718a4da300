/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const texts[] = {
#include "schemas.inc"
};
static const enum kind of[] = { K_DOMAIN, K_CLIQUE, K_FABRIC };
/* The rules of the schemas. They are in CEL, and each is repeated here in C. */
#define CHANNEL_IS_FIXED                                                                                     \
        "has(self.channel) == has(oldSelf.channel) && (!has(self.channel) || self.channel == "               \
        "oldSelf.channel)"

static bool old;
static char why[512];

void schema_set_old(bool is) {
        old = is;
}

static yyjson_val *schema_of(enum kind k) {
        static yyjson_doc *docs[ARRAY_LEN(texts)];
        for (size_t i = 0; i < ARRAY_LEN(of); i++) {
                if (of[i] != k)
                        continue;
                if (!docs[i])
                        docs[i] = yyjson_read(texts[i], strlen(texts[i]), 0);
                return yyjson_doc_get_root(docs[i]);
        }
        return NULL;
}

/* The path to a value, as a chain on the stack. It becomes text only for a refusal. */
struct path {
        const struct path *up;
        const char *name;
};

static void add_path(const struct path *p, struct buf *b) {
        if (p->up)
                add_path(p->up, b);
        buf_addf(b, "%s%.40s", p->up ? "." : "", p->name);
}

static bool refuse(const struct path *path, const char *what) {
        struct buf b = BUF_INIT(4096);
        add_path(path, &b);
        snprintf(why, sizeof why, "%.200s: %s", buf_str(&b), what);
        buf_done(&b);
        return false;
}

static bool is_inside(const struct path *p, const char *name) {
        while (p && !streq(p->name, name))
                p = p->up;
        return p;
}

static bool matches(const char *pattern, const char *s) {
        static struct {
                const char *pattern;
                regex_t compiled;
        } known[8];
        size_t i = 0;
        while (i < ARRAY_LEN(known) && known[i].pattern && known[i].pattern != pattern)
                i++;
        BUG_ON(i == ARRAY_LEN(known));
        if (!known[i].pattern) {
                BUG_ON(regcomp(&known[i].compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0);
                known[i].pattern = pattern;
        }
        return regexec(&known[i].compiled, s, 0, NULL, 0) == 0;
}

/* Lengths count characters. */
static size_t length(yyjson_val *v) {
        size_t n = 0;
        for (const char *p = yyjson_get_str(v); *p; p++)
                n += ((unsigned char)*p & 0xc0) != 0x80;
        return n;
}

static bool check_text(yyjson_val *schema, yyjson_val *v, const struct path *path) {
        yyjson_val *most = yyjson_obj_get(schema, "maxLength"), *least = yyjson_obj_get(schema, "minLength"),
                   *choice = yyjson_obj_get(schema, "enum"), *x;
        const char *pattern = yyjson_get_str(yyjson_obj_get(schema, "pattern"));
        size_t i, max, n;
        bool found = !choice;
        int64_t time;
        if (!yyjson_is_str(v))
                return refuse(path, "no text");
        n = length(v);
        if (most && n > (size_t)yyjson_get_int(most))
                return refuse(path, "too long");
        if (least && n < (size_t)yyjson_get_int(least))
                return refuse(path, "too short");
        if (pattern && !matches(pattern, yyjson_get_str(v)))
                return refuse(path, "does not match the pattern");
        if (streq(yyjson_get_str(yyjson_obj_get(schema, "format")), "date-time") &&
            !jd_time(yyjson_get_str(v), &time))
                return refuse(path, "no time");
        yyjson_arr_foreach (choice, i, max, x)
                found = found || streq(yyjson_get_str(x), yyjson_get_str(v));
        return found || refuse(path, "not a value of the enum");
}

static bool check_number(yyjson_val *schema, yyjson_val *v, const struct path *path) {
        yyjson_val *most = yyjson_obj_get(schema, "maximum"), *least = yyjson_obj_get(schema, "minimum");
        if (!yyjson_is_int(v))
                return refuse(path, "no integer");
        if ((most && yyjson_get_sint(v) > yyjson_get_sint(most)) ||
            (least && yyjson_get_sint(v) < yyjson_get_sint(least)))
                return refuse(path, "out of bounds");
        return true;
}

static bool check(yyjson_val *schema, yyjson_val *v, yyjson_val *was, const struct path *path);

static bool has(yyjson_val *v, const char *key) {
        return yyjson_obj_get(v, key);
}

static const char *name_in(yyjson_val *v, const char *key) {
        return yyjson_get_str(yyjson_obj_get(yyjson_obj_get(v, key), "name"));
}

static bool is_channel_fixed(yyjson_val *v, yyjson_val *was) {
        yyjson_val *channel = yyjson_obj_get(v, "channel"), *before = yyjson_obj_get(was, "channel");
        return !was || (!channel == !before && (!channel || yyjson_equals(channel, before)));
}

static bool has_way_for_pods(yyjson_val *v, yyjson_val *was) {
        return has(v, "resourceClaimTemplate") || has(v, "resourceClaim") ||
               has(v, "sharedResourceClaimTemplate");
}

static bool names_differ(yyjson_val *v, yyjson_val *was) {
        const char *shared = name_in(v, "sharedResourceClaimTemplate");
        return !shared || !streq(name_in(v, "resourceClaimTemplate"), shared);
}

static bool has_one_channel(yyjson_val *v, yyjson_val *was) {
        return !streq(yyjson_get_str(yyjson_obj_get(v, "allocationMode")), "All") ||
               (!has(v, "resourceClaim") && !has(v, "sharedResourceClaimTemplate"));
}

static const struct {
        const char *cel;
        bool (*holds)(yyjson_val *v, yyjson_val *was);
        const char *why;
} rules[] = {
        { CHANNEL_IS_FIXED, is_channel_fixed, "channel is immutable" },
        { "has(self.resourceClaimTemplate) || has(self.resourceClaim) || "
          "has(self.sharedResourceClaimTemplate)",
          has_way_for_pods, "neither claim nor claim template" },
        { "!has(self.resourceClaimTemplate) || !has(self.sharedResourceClaimTemplate) || "
          "self.resourceClaimTemplate.name != self.sharedResourceClaimTemplate.name",
          names_differ, "two claim templates with one name" },
        { "!has(self.allocationMode) || self.allocationMode != 'All' || (!has(self.resourceClaim) && "
          "!has(self.sharedResourceClaimTemplate))",
          has_one_channel, "a shared claim with all channels" },
};

static bool check_rule(const char *cel, yyjson_val *v, yyjson_val *was, const struct path *path) {
        for (size_t i = 0; i < ARRAY_LEN(rules); i++)
                if (streq(rules[i].cel, cel))
                        return rules[i].holds(v, was) || refuse(path, rules[i].why);
        BUG_ON(true); /* the rule is not repeated here */
}

static bool check_object(yyjson_val *schema, yyjson_val *v, yyjson_val *was, const struct path *path) {
        yyjson_val *properties = yyjson_obj_get(schema, "properties"), *key, *x, *rule;
        size_t i, max;
        if (!yyjson_is_obj(v))
                return refuse(path, "no object");
        yyjson_arr_foreach (yyjson_obj_get(schema, "required"), i, max, x)
                if (!yyjson_obj_get(v, yyjson_get_str(x)))
                        return refuse(path, "a required member is missing");
        yyjson_obj_foreach (v, i, max, key, x) {
                yyjson_val *property = yyjson_obj_get(properties, yyjson_get_str(key));
                struct path below = { path, yyjson_get_str(key) };
                if (property && !check(property, x, yyjson_obj_get(was, yyjson_get_str(key)), &below))
                        return false;
        }
        yyjson_arr_foreach (yyjson_obj_get(schema, "x-kubernetes-validations"), i, max, rule)
                if (!check_rule(yyjson_get_str(yyjson_obj_get(rule, "rule")), v, was, path))
                        return false;
        return true;
}

/* A list of type map has no two elements with the same keys. */
static bool are_same(yyjson_val *keys, yyjson_val *a, yyjson_val *b) {
        yyjson_val *key;
        size_t i, max;
        yyjson_arr_foreach (keys, i, max, key) {
                yyjson_val *x = yyjson_obj_get(a, yyjson_get_str(key)),
                           *y = yyjson_obj_get(b, yyjson_get_str(key));
                if (!x != !y || (x && !yyjson_equals(x, y)))
                        return false;
        }
        return true;
}

static bool check_list(yyjson_val *schema, yyjson_val *v, const struct path *path) {
        yyjson_val *keys = yyjson_obj_get(schema, "x-kubernetes-list-map-keys"), *x, *y;
        size_t i, j, max, max_y;
        if (!yyjson_is_arr(v))
                return refuse(path, "no array");
        yyjson_arr_foreach (v, i, max, x) {
                if (!check(yyjson_obj_get(schema, "items"), x, NULL, path))
                        return false;
                yyjson_arr_foreach (v, j, max_y, y)
                        if (keys && j < i && are_same(keys, x, y))
                                return refuse(path, "duplicate key");
        }
        return true;
}

static bool check(yyjson_val *schema, yyjson_val *v, yyjson_val *was, const struct path *path) {
        const char *type = yyjson_get_str(yyjson_obj_get(schema, "type"));
        if (was && yyjson_equals(v, was))
                return true;
        if (streq(type, "object"))
                return check_object(schema, v, was, path);
        if (streq(type, "integer"))
                return check_number(schema, v, path);
        if (streq(type, "string"))
                return (old && path->up && is_inside(path->up, "resourceClaimTemplate")) ||
                       check_text(schema, v, path);
        BUG_ON(!streq(type, "array"));
        return check_list(schema, v, path);
}

const char *schema_refuses(enum kind k, yyjson_val *now, yyjson_val *was) {
        yyjson_val *schema = schema_of(k);
        return schema && !check(schema, now, was, &(struct path){ NULL, kinds[k].kind }) ? why : NULL;
}

/* ---- changes of an object before its validation ---- */

/* Members of every object. They may have no schema. */
static bool is_common(const char *key) {
        return streq(key, "apiVersion") || streq(key, "kind") || streq(key, "metadata");
}

static void complete(yyjson_val *schema, yyjson_mut_doc *d, yyjson_mut_val *v, bool root) {
        yyjson_val *properties = yyjson_obj_get(schema, "properties"), *name, *property;
        yyjson_mut_val *x;
        size_t i, max;
        if (yyjson_mut_is_arr(v)) {
                yyjson_mut_arr_foreach(v, i, max, x) complete(yyjson_obj_get(schema, "items"), d, x, false);
                return;
        }
        if (!yyjson_mut_is_obj(v) || !properties)
                return;
        yyjson_mut_obj_iter it;
        yyjson_mut_obj_iter_init(v, &it);
        while ((x = yyjson_mut_obj_iter_next(&it))) {
                const char *key = yyjson_mut_get_str(x);
                yyjson_val *known = yyjson_obj_get(properties, key);
                if (root && is_common(key))
                        continue;
                /* null means an absent member if there is a default. */
                if (!known ||
                    (yyjson_mut_is_null(yyjson_mut_obj_iter_get_val(x)) && yyjson_obj_get(known, "default")))
                        yyjson_mut_obj_iter_remove(&it);
        }
        yyjson_obj_foreach (properties, i, max, name, property) {
                const char *key = yyjson_get_str(name);
                yyjson_val *otherwise = yyjson_obj_get(property, "default");
                if (otherwise && !yyjson_mut_obj_get(v, key))
                        yyjson_mut_obj_add(v, yyjson_mut_str(d, key), yyjson_val_mut_copy(d, otherwise));
                if (!(root && is_common(key)))
                        complete(property, d, yyjson_mut_obj_get(v, key), false);
        }
}

void schema_complete(enum kind k, yyjson_mut_doc *d) {
        yyjson_val *schema = schema_of(k);
        if (schema)
                complete(schema, d, yyjson_mut_doc_get_root(d), true);
}
