/* SPDX-License-Identifier: Apache-2.0 */
#include "channels_state.h"

#include <string.h>

#include "api/names.h"
#include "base/stderr.h"
#include "base/mem.h"
#include "base/str.h"
#include "cd_plugin/may_prepare.h"
#include "rules/channels.h"

#define FABRIC "3f7c1b2a-1111-2222-3333-444455556666.1"

static const char *const hosts[HOSTS] = { "n1", "n2" };
static const char *const uids[OWNERS] = { "aaaaaaaa-0000-4000-8000-000000000001",
                                          "aaaaaaaa-0000-4000-8000-000000000002",
                                          "aaaaaaaa-0000-4000-8000-000000000003" };
static const char *const spaces[OWNERS] = { "team-1", "team-2", "team-3" };
static const char *const objects[] = { [SEEN_NOTHING] = "",
                                       [SEEN_THIS] = "bbbbbbbb-0000-4000-8000-000000000001",
                                       [SEEN_ANOTHER] = "bbbbbbbb-0000-4000-8000-000000000002" };

static int64_t time_of(unsigned age) {
        return age ? NOW - (int64_t)(age - 1) * TICK_S : 0;
}

static uint8_t age_of(int64_t time) {
        return (uint8_t)(time ? (NOW - time) / TICK_S + 1 : 0);
}

/* ---- the controller ---- */

static struct compute_domain_fabric *fabric_of(const struct channels_row *row, const struct state *s,
                                               struct arena *a) {
        struct compute_domain_fabric *f = arena_alloc(a, sizeof *f);
        f->o.meta = (struct kube_meta){
                .name = FABRIC, .uid = objects[SEEN_THIS], .rv = "1", .created = time_of(s->created)
        };
        f->table_of = s->is_own ? objects[SEEN_THIS] : NULL;
        f->conditions = arena_alloc(a, sizeof *f->conditions);
        f->n_conditions = s->is_lost;
        f->conditions[0] = (struct condition){ FABRIC_CHANNELS_INCOMPLETE, "True", "", "", 0 };
        f->next = s->next;
        f->channel_count = s->counted ? row->ids + 1 : 0;
        f->channels = arena_alloc(a, ENTRIES * sizeof *f->channels);
        for (unsigned i = 0; i < s->table.n; i++) {
                const struct entry *e = &s->table.e[i];
                f->channels[f->n_channels++] = (struct fabric_channel){
                        e->id, { CD_KIND, spaces[e->owner], "cd", uids[e->owner] }, time_of(e->releasing)
                };
        }
        f->members = arena_alloc(a, HOSTS * sizeof *f->members);
        for (unsigned n = 0; n < HOSTS; n++)
                if (s->members >> n & 1)
                        f->members[f->n_members++] = hosts[n];
        return f;
}

static unsigned owner_number(const char *uid) {
        return (unsigned)(uid[strlen(uid) - 1] - '1');
}

static void read_table(const struct fabric_channel *list, size_t n, struct table *ret) {
        memset(ret, 0, sizeof *ret);
        BUG_ON(n > ENTRIES);
        for (size_t i = 0; i < n; i++)
                ret->e[ret->n++] =
                        (struct entry){ (uint8_t)list[i].id, (uint8_t)owner_number(list[i].owner.uid),
                                        age_of(list[i].releasing) };
}

static void read_fabric(const struct compute_domain_fabric *f, struct state *s) {
        s->is_own = f->table_of != NULL;
        s->is_lost = condition_find(f->conditions, f->n_conditions, FABRIC_CHANNELS_INCOMPLETE) != NULL;
        s->next = (uint8_t)f->next;
        s->counted = f->channel_count > 0;
        s->members = 0;
        for (size_t i = 0; i < f->n_members; i++)
                s->members |= (uint8_t)(1U << (f->members[i][1] - '1'));
        read_table(f->channels, f->n_channels, &s->table);
}

