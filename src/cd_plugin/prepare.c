/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "cdi/cdi.h"
#include "cd_plugin/claims_priv.h"
#include "cd_plugin/devices.h"
#include "cd_plugin/edits.h"

/* ---- fetching: the claim, and the domains of its namespace; for as long as the kubelet waits ---- */

static void fetched_some(struct op *op);

static void on_domains_retry(void *u, const struct err *e) {
        struct op *op = u;
        if (op->phase != OP_BATCH)
                snprintf(op->msg, sizeof op->msg, "cannot list ComputeDomains: %s", e->msg);
}

static void on_domains(void *u, struct lookup_list *l, const struct err *e) {
        struct op *op = u;
        op->lookup = NULL;
        /* It was asked for while the claim waited, and the claim waits no longer. */
        if (op->phase == OP_BATCH) {
                lookup_list_free(l);
                return;
        }
        if (!e) {
                lookup_list_free(op->domains);
                op->domains = l;
                fetched_some(op);
                return;
        }
        on_domains_retry(op, e);
        claims__fail(op, op->msg);
}

/* The list that is there stays until the new one has come. */
static void start_lookup(struct op *op, const char *ns, bool fresh) {
        lookup_cancel(op->lookup);
        op->domains_all = !ns;
        op->domains_fresh = fresh;
        op->lookup = lookup_start(op->c->o.kube, ns, fresh, on_domains, on_domains_retry, op);
}

static void on_claim_retry(void *u, const struct err *e) {
        struct op *op = u;
        snprintf(op->msg, sizeof op->msg, "cannot read the ResourceClaim: %s", e->msg);
}

static void on_claim(void *u, yyjson_val *obj, const struct err *error) {
        struct op *op = u;
        struct err e;
        op->get = NULL;
        op->get_ns = uv_hrtime() - op->began_ns;
        if (error) {
                on_claim_retry(op, error);
                claims__fail(op, op->msg);
                return;
        }
        op->arena = arena_new(4096);
        if (wants_take(op, obj, &e) < 0) {
                op->permanent = true;
                plugin_metrics_error(op->c->o.metrics, true, false);
                claims__fail(op, e.msg);
                return;
        }
        fetched_some(op);
}

static void start_get(struct op *op) {
        if (!kube_resource_api(op->c->o.kube)) {
                snprintf(op->msg, sizeof op->msg,
                         "the Kubernetes API server has not yet said which version of resource.k8s.io it "
                         "serves");
                return; /* prepare_api_known() */
        }
        op->get = kube_start(op->c->o.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                                    .res = &kube_resource_claims,
                                                                    .ns = op->ns,
                                                                    .name = op->name,
                                                                    .attempts = UINT_MAX,
                                                                    .backoff_max_ms = LOOKUP_BACKOFF_MAX_MS,
                                                                    .done = on_claim,
                                                                    .retry = on_claim_retry,
                                                                    .u = op });
}

static void fetched_some(struct op *op) {
        bool need_list = false, need_all = false, missed = false;
        if (!op->arena)
                return;
        for (size_t i = 0; i < op->n_wants; i++) {
                const struct want *w = &op->wants[i];
                bool nameless = w->is_daemon && (!w->domain_name || !w->domain_ns);
                need_list = need_list || !w->is_daemon;
                need_all = need_all || nameless;
                missed = missed ||
                         ((!w->is_daemon || nameless) && !lookup_find(op->domains, w->config.domain_id));
        }
        if (need_all && !op->domains_all)
                start_lookup(op, NULL, false);
        else if (need_list && !op->domains && !op->lookup)
                start_lookup(op, op->ns, false);
        else if (missed && op->domains &&
                 !op->domains_fresh) /* it may be newer than the API server's cache */
                start_lookup(op, op->domains_all ? NULL : op->ns, true);
        if ((need_list || need_all) && op->lookup)
                return;
        op->fetched = true;
        op->msg[0] = '\0';
        claims__queue(op);
}

void prepare_fetch(struct op *op) {
        op->phase = OP_FETCHING;
        start_get(op);
        /* Not after the claim but beside it. Daemon claims know their domain, or need another list. */
        if (!claims_manages(&op->c->o, op->ns))
                start_lookup(op, op->ns, false);
}

void prepare_api_known(struct op *op) {
        if (op->phase == OP_FETCHING && !op->get && !op->arena)
                start_get(op);
}

void prepare_release(struct op *op) {
        kube_cancel(op->get);
        lookup_cancel(op->lookup);
        lookup_list_free(op->domains);
        lookup_watch_put(op->watch);
        arena_free(op->arena);
        op->get = NULL;
        op->lookup = NULL;
        op->domains = NULL;
        op->watch = NULL;
        op->arena = NULL;
}

