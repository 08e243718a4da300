/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const texts[] = {
#include "schemas.inc"
};
static const enum kind of[] = { K_DOMAIN, K_CLIQUE, K_FABRIC };
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

static bool refuse(const char *path, const char *what) {
        snprintf(why, sizeof why, "%.200s: %s", path, what);
        return false;
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

static bool check_text(yyjson_val *schema, yyjson_val *v, const char *path) {
        yyjson_val *most = yyjson_obj_get(schema, "maxLength"), *least = yyjson_obj_get(schema, "minLength"),
                   *choice = yyjson_obj_get(schema, "enum"), *x;
        const char *pattern = yyjson_get_str(yyjson_obj_get(schema, "pattern"));
        size_t i, max, n = yyjson_get_len(v);
        bool found = !choice;
        if (!yyjson_is_str(v))
                return refuse(path, "no text");
        if (most && n > (size_t)yyjson_get_int(most))
                return refuse(path, "too long");
        if (least && n < (size_t)yyjson_get_int(least))
                return refuse(path, "too short");
        if (pattern && !matches(pattern, yyjson_get_str(v)))
                return refuse(path, "does not match the pattern");
        yyjson_arr_foreach (choice, i, max, x)
                found = found || streq(yyjson_get_str(x), yyjson_get_str(v));
        return found || refuse(path, "none of the enum");
}

static bool check_number(yyjson_val *schema, yyjson_val *v, const char *path) {
        yyjson_val *most = yyjson_obj_get(schema, "maximum"), *least = yyjson_obj_get(schema, "minimum");
        if (!yyjson_is_int(v))
                return refuse(path, "no integer");
        if ((most && yyjson_get_sint(v) > yyjson_get_sint(most)) ||
            (least && yyjson_get_sint(v) < yyjson_get_sint(least)))
                return refuse(path, "out of bounds");
        return true;
}

static bool check(yyjson_val *schema, yyjson_val *v, yyjson_val *was, const char *path);

static bool check_object(yyjson_val *schema, yyjson_val *v, yyjson_val *was, const char *path) {
        yyjson_val *properties = yyjson_obj_get(schema, "properties"), *key, *x, *rule;
        size_t i, max;
        if (!yyjson_is_obj(v))
                return refuse(path, "no object");
        yyjson_arr_foreach (yyjson_obj_get(schema, "required"), i, max, x)
                if (!yyjson_obj_get(v, yyjson_get_str(x)))
                        return refuse(path, "a required member is missing");
        yyjson_obj_foreach (v, i, max, key, x) {
                char below[256];
                yyjson_val *property = yyjson_obj_get(properties, yyjson_get_str(key));
                snprintf(below, sizeof below, "%.200s.%.40s", path, yyjson_get_str(key));
                if (property && !check(property, x, yyjson_obj_get(was, yyjson_get_str(key)), below))
                        return false;
        }
        yyjson_arr_foreach (yyjson_obj_get(schema, "x-kubernetes-validations"), i, max, rule) {
                yyjson_val *channel = yyjson_obj_get(v, "channel"), *before = yyjson_obj_get(was, "channel");
                BUG_ON(!streq(yyjson_get_str(yyjson_obj_get(rule, "rule")), CHANNEL_IS_FIXED));
                if (was && (!channel != !before || (channel && !yyjson_equals(channel, before))))
                        return refuse(path, "channel is immutable");
        }
        return true;
}

static bool check(yyjson_val *schema, yyjson_val *v, yyjson_val *was, const char *path) {
        const char *type = yyjson_get_str(yyjson_obj_get(schema, "type"));
        yyjson_val *x;
        size_t i, max;
        if (was && yyjson_equals(v, was))
                return true;
        if (streq(type, "object"))
                return check_object(schema, v, was, path);
        if (streq(type, "integer"))
                return check_number(schema, v, path);
        if (streq(type, "string"))
                return (old && strstr(path, ".resourceClaimTemplate.")) || check_text(schema, v, path);
        BUG_ON(!streq(type, "array"));
        if (!yyjson_is_arr(v))
                return refuse(path, "no array");
        yyjson_arr_foreach (v, i, max, x)
                if (!check(yyjson_obj_get(schema, "items"), x, NULL, path))
                        return false;
        return true;
}

const char *schema_refuses(enum kind k, yyjson_val *now, yyjson_val *was) {
        yyjson_val *schema = schema_of(k);
        return schema && !check(schema, now, was, kinds[k].kind) ? why : NULL;
}
