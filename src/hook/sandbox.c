/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/sandbox.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/hook_log.h"

enum { PROGRAM_MAX = 64 << 20, SEGMENTS_MAX = 64 };

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since Linux 6.3; older kernels refuse it and do not need it */
#endif

/* ---- the program ---- */

/* A program that names a loader (PT_INTERP) would start that of the container. */
static bool is_static(int fd) {
        Elf64_Ehdr h;
        Elf64_Phdr s[SEGMENTS_MAX];
        if (pread(fd, &h, sizeof h, 0) != sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
            h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phentsize != sizeof *s || !h.e_phnum ||
            h.e_phnum > SEGMENTS_MAX ||
            pread(fd, s, h.e_phnum * sizeof *s, (off_t)h.e_phoff) != (ssize_t)(h.e_phnum * sizeof *s))
                return false;
        for (unsigned i = 0; i < h.e_phnum; i++) {
                if (s[i].p_type == PT_INTERP)
                        return false;
        }
        return true;
}

static int new_memfd(void) {
        int fd = memfd_create("ldconfig", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
        return fd < 0 && errno == EINVAL ? memfd_create("ldconfig", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int sandbox_copy(int from, const char *path) {
        struct stat st;
        off_t at = 0;
        int to = new_memfd();
        if (to < 0)
                return hook_log_errno("memfd_create for '%s'", path);
        if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > PROGRAM_MAX) {
                hook_log("'%s' is not a program", path);
        } else {
                while (at < st.st_size && sendfile(to, from, &at, (size_t)(st.st_size - at)) > 0)
                        ;
                if (at != st.st_size ||
                    fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                        hook_log_errno("copy '%s'", path);
                else if (!is_static(to))
                        hook_log("'%s' is not a static 64-bit program, and the hook does not run a "
                                 "container's "
                                 "loader",
                                 path);
                else
                        return to;
        }
        close(to);
        return -1;
}

int sandbox_program(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return hook_log_errno("open '%s'", path);
        int program = sandbox_copy(fd, path);
        close(fd);
        return program;
}

/* ---- inside ---- */

/* Makes the container's root our root, and unmounts the host's. The root is opened again by its path, because
 * a descriptor of the previous mount namespace cannot become a root here. It is compared with the checked
 * descriptor. */
static int sandbox_enter(int root, const char *path) {
        struct stat was, is;
        if (mount("", "/", "", MS_SLAVE | MS_REC, "") < 0)
                return hook_log_errno("mount (propagation)");
        int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
            here = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (old < 0 || here < 0 || fstat(root, &was) < 0 || fstat(here, &is) < 0)
                return hook_log_errno("the root of the container");
        if (was.st_dev != is.st_dev || was.st_ino != is.st_ino)
                return hook_log("the root of the container has been replaced");
        if (fchdir(here) < 0)
                return hook_log_errno("the root of the container");
        if (syscall(SYS_pivot_root, ".", ".") == 0) {
                if (fchdir(old) < 0 || umount2(".", MNT_DETACH) < 0)
                        return hook_log_errno("umount2 of the host's files");
        } else if (errno != EINVAL) {
                return hook_log_errno("pivot_root to the container's files");
        } else if (mount(".", "/", "", MS_MOVE, "") < 0 || chroot(".") < 0) {
                /* An initramfs cannot be pivoted away. A mount over it makes it unreachable for a process
                 * that may not chroot. */
                return hook_log_errno("mount of the container's files as /");
        }
        close(old);
        close(here);
        return chdir("/") < 0 ? hook_log_errno("the root of the container") : 0;
}

/* Unmounts the container's own kernel file systems. They are still writable, because the runtime makes parts
 * of them read-only after its hooks. Root may write most files there without any capability, such as
 * core_pattern. */
static int leave_kernel_files(void) {
        static const char *const folders[] = { "/proc", "/sys", "/dev" };
        struct statfs fs;
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
                while (umount2(folders[i], MNT_DETACH) == 0)
                        ;
                if (errno != EINVAL && errno != ENOENT && errno != ENOTDIR)
                        return hook_log_errno("unmount %s", folders[i]);
                if (statfs(folders[i], &fs) == 0 &&
                    (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
                        return hook_log("%s of the container cannot be unmounted", folders[i]);
        }
        return 0;
}

static int drop_capabilities(void) {
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2] = { { 1U << CAP_DAC_OVERRIDE, 1U << CAP_DAC_OVERRIDE, 0 },
                                                  { 0, 0, 0 } };
        for (int i = 0; i < 64; i++) {
                if (i != CAP_DAC_OVERRIDE && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1 &&
                    prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
                        return hook_log_errno("prctl (drop capabilities)");
        }
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &head, data) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return hook_log_errno("capset (drop capabilities)");
        return 0;
}

static int limit(void) {
        static const struct {
                __rlimit_resource_t what; /* as glibc declares the two calls */
                rlim_t most;
        } limits[] = { { RLIMIT_CPU, 20 }, /* no memory limit: ldconfig maps whole libraries, of any size */
                       { RLIMIT_FSIZE, 256UL << 20 },
                       { RLIMIT_NOFILE, 256 },
                       { RLIMIT_CORE, 0 } };
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
                struct rlimit most = { limits[i].most, limits[i].most };
                struct rlimit now;
                /* Keep a lower limit. */
                if (getrlimit(limits[i].what, &now) == 0 && now.rlim_max < most.rlim_max)
                        continue;
                if (setrlimit(limits[i].what, &most) < 0)
                        return hook_log_errno("setrlimit");
        }
        return 0;
}

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the numbers of system calls are unknown for this architecture"
#endif

/* The system calls of ldconfig and prepare(). All others return EPERM, so a program that does not depend on
 * them continues. */
static const int allowed[] = {
        SYS_execveat,        SYS_exit,        SYS_exit_group, SYS_read,          SYS_pread64,
        SYS_write,           SYS_pwrite64,    SYS_writev,     SYS_close,         SYS_lseek,
        SYS_openat,          SYS_openat2,     SYS_newfstatat, SYS_fstat,         SYS_statx,
        SYS_getdents64,      SYS_readlinkat,  SYS_symlinkat,  SYS_renameat,      SYS_renameat2,
        SYS_unlinkat,        SYS_mkdirat,     SYS_fchmod,     SYS_fchmodat,      SYS_fsync,
        SYS_fdatasync,       SYS_ftruncate,   SYS_mmap,       SYS_munmap,        SYS_mremap,
        SYS_mprotect,        SYS_madvise,     SYS_brk,        SYS_futex,         SYS_set_tid_address,
        SYS_set_robust_list, SYS_rseq,        SYS_prlimit64,  SYS_getrandom,     SYS_sysinfo,
        SYS_uname,           SYS_fcntl,       SYS_dup,        SYS_clock_gettime, SYS_rt_sigaction,
        SYS_rt_sigprocmask,  SYS_sigaltstack, SYS_getpid,     SYS_gettid,        SYS_getuid,
        SYS_geteuid,         SYS_getgid,      SYS_getegid,    SYS_faccessat,     SYS_tgkill,
#if defined(__x86_64__) /* older forms, which exist only there */
        SYS_arch_prctl,      SYS_open,        SYS_stat,       SYS_lstat,         SYS_access,
        SYS_readlink,        SYS_symlink,     SYS_rename,     SYS_unlink,        SYS_mkdir,
        SYS_chmod,
#endif
};

static int forbid_calls(void) {
        enum { N = sizeof allowed / sizeof *allowed };
        struct sock_filter f[5 + N + 2];
        size_t n = 0;
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < N; i++)
                f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
                                                      (unsigned char)(N - i), 0);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = { (unsigned short)n, f };
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
                return hook_log_errno("prctl of a seccomp filter");
        return 0;
}

