/* SPDX-License-Identifier: Apache-2.0 */
/* programs: small shell programs instead of nvidia-imex and nvidia-imex-ctl, in the test's own folder, and a
 * loop that runs until a condition holds. The programs write events to the file `events`, one per line. */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

/* The loop of the test process. */
#ifndef TEST_LOOP
#define TEST_LOOP uv_default_loop()
#endif

static char dir[64];

static inline char *in_dir(const char *name) {
        return file_join(dir, name);
}

static inline void put(const char *name, const char *text, mode_t mode) {
        _cleanup_(freep) char *path = in_dir(name);
        struct err e;

        assert_int_equal(file_replace_volatile(path, text, strlen(text), mode, &e), 0);
}

/* Creates a program that runs the script in the test's folder. */
static inline void put_script(const char *name, const char *script) {
        _cleanup_(freep) char *text = xasprintf("#!/bin/sh\ncd %s || exit 99\n%s\n", dir, script);

        put(name, text, 0755);
}

/* The same for nvidia-imex or its tool, which also answer --version. */
static inline void put_program(const char *name, const char *script) {
        _cleanup_(freep) char *text =
                xasprintf("case \"$1\" in --version) echo 'IMEX version is: 580.95.05'; "
                          "exit 0 ;; esac\n%s",
                          script);

        put_script(name, text);
}

static inline char *get(const char *name) {
        _cleanup_(freep) char *path = in_dir(name);
        char *text = NULL;
        struct err e;

        return file_read(path, 1 << 20, &text, NULL, &e) == 0 ? text : xstrdup("");
}

static inline unsigned count(const char *name, const char *word) {
        _cleanup_(freep) char *text = get(name);
        unsigned n = 0;

        for (char *p = text; (p = strstr(p, word)); p += strlen(word))
                n++;
        return n;
}

static inline int make_dir(void **state) {
        strcpy(dir, "/tmp/test_imex.XXXXXX");
        return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state) {
        _cleanup_(freep) char *cmd = xasprintf("rm -rf '%s'", dir);

        return system(cmd);
}

static inline void on_tick(uv_timer_t *t) {
}

typedef bool(condition_fn)(void);

/* Runs the loop until cond() holds or the time has passed. True: it holds. */
static inline bool within(unsigned ms, condition_fn *cond) {
        static uv_timer_t tick;
        uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
        bool met;

        uv_timer_init(TEST_LOOP, &tick);
        uv_timer_start(&tick, on_tick, 5, 5);
        while (!(met = cond()) && uv_hrtime() < end)
                uv_run(TEST_LOOP, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&tick, NULL);
        uv_run(TEST_LOOP, UV_RUN_NOWAIT);
        return met;
}

static inline bool never(void) {
        return false;
}
