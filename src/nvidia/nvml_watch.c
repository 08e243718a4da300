/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/json.h"
#include "base/loop.h"
#include "nvidia/nvml_client.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"

/* ---- result of the start ---- */

enum { GPUS_MAX = 64 };

static const struct jd_field f_gpu[] = { JD_STR(struct nvml_watched_gpu, "uuid", uuid, .required = true),
                                         JD_INT(struct nvml_watched_gpu, "error", error, .required = true),
                                         JD_STR(struct nvml_watched_gpu, "call", call), JD_END };
static const struct jd_field f_watched[] = {
        JD_LIST(struct nvml_watched, "gpus", gpus, struct nvml_watched_gpu, f_gpu, .required = true), JD_END
};

int nvml_watched_decode(struct str json, struct arena *a, struct nvml_watched *ret, struct err *e) {
        struct nvml_watched w = { 0 };
        if (jd_decode_text(f_watched, json, "", a, &w, e) < 0)
                return -1;
        if (w.n_gpus > GPUS_MAX)
                return err_set(e, ERR_INVALID, 0, "more than %d GPUs", GPUS_MAX);
        for (size_t i = 0; i < w.n_gpus; i++) {
                if (strlen(w.gpus[i].uuid) > NVML_UUID_MAX)
                        return err_set(e, ERR_INVALID, 0, "a UUID of more than %d bytes", NVML_UUID_MAX);
                if (!w.gpus[i].call)
                        w.gpus[i].call = "";
        }
        *ret = w;
        return 0;
}

/* ---- the process ---- */

struct nvml_watch {
        uv_loop_t *loop;
        struct nvml_watch_options o;
        struct guard guard;
        char *library; /* NULL: nothing is watched */
        uint64_t state;
        struct nvml_channel *channel; /* NULL: waits for the next start */
        bool begun;                   /* the process has answered */
        bool outdated;                /* the process is still starting, and will be replaced */
        char at[NVML_AT_SIZE];        /* the GPU that it is starting to watch; "": NVML starts */
        struct loop_timer timer;      /* the next start, or when a silent process counts as hung */
        unsigned failures;            /* in a row */
};

static void nvml_watch_destroy(struct nvml_watch *w) {
        nvml_channel_free(w->channel);
        loop_timer_done(&w->timer);
        free(w->library);
        free(w);
}

static bool nvml_watch_leave(struct nvml_watch *w) {
        bool freed = guard_leave(&w->guard);
        if (freed)
                nvml_watch_destroy(w);
        return !freed;
}

static void nvml_watch_stop(struct nvml_watch *w) {
        nvml_channel_free(TAKE(w->channel));
        loop_timer_stop(&w->timer);
        w->begun = w->outdated = false;
        w->at[0] = '\0';
}

/* Starts again with the current library, if there is one. */
static void start_over(struct nvml_watch *w) {
        nvml_watch_stop(w);
        w->failures = 0;
        if (w->library)
                loop_timer_start(&w->timer, 0); /* a failed start is reported in a later turn */
}

static void nvml_watch_failed(struct nvml_watch *w, const struct err *e) {
        if (w->outdated) { /* regardless of its result */
                start_over(w);
                return;
        }
        nvml_watch_stop(w);
        loop_timer_start(&w->timer, nvml_backoff_ms(w->failures++));
        guard_enter(&w->guard);
        w->o.broken(w->o.u, e);
        (void)nvml_watch_leave(w);
}

static void on_start(struct nvml_watch *w, struct str line) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct nvml_watched watched;
        struct nvml_answer answer;
        struct err e;
        int r = nvml_answer_parse(line, &answer, &e);
        if (r == 0 && answer.kind == NVML_AT) {
                snprintf(w->at, sizeof w->at, "%.*s", (int)answer.text.n, answer.text.p);
                return;
        }
        if (r == 0 && answer.kind == NVML_NO)
                r = err_set(&e, ERR_RETRY, (int)answer.code, "%.*s", (int)answer.text.n, answer.text.p);
        else if (r == 0)
                r = nvml_watched_decode(answer.text, a, &watched, &e);
        if (r < 0 && e.kind != ERR_RETRY)
                err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML's process writes unknown lines");
        if (r < 0) {
                nvml_watch_failed(w, &e);
                return;
        }
        if (w->outdated) {
                start_over(w);
                return;
        }
        w->begun = true;
        loop_timer_start(&w->timer, w->o.silent_ms);
        guard_enter(&w->guard);
        w->o.watched(w->o.u, &watched);
        (void)nvml_watch_leave(w);
}

