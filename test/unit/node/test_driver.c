/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that knows nothing of ComputeDomains, on the node half: its devices have a thing each, which is a
 * folder; what is defined here takes the place of the API client and of the kubelet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "node/claims.h"
#include "node/judge.h"
#include "tree.h"

#define BOOT "11111111-1111-4111-8111-111111111111"
#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED };
struct dra_op {
        enum answer answer;
        char text[200]; /* of the devices, or why not */
};

static struct {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root;
        struct metrics *registry;
        struct node_metrics metrics;
        struct claims *claims;
        unsigned gets, answered; /* claims that were read; news of prepared ones */
} w;

/* ---- the driver: toy-0 and toy-1, of one thing ---- */

static void encode(struct jw *j, const struct node_device *devices, size_t n, int dialect) {
        (void)dialect;
        jw_arr(j, NULL);
        for (size_t i = 0; i < n; i++)
                jw_str(j, NULL, devices[i].name);
        jw_end_arr(j);
}

static int decode(yyjson_val *entry, struct arena *a, struct node_device **ret, size_t *ret_n,
                  struct err *e) {
        static const char *requests[] = { "r", NULL }, *ids[] = { NULL };
        yyjson_val *list = yyjson_obj_get(entry, "preparedDevices"), *v;
        size_t i, max;
        (void)e;
        *ret = arena_alloc(a, (yyjson_arr_size(list) + 1) * sizeof **ret);
        *ret_n = 0;
        yyjson_arr_foreach (list, i, max, v)
                (*ret)[(*ret_n)++] = (struct node_device){ .name = arena_strdup(a, yyjson_get_str(v)),
                                                           .pool = "n0",
                                                           .requests = requests,
                                                           .cdi_ids = ids };
        return 0;
}

static void nothing(void *u, struct op *op) {
        (void)u;
        (void)op;
}

static void attach(void *u, struct claims *c) {
        (void)u;
        (void)c;
}

static void give_back(void *u) {
        assert_ptr_equal(u, &w);
}

static int take(void *u, const struct op *op, struct node_want *want, struct err *e) {
        (void)u;
        (void)op;
        return str_starts(want->result->device, "toy-") ? 0 : err_set(e, ERR_INVALID, 0, "that is no toy");
}

static int check(void *u, const struct op *op, struct err *e) {
        (void)u;
        (void)op;
        (void)e;
        return 0;
}

static void gather(void *u, struct op *op) {
        (void)u;
        op_fetched(op);
}

static enum verdict is_free(void *u, struct op *op, struct node_want *want) {
        (void)u;
        return judge_holder(op, want) ? judge_say(op, VERDICT_WAIT, "somebody plays with it") : VERDICT_GO;
}
static node_step_fn *const steps[] = { is_free, NULL };

static void waits(void *u, const struct op *op) {
        (void)u;
        (void)op;
}

static void waited_for(void *u, unsigned what) {
        (void)u;
        (void)what;
}

static int plan(void *u, const struct op *op, const struct node_want *want, struct arena *a,
                struct node_effect *ret, struct err *e) {
        (void)u;
        (void)op;
        (void)want;
        (void)a;
        (void)e;
        ret->thing = "box";
        return 0;
}

static void record(const struct node_want *want, struct node_device *ret) {
        (void)want;
        ret->type = "toy";
}

static int plan_claim(void *u, const struct op *op, struct arena *a, struct cdi_edits *ret, struct err *e) {
        (void)u;
        (void)op;
        (void)a;
        (void)ret;
        (void)e;
        return 0;
}

static const char *comment(const struct op *op, struct arena *a) {
        (void)op;
        (void)a;
        return "of toys";
}

static int set_up(const char *plugin_dir, const char *thing, bool again, struct err *e) {
        _cleanup_(freep) char *path = file_join(plugin_dir, thing);
        (void)again;
        return file_mkdirs(path, 0755, e);
}

static int undo(const char *plugin_dir, const char *thing, struct err *e) {
        _cleanup_(freep) char *path = file_join(plugin_dir, thing);
        return rmdir(path) < 0 ? err_set(e, ERR_INTERNAL, 0, "rmdir") : 0;
}

static void undo_failed(const char *thing, const struct err *e) {
        fail_msg("%s: %s", thing, e->msg);
}

static void each_thing(const struct checkpoint_claim *entry, node_thing_fn *fn, void *fn_u) {
        if (entry->n_devices)
                fn(fn_u, "box");
}

