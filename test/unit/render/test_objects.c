/* SPDX-License-Identifier: Apache-2.0 */
#include "world/fake.h"

#include "api/opaque.h"
#include "golden.h"
#include "render/objects.h"

#define CHANNEL(...) ((struct objects_channel){ __VA_ARGS__ })

static const struct objects_settings settings = {
        .ns = "driver",
        .resource_api = "v1",
        .image = "registry/image:1",
        .log_verbosity = "2",
        .gates = "A=true,",
        .priority_class = "",
        .imex_config = "",
};

/* The value at a path such as "spec.template.spec.containers.0.image", as JSON text. */
static const char *at(struct arena *a, const struct buf *json, const char *path) {
        yyjson_doc *doc = yyjson_read(buf_str(json), json->n, 0);
        if (!doc)
                fail_msg("not JSON: %s", buf_str(json));
        struct buf pointer = BUF_INIT(512);
        buf_addc(&pointer, '/');
        for (const char *p = path; *p; p++)
                buf_addc(&pointer, *p == '.' ? '/' : *p);
        yyjson_val *v = yyjson_doc_ptr_get(doc, buf_str(&pointer));
        char *text = v ? yyjson_val_write(v, 0, NULL) : NULL;
        const char *ret = text ? arena_strdup(a, text) : "";
        free(text);
        buf_done(&pointer);
        yyjson_doc_free(doc);
        return ret;
}

/* The parts of the DaemonSet that the plugin, the daemons and other tools rely on. */
/* failure: a node reboots -> the files of IMEX are in memory, so none outlives the boot [daemon] */
/* failure: the controller renders the daemons -> their name is constant, so there are no duplicates */
static void the_daemonset_has_what_plugin_daemons_and_tools_rely_on(void **state) {
        static const struct {
                const char *path, *want;
        } cases[] = {
                { "apiVersion", "\"apps/v1\"" },
                { "kind", "\"DaemonSet\"" },
                { "metadata.name", "\"compute-domain-daemon\"" },
                { "metadata.namespace", "\"driver\"" },
                { "metadata.finalizers", "" },
                { "metadata.labels", "{\"" CD_LABEL_COMPONENT "\":\"compute-domain-daemon\"}" },
                { "spec.selector.matchLabels", "{\"" CD_LABEL_COMPONENT "\":\"compute-domain-daemon\"}" },
                { "spec.updateStrategy", "{\"type\":\"OnDelete\"}" },
                { "spec.template.metadata.labels",
                  "{\"" CD_LABEL_COMPONENT "\":\"compute-domain-daemon\",\"app\":\"imex-daemon\"}" },
                { "spec.template.spec.nodeSelector", "{\"" CD_LABEL_DAEMON "\":\"true\"}" },
                { "spec.template.spec.serviceAccountName", "\"compute-domain-daemon\"" },
                { "spec.template.spec.imagePullSecrets", "" },
                { "spec.template.spec.priorityClassName", "" },
                /* The daemon serves as long as claims are prepared: 30 days. */
                { "spec.template.spec.terminationGracePeriodSeconds", "2592000" },
                { "spec.template.spec.resourceClaims",
                  "[{\"name\":\"compute-domain-daemon\",\"resourceClaimTemplateName\":"
                  "\"compute-domain-daemon\"}]" },
                { "spec.template.spec.tolerations.1", "{\"effect\":\"NoExecute\",\"operator\":\"Exists\"}" },
                { "spec.template.spec.dnsConfig", "{\"options\":[{\"name\":\"ndots\",\"value\":\"1\"}]}" },
                { "spec.template.spec.containers.0.name", "\"compute-domain-daemon\"" },
                { "spec.template.spec.containers.0.image", "\"registry/image:1\"" },
                { "spec.template.spec.containers.0.command",
                  "[\"compute-domain-daemon\",\"-v\",\"$(LOG_VERBOSITY)\"]" },
                { "spec.template.spec.containers.0.env.0", "{\"name\":\"LOG_VERBOSITY\",\"value\":\"2\"}" },
                { "spec.template.spec.containers.0.env.1",
                  "{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"}" },
                { "spec.template.spec.containers.0.env.2",
                  "{\"name\":\"FEATURE_GATES\",\"value\":\"A=true,\"}" },
                { "spec.template.spec.containers.0.env.4.valueFrom.fieldRef.fieldPath", "\"status.podIP\"" },
                { "spec.template.spec.containers.0.securityContext.capabilities", "{\"drop\":[\"ALL\"]}" },
                { "spec.template.spec.containers.0.securityContext.readOnlyRootFilesystem", "true" },
                { "spec.template.spec.containers.0.securityContext.seccompProfile",
                  "" }, /* the node chooses it */
                { "spec.template.spec.hostNetwork", "" },
                /* The state of IMEX about its peers is valid only in one boot. */
                { "spec.template.spec.volumes.0",
                  "{\"name\":\"imex-run\",\"emptyDir\":{\"medium\":\"Memory\",\"sizeLimit\":\"16Mi\"}}" },
                { "spec.template.spec.volumes.1", "{\"name\":\"imex-log\",\"emptyDir\":{}}" },
        };
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        objects_daemonset(&settings, &b);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                if (!streq(at(a, &b, cases[i].path), cases[i].want))
                        fail_msg("%s: %s", cases[i].path, at(a, &b, cases[i].path));
        /* A node that is scaled down keeps IMEX until its workloads have ended. */
        assert_non_null(strstr(at(a, &b, "spec.template.metadata.annotations"),
                               "\"cluster-autoscaler.kubernetes.io/enable-ds-eviction\":\"false\""));
        assert_null(strstr(buf_str(&b), CD_LABEL "\"")); /* it belongs to no ComputeDomain */
        buf_done(&b);
        arena_free(a);
}

