/* SPDX-License-Identifier: Apache-2.0 */
#include "imexd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIGUSR1_INTERVAL_MS = 5000 };

int64_t imexd_now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1; /* never 0, which means "not set" */
}

static const char *const status_names[] = {
        [STATUS_INITIALIZING] = "INITIALIZING",
        [STATUS_STARTING_AUTH_SERVER] = "STARTING_AUTH_SERVER",
        [STATUS_WAITING_FOR_PEERS] = "WAITING_FOR_PEERS",
        [STATUS_WAITING_FOR_RECOVERY] = "WAITING_FOR_RECOVERY",
        [STATUS_INIT_GPU] = "INIT_GPU",
        [STATUS_READY] = "READY",
        [STATUS_SHUTTING_DOWN] = "SHUTTING_DOWN",
        [STATUS_UNAVAILABLE] = "UNAVAILABLE",
};

const char *imexd_status_name(enum status s) {
        return status_names[s];
}

static bool status_parse(const char *text, size_t n, enum status *ret) {
        for (size_t i = 0; i < sizeof(status_names) / sizeof(*status_names); i++) {
                if (strlen(status_names[i]) == n && !strncmp(status_names[i], text, n)) {
                        *ret = (enum status)i;
                        return true;
                }
        }
        return false;
}

/* STATUS_SEQUENCE=INITIALIZING:300,WAITING_FOR_PEERS:500 counts from the start. After its end the true status
 * is reported. */
static bool in_sequence(const struct imexd *d, const char *sequence, enum status *ret, int64_t *ret_until) {
        int64_t at = d->started_at;

        while (*sequence) {
                size_t n = strcspn(sequence, ":,");
                bool known = status_parse(sequence, n, ret);

                if (!known || sequence[n] != ':')
                        return known; /* without a time: forever */
                at += strtol(sequence + n + 1, NULL, 10);
                if (imexd_now() < at) {
                        *ret_until = at;
                        return true;
                }
                sequence += strcspn(sequence, ",");
                sequence += *sequence == ',';
        }
        return false;
}

enum status imexd_status(struct imexd *d, int64_t *ret_until) {
        enum status s = d->status;
        struct conf knobs;
        const char *fixed, *sequence;

        *ret_until = 0;
        conf_load_knobs(&knobs);
        fixed = conf_text(&knobs, "STATUS", "");
        sequence = conf_text(&knobs, "STATUS_SEQUENCE", "");
        if (!status_parse(fixed, strlen(fixed), &s) && !in_sequence(d, sequence, &s, ret_until))
                s = d->status;
        conf_done(&knobs);
        return s;
}

void imexd_fail(struct imexd *d, const char *format, ...) {
        char text[512];
        struct conf knobs;
        va_list args;
        long code;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        log_line(LOG_ERROR, "%s", text);
        if (d->own >= 0)
                peer_say_goodbye(d);
        conf_load_knobs(&knobs);
        code = conf_number(&knobs, "EXIT_CODE", EXIT_FAILURE);
        exit((int)code);
}

/* ---- start-up ---- */

/* The real daemon gets one session from the kernel driver of the node. Here a lock on the program's inode
 * replaces the driver: each node has its own copy of the program, and all containers of the node see that
 * copy. */
static void allocate_session(struct imexd *d) {
        struct conf knobs;
        char path[64];
        struct stat st;
        long minor;
        bool required;

        conf_load_knobs(&knobs);
        minor = conf_number(&knobs, "CAP_MINOR", 512);
        required = conf_number(&knobs, "REQUIRE_CAP", 0) != 0;
        conf_done(&knobs);
        snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%ld", minor);
        /* Only checks its existence: without a driver it cannot be opened. */
        if (required && (lstat(path, &st) < 0 || !S_ISCHR(st.st_mode)))
                imexd_fail(d, "Failed to open the fabric-imex-mgmt capability %s: %s", path,
                           errno ? strerror(errno) : "not a character device");
        d->session_lock = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (d->session_lock < 0 || flock(d->session_lock, LOCK_EX | LOCK_NB) < 0)
                imexd_fail(d, "Failed to allocate Imex session, status = %s",
                           errno == EWOULDBLOCK ? "NV_ERR_IN_USE" : strerror(errno));
}

