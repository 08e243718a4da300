/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged or missing checkpoint: whatever fails until it is complete again, and whenever the plugin is
 * killed, no claim is lost. */
#include "world/cd_node.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "faults.h"
#include "node/checkpoint_layouts.h"

static char *checkpoint;

/* ---- the damage ---- */

static void is_removed(void) {
        struct err e;
        assert_int_equal(file_remove(checkpoint, &e), 0);
}

static void is_garbage(void) {
        struct err e;
        assert_int_equal(file_replace_volatile(checkpoint, "{\"checksum\":1,", 14, 0600, &e), 0);
}

static void is_too_large(void) {
        is_garbage();
        assert_int_equal(truncate(checkpoint, CHECKPOINT_MAX_BYTES + 1), 0);
}

static void is_a_folder(void) {
        is_removed();
        tree_put(w.plugin_dir, "checkpoint.json/file", "x");
}

static void is_a_fifo(void) {
        is_removed();
        assert_int_equal(mkfifo(checkpoint, 0600), 0);
}

/* ---- the claims ---- */

/* A channel and its daemon, which keeps running while the plugin is away. */
static int with_two_claims(void **state) {
        struct dra_op op = { 0 };
        if (world_setup_claims(state) < 0)
                return -1;
        checkpoint = file_join(w.plugin_dir, "checkpoint.json");
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        w.claims = NULL;
        return 0;
}

static int without(void **state) {
        freep(&checkpoint);
        return world_teardown(state);
}

static void are_prepared(void) {
        _cleanup_(freep) char *state = xasprintf("%s/domains/" DOMAIN_A "/" IMEX_STATE_FILE, w.plugin_dir);
        static const char *const uids[] = { CLAIM_1, DAEMON_1 };
        for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
                const struct checkpoint_claim *entry = world_entry(w.claims, uids[i]);
                _cleanup_(freep) char *cdi = world_cdi(uids[i]);
                assert_non_null(entry);
                assert_int_equal(entry->state, CHECKPOINT_COMPLETED);
                assert_int_equal(entry->n_devices, 1);
                assert_non_null(cdi);
        }
        assert_int_equal(access(state, F_OK), 0);
}

static void are_recorded(void) {
        are_prepared();
        assert_true(world_recorded(CLAIM_1));
        assert_true(world_recorded(DAEMON_1));
}

static void nothing_is_lost(void) {
        world_start(BOOT);
        are_recorded();
        world_stop(w.claims);
        w.claims = NULL;
}

/* The name of the corrupt file that was kept, from the Event. */
static bool kept(struct stat *ret) {
        char name[300] = "";
        const char *at = strstr(api.events, "it is kept as ");
        return at && sscanf(at, "it is kept as %299s", name) == 1 &&
               strstr(name, "checkpoint.json.corrupt-") && lstat(name, ret) == 0;
}

/* failure: the checkpoint is too large, a folder or a FIFO -> it is set aside and rebuilt */
static void an_impossible_checkpoint_is_kept_and_rebuilt(void **state) {
        static void (*const damages[])(void) = { is_garbage, is_too_large, is_a_folder, is_a_fifo };
        for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
                struct stat before, after;
                damages[i]();
                assert_int_equal(lstat(checkpoint, &before), 0);
                api.events[0] = '\0';
                nothing_is_lost();
                assert_non_null(strstr(api.events, "Node/n0 CheckpointCorrupt"));
                assert_true(kept(&after));
                assert_int_equal(before.st_ino, after.st_ino);
                api.events[0] = '\0';
                nothing_is_lost();
                assert_string_equal(api.events, ""); /* no further Event */
        }
}

/* failure: the checkpoint is removed -> it is rebuilt from CDI files, and an Event reports it */
static void checkpoint_that_was_removed_is_rebuilt(void **state) {
        is_removed();
        nothing_is_lost();
        assert_non_null(strstr(api.events, "Node/n0 CheckpointMissing"));
        assert_non_null(strstr(api.events, "2 claims were rebuilt"));
}

#define ALLOCATION(device, kind, domain)                                                                     \
        "{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"\",\"driver\":\"compute-domain.nvidia."   \
        "com\","                                                                                             \
        "\"pool\":\"n0\",\"device\":\"" device "\"}],\"config\":[{\"source\":\"FromClaim\",\"opaque\":{"     \
        "\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"                           \
        "\"resource.nvidia.com/v1beta1\",\"kind\":\"" kind "\",\"domainID\":\"" domain "\"}}}]}}}"

