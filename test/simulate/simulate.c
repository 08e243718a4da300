/* SPDX-License-Identifier: Apache-2.0 */
/* simulate: runs controllers, kubelet plugins and daemons in a simulated world, from a seed.
 * docs/dev/testing.md describes how to use it.
 *
 * A run has four parts: a storm of faults; a calm, in which every ComputeDomain must form; a quiet time, in
 * which no program may write; and an end, in which everything must be deleted. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "channels.h"
#include "clocks.h"
#include "crashing.h"
#include "daemon.h"
#include "faults.h"
#include "go_driver.h"
#include "hostile.h"
#include "imex.h"
#include "looks.h"
#include "lying.h"
#include "plugin.h"
#include "promises.h"
#include "racks.h"
#include "replica.h"
#include "server.h"
#include "shortages.h"
#include "sim.h"
#include "stage.h"
#include "transport.h"
#include "workloads.h"
#include "world.h"

/* SETTLE: the time to form everything after the last fault, and to delete everything after the last deletion
 * by a user. QUIET: nothing happens for so long before writes are forbidden, and then for IDLE. */
enum { SETTLE_MS = 300000, QUIET_MS = 120000, IDLE_MS = 60000, LOOK_MS = 500, FOLLOWS_MS = 20000 };
/* With --clocks, both are longer by the difference between the clocks of two machines. */
static int64_t settle_ms = SETTLE_MS, quiet_ms = QUIET_MS;
/* Kubelets before 1.37 can forget a claim that they have prepared. The plugin unprepares it after two looks
 * at the claim, which it takes every ten minutes. */
enum { FORGOTTEN_MS = 1300000 };

struct options {
        uint64_t first, last;
        unsigned jobs, nodes, domains, minutes;
        unsigned for_s; /* begins no more seeds after that; 0: no limit */
        const char *faults, *corpus;
        bool log, once, racks, channels, hostile, restores, fresh_pods, standing, clocks, one_off, lying,
                crashing, changes, careless, go, shared, workloads;
};

/* Optional features of a world, in the order of the corpus. */
static const struct {
        const char *flag, *word; /* flag: on the command line; word: in the corpus */
        size_t at;               /* the offset of a bool of struct options */
} flags[] = {
        { "--racks", "racks", offsetof(struct options, racks) },
        { "--channels", "channels", offsetof(struct options, channels) },
        { "--hostile", "hostile", offsetof(struct options, hostile) },
        { "--restores", "restores", offsetof(struct options, restores) },
        { "--fresh-pods", "fresh", offsetof(struct options, fresh_pods) },
        { "--standing", "standing", offsetof(struct options, standing) },
        { "--clocks", "clocks", offsetof(struct options, clocks) },
        { "--one-off", "off", offsetof(struct options, one_off) },
        { "--lying", "lying", offsetof(struct options, lying) },
        { "--crashing", "crashing", offsetof(struct options, crashing) },
        { "--isolation-changes", "changes", offsetof(struct options, changes) },
        { "--careless-restores", "careless", offsetof(struct options, careless) },
        { "--go-domains", "go", offsetof(struct options, go) },
        { "--shared", "shared", offsetof(struct options, shared) },
        { "--auto", "auto", offsetof(struct options, workloads) },
};

static bool flag_is_set(const struct options *o, size_t i) {
        return *(const bool *)((const char *)o + flags[i].at);
}

static void set_flag(struct options *o, size_t i, bool is) {
        *(bool *)((char *)o + flags[i].at) = is;
}

enum phase { STORM, FORMS, QUIET, IDLE, EMPTIES, LEAVES, GOES, OVER };
static const char *const phase_names[] = { "storm", "calm",     "quiet",    "idle",
                                           "end",   "no nodes", "next day", "over" };
static struct {
        const struct options *o;
        enum phase phase;
        int64_t until_ms, formed_ms, emptied_ms;
        int64_t formed_until_ms; /* when everything must have formed */
        bool waited;             /* everything has formed except pods that waited for a node with channels */
        uv_loop_t loop;
} run;

static void enter(enum phase p, int64_t for_ms) {
        run.phase = p;
        run.until_ms = sim_now_ms() + for_ms;
        sim_log("PHASE %s", phase_names[p]);
}

static void on_changed(enum kind k, const struct change *c) {
        promises_look(k, c);
        transport_changed(k);
}

/* failure: the faults of the simulation end -> everything settles, and after all deletions nothing is left
 * [simulation] */
