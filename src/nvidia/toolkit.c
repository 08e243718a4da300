/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/toolkit.h"

#include <stdio.h>

#include "base/toml.h"

enum { CONFIG_MAX = 256 << 10 };

const char *const toolkit_answer_names[] = { [TOOLKIT_NOT_FOUND] = "not_found",
                                             [TOOLKIT_IGNORES] = "ignores_requests",
                                             [TOOLKIT_GIVES] = "gives_channels" };

const char *const toolkit_paths[] = {
        "/etc/nvidia-container-runtime/config.toml",
        "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml", NULL
};

int toolkit_ignores(struct str config, bool *ret, struct err *e) {
        bool there = false, value = false;
        if (toml_bool(config, "features", "ignore-imex-channel-requests", &there, &value, e) < 0)
                return -1;
        *ret = there && value;
        return 0;
}

static enum toolkit_answer look(const struct driver_root *root, const char *path, char *why, size_t n) {
        _cleanup_(freep) char *text = NULL;
        size_t len = 0;
        bool ignores = false;
        struct err e;
        int r = driver_root_read(root, path, CONFIG_MAX, &text, &len, &e);
        if (r < 0 && e.kind == ERR_NOT_FOUND)
                return TOOLKIT_NOT_FOUND;
        if (r == 0)
                r = toolkit_ignores((struct str){ text, len }, &ignores, &e);
        if (r < 0)
                snprintf(why, n, "the container toolkit's %s cannot be read (%s)", path, e.msg);
        else if (!ignores)
                snprintf(why, n, "the container toolkit's %s does not set " TOOLKIT_SETTING, path);
        return r == 0 && ignores ? TOOLKIT_IGNORES : TOOLKIT_GIVES;
}

enum toolkit_answer toolkit_look(const struct driver_root *roots, size_t n_roots, char *why, size_t n) {
        enum toolkit_answer answer = TOOLKIT_NOT_FOUND;
        if (n)
                why[0] = '\0';
        for (size_t i = 0; i < n_roots; i++) {
                for (const char *const *path = toolkit_paths; *path && answer != TOOLKIT_GIVES; path++) {
                        enum toolkit_answer one = look(&roots[i], *path, why, n);
                        answer = one > answer ? one : answer;
                }
        }
        return answer;
}
