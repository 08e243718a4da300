#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "fake_server.h"
#include "kube/kube_informer.h"

struct pod {
        struct kube_object o;
        const char *node;
        int64_t weight;
};

static const struct jd_field f_spec[] = { JD_STR(struct pod, "nodeName", node), JD_INT(struct pod, "weight", weight), JD_END };
static const struct jd_field f_pod[] = { JD_OBJ(struct pod, "metadata", o.meta, kube_f_meta), JD_IN(struct pod, "spec", f_spec), JD_END };

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct kube_informer *informer;
        struct kube_informer_options o;

        /* what the server does */
        const char *pages[4]; /* answers to lists, in turn; the last one again and again */
        unsigned n_lists, n_watches, n_list_failures, n_watch_failures;
        int list_failure, watch_failure;
        bool hung; /* watches get no answer */
        bool answers_discovery;
        struct fake_conn *watch;
        char list_path[2048], watch_path[2048], watch_rv[64], head[4096];
        bool watching;

        /* what the informer said */
        struct buf log;
        bool synced, changed, undecodable, trouble, well, got;
        unsigned n_synced, n_undecodable, n_trouble;
        struct err err;
        void (*on_changed)(struct world *w);
        void (*on_synced)(struct world *w);
        const struct kube_object *held;
};

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;

        if (w->answers_discovery && streq(r->path, "/apis/resource.k8s.io")) {
                fake_reply(c, 200, NULL, "{\"versions\":[{\"version\":\"v1\"}]}");
        } else if (fake_query(r, "watch")) {
                w->n_watches++;
                snprintf(w->watch_path, sizeof w->watch_path, "%s", r->path);
                snprintf(w->watch_rv, sizeof w->watch_rv, "%s", fake_query(r, "resourceVersion"));
                if (w->n_watch_failures) {
                        w->n_watch_failures--;
                        fake_reply(c, w->watch_failure, NULL, "{\"message\":\"no watch\"}");
                } else if (!w->hung) {
                        w->watch = c;
                        w->watching = true;
                        fake_stream(c);
                }
        } else {
                snprintf(w->list_path, sizeof w->list_path, "%s", r->path);
                snprintf(w->head, sizeof w->head, "%s", r->head);
                if (w->n_list_failures) {
                        w->n_list_failures--;
                        fake_reply(c, w->list_failure, NULL, "{\"message\":\"no list\"}");
                        return;
                }
                unsigned last = 0;
                while (last + 1 < ARRAY_LEN(w->pages) && w->pages[last + 1])
                        last++;
                fake_reply(c, 200, NULL, w->pages[w->n_lists < last ? w->n_lists : last]);
                w->n_lists++;
        }
}

static const char *node_of(const struct kube_object *o) {
        return ((const struct pod *)(const void *)o)->node;
}

static const char *uid_of(const struct kube_object *o) {
        return o->meta.uid;
}

/* "+a@1 ", "~a@1>2 ", "-a@2 " */
static void on_changed(void *u, const struct kube_object *old, const struct kube_object *now) {
        struct world *w = u;
        if (!old)
                buf_addf(&w->log, "+%s@%s ", now->meta.name, now->meta.rv);
        else if (!now)
                buf_addf(&w->log, "-%s@%s ", old->meta.name, old->meta.rv);
        else
                buf_addf(&w->log, "~%s@%s>%s ", now->meta.name, old->meta.rv, now->meta.rv);
        if (now)
                assert_ptr_equal(kube_informer_get(w->informer, now->meta.ns, now->meta.name), now);
        w->changed = true;
        if (w->on_changed)
                w->on_changed(w);
}

static void on_synced(void *u) {
        struct world *w = u;
        w->synced = true;
        w->n_synced++;
        assert_true(kube_informer_synced(w->informer));
        if (w->on_synced)
                w->on_synced(w);
}

static void on_undecodable(void *u, const struct err *e) {
        struct world *w = u;
        w->undecodable = true;
        w->n_undecodable++;
        w->err = *e;
}

