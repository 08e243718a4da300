/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller and claims that pods on several nodes share: the ResourceSlice of their device, the
 * label of Nodes, the claim of a ComputeDomain, and its channel in the fabric object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "leading.h"
#include "api/names.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"

enum { BODY = 16384 };

struct world {
        struct leading l;
        const char *uid; /* of the ComputeDomain */
        const char *channel, *claims, *channels, *reports, *slices;
        bool drops; /* the API server does not know allowMultipleAllocations */
        bool taken; /* a claim has the name */
        const char *holder; /* that claim; NULL: it is deleted before the controller reads it */
        char slice[BODY], claim[BODY], node[BODY], status[BODY], fabric[BODY], event[BODY];
        char of_claim[BODY],
                metadata[BODY];  /* the last patches of the claim's status and of the claim itself */
        struct fake_conn *watch; /* of claims */
        struct fake_conn *nodes; /* the watch of Nodes */
        const char *label;       /* of n1, in the first list: LABEL or "" */
        bool accepts;            /* the API server accepts the status of the ComputeDomain */
        unsigned n_statuses;     /* those that it has accepted */
        struct fake_conn *cds;   /* the watch of ComputeDomains */
        const char *groups, *groups_version; /* version NULL: the API server serves no PodGroups */
        const char *patched; /* the answer to a patch of the claim's status; NULL: a conflict */
        unsigned n_slices, n_deleted, n_claims, n_claims_deleted, n_templates, n_patches, n_group_lists;
};

/* The body of a creation, as the API server answers it. */
static void created(struct fake_conn *c, const struct fake_request *r, const char *drop) {
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

static char *domain_of(const struct world *w, unsigned version, const char *more) {
        return xasprintf("{\"apiVersion\":\"" CD_API_VERSION
                         "\",\"kind\":\"ComputeDomain\",\"metadata\":{\"name\":\"train\",\"namespace\":"
                         "\"team-a\",\"uid\":\"%s"
                         "\",\"resourceVersion\":\"%u\",\"finalizers\":[\"" CD_FINALIZER
                         "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"%s\"}},\"spec\":{"
                         "\"channel\":{%s}}%s}",
                         w->uid, version, w->l.config.mode->name, w->channel, more);
}

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/nodes"))
                return xasprintf("{\"metadata\":{\"name\":\"n1\",\"uid\":\"n\",\"resourceVersion\":\"1\"%s},"
                                 "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                                 w->label);
        if (fake_has(path, "/pods") && fake_has(path, "plugin"))
                return xasprintf("{\"metadata\":{\"name\":\"p\",\"namespace\":\"driver\",\"uid\":\"p\","
                                 "\"resourceVersion\":\"1\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
                                 "\"annotations\":{\"" IMEX_ANNOTATION_HOST_CHANNELS "\":\"{\\\"" CLIQUE
                                 "\\\":{\\\"uid\\\":\\\"" OBJECT
                                 "\\\",\\\"channelCount\\\":4,%s}}\"}},\"spec\":{\"nodeName\":\"n1\"},"
                                 "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                                 "\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}",
                                 w->reports);
        if (fake_has(path, "/resourceslices"))
                return xasprintf(
                        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"resourceVersion\":\"1\"},"
                        "\"spec\":{\"driver\":\"" CD_DRIVER
                        "\",\"nodeName\":\"n1\",\"devices\":[{\"name\":\"channel-0\",\"attributes\":{"
                        "\"cliqueID\":{\"string\":\"" CLIQUE "\"}}}]}}%s",
                        w->slices);
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
                        "\"tableOf\":\"" OBJECT "\",\"members\":[\"n1\"],\"nodes\":1,"
                        "\"channelCount\":4,\"next\":1,\"channels\":[%s]}",
                        w->channels);
        if (fake_has(path, "/computedomains"))
                return domain_of(w, 1, "");
        return NULL;
}

static void keep(char to[static BODY], const struct fake_request *r) {
        snprintf(to, BODY, "%s", r->body);
}

