/* SPDX-License-Identifier: Apache-2.0 */
/* imexd: the inside of the nvidia-imex stand-in. One thread runs everything in an epoll loop; a second one
 * only resolves names.
 *
 *   imexd.c          start-up, signals, timers, the loop
 *   imexd_log.c      log lines in the real daemon's form
 *   imexd_config.c   the configuration file
 *   imexd_resolve.c  the resolver thread
 *   imexd_stream.c   sources of events and line-wise sockets
 *   imexd_peer.c     sessions with other nodes, both directions
 *   imexd_cmd.c      the command service, which nvidia-imex-ctl talks to
 *   imexd_persist.c  persist.dat
 *
 * Times are milliseconds of the monotonic clock; 0 means "not set". */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf.h"
#include "nodes.h"

struct imexd;

/* ---- events ---- */

struct source {
        int fd; /* -1 when closed: an event that was already fetched for it is then dropped */
        void (*ready)(struct imexd *d, struct source *s, uint32_t events);
};

enum { STREAM_LINE = 512, STREAM_MAX_OUT = 1 << 20 };

struct stream {
        struct source source;
        char in[STREAM_LINE];
        size_t n_in;
        char *out;
        size_t n_out;
};

int source_add(struct imexd *d, struct source *s, int fd,
               void (*ready)(struct imexd *, struct source *, uint32_t), uint32_t events);
void source_close(struct source *s);

void stream_open(struct imexd *d, struct stream *s, int fd,
                 void (*ready)(struct imexd *, struct source *, uint32_t), uint32_t events);
void stream_close(struct stream *s);
/* A stream that cannot take the text is closed. */
void stream_write(struct imexd *d, struct stream *s, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void stream_flush(struct imexd *d, struct stream *s);
/* Reads what is there. False when the other side is gone (lines may still be taken) or the socket failed. */
bool stream_fill(struct stream *s);
/* Takes the next whole line, without its end, or returns false. A line that does not fit closes the stream.
 */
bool stream_line(struct stream *s, char line[static STREAM_LINE]);

/* ---- states ---- */

enum status {
        STATUS_INITIALIZING,
        STATUS_STARTING_AUTH_SERVER,
        STATUS_WAITING_FOR_PEERS,
        STATUS_WAITING_FOR_RECOVERY,
        STATUS_INIT_GPU,
        STATUS_READY,
        STATUS_SHUTTING_DOWN,
        STATUS_UNAVAILABLE,
};

/* What a node knows of its outgoing connection to another; the letters and words of nvidia-imex-ctl. */
enum link {
        LINK_INVALID,
        LINK_NEVER_CONNECTED,
        LINK_RECOVERING,
        LINK_DISCONNECTED,
        LINK_VERSION_MISMATCH,
        LINK_MAP_MISMATCH,
        LINK_CONNECTED,
};

/* The outgoing connection to a node. */
struct peer {
        struct stream stream;
        enum { PEER_IDLE, PEER_CONNECTING, PEER_GREETING, PEER_UP } phase;
        enum link link;
        bool blocked;      /* it had another node list once: for the life of this process */
        struct addr addr;  /* where we are connected to, or trying */
        uint64_t instance; /* of the daemon we last spoke to */
        unsigned failures; /* in a row, for the back-off */
        unsigned attempts;
        unsigned times_connected;
        int64_t retry_at, timeout_at, grace_at;
};

/* An incoming connection. It is held while its sender's id does not (yet) resolve to the address it comes
 * from. */
struct inlet {
        struct stream stream;
        struct inlet *next;
        enum { INLET_SILENT, INLET_HELD, INLET_UP } phase;
        struct addr addr;
        size_t id;
        uint64_t instance;
        int64_t deadline;
};

struct command {
        struct stream stream;
        struct command *next;
        bool subscribed;
        bool hangs;
};

struct importers {
        bool *node;    /* importers now, by id */
        bool *awaited; /* importers of the run before, that have not come back yet */
        size_t n_awaited;
};

struct imexd {
        int epoll;
        struct source signals, resolved, server, command_tcp, command_unix;
        struct conf config;
        bool no_gpu;
        char version[64]; /* what peers and nvidia-imex-ctl are told */
        struct nodes nodes;
        ssize_t own; /* own id, -1 until it is known */
        struct addr own_addr;
        uint64_t instance;
        struct peer *peers; /* one a node, itself included */
        struct inlet *inlets;
        struct command *commands;
        struct importers importers;
        enum status status, shown;
        int session_lock;
        int64_t started_at, begin_at, crash_at, stop_at, last_restart;
        uint64_t generation; /* of name resolution: an answer to an older question is dropped */
        size_t unresolved;
        int ready_pipe; /* to the parent that waits for a daemonized child, or -1 */
        bool stop;
        /* from the configuration file */
        uint16_t server_port;
        long grace_time;
        enum { QUORUM_NONE, QUORUM_RECOVERY, QUORUM_FULL } quorum;
        const char *interface;
};

/* ---- log ---- */

enum log_level { LOG_CRITICAL = 1, LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_VERBOSE };

void log_open(const struct conf *config);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lets go of the terminal, except where the log goes to it. */
void log_detach(void);
/* Writes out the lines kept in memory, verbose ones included (SIGHUP). */
void log_dump(void);

/* ---- parts ---- */

int64_t imexd_now(void);
const char *imexd_status_name(enum status s);
/* What the command service reports: the true status, unless a knob lies about it. `ret_until` is when that
 * may change by itself. */
enum status imexd_status(struct imexd *d, int64_t *ret_until);
/* Re-examines what start-up waits for; call after any change of connections. */
void imexd_progress(struct imexd *d);
/* While the own id is unknown: node `id` has been looked up. */
void imexd_resolved_own(struct imexd *d, size_t id);
/* Logs, tells the peers and exits. */
_Noreturn void imexd_fail(struct imexd *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 0, or -1 with the reason in `why`. */
int config_check(struct imexd *d, const char *path, char *why, size_t n_why);

void resolve_start(struct imexd *d);
/* Asks for all names of the node list; answers arrive one by one in the order of the list. */
void resolve_all(struct imexd *d);
void resolve_one(struct imexd *d, size_t id);

void peer_listen(struct imexd *d);
void peer_start_all(struct imexd *d);
/* SIGUSR1: all outgoing connections anew, to the addresses that names have by then. */
void peer_restart_all(struct imexd *d);
/* The addresses of a node were looked up. */
void peer_resolved(struct imexd *d, size_t id);
void peer_say_goodbye(struct imexd *d);
void peer_timers(struct imexd *d, int64_t now);
int64_t peer_next_timer(const struct imexd *d);
char peer_letter(enum link link);

void command_listen(struct imexd *d);
void command_notify(struct imexd *d);
/* Frees what was closed in this turn. */
void command_sweep(struct imexd *d);
void peer_sweep(struct imexd *d);

void persist_load(struct imexd *d);
/* An importer came (again) or left cleanly. */
void persist_importer(struct imexd *d, size_t id, bool present);
void persist_close(struct imexd *d);
