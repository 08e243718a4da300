/* SPDX-License-Identifier: Apache-2.0 */
/* A driver without ComputeDomains on top of src/node: each of its devices has a thing, which is a folder. */
#include "world/node.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "faults.h"
#include "node/prepare_verdict.h"
#include "node/waits.h"

static unsigned n_answered; /* calls of prepared() */

/* ---- the driver: toy-0 and toy-1, each with one thing ---- */

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

static void attach(void *u, struct claims *c) {
        (void)u;
        (void)c;
}

static void give_back(void *u) {
        assert_null(u);
}

static int take(void *u, const struct op *op, struct node_request *want, struct err *e) {
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

static enum verdict is_free(void *u, struct op *op, struct node_request *want) {
        (void)u;
        return prepare_verdict_holder(op, want)
                       ? prepare_verdict_set(op, VERDICT_WAIT, "another child plays with it")
                       : VERDICT_GO;
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

static int plan(void *u, const struct op *op, const struct node_request *want, struct arena *a,
                struct node_effect *ret, struct err *e) {
        (void)u;
        (void)op;
        (void)want;
        (void)a;
        (void)e;
        ret->resource = "box";
        return 0;
}

static void record(const struct node_request *want, struct node_device *ret) {
        (void)want;
        ret->type = "toy";
}

static const char *comment(const struct op *op, struct arena *a) {
        (void)op;
        (void)a;
        return "of toys";
}

static int set_up(const char *plugin_dir, const char *resource, bool again, struct err *e) {
        _cleanup_(freep) char *path = file_join(plugin_dir, resource);
        (void)again;
        return file_mkdirs(path, 0755, e);
}

static int undo(const char *plugin_dir, const char *resource, struct err *e) {
        _cleanup_(freep) char *path = file_join(plugin_dir, resource);
        return rmdir(path) < 0 ? err_set(e, ERR_INTERNAL, 0, "rmdir") : 0;
}

static void undo_failed(const char *resource, const struct err *e) {
        fail_msg("%s: %s", resource, e->msg);
}

static void each_resource(const struct checkpoint_claim *entry, node_resource_fn *fn, void *fn_u) {
        if (entry->n_devices)
                fn(fn_u, "box");
}

static void prepared(void *u, struct op *op) {
        (void)u;
        (void)op;
        n_answered++;
}

static void follow(void *u, const struct checkpoint *table) {
        (void)u;
        (void)table;
}

static bool in_use;

static int unprepare(void *u, const struct checkpoint_claim *entry, struct err *e) {
        (void)u;
        assert_int_equal(entry->state, CHECKPOINT_COMPLETED);
        return in_use ? err_set(e, ERR_RETRY, 0, "a child plays with it") : 0;
}

static size_t rebuild(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret) {
        (void)cdi_file;
        (void)uid;
        (void)a;
        (void)ret;
        return 0;
}

static bool may_collect(void *u, const struct checkpoint_claim *entry) {
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
        .take = take,
        .check = check,
        .await_inputs = gather,
        .steps = steps,
        .waits = waits,
        .waited_for = waited_for,
        .plan = plan,
        .record = record,
        .comment = comment,
        .set_up = set_up,
        .undo = undo,
        .undo_failed = undo_failed,
        .each_resource = each_resource,
        .unprepare = unprepare,
        .prepared = prepared,
        .follow = follow,
        .rebuild = rebuild,
        .may_collect = may_collect,
        .remove_unused = follow,
};

/* Claim "toy-N" has the device of that name. */
static char *claim(const char *name, const char **ret_uid) {
        *ret_uid = streq(name, "toy-0") ? ONE : TWO;
        return xasprintf(
                "{\"results\":["
                "{\"request\":\"r\",\"driver\":\"toys.example.com\",\"pool\":\"n0\",\"device\":\"%.5s\"},"
                "{\"request\":\"r\",\"driver\":\"other.example.com\",\"pool\":\"n0\",\"device\":\"x\"}]}",
                name);
}

static bool there_is_the_box(void) {
        _cleanup_(freep) char *path = file_join(node.plugin_dir, "box");
        return access(path, F_OK) == 0;
}

static int setup(void **state) {
        static const char *const types[] = { "toy", NULL };
        (void)state;
        n_answered = 0;
        in_use = false;
        node_begin("toys.example.com", types, claim);
        node_start(&toys, NULL);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        assert_string_equal(api.events, "");
        return node_end();
}

static void its_devices_are_prepared_and_unprepared(void **state) {
        struct dra_op op;
        (void)state;
        prepare_claim(&op, "toy-0");
        until(&op, PREPARED);
        assert_string_equal(op.devices, "r/n0/toy-0=");
        assert_true(there_is_the_box());
        assert_int_equal(n_answered, 1);
        unprepared_claim("toy-0");
        assert_false(there_is_the_box());
        assert_null(node.claims->journal.table.claims);
}

static void a_claim_that_its_driver_keeps_is_not_unprepared(void **state) {
        struct dra_op op;
        (void)state;
        prepare_claim(&op, "toy-0");
        until(&op, PREPARED);
        in_use = true;
        unprepare_claim(&op, "toy-0");
        until(&op, FAILED);
        assert_string_equal(op.msg, "a child plays with it");
        assert_true(there_is_the_box());
        assert_int_equal(checkpoint_find(&node.claims->journal.table, ONE)->state, CHECKPOINT_COMPLETED);
        in_use = false;
        unprepared_claim("toy-0");
        assert_false(there_is_the_box());
}

static void a_thing_of_two_claims_is_undone_with_the_last(void **state) {
        struct dra_op one, two;
        (void)state;
        prepare_claim(&one, "toy-0");
        prepare_claim(&two, "toy-1");
        until(&one, PREPARED);
        until(&two, PREPARED);
        unprepared_claim("toy-0");
        assert_true(there_is_the_box());
        unprepared_claim("toy-1");
        assert_false(there_is_the_box());
}

static void a_claim_waits_for_a_held_device(void **state) {
        struct dra_op one, two;
        (void)state;
        prepare_claim(&one, "toy-0");
        until(&one, PREPARED);
        prepare_claim(&two, "toy-0 again");
        waiting();
        assert_int_equal(two.answer, PENDING);
        unprepared_claim("toy-0");
        until(&two, PREPARED);
}

static void the_next_process_answers_with_the_recorded_devices(void **state) {
        struct dra_op op;
        (void)state;
        prepare_claim(&op, "toy-1");
        until(&op, PREPARED);
        claims_free(node.claims);
        node_start(&toys, NULL);
        prepare_claim(&op, "toy-1");
        until(&op, PREPARED);
        assert_string_equal(op.devices, "r/n0/toy-1=");
        assert_int_equal(api.requests, 1);
}

static void a_refused_claim_fails_at_once(void **state) {
        struct dra_op op;
        (void)state;
        prepare_claim(&op, "no-toy");
        until(&op, FAILED);
        assert_string_equal(op.msg, "that is no toy");
}

/* ---- two Prepares of one claim ---- */

static struct node_driver with_files; /* the same driver with edits for each device */

static int plan_env(void *u, const struct op *op, const struct node_request *want, struct arena *a,
                    struct node_effect *ret, struct err *e) {
        static const char *const env[] = { "TOY=1", NULL };
        ret->edits.env = env;
        return plan(u, op, want, a, ret, e);
}

static int setup_with_files(void **state) {
        static const char *const types[] = { "toy", NULL };
        with_files = toys;
        with_files.plan = plan_env;
        node_begin("toys.example.com", types, claim);
        node_start(&with_files, NULL);
        return 0;
}

static void check_answer(const struct dra_op *op, const char *call, unsigned n) {
        if (op->answer == PREPARED && !str_starts(op->devices, "r/n0/toy-0"))
                fail_msg("call %u of %s failed, and the kubelet got the devices '%s'", n, call, op->devices);
        assert_true(op->answer == PREPARED || (op->answer == FAILED && *op->msg));
}

/* Pods share a claim, and their Prepares are in one batch. Whatever fails, each gets its devices or an error,
 * and the devices only with a record that stays. */
/* failure: two Prepares of one claim meet and one fails -> each gets an error or a durable answer */
static void two_prepares_of_one_claim_are_answered_by_a_durable_entry(void **state) {
        static const char *const calls[] = { "mkdir",   "open64", "write",   "fsync",  "rename",
                                             "fstat64", "stat64", "lstat64", "fchmod", "unlink" };
        unsigned failures = 0;
        for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
                for (unsigned n = 1;; n++) {
                        struct dra_op one, two;
                        faults_at(calls[i], n);
                        prepare_claim(&one, "toy-0");
                        prepare_claim(&two, "toy-0");
                        while (one.answer == PENDING || two.answer == PENDING)
                                node_turn();
                        bool hit = faults_off();
                        check_answer(&one, calls[i], n);
                        check_answer(&two, calls[i], n);
                        const struct checkpoint_claim *entry =
                                checkpoint_find(&node.claims->journal.table, ONE);
                        if (one.answer == PREPARED || two.answer == PREPARED) {
                                assert_int_equal(entry->state, CHECKPOINT_COMPLETED);
                                assert_int_equal(entry->n_devices, 1);
                        }
                        prepared_claim("toy-0");
                        unprepared_claim("toy-0");
                        *api.events = '\0'; /* an unreadable checkpoint is reported */
                        if (!hit)
                                break;
                        failures++;
                }
        }
        assert_in_range(failures, 15, 200);
}

/* ---- what arrives late ---- */

/* failure: the claim is read after its Prepare was superseded -> the Prepare still fails */
static void a_superseded_prepare_stays_superseded(void **state) {
        struct dra_op one, un;
        api.hold = true;
        prepare_claim(&one, "toy-0");
        faults_hold("unlink"); /* of the CDI file */
        unprepare_claim(&un, "toy-0");
        while (!faults_held())
                node_poll();
        api_answer(false, false);
        for (unsigned i = 0; i < 5; i++)
                node_poll();
        faults_release();
        until(&un, UNPREPARED);
        until(&one, FAILED);
        assert_string_equal(one.msg, "the claim was unprepared while it was being prepared");
        struct buf b = BUF_INIT(1 << 20);
        metrics_render(node.metrics.registry, &b);
        assert_null(strstr(buf_str(&b),
                           "requests_inflight{driver_name=\"toys.example.com\",operation=\"prepare\"} 1"));
        assert_non_null(strstr(buf_str(&b), "requests_inflight"));
        buf_done(&b);
}

/* By permitted transitions. */
static void move(struct op *op, enum op_phase to) {
        static const enum op_phase way[N_OP_PHASES][4] = {
                [OP_FETCHING] = { OP_FETCHING, OP_FETCHING }, [OP_QUEUED] = { OP_QUEUED, OP_QUEUED },
                [OP_BATCH] = { OP_QUEUED, OP_BATCH },         [OP_WORKING] = { OP_BATCH, OP_WORKING },
                [OP_WAITING] = { OP_BATCH, OP_WAITING },
        };
        op_set_phase(op, way[to][0]);
        op_set_phase(op, way[to][1]);
}

static void is_read(struct op *op) {
        api_answer(false, false);
}
static void read_fails(struct op *op) {
        api_answer(true, false);
}
static void read_is_retried(struct op *op) {
        api_answer(false, true);
}
static void is_cancelled(struct op *op) {
        claims_cancelled(node.claims, op->dra, op);
}
static void is_late(struct op *op) {
        op->wait_stage = OP_WAIT_INVESTIGATED;
        waits_late(op);
}

/* Each callback of a Prepare in each of its phases. */
/* failure: any callback meets a Prepare in any phase -> no Prepare is answered twice */
static void a_prepare_in_a_batch_is_moved_by_nothing_else(void **state) {
        enum outcome { STAYS, SAYS, QUEUES, ANSWERED, DROPPED, LET_GO, ANSWERED_AND_LET_GO };
        static const struct {
                void (*callback)(struct op *op);
                enum outcome want[N_OP_PHASES]; /* fetching, queued, batch, working, waiting */
        } rows[] = {
                { is_read, { QUEUES, QUEUES, STAYS, STAYS, QUEUES } },
                { read_fails, { ANSWERED, ANSWERED, STAYS, STAYS, ANSWERED } },
                { read_is_retried, { SAYS, SAYS, STAYS, STAYS, SAYS } },
                { is_cancelled, { DROPPED, DROPPED, LET_GO, LET_GO, DROPPED } },
                { is_late, { ANSWERED, ANSWERED, ANSWERED_AND_LET_GO, ANSWERED_AND_LET_GO, ANSWERED } },
        };
        api.hold = true;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                for (enum op_phase phase = 0; phase <= OP_WAITING; phase++) {
                        struct dra_op dra;
                        enum outcome want = rows[i].want[phase];
                        prepare_claim(&dra, "toy-0");
                        struct op *op = TAILQ_FIRST(&node.claims->ops);
                        move(op, phase);
                        rows[i].callback(op);
                        bool alive = !TAILQ_EMPTY(&node.claims->ops);
                        assert_int_equal(alive, want != ANSWERED && want != DROPPED);
                        assert_int_equal(dra.answer,
                                         want == ANSWERED || want == ANSWERED_AND_LET_GO ? FAILED : PENDING);
                        if (!alive)
                                continue;
                        assert_int_equal(op->phase, want == QUEUES ? OP_QUEUED : phase);
                        assert_int_equal(*op->msg != '\0', want == SAYS);
                        assert_int_equal(!op->dra, want == LET_GO || want == ANSWERED_AND_LET_GO);
                        if (phase == OP_WORKING)
                                op_set_phase(op, OP_QUEUED);
                        op_drop(op);
                }
        }
        /* And there is no other transition into a batch or out of the driver's work. */
        for (enum op_phase from = 0; from <= OP_WAITING; from++)
                assert_int_equal(op_may_become(OP_WORKING, from), from == OP_QUEUED);
        assert_false(op_may_become(OP_FETCHING, OP_WORKING));
        assert_false(op_may_become(OP_QUEUED, OP_WAITING));
        assert_false(op_may_become(OP_WAITING, OP_WORKING));
        /* A kept Prepare is never carried out. */
        for (enum op_phase to = 0; to < N_OP_PHASES; to++)
                assert_false(op_may_become(OP_FAILED, to));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(its_devices_are_prepared_and_unprepared),
                T(a_claim_that_its_driver_keeps_is_not_unprepared),
                T(a_thing_of_two_claims_is_undone_with_the_last),
                T(a_claim_waits_for_a_held_device),
                T(the_next_process_answers_with_the_recorded_devices),
                T(a_refused_claim_fails_at_once),
                T(two_prepares_of_one_claim_are_answered_by_a_durable_entry),
                cmocka_unit_test_setup_teardown(two_prepares_of_one_claim_are_answered_by_a_durable_entry,
                                                setup_with_files, teardown),
                T(a_superseded_prepare_stays_superseded),
                T(a_prepare_in_a_batch_is_moved_by_nothing_else),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
