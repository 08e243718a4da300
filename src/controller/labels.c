/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/labels.h"

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/log.h"
#include "controller/assignments.h"
#include "controller/checks.h"
#include "controller/go_domains.h"
#include "controller/removals.h"
#include "controller/shared_device.h"
#include "rules/rules.h"

/* LATE_MS: how long a write of only the ComputeDomain's label may wait. The label is for people, except if
 * the Go driver formed the ComputeDomain: then its DaemonSet selects the node by it. */
enum { MAX_BODY = 64 << 10, LATE_MS = 3000 };

/* The claims that justify a label on the Node. */
struct justified {
        const struct controller *c;
        const char *current;
        struct allocation *list;
        size_t n, cap;
};

static void add_justified(void *u, const struct allocation *x) {
        struct justified *j = u;
        const struct compute_domain *cd = records_domain(j->c, x->domain_uid);
        if (!cd || !domain_takes(cd, j->current) || !streq(cd->o.meta.ns, x->ns))
                return;
        if (!mode_labels_node(j->c->mode, records_other_mode(j->c, cd), streq(x->domain_uid, j->current)))
                return;
        /* A ComputeDomain of the Go driver gets no new nodes. */
        if (!streq(x->domain_uid, j->current) && go_domains_is(j->c, x->domain_uid))
                return;
        GROW(j->list, j->n, j->cap);
        j->list[j->n++] = *x;
}

/* The caller frees the list. */
static struct justified justified_on(const struct controller *c, const char *node) {
        const struct node *n = records_node(c, node);
        struct justified j = { .c = c, .current = n ? n->domain_uid : NULL };
        allocations_on_node(c->allocations, node, add_justified, &j);
        return j;
}

const char *labels_of(const struct controller *c, const char *name) {
        struct justified j = justified_on(c, name);
        const char *uid = rules_label(j.current, j.list, j.n);
        free(j.list);
        return uid;
}

struct claimed {
        const struct compute_domain *cd;
        bool is;
};

static void labels_check_claim(void *u, const struct allocation *x) {
        struct claimed *k = u;
        k->is = k->is || (streq(x->domain_uid, k->cd->o.meta.uid) && streq(x->ns, k->cd->o.meta.ns));
}

/* Whether the right label may be written although it replaces or removes the present one. */
static bool may_write_label(struct controller *c, const struct node *n, const char *key,
                            struct rules_label_facts *ret) {
        const char *name = n->o.meta.name, *uid = n->domain_uid;
        const struct compute_domain *cd = records_domain(c, uid);
        struct claimed claimed = { .cd = cd };
        /* The controller does not see claims for the shared channel in this mode. A daemon may still serve
         * them, and ends with its ComputeDomain. */
        if (mode_assigns_channels(c->mode) && cd && !domain_ends(cd) && records_other_mode(c, cd))
                return false;
        if (cd)
                allocations_on_node(c->allocations, name, labels_check_claim, &claimed);
        *ret = (struct rules_label_facts){ .ending = cd && domain_ends(cd),
                                           .claimed = claimed.is,
                                           .stale = records_stale(c) != NULL };
        enum rules_label_step step = rules_label_step(uid, ret);
        if (step == RULES_LABEL_ASK) {
                _cleanup_(buf_done) struct buf claim = BUF_INIT(1024);
                live_read_on_node(uid, name, &claim);
                ret->confirmed = cd ? live_read_absent(c->live_read, LIVE_READ_CLAIM, cd->o.meta.ns,
                                                       buf_str(&claim), key)
                                    : live_read_absent(c->live_read, LIVE_READ_DOMAIN, NULL, uid, key);
                step = rules_label_step(uid, ret);
        }
        if (step == RULES_LABEL_PAUSE)
                records_pause(c, key);
        return step == RULES_LABEL_WRITE;
}

/* The label of the domain. False: it stays for now. */
static bool find_label(struct controller *c, const struct node *n, const char *key, const char **ret) {
        struct justified j = justified_on(c, n->o.meta.name);
        struct rules_label_facts facts = { 0 };
        const char *broken = NULL;

        *ret = rules_label(j.current, j.list, j.n);
        bool differs = !streq(*ret, j.current) && may_write_label(c, n, key, &facts);
        if (differs)
                broken = rules_label_check(j.current, *ret, j.list, j.n, &facts);
        free(j.list);
        if (broken)
                checks_failed(c, CHECKS_LABEL, EVENT_NODE(n->o.meta.name), broken);
        return differs && !broken;
}