static size_t fill_nodes(const struct channels_row *row, const struct state *s, struct arena *a,
                         struct channels_node *nodes) {
        size_t n_nodes = 0;
        for (unsigned n = 0; n < HOSTS; n++) {
                const struct machine *m = &s->machines[n];
                struct channel_report_hold *held = arena_alloc(a, (size_t)IDS * OWNERS * sizeof *held);
                size_t n_held = 0;
                if (!m->is_there && !(s->members >> n & 1))
                        continue;
                for (unsigned id = 1; id <= IDS; id++)
                        for (unsigned o = 0; o < OWNERS; o++)
                                if (m->reported.held & channels_bit(id, o))
                                        held[n_held++] = (struct channel_report_hold){ id, uids[o] };
                nodes[n_nodes++] = (struct channels_node){
                        .name = hosts[n],
                        .gone = !m->is_there && m->gone > DEAD_TICKS,
                        .states = m->is_there,
                        .stated = m->is_there ? NOW - 3600 : 0,
                        .is_ready = m->is_there,
                        .reported = m->reported.is_there,
                        .settled = m->reported.is_settled,
                        .uid = m->reported.is_there ? objects[m->reported.seen] : NULL,
                        .count = m->reported.is_there ? (int64_t)row->ids + 1 : -1,
                        .held = held,
                        .n_held = n_held,
                        .alive_after = time_of(m->alive_after),
                };
        }
        return n_nodes;
}

static bool is_concerned(const struct state *s, unsigned o) {
        bool any = false;
        for (unsigned n = 0; n < HOSTS; n++)
                any = any || s->machines[n].claims >> o & 1 ||
                      s->machines[n].reported.held & channels_bits_of(o);
        for (unsigned i = 0; i < s->table.n; i++)
                any = any || s->table.e[i].owner == o;
        for (unsigned i = 0; i < s->remembered.n; i++)
                any = any || s->remembered.e[i].owner == o;
        return any;
}

static size_t fill_owners(const struct state *s, struct channels_owner *owners) {
        size_t n_owners = 0;
        for (unsigned o = 0; o < OWNERS; o++) {
                bool lives = s->owners >> o & 1, claimed = false, wants = false, older = false;
                if (!is_concerned(s, o))
                        continue;
                for (unsigned n = 0; n < HOSTS; n++) {
                        claimed = claimed || s->machines[n].claims >> o & 1;
                        older = older || s->machines[n].older >> o & 1;
                        wants = wants || (s->machines[n].claims >> o & 1 && s->machines[n].is_there);
                }
                owners[n_owners++] = (struct channels_owner){ .uid = uids[o],
                                                              .ns = spaces[o],
                                                              .name = "cd",
                                                              .lives = lives,
                                                              .claimed = claimed,
                                                              .wants = wants && lives,
                                                              .oldest = older   ? time_of(s->created) - 1
                                                                        : wants ? NOW
                                                                                : 0,
                                                              .confirmed = !claimed };
        }
        return n_owners;
}

/* A shared claim is older than the object. A node uses it if its plugin reports this. */
static size_t fill_sharing_owners(const struct state *s, struct channels_owner *owners) {
        size_t n_owners = 0;
        for (unsigned o = 0; o < OWNERS; o++) {
                bool lives = s->owners >> o & 1, claimed = shared_in_use(s) >> o & 1, wants = false;
                if (!is_concerned(s, o) && !claimed)
                        continue;
                for (unsigned n = 0; n < HOSTS; n++) {
                        const struct reported *r = &s->machines[n].reported;
                        wants = wants || r->asks >> o & 1 || r->held & channels_bits_of(o);
                }
                wants = wants && claimed;
                owners[n_owners++] = (struct channels_owner){ .uid = uids[o],
                                                              .ns = spaces[o],
                                                              .name = "cd",
                                                              .lives = lives,
                                                              .claimed = claimed,
                                                              .wants = wants && lives,
                                                              .oldest = wants ? time_of(s->created) - 1 : 0,
                                                              .confirmed = !claimed };
        }
        return n_owners;
}

static void ask_leases(struct state *s) {
        for (unsigned n = 0; n < HOSTS; n++)
                if (s->leases_at > 1 && s->machines[n].is_there && !s->machines[n].cut)
                        s->machines[n].alive_after = s->leases_at; /* the node has renewed its Lease since */
        s->leases_before = s->leases_at;
        s->leases_at = 1;
}