static void look(void *u) {
        int64_t now = sim_now_ms();
        const char *text = NULL;
        sim_at(now + LOOK_MS, look, NULL);
        if (faults_restored_ms() >= 0)
                transport_check_listed(faults_restored_ms());
        if (run.phase == FORMS || run.phase == QUIET || run.phase == IDLE)
                shortages_look();
        switch (run.phase) {
        case STORM:
                if (now < run.until_ms)
                        break;
                world_calm();
                run.formed_until_ms = now + settle_ms;
                enter(FORMS, settle_ms);
                break;
        case FORMS:
                /* A restore may last longer than the storm. What its recount writes is not a write without a
                 * cause. */
                text = str_or(world_misses(), replicas_misses());
                if (!text && channels_restart())
                        text = "programs restart with another isolation";
                if (!text) {
                        run.formed_ms = settle_ms - (run.until_ms - now);
                        run.waited = world_shares_wait();
                        enter(QUIET, quiet_ms);
                } else if (now >= run.until_ms) {
                        sim_broken("%s, %lld s after the last fault", text, (long long)settle_ms / 1000);
                }
                break;
        case QUIET:
                /* Pods that waited for a node with channels have started since. */
                if (run.waited && now < run.formed_until_ms && world_misses()) {
                        enter(FORMS, run.formed_until_ms - now);
                        break;
                }
                /* The end of a daemon's Pod is an event, and its kubelet may need more than a minute for it.
                 */
                if (run.until_ms < now + FOLLOWS_MS && now < run.formed_until_ms && world_daemon_ends())
                        run.until_ms = now + FOLLOWS_MS;
                if (now < run.until_ms)
                        break;
                lying_over();
                imex_check();
                promises_idle(true);
                enter(IDLE, IDLE_MS);
                break;
        case IDLE:
                text = str_or(world_misses(), shortages_misses());
                if (text)
                        sim_broken("%s, although nothing has happened", text);
                if (now < run.until_ms)
                        break;
                promises_idle(false);
                world_empty();
                enter(EMPTIES, settle_ms);
                break;
        case EMPTIES:
                text = world_leftover();
                if (!text) {
                        run.emptied_ms = settle_ms - (run.until_ms - now);
                        if (racks_used()) {
                                racks_delete_lost();
                                world_dismantle();
                        }
                        enter(racks_used() ? LEAVES : OVER, SETTLE_MS);
                } else if (now >= run.until_ms) {
                        sim_broken("%s, %lld s after users deleted everything", text,
                                   (long long)settle_ms / 1000);
                }
                break;
        case LEAVES:
                text = racks_unaware();
                if (!text) {
                        /* No program notices the jump of the clock. A program that starts reads the clock. */
                        racks_next_day();
                        for (unsigned i = 0; i < REPLICAS; i++)
                                replica_stop(i);
                        enter(GOES, SETTLE_MS);
                } else if (now >= run.until_ms) {
                        sim_broken("%s, %d s after the last node was deleted", text, SETTLE_MS / 1000);
                }
                break;
        case GOES:
                text = world_leftover();
                if (!text)
                        enter(OVER, 0);
                else if (now >= run.until_ms)
                        sim_broken("%s, a day after the last node was deleted", text);
                break;
        case OVER:
                break;
        }
}

static void clean_up(void) {
        replicas_end();
        world_end();
        for (int i = 0; i < 100 || !plugins_buried(); i++)
                uv_run(&run.loop, UV_RUN_ONCE); /* handles that close later than others */
        sim_agenda_done();
        uv_run(&run.loop, UV_RUN_DEFAULT);
        uv_loop_close(&run.loop);
        faults_done();
        promises_done();
        crashing_done();
        looks_done();
        server_done();
        store_done();
        stage_remove_folder();
}

static int64_t *simulated_ms; /* of all seeds together; each seed has its own process */

