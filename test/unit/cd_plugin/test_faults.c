/* SPDX-License-Identifier: Apache-2.0 */
/* Each call until a claim is prepared fails once: nothing leaks, the files are complete, and a retry
 * succeeds. */
#include "world/cd_node.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cdi/cdi.h"
#include "faults.h"

#define UNUSED_DOMAIN "eeeeeeee-0000-4000-8000-000000000005"

/* ---- one by one ---- */

static int journal_write(struct journal *j, struct err *e) {
        struct buf text;
        struct stat stored;
        if (journal_begin(j, &text, e) < 0)
                return -1;
        int r = journal_store(j->path, (struct str){ text.p, text.n }, &stored, e);
        buf_done(&text);
        journal_end(j, r < 0 ? NULL : &stored);
        return r;
}

static int journal_round(void *u, struct err *e) {
        struct journal j;
        enum journal_event event;
        _cleanup_(freep) char *aside = NULL;
        journal_init(&j, &cd_device_codec, 0, w.plugin_dir, BOOT);
        int r = journal_sync(&j, &event, &aside, e);
        assert_null(aside); /* a file that cannot be read now is not corrupt */
        if (r == 0) {
                checkpoint_put(&j.table, CLAIM_1, "user", "c1", STR("{}"));
                r = journal_write(&j, e);
        }
        journal_done(&j);
        return r;
}

static void journal_is_whole(void *u, const char *call, bool worked) {
        struct journal j;
        enum journal_event event;
        _cleanup_(freep) char *aside = NULL;
        struct err e;
        journal_init(&j, &cd_device_codec, 0, w.plugin_dir, BOOT);
        assert_int_equal(journal_sync(&j, &event, &aside, &e), 0);
        assert_int_equal(event, JOURNAL_READ);
        assert_non_null(checkpoint_find(&j.table, CLAIM_2));
        assert_true(!worked || checkpoint_find(&j.table, CLAIM_1));
        journal_done(&j);
}

/* failure: any call fails while the checkpoint is written -> it has the old or the new content */
static void the_journal_is_the_old_or_the_new_one_and_never_set_aside(void **state) {
        struct journal j;
        enum journal_event event;
        char *aside = NULL;
        struct err e;
        journal_init(&j, &cd_device_codec, 0, w.plugin_dir, BOOT);
        assert_int_equal(journal_sync(&j, &event, &aside, &e), 0);
        checkpoint_put(&j.table, CLAIM_2, "user", "c2", STR("{}"));
        assert_int_equal(journal_write(&j, &e), 0);
        journal_done(&j);
        const struct faults f = { .op = journal_round,
                                  .check = journal_is_whole,
                                  .names = w.plugin_dir,
                                  .dir = w.plugin_dir,
                                  .survives = "unlink " };
        assert_in_range(faults_each(&f), 12, 40);
}

static const char *const env[] = { "A=b", NULL };

static int write_cdi(void *u, struct err *e) {
        const struct cdi_device device = { .name = "d", .edits = { .env = env } };
        return cdi_write(
                w.cdi_root, CLAIM_1,
                &(struct cdi_spec){ .kind = "x.example.com/claim", .devices = &device, .n_devices = 1 }, e);
}

static void cdi_is_whole(void *u, const char *call, bool worked) {
        _cleanup_(freep) char *path = cdi_path(w.cdi_root, "x.example.com/claim", CLAIM_1);
        _cleanup_(freep) char *text = world_read(path);
        assert_true(text && streq(text + strlen(text) - 2, "}\n"));
}

/* failure: any call fails while a CDI file is written -> it has the old or the new content */
static void cdi_file_is_the_old_or_the_new_one(void **state) {
        const struct faults f = { .op = write_cdi,
                                  .check = cdi_is_whole,
                                  .names = "/tmp",
                                  .dir = w.cdi_root,
                                  .survives = "unlink " };
        assert_in_range(faults_each(&f), 8, 40);
}

