/* SPDX-License-Identifier: Apache-2.0 */
/* The claims' state machine: how it prepares claims, lets them wait and unprepares them. */
#include "world/cd_node.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "cd_plugin/state.h"

#define CDI_1 "k8s.compute-domain.nvidia.com/claim=" CLAIM_1 "-channel-0"

/* ---- preparing ---- */

static void ready_channel_is_prepared_at_once(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=" CDI_1);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, "{\"path\":\"/dev/nvidia-caps-imex-channels/channel0\",\"hostPath\":\"/"
                                    "dev/nvidia-caps-imex-channels/"
                                    "channel0\",\"type\":\"c\","
                                    "\"major\":240,\"fileMode\":438}"));
        assert_true(world_recorded(CLAIM_1));
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_COMPLETED);
}

/* Runtimes bind it into a container in a user namespace, where no process can create one. */
/* failure: a pod has a user namespace -> the host has the device node of its channel [host] */
static void host_has_the_device_node_of_a_prepared_channel(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct stat st;
        struct err e;
        _cleanup_(freep) char *dir = file_join(w.dir, "channel-nodes"), *node = file_join(dir, "channel0");
        if (geteuid() != 0)
                skip(); /* only root may make device nodes */
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        ((struct cd *)w.claims->o.u)->o.channel_nodes = dir;
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        assert_int_equal(stat(node, &st), 0);
        assert_int_equal(st.st_mode, S_IFCHR | 0666);
        assert_int_equal(st.st_rdev, makedev(240, 0));
}

/* Most pods have no user namespace, and need none. */
/* failure: the device node of a channel cannot be created on the host -> the channel is still prepared [host]
 * */
static void channel_is_prepared_where_no_device_node_can_be_made(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        ((struct cd *)w.claims->o.u)->o.channel_nodes = "/nowhere";
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
}

static void a_daemon_claim_mounts_the_hosts_programs_and_the_folder_of_the_domains(void **state) {
        (void)state;
        daemon_ready();
        _cleanup_(freep) char *cdi = world_cdi(DAEMON_1);
        _cleanup_(freep) char *mount =
                xasprintf("{\"hostPath\":\"%s/domains\",\"containerPath\":\"/"
                          "imexd\",\"options\":[\"rw\",\"nosuid\",\"nodev\",\"bind\"]}",
                          w.plugin_dir);
        static const char capability[] = "{\"path\":\"/dev/nvidia-caps/nvidia-cap512\",\"hostPath\":\"/dev/"
                                         "nvidia-caps/nvidia-cap512\","
                                         "\"type\":\"c\",\"major\":241,\"minor\":512,\"fileMode\":438}";
        static const char *const parts[] = {
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

/* failure: a channel waits for its daemon -> the daemon claim is prepared at the same time */
static void a_waiting_channel_does_not_block_its_daemon(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_STARTED);
        assert_true(world_recorded(CLAIM_1));
        daemon_ready();
        world_wait(&op, PREPARED);
}

static void allocation_mode_All_prepares_all_channels(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"All\"");
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(CLAIM_1);
        assert_non_null(strstr(cdi, "/dev/nvidia-caps-imex-channels/channel2047\""));
        assert_null(strstr(cdi, "/dev/nvidia-caps-imex-channels/channel2048\""));
}

/* failure: a node has no partition -> the pod starts without a CDI file, and an Event reports it [host] */
static void without_a_partition_the_pod_runs_without_a_channel_and_an_event_reports_it(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        w.facts.fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_NONE, .reason = "no GPU reports a fabric" };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=");
        assert_null(world_cdi(CLAIM_1));
        assert_non_null(strstr(api.events, "Pod/pod-c1 NoIMEXChannel"));
        assert_non_null(strstr(api.events, "without an IMEX channel"));
}

static const char *channel_claim(const char *meta) {
        static char json[1024];
        snprintf(json, sizeof json,
                 "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                 "\",\"resourceVersion\":\"1\"%s},\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
                 "\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":"
                 "\"channel-0\"}],\"config\":[{\"source\":\"FromClaim\",\"opaque\":{\"driver\":"
                 "\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
                 "\"resource.nvidia.com/v1beta1\",\"kind\":\"" CHANNEL "\",\"domainID\":\"" DOMAIN_A
                 "\"}}}]}}}}",
                 meta);
        return json;
}