/* Returns false if the API server refuses it. */
static bool answer_status(struct world *w, struct fake_conn *c, const struct fake_request *r) {
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

static void on_write(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool creates = streq(r->method, "POST"), deletes = streq(r->method, "DELETE");
        if (fake_has(r->path, "/resourceslices")) {
                w->n_slices += creates;
                w->n_deleted += deletes;
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
        if (fake_has(r->path, "/nodes/n1"))
                keep(w->node, r);
        else if (fake_has(r->path, "/computedomains/train/status") && answer_status(w, c, r))
                return;
        else if (fake_has(r->path, "/computedomainfabrics"))
                keep(w->fabric, r);
        else if (fake_has(r->path, "/events"))
                keep(w->event, r);
        fake_refuse(c, 403, "not in this test");
}

static void reply_holder(const struct world *w, struct fake_conn *c) {
        _cleanup_(freep) char *claim =
                xasprintf("{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",%s",
                          str_or(w->holder, "{") + 1);
        if (w->holder)
                fake_reply(c, 200, NULL, claim);
        else
                fake_missing(c, "resource.k8s.io", "resourceclaims", "train");
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/scheduling.k8s.io/")) {
                w->n_group_lists += !fake_query(r, "watch");
                if (!w->groups_version || !fake_has(r->path, w->groups_version))
                        fake_reply(c, 404, NULL, "404 page not found\n");
                else
                        leading_read(c, r, items_of, u);
                return;
        }
        if (fake_has(r->path, "/resourceclaims?") && fake_query(r, "watch"))
                w->watch = c;
        if (fake_has(r->path, "/computedomains?") && fake_query(r, "watch"))
                w->cds = c;
        if (fake_has(r->path, "/nodes?") && fake_query(r, "watch"))
                w->nodes = c;
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
#define CLAIM_AT(version, owner, deleted, status)                                                            \
        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" CLAIM                        \
        "\",\"resourceVersion\":\"" #version "\",\"finalizers\":[\"" CD_FINALIZER "\"]," deleted             \
        "\"ownerReferences\":[" owner "]},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"channel\","       \
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

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->uid = DOMAIN;
        w->channel = NAMED;
        w->claims = w->channels = w->slices = w->groups = w->label = "";
        w->reports = "\\\"held\\\":{}";
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        *state = w;
        return 0;
}

/* The watch shows n1 with these labels. */
static void relabel(struct world *w, unsigned version, const char *label) {
        _cleanup_(freep) char *event = xasprintf(
                "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
                "\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"n1\",\"uid\":\"n\",\"resourceVersion\":\"%u\"%s}"
                "}}\n",
                version, label);
        RUN_UNTIL(&w->l.loop, w->nodes);
        fake_chunk(w->nodes, event);
}

/* ---- the device ---- */

static void the_first_shared_claim_gets_a_slice_then_labels_and_the_claim(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_claims && strstr(w->node, CD_LABEL_SHARED));
        assert_int_equal(w->n_slices, 1);
        assert_non_null(strstr(w->slice, "\"allowMultipleAllocations\":true"));
        assert_non_null(strstr(w->slice, "\"name\":\"" CD_POOL_SHARED "\""));
        assert_non_null(strstr(w->slice, "\"key\":\"" CD_LABEL_SHARED "\",\"operator\":\"In\""));
        assert_null(strstr(w->slice, "capacity"));
        assert_non_null(strstr(w->node, "\"" CD_LABEL_SHARED "\":\"true\""));
        assert_non_null(strstr(w->claim, "\"deviceClassName\":\"" CD_CLASS_SHARED "\""));
        assert_non_null(strstr(w->claim, "\"domainID\":\"" DOMAIN "\",\"isolation\":\"Channel\""));
        assert_non_null(strstr(w->claim, "\"kind\":\"ComputeDomain\",\"name\":\"train\",\"uid\":\"" DOMAIN
                                         "\",\"controller\":true"));
        assert_int_equal(w->n_templates, 0);
        relabel(w, 11, LABEL);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "SharedClaimCreated"));
        assert_int_equal(w->n_claims, 1);
}

/* failure: a ComputeDomain with a shared claim replaces another while the watch is interrupted -> the slice
 * is written */
static void a_ComputeDomain_that_replaces_another_gets_its_slice(void **state) {
        struct world *w = *state;
        w->channel = "\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates && w->cds);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_slices, 0);
        w->uid = "aaaaaaaa-8f4e-4f0e-9f0a-000000000002";
        w->channel = NAMED;
        fake_chunk(w->cds, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                           "\"reason\":\"Expired\"}}\n");
        RUN_UNTIL(&w->l.loop, w->n_slices);
}