static int64_t vanished_s(const struct state *s) {
        for (unsigned n = 0; n < HOSTS; n++)
                if (!s->machines[n].is_there && s->machines[n].gone <= DEAD_TICKS)
                        return 1;
        return 0;
}

/* True: the controller has created the object. */
static bool decide(const struct channels_row *row, struct state *s) {
        _cleanup_(arena_freep) struct arena *a = arena_new(8192);
        struct channels_node nodes[HOSTS];
        struct channels_owner owners[OWNERS];
        struct channels_decision d;
        struct state remembered = { .table = s->remembered };
        const struct compute_domain_fabric lost = *fabric_of(row, &remembered, a);
        const struct compute_domain_fabric *old = s->object ? fabric_of(row, s, a) : NULL;
        int64_t since[ENTRIES]; /* a later controller waits longer */
        for (unsigned i = 0; i < s->table.n; i++)
                since[i] = time_of(s->table.e[i].releasing);
        const struct channels_facts f = { .fabric = FABRIC,
                                          .old = old,
                                          .complete_since = time_of(s->watches),
                                          .releasing_since = since,
                                          .remembered = lost.channels,
                                          .n_remembered = lost.n_channels,
                                          .remembers = s->remembers,
                                          .vanished_s = vanished_s(s),
                                          .nodes = nodes,
                                          .n_nodes = fill_nodes(row, s, a, nodes),
                                          .owners = owners,
                                          .n_owners = row->shared ? fill_sharing_owners(s, owners)
                                                                  : fill_owners(s, owners),
                                          .leases_at = time_of(s->leases_at),
                                          .leases_before = time_of(s->leases_before),
                                          .now = NOW };
        channels_decide(&f, a, &d);
        BUG_ON(channels_check(&f, &d, a));
        if (d.step == CHANNELS_CREATE) {
                s->object = s->created = 1;
                s->is_own = s->is_lost = s->next = s->counted = s->members = 0;
                memset(&s->table, 0, sizeof s->table);
                for (unsigned n = 0; n < HOSTS; n++)
                        s->machines[n].older = s->machines[n].claims;
        } else if (d.step == CHANNELS_PATCH) {
                read_fabric(&d.fabric, s);
                if (!s->is_lost) {
                        s->remembers = 0;
                        memset(&s->remembered, 0, sizeof s->remembered);
                }
        }
        if (d.ask_leases && s->leases_at != 1)
                ask_leases(s);
        return d.step == CHANNELS_CREATE;
}

static bool control(const struct channels_row *row, struct state *s, const char **broken) {
        const struct state before = *s;
        if (s->leads && decide(row, s) && !row->slow)
                (void)decide(row, s); /* the answer triggers another decision */
        if (row->shared)
                *broken = shared_check_decision(&before, s);
        return memcmp(&before, s, sizeof before) != 0;
}

/* ---- nodes ---- */

bool channels_report(struct machine *m, bool object) {
        struct reported was = m->reported;
        if (!m->is_there || m->cut)
                return false;
        m->reported.is_there = 1;
        m->reported.held = m->held;
        m->reported.asks = (uint8_t)shared_asks(m);
        m->reported.seen = object ? SEEN_THIS : m->reported.seen;
        return memcmp(&was, &m->reported, sizeof was) != 0;
}

bool channels_may_prepare(const struct channels_row *row, const struct state *s, unsigned o,
                          unsigned *ret_id) {
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        int64_t id = 0;
        char msg[500];
        const struct prepare_question q = { .node = "n",
                                            .clique_id = FABRIC,
                                            .domain_ns = spaces[o],
                                            .domain_name = "cd",
                                            .domain_uid = uids[o],
                                            .channel_count = row->ids + 1,
                                            .fabric = fabric_of(row, s, a) };
        bool may = s->object && s->owners >> o & 1 && may_prepare_channel(&q, &id, msg, sizeof msg);
        *ret_id = (unsigned)id;
        return may;
}

/* The plugin reads the fabric object, and prepares the claim a moment later. */
static bool ask(const struct channels_row *row, const struct state *s, struct machine *m, unsigned o) {
        unsigned id;
        if (!m->is_there || !(m->claims >> o & 1) || m->held & channels_bits_of(o) || m->coming ||
            !channels_may_prepare(row, s, o, &id))
                return false;
        m->coming = (uint8_t)channels_bit(id, o);
        return true;
}

