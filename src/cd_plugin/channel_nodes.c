/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/channel_nodes.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"

#define DIR_OF_CHANNELS "/dev/nvidia-caps-imex-channels"

static int is_channel(const struct dirent *d) {
        int64_t number;
        return strncmp(d->d_name, "channel", 7) == 0 && str_to_i64(str_from(d->d_name + 7), &number);
}

int channel_nodes_list(const char *dir, struct buf *out, struct err *e) {
        struct dirent **found = NULL;
        int n = scandir(dir, &found, is_channel, versionsort), kept = 0;
        if (n < 0 && errno != ENOENT)
                return err_set(e, ERR_INTERNAL, errno, "'%s': %s", dir, strerror(errno));
        for (int i = 0; i < n; i++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", dir, found[i]->d_name);
                struct stat st;
                if (stat(path, &st) == 0 && S_ISCHR(st.st_mode)) {
                        buf_addf(out, "%s: character device %u:%u\n", path, major(st.st_rdev),
                                 minor(st.st_rdev));
                        kept++;
                }
                free(found[i]);
        }
        free(found);
        if (!kept)
                return err_set(
                        e, ERR_NOT_FOUND, 0,
                        "no IMEX channel in '%s': does this container have a claim of a ComputeDomain's "
                        "ResourceClaimTemplate (resources.claims)?",
                        dir);
        return 0;
}

int channel_nodes_main(int argc, char **argv) {
        struct buf out = BUF_INIT(1 << 20);
        bool waits = argc == 2 && streq(argv[1], "--wait");
        sigset_t ends;
        struct err e;
        if (argc > 1 + waits) {
                fprintf(stderr, "usage: channels [--wait]\n");
                return 2;
        }
        /* Process 1 of a container has no default action for signals. */
        sigemptyset(&ends);
        sigaddset(&ends, SIGTERM);
        sigaddset(&ends, SIGINT);
        sigprocmask(SIG_BLOCK, &ends, NULL);
        int r = channel_nodes_list(DIR_OF_CHANNELS, &out, &e);
        if (r < 0)
                fprintf(stderr, "Error: %s\n", e.msg);
        else
                fputs(buf_str(&out), stdout);
        fflush(stdout);
        buf_done(&out);
        if (r == 0 && waits)
                sigwait(&ends, &(int){ 0 });
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
