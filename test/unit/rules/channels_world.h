/* SPDX-License-Identifier: Apache-2.0 */
/* channels_world: two healthy nodes and three ComputeDomains, for tests of the rule of the channels. */
#pragma once

#include "rules/channels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/names.h"

#define FABRIC "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define A "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define B "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define C "cccccccc-8f4e-4f0e-9f0a-1b2c3d4e5f60"

enum { NOW = 1000000 };

/* Two healthy nodes and three ComputeDomains, with a table that is older than all of them. */
struct small {
        struct arena *a;
        struct compute_domain_fabric old;
        struct fabric_channel channels[8];
        const char *members[2];
        struct channels_node nodes[2];
        struct channels_owner owners[3];
        struct channel_report_hold held[2];
        struct channels_facts f;
        struct channels_decision d;
};

static inline int set_up(void **state) {
        struct small *s = calloc(1, sizeof *s);
        s->a = arena_new(4096);
        s->old = (struct compute_domain_fabric){
                .o.meta = { .name = FABRIC, .uid = OBJECT, .rv = "7", .created = 1000 },
                .channels = s->channels,
                .table_of = OBJECT,
                .members = s->members,
                .n_members = 2,
                .nodes = 2,
                .channel_count = 5,
                .next = 1,
        };
        for (size_t i = 0; i < 2; i++) {
                static const char *const names[] = { "node-1", "node-2" };
                s->members[i] = names[i];
                s->nodes[i] = (struct channels_node){ .name = names[i],
                                                      .states = true,
                                                      .is_ready = true,
                                                      .reported = true,
                                                      .settled = true,
                                                      .uid = OBJECT,
                                                      .count = 5,
                                                      .alive_after = NOW };
        }
        s->owners[0] = (struct channels_owner){ .uid = A, .ns = "team-a", .name = "train", .lives = true };
        s->owners[1] = (struct channels_owner){ .uid = B, .ns = "team-b", .name = "infer", .lives = true };
        s->owners[2] = (struct channels_owner){ .uid = C, .ns = "team-c", .name = "rest", .lives = true };
        s->f = (struct channels_facts){ .fabric = FABRIC,
                                        .old = &s->old,
                                        .nodes = s->nodes,
                                        .n_nodes = 2,
                                        .owners = s->owners,
                                        .n_owners = 3,
                                        .leases_at = NOW,
                                        .leases_before = NOW,
                                        .now = NOW };
        *state = s;
        return 0;
}

static inline int tear_down(void **state) {
        struct small *s = *state;
        arena_free(s->a);
        free(s);
        return 0;
}

static inline void want(struct channels_owner *o) {
        o->claimed = o->wants = true;
        o->oldest = NOW - 1;
}

static inline void give(struct small *s, int64_t id, const char *uid, int64_t releasing) {
        s->channels[s->old.n_channels++] =
                (struct fabric_channel){ id, { CD_KIND, "ns", "name", uid }, releasing };
        s->old.channels_in_use = s->old.domain_count = (int64_t)s->old.n_channels;
}

static inline int64_t id_of(const struct small *s, const char *uid) {
        const struct fabric_channel *x = fabric_channel_of(&s->d.fabric, uid);
        return x ? x->id : -1;
}

static inline const char *condition_text(const struct small *s, const char *type) {
        const struct condition *c = condition_find(s->d.fabric.conditions, s->d.fabric.n_conditions, type);
        return c ? c->message : "";
}

/* This controller has run all the time, so it saw everything when it happened. */
static inline void decide(struct small *s) {
        int64_t since[8];
        for (size_t i = 0; i < s->old.n_channels; i++)
                since[i] = s->old.channels[i].releasing;
        s->f.releasing_since = since;
        s->f.complete_since = s->f.old ? s->f.old->o.meta.created : 0;
        channels_decide(&s->f, s->a, &s->d);
        assert_null(channels_check(&s->f, &s->d, s->a));
}

static inline void assert_broken(struct small *s, const char *why) {
        const char *broken = channels_check(&s->f, &s->d, s->a);
        assert_non_null(broken);
        if (!strstr(broken, why))
                fail_msg("%s", broken);
}

#define RULE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
