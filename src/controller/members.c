/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/members.h"

#include "model/daemon_report.h"
#include "rules/member_gather.h"
#include "rules/message.h"

static const struct node *members_node(void *u, const char *name) {
        return records_node(u, name);
}

static const char *members_clique(void *u, const char *node) {
        return records_node_clique(u, node);
}

static const struct daemon_pod *members_daemon(void *u, const char *node) {
        return records_daemon(u, node);
}

static const struct compute_domain_fabric *members_fabric(void *u, const char *clique) {
        return records_fabric(u, clique);
}

struct members_visit {
        member_fabric_fn *fn;
        void *v;
};

static bool members_visit(void *u, const struct kube_object *o) {
        const struct members_visit *x = u;
        x->fn(x->v, (const struct compute_domain_fabric *)o);
        return true;
}

static void members_fabrics(void *u, member_fabric_fn *fn, void *v) {
        const struct controller *c = u;
        struct members_visit x = { fn, v };
        kube_informer_each(c->fabrics, members_visit, &x);
}

static void members_allocations(void *u, const char *domain_uid, member_allocation_fn *fn, void *v) {
        const struct controller *c = u;
        allocations_of_domain(c->allocations, domain_uid, fn, v);
}

/* The caches of the controller. The functions above do not change it. */
static struct member_source members_source(const struct controller *c) {
        union {
                const struct controller *in;
                void *out;
        } u = { .in = c };
        return (struct member_source){ members_node,    members_clique,      members_daemon, members_fabric,
                                       members_fabrics, members_allocations, .u = u.out };
}

size_t members_of(const struct controller *c, const struct compute_domain *cd, struct arena *a,
                  const struct member_facts **ret) {
        struct member_source s = members_source(c);
        return member_gather(&s, cd->o.meta.uid, cd->o.meta.ns, a, ret);
}

static const char *members_error_of(const struct controller *c, enum key_kind kind, const char *name) {
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        key_render(kind, name, &key);
        return writes_error(c->writes, buf_str(&key));
}

const char *members_error(const struct controller *c, const struct member_facts *list, size_t n) {
        const char *error = NULL;
        for (size_t i = 0; i < n && !error && writes_failing(c->writes); i++) {
                const struct member_facts *x = &list[i];
                if (x->wanted && !x->pod)
                        error = writes_error(c->writes, KEY_OF_DAEMONS);
                if (x->wanted && !error)
                        error = members_error_of(c, KEY_NODE, x->name);
                if (x->wanted && !error && x->clique && *x->clique)
                        error = members_error_of(c, KEY_FABRIC, x->clique);
        }
        return error;
}

size_t members_assigned(const struct controller *c, const char *uid, struct arena *a,
                        const char **ret_names) {
        struct member_source s = members_source(c);
        const struct member_facts *list;
        struct message_list names = { 0 };
        struct daemon_report r;
        size_t n = member_gather_assigned(&s, uid, a, &list);
        for (size_t i = 0; i < n; i++) {
                const struct daemon_pod *daemon = records_daemon(c, list[i].name);
                if (daemon && member_gather_report(daemon, a, &r) && *r.waits_for)
                        message_add(&names, "%s (%.300s)", list[i].name, r.waits_for);
                else
                        message_add(&names, "%s", list[i].name);
        }
        *ret_names = message_end(&names, a);
        return n;
}
