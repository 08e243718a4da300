/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_line.h"

#include <string.h>

static int parse_id(struct str *rest, int64_t *ret, struct err *e) {
        struct str field;
        if (!str_next_field(rest, ' ', &field) || !str_to_i64(field, ret) || *ret < 1)
                return err_set(e, ERR_INVALID, 0, "NVML's process: a line without an id");
        return 0;
}

int nvml_question_parse(struct str line, struct nvml_question *ret, struct err *e) {
        if (parse_id(&line, &ret->id, e) < 0)
                return -1;
        if (!line.n || memchr(line.p, ' ', line.n))
                return err_set(e, ERR_INVALID, 0, "NVML's process: no question");
        ret->verb = line;
        return 0;
}

void nvml_question_write(int64_t id, const char *verb, struct buf *out) {
        buf_addf(out, "%lld %s\n", (long long)id, verb);
}

static bool parse_no(struct str *rest, int64_t *ret_code) {
        struct str code;
        return str_next_field(rest, ' ', &code) && str_to_i64(code, ret_code) && *ret_code >= INT32_MIN &&
               *ret_code <= INT32_MAX;
}

int nvml_answer_parse(struct str line, struct nvml_answer *ret, struct err *e) {
        struct str word = { 0 };
        struct nvml_answer a = { 0 };
        if (parse_id(&line, &a.id, e) < 0)
                return -1;
        (void)str_next_field(&line, ' ', &word);
        a.ok = str_eq(word, STR("ok"));
        if (a.ok ? !line.n : !str_eq(word, STR("no")) || !parse_no(&line, &a.code))
                return err_set(e, ERR_INVALID, 0, "NVML's process: a line that is no answer");
        a.text = line;
        *ret = a;
        return 0;
}

void nvml_answer_write(const struct nvml_answer *a, struct buf *out) {
        if (a->ok)
                buf_addf(out, "%lld ok ", (long long)a->id);
        else
                buf_addf(out, "%lld no %lld ", (long long)a->id, (long long)a->code);
        for (size_t i = 0; i < a->text.n; i++) /* libraries write texts of several lines */
                buf_addc(out, a->text.p[i] == '\n' ? ' ' : a->text.p[i]);
        buf_addc(out, '\n');
}

int nvml_line_next(struct str *rest, struct str *ret, bool *ret_whole, struct err *e) {
        const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
        size_t n = end ? (size_t)(end - rest->p) : rest->n;
        *ret_whole = false;
        if (n > NVML_LINE_MAX)
                return err_set(e, ERR_INVALID, 0, "NVML's process: a line of more than %d bytes",
                               NVML_LINE_MAX);
        if (!end)
                return 0;
        *ret = (struct str){ rest->p, n };
        *rest = (struct str){ end + 1, rest->n - n - 1 };
        *ret_whole = true;
        return 0;
}
