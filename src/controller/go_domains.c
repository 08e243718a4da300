/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/go_domains.h"

#include "api/names.h"

static bool go_domains_find_living(void *u, const struct kube_object *o) {
        bool *lives = u;
        *lives = *lives || !pod_ended((const struct pod *)o);
        return !*lives;
}

struct search {
        const struct controller *c;
        bool found;
};

static bool find_template(void *u, const struct kube_object *o) {
        struct search *s = u;
        const struct rct *r = (const struct rct *)o;
        s->found = s->found || (streq(r->target, CD_TARGET_DAEMON) && records_owns(s->c, NULL, r));
        return !s->found;
}

bool go_domains_is(const struct controller *c, const char *uid) {
        struct search s = { .c = c };
        if (!uid)
                return false;
        kube_informer_each_at(c->caches.rcts, CONTROLLER_BY_DOMAIN, uid, find_template, &s);
        for (size_t i = 0; i < c->caches.n_namespaces && !s.found; i++) {
                const struct controller_namespace *n = &c->caches.namespaces[i];
                s.found = kube_informer_first_at(n->sets, CONTROLLER_BY_DOMAIN, uid);
                if (!s.found)
                        kube_informer_each_at(n->pods, CONTROLLER_BY_DOMAIN, uid, go_domains_find_living,
                                              &s.found);
        }
        return s.found;
}

bool go_domains_occupy(const struct controller *c, const struct node *n) {
        bool lives = false;
        for (size_t i = 0; i < c->caches.n_namespaces && !lives; i++)
                kube_informer_each_at(c->caches.namespaces[i].pods, CONTROLLER_PODS_BY_NODE, n->o.meta.name,
                                      go_domains_find_living, &lives);
        return lives || go_domains_is(c, n->domain_uid);
}
