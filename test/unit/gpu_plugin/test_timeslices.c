/* SPDX-License-Identifier: Apache-2.0 */
/* Claims with a configuration of time slices, which nvidia-smi sets. */
#include "world/gpu_claims.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tree.h"

/* A substitute for nvidia-smi that logs its arguments. The test chooses what else it does. */
static void smi(const char *does) {
        _cleanup_(freep) char *log = file_join(node.dir, "smi.log");
        _cleanup_(freep) char *text = xasprintf("#!/bin/sh\necho \"$*\" >> %s\n%s\n", log, does);
        tree_put(node.dir, "smi.log", "");
        tree_put(node.dir, "usr/bin/nvidia-smi", text);
}

static char *called(void) {
        _cleanup_(freep) char *log = file_join(node.dir, "smi.log");
        return read_file(log);
}

static void called_with(const char *want) {
        _cleanup_(freep) char *text = called();
        assert_string_equal(text, want);
        tree_put(node.dir, "smi.log", "");
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
#define SHORT SLICED("gpu", "\"interval\":\"Short\"")
#define LONG SLICED("gpu", "\"interval\":\"Long\"")

#define ADMIN_RESULT                                                                                         \
        "{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\",\"device\":\"gpu-0\","           \
        "\"adminAccess\":true}"

/* Claims have this configuration, and nvidia-smi does this. */
static void configure(const char *config, const char *does) {
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.config = config;
        smi(does);
}

/* The beginning of a test that prepares claims. */
static void begin(const char *config, const char *does) {
        needs_nodes();
        configure(config, does);
}

/* nvidia-smi is slow: it waits until the test creates the file "go". */
static void slow(void) {
        _cleanup_(freep) char *go = file_join(node.dir, "go");
        _cleanup_(freep) char *does = xasprintf("while ! test -e %s; do sleep 0.01; done", go);
        smi(does);
}

static void until_called(void) {
        for (;;) {
                _cleanup_(freep) char *text = called();
                if (*text)
                        return;
                node_poll();
        }
}

/* Prepares a claim until a slow nvidia-smi sets its time slice. */
static void until_being_set(struct dra_op *op, const char *name) {
        slow();
        prepare_claim(op, name);
        until_called();
}

static void next_process(void) {
        claims_free(node.claims);
        start();
        gpu_driver_set_devices(w.gpu, &w.devices, "");
}

/* The plugin is killed while it sets the time slice of the claim, and the next one has started. */
static void killed_while_setting(const char *name) {
        struct dra_op op;
        until_being_set(&op, name);
        next_process();
        smi("");
}

static void a_time_slice_is_set_recorded_and_reset(void **state) {
        (void)state;
        begin(SHORT, "test -n \"$LD_PRELOAD\"");
        prepared_claim("one");
        called_with(SET("GPU-0", "1"));
        _cleanup_(freep) char *text = read_checkpoint();
        assert_non_null(strstr(
                text,
                "\"mig\":null}],\"configState\":{\"mpsControlDaemonID\":\"\",\"timeSliceApplied\":true}}]"));
        prepared_claim("one"); /* answered from the record */
        called_with("");
        unprepared_claim("one");
        called_with(SET("GPU-0", "0"));
        assert_false(is_there(ONE));
        /* Without a configuration nothing is set and nothing is reset. */
        w.config = "";
        prepared_claim("one");
        unprepared_claim("one");
        called_with("");
}

static void with_several_gpus_all_modes_are_set_before_the_slices(void **state) {
        (void)state;
        begin(SLICED("a", "\"interval\":\"Long\"") "," SLICED("b", ""), "");
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1") "," RESULT("m", "gpu-1-mig-1g24gb-19-0");
        prepared_claim("one");
        called_with("-i GPU-0 -c DEFAULT\n-i GPU-1 -c DEFAULT\n"
                    "compute-policy -i GPU-0 --set-timeslice 3\n"
                    "compute-policy -i GPU-1 --set-timeslice 0\n");
        unprepared_claim("one");
        called_with("-i GPU-0 -c DEFAULT\n-i GPU-1 -c DEFAULT\n"
                    "compute-policy -i GPU-0 --set-timeslice 0\n"
                    "compute-policy -i GPU-1 --set-timeslice 0\n");
}

static void admin_access_changes_no_time_slice_and_an_event_reports_it(void **state) {
        (void)state;
        begin(SHORT, "");
        w.results = ADMIN_RESULT;
        prepared_claim("one");
        assert_non_null(
                strstr(api.events, "TimeSliceNotSet: the time slice of 'gpu-0' on node n0 is not changed"));
        unprepared_claim("one");
        called_with("");
}

/* failure: nvidia-smi refuses a time slice -> Prepare fails, and time slices that were set are reset */
static void a_refused_time_slice_is_reported_and_others_are_reset(void **state) {
        struct dra_op op;
        (void)state;
        begin(SHORT,
              "case \"$*\" in *GPU-1\\ --set-timeslice\\ 1) echo; echo 'Not Supported'; echo; exit 3;; esac");
        w.results = RESULT("gpu", "gpu-0") "," RESULT("gpu", "gpu-1");
        prepare_claim(&op, "one");
        until(&op, FAILED);
        assert_string_equal(op.msg,
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
        /* The error also names a driver root without nvidia-smi. */
        _cleanup_(freep) char *path = file_join(node.dir, "usr/bin/nvidia-smi");
        assert_int_equal(unlink(path), 0);
        refused("one", "'nvidia-smi' is not in driver root '/run/nvidia/driver'");
}

/* failure: nvidia-smi fails at Unprepare -> the claim is unprepared, and an Event reports it */
static void a_claim_is_unprepared_although_nvidia_smi_fails(void **state) {
        (void)state;
        begin(SHORT, "");
        prepared_claim("one");
        smi("echo 'GPU is lost'; exit 15");
        unprepared_claim("one");
        assert_false(is_there(ONE));
        assert_null(node.claims->journal.table.claims);
        assert_non_null(
                strstr(api.events,
                       "TimeSliceNotReset: a GPU may keep the time slice or compute mode of the unprepared claim " ONE));
        assert_non_null(strstr(api.events, "exit status 15: GPU is lost"));
}

/* The configuration of a claim with admin access changes nothing for the claim that uses the GPU. */
static void a_wrong_configuration_is_also_refused_with_admin_access(void **state) {
        (void)state;
        configure(SLICED("gpu", "\"interval\":\"Tiny\""), "");
        w.results = ADMIN_RESULT;
        refused("one", "unknown time-slice interval: Tiny");
        called_with("");
}

/* The Go driver has prepared the claim with an MPS daemon, and written its record. */
/* failure: a claim with MPS of the Go driver is unprepared -> the GPU's compute mode is reset */
static void the_compute_mode_is_reset_after_an_mps_claim_of_the_go_driver(void **state) {
        (void)state;
        begin("", "");
        w.results = RESULT("a", "gpu-0") "," RESULT("b", "gpu-1");
        prepared_claim("one");
        struct checkpoint_claim *entry = checkpoint_find(&node.claims->journal.table, ONE);
        entry->devices[0].group_info = "{\"mpsControlDaemonID\":\"" ONE "-12345\",\"mpsApplied\":true}";
        unprepared_claim("one");
        called_with("-i GPU-0 -c DEFAULT\n");
}

/* Releases of the Go driver record no time slice, and the oldest ones neither the allocation nor the name. */
/* failure: a claim whose time slice the Go driver set is unprepared -> the time slice is reset */
static void a_time_slice_of_a_release_of_the_go_driver_is_reset(void **state) {
        (void)state;
        begin(SHORT, "");
        for (int oldest = 0; oldest < 3; oldest++) {
                prepared_claim("one");
                struct checkpoint_claim *entry = checkpoint_find(&node.claims->journal.table, ONE);
                entry->devices[0].group_info = "{}";
                if (oldest) {
                        entry->status = STR("{}");
                        entry->ns = entry->name = NULL;
                }
                if (oldest == 2) { /* a repeated Prepare adds the name */
                        prepared_claim("one");
                        assert_string_equal(entry->name, "one");
                }
                unprepared_claim("one");
                called_with(SET("GPU-0", "1") SET("GPU-0", "0"));
        }
        /* A claim without a time slice changes nothing. */
        w.config = "";
        prepared_claim("one");
        checkpoint_find(&node.claims->journal.table, ONE)->devices[0].group_info = "{}";
        unprepared_claim("one");
        called_with("");
}

/* failure: nvidia-smi takes long -> other claims are served */
static void others_are_served_while_a_time_slice_is_set(void **state) {
        struct dra_op one, two, again = { 0 };
        (void)state;
        begin(SHORT, "");
        until_being_set(&one, "one");
        const struct checkpoint_claim *entry = checkpoint_find(&node.claims->journal.table, ONE);
        assert_int_equal(entry->state, CHECKPOINT_STARTED);
        /* In the meantime another GPU is prepared and unprepared, */
        w.config = "";
        w.results = RESULT("gpu", "gpu-1");
        prepared_claim("two");
        unprepared_claim("two");
        /* the same GPU is not, */
        w.results = RESULT("gpu", "gpu-0");
        prepare_claim(&two, "two");
        while (!strstr(TAILQ_LAST(&node.claims->ops, op_list)->msg,
                       "already allocated to different claim " ONE))
                node_turn();
        /* and a second call for the same claim is answered with the first. */
        w.config = SHORT;
        prepare_claim(&again, "one");
        for (int i = 0; i < 50; i++)
                node_poll();
        assert_int_equal(again.answer, PENDING);
        tree_put(node.dir, "go", "");
        until(&one, PREPARED);
        until(&again, PREPARED);
        called_with(SET("GPU-0", "1"));
        assert_int_equal(two.answer, PENDING);
        unprepared_claim("one");
        until(&two, PREPARED);
        unprepared_claim("two");
}

/* failure: a claim is deleted while its time slice is set -> Unprepare waits and resets it */
static void unprepare_during_prepare_waits_and_resets_the_time_slice(void **state) {
        struct dra_op one, gone = { 0 };
        (void)state;
        begin(SHORT, "");
        until_being_set(&one, "one");
        unprepare_claim(&gone, "one");
        for (int i = 0; i < 50; i++)
                node_poll();
        assert_int_equal(gone.answer, PENDING);
        tree_put(node.dir, "go", "");
        until(&gone, UNPREPARED);
        until(&one, FAILED);
        called_with(SET("GPU-0", "1") SET("GPU-0", "0"));
        assert_false(is_there(ONE));
}

/* A plugin that was killed while it set a time slice has recorded this before. */
/* failure: the plugin is killed while it sets a time slice -> the next one resets it */
static void a_time_slice_of_a_killed_process_is_reset(void **state) {
        (void)state;
        begin(SHORT, "");
        killed_while_setting("one");
        unprepared_claim("one");
        called_with(SET("GPU-0", "0"));
        /* The time slice of a claim that has other devices now is reset, too. */
        killed_while_setting("two");
        w.results = RESULT("gpu", "gpu-1");
        prepared_claim("two");
        called_with(SET("GPU-0", "0") SET("GPU-1", "1"));
        unprepared_claim("two");
}

/* failure: a claim gets the GPU before the time slice of a killed process is reset -> it is reset later */
static void a_time_slice_of_a_killed_process_is_reset_for_the_next_claim(void **state) {
        (void)state;
        begin(SHORT, "");
        killed_while_setting("one");
        w.config = "";
        prepared_claim("two");
        unprepared_claim("one");
        called_with(SET("GPU-0", "0"));
        unprepared_claim("two");
        called_with("");
}

static void a_claim_keeps_the_time_slice_that_it_set_after_a_killed_process(void **state) {
        (void)state;
        begin(SHORT, "");
        killed_while_setting("one");
        w.config = LONG;
        prepared_claim("two");
        called_with(SET("GPU-0", "3"));
        unprepared_claim("one");
        called_with("");
        unprepared_claim("two");
}

/* failure: the time slice of a killed process is reset slowly -> the next claim of the GPU waits */
static void a_claim_waits_while_its_gpu_is_reset(void **state) {
        struct dra_op one, two;
        (void)state;
        begin(SHORT, "");
        killed_while_setting("one");
        slow();
        unprepare_claim(&one, "one");
        until_called();
        w.config = "";
        prepare_claim(&two, "two");
        while (!strstr(TAILQ_LAST(&node.claims->ops, op_list)->msg, "is being reset"))
                node_turn();
        assert_int_equal(two.answer, PENDING);
        tree_put(node.dir, "go", "");
        until(&one, UNPREPARED);
        until(&two, PREPARED);
        called_with(SET("GPU-0", "0"));
        unprepared_claim("two");
}

/* failure: a claim that waits for a used GPU is deleted -> the GPU keeps its time slice */
static void undoing_a_waiting_claim_leaves_the_gpu_of_another_claim(void **state) {
        struct dra_op op;
        (void)state;
        begin(LONG, "");
        prepared_claim("two");
        w.config = SHORT;
        prepare_claim(&op, "one");
        waiting();
        called_with(SET("GPU-0", "3"));
        /* Also if the claim is allocated again, with another GPU. */
        next_process();
        smi("");
        w.results = RESULT("gpu", "gpu-1");
        prepared_claim("one");
        called_with(SET("GPU-1", "1"));
        unprepared_claim("one");
        called_with(SET("GPU-1", "0"));
        w.results = RESULT("gpu", "gpu-0");
        prepare_claim(&op, "one");
        waiting();
        unprepared_claim("one");
        called_with("");
        unprepared_claim("two");
        called_with(SET("GPU-0", "0"));
}

/* A claim may have devices of several drivers, with the same names as GPUs of this node. */
static void devices_of_another_driver_are_left_alone_when_a_claim_is_undone(void **state) {
        (void)state;
        begin(SHORT "," SLICED("other", "\"interval\":\"Short\""), "");
        w.results = RESULT("gpu", "gpu-0") ","
                                           "{\"request\":\"other\",\"driver\":\"gpu.example.com\",\"pool\":"
                                           "\"n0\",\"device\":\"gpu-1\"}";
        killed_while_setting("one");
        unprepared_claim("one");
        called_with(SET("GPU-0", "0"));
}

/* failure: the checkpoint is lost -> Unprepare still resets the time slice */
static void a_time_slice_is_reset_after_the_checkpoint_was_lost(void **state) {
        (void)state;
        begin(SHORT, "");
        prepared_claim("one");
        called_with(SET("GPU-0", "1"));
        claims_free(node.claims);
        lose_checkpoint();
        start(); /* from the CDI file */
        unprepared_claim("one");
        called_with(SET("GPU-0", "0"));
}

/* failure: the checkpoint is lost -> a claim without a time slice resets none */
static void no_time_slice_is_reset_for_a_claim_without_one_after_the_checkpoint_was_lost(void **state) {
        (void)state;
        begin("", "");
        prepared_claim("one");
        claims_free(node.claims);
        lose_checkpoint();
        start(); /* from the CDI file */
        next_process();
        unprepared_claim("one");
        called_with("");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_time_slice_is_set_recorded_and_reset),
                T(with_several_gpus_all_modes_are_set_before_the_slices),
                T(admin_access_changes_no_time_slice_and_an_event_reports_it),
                T(a_wrong_configuration_is_also_refused_with_admin_access),
                T(a_refused_time_slice_is_reported_and_others_are_reset),
                T(a_claim_is_unprepared_although_nvidia_smi_fails),
                T(the_compute_mode_is_reset_after_an_mps_claim_of_the_go_driver),
                T(a_time_slice_of_a_release_of_the_go_driver_is_reset),
                T(others_are_served_while_a_time_slice_is_set),
                T(unprepare_during_prepare_waits_and_resets_the_time_slice),
                T(a_time_slice_of_a_killed_process_is_reset),
                T(a_time_slice_of_a_killed_process_is_reset_for_the_next_claim),
                T(a_claim_keeps_the_time_slice_that_it_set_after_a_killed_process),
                T(no_time_slice_is_reset_for_a_claim_without_one_after_the_checkpoint_was_lost),
                T(a_claim_waits_while_its_gpu_is_reset),
                T(undoing_a_waiting_claim_leaves_the_gpu_of_another_claim),
                T(devices_of_another_driver_are_left_alone_when_a_claim_is_undone),
                T(a_time_slice_is_reset_after_the_checkpoint_was_lost),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
