/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of one node. */
#include "controller/labels.h"

#include "api/names.h"
#include "api/resources.h"
#include "base/log.h"
#include "controller/agent_seats.h"
#include "controller/fabrics.h"
#include "rules/rules.h"

/* The label of a domain whose IMEX agents run is for people only. */
enum { MAX_BODY = 64 << 10, LATE_MS = 3000, LOOK_AGAIN_MS = 1000 };

/* The claims that justify a label here. */
struct justified {
        const struct controller *c;
        const char *current;
        struct grant *list;
        size_t n, cap;
};

static void add_justified(void *u, const struct grant *x) {
        struct justified *j = u;
        const struct compute_domain *cd = records_domain(j->c, x->domain_uid);
        if (!cd || !domain_takes(cd, j->current) || !streq(cd->o.meta.ns, x->ns))
                return;
        if (!mode_labels_node(j->c->mode, records_other_mode(j->c, cd), streq(x->domain_uid, j->current)))
                return;
        GROW(j->list, j->n, j->cap);
        j->list[j->n++] = *x;
}

const char *labels_of(const struct controller *c, const char *name) {
        const struct node *n = records_node(c, name);
        struct justified j = { .c = c, .current = n ? n->domain_uid : NULL };
        placements_on_node(c->placements, name, add_justified, &j);
        const char *uid = rules_label(j.current, j.list, j.n);
        free(j.list);
        return uid;
}

struct claimed {
        const struct compute_domain *cd;
        bool is;
};

static void look_at_claim(void *u, const struct grant *x) {
        struct claimed *k = u;
        k->is = k->is || (streq(x->domain_uid, k->cd->o.meta.uid) && streq(x->ns, k->cd->o.meta.ns));
}

/* May the label be written that the rules say, where it takes another's away? */
static bool may_write_label(struct controller *c, const struct node *n, const char *key) {
        const char *name = n->o.meta.name, *uid = n->domain_uid;
        const struct compute_domain *cd = records_domain(c, uid);
        struct claimed claimed = { .cd = cd };
        /* Claims for a channel that all share are seen by nobody here, and a daemon may serve them yet: it
         * ends with its domain. */
        if (mode_assigns_channels(c->mode) && cd && !domain_ends(cd) && records_other_mode(c, cd))
                return false;
        if (cd)
                placements_on_node(c->placements, name, look_at_claim, &claimed);
        struct rules_label_facts facts = { .ending = cd && domain_ends(cd),
                                           .claimed = claimed.is,
                                           .stale = records_stale(c) || records_daemons_stale(c) };
        enum rules_label_step step = rules_label_step(uid, &facts);
        if (step == RULES_LABEL_ASK) {
                _cleanup_(buf_done) struct buf claim = BUF_INIT(1024);
                confirm_on_node(uid, name, &claim);
                facts.confirmed =
                        cd ? confirm_absent(c->confirm, CONFIRM_CLAIM, cd->o.meta.ns, buf_str(&claim), key)
                           : confirm_absent(c->confirm, CONFIRM_DOMAIN, NULL, uid, key);
                step = rules_label_step(uid, &facts);
        }
        if (step == RULES_LABEL_HOLD)
                records_hold(c, key);
        return step == RULES_LABEL_WRITE;
}

/* ---- whether an agent runs IMEX there ---- */

struct agent_wanting {
        const struct controller *c;
        bool pods, agents; /* a domain with the ones, or the others, has a claim here */
};

static void look_at_runner(void *u, const struct grant *x) {
        struct agent_wanting *k = u;
        const struct compute_domain *cd = records_domain(k->c, x->domain_uid);
        if (!cd || domain_ends(cd) || !streq(cd->o.meta.ns, x->ns))
                return;
        if (records_has_agents(k->c, cd) || (mode_is_standing(k->c->mode) && !records_other_mode(k->c, cd)))
                k->agents = true;
        else
                k->pods = true;
}

static bool is_living(void *u, const struct kube_object *o) {
        bool *lives = u;
        *lives = *lives || !pod_ended((const struct pod *)o);
        return !*lives;
}

/* Somebody's daemon Pod has, or is about to get, the one place for IMEX on the node. */
static bool has_daemon(const struct controller *c, const char *node) {
        bool lives = false;
        for (size_t i = 0; i < c->n_namespaces && !lives; i++)
                kube_informer_each_at(c->namespaces[i].pods, CONTROLLER_PODS_BY_NODE, node, is_living,
                                      &lives);
        return lives;
}

/* The agent runs IMEX there, or is listed for it. What is listed for one that cannot run goes with its Pod.
 */
static bool is_busy(const struct controller *c, const char *node, const char *clique) {
        const struct agent_pod *p = records_agent(c, node);
        bool broken = p && !p->seen && rules_is_down(&p->pod);
        return (p && agent_seats_in_use(c, p)) || (!broken && agent_seats_list_at(c, clique, node));
}

