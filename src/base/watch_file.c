/* SPDX-License-Identifier: Apache-2.0 */
#include "base/watch_file.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/str.h"

/* Events that change a file in a folder, and events after which the folder has been replaced or removed. */
enum {
        GONE = IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT,
        FOLDER = IN_ATTRIB | IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_MASK_ADD,
        PARENT = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_MASK_ADD,
        NONE = -1,
};

/* One inotify descriptor per loop: root has 128 for all its processes on a node
 * (fs.inotify.max_user_instances). Closed with the last watch. */
struct watch_file__hub {
        LIST_ENTRY(watch_file__hub) link;
        uv_loop_t *loop;
        struct loop_fd poll;
        struct guard guard;
        int fd;
        LIST_HEAD(, watch_file) watches;
};

static LIST_HEAD(, watch_file__hub) hubs = LIST_HEAD_INITIALIZER(hubs);

/* ---- what the kernel watches ---- */

/* Several watches of one folder share a descriptor. The last one removes it. */
static void release_wd(struct watch_file__hub *hub, int *wd) {
        int old = *wd;
        struct watch_file *w;
        *wd = NONE;
        LIST_FOREACH (w, &hub->watches, link)
                if (w->wd == old || w->parent_wd == old)
                        return;
        if (old != NONE)
                (void)inotify_rm_watch(hub->fd, old);
}

static int watch_folder(struct watch_file__hub *hub, const char *path, uint32_t mask, int *wd) {
        int fresh = inotify_add_watch(hub->fd, path, mask), saved = errno;
        if (fresh != *wd)
                release_wd(hub, wd);
        *wd = fresh < 0 ? NONE : fresh;
        errno = saved;
        return fresh < 0 ? -1 : 0;
}

static int watch_both(struct watch_file *w) {
        /* The parent first: then a folder that appears in between is either found by its name, or
         * reported. */
        if (w->parent && watch_folder(w->hub, w->parent, PARENT, &w->parent_wd) < 0)
                return -1;
        return watch_folder(w->hub, w->dir, FOLDER, &w->wd);
}

/* ---- the hub ---- */

static void hub_unref(struct watch_file__hub *hub) {
        if (!LIST_EMPTY(&hub->watches))
                return;
        LIST_REMOVE(hub, link);
        loop_fd_done(&hub->poll);
        close(hub->fd);
        if (guard_free(&hub->guard))
                free(hub);
}

void watch_file_stop(struct watch_file *w) {
        if (!w->active)
                return;
        w->active = false;
        release_wd(w->hub, &w->wd);
        release_wd(w->hub, &w->parent_wd);
        LIST_REMOVE(w, link);
        hub_unref(w->hub);
        free(w->dir);
        free(w->name);
        free(w->parent);
        free(w->dir_name);
}

static void watch_file_note(struct watch_file *w, const struct inotify_event *ev) {
        bool lost = ev->mask & IN_Q_OVERFLOW;
        const char *name = ev->len ? ev->name : NULL;
        if (lost || ev->wd == w->wd) {
                if (ev->mask & IN_IGNORED)
                        w->wd = NONE;
                w->moved |= lost || ev->mask & GONE;
                /* Without a name the event concerns the folder itself, and anything in it may have
                 * changed. */
                w->due |= lost || !name || !*w->name || streq(name, w->name);
        }
        if (lost || ev->wd == w->parent_wd) {
                if (ev->mask & IN_IGNORED)
                        w->parent_wd = NONE;
                w->moved |= lost || ev->mask & GONE || (name && streq(name, w->dir_name));
        }
}

/* If the folder does not exist, the parent's watch will report it. After another failure the watch ends,
 * because half a watch would look like a complete one. */
static void watch_file_follow(struct watch_file *w) {
        w->moved = false;
        w->due = true;
        if (watch_both(w) == 0 || (w->parent_wd != NONE && (errno == ENOENT || errno == ENOTDIR)))
                return;
        release_wd(w->hub, &w->wd);
        release_wd(w->hub, &w->parent_wd);
}

