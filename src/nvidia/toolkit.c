/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/toolkit.h"

#include <stdio.h>

#include <string.h>

#include "api/states.h"
#include "base/toml.h"
#include "nvidia/root_walk.h"

enum { CONFIG_MAX = 256 << 10 };

const char *const toolkit_answer_names[] = { [TOOLKIT_NOT_FOUND] = TOOLKIT_STATE_NOT_FOUND,
                                             [TOOLKIT_IGNORES] = TOOLKIT_STATE_IGNORES_REQUESTS,
                                             [TOOLKIT_GIVES] = TOOLKIT_STATE_GIVES_CHANNELS };

const char *const toolkit_paths[TOOLKIT_PATHS + 1] = {
        "/etc/nvidia-container-runtime/config.toml",
        "/usr/local/etc/nvidia-container-runtime/config.toml",
        "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml",
        "/home/kubernetes/bin/nvidia/toolkit/.config/nvidia-container-runtime/config.toml",
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
        if (r == 0)
                r = toolkit_ignores((struct str){ text, len }, &ignores, &e);
        else if (e.kind == ERR_NOT_FOUND)
                return TOOLKIT_NOT_FOUND;
        if (r < 0)
                snprintf(why, n, "the container toolkit's %s cannot be read (%s)", path, e.msg);
        else if (!ignores)
                snprintf(why, n, "the container toolkit's %s does not set " TOOLKIT_SETTING, path);
        return r == 0 && ignores ? TOOLKIT_IGNORES : TOOLKIT_GIVES;
}

enum toolkit_answer toolkit_check(const struct driver_root *roots, size_t n_roots, char *why, size_t n) {
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

/* ---- GPUs ---- */

const char *const toolkit_runtime_paths[TOOLKIT_RUNTIME_PATHS + 1] = {
        "/etc/containerd/config.toml",
        "/etc/containerd/conf.d/*.toml",
        "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        "/etc/crio/crio.conf",
        "/etc/crio/crio.conf.d/*",
};

/* 1: the file was read. 0: it does not exist. */
static int setting(const struct driver_root *root, const char *file, const char *const *path,
                   struct toml_value *ret, struct err *e) {
        _cleanup_(freep) char *text = NULL;
        size_t len = 0;
        *ret = (struct toml_value){ .kind = TOML_ABSENT };
        if (driver_root_read(root, file, CONFIG_MAX, &text, &len, e) < 0)
                return e->kind == ERR_NOT_FOUND ? 0 : -1;
        return toml_find((struct str){ text, len }, path, ret, e) < 0 ? err_wrap(e, "'%s'", file) : 1;
}

struct default_runtime {
        bool nvidia;
        char file[256]; /* the file with the setting */
};

static int read_runtime(const struct driver_root *root, const char *file, struct default_runtime *ret,
                        struct err *e) {
        static const char *const names[][5] = {
                { "plugins", "io.containerd.cri.v1.runtime", "containerd", "default_runtime_name", NULL },
                { "plugins", "io.containerd.grpc.v1.cri", "containerd", "default_runtime_name", NULL },
                { "crio", "runtime", "default_runtime", NULL },
        };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct toml_value v;
                if (setting(root, file, names[i], &v, e) < 0)
                        return -1;
                if (v.kind != TOML_STRING)
                        continue;
                ret->nvidia = str_starts(v.text, "nvidia");
                snprintf(ret->file, sizeof ret->file, "%s", file);
        }
        return 0;
}

static int read_drop_ins(const struct driver_root *root, const char *path, struct default_runtime *ret,
                         struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        const char *pattern = strrchr(path, '/') + 1, **names;
        const char *dir = arena_strndup(a, path, (size_t)(pattern - path - 1));
        struct root_walk w;
        if (root_walk_init(&w, root->here, root->host, e) < 0)
                return -1;
        int r = root_walk_names(&w, dir, pattern, a, &names, e);
        root_walk_done(&w);
        for (; r == 0 && *names; names++)
                r = read_runtime(root, arena_printf(a, "%s/%s", dir, *names), ret, e);
        return r;
}

static int find_runtime(const struct driver_root *root, struct default_runtime *ret, struct err *e) {
        for (const char *const *p = toolkit_runtime_paths; *p; p++) {
                bool many = strchr(*p, '*');
                if ((many ? read_drop_ins(root, *p, ret, e) : read_runtime(root, *p, ret, e)) < 0)
                        return -1;
        }
        return 0;
}

/* Adds the number of configurations that refuse and accept to *refuse and *accept. */
static int count_answers(const struct driver_root *root, unsigned *refuse, unsigned *accept, struct err *e) {
        static const char *const name[] = { TOOLKIT_ACCEPTS, NULL };
        for (const char *const *p = toolkit_paths; *p; p++) {
                struct toml_value v;
                int r = setting(root, *p, name, &v, e);
                if (r < 0)
                        return -1;
                bool refuses = v.kind == TOML_BOOL && !v.truth;
                *refuse += refuses;
                *accept += r > 0 && !refuses;
        }
        return 0;
}

enum toolkit_gpus toolkit_gives_gpus(const struct driver_root *roots, size_t n_roots, char *why, size_t n) {
        struct default_runtime runtime = { 0 };
        unsigned refuse = 0, accept = 0;
        struct err e;
        snprintf(why, n, "%s", "");
        for (size_t i = 0; i < n_roots; i++) {
                if (find_runtime(&roots[i], &runtime, &e) < 0 ||
                    count_answers(&roots[i], &refuse, &accept, &e) < 0) {
                        snprintf(why, n, "%s", e.msg);
                        return TOOLKIT_GPUS_UNKNOWN;
                }
        }
        if (!runtime.nvidia || (refuse && !accept))
                return TOOLKIT_GPUS_BY_CLAIM;
        snprintf(why, n,
                 "%s makes NVIDIA's container runtime the default, and no configuration of the container "
                 "toolkit sets " TOOLKIT_ACCEPTS " = false",
                 runtime.file);
        return TOOLKIT_GPUS_TO_ALL;
}
