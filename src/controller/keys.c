/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/keys.h"

#include <string.h>

#include "base/stderr.h"
#include "base/mem.h"

static const char *const names[KEY_KINDS] = {
        [KEY_DOMAIN] = "domain", [KEY_NODE] = "node",       [KEY_RACK] = "rack",
        [KEY_FABRIC] = "fabric", [KEY_DAEMONS] = "daemons",
};

const char *key_kind_name(enum key_kind kind) {
        BUG_ON(kind >= KEY_KINDS);
        return names[kind];
}

void key_render(enum key_kind kind, const char *name, struct buf *out) {
        buf_adds(out, key_kind_name(kind));
        buf_addc(out, '/');
        buf_adds(out, name);
}

struct key key_parse(const char *text) {
        const char *slash = strchr(text, '/');

        BUG_ON(!slash);
        for (size_t i = 0; i < KEY_KINDS; i++)
                if (str_eq((struct str){ text, (size_t)(slash - text) }, str_from(names[i])))
                        return (struct key){ (enum key_kind)i, slash + 1 };
        BUG_ON("no such kind of key");
}
