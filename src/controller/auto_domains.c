/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/auto_domains.h"

#include <string.h>

#include "api/names.h"
#include "api/reasons.h"
#include "api/resources.h"
#include "base/clock.h"
#include "base/log.h"

/* The interval limits how often a tenant can cause a creation: the garbage collector deletes a ComputeDomain
 * at once if its owner does not exist. It begins when the cache shows the ComputeDomain, because the answer
 * to a creation may be lost. */
enum { MAX_BODY = 64 << 10, INTERVAL_S = 10 };

/* Returns for how many seconds the ComputeDomain of this key of the queue may not be created again. */
static int64_t interval_left(const struct controller *c, const char *key) {
        int64_t since = first_seen_get(c->memory.undone, key),
                left = since ? since + INTERVAL_S - clock_mono_s() : 0;
        return left > 0 ? left : 0;
}

void auto_domains_changed(struct controller *c, const struct kube_object *old,
                          const struct kube_object *now) {
        _cleanup_(buf_done) struct buf name = BUF_INIT(1024), key = BUF_INIT(1024);
        const struct kube_object *domain = now ? now : old;
        if (!c->caches.auto_pods)
                return;
        buf_addf(&name, "%s/%s", domain->meta.ns, domain->meta.name);
        key_render(KEY_AUTO, buf_str(&name), &key);
        if (now && (!old || !streq(old->meta.uid, now->meta.uid)) &&
            str_starts(domain->meta.name, AUTO_DOMAIN_PREFIX)) {
                first_seen_forget(c->memory.undone, buf_str(&key));
                first_seen_at(c->memory.undone, buf_str(&key), clock_mono_s());
        }
        if (kube_informer_first_at(c->caches.auto_pods, CONTROLLER_AUTO_PODS_BY_DOMAIN, buf_str(&name)))
                records_queue_auto(c, buf_str(&name));
        else if (!now)
                first_seen_forget(c->memory.undone, buf_str(&key));
}

static bool auto_domains_queue_pod(void *u, const struct kube_object *o) {
        records_queue_auto(u, ((const struct auto_pod *)o)->key);
        return true;
}

void auto_domains_queue_all(struct controller *c) {
        if (c->caches.auto_pods)
                kube_informer_each(c->caches.auto_pods, auto_domains_queue_pod, c);
}

/* Chooses the pod that names the owner. The worker of a group does not know the StatefulSet of its leader. */
static bool choose_pod(void *u, const struct kube_object *o) {
        const struct auto_pod **best = u, *p = (const struct auto_pod *)o;
        if (!o->meta.deleted && (!*best || (p->leads && !(*best)->leads)))
                *best = p;
        return true;
}

/* Returns NULL if no pod that runs or waits wants this ComputeDomain. */
static const struct auto_pod *pod_of(const struct controller *c, const char *name) {
        const struct auto_pod *best = NULL;
        if (c->caches.auto_pods)
                kube_informer_each_at(c->caches.auto_pods, CONTROLLER_AUTO_PODS_BY_DOMAIN, name, choose_pod,
                                      &best);
        return best;
}

static struct event_about auto_domains_about(const struct auto_pod *p) {
        const struct kube_meta *m = &p->o.meta;
        return (struct event_about){ "v1", "Pod", m->ns, m->name, m->uid };
}

static void auto_domains_on_made(void *u, const struct writes_target *made, yyjson_val *obj,
                                 const struct err *e) {
        struct controller *c = u;
        const struct auto_pod *p = pod_of(c, key_parse(made->requester).name);
        if (!e)
                log_info("created the ComputeDomain of a workload", kv_str("namespace", made->ns),
                         kv_str("name", made->name));
        if (!p || !e || (e->kind != ERR_DENIED && e->kind != ERR_INVALID))
                return;
        const struct event_about pod = auto_domains_about(p);
        event_record(c->events, &pod, EVENT_WARNING, REASON_AUTO_DOMAIN_NOT_CREATED,
                     "the ComputeDomain '%s', whose claim this Pod uses, cannot be created: %s", made->name,
                     e->msg);
}

static void auto_domains_make(struct controller *c, const struct auto_pod *p, const char *requester) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(MAX_BODY);
        objects_auto_domain(p->o.meta.ns, p->domain, &p->owner, &b);
        writes_try(c->writes, &(struct writes_request){
                                      .requester = requester,
                                      .verb = KUBE_CREATE,
                                      .res = &kube_compute_domains,
                                      .ns = p->o.meta.ns,
                                      .name = p->domain,
                                      .body = { buf_str(&b), b.n },
                                      .interval_ms = INTERVAL_S * 1000,
                                      .cache = c->caches.cds,
                                      .done = auto_domains_on_made,
                                      .u = c,
                              });
}

/* Reports why the pod does not get its claim from the ComputeDomain that has the name. */
static void auto_domains_report(struct controller *c, const struct auto_pod *p,
                                const struct compute_domain *cd) {
        const struct event_about pod = auto_domains_about(p);
        if (!cd->channel || !streq(cd->channel->claim_name, p->domain))
                event_record(c->events, &pod, EVENT_WARNING, REASON_AUTO_DOMAIN_NAME_TAKEN,
                             "the ComputeDomain '%s' has the name that the ComputeDomain of this Pod needs, "
                             "but not the claim '%s'. Delete it, or recreate it under another name",
                             p->domain, p->domain);
        else if (cd->o.meta.deleted && p->o.meta.created > cd->o.meta.deleted)
                event_record(c->events, &pod, EVENT_WARNING, REASON_AUTO_DOMAIN_ENDING,
                             "the ComputeDomain '%s' of an earlier workload with the same name is being "
                             "deleted. If this Pod has a node and does not start, delete the Pod",
                             p->domain);
}

void auto_domains_reconcile(struct controller *c, const char *name) {
        const struct auto_pod *p = pod_of(c, name);
        _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
        key_render(KEY_AUTO, name, &b);
        const char *key = buf_str(&b);
        writes_begin(c->writes, key);
        if (!p) {
                first_seen_forget(c->memory.undone, key);
        } else {
                const struct compute_domain *cd = (const struct compute_domain *)kube_informer_get(
                        c->caches.cds, p->o.meta.ns, p->domain);
                if (cd)
                        auto_domains_report(c, p, cd);
                else if (interval_left(c, key))
                        work_queue_add_after(c->queue, key, (unsigned)interval_left(c, key) * 1000U);
                else
                        auto_domains_make(c, p, key);
        }
        writes_end(c->writes, key);
}
