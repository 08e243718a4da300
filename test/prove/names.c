/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/stderr.h"
#include "world.h"

enum { NUMBERS = 64, UID_SIZE = 37 };

static const char *const names[NODES] = { "n1", "n2", "n3" };

const char *node_name(unsigned node) {
        BUG_ON(node >= NODES);
        return names[node];
}

unsigned node_number(const char *name) {
        return (unsigned)(name[1] - '1');
}

/* They are created once: functions borrow them for a long time. */
const char *uid_of(enum uid kind, unsigned node, unsigned number) {
        static char uids[UID_POD + 1][NODES][NUMBERS][UID_SIZE];
        BUG_ON(node >= NODES || number >= NUMBERS);
        char *uid = uids[kind][node][number];
        if (!number)
                return NULL;
        if (!*uid)
                snprintf(uid, UID_SIZE, "%c%c%c%c%c%c%c%c-0000-4000-8000-%06u%06u", 'a' + (int)kind,
                         'a' + (int)kind, 'a' + (int)kind, 'a' + (int)kind, 'a' + (int)kind, 'a' + (int)kind,
                         'a' + (int)kind, 'a' + (int)kind, node, number);
        return uid;
}

unsigned uid_number(const char *uid) {
        return uid && *uid ? (unsigned)strtoul(uid + UID_SIZE - 7, NULL, 10) : 0;
}