/* failure: daemon.priorityClassName, limits or pull secrets are set -> the daemons have them */
static void optional_settings_are_in_the_daemonset(void **state) {
        struct objects_settings s = settings;
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        const char *const secrets[] = { "one", "two" };
        s.pull_secrets = secrets;
        s.n_pull_secrets = 2;
        s.priority_class = "high";
        s.imex_config = "{\"A\":\"1\"}";
        s.requests = STR("{\"cpu\":\"10m\"}");
        s.limits = STR("{\"memory\":\"1Gi\"}");
        objects_daemonset(&s, &b);
        assert_string_equal(at(a, &b, "spec.template.spec.imagePullSecrets"),
                            "[{\"name\":\"one\"},{\"name\":\"two\"}]");
        assert_string_equal(at(a, &b, "spec.template.spec.priorityClassName"), "\"high\"");
        assert_string_equal(at(a, &b, "spec.template.spec.containers.0.resources"),
                            "{\"requests\":{\"cpu\":\"10m\"},\"limits\":{\"memory\":\"1Gi\"},\"claims\":[{"
                            "\"name\":\"compute-domain-daemon\"}]}");
        assert_string_equal(at(a, &b, "spec.template.spec.containers.0.imagePullPolicy"), "\"IfNotPresent\"");
        assert_non_null(
                strstr(buf_str(&b), "{\"name\":\"IMEX_CONFIG\",\"value\":\"{\\\"A\\\":\\\"1\\\"}\"}"));
        buf_done(&b);
        arena_free(a);
}

static void labels_and_annotations_of_the_administrator_are_added(void **state) {
        struct objects_settings s = settings;
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        const struct jd_pair labels[] = { { "team", "hpc" } }, annotations[] = { { "scrape", "no" } };
        s.pull_policy = "Always";
        s.json_log = true;
        s.labels = labels;
        s.annotations = annotations;
        s.n_labels = s.n_annotations = 1;
        objects_daemonset(&s, &b);
        assert_string_equal(at(a, &b, "metadata.labels"),
                            "{\"" CD_LABEL_COMPONENT "\":\"compute-domain-daemon\",\"team\":\"hpc\"}");
        assert_string_equal(at(a, &b, "spec.selector.matchLabels"),
                            "{\"" CD_LABEL_COMPONENT "\":\"compute-domain-daemon\"}");
        assert_string_equal(at(a, &b, "spec.template.metadata.labels.team"), "\"hpc\"");
        assert_string_equal(at(a, &b, "spec.template.metadata.annotations.scrape"), "\"no\"");
        assert_string_equal(at(a, &b, "spec.template.spec.containers.0.imagePullPolicy"), "\"Always\"");
        assert_string_equal(at(a, &b, "spec.template.spec.containers.0.env.1"),
                            "{\"name\":\"LOGGING_FORMAT\",\"value\":\"json\"}");
        buf_done(&b);
        arena_free(a);
}