static void on_trouble(void *u, const struct err *e) {
        struct world *w = u;
        w->n_trouble++;
        if (e) {
                w->trouble = true;
                w->err = *e;
        } else {
                w->well = true;
        }
}

static void on_got(void *u, yyjson_val *obj, const struct err *e) {
        ((struct world *)u)->got = true;
}

static void connect_to(struct world *w, int port) {
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", port);
        struct kube_config k = { .server = url };
        struct err e;
        assert_int_equal(kube_client_new(&w->loop, &(struct kube_client_options){ .config = &k, .user_agent = "t" }, &w->client, &e), 0);
}

static int set_up(void **state) {
        struct world *w = xnew(struct world);

        uv_loop_init(&w->loop);
        w->log = BUF_INIT(1 << 20);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        connect_to(w, fake_server_port(w->server));
        w->pages[0] = "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}";
        w->o = (struct kube_informer_options){
                .res = &kube_pods,
                .fields = f_pod,
                .size = sizeof(struct pod),
                .index = { node_of, uid_of },
                .changed = on_changed,
                .synced = on_synced,
                .undecodable = on_undecodable,
                .trouble = on_trouble,
                .u = w,
        };
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;
        kube_informer_free(w->informer);
        kube_object_unref(w->held);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        buf_done(&w->log);
        free(w);
        return 0;
}

static void begin(struct world *w) {
        w->informer = kube_informer_new(w->client, &w->o);
        assert_false(w->synced || w->changed);
}

static void begin_watching(struct world *w) {
        begin(w);
        run_until(&w->loop, &w->watching);
}

static void event(struct world *w, const char *type, const char *name, unsigned rv, const char *node) {
        _cleanup_(freep) char *line = xasprintf("{\"type\":\"%s\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":"
                                                "\"uid-%s\",\"resourceVersion\":\"%u\"},"
                                                "\"spec\":{\"nodeName\":\"%s\"}}}\n",
                                                type, name, name, rv, node);
        fake_chunk(w->watch, line);
}

static void wait_for_log(struct world *w, const char *expected) {
        for (int i = 0; i < 500 && !streq(buf_str(&w->log), expected); i++)
                run_for(&w->loop, 2);
        assert_string_equal(buf_str(&w->log), expected);
        w->changed = false;
}

static void wait_for_watch(struct world *w, unsigned n) {
        for (int i = 0; i < 5000 && w->n_watches < n; i++)
                run_for(&w->loop, 2);
        assert_int_equal(w->n_watches, n);
        run_for(&w->loop, 20);
}

#define ITEM(name, rv, node)                                                                                                               \
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name "\",\"resourceVersion\":\"" rv                     \
        "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define LIST(rv, items) "{\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}"
#define PAGE(rv, next, items) "{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"

static void test_list_then_watch(void **state) {
        struct world *w = *state;
        w->pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n2"));
        w->o.ns = "ns";
        w->o.label_selector = "app=x";
        begin_watching(w);
        assert_string_equal(w->list_path, "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&limit=500");
        assert_true(fake_has(w->watch_path,
                             "/api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds="));
        assert_true(fake_has(w->watch_path, "&labelSelector=app%3Dx"));
        assert_true(fake_has(w->head, "Accept: application/json\r\n"));
        wait_for_log(w, "+a@3 +b@4 ");
        assert_int_equal(w->n_synced, 1);
        assert_int_equal(kube_informer_count(w->informer), 2);
        assert_string_equal(((const struct pod *)(const void *)kube_informer_get(w->informer, "ns", "a"))->node, "n1");
        assert_null(kube_informer_get(w->informer, "ns", "c"));

        event(w, "ADDED", "c", 11, "n1");
        event(w, "MODIFIED", "a", 12, "n2");
        event(w, "DELETED", "b", 13, "n2");
        event(w, "DELETED", "unknown", 14, "n2");
        wait_for_log(w, "+a@3 +b@4 +c@11 ~a@3>12 -b@4 ");
        assert_int_equal(kube_informer_count(w->informer), 2);
        assert_int_equal(w->n_synced, 1);
        assert_int_equal(w->n_trouble, 0);
}

