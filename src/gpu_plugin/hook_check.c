/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/hook_check.h"

#include <errno.h>
#include <string.h>

#include "base/child.h"
#include "base/mem.h"

enum { TIMEOUT_MS = 60000, OUTPUT_MAX = 16384 };

struct hook_check {
        struct hook_check_options o;
        char *program;
        struct child *child;
};

/* The commands that gpu_edits uses. */
static const char *const commands[] = { "create-symlinks", "enable-cuda-compat", "update-ldcache",
                                        "disable-device-node-modification" };

static void check_commands(const struct child_result *r, const char *program, struct buf *problem) {
        _cleanup_(freep) char *text = xstrndup(r->out.p, r->out.n);
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

static void hook_check_on_done(void *u, const struct child_result *r) {
        struct hook_check *c = u;
        struct buf problem = BUF_INIT(OUTPUT_MAX + 1024);
        c->child = NULL;
        if (r->err)
                buf_addf(&problem, "'%s' cannot be run: %s", c->program, r->err->msg);
        else if (r->timed_out)
                buf_addf(&problem, "'%s' did not end within %d s", c->program, TIMEOUT_MS / 1000);
        else if (c->o.root)
                check_commands(r, c->program, &problem);
        else
                check_self_test(r, &problem);
        _cleanup_(freep) char *text = xstrdup(buf_str(&problem));
        buf_done(&problem);
        c->o.done(c->o.u, text);
}

struct hook_check *hook_check_start(uv_loop_t *loop, const struct hook_check_options *o) {
        struct hook_check *c = xnew(struct hook_check);
        const char *const argv[] = { o->program, o->root ? "--help" : "self-test", NULL };
        static const char *const env[] = { NULL };
        c->o = *o;
        c->program = xstrdup(o->program);
        c->child = child_run(loop, &(struct child_options){ .argv = argv,
                                                            .env = env,
                                                            .chroot = o->root,
                                                            .timeout_ms = TIMEOUT_MS,
                                                            .max_output = OUTPUT_MAX,
                                                            .done = hook_check_on_done,
                                                            .u = c });
        return c;
}

void hook_check_free(struct hook_check *c) {
        if (!c)
                return;
        child_cancel(c->child);
        free(c->program);
        free(c);
}
