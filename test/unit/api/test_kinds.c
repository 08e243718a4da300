/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include <stdint.h>

/* A Pod of the kubelet plugin with this host state in its annotation ("": none) and this condition Ready ("":
 * none). */
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

/* failure: a plugin crashes in a loop -> the old state of its host on its Pod does not count [host-managed]
 * */
static void the_report_of_an_unhealthy_plugin_does_not_count(void **state) {
        struct arena *a = arena_new(4096);
        assert_true(plugin_pod_reports(plugin(a, 1, "UP", "Running", "True")));
        assert_true(plugin_pod_reports(plugin(a, 1, "DOWN", "Running", "True")));
        assert_false(plugin_pod_reports(plugin(a, 1, "UP", "Running", "False"))); /* CrashLoopBackOff */
        assert_false(plugin_pod_reports(plugin(a, 1, "UP", "Running", "Unknown")));
        assert_false(plugin_pod_reports(plugin(a, 1, "UP", "Pending", "")));
        assert_false(plugin_pod_reports(plugin(a, 1, "UP", "Failed", "True")));
        assert_false(plugin_pod_reports(plugin(a, 1, "UP", "Succeeded", "True")));
        assert_false(plugin_pod_reports(plugin(a, 1, "", "Running", "True")));
        struct plugin_pod leaving = *plugin(a, 1, "UP", "Running", "True");
        leaving.o.meta.deleted = 1700000000;
        assert_false(plugin_pod_reports(&leaving));
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

static void of_the_pods_on_a_node_the_newest_one_with_a_report_counts(void **state) {
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
                         old); /* the controller's Pod, if the selector matches it, too */
        assert_ptr_equal(plugin_pod_choose(old, other), old);
        arena_free(a);
}

/* Kubelets write the status of their Nodes all the time. Only a reboot matters. */
/* failure: a Node reports another boot ID -> the controller acts on it, and ignores all other heartbeats
 * [rebooted] */
static void a_changed_boot_id_is_a_difference(void **state) {
        struct arena *a = arena_new(4096);
        static const char fmt[] =
                "{'metadata':{'name':'n','uid':'u','resourceVersion':'%d'},'status':{'nodeInfo':{"
                "'bootID':'%d1111111-0000-4000-8000-000000000000'}}}";
        assert_true(jd_equal(node_fields, fake_node_json(a, fmt, 1, 1), fake_node_json(a, fmt, 2, 1)));
        assert_false(jd_equal(node_fields, fake_node_json(a, fmt, 1, 1), fake_node_json(a, fmt, 2, 2)));
        arena_free(a);
}

/* ---- Nodes of which only the metadata has arrived ---- */

#define WRITER(manager, time, fields)                                                                        \
        "{'manager':'" manager "','time':'" time "','fieldsV1':{'f:metadata':{},'f:spec':{" fields "}}}"
#define TAINTER WRITER("kube-controller-manager", "2026-01-01T00:00:01Z", "'f:podCIDR':{},'f:taints':{}")

static const struct node *trimmed_node(struct arena *a, const char *writers) {
        struct node *n = (struct node *)(uintptr_t)fake_node_json(
                a, "{'metadata':{'name':'n','uid':'u','resourceVersion':'1','managedFields':[%s]}}", writers);
        return node_trim(n, a);
}

static void the_writers_of_taints_and_unschedulable_show_that_they_changed(void **state) {
        static const struct {
                const char *was, *is;
                bool differs;
        } cases[] = {
                { "", "", false },
                { TAINTER, TAINTER, false },
                { "", TAINTER, true },
                { TAINTER, "", true },
                { TAINTER, WRITER("kube-controller-manager", "2026-01-01T00:00:02Z", "'f:taints':{}"), true },
                { TAINTER, WRITER("kubectl", "2026-01-01T00:00:01Z", "'f:taints':{}"), true },
                { TAINTER, TAINTER "," WRITER("kubectl", "2026-01-01T00:00:01Z", "'f:unschedulable':{}"),
                  true },
                { WRITER("kubectl", "2026-01-01T00:00:01Z", "'f:unschedulable':{}"),
                  WRITER("kubectl", "2026-01-01T00:00:01Z", "'f:unschedulable':{},'f:taints':{}"), true },
                /* Other fields, such as the status that the kubelet reports. */
                { TAINTER,
                  TAINTER ",{'manager':'kubelet','time':'2026-01-01T00:00:02Z','fieldsV1':{"
                          "'f:status':{'f:conditions':{}}},'subresource':'status'}",
                  false },
                { TAINTER, TAINTER "," WRITER("x", "2026-01-01T00:00:02Z", "'f:podCIDR':{}"), false },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct arena *a = arena_new(4096);
                bool differs = trimmed_node(a, cases[i].was)->spec_writers !=
                               trimmed_node(a, cases[i].is)->spec_writers;
                if (differs != cases[i].differs)
                        fail_msg("case %zu", i);
                arena_free(a);
        }
}

