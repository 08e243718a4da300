/* The state machine of prepared claims. Each test is named after what it must survive. */
#include "fake_world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#define CHANNEL "ComputeDomainChannelConfig"
#define DAEMON "ComputeDomainDaemonConfig"
#define CDI_1 "k8s.compute-domain.nvidia.com/claim=" CLAIM_1 "-channel-0"

static int lock_fd;

static int setup(void **state) {
        lock_fd = -1;
        if (world_setup(state) < 0)
                return -1;
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        return 0;
}

static int teardown(void **state) {
        if (lock_fd >= 0)
                close(lock_fd);
        return world_teardown(state);
}

static void prepare(struct dra_op *op, const char *name, const char *uid) {
        kubelet_prepare(w.claims, op, "user", name, uid);
}

/* What is in the file, not what is in memory. */
static bool recorded(const char *uid) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = world_read(path);
        return text && strstr(text, uid);
}

static void refused_at_once(const char *name, const char *uid, const char *part) {
        struct dra_op op = { 0 };
        prepare(&op, name, uid);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        if (!strstr(op.msg, part))
                print_message("'%s' is not in: %s\n", part, op.msg);
        assert_non_null(strstr(op.msg, part));
        assert_false(recorded(uid));
        assert_null(world_cdi(uid));
}

/* ---- preparing ---- */

static void ready_channel_is_prepared_at_once(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=" CDI_1);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, "{\"path\":\"/dev/nvidia-caps-imex-channels/channel0\",\"hostPath\":\"/dev/nvidia-caps-imex-channels/"
                                    "channel0\",\"type\":\"c\","
                                    "\"major\":240,\"fileMode\":438}"));
        assert_true(recorded(CLAIM_1));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_COMPLETED);
}

static void daemon_claim_brings_the_hosts_programs_and_the_domain_folder(void **state) {
        (void)state;
        daemon_ready(&lock_fd);
        _cleanup_(freep) char *cdi = world_cdi(DAEMON_1);
        _cleanup_(freep) char *mount = xasprintf("{\"hostPath\":\"%s/domains/" DOMAIN_A
                                                 "\",\"containerPath\":\"/imexd\",\"options\":[\"rw\",\"nosuid\",\"nodev\",\"bind\"]}",
                                                 w.plugin_dir);
        static const char capability[] = "{\"path\":\"/dev/nvidia-caps/nvidia-cap512\",\"hostPath\":\"/dev/nvidia-caps/nvidia-cap512\","
                                         "\"type\":\"c\",\"major\":241,\"minor\":512,\"fileMode\":438}";
        static const char *const parts[] = {
                "\"CLIQUE_ID=" CLIQUE "\"",
                "\"COMPUTE_DOMAIN_UUID=" DOMAIN_A "\"",
                "\"COMPUTE_DOMAIN_NAME=cd\"",
                "\"COMPUTE_DOMAIN_NAMESPACE=user\"",
                "\"COMPUTE_DOMAIN_CLAIM_UID=" DAEMON_1 "\"",
                "\"LD_LIBRARY_PATH=/usr/lib64\"",
                "\"/run/nvidia/driver/usr/bin/nvidia-imex\",\"containerPath\":\"/usr/bin/nvidia-imex\"",
                "\"containerPath\":\"/usr/bin/nvidia-imex-ctl\"",
                "\"containerPath\":\"/usr/lib64/libnvidia-ml.so.1\"",
                capability,
        };
        assert_non_null(strstr(cdi, mount));
        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
                if (!strstr(cdi, parts[i]))
                        print_message("missing: %s\n", parts[i]);
                assert_non_null(strstr(cdi, parts[i]));
        }
}

static void a_waiting_channel_does_not_hold_up_its_own_daemon(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_STARTED);
        assert_true(recorded(CLAIM_1));
        daemon_ready(&lock_fd);
        world_wait(&op, PREPARED);
}

static void all_channels(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"All\"");
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, "/dev/nvidia-caps-imex-channels/channel2047\""));
        assert_null(strstr(cdi, "/dev/nvidia-caps-imex-channels/channel2048\""));
}

static void node_without_fabric_runs_the_pod_without_a_channel_and_says_so(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        w.facts.fabric = (struct fabric){ .kind = FABRIC_NONE, .reason = "no GPU reports a fabric" };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=");
        assert_null(world_cdi(CLAIM_1));
        assert_non_null(strstr(w.events, "Pod/pod-c1 NoIMEXChannel"));
        assert_non_null(strstr(w.events, "without an IMEX channel"));
}