static bool prepare(struct machine *m) {
        if (!m->coming)
                return false;
        m->held |= m->coming;
        m->coming = 0;
        return true;
}

/* The kubelet ends pods whose claim no longer exists. */
static bool unprepare(struct machine *m, unsigned o) {
        if (m->claims >> o & 1 || !(m->held & channels_bits_of(o)))
                return false;
        m->held &= (uint8_t)~channels_bits_of(o);
        return true;
}

/* Plugins report within a second. */
static bool has_reported(const struct state *s) {
        bool reported = true;
        for (unsigned n = 0; n < HOSTS; n++) {
                struct machine m = s->machines[n];
                reported = reported && !channels_report(&m, s->object);
        }
        return reported;
}

/* They prepare a claim within a second, too. A change of the leader and a tick take longer. */
static bool is_quiet(const struct state *s) {
        return has_reported(s) && !s->machines[0].coming && !s->machines[1].coming && shared_is_quiet(s);
}

/* ---- people and faults ---- */

static bool change_claim(struct state *s, struct machine *m, unsigned o) {
        bool has = m->claims >> o & 1;
        if (!m->is_there || (!has && !(s->owners >> o & 1)) || (has && m->coming) ||
            !channels_take(&s->changes))
                return false;
        m->claims ^= (uint8_t)(1U << o);
        m->older &= m->claims;
        return true;
}

static bool end_owner(struct state *s, unsigned o) {
        if (!(s->owners >> o & 1) || (!is_concerned(s, o) && !(shared_in_use(s) >> o & 1)) ||
            !channels_take(&s->changes))
                return false;
        s->owners &= (uint8_t) ~(1U << o);
        return true;
}

/* Its Pods, its slice and its claims are deleted, too. Its containers end within a minute. */
static bool delete_node(struct state *s, struct machine *m) {
        if (!m->is_there || !channels_take(&s->gone))
                return false;
        m->is_there = 0;
        m->claims = m->older = 0;
        m->deleted = 1;
        m->gone = s->leads;
        m->alive_after = 0;
        memset(&m->reported, 0, sizeof m->reported);
        return true;
}

/* The object is not deleted within the second in which it was created. */
static bool delete_object(struct state *s) {
        if (!s->object || !has_reported(s) || !channels_take(&s->deletes))
                return false;
        s->remembers = s->leads && s->is_own && !s->is_lost;
        memset(&s->remembered, 0, sizeof s->remembered);
        if (s->remembers)
                s->remembered = s->table;
        for (unsigned n = 0; n < HOSTS; n++)
                if (s->machines[n].reported.seen == SEEN_THIS)
                        s->machines[n].reported.seen = SEEN_ANOTHER;
        s->object = s->created = s->is_own = s->is_lost = s->next = s->counted = s->members = 0;
        memset(&s->table, 0, sizeof s->table);
        for (unsigned n = 0; n < HOSTS; n++)
                s->machines[n].older = 0;
        return true;
}

static void forget(struct state *s) {
        s->remembers = s->watches = s->leases_at = s->leases_before = 0;
        memset(&s->remembered, 0, sizeof s->remembered);
        for (unsigned n = 0; n < HOSTS; n++)
                s->machines[n].gone = s->machines[n].alive_after = 0;
}

static bool stop_leading(struct state *s) {
        if (!s->leads || !channels_take(&s->leaders))
                return false;
        s->leads = 0;
        forget(s);
        return true;
}

static bool lead(struct state *s) {
        if (s->leads || !is_quiet(s))
                return false;
        s->leads = s->watches = 1;
        for (unsigned n = 0; n < HOSTS; n++)
                s->machines[n].gone = !s->machines[n].is_there;
        return true;
}

static void grow(uint8_t *age) {
        if (*age && *age < OLD)
                ++*age;
}

/* A Prepare ends after 44 s, before a channel can be free that was not yet releasing when the node lost its
 * network. */
