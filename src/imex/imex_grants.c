/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_grants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/mem.h"
#include "base/str.h"
#include "imex/imex_lock.h"

/* The other program may remove the folder between the two steps, but hardly twice. */
enum { ATTEMPTS = 5 };

enum { WORD_MAX = 16 };

static const char *const words[] = { [IMEX_GRANT_WAITING] = "waiting", [IMEX_GRANT_GRANTING] = "granting" };

/* On some file systems, a read of the folder while a file in it is replaced does not show that file. So the
 * grant of a prepared claim is not replaced without need. */
static bool has_content(const char *path, const char *word) {
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *text = NULL;
        struct err e;

        return file_open_nofollow(path, &fd, &e) == 0 &&
               file_read_fd(fd, path, WORD_MAX, &text, NULL, &e) == 0 && streq(text, word);
}

enum { GRANTS_PATH_MAX = 64 };

/* A link is not a missing folder. */
static int not_opened(const char *dir, struct err *e) {
        return errno == ENOTDIR
                       ? err_set(e, ERR_INVALID, 0, "'%s' or '" IMEX_GRANTS_DIR "' in it is no folder", dir)
                       : err_errno(e, errno, "open '" IMEX_GRANTS_DIR "' in '%s'", dir);
}

/* The folder "grants" of a domain. */
struct grants_dir {
        int parent, fd; /* descriptors of the domain's folder, and of "grants" in it */
        char path[GRANTS_PATH_MAX];
};
#define GRANTS_CLOSED                                                                                        \
        { .parent = -1, .fd = -1 }

static void close_folder(struct grants_dir *g) {
        closep(&g->fd);
        closep(&g->parent);
}

/* The daemon's container can replace both folders with links to other places, which the plugin must not
 * follow. So the path contains a descriptor. The caller closes the folder, also after an error. */
