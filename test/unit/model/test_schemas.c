/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the chart's CustomResourceDefinitions with the tables that decode the objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka needs the four headers above */
#include <cmocka.h>

#include "base/json.h"
#include "model/clique.h"
#include "model/domain.h"
#include "model/fabric.h"

static const char *const schemas[] = {
#include "schemas.inc"
};
static const struct {
        const char *kind;
        const struct jd_field *fields;
} kinds[ARRAY_LEN(schemas)] = {
        { "ComputeDomain", compute_domain_fields },
        { "ComputeDomainClique", clique_fields },
        { "ComputeDomainFabric", compute_domain_fabric_fields },
};

static yyjson_val *member(yyjson_val *v, const char *name) {
        return yyjson_obj_get(v, name);
}

static bool lists_text(yyjson_val *list, const char *text) {
        size_t i, max;
        yyjson_val *v;
        yyjson_arr_foreach (list, i, max, v)
                if (yyjson_equals_str(v, text))
                        return true;
        return false;
}

static const char *type_of(const struct jd_field *f) {
        static const char *const names[] = {
                [JD_T_STR] = "string",  [JD_T_TEXT] = "string",   [JD_T_TIME] = "string", [JD_T_BOOL] = "boolean",
                [JD_T_INT] = "integer", [JD_T_OBJ] = "object",    [JD_T_MAP] = "object",  [JD_T_OPTOBJ] = "object",
                [JD_T_LIST] = "array",
        };
        return names[f->type];
}

/* The field with this path. */
static const struct jd_field *find(const struct jd_field *fields, const char *path) {
        for (const struct jd_field *f = fields; f->name; f++) {
                const struct jd_field *in = f->type == JD_T_INLINE ? find(f->sub, path) : NULL;
                if (in || strcmp(f->name, path) == 0)
                        return in ?: f;
        }
        return NULL;
}

static bool has_below(const struct jd_field *fields, const char *path) {
        size_t n = strlen(path);
        for (const struct jd_field *f = fields; f->name; f++)
                if (strncmp(f->name, path, n) == 0 && f->name[n] == '>')
                        return true;
        return false;
}

static void check_object(const struct jd_field *fields, yyjson_val *schema, const char *where);

static void check_value(const struct jd_field *f, yyjson_val *schema, const char *where) {
        yyjson_val *items = member(schema, "items"), *keys = member(schema, "x-kubernetes-list-map-keys");
        size_t i, max;
        yyjson_val *key;
        if (!yyjson_equals_str(member(schema, "type"), type_of(f)))
                fail_msg("%s: the table reads %s", where, type_of(f));
        if (yyjson_equals_str(member(schema, "format"), "date-time") != (f->type == JD_T_TIME))
                fail_msg("%s is a time only in the schema or the table", where);
        if (f->type == JD_T_OBJ || f->type == JD_T_OPTOBJ)
                check_object(f->sub, schema, where);
        if (f->type == JD_T_LIST && f->sub == jd_f_text)
                assert_true(yyjson_equals_str(member(items, "type"), "string"));
        else if (f->type == JD_T_LIST)
                check_object(f->sub, items, where);
        assert_int_equal(yyjson_equals_str(member(schema, "x-kubernetes-list-type"), "map"), keys != NULL);
        yyjson_arr_foreach (keys, i, max, key) {
                const struct jd_field *in = find(f->sub, yyjson_get_str(key));
                if (!in || in->type != JD_T_STR || !in->required)
                        fail_msg("%s: the table does not require the key %s", where, yyjson_get_str(key));
        }
}

/* The API server defines these members of the root. */
static bool is_of_kubernetes(const char *where, const char *name) {
        return !strchr(where, '.') && (strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0 ||
                                       str_starts(name, "metadata"));
}

/* Every property of the schema has a row in the table. */
static void check_properties(const struct jd_field *fields, yyjson_val *schema, const char *prefix,
                             const char *where) {
        size_t i, max;
        yyjson_val *name, *property;
        yyjson_obj_foreach (member(schema, "properties"), i, max, name, property) {
                const char *last = str_or(yyjson_get_str(name), "");
                _cleanup_(freep) char *path = xasprintf("%s%s", prefix, last),
                                      *at = xasprintf("%s.%s", where, last), *below = xasprintf("%s>", path);
                const struct jd_field *f = find(fields, path);
                if (is_of_kubernetes(where, path))
                        continue;
                if (f)
                        check_value(f, property, at);
                else if (has_below(fields, path))
                        check_properties(fields, property, below, at);
                else
                        fail_msg("%s is in the schema, but not in the table", at);
        }
}

/* Every row of the table has a property in the schema, which requires the member if the table does. */
static void check_rows(const struct jd_field *fields, yyjson_val *schema, const char *where) {
        for (const struct jd_field *f = fields; f->name; f++) {
                const char *name = f->name, *rest;
                yyjson_val *of = schema;
                if (f->type == JD_T_INLINE) {
                        check_rows(f->sub, schema, where);
                        continue;
                }
                if (is_of_kubernetes(where, f->name))
                        continue;
                for (; of && (rest = strchr(name, '>')); name = rest + 1)
                        of = yyjson_obj_getn(member(of, "properties"), name, (size_t)(rest - name));
                if (!member(member(of, "properties"), name))
                        fail_msg("%s: %s is in the table, but not in the schema", where, f->name);
                if (f->required && !lists_text(member(of, "required"), name))
                        fail_msg("%s: only the table requires %s", where, f->name);
        }
}

static void check_object(const struct jd_field *fields, yyjson_val *schema, const char *where) {
        check_properties(fields, schema, "", where);
        check_rows(fields, schema, where);
}

/* The API server drops a member that the schema lacks, and the decoder ignores one that the table lacks, both
 * without an error. */
static void every_schema_has_the_members_of_its_table(void **state) {
        for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
                struct err e;
                yyjson_doc *doc = json_parse(str_from(schemas[i]), YYJSON_READ_NOFLAG, &e);
                check_object(kinds[i].fields, yyjson_doc_get_root(doc), kinds[i].kind);
                yyjson_doc_free(doc);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_schema_has_the_members_of_its_table),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