/* The Go driver's plugin knows this kind of configuration, so it can unprepare such a claim. */
static void the_daemon_claim_names_no_computedomain(void **state) {
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        struct opaque_config config;
        struct err e;
        objects_daemon_rct("v1", "driver", &b);
        assert_string_equal(at(a, &b, "metadata.name"), "\"" CD_DAEMON_OBJECT "\"");
        assert_null(strstr(buf_str(&b), CD_LABEL "\""));
        assert_string_equal(at(a, &b, "spec.spec.devices.requests.0"),
                            "{\"name\":\"daemon\",\"exactly\":{\"deviceClassName\":\"" CD_CLASS_DAEMON
                            "\"}}");
        const char *parameters = at(a, &b, "spec.spec.devices.config.0.opaque.parameters");
        assert_string_equal(parameters,
                            "{\"apiVersion\":\"" CD_API_VERSION "\",\"domainID\":\"" CD_DAEMON_DOMAIN
                            "\",\"kind\":\"ComputeDomainDaemonConfig\"}");
        assert_int_equal(opaque_decode(str_from(parameters), true, a, &config, &e), 0);
        assert_int_equal(config.kind, OPAQUE_DAEMON);
        buf_clear(&b);
        objects_daemon_rct("v1beta1", "driver", &b);
        assert_string_equal(at(a, &b, "spec.spec.devices.requests.0"),
                            "{\"name\":\"daemon\",\"deviceClassName\":\"" CD_CLASS_DAEMON "\"}");
        buf_done(&b);
        arena_free(a);
}

/* The claim template in `b`, with one text replaced. */
static bool matches_with(const struct buf *b, const char *text, const char *by) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        const char *all = buf_str(b), *found = strstr(all, text), *meta = strstr(all, "\"name\"");
        struct rct r = { 0 };
        struct err e;
        assert_true(found && meta && meta < found);
        _cleanup_(freep) char *json =
                xasprintf("%.*s\"uid\":\"r\",\"resourceVersion\":\"1\",%.*s%s%s", (int)(meta - all), all,
                          (int)(found - meta), meta, by, found + strlen(text));
        yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
        assert_int_equal(jd_decode(rct_fields, yyjson_doc_get_root(doc), "", a, &r, &e), 0);
        bool matches = objects_daemon_rct_matches(&r);
        yyjson_doc_free(doc);
        return matches;
}

/* failure: another version wrote the daemons' claim template -> the difference is detected [upgrade] */
static void the_daemon_claim_template_is_recognized_by_annotation_or_content(void **state) {
        static const char *const versions[] = { "v1", "v1beta2", "v1beta1" };
        for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
                struct buf b = BUF_INIT(1 << 16);
                objects_daemon_rct(versions[i], "driver", &b);
                assert_true(matches_with(&b, CD_CLASS_DAEMON, CD_CLASS_DAEMON));
                assert_false(
                        matches_with(&b, CD_ANNOTATION_TEMPLATE "\":\"", CD_ANNOTATION_TEMPLATE "\":\"0"));
                /* A webhook has changed it, and would change another one, too. */
                assert_true(matches_with(&b, CD_CLASS_DAEMON, "another"));
                /* Without the annotation. */
                *strstr(b.p, CD_ANNOTATION_TEMPLATE) = 'x';
                assert_true(matches_with(&b, CD_CLASS_DAEMON, CD_CLASS_DAEMON));
                assert_false(matches_with(&b, CD_CLASS_DAEMON, "another"));
                assert_false(matches_with(&b, CD_DAEMON_DOMAIN, "818fb0f3-f5f0-4334-937e-000000000000"));
                buf_done(&b);
        }
}

/* IMEX of the node ends with its daemon. */
/* failure: a daemon waits for peers or needs memory -> no probe or memory limit ends it [daemon] */
static void a_daemon_has_no_probe_and_no_memory_limit_by_default(void **state) {
        struct objects_settings s = settings;
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        objects_daemonset(&s, &b);
        assert_null(strstr(buf_str(&b), "Probe"));
        assert_string_equal(at(a, &b, "spec.template.spec.containers.0.resources"),
                            "{\"claims\":[{\"name\":\"compute-domain-daemon\"}]}");
        buf_clear(&b);
        s.limits = STR("{\"memory\":\"64Mi\"}"); /* limits of the user are kept */
        objects_daemonset(&s, &b);
        assert_string_equal(at(a, &b, "spec.template.spec.containers.0.resources.limits"),
                            "{\"memory\":\"64Mi\"}");
        buf_done(&b);
        arena_free(a);
}

