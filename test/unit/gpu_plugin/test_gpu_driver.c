/* SPDX-License-Identifier: Apache-2.0 */
/* The driver on the node half: claims of a node with two GPUs and a MIG device; what is defined here takes
 * the place of the API client and of the kubelet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "driver_tree.h"
#include "gpu_plugin/gpu_driver.h"
#include "gpu_plugin/gpu_plan.h"
#include "node/claims.h"
#include "node/sweep.h"
#include "tree.h"

#define BOOT "11111111-1111-4111-8111-111111111111"
#define ONE "c0000000-0000-4000-8000-000000000001"
#define TWO "c0000000-0000-4000-8000-000000000002"

enum answer { PENDING, PREPARED, UNPREPARED, FAILED };
struct dra_op {
        enum answer answer;
        char text[1024]; /* of the devices, or why not */
};

static struct {
        uv_loop_t loop;
        char *dir, *plugin_dir, *cdi_root, *sys, *proc, *proc_devices;
        struct metrics *registry;
        struct node_metrics metrics;
        struct claims *claims;
        struct gpu *gpu;
        struct gates gates;
        struct gpu_devices devices;
        const char *results, *config; /* of the claim, as JSON */
        bool nodes, holds, wanted;
        const char *boot; /* NULL: the first */
        unsigned gets;
        char event[600]; /* the last one */
} w;

static struct gpu_device gpus[] = {
        { .kind = GPU_FULL, .name = "gpu-0", .uuid = "GPU-0", .minor = 0, .address = "0000:16:00.0" },
        { .kind = GPU_FULL, .name = "gpu-1", .uuid = "GPU-1", .minor = 1, .address = "0000:17:00.0" },
        { .kind = GPU_MIG,
          .name = "gpu-1-mig-1g24gb-19-0",
          .uuid = "MIG-0",
          .minor = 1,
          .address = "0000:17:00.0",
          .parent_uuid = "GPU-1",
          .gpu_instance = 7 },
};

/* ---- the API server ---- */

struct kube_call {
        struct loop_turn turn;
        char name[64];
        kube_done_fn *done;
        void *u;
};

#define RESULT(request, device)                                                                              \
        "{\"request\":\"" request "\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"" device    \
        "\"}"

static void on_turn(void *u) {
        struct kube_call *call = u;
        _cleanup_(freep) char *text =
                xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"user\",\"uid\":\"%s\","
                          "\"resourceVersion\":\"1\"},"
                          "\"status\":{\"allocation\":{\"devices\":{\"results\":[%s],\"config\":[%s]}}}}",
                          call->name, streq(call->name, "one") ? ONE : TWO, w.results, w.config);
        yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        assert_non_null(doc);
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
        va_list ap;
        (void)r;
        (void)about;
        (void)type;
        size_t n = (size_t)snprintf(w.event, sizeof w.event, "%s: ", reason);
        va_start(ap, fmt);
        vsnprintf(w.event + n, sizeof w.event - n, fmt, ap);
        va_end(ap);
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
        size_t at = 0;
        op->answer = PREPARED;
        for (size_t i = 0; i < n; i++)
                at += (size_t)snprintf(op->text + at, sizeof op->text - at, "%s%s/%s/%s=%s", i ? " " : "",
                                       devices[i].requests[0], devices[i].pool, devices[i].device,
                                       str_or(devices[i].cdi_ids[0], ""));
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
                fail_msg("%s", op->text);
}

static void prepare(struct dra_op *op, const char *name) {
        *op = (struct dra_op){ 0 };
        claims_prepare(w.claims, op, &(struct dra_claim){ "user", name, streq(name, "one") ? ONE : TWO });
}

static void unprepared(const char *name) {
        struct dra_op op = { 0 };
        claims_unprepare(w.claims, &op, &(struct dra_claim){ "user", name, streq(name, "one") ? ONE : TWO });
        until(&op, UNPREPARED);
}

