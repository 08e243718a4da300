/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

/* A Pod of the kubelet plugin, with what its host's annotation says ("" for none) and its condition Ready (""
 * for none). */
static const struct plugin_pod *plugin(struct arena *a, int created, const char *state, const char *phase,
                                       const char *ready) {
        struct buf annotations = BUF_INIT(256), conditions = BUF_INIT(256);
        if (*state)
                buf_addf(&annotations, ",'annotations':{'" IMEX_ANNOTATION_HOST_STATE "':'%s'}", state);
        if (*ready)
                buf_addf(&conditions,
                         ",'conditions':[{'type':'Initialized','status':'True'},{'type':'Ready','status':'%s'"
                         "}]",
                         ready);
        const struct plugin_pod *p = fake_plugin_json(
                a,
                "{'metadata':{'name':'p-%d','namespace':'driver','uid':'p-%d','resourceVersion':'1','"
                "creationTimestamp':'"
                "2026-01-01T00:00:%02dZ'%s},'spec':{'nodeName':'node-a'},'status':{'phase':'%s'%s}}",
                created, created, created, buf_str(&annotations), phase, buf_str(&conditions));
        buf_done(&annotations);
        buf_done(&conditions);
        return p;
}

static void a_plugin_that_does_not_run_well_tells_nothing(void **state) {
        struct arena *a = arena_new(4096);
        assert_true(plugin_pod_tells(plugin(a, 1, "UP", "Running", "True")));
        assert_true(plugin_pod_tells(plugin(a, 1, "DOWN", "Running", "True")));
        assert_false(plugin_pod_tells(plugin(a, 1, "UP", "Running", "False"))); /* CrashLoopBackOff */
        assert_false(plugin_pod_tells(plugin(a, 1, "UP", "Running", "Unknown")));
        assert_false(plugin_pod_tells(plugin(a, 1, "UP", "Pending", "")));
        assert_false(plugin_pod_tells(plugin(a, 1, "UP", "Failed", "True")));
        assert_false(plugin_pod_tells(plugin(a, 1, "UP", "Succeeded", "True")));
        assert_false(plugin_pod_tells(plugin(a, 1, "", "Running", "True")));
        struct plugin_pod leaving = *plugin(a, 1, "UP", "Running", "True");
        leaving.o.meta.deleted = 1700000000;
        assert_false(plugin_pod_tells(&leaving));
        arena_free(a);
}

static void a_node_with_a_gpu_is_known_by_the_labels_that_place_the_plugin(void **state) {
        static const struct {
                const char *labels;
                bool want;
        } cases[] = {
                { "", false },
                { "'nvidia.com/gpu.present':'true'", true },
                { "'nvidia.com/gpu.present':'false'", false },
                { "'feature.node.kubernetes.io/pci-10de.present':'true'", true },
                { "'feature.node.kubernetes.io/pci-0302_10de.present':'true'", true },
                { "'feature.node.kubernetes.io/pci-0300_10de.present':'true'", true },
                { "'feature.node.kubernetes.io/cpu-model.vendor_id':'NVIDIA'", true },
                { "'feature.node.kubernetes.io/cpu-model.vendor_id':'Intel'", false },
        };
        struct arena *a = arena_new(4096);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_int_equal(node_has_gpu(fake_node_json(a,
                                                             "{'metadata':{'name':'n','uid':'n',"
                                                             "'resourceVersion':'1','labels':{%s}}}",
                                                             cases[i].labels)),
                                 cases[i].want);
        arena_free(a);
}

static void of_the_pods_on_a_node_the_newest_that_tells_is_believed(void **state) {
        struct arena *a = arena_new(4096);
        const struct plugin_pod *old = plugin(a, 1, "UP", "Running", "True"),
                                *new = plugin(a, 2, "DOWN", "Running", "True"),
                                *starting = plugin(a, 3, "", "Pending", "False"),
                                *other = plugin(a, 4, "", "Running", "True"),
                                *crashing = plugin(a, 5, "UP", "Running", "False");
        assert_null(plugin_pod_choose(NULL, NULL));
        assert_null(plugin_pod_choose(NULL, crashing));
        assert_null(plugin_pod_choose(starting, other));
        assert_ptr_equal(plugin_pod_choose(NULL, old), old);
        assert_ptr_equal(plugin_pod_choose(old, new), new);
        assert_ptr_equal(plugin_pod_choose(new, old), new);
        assert_ptr_equal(plugin_pod_choose(old, starting), old);
        assert_ptr_equal(plugin_pod_choose(other, old),
                         old); /* the controller's own, where the selector matches that too */
        assert_ptr_equal(plugin_pod_choose(old, other), old);
        arena_free(a);
}

/* Kubelets write their node's status all the time; a reboot is news all the same. */
static void a_reboot_is_a_difference(void **state) {
        struct arena *a = arena_new(4096);
        static const char fmt[] =
                "{'metadata':{'name':'n','uid':'u','resourceVersion':'%d'},'status':{'nodeInfo':{"
                "'bootID':'%d1111111-0000-4000-8000-000000000000'}}}";
        assert_false(node_differs(fake_node_json(a, fmt, 1, 1), fake_node_json(a, fmt, 2, 1)));
        assert_true(node_differs(fake_node_json(a, fmt, 1, 1), fake_node_json(a, fmt, 2, 2)));
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_plugin_that_does_not_run_well_tells_nothing),
                cmocka_unit_test(a_node_with_a_gpu_is_known_by_the_labels_that_place_the_plugin),
                cmocka_unit_test(of_the_pods_on_a_node_the_newest_that_tells_is_believed),
                cmocka_unit_test(a_reboot_is_a_difference),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