void imexd_progress(struct imexd *d) {
        enum status next = STATUS_READY;

        if (d->own < 0 || d->status >= STATUS_READY)
                return;
        for (size_t i = 0; d->quorum == QUORUM_FULL && i < d->nodes.n; i++)
                if (d->peers[i].link != LINK_CONNECTED)
                        next = STATUS_WAITING_FOR_PEERS;
        if (next == STATUS_READY && d->importers.n_awaited > 0)
                next = STATUS_WAITING_FOR_RECOVERY;
        if (next == STATUS_READY)
                log_line(LOG_INFO, "GPU event successfully subscribed");
        d->status = next;
}

static void identified(struct imexd *d, size_t id, const struct addr *address, const char *interface) {
        char shown[INET6_ADDRSTRLEN];

        d->own = (ssize_t)id;
        d->own_addr = *address;
        if (d->nodes.v[id].literal)
                log_line(LOG_INFO,
                         "Identified this node as ID %zu, using bind IP of '%s', and network interface of %s",
                         id, addr_show(address, shown), interface);
        else
                log_line(LOG_INFO, "Identified this node as ID %zu, using bind address of '%s'", id,
                         d->nodes.v[id].text);
        persist_load(d);
        if (!d->no_gpu) {
                allocate_session(d);
                log_line(LOG_INFO, "NvGpu Library version matched with GPU Driver version");
        }
        peer_listen(d);
        log_line(LOG_INFO, "Started processing of incoming messages.");
        log_line(LOG_INFO, "Creating gRPC channels to all peers (nPeers = %zu).", d->nodes.n);
        peer_start_all(d);
        if (d->quorum != QUORUM_FULL)
                log_line(LOG_INFO, "IMEX_WAIT_FOR_QUORUM != FULL, continuing initialization without waiting "
                                   "for connections to all nodes.");
        imexd_progress(d);
        if (d->ready_pipe >= 0) {
                (void)!write(d->ready_pipe, "", 1);
                close(d->ready_pipe);
                d->ready_pipe = -1;
        }
}

void imexd_resolved_own(struct imexd *d, size_t id) {
        const char *wanted = conf_text(&d->config, "BIND_INTERFACE_IP", "");
        struct node *node = &d->nodes.v[id];
        char interface[IF_NAMESIZE];
        struct addr bound;

        if (*wanted && !addr_parse(wanted, &bound))
                imexd_fail(d, "Invalid value '%.64s' for config option BIND_INTERFACE_IP", wanted);
        for (size_t i = 0; i < node->n_addrs; i++) {
                if ((*wanted && !addr_equal(&bound, &node->addrs[i])) ||
                    !addr_is_local(&node->addrs[i], interface))
                        continue;
                identified(d, id, &node->addrs[i], interface);
                return;
        }
        if (d->unresolved == 0)
                imexd_fail(
                        d,
                        "No matching network interface found for any IP addresses in the node configuration "
                        "file %s",
                        conf_text(&d->config, "IMEX_NODE_CONFIG_FILE", "/etc/nvidia-imex/nodes_config.cfg"));
}

static void begin(struct imexd *d) {
        for (size_t i = 0; i < d->nodes.n; i++)
                if (!d->nodes.v[i].literal)
                        log_line(LOG_INFO, "Treating node config entry '%s' as a host name.",
                                 d->nodes.v[i].text);
        resolve_all(d);
}

static void banner(const struct imexd *d) {
        const struct conf *c = &d->config;

        if (d->no_gpu)
                log_line(LOG_INFO, "IMEX version %s is running in NO GPU MODE", d->version);
        log_line(LOG_INFO,
                 "IMEX version %s is running with the following configuration options:", d->version);
        log_line(LOG_INFO, "Logging level = %ld", conf_number(c, "LOG_LEVEL", 4));
        log_line(LOG_INFO, "Logging file name/path = %s", conf_text(c, "LOG_FILE_NAME", ""));
        log_line(LOG_INFO, "Append to log file = %ld", conf_number(c, "LOG_APPEND_TO_LOG", 1));
        log_line(LOG_INFO, "IMEX Library communication bind interface = %s",
                 conf_text(c, "BIND_INTERFACE_IP", ""));
        log_line(LOG_INFO, "IMEX library communication bind port = %u", d->server_port);
}