/* Who has the node keeps it as long as it is in use: an agent yields only when it is idle. */
static bool agent_wanted(struct controller *c, const struct node *n, const char *key) {
        const char *name = n->o.meta.name, *clique = records_node_clique(c, name);
        struct agent_wanting k = { .c = c };
        bool has = n->imex_agent != NULL;
        if (!clique) /* nobody knows where it belongs */
                return has;
        placements_on_node(c->placements, name, look_at_runner, &k);
        if (*clique && !k.pods && !has_daemon(c, name) && (k.agents || mode_runs_agents(c->mode)))
                return true;
        if (!has || is_busy(c, name, clique))
                return has;
        if (records_stale(c) || !kube_informer_current(c->agents) || !kube_informer_current(c->fabrics)) {
                records_hold(c, key);
                return true;
        }
        if (*clique && fabrics_writing(c, clique)) { /* the node may be given a place just now */
                work_queue_add_after(c->queue, key, LOOK_AGAIN_MS);
                return true;
        }
        return false;
}

/* Is it a domain whose IMEX agents run? */
static bool is_of_agents(const struct controller *c, const char *uid) {
        const struct compute_domain *cd = records_domain(c, uid);
        return cd && c->agents && records_has_agents(c, cd);
}

/* ---- whether somebody else wrote it ---- */

static void on_written(void *u, const struct writes_about *about, yyjson_val *obj, const struct err *e) {
        yyjson_val *labels = yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "labels");
        if (!e)
                records_label_written(u, about->name, yyjson_get_str(yyjson_obj_get(labels, CD_LABEL)));
}

void labels_changed(struct controller *c, const struct node *was, const struct node *is) {
        const char *name = (is ? is : was)->o.meta.name;
        if (!was || !is || !streq(was->o.meta.uid, is->o.meta.uid)) {
                records_forget_written(c, name);
                return;
        }
        if (!c->leading || records_stale(c) || streq(was->domain_uid, is->domain_uid))
                return;
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        buf_addf(&key, "n/%s", name);
        const struct controller_written *ours = records_written(c, name);
        struct rules_relabel_facts f = {
                .is = is->domain_uid,
                .right = labels_of(c, name),
                .sending = writes_sending(c->writes, buf_str(&key), &kube_nodes, NULL, name),
                .wrote = ours != NULL,
                .written = ours ? ours->domain_uid : NULL,
        };
        if (!rules_relabelled(&f))
                return;
        log_warn("the label " CD_LABEL " of a node was changed by another client", kv_str("node", name),
                 kv_str("was", str_or(was->domain_uid, "")), kv_str("is", str_or(is->domain_uid, "")));
        struct event_about node = { "v1", "Node", NULL, name, name };
        event_record(c->events, &node, EVENT_WARNING, "ComputeDomainLabelChanged",
                     "label " CD_LABEL " was %s%s by another client. Only the driver may write it: it names "
                     "the ComputeDomain whose pods run on this node, and starts and ends IMEX there. The "
                     "driver restores it; stop whatever writes it",
                     is->domain_uid ? "set to " : "removed", str_or(is->domain_uid, ""));
}

void labels_reconcile(struct controller *c, const char *name) {
        const struct node *n = records_node(c, name);
        struct objects_node_patch p = { 0 };
        bool late = false;
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        buf_addf(&key, "n/%s", name);
        if (n) {
                p.domain_uid = labels_of(c, name);
                p.versioned = p.set_domain =
                        !streq(p.domain_uid, n->domain_uid) && may_write_label(c, n, buf_str(&key));
                p.set_gpu_clique =
                        rules_gpu_label(c->config->gpu_clique_label, n->gpu_clique, n->gpu_clique_ours,
                                        records_node_clique(c, name), &p.gpu_clique, &p.gpu_clique_ours);
                if (records_agents_synced(c)) {
                        p.agent = agent_wanted(c, n, buf_str(&key)) ? "true" : NULL;
                        p.set_agent = !streq(p.agent, n->imex_agent);
                }
                p.versioned = p.versioned || (p.set_agent && !p.agent);
                late = p.set_domain && !n->domain_uid && !p.set_agent && !p.set_gpu_clique &&
                       is_of_agents(c, p.domain_uid);
        }
        if (p.set_domain || p.set_agent || p.set_gpu_clique) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
                objects_node(&n->o.meta, &p, &b);
                writes_try(c->writes, &(struct writes_request){
                                              .requester = buf_str(&key),
                                              .verb = KUBE_MERGE_PATCH,
                                              .res = &kube_nodes,
                                              .name = name,
                                              .gather_ms = late ? LATE_MS : 0,
                                              .body = { buf_str(&b), b.n },
                                              .cache = c->nodes,
                                              .done = p.set_domain ? on_written : NULL,
                                              .u = c,
                                      });
        } else {
                writes_forget(c->writes, buf_str(&key));
        }
}
