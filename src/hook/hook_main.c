/* SPDX-License-Identifier: Apache-2.0 */
/* cdi-hook: a createContainer hook of an OCI runtime that makes the files of an NVIDIA driver usable in a
 * container: links, the loader's cache, and the like (docs/dev/protocols.md). It has the command line of
 * NVIDIA's nvidia-cdi-hook.
 *
 *     cdi-hook COMMAND ...     runs a command of commands.h; the container's state is on standard input
 *     cdi-hook self-test       checks that this machine's kernel supports all commands
 *
 * The hook runs as root in the namespaces of the container, and can reach the host's files. It works on files
 * that a user wrote and may change at the same time. So it ignores the environment, holds no files open,
 * resolves each path with openat2 inside the root, and runs no program of the container. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/oci_state.h"
#include "hook/hook_log.h"

/* Longer than a kubelet waits for a container to start (runtimeRequestTimeout, 2 minutes), so that the
 * kubelet decides whether a slow start fails, for example with an image whose files are fetched on demand. */
enum { LIFE_S = 300, OPTIONS_MAX = 512 };

/* docs/reference/flags.md is generated from the comments of commands and options (scripts/reference). */
enum command {
        CREATE_SYMLINKS,
        ENABLE_CUDA_COMPAT,
        UPDATE_LDCACHE,
        DISABLE_MODIFICATION,
        UPDATE_PROFILE,
        COMMANDS
};
static const char *const names[COMMANDS] = {
        /* creates symbolic links in the container */
        "create-symlinks",
        /* lets the loader prefer the CUDA compatibility library of the image if it is newer than the driver
         */
        "enable-cuda-compat",
        /* adds folders to the loader's cache, with the ldconfig of the host */
        "update-ldcache",
        /* hides the driver's parameters, so that NVML creates no device nodes in the container */
        "disable-device-node-modification",
        /* restricts EGL and Vulkan to the GPUs of the container */
        "update-application-profile",
};

/* ---- command line ---- */

struct line {
        enum command command;
        struct options o;
        const char *links[OPTIONS_MAX], *folders[OPTIONS_MAX];
};

/* Returns the value of "--name value" or "--name=value", and advances behind it; NULL: this is another
 * option. */
static const char *value_of(const char *name, char ***argv) {
        const char *arg = **argv;
        size_t n = strlen(name);
        if (strncmp(arg, name, n) != 0)
                return NULL;
        if (arg[n] == '=') {
                (*argv)++;
                return arg + n + 1;
        }
        if (arg[n] || !(*argv)[1])
                return NULL;
        *argv += 2;
        return (*argv)[-1];
}

static int hook_main_add(const char **list, size_t *n, const char *value) {
        if (*n == OPTIONS_MAX)
                return hook_log("more than %d options of the same kind", OPTIONS_MAX);
        list[(*n)++] = value;
        return 0;
}

static int parse_option(struct line *l, char ***argv) {
        const char *value;
        /* create-symlinks: a link to create, as <target>::<path> */
        if ((value = value_of("--link", argv)))
                return hook_main_add(l->links, &l->o.n_links, value);
        /* update-ldcache: a folder with libraries for the loader's cache */
        if ((value = value_of("--folder", argv)))
                return hook_main_add(l->folders, &l->o.n_folders, value);
        /* update-ldcache: the program ldconfig of the host; without this option, the hook searches for it */
        if ((value = value_of("--ldconfig-path", argv))) {
                /* NVIDIA marks a path of the host with @. This path is always the host's. */
                l->o.ldconfig = *value == '@' ? value + 1 : value;
                return 0;
        }
        /* enable-cuda-compat: the version of the host's driver */
        if ((value = value_of("--host-driver-version", argv))) {
                l->o.driver_version = value;
                return 0;
        }
        return hook_log("unknown option '%s' of %s", **argv, names[l->command]);
}

static int parse(struct line *l, char **argv) {
        argv++;
        if (*argv && strcmp(*argv, "hook") == 0) /* as nvidia-ctk has it */
                argv++;
        while (*argv && strncmp(*argv, "--debug", 7) == 0)
                argv++;
        for (l->command = 0; *argv && l->command < COMMANDS; l->command++) {
                if (strcmp(*argv, names[l->command]) == 0)
                        break;
        }
        if (!*argv || l->command == COMMANDS)
                return hook_log("the first argument must be one of: create-symlinks, enable-cuda-compat, "
                                "update-ldcache, "
                                "disable-device-node-modification, update-application-profile");
        argv++;
        while (*argv) {
                if (parse_option(l, &argv) < 0)
                        return -1;
        }
        l->o.links = l->links;
        l->o.folders = l->folders;
        return 0;
}

/* ---- the process ---- */

static void on_alarm(int signal) {
        static const char text[] =
                "cdi-hook: not finished within 300 s: the files of the image are read too slowly, "
                "or the container has too little CPU\n";
        (void)signal;
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
                _exit(2);
        _exit(1);
}

/* Drops everything inherited from the runtime: the environment may be the container's, and the working
 * directory is. */
static int drop_inherited(void) {
        clearenv();
        umask(022);
        if (sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL) < 0)
                return hook_log_errno("begin");
        alarm(LIFE_S);
        if (chdir("/") < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return hook_log_errno("begin");
        if (syscall(SYS_close_range, 3U, ~0U, 0U) < 0 && errno != ENOSYS)
                return hook_log_errno("close what was open");
        return 0;
}

static int hook_main_run(const struct line *l, int root, const char *path) {
        switch (l->command) {
        case CREATE_SYMLINKS:
                return create_symlinks(root, &l->o);
        case ENABLE_CUDA_COMPAT:
                return enable_cuda_compat(root, &l->o);
        case UPDATE_LDCACHE:
                return update_ldcache(root, path, &l->o);
        case DISABLE_MODIFICATION:
                return disable_device_node_modification(root);
        case UPDATE_PROFILE:
                return update_application_profile(root);
        case COMMANDS:
                break;
        }
        return -1;
}

int main(int argc, char **argv) {
        static struct line l;
        char path[OCI_PATH_MAX];
        if (argc > 0 && strcmp(argv[0], "ldconfig") == 0) /* the self-test, in the sandbox */
                return 0;
        if (argc == 2 && strcmp(argv[1], "self-test") == 0)
                return drop_inherited() < 0 || self_test() < 0 ? 1 : 0;
        if (argc < 1 || drop_inherited() < 0 || parse(&l, argv) < 0 || oci_state_root(STDIN_FILENO, path) < 0)
                return 1;
        int root = in_root_open(path);
        return root < 0 || hook_main_run(&l, root, path) < 0 ? 1 : 0;
}