/* failure: a claim is not owned by a pod -> an Event reports that all its pods must run on one node */
static void a_claim_that_no_pod_owns_is_reported_as_bound_to_one_node(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim_json("user", "c1", channel_claim(""));
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_non_null(strstr(api.events, "ResourceClaim/c1 SharedOnOneNode"));
        assert_non_null(strstr(api.events, "is on node n0"));
        assert_non_null(strstr(api.events, "use the claim template of ComputeDomain 'cd'"));
}

static void a_claim_of_one_pod_causes_no_event_about_sharing(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim_json("user", "c1", channel_claim(",\"ownerReferences\":[{\"uid\":\"p\"}]"));
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_null(strstr(api.events, "SharedOnOneNode"));
}

/* As kubelets before k/k #140212 do when a pod ends before its own Prepare has finished. */
/* failure: the kubelet unprepares a shared claim under a running pod -> the claim can be prepared again */
static void a_claim_that_is_unprepared_under_a_pod_can_be_prepared_again(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 }, next = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        prepare(&next, "c1", CLAIM_1);
        world_wait(&next, PREPARED);
        assert_string_equal(next.devices, op.devices);
}

/* failure: a claim has devices of several drivers -> the plugin prepares only its own */
static void devices_of_other_drivers_in_the_same_claim_are_ignored(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        api_claim_json(
                "user", "c1",
                "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"gpu-0\"},"
                "{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":"
                "\"channel-0\"}],"
                "\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"gpu."
                "nvidia.com\","
                "\"parameters\":{\"whatever\":1.5}}},"
                "{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                "\"parameters\":{\"apiVersion\":"
                "\"resource.nvidia.com/v1beta1\","
                "\"kind\":\"" CHANNEL "\",\"domainID\":\"" DOMAIN_A "\"}}}]}}}}");
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_string_equal(op.devices, "r/n0/channel-0=" CDI_1);
}

/* failure: the kubelet repeats Prepare of a prepared claim -> it is answered without the API server */
static void prepared_claim_is_answered_again_without_the_api_server(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        api.down = true;
        unsigned before = api.requests;
        struct dra_op again = { 0 };
        prepare(&again, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(again.answer, PREPARED);
        assert_string_equal(again.devices, op.devices);
        assert_int_equal(api.requests, before);
}

static void lost_cdi_file_of_a_prepared_claim_is_written_again(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *path =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_" CLAIM_1 ".yaml", w.cdi_root);
        assert_int_equal(unlink(path), 0);
        /* Even now: a granted channel is not reclaimed. */
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, false, "WAITING_FOR_RECOVERY", &w.lock_fd);
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
        assert_int_equal(access(path, F_OK), 0);
}

/* ---- waiting ---- */

/* failure: a Prepare reaches its deadline -> the error contains the daemon's reason */
static void at_the_deadline_the_error_has_the_daemons_reason(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 400 };
        daemon_ready();
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, false, "WAITING_FOR_RECOVERY", &w.lock_fd);
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_string_equal(op.msg, "n0: IMEX daemon is WAITING_FOR_RECOVERY: two peers are missing");
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_STARTED);
}

static void at_the_deadline_a_missing_daemon_is_reported(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_string_equal(
                op.msg,
                "n0: no IMEX daemon runs on this node yet; if that lasts, check that the Node has the "
                "label resource.nvidia.com/imex-daemon=true, which the controller sets, and look at the "
                "pod of DaemonSet compute-domain-daemon on this node, in the driver's namespace");
}

static void at_the_deadline_an_unreachable_api_server_is_reported(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        api.down = true;
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "API server"));
        assert_false(world_recorded(CLAIM_1));
}