static void without_a_shared_claim_neither_slice_nor_label_is_written(void **state) {
        struct world *w = *state;
        w->channel = "\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_slices, 0);
        assert_int_equal(w->n_claims, 0);
        assert_null(strstr(w->node, CD_LABEL_SHARED));
        assert_null(strstr(w->status, "SharedClaimAvailable"));
}

/* With such a slice, the first claim would get the device for itself. */
/* failure: the API server drops allowMultipleAllocations -> no node offers the device, a condition reports it
 */
static void an_API_server_that_drops_the_field_gets_no_device(void **state) {
        struct world *w = *state;
        w->drops = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_deleted && strstr(w->status, "SharedClaimsNotSupported"));
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_slices, 1); /* not again before some minutes have passed */
        assert_int_equal(w->n_claims, 0);
        assert_null(strstr(w->node, CD_LABEL_SHARED));
}

/* failure: no node offers channels -> the condition SharedClaimAvailable is False at once, and an Event
 * reports it */
static void a_device_that_no_node_offers_is_reported(void **state) {
        static const char *const channels[] = { NAMED, "\"sharedResourceClaimTemplate\":{\"name\":\"s\"}" };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        w->accepts = true;
        for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
                w->channel = channels[i];
                w->event[0] = w->status[0] = 0;
                w->nodes = NULL;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, strstr(w->status, "\"SharedClaimPending\""));
                assert_non_null(strstr(w->status, "No Node has the label " CD_LABEL_SHARED " yet"));
                assert_string_equal(w->event, "");
                RUN_UNTIL(&w->l.loop, strstr(w->status, "\"NoChannelOffered\""));
                assert_non_null(strstr(w->status, "\"SharedClaimAvailable\",\"status\":\"False\""));
                RUN_UNTIL(&w->l.loop, strstr(w->event, "NoChannelOffered"));
                assert_non_null(strstr(w->event, "\"type\":\"Warning\""));
                unsigned n = w->n_statuses;
                run_for(&w->l.loop, 60000);
                assert_int_equal(w->n_statuses, n);
                relabel(w, 11, LABEL);
                RUN_UNTIL(&w->l.loop, strstr(w->event, "SharedClaimCreated"));
                assert_non_null(strstr(w->status, "\"SharedClaimAvailable\",\"status\":\"True\""));
                assert_int_equal(w->n_statuses, n + 1);
                controller_stop(&w->l.c);
        }
}

/* failure: all nodes withhold their channels for some seconds -> the condition SharedClaimAvailable does not
 * change */
static void a_short_time_without_a_node_changes_no_condition(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->label = LABEL;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        w->accepts = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->event, "SharedClaimCreated"));
        unsigned n = w->n_statuses;
        for (unsigned i = 0; i < 3; i++) {
                relabel(w, 11 + 2 * i, "");
                run_for(&w->l.loop, 3500);
                relabel(w, 12 + 2 * i, LABEL);
                run_for(&w->l.loop, 3500);
        }
        assert_int_equal(w->n_statuses, n);
        relabel(w, 20, "");
        RUN_UNTIL(&w->l.loop, strstr(w->event, "NoChannelOffered"));
        assert_int_equal(w->n_statuses, n + 1);
}

/* failure: imex.isolation=domain -> a ComputeDomain with a shared claim is not admitted, and states why */
static void isolation_by_domain_rejects_shared_claims(void **state) {
        struct world *w = *state;
        leading_set_mode(&w->l, "HostManagedIMEX=true", "domain");
        w->channel = NAMED ",\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "InvalidSpec"));
        assert_non_null(strstr(w->status, "need imex.isolation=channel"));
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_slices + w->n_claims + w->n_templates, 0);
}

/* ---- the claim ---- */

/* failure: a claim of another owner has the name -> a condition names it, and nothing is taken over */
static void a_name_that_is_taken_is_reported(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->taken = true;
        w->holder = "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"c\","
                    "\"resourceVersion\":\"2\"},\"spec\":{}}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimNameTaken"));
        assert_non_null(strstr(w->status, "ResourceClaim team-a/train already exists"));
        assert_int_equal(w->n_claims_deleted, 0);
}