static void has_status(const char *uid, const char *want) {
        const struct checkpoint_claim *entry = world_entry(w.claims, uid);
        struct buf canonical = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct err e;
        assert_non_null(entry);
        assert_string_equal(entry->status.p, want);
        /* The checksum of the file covers the status as the Go driver would write it. */
        yyjson_doc *doc = json_parse(entry->status, YYJSON_READ_NOFLAG, &e);
        assert_true(checkpoint_status(yyjson_doc_get_root(doc), &canonical));
        assert_string_equal(buf_str(&canonical), want);
        yyjson_doc_free(doc);
        buf_done(&canonical);
}

/* The Go driver crashes if a prepared claim has no allocation, and cannot unprepare the claim of a daemon
 * without a configuration. */
/* failure: the Go driver returns after the checkpoint was rebuilt -> it can read the allocation of each claim
 */
static void a_rebuilt_claim_has_the_allocation_that_the_go_driver_reads(void **state) {
        is_removed();
        world_start(BOOT);
        has_status(CLAIM_1, ALLOCATION("channel-0", "ComputeDomainChannelConfig", DOMAIN_A));
        has_status(DAEMON_1, ALLOCATION("daemon-0", "ComputeDomainDaemonConfig", CD_DAEMON_DOMAIN));
        world_stop(w.claims);
        w.claims = NULL;
}

/* Such claims would never be unprepared. */
/* failure: there is no checkpoint and a CDI file has no boot ID -> the file creates no claim */
static void cdi_files_of_unknown_age_create_no_claim_without_a_checkpoint(void **state) {
        struct err e;
        _cleanup_(freep) char *path =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM_2 ".yaml", w.cdi_root);
        static const char text[] = "devices: [{name: " CLAIM_2 "-channel-0}]\n";
        assert_int_equal(file_replace(path, text, strlen(text), 0600, &e), 0);
        is_removed();
        nothing_is_lost();
        assert_int_equal(access(path, F_OK), -1);
        assert_false(world_recorded(CLAIM_2));
        is_removed();
        world_start("33333333-3333-4333-8333-333333333333");
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
}

/* ---- while the plugin runs ---- */

/* failure: the checkpoint is damaged or removed under a running plugin -> the plugin repairs it */
static void a_damaged_checkpoint_is_repaired_while_the_plugin_runs(void **state) {
        static void (*const damages[])(void) = { is_removed, is_garbage, is_too_large, is_a_folder };
        struct dra_op begun = { 0 };
        world_start(BOOT);
        prepare(&begun, "c2", CLAIM_2); /* waits for the channel, and has no CDI file */
        world_turn();
        for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
                damages[i]();
                for (int turns = 0; !world_recorded(CLAIM_2) && turns < 100; turns++)
                        uv_run(&w.loop, UV_RUN_ONCE);
                are_recorded();
                assert_int_equal(world_entry(w.claims, CLAIM_2)->state, CHECKPOINT_STARTED);
        }
}

/* ---- what fails ---- */

static void (*damage)(void);

static int start(void *u, struct err *e) {
        struct claims *c;
        if (world_try(BOOT, &c, e) < 0)
                return -1;
        world_stop(c);
        return 0;
}

/* Each entry of a folder adds a call that may fail, so files that each round adds would make this endless. */
static void forget_what_was_set_aside(void) {
        _cleanup_(freep) char *pattern = xasprintf("%s.corrupt-*", checkpoint);
        glob_t found;
        if (glob(pattern, 0, NULL, &found) == 0) {
                for (size_t i = 0; i < found.gl_pathc; i++)
                        tree_remove(xstrdup(found.gl_pathv[i]));
                globfree(&found);
        }
}

static void nothing_is_lost_then_again(void *u, const char *call, bool worked) {
        nothing_is_lost();
        forget_what_was_set_aside();
        damage();
}

static void each_call_fails(void (*how)(void)) {
        damage = how;
        damage();
        assert_in_range(faults_each(&(struct faults){
                                .op = start, .check = nothing_is_lost_then_again, .survives = "*" }),
                        20, 200);
}

/* failure: any system call fails while a checkpoint is rebuilt -> no claim is lost */
static void no_failing_call_on_a_corrupt_checkpoint_loses_a_claim(void **state) {
        each_call_fails(is_garbage);
}

static void no_failing_call_on_a_folder_in_its_place_loses_a_claim(void **state) {
        each_call_fails(is_a_folder);
}

