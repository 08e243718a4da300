/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the process that queries NVML, as we read them, and ours, as it reads them. */
#include <stdint.h>

#include "base/stderr.h"
#include "nvidia/nvml_line.h"

static void check_answer(const struct nvml_answer *a) {
        struct buf text = BUF_INIT(NVML_LINE_MAX + 64);
        struct nvml_answer again;
        struct err e;
        nvml_answer_write(a, &text);
        if (!text.failed) {
                BUG_ON(nvml_answer_parse((struct str){ text.p, text.n - 1 }, &again, &e) < 0);
                BUG_ON(again.id != a->id || again.kind != a->kind || again.code != a->code ||
                       !str_eq(again.text, a->text));
        }
        buf_done(&text);
}

static void check_watched(struct str json) {
        struct arena *a = arena_new(1024);
        struct nvml_watched w;
        struct err e;
        if (nvml_watched_decode(json, a, &w, &e) == 0) {
                for (size_t i = 0; i < w.n_gpus; i++)
                        BUG_ON(!w.gpus[i].uuid || !w.gpus[i].call);
        }
        arena_free(a);
}

static void check_event(const struct nvml_event *ev) {
        struct buf text = BUF_INIT(NVML_LINE_MAX + 64);
        struct nvml_event again;
        struct err e;
        BUG_ON(ev->kind == NVML_XID && (!ev->uuid.n || ev->gpu_instance < -1 || ev->compute_instance < -1));
        nvml_event_write(ev, &text);
        if (!text.failed) {
                BUG_ON(nvml_event_parse((struct str){ text.p, text.n - 1 }, &again, &e) < 0);
                BUG_ON(again.kind != ev->kind || again.xid != ev->xid || again.code != ev->code ||
                       !str_eq(again.uuid, ev->uuid) || !str_eq(again.text, ev->text));
        }
        buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct str rest = { (const char *)data, n }, line;
        bool whole;
        struct err e;
        while (nvml_line_next(&rest, &line, &whole, &e) == 0 && whole) {
                struct nvml_answer a;
                struct nvml_question q;
                struct nvml_event ev;
                if (nvml_answer_parse(line, &a, &e) == 0) {
                        BUG_ON(a.id < 1 || (a.kind != NVML_NO && (a.code || !a.text.n)));
                        check_answer(&a);
                        check_watched(a.text);
                }
                BUG_ON(nvml_event_is(line) && nvml_answer_parse(line, &a, &e) == 0);
                if (nvml_event_parse(line, &ev, &e) == 0)
                        check_event(&ev);
                if (nvml_question_parse(line, &q, &e) == 0)
                        BUG_ON(q.id < 1 || !q.verb.n);
        }
        return 0;
}
