/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means, for every status and length at which the meaning changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kube/kube_error.h"
#include "kube/kube_status.h"

#define STATUS(members) "{\"kind\":\"Status\",\"apiVersion\":\"v1\"" members "}"
#define REASON(r) STATUS(",\"reason\":\"" r "\"")
#define THE_POD "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}"

static const struct kube_resource pods = { .version = "v1", .plural = "pods", .kind = "Pod", .group = "" };
static struct err e;
static int wait_s;

/* Returns 0 if the answer is the Pod. */
static int answer(int status, int retry_after_s, const char *body) {
        const struct http_response r = { status, retry_after_s, body, strlen(body), NULL };
        yyjson_doc *doc;

        int ret = kube_answer(&r, &(struct kube_request){ .verb = KUBE_GET, .res = &pods, .name = "p" }, &doc,
                              &e, &wait_s);
        yyjson_doc_free(doc);
        return ret;
}

static void only_2xx_is_a_success(void **state) {
        assert_int_equal(answer(199, -1, THE_POD), -1);
        assert_int_equal(answer(200, -1, THE_POD), 0);
        assert_int_equal(answer(299, -1, THE_POD), 0);
        assert_int_equal(answer(300, -1, THE_POD), -1);
}

/* failure: a tenant's object is valid for Go and not for RFC 8259 -> its list is read */
static void text_that_only_go_accepts_is_read(void **state) {
        assert_int_equal(
                answer(200, -1, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"a\":\"\\ud800\xff\"}"), 0);
}

/* A webhook may omit the reason. */
static void without_a_reason_the_status_decides(void **state) {
        static const struct {
                int from, to;
                enum err_kind kind;
        } ranges[] = { { 400, 400, ERR_INVALID }, { 401, 401, ERR_DENIED },   { 402, 402, ERR_RETRY },
                       { 403, 403, ERR_DENIED },  { 404, 404, ERR_RETRY },    { 405, 406, ERR_INVALID },
                       { 407, 408, ERR_RETRY },   { 409, 409, ERR_CONFLICT }, { 410, 412, ERR_RETRY },
                       { 413, 413, ERR_INVALID }, { 414, 414, ERR_RETRY },    { 415, 415, ERR_INVALID },
                       { 416, 421, ERR_RETRY },   { 422, 422, ERR_INVALID },  { 423, 599, ERR_RETRY } };

        for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
                for (int code = ranges[i].from; code <= ranges[i].to; code++) {
                        assert_int_equal(answer(code, -1, STATUS("")), -1);
                        assert_int_equal(e.kind, ranges[i].kind);
                }
}

static void a_reason_counts_with_its_status_only(void **state) {
        static const struct {
                int code;
                const char *body;
                enum err_kind kind;
        } cases[] = {
                { 410, REASON("Expired"), ERR_GONE },        { 410, REASON("Gone"), ERR_GONE },
                { 409, REASON("Expired"), ERR_CONFLICT },    { 411, REASON("Expired"), ERR_RETRY },
                { 401, REASON("Unauthorized"), ERR_DENIED }, { 403, REASON("Forbidden"), ERR_DENIED },
                { 401, REASON("Timeout"), ERR_RETRY },       { 403, REASON("Timeout"), ERR_RETRY },
                { 400, REASON("Timeout"), ERR_INVALID },     { 402, REASON("Forbidden"), ERR_RETRY },
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_int_equal(answer(cases[i].code, -1, cases[i].body), -1);
                assert_int_equal(e.kind, cases[i].kind);
        }
}

