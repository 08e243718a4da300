/* SPDX-License-Identifier: Apache-2.0 */
#include "imex.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/process.h"
#include "daemon.h"
#include "looks.h"
#include "faults.h"
#include "lying.h"
#include "sim.h"
#include "world.h"

/* The time until it has signal handlers; the longest time until it ends. */
enum { UP_MS = 30, END_MS = 3000, FILE_MAX_BYTES = 1 << 20 };

struct process {
        LIST_ENTRY(process) entry;
        struct process_options o;
        pid_t pid;
        bool ctl, freed, ending, crashes;
        bool of_go;    /* a daemon of the Go driver runs it */
        bool reported; /* nvidia-imex: READY was reported to the daemon; nvidia-imex-ctl: it reports READY */
        unsigned node;
        char domain[48], ip[32], question[8];
        int64_t id, started_ms, ready_ms; /* id: its index, -1: none found */
        int exit_status, signum;
        struct sim_event *next, *end;
};
static LIST_HEAD(, process) processes = LIST_HEAD_INITIALIZER(processes);
static pid_t last_pid = 100;

static struct process *living(unsigned node, const char *domain) {
        struct process *p;
        LIST_FOREACH (p, &processes, entry)
                if (!p->ctl && p->node == node && streq(p->domain, domain))
                        return p;
        return NULL;
}

static bool is_up(const struct process *p) {
        return p && sim_now_ms() - p->started_ms >= UP_MS;
}

static bool is_ready(const struct process *p) {
        return p && p->id >= 0 && !p->ending && sim_now_ms() >= p->ready_ms;
}

int64_t imex_id(unsigned node, const char *domain) {
        const struct process *p = living(node, domain);
        return p ? p->id : -1;
}

bool imex_serves(unsigned node, const char *domain) {
        return is_ready(living(node, domain));
}

const char *imex_domain(unsigned node) {
        const struct process *p;
        LIST_FOREACH (p, &processes, entry)
                if (!p->ctl && p->node == node && !p->ending)
                        return p->domain;
        return NULL;
}

/* ---- its end ---- */

static void on_end(void *u) {
        struct process *p = u;
        if (p->crashes && is_ready(p))
                looks_ended(p->node, p->domain, "imex_killed");
        sim_cancel(p->next);
        LIST_REMOVE(p, entry);
        if (!p->ctl)
                sim_log("nvidia-imex of %s on node-%u ends", p->domain, p->node);
        if (!p->freed) {
                struct process *asked = p->ctl && p->reported ? living(p->node, p->domain) : NULL;
                p->o.ended(p->o.u, p->signum ? -1 : p->exit_status, p->signum, NULL);
                if (asked)
                        asked->reported = true;
        }
        free(p);
}

static void end_in(struct process *p, int64_t ms, int exit_status, int signum) {
        sim_cancel(p->end);
        p->exit_status = exit_status;
        p->signum = signum;
        p->end = sim_at(sim_now_ms() + ms, on_end, p);
}

void imex_crash(unsigned node, const char *domain) {
        struct process *p = living(node, domain);
        if (!p || p->ending)
                return;
        p->crashes = true;
        end_in(p, 0, -1, SIGSEGV);
}

/* Reports the end of a READY nvidia-imex to the world, which checks the reason. Until the daemon knows that
 * it is READY, no claim is prepared with it. */
static void judge_end(const struct process *p) {
        if (p->ctl || p->ending || !is_ready(p) || !p->reported)
                return;
        world_ends_imex(p->node, p->domain);
}

void process_signal(const struct process *cp, int signum) {
        struct process *p;
        LIST_FOREACH (p, &processes, entry)
                if (p == cp)
                        break;
        if (!p || p->ctl)
                return;
        if (!is_up(p)) {
                end_in(p, 0, -1, signum); /* it has no signal handler yet */
        } else if (signum == SIGTERM) {
                judge_end(p);
                p->ending = true;
                /* Sometimes it hangs, and must be killed. */
                if (!sim_chance(3))
                        end_in(p, sim_between(10, sim_chance(10) ? END_MS : 200), 0, 0);
        }
}

void process_kill(struct process *p) {
        judge_end(p);
        p->ending = true;
        end_in(p, sim_between(0, 5), -1, SIGKILL);
}

void process_free(struct process *p) {
        if (!p)
                return;
        p->freed = true;
        process_kill(p);
}

pid_t process_pid(const struct process *p) {
        return p->pid;
}

void process_drain(struct process *p) {
}

/* ---- nvidia-imex ---- */