/* The hash covers the whole object, is in the expected annotation, and changes with each setting. */
static void the_template_hash_changes_with_each_setting(void **state) {
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        char hash[17], other[17];
        struct objects_settings s = settings;
        objects_daemonset(&settings, &b);
        objects_daemonset_hash(&settings, hash);
        _cleanup_(freep) char *quoted_hash = xasprintf("\"" CD_ANNOTATION_TEMPLATE "\":\"%s\"", hash);
        assert_non_null(strstr(at(a, &b, "metadata.annotations"), quoted_hash));
        assert_non_null(strstr(at(a, &b, "spec.template.metadata.annotations"), quoted_hash));
        s.image = "registry/image:2";
        objects_daemonset_hash(&s, other);
        assert_string_not_equal(hash, other);
        s = settings;
        s.gates = "A=false,";
        objects_daemonset_hash(&s, other);
        assert_string_not_equal(hash, other);
        buf_done(&b);
        arena_free(a);
}

/* failure: a claim template is rendered -> its name is constant, so there are no duplicates */
static void a_claim_template_matches_what_was_rendered(void **state) {
        static const char *const apis[] = { "v1", "v1beta2", "v1beta1" };
        const struct kube_meta domain = { .ns = "w", .name = "train", .uid = UID_A };
        for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
                struct arena *a = arena_new(4096);
                struct buf b = BUF_INIT(1 << 16);
                objects_rct(apis[i], "w", "tpl", &domain, &CHANNEL("All"), &b);
                bool nested = !streq(apis[i], "v1beta1");
                assert_string_equal(at(a, &b, "spec.spec.devices.requests"),
                                    nested ? "[{\"name\":\"channel\",\"exactly\":{\"deviceClassName\":"
                                             "\"compute-domain-default-channel.nvidia.com\"}}]"
                                           : "[{\"name\":\"channel\",\"deviceClassName\":\"compute-domain-"
                                             "default-channel.nvidia.com\"}]");
                assert_string_equal(at(a, &b, "spec.spec.devices.config.0.opaque"),
                                    "{\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{"
                                    "\"allocationMode\":\"All\",\"apiVersion\":"
                                    "\"resource.nvidia.com/v1beta1\","
                                    "\"domainID\":\"" UID_A "\",\"kind\":\"ComputeDomainChannelConfig\"}}");
                assert_string_equal(at(a, &b, "metadata.labels"),
                                    "{\"" CD_LABEL "\":\"" UID_A "\",\"" CD_LABEL_TARGET "\":\"Workload\"}");
                /* a rendered claim template matches itself */
                char *stored = xasprintf("{\"metadata\":{\"name\":\"tpl\",\"namespace\":\"w\","
                                         "\"resourceVersion\":\"1\"},\"spec\":%s}",
                                         at(a, &b, "spec"));
                const struct rct *r = fake_rct_json(a, "%s", stored);
                assert_true(objects_rct_matches(r, UID_A, &CHANNEL("All")));
                assert_false(objects_rct_matches(r, UID_A, &CHANNEL("Single")));
                assert_false(objects_rct_matches(r, UID_B, &CHANNEL("All")));
                free(stored);
                assert_string_equal(at(a, &b, "spec.metadata.annotations"),
                                    "{\"" CD_ANNOTATION_NAME "\":\"train\"}");
                buf_done(&b);
                arena_free(a);
        }
}

