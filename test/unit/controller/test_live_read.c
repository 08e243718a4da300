/* SPDX-License-Identifier: Apache-2.0 */
/* An object that the caches do not show counts as absent only after the API server has confirmed it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "world/fake_client.h"
#include "api/names.h"
#include "base/mem.h"
#include "controller/live_read.h"

#define UID(n) "5d6a2d5c-8f4e-4f0e-9f0a-00000000000" #n
#define DOMAIN(n)                                                                                            \
        "{\"metadata\":{\"namespace\":\"u\",\"name\":\"d\",\"uid\":\"" UID(n) "\",\"resourceVersion\":"      \
                                                                              "\"3\"}}"
#define RESERVED ",\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p\"}]"
#define CLAIM(n, node)                                                                                       \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"u\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"        \
        "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"channel\",\"driver\":"         \
        "\"compute-domain.nvidia.com\",\"pool\":\"" node "\",\"device\":\"channel-0\"}],\"config\":[{"       \
        "\"source\":\"FromClaim\",\"requests\":[],\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","     \
        "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":"                           \
        "\"ComputeDomainChannelConfig\",\"domainID\":\"" UID(n) "\"}}}]}}" RESERVED "}}"
#define BOOT_1 "bbbbbbbb-8f4e-4f0e-9f0a-000000000001"
#define BOOT_2 "bbbbbbbb-8f4e-4f0e-9f0a-000000000002"
#define NODE(name, boot_id, taints)                                                                          \
        "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" name "\",\"resourceVersion\":\"1\"},\"spec\":{"    \
        "\"taints\":[" taints "]},\"status\":{\"nodeInfo\":{\"bootID\":\"" boot_id "\"}}}"

enum { TOO_LARGE = (32 << 20) + 1 };

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct kube_client *client;
        struct work_queue *queue;
        struct live_read *confirm;
        const char *items, *more; /* items of the first and of a second page; NULL: no second page */
        bool refuses, holds;      /* holds: lists get no answer until release() */
        struct fake_conn *held;
        struct fake_request held_request;
        char held_path[1024];
        unsigned largest; /* pages with more objects than this are too large; 0: no limit */
        unsigned lists, cached, found;
        char path[1024], selector[256], fields[256];
        char queued[8][64];
        unsigned n_queued;
};

static void reply(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool first = !fake_query(r, "continue");
        const char *limit = fake_query(r, "limit");
        if (w->largest && (!limit || (unsigned)atoi(limit) > w->largest)) {
                _cleanup_(freep) char *large = xcalloc(1, TOO_LARGE + 1);
                memset(large, ' ', TOO_LARGE);
                fake_reply(c, 200, NULL, large);
                return;
        }
        _cleanup_(freep) char *list =
                xasprintf("{\"metadata\":{\"resourceVersion\":\"10\"%s},\"items\":[%s]}",
                          first && w->more ? ",\"continue\":\"next\"" : "", first ? w->items : w->more);
        fake_list(c, r,
                  fake_has(r->path, "claims")  ? "ResourceClaim"
                  : fake_has(r->path, "pods")  ? "Pod"
                  : fake_has(r->path, "nodes") ? "Node"
                                               : "ComputeDomain",
                  list);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        w->lists++;
        w->cached += fake_query(r, "resourceVersion") != NULL;
        snprintf(w->path, sizeof w->path, "%.*s", (int)strcspn(r->path, "?"), r->path);
        snprintf(w->selector, sizeof w->selector, "%s", str_or(fake_query(r, "labelSelector"), ""));
        snprintf(w->fields, sizeof w->fields, "%s", str_or(fake_query(r, "fieldSelector"), ""));
        if (w->refuses) {
                fake_refuse(c, 403, "not you");
        } else if (w->holds) {
                w->held = c;
                snprintf(w->held_path, sizeof w->held_path, "%s", r->path);
                w->held_request = (struct fake_request){
                        .method = "GET", .path = w->held_path, .body = "", .head = ""
                };
        } else {
                reply(w, c, r);
        }
}

static void on_key(void *u, const char *key) {
        struct world *w = u;
        snprintf(w->queued[w->n_queued++ % ARRAY_LEN(w->queued)], sizeof w->queued[0], "%s", key);
}

