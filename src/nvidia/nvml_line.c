/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/nvml_line.h"

#include <string.h>

#include "base/json.h"

static int parse_id(struct str *rest, int64_t *ret, struct err *e) {
        struct str field;
        if (!str_next_field(rest, ' ', &field) || !str_to_i64(field, ret) || *ret < 1)
                return err_set(e, ERR_INVALID, 0, "NVML's process: a line without an ID");
        return 0;
}

int nvml_question_parse(struct str line, struct nvml_question *ret, struct err *e) {
        if (parse_id(&line, &ret->id, e) < 0)
                return -1;
        if (!line.n || memchr(line.p, ' ', line.n))
                return err_set(e, ERR_INVALID, 0, "NVML's process: the line is not a question");
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
        a.kind = str_eq(word, STR("ok")) ? NVML_YES : str_eq(word, STR("at")) ? NVML_AT : NVML_NO;
        if (a.kind != NVML_NO ? !line.n : !str_eq(word, STR("no")) || !parse_no(&line, &a.code))
                return err_set(e, ERR_INVALID, 0, "NVML's process: the line is not an answer");
        a.text = line;
        *ret = a;
        return 0;
}

/* Libraries may return texts with several lines. */
static void nvml_line_write_text(struct str text, struct buf *out) {
        for (size_t i = 0; i < text.n; i++)
                buf_addc(out, text.p[i] == '\n' ? ' ' : text.p[i]);
        buf_addc(out, '\n');
}

void nvml_answer_write(const struct nvml_answer *a, struct buf *out) {
        switch (a->kind) {
        case NVML_YES:
                buf_addf(out, "%lld ok ", (long long)a->id);
                break;
        case NVML_AT:
                buf_addf(out, "%lld at ", (long long)a->id);
                break;
        case NVML_NO:
                buf_addf(out, "%lld no %lld ", (long long)a->id, (long long)a->code);
                break;
        }
        nvml_line_write_text(a->text, out);
}

/* ---- events ---- */

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

static const char mark[] = "! ";

bool nvml_event_is(struct str line) {
        return line.n >= sizeof mark - 1 && memcmp(line.p, mark, sizeof mark - 1) == 0;
}

static bool parse_number(struct str *rest, int64_t min, int64_t max, int64_t *ret) {
        struct str field;
        return str_next_field(rest, ' ', &field) && str_to_i64(field, ret) && *ret >= min && *ret <= max;
}

int nvml_event_parse(struct str line, struct nvml_event *ret, struct err *e) {
        struct nvml_event ev = { 0 };
        struct str word = { 0 };
        int64_t xid = 0;
        bool ok = nvml_event_is(line);
        if (ok) {
                line = (struct str){ line.p + sizeof mark - 1, line.n - (sizeof mark - 1) };
                (void)str_next_field(&line, ' ', &word);
        }
        if (ok && str_eq(word, STR("beat"))) {
                ok = !line.n;
        } else if (ok && str_eq(word, STR("xid"))) {
                ev.kind = NVML_XID;
                ok = str_next_field(&line, ' ', &ev.uuid) && ev.uuid.n && ev.uuid.n <= NVML_UUID_MAX &&
                     parse_number(&line, 0, INT64_MAX, &xid) &&
                     parse_number(&line, -1, UINT32_MAX - INT64_C(1), &ev.gpu_instance) &&
                     parse_number(&line, -1, UINT32_MAX - INT64_C(1), &ev.compute_instance) && !line.n;
                ev.xid = (uint64_t)xid;
        } else if (ok && str_eq(word, STR("end"))) {
                ev.kind = NVML_END;
                ok = parse_number(&line, INT32_MIN, INT32_MAX, &ev.code);
                ev.text = line;
        } else {
                ok = false;
        }
        if (!ok)
                return err_set(e, ERR_INVALID, 0, "NVML's process: the line is not an event");
        *ret = ev;
        return 0;
}

void nvml_event_write(const struct nvml_event *ev, struct buf *out) {
        buf_adds(out, mark);
        switch (ev->kind) {
        case NVML_BEAT:
                buf_adds(out, "beat\n");
                break;
        case NVML_XID:
                buf_addf(out, "xid %.*s %llu %lld %lld\n", (int)ev->uuid.n, ev->uuid.p,
                         (unsigned long long)ev->xid, (long long)ev->gpu_instance,
                         (long long)ev->compute_instance);
                break;
        case NVML_END:
                buf_addf(out, "end %lld ", (long long)ev->code);
                nvml_line_write_text(ev->text, out);
                break;
        }
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