static void nvml_watch_on_event(struct nvml_watch *w, struct str line) {
        struct nvml_event ev;
        struct err e;
        if (nvml_event_parse(line, &ev, &e) < 0) {
                err_set(&e, ERR_RETRY, NVML_CRASHED, "NVML's process writes unknown lines");
                nvml_watch_failed(w, &e);
        } else if (ev.kind == NVML_END) {
                err_set(&e, ERR_RETRY, (int)ev.code, "%.*s", (int)ev.text.n, ev.text.p);
                nvml_watch_failed(w, &e);
        } else if (ev.kind == NVML_XID) {
                guard_enter(&w->guard);
                w->o.xid(w->o.u, &ev);
                (void)nvml_watch_leave(w);
        } else {
                w->failures = 0; /* the watch has been stable for a while */
        }
}

static void nvml_watch_on_line(void *u, struct str line) {
        struct nvml_watch *w = u;
        loop_timer_start(&w->timer, w->begun ? w->o.silent_ms : w->o.limits.silent_ms);
        if (w->begun)
                nvml_watch_on_event(w, line);
        else
                on_start(w, line);
}

static void nvml_watch_on_ended(void *u, const struct err *e) {
        nvml_watch_failed(u, e);
}

static void nvml_watch_start(struct nvml_watch *w) {
        struct buf text = BUF_INIT(NVML_QUESTION_MAX);
        struct err e;
        if (nvml_channel_open(w->loop,
                              &(struct nvml_channel_options){ .role = NVML_WORKER_EVENTS,
                                                              .library = w->library,
                                                              .line = nvml_watch_on_line,
                                                              .ended = nvml_watch_on_ended,
                                                              .u = w },
                              &w->channel, &e) < 0) {
                nvml_watch_failed(w, &e);
                return;
        }
        nvml_question_write(1, NVML_ASK_WATCH, &text);
        nvml_channel_send(w->channel, (struct str){ buf_str(&text), text.n });
        buf_done(&text);
        loop_timer_start(&w->timer, w->o.limits.start_ms);
}

static void nvml_watch_on_timer(void *u) {
        struct nvml_watch *w = u;
        struct err e;
        if (!w->channel) {
                nvml_watch_start(w);
                return;
        }
        if (w->begun)
                err_set(&e, ERR_RETRY, NVML_HUNG, "NVML did not answer in time: it has been silent for %u s",
                        w->o.silent_ms / 1000);
        else
                nvml_hung(&w->o.limits, w->at, &e);
        nvml_watch_failed(w, &e);
}

struct nvml_watch *nvml_watch_new(uv_loop_t *loop, const struct nvml_watch_options *o) {
        struct nvml_watch *w = xnew(struct nvml_watch);
        w->loop = loop;
        w->o = *o;
        loop_timer_init(&w->timer, loop, nvml_watch_on_timer, w);
        return w;
}

void nvml_watch_with(struct nvml_watch *w, const char *library, uint64_t state) {
        if (streq(w->library, library) && w->state == state)
                return;
        free(w->library);
        w->library = library ? xstrdup(library) : NULL;
        w->state = state;
        if (w->channel && !w->begun)
                w->outdated = true;
        else
                start_over(w);
}

pid_t nvml_watch_pid(const struct nvml_watch *w) {
        return w->channel ? nvml_channel_pid(w->channel) : 0;
}

void nvml_watch_free(struct nvml_watch *w) {
        if (!w)
                return;
        nvml_watch_stop(w);
        if (guard_free(&w->guard))
                nvml_watch_destroy(w);
}
