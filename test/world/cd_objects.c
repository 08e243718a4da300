/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cd_objects.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/mem.h"
#include "cd_plugin/cd_devices.h"
#include "world/api.h"
#include "world/informers.h"

/* Sets the only object of a kind; json NULL: there is none. */
static void put_only(const struct kube_resource *res, const char *ns, const char *name, const char *json) {
        struct object *old = store_find(&api.store, res, NULL, NULL);
        if (old)
                object_vanish(old);
        store_set(&api.store, res, ns, name, json);
}

/* ---- claims ---- */

void api_claim_json(const char *ns, const char *name, const char *json) {
        store_set(&api.store, &kube_resource_claims, ns, name, json);
}

void api_claim(const char *ns, const char *name, const char *uid, const char *device, const char *config_kind,
               const char *domain, const char *extra) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":"
                "\"1\",\"annotations\":{"
                "\"resource.nvidia.com/"
                "computeDomain.name\":\"cd\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                "\"Pod\","
                "\"name\":\"pod-%s\",\"uid\":\"p\",\"controller\":true}]},"
                "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":"
                "\"compute-domain.nvidia."
                "com\",\"pool\":\"n0\",\"device\":\"%s\"}],"
                "\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"r\"],\"opaque\":{\"driver\":\"compute-"
                "domain.nvidia.com\","
                "\"parameters\":{"
                "\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"%s\",\"domainID\":\"%s\"%s}}}]}},"
                "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"pod-%s\",\"uid\":\"p\"}]}}",
                name, ns, uid, name, device, config_kind, domain, extra, name);
        api_claim_json(ns, name, json);
}

void api_daemon_claim(const char *ns, const char *uid, const char *extra) {
        api_claim(ns, "daemon-claim", uid, CD_DEVICE_DAEMON, DAEMON, CD_DAEMON_DOMAIN, extra);
}

void api_go_claim(void) {
        api_claim("driver", "go-claim", GO_DAEMON, CD_DEVICE_DAEMON, DAEMON, DOMAIN_A, "");
}

void api_remove_claim(const char *ns, const char *name) {
        api_claim_json(ns, name, NULL);
}

/* ---- ComputeDomains ---- */

void api_domain(const char *ns, const char *name, const char *uid, bool deleting) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
                "\"resourceVersion\":\"1\"%s}}",
                name, ns, uid,
                deleting ? ",\"finalizers\":[\"f\"],\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"" : "");
        store_set(&api.store, &kube_compute_domains, ns, name, json);
}

static struct object *domain_of(const char *uid) {
        for (struct object *o = api.store.items; o < api.store.items + STORE_MAX; o++)
                if (o->json && o->res == &kube_compute_domains && strstr(o->json, uid))
                        return o;
        return NULL;
}

void api_domain_mode(const char *uid, const char *mode) {
        _cleanup_(freep) char *value = mode ? xasprintf("\"%s\"", mode) : xstrdup("null");
        _cleanup_(freep) char *patch =
                xasprintf("{\"metadata\":{\"annotations\":{\"" CD_ANNOTATION_MODE "\":%s}}}", value);
        store_patch(&api.store, domain_of(uid), patch, false);
}

void api_domain_gate(const char *uid, const char *annotation, const char *status, const char *message) {
        _cleanup_(freep) char *value = annotation ? xasprintf("\"%s\"", annotation) : xstrdup("null");
        _cleanup_(freep) char *condition =
                status ? xasprintf("{\"type\":\"StartGateOpen\",\"status\":\"%s\",\"reason\":\"r\","
                                   "\"message\":\"%s\"}",
                                   status, message)
                       : xstrdup("");
        _cleanup_(freep) char *annotate =
                xasprintf("{\"metadata\":{\"annotations\":{\"" CD_ANNOTATION_START_GATE "\":%s}}}", value);
        _cleanup_(freep) char *conditions = xasprintf("{\"status\":{\"conditions\":[%s]}}", condition);
        store_patch(&api.store, domain_of(uid), annotate, false);
        store_patch(&api.store, domain_of(uid), conditions, true);
        informers_see(&kube_compute_domains, true);
}