static void devices_of_other_drivers_in_the_same_claim_are_not_ours(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                       "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                       "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"gpu-0\"},"
                       "{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"channel-0\"}],"
                       "\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"gpu.nvidia.com\","
                       "\"parameters\":{\"whatever\":1.5}}},"
                       "{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
                       "\"resource.nvidia.com/v1beta1\","
                       "\"kind\":\"" CHANNEL "\",\"domainID\":\"" DOMAIN_A "\"}}}]}}}}");
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=" CDI_1);
}

static void prepared_claim_is_answered_again_without_the_api_server(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        w.api_down = true;
        unsigned before = w.requests;
        struct dra_op again = { 0 };
        prepare(&again, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(again.answer, PREPARED);
        assert_string_equal(again.devices, op.devices);
        assert_int_equal(w.requests, before);
}

static void lost_cdi_file_of_a_prepared_claim_is_written_again(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *path = xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM_1 ".yaml", w.cdi_root);
        assert_int_equal(unlink(path), 0);
        /* Even now: what was granted is not taken back. */
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, false, "WAITING_FOR_RECOVERY", &lock_fd);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_int_equal(access(path, F_OK), 0);
}

/* ---- waiting ---- */

static void deadline_answers_with_the_daemons_words(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 400 };
        daemon_ready(&lock_fd);
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, false, "WAITING_FOR_RECOVERY", &lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_string_equal(op.msg, "n0: IMEX daemon is WAITING_FOR_RECOVERY: two peers are missing");
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_STARTED);
}

static void deadline_without_a_daemon_says_that(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_string_equal(op.msg, "n0: the IMEX daemon of this ComputeDomain has not been started on this node yet");
}

static void deadline_with_the_api_server_away_says_that(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        w.api_down = true;
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "API server"));
        assert_false(recorded(CLAIM_1));
}

static void api_version_unknown_at_first(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready(&lock_fd);
        world_stop(w.claims);
        w.api_unknown = true;
        world_start(BOOT);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        w.api_unknown = false;
        world_wait(&op, PREPARED);
}

static void fabric_registration_that_completes_late(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct facts good = w.facts;
        daemon_ready(&lock_fd);
        w.facts =
                (struct facts){ .known = true, .reason = "FabricRegistering", .message = "GPU x: its fabric registration is in progress" };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_true(w.hurried);
        w.facts = good;
        claims_facts_changed(w.claims);
        world_wait(&op, PREPARED);
        assert_false(w.hurried);
}

static void domain_deleted_while_a_channel_waits(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        struct op *waiting = TAILQ_FIRST(&w.claims->ops);
        prepare_look_closer(waiting); /* as the timer does after five seconds */
        world_turn();
        assert_int_equal(op.answer, PENDING);
        api_remove_domain(DOMAIN_A);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "has been deleted"));
}

static void kubelet_hangs_up(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        claims_cancelled(w.claims, &op, op.data);
        op.answer = CANCELLED; /* an answer after this would fail the test */
        prepare(&again, "c1", CLAIM_1);
        daemon_ready(&lock_fd);
        world_wait(&again, PREPARED);
}

/* ---- stale state files ---- */

static void not_released_by(const char *domain, const char *claim, const char *boot, bool held) {
        struct dra_op op = { .timeout_ms = 300 }, daemon = { 0 };
        int fd = -1;
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
        kubelet_prepare(w.claims, &daemon, "driver", "daemon-claim", DAEMON_1);
        world_wait(&daemon, PREPARED);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        daemon_says(domain, claim, boot, true, "READY", &fd);
        if (!held) {
                close(fd);
                fd = -1;
        }
        world_wait(&op, FAILED);
        assert_null(world_cdi(CLAIM_1));
        if (fd >= 0)
                close(fd);
}

static void ready_file_of_a_killed_daemon(void **state) {
        (void)state;
        not_released_by(DOMAIN_A, DAEMON_1, BOOT, false);
}

static void ready_file_of_another_boot(void **state) {
        (void)state;
        not_released_by(DOMAIN_A, DAEMON_1, "22222222-2222-4222-8222-222222222222", true);
}

