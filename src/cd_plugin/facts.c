/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/facts.h"

#include <stdio.h>
#include <string.h>

#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "cd_plugin/edits.h"
#include "nvidia/device_nodes.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_library.h"
#include "nvidia/nvml_line.h"

enum {
        FIRST_MS = 20,
        WAITING_MS = 1000,
        UNUSABLE_MS = 5000,
        IDLE_MS = 30000,
        PROC_MAX = 256 * 1024,
        NO_ANSWERS_MAX = 3, /* in a row, and for FACTS_HOLD_MS: then the facts expire */
};

static void unusable(struct facts *f, const char *reason, const char *message) {
        f->usable = false;
        f->reason = reason;
        snprintf(f->message, sizeof f->message, "%s", message);
}

void facts_evaluate(const struct facts_input *in, struct facts *ret) {
        *ret = (struct facts){
                .known = true,
                .usable = true,
                .reason = "",
                .channel_major = in->channel_major,
                .channel_count = in->channel_count,
        };
        if (!in->nvml) {
                ret->fabric = (struct gpu_fabric){ .kind = GPU_FABRIC_ERROR };
                snprintf(ret->fabric.reason, sizeof ret->fabric.reason, "%s", in->nvml_error->msg);
                unusable(ret,
                         in->nvml_error->kind == ERR_NOT_FOUND ? REASON_DRIVER_NOT_FOUND
                                                               : REASON_DRIVER_NOT_READY,
                         in->nvml_error->msg);
                return;
        }
        snprintf(ret->driver_version, sizeof ret->driver_version, "%s", in->nvml->driver_version);
        gpu_fabric_from_facts(in->nvml, in->strict, &ret->fabric);
        if (in->runs_imex && nvml_version_cmp(ret->driver_version, FACTS_MIN_DRIVER) < 0) {
                char text[sizeof ret->message];
                snprintf(text, sizeof text,
                         "driver %s is older than " FACTS_MIN_DRIVER
                         ", the first with an nvidia-imex that lists nodes by name: update the driver",
                         ret->driver_version);
                unusable(ret, REASON_DRIVER_TOO_OLD, text);
        } else if (!in->channel_major) {
                unusable(ret, REASON_NO_IMEX_CHANNELS, in->major_error->msg);
        } else if (ret->fabric.kind == GPU_FABRIC_REGISTERING) {
                unusable(ret, REASON_FABRIC_REGISTERING, ret->fabric.reason);
        } else if (ret->fabric.kind == GPU_FABRIC_ERROR) {
                unusable(ret, in->nvml->n_gpus ? REASON_FABRIC_ERROR : REASON_NO_GPUS, ret->fabric.reason);
        }
}

struct facts_sampler {
        uv_loop_t *loop;
        struct facts_options o;
        struct loop_timer timer;
        bool waiting;
        unsigned interval_ms;
        struct nvml_client *nvml;
        struct facts facts;
        unsigned no_answers; /* in a row */
        uint64_t answered_ms;
};

const struct facts *facts_get(const struct facts_sampler *s) {
        return &s->facts;
}

int facts_major(const struct facts_sampler *s, const char *name, unsigned *ret, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        if (file_read(s->o.proc_devices, PROC_MAX, &text, &n, e) < 0)
                return err_wrap(e, "devices of the kernel");
        if (proc_devices_major((struct str){ text, n }, name, ret, e) < 0)
                return err_wrap(e, "%s", s->o.proc_devices);
        return 0;
}

static void facts_schedule(struct facts_sampler *s);

/* Whether the callback is due; `message` may have numbers that change with every sample. */
static bool facts_same(const struct facts *a, const struct facts *b) {
        return a->known == b->known && a->usable == b->usable && streq(a->reason, b->reason) &&
               a->channel_major == b->channel_major && a->channel_count == b->channel_count &&
               a->fabric.kind == b->fabric.kind && streq(a->fabric.clique_id, b->fabric.clique_id) &&
               streq(a->driver_version, b->driver_version) && streq(a->message, b->message);
}

static unsigned channel_count(const char *proc_driver) {
        _cleanup_(freep) char *path = file_join(proc_driver, "params"), *text = NULL;
        size_t n = 0;
        unsigned count = 0;
        struct err e;
        return file_read(path, PROC_MAX, &text, &n, &e) < 0 ||
                               proc_params_channel_count((struct str){ text, n }, &count, &e) < 0
                       ? EDITS_CHANNELS_DEFAULT
                       : count;
}