static int run_inside(int program, int root, const char *path, char *const *(*prepare)(void *u, int root),
                      void *u) {
        char *const environment[] = { NULL };
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sandbox_enter(root, path) < 0)
                return -1;
        close(root);
        int inside = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (inside < 0)
                return hook_log_errno("the root of the container");
        if (leave_kernel_files() < 0 || limit() < 0 || drop_capabilities() < 0 || forbid_calls() < 0)
                return -1;
        char *const *argv = prepare(u, inside);
        if (!argv)
                return -1;
        syscall(SYS_execveat, program, "", argv, environment, AT_EMPTY_PATH);
        return hook_log_errno("execveat of %s in the container", argv[0]);
}

int sandbox_run(int program, int root, const char *path, char *const *(*prepare)(void *u, int root),
                void *u) {
        int status = 0;
        if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) < 0)
                return hook_log_errno("unshare of namespaces");
        pid_t child = fork();
        if (child < 0)
                return hook_log_errno("fork");
        if (child == 0)
                _exit(run_inside(program, root, path, prepare, u) < 0 ? 125 : 0);
        while (waitpid(child, &status, 0) < 0) {
                if (errno != EINTR)
                        return hook_log_errno("wait");
        }
        if (WIFSIGNALED(status))
                return hook_log("ldconfig was ended by signal %d", WTERMSIG(status));
        if (WEXITSTATUS(status) == 125)
                return -1; /* the error has been printed */
        return WEXITSTATUS(status) ? hook_log("ldconfig ended with status %d", WEXITSTATUS(status)) : 0;
}
