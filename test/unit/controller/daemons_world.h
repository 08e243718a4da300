/* SPDX-License-Identifier: Apache-2.0 */
/* daemons_world: an API server for a controller that leads: nodes in one partition, their daemons, the object
 * of the partition, and a ComputeDomain. Tests change what it has before the controller starts, or between
 * two starts. */
#pragma once

#include "api/names.h"
#include "leading.h"

#define CLIQUE "3f7c1b2a-1111-2222-3333-444455556666.1"
#define OBJECT "00000000-0000-4000-8000-000000000001"
#define BOOT "cccccccc-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define BOOT_2 "cccccccc-8f4e-4f0e-9f0a-000000000002"
#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
#define CLAIM_UID "dddddddd-8f4e-4f0e-9f0a-1b2c3d4e5f60" /* of the daemon */
#define OTHER_CLAIM_UID "dddddddd-8f4e-4f0e-9f0a-000000000002"

#define ELSEWHERE "3f7c1b2a-1111-2222-3333-444455556666.3"
#define OTHER_OBJECT "00000000-0000-4000-8000-000000000003"

#define CRASHES                                                                                              \
        ",\"containerStatuses\":[{\"name\":\"compute-domain-daemon\",\"restartCount\":200,\"state\":{"       \
        "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":{\"exitCode\":1}}}]"

struct world {
        struct leading l;
        const char *domains, *claims, *templates; /* lists' items */
        const char *node_labels, *node_spec;      /* members */
        const char *boot;                         /* of the nodes */
        /* What the API server answers where it is asked for n1 itself; NULL: the same. */
        const char *asked_spec, *asked_boot;
        bool asked_refused, asked_gone;
        bool not_ready; /* the nodes */
        bool has_daemon;
        const char *report;             /* of the daemon, as JSON; NULL: none */
        bool ready;                     /* its annotation */
        const char *template_hash;      /* of its Pod */
        const char *daemon_meta;        /* members of the Pod's metadata, each with a comma */
        const char *daemon_status;      /* members of the Pod's status, each with a comma */
        unsigned n_daemons, n_crashing; /* on n1 and on; of these the first, by the present template */
        unsigned n_missing;             /* the first nodes, whose daemon has no Pod yet */
        const char *unprepared;         /* the daemon claim that the plugin has unprepared last */
        const char *refused;            /* UID of the daemon's Pod that the plugin has refused last */
        const char *slice;              /* the partition that the nodes' slices name; NULL: no slices */
        bool elsewhere;              /* the daemon has the label of another partition, which has an object */
        bool has_set;                /* the DaemonSet is there, as it is to be */
        const char *daemon_template; /* the claim template of the daemons, NULL: there is none */
        bool takes_templates;        /* writes of that succeed */
        char order[32]; /* of writes: d and c: it is deleted and created; s: the DaemonSet is applied */
        bool hold_fabric, hold_deletes; /* these are not answered */
        bool restored;                  /* lists of the object are from before its list */
        const char *assignments;        /* "domains" of the partition's object; NULL: there is none */
        const char *epoch;
        const char *channels, *more; /* of the object; members, each with a comma before it */
        char *object;                /* as the last write left it */
        char fabric[8192], node[1024], deleted[1024]; /* bodies of the last writes */
        char other[8192];                             /* the same, of the object of the other partition */
        char event[2048];                             /* the last one */
        char status[8192];                            /* of the ComputeDomain, as it was written last */
        struct fake_conn *claims_watch, *fabrics_watch, *daemons_watch, *nodes_watch; /* the last of each */
        struct fake_conn *held;                                                       /* the last one */
        unsigned n_claim_lists, n_domain_lists, n_node_asks, n_sets, n_templates, n_set_deletes;
        unsigned n_pod_deletes, n_lease_lists, n_fabric_writes;
        bool go_set;           /* the Go driver's DaemonSet of the domain is there */
        unsigned n_go_deletes; /* of that */
        /* Writes of the object before a daemon's Pod was deleted, and before a Node's label went. */
        unsigned n_before_delete, n_before_label;
};

#define A_DOMAIN(mode)                                                                                       \
        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN                       \
        "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER                                       \
        "\"],\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"" mode                                            \
        "\"}},\"spec\":{\"channel\":{\"resourceClaimTemplate\":{\"name\":\"t\"}}},"                          \
        "\"status\":{\"status\":\"Ready\"}}"
#define A_CLAIM                                                                                              \
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"team-a\",\"uid\":\"c\",\"resourceVersion\":\"1\","    \
        "\"creationTimestamp\":\"2026-02-01T00:00:00Z\"},\"status\":{\"allocation\":{\"devices\":{"          \
        "\"results\":[{"                                                                                     \
        "\"request\":\"channel\",\"driver\":\"" CD_DRIVER "\",\"pool\":\"n1\",\"device\":\"channel-0\"}],"   \
        "\"config\":[{\"source\":\"FromClaim\",\"requests\":[],\"opaque\":{\"driver\":\"" CD_DRIVER          \
        "\",\"parameters\":{\"apiVersion\":\"" CD_API_VERSION                                                \
        "\",\"kind\":\"ComputeDomainChannelConfig\",\"domainID\":\"" DOMAIN "\"}}}]}}}}"

#define DAEMON_TEMPLATE                                                                                      \
        "{\"metadata\":{\"name\":\"computedomain-daemon-" DOMAIN                                             \
        "\",\"namespace\":\"driver\",\"uid\":\"r\",\"resourceVersion\":\"1\",\"finalizers\":["               \
        "\"" CD_FINALIZER "\"],\"labels\":{\"" CD_LABEL "\":\"" DOMAIN "\",\"" CD_LABEL_TARGET               \
        "\":\"" CD_TARGET_DAEMON "\"}},\"spec\":{\"spec\":{}}}"

/* ---- reports of the daemon of n1 ---- */

#define REPORT_IN(boot, object, more)                                                                        \
        "{\"claimUID\":\"" CLAIM_UID "\",\"bootID\":\"" boot "\",\"fabricUID\":\"" object "\"" more "}"
#define REPORT(more) REPORT_IN(BOOT, OBJECT, more)
#define IDLE REPORT("")
#define ASSIGNED(domain, index, epoch)                                                                       \
        ",\"assignment\":\"" CLIQUE "/" domain "/" index "/" epoch "\",\"seen\":" epoch
#define RUNS(index, epoch) REPORT(ASSIGNED(DOMAIN, index, epoch) ",\"ready\":true,\"served\":true")
#define STARTS(index, epoch) REPORT(ASSIGNED(DOMAIN, index, epoch))

/* ---- domains of the partition's object, with the assignment of n1 ---- */

#define THE_OWNER                                                                                            \
        "{\"owner\":{\"kind\":\"ComputeDomain\",\"namespace\":\"team-a\",\"name\":\"train\",\"uid\":"        \
        "\"" DOMAIN "\"},\"infix\":\"0123456789\",\"slots\":18,\"port\":28001,"
#define THE_DAEMON "\"claimUID\":\"" CLAIM_UID "\",\"bootID\":\"" BOOT "\""
#define ACTIVE                                                                                               \
        THE_OWNER "\"assignments\":[{\"node\":\"n1\",\"index\":3,\"epoch\":7," THE_DAEMON                    \
                  ",\"ip\":\"10.0.0.1\"}]}"
#define IS_LEAVING(state)                                                                                    \
        "\"assignments\":[{\"node\":\"n1\",\"index\":3,\"epoch\":7,\"state\":\"" state "\"," THE_DAEMON "}]"
#define IS_RESERVED "\"assignments\":[{\"node\":\"n1\",\"index\":3,\"epoch\":7,\"state\":\"Reserved\"}]"
#define LEAVING THE_OWNER IS_LEAVING("Leaving") "}"
#define LABELLED "\"" CD_LABEL_DAEMON "\":\"true\""
#define ASSIGNS "\"assignments\":[{"
#define MARKED "\"removals\":[{\"node\":\"n1\",\"podUID\":\"p1\"}]"
/* Of a new domain: to n1, with the first index. */
#define ASSIGNED_FIRST                                                                                       \
        "\"assignments\":[{\"node\":\"n1\",\"index\":0,\"epoch\":1," THE_DAEMON ",\"ip\":\"10.0.0.1\"}]"

#define BY_DAEMONS ""
#define BY_HOSTS "HostManagedIMEX=true"

int world_setup(void **state);
int world_teardown(void **state);
/* The mode that these settings choose, with the labels that its nodes have. */
void world_set_mode(struct world *w, const char *gates, const char *isolation);
/* The next leader, which knows nothing. */
void world_start_again(struct world *w);
/* The claim template of the daemons as it is to be, with these members of its metadata. The caller frees it.
 */
char *world_template_text(const char *meta);
/* The daemon of n1 reports this: from the start, or as a change. */
void world_has_reported(struct world *w, const char *report);
void world_change_report(struct world *w, const char *report);
/* The Node n1 is changed, or deleted: type of the event and the labels that it has then. */
void world_change_node(struct world *w, const char *type, const char *labels);
/* A ComputeDomain with a claim on n1. */
void world_is_claimed(struct world *w);
/* n1 is assigned to the ComputeDomain, with epoch 7. */
void world_is_assigned(struct world *w);