static char *full_claim(void) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        static const char part[] = ",\"reservedFor\":[";
        buf_adds(&b, ALLOCATED_IN("team-a", ""));
        b.n -= 2; /* the end of the status and of the claim */
        buf_adds(&b, part);
        for (int i = 0; i < 256; i++)
                buf_addf(&b, "%s{\"resource\":\"pods\",\"name\":\"p%d\",\"uid\":\"p%d\"}", i ? "," : "", i,
                         i);
        buf_adds(&b, "]}}");
        return xstrdup(buf_str(&b));
}

/* failure: 256 pods use a shared claim -> a condition reports that the next one waits */
static void a_claim_with_256_pods_is_reported(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *claim = full_claim();
        w->slices = PUBLISHED;
        w->claims = claim;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimFull"));
        assert_non_null(strstr(w->status, "256 pods use ResourceClaim team-a/train"));
        assert_int_equal(w->n_claims, 0);
}

/* JobSet and others create the claim of a PodGroup from a template. */
static void a_template_of_shared_claims_is_created_beside_the_local_one(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->channel =
                "\"resourceClaimTemplate\":{\"name\":\"t\"},\"sharedResourceClaimTemplate\":{\"name\":\"s\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates == 2);
        assert_int_equal(w->n_claims, 0);
}

/* ---- the allocation ---- */

#define BY_GROUP                                                                                             \
        "{\"apiVersion\":\"scheduling.k8s.io/"                                                               \
        "v1beta1\",\"kind\":\"PodGroup\",\"name\":\"g\",\"uid\":\"g-uid\"}"
#define GROUP(name, claim, more)                                                                             \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"team-a\",\"uid\":\"" name                      \
        "-uid\",\"resourceVersion\":\"3\"" more "},\"spec\":{\"resourceClaims\":[{\"name\":\"channel\","     \
        "\"resourceClaimName\":\"" claim "\"}]}}"
#define DELETED "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\""
#define FOR_GROUP                                                                                            \
        "{\"apiGroup\":\"scheduling.k8s.io\",\"resource\":\"podgroups\",\"name\":\"g\",\"uid\":\"g-uid\"}"

static void the_controller_allocates_the_claim_in_advance(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->of_claim);
        assert_non_null(
                strstr(w->of_claim, "{\"metadata\":{\"uid\":\"" CLAIM "\",\"resourceVersion\":\"7\"}"));
        assert_non_null(strstr(w->of_claim,
                               "\"results\":[{\"request\":\"channel\",\"driver\":\"" CD_DRIVER
                               "\",\"pool\":\"" CD_POOL_SHARED "\",\"device\":\"" CD_DEVICE_SHARED
                               "\",\"shareID\":\"" CLAIM "\"}]"));
        assert_non_null(strstr(w->of_claim, "\"config\":[{\"source\":\"FromClaim\""));
        assert_non_null(strstr(w->of_claim, "\"domainID\":\"" DOMAIN "\",\"isolation\":\"Channel\""));
        assert_non_null(strstr(w->of_claim, "\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":["
                                            "{\"key\":\"" CD_LABEL_SHARED "\""));
        assert_non_null(strstr(w->of_claim, "\"allocationTimestamp\":\"20"));
        assert_null(strstr(w->of_claim, "reservedFor"));
}

/* failure: the answer to the claim's creation is lost, and the watch is late -> the claim is used */
static void a_claim_whose_creation_got_no_answer_is_used(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->label = LABEL;
        w->taken = true;
        w->holder = CLAIM_AT(12, BY_DOMAIN, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->of_claim && strstr(w->status, "SharedClaimCreated"));
        assert_null(strstr(w->event, "ResourceClaimNameTaken"));
}

/* failure: the API server drops a field of the shared device -> no claim is allocated */
static void without_the_device_no_claim_is_allocated(void **state) {
        struct world *w = *state;
        w->drops = true;
        w->claims = CLAIM_OF(BY_DOMAIN, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_deleted);
        run_for(&w->l.loop, 500);
        assert_int_equal(w->n_patches, 0);
}