/* failure: an answer with another status has the reason NotFound -> the object does not count as missing */
static void only_a_404_reports_a_missing_object(void **state) {
        static const char missing[] =
                STATUS(",\"reason\":\"NotFound\",\"details\":{\"name\":\"p\",\"kind\":\"pods\"}");

        assert_int_equal(answer(404, -1, missing), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_int_equal(e.code, 404);
        for (int code = 403; code <= 405; code += 2) {
                assert_int_equal(answer(code, -1, missing), -1);
                assert_int_not_equal(e.kind, ERR_NOT_FOUND);
        }
        /* Of another object. */
        assert_int_equal(answer(404, -1, REASON("NotFound")), -1);
        assert_true(kube_unreachable(&e));
        assert_int_equal(answer(403, -1, REASON("Timeout")), -1);
        assert_false(kube_unreachable(&e));
        assert_int_equal(answer(405, -1, REASON("Timeout")), -1);
        assert_false(kube_unreachable(&e));
}

static void the_version_of_a_group_is_unserved_by_a_404_only(void **state) {
        const struct str page = STR("404 page not found\n"), status = STR(REASON("NotFound"));

        for (int code = 403; code <= 405; code++) {
                assert_int_equal(kube_status_unserved(code, page), code == 404);
                assert_int_equal(kube_status_unserved(code, status), code == 404);
        }
        assert_false(kube_status_unserved(
                404, STR(STATUS(",\"reason\":\"NotFound\",\"details\":{\"name\":\"p\"}"))));
        assert_false(kube_status_unserved(404, STR("<html>")));
}

static void the_server_may_ask_to_wait(void **state) {
        static const struct {
                int header;
                const char *body;
                int wait_s;
        } cases[] = {
                { -1, STATUS(""), -1 },
                { -1, STATUS(",\"details\":{\"retryAfterSeconds\":0}"), -1 },
                { -1, STATUS(",\"details\":{\"retryAfterSeconds\":1}"), 1 },
                { 0, STATUS(",\"details\":{\"retryAfterSeconds\":5}"), 0 }, /* the header takes precedence */
                { 7, STATUS(",\"details\":{\"retryAfterSeconds\":5}"), 7 },
                { 3600, STATUS(""), 3600 },
                { 10, "<html>", 10 },
                { 11, "<html>", 10 }, /* of a proxy */
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_int_equal(answer(503, cases[i].header, cases[i].body), -1);
                assert_int_equal(wait_s, cases[i].wait_s);
        }
}

static void the_wait_is_at_least_what_the_server_asks_for_and_at_most_a_minute(void **state) {
        assert_int_equal(kube_wait_ms(500, -1), 500);
        assert_int_equal(kube_wait_ms(500, 0), 500);
        assert_int_equal(kube_wait_ms(500, 1), 1500);
        assert_int_equal(kube_wait_ms(999, 1), 1999);
        assert_int_equal(kube_wait_ms(1000, 1), 1000);
        assert_int_equal(kube_wait_ms(5000, 1), 5000);
        assert_int_equal(kube_wait_ms(500, 60), 60500);
        assert_int_equal(kube_wait_ms(500, 61), 60500);
}

static void a_page_is_quoted_up_to_200_characters(void **state) {
        char page[202];

        memset(page, 'x', 201);
        page[201] = '\0';
        assert_int_equal(answer(503, -1, page), -1);
        assert_int_equal(strspn(strstr(e.msg, "Kubernetes: ") + 12, "x"), 200);
        page[200] = '\0';
        assert_int_equal(answer(503, -1, page), -1);
        assert_int_equal(strspn(strstr(e.msg, "Kubernetes: ") + 12, "x"), 200);
}

/* Below 100 are the numbers of libcurl. */
static void the_code_shows_who_failed(void **state) {
        static const struct {
                enum err_kind kind;
                int code;
                bool unreachable, too_large;
        } cases[] = {
                { ERR_RETRY, 0, false, false },     { ERR_RETRY, 1, true, false },
                { ERR_RETRY, 99, true, false },     { ERR_RETRY, 100, false, false },
                { ERR_RETRY, -1, true, false },     { ERR_RETRY, -503, true, false },
                { ERR_RETRY, 503, false, false },   { ERR_INVALID, 0, false, false },
                { ERR_INVALID, 1, false, true },    { ERR_INVALID, 99, false, true },
                { ERR_INVALID, 100, false, false }, { ERR_INVALID, 422, false, false },
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct err x = { .kind = cases[i].kind, .code = cases[i].code };
                assert_int_equal(kube_unreachable(&x), cases[i].unreachable);
                assert_int_equal(kube_error_too_large(&x), cases[i].too_large);
        }
}

static void a_list_has_the_kind_of_its_objects(void **state) {
        static const struct {
                const char *kind;
                bool ok;
        } cases[] = { { "PodList", true },  { "PodListList", false }, { "PocList", false },
                      { "QodList", false }, { "Pod", false },         { "", false } };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(freep) char *body = xasprintf(
                        "{\"kind\":\"%s\",\"metadata\":{\"resourceVersion\":\"1\"}}", cases[i].kind);
                const struct http_response r = { 200, -1, body, strlen(body), NULL };
                yyjson_doc *doc;
                int ret = kube_answer(&r, &(struct kube_request){ .verb = KUBE_LIST, .res = &pods }, &doc, &e,
                                      &wait_s);
                assert_int_equal(ret, cases[i].ok ? 0 : -1);
                yyjson_doc_free(doc);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_2xx_is_a_success),
                cmocka_unit_test(text_that_only_go_accepts_is_read),
                cmocka_unit_test(without_a_reason_the_status_decides),
                cmocka_unit_test(a_reason_counts_with_its_status_only),
                cmocka_unit_test(only_a_404_reports_a_missing_object),
                cmocka_unit_test(the_version_of_a_group_is_unserved_by_a_404_only),
                cmocka_unit_test(the_server_may_ask_to_wait),
                cmocka_unit_test(the_wait_is_at_least_what_the_server_asks_for_and_at_most_a_minute),
                cmocka_unit_test(a_page_is_quoted_up_to_200_characters),
                cmocka_unit_test(the_code_shows_who_failed),
                cmocka_unit_test(a_list_has_the_kind_of_its_objects),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