static void end_prepares(struct machine *m) {
        if (!m->offers || ++m->cut <= CUT_TICKS)
                return;
        m->offers = 0;
        m->cut = 1;
}

static bool tick(struct state *s) {
        const struct state before = *s;
        if (!is_quiet(s))
                return false;
        for (unsigned n = 0; n < HOSTS; n++)
                if (s->machines[n].held && s->machines[n].deleted == DEAD_TICKS)
                        return false; /* the pod ends first */
        grow(&s->created);
        grow(&s->watches);
        grow(&s->leases_at);
        grow(&s->leases_before);
        for (unsigned i = 0; i < s->table.n; i++)
                grow(&s->table.e[i].releasing);
        for (unsigned i = 0; i < s->remembered.n; i++)
                grow(&s->remembered.e[i].releasing);
        for (unsigned n = 0; n < HOSTS; n++) {
                struct machine *m = &s->machines[n];
                m->reported.is_settled = m->reported.is_there;
                grow(&m->deleted);
                grow(&m->gone);
                grow(&m->alive_after);
                end_prepares(m);
        }
        return memcmp(&before, s, sizeof before) != 0;
}

/* ---- steps ---- */

enum step {
        STEP_CLAIM,
        STEP_END_OWNER,
        STEP_DELETE_NODE,
        STEP_DELETE_OBJECT,
        STEP_STOP_LEADING,
        STEP_LEAD, /* this and the following steps happen by themselves */
        STEP_CONTROL,
        STEP_ASK,
        STEP_PREPARE,
        STEP_UNPREPARE,
        STEP_REPORT,
        STEP_TICK,
        N_STEPS
};
enum { STEP_NODES = 2, STEP_OWNERS = 4 };
/* The number of a step is 8 * kind + 4 * node + owner. */
static const uint16_t steps[] = {
        0,  1,  2,  4,  5,  6,  8,  9,  10, 16, 20, 24, 32, 40, 48, 56,
        57, 58, 60, 61, 62, 64, 68, 72, 73, 74, 76, 77, 78, 80, 84, 88,
};

static bool do_step(void *u, void *state, unsigned step, const char **broken) {
        struct state *s = state;
        unsigned kind = step / (STEP_NODES * STEP_OWNERS), o = step % STEP_OWNERS;
        if (step >= SHARED_FIRST)
                return shared_step(u, s, step);
        struct machine *m = &s->machines[step / STEP_OWNERS % STEP_NODES];
        switch (kind) {
        case STEP_CLAIM:
                return change_claim(s, m, o);
        case STEP_END_OWNER:
                return end_owner(s, o);
        case STEP_DELETE_NODE:
                return delete_node(s, m);
        case STEP_DELETE_OBJECT:
                return delete_object(s);
        case STEP_STOP_LEADING:
                return stop_leading(s);
        case STEP_LEAD:
                return lead(s);
        case STEP_CONTROL:
                return control(u, s, broken);
        case STEP_ASK:
                return ask(u, s, m, o);
        case STEP_PREPARE:
                return prepare(m);
        case STEP_UNPREPARE:
                return unprepare(m, o);
        case STEP_REPORT:
                return channels_report(m, s->object);
        case STEP_TICK:
                return tick(s);
        default:
                return false;
        }
}

static bool is_progress(void *u, unsigned step) {
        return step >= SHARED_FIRST ? shared_is_progress(step)
                                    : step / (STEP_NODES * STEP_OWNERS) >= STEP_LEAD;
}

/* ---- promises ---- */

/* failure: any fault strikes at any step -> no channel has two owners [search] */
static const char *check(void *u, const void *state) {
        const struct channels_row *row = u;
        const struct state *s = state;
        unsigned all = s->machines[0].held | s->machines[1].held;
        if (row->shared)
                return shared_check(row, s);
        for (unsigned id = 1; id <= IDS; id++) {
                unsigned n = 0;
                for (unsigned o = 0; o < OWNERS; o++)
                        n += (all & channels_bit(id, o)) != 0;
                if (n > 1)
                        return "a channel has two owners";
        }
        return NULL;
}