static int open_folder(const char *dir, bool create, struct grants_dir *ret, struct err *e) {
        enum { FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

        if (create && file_mkdirs(dir, 0755, e) < 0)
                return -1;
        ret->parent = open(dir, FLAGS);
        if (ret->parent < 0)
                return not_opened(dir, e);
        if (create && mkdirat(ret->parent, IMEX_GRANTS_DIR, 0755) < 0 && errno != EEXIST)
                return err_errno(e, errno, "create the folder '" IMEX_GRANTS_DIR "' in '%s'", dir);
        ret->fd = openat(ret->parent, IMEX_GRANTS_DIR, FLAGS);
        if (ret->fd < 0)
                return not_opened(dir, e);
        snprintf(ret->path, sizeof ret->path, "/proc/self/fd/%d", ret->fd);
        return 0;
}

static int put_once(const char *dir, const char *claim_uid, const char *word, struct err *e) {
        _cleanup_(close_folder) struct grants_dir grants = GRANTS_CLOSED;

        if (open_folder(dir, true, &grants, e) < 0)
                return -1;
        _cleanup_(freep) char *path = file_join(grants.path, claim_uid);
        if (has_content(path, word))
                return 0;
        file_remove_temporary(grants.path, claim_uid);
        if (file_replace_volatile(path, word, strlen(word), 0644, e) == 0)
                return 0;
        err_wrap(e, "%s", dir);
        return -1;
}

int imex_grants_put(const char *dir, const char *claim_uid, enum imex_grant_state state, struct err *e) {
        int r = -1;

        BUG_ON(!str_is_uuid(claim_uid));
        for (int i = 0; i < ATTEMPTS && r < 0; i++) {
                r = put_once(dir, claim_uid, words[state], e);
                if (r < 0 && e->kind != ERR_NOT_FOUND)
                        break;
        }
        return r;
}

int imex_grants_remove(const char *dir, const char *claim_uid, bool folder, struct err *e) {
        _cleanup_(close_folder) struct grants_dir grants = GRANTS_CLOSED;

        BUG_ON(!str_is_uuid(claim_uid));
        if (open_folder(dir, false, &grants, e) == 0) {
                _cleanup_(freep) char *path = file_join(grants.path, claim_uid);
                if (file_remove(path, e) < 0) {
                        err_wrap(e, "%s", dir);
                        return -1;
                }
                file_remove_temporary(grants.path, claim_uid);
                /* Fails if the folder has another grant. */
                (void)unlinkat(grants.parent, IMEX_GRANTS_DIR, AT_REMOVEDIR);
        } else if (e->kind != ERR_NOT_FOUND) {
                return -1;
        }
        if (folder)
                (void)rmdir(dir);
        return 0;
}

void imex_grants_remove_empty(const char *dir) {
        _cleanup_(close_folder) struct grants_dir grants = GRANTS_CLOSED;
        struct err e;

        if (open_folder(dir, false, &grants, &e) == 0)
                (void)unlinkat(grants.parent, IMEX_GRANTS_DIR, AT_REMOVEDIR);
}

struct each {
        file_entry_fn *fn;
        void *u;
        bool failed; /* fn failed */
};

static int pass_on(void *u, int folder, const char *name, struct err *e) {
        struct each *each = u;

        if (str_is_uuid(name))
                each->failed = each->fn(each->u, folder, name, e) < 0;
        return each->failed ? -1 : 0;
}

int imex_grants_each(const char *dir, file_entry_fn *fn, void *u, struct err *e) {
        struct each each = { fn, u, false };
        _cleanup_(close_folder) struct grants_dir grants = GRANTS_CLOSED;

        if (open_folder(dir, false, &grants, e) < 0)
                return e->kind == ERR_NOT_FOUND ? 0 : -1;
        int r = file_each(grants.path, pass_on, &each, e);
        return r < 0 && (each.failed || e->kind != ERR_NOT_FOUND) ? -1 : 0;
}

/* ---- the plugin's lock ---- */

int imex_grants_lock(const char *domains_dir, int *ret, struct err *e) {
        _cleanup_(freep) char *path = file_join(domains_dir, IMEX_GRANTS_LOCK);

        return imex_lock_take(path, ret, e);
}

bool imex_grants_lock_shared(int lock) {
        struct flock other = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        return fcntl(lock, F_OFD_GETLK, &other) < 0 || other.l_type != F_UNLCK;
}

/* A plugin of a version before the lock has no such file, and may be alive. */
static int find_plugin(const char *domains_dir, bool *ret_alive, struct err *e) {
        _cleanup_(freep) char *path = file_join(domains_dir, IMEX_GRANTS_LOCK);

        *ret_alive = true;
        return imex_lock_held(path, ret_alive, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}

/* ---- which claims use the domain ---- */

struct search {
        const struct imex_grants_folder *p;
        int cdi; /* descriptor of the CDI folder; -1: not open yet */
        enum imex_use use;
};

/* A folder that was removed from the node can still be opened, but is empty. */
static int open_cdi(struct search *l, struct err *e) {
        struct stat st;

        if (l->cdi < 0)
                l->cdi = open(l->p->cdi_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (l->cdi < 0 || fstat(l->cdi, &st) < 0)
                return err_errno(e, errno, "open '%s'", l->p->cdi_dir);
        if (!st.st_nlink)
                return err_set(e, ERR_NOT_FOUND, ENOENT,
                               "the folder '%s' was removed from the node: delete this pod, so that its "
                               "replacement gets "
                               "the new one",
                               l->p->cdi_dir);
        return 0;
}

static int find_cdi(struct search *l, const char *claim_uid, bool *ret_there, struct err *e) {
        _cleanup_(freep) char *name = xasprintf("%s%s.yaml", l->p->cdi_prefix, claim_uid);
        struct stat st;

        if (open_cdi(l, e) < 0)
                return -1;
        *ret_there = fstatat(l->cdi, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!*ret_there && errno != ENOENT)
                return err_errno(e, errno, "find '%s/%s'", l->p->cdi_dir, name);
        return 0;
}

static int is_waiting(int folder, const char *name, bool *ret, struct err *e) {
        _cleanup_(closep) int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char text[WORD_MAX];
        ssize_t n;

        if (fd < 0)
                return err_errno(e, errno, "open 'grants/%s'", name);
        n = read(fd, text, sizeof text);
        if (n < 0)
                return err_errno(e, errno, "read 'grants/%s'", name);
        *ret = str_eq((struct str){ text, (size_t)n }, str_from(words[IMEX_GRANT_WAITING]));
        return 0;
}

static void add_seen(struct imex_grants_seen *s, const char *claim_uid) {
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->uids[i], claim_uid))
                        return;
        GROW(s->uids, s->n, s->cap);
        snprintf(s->uids[s->n++], sizeof s->uids[0], "%s", claim_uid);
}

/* The CDI file decides: the plugin and other drivers remove it before the grant, or without the grant. */
static int check_seen(struct search *l, struct imex_grants_seen *s, struct err *e) {
        for (size_t i = s->n; i-- > 0;) {
                bool prepared = false;

                if (find_cdi(l, s->uids[i], &prepared, e) < 0)
                        return -1;
                if (prepared)
                        l->use = IMEX_USE_PREPARED;
                else
                        memmove(s->uids[i], s->uids[--s->n], sizeof s->uids[i]);
        }
        return 0;
}

/* In this order: after the grant, the plugin writes the CDI file, and its death comes last. */
static int check_grant(void *u, int folder, const char *name, struct err *e) {
        struct search *l = u;
        bool waits = false, alive = false, prepared = false;
        enum imex_use use;

        if (is_waiting(folder, name, &waits, e) < 0)
                return e->kind == ERR_NOT_FOUND ? 0 : -1; /* removed in the meantime */
        if (find_plugin(l->p->domains_dir, &alive, e) < 0 || find_cdi(l, name, &prepared, e) < 0)
                return -1;
        if (prepared && l->p->seen)
                add_seen(l->p->seen, name);
        use = prepared ? IMEX_USE_PREPARED : waits || !alive ? IMEX_USE_NONE : IMEX_USE_GRANTING;
        if (use > l->use)
                l->use = use;
        return 0;
}

enum imex_use imex_grants_use(const struct imex_grants_folder *p, const char *domain_uid, struct err *e) {
        _cleanup_(freep) char *dir = file_join(p->domains_dir, domain_uid);
        struct search l = { .p = p, .cdi = -1, .use = IMEX_USE_NONE };
        int r = imex_grants_each(dir, check_grant, &l, e);

        if (r == 0 && p->seen)
                r = check_seen(&l, p->seen, e);
        if (l.cdi >= 0)
                close(l.cdi);
        return r < 0 ? IMEX_USE_UNKNOWN : l.use;
}
