/* imex_agent: runs nvidia-imex for one domain on this node: membership, configuration files, supervision, readiness.
 *
 * It has no notion of a pod: whoever embeds it (today compute-domain-daemon, later a resident agent) says which slot this node has and
 * who the peers are, and hears what the IMEX process does. Level-triggered: every input is "what should be", repeated freely. Loop thread only. */
#ifndef IMEX_IMEX_AGENT_H
#define IMEX_IMEX_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "imex/imex_files.h"

struct imex_agent;

enum imex_phase { IMEX_IDLE /* no index yet */, IMEX_STARTING, IMEX_READY, IMEX_BACKOFF, IMEX_STOPPING, IMEX_STOPPED };

struct imex_report {
        enum imex_phase phase;
        bool ready;            /* IMEX says READY and its own id is our index */
        const char *status;    /* IMEX's last word, or STARTING / STOPPED / BACKOFF */
        const char *reason;    /* when not ready: cause and remedy for people; "" otherwise */
        int64_t index;         /* the slot it runs with, -1 without */
        int64_t node_id;       /* the id that IMEX found for itself, -1 unknown */
        unsigned peers_known, peers_connected; /* without ourselves; connected is a lower bound from -N -j */
        unsigned restarts;
};

struct imex_agent_options {
        const char *dir;           /* "/imexd": imexd.cfg, nodes.cfg, members.json */
        const char *hosts_path;    /* "/etc/hosts" */
        const char *imex_path, *ctl_path; /* looked up in PATH when they hold no slash */
        const char *own_ip;
        const char *infix;         /* of the slot names; "" for the Go driver's */
        unsigned max_nodes;
        bool dns_names;            /* gate IMEXDaemonsWithDNSNames; off: nodes.cfg holds IPs and is fixed once started */
        unsigned term_grace_ms;    /* SIGTERM, then SIGKILL after this */
        void (*changed)(void *u, const struct imex_report *r); /* never from inside a call of ours; each change once */
        void (*stopped)(void *u);  /* after imex_agent_stop: the process is gone */
        void *u;
};

int imex_agent_new(uv_loop_t *loop, const struct imex_agent_options *o, struct imex_agent **ret, struct err *e);
/* What should be. own_index < 0: not a member (yet): the process is stopped. Peers include ourselves or not; copied. Remembered in
 * members.json, so that a restarted agent starts from it without asking anybody. */
void imex_agent_set_members(struct imex_agent *a, int64_t own_index, const struct imex_peer *peers, size_t n);
void imex_agent_report(const struct imex_agent *a, struct imex_report *ret);
/* Withdraws readiness at once (changed is called first), then SIGTERM, SIGKILL; `stopped` at the end. */
void imex_agent_stop(struct imex_agent *a);
void imex_agent_free(struct imex_agent *a);

#endif
