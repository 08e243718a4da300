/* SPDX-License-Identifier: Apache-2.0 */
/* shared_claims_world: a leading controller in a cluster with one node or two, and a ComputeDomain with a claim
 * that pods on several nodes share. */
#pragma once

#include "leading.h"
#include "api/names.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

enum { BODY = 16384 };

struct world {
        struct leading l;
        const char *uid; /* of the ComputeDomain */
        const char *channel, *claims, *channels, *slices;
        const char *reports;                /* NULL: the plugin has not reported */
        const char *gate;                   /* of the ComputeDomain: GATE or "" */
        const char *before;                 /* its status in the first list; "": none */
        bool drops;                         /* the API server does not know allowMultipleAllocations */
        bool slice_taken;                   /* a slice of another driver has the name */
        bool betas;                         /* it serves resource.k8s.io only as v1beta2 */
        bool refuses_node, refuses_daemons; /* a webhook refuses these writes */
        bool taken;                         /* a claim has the name */
        const char *holder; /* that claim; NULL: it is deleted before the controller reads it */
        char slice[BODY], claim[BODY], node[BODY], status[BODY], fabric[BODY], event[BODY];
        char of_claim[BODY],
                metadata[BODY];  /* the last patches of the claim's status and of the claim itself */
        struct fake_conn *watch; /* of claims */
        struct fake_conn *nodes; /* the watch of Nodes */
        struct fake_conn *of_groups; /* the watch of PodGroups */
        struct fake_conn *of_slices; /* the watch of ResourceSlices */
        struct fake_conn *plugins;   /* the watch of the plugins' Pods */
        const char *label;           /* of the nodes, in the first list: LABEL, MARKS or "" */
        bool two_nodes;              /* n2 exists, too; its plugin has not reported */
        bool accepts;                /* the API server accepts the status of the ComputeDomain */
        unsigned n_statuses;         /* those that it has accepted */
        struct fake_conn *cds;       /* the watch of ComputeDomains */
        const char *groups, *groups_version; /* version NULL: the API server serves no PodGroups */
        const char *patched; /* the answer to a patch of the claim's status; NULL: a conflict */
        unsigned n_slices, n_deleted, n_claims, n_claims_deleted, n_templates, n_patches, n_group_lists;
};

/* The body of a creation, as the API server answers it. */
static inline void created(struct fake_conn *c, const struct fake_request *r, const char *drop) {
        _cleanup_(freep) char *body = xstrdup(r->body);
        static const char meta[] = "\"metadata\":{";
        char *at = strstr(body, meta);
        char *dropped = drop ? strstr(body, drop) : NULL;
        assert_non_null(at);
        if (dropped)
                memmove(dropped, dropped + strlen(drop), strlen(dropped + strlen(drop)) + 1);
        at += strlen(meta);
        _cleanup_(freep) char *answer =
                xasprintf("%.*s\"uid\":\"u\",\"resourceVersion\":\"20\",%s", (int)(at - body), body, at);
        fake_reply(c, 201, NULL, answer);
}

#define LABEL ",\"labels\":{\"" CD_LABEL_SHARED "\":\"true\"}"

static inline char *domain_of(const struct world *w, unsigned version, const char *more) {
        return xasprintf("{\"apiVersion\":\"" CD_API_VERSION
                         "\",\"kind\":\"ComputeDomain\",\"metadata\":{\"name\":\"train\",\"namespace\":"
                         "\"team-a\",\"uid\":\"%s"
                         "\",\"resourceVersion\":\"%u\",\"finalizers\":[\"" CD_FINALIZER
                         "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"%s\"%s}},\"spec\":{"
                         "\"numNodes\":2,\"channel\":{%s}}%s}",
                         w->uid, version, w->l.config.mode->name, w->gate, w->channel, more);
}

/* All that the controller writes to a Node. */
#define MARKS LABEL ",\"annotations\":{\"" CD_ANNOTATION_CLIQUE "\":\"" CLIQUE "\"}"

#define GATE ",\"" CD_ANNOTATION_START_GATE "\":\"true\""

