/* SPDX-License-Identifier: Apache-2.0 */
/* node_daemon_world: daemon_world with programs instead of nvidia-imex and nvidia-imex-ctl, for tests of the
 * whole daemon. */
#pragma once

#include "daemon_world.h"

/* SIGTERM ends it unless the file "stubborn" exists. When it handles signals, "alive" contains its PID, and
 * its tool answers. */
#define IMEX                                                                                                 \
        "echo $$ >> pids; echo start >> events; grep -h . imexd/*/imexd.cfg | grep SERVER_PORT >> events\n"  \
        "touch run/persist.dat\n"                                                                            \
        "trap 'echo usr1 >> events' USR1\n"                                                                  \
        "trap 'cat imexd/*/state.json >> events; [ -e stubborn ] || exit 0' TERM\n"                          \
        "echo $$ > alive\n"                                                                                  \
        "while :; do sleep 1000 & wait $!; done"

static inline int setup(void **state) {
        if (make_dir(state) < 0 || uv_loop_init(TEST_LOOP) < 0)
                return -1;
        _cleanup_(freep) char *shared = in_dir("imexd"), *run = in_dir("run");
        struct err e;
        assert_int_equal(file_mkdirs(shared, 0755, &e), 0);
        assert_int_equal(file_mkdirs(run, 0755, &e), 0);
        put_program("imex", IMEX);
        put_program("ctl", "kill -0 \"$(cat alive)\" && cat status");
        put("status", "READY\n", 0644);
        put("hosts", "127.0.0.1\tlocalhost\n", 0644);
        put("imexd/fabric", FABRIC "\n", 0644);
        watch = NULL;
        domains = NULL;
        table_of = "ffffffff-0000-4000-8000-00000000000f";
        epoch = 9;
        recount = 0;
        n_patches = refuse_patches = page_patches = n_pages = n_lists = n_watches = 0;
        serves = SERVES;
        rv = 1;
        start_server(0);
        return 0;
}

static inline int teardown(void **state) {
        end_world();
        kill_imex();
        return remove_dir(state);
}
