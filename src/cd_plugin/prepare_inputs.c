/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/prepare_inputs.h"

#include <stdio.h>

#include "api/names.h"
#include "node/claims.h"

static void fetched_some(struct op *op);

static void on_domains_retry(void *u, const struct err *e) {
        struct op *op = u;
        if (!op_is_busy(op))
                snprintf(op->msg, sizeof op->msg, "cannot read ComputeDomains: %s", e->msg);
}

static void start_list(struct op *op, const char *ns, bool fresh);

static void on_domains(void *u, struct lookup_list *l, const struct err *e) {
        struct op *op = u;
        struct prepare_inputs *g = op->own;
        g->lookup = NULL;
        /* It was requested while the claim waited, and the claim no longer waits. */
        if (op_is_busy(op)) {
                lookup_list_free(l);
                return;
        }
        if (!e) {
                lookup_list_free(g->domains);
                g->domains = l;
                fetched_some(op);
                return;
        }
        if (g->one) { /* a role of an older chart allows only lists */
                start_list(op, op->ns, false);
                return;
        }
        on_domains_retry(op, e);
        op_fail(op, op->msg);
}

/* NULL: the claim does not have the name of its domain. */
static const char *prepare_inputs_hint(const struct op *op) {
        const char *name = jd_pair_get(op->claim.annotations, op->claim.n_annotations, CD_ANNOTATION_NAME);
        return name && str_is_dns_subdomain(name) ? name : NULL;
}

/* The present list stays until the new one has arrived. */
static void start_list(struct op *op, const char *ns, bool fresh) {
        struct prepare_inputs *g = op->own;
        lookup_cancel(g->lookup);
        g->one = false;
        g->all = !ns;
        g->fresh = fresh;
        g->lookup = lookup_start(op->c->o.kube, ns, fresh, on_domains, on_domains_retry, op);
}

static void start_first(struct op *op) {
        struct prepare_inputs *g = op->own;
        const char *name = prepare_inputs_hint(op);
        if (!name) {
                start_list(op, op->ns, false);
                return;
        }
        g->one = true;
        g->lookup = lookup_get(op->c->o.kube, op->ns, name, on_domains, on_domains_retry, op);
}

static void on_fabric_failed(void *u, const struct err *e) {
        struct op *op = u;
        const struct cd *cd = op->c->o.u;
        if (!op_is_busy(op))
                snprintf(op->msg, sizeof op->msg, "cannot read ComputeDomainFabric '%s': %s",
                         fabric_watch_clique(cd->o.fabric), e->msg);
}

static void prepare_inputs_on_fabric(void *u, const struct err *e) {
        struct op *op = u;
        if (e)
                on_fabric_failed(op, e);
        /* A prepared claim keeps its channel, whatever the fabric object has now. */
        if (e && !op_is_busy(op) && !op_prepared_before(op))
                op_fail(op, op->msg);
        else if (op->phase == OP_FETCHING)
                fetched_some(op);
        else
                claims_reevaluate(op->c);
}

static void ask_fabric(struct op *op) {
        const struct cd *cd = op->c->o.u;
        struct prepare_inputs *g = op->own;
        g->fabric = fabric_ask_start(cd->o.fabric, prepare_inputs_on_fabric, on_fabric_failed, op);
}

static void fetched_some(struct op *op) {
        const struct cd *cd = op->c->o.u;
        const struct prepare_inputs *g = op->own;
        bool need_list = false, need_all = false, missed = false;
        if (!op->arena)
                return;
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct cd_request *w = cd_request_of(&op->requests[i]);
                need_list = need_list || !w->is_daemon;
                need_all = need_all || (w->is_daemon && !w->is_own); /* its domain may be in any namespace */
                missed = missed || (!w->is_own && !lookup_find(g->domains, w->config.domain_id));
        }
        if (need_all && !g->all)
                start_list(op, NULL, false);
        else if (need_list && !g->domains && !g->lookup)
                start_first(op);
        else if (missed && g->domains && !g->fresh) /* the domain may be newer than the API server's cache */
                start_list(op, g->all ? NULL : op->ns, true);
        if (need_list && cd->o.fabric && !g->fabric)
                ask_fabric(op);
        if ((need_list || need_all) && g->lookup)
                return;
        if (need_list && g->fabric && !op_prepared_before(op) && fabric_ask_pending(g->fabric))
                return;
        op_fetched(op);
}