/* A callback may stop any watch, and so free the hub. */
static void watch_file_deliver(struct watch_file__hub *hub) {
        struct watch_file *w;
        LIST_FOREACH (w, &hub->watches, link)
                if (w->moved)
                        watch_file_follow(w);
        for (;;) {
                LIST_FOREACH (w, &hub->watches, link)
                        if (w->due)
                                break;
                if (!w)
                        return;
                w->due = false;
                if (w->wd == NONE && w->parent_wd == NONE)
                        watch_file_stop(w);
                w->fn(w);
        }
}

static void on_readable(void *u, int events) {
        struct watch_file__hub *hub = u;
        union {
                struct inotify_event ev;
                char bytes[8192];
        } b;
        struct watch_file *w;
        for (ssize_t n; (n = read(hub->fd, b.bytes, sizeof b.bytes)) > 0;) {
                const struct inotify_event *ev;
                for (char *p = b.bytes; p < b.bytes + n; p += sizeof *ev + ev->len) {
                        ev = (const struct inotify_event *)(const void *)p;
                        LIST_FOREACH (w, &hub->watches, link)
                                watch_file_note(w, ev);
                }
        }
        guard_enter(&hub->guard);
        watch_file_deliver(hub);
        if (guard_leave(&hub->guard))
                free(hub);
}

static struct watch_file__hub *hub_of(uv_loop_t *loop, int *ret_error) {
        struct watch_file__hub *hub;
        LIST_FOREACH (hub, &hubs, link)
                if (hub->loop == loop)
                        return hub;
        _cleanup_(closep) int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (fd < 0) {
                *ret_error = errno;
                return NULL;
        }
        hub = xnew(struct watch_file__hub);
        int r = loop_fd_init(&hub->poll, loop, fd, on_readable, hub);
        if (r < 0) {
                *ret_error = -r;
                free(hub);
                return NULL;
        }
        hub->loop = loop;
        hub->fd = TAKE_FD(fd);
        LIST_INIT(&hub->watches);
        LIST_INSERT_HEAD(&hubs, hub, link);
        loop_fd_start(&hub->poll, UV_READABLE);
        return hub;
}

/* ---- watches ---- */

/* The folder of a path; *ret_name is the rest. */
static char *watch_file_split(const char *path, char **ret_name) {
        const char *slash = strrchr(path, '/');
        *ret_name = xstrdup(slash ? slash + 1 : path);
        return slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
}

static int watch_file_refused(struct err *e, int error, const char *dir) {
        const char *hint = error == EMFILE   ? " (fs.inotify.max_user_instances may be too low)"
                           : error == ENOSPC ? " (fs.inotify.max_user_watches may be too low)"
                                             : "";
        return err_errno(e, error, "watch folder '%s'%s", dir, hint);
}

int watch_file_start(struct watch_file *w, uv_loop_t *loop, const char *path, watch_file_fn *fn,
                     struct err *e) {
        int error = 0;
        BUG_ON(w->active);
        struct watch_file__hub *hub = hub_of(loop, &error);
        if (!hub) {
                _cleanup_(freep) char *name = NULL, *dir = watch_file_split(path, &name);
                return watch_file_refused(e, error, dir);
        }
        *w = (struct watch_file){
                .u = w->u, .fn = fn, .active = true, .hub = hub, .wd = NONE, .parent_wd = NONE
        };
        w->dir = watch_file_split(path, &w->name);
        if (!streq(w->dir, "/") && !streq(w->dir, "."))
                w->parent = watch_file_split(w->dir, &w->dir_name);
        LIST_INSERT_HEAD(&hub->watches, w, link);
        if (watch_both(w) < 0) {
                (void)watch_file_refused(e, errno, w->dir);
                watch_file_stop(w);
                return -1;
        }
        return 0;
}

int watch_file_start_below(struct watch_file *w, uv_loop_t *loop, const char *root, const char *path,
                           watch_file_fn *fn, struct err *e) {
        _cleanup_(freep) char *there = xstrdup(path);
        for (char *slash = there + strlen(root); (slash = strchr(slash + 1, '/'));) {
                *slash = '\0';
                if (access(there, F_OK) < 0) {
                        if (watch_file_start(w, loop, there, fn, e) < 0)
                                return -1;
                        if (access(there, F_OK) < 0)
                                return 0;
                        watch_file_stop(w); /* the folder appeared before it was watched for */
                }
                *slash = '/';
        }
        return watch_file_start(w, loop, path, fn, e);
}