static void refused(const char *name, const char *why) {
        struct dra_op op;
        prepare(&op, name);
        until(&op, FAILED);
        if (!strstr(op.text, why))
                fail_msg("'%s' is not in '%s'", why, op.text);
        unprepared(name);
}

static const struct op *waiting(void) {
        const struct op *op;
        while (!(op = TAILQ_FIRST(&w.claims->ops)) || op->phase != OP_WAITING)
                uv_run(&w.loop, UV_RUN_ONCE);
        return op;
}

static char *file_of(const char *uid) {
        return cdi_path(w.cdi_root, GPU_CDI_KIND_CLAIM, uid);
}

static char *read_file(const char *path) {
        char *text = NULL;
        struct err e;
        if (file_read(path, 1 << 20, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        return text;
}

static bool is_there(const char *uid) {
        _cleanup_(freep) char *path = file_of(uid);
        return access(path, F_OK) == 0;
}

/* ---- the process ---- */

static bool hold(void *u) {
        (void)u;
        return w.holds;
}

static void wanted(void *u, bool yes) {
        (void)u;
        w.wanted = yes;
}

static void on_started(void *u, const struct err *e) {
        assert_null(e);
        *(bool *)u = true;
}

static void start(void) {
        /* Who installs it may do so again, under another pointer. */
        _cleanup_(freep) char *hook = xstrdup("/var/lib/kubelet/plugins/gpu.nvidia.com/nvidia-cdi-hook");
        w.gpu = gpu_driver_new(&(struct gpu_driver_options){
                .node = "n0",
                .gates = &w.gates,
                .root = { "/run/nvidia/driver", w.dir },
                .sys = w.sys,
                .proc_driver = w.proc,
                .proc_devices = w.proc_devices,
                .hook = hook,
                .hold = hold,
                .wanted = wanted,
        });
        const struct claims_options o = {
                .loop = &w.loop,
                .metrics = &w.metrics,
                .driver = gpu_driver_of(0),
                .u = w.gpu,
                .node = "n0",
                .plugin_dir = w.plugin_dir,
                .cdi_root = w.cdi_root,
                .boot_id = str_or(w.boot, BOOT),
        };
        bool started = false;
        struct err e;
        assert_int_equal(claims_new(&o, &w.claims, &e), 0);
        claims_start(w.claims, on_started, &started);
        while (!started)
                uv_run(&w.loop, UV_RUN_ONCE);
}

static int setup(void **state) {
        static const char *const types[] = { "gpu", "mig", NULL };
        static const struct node_metrics_options o = {
                .node = "n0",
                .driver = GPU_DRIVER,
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
        w.nodes = driver_tree_of_golden(w.dir);
        w.plugin_dir = file_join(w.dir, "plugin");
        w.cdi_root = file_join(w.dir, "cdi");
        w.sys = file_join(w.dir, "sys");
        w.proc = file_join(w.dir, "proc");
        w.proc_devices = file_join(w.dir, "devices");
        tree_put(w.dir, "devices", "Character devices:\n236 nvidia-caps\n\nBlock devices:\n");
        tree_put(w.dir, "proc/capabilities/gpu1/mig/gi7/access",
                 "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
        tree_put(w.dir, "proc/capabilities/gpu1/mig/gi7/ci0/access",
                 "DeviceFileMinor: 67\nDeviceFileMode: 292\n");
        assert_int_equal(file_mkdirs(w.plugin_dir, 0750, &e), 0);
        assert_int_equal(file_mkdirs(w.cdi_root, 0750, &e), 0);
        w.registry = metrics_new();
        node_metrics_init(&w.metrics, w.registry, &o);
        gates_init(&w.gates);
        w.devices = (struct gpu_devices){ .driver_version = DRIVER_TREE_VERSION,
                                          .items = gpus,
                                          .n = ARRAY_LEN(gpus) };
        w.results = RESULT("gpu", "gpu-0");
        w.config = "";
        w.holds = true;
        gpus[0].uuid = "GPU-0";
        start();
        gpu_driver_know(w.gpu, &w.devices, "");
        return 0;
}

static int teardown(void **state) {
        (void)state;
        claims_free(w.claims);
        uv_run(&w.loop, UV_RUN_DEFAULT);
        metrics_free(w.registry);
        free(w.plugin_dir);
        free(w.cdi_root);
        free(w.sys);
        free(w.proc);
        free(w.proc_devices);
        tree_remove(w.dir);
        return uv_loop_close(&w.loop);
}

static void a_gpu_is_prepared_recorded_and_unprepared(void **state) {
        struct dra_op op;
        struct stat st;
        (void)state;
        if (!w.nodes)
                skip();
        prepare(&op, "one");
        until(&op, PREPARED);
        assert_string_equal(op.text, "gpu/n0/gpu-0=k8s.gpu.nvidia.com/claim=" ONE "-gpu-0");
        _cleanup_(freep) char *path = file_of(ONE);
        _cleanup_(freep) char *cdi = read_file(path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
        assert_true(str_starts(cdi, "# claim user/one devices "
                                    "[{\"name\":\"gpu-0\",\"type\":\"gpu\",\"info\":{\"uuid\":\"GPU-0\"}}]"
                                    " boot " BOOT "\n{"));
        assert_non_null(strstr(cdi, "/run/nvidia/driver/dev/nvidia0"));
        assert_non_null(strstr(cdi, "update-ldcache"));
        _cleanup_(freep) char *checkpoint = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = read_file(checkpoint);
        assert_non_null(strstr(
                text,
                "[{\"devices\":[{\"gpu\":{\"info\":{\"uuid\":\"GPU-0\"},\"device\":{\"Requests\":[\"gpu\"],"
                "\"PoolName\":\"n0\",\"DeviceName\":\"gpu-0\",\"CDIDeviceIDs\":[\"k8s.gpu.nvidia.com/"
                "claim=" ONE "-gpu-0\"]}},\"mig\":null}],\"configState\":{}}]"));
        unprepared("one");
        assert_false(is_there(ONE));
        assert_null(w.claims->journal.table.claims);
}

static void gpus_and_mig_devices_of_one_claim(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.results = RESULT("a", "gpu-0") "," RESULT("b/big", "gpu-1-mig-1g24gb-19-0");
        prepare(&op, "one");
        until(&op, PREPARED);
        _cleanup_(freep) char *path = file_of(ONE);
        _cleanup_(freep) char *cdi = read_file(path);
        assert_non_null(strstr(cdi, "/dev/nvidia-caps/nvidia-cap67"));
        const struct checkpoint_claim *entry = checkpoint_find(&w.claims->journal.table, ONE);
        assert_int_equal(entry->n_devices, 2);
        assert_string_equal(entry->devices[1].type, "mig");
        assert_string_equal(entry->devices[1].requests[0], "b/big");
        assert_string_equal(entry->devices[1].info,
                            "{\"parentMinor\":1,\"giId\":7,\"ciId\":0,\"migUUID\":\"MIG-0\","
                            "\"parentUUID\":\"GPU-1\"}");
        unprepared("one");
}

static void a_gpu_that_another_claim_has_is_waited_for(void **state) {
        struct dra_op one, two;
        (void)state;
        if (!w.nodes)
                skip();
        prepare(&one, "one");
        until(&one, PREPARED);
        prepare(&two, "two");
        assert_non_null(strstr(waiting()->msg,
                               "requested device gpu-0 is already allocated to different claim " ONE
                               " ('one')"));
        unprepared("one");
        until(&two, PREPARED);
        unprepared("two");
}

static void admin_access_takes_nothing_from_anybody(void **state) {
        struct dra_op one, two;
        (void)state;
        if (!w.nodes)
                skip();
        w.results = "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"gpu-0\","
                    "\"adminAccess\":true}";
        prepare(&one, "one");
        until(&one, PREPARED);
        w.results = RESULT("gpu", "gpu-0");
        prepare(&two, "two");
        until(&two, PREPARED);
        unprepared("one");
        assert_true(is_there(TWO));
        unprepared("two");
}

static void what_is_prepared_is_answered_without_knowing_the_gpus(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        prepare(&op, "one");
        until(&op, PREPARED);
        claims_free(w.claims);
        start();
        prepare(&op, "one");
        until(&op, PREPARED);
        assert_int_equal(w.gets, 1);
        unprepared("one"); /* so is unpreparing */
        assert_false(is_there(ONE));
}

static void gpus_that_are_not_known_are_waited_for(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        gpu_driver_know(w.gpu, NULL, "NVML does not answer");
        prepare(&op, "one");
        assert_string_equal(waiting()->msg, "n0: NVML does not answer");
        assert_true(w.wanted);
        w.holds = false; /* an answer that is too old already */
        gpu_driver_know(w.gpu, &w.devices, "");
        assert_int_equal(waiting()->waits_for, WAITS_FOR_DRIVER);
        w.holds = true;
        gpu_driver_know(w.gpu, &w.devices, "");
        until(&op, PREPARED);
        unprepared("one");
}

static void what_is_not_here_is_refused_with_what_is(void **state) {
        (void)state;
        static struct gpu_left_out lost = { "GPU 3", "it fell off the bus" };
        w.devices.left_out = &lost;
        w.devices.n_left_out = 1;
        w.results = RESULT("gpu", "gpu-9");
        refused("one", "allocatable not found for device \"gpu-9\": node 'n0' has gpu-0, gpu-1, "
                       "gpu-1-mig-1g24gb-19-0; GPU 3: it "
                       "fell off the bus");
        w.results =
                "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n1\",\"device\":\"gpu-0\"}";
        refused("one", "device 'gpu-0' was allocated on node 'n1', but this is node 'n0'");
}

#define GPU_CONFIG(rest)                                                                                     \
        "{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"gpu.nvidia.com\","        \
        "\"parameters\":{\"apiVersion\":"                                                                    \
        "\"resource.nvidia.com/v1beta1\",\"kind\":" rest "}}}"

static void a_configuration_that_cannot_be_is_refused_in_the_words_of_the_go_driver(void **state) {
        (void)state;
        w.config = GPU_CONFIG("\"GpuConfig\",\"sharing\":{\"strategy\":\"TimeSlicing\"}");
        refused("one", "\"TimeSlicing\" is selected as the GPU sharing strategy, but the "
                       "\"TimeSlicingSettings\" feature gate is "
                       "not enabled");
        w.config = GPU_CONFIG("\"MigDeviceConfig\"");
        refused("one", "cannot apply MigDeviceConfig to device \"gpu-0\" of type \"gpu\" (request: gpu)");
        w.config = GPU_CONFIG("\"GpuConfig\",\"bogus\":1");
        refused("one", "strict decoding error: unknown field \"bogus\"");
}

static void a_gpu_without_its_node_or_a_driver_without_its_files_is_said(void **state) {
        (void)state;
        gpus[0].minor = 9;
        refused("one", "has no device node '/dev/nvidia9'");
        gpus[0].minor = 0;
        w.devices.driver_version = "1.2";
        gpu_driver_know(w.gpu, &w.devices, "");
        refused("two",
                "neither libcuda.so.1.2 nor libnvidia-ml.so.1.2 is in driver root '/run/nvidia/driver'");
        assert_false(is_there(ONE));
}

/* The file of a prepared claim is gone: it is made again, unless another GPU has the name by now. */
static void a_file_that_vanished_is_made_of_the_same_gpu_only(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        prepare(&op, "one");
        until(&op, PREPARED);
        _cleanup_(freep) char *path = file_of(ONE);
        assert_int_equal(unlink(path), 0);
        prepare(&op, "one");
        until(&op, PREPARED);
        assert_true(is_there(ONE));
        assert_int_equal(unlink(path), 0);
        gpus[0].uuid = "GPU-new";
        refused("one", "'gpu-0' was prepared for this claim as GPU-0, but that name is GPU-new now");
}

static void an_entry_that_was_lost_is_rebuilt_from_the_file(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1-mig-1g24gb-19-0");
        prepare(&op, "one");
        until(&op, PREPARED);
        _cleanup_(freep) char *checkpoint = file_join(w.plugin_dir, "checkpoint.json");
        claims_free(w.claims);
        assert_int_equal(unlink(checkpoint), 0);
        start();
        gpu_driver_know(w.gpu, &w.devices, "");
        const struct checkpoint_claim *entry = checkpoint_find(&w.claims->journal.table, ONE);
        assert_non_null(entry);
        assert_string_equal(entry->name, "one");
        assert_int_equal(entry->n_devices, 2);
        assert_string_equal(entry->devices[0].info, "{\"uuid\":\"GPU-0\"}");
        assert_string_equal(entry->devices[1].type, "mig");
        w.results = RESULT("gpu", "gpu-0");
        prepare(&op, "two"); /* so that nobody else is given what its pod uses */
        assert_non_null(strstr(waiting()->msg, "already allocated to different claim " ONE));
        unprepared("one");
        until(&op, PREPARED);
}

static void a_file_of_the_go_driver_tells_the_names(void **state) {
        (void)state;
        struct arena *a = arena_new(1024);
        struct node_device *devices;
        static const char yaml[] =
                "---\ncdiVersion: 0.5.0\ndevices:\n    - name: " ONE "-gpu-0\n    - name: " ONE
                "-gpu-1-mig-1g24gb-19-0\n    - name: " TWO "-gpu-7\n    - name: " ONE "-../x\n";
        assert_int_equal(gpu_plan_rebuild(yaml, ONE, a, &devices), 2);
        assert_string_equal(devices[0].name, "gpu-0");
        assert_string_equal(devices[0].info, "{\"uuid\":\"\"}");
        assert_string_equal(devices[1].name, "gpu-1-mig-1g24gb-19-0");
        assert_string_equal(devices[1].type, "mig");
        arena_free(a);
}

/* The Go driver forgets the name when a claim is prepared. */
static void a_claim_of_the_go_driver_has_its_name_when_it_is_asked_for_again(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        prepare(&op, "one");
        until(&op, PREPARED);
        struct checkpoint_claim *entry = checkpoint_find(&w.claims->journal.table, ONE);
        entry->name = entry->ns = NULL;
        prepare(&op, "one");
        until(&op, PREPARED);
        assert_int_equal(w.gets, 1);
        _cleanup_(freep) char *checkpoint = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = read_file(checkpoint);
        assert_non_null(strstr(text, "\"name\":\"one\",\"namespace\":\"user\""));
        unprepared("one");
}

static void after_a_reboot_entries_are_discarded_and_the_same_pods_prepared_again(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        prepare(&op, "one");
        until(&op, PREPARED);
        claims_free(w.claims);
        w.boot = "22222222-2222-4222-8222-222222222222";
        start();
        gpu_driver_know(w.gpu, &w.devices, "");
        assert_null(w.claims->journal.table.claims);
        assert_false(is_there(ONE));
        prepare(&op, "two"); /* nobody has the GPU */
        until(&op, PREPARED);
        unprepared("two");
        prepare(&op, "one");
        until(&op, PREPARED);
        unprepared("one");
}

/* ---- time slices ---- */

/* Writes down what it is called with; what it does beside that is the test's. */
static void smi(const char *does) {
        _cleanup_(freep) char *log = file_join(w.dir, "smi.log");
        _cleanup_(freep) char *text = xasprintf("#!/bin/sh\necho \"$*\" >> %s\n%s\n", log, does);
        tree_put(w.dir, "smi.log", "");
        tree_put(w.dir, "usr/bin/nvidia-smi", text);
}

static char *called(void) {
        _cleanup_(freep) char *log = file_join(w.dir, "smi.log");
        return read_file(log);
}

static void called_with(const char *want) {
        _cleanup_(freep) char *text = called();
        assert_string_equal(text, want);
        tree_put(w.dir, "smi.log", "");
}

#define SET(uuid, slice)                                                                                     \
        "-i " uuid " -c DEFAULT\n"                                                                           \
        "compute-policy -i " uuid " --set-timeslice " slice "\n"
#define SLICED(request, interval)                                                                            \
        "{\"source\":\"FromClaim\",\"requests\":[\"" request                                                 \
        "\"],\"opaque\":{\"driver\":\"gpu.nvidia.com\","                                                     \
        "\"parameters\":{\"apiVersion\":\"resource.nvidia.com/"                                              \
        "v1beta1\",\"kind\":\"GpuConfig\",\"sharing\":{"                                                     \
        "\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{" interval "}}}}}"
#define SHORT "\"interval\":\"Short\""

static void a_time_slice_is_set_recorded_and_set_back(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = SLICED("gpu", SHORT);
        smi("test -n \"$LD_PRELOAD\"");
        prepare(&op, "one");
        until(&op, PREPARED);
        called_with(SET("GPU-0", "1"));
        _cleanup_(freep) char *checkpoint = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = read_file(checkpoint);
        assert_non_null(strstr(text, "\"mig\":null}],\"configState\":{\"timeSliceApplied\":true}}]"));
        prepare(&op, "one"); /* it is answered as it is recorded */
        until(&op, PREPARED);
        called_with("");
        unprepared("one");
        called_with(SET("GPU-0", "0"));
        assert_false(is_there(ONE));
        /* Without a configuration nothing is set, and nothing set back. */
        w.config = "";
        prepare(&op, "one");
        until(&op, PREPARED);
        unprepared("one");
        called_with("");
}

static void of_several_gpus_first_all_modes_are_set_and_then_the_slices(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1") "," RESULT("m", "gpu-1-mig-1g24gb-19-0");
        w.config = SLICED("a", "\"interval\":\"Long\"") "," SLICED("b", "");
        smi("");
        prepare(&op, "one");
        until(&op, PREPARED);
        called_with("-i GPU-0 -c DEFAULT\n-i GPU-1 -c DEFAULT\n"
                    "compute-policy -i GPU-0 --set-timeslice 3\n"
                    "compute-policy -i GPU-1 --set-timeslice 0\n");
        unprepared("one");
        called_with("-i GPU-0 -c DEFAULT\n-i GPU-1 -c DEFAULT\n"
                    "compute-policy -i GPU-0 --set-timeslice 0\n"
                    "compute-policy -i GPU-1 --set-timeslice 0\n");
}

static void by_admin_access_no_time_slice_is_changed_and_that_is_said(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.results = "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"gpu-0\","
                    "\"adminAccess\":true}";
        w.config = SLICED("gpu", SHORT);
        smi("");
        prepare(&op, "one");
        until(&op, PREPARED);
        assert_true(str_starts(w.event, "TimeSliceNotSet: the time slice of 'gpu-0' on node n0 stays"));
        unprepared("one");
        called_with("");
}

static void what_nvidia_smi_refuses_is_said_and_what_was_set_is_set_back(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.results = RESULT("gpu", "gpu-0") "," RESULT("gpu", "gpu-1");
        w.config = SLICED("gpu", SHORT);
        smi("case \"$*\" in *GPU-1\\ --set-timeslice\\ 1) echo; echo 'Not Supported'; echo; exit 3;; esac");
        prepare(&op, "one");
        until(&op, FAILED);
        assert_string_equal(op.text,
                            "error preparing devices for claim user/one:" ONE
                            ": error setting timeslice config for requests '[gpu gpu]' in claim '" ONE
                            "': error setting time slice: GPU GPU-1: error running nvidia-smi: exit status "
                            "3: Not Supported");
        called_with("-i GPU-0 -c DEFAULT\n-i GPU-1 -c DEFAULT\n"
                    "compute-policy -i GPU-0 --set-timeslice 1\n"
                    "compute-policy -i GPU-1 --set-timeslice 1\n"
                    "compute-policy -i GPU-0 --set-timeslice 0\n"
                    "compute-policy -i GPU-1 --set-timeslice 0\n");
        assert_false(is_there(ONE));
        /* A driver without nvidia-smi is named, too. */
        _cleanup_(freep) char *path = file_join(w.dir, "usr/bin/nvidia-smi");
        assert_int_equal(unlink(path), 0);
        refused("one", "'nvidia-smi' is not in driver root '/run/nvidia/driver'");
}

static void a_claim_goes_whatever_nvidia_smi_says(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = SLICED("gpu", SHORT);
        smi("");
        prepare(&op, "one");
        until(&op, PREPARED);
        smi("echo 'GPU is lost'; exit 15");
        unprepared("one");
        assert_false(is_there(ONE));
        assert_null(w.claims->journal.table.claims);
        assert_true(str_starts(w.event, "TimeSliceNotReset: a GPU may keep the time slice of claim " ONE));
        assert_non_null(strstr(w.event, "exit status 15: GPU is lost"));
}

/* nvidia-smi takes its time: until the test lets it go on. */
static void slow(void) {
        _cleanup_(freep) char *go = file_join(w.dir, "go");
        _cleanup_(freep) char *does = xasprintf("while ! test -e %s; do sleep 0.01; done", go);
        smi(does);
}

static void until_called(void) {
        for (;;) {
                _cleanup_(freep) char *text = called();
                if (*text)
                        return;
                uv_run(&w.loop, UV_RUN_NOWAIT);
        }
}

static void others_are_served_while_a_time_slice_is_set(void **state) {
        struct dra_op one, two, again = { 0 };
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = SLICED("gpu", SHORT);
        slow();
        prepare(&one, "one");
        until_called();
        const struct checkpoint_claim *entry = checkpoint_find(&w.claims->journal.table, ONE);
        assert_int_equal(entry->state, CHECKPOINT_STARTED);
        /* Another GPU is prepared and unprepared meanwhile, */
        w.config = "";
        w.results = RESULT("gpu", "gpu-1");
        prepare(&two, "two");
        until(&two, PREPARED);
        unprepared("two");
        /* the same one is not, */
        w.results = RESULT("gpu", "gpu-0");
        prepare(&two, "two");
        while (!strstr(TAILQ_LAST(&w.claims->ops, op_list)->msg, "already allocated to different claim " ONE))
                uv_run(&w.loop, UV_RUN_ONCE);
        /* and who asks for the claim again has the answer with the first. */
        w.config = SLICED("gpu", SHORT);
        prepare(&again, "one");
        for (int i = 0; i < 50; i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        assert_int_equal(again.answer, PENDING);
        tree_put(w.dir, "go", "");
        until(&one, PREPARED);
        until(&again, PREPARED);
        called_with(SET("GPU-0", "1"));
        assert_int_equal(two.answer, PENDING);
        unprepared("one");
        until(&two, PREPARED);
        unprepared("two");
}

static void who_unprepares_a_claim_that_is_being_set_up_waits_and_sets_it_back(void **state) {
        struct dra_op one, gone = { 0 };
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = SLICED("gpu", SHORT);
        slow();
        prepare(&one, "one");
        until_called();
        claims_unprepare(w.claims, &gone, &(struct dra_claim){ "user", "one", ONE });
        for (int i = 0; i < 50; i++)
                uv_run(&w.loop, UV_RUN_NOWAIT);
        assert_int_equal(gone.answer, PENDING);
        tree_put(w.dir, "go", "");
        until(&gone, UNPREPARED);
        until(&one, FAILED);
        called_with(SET("GPU-0", "1") SET("GPU-0", "0"));
        assert_false(is_there(ONE));
}

/* A plugin that was killed while it set a time slice has recorded that it would. */
static void what_was_begun_is_set_back_by_the_next_process(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = SLICED("gpu", SHORT);
        slow();
        prepare(&op, "one");
        until_called();
        claims_free(w.claims);
        smi("");
        start();
        gpu_driver_know(w.gpu, &w.devices, "");
        unprepared("one");
        called_with(SET("GPU-0", "0"));
        /* So is one that has got other devices since. */
        slow();
        prepare(&op, "two");
        until_called();
        claims_free(w.claims);
        smi("");
        start();
        gpu_driver_know(w.gpu, &w.devices, "");
        w.results = RESULT("gpu", "gpu-1");
        prepare(&op, "two");
        until(&op, PREPARED);
        called_with(SET("GPU-0", "0") SET("GPU-1", "1"));
        unprepared("two");
}

static void a_time_slice_outlives_the_record(void **state) {
        struct dra_op op;
        (void)state;
        if (!w.nodes)
                skip();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = SLICED("gpu", SHORT);
        smi("");
        prepare(&op, "one");
        until(&op, PREPARED);
        called_with(SET("GPU-0", "1"));
        _cleanup_(freep) char *checkpoint = file_join(w.plugin_dir, "checkpoint.json");
        claims_free(w.claims);
        assert_int_equal(unlink(checkpoint), 0);
        start(); /* from the CDI file */
        unprepared("one");
        called_with(SET("GPU-0", "0"));
}

static void a_gate_that_does_nothing_yet_is_refused_by_name(void **state) {
        (void)state;
        struct err e;
        assert_int_equal(gpu_driver_check_gates(&w.gates, &e), 0);
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = w.gates.on[GATE_NVML_DEVICE_HEALTH_CHECK] = true;
        assert_int_equal(gpu_driver_check_gates(&w.gates, &e), 0);
        w.gates.on[GATE_MPS_SUPPORT] = true;
        assert_int_equal(gpu_driver_check_gates(&w.gates, &e), -1);
        assert_non_null(strstr(e.msg, "feature gate MPSSupport is on"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_gpu_is_prepared_recorded_and_unprepared),
                T(gpus_and_mig_devices_of_one_claim),
                T(a_gpu_that_another_claim_has_is_waited_for),
                T(admin_access_takes_nothing_from_anybody),
                T(what_is_prepared_is_answered_without_knowing_the_gpus),
                T(gpus_that_are_not_known_are_waited_for),
                T(what_is_not_here_is_refused_with_what_is),
                T(a_configuration_that_cannot_be_is_refused_in_the_words_of_the_go_driver),
                T(a_gpu_without_its_node_or_a_driver_without_its_files_is_said),
                T(a_file_that_vanished_is_made_of_the_same_gpu_only),
                T(an_entry_that_was_lost_is_rebuilt_from_the_file),
                T(a_file_of_the_go_driver_tells_the_names),
                T(a_claim_of_the_go_driver_has_its_name_when_it_is_asked_for_again),
                T(after_a_reboot_entries_are_discarded_and_the_same_pods_prepared_again),
                T(a_time_slice_is_set_recorded_and_set_back),
                T(of_several_gpus_first_all_modes_are_set_and_then_the_slices),
                T(by_admin_access_no_time_slice_is_changed_and_that_is_said),
                T(what_nvidia_smi_refuses_is_said_and_what_was_set_is_set_back),
                T(a_claim_goes_whatever_nvidia_smi_says),
                T(others_are_served_while_a_time_slice_is_set),
                T(who_unprepares_a_claim_that_is_being_set_up_waits_and_sets_it_back),
                T(what_was_begun_is_set_back_by_the_next_process),
                T(a_time_slice_outlives_the_record),
                T(a_gate_that_does_nothing_yet_is_refused_by_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
