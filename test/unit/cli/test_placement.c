/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes the scheduler would exclude for a pod. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "cli/placement.h"

#define REQUIRED(terms)                                                                                      \
        "{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"              \
        "\"nodeSelectorTerms\":[" terms "]}}}}"
#define LABELS(requirements) REQUIRED("{\"matchExpressions\":[" requirements "]}")
#define FIELDS(requirements) REQUIRED("{\"matchFields\":[" requirements "]}")
#define IS(key, op, values) "{\"key\":\"" key "\",\"operator\":\"" op "\",\"values\":[" values "]}"
#define TOLERATES(list) "{\"tolerations\":[" list "]}"

/* The labels pool=a and gen=12 on node-1. */
static const char no_taint[] = "";
#define TAINT(key, value, effect) "{\"key\":\"" key "\",\"value\":\"" value "\",\"effect\":\"" effect "\"}"

static enum placement judge(const char *pod_spec, const char *taints) {
        struct arena *a = arena_new(1024);
        struct pod_object *p = arena_alloc(a, sizeof *p);
        struct node_object *n = arena_alloc(a, sizeof *n);
        struct err e;
        const char *pod = arena_printf(
                a, "{\"metadata\":{\"name\":\"p\",\"uid\":\"p\",\"resourceVersion\":\"1\"},\"spec\":%s}",
                pod_spec);
        const char *node =
                arena_printf(a,
                             "{\"metadata\":{\"labels\":{\"pool\":\"a\",\"gen\":\"12\"}},\"spec\":{"
                             "\"taints\":[%s]}}",
                             taints);
        if (jd_decode_text(pod_object_fields, str_from(pod), "", a, p, &e) < 0)
                fail_msg("%s: %s", pod, e.msg);
        if (jd_decode_text(node_object_fields, str_from(node), "", a, n, &e) < 0)
                fail_msg("%s: %s", node, e.msg);
        n->node.o.meta.name = "node-1";
        enum placement r = placement_judge(p, n);
        assert_true((r == PLACEMENT_TAINT) == (placement_taint(p, n) != NULL));
        arena_free(a);
        return r;
}

static void judge_labels(const char *pod_spec, bool matches) {
        if ((judge(pod_spec, no_taint) == PLACEMENT_ALLOWED) != matches)
                fail_msg("%s %s", pod_spec, matches ? "does not match" : "matches");
}

static void a_node_selector_needs_each_label(void **state) {
        (void)state;
        judge_labels("{}", true);
        judge_labels("{\"nodeSelector\":{\"pool\":\"a\",\"gen\":\"12\"}}", true);
        judge_labels("{\"nodeSelector\":{\"pool\":\"a\",\"gen\":\"13\"}}", false);
        judge_labels("{\"nodeSelector\":{\"other\":\"\"}}", false);
}

static void each_operator_of_the_node_affinity_is_known(void **state) {
        (void)state;
        judge_labels(LABELS(IS("pool", "In", "\"b\",\"a\"")), true);
        judge_labels(LABELS(IS("pool", "In", "\"b\"")), false);
        judge_labels(LABELS(IS("other", "In", "\"a\"")), false);
        judge_labels(LABELS(IS("pool", "NotIn", "\"b\"")), true);
        judge_labels(LABELS(IS("pool", "NotIn", "\"a\"")), false);
        judge_labels(LABELS(IS("other", "NotIn", "\"a\"")), true);
        judge_labels(LABELS(IS("pool", "Exists", "")), true);
        judge_labels(LABELS(IS("other", "Exists", "")), false);
        judge_labels(LABELS(IS("pool", "DoesNotExist", "")), false);
        judge_labels(LABELS(IS("other", "DoesNotExist", "")), true);
        judge_labels(LABELS(IS("gen", "Gt", "\"11\"")), true);
        judge_labels(LABELS(IS("gen", "Gt", "\"12\"")), false);
        judge_labels(LABELS(IS("gen", "Lt", "\"13\"")), true);
        judge_labels(LABELS(IS("gen", "Lt", "\"12\"")), false);
        judge_labels(LABELS(IS("pool", "Gt", "\"1\"")), false);
        judge_labels(LABELS(IS("gen", "Gt", "\"x\"")), false);
        judge_labels(LABELS(IS("other", "Lt", "\"1\"")), false);
        judge_labels(FIELDS(IS("metadata.name", "In", "\"node-1\"")), true);
        judge_labels(FIELDS(IS("metadata.name", "In", "\"node-2\"")), false);
}