void api_remove_domain(const char *uid) {
        object_vanish(domain_of(uid));
}

/* ---- the fabric object ---- */

static const char *table_of;

void api_table_of(const char *uid) {
        table_of = uid;
}

void api_fabric(const char *name, int rv, const char *channels, const char *more) {
        _cleanup_(freep) char *json =
                channels ? xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"" FABRIC
                                     "\",\"resourceVersion\":\"%d\"},\"rack\":\"rack-7\","
                                     "\"tableOf\":\"%s\",\"channelCount\":2048%s,\"channels\":[%s]}",
                                     name, rv, str_or(table_of, FABRIC), more, channels)
                         : NULL;
        put_only(&kube_fabrics, "", name, json);
}

void api_fabric_event(void) {
        informers_see(&kube_fabrics, false);
}

void api_assigned(const char *domain) {
        static int rv = 1000;
        _cleanup_(freep) char *domains = xasprintf(
                ",\"domains\":[{\"owner\":{\"kind\":\"ComputeDomain\",\"uid\":\"%s\"},\"infix\":\"aa\","
                "\"slots\":4,\"port\":28001,\"assignments\":[{\"node\":\"n0\",\"index\":3,\"epoch\":1,"
                "\"claimUID\":\"" DAEMON_1 "\",\"bootID\":\"" BOOT "\"}]}]",
                domain);
        api_fabric(CLIQUE, ++rv, "", domains);
        api_fabric_event();
}

/* ---- the Go driver's clique ---- */

void api_clique_at(const char *domain, const char *address, const char *status) {
        _cleanup_(freep) char *name = xasprintf("%s." CLIQUE, domain);
        _cleanup_(freep) char *ours = xasprintf(
                ",{\"nodeName\":\"n0\",\"ipAddress\":\"%s\",\"status\":\"%s\"}", address, str_or(status, ""));
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"driver\",\"uid\":\"c\",\"resourceVersion\":"
                "\"1\"},\"daemons\":[{\"nodeName\":\"n1\",\"status\":\"Ready\"}%s]}",
                name, status && *status ? ours : "");
        put_only(&kube_cliques, "driver", name, status ? json : NULL);
}

void api_clique(const char *domain, const char *status) {
        api_clique_at(domain, GO_ADDRESS, status);
}

void api_node_label(const char *domain) {
        _cleanup_(freep) char *labels = domain ? xasprintf("\"" CD_LABEL "\":\"%s\"", domain) : xstrdup("");
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"n0\",\"uid\":\"n\",\"resourceVersion\":\"1\",\"labels\":{%s}}}",
                labels);
        put_only(&kube_nodes, "", "n0", json);
}

/* ---- the own Pod ---- */

static void put_pod(const char *rv) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"" POD "\",\"namespace\":\"driver\",\"uid\":"
                "\"e0000000-0000-4000-8000-00000000000e\",\"resourceVersion\":\"%s\",\"annotations\":{}}}",
                rv);
        store_set(&api.store, &kube_pods, "driver", POD, json);
}

const char *pod_annotation(const char *key) {
        static char value[3000];
        const struct object *pod = store_find(&api.store, &kube_pods, "driver", POD);
        yyjson_doc *doc = store_read(pod->json, strlen(pod->json));
        yyjson_val *meta = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");
        const char *text = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(meta, "annotations"), key));
        snprintf(value, sizeof value, "%s", str_or(text, ""));
        yyjson_doc_free(doc);
        return text ? value : NULL;
}

void pod_replaced(void) {
        _cleanup_(freep) char *rv = xasprintf("%lld", (long long)++api.store.version);
        put_pod(rv);
        api.patch[0] = '\0';
}

void pod_restored(void) {
        put_pod("0");
        api.store.version = 0;
        api.patch[0] = '\0';
        informers_see(&kube_pods, true);
}