static void facts_update(struct facts_sampler *s, const struct nvml_facts *nvml, const struct err *error) {
        struct facts now;
        struct err major_error;
        struct facts_input in = { .nvml = nvml,
                                  .nvml_error = error,
                                  .major_error = &major_error,
                                  .channel_count = channel_count(s->o.proc_driver),
                                  .strict = s->o.strict,
                                  .runs_imex = s->o.runs_imex };
        if (facts_major(s, PROC_MAJOR_IMEX_CHANNELS, &in.channel_major, &major_error) < 0)
                in.channel_major = 0;
        facts_evaluate(&in, &now);
        bool news = !facts_same(&now, &s->facts);
        s->facts = now;
        facts_schedule(s);
        if (news)
                s->o.changed(s->o.u);
}

static void facts_answered(struct facts_sampler *s, const struct nvml_facts *nvml, const struct err *error) {
        s->no_answers = 0;
        s->answered_ms = loop_now_ms(s->loop);
        facts_update(s, nvml, error);
}

/* A process that hung or crashed is no information about the driver, nor is a folder that cannot be searched:
 * the known facts stay valid for a while. */
static void facts_no_answer(struct facts_sampler *s, const struct err *e) {
        bool held =
                s->facts.known && s->facts.usable &&
                (s->no_answers < NO_ANSWERS_MAX - 1 || loop_now_ms(s->loop) < s->answered_ms + FACTS_HOLD_MS);
        if (s->facts.usable && (s->no_answers == 0 || !held))
                log_warn(held ? "NVML does not answer: the known facts of this node stay valid for a while"
                              : "NVML has not answered for some time: this node offers nothing",
                         kv_err(e));
        s->no_answers++;
        if (held)
                facts_schedule(s);
        else
                facts_update(s, NULL, e);
}

/* Answers of NVML count, and so does the fact that it cannot be loaded. */
static bool is_answer(const struct err *e) {
        return e->code > 0 || e->code == NVML_CANNOT_LOAD;
}

static void facts_on_answered(void *u, const struct str *json, const struct err *error) {
        struct facts_sampler *s = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(2048);
        struct nvml_facts facts;
        struct err e;
        if (!json && is_answer(error))
                facts_answered(s, NULL, error);
        else if (!json)
                facts_no_answer(s, error);
        else if (nvml_facts_decode(*json, a, &facts, &e) < 0)
                facts_no_answer(s, &e);
        else
                facts_answered(s, &facts, NULL);
}

static void facts_on_timer(void *u) {
        struct facts_sampler *s = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(512);
        struct driver_file library;
        struct err e;
        if (driver_root_find_library(&s->o.root, "libnvidia-ml.so.1", a, &library, &e) < 0) {
                if (e.kind == ERR_NOT_FOUND)
                        facts_answered(s, NULL, &e);
                else
                        facts_no_answer(s, &e);
                return;
        }
        if (s->o.own_dev && device_nodes_copy(&s->o.root, s->o.own_dev, &e) < 0)
                log_v(4, "NVML may lack device nodes", kv_err(&e));
        nvml_client_ask(s->nvml, library.here, NVML_ASK_FABRIC, NVML_LIMITS, facts_on_answered, s);
}

/* The next sample, counted from the end of this one, so that there is a pause even if NVML is slow. */
static void facts_schedule(struct facts_sampler *s) {
        bool fine = s->facts.usable && !s->no_answers;
        unsigned limit = s->waiting ? WAITING_MS : fine ? IDLE_MS : UNUSABLE_MS;
        if (s->waiting || !fine)
                s->interval_ms = s->interval_ms * 2 < limit ? s->interval_ms * 2 : limit;
        else
                s->interval_ms = limit;
        loop_timer_start(&s->timer, s->interval_ms);
}

void facts_poll_fast(struct facts_sampler *s, bool waiting) {
        bool was = s->waiting;
        s->waiting = waiting;
        if (!waiting || was)
                return;
        s->interval_ms = FIRST_MS;
        if (!nvml_client_asking(s->nvml))
                loop_timer_start(&s->timer, FIRST_MS);
}

struct facts_sampler *facts_sampler_new(uv_loop_t *loop, const struct facts_options *o) {
        struct facts_sampler *s = xnew(struct facts_sampler);
        s->loop = loop;
        s->nvml = nvml_client_new(loop);
        s->o = *o;
        s->interval_ms = FIRST_MS;
        s->facts = (struct facts){ .reason = REASON_DRIVER_NOT_QUERIED,
                                   .message = "the NVIDIA driver has not answered yet" };
        loop_timer_init(&s->timer, loop, facts_on_timer, s);
        loop_timer_start(&s->timer, 0);
        return s;
}

void facts_sampler_free(struct facts_sampler *s) {
        if (!s)
                return;
        nvml_client_free(s->nvml);
        loop_timer_done(&s->timer);
        free(s);
}
