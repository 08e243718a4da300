/* SPDX-License-Identifier: Apache-2.0 */
#include "api/reasons.h"

#include <string.h>

#include "api/names.h"
#include "base/mem.h"
#include "base/stderr.h"

const char *const reason_fixer_names[REASON_FIXERS] = {
        [REASON_FIX_NONE] = "nobody",
        [REASON_FIX_USER] = "user",
        [REASON_FIX_NAMESPACE_ADMIN] = "namespace admin",
        [REASON_FIX_CLUSTER_ADMIN] = "cluster admin",
        [REASON_FIX_HARDWARE] = "hardware",
};

/* Short names for the catalogue. */
#define COMPUTE_DOMAIN REASON_OF_COMPUTE_DOMAIN
#define FABRIC REASON_OF_FABRIC
#define NODE REASON_OF_NODE
#define POD REASON_OF_POD
#define CLAIM REASON_OF_CLAIM
#define POD_GROUP REASON_OF_POD_GROUP
#define DAEMON_SET REASON_OF_DAEMON_SET
#define NAMESPACE REASON_OF_NAMESPACE
#define CD CD_DRIVER
#define GPU GPU_DRIVER
#define DAEMON CD_DAEMON_OBJECT
#define REASON(constant, name, objects, under, meaning, remedy, fixer, anchor)                               \
        { name, objects, under, meaning, remedy, REASON_FIX_##fixer, anchor, false, false },
#define REFUSAL(words, objects, under, meaning, remedy, fixer, anchor)                                       \
        { words, objects, under, meaning, remedy, REASON_FIX_##fixer, anchor, true, false },
#define CAUSE(constant, name, meaning, remedy, fixer, anchor)                                                \
        { name, POD, "", meaning, remedy, REASON_FIX_##fixer, anchor, false, true },
#define ALERT(name, meaning, remedy, fixer, anchor)                                                          \
        { name, REASON_OF_ALERT, "", meaning, remedy, REASON_FIX_##fixer, anchor, false, false },
const struct reason reason_list[] = {
#include "api/reasons.def"
};
const size_t reason_count = ARRAY_LEN(reason_list);

const struct reason *reason_find(unsigned objects, const char *name) {
        for (size_t i = 0; i < reason_count; i++)
                if (!reason_list[i].is_message && !reason_list[i].is_cause &&
                    (reason_list[i].objects & objects) && streq(reason_list[i].name, name))
                        return &reason_list[i];
        return NULL;
}

const struct reason *reason_find_message(const char *text) {
        for (size_t i = 0; text && i < reason_count; i++)
                if (reason_list[i].is_message && strstr(text, reason_list[i].name))
                        return &reason_list[i];
        return NULL;
}

const struct reason *reason_find_anchor(const char *anchor) {
        for (size_t i = 0; i < reason_count; i++)
                if (streq(reason_list[i].anchor, anchor))
                        return &reason_list[i];
        return NULL;
}

const struct reason *reason_cause(const char *name) {
        const struct reason *r = NULL;
        for (size_t i = 0; i < reason_count && !r; i++)
                if (reason_list[i].is_cause && streq(reason_list[i].name, name))
                        r = &reason_list[i];
        BUG_ON(!r);
        return r;
}
