/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stderr.h"
#include "plugin.h"
#include "replica.h"
#include "sim.h"
#include "world.h"

static char folder[64];

/* In memory if possible. The paths are relative, so that they are the same in each run. */
static void make_folder(void) {
        snprintf(folder, sizeof folder, "/dev/shm/simulate.XXXXXX");
        if (!mkdtemp(folder)) {
                snprintf(folder, sizeof folder, "/tmp/simulate.XXXXXX");
                BUG_ON(!mkdtemp(folder));
        }
        BUG_ON(chdir(folder) < 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) {
        return remove(path);
}

void stage_remove_folder(void) {
        (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void stage_begin(uv_loop_t *loop, void (*on_changed)(enum kind k, const struct change *c), unsigned n_nodes,
                 unsigned n_domains) {
        uv_loop_init(loop);
        sim_agenda_init(loop);
        store_on_change(on_changed);
        make_folder();
        plugins_begin(loop);
        world_begin(loop, n_nodes, n_domains);
}

void stage_start_replicas(uv_loop_t *loop) {
        for (unsigned i = 0; i < REPLICAS; i++)
                replica_start(i, loop);
}

static void over(void *u) {
        *(bool *)u = true;
}

bool stage_run(uv_loop_t *loop, int64_t end_ms) {
        bool ends = false;
        sim_at(end_ms, over, &ends);
        while (!ends && !sim_first_broken())
                uv_run(loop, UV_RUN_ONCE);
        return !sim_first_broken();
}

void stage_end(int status) {
        fflush(stdout);
        stage_remove_folder();
        _exit(status);
}

/* ---- processes ---- */

static void reap(struct stage_processes *p) {
        int status;
        BUG_ON(wait(&status) < 0);
        p->running--;
        p->failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

bool stage_fork(struct stage_processes *p) {
        if (p->running == p->jobs)
                reap(p);
        fflush(stdout);
        pid_t pid = fork();
        BUG_ON(pid < 0);
        p->running += pid > 0;
        return pid == 0;
}

bool stage_wait(struct stage_processes *p) {
        while (p->running)
                reap(p);
        return !p->failed;
}