static void an_allocated_claim_is_not_written_again(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", "");
        w->patched = CLAIM_AT(11, BY_DOMAIN, "", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patches);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_patches, 1);
}

/* failure: a user forges the owner of a claim -> the controller does not allocate it [tenants] */
static void only_the_claims_of_the_ComputeDomain_are_allocated(void **state) {
        static const struct {
                const char *claim, *channel;
        } cases[] = {
                { CLAIM_OF("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"p\"}", "", ""),
                  NAMED },
                { CLAIM_OF(BY_DOMAIN, "", ""), "\"resourceClaim\":{\"name\":\"other\"}" },
                { CLAIM_OF(BY_GROUP, "", ""), NAMED },
                { ALLOCATED_IN("team-a", ""), NAMED },
        };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->taken = true;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                w->claims = cases[i].claim;
                w->channel = cases[i].channel;
                leading_start(&w->l);
                run_for(&w->l.loop, 400);
                if (w->n_patches)
                        fail_msg("case %zu: %s", i, w->of_claim);
                controller_stop(&w->l.c);
        }
}

/* The claim that Kubernetes creates from a claim template for a PodGroup. */
static void the_claim_of_a_PodGroup_is_allocated_and_reserved_at_once(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->channel = "\"sharedResourceClaimTemplate\":{\"name\":\"s\"}";
        w->claims = CLAIM_OF(BY_GROUP, "", "");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->of_claim);
        assert_non_null(strstr(w->of_claim, "\"shareID\":\"" CLAIM "\""));
        assert_non_null(strstr(w->of_claim, "\"reservedFor\":[" FOR_GROUP "]"));
        assert_int_equal(w->n_group_lists, 0);
}

/* ---- the reservation ---- */

#define FOR_POD "{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p\"}"

static void a_claim_is_reserved_for_the_PodGroups_that_name_it(void **state) {
        static const char *const versions[] = { "/v1beta1/", "/v1alpha2/" };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION ",\"reservedFor\":[" FOR_POD "]");
        w->groups = GROUP("g", "train", "") "," GROUP("other", "else", "") "," GROUP("ends", "train",
                                                                                     "," DELETED);
        for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
                w->groups_version = versions[i];
                w->of_claim[0] = 0;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, *w->of_claim);
                assert_non_null(strstr(w->of_claim, "\"resourceVersion\":\"7\""));
                assert_non_null(
                        strstr(w->of_claim, "\"status\":{\"reservedFor\":[" FOR_POD "," FOR_GROUP "]}"));
                controller_stop(&w->l.c);
        }
}

/* failure: the API server serves no PodGroups -> no watch, and no warning */
static void without_the_API_of_PodGroups_nothing_is_reserved(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_group_lists == 2);
        run_for(&w->l.loop, 1000);
        assert_int_equal(w->n_group_lists, 2);
        assert_int_equal(w->n_patches, 0);
}

static void PodGroups_are_watched_only_for_a_named_claim(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->channel = "\"resourceClaimTemplate\":{\"name\":\"t\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_templates);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_group_lists, 0);
}

/* failure: the scheduler removes the reservation of a gang -> the controller restores it after a pause */
static void a_removed_reservation_is_restored_after_a_pause(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->groups_version = "/v1beta1/";
        w->groups = GROUP("g", "train", "");
        w->claims = CLAIM_OF(BY_DOMAIN, "", ALLOCATION);
        /* The answer is the claim as the scheduler has left it. */
        w->patched = CLAIM_AT(11, BY_DOMAIN, "", ALLOCATION ",\"reservedFor\":[" FOR_GROUP "]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_patches == 1);
        run_for(&w->l.loop, 300);
        fake_chunk(w->watch,
                   "{\"type\":\"MODIFIED\",\"object\":" CLAIM_AT(12, BY_DOMAIN, "", ALLOCATION) "}\n");
        run_for(&w->l.loop, 1500);
        assert_int_equal(w->n_patches, 1);
        RUN_UNTIL(&w->l.loop, w->n_patches == 2);
}

/* ---- the end ---- */

/* failure: a shared claim is deleted while pods use it -> it exists until the last pod has ended */
static void a_deleted_claim_is_released_when_it_is_unused(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = CLAIM_OF(BY_DOMAIN, DELETED ",", ALLOCATION ",\"reservedFor\":[" FOR_POD "]");
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "ResourceClaimTerminating"));
        run_for(&w->l.loop, 300);
        assert_string_equal(w->metadata, "");
        controller_stop(&w->l.c);
        w->claims = CLAIM_OF(BY_DOMAIN, DELETED ",", ALLOCATION);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, *w->metadata);
        assert_string_equal(w->metadata, "{\"metadata\":{\"uid\":\"" CLAIM
                                         "\",\"resourceVersion\":\"7\",\"finalizers\":[]}}");
        assert_int_equal(w->n_patches, 0);
}

