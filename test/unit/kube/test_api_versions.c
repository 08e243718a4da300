/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of an API group that appear and disappear on a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "world/fake_client.h"
#include "kube/kube_informer.h"

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct kube_informer *informer;
        const char *serves; /* "v1beta1 v1beta2", "": not even the group */
        bool as_status;     /* what is not served is answered with a Status */
        bool page;          /* a load balancer answers, with a page and this status */
        int page_status;
        unsigned requests, lists;
        struct fake_conn *watch;
        char watched[16], got[16]; /* the versions of the last watch and GET */
        struct buf items;          /* of lists, as the events have made them */
        unsigned rv;
        bool watching, synced, changed, deleted, trouble, done, is_current;
        unsigned n_done, n_current;
        struct err err;
};

static bool serves(const struct world *w, const char *version, size_t n) {
        struct str rest = str_from(w->serves), field;
        while (str_next_field(&rest, ' ', &field))
                if (field.n == n && memcmp(field.p, version, n) == 0)
                        return true;
        return false;
}

#define NO_SUCH_RESOURCE                                                                                     \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\","         \
        "\"code\":404}"
#define CLAIM                                                                                                \
        "{\"kind\":\"ResourceClaim\",\"metadata\":{\"namespace\":\"a\",\"name\":\"c\",\"resourceVersion\":"  \
        "\"5\"}}"

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        const char *version = r->path + strlen("/apis/resource.k8s.io/");
        size_t n = strcspn(version, "/");

        w->requests++;
        if (w->page) {
                fake_reply(c, w->page_status, NULL, "<html>sorry</html>");
        } else if (!serves(w, version, n)) {
                fake_reply(c, 404, NULL, w->as_status ? NO_SUCH_RESOURCE : "404 page not found\n");
        } else if (fake_query(r, "watch")) {
                snprintf(w->watched, sizeof w->watched, "%.*s", (int)n, version);
                w->watch = c;
                w->watching = true;
                fake_stream(c);
        } else if (fake_has(r->path, "/resourceclaims/c")) {
                snprintf(w->got, sizeof w->got, "%.*s", (int)n, version);
                fake_reply(c, 200, NULL, CLAIM);
        } else {
                w->lists++;
                _cleanup_(freep) char *list =
                        xasprintf("{\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[" CLAIM "%s]}",
                                  w->rv, buf_str(&w->items));
                fake_list(c, r, fake_has(r->path, "/resourceslices") ? "ResourceSlice" : "ResourceClaim",
                          list);
        }
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->serves = "v1";
        w->page_status = 404;
        w->items = BUF_INIT(4096);
        w->rv = 10;
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;
        kube_informer_free(w->informer);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        buf_done(&w->items);
        free(w);
        return 0;
}

static void on_got(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;
        w->done = true;
        w->n_done++;
        w->err = e ? *e : (struct err){ 0 };
}

static void get(struct world *w, unsigned attempts) {
        w->done = false;
        kube_start(w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                      .res = &kube_resource_claims,
                                                      .ns = "a",
                                                      .name = "c",
                                                      .attempts = attempts,
                                                      .done = on_got,
                                                      .u = w });
}

/* ---- the informer ---- */

static const struct jd_field fields[] = { JD_OBJ(struct kube_object, "metadata", meta, kube_f_meta), JD_END };

static void on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct world *w = u;
        w->changed = true;
        w->deleted = w->deleted || !now;
}

static void on_synced(void *u) {
        ((struct world *)u)->synced = true;
}

static void on_trouble(void *u, const struct kube_resource *res, const struct err *e) {
        struct world *w = u;
        w->trouble = e != NULL;
        if (e)
                w->err = *e;
}

static void on_current(void *u, bool is) {
        struct world *w = u;
        w->n_current++;
        w->is_current = is;
        assert_int_equal(kube_informer_current(w->informer), is);
}

static void begin(struct world *w) {
        w->informer = kube_informer_new(w->client, &(struct kube_informer_options){
                                                           .res = &kube_resource_claims,
                                                           .fields = fields,
                                                           .size = sizeof(struct kube_object),
                                                           .changed = on_changed,
                                                           .synced = on_synced,
                                                           .failing = on_trouble,
                                                           .current = on_current,
                                                           .u = w,
                                                   });
        run_until(&w->loop, &w->is_current);
}

static void event(struct world *w, const char *type, const char *name, unsigned rv) {
        _cleanup_(freep) char *object = xasprintf(
                "{\"metadata\":{\"namespace\":\"a\",\"name\":\"%s\",\"resourceVersion\":\"%u\"}}", name, rv);
        _cleanup_(freep) char *line = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
        w->changed = false;
        w->rv = rv;
        if (streq(type, "ADDED"))
                buf_addf(&w->items, ",%s", object); /* a list does not report later versions */
        fake_chunk(w->watch, line);
        run_until(&w->loop, &w->changed);
}

/* ---- the first time ---- */

static void the_best_served_version_is_found(void **state) {
        struct world *w = *state;
        w->serves = "v1beta1 v1beta2 v2";
        assert_string_equal(kube_resource_api(w->client), "v1");
        get(w, 0);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->err.kind, ERR_NONE);
        assert_string_equal(w->got, "v1beta2");
        assert_string_equal(kube_resource_api(w->client), "v1beta2");
        assert_int_equal(w->requests, 2);
        get(w, 1);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->requests, 3);
        w->serves = "v1beta1";
        w->as_status = true;
        get(w, 0);
        run_until(&w->loop, &w->done);
        assert_string_equal(w->got, "v1beta1");
}