static void prepared(void *u, struct op *op) {
        (void)u;
        (void)op;
        w.answered++;
}

static void follow(void *u, const struct checkpoint *table) {
        (void)u;
        (void)table;
}

static size_t rebuild(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret) {
        (void)cdi_file;
        (void)uid;
        (void)a;
        (void)ret;
        return 0;
}

static bool may_go(void *u, const struct checkpoint_claim *entry) {
        (void)u;
        (void)entry;
        return true;
}

static const struct device_codec codec = { .driver = "toys.example.com", .encode = encode, .decode = decode };
static const struct node_driver toys = {
        .name = "toys.example.com",
        .cdi_kind = "k8s.toys.example.com/claim",
        .codec = &codec,
        .attach = attach,
        .free = give_back,
        .fetch = nothing,
        .release = nothing,
        .take = take,
        .check = check,
        .gather = gather,
        .steps = steps,
        .waits = waits,
        .waited_for = waited_for,
        .look_closer = nothing,
        .plan = plan,
        .plan_claim = plan_claim,
        .record = record,
        .comment = comment,
        .set_up = set_up,
        .undo = undo,
        .undo_failed = undo_failed,
        .each_thing = each_thing,
        .prepared = prepared,
        .follow = follow,
        .rebuild = rebuild,
        .may_go = may_go,
        .sweep = follow,
};

/* ---- the API server: claim "toy-N" has the device of that name ---- */

struct kube_call {
        struct loop_turn turn;
        char name[64];
        kube_done_fn *done;
        void *u;
};

static void on_turn(void *u) {
        struct kube_call *call = u;
        _cleanup_(freep) char *text = xasprintf(
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"user\",\"uid\":\"%s\","
                "\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                "{\"request\":\"r\",\"driver\":\"toys.example.com\",\"pool\":\"n0\",\"device\":\"%.5s\"},"
                "{\"request\":\"r\",\"driver\":\"other.example.com\",\"pool\":\"n0\",\"device\":\"x\"}]}}}}",
                call->name, streq(call->name, "toy-0") ? ONE : TWO, call->name);
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        w.gets++;
        call->done(call->u, yyjson_doc_get_root(doc), NULL);
        yyjson_doc_free(doc);
        kube_cancel(call);
}

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = xnew(struct kube_call);
        (void)c;
        snprintf(call->name, sizeof call->name, "%s", r->name);
        call->done = r->done;
        call->u = r->u;
        loop_turn_init(&call->turn, &w.loop, on_turn, call);
        loop_turn_start(&call->turn);
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call)
                return;
        loop_turn_done(&call->turn);
        free(call);
}

const char *kube_resource_api(const struct kube_client *c) {
        (void)c;
        return "v1";
}

void kube_discover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u) {
        (void)c;
        (void)fn;
        (void)u;
}

void kube_undiscover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u) {
        (void)c;
        (void)fn;
        (void)u;
}

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        (void)r;
        (void)about;
        (void)type;
        (void)fmt;
        fail_msg("an Event: %s", reason);
}

/* ---- the kubelet ---- */

void dra_op_set_data(struct dra_op *op, void *data) {
        (void)op;
        (void)data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        (void)op;
        return 0;
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        op->answer = PREPARED;
        assert_int_equal(n, 1);
        snprintf(op->text, sizeof op->text, "%s/%s/%s", devices[0].requests[0], devices[0].pool,
                 devices[0].device);
}

void dra_op_unprepared(struct dra_op *op) {
        op->answer = UNPREPARED;
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        op->answer = FAILED;
        snprintf(op->text, sizeof op->text, "%s", msg);
}

static void until(const struct dra_op *op, enum answer want) {
        while (op->answer == PENDING)
                uv_run(&w.loop, UV_RUN_ONCE);
        if (op->answer != want)
                print_message("%s\n", op->text);
        assert_int_equal(op->answer, want);
}

static void prepare(struct dra_op *op, const char *name, const char *uid) {
        *op = (struct dra_op){ 0 };
        claims_prepare(w.claims, op, &(struct dra_claim){ "user", name, uid });
}

static void unprepared(const char *name, const char *uid) {
        struct dra_op op = { 0 };
        claims_unprepare(w.claims, &op, &(struct dra_claim){ "user", name, uid });
        until(&op, UNPREPARED);
}