/* ---- the daemon on the node ---- */

/* In host-managed mode a daemon of an earlier mode stays until the node has left its IMEX domain. A daemon
 * that is no longer wanted is removed only while it is idle. */
static bool daemon_wanted(struct controller *c, const struct node *n, const char *key) {
        const char *name = n->o.meta.name, *clique = records_node_clique(c, name);
        bool has = n->imex_daemon != NULL;
        if (!clique) /* the partition of the node is unknown */
                return has;
        bool wanted = *clique && !go_domains_occupy(c, n) &&
                      (mode_runs_daemons(c->mode) || (has && assignments_list_at(c, clique, name)));
        if (wanted)
                removals_withdraw(c, name, REMOVALS_NODE);
        if (wanted || !has)
                return wanted;
        if (records_stale(c)) {
                records_pause(c, key);
                return true;
        }
        /* The fabric object marks the daemon first, so that it gets no assignment any more. */
        const struct daemon_pod *p = records_daemon(c, name);
        return p && !removals_ask(c, p, REMOVALS_NODE);
}

/* The clique ID in the node's ResourceSlice; without a ResourceSlice, the last known one. */
static const char *clique_of(const struct controller *c, const struct node *n) {
        const char *clique = records_node_clique(c, n->o.meta.name);
        if (!clique)
                return n->clique_id;
        return *clique ? clique : NULL;
}

/* ---- labels that other clients change ---- */

static void labels_on_written(void *u, const struct writes_target *about, yyjson_val *obj,
                              const struct err *e) {
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
        key_render(KEY_NODE, name, &key);
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
        event_record(c->events, EVENT_NODE(name), EVENT_WARNING, REASON_COMPUTE_DOMAIN_LABEL_CHANGED,
                     "label " CD_LABEL " was %s%s by another client. Only the driver may write it, because "
                     "it names the ComputeDomain of the pods on this node, and starts and stops IMEX "
                     "here. The driver restores the label. Stop the client that writes it",
                     is->domain_uid ? "set to " : "removed", str_or(is->domain_uid, ""));
}

void labels_reconcile(struct controller *c, const char *name) {
        const struct node *n = records_node(c, name);
        struct objects_node_patch p = { 0 };
        bool late = false;
        _cleanup_(buf_done) struct buf key = BUF_INIT(1024);
        key_render(KEY_NODE, name, &key);
        if (n) {
                p.versioned = p.set_domain = find_label(c, n, buf_str(&key), &p.domain_uid);
                p.set_gpu_clique =
                        rules_gpu_label(c->config->gpu_clique_label, n->gpu_clique, n->gpu_clique_ours,
                                        records_node_clique(c, name), &p.gpu_clique, &p.gpu_clique_ours);
                p.daemon = daemon_wanted(c, n, buf_str(&key)) ? "true" : NULL;
                p.set_daemon = !streq(p.daemon, n->imex_daemon);
                p.shared = shared_device_is_on(c, n) ? "true" : NULL;
                p.set_shared = !streq(p.shared, n->shared);
                p.clique = p.daemon || mode_assigns_channels(c->mode) ? clique_of(c, n) : NULL;
                p.set_clique = !streq(p.clique, n->clique_id);
                p.versioned = p.versioned || (p.set_daemon && !p.daemon) || (p.set_shared && !p.shared);
                late = p.set_domain && !n->domain_uid && !p.set_daemon && !p.set_shared && !p.set_clique &&
                       !p.set_gpu_clique;
        }
        if (p.set_domain || p.set_daemon || p.set_shared || p.set_clique || p.set_gpu_clique) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
                objects_node(&n->o.meta, &p, &b);
                writes_try(c->writes, &(struct writes_request){
                                              .requester = buf_str(&key),
                                              .verb = KUBE_MERGE_PATCH,
                                              .res = &kube_nodes,
                                              .name = name,
                                              .batch_ms = late ? LATE_MS : 0,
                                              .body = { buf_str(&b), b.n },
                                              .metadata_only = true,
                                              .cache = c->caches.nodes,
                                              .done = p.set_domain ? labels_on_written : NULL,
                                              .u = c,
                                      });
        } else {
                writes_forget(c->writes, buf_str(&key));
        }
}
