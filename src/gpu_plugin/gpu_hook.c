/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_hook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/child.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cdi/cdi.h"

/* ---- copying it ---- */

enum { PROGRAM_MAX = 64 << 20, CDI_FILE_MAX = 4 << 20, HASH_BYTES = 8 };

static bool gpu_hook_holds(const char *path, const char *content, size_t n) {
        _cleanup_(freep) char *there = NULL;
        size_t there_n;
        struct err e;
        return file_read(path, PROGRAM_MAX, &there, &there_n, &e) == 0 && there_n == n &&
               memcmp(there, content, n) == 0;
}

int gpu_hook_install(const char *program, const char *dir, char **ret, struct err *e) {
        _cleanup_(freep) char *content = NULL;
        unsigned char hash[SHA256_SIZE];
        char name[sizeof HOOK_PREFIX + 2 * HASH_BYTES] = HOOK_PREFIX;
        size_t n;
        if (file_read(program, PROGRAM_MAX, &content, &n, e) < 0)
                return err_wrap(e, "the CDI hook");
        sha256(content, n, hash);
        for (size_t i = 0; i < HASH_BYTES; i++)
                snprintf(name + sizeof HOOK_PREFIX - 1 + 2 * i, 3, "%02x", hash[i]);
        free(*ret);
        *ret = file_join(dir, name);
        /* A file with this name and other content was truncated by a crash of the system. */
        if (!gpu_hook_holds(*ret, content, n) && file_replace(*ret, content, n, 0755, e) < 0)
                return err_wrap(e, "the CDI hook");
        return 0;
}

struct claim_gc {
        const char *dir, *current, *cdi_root, *prefix;
        const char *name; /* of the copy that is checked */
        bool named, unknown;
};

static int on_cdi_file(void *u, int folder, const char *name, struct err *e) {
        struct claim_gc *s = u;
        if (s->named || s->unknown || !str_starts(name, s->prefix))
                return 0;
        _cleanup_(freep) char *path = file_join(s->cdi_root, name), *text = NULL;
        if (file_read(path, CDI_FILE_MAX, &text, NULL, e) < 0)
                s->unknown = e->kind != ERR_NOT_FOUND;
        else
                s->named = strstr(text, s->name) != NULL;
        return 0;
}

static void remove_copy(const struct claim_gc *s, const char *name, const char *what) {
        _cleanup_(freep) char *path = file_join(s->dir, name);
        struct err why;
        if (file_remove(path, &why) < 0)
                log_warn(what, kv_err(&why));
}

static int on_copy(void *u, int folder, const char *name, struct err *e) {
        struct claim_gc *s = u;
        struct err why;
        if (str_starts(name, "." HOOK_PREFIX) && strstr(name, ".tmp.")) {
                /* A process that is copying at this moment retries. */
                remove_copy(s, name, "cannot remove an incomplete copy of a CDI hook");
                return 0;
        }
        if (!str_starts(name, HOOK_PREFIX) || str_ends(s->current, name))
                return 0;
        s->name = name;
        s->named = s->unknown = false;
        if (file_each(s->cdi_root, on_cdi_file, s, &why) < 0 || s->named || s->unknown)
                return 0;
        remove_copy(s, name, "cannot remove an unused CDI hook");
        return 0;
}

void gpu_hook_remove_old(const char *dir, const char *current, const char *cdi_root, const char *kind) {
        _cleanup_(freep) char *prefix = cdi_prefix(kind);
        struct claim_gc s = { .dir = dir, .current = current, .cdi_root = cdi_root, .prefix = prefix };
        struct err e;
        if (file_each(dir, on_copy, &s, &e) < 0)
                log_warn("cannot look for old CDI hooks", kv_err(&e));
}

bool gpu_hook_is_noexec(const char *dir) {
        struct statvfs v;
        return statvfs(dir, &v) == 0 && v.f_flag & ST_NOEXEC;
}

/* ---- its command line ---- */

size_t gpu_hook_args(const char *program, const char *ret[static HOOK_ARGS_MAX]) {
        const char *slash = strrchr(program, '/');
        size_t n = 0;
        ret[n++] = slash ? slash + 1 : program;
        if (streq(ret[0], "nvidia-ctk"))
                ret[n++] = "hook";
        return n;
}

/* ---- checking it ---- */

enum { TIMEOUT_MS = 60000, OUTPUT_MAX = 16384 };

struct hook_check {
        struct hook_check_options o;
        char *program;
        struct child *child;
};

/* The commands that gpu_edits always uses. */
static const char *const commands[] = { "create-symlinks", "enable-cuda-compat", "update-ldcache",
                                        "disable-device-node-modification" };

static void check_commands(const struct child_result *r, const char *program, struct buf *problem,
                           bool *ret_no_profiles) {
        _cleanup_(freep) char *text = xstrndup(r->out.p, r->out.n);
        *ret_no_profiles = !strstr(text, HOOK_PROFILE_COMMAND);
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
                if (!strstr(text, commands[i])) {
                        buf_addf(problem,
                                 "'%s' (nvidiaCDIHookPath) has no command %s; install "
                                 "nvidia-container-toolkit "
                                 "1.17.8 or newer, or leave nvidiaCDIHookPath empty",
                                 program, commands[i]);
                        return;
                }
        }
}

static void check_self_test(const struct child_result *r, struct buf *problem) {
        struct str out = str_trim(r->out);
        if (r->exit_status == 0)
                return;
        if (out.n)
                buf_addf(problem, "%.*s", (int)out.n, out.p);
        else
                buf_addf(problem, "its self-test ended with status %d, signal %d", r->exit_status,
                         r->term_signal);
}

static void on_checked(void *u, const struct child_result *r) {
        struct hook_check *c = u;
        struct buf problem = BUF_INIT(OUTPUT_MAX + 1024);
        bool no_profiles = false;
        c->child = NULL;
        if (r->err)
                buf_addf(&problem, "'%s' cannot be run: %s", c->program, r->err->msg);
        else if (r->timed_out)
                buf_addf(&problem, "'%s' did not end within %d s", c->program, TIMEOUT_MS / 1000);
        else if (c->o.root)
                check_commands(r, c->program, &problem, &no_profiles);
        else
                check_self_test(r, &problem);
        _cleanup_(freep) char *text = xstrdup(buf_str(&problem));
        buf_done(&problem);
        c->o.done(c->o.u, text, no_profiles);
}

struct hook_check *gpu_hook_check(uv_loop_t *loop, const struct hook_check_options *o) {
        struct hook_check *c = xnew(struct hook_check);
        const char *argv[HOOK_ARGS_MAX + 2] = { 0 };
        static const char *const env[] = { NULL };
        size_t n = gpu_hook_args(o->program, argv);
        argv[0] = o->program;
        argv[n] = o->root ? "--help" : "self-test";
        c->o = *o;
        c->program = xstrdup(o->program);
        c->child = child_run(loop, &(struct child_options){ .argv = argv,
                                                            .env = env,
                                                            .chroot = o->root,
                                                            .timeout_ms = TIMEOUT_MS,
                                                            .max_output = OUTPUT_MAX,
                                                            .done = on_checked,
                                                            .u = c });
        return c;
}

void gpu_hook_check_free(struct hook_check *c) {
        if (!c)
                return;
        child_cancel(c->child);
        free(c->program);
        free(c);
}
