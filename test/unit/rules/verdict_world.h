/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_world: members and written statuses, for tests of rules/verdict. */
#pragma once

#include "world/fake.h"

#include "render/objects.h"
#include "rules/message.h"
#include "rules/verdict.h"

#define CD(status)                                                                                           \
        "{'metadata':{'name':'cd','namespace':'w','uid':'" UID_A                                             \
        "','resourceVersion':'1','generation':3},'spec':{'numNodes':%d,'channel':{'resourceClaimTemplate':{" \
        "'name':'t'}}},'status':" status "}"
#define NODE(name, status)                                                                                   \
        "{'name':'" name "','ipAddress':'10.0.0.1','cliqueID':'" CLIQUE_1 "','index':0,'status':'" status "'}"

static inline struct member ready(const char *node, int64_t index) {
        return (struct member){ .entry = { node, "10.0.0.1", CLIQUE_1, "Ready", index },
                                .listed = true,
                                .why = MEMBER_READY,
                                .message = "",
                                .wanted = true };
}

static inline struct member state(const char *node, enum member_why why, const char *message, bool listed) {
        return (struct member){ .entry = { node, "", CLIQUE_1, "NotReady", listed ? 0 : -1 },
                                .listed = listed,
                                .why = why,
                                .message = message,
                                .peers_connected = -1,
                                .wanted = true };
}

/* The verdict about n members of one clique. */
static inline struct verdict judge(struct arena *a, const struct compute_domain *cd, struct member *m,
                                   size_t n, const char *problem) {
        struct member_clique c = { .id = CLIQUE_1 };
        struct membership f = { .members = m, .n_members = n, .cliques = &c, .n_cliques = 1 };
        struct verdict_problem p = { problem, problem };
        struct verdict v;
        for (size_t i = 0; i < n; i++)
                c.n_listed += m[i].listed;
        verdict_make(&(struct verdict_input){ cd, p, true, 1000 }, &f, a, &v);
        assert_null(verdict_check(&v, a));
        return v;
}

/* The object with the written status of a verdict, as the API server returns it. */
static inline const struct compute_domain *written(struct arena *a, const struct compute_domain *cd,
                                                   const struct verdict *v, size_t *ret_bytes) {
        struct buf b = BUF_INIT(4 << 20), all = BUF_INIT(4 << 20);
        objects_status(cd, v, &b);
        *ret_bytes = b.n;
        assert_false(b.failed);
        buf_addf(&all,
                 "{\"metadata\":{\"name\":\"cd\",\"namespace\":\"w\",\"uid\":\"" UID_A
                 "\",\"resourceVersion\":\"1\",\"generation\":3},%s",
                 strstr(buf_str(&b), "\"status\":{"));
        const struct compute_domain *out = arena_alloc(a, sizeof *out);
        struct err e;
        if (jd_decode_text(compute_domain_fields, (struct str){ buf_str(&all), all.n }, "", a,
                           (void *)(uintptr_t)out, &e) < 0)
                fail_msg("%s", e.msg);
        buf_done(&b);
        buf_done(&all);
        return out;
}
