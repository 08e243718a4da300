/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
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

int command_write(const char *path, bool replaces, struct str text, struct err *e) {
        int fd = open(path, O_WRONLY | O_CREAT | (replaces ? O_TRUNC : O_EXCL), 0600);
        if (fd < 0)
                return err_errno(e, errno, "cannot create '%s'", path);
        while (text.n) {
                ssize_t k = write(fd, text.p, text.n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0) {
                        err_errno(e, errno, "cannot write '%s'", path);
                        close(fd);
                        return -1;
                }
                text = (struct str){ text.p + k, text.n - (size_t)k };
        }
        return close(fd) < 0 ? err_errno(e, errno, "cannot write '%s'", path) : 0;
}

void command_flush(struct cli *c) {
        const char *p = buf_str(&c->t.out);
        for (size_t n = c->t.out.n; n;) {
                ssize_t k = write(STDOUT_FILENO, p, n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        break;
                p += k;
                n -= (size_t)k;
        }
        buf_clear(&c->t.out);
}