static void ready_file_of_an_earlier_daemon_of_the_same_domain(void **state) {
        (void)state;
        not_released_by(DOMAIN_A, "d0000000-0000-4000-8000-000000000009", BOOT, true);
}

static void ready_file_is_removed_before_the_next_daemon_is_prepared(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct err e;
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        _cleanup_(freep) char *path = file_join(dir, "state.json");
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, true, "READY", &lock_fd);
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, PREPARED);
        assert_int_equal(access(path, F_OK), -1);
}

/* What the timer does five seconds after readiness was withdrawn. */
static void grace_passes(void) {
        for (int i = 0; i < 1000 && !uv_is_active((uv_handle_t *)&w.claims->grace); i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        assert_true(uv_is_active((uv_handle_t *)&w.claims->grace));
        uv_timer_set_repeat(&w.claims->grace, 1);
        uv_timer_again(&w.claims->grace);
        while (!LIST_EMPTY(&w.claims->lost))
                uv_run(&w.loop, UV_RUN_ONCE);
        uv_timer_stop(&w.claims->grace);
}

static void readiness_withdrawn_under_a_channel_is_an_event(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_turn();
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, false, "STOPPED", &lock_fd);
        grace_passes();
        assert_non_null(strstr(w.events, "ResourceClaim/c1 IMEXDaemonNotReady"));
        assert_non_null(strstr(w.events, "IMEX daemon is STOPPED"));
}

static void daemon_that_is_back_at_once_is_no_event(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_turn();
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, false, "STARTING", &lock_fd);
        for (int i = 0; i < 1000 && !uv_is_active((uv_handle_t *)&w.claims->grace); i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, true, "READY", &lock_fd);
        grace_passes();
        assert_string_equal(w.events, "");
}

/* ---- refused at once, with nothing recorded and nothing done ---- */

static void unknown_field(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"unexpected\":1");
        refused_at_once("c1", CLAIM_1, "strict decoding error: unknown field \"unexpected\"");
}

static void wrong_kind(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", DAEMON, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "channel-0");
        api_claim("user", "c1", CLAIM_1, "channel-0", "GpuConfig", DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "GpuConfig");
}

static void bad_domain_ids(void **state) {
        (void)state;
        static const char *const bad[] = { "", "../../etc", "x", DOMAIN_A "/..", "aaaaaaaa-0000-4000-8000-00000000000" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, bad[i], "");
                refused_at_once("c1", CLAIM_1, "domainID");
        }
}

static void unknown_allocation_mode(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"Some\"");
        refused_at_once("c1", CLAIM_1, "allocationMode");
}

static void domain_of_another_namespace(void **state) {
        (void)state;
        api_domain("other", "theirs", DOMAIN_B, false);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_B, "");
        refused_at_once("c1", CLAIM_1, "in namespace 'user'");
}

static void domain_that_is_being_deleted(void **state) {
        (void)state;
        api_domain("user", "cd", DOMAIN_A, true);
        refused_at_once("c1", CLAIM_1, "ComputeDomain 'user/cd' is being deleted");
}

static void claim_that_does_not_exist_or_is_another_now(void **state) {
        (void)state;
        api_remove_claim("user", "c1");
        refused_at_once("c1", CLAIM_1, "not found");
        api_claim("user", "c1", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "replaced");
}

static void claim_without_allocation(void **state) {
        (void)state;
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                       "\",\"resourceVersion\":\"1\"},\"status\":{}}");
        refused_at_once("c1", CLAIM_1, "not allocated");
}

static void device_of_another_node_or_none(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "channel-7", CHANNEL, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "channel-7");
}

static void daemon_claim_made_by_hand_in_a_users_namespace(void **state) {
        (void)state;
        api_claim("user", "c1", CLAIM_1, "daemon-0", DAEMON, DOMAIN_A, "");
        refused_at_once("c1", CLAIM_1, "daemons in namespace 'driver' only");
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        assert_int_equal(access(dir, F_OK), -1);
}

static void garbage_in_the_capability_file(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct err e;
        _cleanup_(freep) char *path = file_join(w.driver_root, "capabilities/fabric-imex-mgmt");
        assert_int_equal(file_replace(path, "garbage", 7, 0644, &e), 0);
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "DeviceFileMinor"));
        assert_null(world_cdi(DAEMON_1));
}