/* ---- judging ---- */

static enum verdict say(struct op *op, enum verdict v, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static enum verdict say(struct op *op, enum verdict v, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(op->msg, sizeof op->msg, fmt, ap);
        va_end(ap);
        op->permanent = v == VERDICT_FAIL;
        return v;
}

/* The recorded devices can be answered as they are: they say for which requests, and the file that the
 * runtime will read is there. */
static bool answerable(const struct claims *c, const struct checkpoint_claim *entry) {
        bool needs_file = false;
        for (size_t i = 0; i < entry->n_devices; i++) {
                if (!entry->devices[i].name || !entry->devices[i].pool || !entry->devices[i].requests[0])
                        return false;
                needs_file = needs_file || entry->devices[i].cdi_ids[0];
        }
        if (!needs_file)
                return entry->n_devices > 0;
        _cleanup_(freep) char *path = cdi_path(c->o.cdi_root, CD_CDI_KIND_CLAIM, entry->uid);
        return access(path, F_OK) == 0;
}

/* Somebody else's claim that has this device, or NULL. */
static const struct checkpoint_claim *holder(const struct op *op, const struct want *w) {
        for (const struct checkpoint_claim *e = op->c->journal.table.claims; e; e = e->hh.next) {
                for (size_t i = 0;
                     i < e->n_devices && e->state == CHECKPOINT_COMPLETED && !streq(e->uid, op->uid); i++) {
                        if (streq(e->devices[i].name, w->result->device) && !e->devices[i].admin)
                                return e;
                }
        }
        return NULL;
}

static enum verdict judge_holder(struct op *op, struct want *w) {
        const struct checkpoint_claim *other = op->redo || w->result->admin_access ? NULL : holder(op, w);
        op->for_claim = other != NULL;
        if (!other)
                return VERDICT_GO;
        /* The names of another namespace are not the pod's owner's to know; SIGUSR2 logs them. */
        if (!streq(other->ns, op->ns))
                return say(op, VERDICT_WAIT,
                           "%s: device '%s' is still held by a claim of another namespace: a node has one "
                           "channel "
                           "for one pod at a time, so wait for that pod to end, or choose another node",
                           op->c->o.node, w->result->device);
        return say(op, VERDICT_WAIT,
                   "%s: device '%s' is still held by claim '%s/%s' (%s): a node has one channel for one pod "
                   "at a "
                   "time, so wait for that pod to end, delete it, or choose another node",
                   op->c->o.node, w->result->device, other->ns, str_or(other->name, "?"), other->uid);
}

/* Lists come and go. */
static void keep_name(struct op *op, struct want *w, const struct lookup_domain *d) {
        w->domain_name = arena_strdup(op->arena, d->name);
        w->domain_ns = arena_strdup(op->arena, d->ns);
}

static enum verdict judge_domain(struct op *op, struct want *w) {
        const struct lookup_domain *d = lookup_find(op->domains, w->config.domain_id);
        if (op->redo && !w->is_daemon)
                return VERDICT_GO; /* a channel that was granted is not taken back because its domain goes */
        if (w->is_daemon) {
                if (d && (!w->domain_name || !w->domain_ns))
                        keep_name(op, w, d);
                return w->domain_name && w->domain_ns
                               ? VERDICT_GO
                               : say(op, VERDICT_FAIL,
                                     "there is no ComputeDomain %s: this daemon is of one that has been "
                                     "deleted, and goes with it; if it stays, delete its pod",
                                     w->config.domain_id);
        }
        if (!d && w->domain_name) /* lists have shown it, and do not any more */
                return say(op, VERDICT_FAIL, "ComputeDomain '%s/%s' has been deleted", w->domain_ns,
                           w->domain_name);
        if (!d || !streq(d->ns, op->ns))
                return say(op, VERDICT_FAIL,
                           "there is no ComputeDomain %s in namespace '%s' of the claim; if one of the same "
                           "name has been made since, make "
                           "the pod anew",
                           w->config.domain_id, op->ns);
        if (!w->domain_name)
                keep_name(op, w, d);
        if (d->mode && !streq(d->mode, op->c->o.mode->name))
                return say(op, VERDICT_FAIL,
                           "ComputeDomain '%s/%s' was formed with %s IMEX, but this installation is %s (%s): "
                           "delete and recreate it",
                           d->ns, d->name, d->mode, op->c->o.mode->name, op->c->o.mode->chosen_by);
        if (d->deleting || lookup_watch_deleting(op->watch, w->config.domain_id))
                return say(op, VERDICT_FAIL, "ComputeDomain '%s/%s' is being deleted", d->ns, d->name);
        return VERDICT_GO;
}

static enum verdict judge_node(struct op *op, struct want *w) {
        const struct claims *c = op->c;
        const struct facts *f = facts_get(c->o.facts);
        if (!f->usable) {
                op->for_facts = true;
                return say(op, VERDICT_WAIT, "%s: %s", c->o.node, f->message);
        }
        if (c->o.mode->needs_clique && !w->is_daemon && !*f->fabric.clique_id)
                return say(op, VERDICT_FAIL,
                           "%s: host-managed IMEX requires an NVLink clique on this node; NVML reports none "
                           "(%s)",
                           c->o.node, f->fabric.reason);
        return VERDICT_GO;
}

static enum verdict judge_readiness(struct op *op, struct want *w) {
        struct claims *c = op->c;
        bool ready = true;
        if (op->redo || w->is_daemon || facts_get(c->o.facts)->fabric.kind == FABRIC_NONE)
                return VERDICT_GO;
        if (c->o.mode->daemons) {
                ready = readiness_check(c->readiness, &c->journal.table, w->config.domain_id, &op->for_claim,
                                        op->msg, sizeof op->msg);
        } else if (c->o.mode->waits_for_host) {
                /* An answer from before the claim came may be of an IMEX that has ended since. */
                ready = host_imex_ready(c->o.host, op->began_ns, op->msg, sizeof op->msg);
                op->for_host = !ready;
        }
        return ready ? VERDICT_GO : VERDICT_WAIT;
}

enum verdict prepare_judge(struct op *op) {
        static enum verdict (*const steps[])(struct op *, struct want *) = { judge_holder, judge_domain,
                                                                             judge_node, judge_readiness };
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        op->for_facts = op->for_claim = op->for_host = false;
        if (op->recorded && (!entry || entry->state == CHECKPOINT_ABORTED))
                return say(op, VERDICT_FAIL, "the claim was unprepared while it was being prepared");
        op->redo = entry && entry->state == CHECKPOINT_COMPLETED;
        if (op->redo && answerable(op->c, entry))
                return VERDICT_ANSWER;
        if (!op->fetched)
                return VERDICT_FETCH;
        if (!op->n_wants)
                return VERDICT_GO;
        if (entry && entry->state == CHECKPOINT_ABORTED && str_eq(entry->status, op->status))
                return say(op, VERDICT_FAIL,
                           "this allocation of the claim has been unprepared already, so the request is out "
                           "of date");
        for (size_t step = 0; step < ARRAY_LEN(steps); step++) {
                for (size_t i = 0; i < op->n_wants; i++) {
                        enum verdict v = steps[step](op, &op->wants[i]);
                        if (v != VERDICT_GO)
                                return v;
                }
        }
        return VERDICT_GO;
}

/* Only a list of what is stored now says that a domain has gone which a list has shown. */
void prepare_doubt(struct op *op) {
        for (size_t i = 0; i < op->n_wants && op->domains && !op->lookup; i++) {
                const struct want *w = &op->wants[i];
                if (!w->is_daemon && lookup_watch_misses(op->watch, w->config.domain_id))
                        start_lookup(op, op->domains_all ? NULL : op->ns, true);
        }
}

void prepare_look_closer(struct op *op) {
        bool channel = false;
        for (size_t i = 0; i < op->n_wants; i++)
                channel = channel || !op->wants[i].is_daemon;
        if (channel && !op->watch)
                op->watch = lookup_watch_get(op->c->watches, op->ns);
        prepare_doubt(op);
        /* Whoever holds the device may be a claim that the kubelet has forgotten. */
        if (op->for_claim)
                sweep_gone_claims(op->c->sweep, uv_now(op->c->o.loop));
        /* And what it waits for may have come without notice, where the kernel has no watch left for us. */
        claims__kick(op->c);
}

/* ---- carrying out ---- */

static int edit_daemon(struct op *op, const struct want *w, struct arena *a, struct cdi_edits *ret,
                       struct err *e) {
        struct claims *c = op->c;
        const struct facts *f = facts_get(c->o.facts);
        const char *domain = w->config.domain_id;
        _cleanup_(freep) char *dir = readiness_domain_dir(c->o.plugin_dir, domain);
        struct edits_daemon d = {
                .domain_dir = dir,
                .clique_id = f->fabric.clique_id,
                .domain_uid = domain,
                .domain_name = str_or(w->domain_name, ""),
                .domain_ns = str_or(w->domain_ns, ""),
                .claim_uid = op->uid,
                .root = c->o.root,
                .driver_version = f->driver_version,
                .dev_root = c->o.dev_root,
                .proc_driver = c->o.proc_driver,
        };
        if (*d.clique_id && facts_major(c->o.facts, PROC_MAJOR_CAPS, &d.caps_major, e) < 0)
                return -1;
        return edits_for_daemon(a, &d, ret, e);
}

static int edit_channel(struct op *op, const struct want *w, struct arena *a, struct cdi_edits *ret,
                        struct err *e) {
        struct claims *c = op->c;
        unsigned major = 0, count = 1;
        if (!*facts_get(c->o.facts)->fabric.clique_id)
                return 0; /* no fabric: the pod runs without a channel */
        if (facts_major(c->o.facts, PROC_MAJOR_IMEX_CHANNELS, &major, e) < 0)
                return -1;
        if (c->o.mode->daemons && streq(w->config.allocation_mode, "All"))
                count = edits_channel_count(c->o.proc_driver);
        edits_channels(a, major, count, ret);
        return 0;
}

static bool edits_empty(const struct cdi_edits *ed) {
        return !(ed->env && *ed->env) && !ed->n_nodes && !ed->n_mounts;
}

/* The folders of the daemons in a claim, and its CDI file. */
struct effects {
        struct disk_task task;
        const char *plugin_dir, *cdi_root, *node; /* outlive the job, as boot_id and root in the edits do not
                                                     need to: those are copies */
        const char *uid;
        const char **domains; /* NULL-terminated */
        bool keep_state;
        struct cdi_spec spec; /* without devices: no file */
};

static int effect(const struct effects *x, struct err *e) {
        for (const char **d = x->domains; *d; d++) {
                if (readiness_prepare_dir(x->plugin_dir, *d, x->keep_state, e) < 0)
                        return -1;
        }
        return x->spec.n_devices ? cdi_write(x->cdi_root, x->uid, &x->spec, e)
                                 : cdi_remove(x->cdi_root, CD_CDI_KIND_CLAIM, x->uid, e);
}

static int run_effects(struct disk_task *t, struct err *e) {
        const struct effects *x = (const struct effects *)t;
        return effect(x, e) < 0 ? err_wrap(e, "%s", x->node) : 0;
}

static char *copy(struct arena *a, char *s) {
        char *c = arena_strdup(a, s);
        free(s);
        return c;
}

/* The CDI file has one device for each device of ours in the claim that changes anything. */
static int plan_effects(struct op *op, struct effects *x, bool *has_edits, struct err *e) {
        const struct claims *c = op->c;
        struct arena *a = x->task.arena;
        struct cdi_device *devices = arena_alloc(a, (op->n_wants + 1) * sizeof *devices);
        size_t n = 0, n_domains = 0;
        *x = (struct effects){
                .task = x->task,
                .plugin_dir = c->o.plugin_dir,
                .cdi_root = c->o.cdi_root,
                .node = c->o.node,
                .uid = arena_strdup(a, op->uid),
                .domains = arena_alloc(a, (op->n_wants + 1) * sizeof *x->domains),
                .keep_state = op->redo,
        };
        for (size_t i = 0; i < op->n_wants; i++) {
                const struct want *w = &op->wants[i];
                struct cdi_edits edits = { 0 };
                bool twice = false;
                if ((w->is_daemon ? edit_daemon(op, w, a, &edits, e) : edit_channel(op, w, a, &edits, e)) < 0)
                        return -1;
                if (w->is_daemon)
                        x->domains[n_domains++] = arena_strdup(a, w->config.domain_id);
                has_edits[i] = !edits_empty(&edits);
                const char *name = copy(a, xasprintf("%s-%s", op->uid, w->result->device));
                for (size_t j = 0; j < n; j++)
                        twice = twice ||
                                streq(devices[j].name,
                                      name); /* several requests may share a device by admin access */
                if (has_edits[i] && !twice)
                        devices[n++] = (struct cdi_device){ name, edits };
        }
        x->spec = (struct cdi_spec){
                .kind = CD_CDI_KIND_CLAIM,
                .devices = devices,
                .n_devices = n,
                .comment = n ? copy(a, xasprintf("claim %s/%s domain %s boot %s", op->ns, op->name,
                                                 op->wants[0].config.domain_id, c->o.boot_id))
                             : NULL,
        };
        return 0;
}

static void complete(struct op *op, struct arena *a, const bool *has_edits) {
        struct node_device *devices = arena_alloc(a, (op->n_wants + 1) * sizeof *devices);
        for (size_t i = 0; i < op->n_wants; i++) {
                const struct want *w = &op->wants[i];
                const char **requests = arena_alloc(a, 2 * sizeof *requests),
                           **ids = arena_alloc(a, 2 * sizeof *ids);
                requests[0] = w->result->request;
                if (has_edits[i]) {
                        _cleanup_(freep) char *id =
                                xasprintf(CD_CDI_KIND_CLAIM "=%s-%s", op->uid, w->result->device);
                        ids[0] = arena_strdup(a, id);
                }
                devices[i] = (struct node_device){
                        .name = w->result->device,
                        .pool = w->result->pool,
                        .requests = requests,
                        .cdi_ids = ids,
                        .domain = w->config.domain_id,
                        .type = w->is_daemon ? DEVICE_DAEMON : DEVICE_CHANNEL,
                        .admin = w->result->admin_access,
                };
        }
        struct checkpoint_claim *entry =
                checkpoint_put(&op->c->journal.table, op->uid, op->ns, op->name, op->status);
        checkpoint_set_devices(entry, devices, op->n_wants);
        entry->state = CHECKPOINT_COMPLETED;
}

static int do_nothing(struct disk_task *t, struct err *e) {
        (void)t;
        (void)e;
        return 0;
}

int prepare_start(struct op *op, struct err *e) {
        /* Nothing is run of what could not be planned to its end. */
        struct effects *x = disk_task(op->c->disk, sizeof *x, do_nothing);
        bool *has_edits = arena_alloc(x->task.arena, (op->n_wants + 1) * sizeof *has_edits);
        if (plan_effects(op, x, has_edits, e) < 0)
                return err_wrap(e, "%s", op->c->o.node);
        x->task.run = run_effects;
        complete(op, x->task.arena, has_edits);
        op->task = &x->task;
        return 0;
}

void prepare_revoke(struct op *op) {
        /* What was prepared before stays so; its file is missing, which the next Prepare sees. */
        if (!op->redo)
                checkpoint_put(&op->c->journal.table, op->uid, op->ns, op->name, op->status);
}

/* ---- answering ---- */

static void tell_pods(const struct op *op, const char *reason, const char *msg) {
        for (size_t i = 0; i < op->claim.n_consumers; i++) {
                const struct claim_consumer *pod = &op->claim.consumers[i];
                struct event_about about = { "v1", "Pod", op->ns, pod->name, pod->uid };
                if (streq(pod->resource, "pods"))
                        event_record(op->c->o.events, &about, EVENT_WARNING, reason, "%s", msg);
        }
}

/* What the pod's owner should know about the channel, though it is no reason to keep the pod from running. */
static void tell_of_channel(const struct op *op) {
        const struct claims *c = op->c;
        const struct facts *f = facts_get(c->o.facts);
        _cleanup_(freep) char *node = file_join(c->o.dev_root, "dev/nvidia-caps-imex-channels/channel0");
        char msg[700];
        bool channel = false;
        for (size_t i = 0; i < op->n_wants; i++)
                channel = channel || !op->wants[i].is_daemon;
        if (channel && f->fabric.kind == FABRIC_NONE) {
                snprintf(msg, sizeof msg,
                         "node %s has no multi-node NVLink fabric (%s): the pod runs without an IMEX channel",
                         c->o.node, f->fabric.reason);
                tell_pods(op, "NoIMEXChannel", msg);
        } else if (channel && !c->o.mode->daemons && access(node, F_OK) < 0) {
                /* The container gets its own device node. On the host it is the operator's to make, so its
                 * absence tells of a setup that nobody has finished. */
                snprintf(msg, sizeof msg,
                         "node %s has no /dev/nvidia-caps-imex-channels/channel0: the pod gets its channel, "
                         "but check the host's IMEX setup "
                         "(the driver's option NVreg_CreateImexChannel0, or nvidia-modprobe)",
                         c->o.node);
                log_warn("the host has no device node of channel 0", kv_str("path", node));
                tell_pods(op, "IMEXChannelNodeMissing", msg);
        }
}

void prepare_answer(struct op *op) {
        const struct checkpoint_claim *entry = checkpoint_find(&op->c->journal.table, op->uid);
        size_t n = entry ? entry->n_devices : 0;
        struct dra_device *devices = xnew_n(struct dra_device, n + 1);
        for (size_t i = 0; i < n; i++) {
                const struct node_device *d = &entry->devices[i];
                devices[i] = (struct dra_device){
                        .requests = d->requests, .pool = d->pool, .device = d->name, .cdi_ids = d->cdi_ids
                };
        }
        if (op->dra)
                dra_op_prepared(op->dra, devices, n);
        free(devices);
        if (op->verdict == VERDICT_GO)
                tell_of_channel(op);
}
