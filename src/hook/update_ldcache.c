/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/ldconf.h"
#include "hook/sandbox.h"
#include "hook/hook_log.h"

enum { FOLDERS_MAX = 64, TEXT_MAX = FOLDERS_MAX * (PATH_MAX + 1) };

/* The name does not match *.conf, which configurations include. */
#define WRAPPER "/etc/ld.so.conf.d/nvcr.wrapper"

#if defined(__x86_64__)
#define MACHINE "x86_64"
#else
#define MACHINE "aarch64"
#endif

static bool is_there(int root, const char *path) {
        int fd = in_root(root, path, O_PATH, 0);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

/* An image without a configuration gets one that includes our files. */
static int make_configuration(int root) {
        static const char text[] = "include /etc/ld.so.conf.d/*.conf\n";
        int etc = in_root_folder(root, "/etc");
        if (etc < 0)
                return -1;
        int fd = openat(etc, "ld.so.conf", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        int r = 0;
        if (fd < 0 && errno != EEXIST)
                r = hook_log_errno("make /etc/ld.so.conf in the container");
        if (fd >= 0 && write(fd, text, strlen(text)) != (ssize_t)strlen(text))
                r = hook_log_errno("write /etc/ld.so.conf in the container");
        if (fd >= 0)
                close(fd);
        close(etc);
        return r;
}

static int update_ldcache_place(int root, const char *name, const char *text) {
        int folder = in_root_folder(root, "/etc/ld.so.conf.d");
        if (folder < 0)
                return -1;
        int r = in_root_place_file(folder, name, text, 0644);
        close(folder);
        return r;
}

/* Creates another file each time, because several hooks may run in a container. */
static int place_conf(int root, const char *before, const char *text) {
        char name[NAME_MAX];
        return in_root_random_name(before, ".conf", name, sizeof name) < 0
                       ? -1
                       : update_ldcache_place(root, name, text);
}

/* Replaces, for ldconfig only, a configuration that includes no files. */
static int place_wrapper(int root) {
        static const char text[] = "include /etc/ld.so.conf.d/00-compat-*.conf\n"
                                   "include /etc/ld.so.conf.d/00-nvcr-*.conf\n"
                                   "include /etc/ld.so.conf\n"
                                   "include /etc/ld.so.conf.d/zz-nvcr-*.conf\n";
        return update_ldcache_place(root, strrchr(WRAPPER, '/') + 1, text);
}

/* True if the list, in the form "a:b\nc", has the folder. */
static bool has_folder(const char *list, const char *folder) {
        size_t n = strlen(folder);
        for (const char *p = list; (p = strstr(p, folder)); p += n) {
                if ((p == list || strchr(":\n", p[-1])) && (!p[n] || strchr(":\n", p[n])))
                        return true;
        }
        return false;
}

/* musl's loader has a list of folders instead of a cache. */
static int configure_musl(int root, const struct options *o) {
        static const char path[] = "/etc/ld-musl-" MACHINE ".path";
        static char text[LDCONF_FILE_BYTES + TEXT_MAX];
        if (!is_there(root, "/lib/ld-musl-" MACHINE ".so.1"))
                return 0;
        int fd = in_root(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        ssize_t got = fd < 0 ? -1 : read(fd, text, LDCONF_FILE_BYTES);
        if (fd >= 0)
                close(fd);
        size_t n =
                got > 0 ? (size_t)got : (size_t)snprintf(text, sizeof text, "/lib:/usr/local/lib:/usr/lib");
        while (n && text[n - 1] == '\n')
                n--;
        text[n] = '\0';
        for (size_t i = 0; i < o->n_folders; i++) {
                if (!has_folder(text, o->folders[i]))
                        n += (size_t)snprintf(text + n, sizeof text - n, "\n%s", o->folders[i]);
        }
        snprintf(text + n, sizeof text - n, "\n");
        int etc = in_root_folder(root, "/etc");
        if (etc < 0)
                return -1;
        int r = in_root_place_file(etc, strrchr(path, '/') + 1, text, 0644);
        close(etc);
        return r;
}

/* The folders that the loader of an image searches by default, after all others. The ldconfig of another
 * distribution does not have them. Source: "ld.so --help" of Debian's and Red Hat's distributions. */
static const char *system_folders(int root) {
        return is_there(root, "/etc/debian_version") ? "/lib/" MACHINE "-linux-gnu\n/usr/lib/" MACHINE
                                                       "-linux-gnu\n/lib\n/usr/lib\n"
                                                     : "/lib64\n/usr/lib64\n/lib\n/usr/lib\n";
}

/* Runs in the sandbox. A folder that the image's own configuration or its loader already has keeps its
 * position: the driver's folder may be a system folder, and folders before it in the image stay before it. */
static char *const *configure(void *u, int root) {
        static char text[TEXT_MAX];
        static char name[] = "ldconfig", f[] = "-f", conf[] = "/etc/ld.so.conf", wrapper[] = WRAPPER,
                    cache_option[] = "-C", cache[] = "/etc/ld.so.cache";
        static char *const plain[] = { name, f, conf, cache_option, cache, NULL };
        static char *const wrapped[] = { name, f, wrapper, cache_option, cache, NULL };
        const struct options *o = u;
        const char *system = system_folders(root);
        bool known[FOLDERS_MAX] = { false };
        struct ldconf c = { .folders = o->folders, .n_folders = o->n_folders, .known = known };
        size_t n = 0;
        if (make_configuration(root) < 0)
                return NULL;
        ldconf_read(&c, root);
        for (size_t i = 0; i < o->n_folders; i++) {
                if (!known[i] && !has_folder(system, o->folders[i]))
                        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", o->folders[i]);
        }
        if ((n && place_conf(root, "00-nvcr-", text) < 0) || place_conf(root, "zz-nvcr-", system) < 0 ||
            configure_musl(root, o) < 0 || (!c.includes_files && place_wrapper(root) < 0))
                return NULL;
        return c.includes_files ? plain : wrapped;
}

/* Each folder becomes a line of a file. */
static int check_folders(const struct options *o) {
        if (o->n_folders > FOLDERS_MAX)
                return hook_log("more than %d folders", FOLDERS_MAX);
        for (size_t i = 0; i < o->n_folders; i++) {
                const char *p = o->folders[i];
                if (*p != '/' || strlen(p) >= PATH_MAX)
                        return hook_log("--folder '%s': the path must be absolute", p);
                for (; *p; p++) {
                        if ((unsigned char)*p < ' ' || strchr("#:=", *p))
                                return hook_log("--folder '%s': it has a character that the loader's "
                                                "configuration cannot",
                                                o->folders[i]);
                }
        }
        return 0;
}

/* Ubuntu's /sbin/ldconfig is a script that calls the real one. */
static const char *find_ldconfig(void) {
        static const char real[] = "/sbin/ldconfig.real";
        return access(real, X_OK) == 0 ? real : "/sbin/ldconfig";
}

int update_ldcache(int root, const char *path, const struct options *o) {
        struct options copy = *o;
        if (check_folders(o) < 0)
                return -1;
        /* Opened before any file of the container is read. */
        int program = sandbox_program(o->ldconfig ? o->ldconfig : find_ldconfig());
        if (program < 0)
                return -1;
        int r = sandbox_run(program, root, path, configure, &copy);
        close(program);
        return r;
}