static void no_failing_call_without_a_checkpoint_loses_a_claim(void **state) {
        each_call_fails(is_removed);
}

/* In a child with its own loop; true: it was killed. */
static bool killed_at(unsigned n) {
        pid_t pid = fork();
        int status;
        assert_true(pid >= 0);
        if (pid == 0) {
                struct err e;
                uv_loop_init(&w.loop);
                faults_kill_at(n);
                _exit(start(NULL, &e) < 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
        return WIFSIGNALED(status);
}

/* From the eighth on it skips more and more points, unless EVERY_POINT is set. */
static void killed_at_each_call(void (*how)(void)) {
        bool every = getenv("EVERY_POINT") != NULL;
        unsigned n = 1;
        for (how(); killed_at(n); n += every ? 1 : 1 + n / 8, how()) {
                nothing_is_lost();
                forget_what_was_set_aside();
        }
        nothing_is_lost();
        assert_in_range(n, 20, 200);
}

/* failure: the plugin is killed at any call while it rebuilds a checkpoint -> no claim is lost */
static void no_kill_on_a_corrupt_checkpoint_loses_a_claim(void **state) {
        killed_at_each_call(is_garbage);
}

static void no_kill_on_a_folder_in_its_place_loses_a_claim(void **state) {
        killed_at_each_call(is_a_folder);
}

static void no_kill_without_a_checkpoint_loses_a_claim(void **state) {
        killed_at_each_call(is_removed);
}

/* The plugin starts nevertheless: prepared claims stay prepared, and requests get the reason. */
static void full_disk_at_a_start(void (*how)(void)) {
        struct dra_op channel = { 0 }, again = { 0 }, gone = { 0 };
        struct rlimit unlimited, small;
        how();
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
        small = (struct rlimit){ 16, unlimited.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        world_start(BOOT);
        are_prepared();
        kubelet_unprepare(w.claims, &gone, "user", "c2", CLAIM_2);
        world_turn();
        prepare(&channel, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
        assert_int_equal(gone.answer, FAILED);
        assert_int_equal(channel.answer, FAILED);
        assert_non_null(strstr(channel.msg, "record the claims of this node"));
        are_prepared();
        kubelet_unprepare(w.claims, &again, "user", "c2", CLAIM_2);
        world_wait(&again, UNPREPARED);
        are_recorded();
        world_stop(w.claims);
        w.claims = NULL;
}

/* failure: the disk is full while a checkpoint is rebuilt -> no claim is lost */
static void full_disk_loses_no_claim(void **state) {
        full_disk_at_a_start(is_garbage);
        full_disk_at_a_start(is_a_folder);
        full_disk_at_a_start(is_removed);
        nothing_is_lost();
}

/* An error of the disk itself is no reason to rebuild: the file may be intact. It must be reported to a
 * person who can repair the disk. */
/* failure: the checkpoint cannot be read from its disk -> an Event names the disk, and nothing is rebuilt */
static void an_unreadable_disk_is_reported_with_the_remedy(void **state) {
        struct claims *c;
        struct err e;
        faults_at("pread64", 1);
        assert_int_equal(world_try(BOOT, &c, &e), -1);
        assert_true(faults_off());
        assert_non_null(strstr(e.msg, "checkpoint.json"));
        assert_non_null(strstr(api.events, "Node/n0 CheckpointUnreadable"));
        assert_non_null(strstr(api.events, "check the disk"));
        assert_null(strstr(api.events, "CheckpointCorrupt"));
        nothing_is_lost();
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, with_two_claims, without)
        const struct CMUnitTest tests[] = {
                T(an_impossible_checkpoint_is_kept_and_rebuilt),
                T(checkpoint_that_was_removed_is_rebuilt),
                T(a_rebuilt_claim_has_the_allocation_that_the_go_driver_reads),
                T(cdi_files_of_unknown_age_create_no_claim_without_a_checkpoint),
                T(a_damaged_checkpoint_is_repaired_while_the_plugin_runs),
                T(no_failing_call_on_a_corrupt_checkpoint_loses_a_claim),
                T(no_failing_call_on_a_folder_in_its_place_loses_a_claim),
                T(no_failing_call_without_a_checkpoint_loses_a_claim),
                T(no_kill_on_a_corrupt_checkpoint_loses_a_claim),
                T(no_kill_on_a_folder_in_its_place_loses_a_claim),
                T(no_kill_without_a_checkpoint_loses_a_claim),
                T(full_disk_loses_no_claim),
                T(an_unreadable_disk_is_reported_with_the_remedy),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