static void the_claim_template_of_a_rack_requests_its_devices(void **state) {
        static const char *const apis[] = { "v1", "v1beta2", "v1beta1" };
        const struct kube_meta domain = { .ns = "w", .name = "s0", .uid = UID_A };
        for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
                struct arena *a = arena_new(4096);
                struct buf b = BUF_INIT(1 << 16);
                objects_rct(apis[i], "w", "imex-channel-s0", &domain, &CHANNEL("Single", "s0"), &b);
                assert_string_equal(at(a, &b,
                                       streq(apis[i], "v1beta1")
                                               ? "spec.spec.devices.requests.0.selectors"
                                               : "spec.spec.devices.requests.0.exactly.selectors"),
                                    "[{\"cel\":{\"expression\":\"'rack' in "
                                    "device.attributes['compute-domain.nvidia.com'] && "
                                    "device.attributes['compute-domain.nvidia.com'].rack == 's0'\"}}]");
                /* Quotes would end the JSON string. */
                struct buf spec = BUF_INIT(1 << 16);
                for (const char *c = at(a, &b, "spec"); *c; c++)
                        buf_addf(&spec, *c == '\'' ? "\\u0027" : "%c", *c);
                const struct rct *r = fake_rct_json(
                        a, "{'metadata':{'name':'t','namespace':'w','resourceVersion':'1'},'spec':%s}",
                        buf_str(&spec));
                assert_true(objects_rct_matches(r, UID_A, &CHANNEL("Single", "s0")));
                assert_false(objects_rct_matches(r, UID_A, &CHANNEL("Single", "s1")));
                assert_true(objects_rct_matches(r, UID_A, &CHANNEL("Single")));
                buf_done(&spec);
                buf_done(&b);
                arena_free(a);
        }
}

/* A plugin without assigned channels refuses the claim, and a claim template without this member does not
 * match. */
static void a_claim_template_for_an_assigned_channel_requests_isolation(void **state) {
        struct kube_meta domain = { .ns = "w", .name = "cd", .uid = UID_A };
        const struct objects_channel own = { .mode = "Single", .own = true };
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16);
        objects_rct("v1", "w", "tpl", &domain, &own, &b);
        assert_string_equal(at(a, &b, "spec.spec.devices.config.0.opaque.parameters"),
                            "{\"allocationMode\":\"Single\",\"apiVersion\":\"" CD_API_VERSION
                            "\",\"domainID\":\"" UID_A
                            "\",\"isolation\":\"Channel\",\"kind\":\"ComputeDomainChannelConfig\"}");
        struct rct *r = arena_alloc(a, sizeof *r);
        struct err e;
        yyjson_doc *doc = yyjson_read(buf_str(&b), b.n, 0);
        yyjson_mut_doc *copy = yyjson_doc_mut_copy(doc, NULL);
        yyjson_mut_obj_add_str(copy, yyjson_mut_obj_get(yyjson_mut_doc_get_root(copy), "metadata"),
                               "resourceVersion", "1");
        char *text = yyjson_mut_write(copy, 0, NULL);
        assert_int_equal(jd_decode_text(rct_fields, str_from(text), "", a, r, &e), 0);
        assert_true(objects_rct_matches(r, UID_A, &own));
        assert_false(objects_rct_matches(r, UID_A, &CHANNEL("Single")));
        free(text);
        yyjson_mut_doc_free(copy);
        yyjson_doc_free(doc);
        buf_done(&b);
        arena_free(a);
}

static void the_computedomain_of_a_rack_records_its_nodes(void **state) {
        const struct kube_meta m = { .ns = "w", .name = "s0", .uid = UID_A };
        struct buf b = BUF_INIT(4096);
        objects_rack_domain("s0", "w", "s0", "imex-channel-s0", &b);
        assert_string_equal(buf_str(&b),
                            "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomain\","
                            "\"metadata\":{\"name\":\"s0\",\"namespace\":\"w\",\"labels\":{\"" CD_LABEL_RACK
                            "\":\"s0\"}},"
                            "\"spec\":{\"channel\":{\"allocationMode\":\"Single\",\"resourceClaimTemplate\":{"
                            "\"name\":\"imex-channel-s0\"}},\"numNodes\":0}}");
        buf_clear(&b);
        objects_rack_note(&m, "", 1763800000, &b);
        assert_string_equal(buf_str(&b),
                            "{\"metadata\":{\"uid\":\"" UID_A "\",\"annotations\":{\"" CD_ANNOTATION_RACK_UID
                            "\":\"" UID_A "\",\"" CD_ANNOTATION_RACK_NODES
                            "\":\"\",\"" CD_ANNOTATION_RACK_EMPTY "\":\"2025-11-22T08:26:40Z\"}}}");
        buf_clear(&b);
        objects_rack_note(&m, "n0", 0, &b);
        assert_string_equal(buf_str(&b),
                            "{\"metadata\":{\"uid\":\"" UID_A "\",\"annotations\":{\"" CD_ANNOTATION_RACK_UID
                            "\":\"" UID_A "\",\"" CD_ANNOTATION_RACK_NODES
                            "\":\"n0\",\"" CD_ANNOTATION_RACK_EMPTY "\":null}}}");
        buf_done(&b);
}