/* There are more owners than channels. */
/* failure: faults end at any step -> every claim gets its channel if there are enough [search] */
static bool is_served(void *u, const void *state) {
        const struct state *s = state;
        const struct channels_row *row = u;
        unsigned wanting = 0;
        bool all = true;
        if (row->shared)
                return shared_is_served(row, s);
        for (unsigned o = 0; o < OWNERS; o++) {
                bool wants = false;
                for (unsigned n = 0; n < HOSTS; n++) {
                        const struct machine *m = &s->machines[n];
                        bool has = m->claims >> o & 1;
                        wants = wants || has;
                        all = all && (!has || !(s->owners >> o & 1) || m->held & channels_bits_of(o));
                }
                wanting += wants;
        }
        return all || wanting > IDS;
}

static void begin(void *u, void *state) {
        const struct channels_row *row = u;
        struct state *s = state;
        memset(s, 0, sizeof *s);
        s->leads = 1;
        s->owners = (uint8_t)((1U << row->owners) - 1);
        for (unsigned n = 0; n < HOSTS; n++) {
                s->machines[n].is_there = 1;
                s->machines[n].reported = (struct reported){ .is_there = 1, .is_settled = 1 };
        }
        s->changes = (uint8_t)row->changes;
        s->gone = (uint8_t)row->gone;
        s->deletes = (uint8_t)row->deletes;
        s->leaders = (uint8_t)row->leaders;
        s->forces = (uint8_t)row->forces;
        s->lost = (uint8_t)row->lost;
        s->cuts = (uint8_t)row->cuts;
        s->reboots = (uint8_t)row->reboots;
}

static void rename_state(void *u, void *state) {
}

static void print(void *u, const void *before, unsigned step, const void *after, FILE *out) {
        static const char *const words[N_STEPS] = {
                [STEP_CLAIM] = "a claim is created or deleted",
                [STEP_END_OWNER] = "the ComputeDomain is deleted",
                [STEP_DELETE_NODE] = "the Node is deleted, with its Pods and claims",
                [STEP_DELETE_OBJECT] = "the ComputeDomainFabric is deleted",
                [STEP_STOP_LEADING] = "no controller leads",
                [STEP_LEAD] = "a controller leads",
                [STEP_CONTROL] = "the controller decides:",
                [STEP_ASK] = "the plugin gets the channel from the fabric object",
                [STEP_PREPARE] = "the plugin prepares the claim",
                [STEP_UNPREPARE] = "the claim is unprepared",
                [STEP_REPORT] = "the plugin reports",
                [STEP_TICK] = "40 seconds pass",
        };
        if (step >= SHARED_FIRST) {
                shared_print(step, out);
                return;
        }
        unsigned kind = step / (STEP_NODES * STEP_OWNERS), n = step / STEP_OWNERS % STEP_NODES;
        const struct state *s = after;
        if (kind == STEP_CLAIM || kind == STEP_ASK || kind == STEP_UNPREPARE)
                fprintf(out, "%s, owner %u: %s", hosts[n], step % STEP_OWNERS + 1, words[kind]);
        else if (kind == STEP_DELETE_NODE || kind == STEP_PREPARE || kind == STEP_REPORT)
                fprintf(out, "%s: %s", hosts[n], words[kind]);
        else if (kind == STEP_END_OWNER)
                fprintf(out, "owner %u: %s", step % STEP_OWNERS + 1, words[kind]);
        else
                fprintf(out, "%s", words[kind]);
        for (unsigned i = 0; kind == STEP_CONTROL && i < s->table.n; i++)
                fprintf(out, " %u=owner %u%s", s->table.e[i].id, s->table.e[i].owner + 1,
                        s->table.e[i].releasing ? " releasing" : "");
        fputc('\n', out);
}

void channels_describe(struct channels_row *row, struct search_world *ret) {
        *ret = (struct search_world){ .name = row->name,
                                      .size = sizeof(struct state),
                                      .steps = steps,
                                      .n_steps = ARRAY_LEN(steps),
                                      .begin = begin,
                                      .step = do_step,
                                      .rename = rename_state,
                                      .check = check,
                                      .is_progress = is_progress,
                                      .is_served = is_served,
                                      .print = print,
                                      .u = row };
        if (row->shared)
                ret->n_steps = shared_steps(row, &ret->steps);
}
