/* SPDX-License-Identifier: Apache-2.0 */
/* prove: visits every state of small worlds (search.h). The decisions are made by the functions that the
 * programs call.
 *
 *     prove [--world NAME]... [--changes N] [--nodes N] [--memory GIB] [--expect broken|stuck] [--quiet]
 *           [--plain]
 *
 * Without --world all rows of the table are searched. The numbers replace those of the rows. With --plain,
 * nodes and domains are not treated as interchangeable; this takes longer and must give the same result. Exit
 * status: 0 if all promises hold, or the expected failure was found; 1 if not; 2 if the memory was not
 * enough, or the options are wrong. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "channels.h"
#include "search.h"
#include "world.h"

static const struct row rows[] = {
        { .name = "small",
          .what = "domains follow one another on the nodes",
          .nodes = 3,
          .domains = 2,
          .controllers = 1,
          .changes = 4 },
        { .name = "a",
          .what = "as small, with more changes",
          .nodes = 3,
          .domains = 2,
          .controllers = 1,
          .changes = 6 },
        { .name = "b",
          .what = "two controllers, one of which may have an old cache, and a daemon that crashes",
          .nodes = 2,
          .domains = 2,
          .controllers = 2,
          .changes = 2,
          .crashes = 1,
          .recounts = 1,
          .late_writes = 1 },
        { .name = "c",
          .what = "etcd is restored, and a daemon crashes",
          .nodes = 2,
          .domains = 2,
          .controllers = 1,
          .changes = 2,
          .crashes = 1,
          .restores = 1,
          .late_reports = 1 },
        { .name = "d",
          .what = "a node is cut off, its daemon's Pod is force-deleted and the daemon still runs, the node "
                  "reboots, daemons crash",
          .nodes = 2,
          .domains = 1,
          .controllers = 1,
          .changes = 2,
          .crashes = 2,
          .cuts = 1,
          .forces = 1,
          .reboots = 1 },
        { .name = "late-pods",
          .what = "as d, and the cache of daemons' Pods is older than that of plugins' Pods",
          .nodes = 2,
          .domains = 1,
          .controllers = 1,
          .changes = 1,
          .recounts = 1,
          .cuts = 1,
          .forces = 1,
          .reboots = 1,
          .late_pods = 1 },
        { .name = "late-prepares",
          .what = "a pod is force-deleted, or its node is cut off, while its Prepare runs",
          .nodes = 2,
          .domains = 2,
          .controllers = 1,
          .changes = 3,
          .cuts = 1,
          .late_notes = 1,
          .late_prepares = 1 },
        { .name = "late-forced",
          .what = "as late-prepares, and the Pod of the daemon is force-deleted, too",
          .nodes = 2,
          .domains = 2,
          .controllers = 1,
          .changes = 2,
          .cuts = 1,
          .forces = 1,
          .late_notes = 1,
          .late_prepares = 1 },
        { .name = "late",
          .what = "each event is seen some time after it has happened",
          .nodes = 2,
          .domains = 2,
          .controllers = 1,
          .changes = 4,
          .late_ends = 1,
          .late_claims = 1,
          .late_reports = 1,
          .late_writes = 1,
          .late_notes = 1,
          .late_plugin = 1 },
        { .name = "f",
          .what = "a daemon of the Go driver holds the daemon device of a node",
          .nodes = 2,
          .domains = 2,
          .controllers = 1,
          .changes = 4,
          .go = 1 },
};

static const struct channels_row channels_rows[] = {
        { .name = "e",
          .what = "channels: a Node and the ComputeDomainFabric are deleted while no controller leads",
          .ids = 2,
          .owners = 3,
          .changes = 3,
          .gone = 1,
          .deletes = 1,
          .leaders = 1,
          .slow = 1 },
        { .name = "shared",
          .what = "pods share claims: force-deleted pods and claims, a node without network, lost answers",
          .ids = 1,
          .owners = 2,
          .shared = 1,
          .changes = 3,
          .forces = 1,
          .lost = 1,
          .cuts = 1 },
        { .name = "shared-old",
          .what = "as shared, with kubelets before 1.37",
          .ids = 1,
          .owners = 2,
          .shared = 1,
          .old_kubelets = 1,
          .changes = 3,
          .forces = 1,
          .lost = 1,
          .cuts = 1 },
};

/* Options that replace the numbers of the rows. */
struct numbers {
        const char *name;
        size_t at;          /* the offset in a row; NOWHERE: a row has no such number */
        size_t in_channels; /* the offset in a row with channels; 0: it has no such number */
        bool set;
        unsigned value;
};

