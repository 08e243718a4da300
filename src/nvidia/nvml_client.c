/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_client.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/stderr.h"
#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_worker.h"

struct nvml_client {
        uv_loop_t *loop;
        struct guard guard;
        struct nvml_channel *channel; /* NULL: no process */
        /* The library's file when the process was started. Another file is another driver, also with the same
         * path. */
        char *library;
        struct stat file;
        /* With an open query: its time-out, or the pause before the start. Otherwise: the end of the process.
         */
        struct loop_timer timer;
        unsigned failures; /* in a row */
        uint64_t not_before_ms;
        /* The open query, if there is one. */
        bool asking;
        int64_t id;
        const char *verb;
        struct nvml_limits limits;
        char at[NVML_AT_SIZE]; /* the GPU that is being queried; "": the library starts */
        nvml_answered_fn *fn;
        void *u;
};

static void end_process(struct nvml_client *c) {
        nvml_channel_free(TAKE(c->channel));
}

static void nvml_client_destroy(struct nvml_client *c) {
        end_process(c);
        loop_timer_done(&c->timer);
        free(c->library);
        free(c);
}

/* The callback may free the client. */
static void nvml_client_answer(struct nvml_client *c, const struct str *json, const struct err *e) {
        c->asking = false;
        guard_enter(&c->guard);
        c->fn(c->u, json, e);
        if (guard_leave(&c->guard))
                nvml_client_destroy(c);
}

/* The process cannot be used any more. */
static void nvml_client_failed(struct nvml_client *c, const struct err *e) {
        c->not_before_ms = loop_now_ms(c->loop) + nvml_backoff_ms(c->failures++);
        end_process(c);
        loop_timer_stop(&c->timer);
        if (c->asking)
                nvml_client_answer(c, NULL, e);
}

/* The process violates the protocol. */
static void strange(struct nvml_client *c, struct err *e) {
        e->kind = ERR_RETRY;
        e->code = NVML_CRASHED;
        nvml_client_failed(c, e);
}

static void nvml_client_on_line(void *u, struct str line) {
        struct nvml_client *c = u;
        struct nvml_answer a;
        struct err e;
        int r = nvml_answer_parse(line, &a, &e);
        if (r == 0 && (!c->asking || a.id != c->id))
                r = err_set(&e, ERR_INVALID, 0, "NVML's process answers an unknown question");
        if (r < 0) {
                strange(c, &e);
                return;
        }
        if (a.kind == NVML_AT) {
                snprintf(c->at, sizeof c->at, "%.*s", (int)a.text.n, a.text.p);
                loop_timer_start(&c->timer, c->limits.silent_ms);
                return;
        }
        c->failures = 0;
        loop_timer_stop(&c->timer);
        if (!nvml_channel_pid(c->channel))
                end_process(c); /* this was its last line */
        if (a.kind == NVML_YES) {
                if (c->channel)
                        loop_timer_start(&c->timer, NVML_LINGER_MS);
                nvml_client_answer(c, &a.text, NULL);
                return;
        }
        err_set(&e, ERR_RETRY, (int)a.code, "%.*s", (int)a.text.n, a.text.p);
        end_process(c); /* it is about to exit, and must not get another question */
        nvml_client_answer(c, NULL, &e);
}

static void nvml_client_on_ended(void *u, const struct err *e) {
        struct nvml_client *c = u;
        if (c->asking) {
                nvml_client_failed(c, e);
        } else {
                end_process(c);
                loop_timer_stop(&c->timer);
        }
}

static int nvml_client_start_process(struct nvml_client *c, struct err *e) {
        return nvml_channel_open(c->loop,
                                 &(struct nvml_channel_options){ .role = NVML_WORKER_QUERY,
                                                                 .library = c->library,
                                                                 .line = nvml_client_on_line,
                                                                 .ended = nvml_client_on_ended,
                                                                 .u = c },
                                 &c->channel, e);
}

static void put_question(struct nvml_client *c) {
        struct buf text = BUF_INIT(NVML_QUESTION_MAX);
        struct err e;
        if (!c->channel && nvml_client_start_process(c, &e) < 0) {
                nvml_client_failed(c, &e);
                return;
        }
        nvml_question_write(++c->id, c->verb, &text);
        nvml_channel_send(c->channel, (struct str){ buf_str(&text), text.n });
        buf_done(&text);
        loop_timer_start(&c->timer, c->limits.start_ms);
}

static void nvml_client_on_timer(void *u) {
        struct nvml_client *c = u;
        struct err e;
        if (!c->asking) {
                end_process(c);
        } else if (!c->channel) {
                put_question(c);
        } else {
                nvml_hung(&c->limits, c->at, &e);
                nvml_client_failed(c, &e);
        }
}

struct nvml_client *nvml_client_new(uv_loop_t *loop) {
        struct nvml_client *c = xnew(struct nvml_client);
        c->loop = loop;
        loop_timer_init(&c->timer, loop, nvml_client_on_timer, c);
        return c;
}

static bool nvml_client_same_file(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void nvml_client_ask(struct nvml_client *c, const char *library, const char *verb, struct nvml_limits limits,
                     nvml_answered_fn *fn, void *u) {
        struct stat now;
        BUG_ON(c->asking || !limits.start_ms || !limits.silent_ms);
        if (stat(library, &now) < 0)
                now = (struct stat){ 0 }; /* the process will report the error */
        if (!streq(c->library, library) || !nvml_client_same_file(&now, &c->file)) {
                end_process(c);
                c->failures = 0;
                c->not_before_ms = 0;
                free(c->library);
                c->library = xstrdup(library);
                c->file = now;
        }
        c->asking = true;
        c->verb = verb;
        c->limits = limits;
        c->at[0] = '\0';
        c->fn = fn;
        c->u = u;
        if (c->channel)
                put_question(c);
        else
                loop_timer_at(&c->timer, c->not_before_ms); /* a failed start is reported in a later turn */
}

bool nvml_client_asking(const struct nvml_client *c) {
        return c->asking;
}

pid_t nvml_client_pid(const struct nvml_client *c) {
        return c->channel ? nvml_channel_pid(c->channel) : 0;
}

void nvml_client_free(struct nvml_client *c) {
        if (c && guard_free(&c->guard))
                nvml_client_destroy(c);
}