/* Two configurations, one good and one bad, in both orders: nothing is applied. */
static void one_bad_configuration_spoils_the_claim_whatever_the_order(void **state) {
        (void)state;
        static const char good[] = "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" DAEMON "\",\"domainID\":\"" DOMAIN_A "\"}";
        static const char bad[] = "{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"" CHANNEL "\",\"domainID\":\"x\"}";
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        for (int order = 0; order < 2; order++) {
                struct dra_op op = { 0 };
                _cleanup_(freep) char *json = xasprintf(
                        "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"driver\",\"uid\":\"" CLAIM_1
                        "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                        "{\"request\":\"%s\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"%s\"},"
                        "{\"request\":\"%s\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"%s\"}],\"config\":["
                        "{\"source\":\"FromClaim\",\"requests\":[\"d\"],\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                        "\"parameters\":%s}},"
                        "{\"source\":\"FromClaim\",\"requests\":[\"c\"],\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                        "\"parameters\":%s}}]}}}}",
                        order ? "d" : "c", order ? "daemon-0" : "channel-0", order ? "c" : "d", order ? "channel-0" : "daemon-0", good,
                        bad);
                api_claim_json("driver", "c1", json);
                kubelet_prepare(w.claims, &op, "driver", "c1", CLAIM_1);
                world_turn();
                assert_int_equal(op.answer, FAILED);
                assert_int_equal(access(dir, F_OK), -1);
                assert_false(recorded(CLAIM_1));
        }
}

/* ---- one device, several claims ---- */

static void second_claim_for_the_channel_waits_for_the_first(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 }, gone = { 0 };
        daemon_ready(&lock_fd);
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        claims_dump(w.claims);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait(&two, PREPARED);
}

static void at_the_deadline_the_holder_is_named(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { .timeout_ms = 200 };
        daemon_ready(&lock_fd);
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_wait(&two, FAILED);
        assert_non_null(strstr(two.msg, "n0: device 'channel-0' is still held by claim 'user/c1'"));
}

static void two_claims_for_the_channel_in_one_call(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { .timeout_ms = 600 };
        prepare(&one, "c1", CLAIM_1);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        daemon_ready(&lock_fd);
        world_wait(&one, PREPARED);
        world_wait(&two, FAILED);
        assert_null(world_cdi(CLAIM_2));
}

static void admin_access_does_not_take_the_channel(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 };
        api_claim_json("user", "c1",
                       "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                       "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                       "{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"channel-0\","
                       "\"adminAccess\":true}],"
                       "\"config\":[{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{"
                       "\"apiVersion\":\"resource.nvidia.com/v1beta1\","
                       "\"kind\":\"" CHANNEL "\",\"domainID\":\"" DOMAIN_A "\"}}}]}}}}");
        daemon_ready(&lock_fd);
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        prepare(&two, "c2", CLAIM_2);
        world_wait(&two, PREPARED);
        struct dra_op again = { 0 };
        kubelet_unprepare(w.claims, &again, "user", "c1", CLAIM_1);
        world_wait(&again, UNPREPARED);
        struct dra_op third = { 0 };
        prepare(&third, "c1", CLAIM_1); /* beside the one that holds it */
        world_wait(&third, PREPARED);
}

static void daemon_of_another_domain_has_not_left_yet(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        daemon_ready(&lock_fd);
        api_domain("user", "second", DOMAIN_B, false);
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_B, "");
        prepare(&op, "c2", CLAIM_2);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "has not left this node yet"));
        assert_non_null(strstr(op.msg, "driver/daemon-claim"));
}

/* ---- unpreparing ---- */

static void unprepare_needs_no_api_server_and_no_claim(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 }, daemon_gone = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        w.api_down = true;
        api_remove_claim("user", "c1");
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        assert_null(world_cdi(CLAIM_1));
        assert_false(recorded(CLAIM_1));
        kubelet_unprepare(w.claims, &daemon_gone, "driver", "daemon-claim", DAEMON_1);
        world_wait(&daemon_gone, UNPREPARED);
        assert_int_equal(access(dir, F_OK), -1);
        assert_null(world_entry(w.claims, DAEMON_1));
}

static void unprepare_of_the_unknown_succeeds(void **state) {
        (void)state;
        static const char *const uids[] = { CLAIM_2, "../../etc/passwd", "not a uid", "x" };
        for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
                struct dra_op op = { 0 };
                kubelet_unprepare(w.claims, &op, "user", "x", uids[i]);
                world_wait(&op, UNPREPARED);
        }
}