static void on_found(void *u, enum live_read_kind what, yyjson_val *object) {
        struct world *w = u;
        assert_true(yyjson_is_obj(object));
        w->found++;
}

static void begin_with(struct world *w, unsigned valid_ms, unsigned pause_ms) {
        live_read_free(w->confirm);
        w->confirm = live_read_new(&(struct live_read_options){ .client = w->client,
                                                                .queue = w->queue,
                                                                .found = on_found,
                                                                .u = w,
                                                                .valid_ms = valid_ms,
                                                                .pause_ms = pause_ms });
}

static void begin(struct world *w, unsigned valid_ms) {
        begin_with(w, valid_ms, 1);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        uv_loop_init(&w->loop);
        w->items = "";
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        w->client = fake_client_new(&w->loop, w->server, 0, 0);
        w->queue = work_queue_new(&w->loop, 1, 1, on_key, w);
        begin(w, 3600000);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        live_read_free(w->confirm);
        work_queue_free(w->queue);
        kube_client_free(w->client);
        fake_server_free(w->server);
        loop_end(&w->loop);
        free(w);
        return 0;
}

static bool domain_absent(struct world *w, const char *uid, const char *requester) {
        return live_read_absent(w->confirm, LIVE_READ_DOMAIN, NULL, uid, requester);
}

static bool claim_absent(struct world *w, const char *uid, const char *node) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        live_read_on_node(uid, node, &key);
        return live_read_absent(w->confirm, LIVE_READ_CLAIM, "u", buf_str(&key), node);
}

/* ---- answers ---- */

/* failure: a cache does not show an object -> only a list from the API server confirms its absence */
static void only_a_list_of_the_server_confirms_absence(void **state) {
        struct world *w = *state;
        w->items = DOMAIN(2);
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_false(domain_absent(w, UID(1), "d/1")); /* the question alone confirms nothing */
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        assert_string_equal(w->queued[0], "d/1");
        assert_true(domain_absent(w, UID(1), "d/1"));
        assert_true(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        /* The other object was not in question, so it is neither confirmed nor given to on_found(). */
        assert_false(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(2)));
        assert_int_equal(w->found, 0);
        assert_int_equal(w->lists, 1);
        assert_string_equal(w->path, "/apis/resource.nvidia.com/v1beta1/computedomains");
}

/* The API server's own cache may lag behind etcd. */
/* failure: the API server's own cache lags -> confirmations are read from etcd */
static void a_confirmation_is_read_from_etcd(void **state) {
        struct world *w = *state;
        domain_absent(w, UID(1), "d/1");
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        assert_int_equal(w->cached, 0);
}

