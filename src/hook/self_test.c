/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/hook_log.h"

/* The container is mounted here, for this process only. Every Linux has this folder, and the test does not
 * use its content. */
#define PLACE "/sys"
#define ROOT PLACE "/root"

static int make_file(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return hook_log_errno("open '%s'", path);
        ssize_t n = write(fd, text, strlen(text));
        close(fd);
        return n == (ssize_t)strlen(text) ? 0 : hook_log_errno("write '%s'", path);
}

/* Creates the state in which a runtime runs the hooks: the root is a mount, and has /proc. */
static int make_container(void) {
        static const char *const folders[] = { ROOT,
                                               ROOT "/proc",
                                               ROOT "/dev",
                                               ROOT "/etc",
                                               ROOT "/usr",
                                               ROOT "/usr/local",
                                               ROOT "/usr/local/cuda",
                                               ROOT "/usr/local/cuda/compat" };
        static const char name[] = SELF_TEST_DOMAIN;
        if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0)
                return hook_log_errno("unshare of mount and UTS namespace");
        if (mount("", "/", "", MS_SLAVE | MS_REC, "") < 0)
                return hook_log_errno("mount (propagation)");
        if (mount("tmpfs", PLACE, "tmpfs", 0, "size=1m") < 0)
                return hook_log_errno("mount of tmpfs");
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
                if (mkdir(folders[i], 0755) < 0)
                        return hook_log_errno("mkdir of '%s'", folders[i]);
        }
        if (mount(ROOT, ROOT, NULL, MS_BIND, NULL) < 0)
                return hook_log_errno("mount of a container's root");
        if (mount("proc", ROOT "/proc", "proc", 0, NULL) < 0)
                return hook_log_errno("mount of proc");
        if (setdomainname(name, strlen(name)) < 0)
                return hook_log_errno("setdomainname");
        return make_file(ROOT "/usr/local/cuda/compat/libcuda.so.2.0", "");
}

typedef int(command_fn)(int root);

static int links(int root) {
        static const char *const link = "libcuda.so.1::/usr/lib64/libcuda.so";
        return create_symlinks(root, &(struct options){ .links = &link, .n_links = 1 });
}

static int compat(int root) {
        return enable_cuda_compat(root, &(struct options){ .driver_version = "1.0" });
}

/* This program is static, too, so it replaces ldconfig in the sandbox (hook_main.c). */
static int ldcache(int root) {
        static const char *const folder = "/usr/lib64";
        return update_ldcache(
                root, ROOT,
                &(struct options){ .folders = &folder, .n_folders = 1, .ldconfig = "/proc/self/exe" });
}

static int params(int root) {
        char text[64] = "";
        if (mask_params(root, SELF_TEST_FOLDER, SELF_TEST_FILE) < 0)
                return -1;
        int fd = in_root(root, "/proc/" SELF_TEST_FOLDER "/" SELF_TEST_FILE, O_RDONLY, 0);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
                close(fd);
        return n > 0 && strchr(text, '0') ? 0 : hook_log("the mount over a file of /proc cannot be read");
}

/* Runs each command in its own process, as a runtime does. */
static int self_test_run(command_fn *command) {
        int status = 0;
        pid_t child = fork();
        if (child < 0)
                return hook_log_errno("fork");
        if (child == 0) {
                int root = in_root_open(ROOT);
                _exit(root < 0 || command(root) < 0 ? 1 : 0);
        }
        while (waitpid(child, &status, 0) < 0) {
                if (errno != EINTR)
                        return hook_log_errno("wait");
        }
        if (WIFSIGNALED(status))
                return hook_log("ended by signal %d", WTERMSIG(status));
        return WEXITSTATUS(status) ? -1 : 0;
}

int self_test(void) {
        /* The last one finds no device node, because the plugin may not be permitted to create one. */
        static command_fn *const commands[] = { links, compat, ldcache, params, update_application_profile };
        if (make_container() < 0)
                return -1;
        /* Twice, because two claims of a container lead to two sets of hooks. */
        for (size_t i = 0; i < 2 * sizeof commands / sizeof *commands; i++) {
                if (self_test_run(commands[i % (sizeof commands / sizeof *commands)]) < 0)
                        return -1;
        }
        return 0;
}
