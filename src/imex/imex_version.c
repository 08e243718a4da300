/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/loop.h"
#include "base/mem.h"

enum { TIMEOUT_MS = 10000, PAUSE_FIRST_MS = 1000, PAUSE_MAX_MS = 60000, WHY_MAX = 200 };

struct imex_version {
        uv_loop_t *loop;
        const char *path;
        void (*answered)(void *u, const char *version, const char *why);
        void *u;
        struct child *child;
        struct loop_timer pause;
        unsigned pause_ms;
};

bool imex_version_parse(struct str text, char ret[static IMEX_VERSION_MAX]) {
        static const char before[] = "IMEX version is:";
        struct str line = { 0 };
        size_t n = sizeof before - 1;
        while (str_next_line(&text, &line)) {
                line = str_trim(line);
                if (line.n <= n || memcmp(line.p, before, n) != 0)
                        continue;
                struct str version = str_trim((struct str){ line.p + n, line.n - n });
                bool good = version.n && version.n < IMEX_VERSION_MAX;
                for (size_t i = 0; i < version.n && good; i++)
                        good = isalnum((unsigned char)version.p[i]) || strchr(".-_+", version.p[i]);
                if (!good)
                        return false;
                memcpy(ret, version.p, version.n);
                ret[version.n] = '\0';
                return true;
        }
        return false;
}

static void imex_version_explain(const struct child_result *r, char why[static WHY_MAX]) {
        struct str out = r->out, line = { 0 };
        if (r->err)
                snprintf(why, WHY_MAX, "nvidia-imex cannot be started: %.120s", r->err->msg);
        else if (r->timed_out)
                snprintf(why, WHY_MAX, "nvidia-imex --version did not answer within %d s", TIMEOUT_MS / 1000);
        else if (r->term_signal)
                snprintf(why, WHY_MAX, "nvidia-imex --version was ended by signal %d", r->term_signal);
        else if (str_next_line(&out, &line))
                snprintf(why, WHY_MAX, "nvidia-imex --version ended with exit code %d: %.*s", r->exit_status,
                         line.n < 100 ? (int)line.n : 100, line.p);
        else
                snprintf(why, WHY_MAX, "nvidia-imex --version ended with exit code %d", r->exit_status);
}

static void imex_version_on_done(void *u, const struct child_result *r) {
        struct imex_version *v = u;
        char version[IMEX_VERSION_MAX] = "", why[WHY_MAX] = "";
        bool known = !r->err && !r->timed_out && r->exit_status == 0 && imex_version_parse(r->out, version);
        v->child = NULL;
        if (!known) {
                imex_version_explain(r, why);
                loop_timer_start(&v->pause, v->pause_ms);
                v->pause_ms = v->pause_ms < PAUSE_MAX_MS / 2 ? v->pause_ms * 2 : PAUSE_MAX_MS;
        }
        v->answered(v->u, version, why);
}

static void imex_version_ask(void *u) {
        struct imex_version *v = u;
        const char *const argv[] = { v->path, "--version", NULL };
        v->child = child_run(v->loop, &(struct child_options){ .argv = argv,
                                                               .timeout_ms = TIMEOUT_MS,
                                                               .done = imex_version_on_done,
                                                               .u = v });
}

struct imex_version *imex_version_new(uv_loop_t *loop, const char *path,
                                      void (*answered)(void *u, const char *version, const char *why),
                                      void *u) {
        struct imex_version *v = xnew(struct imex_version);
        *v = (struct imex_version){
                .loop = loop, .path = path, .answered = answered, .u = u, .pause_ms = PAUSE_FIRST_MS
        };
        loop_timer_init(&v->pause, loop, imex_version_ask, v);
        imex_version_ask(v);
        return v;
}

void imex_version_free(struct imex_version *v) {
        if (!v)
                return;
        child_cancel(v->child);
        loop_timer_done(&v->pause);
        free(v);
}