/* One request each, which the client retries by itself; the plugin adds none. */
/* failure: the API server refuses requests -> a waiting Prepare sends no additional requests [api-server] */
static void api_server_that_refuses_gets_no_additional_requests(void **state) {
        (void)state;
        struct dra_op op = { 0 }, late = { .timeout_ms = 100 };
        daemon_ready();
        unsigned requests = api.requests;
        api.refuses = "etcd is asleep";
        prepare(&op, "c1", CLAIM_1);
        for (int i = 0; i < 20; i++)
                world_turn();
        assert_int_equal(op.answer, PENDING);
        /* The claim, then its domain, and the fabric object. */
        assert_int_equal(api.requests - requests, 2);
        prepare(&late, "c2", CLAIM_2);
        world_wait(&late, FAILED);
        assert_non_null(strstr(late.msg, "etcd is asleep"));
        api.refuses = NULL;
        world_wait(&op, PREPARED);
}

/* failure: the GPUs register with the fabric late -> a waiting Prepare succeeds at once when they have
 * registered [host] */
static void a_late_fabric_registration_ends_the_wait(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        struct facts good = w.facts;
        daemon_ready();
        w.facts = (struct facts){ .known = true,
                                  .reason = "FabricRegistering",
                                  .message = "GPU x: its fabric registration is in progress" };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        assert_true(w.hurried);
        w.facts = good;
        world_facts();
        world_wait(&op, PREPARED);
        assert_false(w.hurried);
}

/* failure: a ComputeDomain is deleted while a claim waits -> the Prepare fails with that reason */
static void a_waiting_claim_fails_when_its_domain_is_deleted(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        struct op *waiting = TAILQ_FIRST(&w.claims->ops);
        waits_investigate(waiting); /* as the timer does after five seconds */
        world_turn();
        assert_int_equal(op.answer, PENDING);
        api_remove_domain(DOMAIN_A);
        world_wait(&op, FAILED);
        assert_non_null(strstr(op.msg, "has been deleted"));
}

/* The watch was started for another claim, before the domain was created, and has been stale since. */
/* failure: the watch of ComputeDomains lags -> the plugin asks the API server before it fails a Prepare
 * [api-server] */
static void a_watch_that_does_not_show_the_domain_proves_nothing(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        informers_lag = true;
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        unsigned requests = api.requests;
        waits_investigate(TAILQ_FIRST(&w.claims->ops));
        for (unsigned i = 0; i < 500 && api.requests == requests; i++)
                world_turn();
        world_turn();
        assert_true(api.requests > requests); /* a read from etcd */
        assert_int_equal(op.answer, PENDING);
        daemon_ready();
        world_wait(&op, PREPARED);
}

static void a_cancelled_prepare_is_not_answered(void **state) {
        (void)state;
        struct dra_op op = { 0 }, again = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        claims_cancelled(w.claims, &op, op.data);
        op.answer = CANCELLED; /* an answer after this would fail the test */
        prepare(&again, "c1", CLAIM_1);
        daemon_ready();
        world_wait(&again, PREPARED);
}

/* As with the claim templates of the Go driver: its claims have no annotations. */
static void daemon_claim_without_annotations_finds_its_domain(void **state) {
        (void)state;
        struct dra_op op = { 0 }, none = { 0 };
        static const char json[] =
                "{\"metadata\":{\"name\":\"go-claim\",\"namespace\":\"driver\",\"uid\":\"" GO_DAEMON
                "\",\"resourceVersion\":\"1\"},\"status\":{\"allocation\":{"
                "\"devices\":{\"results\":[{\"request\":\"daemon\",\"driver\":\"compute-domain.nvidia.com\","
                "\"pool\":"
                "\"n0\",\"device\":\"daemon-0\"}],"
                "\"config\":[{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/v1beta1\","
                "\"kind\":\"" DAEMON "\",\"domainID\":\"" DOMAIN_A "\"}}}]}}}}";
        api_claim_json("driver", "go-claim", json);
        api_domain("user", "cd", DOMAIN_A, false);
        kubelet_prepare(w.claims, &op, "driver", "go-claim", GO_DAEMON);
        world_wait(&op, PREPARED);
        _cleanup_(freep) char *cdi = world_cdi(GO_DAEMON);
        assert_non_null(strstr(cdi, "\"COMPUTE_DOMAIN_NAME=cd\",\"COMPUTE_DOMAIN_NAMESPACE=user\""));
        struct dra_op gone = { 0 };
        kubelet_unprepare(w.claims, &gone, "driver", "go-claim", GO_DAEMON);
        world_wait(&gone, UNPREPARED);
        api_remove_domain(DOMAIN_A);
        kubelet_prepare(w.claims, &none, "driver", "go-claim", GO_DAEMON);
        world_wait(&none, FAILED);
        assert_non_null(strstr(none.msg, DOMAIN_A));
}

