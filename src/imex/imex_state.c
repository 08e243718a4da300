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

static void imex_state_render(const struct imex_state *s, struct buf *out) {
        struct jw w = JW(out);

        jw_obj(&w, NULL);
        jw_str(&w, "bootID", s->boot_id);
        jw_str(&w, "claimUID", s->claim_uid);
        jw_str(&w, "podUID", s->pod_uid);
        jw_int(&w, "index", s->index);
        jw_int(&w, "generation", s->generation);
        jw_bool(&w, "ready", s->ready);
        jw_str(&w, "status", s->status);
        jw_str(&w, "reason", s->reason);
        if (*s->assignment)
                jw_str(&w, "assignment", s->assignment);
        if (*s->version)
                jw_str(&w, "version", s->version);
        if (s->terminating)
                jw_bool(&w, "terminating", true);
        jw_end_obj(&w);
        buf_addc(out, '\n');
}

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

        imex_state_render(s, &text);
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

struct state_doc {
        const char *boot_id, *claim_uid, *pod_uid, *status, *reason, *assignment, *version;
        int64_t index, generation;
        bool ready, terminating;
};

static const struct jd_field f_state[] = {
        JD_STR(struct state_doc, "bootID", boot_id, .required = true),
        JD_STR(struct state_doc, "claimUID", claim_uid, .required = true),
        JD_STR(struct state_doc, "podUID", pod_uid, .required = true),
        JD_INT(struct state_doc, "index", index, .required = true),
        JD_INT(struct state_doc, "generation", generation, .required = true),
        JD_BOOL(struct state_doc, "ready", ready, .required = true),
        JD_STR(struct state_doc, "status", status, .required = true),
        JD_STR(struct state_doc, "reason", reason),
        JD_STR(struct state_doc, "assignment", assignment),
        JD_STR(struct state_doc, "version", version),
        JD_BOOL(struct state_doc, "terminating", terminating),
        JD_END,
};

static bool copy_text(char *to, size_t size, const char *from) {
        return (size_t)snprintf(to, size, "%s", str_or(from, "")) < size;
}

int imex_state_parse(struct str text, struct imex_state *ret, struct err *e) {
        _cleanup_(arena_freep) struct arena *a = arena_new(STATE_MAX);
        struct state_doc d = { 0 };
        struct imex_state s = { 0 };

        if (jd_decode_text(f_state, text, "", a, &d, e) < 0)
                return -1;
        s.index = d.index;
        s.generation = d.generation;
        s.ready = d.ready;
        s.terminating = d.terminating;
        if (!copy_text(s.boot_id, sizeof s.boot_id, d.boot_id) ||
            !copy_text(s.claim_uid, sizeof s.claim_uid, d.claim_uid) ||
            !copy_text(s.pod_uid, sizeof s.pod_uid, d.pod_uid) ||
            !copy_text(s.status, sizeof s.status, d.status) ||
            !copy_text(s.reason, sizeof s.reason, d.reason) ||
            !copy_text(s.assignment, sizeof s.assignment, d.assignment) ||
            !copy_text(s.version, sizeof s.version, d.version))
                return err_set(e, ERR_INVALID, 0, "a member is too long");
        *ret = s;
        return 0;
}

int imex_state_read(const char *dir, struct imex_state *ret, bool *ret_held, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, IMEX_STATE_FILE);
        _cleanup_(freep) char *text = NULL;
        _cleanup_(closep) int fd = -1;
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
        size_t n;

        if (file_open_nofollow(path, O_RDONLY, &fd, e) < 0)
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
