/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/agents.h"

#include "api/names.h"
#include "api/resources.h"
#include "controller/agent_seats.h"
#include "controller/fabrics.h"

enum {
        MAX_BODY = 1 << 20,
        LOOK_AGAIN_MS = 1000,
};

static void submit(struct controller *c, enum kube_verb verb, const struct kube_resource *res,
                   const char *name, struct kube_informer *cache, const struct buf *b) {
        writes_try(c->writes, &(struct writes_request){ .requester = RECORDS_AGENTS,
                                                        .verb = verb,
                                                        .res = res,
                                                        .ns = c->settings.ns,
                                                        .name = name,
                                                        .body = { buf_str(b), b->n },
                                                        .cache = cache });
}

static void remove_object(struct controller *c, const struct kube_resource *res, const struct kube_meta *m,
                          const char *version, struct kube_informer *cache) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        objects_delete(m, version, false, &b);
        submit(c, KUBE_DELETE, res, m->name, cache, &b);
}

static const struct daemonset *find_set(const struct controller *c) {
        return (const struct daemonset *)kube_informer_get(c->agent_sets, c->settings.ns, CD_AGENT_OBJECT);
}

/* ---- where they are on ---- */

static void want_template(struct controller *c) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        if (kube_informer_get(c->agent_rcts, c->settings.ns, CD_AGENT_OBJECT))
                return; /* its spec cannot be changed */
        objects_agents_rct(c->settings.resource_api, c->settings.ns, &b);
        submit(c, KUBE_APPLY, &kube_resource_claim_templates, CD_AGENT_OBJECT, c->agent_rcts, &b);
}

static void want_set(struct controller *c, const struct daemonset *set, const char *hash) {
        int64_t applied = writes_generation(c->writes, RECORDS_AGENTS, &kube_daemonsets, c->settings.ns,
                                            CD_AGENT_OBJECT);
        if (!applied)
                applied = WRITES_MADE_GENERATION;
        if (set &&
            (set->o.meta.deleted || (streq(set->template_hash, hash) && set->o.meta.generation == applied)))
                return;
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        objects_agents(&c->settings, &b);
        submit(c, KUBE_APPLY, &kube_daemonsets, CD_AGENT_OBJECT, c->agent_sets, &b);
}

struct replacing {
        struct controller *c;
        const char *hash;
        bool stale;
};

/* Nobody uses the IMEX of its node, and nobody is about to. */
static bool is_idle(const struct controller *c, const struct agent_pod *p) {
        bool never_ran = streq(p->pod.phase, "Pending") && !p->seen;
        return !p->seat && !p->held && (p->seen || never_ran) &&
               !agent_seats_list_at(c, p->pod.clique_id, p->pod.node);
}

static bool replace(void *u, const struct kube_object *o) {
        struct replacing *r = u;
        const struct agent_pod *p = (const struct agent_pod *)o;
        if (p->pod.template_hash && !streq(p->pod.template_hash, r->hash) && !o->meta.deleted &&
            is_idle(r->c, p)) {
                if (r->stale)
                        records_hold(r->c, RECORDS_AGENTS);
                else if (fabrics_writing(r->c, p->pod.clique_id)) /* it may be given a place just now */
                        work_queue_add_after(r->c->queue, RECORDS_AGENTS, LOOK_AGAIN_MS);
                else
                        remove_object(r->c, &kube_pods, &o->meta, o->meta.rv, r->c->agents);
        }
        return true;
}

/* ---- where they are off ---- */

static bool note(void *u, const struct kube_object *o) {
        *(bool *)u = true;
        return false;
}

static bool note_labelled(void *u, const struct kube_object *o) {
        return !((const struct node *)o)->imex_agent || note(u, o);
}

struct asking {
        const struct controller *c;
        bool any;
};

static bool note_domain(void *u, const struct kube_object *o) {
        struct asking *k = u;
        k->any = k->any || records_has_agents(k->c, (const struct compute_domain *)o);
        return !k->any;
}

/* A node that is labelled, an agent that lives, or a domain that may want one. */
static bool are_needed(const struct controller *c) {
        struct asking k = { .c = c };
        bool any = false;
        kube_informer_each(c->agents, note, &any);
        if (!any)
                kube_informer_each(c->nodes, note_labelled, &any);
        if (!any)
                kube_informer_each(c->cds, note_domain, &k);
        return any || k.any;
}

static void want_none(struct controller *c, const struct daemonset *set, bool stale) {
        const struct kube_object *rct = kube_informer_get(c->agent_rcts, c->settings.ns, CD_AGENT_OBJECT);
        if ((!set && !rct) || are_needed(c))
                return;
        if (stale) {
                records_hold(c, RECORDS_AGENTS);
                return;
        }
        if (set && !set->o.meta.deleted)
                remove_object(c, &kube_daemonsets, &set->o.meta, NULL, c->agent_sets);
        if (!set && !rct->meta.deleted)
                remove_object(c, &kube_resource_claim_templates, &rct->meta, NULL, c->agent_rcts);
}

void agents_reconcile(struct controller *c) {
        if (!records_agents_synced(c))
                return;
        const struct daemonset *set = find_set(c);
        bool stale =
                records_stale(c) || !kube_informer_current(c->agents) || !kube_informer_current(c->fabrics);
        writes_begin(c->writes, RECORDS_AGENTS);
        if (mode_runs_agents(c->mode)) {
                char hash[17];
                objects_agents_hash(&c->settings, hash);
                want_template(c);
                want_set(c, set, hash);
                if (set && streq(set->template_hash, hash))
                        kube_informer_each(c->agents, replace, &(struct replacing){ c, hash, stale });
        } else {
                want_none(c, set, stale);
        }
        writes_end(c->writes, RECORDS_AGENTS);
}