/* failure: the GPUs never register with the fabric -> Prepare fails at its deadline with that reason [host]
 * */
static void fabric_registration_that_never_completes_is_named_at_the_deadline(void **state) {
        (void)state;
        struct dra_op op = { .timeout_ms = 200 };
        daemon_ready();
        w.facts = (struct facts){ .known = true,
                                  .reason = "FabricRegistering",
                                  .message = "GPU x: its fabric registration is in progress" };
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, FAILED);
        assert_string_equal(op.msg, "n0: GPU x: its fabric registration is in progress");
        assert_null(world_cdi(CLAIM_1));
}

/* failure: the API server's cache lacks a new ComputeDomain -> the plugin reads it from etcd [api-server] */
static void a_domain_newer_than_the_cache_of_the_api_server_is_found(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        daemon_ready();
        api.old_cache = true;
        unsigned requests = api.requests;
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        /* The claim and the fabric object; the domain is read from etcd. */
        assert_int_equal(api.requests - requests, 3);
        assert_int_equal(api.lists, 0);
}

/* The claim's annotation with its domain's name; NULL: none, as with an older template. */
static void claim_with_hint(const char *hint) {
        _cleanup_(freep) char *annotations =
                hint ? xasprintf(",\"annotations\":{\"resource.nvidia.com/computeDomain.name\":\"%s\"}", hint)
                     : xstrdup("");
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"c1\",\"namespace\":\"user\",\"uid\":\"" CLAIM_1
                "\",\"resourceVersion\":\"1\"%s},\"status\":{\"allocation\":{\"devices\":{\"results\":["
                "{\"request\":\"r\",\"driver\":\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":"
                "\"channel-0\"}],\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"r\"],\"opaque\":{"
                "\"driver\":\"compute-domain.nvidia.com\",\"parameters\":{\"apiVersion\":"
                "\"resource.nvidia.com/v1beta1\",\"kind\":\"" CHANNEL "\",\"domainID\":\"" DOMAIN_A
                "\"}}}]}}}}",
                annotations);
        api_claim_json("user", "c1", json);
}

/* Users can write annotations, too: a name counts only with the UID of the claim's configuration. */
/* failure: a claim's annotation names another ComputeDomain -> only the UID in the claim's configuration
 * counts [tenants] */
static void the_name_of_the_domain_is_only_a_hint(void **state) {
        static const struct {
                const char *hint;
                unsigned requests, lists;
        } rows[] = {
                { "cd", 3, 0 },      { NULL, 3, 1 }, { "other", 4, 1 }, { "no-such-domain", 4, 1 },
                { "../pods", 3, 1 }, { "", 3, 1 },
        };
        daemon_ready();
        api_domain("user", "other", DOMAIN_B, false);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct dra_op op = { 0 }, un = { 0 };
                claim_with_hint(rows[i].hint);
                unsigned requests = api.requests, lists = api.lists;
                prepare(&op, "c1", CLAIM_1);
                world_wait(&op, PREPARED);
                assert_int_equal(api.requests - requests, rows[i].requests);
                assert_int_equal(api.lists - lists, rows[i].lists);
                kubelet_unprepare(w.claims, &un, "user", "c1", CLAIM_1);
                world_wait(&un, UNPREPARED);
        }
}

/* With a role of an older chart, which allows only lists. */
/* failure: an older role does not allow get of ComputeDomains -> the plugin finds the ComputeDomain by a list
 * [upgrade] */
static void domain_that_may_not_be_read_by_its_name_is_found_in_the_list(void **state) {
        struct dra_op op = { 0 };
        daemon_ready();
        api.fails_for = "cd";
        api.fails_with = ERR_DENIED;
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        assert_int_equal(api.lists, 1);
}

