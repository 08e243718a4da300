/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/agents.h"

#include "api/names.h"
#include "api/resources.h"
#include "controller/agent_seats.h"
#include "controller/fabrics.h"
#include "rules/message.h"
#include "rules/rules.h"

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
        size_t n, n_coming;       /* agents; replacements that have not reported */
        size_t n_down;            /* those of the latter that crash */
        struct message_list down; /* their nodes */
};

static bool is_outdated(const struct replacing *r, const struct agent_pod *p) {
        return p->pod.template_hash && !streq(p->pod.template_hash, r->hash);
}

/* On a node that is off nothing comes, and nothing waits for it. */
static bool count(void *u, const struct kube_object *o) {
        struct replacing *r = u;
        const struct agent_pod *p = (const struct agent_pod *)o;
        const struct node *n = p->pod.node ? records_node(r->c, p->pod.node) : NULL;
        if (!n || !node_ready(n))
                return true;
        r->n++;
        r->n_coming += o->meta.deleted || (!is_outdated(r, p) && !p->seen);
        if (!o->meta.deleted && !is_outdated(r, p) && !p->seen && rules_is_down(&p->pod)) {
                r->n_down++;
                message_add(&r->down, "%s", p->pod.node);
        }
        return true;
}

/* No more at once than a quarter, and none while so many fail: a template that does not run reaches no more
 * nodes. What crashes already is replaced at once. */
static bool may_replace(const struct replacing *r, const struct agent_pod *p) {
        size_t most = r->n / 4 > 1 ? r->n / 4 : 1;
        return r->n_coming < most || (!p->seen && rules_is_down(&p->pod));
}

static bool replace(void *u, const struct kube_object *o) {
        struct replacing *r = u;
        const struct agent_pod *p = (const struct agent_pod *)o;
        if (!is_outdated(r, p) || o->meta.deleted || agent_seats_in_use(r->c, p) || !may_replace(r, p))
                return true;
        if (r->stale) {
                records_hold(r->c, RECORDS_AGENTS);
        } else if (fabrics_writing(r->c, p->pod.clique_id)) { /* it may be given a place just now */
                work_queue_add_after(r->c->queue, RECORDS_AGENTS, LOOK_AGAIN_MS);
        } else {
                r->n_coming++;
                remove_object(r->c, &kube_pods, &o->meta, o->meta.rv, r->c->agents);
        }
        return true;
}

static void replace_outdated(struct controller *c, const struct daemonset *set, const char *hash,
                             bool stale) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct replacing r = { .c = c, .hash = hash, .stale = stale };
        kube_informer_each(c->agents, count, &r);
        kube_informer_each(c->agents, replace, &r);
        const char *nodes = message_end(&r.down, a);
        if (r.n_down)
                event_record(
                        c->events,
                        &(struct event_about){ "apps/v1", kube_daemonsets.kind, set->o.meta.ns,
                                               set->o.meta.name, set->o.meta.uid },
                        EVENT_WARNING, "AgentsCrash",
                        "IMEX agents end before their first report on: %s. Agents of an earlier template "
                        "are replaced only as far as the new ones run. See kubectl logs --previous of "
                        "the Pods there; if a new version is the cause, helm rollback repairs it",
                        nodes);
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
                        replace_outdated(c, set, hash, stale);
        } else {
                want_none(c, set, stale);
        }
        writes_end(c->writes, RECORDS_AGENTS);
}