static void put_checkpoint(const char *claims_json) {
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *zero = xasprintf("{\"checksum\":0,\"preparedClaims\":%s,\"nodeBootID\":\"" BOOT "\"}", claims_json);
        _cleanup_(freep) char *text = xasprintf("{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":%lu%s}",
                                                (unsigned long)checkpoint_checksum(str_from(zero)), zero + 13);
        assert_int_equal(file_replace(path, text, strlen(text), 0600, &e), 0);
}

/* As versions before the strict checks recorded them, and without an allocation. */
static void unprepare_of_a_recorded_claim_that_makes_no_sense(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 };
        put_checkpoint("{\"" CLAIM_1 "\":{\"checkpointState\":\"PrepareCompleted\",\"status\":{},\"preparedDevices\":[{\"devices\":[{"
                                     "\"channel\":null,\"daemon\":{\"device\":"
                       "{\"DeviceName\":\"daemon-0\"}}}],\"configState\":{\"Type\":\"daemon\",\"ComputeDomain\":\"../../"
                       "x\"}}],\"name\":\"c1\",\"namespace\":\"user\"},"
                       "\"" CLAIM_2 "\":{\"checkpointState\":\"PrepareStarted\",\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
                                    "\"request\":\"r\",\"driver\":"
                       "\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"daemon-0\"}],\"config\":[{\"source\":\"FromClaim\","
                       "\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                       "\"parameters\":{\"kind\":\"Nonsense\",\"domainID\":\"../x\",\"more\":[]}}}]}}}}}");
        kubelet_unprepare(w.claims, &one, "user", "c1", CLAIM_1);
        world_wait(&one, UNPREPARED);
        assert_false(recorded(CLAIM_1));
        kubelet_unprepare(w.claims, &two, "user", "c2", CLAIM_2);
        world_wait(&two, UNPREPARED);
        assert_int_equal(world_entry(w.claims, CLAIM_2)->state, CHECKPOINT_ABORTED);
}

static void pod_deleted_during_prepare_a_late_success_does_not_take_the_channel(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 }, late = { 0 }, next = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        assert_int_equal(op.answer, FAILED);
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_ABORTED);
        daemon_ready(&lock_fd);
        prepare(&late, "c1", CLAIM_1); /* the same allocation again */
        world_wait(&late, FAILED);
        assert_non_null(strstr(late.msg, "out of date"));
        prepare(&next, "c2", CLAIM_2);
        world_wait(&next, PREPARED);
}

static void another_allocation_of_an_aborted_claim_is_prepared(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 }, again = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        daemon_ready(&lock_fd);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"Single\"");
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

static void claims_whose_object_is_gone_are_unprepared(void **state) {
        (void)state;
        struct dra_op op = { 0 }, two = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        api_remove_claim("user", "c1");
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        sweep_gone_claims(w.claims->sweep);
        world_wait(&two, PREPARED);
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_non_null(world_entry(w.claims, DAEMON_1));
}

/* ---- two plugin processes during an update ---- */

static void other_process_unprepares_what_this_one_waits_for(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 };
        struct claims *other = world_process(BOOT);
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        kubelet_unprepare(other, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        daemon_ready(&lock_fd);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "unprepared while"));
        assert_null(world_cdi(CLAIM_1));
        world_stop(other);
}

static void other_process_frees_the_channel(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 }, gone = { 0 };
        daemon_ready(&lock_fd);
        prepare(&one, "c1", CLAIM_1);
        world_wait(&one, PREPARED);
        struct claims *other = world_process(BOOT);
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        kubelet_unprepare(other, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        world_wait(&two, PREPARED);
        world_stop(other);
}

static void lock_held_by_another_process_delays_and_blocks_nothing_else(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct node_lock *other;
        struct err e;
        daemon_ready(&lock_fd);
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "pu.lock");
        assert_int_equal(node_lock_new(&w.loop, path, &other, &e), 0);
        assert_true(node_lock_try(other));
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_true(claims_stuck(w.claims));
        node_lock_release(other);
        world_wait(&op, PREPARED);
        assert_false(claims_stuck(w.claims));
        node_lock_free(other);
}

/* ---- restarts, reboots, damage ---- */

static void restart_keeps_what_is_prepared(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        world_start(BOOT);
        w.api_down = true;
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_string_equal(again.devices, op.devices);
}

