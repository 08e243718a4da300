/* SPDX-License-Identifier: Apache-2.0 */
/* The program on its own node, with an API server whose answers the test chooses:
 * test_program PROGRAM STANDIN DRA_CALL HOOK */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/http_client.h"
#include "world.h"

static struct world_files files;

static int setup(void **state) {
        *state = world_new(&files);
        return 0;
}

static int teardown(void **state) {
        world_free(*state);
        return 0;
}

/* ---- tests ---- */

static void a_node_offers_its_gpus_and_their_changes(void **state) {
        struct world *w = *state;
        world_start(w, NULL);
        UNTIL(w, w->writes == 1);
        assert_true(world_offers(w, "gpu-0") && world_offers(w, "gpu-1"));
        assert_non_null(strstr(buf_str(&w->slice), "\"generateName\":\"00000-gpu.nvidia.com-n0-\""));
        assert_non_null(strstr(buf_str(&w->slice), "\"productName\":{\"string\":\"NVIDIA GB200\"}"));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
        assert_int_equal(w->writes, 1);
        /* The next process does not change the slice, and another driver has another version. */
        world_start(w, NULL);
        run_for(&w->loop, 1500);
        assert_int_equal(w->writes, 1);
        world_end(w);
        world_conf(w, "GPU_COUNT=2\nGPU1_MIG=\"3g@0 1g@4\"\nDRIVER_VERSION=590.1.01\n");
        world_start(w, NULL);
        UNTIL(w, w->writes == 2);
        assert_true(world_offers(w, "gpu-0") && !world_offers(w, "gpu-1"));
        assert_true(world_offers(w, "gpu-1-mig-3g93gb-9-0") && world_offers(w, "gpu-1-mig-1g23gb-19-4"));
        assert_non_null(strstr(buf_str(&w->slice), "\"driverVersion\":{\"version\":\"590.1.1\"}"));
        world_end(w);
}

/* failure: a node has no driver -> an Event reports it, and the kubelet is served */
static void a_node_without_driver_reports_it_and_serves_the_kubelet(void **state) {
        struct world *w = *state;
        world_conf(w, "INIT_ERROR=9\n");
        world_start(w, NULL);
        UNTIL(w, w->writes == 1 && w->events);
        assert_non_null(strstr(buf_str(&w->slice), "\"devices\":[]"));
        assert_non_null(strstr(w->event, "GPUDevicesWithheld"));
        assert_non_null(strstr(w->event, "nvmlInit: NVML error 9 (Driver Not Loaded)"));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
        assert_int_equal(w->exit_status, 0);
}

