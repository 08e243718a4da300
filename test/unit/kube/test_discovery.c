/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of an API group that appear and disappear. The server serves the versions that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "world/fake_server.h"
#include "kube/kube_informer.h"

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct kube_informer *informer;
        const char *serves; /* "v1beta1 v1beta2"; "": not even the group */
        bool refuses;       /* as a server that has just started and has not loaded the roles */
        bool page;          /* a load balancer answers with a page and this status */
        int page_status;
        unsigned asked, lists; /* requests for the group; lists */
        struct fake_conn *watch;
        char watched[16], got[16]; /* the versions of the last watch and the last GET */
        struct buf items;          /* the items of a list after the events so far */
        unsigned rv;
        bool watching, synced, changed, deleted, trouble, done, is_current;
        unsigned n_current;
        struct err err;
        /* of kube_discover() */
        bool called;
        unsigned n_called, n_retries;
        struct err last_err, retry_err;
};

static bool serves(const struct world *w, const char *version, size_t n) {
        struct str rest = str_from(w->serves), field;
        while (str_next_field(&rest, ' ', &field))
                if (field.n == n && memcmp(field.p, version, n) == 0)
                        return true;
        return false;
}

static void reply_group(struct world *w, struct fake_conn *c) {
        struct buf b = BUF_INIT(4096);
        struct str rest = str_from(w->serves), field;
        const char *comma = "";
        buf_adds(&b,
                 "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"resource.k8s.io\",\"versions\":[");
        while (str_next_field(&rest, ' ', &field)) {
                buf_addf(&b, "%s{\"version\":\"%.*s\"}", comma, (int)field.n, field.p);
                comma = ",";
        }
        buf_adds(&b, "]}");
        fake_reply(c, 200, NULL, buf_str(&b));
        buf_done(&b);
}

#define CLAIM                                                                                                \
        "{\"kind\":\"ResourceClaim\",\"metadata\":{\"namespace\":\"a\",\"name\":\"c\",\"resourceVersion\":"  \
        "\"5\"}}"

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        const char *group = "/apis/resource.k8s.io", *version = r->path + strlen(group) + 1;
        size_t n = r->path[strlen(group)] == '/' ? strcspn(version, "/") : 0;

        w->asked += n == 0;
        if (w->page) {
                fake_reply(c, w->page_status, NULL, "<html>sorry</html>");
        } else if (w->refuses) {
                fake_refuse(c, 403, "cannot get path");
        } else if (n == 0 && *w->serves) {
                reply_group(w, c);
        } else if (!serves(w, version, n)) {
                fake_reply(c, 404, NULL, "404 page not found\n");
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
                fake_list(c, r, "ResourceClaim", list);
        }
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);
        struct err e;
        uv_loop_init(&w->loop);
        w->serves = "v1";
        w->page_status = 404;
        w->items = BUF_INIT(4096);
        w->rv = 10;
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", fake_server_port(w->server));
        struct kube_config k = { .server = url };
        assert_int_equal(kube_client_new(&w->loop,
                                         &(struct kube_client_options){ .config = &k, .user_agent = "t" },
                                         &w->client, &e),
                         0);
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

static void on_known(void *u, const struct err *e) {
        struct world *w = u;
        if (e && e->kind == ERR_RETRY) {
                w->n_retries++;
                w->retry_err = *e;
                return;
        }
        w->called = true;
        w->n_called++;
        w->last_err = e ? *e : (struct err){ 0 };
}

static void discover(struct world *w) {
        w->called = false;
        kube_discover(w->client, &kube_resource_claims, on_known, w);
        assert_false(w->called);
        run_until(&w->loop, &w->called);
}

static void on_got(void *u, yyjson_val *obj, const struct err *e) {
        struct world *w = u;
        w->done = true;
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

static void the_best_version_is_used(void **state) {
        struct world *w = *state;
        get(w, 1);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->err.kind, ERR_RETRY);
        assert_int_equal(fake_server_requests(w->server), 0);

        w->serves = "v1beta1 v1beta2 v2";
        kube_discover(w->client, &kube_resource_claims, on_known, w);
        assert_null(kube_resource_api(w->client));
        discover(w);
        assert_int_equal(w->n_called, 2);
        assert_int_equal(w->asked, 1);
        assert_string_equal(kube_resource_api(w->client), "v1beta2");
        discover(w); /* the version is known: fn is still called in a later turn */
        assert_int_equal(w->asked, 1);
        get(w, 1);
        run_until(&w->loop, &w->done);
        assert_string_equal(w->got, "v1beta2");
}

/* failure: the API server does not serve a known version -> the error names the versions, and discovery is
 * retried */
static void a_group_without_known_versions_is_reported_and_retried(void **state) {
        struct world *w = *state;
        w->serves = "v1alpha3";
        discover(w);
        assert_int_equal(w->last_err.kind, ERR_INVALID);
        assert_string_equal(w->last_err.msg, "the server offers no supported version of resource.k8s.io (v1, "
                                             "v1beta2, v1beta1)");
        w->called = false;
        w->serves = "v1alpha3 v1";
        run_until(&w->loop, &w->called); /* the test has not asked again */
        assert_int_equal(w->last_err.kind, ERR_NONE);
        assert_int_equal(w->n_called, 2);
        assert_int_equal(w->asked, 2);
}

