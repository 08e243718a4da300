/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/command_table.h"

const struct command *const command_list[] = {
        &command_status,  &command_why,     &command_watch,      &command_racks,
        &command_explain, &command_doctor,  &command_test,       &command_new,
        &command_bundle,  &command_version, &command_completion, NULL,
};

const struct command *command_find(const char *name) {
        for (const struct command *const *x = command_list; *x; x++)
                if (streq((*x)->name, name))
                        return *x;
        return NULL;
}

int command_usage(const struct cli *c, const char *fmt, ...) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(64 << 10);
        va_list ap;
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        fprintf(stderr, "kubectl compute-domains: %s\n", term_clean(c->a, buf_str(&b), c->t.ascii, false));
        return COMMAND_FAILED;
}

/* Writes the whole text. Returns errno, or 0. */
static int write_all(int fd, struct str text) {
        while (text.n) {
                ssize_t k = write(fd, text.p, text.n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return errno;
                text = (struct str){ text.p + k, text.n - (size_t)k };
        }
        return 0;
}

int command_write(const char *path, bool replaces, struct str text, struct err *e) {
        int fd = open(path, O_WRONLY | O_CREAT | (replaces ? O_TRUNC : O_EXCL), 0600);
        if (fd < 0)
                return err_errno(e, errno, "cannot create '%s'", path);
        int error = write_all(fd, text);
        if (close(fd) < 0 && !error)
                error = errno;
        return error ? err_errno(e, error, "cannot write '%s'", path) : 0;
}

int command_flush(struct cli *c) {
        struct buf *out = &c->t.out;
        int error = write_all(STDOUT_FILENO, (struct str){ buf_str(out), out->n });
        bool failed = out->failed;
        buf_clear(out);
        if (failed)
                command_usage(c, "the output is too large");
        else if (error && error != EPIPE) /* a pager may have ended */
                command_usage(c, "cannot write the output: %s", strerror(error));
        return failed || error ? -1 : 0;
}

int command_needs(const struct cli *c, const char *command, const enum view_kind *kinds, size_t n) {
        int r = COMMAND_FINE;
        for (size_t i = 0; i < n; i++) {
                enum view_state state = view_state(&c->v, kinds[i], NULL);
                if (state == VIEW_COMPLETE)
                        continue;
                command_usage(c, "%s needs the %s of the cluster: %s", command,
                              view_resource(kinds[i])->plural,
                              str_or(view_why(&c->v, kinds[i], NULL), "the list is not complete"));
                if (r != COMMAND_DENIED)
                        r = state == VIEW_UNREADABLE ? COMMAND_DENIED : COMMAND_FAILED;
        }
        return r;
}
