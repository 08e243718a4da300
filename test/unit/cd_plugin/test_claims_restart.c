/* SPDX-License-Identifier: Apache-2.0 */
/* Restarts, reboots and damage. */
#include "world/cd_node.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void a_restart_keeps_prepared_claims(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        world_start(BOOT);
        api.down = true;
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_string_equal(again.devices, op.devices);
}

/* failure: the plugin restarts while a Prepare waits -> the repeated Prepare succeeds */
static void a_waiting_prepare_succeeds_after_a_restart(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        world_stop(w.claims);
        world_start(BOOT);
        prepare(&again, "c1", CLAIM_1);
        daemon_ready();
        world_wait(&again, PREPARED);
}

/* failure: a node reboots -> the plugin removes the claims and CDI files of the boot before [rebooted] */
static void a_reboot_removes_claims_and_their_files(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        close(w.lock_fd); /* no process outlives a boot */
        w.lock_fd = -1;
        world_start("33333333-3333-4333-8333-333333333333");
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
        assert_null(world_cdi(DAEMON_1));
        assert_false(world_recorded(CLAIM_1));
        assert_int_equal(access(dir, F_OK), -1);
}

/* failure: the checkpoint is corrupt -> it is set aside and rebuilt from CDI files */
static void corrupt_checkpoint_is_set_aside_and_rebuilt_from_cdi_files(void **state) {
        (void)state;
        struct dra_op op = { 0 }, other = { 0 }, gone = { 0 };
        struct err e;
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        assert_int_equal(file_replace(path, "{\"checksum\":1,", 14, 0600, &e), 0);
        world_start(BOOT);
        assert_non_null(strstr(api.events, "Node/n0 CheckpointCorrupt"));
        assert_non_null(strstr(api.events, "checkpoint.json.corrupt-"));
        const struct checkpoint_claim *entry = world_entry(w.claims, CLAIM_1);
        assert_string_equal(entry->ns, "user");
        assert_string_equal(entry->name, "c1");
        assert_string_equal(entry->devices[0].domain, DOMAIN_A);
        assert_true(cd_device_is_daemon(&world_entry(w.claims, DAEMON_1)->devices[0]));
        assert_true(world_recorded(CLAIM_1));
        /* The channel is still taken, the daemon still counts, and the claim can be answered again and
         * unprepared.
         */
        prepare(&other, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(other.answer, PENDING);
        struct dra_op again = { 0 };
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_string_equal(again.devices, op.devices);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait(&other, PREPARED);
}

static void holds_the_channel(const char *uid) {
        const struct checkpoint_claim *entry = world_entry(w.claims, uid);
        assert_non_null(entry);
        assert_int_equal(entry->state, CHECKPOINT_COMPLETED);
        assert_string_equal(entry->devices[0].name, "channel-0");
}

/* The text of the file; caller frees. */
static char *checkpoint_with_a_channel(const char *path) {
        struct dra_op op = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        return world_read(path);
}

/* As after a full disk, or a disk that lost its cache. */
/* failure: the checkpoint is truncated anywhere -> it is set aside and rebuilt */
static void checkpoint_cut_anywhere_is_set_aside_and_rebuilt(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *whole = checkpoint_with_a_channel(path);
        size_t n = strlen(whole);
        for (size_t cut = 0; cut < n; cut = cut < n - 1 && cut + 211 >= n ? n - 1 : cut + 211) {
                world_stop(w.claims);
                assert_int_equal(file_replace_volatile(path, whole, cut, 0600, &e), 0);
                api.events[0] = '\0';
                world_start(BOOT);
                assert_non_null(strstr(api.events, "Node/n0 CheckpointCorrupt"));
                holds_the_channel(CLAIM_1);
        }
}

/* failure: one byte of the checkpoint changes -> no claim is lost */
static void checkpoint_with_one_wrong_character_loses_no_claim(void **state) {
        (void)state;
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *whole = checkpoint_with_a_channel(path);
        unsigned noticed = 0, tried = 0;
        for (size_t at = 0; at < strlen(whole); at += 97, tried++) {
                char was = whole[at];
                world_stop(w.claims);
                whole[at] = was == 'x' ? 'y' : 'x';
                assert_int_equal(file_replace_volatile(path, whole, strlen(whole), 0600, &e), 0);
                whole[at] = was;
                api.events[0] = '\0';
                world_start(BOOT);
                noticed += strstr(api.events, "CheckpointCorrupt") != NULL;
                holds_the_channel(CLAIM_1);
        }
        assert_int_equal(noticed, tried);
}

/* The layout of 25.3 has no boot ID: an upgrade within one boot keeps running claims, and then adds the boot
 * ID. */
/* failure: a checkpoint has no boot ID -> it counts as of this boot, and running claims stay [go] */
static void a_checkpoint_without_a_boot_id_counts_as_of_this_boot(void **state) {
        (void)state;
        struct dra_op gone = { 0 };
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = checkpoint_with_a_channel(path);
        world_stop(w.claims);
        char *v2 = strstr(text, ",\"v2\":");
        assert_non_null(v2);
        memcpy(v2, "}", 2);
        assert_int_equal(file_replace_volatile(path, text, strlen(text), 0600, &e), 0);
        world_start(BOOT);
        assert_string_equal(api.events, "");
        holds_the_channel(CLAIM_1);
        assert_true(world_recorded("\"nodeBootID\":\"" BOOT "\""));
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        assert_null(world_cdi(CLAIM_1));
}

/* The pod was deleted while the plugin was away, so no Unprepare will follow its Prepare. */
/* failure: a claim is deleted while the plugin is down -> its started entry is removed */
static void a_started_claim_whose_object_was_deleted_is_removed(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        world_stop(w.claims);
        api_remove_claim("user", "c1");
        world_start(BOOT);
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_STARTED);
        claim_gc_deleted_claims(w.claims->claim_gc, uv_now(&w.loop));
        world_turn();
        claim_gc_deleted_claims(w.claims->claim_gc, uv_now(&w.loop) + CLAIM_GC_APART_MS);
        world_turn();
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_ABORTED); /* it will expire */
}

