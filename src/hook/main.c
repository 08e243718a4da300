/* SPDX-License-Identifier: Apache-2.0 */
/* cdi-hook: what makes the files of an NVIDIA driver usable in a container, as createContainer hook of an OCI
 * runtime: links, the loader's cache, and the like (docs/dev/protocols.md). Takes the command line of
 * NVIDIA's nvidia-cdi-hook.
 *
 *     cdi-hook COMMAND ...     one of the commands of commands.h, with the runtime's words on standard input
 *     cdi-hook self-test       whether this machine's kernel lets it do its work
 *
 * It runs as root in the namespaces of the container, with the host's files in reach, on files that a tenant
 * has written and may change meanwhile. So it takes no environment, holds nothing open, reads each path
 * through the kernel's own confined walk, and runs nothing of the container's. */
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
#include "hook/say.h"

/* Longer than a kubelet waits for a container to start (runtimeRequestTimeout, 2 minutes): what is slow, such
 * as an image whose files are fetched when they are read, is its to judge. */
enum { LIFE_S = 300, OPTIONS_MAX = 512 };

/* docs/reference/flags.md is generated from the comments of commands and options (scripts/reference). */
enum command { CREATE_SYMLINKS, ENABLE_CUDA_COMPAT, UPDATE_LDCACHE, DISABLE_MODIFICATION, COMMANDS };
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
};

/* ---- command line ---- */

struct line {
        enum command command;
        struct options o;
        const char *links[OPTIONS_MAX], *folders[OPTIONS_MAX];
};

/* The value of "--name value" or "--name=value"; NULL: this is another option. Goes on behind it. */
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

static int add(const char **list, size_t *n, const char *value) {
        if (*n == OPTIONS_MAX)
                return say("more than %d options of a kind", OPTIONS_MAX);
        list[(*n)++] = value;
        return 0;
}

static int parse_option(struct line *l, char ***argv) {
        const char *value;
        /* create-symlinks: a link to create, as <target>::<path> */
        if ((value = value_of("--link", argv)))
                return add(l->links, &l->o.n_links, value);
        /* update-ldcache: a folder with libraries for the loader's cache */
        if ((value = value_of("--folder", argv)))
                return add(l->folders, &l->o.n_folders, value);
        /* update-ldcache: the program ldconfig of the host; without it, the hook looks for one */
        if ((value = value_of("--ldconfig-path", argv))) {
                /* NVIDIA marks a path of the host with @; this one always is. */
                l->o.ldconfig = *value == '@' ? value + 1 : value;
                return 0;
        }
        /* enable-cuda-compat: the version of the host's driver */
        if ((value = value_of("--host-driver-version", argv))) {
                l->o.driver_version = value;
                return 0;
        }
        return say("unknown option '%s' of %s", **argv, names[l->command]);
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
                return say("want one of: create-symlinks, enable-cuda-compat, update-ldcache, "
                           "disable-device-node-modification");
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
                "cdi-hook: not done within 300 s: the files of the image are read too slowly, "
                "or the container has too little CPU\n";
        (void)signal;
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
                _exit(2);
        _exit(1);
}

/* Nothing of who started us counts: its environment may be the container's, its working directory is. */
static int become_nobody(void) {
        clearenv();
        umask(022);
        if (sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL) < 0)
                return say_errno("begin");
        alarm(LIFE_S);
        if (chdir("/") < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return say_errno("begin");
        if (syscall(SYS_close_range, 3U, ~0U, 0U) < 0 && errno != ENOSYS)
                return say_errno("close what was open");
        return 0;
}

static int run(const struct line *l, int root, const char *path) {
        switch (l->command) {
        case CREATE_SYMLINKS:
                return create_symlinks(root, &l->o);
        case ENABLE_CUDA_COMPAT:
                return enable_cuda_compat(root, &l->o);
        case UPDATE_LDCACHE:
                return update_ldcache(root, path, &l->o);
        case DISABLE_MODIFICATION:
                return disable_device_node_modification(root);
        case COMMANDS:
                break;
        }
        return -1;
}

int main(int argc, char **argv) {
        static struct line l;
        char path[OCI_PATH_MAX];
        if (argc > 0 && strcmp(argv[0], "ldconfig") == 0) /* of the self-test, in the sandbox */
                return 0;
        if (argc == 2 && strcmp(argv[1], "self-test") == 0)
                return become_nobody() < 0 || self_test() < 0 ? 1 : 0;
        if (argc < 1 || become_nobody() < 0 || parse(&l, argv) < 0 || oci_state_root(STDIN_FILENO, path) < 0)
                return 1;
        int root = in_root_open(path);
        return root < 0 || run(&l, root, path) < 0 ? 1 : 0;
}