/* The plugin's Pod of a node, with this report, or NULL. */
static inline char *plugin_on(const char *node, const char *reports, unsigned version) {
        _cleanup_(freep) char *report =
                reports ? xasprintf("\"annotations\":{\"" IMEX_ANNOTATION_HOST_CHANNELS "\":\"{\\\"" CLIQUE
                                       "\\\":{\\\"uid\\\":\\\"" OBJECT "\\\",\\\"channelCount\\\":4,%s}}\"},",
                                       reports)
                           : xstrdup("");
        return xasprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p-%s\","
                         "\"namespace\":\"driver\",\"uid\":\"p-%s\",%s\"resourceVersion\":\"%u\","
                         "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"nodeName\":\"%s\"},"
                         "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                         "\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}",
                         node, node, report, version, node);
}

static inline char *plugin_of(const struct world *w, unsigned version) {
        return plugin_on("n1", w->reports, version);
}

static inline char *node_of(const struct world *w, const char *name) {
        return xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"1\"%s},"
                         "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                         name, name, w->label);
}

static inline char *slice_of(const char *node) {
        return xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"1\"},"
                         "\"spec\":{\"driver\":\"" CD_DRIVER
                         "\",\"nodeName\":\"%s\",\"devices\":[{\"name\":\"channel-0\",\"attributes\":{"
                         "\"cliqueID\":{\"string\":\"" CLIQUE "\"}}}]}}",
                         node, node, node);
}

/* The objects of n1, and those of n2 if it exists. Releases both. */
static inline char *of_nodes(const struct world *w, char *first, char *second) {
        _cleanup_(freep) char *one = first, *two = second;
        return w->two_nodes ? xasprintf("%s,%s", one, two) : xstrdup(one);
}

static inline char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/nodes"))
                return of_nodes(w, node_of(w, "n1"), node_of(w, "n2"));
        if (fake_has(path, "/pods") && fake_has(path, "plugin"))
                return of_nodes(w, plugin_of(w, 1), plugin_on("n2", NULL, 1));
        if (fake_has(path, "/resourceslices")) {
                _cleanup_(freep) char *slices = of_nodes(w, slice_of("n1"), slice_of("n2"));
                return xasprintf("%s%s", slices, w->slices);
        }
        if (fake_has(path, "/resourceclaimtemplates"))
                return xstrdup("");
        if (fake_has(path, "/resourceclaims"))
                return xstrdup(w->claims);
        if (fake_has(path, "/podgroups"))
                return xstrdup(w->groups);
        if (fake_has(path, "/v1beta1/computedomainfabrics"))
                return xasprintf(
                        "{\"metadata\":{\"name\":\"" CLIQUE "\",\"uid\":\"" OBJECT
                        "\",\"resourceVersion\":\"5\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                        "\"tableOf\":\"" OBJECT "\",\"members\":[\"n1\"%s],\"nodes\":%d,\"channelCount\":4,"
                        "\"channelsInUse\":%d,\"domainCount\":%d,\"next\":1,\"channels\":[%s]}",
                        w->two_nodes ? ",\"n2\"" : "", w->two_nodes ? 2 : 1, *w->channels != 0,
                        *w->channels != 0, w->channels);
        if (fake_has(path, "/computedomains"))
                return domain_of(w, 1, w->before);
        return NULL;
}

static inline void keep(char to[static BODY], const struct fake_request *r) {
        snprintf(to, BODY, "%s", r->body);
}

/* Returns false if the API server refuses it. */
static inline bool answer_status(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        const char *status = strstr(r->body, ",\"status\":");
        keep(w->status, r);
        if (!w->accepts)
                return false;
        assert_non_null(status);
        _cleanup_(freep) char *more = xasprintf("%.*s", (int)strlen(status) - 1, status),
                              *answer = domain_of(w, 100 + ++w->n_statuses, more);
        fake_reply(c, 200, NULL, answer);
        return true;
}

