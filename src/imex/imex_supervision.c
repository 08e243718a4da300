/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_supervision.h"

#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "imex/imex_state.h"

#define UNANSWERED_MAX 2

void imex_supervision_begin(struct imex_answers *x) {
        *x = (struct imex_answers){ .node_id = -1 };
}

bool imex_supervision_note_status(struct imex_answers *x, enum imex_status status, const char *why) {
        if (!status) {
                snprintf(x->silence, sizeof x->silence, "%s", why);
                if (++x->unanswered < UNANSWERED_MAX && x->status)
                        return false;
        } else {
                x->unanswered = 0;
                *x->silence = '\0';
        }
        x->status = status;
        if (status == IMEX_STATE_READY)
                x->fault = NULL; /* it has recovered */
        return true;
}

const struct imex_ctl_node *imex_supervision_note_domain(struct imex_answers *x,
                                                         const struct imex_ctl_domain *d, const char *ip,
                                                         const char *name, const char *why) {
        const struct imex_ctl_node *own = d ? imex_ctl_find(d, ip, NULL) : NULL;

        x->id_asked = true;
        /* A matching name proves nothing about the ID, because the name is derived from it. An address
         * does. */
        if (own && x->node_id < 0)
                x->node_id = own->id;
        if (d && !own)
                own = imex_ctl_find(d, NULL, name);
        if (own) {
                x->connected = imex_ctl_connected(own);
                x->connections_known = true;
                snprintf(x->version, sizeof x->version, "%s", own->version);
        }
        snprintf(x->unseen, sizeof x->unseen, "%s",
                 x->connections_known ? ""
                 : d                  ? "its answer does not contain this node"
                                      : why);
        return own;
}

bool imex_supervision_takes_signals(enum imex_status status) {
        return status && status != IMEX_STATE_INITIALIZING && status != IMEX_STATE_UNAVAILABLE;
}

bool imex_supervision_connections_unknown(const struct imex_answers *x) {
        return x->status == IMEX_STATE_WAITING_FOR_RECOVERY && *x->unseen;
}

/* The process runs with the present index and infix. */
static bool is_ours(const struct imex_supervision_facts *f) {
        return f->process == IMEX_PROCESS_RUNNING && f->identity_current;
}

/* IMEX found another ID than our slot, so peers would reach the wrong node under our name. */
static bool is_contradicted(const struct imex_supervision_facts *f) {
        return f->answers->node_id >= 0 && f->identity_current && f->answers->node_id != f->index;
}

static bool has_our_id(const struct imex_supervision_facts *f) {
        return f->answers->node_id >= 0 ? f->answers->node_id == f->index : f->answers->id_asked;
}

static enum imex_phase phase_of(const struct imex_supervision_facts *f) {
        enum imex_process_state s = f->process;

        if (f->stopping)
                return s == IMEX_PROCESS_DOWN ? IMEX_STOPPED : IMEX_STOPPING;
        if (!f->member)
                return s == IMEX_PROCESS_DOWN || s == IMEX_PROCESS_WAITING ? IMEX_IDLE : IMEX_STOPPING;
        if (s == IMEX_PROCESS_WAITING && *f->ended)
                return IMEX_BACKOFF;
        return is_ours(f) && !*f->refused && f->answers->status == IMEX_STATE_READY && has_our_id(f)
                       ? IMEX_READY
                       : IMEX_STARTING;
}

static enum imex_status status_of(const struct imex_supervision_facts *f, enum imex_phase phase) {
        if (phase == IMEX_STOPPING || phase == IMEX_STOPPED)
                return IMEX_STATE_STOPPED;
        if (phase == IMEX_BACKOFF)
                return IMEX_STATE_BACKOFF;
        return is_ours(f) && f->answers->status ? f->answers->status : IMEX_STATE_STARTING;
}

static enum imex_step step_of(const struct imex_supervision_facts *f) {
        if (f->stopping || !f->member || *f->refused)
                return f->process == IMEX_PROCESS_DOWN || f->process == IMEX_PROCESS_ENDING ? IMEX_STEP_NONE
                                                                                            : IMEX_STEP_STOP;
        if (!f->usable)
                return IMEX_STEP_NONE; /* a wrong list must not stop a process that works */
        if (f->process != IMEX_PROCESS_RUNNING)
                return IMEX_STEP_START;
        return f->identity_current ? IMEX_STEP_UPDATE : IMEX_STEP_RESTART;
}

static enum imex_reaction reaction_of(const struct imex_supervision_facts *f, bool ready) {
        if (is_contradicted(f))
                return IMEX_REACTION_RESTART;
        if (f->answers->status == IMEX_STATE_READY && f->answers->node_id < 0 && !f->answers->id_asked)
                return IMEX_REACTION_ASK_ID;
        if (ready == f->was_ready)
                return IMEX_REACTION_NONE;
        return ready ? IMEX_REACTION_SLOW_DOWN : IMEX_REACTION_SPEED_UP;
}

/* ---- texts for people ---- */