static void metadata_of_a_node_inherits_its_spec_and_status(void **state) {
        struct arena *a = arena_new(4096);
        static const char whole[] =
                "{'metadata':{'name':'n','uid':'u','resourceVersion':'1','labels':{'" CD_LABEL_DAEMON
                "':'true'}},'spec':{'unschedulable':true,'taints':[{'key':'" NODE_TAINT_OUT_OF_SERVICE
                "'}]},'status':{'nodeInfo':{'bootID':'11111111-0000-4000-8000-000000000000'},'conditions':[{"
                "'type':'Ready','status':'True'}]}}";
        const struct node *old = node_trim((void *)(uintptr_t)fake_node_json(a, whole), a);
        const struct node *n = node_inherit(trimmed_node(a, TAINTER), &old->o, a);
        assert_true(n->partial && !old->partial);
        assert_null(n->imex_daemon); /* the label was removed */
        assert_true(n->unschedulable && node_out_of_service(n) && node_ready(n));
        assert_string_equal(node_boot_id(n), "11111111-0000-4000-8000-000000000000");
        assert_true(n->spec_writers != old->spec_writers);
        n = node_inherit(trimmed_node(a, TAINTER), NULL, a);
        assert_true(n->partial && !node_ready(n) && !n->unschedulable && !node_out_of_service(n));
        assert_string_equal(node_boot_id(n), "");
        arena_free(a);
}

/* ---- which changes of an object count ---- */

struct change {
        const char *from, *to; /* in the text of the object */
        bool matters;
};

/* The object with the first `from` in it replaced. */
static char *changed(const char *object, const struct change *x) {
        const char *at = strstr(object, x->from);
        if (!at)
                fail_msg("no %s in %s", x->from, object);
        return xasprintf("%.*s%s%s", (int)(at - object), object, x->to, at + strlen(x->from));
}

#define POD_WAITS "'state':{'waiting':{'reason':'ImagePullBackOff','message':'no such image'}}"
static const char pod[] =
        "{'metadata':{'name':'d','namespace':'driver','uid':'p-1','resourceVersion':'1','labels':{"
        "'" CD_LABEL "':'" UID_A "','" CD_LABEL_CLIQUE "':'clique.1','other':'x'},'annotations':{"
        "'" CD_ANNOTATION_TEMPLATE "':'hash-1','" IMEX_ANNOTATION_STATE "':'STARTING',"
        "'" IMEX_ANNOTATION_REASON "':'reason-1','" IMEX_ANNOTATION_INDEX "':'index-1',"
        "'" IMEX_ANNOTATION_PEERS "':'peers-1','" IMEX_ANNOTATION_READY "':'ready-1',"
        "'" IMEX_ANNOTATION_AWAITED "':'awaited-1','other':'y'}},"
        "'spec':{'nodeName':'node-1','priority':1},'status':{'phase':'Running','hostIP':'192.0.2.1',"
        "'podIPs':[{'ip':'10.0.0.1'},{'ip':'fd00::1'}],'conditions':["
        "{'type':'Ready','status':'False','reason':'ready-reason','message':'ready-message',"
        "'lastTransitionTime':'2026-01-01T00:00:01Z','lastProbeTime':null},"
        "{'type':'PodScheduled','status':'True','reason':'scheduled-reason','message':'scheduled-message',"
        "'lastTransitionTime':'2026-01-01T00:00:02Z'},"
        "{'type':'Initialized','status':'True','lastTransitionTime':'2026-01-01T00:00:03Z'}],"
        "'containerStatuses':[{'name':'c','restartCount':1," POD_WAITS ",'imageID':'i'},"
        "{'name':'e','state':{'terminated':{'reason':'Error','message':'exit-message','exitCode':1}}}]}}";

