/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the hooks of a claim's CDI file one after the other on a container, as a runtime does at its start.
 * The container is a folder with the libraries of an image, in our own mount namespace. It is a new one each
 * time. */
#include "gpus.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "rows.h"

enum { WARM = 31, COLD = 5, LIBRARIES = 120, LIBRARY_MAX = 4 << 20, CDI_MAX = 1 << 20 };

/* ---- the CDI file ---- */

struct hook {
        const char *name, *path;
        const char **args, **env;
        size_t n_args, n_env;
};
struct mounted {
        const char *at;
};
struct edits {
        struct hook *hooks;
        struct mounted *mounts;
        size_t n_hooks, n_mounts;
};
struct device {
        struct edits edits;
};
struct spec {
        struct edits edits;
        struct device *devices;
        size_t n_devices;
};
static const struct jd_field f_hook[] = { JD_STR(struct hook, "hookName", name),
                                          JD_STR(struct hook, "path", path),
                                          JD_STRS(struct hook, "args", args),
                                          JD_STRS(struct hook, "env", env), JD_END };
static const struct jd_field f_mount[] = { JD_STR(struct mounted, "containerPath", at), JD_END };
static const struct jd_field f_edits[] = { JD_LIST(struct edits, "hooks", hooks, struct hook, f_hook),
                                           JD_LIST(struct edits, "mounts", mounts, struct mounted, f_mount),
                                           JD_END };
static const struct jd_field f_device[] = { JD_OBJ(struct device, "containerEdits", edits, f_edits), JD_END };
static const struct jd_field f_spec[] = { JD_OBJ(struct spec, "containerEdits", edits, f_edits),
                                          JD_LIST(struct spec, "devices", devices, struct device, f_device),
                                          JD_END };