#define NOWHERE SIZE_MAX
#define IN_CHANNELS(member) offsetof(struct channels_row, member)
static struct numbers numbers[] = {
        { "changes", offsetof(struct row, changes), IN_CHANNELS(changes) },
        { "slow", NOWHERE, IN_CHANNELS(slow) },
        { "gone", NOWHERE, IN_CHANNELS(gone) },
        { "leaders", NOWHERE, IN_CHANNELS(leaders) },
        { "old-kubelets", NOWHERE, IN_CHANNELS(old_kubelets) },
        { "nodes", offsetof(struct row, nodes) },
        { "domains", offsetof(struct row, domains) },
        { "controllers", offsetof(struct row, controllers) },
        { "go", offsetof(struct row, go) },
        { "crashes", offsetof(struct row, crashes) },
        { "unclean", offsetof(struct row, unclean) },
        { "restores", offsetof(struct row, restores) },
        { "lost", offsetof(struct row, lost), IN_CHANNELS(lost) },
        { "cuts", offsetof(struct row, cuts), IN_CHANNELS(cuts) },
        { "forces", offsetof(struct row, forces), IN_CHANNELS(forces) },
        { "drains", offsetof(struct row, drains) },
        { "reboots", offsetof(struct row, reboots), IN_CHANNELS(reboots) },
        { "deletes", offsetof(struct row, deletes), IN_CHANNELS(deletes) },
        { "late-ends", offsetof(struct row, late_ends) },
        { "late-claims", offsetof(struct row, late_claims) },
        { "late-reports", offsetof(struct row, late_reports) },
        { "late-writes", offsetof(struct row, late_writes) },
        { "late-views", offsetof(struct row, late_views) },
        { "late-notes", offsetof(struct row, late_notes) },
        { "late-plugin", offsetof(struct row, late_plugin) },
        { "late-pods", offsetof(struct row, late_pods) },
        { "late-prepares", offsetof(struct row, late_prepares) },
        { "recounts", offsetof(struct row, recounts) },
};

enum { MEMORY_GIB = 4, WORLDS_MAX = 16, OPT_NUMBER = 1000 };

struct options {
        const char *worlds[WORLDS_MAX];
        size_t n_worlds;
        struct search_limits limits;
        enum search_end expected;
        bool plain;
};

static bool is_chosen(const struct options *o, const char *name) {
        bool chosen = !o->n_worlds;
        for (size_t i = 0; i < o->n_worlds; i++)
                chosen = chosen || streq(o->worlds[i], name);
        return chosen;
}

static struct row adjust(const struct row *row) {
        struct row r = *row;
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                if (numbers[i].set && numbers[i].at != NOWHERE)
                        memcpy((char *)&r + numbers[i].at, &numbers[i].value, sizeof numbers[i].value);
        return r;
}

static const char *const words[] = { [SEARCH_HOLDS] = "all promises hold",
                                     [SEARCH_BROKEN] = "a promise is broken",
                                     [SEARCH_STUCK] = "a claim may wait forever",
                                     [SEARCH_LIMIT] = "out of memory, so nothing is proved" };

static void print_numbers(const struct search_result *x) {
        printf("%llu states, %llu transitions, depth %u, hashes of %d bits (probability of a missed state "
               "%.1e), %.1f s\n",
               (unsigned long long)x->states, (unsigned long long)x->transitions, x->depth, SEARCH_HASH_BITS,
               search_missed(x->states), x->seconds);
        fflush(stdout);
}

static void print_count(unsigned n, const char *what, const char *end) {
        printf("%u %s%s%s ", n, what, n == 1 ? "" : "s", end);
}

static void print_result(const struct row *row, const struct search_result *x) {
        printf("%s: %s: ", row->name, words[x->end]);
        print_count(row->nodes, "node", ",");
        print_count(row->domains, "domain", ",");
        print_count(row->controllers, "controller", ",");
        print_count(row->changes, "change", ":");
        print_numbers(x);
}

