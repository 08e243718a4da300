#include "base/watch_file.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct watch_file__handles {
        uv_fs_event_t event;
        uv_timer_t turn; /* coalesces the changes of one turn */
        unsigned open;
        char *name;               /* base name watched */
        char *dir_name;           /* base name of its folder, under which news of the folder itself come */
        struct watch_file *owner; /* NULL once the owner may be gone */
        watch_file_fn *stopped;
};

static void on_closed(uv_handle_t *h) {
        struct watch_file__handles *w = h->data;

        if (--w->open > 0)
                return;
        if (w->stopped)
                w->stopped(w->owner);
        free(w->name);
        free(w->dir_name);
        free(w);
}

static void close_handles(struct watch_file__handles *w) {
        uv_close((uv_handle_t *)&w->event, on_closed);
        uv_close((uv_handle_t *)&w->turn, on_closed);
}

static void on_turn(uv_timer_t *t) {
        struct watch_file__handles *w = t->data;

        w->owner->fn(w->owner);
}

static void on_event(uv_fs_event_t *ev, const char *name, int events, int status) {
        struct watch_file__handles *w = ev->data;

        (void)events;
        /* Without a name, or after a failed read of the event queue, anything may have happened: say so. */
        if (status == 0 && name && !streq(name, w->name) && !streq(name, w->dir_name))
                return;
        if (!uv_is_active((uv_handle_t *)&w->turn))
                uv_timer_start(&w->turn, on_turn, 0, 0);
}

int watch_file_start(struct watch_file *w, uv_loop_t *loop, const char *path, watch_file_fn *fn,
                     struct err *e) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *dir =
                slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
        struct watch_file__handles *h;
        int r;

        BUG_ON(w->active);

        h = xnew(struct watch_file__handles);
        h->name = xstrdup(slash ? slash + 1 : path);
        slash = strrchr(dir, '/');
        h->dir_name = xstrdup(slash ? slash + 1 : dir);
        h->owner = w;
        h->open = 2;
        uv_fs_event_init(loop, &h->event);
        uv_timer_init(loop, &h->turn);
        h->event.data = h->turn.data = h;

        r = uv_fs_event_start(&h->event, on_event, dir, 0);
        if (r < 0) {
                close_handles(h);
                return err_errno(e, -r, "watch folder '%s'", dir);
        }
        w->handles = h;
        w->fn = fn;
        w->active = true;
        return 0;
}

void watch_file_stop(struct watch_file *w, watch_file_fn *stopped) {
        struct watch_file__handles *h = w->handles;

        if (!w->active)
                return;
        w->active = false;
        w->handles = NULL;
        h->stopped = stopped;
        if (!stopped)
                h->owner = NULL;
        close_handles(h);
}