static int prepare_dir(void *u, struct err *e) {
        return readiness_prepare_dir(w.plugin_dir, UNUSED_DOMAIN, false, e);
}

static void domain_folder_that_cannot_be_prepared_is_named(void **state) {
        assert_in_range(faults_each(&(struct faults){ .op = prepare_dir, .names = "/tmp" }), 3,
                        20); /* mkdir, stat, chmod */
}

static int remove_dir(void *u, struct err *e) {
        return readiness_remove_dir(w.plugin_dir, UNUSED_DOMAIN, e);
}

static void with_a_file_again(void *u, const char *call, bool worked) {
        tree_put(w.plugin_dir, "domains/" UNUSED_DOMAIN "/state.json", "{}");
        tree_put(w.plugin_dir, "domains/" UNUSED_DOMAIN "/members.json", "{}");
}

static void domain_folder_that_cannot_be_removed_is_named(void **state) {
        with_a_file_again(NULL, "", true);
        assert_in_range(faults_each(&(struct faults){
                                .op = remove_dir, .check = with_a_file_again, .names = UNUSED_DOMAIN }),
                        3, 20);
}

static void on_lock(void *u, const struct err *e) {
        struct err *answer = u;
        *answer = e ? *e : (struct err){ 0 };
        answer->code = e ? answer->code : -1; /* answered */
}

static int lock_round(void *u, struct err *e) {
        struct node_lock *l;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "pu.lock");
        *e = (struct err){ 0 };
        if (node_lock_new(&w.loop, path, &l, e) < 0)
                return -1;
        if (!node_lock_try(l)) {
                node_lock_wait(l, 10000, on_lock, e);
                while (!e->code)
                        uv_run(&w.loop, UV_RUN_ONCE);
        }
        if (e->kind == ERR_NONE)
                node_lock_release(l);
        node_lock_free(l);
        world_turn();
        return e->kind == ERR_NONE ? 0 : -1;
}

static void lock_that_fails_at_once_is_waited_for(void **state) {
        /* If the lock cannot be taken at once, the plugin waits for it. If it cannot be released, it is
         * released with the descriptor. */
        const struct faults f = { .op = lock_round, .names = "pu.lock", .survives = "flock " };
        assert_in_range(faults_each(&f), 3, 20);
}

/* ---- a whole claim ---- */

static struct { const char *ns, *name, *uid; } claim;

static int answer_of(const struct dra_op *op, struct err *e) {
        return op->answer == FAILED ? err_set(e, ERR_RETRY, 0, "%s", op->msg) : 0;
}

static void until_answered(const struct dra_op *op) {
        world_turn();
        while (op->answer == PENDING) {
                uv_run(&w.loop, UV_RUN_ONCE);
                world_turn();
        }
}

static int prepare_claim(void *u, struct err *e) {
        struct dra_op op = { 0 };
        kubelet_prepare(w.claims, &op, claim.ns, claim.name, claim.uid);
        until_answered(&op);
        return answer_of(&op, e);
}

static int unprepare_claim(void *u, struct err *e) {
        struct dra_op op = { 0 };
        kubelet_unprepare(w.claims, &op, claim.ns, claim.name, claim.uid);
        until_answered(&op);
        return answer_of(&op, e);
}

static void checkpoint_is_whole(void) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = world_read(path);
        struct checkpoint c = { .codec = &cd_device_codec };
        struct err e;
        assert_int_equal(checkpoint_decode(str_from(text), &c, &e), 0);
        assert_int_equal(HASH_COUNT(c.claims),
                         HASH_COUNT(w.claims->journal.table.claims)); /* and memory is the same */
        checkpoint_done(&c);
}

static bool has_cdi(void) {
        _cleanup_(freep) char *text = world_cdi(claim.uid);
        return text;
}

static void is_prepared(void) {
        struct err e;
        checkpoint_is_whole();
        assert_int_equal(prepare_claim(NULL, &e), 0);
        assert_true(has_cdi());
        assert_true(world_recorded(claim.uid));
}