/* failure: a list shows an object that the cache lacks -> it exists, and the cache learns it */
static void an_object_that_the_server_shows_exists_and_is_learned(void **state) {
        struct world *w = *state;
        begin(w, 1);
        w->items = DOMAIN(1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->found == 1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_false(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        RUN_UNTIL(&w->loop, w->n_queued); /* the requester has its next turn when the caches are current */
}

/* failure: a list has several pages -> absence is confirmed only after the last page */
static void an_object_on_the_second_page_exists(void **state) {
        struct world *w = *state;
        w->items = DOMAIN(2);
        w->more = DOMAIN(1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_false(domain_absent(w, UID(3), "d/3"));
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        assert_string_equal(w->queued[0], "d/3");
        assert_true(w->found >= 1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_true(domain_absent(w, UID(3), "d/3"));
        assert_int_equal(w->lists, 2 * 2); /* the second question came after the first list had begun */
}

/* failure: a claim of another node is in the list -> it does not count for this node */
static void claims_are_confirmed_by_domain_and_node(void **state) {
        struct world *w = *state;
        w->items = CLAIM(1, "n1") "," CLAIM(2, "n2");
        assert_false(claim_absent(w, UID(1), "n1"));
        assert_false(claim_absent(w, UID(1), "n2"));
        assert_false(claim_absent(w, UID(2), "n1"));
        RUN_UNTIL(&w->loop, w->n_queued == 2);
        assert_false(claim_absent(w, UID(1), "n1"));
        assert_true(claim_absent(w, UID(1), "n2"));
        assert_true(claim_absent(w, UID(2), "n1"));
        assert_int_equal(w->lists, 2);
        assert_true(w->found >= 1);
        assert_string_equal(w->path, "/apis/resource.k8s.io/v1/namespaces/u/resourceclaims");
}

/* failure: a shared claim is allocated, and its allocation names no node -> it counts for every node */
static void a_shared_claim_counts_for_every_node(void **state) {
        struct world *w = *state;
        w->items = CLAIM(1, CD_POOL_SHARED);
        assert_false(claim_absent(w, UID(1), "n1"));
        assert_false(claim_absent(w, UID(1), "n2"));
        assert_false(claim_absent(w, UID(1), ""));
        assert_false(claim_absent(w, UID(2), "n1"));
        RUN_UNTIL(&w->loop, w->n_queued >= 1 && w->found >= 3);
        assert_false(claim_absent(w, UID(1), "n1"));
        assert_false(claim_absent(w, UID(1), "n2"));
        assert_false(claim_absent(w, UID(1), ""));
        assert_true(claim_absent(w, UID(2), "n1"));
}

static bool node_absent(struct world *w, const char *node, const char *boot_id, const char *tag) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        live_read_node(node, boot_id, tag, &key);
        return live_read_absent(w->confirm, LIVE_READ_NODE, NULL, buf_str(&key), tag);
}

/* failure: a Node is in another boot -> the boot before is confirmed as ended [rebooted] */
static void a_node_is_confirmed_by_its_name_and_its_boot(void **state) {
        struct world *w = *state;
        w->items = NODE("n1", BOOT_2, "");
        assert_false(node_absent(w, "n1", BOOT_1, "5"));
        assert_false(node_absent(w, "n1", BOOT_2, "5"));
        RUN_UNTIL(&w->loop, w->n_queued && w->found);
        assert_true(node_absent(w, "n1", BOOT_1, "5")); /* it is in another boot */
        assert_false(node_absent(w, "n1", BOOT_2, "5"));
        assert_string_equal(w->path, "/api/v1/nodes");
        assert_string_equal(w->fields, "metadata.name=n1");
        assert_string_equal(w->selector, "");
        w->items = "";
        assert_false(node_absent(w, "n2", BOOT_1, "5"));
        RUN_UNTIL(&w->loop, streq(w->fields, "metadata.name=n2") && w->n_queued >= 2);
        assert_true(node_absent(w, "n2", BOOT_1, "5"));
        assert_int_equal(w->cached, 0);
}

/* failure: a powered-off node has the out-of-service taint -> it counts as absent [powered-off] */
static void a_powered_off_node_with_the_out_of_service_taint_counts_as_absent(void **state) {
        struct world *w = *state;
        w->items = NODE("n1", BOOT_1, "");
        assert_false(node_absent(w, "n1", NULL, "5"));
        RUN_UNTIL(&w->loop, w->found);
        assert_false(node_absent(w, "n1", NULL, "5"));
        begin(w, 3600000);
        w->items = NODE("n1", BOOT_1,
                        "{\"key\":\"node.kubernetes.io/out-of-service\",\"effect\":\"NoExecute\"}");
        assert_false(node_absent(w, "n1", NULL, "5"));
        RUN_UNTIL(&w->loop, w->n_queued);
        assert_true(node_absent(w, "n1", NULL, "5"));
        /* The Node is still in the same boot. */
        assert_false(node_absent(w, "n1", BOOT_1, "5"));
        RUN_UNTIL(&w->loop, w->found >= 2);
        assert_false(node_absent(w, "n1", BOOT_1, "5"));
}

/* failure: a confirmation about a node is old -> it does not count for a later case */
static void a_confirmation_about_a_node_counts_for_one_case_only(void **state) {
        struct world *w = *state;
        assert_false(node_absent(w, "n1", NULL, "5"));
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        assert_true(node_absent(w, "n1", NULL, "5"));
        assert_false(node_absent(w, "n1", NULL, "6"));
        assert_false(node_absent(w, "n1", BOOT_1, "5"));
        RUN_UNTIL(&w->loop, w->n_queued == 3);
        assert_true(node_absent(w, "n1", NULL, "6"));
        assert_true(node_absent(w, "n1", BOOT_1, "5"));
}

/* failure: a page is too large -> the controller halves the page size */
static void a_page_that_is_too_large_is_requested_in_halves(void **state) {
        struct world *w = *state;
        w->items = CLAIM(1, "n1");
        w->more = CLAIM(2, "n2");
        w->largest = 125;
        assert_false(claim_absent(w, UID(1), "n2"));
        RUN_UNTIL(&w->loop, w->n_queued);
        assert_true(claim_absent(w, UID(1), "n2"));
        assert_int_equal(w->lists, 4); /* pages of 500, 250, 125 and 125 */
        assert_false(claim_absent(w, UID(2), "n2"));
        RUN_UNTIL(&w->loop, w->found);
        assert_int_equal(w->lists, 6); /* the page size stays at 125 */
}

/* ---- which question a list answers ---- */

static void release(struct world *w) {
        w->holds = false;
        reply(w, TAKE(w->held), &w->held_request);
}

/* A list that began before the question does not show later objects. */
/* failure: a question arrives while a list is under way -> it waits for the next list */
static void a_list_under_way_does_not_answer_a_later_question(void **state) {
        struct world *w = *state;
        w->holds = true;
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->held);
        assert_false(domain_absent(w, UID(2), "d/2"));
        release(w);
        w->holds = true;
        RUN_UNTIL(&w->loop, w->held);
        assert_int_equal(w->n_queued, 1);
        assert_string_equal(w->queued[0], "d/1");
        assert_true(domain_absent(w, UID(1), "d/1"));
        assert_false(domain_absent(w, UID(2), "d/2"));
        release(w);
        RUN_UNTIL(&w->loop, w->n_queued == 2);
        assert_true(domain_absent(w, UID(2), "d/2"));
        assert_int_equal(w->lists, 2);
}

/* The first question is sent at once. All questions that arrive until its answer share the next list. */
static void questions_share_a_list(void **state) {
        struct world *w = *state;
        w->holds = true;
        for (unsigned i = 0; i < 100; i++) {
                char uid[16], key[16];
                snprintf(uid, sizeof uid, "uid-%u", i % 50);
                snprintf(key, sizeof key, "d/%u", i);
                assert_false(domain_absent(w, uid, key));
        }
        RUN_UNTIL(&w->loop, w->held);
        release(w);
        RUN_UNTIL(&w->loop, w->n_queued == 100); /* all requesters */
        for (unsigned i = 0; i < 50; i++) {
                char uid[16];
                snprintf(uid, sizeof uid, "uid-%u", i);
                assert_true(domain_absent(w, uid, "d/x"));
        }
        assert_int_equal(w->lists, 2);
}

/* failure: writes of a tenant cause a new question all the time -> the API server lists once a second
 * [tenants] */
static void lists_of_the_same_objects_have_a_pause(void **state) {
        struct world *w = *state;
        begin_with(w, 100, 1000);
        for (unsigned i = 0; i < 300; i++) {
                char uid[16];
                snprintf(uid, sizeof uid, "uid-%u", i);
                assert_false(domain_absent(w, uid, uid));
                run_for(&w->loop, 10);
        }
        assert_in_range(w->lists, 3, 4);
        assert_false(claim_absent(w, UID(1), "n1")); /* other objects do not wait */
        RUN_UNTIL(&w->loop, w->lists == 5 || w->lists == 6);
        run_for(&w->loop, 1100);
        assert_int_equal(w->n_queued, 300 + 1); /* each question is answered, although some waited long */
}

/* failure: a list takes the API server long -> the next list waits four times as long */
static void the_pause_after_a_slow_list_is_longer(void **state) {
        struct world *w = *state;
        begin_with(w, 3600000, 1000);
        w->holds = true;
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->held);
        run_for(&w->loop, 5000);
        release(w);
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        assert_false(domain_absent(w, UID(2), "d/2"));
        run_for(&w->loop, 20000);
        assert_int_equal(w->lists, 1);
        run_for(&w->loop, 1500);
        assert_int_equal(w->lists, 2);
        assert_true(domain_absent(w, UID(2), "d/2"));
}

/* ---- failures ---- */

/* failure: the API server refuses a list -> nothing is confirmed, and it is retried */
static void a_refused_list_confirms_nothing(void **state) {
        struct world *w = *state;
        w->refuses = true;
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->n_queued == 1); /* to ask again */
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->lists == 2 && w->n_queued == 2);
        assert_false(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        w->refuses = false;
        w->items = DOMAIN(1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->found == 1);
        assert_false(domain_absent(w, UID(1), "d/1"));
}

