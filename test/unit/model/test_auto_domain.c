/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/auto_domain.bats compares these names with those of the chart's policy. */
#include "model/auto_domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define UID "1a2b3c4d-1111-2222-3333-444455556666"
#define TEN "abcdefghi."
#define FORTY TEN TEN TEN TEN
#define OWNER(kind, name, uid)                                                                               \
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Other\",\"name\":\"o\",\"uid\":\"u\"},{"     \
        "\"apiVersion\":\"batch/v1\",\"kind\":\"" kind "\",\"name\":\"" name "\",\"uid\":\"" uid             \
        "\",\"controller\":true}]"
#define LABELS(text) ",\"labels\":{" text "}"
#define GROUP(name) ",\"annotations\":{\"grove.io/mnnvl-group\":\"" name "\"}"
#define LWS(name) "\"leaderworkerset.sigs.k8s.io/name\":\"" name "\""
#define JOBSET(name, uid)                                                                                    \
        "\"jobset.sigs.k8s.io/jobset-name\":\"" name "\",\"jobset.sigs.k8s.io/jobset-uid\":\"" uid "\""
#define JOB OWNER("Job", "job", UID)

/* Decodes the metadata of a pod in the namespace "team", with the UID "pod-uid". */
static const struct auto_pod *decoded(struct arena *a, const char *name, const char *metadata) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        struct auto_pod_meta *meta = arena_alloc(a, sizeof *meta);
        struct auto_pod *kept = arena_alloc(a, sizeof *kept);
        struct err e;
        buf_addf(&b,
                 "{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s\",\"uid\":\"pod-uid\","
                 "\"resourceVersion\":\"1\"%s%s}}",
                 name, *metadata == '"' ? "," : "", metadata);
        *meta = (struct auto_pod_meta){ .jobset = NULL };
        *kept = (struct auto_pod){ .domain = NULL };
        assert_int_equal(jd_decode_text(auto_pod_meta_fields, (struct str){ buf_str(&b), b.n }, "", a, meta,
                                        &e),
                         0);
        jd_copy(auto_pod_fields, auto_pod_trim(meta, a), a, kept); /* as the informer does */
        return kept;
}

static void the_name_and_the_owner_follow_from_the_metadata(void **state) {
        static const struct {
                const char *pod, *metadata, *domain, *kind, *owner, *uid;
                bool leads;
        } cases[] = {
                { "job-0-x7", JOB, "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "x", OWNER("RayCluster", "a.b", "short"), "auto-a-b-short", "RayCluster", "a.b", "short",
                  false },
                { "x", OWNER("Job", FORTY "123456789", UID),
                  "auto-abcdefghi-abcdefghi-abcdefghi-abcdefghi-12345678-1a2b3c4d", "Job", FORTY "123456789",
                  UID, false },
                { "js-a-0-x7", JOB LABELS(JOBSET("js", "99999999-1")), "auto-js-99999999", "JobSet", "js",
                  "99999999-1", false },
                { "js-a-0-x7", JOB LABELS(JOBSET("js", "")), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "js-a-0-x7", JOB LABELS(JOBSET("", UID)), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "js-0", JOB LABELS(JOBSET("js", UID) "," LWS("js")), "auto-js-1a2b3c4d", "JobSet", "js",
                  UID, false },
                { "lws-10", OWNER("StatefulSet", "lws", UID) LABELS(LWS("lws")), "auto-lws-10-group",
                  "StatefulSet", "lws", UID, true },
                { "lws-10-3", OWNER("StatefulSet", "lws-10", UID) LABELS(LWS("lws")), "auto-lws-10-group",
                  "StatefulSet", "lws-10", UID, false },
                { "lws-1x", JOB LABELS(LWS("lws")), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "lws-", JOB LABELS(LWS("lws")), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "lws", JOB LABELS(LWS("lws")), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "lws2-1", JOB LABELS(LWS("lws")), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "-1", JOB LABELS(LWS("")), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "alone", "", "auto-alone-pod", "Pod", "alone", "pod-uid", false },
                { "job-0-x7", JOB GROUP("1"), "auto-job-1a2b3c4d-1", "Job", "job", UID, false },
                { "job-0-x7", JOB GROUP("None"), "auto-job-1a2b3c4d", "Job", "job", UID, false },
                { "js-a-0-x7", JOB LABELS(JOBSET("js", UID)) GROUP("decoders"), "auto-js-1a2b3c4d-decoders",
                  "JobSet", "js", UID, false },
                { "lws-1", OWNER("StatefulSet", "lws", UID) LABELS(LWS("lws")) GROUP("2"),
                  "auto-lws-1-group-2", "StatefulSet", "lws", UID, true },
                { "a.b-1", LABELS(LWS("a.b")), "auto-a.b-1-pod", "Pod", "a.b-1", "pod-uid", false },
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(1024);
                const struct auto_pod *p = decoded(a, cases[i].pod, cases[i].metadata);
                _cleanup_(buf_done) struct buf key = BUF_INIT(512);
                buf_addf(&key, "team/%s", cases[i].domain);
                assert_string_equal(p->domain, cases[i].domain);
                assert_string_equal(p->key, buf_str(&key));
                assert_string_equal(p->owner.kind, cases[i].kind);
                assert_string_equal(p->owner.name, cases[i].owner);
                assert_string_equal(p->owner.uid, cases[i].uid);
                assert_int_equal(p->leads, cases[i].leads);
        }
}

static void the_owner_of_a_jobset_has_the_api_version_of_jobsets(void **state) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        (void)state;
        assert_string_equal(decoded(a, "x", JOB LABELS(JOBSET("js", UID)))->owner.api_version,
                            "jobset.x-k8s.io/v1alpha2");
        assert_string_equal(decoded(a, "x", JOB)->owner.api_version, "batch/v1");
        assert_string_equal(decoded(a, "x", "")->owner.api_version, "v1");
}

static void a_pod_without_a_valid_name_or_owner_gets_no_computedomain(void **state) {
        static const char *const metadata[] = {
                OWNER("Node", "node-1", UID), /* a mirror pod */
                OWNER("Job", "job", "1A2B3C4D"),
                OWNER("Job", "job", "1a2b3c4-"),
                OWNER("Job", "job:x", UID),
                JOB LABELS(JOBSET("js", "../../x")),
                JOB LABELS(JOBSET("Js", UID)),
                JOB GROUP(""),
                JOB GROUP("A"),
                JOB GROUP("../x"),
                "\"ownerReferences\":[{\"kind\":\"Job\",\"name\":\"a\",\"uid\":\"u\",\"controller\":true}]",
        };
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
                _cleanup_(arena_freep) struct arena *a = arena_new(1024);
                const struct auto_pod *p = decoded(a, "x", metadata[i]);
                assert_null(p->domain);
                assert_null(p->key);
        }
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
#define LONGEST FORTY FORTY FORTY FORTY FORTY FORTY "1234"
        assert_int_equal(strlen(decoded(a, LONGEST, "")->domain), 253);
        assert_null(decoded(a, LONGEST "5", "")->domain);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_name_and_the_owner_follow_from_the_metadata),
                cmocka_unit_test(the_owner_of_a_jobset_has_the_api_version_of_jobsets),
                cmocka_unit_test(a_pod_without_a_valid_name_or_owner_gets_no_computedomain),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