/* failure: the API server is down during Prepare -> Prepare waits and then succeeds, and Unprepare succeeds
 * at once [api-server] */
static void prepare_survives_an_outage_of_the_api_server(void **state) {
        (void)state;
        struct dra_op op = { 0 }, unprepared = { 0 };
        daemon_ready();
        api.down = true;
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        assert_int_equal(op.answer, PENDING);
        api.down = false;
        world_wait(&op, PREPARED);
        api.down = true;
        kubelet_unprepare(w.claims, &unprepared, "user", "c1", CLAIM_1);
        world_wait(&unprepared, UNPREPARED);
}

/* ---- unpreparing ---- */

/* failure: the claim no longer exists or the API server is down -> Unprepare succeeds */
static void unprepare_needs_no_api_server_and_no_claim(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 }, daemon_gone = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        api.down = true;
        api_remove_claim("user", "c1");
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        assert_null(world_cdi(CLAIM_1));
        assert_false(world_recorded(CLAIM_1));
        daemon_dies();
        kubelet_unprepare(w.claims, &daemon_gone, "driver", "daemon-claim", DAEMON_1);
        world_wait(&daemon_gone, UNPREPARED);
        assert_null(world_cdi(DAEMON_1));
        assert_null(world_entry(w.claims, DAEMON_1));
}

static void unprepare_of_an_unknown_claim_succeeds(void **state) {
        (void)state;
        static const char *const uids[] = { CLAIM_2, "../../etc/passwd", "not a uid", "x" };
        for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
                struct dra_op op = { 0 };
                kubelet_unprepare(w.claims, &op, "user", "x", uids[i]);
                world_wait(&op, UNPREPARED);
        }
}

/* A pod was force-deleted: the next one of its DaemonSet is prepared before the kubelet unprepares the first.
 */
/* failure: a force-deleted daemon is unprepared after its successor was prepared -> the shared folder remains
 * [go] */
static void the_folder_stays_when_an_earlier_daemon_is_unprepared_late(void **state) {
        (void)state;
        static const char second[] = "d0000000-0000-4000-8000-000000000002";
        struct dra_op op = { 0 }, gone = { 0 }, last = { 0 };
        _cleanup_(freep) char *dir = xasprintf("%s/domains/" DOMAIN_A, w.plugin_dir);
        go_comes();
        api_claim("driver", "second", second, "daemon-0", DAEMON, DOMAIN_A, "");
        kubelet_prepare(w.claims, &op, "driver", "second", second);
        world_turn();
        kubelet_unprepare(w.claims, &gone, "driver", "go-claim", GO_DAEMON);
        world_wait(&gone, UNPREPARED);
        world_wait(&op, PREPARED);
        assert_int_equal(access(dir, F_OK), 0);
        kubelet_unprepare(w.claims, &last, "driver", "second", second);
        world_wait(&last, UNPREPARED);
        assert_int_equal(access(dir, F_OK), -1);
}

static bool aborted(const char *uid) {
        const struct checkpoint_claim *entry = world_entry(w.claims, uid);
        return entry && entry->state == CHECKPOINT_ABORTED;
}

/* They only prevent the success of a late request of the kubelet. Entries without a time are of a version
 * that wrote none. */
/* failure: a Prepare was aborted -> its checkpoint entry expires */
static void aborted_claims_expire(void **state) {
        (void)state;
        struct dra_op op = { 0 };
        time_t now = time(NULL), times[] = { now, now - 1000, now + 1000 };
        char text[3][32];
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
                strftime(text[i], sizeof text[i], "%Y-%m-%dT%H:%M:%SZ", gmtime(&times[i]));
        _cleanup_(freep) char *json = xasprintf(
                "{\"fresh\":{\"checkpointState\":\"PrepareAborted\",\"status\":{},\"abortedAt\":\"%s\"},"
                "\"old\":{\"checkpointState\":\"PrepareAborted\",\"status\":{},\"abortedAt\":\"%s\"},"
                "\"timeless\":{\"checkpointState\":\"PrepareAborted\",\"status\":{}},"
                "\"unborn\":{\"checkpointState\":\"PrepareAborted\",\"status\":{},\"abortedAt\":\"%s\"}}",
                text[0], text[1], text[2]);
        world_put_checkpoint(json);
        kubelet_unprepare(w.claims, &op, "user", "x", CLAIM_2); /* any operation */
        world_wait(&op, UNPREPARED);
        assert_true(aborted("fresh"));
        assert_null(world_entry(w.claims, "old"));
        assert_null(world_entry(w.claims, "timeless"));
        assert_null(world_entry(w.claims, "unborn"));
        assert_false(world_recorded("old"));
}

