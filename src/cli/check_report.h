/* SPDX-License-Identifier: Apache-2.0 */
/* check_report: decodes the output of `check-node --json`, which docs/reference/flags.md describes. The
 * output is foreign input: the node, and a program in the container, may write anything. Pure. */
#pragma once

#include "base/json.h"

enum {
        CHECK_REPORT_MAX = 1 << 20, /* bytes of the output */
        CHECK_REPORT_ITEMS_MAX = 1000,
        CHECK_REPORT_NAME_MAX = 64,  /* bytes of a name; longer names are cut */
        CHECK_REPORT_TEXT_MAX = 4096 /* the same for the other texts */
};

enum check_report_state { CHECK_REPORT_OK, CHECK_REPORT_PROBLEM, CHECK_REPORT_SKIPPED };

struct check_report_item {
        const char *name, *state_name, *text, *remedy; /* remedy: only of a problem */
        enum check_report_state state;
};

struct check_report {
        int64_t version;
        const char *program, *node;
        struct check_report_item *items;
        size_t n_items;
};

/* Decodes the output into the arena. ERR_INVALID: it is no report, or of an unknown version. Members and
 * items that this version does not know are allowed; a state that it does not know is not. */
int check_report_decode(struct str text, struct arena *a, struct check_report *ret, struct err *e);
