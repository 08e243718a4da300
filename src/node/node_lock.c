/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"

struct node_lock {
        uv_loop_t *loop;
        uv_work_t work;
        struct loop_timer limit;
        struct guard guard; /* the helper thread holds it, too */
        unsigned limit_ms;
        int fd;
        int failed;       /* errno of the helper's flock */
        bool working;     /* the helper thread waits */
        node_lock_fn *fn; /* NULL: no caller waits any more */
        void *u;
};

static void node_lock_destroy(struct node_lock *l) {
        close(l->fd);
        free(l);
}

static void node_lock_answer(struct node_lock *l, const struct err *e) {
        node_lock_fn *fn = l->fn;
        l->fn = NULL;
        loop_timer_stop(&l->limit);
        fn(l->u, e);
}

static void on_limit(void *u) {
        struct node_lock *l = u;
        struct err e;
        err_set(&e, ERR_RETRY, ETIMEDOUT,
                "another plugin process on this node has held the node lock for %u s", l->limit_ms / 1000);
        node_lock_answer(l, &e);
}

int node_lock_new(uv_loop_t *loop, const char *path, struct node_lock **ret, struct err *e) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
                return err_errno(e, errno, "open '%s'", path);
        struct node_lock *l = xnew(struct node_lock);
        l->loop = loop;
        l->fd = fd;
        loop_timer_init(&l->limit, loop, on_limit, l);
        *ret = l;
        return 0;
}

bool node_lock_try(struct node_lock *l) {
        /* The helper waits on the same open file: if the lock were taken here, its later success would look
         * like ours. */
        return !l->working && flock(l->fd, LOCK_EX | LOCK_NB) == 0;
}

void node_lock_release(struct node_lock *l) {
        flock(l->fd, LOCK_UN);
}

static void node_lock_on_work(uv_work_t *w) {
        struct node_lock *l = CONTAINER(w, struct node_lock, work);
        int r;
        do
                r = flock(l->fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        l->failed = r < 0 ? errno : 0;
}

static void node_lock_on_worked(uv_work_t *w, int status) {
        struct node_lock *l = CONTAINER(w, struct node_lock, work);
        struct err e;
        l->working = false;
        if (l->fn && l->failed) {
                err_errno(&e, l->failed, "node lock");
                node_lock_answer(l, &e);
        } else if (l->fn) {
                node_lock_answer(l, NULL);
        } else if (!l->failed) {
                node_lock_release(l); /* taken after its limit */
        }
        if (guard_leave(&l->guard))
                node_lock_destroy(l);
}

void node_lock_wait(struct node_lock *l, unsigned limit_ms, node_lock_fn *fn, void *u) {
        BUG_ON(l->fn);
        l->fn = fn;
        l->u = u;
        l->limit_ms = limit_ms;
        loop_timer_start(&l->limit, limit_ms);
        if (l->working)
                return; /* the helper of a wait that ended at its limit serves this one */
        l->working = true;
        guard_enter(&l->guard);
        BUG_ON(uv_queue_work(l->loop, &l->work, node_lock_on_work, node_lock_on_worked) < 0);
}

bool node_lock_stuck(const struct node_lock *l) {
        return l->working;
}

void node_lock_free(struct node_lock *l) {
        l->fn = NULL;
        loop_timer_done(&l->limit);
        if (guard_free(&l->guard))
                node_lock_destroy(l);
}