static const struct pod *trimmed_pod(struct arena *a, const char *text) {
        return pod_trim((struct pod *)(uintptr_t)fake_pod_json(a, "%s", text), a);
}

/* failure: a daemon's Pod is updated -> the controller acts on exactly the changes that its rules read */
static void a_change_of_a_daemon_pod_counts_if_a_rule_reads_it(void **state) {
        static const struct change changes[] = {
                { "'uid':'p-1'", "'uid':'p-2'", true },
                { "'uid':'p-1'", "'uid':'p-1','deletionTimestamp':'2026-01-01T00:00:00Z'", true },
                { UID_A, UID_B, true },
                { "'" CD_LABEL "':'" UID_A "',", "", true },
                { "clique.1", "clique.2", true },
                { "clique.1", "", true },
                { "'" CD_LABEL_CLIQUE "':'clique.1',", "", true },
                { "hash-1", "hash-2", true },
                { "STARTING", "READY", true },
                { "reason-1", "reason-2", true },
                { "peers-1", "peers-2", true },
                { "ready-1", "ready-2", true },
                { "awaited-1", "awaited-2", true },
                { "node-1", "node-2", true },
                { "Running", "Failed", true },
                { "10.0.0.1", "10.0.0.2", true },
                { "'podIPs':[{'ip':'10.0.0.1'},{'ip':'fd00::1'}]", "'podIPs':[]", true },
                { "'status':'False','reason':'ready", "'status':'True','reason':'ready", true },
                { "ready-reason", "another", true },
                { "ready-message", "another", true },
                { "00:00:01Z", "00:01:01Z", true },
                { "'type':'Ready'", "'type':'ContainersReady'", true },
                { "ImagePullBackOff", "ErrImagePull", true },
                { "no such image", "not allowed", true },
                { POD_WAITS, "'state':{'running':{}}", true },
                { "waiting", "terminated", true },
                { "'reason':'Error'", "'reason':'OOMKilled'", true },
                { "exit-message", "another", true },
                { "'exitCode':1", "'exitCode':0", true },
                { "'imageID':'i'", "'lastState':{'terminated':{'exitCode':1}}", true },
                { "'terminated'", "'running'", true },
                { "'exitCode':1}}}", "'exitCode':1}}},{'name':'another'}", true },

                { "'uid'", "'uid'", false },
                { "'resourceVersion':'1'", "'resourceVersion':'2'", false },
                { "'other':'x'", "'other':'z'", false },
                { "'other':'y'", "'other':'z'", false },
                { "'priority':1", "'priority':2", false },
                { "index-1", "index-2", false },
                { "'status':'True','reason':'scheduled", "'status':'False','reason':'scheduled", false },
                { "192.0.2.1", "192.0.2.2", false },
                { "fd00::1", "fd00::2", false },
                { "'lastProbeTime':null", "'lastProbeTime':'2026-01-01T00:00:09Z'", false },
                { "00:00:03Z", "00:01:03Z", false }, /* Initialized */
                { "'restartCount':1", "'restartCount':2", false },
                { "'imageID':'i'", "'imageID':'j'", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
                struct arena *a = arena_new(4096);
                _cleanup_(freep) char *text = changed(pod, &changes[i]);
                const struct pod *was = trimmed_pod(a, pod), *is = trimmed_pod(a, text);
                if (jd_equal(pod_fields, was, is) == changes[i].matters ||
                    jd_equal(pod_fields, is, was) == changes[i].matters)
                        fail_msg("%s to %s %s", changes[i].from, changes[i].to,
                                 changes[i].matters ? "makes no difference" : "is a difference");
                arena_free(a);
        }
}

static const char set[] =
        "{'metadata':{'name':'d','namespace':'driver','uid':'s-1','resourceVersion':'1','generation':1,"
        "'labels':{'" CD_LABEL "':'" UID_A "','other':'x'},'finalizers':['" CD_FINALIZER "','b'],"
        "'annotations':{'" CD_ANNOTATION_TEMPLATE "':'hash-1','other':'y'}},"
        "'spec':{'template':{'spec':{'containers':[{'env':[{'name':'A','value':'1'}]}]}}},"
        "'status':{'numberReady':1,'observedGeneration':1}}";

/* failure: a DaemonSet is updated -> the controller acts on exactly the changes that its rules read */
static void a_change_of_a_daemonset_counts_if_a_rule_reads_it(void **state) {
        static const struct change changes[] = {
                { "'uid':'s-1'", "'uid':'s-2'", true },
                { "'uid':'s-1'", "'uid':'s-1','deletionTimestamp':'2026-01-01T00:00:00Z'", true },
                { "'generation':1", "'generation':2", true }, /* like any change of its spec */
                { UID_A, UID_B, true },
                { "'" CD_LABEL "':'" UID_A "',", "", true },
                { "hash-1", "hash-2", true },
                { "'" CD_ANNOTATION_TEMPLATE "':'hash-1',", "", true },
                { "'" CD_FINALIZER "',", "", true },
                { ",'b'", "", true },
                { "'b'", "'c'", true },
                { CD_FINALIZER, "a", true },

                { "'uid'", "'uid'", false },
                { "'resourceVersion':'1'", "'resourceVersion':'2'", false },
                { "'other':'x'", "'other':'z'", false },
                { "'other':'y'", "'other':'z'", false },
                { "'numberReady':1", "'numberReady':2", false },
                { "'observedGeneration':1", "'observedGeneration':2", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
                struct arena *a = arena_new(4096);
                _cleanup_(freep) char *text = changed(set, &changes[i]);
                const struct daemonset *was = fake_set_json(a, "%s", set), *is = fake_set_json(a, "%s", text);
                if (jd_equal(daemonset_fields, was, is) == changes[i].matters ||
                    jd_equal(daemonset_fields, is, was) == changes[i].matters)
                        fail_msg("%s to %s %s", changes[i].from, changes[i].to,
                                 changes[i].matters ? "makes no difference" : "is a difference");
                arena_free(a);
        }
}

/* The results of all rules are the same before and after. */
static void trimming_changes_no_result_of_the_rules(void **state) {
        static const char *const statuses[] = { "True", "False" };
        for (int i = 0; i < 8; i++) {
                struct arena *a = arena_new(4096);
                static const char fmt[] =
                        "{'metadata':{'name':'n','uid':'u','resourceVersion':'1','labels':{"
                        "'nvidia.com/gpu.present':'%s'}},'spec':{'taints':[{'key':'a'},{'key':'%s'}]},"
                        "'status':{'conditions':[{'type':'PIDPressure','status':'True'},"
                        "{'type':'Ready','status':'%s','message':'m'}]}}";
                const char *gpu = i & 1 ? "true" : "false",
                           *taint = i & 2 ? "node.kubernetes.io/out-of-service" : "b",
                           *status = statuses[i / 4];
                const struct node *n = fake_node_json(a, fmt, gpu, taint, status);
                struct node *trimmed = (struct node *)(uintptr_t)fake_node_json(a, fmt, gpu, taint, status);
                node_trim(trimmed, a);
                assert_int_equal(node_has_gpu(trimmed), node_has_gpu(n));
                assert_int_equal(node_out_of_service(trimmed), node_out_of_service(n));
                assert_int_equal(node_ready(trimmed), node_ready(n));
                assert_int_equal(trimmed->n_conditions, 1);
                arena_free(a);
        }
        struct arena *a = arena_new(4096);
        const struct pod *p = trimmed_pod(a, pod);
        const struct condition *ready;
        assert_int_equal(p->n_conditions, 1);
        ready = condition_find(p->conditions, p->n_conditions, "Ready");
        assert_string_equal(ready->reason, "ready-reason");
        assert_string_equal(p->ips[0].ip, "10.0.0.1");
        arena_free(a);
}

/* A claim may have been allocated there before. */
/* failure: a node withholds its devices after a claim was allocated there -> the node still belongs to its
 * partition [channels] */
static void a_node_that_withholds_its_devices_stays_in_its_partition(void **state) {
        static const char fmt[] =
                "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'%s},'spec':{'driver':'" CD_DRIVER
                "','nodeName':'n','devices':[]}}";
        struct arena *a = arena_new(4096);
        const char *clique;
        assert_true(slice_clique(
                fake_slice_json(a, fmt, ",'annotations':{'" CD_ANNOTATION_CLIQUE "':'c'}"), &clique));
        assert_string_equal(clique, "c");
        assert_false(slice_clique(fake_slice_json(a, fmt, ""), &clique));
        assert_string_equal(clique, "");
        arena_free(a);
}

static void a_trimmed_slice_states_the_same_clique_id(void **state) {
        static const char *const devices[] = {
                "", "{'name':'channel-0'}",
                "{'name':'channel-0','attributes':{'cliqueID':{'string':'a'}}},{'name':'daemon-0'}",
                "{'name':'channel-0'},{'name':'daemon-0','attributes':{'cliqueID':{'string':'b'}}}"
        };
        for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
                struct arena *a = arena_new(4096);
                static const char fmt[] =
                        "{'metadata':{'name':'s','uid':'u','resourceVersion':'1','annotations':{"
                        "'" CD_ANNOTATION_CLIQUE "':'c'}},'spec':{'driver':'" CD_DRIVER
                        "','nodeName':'n','devices':[%s]}}";
                const char *before, *after;
                const struct slice *s = fake_slice_json(a, fmt, devices[i]);
                struct slice *trimmed = (struct slice *)(uintptr_t)fake_slice_json(a, fmt, devices[i]);
                slice_trim(trimmed, a);
                assert_int_equal(slice_clique(trimmed, &after), slice_clique(s, &before));
                assert_string_equal(after, before);
                arena_free(a);
        }
}

/* The sanitizer sees a read behind the end of the lists. */
static void the_last_of_a_list_counts_and_nothing_behind_it(void **state) {
        static const char *const types[] = { "A", "B" };
        struct condition *list = xnew_n(struct condition, 2);
        const char **names = xnew_n(const char *, 2), **last = xnew_n(const char *, 2);
        struct taint *taints = xnew_n(struct taint, 2);
        list[0] = (struct condition){ .type = "A", .status = "False" };
        list[1] = (struct condition){ .type = "B", .status = "True" };
        memcpy(last, types, sizeof types);
        assert_ptr_equal(condition_first_true(list, 2, last, 2), &list[1]);
        list[1].status = "False";
        assert_null(condition_first_true(list, 2, last, 2));
        names[0] = "x";
        names[1] = "y";
        assert_true(has_string(names, 2, "y"));
        assert_false(has_string(names, 2, "z"));
        taints[1].key = NODE_TAINT_OUT_OF_SERVICE;
        struct node n = { .taints = taints, .n_taints = 2 };
        assert_true(node_out_of_service(&n));
        taints[1].key = "other";
        assert_false(node_out_of_service(&n));
        free(list);
        free(names);
        free(last);
        free(taints);
}

static void a_trimmed_object_keeps_only_the_condition_ready(void **state) {
        for (int pods = 0; pods < 2; pods++) {
                struct arena *a = arena_new(1024);
                struct condition *one = xnew_n(struct condition, 1);
                *one = (struct condition){ .type = "Ready", .status = "True", .reason = "r", .message = "m" };
                struct node n = { .conditions = one, .n_conditions = 1 };
                struct pod p = { .conditions = one, .n_conditions = 1 };
                if (pods)
                        pod_trim(&p, a);
                else
                        node_trim(&n, a);
                assert_string_equal(one->type, "Ready");
                assert_string_equal(one->status, "True");
                assert_null(one->reason);
                assert_null(one->message);
                free(one);
                arena_free(a);
        }
}

static void of_two_equally_old_pods_the_second_counts(void **state) {
        struct arena *a = arena_new(4096);
        const struct plugin_pod *x = plugin(a, 1, "UP", "Running", "True"),
                                *y = plugin(a, 1, "UP", "Running", "True");
        assert_ptr_equal(plugin_pod_choose(x, y), y);
        arena_free(a);
}

static void of_the_daemon_pods_on_a_node_one_that_has_reported_counts_then_the_newest(void **state) {
        struct daemon_pod old = { .pod = { .o.meta.created = 100, .phase = "Running" } }, newer = old,
                          same = old, ended = old;
        newer.pod.o.meta.created = 101;
        ended.pod.phase = "Failed";
        assert_ptr_equal(daemon_pod_choose(&old, &newer), &newer);
        assert_ptr_equal(daemon_pod_choose(&newer, &old), &newer);
        assert_ptr_equal(daemon_pod_choose(&old, &same), &old); /* so the choice does not alternate */
        assert_ptr_equal(daemon_pod_choose(&ended, &old), &old);
        assert_null(daemon_pod_choose(&ended, NULL));
        old.report = "{}";
        assert_ptr_equal(daemon_pod_choose(&old, &newer), &old);
        assert_ptr_equal(daemon_pod_choose(&newer, &old), &old);
}

static void of_the_slices_of_a_node_the_newest_one_with_a_clique_id_counts(void **state) {
        const struct slice old = { .o.meta.created = 100, .clique_id = "a" },
                           same = { .o.meta.created = 100, .clique_id = "b" },
                           newer = { .o.meta.created = 101, .clique_id = "c" },
                           none = { .o.meta.created = 102 };
        const char *clique = "";
        assert_ptr_equal(slice_choose(&old, &newer, false, &clique), &newer);
        assert_string_equal(clique, "c");
        assert_ptr_equal(slice_choose(&newer, &old, false, &clique), &newer);
        assert_string_equal(clique, "c");
        assert_ptr_equal(slice_choose(&old, &same, false, &clique), &same);
        assert_ptr_equal(slice_choose(NULL, &old, false, &clique), &old);
        assert_ptr_equal(slice_choose(&old, &none, false, &clique), &old);
        assert_string_equal(clique, "a");
        assert_null(slice_choose(NULL, &none, false, &clique));
        assert_string_equal(clique, "a");
}

static void trimming_reads_only_the_devices_of_the_slice(void **state) {
        struct slice_device *devices = xnew_n(struct slice_device, 2);
        struct slice s = { .devices = devices, .n_devices = 2 };
        devices[1].clique_id = "c";
        devices[1].name = "channel-1";
        slice_trim(&s, NULL);
        assert_int_equal(s.n_devices, 1);
        assert_int_equal(s.n_channels, 1);
        assert_string_equal(s.devices[0].clique_id, "c");
        free(devices);
}

static void a_slice_with_one_device_states_a_clique_id(void **state) {
        struct slice_device device = { .name = "d" };
        const struct slice s = { .devices = &device, .n_devices = 1 };
        const char *clique;
        assert_true(slice_clique(&s, &clique));
        assert_string_equal(clique, "");
}

/* failure: the API server serves the slice of shared claims as v1beta1 -> the slice stays */
static void a_device_of_v1beta1_can_be_allocated_several_times(void **state) {
        static const char fmt[] =
                "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{'driver':'" CD_DRIVER
                "','devices':[{'name':'d',%s}]}}";
        struct arena *a = arena_new(4096);
        assert_true(fake_slice_json(a, fmt, "'allowMultipleAllocations':true")->devices[0].multiple);
        assert_true(
                fake_slice_json(a, fmt, "'basic':{'allowMultipleAllocations':true}")->devices[0].multiple);
        assert_false(fake_slice_json(a, fmt, "'basic':{}")->devices[0].multiple);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_report_of_an_unhealthy_plugin_does_not_count),
                cmocka_unit_test(a_node_with_a_gpu_is_known_by_the_labels_that_place_the_plugin),
                cmocka_unit_test(of_the_pods_on_a_node_the_newest_one_with_a_report_counts),
                cmocka_unit_test(the_last_of_a_list_counts_and_nothing_behind_it),
                cmocka_unit_test(a_trimmed_object_keeps_only_the_condition_ready),
                cmocka_unit_test(of_two_equally_old_pods_the_second_counts),
                cmocka_unit_test(a_slice_with_one_device_states_a_clique_id),
                cmocka_unit_test(a_device_of_v1beta1_can_be_allocated_several_times),
                cmocka_unit_test(of_the_daemon_pods_on_a_node_one_that_has_reported_counts_then_the_newest),
                cmocka_unit_test(of_the_slices_of_a_node_the_newest_one_with_a_clique_id_counts),
                cmocka_unit_test(trimming_reads_only_the_devices_of_the_slice),
                cmocka_unit_test(a_changed_boot_id_is_a_difference),
                cmocka_unit_test(the_writers_of_taints_and_unschedulable_show_that_they_changed),
                cmocka_unit_test(metadata_of_a_node_inherits_its_spec_and_status),
                cmocka_unit_test(trimming_changes_no_result_of_the_rules),
                cmocka_unit_test(a_trimmed_slice_states_the_same_clique_id),
                cmocka_unit_test(a_node_that_withholds_its_devices_stays_in_its_partition),
                cmocka_unit_test(a_change_of_a_daemon_pod_counts_if_a_rule_reads_it),
                cmocka_unit_test(a_change_of_a_daemonset_counts_if_a_rule_reads_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