/* The Go driver's claim template with an empty mode contains null. */
static void a_claim_template_of_the_go_driver_is_recognized(void **state) {
        struct arena *a = arena_new(4096);
        const struct rct *r = fake_rct_json(
                a, "{'metadata':{'name':'t','resourceVersion':'1'},'spec':{'spec':{'devices':{'requests':[{'"
                   "name':'channel','"
                   "exactly':{'deviceClassName':"
                   "'compute-domain-default-channel.nvidia.com','allocationMode':'ExactCount','count':1}}],'"
                   "config':[{'"
                   "requests':['channel'],'opaque':{'driver':'compute-domain.nvidia.com',"
                   "'parameters':{'allocationMode':null,'apiVersion':'resource.nvidia.com/"
                   "v1beta1','domainID':'" UID_A "','kind':'ComputeDomainChannelConfig'}}}]}}}}");
        assert_true(objects_rct_matches(r, UID_A, &CHANNEL("Single")));
        arena_free(a);
}

static void finalizers_of_others_stay(void **state) {
        const char *const list[] = { "a.io/x", CD_FINALIZER, "b.io/y" };
        const char *theirs[] = { "a.io/x" };
        struct kube_meta m = { .uid = "u", .rv = "7" };
        struct buf b = BUF_INIT(1024);
        objects_release(&m, list, 3, &b);
        assert_string_equal(buf_str(&b), "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\","
                                         "\"finalizers\":[\"a.io/x\",\"b.io/y\"]}}");
        buf_clear(&b);
        objects_adopt(&(struct compute_domain){ .o.meta = m, .finalizers = theirs, .n_finalizers = 1 },
                      "driverManaged", &b);
        assert_string_equal(buf_str(&b),
                            "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[\"a.io/"
                            "x\",\"" CD_FINALIZER "\"],\"annotations\":{\"" CD_ANNOTATION_MODE
                            "\":\"driverManaged\"}}}");
        buf_done(&b);
}

/* failure: a stale leader patches a Node's label -> the patch names the version, and conflicts */
static void a_patch_of_a_node_has_only_the_changed_members(void **state) {
        struct kube_meta m = { .uid = "u", .rv = "7" };
        struct buf b = BUF_INIT(1024);
        objects_node(
                &m,
                &(struct objects_node_patch){ .set_domain = true, .versioned = true, .domain_uid = UID_A },
                &b);
        assert_string_equal(buf_str(&b),
                            "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"labels\":{\"" CD_LABEL
                            "\":\"" UID_A "\"},\"annotations\":{}}}");
        buf_clear(&b);
        objects_node(&m, &(struct objects_node_patch){ .set_gpu_clique = true, .gpu_clique = "c.1" }, &b);
        assert_null(strstr(buf_str(&b), "resourceVersion")); /* no other writer exists, so the last write
                                                                counts */
        buf_clear(&b);
        objects_node(&m,
                     &(struct objects_node_patch){ .set_domain = true,
                                                   .versioned = true,
                                                   .set_clique = true,
                                                   .clique = "c.1",
                                                   .set_gpu_clique = true,
                                                   .gpu_clique = "c.1",
                                                   .gpu_clique_ours = "c.1" },
                     &b);
        assert_string_equal(buf_str(&b),
                            "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"labels\":{\"" CD_LABEL
                            "\":null,\"" GPU_CLIQUE_LABEL
                            "\":\"c.1\"},\"annotations\":{\"" CD_ANNOTATION_CLIQUE
                            "\":\"c.1\",\"" CD_ANNOTATION_GPU_CLIQUE "\":\"c.1\"}}}");
        buf_done(&b);
}

/* Users check whether status.nodes exists. */
static void an_empty_status_has_no_nodes(void **state) {
        struct arena *a = arena_new(4096);
        struct membership f = { 0 };
        struct verdict v;
        struct buf b = BUF_INIT(4096);
        const struct compute_domain *cd = fake_cd_json(
                a, "{'metadata':{'name':'cd','uid':'u','resourceVersion':'1'},'spec':{'channel':{}}}");
        verdict_make(&(struct verdict_input){ cd, { 0 }, true, 1000 }, &f, a, &v);
        objects_status(cd, &v, &b);
        assert_string_equal(at(a, &b, "status.nodes"), "null");
        assert_string_equal(at(a, &b, "status.status"), "\"Ready\"");
        assert_string_equal(at(a, &b, "status.conditions.0.lastTransitionTime"), "\"1970-01-01T00:16:40Z\"");
        buf_done(&b);
        arena_free(a);
}

