/* SPDX-License-Identifier: Apache-2.0 */
/* fake: creates objects for tests, in the form in which the caches hold them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "api/kinds.h"
#include "api/names.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/domain.h"
#include "model/clique.h"

#define UID_A "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define UID_B "bbbbbbbb-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define CLIQUE_1 "7a3b2f10-1111-4222-8333-444455556666.1"
#define CLIQUE_2 "7a3b2f10-1111-4222-8333-444455556666.2"

/* Replaces ' with ", so that JSON is readable in C. An apostrophe in a value is written as \'. Returns the
 * new length. */
static inline size_t fake_quotes(char *text) {
        size_t n = 0;

        for (const char *p = text; *p; p++)
                if (p[0] == '\\' && p[1] == '\'')
                        text[n++] = *++p;
                else
                        text[n++] = *p == '\'' ? '"' : *p;
        text[n] = '\0';
        return n;
}

/* Decodes JSON that fake_quotes() has changed. The %-arguments are filled in before that. */
__attribute__((format(printf, 4, 0))) static inline void *
fake_decode(struct arena *a, const struct jd_field *fields, size_t size, const char *fmt, va_list ap) {
        struct buf b = BUF_INIT(1 << 20);
        void *out = arena_alloc(a, size);
        struct err e;
        buf_vaddf(&b, fmt, ap);
        b.n = fake_quotes(b.p);
        if (jd_decode_text(fields, (struct str){ buf_str(&b), b.n }, "", a, out, &e) < 0)
                fail_msg("%s: %s", e.msg, buf_str(&b));
        buf_done(&b);
        return out;
}

#define FAKE(name, type, table)                                                                              \
        __attribute__((format(printf, 2, 3), unused)) static inline const struct type *name(                 \
                struct arena *a, const char *fmt, ...) {                                                     \
                va_list ap;                                                                                  \
                va_start(ap, fmt);                                                                           \
                const struct type *o = fake_decode(a, table, sizeof *o, fmt, ap);                            \
                va_end(ap);                                                                                  \
                return o;                                                                                    \
        }
FAKE(fake_cd_json, compute_domain, compute_domain_fields)
FAKE(fake_node_json, node, node_fields)
FAKE(fake_pod_json, pod, pod_fields)
FAKE(fake_plugin_json, plugin_pod, plugin_pod_fields)
FAKE(fake_set_json, daemonset, daemonset_fields)
FAKE(fake_rct_json, rct, rct_fields)
FAKE(fake_clique_json, clique, clique_fields)
FAKE(fake_slice_json, slice, slice_fields)

static inline const struct node *fake_node(struct arena *a, const char *name, bool ready) {
        return fake_node_json(a,
                              "{'metadata':{'name':'%s','uid':'n-%s','resourceVersion':'1'},'status':{'"
                              "conditions':[{'type':'Ready','status':'%s'}]}}",
                              name, name, ready ? "True" : "Unknown");
}

/* A daemon pod that reports whether IMEX is READY, and knows its peers. */
__attribute__((unused)) static inline const struct pod *
fake_daemon(struct arena *a, const char *node, const char *ip, const char *clique, bool ready) {
        return fake_pod_json(
                a,
                "{'metadata':{'name':'d-%s','namespace':'driver','uid':'p-%s','resourceVersion':"
                "'1','labels':{'" CD_LABEL "':'" UID_A "','" CD_LABEL_CLIQUE
                "':'%s'},'annotations':{'" CD_ANNOTATION_TEMPLATE "':'h','" IMEX_ANNOTATION_STATE
                "':'%s','" IMEX_ANNOTATION_READY "':'%s','" IMEX_ANNOTATION_PEERS
                "':'9/9'}},'spec':{'nodeName':'%s'},'status':{'phase':'Running','podIPs':[{'ip':'"
                "%s'}],'conditions':[{'type':'"
                "Ready','status':'%s'}],"
                "'containerStatuses':[{'state':{'running':{}}}]}}",
                node, node, clique, ready ? "READY" : "STARTING", ready ? "true" : "false", node, ip,
                ready ? "True" : "False");
}

/* Returns a random number below `below`: xorshift64, with the same numbers on every machine. */
static uint64_t fake_seed = 88172645463325252U;
static inline uint64_t fake_random(uint64_t below) {
        fake_seed ^= fake_seed << 13;
        fake_seed ^= fake_seed >> 7;
        fake_seed ^= fake_seed << 17;
        return fake_seed % below;
}