/* failure: the API server refuses discovery at its start -> it is retried */
static void a_refused_discovery_is_reported_and_retried(void **state) {
        struct world *w = *state;
        w->refuses = true;
        discover(w);
        assert_int_equal(w->last_err.kind, ERR_DENIED);
        w->called = false;
        w->refuses = false;
        run_until(&w->loop, &w->called); /* the test has not asked again */
        assert_int_equal(w->last_err.kind, ERR_NONE);
        assert_int_equal(w->asked, 2);
}

/* failure: a page answers discovery -> it does not mean that no version is served */
static void a_page_does_not_mean_that_there_is_no_version(void **state) {
        static const int statuses[] = { 404, 403, 503, 200 };
        struct world *w = *state;
        w->page = true;
        kube_discover(w->client, &kube_resource_claims, on_known, w);
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
                w->page_status = statuses[i];
                w->n_retries = 0;
                RUN_UNTIL(&w->loop, w->n_retries);
                assert_int_equal(w->n_called, 0);
                assert_true(kube_away(&w->retry_err));
        }
        w->page = false;
        w->serves = ""; /* nor does the API server's own page, for a group that it does not serve */
        w->n_retries = 0;
        RUN_UNTIL(&w->loop, w->n_retries);
        w->serves = "v1";
        run_until(&w->loop, &w->called);
        assert_int_equal(w->last_err.kind, ERR_NONE);
        assert_int_equal(w->n_called, 1);
}

static void a_caller_that_undid_its_discovery_is_not_called(void **state) {
        struct world *w = *state;
        kube_discover(w->client, &kube_resource_claims, on_known, w);
        kube_undiscover(w->client, &kube_resource_claims, on_known, w);
        RUN_UNTIL(&w->loop, kube_resource_api(w->client));
        run_for(&w->loop, 20);
        assert_int_equal(w->n_called, 0);
}

static void free_client(void *u, const struct err *e) {
        struct world *w = u;
        w->called = true;
        kube_client_free(w->client);
        w->client = NULL;
}

static void a_callback_may_free_the_client(void **state) {
        struct world *w = *state;
        kube_discover(w->client, &kube_resource_claims, free_client, w);
        kube_discover(w->client, &kube_resource_claims, on_known, w);
        run_until(&w->loop, &w->called);
        run_for(&w->loop, 20);
        assert_int_equal(w->n_called, 0);
}

/* ---- versions that change ---- */

/* failure: a served API version disappears -> a request is retried with another version */
static void a_call_goes_to_the_new_version(void **state) {
        struct world *w = *state;
        w->serves = "v1beta1 v1beta2";
        discover(w);
        w->serves = "v1";
        get(w, 0);
        run_until(&w->loop, &w->done);
        assert_int_equal(w->err.kind, ERR_NONE);
        assert_string_equal(w->got, "v1");
        assert_int_equal(w->asked, 2);
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

static void a_list_that_is_not_served_discovers_too(void **state) {
        struct world *w = *state;
        w->serves = "v1beta2";
        discover(w);
        w->serves = "v1";
        begin(w);
        assert_string_equal(w->watched, "v1");
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
                assert_true(kube_away(&w->err));
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

/* However many requests are rejected, the group is queried at most once a second. */
static void many_rejected_requests_cause_one_query(void **state) {
        struct world *w = *state;
        unsigned n = 0;
        discover(w);
        for (; n < 20; n++) {
                kube_start(w->client, &(struct kube_request){ .verb = KUBE_GET,
                                                              .res = &kube_resource_claims,
                                                              .ns = "a",
                                                              .name = "c",
                                                              .attempts = UINT_MAX,
                                                              .done = on_got,
                                                              .u = w });
        }
        w->serves = "v1beta1";
        w->done = false;
        uint64_t begin = uv_hrtime();
        RUN_UNTIL(&w->loop, w->asked >= 2);
        assert_true(uv_hrtime() - begin >= 900 * 1000000ULL);
        run_until(&w->loop, &w->done);
        assert_string_equal(w->got, "v1beta1");
        assert_int_equal(w->asked, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(the_best_version_is_used),
                T(a_group_without_known_versions_is_reported_and_retried),
                T(a_refused_discovery_is_reported_and_retried),
                T(a_page_does_not_mean_that_there_is_no_version),
                T(a_caller_that_undid_its_discovery_is_not_called),
                T(a_callback_may_free_the_client),
                T(a_call_goes_to_the_new_version),
                T(an_informer_continues_with_the_new_version),
                T(a_list_that_is_not_served_discovers_too),
                T(an_absent_server_changes_nothing),
                T(many_rejected_requests_cause_one_query),
        };
        return cmocka_run_group_tests_name("discovery", tests, NULL, NULL);
}