/* A rendered object is decoded to the same content, and a merge patch leaves nothing of the old object. */
static void a_fabric_object_is_decoded_as_it_was_rendered(void **state) {
        struct fabric_channel channels[] = {
                { 1, { "ComputeDomain", "team-a", "train", UID_A }, 0 },
                { 7, { .uid = UID_B }, 1000 }, /* a node holds it, and its owner was deleted */
        };
        const char *members[] = { "node-1", "node-2" };
        struct condition conditions[] = { { "ChannelsExhausted", "True", "AllChannelsAssigned",
                                            "None is free.", 1000 } };
        struct compute_domain_fabric f = {
                .o.meta.name = "3f7c1b2a-1111-2222-3333-444455556666.1",
                .rack = "s0-011",
                .members = members,
                .n_members = 2,
                .nodes = 2,
                .table_of = "u",
                .domain_count = 2,
                .channels_in_use = 2,
                .channel_count = 2048,
                .next = 8,
                .conditions = conditions,
                .n_conditions = 1,
                .channels = channels,
                .n_channels = 2,
        };
        struct compute_domain_fabric old = { .o.meta = { .name = f.o.meta.name, .uid = "u", .rv = "7" } };
        struct arena *a = arena_new(4096);
        struct buf b = BUF_INIT(1 << 16), text = BUF_INIT(1 << 16);
        struct compute_domain_fabric back = { 0 };
        struct err e;
        objects_fabric(&f, NULL, &b);
        /* As the API server returns it. */
        const char *meta = strstr(buf_str(&b), "\"name\"");
        assert_non_null(meta);
        buf_addf(&text, "%.*s\"uid\":\"u\",\"resourceVersion\":\"1\",%s", (int)(meta - buf_str(&b)),
                 buf_str(&b), meta);
        assert_int_equal(jd_decode_text(compute_domain_fabric_fields, (struct str){ buf_str(&text), text.n },
                                        "", a, &back, &e),
                         0);
        buf_clear(&text);
        assert_int_equal(back.n_channels, 2);
        assert_string_equal(back.channels[1].owner.uid, UID_B);
        assert_int_equal(back.channels[1].releasing, 1000);
        assert_int_equal(back.next, 8);
        assert_string_equal(back.conditions[0].message, "None is free.");
        buf_addf(&text, "## a fabric is made\n\n%s\n\n## it is changed\n\n", buf_str(&b));
        buf_clear(&b);
        objects_fabric(&f, &old, &b);
        buf_addf(&text, "%s\n\n## it has no Node, entry or holder any more\n\n", buf_str(&b));
        buf_clear(&b);
        struct fabric_assignment assignments[] = {
                { .node = "node-1",
                  .index = 0,
                  .epoch = 3,
                  .claim = "claim",
                  .boot_id = "boot",
                  .ip = "10.0.0.1" },
                { .node = "node-2",
                  .index = 1,
                  .epoch = 2,
                  .state = "Ending",
                  .claim = "other",
                  .boot_id = "b" },
                { .node = "node-3", .index = 2, .epoch = 1, .state = "Reserved" },
        };
        struct fabric_removal removal = { "node-2", "pod" };
        struct fabric_domain domain = { .owner = channels[0].owner,
                                        .imex.infix = "0123456789",
                                        .imex.slots = 18,
                                        .imex.port = 28001,
                                        .assignments = assignments,
                                        .n_assignments = 3,
                                        .freed = "3,0" };
        struct compute_domain_fabric with = f;
        struct buf daemons = BUF_INIT(1 << 16);
        with.domains = &domain;
        with.n_domains = 1;
        with.epoch = 3;
        with.recount = 3;
        with.removals = &removal;
        with.n_removals = 1;
        objects_fabric(&with, &old, &daemons);
        const char *head = "{\"metadata\":{";
        struct buf named = BUF_INIT(1 << 16);
        buf_addf(&named, "%s\"name\":\"x\",%s", head, buf_str(&daemons) + strlen(head));
        assert_int_equal(jd_decode_text(compute_domain_fabric_fields,
                                        (struct str){ buf_str(&named), named.n }, "", a, &back, &e),
                         0);
        buf_done(&named);
        assert_int_equal(back.epoch, 3);
        assert_int_equal(back.n_domains, 1);
        assert_int_equal(back.recount, 3);
        assert_int_equal(back.n_removals, 1);
        assert_string_equal(back.removals[0].node, "node-2");
        assert_string_equal(back.removals[0].pod_uid, "pod");
        assert_int_equal(back.domains[0].n_assignments, 3);
        const struct fabric_assignment *first = &back.domains[0].assignments[0];
        assert_true(fabric_is_active(first));
        assert_string_equal(first->claim, "claim");
        assert_string_equal(first->boot_id, "boot");
        assert_string_equal(first->ip, "10.0.0.1");
        assert_true(fabric_is_leaving(&back.domains[0].assignments[1]));
        assert_int_equal(back.domains[0].assignments[1].epoch, 2);
        assert_true(fabric_is_reserved(&back.domains[0].assignments[2]));
        assert_null(back.domains[0].assignments[2].claim);
        assert_string_equal(back.domains[0].freed, "3,0");
        /* Finished recounts and removals are removed completely. */
        with.recount = 0;
        with.n_removals = 0;
        struct buf over = BUF_INIT(1 << 16);
        objects_fabric(&with, &old, &over);
        assert_non_null(strstr(buf_str(&over), "\"epoch\":3,\"recount\":0,\"removals\":[],"));
        buf_clear(&over);
        /* A daemon can be marked before any node has had an assignment. */
        with.epoch = 0;
        with.n_removals = 1;
        objects_fabric(&with, &old, &over);
        assert_non_null(strstr(buf_str(&over), "\"removals\":[{\"node\":\"node-2\",\"podUID\":\"pod\"}],"));
        assert_null(strstr(buf_str(&over), "\"domains\""));
        buf_clear(&over);
        objects_fabric(&with, NULL, &over);
        assert_non_null(strstr(buf_str(&over), "\"removals\":[{\"node\":\"node-2\",\"podUID\":\"pod\"}],"));
        buf_done(&over);
        f = (struct compute_domain_fabric){ .o = f.o, .empty_since = "2026-11-22T10:00:00Z", .next = 8 };
        objects_fabric(&f, &old, &b);
        buf_addf(&text, "%s\n\n## its nodes have reported the version of their IMEX\n\n", buf_str(&b));
        buf_clear(&b);
        f.imex_version = "580.95.05";
        objects_fabric(&f, NULL, &b);
        buf_addf(&text, "%s\n\n", buf_str(&b));
        buf_clear(&b);
        objects_fabric(&f, &old, &b);
        buf_addf(&text, "%s\n", buf_str(&b));
        buf_addf(&text, "\n## daemons run IMEX for a domain\n\n%s\n", buf_str(&daemons));
        buf_done(&daemons);
        golden_compare("fabric.txt", buf_str(&text));
        buf_done(&text);
        buf_done(&b);
        arena_free(a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_daemonset_has_what_plugin_daemons_and_tools_rely_on),
                cmocka_unit_test(optional_settings_are_in_the_daemonset),
                cmocka_unit_test(the_daemon_claim_names_no_computedomain),
                cmocka_unit_test(the_daemon_claim_template_is_recognized_by_annotation_or_content),
                cmocka_unit_test(a_daemon_has_no_probe_and_no_memory_limit_by_default),
                cmocka_unit_test(labels_and_annotations_of_the_administrator_are_added),
                cmocka_unit_test(the_template_hash_changes_with_each_setting),
                cmocka_unit_test(a_claim_template_matches_what_was_rendered),
                cmocka_unit_test(the_claim_template_of_a_rack_requests_its_devices),
                cmocka_unit_test(a_claim_template_for_an_assigned_channel_requests_isolation),
                cmocka_unit_test(the_computedomain_of_a_rack_records_its_nodes),
                cmocka_unit_test(a_claim_template_of_the_go_driver_is_recognized),
                cmocka_unit_test(finalizers_of_others_stay),
                cmocka_unit_test(a_patch_of_a_node_has_only_the_changed_members),
                cmocka_unit_test(an_empty_status_has_no_nodes),
                cmocka_unit_test(a_fabric_object_is_decoded_as_it_was_rendered),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