static void restart_while_a_prepare_waits(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        world_stop(w.claims);
        world_start(BOOT);
        prepare(&again, "c1", CLAIM_1);
        daemon_ready(&lock_fd);
        world_wait(&again, PREPARED);
}

static void reboot_forgets_claims_and_their_files(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        world_start("33333333-3333-4333-8333-333333333333");
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
        assert_null(world_cdi(DAEMON_1));
        assert_false(recorded(CLAIM_1));
        assert_int_equal(access(dir, F_OK), -1);
}

static void corrupt_checkpoint_is_set_aside_and_rebuilt_from_cdi_files(void **state) {
        (void)state;
        struct dra_op op = { 0 }, other = { 0 }, gone = { 0 };
        struct err e;
        daemon_ready(&lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        world_stop(w.claims);
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        assert_int_equal(file_replace(path, "{\"checksum\":1,", 14, 0600, &e), 0);
        world_start(BOOT);
        assert_non_null(strstr(w.events, "Node/n0 CheckpointCorrupt"));
        assert_non_null(strstr(w.events, "checkpoint.json.corrupt-"));
        const struct checkpoint_claim *entry = world_entry(w.claims, CLAIM_1);
        assert_string_equal(entry->ns, "user");
        assert_string_equal(entry->name, "c1");
        assert_string_equal(entry->devices[0].domain, DOMAIN_A);
        assert_true(world_entry(w.claims, DAEMON_1)->devices[0].is_daemon);
        assert_true(recorded(CLAIM_1));
        /* The channel is still taken, the daemon still counts, and the claim can be answered again and be unprepared. */
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

static void orphan_files_are_swept_at_the_start(void **state) {
        (void)state;
        struct err e;
        world_stop(w.claims);
        _cleanup_(freep) char *ours = xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM_2 ".yaml", w.cdi_root);
        _cleanup_(freep) char *base = xasprintf("%s/k8s.compute-domain.nvidia.com-device_base.yaml", w.cdi_root);
        assert_int_equal(file_mkdirs(w.cdi_root, 0755, &e), 0);
        assert_int_equal(file_replace(ours, "x", 1, 0600, &e), 0);
        assert_int_equal(file_replace(base, "x", 1, 0600, &e), 0);
        _cleanup_(freep) char *half = xasprintf("%s/.checkpoint.json.tmp.7.1", w.plugin_dir);
        _cleanup_(freep) char *half_cdi = xasprintf("%s/.k8s.compute-domain.nvidia.com-claim_" CLAIM_2 ".yaml.tmp.7.2", w.cdi_root);
        assert_int_equal(file_replace(half, "x", 1, 0600, &e), 0);
        assert_int_equal(file_replace(half_cdi, "x", 1, 0600, &e), 0);
        world_start(BOOT);
        assert_int_equal(access(ours, F_OK), -1);
        assert_int_equal(access(half, F_OK), -1);
        assert_int_equal(access(half_cdi, F_OK), -1);
        assert_int_equal(access(base, F_OK), 0); /* containers of the Go driver may still refer to it */
}

static void full_disk_while_journaling(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        struct rlimit unlimited, small = { 0 };
        daemon_ready(&lock_fd);
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
        small = (struct rlimit){ 16, unlimited.rlim_max };
        prepare(&op, "c1", CLAIM_1);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        world_turn();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
        assert_int_equal(op.answer, FAILED);
        assert_non_null(strstr(op.msg, "record the claims of this node"));
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

/* ---- what it costs ---- */

/* These take the place of the C library's: durability is not to be traded for speed, so it is counted, and each step can fail. */
static unsigned syncs, renames, fail_sync, fail_rename; /* the n-th fails, 0: none */

static bool hit(unsigned *count, unsigned fail, int errnum) {
        errno = errnum;
        return ++*count == fail;
}

int fsync(int fd) {
        return hit(&syncs, fail_sync, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
        return hit(&renames, fail_rename, ENOSPC) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void fail_nth(unsigned sync, unsigned moved) {
        syncs = renames = 0;
        fail_sync = sync;
        fail_rename = moved;
}

/* "name\n" for each file that was moved into place in the two folders since the last call. */
static void moved(int in, struct buf *out) {
        _Alignas(struct inotify_event) char events[16384];
        ssize_t n;
        while ((n = read(in, events, sizeof events)) > 0) {
                for (char *p = events; p < events + n;) {
                        struct inotify_event ev;
                        memcpy(&ev, p, sizeof ev);
                        buf_addf(out, "%s\n", p + sizeof ev);
                        p += sizeof ev + ev.len;
                }
        }
}

static void a_ready_channel_costs_three_durable_writes_and_two_requests(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct buf names = BUF_INIT(4096);
        daemon_ready(&lock_fd);
        world_turn();
        int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(in, w.plugin_dir, IN_MOVED_TO) >= 0);
        assert_true(inotify_add_watch(in, w.cdi_root, IN_MOVED_TO) >= 0);
        unsigned requests = w.requests;
        syncs = 0;
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        moved(in, &names);
        assert_string_equal(buf_str(&names), "checkpoint.json\nk8s.compute-domain.nvidia.com-claim_" CLAIM_1 ".yaml\ncheckpoint.json\n");
        assert_int_equal(syncs, 6); /* each file and its folder */
        assert_int_equal(w.requests - requests, 2); /* the claim, and the domains of its namespace */
        buf_done(&names);
        close(in);
}

static void checkpoint_is_whole(void) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = world_read(path);
        struct checkpoint c = { 0 };
        struct err e;
        assert_int_equal(checkpoint_decode(str_from(text), &c, &e), 0);
        assert_int_equal(HASH_COUNT(c.claims), HASH_COUNT(w.claims->journal.table.claims)); /* and memory agrees with it */
        checkpoint_done(&c);
}

/* Whatever step of a Prepare or an Unprepare fails, the next try finds its way, and nothing is left at the end. */
static void a_failing_disk(bool prepares, unsigned sync, unsigned moved) {
        struct dra_op one = { 0 }, two = { 0 }, three = { 0 }, four = { 0 };
        fail_nth(prepares ? sync : 0, prepares ? moved : 0);
        prepare(&one, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(one.answer, prepares ? FAILED : PREPARED);
        checkpoint_is_whole();
        fail_nth(0, 0);
        prepare(&two, "c1", CLAIM_1);
        world_wait(&two, PREPARED);
        fail_nth(prepares ? 0 : sync, prepares ? 0 : moved);
        kubelet_unprepare(w.claims, &three, "user", "c1", CLAIM_1);
        world_turn();
        assert_int_equal(three.answer, prepares ? UNPREPARED : FAILED);
        checkpoint_is_whole();
        fail_nth(0, 0);
        kubelet_unprepare(w.claims, &four, "user", "c1", CLAIM_1);
        world_wait(&four, UNPREPARED);
        checkpoint_is_whole();
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_null(world_cdi(CLAIM_1));
}

static void each_step_on_the_disk_fails_once(void **state) {
        (void)state;
        daemon_ready(&lock_fd);
        for (unsigned n = 1; n <= 6; n++)
                a_failing_disk(true, n, 0);
        for (unsigned n = 1; n <= 3; n++)
                a_failing_disk(true, 0, n);
        for (unsigned n = 1; n <= 2; n++)
                a_failing_disk(false, n, 0);
        a_failing_disk(false, 0, 1);
}

static void claims_of_one_call_share_the_writes(void **state) {
        (void)state;
        struct dra_op a = { 0 }, b = { 0 };
        struct buf names = BUF_INIT(4096);
        w.facts.fabric = (struct fabric){ .kind = FABRIC_NONE };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
        prepare(&a, "c1", CLAIM_1);
        kubelet_prepare(w.claims, &b, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(a.answer, PREPARED);
        assert_int_equal(b.answer, PREPARED);
        struct dra_op c = { 0 }, d = { 0 };
        int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(in, w.plugin_dir, IN_MOVED_TO) >= 0);
        kubelet_unprepare(w.claims, &c, "user", "c1", CLAIM_1);
        kubelet_unprepare(w.claims, &d, "driver", "daemon-claim", DAEMON_1);
        world_turn();
        assert_int_equal(c.answer, UNPREPARED);
        assert_int_equal(d.answer, UNPREPARED);
        moved(in, &names);
        assert_string_equal(buf_str(&names), "checkpoint.json\n");
        buf_done(&names);
        close(in);
}

/* As from the claim templates of the Go driver, whose claims carry no annotations. */
static void daemon_claim_without_annotations_finds_its_domain(void **state) {
        (void)state;
        struct dra_op op = { 0 }, none = { 0 };
        static const char json[] = "{\"metadata\":{\"name\":\"daemon-claim\",\"namespace\":\"driver\",\"uid\":\"" DAEMON_1
                                   "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{"
                                   "\"devices\":{\"results\":[{\"request\":\"daemon\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":"
                                   "\"n0\",\"device\":\"daemon-0\"}],"
                                   "\"config\":[{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                                   "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\","
                                   "\"kind\":\"" DAEMON "\",\"domainID\":\"" DOMAIN_A "\"}}}]}}}}";
        api_claim_json("driver", "daemon-claim", json);
        api_domain("user", "cd", DOMAIN_A, false);
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(DAEMON_1);
        assert_non_null(strstr(cdi, "\"COMPUTE_DOMAIN_NAME=cd\",\"COMPUTE_DOMAIN_NAMESPACE=user\""));
        struct dra_op gone = { 0 };
        kubelet_unprepare(w.claims, &gone, "driver", "daemon-claim", DAEMON_1);
        world_wait(&gone, UNPREPARED);
        api_remove_domain(DOMAIN_A);
        kubelet_prepare(w.claims, &none, "driver", "daemon-claim", DAEMON_1);
        world_wait(&none, FAILED);
        assert_non_null(strstr(none.msg, DOMAIN_A));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(ready_channel_is_prepared_at_once),
                T(daemon_claim_brings_the_hosts_programs_and_the_domain_folder),
                T(a_waiting_channel_does_not_hold_up_its_own_daemon),
                T(all_channels),
                T(node_without_fabric_runs_the_pod_without_a_channel_and_says_so),
                T(devices_of_other_drivers_in_the_same_claim_are_not_ours),
                T(prepared_claim_is_answered_again_without_the_api_server),
                T(lost_cdi_file_of_a_prepared_claim_is_written_again),
                T(deadline_answers_with_the_daemons_words),
                T(deadline_without_a_daemon_says_that),
                T(deadline_with_the_api_server_away_says_that),
                T(api_version_unknown_at_first),
                T(fabric_registration_that_completes_late),
                T(domain_deleted_while_a_channel_waits),
                T(kubelet_hangs_up),
                T(ready_file_of_a_killed_daemon),
                T(ready_file_of_another_boot),
                T(ready_file_of_an_earlier_daemon_of_the_same_domain),
                T(ready_file_is_removed_before_the_next_daemon_is_prepared),
                T(readiness_withdrawn_under_a_channel_is_an_event),
                T(daemon_that_is_back_at_once_is_no_event),
                T(unknown_field),
                T(wrong_kind),
                T(bad_domain_ids),
                T(unknown_allocation_mode),
                T(domain_of_another_namespace),
                T(domain_that_is_being_deleted),
                T(claim_that_does_not_exist_or_is_another_now),
                T(claim_without_allocation),
                T(device_of_another_node_or_none),
                T(daemon_claim_made_by_hand_in_a_users_namespace),
                T(garbage_in_the_capability_file),
                T(one_bad_configuration_spoils_the_claim_whatever_the_order),
                T(second_claim_for_the_channel_waits_for_the_first),
                T(at_the_deadline_the_holder_is_named),
                T(two_claims_for_the_channel_in_one_call),
                T(admin_access_does_not_take_the_channel),
                T(daemon_of_another_domain_has_not_left_yet),
                T(unprepare_needs_no_api_server_and_no_claim),
                T(unprepare_of_the_unknown_succeeds),
                T(unprepare_of_a_recorded_claim_that_makes_no_sense),
                T(pod_deleted_during_prepare_a_late_success_does_not_take_the_channel),
                T(another_allocation_of_an_aborted_claim_is_prepared),
                T(claims_whose_object_is_gone_are_unprepared),
                T(other_process_unprepares_what_this_one_waits_for),
                T(other_process_frees_the_channel),
                T(lock_held_by_another_process_delays_and_blocks_nothing_else),
                T(restart_keeps_what_is_prepared),
                T(restart_while_a_prepare_waits),
                T(reboot_forgets_claims_and_their_files),
                T(corrupt_checkpoint_is_set_aside_and_rebuilt_from_cdi_files),
                T(orphan_files_are_swept_at_the_start),
                T(full_disk_while_journaling),
                T(a_ready_channel_costs_three_durable_writes_and_two_requests),
                T(each_step_on_the_disk_fails_once),
                T(claims_of_one_call_share_the_writes),
                T(daemon_claim_without_annotations_finds_its_domain),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