static int simulate(const struct options *o, uint64_t seed) {
        static const struct faults_hooks hooks = { transport_cut, replica_kill, replica_stop, replicas_scale,
                                                   world_fault };
        run.o = o;
        sim_seed(seed);
        if (o->hostile)
                hostile_use();
        if (o->racks)
                racks_use();
        if (o->channels || o->standing)
                channels_use(o->domains, o->standing);
        if (o->shared)
                channels_use_shared();
        if (o->workloads)
                workloads_use();
        if (channels_old_kubelets())
                settle_ms += FORGOTTEN_MS;
        if (o->changes)
                channels_use_changes(o->domains);
        if (o->restores || o->careless)
                faults_use_restores(o->careless);
        if (o->clocks) {
                int64_t differ_ms = clocks_use() * 1000;
                settle_ms += differ_ms;
                quiet_ms += differ_ms;
        }
        if (o->one_off)
                world_leave_one_off();
        if (o->crashing)
                crashing_use();
        if (o->lying)
                lying_use();
        if (o->go)
                go_driver_use();
        if (o->fresh_pods)
                replicas_use_fresh_pods();
        sim_log_show(o->log);
        stage_begin(&run.loop, on_changed, o->nodes, o->domains);
        stage_start_replicas(&run.loop);
        enter(STORM, (int64_t)o->minutes * 60000);
        faults_begin(&hooks, o->faults, REPLICAS + world_nodes(), run.until_ms);
        look(NULL);
        while (run.phase != OVER && !sim_first_broken())
                uv_run(&run.loop, UV_RUN_ONCE);
        __atomic_add_fetch(simulated_ms, sim_now_ms(), __ATOMIC_RELAXED);
        if (sim_first_broken()) {
                replicas_dump();
                for (enum kind k = 0; o->log && k < K_COUNT; k++)
                        for (size_t i = 0; k != K_EVENT && i < store_count(k); i++)
                                sim_log("LEFT %s %s", kinds[k].kind, store_nth(k, i)->json);
                printf("seed %llu: BROKEN %s\n  replay: simulate --seed %llu --nodes %u --domains %u "
                       "--minutes %u",
                       (unsigned long long)seed, sim_first_broken(), (unsigned long long)seed, o->nodes,
                       o->domains, o->minutes);
                for (size_t i = 0; i < ARRAY_LEN(flags); i++)
                        if (flag_is_set(o, i))
                                printf(" %s", flags[i].flag);
                printf("%s%s --log\n", o->faults ? " --faults " : "", str_or(o->faults, ""));
                stage_end(EXIT_FAILURE);
        }
        if (!o->for_s)
                printf("seed %llu: %.1f virtual minutes, %llu writes, formed in %.1f s, deleted in %.1f s, "
                       "trace %016llx\n",
                       (unsigned long long)seed, (double)sim_now_ms() / 60000,
                       (unsigned long long)promises_writes(), (double)run.formed_ms / 1000,
                       (double)run.emptied_ms / 1000, (unsigned long long)sim_trace());
        clean_up();
        return EXIT_SUCCESS;
}

/* ---- many seeds, each in its own process ---- */