static void all_requirements_of_one_term_must_match(void **state) {
        (void)state;
        judge_labels(LABELS(IS("pool", "In", "\"a\"") "," IS("gen", "In", "\"12\"")), true);
        judge_labels(LABELS(IS("pool", "In", "\"a\"") "," IS("gen", "In", "\"1\"")), false);
        judge_labels(
                REQUIRED("{\"matchExpressions\":[" IS("pool", "In", "\"b\"") "]},{\"matchExpressions\":[" IS(
                        "gen", "In", "\"12\"") "]}"),
                true);
        judge_labels(REQUIRED("{}"), false);
}

/* Only the scheduler's message is certain then. */
static void an_operator_of_a_later_version_excludes_no_node(void **state) {
        (void)state;
        judge_labels(LABELS(IS("pool", "Like", "\"b\"")), true);
        assert_int_equal(judge(TOLERATES("{\"key\":\"x\",\"operator\":\"Gt\",\"value\":\"5\"}"),
                               TAINT("x", "6", "NoSchedule")),
                         PLACEMENT_ALLOWED);
}

static void a_taint_excludes_pods_without_a_toleration(void **state) {
        static const struct {
                const char *spec, *taints;
                bool allowed;
        } cases[] = {
                { "{}", TAINT("x", "y", "NoSchedule"), false },
                { "{}", TAINT("x", "y", "NoExecute"), false },
                { "{}", TAINT("x", "y", "PreferNoSchedule"), true },
                { TOLERATES("{\"key\":\"x\",\"value\":\"y\"}"), TAINT("x", "y", "NoSchedule"), true },
                { TOLERATES("{\"key\":\"x\",\"operator\":\"Equal\",\"value\":\"z\"}"),
                  TAINT("x", "y", "NoSchedule"), false },
                { TOLERATES("{\"key\":\"x\",\"operator\":\"Exists\"}"), TAINT("x", "y", "NoExecute"), true },
                { TOLERATES("{\"key\":\"z\",\"operator\":\"Exists\"}"), TAINT("x", "y", "NoExecute"), false },
                { TOLERATES("{\"key\":\"x\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}"),
                  TAINT("x", "y", "NoExecute"), false },
                { TOLERATES("{\"operator\":\"Exists\"}"), TAINT("x", "y", "NoExecute"), true },
                { TOLERATES("{\"key\":\"x\",\"operator\":\"Exists\"}"),
                  TAINT("x", "y", "NoSchedule") "," TAINT("z", "", "NoSchedule"), false },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                if ((judge(cases[i].spec, cases[i].taints) == PLACEMENT_ALLOWED) != cases[i].allowed)
                        fail_msg("case %zu", i);
}

/* inventory_is_up() reports it. */
static void the_state_of_a_node_is_not_judged_by_its_taints(void **state) {
        (void)state;
        assert_int_equal(judge("{}", TAINT("node.kubernetes.io/not-ready", "", "NoSchedule")),
                         PLACEMENT_ALLOWED);
        assert_int_equal(judge("{}", TAINT("node.kubernetes.io/unschedulable", "", "NoSchedule")),
                         PLACEMENT_ALLOWED);
        assert_int_equal(judge("{}", TAINT("node.kubernetes.io/memory-pressure", "", "NoSchedule")),
                         PLACEMENT_TAINT);
}

static void a_node_that_does_not_exist_has_no_labels(void **state) {
        static const struct pod_object any;
        struct jd_pair label = { .key = "pool", .value = "a" };
        const struct pod_object selects = { .selector = { .labels = &label, .n_labels = 1 } };
        (void)state;
        assert_int_equal(placement_judge(&any, NULL), PLACEMENT_ALLOWED);
        assert_int_equal(placement_judge(&selects, NULL), PLACEMENT_LABELS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_node_selector_needs_each_label),
                cmocka_unit_test(each_operator_of_the_node_affinity_is_known),
                cmocka_unit_test(all_requirements_of_one_term_must_match),
                cmocka_unit_test(an_operator_of_a_later_version_excludes_no_node),
                cmocka_unit_test(a_taint_excludes_pods_without_a_toleration),
                cmocka_unit_test(the_state_of_a_node_is_not_judged_by_its_taints),
                cmocka_unit_test(a_node_that_does_not_exist_has_no_labels),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
