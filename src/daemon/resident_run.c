/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/resident_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/program.h"

/* proc(5): from -1000, never, to 1000. */
enum { OOM_STEP = 100, OOM_LAST = 1000 };

static void stop(void *owner) {
        resident_stop(owner);
}

static void dump(void *owner) {
        resident_dump(owner);
}

/* When memory is short the kernel ends the agent before IMEX, with which all that others have mapped of this
 * node would go. To take a step back needs no privilege, and IMEX is let keep its place. NULL: it is not. */
static const char *step_back(char place[static 16]) {
        static const char path[] = "/proc/self/oom_score_adj";
        _cleanup_(freep) char *text = NULL;
        char behind[16];
        int64_t own;
        size_t n;
        struct err e;

        if (file_read(path, sizeof behind, &text, &n, &e) == 0 &&
            str_to_i64(str_trim((struct str){ text, n }), &own)) {
                _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

                snprintf(place, 16, "%d", (int)own);
                snprintf(behind, sizeof behind, "%d",
                         own + OOM_STEP < OOM_LAST ? (int)own + OOM_STEP : OOM_LAST);
                if (fd >= 0 && file_write_all(fd, path, behind, strlen(behind), &e) == 0)
                        return place;
        }
        log_warn("cannot change the order in which the kernel ends processes when memory is short: it may "
                 "end IMEX before this agent");
        return NULL;
}

int resident_run(const struct resident_config *c, struct err *e) {
        struct resident_config config = *c;
        struct resident *resident = NULL;
        struct program p;
        char place[16], boot_id[37];

        if (file_boot_id(FILE_BOOT_ID_PATH, boot_id, e) < 0)
                return -1;
        program_start(&p, stop, dump);
        config.imex.oom_score_adj = step_back(place);
        int r = resident_new(p.loop, &config, boot_id, program_done, &p, &resident, e);
        if (r == 0) {
                p.owner = resident;
                uv_run(p.loop, UV_RUN_DEFAULT);
        }
        program_stop(&p);
        resident_free(resident);
        uv_run(p.loop, UV_RUN_DEFAULT);
        return r;
}
