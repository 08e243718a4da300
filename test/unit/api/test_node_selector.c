/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/node_selector.h"
#include "base/mem.h"
#include "base/str.h"

static void selectors_match_as_in_kubernetes(void **state) {
#define TERM(requirement) "{\"nodeSelectorTerms\":[{\"matchExpressions\":[" requirement "]}]}"
        static const struct {
                const char *selector;
                bool is;
        } cases[] = {
                { "{}", true },
                { "{\"nodeSelector\":{\"a\":\"1\"}}", true },
                { "{\"nodeSelector\":{\"a\":\"2\"}}", false },
                { "{\"nodeSelector\":{\"z\":\"1\"}}", false },
                { "{\"nodeSelectorTerms\":[{}]}", false },
                { "{\"nodeSelectorTerms\":[{},{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]"
                  "}]}",
                  true },
                { TERM("{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"0\",\"1\"]}"), true },
                { TERM("{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"0\"]}"), false },
                { TERM("{\"key\":\"z\",\"operator\":\"In\",\"values\":[\"0\"]}"), false },
                { TERM("{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"1\"]}"), false },
                { TERM("{\"key\":\"z\",\"operator\":\"NotIn\",\"values\":[\"1\"]}"), true },
                { TERM("{\"key\":\"z\",\"operator\":\"Exists\"}"), false },
                { TERM("{\"key\":\"z\",\"operator\":\"DoesNotExist\"}"), true },
                { TERM("{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"0\"]}"), true },
                { TERM("{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"1\"]}"), false },
                { TERM("{\"key\":\"a\",\"operator\":\"Lt\",\"values\":[\"2\"]}"), true },
                { TERM("{\"key\":\"a\",\"operator\":\"Lt\",\"values\":[\"1\"]}"), false },
                { TERM("{\"key\":\"b\",\"operator\":\"Lt\",\"values\":[\"2\"]}"), false },
                { TERM("{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":\"z\",\"operator\":\"Exists\"}"),
                  false },
                { "{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
                  "\"values\":[\"n1\"]}]}]}",
                  true },
                { "{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
                  "\"values\":[\"n2\"]}]}]}",
                  false },
        };
        const struct jd_pair labels[] = { { "a", "1" }, { "b", "x" } };
        struct arena *a = arena_new(1024);
        struct node_selector s;
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_int_equal(node_selector_parse(cases[i].selector, a, &s, &e), 0);
                /* The sanitizer sees a read behind the end of the list. */
                struct node_term *terms = xnew_n(struct node_term, s.n_terms);
                for (size_t k = 0; k < s.n_terms; k++)
                        terms[k] = s.terms[k];
                s.terms = terms;
                for (int unknown = 0; unknown < 2; unknown++)
                        if (node_selector_matches(&s, "n1", labels, ARRAY_LEN(labels), unknown) !=
                            cases[i].is)
                                fail_msg("%s", cases[i].selector);
                free(terms);
        }
        assert_int_equal(node_selector_parse("{\"nodeSelector\":{\"a\":true}}", a, &s, &e), -1);
        arena_free(a);
}

/* For `kubectl compute-domains why` such a requirement excludes no node. For a plugin that is asked to end it
 * excludes every node, so the plugin stays until its claims are unprepared. */
static void the_caller_decides_about_unknown_operators_and_fields(void **state) {
        static const char *const selectors[] = {
                TERM("{\"key\":\"a\",\"operator\":\"Like\",\"values\":[\"1\"]}"),
                "{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"spec.zone\",\"operator\":\"In\","
                "\"values\":[\"n1\"]}]}]}",
        };
        const struct jd_pair labels[] = { { "a", "1" } };
        struct arena *a = arena_new(1024);
        struct node_selector s;
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
                assert_int_equal(node_selector_parse(selectors[i], a, &s, &e), 0);
                assert_true(node_selector_matches(&s, "n1", labels, 1, true));
                assert_false(node_selector_matches(&s, "n1", labels, 1, false));
        }
        arena_free(a);
}

static void the_spec_of_a_pod_is_decoded(void **state) {
        static const char spec[] =
                "{\"nodeSelector\":{\"a\":\"1\"},\"affinity\":{\"nodeAffinity\":{"
                "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
                "\"matchExpressions\":[{\"key\":\"b\",\"operator\":\"Exists\"}]}]}}}}";
        const struct jd_pair labels[] = { { "a", "1" }, { "b", "x" } };
        struct arena *a = arena_new(1024);
        struct node_selector s = { 0 };
        struct err e;
        assert_int_equal(jd_decode_text(node_selector_spec_fields, str_from(spec), "spec", a, &s, &e), 0);
        assert_true(node_selector_matches(&s, NULL, labels, 2, false));
        assert_false(node_selector_matches(&s, NULL, labels, 1, false));
        assert_false(node_selector_matches(&s, NULL, labels + 1, 1, false));
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(selectors_match_as_in_kubernetes),
                cmocka_unit_test(the_caller_decides_about_unknown_operators_and_fields),
                cmocka_unit_test(the_spec_of_a_pod_is_decoded),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