static char *text_of(const char *path) {
        struct err e;
        char *text = NULL;
        return file_read(path, FILE_MAX_BYTES, &text, NULL, &e) < 0 ? NULL : text;
}

/* The index of its address in the hosts file, as a resolver would find it. */
static int64_t slot_of(const char *ip, const char *hosts) {
        struct str rest = str_from(hosts), line, field;
        while (rest.n && str_next_line(&rest, &line)) {
                str_next_field(&line, '\t', &field);
                int64_t id;
                if (str_eq(field, str_from(ip)) && line.n > 4 &&
                    str_to_i64((struct str){ line.p + line.n - 4, 4 }, &id))
                        return id;
        }
        return -1;
}

static void find_id(struct process *p, const char *config) {
        static const char key[] = "IMEX_CMD_BIND_INTERFACE_IP=";
        char path[256];
        _cleanup_(freep) char *text = text_of(config);
        const char *ip = text ? strstr(text, key) : NULL;
        snprintf(path, sizeof path, IMEX_HOSTS(p->node));
        _cleanup_(freep) char *hosts = text_of(path);
        if (ip)
                sscanf(ip + sizeof key - 1, "%31[^\n]", p->ip);
        p->id = hosts ? slot_of(p->ip, hosts) : -1;
}

static void print(struct process *p, const char *text) {
        if (!p->freed)
                p->o.output(p->o.u, text, strlen(text));
}

/* By the number of the node. */
static bool broken[64], hangs[64];

void imex_break(unsigned node) {
        broken[node] = true;
}

void imex_hang(unsigned node) {
        hangs[node] = true;
}

static void on_begun(void *u) {
        struct process *p = u;
        char line[128];
        p->next = NULL;
        if (p->id < 0 || broken[p->node] || (sim_chance(2) && !world_is_calm())) {
                print(p, "No matching network interface\n");
                end_in(p, 1, 1, 0);
                return;
        }
        snprintf(line, sizeof line, "Identified this node as ID %" PRId64 ", using bind IP of '%s'\n", p->id,
                 p->ip);
        print(p, line);
}

static bool predates_restore(const struct process *p) {
        return faults_careless() && p->started_ms < faults_served_ms();
}

bool imex_predates_restore(unsigned node) {
        const char *domain = imex_domain(node);
        return domain && predates_restore(living(node, domain));
}

/* By the rules of Kubernetes, nothing runs on a node whose Node has not existed for a minute. */
static bool is_excused(const struct process *p) {
        return lying_excuses(p->node) || world_is_given_up(p->node) || predates_restore(p);
}

static void check_index(const struct process *o, const struct process *p) {
        bool excused = is_excused(o) || is_excused(p);
        if (o->id == p->id && p->id >= 0 && streq(o->domain, p->domain) && !excused &&
            world_same_clique(o->node, p->node))
                sim_broken("two nvidia-imex run with index %" PRId64 " of %s: on node-%u and on node-%u",
                           p->id, p->domain, o->node, p->node);
}

void imex_check(void) {
        const struct process *o, *p;
        LIST_FOREACH (p, &processes, entry)
                LIST_FOREACH (o, &processes, entry)
                        if (o != p && !o->ctl && !p->ctl)
                                check_index(o, p);
}

/* failure: any faults meet in the simulation -> two running nvidia-imex never have the same index
 * [simulation] */
static void begin_imex(struct process *p, const char *config) {
        const struct process *o;
        find_id(p, config);
        sim_log("nvidia-imex of %s on node-%u starts with index %" PRId64, p->domain, p->node, p->id);
        LIST_FOREACH (o, &processes, entry) {
                if (o->ctl || o == p)
                        continue;
                check_index(o, p);
                if (o->node == p->node && (!o->freed || o->of_go))
                        sim_broken("the daemon runs nvidia-imex of %s and of %s on node-%u", o->domain,
                                   p->domain, p->node);
        }
        world_begins_imex(p->node, p->ip, p->domain);
        p->ready_ms = hangs[p->node] ? INT64_MAX
                                     : sim_now_ms() + (sim_chance(5) ? sim_between(2000, 20000)
                                                                     : sim_between(50, 1500));
        p->next = sim_at(sim_now_ms() + sim_between(1, 20), on_begun, p);
}

/* ---- nvidia-imex of the Go driver's daemons ---- */