static const char *meaning_of(enum imex_status status) {
        if (status == IMEX_STATE_WAITING_FOR_RECOVERY)
                return " (it ended uncleanly before, and waits for the nodes that had imported its memory)";
        if (status == IMEX_STATE_WAITING_FOR_PEERS)
                return " (it waits for the other nodes of the domain)";
        if (status == IMEX_STATE_UNAVAILABLE)
                return " (its command service does not answer)";
        return "";
}

static void explain_contradiction(const struct imex_supervision_facts *f, char *s, size_t n) {
        snprintf(s, n, "nvidia-imex took ID %lld, but this node has index %lld",
                 (long long)f->answers->node_id, (long long)f->index);
}

/* The state file has room for IMEX_STATE_REASON_MAX bytes, so the texts of a recovery, which contain text of
 * any length, are cut inside that text, and keep the remedy after it. */
static void explain_around(char *s, size_t n, const char *before, const char *part, const char *after) {
        size_t fixed = strlen(before) + strlen(after), len = strlen(part);
        size_t most = IMEX_STATE_REASON_MAX - 1;

        if (n - 1 < most)
                most = n - 1;
        if (fixed + len <= most)
                snprintf(s, n, "%s%s%s", before, part, after);
        else if (fixed + 3 <= most)
                snprintf(s, n, "%s%.*s...%s", before,
                         (int)str_utf8_cut((struct str){ part, len }, most - fixed - 3), part, after);
        else
                snprintf(s, n, "%s%s", before, after);
}

static void explain_unseen(const struct imex_answers *x, char *s, size_t n) {
        explain_around(
                s, n,
                "nvidia-imex ended uncleanly, and it is not known which nodes it has connected to since "
                "(nvidia-imex-ctl -N: ",
                x->unseen, "): see the daemon's log and the node's load");
}

static void explain_recovery(const struct imex_supervision_facts *f, char *s, size_t n) {
        explain_around(s, n, "nvidia-imex ended uncleanly, and waits for ", f->awaited,
                       ": bring it back, reboot it or, if it is off for good, delete its Node");
}

/* The process runs with the present index, and is not ready. */
static void explain_answers(const struct imex_supervision_facts *f, char *s, size_t n) {
        const struct imex_answers *x = f->answers;

        if (is_contradicted(f))
                explain_contradiction(f, s, n);
        else if (imex_supervision_connections_unknown(x))
                explain_unseen(x, s, n);
        else if (x->status && *f->awaited)
                explain_recovery(f, s, n);
        else if (x->status && x->status != IMEX_STATE_READY)
                snprintf(s, n, "nvidia-imex is %s%s", imex_status_name(x->status), meaning_of(x->status));
        else if (*f->ended)
                snprintf(s, n, "%s", f->ended);
        else if (x->unanswered > UNANSWERED_MAX)
                snprintf(s, n, "nvidia-imex is starting: %s", x->silence);
        else
                snprintf(s, n, "nvidia-imex is starting");
}

static void imex_supervision_explain(const struct imex_supervision_facts *f, enum imex_phase phase, char *s,
                                     size_t n) {
        *s = '\0';
        if (phase == IMEX_READY)
                return;
        if (phase == IMEX_STOPPING || phase == IMEX_STOPPED)
                snprintf(s, n, "the IMEX daemon is being stopped");
        else if (phase == IMEX_IDLE)
                snprintf(s, n, "this node has no index in the domain yet; the controller assigns it");
        else if (*f->refused)
                snprintf(s, n, "%s", f->refused);
        else if (phase == IMEX_BACKOFF)
                snprintf(s, n, "%s", f->ended);
        else if (f->answers->fault)
                snprintf(s, n, "%s", f->answers->fault);
        else if (!is_ours(f))
                snprintf(s, n, "nvidia-imex is being started");
        else
                explain_answers(f, s, n);
}

void imex_supervision_explain_end(const struct imex_supervision_facts *f, enum imex_process_end end,
                                  const char *why, char *ret, size_t n) {
        if (!*why)
                *ret = '\0';
        else if (f->answers->fault)
                snprintf(ret, n, "%s", f->answers->fault);
        else if (is_contradicted(f))
                explain_contradiction(f, ret, n);
        else if (end == IMEX_PROCESS_NOT_EXECUTED)
                snprintf(ret, n,
                         "nvidia-imex %s; the NVIDIA driver on this node needs the nvidia-imex package of "
                         "its version",
                         why);
        else
                snprintf(ret, n, "nvidia-imex %s", why);
}

void imex_supervision_evaluate(const struct imex_supervision_facts *f, struct imex_supervision_verdict *ret) {
        BUG_ON(f->identity_current && (!f->member || f->index < 0));
        *ret = (struct imex_supervision_verdict){ .phase = phase_of(f) };
        ret->status = status_of(f, ret->phase);
        ret->step = step_of(f);
        ret->reaction = reaction_of(f, ret->phase == IMEX_READY);
        imex_supervision_explain(f, ret->phase, ret->reason, sizeof ret->reason);
        BUG_ON((ret->phase == IMEX_READY) != !*ret->reason);
}
