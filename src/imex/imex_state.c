/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#define STATE_MAX ((size_t)4096)

static const struct jd_field f_state[] = {
        JD_TEXT(struct imex_state, "bootID", boot_id, .required = true),
        JD_TEXT(struct imex_state, "claimUID", claim_uid, .required = true),
        JD_TEXT(struct imex_state, "podUID", pod_uid, .required = true),
        JD_INT(struct imex_state, "index", index, .required = true),
        JD_INT(struct imex_state, "generation", generation, .required = true),
        JD_BOOL(struct imex_state, "ready", ready, .required = true),
        JD_TEXT(struct imex_state, "status", status, .required = true),
        JD_TEXT(struct imex_state, "reason", reason),
        JD_TEXT(struct imex_state, "assignment", assignment, .omit_empty = true),
        JD_TEXT(struct imex_state, "version", version, .omit_empty = true),
        JD_BOOL(struct imex_state, "terminating", terminating, .omit_empty = true),
        JD_BOOL(struct imex_state, "lostKnown", lost_known, .omit_empty = true),
        JD_TEXT(struct imex_state, "lost", lost, .omit_empty = true),
        JD_END,
};

/* A locked file with this content, under a temporary name. */
static int make_locked(const char *tmp, const struct buf *text, int *ret_fd, struct err *e) {
        _cleanup_(closep) int fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fd < 0)
                return err_errno(e, errno, "create '%s'", tmp);
        if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
                return err_errno(e, errno, "lock '%s'", tmp);
        /* The plugin may run as another user; independent of our umask. */
        if (fchmod(fd, 0644) < 0)
                return err_errno(e, errno, "chmod '%s'", tmp);
        if (file_write_all(fd, tmp, text->p, text->n, e) < 0)
                return -1;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int imex_state_write(const char *dir, const struct imex_state *s, int *lock_fd, struct err *e) {
        /* A container of the same pod reuses the name. So however often it is killed, at most one file
         * remains. */
        _cleanup_(freep) char *tmp = xasprintf("%s/.%s.%s", dir, IMEX_STATE_FILE, s->pod_uid);
        _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);
        _cleanup_(closep) int fd = -1;
        _cleanup_(buf_done) struct buf text = BUF_INIT(STATE_MAX);

        jd_encode(f_state, s, &JW(&text), NULL);
        buf_addc(&text, '\n');
        if (text.failed)
                return err_set(e, ERR_INVALID, EFBIG, "the state exceeds %zu bytes", STATE_MAX);
        (void)unlink(tmp);
        /* Locked before it gets its name: so no reader sees it in place without a lock. */
        if (make_locked(tmp, &text, &fd, e) < 0) {
                (void)unlink(tmp);
                return -1;
        }
        if (rename(tmp, path) < 0) {
                err_errno(e, errno, "rename '%s' to '%s'", tmp, path);
                (void)unlink(tmp);
                return -1;
        }
        if (*lock_fd >= 0)
                close(*lock_fd);
        *lock_fd = TAKE_FD(fd);
        return 0;
}

int imex_state_parse(struct str text, struct imex_state *ret, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(STATE_MAX);
        struct imex_state s = { 0 };

        if (jd_decode_text(f_state, text, "", a, &s, e) < 0)
                return -1;
        *ret = s;
        return 0;
}

int imex_state_read(const char *dir, struct imex_state *ret, bool *ret_held, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);
        _cleanup_(freep) char *text = NULL;
        _cleanup_(closep) int fd = -1;
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
        size_t n;

        if (file_open_nofollow(path, &fd, e) < 0)
                return -1;
        if (file_read_fd(fd, path, STATE_MAX, &text, &n, e) < 0)
                return -1;
        if (imex_state_parse((struct str){ text, n }, ret, e) < 0)
                return err_wrap(e, "'%s'", path);
        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
                return err_errno(e, errno, "ask for the lock of '%s'", path);
        *ret_held = lock.l_type != F_UNLCK;
        return 0;
}

const char *imex_state_refusal(const struct imex_state *s, bool held, const char *boot_id,
                               const char *daemon_claim_uid) {
        if (!daemon_claim_uid || !*daemon_claim_uid)
                return "no IMEX daemon of this domain is prepared on this node yet";
        if (!held)
                return "the IMEX daemon that wrote the state file is not running any more";
        if (!*s->boot_id || !streq(s->boot_id, boot_id))
                return "the state file is from before the last boot";
        if (!streq(s->claim_uid, daemon_claim_uid))
                return "the state file is from another daemon than the one prepared on this node";
        if (!s->ready)
                return *s->reason ? s->reason : "the IMEX daemon is not ready";
        return NULL;
}