static inline void on_write(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool creates = streq(r->method, "POST"), deletes = streq(r->method, "DELETE");
        if (fake_has(r->path, "/resourceslices")) {
                w->n_slices += creates;
                w->n_deleted += deletes;
                if (creates && w->slice_taken) {
                        fake_refuse(c, 409, "resourceslices already exists");
                        return;
                }
                if (creates) {
                        keep(w->slice, r);
                        created(c, r, w->drops ? "\"allowMultipleAllocations\":true," : NULL);
                        return;
                }
                fake_reply(c, 200, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
                return;
        }
        if (fake_has(r->path, "/resourceclaims/train") && streq(r->method, "PATCH")) {
                bool status = fake_has(r->path, "/status");
                w->n_patches += status;
                keep(status ? w->of_claim : w->metadata, r);
                if (status && w->patched) {
                        _cleanup_(freep) char *answer = xasprintf(
                                "{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",%s",
                                w->patched + 1);
                        fake_reply(c, 200, NULL, answer);
                } else
                        fake_refuse(c, 409, "the object has been modified");
                return;
        }
        if (fake_has(r->path, "/resourceclaims")) {
                w->n_claims += creates;
                w->n_claims_deleted += deletes;
                if (creates)
                        keep(w->claim, r);
                if (creates && !w->taken) {
                        created(c, r, NULL);
                        return;
                }
                fake_refuse(c, 409, "resourceclaims already exists");
                return;
        }
        w->n_templates += creates && fake_has(r->path, "/resourceclaimtemplates");
        if (creates && w->accepts && fake_has(r->path, "/resourceclaimtemplates")) {
                created(c, r, NULL);
                return;
        }
        bool node = fake_has(r->path, "/nodes/n1"), daemons = fake_has(r->path, "/" CD_DAEMON_OBJECT);
        if (node || daemons) {
                bool refuses = node ? w->refuses_node : w->refuses_daemons;
                if (node)
                        keep(w->node, r);
                fake_refuse(c, refuses ? 422 : 409, refuses ? "a webhook refuses it" : "not in this test");
                return;
        }
        if (fake_has(r->path, "/computedomains/train/status") && answer_status(w, c, r))
                return;
        else if (fake_has(r->path, "/computedomainfabrics"))
                keep(w->fabric, r);
        else if (fake_has(r->path, "/events"))
                keep(w->event, r);
        fake_refuse(c, 403, "not in this test");
}

static inline void reply_holder(const struct world *w, struct fake_conn *c) {
        _cleanup_(freep) char *claim =
                xasprintf("{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",%s",
                          str_or(w->holder, "{") + 1);
        if (w->holder)
                fake_reply(c, 200, NULL, claim);
        else
                fake_missing(c, "resource.k8s.io", "resourceclaims", "train");
}

static inline void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/scheduling.k8s.io/")) {
                w->n_group_lists += !fake_query(r, "watch");
                if (fake_query(r, "watch"))
                        w->of_groups = c;
                if (!w->groups_version || !fake_has(r->path, w->groups_version))
                        fake_reply(c, 404, NULL, "404 page not found\n");
                else
                        leading_read(c, r, items_of, u);
                return;
        }
        if (w->betas && fake_has(r->path, "/apis/resource.k8s.io/v1/")) {
                fake_reply(c, 404, NULL, "404 page not found\n");
                return;
        }
        if (fake_has(r->path, "/resourceclaims?") && fake_query(r, "watch"))
                w->watch = c;
        if (fake_has(r->path, "/computedomains?") && fake_query(r, "watch"))
                w->cds = c;
        if (fake_has(r->path, "/nodes?") && fake_query(r, "watch"))
                w->nodes = c;
        if (fake_has(r->path, "/resourceslices?") && fake_query(r, "watch"))
                w->of_slices = c;
        if (fake_has(r->path, "/pods?") && fake_has(r->path, "plugin") && fake_query(r, "watch"))
                w->plugins = c;
        if (streq(r->method, "GET") && fake_has(r->path, "/resourceclaims/train"))
                reply_holder(w, c);
        else if (streq(r->method, "GET"))
                leading_read(c, r, items_of, u);
        else
                on_write(u, c, r);
}