void prepare_inputs_start(void *u, struct op *op) {
        fetched_some(op);
}

void prepare_inputs_fetch(void *u, struct op *op) {
        const struct cd *cd = u;
        op->own = xnew(struct prepare_inputs);
        /* Daemon claims do not need the fabric object. */
        if (cd->o.fabric && (!mode_runs_daemons(cd->o.mode) || !cd_requests_manages(&cd->o, op->ns)))
                ask_fabric(op);
}

void prepare_inputs_release(void *u, struct op *op) {
        struct prepare_inputs *g = op->own;
        if (!g)
                return;
        lookup_cancel(g->lookup);
        lookup_list_free(g->domains);
        lookup_watch_put(g->watch);
        fabric_ask_cancel(g->fabric);
        go_clique_free(g->clique);
        gate_watch_free(g->gate);
        free(g);
}

/* Only a list of the stored state proves that a domain of an earlier list has been deleted. */
void prepare_inputs_recheck(struct op *op) {
        const struct prepare_inputs *g = op->own;
        for (size_t i = 0; i < op->n_requests && g->domains && !g->lookup; i++) {
                const struct cd_request *w = cd_request_of(&op->requests[i]);
                if (!w->is_daemon && lookup_watch_misses(g->watch, w->config.domain_id))
                        start_list(op, g->all ? NULL : op->ns, true);
        }
}

void prepare_inputs_investigate(void *u, struct op *op) {
        const struct cd *cd = u;
        struct prepare_inputs *g = op->own;
        bool channel = false;
        for (size_t i = 0; i < op->n_requests; i++)
                channel = channel || !cd_request_of(&op->requests[i])->is_daemon;
        if (channel && !g->watch)
                g->watch = lookup_watch_get(cd->watches, op->ns);
        if (channel && g->fabric && op->waits_for == WAITS_FOR_FABRIC)
                fabric_ask_again(g->fabric);
        if (g->clique)
                go_clique_ask_again(g->clique);
        prepare_inputs_recheck(op);
}

static void on_clique(void *u) {
        const struct op *op = u;
        claims_reevaluate(op->c);
}

bool prepare_inputs_get_clique(struct op *op, const struct prepare_daemon *d, struct prepare_question *q) {
        const struct cd *cd = op->c->o.u;
        struct prepare_inputs *g = op->own;
        bool labelled;
        if (!g->clique)
                g->clique = go_clique_ask(&(struct go_clique_options){
                        .client = op->c->o.kube,
                        .ns = d->go_ns,
                        .domain_uid = d->go_domain,
                        .clique_id = facts_get(cd->o.facts)->fabric.clique_id,
                        .node = cd->o.node,
                        .answered = on_clique,
                        .u = op,
                });
        const char *why = go_clique_see(g->clique, &q->clique, &labelled);
        q->go_unlabelled = !labelled;
        if (why)
                snprintf(op->msg, sizeof op->msg, "%s: %s", cd->o.node, why);
        return !why;
}

static void on_gate(void *u) {
        const struct op *op = u;
        claims_reevaluate(op->c);
}

bool prepare_inputs_get_gate(struct op *op, const struct cd_request *w, const struct gated_domain **ret) {
        struct prepare_inputs *g = op->own;
        if (!g->gate)
                g->gate = gate_watch_new(op->c->o.kube, w->domain_ns, w->domain_name, on_gate, op);
        return gate_watch_see(g->gate, w->config.domain_id, ret);
}