static bool there_is_the_box(void) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "box");
        return access(path, F_OK) == 0;
}

/* ---- the process ---- */

static void on_started(void *u, const struct err *e) {
        assert_null(e);
        *(bool *)u = true;
}

static void start(void) {
        const struct claims_options o = {
                .loop = &w.loop,
                .metrics = &w.metrics,
                .driver = &toys,
                .u = &w,
                .node = "n0",
                .plugin_dir = w.plugin_dir,
                .cdi_root = w.cdi_root,
                .boot_id = BOOT,
        };
        bool started = false;
        struct err e;
        assert_int_equal(claims_new(&o, &w.claims, &e), 0);
        claims_start(w.claims, on_started, &started);
        while (!started)
                uv_run(&w.loop, UV_RUN_ONCE);
}

static int setup(void **state) {
        static const char *const types[] = { "toy", NULL };
        static const struct node_metrics_options o = {
                .node = "n0",
                .driver = "toys.example.com",
                .types = types,
                .inside = "a",
                .pending = "b",
                .total = "c",
                .failures = "d",
        };
        struct err e;
        (void)state;
        memset(&w, 0, sizeof w);
        uv_loop_init(&w.loop);
        w.dir = tree_new();
        w.plugin_dir = file_join(w.dir, "plugin");
        w.cdi_root = file_join(w.dir, "cdi");
        assert_int_equal(file_mkdirs(w.plugin_dir, 0750, &e), 0);
        assert_int_equal(file_mkdirs(w.cdi_root, 0750, &e), 0);
        w.registry = metrics_new();
        node_metrics_init(&w.metrics, w.registry, &o);
        start();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        claims_free(w.claims);
        uv_run(&w.loop, UV_RUN_DEFAULT);
        metrics_free(w.registry);
        free(w.plugin_dir);
        free(w.cdi_root);
        tree_remove(w.dir);
        return uv_loop_close(&w.loop);
}

static void its_devices_are_prepared_and_unprepared(void **state) {
        struct dra_op op;
        (void)state;
        prepare(&op, "toy-0", ONE);
        until(&op, PREPARED);
        assert_string_equal(op.text, "r/n0/toy-0");
        assert_true(there_is_the_box());
        assert_int_equal(w.answered, 1);
        unprepared("toy-0", ONE);
        assert_false(there_is_the_box());
        assert_null(w.claims->journal.table.claims);
}

static void a_thing_of_two_claims_is_undone_with_the_last(void **state) {
        struct dra_op one, two;
        (void)state;
        prepare(&one, "toy-0", ONE);
        prepare(&two, "toy-1", TWO);
        until(&one, PREPARED);
        until(&two, PREPARED);
        unprepared("toy-0", ONE);
        assert_true(there_is_the_box());
        unprepared("toy-1", TWO);
        assert_false(there_is_the_box());
}

static void a_device_that_is_held_is_waited_for(void **state) {
        struct dra_op one, two;
        (void)state;
        prepare(&one, "toy-0", ONE);
        until(&one, PREPARED);
        prepare(&two, "toy-0 again", TWO);
        while (w.gets < 2 || TAILQ_FIRST(&w.claims->ops)->phase != OP_WAITING)
                uv_run(&w.loop, UV_RUN_ONCE);
        assert_int_equal(two.answer, PENDING);
        unprepared("toy-0", ONE);
        until(&two, PREPARED);
}

static void what_its_codec_recorded_is_answered_by_the_next_process(void **state) {
        struct dra_op op;
        (void)state;
        prepare(&op, "toy-1", TWO);
        until(&op, PREPARED);
        claims_free(w.claims);
        start();
        prepare(&op, "toy-1", TWO);
        until(&op, PREPARED);
        assert_string_equal(op.text, "r/n0/toy-1");
        assert_int_equal(w.gets, 1);
}

static void what_it_refuses_fails_at_once(void **state) {
        struct dra_op op;
        (void)state;
        prepare(&op, "no-toy", TWO);
        until(&op, FAILED);
        assert_string_equal(op.text, "that is no toy");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(its_devices_are_prepared_and_unprepared),
                T(a_thing_of_two_claims_is_undone_with_the_last),
                T(a_device_that_is_held_is_waited_for),
                T(what_its_codec_recorded_is_answered_by_the_next_process),
                T(what_it_refuses_fails_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