static void test_events_cut_anywhere(void **state) {
        struct world *w = *state;
        const char *text =
                "{\"type\":\"ADDED\",\"object\":" ITEM("a", "11", "n1") "}\n\n{\"type\":\"ADDED\",\"object\":" ITEM("b", "12", "n1") "}\n";
        begin_watching(w);
        for (size_t at = 0, n = strlen(text); at < n; at += 7) {
                _cleanup_(freep) char *piece = xstrndup(text + at, n - at < 7 ? n - at : 7);
                fake_chunk(w->watch, piece);
                run_for(&w->loop, 1);
        }
        wait_for_log(w, "+a@11 +b@12 ");
}

static void test_paging(void **state) {
        struct world *w = *state;
        w->pages[0] = PAGE("10", "next/one&", ITEM("a", "3", "n1"));
        w->pages[1] = PAGE("10", "two", ITEM("b", "3", "n1"));
        w->pages[2] = LIST("10", ITEM("c", "3", "n1"));
        begin_watching(w);
        assert_string_equal(buf_str(&w->log), "+a@3 +b@3 +c@3 ");
        assert_int_equal(w->n_lists, 3);
        assert_string_equal(w->list_path, "/api/v1/pods?limit=500&continue=two");
        assert_int_equal(w->n_synced, 1);
}

static void test_list_that_outlives_its_history_begins_again(void **state) {
        struct world *w = *state;
        w->n_list_failures = 1;
        w->list_failure = 410;
        w->pages[0] = LIST("20", ITEM("a", "3", "n1"));
        begin_watching(w);
        assert_string_equal(buf_str(&w->log), "+a@3 ");
        assert_int_equal(w->n_trouble, 0);
}

static bool count(void *u, const struct kube_object *o) {
        ++*(unsigned *)u;
        return true;
}

static bool count_one(void *u, const struct kube_object *o) {
        ++*(unsigned *)u;
        return false;
}

static unsigned count_at(struct world *w, unsigned index, const char *key) {
        unsigned n = 0;
        kube_informer_each_at(w->informer, index, key, count, &n);
        return n;
}

static void test_two_indexes(void **state) {
        struct world *w = *state;
        unsigned n = 0;
        w->pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n1") "," ITEM("c", "5", "n2"));
        begin_watching(w);
        assert_int_equal(count_at(w, 0, "n1"), 2);
        assert_int_equal(count_at(w, 0, "n2"), 1);
        assert_int_equal(count_at(w, 0, "n3"), 0);
        assert_string_equal(kube_informer_first_at(w->informer, 1, "uid-c")->meta.name, "c");
        assert_null(kube_informer_first_at(w->informer, 1, "uid-d"));
        kube_informer_each(w->informer, count_one, &n);
        assert_int_equal(n, 1);
        n = 0;
        kube_informer_each_at(w->informer, 0, "n1", count_one, &n);
        assert_int_equal(n, 1);

        event(w, "MODIFIED", "a", 11, "n2");
        event(w, "DELETED", "b", 12, "n1");
        wait_for_log(w, "+a@3 +b@4 +c@5 ~a@3>11 -b@4 ");
        assert_int_equal(count_at(w, 0, "n1"), 0);
        assert_int_equal(count_at(w, 0, "n2"), 2);
        assert_null(kube_informer_first_at(w->informer, 1, "uid-b"));
}

static void test_resume_from_the_last_version(void **state) {
        struct world *w = *state;
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 ");
        fake_close(w->watch);
        wait_for_watch(w, 2);
        assert_string_equal(w->watch_rv, "11");
        fake_chunk(w->watch, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"500\"}}}\n");
        run_for(&w->loop, 20);
        fake_close(w->watch);
        wait_for_watch(w, 3);
        assert_string_equal(w->watch_rv, "500");
        assert_int_equal(w->n_lists, 1);
        assert_string_equal(buf_str(&w->log), "+a@11 ");
}