static enum search_end search_row(const struct row *row, const struct options *o) {
        struct run *r = world_new(row);
        struct search_world w;
        struct search_result result;
        printf("%s: %s\n", row->name, row->what);
        fflush(stdout);
        world_describe(r, &w);
        search_run(&w, &o->limits, stdout, &result);
        print_result(row, &result);
        world_free(r);
        return result.end;
}

static enum search_end search_channels(const struct channels_row *row, const struct options *o) {
        struct channels_row r = *row;
        struct search_world w;
        struct search_result x;
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                if (numbers[i].set && numbers[i].in_channels)
                        memcpy((char *)&r + numbers[i].in_channels, &numbers[i].value,
                               sizeof numbers[i].value);
        printf("%s: %s\n", r.name, r.what);
        fflush(stdout);
        channels_describe(&r, &w);
        search_run(&w, &o->limits, stdout, &x);
        printf("%s: %s: 2 nodes, %u owners, ", r.name, words[x.end], r.owners);
        print_count(r.ids, "channel", ",");
        print_count(r.changes, "change", ":");
        print_numbers(&x);
        return x.end;
}

static void judge(const struct options *o, enum search_end end, int *status) {
        if (end == SEARCH_LIMIT)
                *status = 2;
        else if (end != o->expected && !*status)
                *status = 1;
}

static int search_all(const struct options *o) {
        int status = 0;
        bool any = false;
        for (size_t i = 0; i < ARRAY_LEN(channels_rows); i++)
                if (is_chosen(o, channels_rows[i].name)) {
                        judge(o, search_channels(&channels_rows[i], o), &status);
                        any = true;
                }
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                if (!is_chosen(o, rows[i].name))
                        continue;
                struct row row = adjust(&rows[i]);
                row.plain = row.plain || o->plain;
                judge(o, search_row(&row, o), &status);
                any = true;
        }
        return any ? status : 2;
}

static bool take_number(const char *name, const char *text) {
        char *end;
        errno = 0;
        unsigned long x = strtoul(text, &end, 10);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                if (streq(numbers[i].name, name)) {
                        numbers[i].set = true;
                        numbers[i].value = (unsigned)x;
                }
        return !errno && !*end && *text && x < 64;
}

static bool take_expected(struct options *o, const char *text) {
        o->expected = streq(text, "broken") ? SEARCH_BROKEN : SEARCH_STUCK;
        return streq(text, "broken") || streq(text, "stuck");
}

static bool take_memory(struct options *o, const char *text) {
        char *end;
        unsigned long x = strtoul(text, &end, 10);
        o->limits.bytes = x << 30;
        return !*end && x > 0 && x < 1024;
}

static bool parse(int argc, char **argv, struct options *o) {
        struct option options[ARRAY_LEN(numbers) + 6] = { { "world", required_argument, NULL, 'w' },
                                                          { "memory", required_argument, NULL, 'm' },
                                                          { "expect", required_argument, NULL, 'e' },
                                                          { "quiet", no_argument, NULL, 'q' },
                                                          { "plain", no_argument, NULL, 'p' } };
        bool good = true;
        int c, at;
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                options[5 + i] = (struct option){ numbers[i].name, required_argument, NULL, OPT_NUMBER };
        while (good && (c = getopt_long(argc, argv, "", options, &at)) != -1) {
                if (c == 'w' && o->n_worlds < WORLDS_MAX)
                        o->worlds[o->n_worlds++] = optarg;
                else if (c == 'm')
                        good = take_memory(o, optarg);
                else if (c == 'e')
                        good = take_expected(o, optarg);
                else if (c == 'q')
                        o->limits.quiet = true;
                else if (c == 'p')
                        o->plain = true;
                else
                        good = c == OPT_NUMBER && take_number(options[at].name, optarg);
        }
        return good && optind == argc;
}

int main(int argc, char **argv) {
        struct options o = { .limits.bytes = (size_t)MEMORY_GIB << 30, .expected = SEARCH_HOLDS };
        if (parse(argc, argv, &o))
                return search_all(&o);
        fprintf(stderr,
                "usage: prove [--world NAME]... [--changes N]... [--memory GIB] [--expect broken|stuck] "
                "[--quiet] [--plain]\n");
        return 2;
}