static void read_spec(const struct world *w, struct arena *a, struct spec *ret) {
        _cleanup_(freep) char *path = world_path(w, "cdi/k8s.gpu.nvidia.com-claim_" CLAIM_UID ".yaml");
        _cleanup_(freep) char *text = NULL;
        struct err e;
        if (file_read(path, CDI_MAX, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        const char *json = strchr(text, '\n') + 1; /* after the comment */
        if (jd_decode_text(f_spec, str_from(json), "", a, ret, &e) < 0)
                fail_msg("%s", e.msg);
        assert_int_equal(ret->n_devices, 1);
        assert_true(ret->edits.n_hooks > 0 && ret->edits.n_mounts > 0);
}

/* ---- the container ---- */

struct container {
        struct world *w;
        const struct spec *spec;
        char *root, *state;
        char *triplet; /* the folder of an image's libraries: "usr/lib/x86_64-linux-gnu" */
        char *library; /* one that loaders accept */
};

/* Libraries of this machine, used as those of an image. */
static void put_libraries(struct container *c) {
        static const char *const folders[] = { "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
                                               "usr/lib64" };
        size_t i = 0;
        unsigned n = 0;
        _cleanup_(freep) char *from = NULL;
        for (; i < ARRAY_LEN(folders); i++) {
                free(from);
                from = xasprintf("/%s", folders[i]);
                if (access(from, F_OK) == 0)
                        break;
        }
        assert_true(i < ARRAY_LEN(folders));
        c->triplet = xstrdup(folders[i]);
        DIR *d = opendir(from);
        for (struct dirent *f; n < LIBRARIES && d && (f = readdir(d));) {
                _cleanup_(freep) char *source = file_join(from, f->d_name);
                _cleanup_(freep) char *path = xasprintf("c/%s/%s", c->triplet, f->d_name);
                struct stat st;
                if (!str_starts(f->d_name, "lib") || !strstr(f->d_name, ".so.") || lstat(source, &st) < 0 ||
                    !S_ISREG(st.st_mode) || st.st_size > LIBRARY_MAX)
                        continue;
                world_put_copy(c->w, source, path);
                if (!c->library)
                        c->library = world_path(c->w, path);
                n++;
        }
        assert_int_equal(n, LIBRARIES);
        closedir(d);
}

static void put_files(const struct container *c, const struct edits *e) {
        for (size_t i = 0; i < e->n_mounts; i++) {
                _cleanup_(freep) char *path = xasprintf("c%s", e->mounts[i].at);
                _cleanup_(freep) char *to = world_path(c->w, path);
                tree_put(c->w->dir, path, "");
                if (strstr(path, ".so"))
                        assert_int_equal(unlink(to) | link(c->library, to), 0);
        }
}

/* Everything except the libraries, which no hook changes. */
static void renew(const struct container *c) {
        static const char *const written[] = { "etc", "usr/lib64" };
        _cleanup_(freep) char *conf = xasprintf("/%s\n", c->triplet);
        for (size_t i = 0; i < ARRAY_LEN(written); i++) {
                _cleanup_(freep) char *path = file_join(c->root, written[i]);
                if (!streq(written[i], c->triplet) && access(path, F_OK) == 0)
                        tree_remove(TAKE(path));
        }
        tree_put(c->w->dir, "c/etc/hostname", "c\n");
        tree_put(c->w->dir, "c/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
        tree_put(c->w->dir, "c/etc/ld.so.conf.d/triplet.conf", conf);
        put_files(c, &c->spec->edits);
        put_files(c, &c->spec->devices[0].edits);
}

static void make_container(struct container *c) {
        c->root = world_path(c->w, "c");
        c->state = xasprintf(
                "{\"ociVersion\":\"1.2.0\",\"id\":\"c\",\"status\":\"creating\",\"pid\":%d,\"bundle\":"
                "\"%s\"}",
                (int)getpid(), c->w->dir);
        _cleanup_(freep) char *config = xasprintf("{\"root\":{\"path\":\"%s\"}}", c->root);
        tree_put(c->w->dir, "config.json", config);
        tree_put(c->w->dir, "c/tmp/.keep", "");
        put_libraries(c);
        world_put_copy(c->w, c->library, "c/usr/local/cuda/compat/libcuda.so.580.95.05");
        /* Only a mount point can become a root. */
        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount("", "/", "", MS_PRIVATE | MS_REC, ""), 0);
        assert_int_equal(mount(c->root, c->root, NULL, MS_BIND, NULL), 0);
}

static void remove_container(struct container *c) {
        assert_int_equal(umount2(c->root, MNT_DETACH), 0);
        free(c->root);
        free(c->state);
        free(c->triplet);
        free(c->library);
}

/* ---- a start ---- */

static void run_hook(const struct container *c, const struct hook *h) {
        posix_spawn_file_actions_t actions;
        int fds[2], status;
        pid_t pid;
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        size_t n = strlen(c->state);
        assert_int_equal(write(fds[1], c->state, n), n);
        close(fds[1]);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fds[0], 0);
        posix_spawn_file_actions_addchdir_np(&actions, c->root);
        char *const *argv = (char *const *)(uintptr_t)h->args, *const *env = (char *const *)(uintptr_t)h->env;
        assert_int_equal(posix_spawn(&pid, h->path, &actions, NULL, argv, env), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
                fail_msg("hook %s: status %d", h->args[1], status);
}

static unsigned run_hooks(const struct container *c, const struct edits *e) {
        for (size_t i = 0; i < e->n_hooks; i++)
                run_hook(c, &e->hooks[i]);
        return (unsigned)e->n_hooks;
}

/* In the order of a runtime: those of the file, then those of its device. */
static double start_ms(const struct container *c, unsigned *ret_hooks) {
        uint64_t began = uv_hrtime();
        *ret_hooks = run_hooks(c, &c->spec->edits);
        *ret_hooks += run_hooks(c, &c->spec->devices[0].edits);
        return (double)(uv_hrtime() - began) / 1e6;
}

static bool drop_caches(void) {
        int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
        sync();
        bool ok = fd >= 0 && write(fd, "3", 1) == 1;
        if (fd >= 0)
                close(fd);
        return ok;
}

static void measure(const struct container *c) {
        double warm[WARM], cold[COLD];
        unsigned hooks;
        renew(c);
        (void)start_ms(c, &hooks);
        for (size_t i = 0; i < WARM; i++) {
                renew(c);
                warm[i] = start_ms(c, &hooks);
        }
        _cleanup_(freep) char *note =
                xasprintf("median of %d starts; %u hooks, an image of %d libraries", WARM, hooks, LIBRARIES);
        row("hooks of a container's start, warm", "<= 25 ms", note, "%.1f ms (worst %.1f ms)",
            percentile(warm, WARM, .5), percentile(warm, WARM, 1));
        for (size_t i = 0; i < COLD; i++) {
                renew(c);
                if (!drop_caches()) {
                        row("the same, cold", "<= 180 ms", "this machine's page cache cannot be dropped",
                            "-");
                        return;
                }
                cold[i] = start_ms(c, &hooks);
        }
        _cleanup_(freep) char *how = xasprintf("median of %d starts, before each of which the machine's page "
                                               "cache, its names and inodes were "
                                               "dropped",
                                               COLD);
        row("the same, cold", "<= 180 ms", how, "%.1f ms (worst %.1f ms)", percentile(cold, COLD, .5),
            percentile(cold, COLD, 1));
}

void bench_hooks(void **state) {
        struct world *w = *state;
        struct arena *a = arena_new(16384);
        struct spec spec = { 0 };
        struct container c = { .w = w, .spec = &spec };
        bench_start(w, NULL);
        bench_asked(w, "prepare", "c", CLAIM_UID);
        read_spec(w, a, &spec);
        make_container(&c);
        measure(&c);
        remove_container(&c);
        arena_free(a);
        world_end(w);
}
