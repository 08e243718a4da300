/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a step of a history in words. */
#include <string.h>

#include "daemon/decision.h"
#include "world.h"

static void print_place(unsigned n, const struct place *p, FILE *out) {
        static const char *const states[] = { [PLACE_ACTIVE] = "",
                                              [PLACE_RESERVED] = " Reserved",
                                              [PLACE_LEAVING] = " Leaving",
                                              [PLACE_ENDING] = " Ending" };
        fprintf(out, " %s=%u/%u%s", node_name(n), p->index, p->epoch, states[p->state]);
}

/* "d1: n1=0/1 n2=1/2 Leaving": node, index, epoch, state. */
static void print_object(const struct object *o, FILE *out) {
        for (unsigned i = 0; i < o->n_domains; i++) {
                unsigned d = o->domains[i];
                fprintf(out, "%s d%u:", i ? ";" : "", d + 1);
                for (unsigned n = 0; n < NODES; n++)
                        if (o->places[d][n].state)
                                print_place(n, &o->places[d][n], out);
        }
        fprintf(out, "%s (epoch %u", o->n_domains ? "" : " no domain", o->epoch);
        if (o->recount)
                fprintf(out, ", recount %u", o->recount);
        fputc(')', out);
}

static void print_report(const struct report *r, FILE *out) {
        if (r->domain)
                fprintf(out, "it is in d%u with index/epoch %u/%u", r->domain, r->index, r->epoch);
        else
                fprintf(out, "it has no assignment");
        for (unsigned i = 0; i < r->n_left; i++)
                fprintf(out, "%s%u", i ? ", " : "; it has left epoch ", r->left[i]);
        if (r->recount)
                fprintf(out, "; it answers recount %u", r->recount);
}

static void print_daemon(const struct host *x, const struct host *y, FILE *out) {
        const struct memory *m = &y->memory;
        if (!y->process)
                fprintf(out, "the daemon exits");
        else if (m->domain && m->epoch != x->memory.epoch)
                fprintf(out, "the daemon takes d%u with index/epoch %u/%u and starts IMEX", m->domain,
                        m->index, m->epoch);
        else if (x->memory.domain && !m->domain)
                fprintf(out, "the daemon leaves d%u", x->memory.domain);
        else if (y->imex == DECISION_IMEX_STOPS && x->imex != y->imex)
                fprintf(out, "the daemon stops IMEX%s", y->paused ? " for a new container" : "");
        else if (y->imex == DECISION_IMEX_RUNS && x->imex != y->imex)
                fprintf(out, "the daemon starts IMEX again");
        else if (x->withdrawn != y->withdrawn)
                fprintf(out, "the daemon %s readiness", y->withdrawn ? "withdraws" : "shows");
        else
                fprintf(out, "the daemon changes nothing");
}

/* The daemon decides at once. Before it acts, the plugin may make steps. */
static void print_turn(const struct host *x, const struct host *y, unsigned plugin_steps, FILE *out) {
        const struct claim *c = plugin_steps >= PLUGIN_STEPS ? &y->orphan : &y->claim;
        if (plugin_steps)
                fprintf(out, "the daemon looks which claims use its domain, %sthe plugin %s, and then ",
                        c == &y->orphan ? "for the claim that was deallocated, " : "",
                        c->phase == CLAIM_PREPARED ? "prepares the claim"
                        : c->note == NOTE_JUDGED   ? "finds IMEX READY"
                                                   : "writes the grant");
        print_daemon(x, y, out);
}

static void print_plugin(const struct claim *x, const struct claim *y, FILE *out) {
        fprintf(out, y->phase == CLAIM_PREPARED ? "the plugin prepares the claim"
                     : y->note == NOTE_GRANTING ? "the plugin writes the grant"
                     : y->note == NOTE_JUDGED   ? "the plugin finds IMEX READY"
                     : x->note                  ? "the plugin finds that IMEX is not READY"
                                                : "");
}

