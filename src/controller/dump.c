/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "controller/dump.h"

static void dump_cache(const char *resource, const char *ns, const struct kube_informer *i) {
        if (i)
                log_info("cache", kv_str("resource", resource), kv_str("namespace", str_or(ns, "")),
                         kv_int("objects", kube_informer_count(i)),
                         kv_bool("synced", kube_informer_synced(i)),
                         kv_bool("current", kube_informer_current(i)));
}

static void dump_caches(const struct controller *c) {
        dump_cache("computedomains", NULL, c->cds);
        dump_cache("resourceclaims", NULL, c->claims);
        dump_cache("nodes", NULL, c->nodes);
        dump_cache("resourceslices", NULL, c->slices);
        dump_cache("resourceclaimtemplates", NULL, c->rcts);
        dump_cache("pods of the kubelet plugin", NULL, c->plugins);
        dump_cache("namespaces that want racks", NULL, c->rack_namespaces);
        dump_cache("computedomainfabrics", NULL, c->fabrics);
        dump_cache("pods of daemons", c->config->ns, c->daemons);
        for (size_t i = 0; i < c->n_namespaces; i++) {
                const struct controller_namespace *n = &c->namespaces[i];
                dump_cache("daemonsets", n->ns, n->sets);
                dump_cache("pods", n->ns, n->pods);
                dump_cache("computedomaincliques", n->ns, n->cliques);
        }
}

static bool dump_domain(void *u, const struct kube_object *o) {
        const struct controller *c = u;
        const struct compute_domain *cd = (const struct compute_domain *)o;
        _cleanup_(buf_done) struct buf key = BUF_INIT(256);
        key_render(KEY_DOMAIN, o->meta.uid, &key);
        log_info("domain", kv_str("namespace", o->meta.ns), kv_str("name", o->meta.name),
                 kv_str("uid", o->meta.uid), kv_str("status", str_or(cd->status, "")),
                 kv_int("ready", cd->nodes_ready), kv_int("wanted", cd->nodes_wanted),
                 kv_bool("deleting", o->meta.deleted != 0),
                 kv_str("write_error", str_or(writes_error(c->writes, buf_str(&key)), "")));
        return true;
}

void controller_dump(const struct controller *c) {
        if (!c->started || !c->cds) { /* it still looks at the CustomResourceDefinitions */
                log_info("controller", kv_bool("started", false));
                return;
        }
        log_info("controller", kv_bool("started", true), kv_bool("leads", c->leading),
                 kv_bool("synced", records_synced(c)), kv_str("stale", str_or(records_stale(c), "")),
                 kv_int("domains", kube_informer_count(c->cds)), kv_int("held", HASH_COUNT(c->paused)),
                 kv_int("queued", work_queue_depth(c->queue)),
                 kv_int("writes_in_flight", writes_in_flight(c->writes)),
                 kv_int("writes_remembered", writes_remembered(c->writes)),
                 kv_int("questions_remembered", live_read_count(c->live_read)));
        dump_caches(c);
        kube_informer_each(c->cds, dump_domain, (void *)(uintptr_t)c);
        for (const struct controller_paused *h = c->paused; h; h = h->hh.next)
                log_info("paused until no cache is stale", kv_str("key", h->key));
        writes_dump(c->writes);
}
