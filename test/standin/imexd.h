/* SPDX-License-Identifier: Apache-2.0 */
/* imexd: the parts of the nvidia-imex stand-in. One thread runs an epoll loop, and a second one resolves
 * names.
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
        int fd; /* -1: closed; an event that was already fetched for it is dropped */
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
/* Reads available data. False if the other side has closed the connection or the socket failed; complete
 * lines may still be taken. */
bool stream_fill(struct stream *s);
/* Takes the next complete line, without its end, or returns false. A line that does not fit closes the
 * stream. */
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

/* The state of a node's outgoing connection to another, with the letters and words of nvidia-imex-ctl. */
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
        bool blocked;      /* it once had another node list; never reset in this process */
        struct addr addr;  /* the address of the connection or the attempt */
        uint64_t instance; /* of the daemon that last answered */
        unsigned failures; /* consecutive failures, for the back-off */
        unsigned attempts;
        unsigned times_connected;
        int64_t retry_at, timeout_at, grace_at;
};

/* An incoming connection. It is HELD while the id of the sender does not resolve to the sender's address. */
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
        bool *node;    /* the present importers, by id */
        bool *awaited; /* importers of the previous run that have not connected again */
        size_t n_awaited;
};

struct imexd {
        int epoll;
        struct source signals, resolved, server, command_tcp, command_unix;
        struct conf config;
        bool no_gpu;
        char version[64]; /* reported to peers and to nvidia-imex-ctl */
        struct nodes nodes;
        ssize_t own; /* own id, -1 until it is known */
        struct addr own_addr;
        uint64_t instance;
        struct peer *peers; /* one for each node, including itself */
        struct inlet *inlets;
        struct command *commands;
        struct importers importers;
        enum status status, shown;
        int session_lock;
        int64_t started_at, begin_at, crash_at, stop_at, last_restart;
        uint64_t generation; /* of name resolution: answers of an older generation are dropped */
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
/* Detaches from the terminal, unless the log is written to it. */
void log_detach(void);
/* Writes the lines in memory to the log, including the verbose ones (SIGHUP). */
void log_dump(void);

/* ---- parts ---- */

int64_t imexd_now(void);
const char *imexd_status_name(enum status s);
/* The status that the command service reports: the true one, unless a knob replaces it. `ret_until`: when it
 * may change by itself. */
enum status imexd_status(struct imexd *d, int64_t *ret_until);
/* Checks whether the start-up can continue. Call it after each change of connections. */
void imexd_progress(struct imexd *d);
/* Call it when node `id` was resolved and the own id is still unknown. */
void imexd_resolved_own(struct imexd *d, size_t id);
/* Logs the text, notifies the peers, and exits. */
_Noreturn void imexd_fail(struct imexd *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns 0, or -1 with the reason in `why`. */
int config_check(struct imexd *d, const char *path, char *why, size_t n_why);

void resolve_start(struct imexd *d);
/* Resolves all names of the node list. The answers arrive one by one, in the order of the list. */
void resolve_all(struct imexd *d);
void resolve_one(struct imexd *d, size_t id);

void peer_listen(struct imexd *d);
void peer_start_all(struct imexd *d);
/* SIGUSR1: restarts all outgoing connections, with the present addresses of the names. */
void peer_restart_all(struct imexd *d);
/* Call it when the addresses of a node were resolved. */
void peer_resolved(struct imexd *d, size_t id);
void peer_say_goodbye(struct imexd *d);
void peer_timers(struct imexd *d, int64_t now);
int64_t peer_next_timer(const struct imexd *d);
char peer_letter(enum link link);

void command_listen(struct imexd *d);
void command_notify(struct imexd *d);
/* Both free the connections that were closed in this turn. */
void command_sweep(struct imexd *d);
void peer_sweep(struct imexd *d);

void persist_load(struct imexd *d);
/* An importer has connected, or has left cleanly. */
void persist_importer(struct imexd *d, size_t id, bool present);
void persist_close(struct imexd *d);