/* failure: the API server serves no known version of a group -> every version is tried again */
static void a_group_without_a_known_version_is_retried(void **state) {
        struct world *w = *state;
        w->serves = "v1alpha3";
        get(w, 4);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->err.kind, ERR_RETRY);
        assert_true(kube_unreachable(&w->err));
        assert_int_equal(w->requests, 4);
        w->serves = "v1";
        get(w, 0);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->err.kind, ERR_NONE);
        assert_string_equal(w->got, "v1");
}

/* failure: a load balancer answers 404 instead of the API server -> the version stays */
static void a_page_changes_no_version(void **state) {
        struct world *w = *state;
        w->page = true;
        get(w, 3);
        run_until(&w->loop, &w->done);
        assert_true(kube_unreachable(&w->err));
        assert_string_equal(kube_resource_api(w->client), "v1");
}

/* ---- versions that change ---- */

/* failure: a served API version disappears -> a request is retried with another version */
static void a_call_goes_to_the_new_version(void **state) {
        struct world *w = *state;
        w->serves = "v1beta1 v1beta2";
        get(w, 0);
        run_until(&w->loop, &w->done);
        w->serves = "v1";
        get(w, 0);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->err.kind, ERR_NONE);
        assert_string_equal(w->got, "v1");
}

/* failure: a served API version disappears -> watches continue with another version */
static void an_informer_continues_with_the_new_version(void **state) {
        static const char *const steps[] = { "v1", "v1beta1", "v1beta1 v1beta2 v1" };
        static const char *const expected[] = { "v1", "v1beta1", "v1beta1" };
        struct world *w = *state;
        w->serves = "v1beta1 v1beta2";
        begin(w);
        assert_string_equal(w->watched, "v1beta2");
        for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
                char name[16];
                w->serves = steps[i];
                fake_close(w->watch); /* an API server with other flags is a new process */
                RUN_UNTIL(&w->loop, !w->is_current);
                run_until(&w->loop, &w->is_current);
                assert_string_equal(w->watched, expected[i]);
                snprintf(name, sizeof name, "n%u", i);
                event(w, "ADDED", name, 20 + i);
                assert_non_null(kube_informer_get(w->informer, "a", name));
        }
        assert_false(w->deleted);
        event(w, "DELETED", "n1", 30);
        assert_true(w->deleted);
}

static void a_list_finds_the_version_too(void **state) {
        struct world *w = *state;
        w->serves = "v1beta1";
        begin(w);
        assert_string_equal(w->watched, "v1beta1");
        assert_int_equal(kube_informer_count(w->informer), 1);
}

/* failure: pages answer instead of the API server -> the informer keeps its objects */
static void an_absent_server_changes_nothing(void **state) {
        static const int statuses[] = { 404, 403, 503, 200 };
        struct world *w = *state;
        begin(w);
        event(w, "ADDED", "n", 20);
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
                w->page = true;
                w->page_status = statuses[i];
                w->changed = false;
                fake_close(w->watch);
                RUN_UNTIL(&w->loop, !w->is_current);
                run_for(&w->loop, 300);
                get(w, 1);
                run_until(&w->loop, &w->done);
                assert_true(kube_unreachable(&w->err));
                assert_string_equal(kube_resource_api(w->client), "v1");
                assert_false(w->is_current || w->changed);
                assert_int_equal(kube_informer_count(w->informer), 2);
                w->page = false;
                run_until(&w->loop, &w->is_current);
                event(w, "MODIFIED", "n", 21 + (unsigned)i);
        }
        assert_false(w->deleted);
        assert_int_equal(w->lists,
                         1 + ARRAY_LEN(statuses)); /* each list proves that the cache is current again */
}

/* The first answer decides, and the others do not skip a version. */
static void requests_at_the_same_time_change_the_version_once(void **state) {
        struct world *w = *state;
        enum { N = 20 };
        w->serves = "v1beta1 v1beta2";
        for (unsigned n = 0; n < N; n++)
                get(w, 2);
        RUN_UNTIL(&w->loop, w->n_done == N);
        assert_int_equal(w->err.kind, ERR_NONE);
        assert_string_equal(w->got, "v1beta2");
        assert_int_equal(w->requests, 2 * N);
}

/* failure: a cluster is upgraded and still serves old versions -> the client can change to the best one
 * [upgrade] */
static void a_recheck_finds_the_best_version_again(void **state) {
        static const char *const expected[] = { "v1beta2", "v1beta2", "v1" };
        static const char *const serves_now[] = { "v1beta2", "v1beta2", "v1beta2 v1" };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
                w->serves = serves_now[i];
                if (i) {
                        w->done = false;
                        kube_recheck_resource_api(w->client, on_got, w);
                        run_until(&w->loop, &w->done);
                        assert_int_equal(w->err.kind, streq(expected[i], "v1") ? ERR_NONE : ERR_RETRY);
                }
                get(w, 0);
                run_until(&w->loop, &w->done);
                assert_string_equal(w->got, expected[i]);
                assert_string_equal(kube_resource_api(w->client), expected[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(the_best_served_version_is_found),
                T(a_group_without_a_known_version_is_retried),
                T(a_page_changes_no_version),
                T(a_call_goes_to_the_new_version),
                T(an_informer_continues_with_the_new_version),
                T(a_list_finds_the_version_too),
                T(an_absent_server_changes_nothing),
                T(requests_at_the_same_time_change_the_version_once),
                T(a_recheck_finds_the_best_version_again),
        };
        return cmocka_run_group_tests_name("api_versions", tests, NULL, NULL);
}