static void print_node(const struct world *before, unsigned kind, unsigned n, unsigned what,
                       const struct world *after, FILE *out) {
        const struct host *x = &before->hosts[n], *y = &after->hosts[n];
        fprintf(out, "%s: ", node_name(n));
        switch (kind) {
        case STEP_ALLOCATE:
                fprintf(out, "a claim of d%u is allocated", y->claim.domain);
                break;
        case STEP_DEALLOCATE:
                fprintf(out, "the claim of d%u is deallocated%s", x->claim.domain,
                        y->orphan.phase == x->orphan.phase  ? ""
                        : y->orphan.phase == CLAIM_PREPARED ? ", but still prepared"
                                                            : ", but its Prepare still runs");
                break;
        case STEP_IMEX:
                fprintf(out, "%s; ", x->imex == DECISION_IMEX_RUNS ? "IMEX is READY" : "IMEX has ended");
                print_daemon(x, y, out);
                break;
        case STEP_DELIVER:
                fprintf(out, "the daemon %s version of the fabric object; ",
                        what % 2 ? "misses one and sees the next" : "sees the next");
                print_turn(x, y, what / 2, out);
                break;
        case STEP_NEW_POD:
                fprintf(out, "Pod %u of the daemon is created", y->pod);
                break;
        case STEP_REPORT:
                fprintf(out, "the daemon reports: ");
                print_report(&y->report, out);
                break;
        case STEP_HEAR:
                fprintf(out, "controller %u sees %s", what % 2 + 1,
                        what / 2 == 0   ? "the daemon's Pod and report"
                        : what / 2 == 1 ? "the boot ID of the Node"
                                        : "which daemon claim was unprepared");
                break;
        case STEP_PLUGIN:
                print_plugin(&x->claim, &y->claim, out);
                break;
        case STEP_PLUGIN_LATE:
                fprintf(out, "for the claim that was deallocated, ");
                print_plugin(&x->orphan, &y->orphan, out);
                break;
        case STEP_DAEMON:
                print_turn(x, y, what, out);
                break;
        default:
                break;
        }
}

static const char *const words[N_STEPS] = {
        [STEP_END] = "the pod ends, and its claim is unprepared",
        [STEP_CRASH] = "the daemon's container crashes",
        [STEP_UNCLEAN] = "IMEX must be killed",
        [STEP_DRAIN] = "the daemon's Pod is deleted",
        [STEP_FORCE] = "the daemon's Pod is force-deleted",
        [STEP_REBOOT] = "the node reboots",
        [STEP_CUT] = "the node is cut off",
        [STEP_HEAL] = "the node is connected again",
        [STEP_SEE_CLAIM] = "the controllers see the claim",
        [STEP_PLUGIN_SEES] = "the plugin sees the next version of the fabric object",
        [STEP_UNPREPARE] = "the claim that the API server no longer has is unprepared",
        [STEP_KILL] = "the kubelet ends the daemon",
        [STEP_UNPREPARE_DAEMON] = "the daemon claim is unprepared",
        [STEP_POD_GONE] = "the daemon's Pod no longer exists",
        [STEP_START] = "the daemon starts",
        [STEP_TELL_BOOT] = "the Node object shows the new boot ID",
        [STEP_GO_ENDS] = "the daemon of the Go driver ends",
        [STEP_DELETE_DOMAIN] = "a ComputeDomain is deleted",
        [STEP_SNAPSHOT] = "a snapshot of etcd is taken",
        [STEP_RESTORE] = "etcd is restored",
        [STEP_SEE] = "sees the next version of the fabric object",
        [STEP_RESUME] = "begins, and sees all reports",
};

static void print_controller(const struct world *before, unsigned kind, unsigned c, const struct world *after,
                             FILE *out) {
        const struct controller *x = &before->controllers[c], *y = &after->controllers[c];
        fprintf(out, "controller %u ", c + 1);
        if (kind == STEP_CONTROL && y->base) {
                fprintf(out, "sends:");
                print_object(&y->wanted, out);
        } else if (kind == STEP_CONTROL) {
                fprintf(out, "writes:");
                print_object(&after->versions[0], out);
        } else if (kind == STEP_SERVE || kind == STEP_LOSE) {
                fprintf(out, "%s%s", x->base == VIEW_NEWEST ? "writes successfully" : "gets a conflict",
                        kind == STEP_LOSE ? ", and the answer is lost" : "");
        } else {
                fprintf(out, "%s", words[kind]);
        }
}

void print_step(const struct world *before, unsigned step, const struct world *after, FILE *out) {
        unsigned kind = step / (STEP_WHO * STEP_WHAT), who = step / STEP_WHAT % STEP_WHO,
                 what = step % STEP_WHAT;
        bool is_controller = kind == STEP_LOSE || (kind >= STEP_SEE && kind <= STEP_RESUME);
        if (is_controller)
                print_controller(before, kind, who, after, out);
        else if (kind == STEP_DELETE_DOMAIN || kind == STEP_SNAPSHOT || kind == STEP_RESTORE)
                fprintf(out, "%s%s", words[kind],
                        kind == STEP_RESTORE && what ? ", and the controllers restart" : "");
        else if (words[kind])
                fprintf(out, "%s: %s", node_name(who), words[kind]);
        else
                print_node(before, kind, who, what, after, out);
        fputc('\n', out);
}