#define NAMED "\"resourceClaim\":{\"name\":\"train\"}"
#define ALLOCATED_IN(ns, more)                                                                               \
        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"" ns                                              \
        "\",\"uid\":\"c\",\"resourceVersion\":\"2\","                                                        \
        "\"creationTimestamp\":\"2026-02-01T00:00:00Z\",\"ownerReferences\":[{\"apiVersion\":"               \
        "\"" CD_API_VERSION "\",\"kind\":\"ComputeDomain\",\"name\":\"train\",\"uid\":\"" DOMAIN             \
        "\",\"controller\":true}]},\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":"      \
        "\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"" CD_POOL_SHARED                                \
        "\",\"device\":\"" CD_DEVICE_SHARED "\"}],\"config\":[{\"source\":\"FromClaim\",\"requests\":[],"    \
        "\"opaque\":{\"driver\":\"" CD_DRIVER "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION          \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN                                  \
        "\",\"isolation\":\"Channel\"}}}]}}" more "}}"
#define RESERVED ",\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p\"}]"
#define PUBLISHED                                                                                            \
        ",{\"metadata\":{\"name\":\"" CD_SLICE_SHARED "\",\"uid\":\"u\",\"resourceVersion\":\"9\"},"         \
        "\"spec\":{\"driver\":\"" CD_DRIVER "\",\"devices\":[{\"name\":\"" CD_DEVICE_SHARED                  \
        "\",\"allowMultipleAllocations\":true}]}}"
#define CLAIM_OF(owner, deleted, status) CLAIM_AT(7, owner, deleted, status)
#define CLAIM_AT(version, owner, deleted, status) "{" CLAIM_TAIL(version, "", owner, deleted, status)
#define CLAIM_TAIL(version, finalizers, owner, deleted, status)                                              \
        "\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" CLAIM                         \
        "\",\"resourceVersion\":\"" #version "\",\"finalizers\":[\"" CD_FINALIZER "\"" finalizers            \
        "]," deleted "\"ownerReferences\":[" owner                                                           \
        "]},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"channel\","                                     \
        "\"exactly\":{\"deviceClassName\":\"" CD_CLASS_SHARED                                                \
        "\",\"allocationMode\":\"ExactCount\",\"count\":1"                                                   \
        "}}],\"config\":[{\"requests\":[\"channel\"],\"opaque\":{\"driver\":\"" CD_DRIVER                    \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN                                  \
        "\",\"isolation\":\"Channel\"}}}]}},\"status\":{" status "}}"
#define CLAIM "cccccccc-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define BY_DOMAIN                                                                                            \
        "{\"apiVersion\":\"" CD_API_VERSION                                                                  \
        "\",\"kind\":\"ComputeDomain\",\"name\":\"train\",\"uid\":\"" DOMAIN "\",\"controller\":true}"
#define ALLOCATION                                                                                           \
        "\"allocation\":{\"devices\":{\"results\":[{\"request\":\"channel\",\"driver\":\"" CD_DRIVER         \
        "\",\"pool\":\"" CD_POOL_SHARED "\",\"device\":\"" CD_DEVICE_SHARED "\"}]}}"
#define ENTRY                                                                                                \
        "{\"id\":2,\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"name\":\"train\","       \
        "\"uid\":\"" DOMAIN "\"}"

static inline int setup(void **state) {
        struct world *w = xnew(struct world);
        w->uid = DOMAIN;
        w->channel = NAMED;
        w->claims = w->channels = w->slices = w->groups = w->label = w->gate = w->before = "";
        w->reports = "\\\"held\\\":{}";
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        *state = w;
        return 0;
}

/* The watch shows n1 with these labels. */
static inline void relabel(struct world *w, unsigned version, const char *label) {
        _cleanup_(freep) char *event = xasprintf(
                "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
                "\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"n1\",\"uid\":\"n1\",\"resourceVersion\":\"%u\"%s}"
                "}}\n",
                version, label);
        RUN_UNTIL(&w->l.loop, w->nodes);
        fake_chunk(w->nodes, event);
}
