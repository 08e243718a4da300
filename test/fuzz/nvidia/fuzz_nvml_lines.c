/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the process that asks NVML, as we read them, and of ours, as it does. */
#include <stdint.h>

#include "base/diag.h"
#include "nvidia/nvml_line.h"

static void check_answer(const struct nvml_answer *a) {
        struct buf text = BUF_INIT(NVML_LINE_MAX + 64);
        struct nvml_answer again;
        struct err e;
        nvml_answer_write(a, &text);
        if (!text.failed) {
                BUG_ON(nvml_answer_parse((struct str){ text.p, text.n - 1 }, &again, &e) < 0);
                BUG_ON(again.id != a->id || again.ok != a->ok || again.code != a->code ||
                       !str_eq(again.text, a->text));
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
                if (nvml_answer_parse(line, &a, &e) == 0) {
                        BUG_ON(a.id < 1 || (a.ok && (a.code || !a.text.n)));
                        check_answer(&a);
                }
                if (nvml_question_parse(line, &q, &e) == 0)
                        BUG_ON(q.id < 1 || !q.verb.n);
        }
        return 0;
}