static void test_watch_that_ends_in_order_is_resumed(void **state) {
        struct world *w = *state;
        begin_watching(w);
        run_for(&w->loop, 1050);
        fake_end(w->watch);
        w->watching = false;
        run_until(&w->loop, &w->watching);
        assert_int_equal(w->n_lists, 1);
}

static void test_watch_that_ends_at_once_backs_off(void **state) {
        struct world *w = *state;
        begin_watching(w);
        for (unsigned n = 2; n < 5; n++) {
                fake_end(w->watch);
                wait_for_watch(w, n);
        }
        assert_true(w->trouble);
        assert_int_equal(w->n_lists, 1);
}

static void test_history_gone_lists_again_and_reports_the_difference(void **state) {
        struct world *w = *state;
        w->pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n1") "," ITEM("c", "5", "n1"));
        w->pages[1] = LIST("30", ITEM("a", "3", "n1") "," ITEM("c", "25", "n9") "," ITEM("d", "28", "n1"));
        begin_watching(w);
        buf_clear(&w->log);
        fake_chunk(w->watch,
                   "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}}\n");
        wait_for_watch(w, 2);
        assert_string_equal(buf_str(&w->log), "~c@5>25 +d@28 -b@4 ");
        assert_string_equal(w->watch_rv, "30");
        assert_int_equal(w->n_synced, 1);
        assert_int_equal(count_at(w, 0, "n1"), 2);
}

static void test_410_as_the_answer_to_a_watch(void **state) {
        struct world *w = *state;
        w->n_watch_failures = 1;
        w->watch_failure = 410;
        begin_watching(w);
        assert_int_equal(w->n_lists, 2);
        assert_int_equal(w->n_trouble, 0);
}

static void test_server_gone_and_back(void **state) {
        struct world *w = *state;
        int port = fake_server_port(w->server);
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 ");
        fake_server_free(w->server);
        w->server = NULL;
        run_until(&w->loop, &w->trouble);
        assert_int_equal(w->err.kind, ERR_RETRY);
        assert_int_equal(kube_informer_count(w->informer), 1);
        w->server = fake_server_new(&w->loop, port, on_request, w);
        run_until(&w->loop, &w->well);
        event(w, "DELETED", "a", 12, "n1");
        wait_for_log(w, "+a@11 -a@11 ");
        assert_string_equal(w->watch_rv, "11");
        assert_int_equal(w->n_trouble, 2);
        assert_int_equal(w->n_lists, 1);
}

/* Each waits out a back-off of its own; the first that gets an answer wakes the others. */
static void test_all_come_back_together(void **state) {
        struct world *w = *state;
        struct kube_informer *more[7];
        struct kube_call *call;
        int port = fake_server_port(w->server);
        uint64_t first = 0, last = 0;

        begin_watching(w);
        w->o.changed = NULL;
        w->o.synced = NULL;
        w->o.trouble = NULL;
        for (size_t i = 0; i < ARRAY_LEN(more); i++)
                more[i] = kube_informer_new(w->client, &w->o);
        wait_for_watch(w, 8);
        fake_server_free(w->server);
        w->server = NULL;
        call = kube_start(
                w->client,
                &(struct kube_request){
                        .verb = KUBE_GET, .res = &kube_pods, .ns = "ns", .name = "a", .attempts = UINT32_MAX, .done = on_got, .u = w });
        assert_non_null(call);
        run_for(&w->loop, 3500);
        w->server = fake_server_new(&w->loop, port, on_request, w);
        w->n_watches = 0;
        for (int i = 0; i < 10000 && (w->n_watches < 8 || !w->got); i++) {
                run_for(&w->loop, 1);
                if (!first && fake_server_requests(w->server))
                        first = uv_hrtime();
                last = uv_hrtime();
        }
        assert_true(w->got && w->n_watches == 8);
        assert_in_range((last - first) / 1000000, 0, 150);
        for (size_t i = 0; i < ARRAY_LEN(more); i++)
                kube_informer_free(more[i]);
}