/* The unreadable object may be the one in question. */
/* failure: a listed object cannot be read -> absence is not confirmed */
static void an_unreadable_object_confirms_nothing(void **state) {
        struct world *w = *state;
        w->items = "{\"metadata\":{\"name\":\"odd\",\"namespace\":\"u\",\"uid\":\"u\",\"resourceVersion\":"
                   "\"1\"},"
                   "\"status\":{\"allocation\":\"odd\"}}";
        assert_false(claim_absent(w, UID(1), "n1"));
        RUN_UNTIL(&w->loop, w->n_queued == 1); /* to ask again */
        assert_false(claim_absent(w, UID(1), "n1"));
        w->items = CLAIM(2, "n1");
        RUN_UNTIL(&w->loop, w->lists == 2 && w->n_queued == 2);
        assert_true(claim_absent(w, UID(1), "n1"));
        w->n_queued = 0;
        w->items = "{\"metadata\":{\"name\":\"odd\"}}";
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        assert_false(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
}

/* failure: a confirmation is old -> it is requested again */
static void a_confirmation_expires(void **state) {
        struct world *w = *state;
        begin(w, 1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        run_for(&w->loop, 20);
        assert_false(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        w->items = DOMAIN(1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->found == 1);
        assert_int_equal(w->lists, 2);
}

/* failure: a claim ends just after the API server has shown it -> its node leaves within a second */
static void an_object_that_existed_is_requested_again_after_a_tenth_of_the_time(void **state) {
        struct world *w = *state;
        begin(w, 1000);
        w->items = DOMAIN(1);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->found == 1);
        w->items = "";
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_int_equal(w->lists, 1);
        run_for(&w->loop, 150);
        assert_true(w->n_queued > 0);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        assert_int_equal(w->lists, 2);
}

/* failure: a requester asks as long as an object exists -> the API server lists it at most every ten seconds
 */
static void an_object_that_stays_is_listed_rarely(void **state) {
        struct world *w = *state;
        begin(w, 1000);
        w->items = DOMAIN(1);
        for (unsigned ms = 0; ms < 2000; ms += 10) {
                assert_false(domain_absent(w, UID(1), "d/1"));
                run_for(&w->loop, 10);
        }
        assert_in_range(w->lists, 3, 4); /* at 0, 100 and 1100 ms */
}

/* The second list ends after the first answer has expired. */
static void asked_one_after_the_other(struct world *w) {
        begin(w, 1000);
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        run_for(&w->loop, 500);
        w->holds = true;
        assert_true(domain_absent(w, UID(1), "d/1"));
        assert_false(domain_absent(w, UID(2), "d/1"));
        RUN_UNTIL(&w->loop, w->held);
        run_for(&w->loop, 700);
        assert_false(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
}

/* failure: lists take longer than an answer is valid -> a requester still gets two answers at one time
 * [api-server] */
static void answers_in_use_are_renewed_by_each_list(void **state) {
        struct world *w = *state;
        asked_one_after_the_other(w);
        release(w);
        RUN_UNTIL(&w->loop, live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(2)));
        assert_true(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        RUN_UNTIL(&w->loop, !live_read_count(w->confirm));
        assert_int_equal(w->lists, 2);
}

static void an_absent_object_that_a_later_list_shows_exists(void **state) {
        struct world *w = *state;
        asked_one_after_the_other(w);
        w->items = DOMAIN(1);
        release(w);
        RUN_UNTIL(&w->loop, live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(2)));
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_int_equal(w->found, 1);
}

/* ---- memory ---- */

/* failure: thousands of ComputeDomains come and go -> expired confirmations are dropped from memory */
static void expired_confirmations_are_dropped(void **state) {
        struct world *w = *state;
        begin(w, 1);
        w->items = DOMAIN(1);
        for (unsigned i = 0; i < 50; i++) {
                char ns[16];
                snprintf(ns, sizeof ns, "ns-%u", i);
                assert_false(live_read_absent(w->confirm, LIVE_READ_CLAIM, ns, "uid/n1", "d/x"));
        }
        assert_false(domain_absent(w, UID(1), "d/1"));
        assert_false(domain_absent(w, UID(2), "d/2"));
        assert_int_equal(live_read_count(w->confirm), 50 * 2 + 2 + 1);
        RUN_UNTIL(&w->loop, !live_read_count(w->confirm));
        assert_int_equal(w->lists, 50 + 2);
        assert_true(w->found >= 1);
        /* A later question needs a new list. */
        w->items = "";
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->lists == 50 + 3);
}

/* failure: a confirmation is still valid -> it is kept */
static void a_confirmation_is_kept_until_it_expires(void **state) {
        struct world *w = *state;
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->n_queued == 1);
        run_for(&w->loop, 20);
        assert_true(live_read_known(w->confirm, LIVE_READ_DOMAIN, NULL, UID(1)));
        assert_int_equal(live_read_count(w->confirm), 2);
}