void imex_go_starts(unsigned node, const char *domain, int64_t id) {
        struct process *p = xnew(struct process);
        const struct process *o;
        *p = (struct process){ .pid = ++last_pid,
                               .started_ms = sim_now_ms(),
                               .id = id,
                               .node = node,
                               .freed = true,
                               .of_go = true };
        snprintf(p->domain, sizeof p->domain, "%s", domain);
        LIST_INSERT_HEAD(&processes, p, entry);
        sim_log("the Go driver's nvidia-imex of %s on node-%u starts with index %" PRId64, domain, node, id);
        LIST_FOREACH (o, &processes, entry) {
                if (o == p || o->ctl)
                        continue;
                check_index(o, p);
                if (o->node == node && !o->freed)
                        sim_broken("nvidia-imex of %s and of %s run on node-%u", o->domain, domain, node);
        }
}

void imex_go_ends(unsigned node, const char *domain, const char *fault) {
        struct process *p;
        LIST_FOREACH (p, &processes, entry)
                if (p->of_go && p->node == node && streq(p->domain, domain))
                        break;
        if (!p)
                return;
        looks_ended(node, domain, fault);
        LIST_REMOVE(p, entry);
        free(p);
}

/* ---- nvidia-imex-ctl ---- */

static void render_domain(const struct process *asked, struct buf *out) {
        const struct process *o;
        const char *comma = "";
        buf_adds(out, "{\"status\":\"UP\",\"nodes\":{");
        LIST_FOREACH (o, &processes, entry) {
                if (o->ctl || !is_up(o) || o->id < 0 || !streq(o->domain, asked->domain) ||
                    !world_same_clique(o->node, asked->node))
                        continue;
                buf_addf(out, "%s\"%" PRId64 "\":{\"host\":\"%s\",\"status\":\"%s\",\"connections\":{", comma,
                         o->id, o->ip, is_ready(o) ? "READY" : "INITIALIZING");
                if (o != asked)
                        buf_addf(out, "\"%" PRId64 "\":{\"status\":\"CONNECTED\"}", asked->id);
                buf_adds(out, "}}");
                comma = ",";
        }
        buf_adds(out, "}}\n");
}

static void on_answer(void *u) {
        struct process *p = u;
        const struct process *asked = living(p->node, p->domain);
        struct buf out = BUF_INIT(FILE_MAX_BYTES);
        p->next = NULL;
        if (!is_up(asked))
                buf_adds(&out, "cannot connect\n");
        else if (streq(p->question, "-N"))
                render_domain(asked, &out);
        else
                buf_addf(&out, "%s\n",
                         asked->ending     ? "SHUTTING_DOWN"
                         : is_ready(asked) ? "READY"
                                           : "INITIALIZING");
        p->reported = is_ready(asked);
        print(p, buf_str(&out));
        buf_done(&out);
        end_in(p, 1, is_up(asked) ? 0 : 1, 0);
}

/* Usually at once; in a storm it sometimes hangs. */
static void begin_ctl(struct process *p) {
        bool slow = sim_chance(3) && !world_is_calm();
        int64_t ms = !slow ? sim_between(3, 20) : sim_chance(30) ? 60000 : sim_between(100, 3000);
        p->next = sim_at(sim_now_ms() + ms, on_answer, p);
}

/* A query for the version; it does not identify a node. */
static void on_version(void *u) {
        struct process *p = u;
        p->next = NULL;
        print(p, "IMEX version is: 580.95.05\n");
        end_in(p, 1, 0, 0);
}

size_t process_stuck(void) {
        return 0;
}

int process_start(uv_loop_t *loop, const struct process_options *o, struct process **ret, struct err *e) {
        struct process *p = xnew(struct process);
        *p = (struct process){ .o = *o, .pid = ++last_pid, .started_ms = sim_now_ms(), .id = -1 };
        p->ctl = streq(o->argv[0], "nvidia-imex-ctl") || streq(o->argv[1], "--version");
        if (streq(o->argv[1], "--version")) {
                LIST_INSERT_HEAD(&processes, p, entry);
                p->next = sim_at(sim_now_ms() + sim_between(5, 500), on_version, p);
                *ret = p;
                return 0;
        }
        if (sscanf(o->argv[2], "/proc/self/cwd/node-%u/plugin/domains/%47[^/]/", &p->node, p->domain) != 2)
                sim_broken("unknown program '%s'", o->argv[2]);
        LIST_INSERT_HEAD(&processes, p, entry);
        if (p->ctl) {
                snprintf(p->question, sizeof p->question, "%s", o->argv[3]);
                begin_ctl(p);
        } else {
                begin_imex(p, o->argv[2]);
        }
        *ret = p;
        return 0;
}