static void test_refusal_is_told_once_and_retried(void **state) {
        struct world *w = *state;
        w->n_list_failures = 3;
        w->list_failure = 403;
        begin(w);
        run_until(&w->loop, &w->trouble);
        assert_int_equal(w->err.kind, ERR_DENIED);
        assert_string_equal(w->err.msg, "no list");
        run_until(&w->loop, &w->watching);
        assert_int_equal(w->n_trouble, 2);
        assert_true(w->well && w->synced);
}

static void test_missing_kind_appears(void **state) {
        struct world *w = *state;
        w->n_list_failures = 2;
        w->list_failure = 404;
        begin(w);
        run_until(&w->loop, &w->trouble);
        assert_int_equal(w->err.kind, ERR_NOT_FOUND);
        run_until(&w->loop, &w->watching);
        assert_true(w->well);
}

static void test_429_on_watch_keeps_the_version(void **state) {
        struct world *w = *state;
        w->n_watch_failures = 2;
        w->watch_failure = 429;
        begin_watching(w);
        assert_int_equal(w->n_lists, 1);
        assert_int_equal(w->n_watches, 3);
        assert_string_equal(w->watch_rv, "10");
}

static void test_error_event_other_than_410(void **state) {
        struct world *w = *state;
        begin_watching(w);
        fake_chunk(w->watch, "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd event received with PrevKv=nil\"}}\n");
        wait_for_watch(w, 2);
        assert_int_equal(w->n_lists, 1);
}

static void test_garbage_in_the_stream_lists_again(void **state) {
        static const char *const garbage[] = { "<html>\n", "{\"type\":\"ADDED\"}\n", "{\"type\":\"SURPRISE\",\"object\":{}}\n", "[1]\n",
                                               "{\"type\":\"ADDED\",\"object\":[]}\n" };
        struct world *w = *state;
        begin_watching(w);
        for (unsigned i = 0; i < 2; i++) {
                fake_chunk(w->watch, garbage[i]);
                wait_for_watch(w, i + 2);
        }
        assert_int_equal(w->n_lists, 3);
}

static void test_silent_watch_begins_again(void **state) {
        struct world *w = *state;
        w->o.silence_ms = 150;
        begin_watching(w);
        run_for(&w->loop, 100);
        event(w, "ADDED", "a", 11, "n1");
        run_for(&w->loop, 100);
        assert_int_equal(w->n_watches, 1);
        wait_for_watch(w, 2);
        assert_string_equal(w->watch_rv, "11");
        assert_int_equal(fake_server_accepted(w->server), 2);
}

static void test_watch_without_an_answer_takes_another_connection(void **state) {
        struct world *w = *state;
        w->o.silence_ms = 100;
        w->hung = true;
        begin(w);
        run_until(&w->loop, &w->synced);
        wait_for_watch(w, 2);
        w->hung = false;
        run_until(&w->loop, &w->watching);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 ");
}

static void test_frozen_server(void **state) {
        struct world *w = *state;
        w->o.silence_ms = 100;
        begin_watching(w);
        fake_server_freeze(w->server);
        w->watching = false;
        run_until(&w->loop, &w->watching);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 ");
}