/* ---- running ---- */

static void shut_down(struct imexd *d) {
        struct conf knobs;
        long delay;
        bool deaf;

        if (d->stop_at)
                return;
        conf_load_knobs(&knobs);
        deaf = conf_number(&knobs, "IGNORE_SIGTERM", 0) != 0;
        delay = conf_number(&knobs, "STOP_DELAY_MS", 0);
        conf_done(&knobs);
        if (deaf) {
                log_line(LOG_WARNING,
                         "Ignoring the request to shut down, as the knob IGNORE_SIGTERM wants it");
                return;
        }
        log_line(LOG_INFO, "Shutting down");
        d->status = STATUS_SHUTTING_DOWN;
        command_notify(d);
        peer_say_goodbye(d);
        d->stop_at = imexd_now() + (delay > 0 ? delay : 0);
}

static void signalled(struct imexd *d, struct source *s, uint32_t events) {
        struct signalfd_siginfo info;

        (void)events;
        while (read(s->fd, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGHUP) {
                        log_dump();
                } else if (info.ssi_signo != SIGUSR1) {
                        shut_down(d);
                } else if (d->last_restart && imexd_now() - d->last_restart < SIGUSR1_INTERVAL_MS) {
                        log_line(LOG_INFO,
                                 "Ignoring SIGUSR1: the last one was processed less than 5 seconds ago");
                } else if (d->begin_at == 0) {
                        d->last_restart = imexd_now();
                        log_line(LOG_INFO, "Received SIGUSR1, restarting all client connections");
                        peer_restart_all(d);
                }
        }
}

static void watch_signals(struct imexd *d) {
        static const int wanted[] = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1 };
        sigset_t set;
        int fd;

        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
                sigaddset(&set, wanted[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0 || source_add(d, &d->signals, fd, signalled, EPOLLIN) < 0)
                imexd_fail(d, "signalfd: %s", strerror(errno));
}

_Noreturn static void crash(void) {
        const struct rlimit no_core = { 0, 0 };
        struct conf knobs;

        conf_load_knobs(&knobs);
        if (conf_find(&knobs, "EXIT_CODE")) {
                log_line(LOG_CRITICAL, "Ending as the knobs CRASH_AFTER_MS and EXIT_CODE want it");
                _exit((int)conf_number(&knobs, "EXIT_CODE", 1));
        }
        log_line(LOG_CRITICAL, "Crashing as the knob CRASH_AFTER_MS wants it");
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        abort();
}

static int wait_ms(struct imexd *d) {
        int64_t times[5] = { d->begin_at, d->crash_at, d->stop_at, peer_next_timer(d), 0 };
        int64_t next = 0, now = imexd_now();

        (void)imexd_status(d, &times[4]);
        for (size_t i = 0; i < 5; i++)
                if (times[i] && (!next || times[i] < next))
                        next = times[i];
        if (!next)
                return -1;
        return next <= now ? 0 : next - now > 60000 ? 60000 : (int)(next - now);
}

static void run(struct imexd *d) {
        while (!d->stop) {
                struct epoll_event events[64];
                int n = epoll_wait(d->epoll, events, 64, wait_ms(d));
                int64_t now;

                for (int i = 0; i < n; i++) {
                        struct source *s = events[i].data.ptr;

                        if (s->fd >= 0)
                                s->ready(d, s, events[i].events);
                }
                now = imexd_now();
                if (d->crash_at && d->crash_at <= now)
                        crash();
                if (d->begin_at && d->begin_at <= now) {
                        d->begin_at = 0;
                        begin(d);
                }
                peer_timers(d, now);
                command_notify(d);
                /* A process that is killed while it stops has not ended cleanly: persist.dat stays the
                 * same. */
                if (d->stop_at && d->stop_at <= now) {
                        persist_close(d);
                        d->stop = true;
                }
                peer_sweep(d);
                command_sweep(d);
        }
}

