/* SPDX-License-Identifier: Apache-2.0 */
/* Claims with time slices while nvidia-smi hangs. In virtual time (world/clock.c). */
#include "world/gpu_claims.h"

#include "base/file.h"
#include "tree.h"

/* A substitute for nvidia-smi that logs its arguments. The test chooses what else it does. */
static void smi(const char *does) {
        _cleanup_(freep) char *log = file_join(node.dir, "smi.log");
        _cleanup_(freep) char *text = xasprintf("#!/bin/sh\necho \"$*\" >> %s\n%s\n", log, does);
        tree_put(node.dir, "smi.log", "");
        tree_put(node.dir, "usr/bin/nvidia-smi", text);
}

static void called_with(const char *want) {
        _cleanup_(freep) char *log = file_join(node.dir, "smi.log"), *text = read_file(log);
        assert_string_equal(text, want);
}

/* Claims of two GPUs set their time slices. */
static void begin(void) {
        needs_nodes();
        w.gates.on[GATE_TIME_SLICING_SETTINGS] = true;
        w.results = RESULT("gpu", "gpu-0") "," RESULT("gpu", "gpu-1");
        w.config = "{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],\"opaque\":{"
                   "\"driver\":\"gpu.nvidia.com\",\"parameters\":{"
                   "\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"GpuConfig\",\"sharing\":{"
                   "\"strategy\":\"TimeSlicing\",\"timeSlicingConfig\":{\"interval\":\"Long\"}}}}}";
}

/* The node has three devices: 180 s for the start, and 60 s for each of them. */
enum { LIMIT_MS = 360000, KILL_MS = 2000 };

/* failure: nvidia-smi hangs at Unprepare -> it is killed once, after minutes, and an Event names all GPUs */
static void a_hanging_nvidia_smi_is_waited_for_once_at_unprepare(void **state) {
        (void)state;
        begin();
        smi("");
        prepared_claim("one");
        smi("exec sleep 1000");
        uint64_t before = loop_now_ms(&node.loop);
        unprepared_claim("one");
        assert_in_range(loop_now_ms(&node.loop) - before, LIMIT_MS, LIMIT_MS + KILL_MS);
        called_with("-i GPU-0 -c DEFAULT\n");
        assert_non_null(strstr(api.events, "it has not ended within 360 s; not set: GPU-0 GPU-1"));
        assert_false(is_there(ONE));
}

/* failure: nvidia-smi hangs after it has reset some GPUs -> an Event names the others */
static void gpus_that_were_reset_before_nvidia_smi_hangs_are_not_named(void **state) {
        (void)state;
        begin();
        smi("");
        prepared_claim("one");
        smi("case \"$*\" in *GPU-1\\ --set*) exec sleep 1000;; esac");
        unprepared_claim("one");
        assert_non_null(strstr(api.events, "it has not ended within 360 s; not set: GPU-1"));
}

/* failure: nvidia-smi hangs at Prepare -> it is also killed once when the time slices are reset */
static void a_hanging_nvidia_smi_is_waited_for_twice_at_prepare(void **state) {
        struct dra_op op;
        (void)state;
        begin();
        smi("case \"$*\" in *--set*) exec sleep 1000;; esac");
        uint64_t before = loop_now_ms(&node.loop);
        prepare_claim(&op, "one");
        until(&op, FAILED);
        while (node.claims->ops.tqh_first)
                node_turn();
        assert_in_range(loop_now_ms(&node.loop) - before, 2 * LIMIT_MS, 2 * LIMIT_MS + 2 * KILL_MS);
        called_with("-i GPU-0 -c DEFAULT\n-i GPU-1 -c DEFAULT\n"
                    "compute-policy -i GPU-0 --set-timeslice 3\n"
                    "compute-policy -i GPU-0 --set-timeslice 0\n");
        smi("");
        unprepared_claim("one");
}

/* failure: the kubelet repeats a Prepare while nvidia-smi hangs -> the answer blames no disk */
static void a_repeated_prepare_reports_the_earlier_request(void **state) {
        struct dra_op first, second;
        (void)state;
        begin();
        smi("case \"$*\" in *--set*) exec sleep 1000;; esac");
        prepare_claim(&first, "one");
        until(&first, FAILED);
        assert_non_null(strstr(first.msg, "has not finished in time; it continues"));
        prepare_claim(&second, "one");
        until(&second, FAILED);
        assert_non_null(
                strstr(second.msg, "an earlier request for this claim has not finished on the node"));
        smi("");
        while (node.claims->ops.tqh_first)
                node_turn();
        unprepared_claim("one");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                T(a_hanging_nvidia_smi_is_waited_for_once_at_unprepare),
                T(gpus_that_were_reset_before_nvidia_smi_hangs_are_not_named),
                T(a_hanging_nvidia_smi_is_waited_for_twice_at_prepare),
                T(a_repeated_prepare_reports_the_earlier_request),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
