/* SPDX-License-Identifier: Apache-2.0 */
/* daemons_world: an API server for a leading controller, with nodes in one partition, their daemons, the
 * fabric object, and a ComputeDomain. Tests change its content before the controller starts, or between two
 * starts. */
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
        const char *domains, *claims, *templates; /* items of lists */
        const char *node_labels, *node_spec;      /* members */
        const char *boot;                         /* of the nodes */
        /* n1 in lists that confirm; NULL: as in other lists. */
        const char *asked_spec, *asked_boot;
        bool asked_refused, asked_gone;
        bool not_ready; /* the nodes */
        bool has_daemon;
        const char *report;             /* of the daemon, as JSON; NULL: none */
        bool ready;                     /* the ready annotation of the daemon's Pod */
        bool mirror;                    /* the Pod represents a static Pod */
        const char *template_hash;      /* of the daemon's Pod */
        const char *daemon_meta;        /* members of the Pod's metadata, each followed by a comma */
        const char *daemon_status;      /* members of the Pod's status, each preceded by a comma */
        unsigned n_daemons, n_crashing; /* daemons on n1, n2, ...; the first of them crash, with the present
                                           template */
        unsigned n_orphans;             /* daemons on further nodes, whose Node objects do not exist */
        unsigned n_missing;             /* the first nodes, whose daemons have no Pod yet */
        unsigned n_new;                 /* the first nodes, whose daemons have the present template and do not
                                           run yet */
        unsigned n_ending;              /* the first nodes, whose daemons' Pods are being deleted */
        const char *unprepared;         /* the last daemon claim that the plugin has unprepared */
        const char *refused;            /* UID of the last daemon's Pod that the plugin has refused */
        const char *slice;              /* the clique ID in the slice of n1; NULL: no slices */
        bool withheld;                  /* the slice of n1 has no device */
        bool elsewhere; /* the daemon of n1 has the label of another partition, which has an object */
        bool has_set;   /* the right DaemonSet exists */
        const char *daemon_template; /* the claim template of the daemons; NULL: none */
        bool takes_templates;        /* writes of this template succeed */
        char order[32]; /* of writes; d, c: the template is deleted, created; s: the DaemonSet is applied */
        bool hold_fabric, hold_deletes; /* writes of the object, and deletions, get no answer */
        const char *fabric_created;     /* when the controller creates the object; NULL: with the slices */
        bool restored;                  /* lists of the object are older than the first list */
        const char *assignments;        /* "domains" of the fabric object; NULL: the object does not exist */
        const char *epoch, *member;     /* the same */
        const char *channels, *more;    /* of the object; other members, each preceded by a comma */
        char *object;                   /* after the last write */
        char fabric[8192], node[1024], deleted[1024]; /* bodies of the last writes */
        char other[8192];                             /* the same, of the other partition's object */
        char event[2048];                             /* the last one */
        char status[8192];                            /* the last status of the ComputeDomain */
        struct fake_conn *claims_watch, *fabrics_watch, *daemons_watch, *nodes_watch, *slices_watch,
                *plugins_watch; /* the last of each */
        struct fake_conn *held; /* the last one */
        unsigned n_claim_lists, n_domain_lists, n_node_asks, n_sets, n_templates, n_set_deletes;
        unsigned n_pod_deletes, n_lease_lists, n_fabric_writes;
        bool go_set;                      /* the Go driver's DaemonSet of the ComputeDomain exists */
        const char *go_pods, *go_cliques; /* items of lists */
        unsigned n_go_deletes;            /* of this DaemonSet */
        /* Writes of the object before a daemon's Pod was deleted, and before a Node's label was removed. */
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

/* ---- "domains" of the fabric object, with the assignment of n1 ---- */

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
/* The first assignment of a new IMEX domain: n1 has index 0. */
#define ASSIGNED_FIRST                                                                                       \
        "\"assignments\":[{\"node\":\"n1\",\"index\":0,\"epoch\":1," THE_DAEMON ",\"ip\":\"10.0.0.1\"}]"

#define BY_DAEMONS ""
#define BY_HOSTS "HostManagedIMEX=true"

int world_setup(void **state);
int world_teardown(void **state);
/* Sets the mode that these settings choose, and the labels that Nodes have in this mode. */
void world_set_mode(struct world *w, const char *gates, const char *isolation);
/* Starts the next leader, which has no memory. */
void world_start_again(struct world *w);
/* The right claim template of the daemons, with these members in its metadata. The caller frees it. */
char *world_template_text(const char *meta);
/* The daemon of n1 has this report from the start, or changes its report. */
void world_has_reported(struct world *w, const char *report);
void world_change_report(struct world *w, const char *report);
/* The Node n1 is changed or deleted: the type of the watch event, and the Node's new labels. */
void world_change_node(struct world *w, const char *type, const char *labels);
/* The plugin of n1 reports that it has refused this Pod. Before, it has reported another one. */
void world_change_refused(struct world *w, const char *refused);
/* The fabric object is changed, and has these members, each preceded by a comma. */
void world_change_fabric(struct world *w, const char *more);
/* The plugin of n1 offers its devices again. */
void world_offer(struct world *w);
/* The ComputeDomain has a claim on n1. */
void world_is_claimed(struct world *w);
/* n1 is assigned to the ComputeDomain, with epoch 7. */
void world_is_assigned(struct world *w);