/* failure: NVML hangs while a claim is unprepared -> the claim is unprepared */
static void a_claim_is_prepared_with_our_hook_and_unprepared(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *cdi = xasprintf("%s/cdi/k8s.gpu.nvidia.com-claim_" CLAIM_UID ".yaml", w->dir);
        _cleanup_(freep) char *text = NULL;
        struct err e;
        world_put_node(w, "root/dev/nvidia0", 0);
        world_put_node(w, "root/dev/nvidia1", 1);
        world_put_node(w, "root/dev/nvidiactl", 255);
        world_start(w, NULL);
        UNTIL(w, w->writes == 1);
        struct answer a = world_ask(w, "prepare");
        if (a.status != 0)
                fail_msg("%s\n%s", a.text, buf_str(&w->says));
        if (file_read(cdi, 1 << 20, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        assert_non_null(strstr(text, "/dev/nvidia0"));
        assert_null(strstr(text, "/dev/nvidia1\""));
        _cleanup_(freep) char *copy = xasprintf("%s/plugins/gpu.nvidia.com/cdi-hook-", w->dir);
        assert_non_null(strstr(text, copy));
        /* Unprepare does not wait for the query of the GPUs. */
        world_conf(w, "HANG=1\n");
        tree_put(w->dir, "root/proc/driver/nvidia/gpus/1/information", "");
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        assert_int_equal(access(cdi, F_OK), -1);
        world_end(w);
}

/* failure: the kernel does not support the hook -> the node offers no GPU and names the call */
static void a_node_on_which_the_hook_fails_offers_no_gpu_and_names_the_call(void **state) {
        struct world *w = *state;
        tree_put(w->dir, "bin/cdi-hook",
                 "#!/bin/sh\necho 'cdi-hook: fsopen of tmpfs: Function not implemented' >&2\nexit 1\n");
        world_put_node(w, "root/dev/nvidia0", 0);
        world_start(w, NULL);
        UNTIL(w, w->writes == 1 && w->events == 1);
        assert_non_null(strstr(buf_str(&w->slice), "\"devices\":[]"));
        assert_non_null(strstr(w->event, "HookFailsSelfTest"));
        assert_non_null(strstr(w->event, "fsopen of tmpfs: Function not implemented"));
        w->dra_timeout = "2S"; /* it is answered just before */
        struct answer a = world_ask(w, "prepare");
        w->dra_timeout = NULL;
        assert_int_not_equal(a.status, 0);
        assert_non_null(strstr(a.text, "fsopen of tmpfs: Function not implemented"));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
        assert_int_equal(w->exit_status, 0);
}

/* failure: the hook cannot be installed -> the node offers no GPU, and an Event reports why */
static void a_node_on_which_the_hook_cannot_be_installed_offers_no_gpu(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *hook = world_path(w, "bin/cdi-hook");
        assert_int_equal(unlink(hook), 0);
        world_start(w, NULL);
        UNTIL(w, w->writes == 1);
        assert_non_null(strstr(buf_str(&w->slice), "\"devices\":[]"));
        UNTIL(w, w->events == 1);
        assert_non_null(strstr(w->event, "HookFailsSelfTest"));
        assert_non_null(strstr(w->event, "/bin/cdi-hook"));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
}

/* A driver container's root does not have the host's hook. */
/* failure: the configured hook is only in a driver container -> it is searched on the host and reported
 * missing */
static void a_configured_hook_is_searched_on_the_host(void **state) {
        struct world *w = *state;
        tree_put(w->dir, "host/etc/os-release", "");
        tree_put(w->dir, "root/usr/bin/nvidia-cdi-hook", "");
        world_put_node(w, "root/dev/nvidia0", 0);
        world_start(w, "--nvidia-cdi-hook-path=/usr/bin/nvidia-cdi-hook");
        UNTIL(w, w->writes == 1 && w->events == 1);
        assert_non_null(strstr(buf_str(&w->slice), "\"devices\":[]"));
        assert_non_null(strstr(w->event, "HookFailsSelfTest"));
        assert_non_null(strstr(w->event, "'/usr/bin/nvidia-cdi-hook' cannot be run"));
        world_end(w);
}

static unsigned sessions(const struct world *w) {
        _cleanup_(freep) char *path = file_join(w->dir, "root/usr/lib64/libnvidia-ml.sessions"), *text = NULL;
        unsigned n = 0;
        struct err e;
        assert_int_equal(file_read(path, 1 << 20, &text, NULL, &e), 0);
        for (const char *p = text; (p = strstr(p, "begin")); p++)
                n++;
        return n;
}

static void watching(struct world *w, unsigned writes) {
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.sessions", "");
        world_start(w, "--feature-gates=NVMLDeviceHealthCheck=true");
        UNTIL(w, w->writes == writes && sessions(w) == 2);
        run_for(&w->loop, 200); /* it has begun to watch */
}

/* failure: a GPU reports an XID -> it is tainted if the feature gate is on */
static void a_gpu_that_reports_an_xid_is_tainted_with_the_gate_only(void **state) {
        struct world *w = *state;
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.sessions", "");
        world_start(w, "--feature-gates=NVMLDeviceHealthCheck=true");
        UNTIL(w, w->writes == 1 && sessions(w) == 2); /* one for the query, and one for the watch */
        assert_null(strstr(buf_str(&w->slice), "taints"));
        run_for(&w->loop, 200); /* it has begun to watch */
        world_happens(w, "1 xid 31\n");
        UNTIL(w, w->writes == 2);
        assert_non_null(strstr(buf_str(&w->slice),
                               "{\"key\":\"gpu.nvidia.com/xid\",\"value\":\"31\",\"effect\":\"None\"}"));
        world_happens(w, "1 xid 79\n");
        UNTIL(w, w->writes == 3 && w->events);
        assert_non_null(strstr(buf_str(&w->slice), "{\"key\":\"gpu.nvidia.com/xid\",\"value\":\"79\","
                                                   "\"effect\":\"NoSchedule\"}"));
        assert_non_null(strstr(w->event, "gpu-1"));
        assert_non_null(strstr(w->event, "reports XID 79"));
        /* The next published slice has the taint, too. */
        world_conf(w, "GPU_COUNT=3\n");
        tree_put(w->dir, "root/proc/driver/nvidia/gpus/2/information", "");
        assert_int_equal(world_ask(w, "prepare").status, 0); /* checks the GPUs */
        UNTIL(w, world_offers(w, "gpu-2"));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        assert_non_null(strstr(buf_str(&w->slice), "\"value\":\"79\""));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
        /* Without the gate no session stays open. */
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.sessions", "");
        buf_clear(&w->says);
        world_start(w, "--additional-xids-to-ignore=63");
        UNTIL(w, strstr(buf_str(&w->says), "--additional-xids-to-ignore has no effect") &&
                         strstr(buf_str(&w->says), "this node offers its GPUs"));
        /* A flag without an effect is logged, too. */
        assert_non_null(strstr(buf_str(&w->says), "these flags have no effect"));
        assert_non_null(strstr(buf_str(&w->says), "flags=\"--image-name\""));
        run_for(&w->loop, 300);
        assert_int_equal(sessions(w), 1);
        world_end(w);
}

/* failure: a pod starts before the GPUs are watched -> its Prepare waits for the watch */
static void no_pod_starts_before_the_gpus_are_watched(void **state) {
        struct world *w = *state;
        world_conf(w, "GPU_COUNT=2\nGPU1_SLEEP_MS_nvmlDeviceRegisterEvents=1500\n");
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        world_start(w, "--feature-gates=NVMLDeviceHealthCheck=true");
        UNTIL(w, w->writes == 1);
        assert_int_equal(world_ask(w, "prepare").status, 0);
        world_happens(w, "1 xid 79\n");
        UNTIL(w, w->writes == 2);
        assert_non_null(strstr(buf_str(&w->slice), "\"value\":\"79\""));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
}

/* failure: the driver is removed and returns -> a Prepare waits until the GPUs are watched again */
static void no_pod_starts_before_the_gpus_of_a_returned_driver_are_watched(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *library = world_path(w, "root/usr/lib64/libnvidia-ml.so.1");
        struct answer a = { 0 };
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        watching(w, 1);
        assert_int_equal(unlink(library), 0);
        world_send(w, "prepare", "c", CLAIM_UID, &a); /* checks the GPUs */
        UNTIL(w, !world_offers(w, "gpu-0"));
        world_conf(w, "GPU_COUNT=2\nGPU1_SLEEP_MS_nvmlDeviceRegisterEvents=1500\n");
        world_put_copy(w, w->files.standin, "root/usr/lib64/libnvidia-ml.so.1");
        UNTIL(w, a.come);
        assert_int_equal(a.status, 0);
        world_happens(w, "1 xid 79\n");
        UNTIL(w, strstr(buf_str(&w->slice), "\"value\":\"79\""));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
}

/* failure: all GPUs of a node are lost and their health is monitored -> a claim is refused at once */
static void a_claim_of_a_monitored_node_without_gpus_is_refused(void **state) {
        struct world *w = *state;
        world_conf(w, "GPU_COUNT=1\nGPU0_FAIL_nvmlDeviceGetHandleByIndex=15\n");
        world_start(w, "--feature-gates=NVMLDeviceHealthCheck=true");
        UNTIL(w, w->writes == 1);
        w->dra_timeout = "2S"; /* a Prepare that waits is answered just before */
        struct answer a = world_ask(w, "prepare");
        w->dra_timeout = NULL;
        assert_int_not_equal(a.status, 0);
        assert_non_null(strstr(a.text, "allocatable not found for device"));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
}

/* failure: MIG mode is enabled and nothing else changes -> Prepare of the GPU fails, and it is withdrawn */
static void a_gpu_whose_mig_mode_was_enabled_is_refused_and_withdrawn(void **state) {
        struct world *w = *state;
        world_start(w, NULL);
        UNTIL(w, w->writes == 1);
        world_conf(w, "GPU_COUNT=2\nGPU0_MIG_MODE=1\n");
        struct answer a = world_ask(w, "prepare");
        assert_int_not_equal(a.status, 0);
        assert_non_null(strstr(a.text, "it is in MIG mode and has no MIG devices"));
        UNTIL(w, !world_offers(w, "gpu-0"));
        assert_non_null(strstr(buf_str(&w->says), "this device is not offered"));
        assert_true(world_offers(w, "gpu-1"));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
        assert_int_equal(w->exit_status, 0);
}

/* failure: a GPU falls off the bus and nothing else changes -> its next Prepare fails, and it is withdrawn */
static void a_lost_gpu_is_refused_and_withdrawn(void **state) {
        struct world *w = *state;
        world_start(w, NULL);
        UNTIL(w, w->writes == 1);
        world_conf(w, "GPU_COUNT=2\nGPU0_FAIL_nvmlDeviceGetHandleByIndex=15\n");
        struct answer a = world_ask(w, "prepare");
        assert_int_not_equal(a.status, 0);
        assert_non_null(strstr(a.text, "GPU 0: nvmlDeviceGetHandleByIndex"));
        UNTIL(w, !world_offers(w, "gpu-0"));
        assert_true(world_offers(w, "gpu-1"));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
        assert_int_equal(w->exit_status, 0);
}

/* failure: NVML cannot watch a GPU that was offered, and fails for it -> the GPU is withdrawn */
static void a_gpu_that_fails_under_the_watch_is_withdrawn(void **state) {
        struct world *w = *state;
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        watching(w, 1);
        world_conf(w, "GPU_COUNT=2\nGPU1_FAIL_nvmlDeviceGetHandleByIndex=16\n");
        world_happens(w, "error 999\n");
        UNTIL(w, !world_offers(w, "gpu-1"));
        assert_true(world_offers(w, "gpu-0"));
        world_end(w);
}

/* failure: NVML prints why it fails -> the text is in the log */
static void output_of_nvml_is_in_the_log(void **state) {
        struct world *w = *state;
        world_conf(w, "GPU_COUNT=2\nPRINT=\"Driver/library version mismatch\"\n");
        world_start(w, NULL);
        UNTIL(w, strstr(buf_str(&w->says), "text=\"Driver/library version mismatch\""));
        assert_non_null(w->plugin);
        world_end(w);
}

#define XID_79 "\"value\":\"79\""
#define CLEAR "gpu.nvidia.com/clear-xids"

/* failure: plugin, kubelet and slice are replaced -> an XID's taint stays until a reboot or an annotation */
static void a_taint_outlives_process_and_slice_until_a_reboot_or_an_annotation(void **state) {
        struct world *w = *state;
        struct err e;
        size_t n;
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        watching(w, 1);
        world_happens(w, "1 xid 79\n");
        UNTIL(w, w->writes == 2);
        world_end(w);
        /* The next process does not change the slice. */
        watching(w, 2);
        run_for(&w->loop, 500);
        assert_int_equal(w->writes, 2);
        /* A kubelet that starts deletes slices, with or without a running plugin. */
        world_delete_slice(w);
        UNTIL(w, world_offers(w, "gpu-1"));
        assert_non_null(strstr(buf_str(&w->slice), XID_79));
        world_end(w);
        buf_clear(&w->slice);
        watching(w, 4);
        assert_non_null(strstr(buf_str(&w->slice), XID_79));
        /* An administrator clears the XID. */
        world_annotate_slice(w, CLEAR);
        UNTIL(w, !strstr(buf_str(&w->slice), "taints") && !strstr(buf_str(&w->slice), CLEAR));
        assert_true(world_offers(w, "gpu-1"));
        world_happens(w, "1 xid 79\n");
        UNTIL(w, strstr(buf_str(&w->slice), XID_79));
        world_end(w);
        /* And while the plugin is down. */
        world_annotate_slice(w, CLEAR);
        watching(w, w->writes + 1);
        assert_null(strstr(buf_str(&w->slice), "taints"));
        assert_null(strstr(buf_str(&w->slice), CLEAR));
        world_happens(w, "1 xid 79\n");
        UNTIL(w, strstr(buf_str(&w->slice), XID_79));
        world_end(w);
        /* Another boot has another ID. */
        _cleanup_(freep) char *path = world_path(w, "plugins/gpu.nvidia.com/health.json"), *text = NULL;
        assert_int_equal(file_read(path, 1 << 20, &text, &n, &e), 0);
        char *id = strstr(text, "\"bootID\":\"") + sizeof "\"bootID\":\"" - 1;
        *id = *id == '0' ? '1' : '0';
        assert_int_equal(file_replace_volatile(path, text, n, 0600, &e), 0);
        watching(w, w->writes + 1);
        assert_null(strstr(buf_str(&w->slice), "taints"));
        world_end(w);
}

/* failure: the record of health cannot be read or written -> new XIDs still taint, and the log reports it */
static void a_health_record_may_be_unreadable_or_unwritable(void **state) {
        struct world *w = *state;
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        tree_put(w->dir, "plugins/gpu.nvidia.com/health.json", "{");
        watching(w, 1);
        assert_non_null(strstr(buf_str(&w->says), "earlier errors of GPUs are not known"));
        world_happens(w, "1 xid 79\n");
        UNTIL(w, strstr(buf_str(&w->slice), XID_79));
        world_end(w);
        /* A folder is no file. */
        _cleanup_(freep) char *path = world_path(w, "plugins/gpu.nvidia.com/health.json");
        assert_int_equal(unlink(path), 0);
        tree_put(w->dir, "plugins/gpu.nvidia.com/health.json/in-the-way", "");
        watching(w, w->writes + 1);
        assert_null(strstr(buf_str(&w->slice), "taints"));
        world_happens(w, "1 xid 79\n");
        UNTIL(w, strstr(buf_str(&w->slice), XID_79));
        assert_non_null(strstr(buf_str(&w->says), "errors of GPUs will be lost at a restart"));
        world_end(w);
}

/* The watch of the Node reports its present state. */
static void node_changes(struct world *w) {
        struct buf line = BUF_INIT(4096);
        buf_adds(&line, "{\"type\":\"MODIFIED\",\"object\":");
        world_node(w, &line);
        buf_adds(&line, "}\n");
        fake_chunk(w->node_watch, buf_str(&line));
        buf_done(&line);
}

static bool is_watched(const struct world *w) {
        char path[64];
        _cleanup_(freep) char *text = NULL;
        struct err e;
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", process_pid(w->plugin),
                 process_pid(w->plugin));
        assert_int_equal(file_read(path, 4096, &text, NULL, &e), 0);
        struct str rest = str_from(text), word;
        while (str_next_field(&rest, ' ', &word)) {
                _cleanup_(freep) char *line = NULL;
                size_t n;
                if (!word.n)
                        continue;
                snprintf(path, sizeof path, "/proc/%.*s/cmdline", (int)word.n, word.p);
                if (file_read(path, 4096, &line, &n, &e) == 0 && memmem(line, n, "\0events", 7))
                        return true;
        }
        return false;
}

/* An open session prevents an upgrade of the driver and a reset of a GPU. */
/* failure: a monitored Node is drained -> no NVML session stays open while it is cordoned and unused */
static void the_gpus_of_a_drained_node_are_not_watched(void **state) {
        struct world *w = *state;
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.events", "");
        watching(w, 1);
        assert_int_equal(world_ask(w, "prepare").status, 0);
        UNTIL(w, w->node_watch);
        w->cordoned = true;
        node_changes(w);
        run_for(&w->loop, 300);
        assert_true(is_watched(w)); /* the pod still runs */
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        UNTIL(w, !is_watched(w));
        /* A pod that tolerates the taint of the Node. */
        assert_int_equal(world_ask(w, "prepare").status, 0);
        UNTIL(w, is_watched(w));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        UNTIL(w, !is_watched(w));
        w->cordoned = false;
        node_changes(w);
        assert_int_equal(world_ask(w, "prepare").status, 0);
        world_happens(w, "1 xid 79\n");
        UNTIL(w, strstr(buf_str(&w->slice), XID_79));
        assert_int_equal(world_ask(w, "unprepare").status, 0);
        world_end(w);
}

/* failure: a device plugin offers the node's GPUs too -> an Event and a metric report it */
static void a_device_plugin_with_the_same_gpus_and_its_end_are_reported(void **state) {
        struct world *w = *state;
        w->capacity = "\"cpu\":\"4\",\"nvidia.com/gpu\":\"2\",\"nvidia.com/mig-1g.5gb\":\"7\"";
        world_start(w, NULL);
        UNTIL(w, w->events == 1 && w->node_watch);
        assert_non_null(strstr(w->event, "DevicePluginActive"));
        assert_non_null(strstr(w->event, "(nvidia.com/gpu: 2, nvidia.com/mig-1g.5gb: 7)"));
        w->capacity = "\"cpu\":\"4\",\"nvidia.com/gpu\":\"0\",\"nvidia.com/mig-1g.5gb\":\"0\"";
        node_changes(w);
        UNTIL(w, w->events == 2);
        assert_non_null(strstr(w->event, "DevicePluginInactive"));
        world_end(w);
}

/* failure: NVIDIA's runtime is the default and gives GPUs to all pods -> an Event reports it */
static void a_default_runtime_that_gives_gpus_to_all_pods_is_reported(void **state) {
        struct world *w = *state;
        world_start(w, NULL);
        UNTIL(w, w->writes);
        assert_null(strstr(w->event, "ToolkitGivesGPUs"));
        tree_put(w->dir, "root/etc/containerd/config.toml",
                 "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = "
                 "'nvidia'\n");
        UNTIL(w, strstr(w->event, "ToolkitGivesGPUs"));
        assert_non_null(strstr(w->event, "/etc/containerd/config.toml"));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
}

/* ---- probes ---- */

/* A port that no other process uses while fd is open, although the plugin can listen on it. */
static int reserve_port(int *ret_fd) {
        struct sockaddr_in a = { .sin_family = AF_INET };
        socklen_t n = sizeof a;
        const int on = 1;
        *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(setsockopt(*ret_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
        assert_int_equal(bind(*ret_fd, (const struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&a, &n), 0);
        return ntohs(a.sin_port);
}

/* The plugin's answers to probes on one port. */
struct prober {
        struct world *w;
        struct http_client *client;
        char *answer; /* status and body; NULL: none yet */
};

static struct prober prober_new(struct world *w, int port) {
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", port);
        struct prober p = { .w = w };
        struct err e;
        assert_int_equal(
                http_client_new(&w->loop, &(struct http_client_options){ .base_url = url }, &p.client, &e),
                0);
        return p;
}

static void prober_free(struct prober *p) {
        http_client_free(p->client);
        free(p->answer);
}

static void on_probed(void *u, const struct http_response *r) {
        struct prober *p = u;
        p->answer = xasprintf("%d %.*s", r->status, (int)r->body_len, r->body);
}

static bool probe_is(struct prober *p, const char *path, const char *want) {
        free(TAKE(p->answer));
        http_start(p->client,
                   &(struct http_request){
                           .method = "GET", .path = path, .timeout_ms = 30000, .done = on_probed, .u = p });
        RUN_UNTIL(&p->w->loop, p->answer);
        return streq(p->answer, want);
}

/* Waits for the plugin's next step. */
static void probe_until(struct prober *p, const char *path, const char *want) {
        uint64_t end = uv_hrtime() + 60 * UINT64_C(1000000000);
        while (!probe_is(p, path, want)) {
                if (uv_hrtime() > end || !p->w->plugin)
                        fail_msg("%s: '%s', not '%s'", path, p->answer, want);
                run_for(&p->w->loop, 10);
        }
}

static void readyz_names_the_missing_step(void **state) {
        struct world *w = *state;
        int fd, metrics_fd, port = reserve_port(&fd), metrics_port = reserve_port(&metrics_fd);
        _cleanup_(freep) char *healthcheck = xasprintf("HEALTHCHECK_PORT=%d", port);
        _cleanup_(freep) char *endpoint = xasprintf("HTTP_ENDPOINT=127.0.0.1:%d", metrics_port);
        _cleanup_(freep) char *lock_path = world_path(w, "plugins/gpu.nvidia.com/pu.lock");
        struct prober probe = prober_new(w, port), metrics = prober_new(w, metrics_port);
        tree_put(w->dir, "plugins/gpu.nvidia.com/pu.lock", "");
        FILE *lock = fopen(lock_path, "r");
        assert_int_equal(flock(fileno(lock), LOCK_EX), 0);
        w->env[0] = healthcheck;
        w->env[1] = endpoint;
        w->unregistered = w->hold_slice = true;
        world_start(w, NULL);
        probe_until(&metrics, "/readyz", "503 the sockets are not open yet\n");
        assert_true(probe_is(&metrics, "/healthz", "200 ok\n"));
        assert_true(probe_is(&probe, "/healthz", "0 ")); /* a startup probe fails */
        fclose(lock);
        probe_until(&probe, "/readyz", "503 not registered with the kubelet yet\n");
        assert_true(probe_is(&probe, "/healthz", "200 ok\n"));
        world_register(w);
        UNTIL(w, w->held);
        probe_until(&probe, "/readyz", "503 the ResourceSlice is not published yet\n");
        world_store_slice(w);
        probe_until(&probe, "/readyz", "200 ok\n");
        assert_true(probe_is(&metrics, "/readyz", "200 ok\n"));
        assert_true(probe_is(&probe, "/metrics", "404 "));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
        prober_free(&probe);
        prober_free(&metrics);
        close(fd);
        close(metrics_fd);
}

/* failure: the kubelet registers the other plugin of the node -> a plugin that is registered learns of it */
static void each_plugin_learns_of_the_registration_of_the_other(void **state) {
        struct world *w = *state;
        static const char learned[] = "the kubelet has registered the other plugin of this node";
        int fd, port = reserve_port(&fd);
        _cleanup_(freep) char *healthcheck = xasprintf("HEALTHCHECK_PORT=%d", port);
        _cleanup_(freep) char *own = world_path(w, "plugins/gpu.nvidia.com/registered");
        struct prober probe = prober_new(w, port);
        w->env[0] = healthcheck;
        w->env[1] = "RETRY_PREPARES=true";
        w->unregistered = true;
        world_start(w, NULL);
        probe_until(&probe, "/readyz", "503 not registered with the kubelet yet\n");
        tree_put(w->dir, "plugins/compute-domain.nvidia.com/registered", "");
        world_register(w);
        probe_until(&probe, "/readyz", "200 ok\n");
        assert_int_equal(access(own, F_OK), 0);
        assert_null(strstr(buf_str(&w->says), learned)); /* a request would have had no effect */
        tree_put(w->dir, "plugins/compute-domain.nvidia.com/registered.new", "");
        _cleanup_(freep) char *new = world_path(w, "plugins/compute-domain.nvidia.com/registered.new");
        _cleanup_(freep) char *other = world_path(w, "plugins/compute-domain.nvidia.com/registered");
        assert_int_equal(rename(new, other), 0);
        UNTIL(w, strstr(buf_str(&w->says), learned));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
        prober_free(&probe);
        close(fd);
}

/* failure: a socket file of a running plugin is removed -> /healthz fails, so that the kubelet restarts the
 * container */
static void healthz_fails_without_a_socket_file(void **state) {
        struct world *w = *state;
        int fd, port = reserve_port(&fd);
        _cleanup_(freep) char *healthcheck = xasprintf("HEALTHCHECK_PORT=%d", port);
        _cleanup_(freep) char *dra = world_path(w, "plugins/gpu.nvidia.com/dra.sock");
        _cleanup_(freep) char *registration = world_path(w, "registry/gpu.nvidia.com-reg.sock");
        struct prober probe = prober_new(w, port);
        w->env[0] = healthcheck;
        world_start(w, NULL);
        probe_until(&probe, "/readyz", "200 ok\n");
        assert_true(probe_is(&probe, "/healthz", "200 ok\n"));
        assert_int_equal(unlink(registration), 0);
        assert_true(probe_is(&probe, "/healthz", "503 the registration socket does not exist\n"));
        assert_int_equal(unlink(dra), 0);
        assert_true(probe_is(&probe, "/healthz", "503 the DRA socket does not exist\n"));
        assert_true(probe_is(&probe, "/readyz", "503 the DRA socket does not exist\n"));
        world_end(w);
        assert_int_equal(w->exit_status, 0);
        prober_free(&probe);
        close(fd);
}

/* failure: another process uses the port of the probes -> the plugin ends, and names the flag */
static void a_used_port_of_the_probes_is_named(void **state) {
        struct world *w = *state;
        int fd, port = reserve_port(&fd);
        _cleanup_(freep) char *healthcheck = xasprintf("HEALTHCHECK_PORT=%d", port);
        _cleanup_(freep) char *dra = world_path(w, "plugins/gpu.nvidia.com/dra.sock");
        assert_int_equal(listen(fd, 1), 0);
        w->env[0] = healthcheck;
        w->quiet = true;
        world_start(w, NULL);
        RUN_UNTIL(&w->loop, !w->plugin);
        assert_int_equal(w->exit_status, 1);
        assert_non_null(strstr(buf_str(&w->says), "--healthcheck-port (HEALTHCHECK_PORT)"));
        assert_int_equal(access(dra, F_OK), -1);
        close(fd);
}

/* failure: a feature gate or option is not supported -> the GPU plugin refuses to start and names it */
static void unsupported_gates_and_options_are_refused_at_the_start(void **state) {
        static const char *const asked[][2] = {
                { "--feature-gates=DynamicMIG=true", "DynamicMIG" },
                { "--feature-gates=MPSSupport=true", "MPSSupport" },
                { "--feature-gates=Nonsense=true", "Nonsense" },
                { "--consumable-shares=memory", "set it to disabled" },
                { "--consumable-shares=0", "a positive number" },
                { "--checkpoint-layout=newest", "auto, main or released" },
                { "--nvidia-cdi-hook-path=hook", "not an absolute path" },
        };
        struct world *w = *state;
        for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
                buf_clear(&w->says);
                world_start(w, asked[i][0]);
                RUN_UNTIL(&w->loop, !w->plugin);
                assert_int_equal(w->exit_status, 2);
                assert_non_null(strstr(buf_str(&w->says), asked[i][1]));
        }
}

int main(int argc, char **argv) {
        if (argc != 5)
                return 2;
        files = (struct world_files){ argv[1], argv[2], argv[3], argv[4] };
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_node_offers_its_gpus_and_their_changes),
                T(a_node_without_driver_reports_it_and_serves_the_kubelet),
                T(a_claim_is_prepared_with_our_hook_and_unprepared),
                T(a_node_on_which_the_hook_fails_offers_no_gpu_and_names_the_call),
                T(a_node_on_which_the_hook_cannot_be_installed_offers_no_gpu),
                T(a_configured_hook_is_searched_on_the_host),
                T(a_gpu_that_reports_an_xid_is_tainted_with_the_gate_only),
                T(no_pod_starts_before_the_gpus_are_watched),
                T(no_pod_starts_before_the_gpus_of_a_returned_driver_are_watched),
                T(a_claim_of_a_monitored_node_without_gpus_is_refused),
                T(a_gpu_whose_mig_mode_was_enabled_is_refused_and_withdrawn),
                T(a_lost_gpu_is_refused_and_withdrawn),
                T(a_gpu_that_fails_under_the_watch_is_withdrawn),
                T(output_of_nvml_is_in_the_log),
                T(a_taint_outlives_process_and_slice_until_a_reboot_or_an_annotation),
                T(a_health_record_may_be_unreadable_or_unwritable),
                T(the_gpus_of_a_drained_node_are_not_watched),
                T(a_device_plugin_with_the_same_gpus_and_its_end_are_reported),
                T(a_default_runtime_that_gives_gpus_to_all_pods_is_reported),
                T(readyz_names_the_missing_step),
                T(healthz_fails_without_a_socket_file),
                T(each_plugin_learns_of_the_registration_of_the_other),
                T(a_used_port_of_the_probes_is_named),
                T(unsupported_gates_and_options_are_refused_at_the_start),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