/* failure: a confirmation is pending -> it is kept until its list is answered */
static void a_question_that_waits_for_its_list_is_kept(void **state) {
        struct world *w = *state;
        begin(w, 1);
        w->holds = true;
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->held);
        assert_false(domain_absent(w, UID(2), "d/2"));
        run_for(&w->loop, 20);
        assert_int_equal(live_read_count(w->confirm), 3);
        release(w);
        RUN_UNTIL(&w->loop, w->n_queued == 2);
        RUN_UNTIL(&w->loop, !live_read_count(w->confirm));
}

/* failure: a failed confirmation is not requested again -> it is dropped */
static void a_failed_question_that_is_not_repeated_is_dropped(void **state) {
        struct world *w = *state;
        begin(w, 1);
        w->refuses = true;
        assert_false(domain_absent(w, UID(1), "d/1"));
        RUN_UNTIL(&w->loop, w->lists);
        RUN_UNTIL(&w->loop, !live_read_count(w->confirm));
        RUN_UNTIL(&w->loop, w->n_queued == 1);
}

static void it_can_be_freed_while_a_list_is_in_flight(void **state) {
        struct world *w = *state;
        w->holds = true;
        domain_absent(w, UID(1), "d/1");
        claim_absent(w, UID(1), "n1");
        RUN_UNTIL(&w->loop, w->lists == 2);
        live_read_free(TAKE(w->confirm));
        release(w);
        run_for(&w->loop, 20);
        assert_int_equal(w->n_queued, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(only_a_list_of_the_server_confirms_absence),
                T(a_confirmation_is_read_from_etcd),
                T(an_object_that_the_server_shows_exists_and_is_learned),
                T(an_object_on_the_second_page_exists),
                T(claims_are_confirmed_by_domain_and_node),
                T(a_shared_claim_counts_for_every_node),
                T(a_node_is_confirmed_by_its_name_and_its_boot),
                T(a_powered_off_node_with_the_out_of_service_taint_counts_as_absent),
                T(a_confirmation_about_a_node_counts_for_one_case_only),
                T(a_page_that_is_too_large_is_requested_in_halves),
                T(a_list_under_way_does_not_answer_a_later_question),
                T(questions_share_a_list),
                T(lists_of_the_same_objects_have_a_pause),
                T(the_pause_after_a_slow_list_is_longer),
                T(a_refused_list_confirms_nothing),
                T(an_unreadable_object_confirms_nothing),
                T(a_confirmation_expires),
                T(an_object_that_existed_is_requested_again_after_a_tenth_of_the_time),
                T(an_object_that_stays_is_listed_rarely),
                T(answers_in_use_are_renewed_by_each_list),
                T(an_absent_object_that_a_later_list_shows_exists),
                T(expired_confirmations_are_dropped),
                T(a_confirmation_is_kept_until_it_expires),
                T(a_question_that_waits_for_its_list_is_kept),
                T(a_failed_question_that_is_not_repeated_is_dropped),
                T(it_can_be_freed_while_a_list_is_in_flight),
        };
        return cmocka_run_group_tests_name("confirm", tests, NULL, NULL);
}