static void test_undecodable_object_is_skipped_and_told_once(void **state) {
        struct world *w = *state;
        const char *bad =
                "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"bad\",\"resourceVersion\":\"5\"},\"spec\":{\"weight\":\"heavy\"}}";
        _cleanup_(freep) char *list = xasprintf(LIST("10", "%s," ITEM("a", "3", "n1")), bad),
                              *again = xasprintf(LIST("30", "%s," ITEM("a", "3", "n1")), bad);
        w->pages[0] = list;
        w->pages[1] = again;
        begin_watching(w);
        assert_string_equal(buf_str(&w->log), "+a@3 ");
        assert_int_equal(w->n_undecodable, 1);
        assert_string_equal(w->err.msg, "ns/bad: spec.weight: not an integer");
        fake_chunk(w->watch, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n");
        wait_for_watch(w, 2);
        assert_int_equal(w->n_undecodable, 1);

        /* A new version is told again; the good version of an object stays when a bad one follows. */
        fake_chunk(w->watch, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"bad\",\"resourceVersion\":"
                             "\"31\"},\"spec\":{\"weight\":[]}}}\n");
        fake_chunk(w->watch, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"resourceVersion\":"
                             "\"32\"},\"spec\":[]}}\n");
        event(w, "MODIFIED", "bad", 33, "n1");
        wait_for_log(w, "+a@3 +bad@33 ");
        assert_int_equal(w->n_undecodable, 3);
        assert_string_equal(kube_informer_get(w->informer, "ns", "a")->meta.rv, "3");
}

static void test_object_without_a_name(void **state) {
        struct world *w = *state;
        begin_watching(w);
        fake_chunk(w->watch, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"11\"}}}\n");
        event(w, "ADDED", "a", 12, "n1");
        wait_for_log(w, "+a@12 ");
        assert_int_equal(w->n_undecodable, 1);
}

static bool keep_n1(void *u, const struct kube_object *o) {
        return streq(node_of(o), "n1");
}

static void test_keep(void **state) {
        struct world *w = *state;
        w->o.keep = keep_n1;
        w->pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n2"));
        begin_watching(w);
        event(w, "MODIFIED", "b", 11, "n1");
        event(w, "MODIFIED", "a", 12, "n2");
        event(w, "DELETED", "a", 13, "n2");
        event(w, "DELETED", "b", 14, "n1");
        wait_for_log(w, "+a@3 +b@11 -a@3 -b@11 ");
        assert_int_equal(kube_informer_count(w->informer), 0);
}

static void hold(struct world *w) {
        if (!w->held)
                w->held = kube_object_ref(kube_informer_get(w->informer, "ns", "a"));
}

static void test_objects_live_as_long_as_they_are_held(void **state) {
        struct world *w = *state;
        w->on_changed = hold;
        w->pages[0] = LIST("10", ITEM("a", "3", "n1"));
        begin_watching(w);
        event(w, "MODIFIED", "a", 11, "n2");
        event(w, "DELETED", "a", 12, "n2");
        wait_for_log(w, "+a@3 ~a@3>11 -a@11 ");
        assert_string_equal(w->held->meta.rv, "3");
        assert_string_equal(node_of(w->held), "n1");
}

/* ---- learning from answers ---- */

static void learn(struct world *w, const char *text) {
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        assert_non_null(doc);
        w->changed = false;
        kube_informer_learn(w->informer, yyjson_doc_get_root(doc));
        assert_false(w->changed);
        yyjson_doc_free(doc);
}

static void test_learn_is_seen_at_once_and_told_once(void **state) {
        struct world *w = *state;
        begin_watching(w);
        learn(w, ITEM("a", "11", "n1"));
        assert_non_null(kube_informer_get(w->informer, "ns", "a"));
        run_until(&w->loop, &w->changed);
        event(w, "ADDED", "a", 11, "n1"); /* the same again by the watch */
        event(w, "MODIFIED", "a", 12, "n2");
        wait_for_log(w, "+a@11 ~a@11>12 ");
        learn(w, ITEM("a", "11", "n1")); /* older than what is there */
        run_for(&w->loop, 20);
        assert_string_equal(buf_str(&w->log), "+a@11 ~a@11>12 ");
}

static void test_learned_object_outlives_a_late_list_item(void **state) {
        struct world *w = *state;
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 ");
        learn(w, ITEM("a", "15", "n2"));
        event(w, "MODIFIED", "a", 13, "n3"); /* on its way before our write */
        event(w, "MODIFIED", "a", 15, "n2");
        event(w, "MODIFIED", "a", 16, "n4");
        wait_for_log(w, "+a@11 ~a@11>15 ~a@15>16 ");
}

static void test_deleted_object_is_not_revived(void **state) {
        struct world *w = *state;
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        event(w, "DELETED", "a", 13, "n1");
        wait_for_log(w, "+a@11 -a@11 ");
        learn(w, ITEM("a", "12", "n1"));
        run_for(&w->loop, 20);
        assert_int_equal(kube_informer_count(w->informer), 0);
        assert_string_equal(buf_str(&w->log), "+a@11 -a@11 ");
}

static void test_learned_object_that_was_recreated_survives_the_old_deletion(void **state) {
        struct world *w = *state;
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 ");
        learn(w, ITEM("a", "15", "n2"));
        event(w, "DELETED", "a", 14, "n1");
        event(w, "ADDED", "a", 15, "n2");
        event(w, "ADDED", "b", 16, "n2");
        wait_for_log(w, "+a@11 ~a@11>15 +b@16 ");
}

static void test_learned_object_that_does_not_belong_goes(void **state) {
        struct world *w = *state;
        begin_watching(w);
        learn(w, ITEM("a", "11", "n1"));
        run_until(&w->loop, &w->changed);
        fake_chunk(w->watch, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"20\"}}}\n");
        wait_for_log(w, "+a@11 -a@11 ");
}

static void test_learn_ignores_what_is_no_object(void **state) {
        struct world *w = *state;
        begin_watching(w);
        kube_informer_learn(w->informer, NULL);
        learn(w, "{\"kind\":\"Status\",\"metadata\":{},\"status\":\"Success\"}");
        learn(w, "[]");
        run_for(&w->loop, 20);
        assert_int_equal(w->n_undecodable, 0);
}

static void learn_b(struct world *w) {
        if (!kube_informer_get(w->informer, "ns", "b")) {
                yyjson_doc *doc = yyjson_read(ITEM("b", "21", "n1"), strlen(ITEM("b", "21", "n1")), 0);
                kube_informer_learn(w->informer, yyjson_doc_get_root(doc));
                yyjson_doc_free(doc);
        }
}

static void test_learn_from_inside_changed(void **state) {
        struct world *w = *state;
        w->on_changed = learn_b;
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        wait_for_log(w, "+a@11 +b@21 ");
}

/* ---- ends ---- */

static void free_it(struct world *w) {
        kube_informer_free(w->informer);
        w->informer = NULL;
}

static void test_free_at_once(void **state) {
        struct world *w = *state;
        begin(w);
        free_it(w);
        run_for(&w->loop, 20);
        assert_int_equal(fake_server_requests(w->server), 0);
}

static void test_free_during_the_list(void **state) {
        struct world *w = *state;
        begin(w);
        while (!*w->list_path)
                uv_run(&w->loop, UV_RUN_ONCE);
        free_it(w);
        run_for(&w->loop, 20);
        assert_false(w->synced);
}

static void test_free_from_inside_changed_of_a_list(void **state) {
        struct world *w = *state;
        w->on_changed = free_it;
        w->pages[0] = LIST("10", ITEM("a", "3", "n1") "," ITEM("b", "4", "n2"));
        begin(w);
        run_until(&w->loop, &w->changed);
        run_for(&w->loop, 20);
        assert_string_equal(buf_str(&w->log), "+a@3 ");
}

static void test_free_from_inside_changed_of_a_watch(void **state) {
        struct world *w = *state;
        w->on_changed = free_it;
        begin_watching(w);
        fake_chunk(w->watch, "{\"type\":\"ADDED\",\"object\":" ITEM("a", "11", "n1") "}\n{\"type\":\"ADDED\",\"object\":" ITEM("b", "12",
                                                                                                                               "n1") "}\n");
        run_until(&w->loop, &w->changed);
        run_for(&w->loop, 20);
        assert_string_equal(buf_str(&w->log), "+a@11 ");
        assert_false(fake_is_open(w->watch));
}

static void test_free_from_inside_synced(void **state) {
        struct world *w = *state;
        w->on_synced = free_it;
        begin(w);
        run_until(&w->loop, &w->synced);
        run_for(&w->loop, 20);
        assert_int_equal(w->n_watches, 0);
}

static void free_all(struct world *w) {
        free_it(w);
        kube_client_free(w->client);
        w->client = NULL;
}

static void test_free_with_the_client_from_inside_changed(void **state) {
        struct world *w = *state;
        w->on_changed = free_all;
        begin_watching(w);
        event(w, "ADDED", "a", 11, "n1");
        run_until(&w->loop, &w->changed);
        run_for(&w->loop, 20);
}

static void test_free_during_back_off(void **state) {
        struct world *w = *state;
        w->n_list_failures = 100;
        w->list_failure = 403;
        begin(w);
        run_until(&w->loop, &w->trouble);
        free_it(w);
        run_for(&w->loop, 20);
}

static void test_version_is_discovered_first(void **state) {
        struct world *w = *state;
        w->o.res = &kube_resource_claims;
        w->answers_discovery = true;
        begin_watching(w);
        assert_string_equal(w->list_path, "/apis/resource.k8s.io/v1/resourceclaims?limit=500");
}

static void test_free_during_discovery(void **state) {
        struct world *w = *state;
        w->o.res = &kube_resource_claims;
        w->n_list_failures = 100;
        w->list_failure = 503;
        begin(w);
        run_for(&w->loop, 50);
        free_it(w);
        run_for(&w->loop, 20);
}

static void test_metadata_only(void **state) {
        struct world *w = *state;
        w->o.metadata_only = true;
        begin_watching(w);
        assert_true(fake_has(w->head, "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"));
}

static void test_many_objects(void **state) {
        struct world *w = *state;
        begin_watching(w);
        struct buf b = BUF_INIT(16 << 20);
        for (unsigned i = 0; i < 5000; i++)
                buf_addf(&b,
                         "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p%u\",\"uid\":\"u%u\","
                         "\"resourceVersion\":\"%u\"},"
                         "\"spec\":{\"nodeName\":\"n%u\"}}}\n",
                         i, i, 100 + i, i % 10);
        fake_chunk(w->watch, buf_str(&b));
        buf_done(&b);
        for (int i = 0; i < 2000 && kube_informer_count(w->informer) < 5000; i++)
                run_for(&w->loop, 2);
        assert_int_equal(kube_informer_count(w->informer), 5000);
        assert_int_equal(count_at(w, 0, "n3"), 500);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_list_then_watch),
                T(test_events_cut_anywhere),
                T(test_paging),
                T(test_list_that_outlives_its_history_begins_again),
                T(test_two_indexes),
                T(test_resume_from_the_last_version),
                T(test_watch_that_ends_in_order_is_resumed),
                T(test_watch_that_ends_at_once_backs_off),
                T(test_history_gone_lists_again_and_reports_the_difference),
                T(test_410_as_the_answer_to_a_watch),
                T(test_server_gone_and_back),
                T(test_all_come_back_together),
                T(test_refusal_is_told_once_and_retried),
                T(test_missing_kind_appears),
                T(test_429_on_watch_keeps_the_version),
                T(test_error_event_other_than_410),
                T(test_garbage_in_the_stream_lists_again),
                T(test_silent_watch_begins_again),
                T(test_watch_without_an_answer_takes_another_connection),
                T(test_frozen_server),
                T(test_undecodable_object_is_skipped_and_told_once),
                T(test_object_without_a_name),
                T(test_keep),
                T(test_objects_live_as_long_as_they_are_held),
                T(test_learn_is_seen_at_once_and_told_once),
                T(test_learned_object_outlives_a_late_list_item),
                T(test_deleted_object_is_not_revived),
                T(test_learned_object_that_was_recreated_survives_the_old_deletion),
                T(test_learned_object_that_does_not_belong_goes),
                T(test_learn_ignores_what_is_no_object),
                T(test_learn_from_inside_changed),
                T(test_free_at_once),
                T(test_free_during_the_list),
                T(test_free_from_inside_changed_of_a_list),
                T(test_free_from_inside_changed_of_a_watch),
                T(test_free_from_inside_synced),
                T(test_free_with_the_client_from_inside_changed),
                T(test_free_during_back_off),
                T(test_version_is_discovered_first),
                T(test_free_during_discovery),
                T(test_metadata_only),
                T(test_many_objects),
        };
        return cmocka_run_group_tests_name("kube_informer", tests, NULL, NULL);
}
