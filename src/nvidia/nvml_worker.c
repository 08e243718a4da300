/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "nvidia/nvml_events.h"
#include "nvidia/nvml_library.h"
#include "nvidia/nvml_line.h"
#include "nvidia/nvml_survey.h"
#include "nvidia/params_mask.h"

enum { CHANNEL = 3 };

typedef int(survey_fn)(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                       struct err *e);

static survey_fn *find_survey(struct str verb) {
        return str_eq(verb, STR(NVML_ASK_FABRIC))      ? nvml_survey_fabric
               : str_eq(verb, STR(NVML_ASK_INVENTORY)) ? nvml_survey_inventory
                                                       : NULL;
}

struct worker {
        const char *path;
        bool watches; /* for events, instead of answering questions */
        bool masked, loaded;
        struct nvml_library library;
};

/* Called before the library is loaded, because it may start threads. */
static int nvml_worker_mask_params(struct worker *w, struct err *e) {
        char why[PARAMS_MASK_WHY];
        if (w->masked || !streq(getenv(NVML_WORKER_MASK), "true"))
                return 0;
        if (params_mask_unshared(PARAMS_MASK_FOLDER, PARAMS_MASK_FILE, why) < 0)
                return err_set(
                        e, ERR_RETRY, NVML_CANNOT_LOAD,
                        "cannot cover /proc/" PARAMS_MASK_FOLDER "/" PARAMS_MASK_FILE
                        ", as the chart value maskNvidiaDriverParams requests: %s; the container must be "
                        "privileged",
                        why);
        w->masked = true;
        return 0;
}

static int nvml_worker_begin(struct worker *w, struct err *e) {
        if (nvml_worker_mask_params(w, e) < 0)
                return -1;
        if (!w->loaded && nvml_library_load(w->path, &w->library, e) < 0)
                return -1;
        w->loaded = true;
        return nvml_library_begin(&w->library, e);
}

static bool send_line(const struct buf *line) {
        struct err e;
        return file_write_all(CHANNEL, "answer", line->p, line->n, &e) == 0;
}

static bool send_answer(const struct nvml_answer *a) {
        struct buf out = BUF_INIT(NVML_LINE_MAX + 1);
        nvml_answer_write(a, &out);
        bool ok = send_line(&out);
        buf_done(&out);
        return ok;
}

/* A closed descriptor is noticed when the answer is written. */
static void report_gpu(void *u, unsigned index) {
        const int64_t *id = u;
        char text[32];
        snprintf(text, sizeof text, "GPU %u", index);
        (void)send_answer(&(struct nvml_answer){ .id = *id, .kind = NVML_AT, .text = str_from(text) });
}

/* -1: the library cannot be loaded or started. */
static int nvml_worker_ask(struct worker *w, struct nvml_question *q, struct buf *out, bool *ret_ok,
                           struct err *e) {
        survey_fn *survey = find_survey(q->verb);
        *ret_ok = false;
        if (!survey) {
                err_set(e, ERR_INVALID, 0, "NVML's process got an unknown question");
                return 0;
        }
        if (nvml_worker_begin(w, e) < 0)
                return -1;
        *ret_ok = survey(&w->library, &(struct nvml_progress){ report_gpu, &q->id }, out, e) == 0 &&
                  !out->failed;
        nvml_library_end(&w->library);
        if (out->failed)
                err_set(e, ERR_INVALID, 0, "NVML's answer has more than %d bytes", NVML_LINE_MAX);
        return 0;
}

static bool say_result(struct nvml_answer *a, bool ok, const struct buf *json, const struct err *e) {
        a->kind = ok ? NVML_YES : NVML_NO;
        a->text = ok ? (struct str){ buf_str(json), json->n } : str_from(e->msg);
        a->code = ok ? 0 : e->code;
        return send_answer(a);
}

/* Runs until the watch fails, or until a write to the closed descriptor ends the process by a signal. */
static void nvml_worker_watch(struct worker *w, int64_t id) {
        struct buf json = BUF_INIT(NVML_LINE_MAX - NVML_QUESTION_MAX);
        struct nvml_answer a = { .id = id };
        nvml_event_set_t set = NULL;
        struct nvml_progress p = { report_gpu, &id };
        struct err e;
        bool ok = nvml_worker_begin(w, &e) == 0 && nvml_events_begin(&w->library, &p, &set, &json, &e) == 0;
        bool more = say_result(&a, ok, &json, &e) && ok;
        while (more) {
                struct buf line = BUF_INIT(NVML_LINE_MAX);
                more = nvml_events_next(&w->library, set, &line);
                more = send_line(&line) && more;
                buf_done(&line);
        }
        buf_done(&json);
}

/* False: no more questions. */
static bool serve(struct worker *w, struct str line) {
        struct nvml_question q;
        struct err e;
        if (nvml_question_parse(line, &q, &e) < 0)
                return false;
        if (w->watches) {
                if (str_eq(q.verb, STR(NVML_ASK_WATCH)))
                        nvml_worker_watch(w, q.id);
                return false;
        }
        struct buf json = BUF_INIT(NVML_LINE_MAX - NVML_QUESTION_MAX);
        struct nvml_answer a = { .id = q.id };
        bool ok, more = nvml_worker_ask(w, &q, &json, &ok, &e) == 0;
        more = say_result(&a, ok, &json, &e) && more;
        buf_done(&json);
        return more;
}

int nvml_worker_main(int argc, char **argv) {
        const struct rlimit no_core = { 0, 0 };
        struct buf in = BUF_INIT(2 * NVML_QUESTION_MAX);
        struct worker w = { 0 };
        bool more = true;
        if (argc != 2 || (!streq(argv[0], NVML_WORKER_QUERY) && !streq(argv[0], NVML_WORKER_EVENTS))) {
                fprintf(stderr, "usage: " NVML_WORKER " " NVML_WORKER_QUERY "|" NVML_WORKER_EVENTS
                                " <path of libnvidia-ml.so.1>\n");
                return 2;
        }
        w.path = argv[1];
        w.watches = streq(argv[0], NVML_WORKER_EVENTS);
        (void)setrlimit(RLIMIT_CORE, &no_core);
        while (more) {
                char chunk[NVML_QUESTION_MAX];
                ssize_t n = read(CHANNEL, chunk, sizeof chunk);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                buf_add(&in, chunk, (size_t)n);
                struct str rest = { buf_str(&in), in.n }, line;
                bool whole = false;
                struct err e;
                while ((more = more && !in.failed && nvml_line_next(&rest, &line, &whole, &e) == 0) && whole)
                        more = serve(&w, line);
                buf_consume(&in, in.n - rest.n);
        }
        buf_done(&in);
        return 0;
}