/* Returns in the child. The parent waits until the child has started, and exits with its result. */
static void daemonize(struct imexd *d) {
        int ends[2];
        char byte;

        if (pipe2(ends, O_CLOEXEC) < 0)
                imexd_fail(d, "pipe: %s", strerror(errno));
        switch (fork()) {
        case -1:
                imexd_fail(d, "fork: %s", strerror(errno));
        case 0:
                close(ends[0]);
                setsid();
                log_detach();
                d->ready_pipe = ends[1];
                return;
        default:
                close(ends[1]);
                _exit(read(ends[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
        }
}

static const char *arguments(struct imexd *d, int argc, char **argv) {
        const char *path = "/etc/nvidia-imex/config.cfg";

        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "-c") && i + 1 < argc) {
                        path = argv[++i];
                } else if (!strcmp(argv[i], "--nogpu")) {
                        d->no_gpu = true;
                } else if (!strcmp(argv[i], "--version") || !strcmp(argv[i], "-v")) {
                        printf("IMEX version is: %s\n", d->version);
                        exit(EXIT_SUCCESS);
                } else {
                        fprintf(stderr, "usage: nvidia-imex [-c <config file>] [--nogpu] [--version]\n");
                        exit(strcmp(argv[i], "--help") != 0);
                }
        }
        return path;
}

static void read_knobs(struct imexd *d, char *refusal, size_t n_refusal) {
        struct conf knobs;
        long crash_after;

        conf_load_knobs(&knobs);
        snprintf(d->version, sizeof(d->version), "%s", conf_text(&knobs, "VERSION", STANDIN_VERSION));
        snprintf(refusal, n_refusal, "%s", conf_text(&knobs, "REFUSE_START", ""));
        d->begin_at = d->started_at + conf_number(&knobs, "START_DELAY_MS", 0);
        crash_after = conf_number(&knobs, "CRASH_AFTER_MS", 0);
        if (crash_after > 0)
                d->crash_at = d->started_at + crash_after;
        conf_done(&knobs);
}

int main(int argc, char **argv) {
        struct imexd d = { .own = -1, .ready_pipe = -1, .session_lock = -1 };
        struct source *const sources[] = { &d.signals, &d.resolved, &d.server, &d.command_tcp,
                                           &d.command_unix };
        char why[512], refusal[256];
        const char *path;
        int bad;

        for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
                sources[i]->fd = -1;
        d.started_at = imexd_now();
        read_knobs(&d, refusal, sizeof(refusal));
        path = arguments(&d, argc, argv);
        bad = conf_load(&d.config, path);
        if (bad) {
                fprintf(stderr, "ERROR: %s config file %s: %s\n",
                        bad < 0 ? "failed to open" : "failed to parse", path,
                        bad < 0 ? strerror(-bad) : "a line without '='");
                return EXIT_FAILURE;
        }
        log_open(&d.config);
        if (*refusal)
                imexd_fail(&d, "%s", refusal);
        if (config_check(&d, path, why, sizeof(why)) < 0 ||
            nodes_load(&d.nodes,
                       conf_text(&d.config, "IMEX_NODE_CONFIG_FILE", "/etc/nvidia-imex/nodes_config.cfg"),
                       why, sizeof(why)) < 0)
                imexd_fail(&d, "%s", why);
        banner(&d);
        if (conf_number(&d.config, "DAEMONIZE", 1))
                daemonize(&d);
        d.peers = calloc(d.nodes.n, sizeof(*d.peers));
        d.epoll = epoll_create1(EPOLL_CLOEXEC);
        if (!d.peers || d.epoll < 0 || getrandom(&d.instance, sizeof(d.instance), 0) != sizeof(d.instance))
                imexd_fail(&d, "Failed to initialize: %s", strerror(errno));
        for (size_t i = 0; i < d.nodes.n; i++) {
                d.peers[i].stream.source.fd = -1;
                d.peers[i].link = LINK_NEVER_CONNECTED;
        }
        watch_signals(&d);
        resolve_start(&d);
        command_listen(&d);
        run(&d);
        return EXIT_SUCCESS;
}
