/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_report.h"

#include <string.h>

enum { REPORT_VERSION = 1 };

static const struct jd_field f_report_item[] = {
        JD_STR(struct check_report_item, "name", name, .required = true),
        JD_STR(struct check_report_item, "state", state_name, .required = true),
        JD_STR(struct check_report_item, "text", text, .required = true),
        JD_STR(struct check_report_item, "remedy", remedy),
        JD_END,
};
static const struct jd_field f_report[] = {
        JD_INT(struct check_report, "version", version, .required = true),
        JD_STR(struct check_report, "program", program, .required = true),
        JD_STR(struct check_report, "node", node),
        JD_LIST(struct check_report, "items", items, struct check_report_item, f_report_item,
                .required = true),
        JD_END,
};

static const char *const state_words[] = {
        [CHECK_REPORT_OK] = "ok", [CHECK_REPORT_PROBLEM] = "problem", [CHECK_REPORT_SKIPPED] = "skipped"
};

static int finish_item(struct check_report_item *x, struct arena *a, struct err *e) {
        const char **texts[] = { &x->name, &x->text, &x->remedy };
        size_t state = 0;
        while (state < ARRAY_LEN(state_words) && !streq(x->state_name, state_words[state]))
                state++;
        if (state == ARRAY_LEN(state_words))
                return err_set(e, ERR_INVALID, 0, "an item has the unknown state '%.50s'", x->state_name);
        x->state = (enum check_report_state)state;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                const char *text = *texts[i] ? *texts[i] : "";
                size_t n = str_utf8_cut(str_from(text), i ? CHECK_REPORT_TEXT_MAX : CHECK_REPORT_NAME_MAX);
                *texts[i] = text[n] ? arena_strndup(a, text, n) : text;
        }
        return 0;
}

int check_report_decode(struct str text, struct arena *a, struct check_report *ret, struct err *e) {
        *ret = (struct check_report){ 0 };
        if (text.n > CHECK_REPORT_MAX)
                return err_set(e, ERR_INVALID, 0, "the output has more than %d bytes", CHECK_REPORT_MAX);
        if (jd_decode_text(f_report, text, "", a, ret, e) < 0)
                return err_wrap(e, "not the output of check-node");
        if (ret->version != REPORT_VERSION)
                return err_set(e, ERR_INVALID, 0, "unknown version of the output: %lld",
                               (long long)ret->version);
        if (ret->n_items > CHECK_REPORT_ITEMS_MAX)
                return err_set(e, ERR_INVALID, 0, "the output has %zu items", ret->n_items);
        for (size_t i = 0; i < ret->n_items; i++)
                if (finish_item(&ret->items[i], a, e) < 0)
                        return -1;
        return 0;
}