static void is_gone(void) {
        struct err e;
        checkpoint_is_whole();
        assert_int_equal(unprepare_claim(NULL, &e), 0);
        assert_null(world_entry(w.claims, claim.uid));
        assert_false(has_cdi());
        assert_false(world_recorded(claim.uid));
        /* Otherwise a daemon's claim could not be prepared again. */
        _cleanup_(freep) char *released = file_join(w.plugin_dir, "unprepared-daemon-claims");
        (void)unlink(released);
        /* A file that could not be read is reported, but never as a damaged one, and never in an Event of the
         * pod.
         */
        assert_null(strstr(api.events, "CheckpointCorrupt"));
        assert_null(strstr(api.events, "CheckpointMissing"));
        assert_null(strstr(api.events, "Pod/"));
}

static void after_prepare(void *u, const char *call, bool worked) {
        is_prepared();
        is_gone();
}

static void after_unprepare(void *u, const char *call, bool worked) {
        is_gone();
        is_prepared();
}

/* Many calls are retried at once: the plugin waits for the lock, and reads a state again that could not be
 * read. The final state counts. */
static void each_call_of_a_claim(const char *ns, const char *name, const char *uid, unsigned least) {
        const struct faults preparing = { .op = prepare_claim, .check = after_prepare, .survives = "*" };
        const struct faults unpreparing = { .op = unprepare_claim,
                                            .check = after_unprepare,
                                            .survives = "*" };
        claim.ns = ns;
        claim.name = name;
        claim.uid = uid;
        assert_in_range(faults_each(&preparing), least, 200);
        is_prepared();
        assert_in_range(faults_each(&unpreparing), 8, 100);
        is_gone();
}

/* failure: any call fails while a channel claim is prepared -> Prepare fails cleanly, and a retry succeeds */
static void channel_survives_each_failing_call(void **state) {
        daemon_ready();
        each_call_of_a_claim("user", "c1", CLAIM_1, 25);
}

/* fs.inotify.max_user_watches is exhausted when the daemon is prepared. */
/* failure: inotify has no watch left -> the plugin still notices that the daemon is READY */
static void readiness_is_noticed_without_inotify(void **state) {
        struct dra_op op = { 0 };
        api_assigned(DOMAIN_A);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        faults_at("inotify_add_watch", 1);
        daemon_comes(DAEMON_1);
        assert_true(faults_off());
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, true, "READY", &w.lock_fd);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        waits_investigate(TAILQ_FIRST(&w.claims->ops)); /* as the timer does after five seconds */
        world_wait(&op, PREPARED);
        /* Now there is a watch. */
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, false, "STOPPED", &w.lock_fd);
        while (LIST_EMPTY(&world_cd()->lost))
                uv_run(&w.loop, UV_RUN_ONCE);
}

/* failure: any call fails while a daemon claim is prepared -> Prepare fails cleanly, and a retry succeeds */
static void daemon_survives_each_failing_call(void **state) {
        api_daemon_claim("driver", DAEMON_1, "");
        each_call_of_a_claim("driver", "daemon-claim", DAEMON_1, 30);
}

static void daemon_of_the_go_driver_survives_each_failing_call(void **state) {
        api_go_claim();
        each_call_of_a_claim("driver", "go-claim", GO_DAEMON, 30);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(the_journal_is_the_old_or_the_new_one_and_never_set_aside),
                T(cdi_file_is_the_old_or_the_new_one),
                T(domain_folder_that_cannot_be_prepared_is_named),
                T(domain_folder_that_cannot_be_removed_is_named),
                T(lock_that_fails_at_once_is_waited_for),
                T(channel_survives_each_failing_call),
                T(daemon_survives_each_failing_call),
                T(daemon_of_the_go_driver_survives_each_failing_call),
                T(readiness_is_noticed_without_inotify),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