/* As recorded by versions before the strict checks, and without an allocation. */
/* failure: a recorded configuration would be refused today -> the claim can still be unprepared */
static void a_recorded_claim_with_an_invalid_configuration_is_unprepared(void **state) {
        (void)state;
        struct dra_op one = { 0 }, two = { 0 };
        world_put_checkpoint(
                "{\"" CLAIM_1 "\":{\"checkpointState\":\"PrepareCompleted\",\"status\":{},"
                "\"preparedDevices\":[{\"devices\":[{"
                "\"channel\":null,\"daemon\":{\"device\":"
                "{\"DeviceName\":\"daemon-0\"}}}],\"configState\":{\"Type\":\"daemon\",\"ComputeDomain\":\".."
                "/../"
                "x\"}}],\"name\":\"c1\",\"namespace\":\"user\"},"
                "\"" CLAIM_2 "\":{\"checkpointState\":\"PrepareStarted\",\"status\":{\"allocation\":{"
                "\"devices\":{\"results\":[{"
                "\"request\":\"r\",\"driver\":"
                "\"compute-domain.nvidia.com\",\"pool\":\"n0\",\"device\":\"daemon-0\"}],\"config\":[{"
                "\"source\":\"FromClaim\","
                "\"opaque\":{\"driver\":\"compute-domain.nvidia.com\","
                "\"parameters\":{\"kind\":\"Nonsense\",\"domainID\":\"../x\",\"more\":[]}}}]}}}}}");
        kubelet_unprepare(w.claims, &one, "user", "c1", CLAIM_1);
        world_wait(&one, UNPREPARED);
        assert_false(world_recorded(CLAIM_1));
        kubelet_unprepare(w.claims, &two, "user", "c2", CLAIM_2);
        world_wait(&two, UNPREPARED);
        assert_int_equal(world_entry(w.claims, CLAIM_2)->state, CHECKPOINT_ABORTED);
}

/* failure: a pod is deleted during Prepare -> a late Prepare fails, and the channel is free */
static void a_prepare_after_its_unprepare_does_not_take_the_channel(void **state) {
        (void)state;
        struct dra_op op = { 0 }, gone = { 0 }, late = { 0 }, next = { 0 };
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        kubelet_unprepare(w.claims, &gone, "user", "c1", CLAIM_1);
        world_wait(&gone, UNPREPARED);
        assert_int_equal(op.answer, FAILED);
        assert_int_equal(world_entry(w.claims, CLAIM_1)->state, CHECKPOINT_ABORTED);
        daemon_ready();
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
        daemon_ready();
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, ",\"allocationMode\":\"Single\"");
        prepare(&again, "c1", CLAIM_1);
        world_wait(&again, PREPARED);
}

/* failure: pod and claim are deleted before Prepare completed -> the entry is unprepared and removed */
static void claims_without_an_object_are_unprepared(void **state) {
        (void)state;
        struct dra_op op = { 0 }, two = { 0 };
        daemon_ready();
        prepare(&op, "c1", CLAIM_1);
        world_wait(&op, PREPARED);
        api_remove_claim("user", "c1");
        prepare(&two, "c2", CLAIM_2);
        world_turn();
        assert_int_equal(two.answer, PENDING);
        claim_gc_deleted_claims(w.claims->claim_gc, uv_now(&w.loop));
        world_turn();
        claim_gc_deleted_claims(w.claims->claim_gc, uv_now(&w.loop) + CLAIM_GC_APART_MS);
        world_wait(&two, PREPARED);
        assert_null(world_entry(w.claims, CLAIM_1));
        assert_non_null(world_entry(w.claims, DAEMON_1));
}