static int simulate_all(const struct options *o) {
        struct stage_processes p = { .jobs = o->jobs };
        uint64_t seed = o->first;
        int64_t end = sim_real_s() + o->for_s;
        for (; o->for_s ? sim_real_s() < end : seed <= o->last; seed++)
                if (stage_fork(&p))
                        exit(simulate(o, seed));
        bool good = stage_wait(&p);
        printf("seeds %llu to %llu with %u nodes, %u domains, %u minutes: %.1f virtual hours, %u broken\n",
               (unsigned long long)o->first, (unsigned long long)seed - 1, o->nodes, o->domains, o->minutes,
               (double)*simulated_ms / 3600000, p.failed);
        return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Removes the first word of the list if it is `word`. */
static bool begins_with(const char **list, const char *word) {
        size_t n = strlen(word);
        if (strncmp(*list, word, n) != 0 || ((*list)[n] && (*list)[n] != ','))
                return false;
        *list += n + ((*list)[n] == ',');
        return true;
}

/* A line has a seed and its options. The list of faults may begin with "racks", "channels", "hostile",
 * "restores", "fresh", "standing", "clocks", "off", "lying", "crashing", "changes", "careless", "go",
 * "shared" and "auto", in this order, and may contain only these. # begins a comment. */
static int simulate_corpus(const struct options *o, const char *path) {
        _cleanup_(freep) char *text = NULL;
        struct err e;
        struct str rest, line;
        int status = EXIT_SUCCESS;
        if (file_read(path, 1 << 20, &text, NULL, &e) < 0) {
                fprintf(stderr, "%s\n", e.msg);
                return EXIT_FAILURE;
        }
        rest = str_from(text);
        while (rest.n && str_next_line(&rest, &line)) {
                struct options one = *o;
                unsigned long long seed;
                char copy[512], faults[256];
                snprintf(copy, sizeof copy, "%.*s", (int)line.n, line.p);
                int n = sscanf(copy, "%llu %u %u %u %255[a-z_,]", &seed, &one.nodes, &one.domains,
                               &one.minutes, faults);
                if (n < 4)
                        continue;
                one.first = one.last = seed;
                const char *list = n == 5 ? faults : "";
                for (size_t i = 0; i < ARRAY_LEN(flags); i++)
                        set_flag(&one, i, begins_with(&list, flags[i].word));
                one.faults = *list ? list : NULL;
                _cleanup_(buf_done) struct buf names = BUF_INIT(1024);
                if (!faults_known(one.faults, &names)) {
                        fprintf(stderr, "%s: seed %llu: '%s' is no list of faults\n", path, seed, list);
                        return EXIT_FAILURE;
                }
                if (simulate_all(&one) != EXIT_SUCCESS)
                        status = EXIT_FAILURE;
        }
        return status;
}

static int usage(const char *faults) {
        fprintf(stderr,
                "simulate [--seed N | --seeds FIRST-LAST | --seeds FIRST --for SECONDS] [--jobs N]\n"
                "         [--nodes N] [--domains N] [--minutes N] [--racks | --channels | --standing]\n"
                "         [--hostile] [--restores] [--fresh-pods] [--clocks] [--one-off] [--lying] "
                "[--crashing]\n"
                "         [--isolation-changes] [--careless-restores]\n"
                "         [--go-domains] [--shared] [--auto]\n"
                "         [--faults NAMES] [--log]\n"
                "faults: %s\n",
                faults);
        return EXIT_FAILURE;
}

static bool read_option(struct options *o, const char *name, const char *value) {
        char *end;
        unsigned long long n = strtoull(value, &end, 10);
        if (streq(name, "--faults")) {
                o->faults = *value ? value : NULL;
                return true;
        }
        if (streq(name, "--corpus")) {
                o->corpus = value;
                return true;
        }
        if (streq(name, "--seeds")) {
                o->first = n;
                o->last = *end == '-' ? strtoull(end + 1, &end, 10) : n;
        } else if (streq(name, "--seed")) {
                o->first = o->last = n;
                o->once = true;
        } else {
                unsigned *to = streq(name, "--jobs")      ? &o->jobs
                               : streq(name, "--nodes")   ? &o->nodes
                               : streq(name, "--domains") ? &o->domains
                               : streq(name, "--minutes") ? &o->minutes
                               : streq(name, "--for")     ? &o->for_s
                                                          : NULL;
                if (!to)
                        return false;
                *to = (unsigned)n;
                return !*end && n > 0;
        }
        return !*end && o->first <= o->last;
}

static bool read_flag(struct options *o, const char *name) {
        for (size_t i = 0; i < ARRAY_LEN(flags); i++)
                if (streq(name, flags[i].flag)) {
                        set_flag(o, i, true);
                        return true;
                }
        return false;
}

int main(int argc, char **argv) {
        struct options o = { .first = 1,
                             .last = 20,
                             .jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
                             .nodes = 4,
                             .domains = 3,
                             .minutes = 10 };
        struct buf names = BUF_INIT(4096);
        bool good = true;
        for (int i = 1; i < argc && good; i++) {
                if (streq(argv[i], "--log"))
                        o.log = true;
                else if (read_flag(&o, argv[i]))
                        continue;
                else
                        good = i + 1 < argc && read_option(&o, argv[i], argv[i + 1]) && ++i;
        }
        good = faults_known(o.faults, &names) && good && !(o.racks && o.one_off) &&
               !((o.channels || o.standing) && o.fresh_pods) && !(o.channels && o.standing) &&
               !(o.channels && (o.lying || o.crashing)) &&
               !(o.shared && ((!o.channels && !o.standing) || o.racks || o.hostile)) &&
               !(o.workloads && !o.shared) &&
               !(o.changes && (o.channels || o.standing || o.racks || o.fresh_pods));
        int status = good ? 0 : usage(buf_str(&names));
        buf_done(&names);
        if (!good)
                return status;
        clearenv(); /* the programs read the environment */
        simulated_ms =
                mmap(NULL, sizeof *simulated_ms, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (simulated_ms == MAP_FAILED) {
                perror("mmap");
                return EXIT_FAILURE;
        }
        if (o.corpus)
                return simulate_corpus(&o, o.corpus);
        return o.once ? simulate(&o, o.first) : simulate_all(&o);
}