static void orphan_files_are_removed_at_the_start(void **state) {
        (void)state;
        struct err e;
        world_stop(w.claims);
        _cleanup_(freep) char *ours =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM_2 ".yaml", w.cdi_root);
        _cleanup_(freep) char *base =
                xasprintf("%s/k8s.compute-domain.nvidia.com-device_base.yaml", w.cdi_root);
        assert_int_equal(file_mkdirs(w.cdi_root, 0755, &e), 0);
        assert_int_equal(file_replace(ours, "x", 1, 0600, &e), 0);
        assert_int_equal(file_replace(base, "x", 1, 0600, &e), 0);
        _cleanup_(freep) char *half = xasprintf("%s/.checkpoint.json.tmp.7.1", w.plugin_dir);
        _cleanup_(freep) char *half_list = xasprintf("%s/.unprepared-daemon-claims.tmp.7.3", w.plugin_dir);
        _cleanup_(freep) char *half_cdi =
                xasprintf("%s/.k8s.compute-domain.nvidia.com-claim_" CLAIM_2 ".yaml.tmp.7.2", w.cdi_root);
        assert_int_equal(file_replace(half, "x", 1, 0600, &e), 0);
        assert_int_equal(file_replace(half_cdi, "x", 1, 0600, &e), 0);
        assert_int_equal(file_replace(half_list, "x", 1, 0600, &e), 0);
        world_start(BOOT);
        assert_int_equal(access(ours, F_OK), -1);
        assert_int_equal(access(half, F_OK), -1);
        assert_int_equal(access(half_cdi, F_OK), -1);
        assert_int_equal(access(half_list, F_OK), -1);
        assert_int_equal(access(base, F_OK), 0); /* containers of the Go driver may still refer to it */
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(a_restart_keeps_prepared_claims),
                T(a_waiting_prepare_succeeds_after_a_restart),
                T(a_reboot_removes_claims_and_their_files),
                T(corrupt_checkpoint_is_set_aside_and_rebuilt_from_cdi_files),
                T(checkpoint_cut_anywhere_is_set_aside_and_rebuilt),
                T(checkpoint_with_one_wrong_character_loses_no_claim),
                T(a_checkpoint_without_a_boot_id_counts_as_of_this_boot),
                T(a_started_claim_whose_object_was_deleted_is_removed),
                T(orphan_files_are_removed_at_the_start),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