static void series(const char *line) {
        struct buf out = BUF_INIT(1 << 20);
        metrics_render(w.metrics.node.registry, &out);
        if (!strstr(buf_str(&out), line))
                fail_msg("%s is not in\n%s", line, buf_str(&out));
        buf_done(&out);
}

/* Dashboards of the Go driver expect attempts. The time that a pod waited has separate metrics. */
/* failure: a Prepare waits -> the Go driver's metrics do not count the wait as an attempt [go] */
static void waiting_is_not_counted_as_an_attempt(void **state) {
        (void)state;
        struct dra_op op = { 0 };
#define SERIES(name, value)                                                                                  \
        series("nvidia_dra_" name "{driver=\"" CD_DRIVER "\",operation=\"prepare\"} " value "\n")
        prepare(&op, "c1", CLAIM_1);
        world_turn();
        SERIES("requests_inflight", "0");
        SERIES("compute_domain_claims_pending", "1");
        series("error_type=\"prepare_devices\"} 1\n");
        daemon_ready();
        world_wait(&op, PREPARED);
        SERIES("requests_inflight", "0");
        SERIES("compute_domain_claims_pending", "0");
        SERIES("requests_total", "2"); /* the daemon's claim and this one */
        SERIES("request_duration_seconds_count", "2");
        SERIES("compute_domain_claim_seconds_count", "2");
        SERIES("compute_domain_claim_failures_total", "0");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup_claims, world_teardown)
        const struct CMUnitTest tests[] = {
                T(ready_channel_is_prepared_at_once),
                T(host_has_the_device_node_of_a_prepared_channel),
                T(channel_is_prepared_where_no_device_node_can_be_made),
                T(waiting_is_not_counted_as_an_attempt),
                T(a_daemon_claim_mounts_the_hosts_programs_and_the_folder_of_the_domains),
                T(a_waiting_channel_does_not_block_its_daemon),
                T(allocation_mode_All_prepares_all_channels),
                T(without_a_partition_the_pod_runs_without_a_channel_and_an_event_reports_it),
                T(a_claim_that_no_pod_owns_is_reported_as_bound_to_one_node),
                T(a_claim_of_one_pod_causes_no_event_about_sharing),
                T(a_claim_that_is_unprepared_under_a_pod_can_be_prepared_again),
                T(devices_of_other_drivers_in_the_same_claim_are_ignored),
                T(prepared_claim_is_answered_again_without_the_api_server),
                T(lost_cdi_file_of_a_prepared_claim_is_written_again),
                T(at_the_deadline_the_error_has_the_daemons_reason),
                T(at_the_deadline_a_missing_daemon_is_reported),
                T(at_the_deadline_an_unreachable_api_server_is_reported),
                T(api_server_that_refuses_gets_no_additional_requests),
                T(a_late_fabric_registration_ends_the_wait),
                T(a_waiting_claim_fails_when_its_domain_is_deleted),
                T(a_watch_that_does_not_show_the_domain_proves_nothing),
                T(a_cancelled_prepare_is_not_answered),
                T(fabric_registration_that_never_completes_is_named_at_the_deadline),
                T(a_domain_newer_than_the_cache_of_the_api_server_is_found),
                T(the_name_of_the_domain_is_only_a_hint),
                T(domain_that_may_not_be_read_by_its_name_is_found_in_the_list),
                T(prepare_survives_an_outage_of_the_api_server),
                T(the_folder_stays_when_an_earlier_daemon_is_unprepared_late),
                T(aborted_claims_expire),
                T(unprepare_needs_no_api_server_and_no_claim),
                T(unprepare_of_an_unknown_claim_succeeds),
                T(a_recorded_claim_with_an_invalid_configuration_is_unprepared),
                T(a_prepare_after_its_unprepare_does_not_take_the_channel),
                T(another_allocation_of_an_aborted_claim_is_prepared),
                T(claims_without_an_object_are_unprepared),
                T(daemon_claim_without_annotations_finds_its_domain),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