/* ---- the channel ---- */

/* The report of the node and the allocated claim are both needed. */
static void a_channel_is_assigned_where_a_shared_claim_waits(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = ALLOCATED_IN("team-a", RESERVED);
        w->reports = "\\\"held\\\":{},\\\"asks\\\":[\\\"" DOMAIN "\\\"]";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"channels\":[{\"id\":1"));
        assert_non_null(strstr(w->fabric, "\"uid\":\"" DOMAIN "\""));
}

static void no_channel_is_assigned_where_no_shared_claim_waits(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = ALLOCATED_IN("team-a", RESERVED);
        leading_start(&w->l);
        run_for(&w->l.loop, 1000);
        assert_null(strstr(w->fabric, "\"id\":1"));
}

/* failure: a node reports a ComputeDomain whose shared claim is unused or missing -> it gets no channel
 * [tenants]
 */
static void a_report_alone_gets_no_channel(void **state) {
        static const char *const claims[] = { "", ALLOCATED_IN("team-b", RESERVED),
                                              ALLOCATED_IN("team-a", "") };
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->reports = "\\\"held\\\":{},\\\"asks\\\":[\\\"" DOMAIN "\\\"]";
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
                w->claims = claims[i];
                leading_start(&w->l);
                run_for(&w->l.loop, 500);
                assert_null(strstr(w->fabric, "\"id\":1"));
                controller_stop(&w->l.c);
        }
}

/* failure: a shared claim is allocated again while its channel is being released -> the channel is kept */
static void an_allocated_shared_claim_keeps_the_channel_in_every_partition(void **state) {
        struct world *w = *state;
        w->slices = PUBLISHED;
        w->claims = ALLOCATED_IN("team-a", RESERVED);
        w->channels = ENTRY ",\"releasing\":\"2026-01-02T00:00:00Z\"}";
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->fabric, "\"channels\":[" ENTRY "}"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, leading_teardown)
        const struct CMUnitTest tests[] = {
                T(the_first_shared_claim_gets_a_slice_then_labels_and_the_claim),
                T(a_ComputeDomain_that_replaces_another_gets_its_slice),
                T(without_a_shared_claim_neither_slice_nor_label_is_written),
                T(an_API_server_that_drops_the_field_gets_no_device),
                T(a_device_that_no_node_offers_is_reported),
                T(a_short_time_without_a_node_changes_no_condition),
                T(isolation_by_domain_rejects_shared_claims),
                T(a_name_that_is_taken_is_reported),
                T(a_claim_with_256_pods_is_reported),
                T(a_template_of_shared_claims_is_created_beside_the_local_one),
                T(the_controller_allocates_the_claim_in_advance),
                T(a_claim_whose_creation_got_no_answer_is_used),
                T(without_the_device_no_claim_is_allocated),
                T(an_allocated_claim_is_not_written_again),
                T(only_the_claims_of_the_ComputeDomain_are_allocated),
                T(the_claim_of_a_PodGroup_is_allocated_and_reserved_at_once),
                T(a_claim_is_reserved_for_the_PodGroups_that_name_it),
                T(without_the_API_of_PodGroups_nothing_is_reserved),
                T(PodGroups_are_watched_only_for_a_named_claim),
                T(a_removed_reservation_is_restored_after_a_pause),
                T(a_deleted_claim_is_released_when_it_is_unused),
                T(a_channel_is_assigned_where_a_shared_claim_waits),
                T(no_channel_is_assigned_where_no_shared_claim_waits),
                T(a_report_alone_gets_no_channel),
                T(an_allocated_shared_claim_keeps_the_channel_in_every_partition),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
