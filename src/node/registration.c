/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registration.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/watch_file.h"

#define FILE_NAME "registered"

struct registration_watch {
        uv_loop_t *loop;
        char *plugins_dir, *path;
        struct watch_file file;
        struct stat seen; /* st_ino 0: there was no file */
        void (*registered)(void *u);
        void *u;
};

void registration_announce(const char *plugin_dir) {
        _cleanup_(freep) char *path = file_join(plugin_dir, FILE_NAME);
        struct err e;
        if (file_replace_volatile(path, "", 0, 0600, &e) < 0)
                log_warn("cannot show the other plugin of this node that this one is registered", kv_err(&e));
}

/* True: it is another file than before. */
static bool registration_look(struct registration_watch *w) {
        struct stat before = w->seen;
        if (stat(w->path, &w->seen) < 0) {
                w->seen = (struct stat){ 0 };
                return false;
        }
        return !file_same(&w->seen, &before);
}

static void registration_on_change(struct watch_file *file);

static void registration_start(struct registration_watch *w) {
        struct err e;
        if (watch_file_start_below(&w->file, w->loop, w->plugins_dir, w->path, registration_on_change, &e) <
            0)
                log_warn("cannot watch the registration of the other plugin of this node: the kubelet "
                         "retries by itself after 60 to 90 s",
                         kv_err(&e));
}

static void registration_on_change(struct watch_file *file) {
        struct registration_watch *w = file->u;
        watch_file_stop(file);
        registration_start(w); /* first, so that no change is missed */
        if (registration_look(w))
                w->registered(w->u);
}

struct registration_watch *registration_watch_new(uv_loop_t *loop, const char *plugins_dir,
                                                  const char *driver, void (*registered)(void *u), void *u) {
        struct registration_watch *w = xnew(struct registration_watch);
        _cleanup_(freep) char *dir = file_join(plugins_dir, driver);
        w->loop = loop;
        w->plugins_dir = xstrdup(plugins_dir);
        w->path = file_join(dir, FILE_NAME);
        w->registered = registered;
        w->u = u;
        w->file.u = w;
        registration_start(w);
        (void)registration_look(w);
        return w;
}

void registration_watch_free(struct registration_watch *w) {
        if (!w)
                return;
        watch_file_stop(&w->file);
        free(w->plugins_dir);
        free(w->path);
        free(w);
}
