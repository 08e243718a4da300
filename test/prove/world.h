/* SPDX-License-Identifier: Apache-2.0 */
/* world: models a small cluster in one block of bytes: an NVLink partition with its ComputeDomainFabric,
 * nodes with their daemons, and controllers. Daemons, kubelet plugins and controllers decide with the
 * functions that the programs call (daemon/decision, cd_plugin/may_prepare, rules/assignment_facts and
 * rules/assignment). This module simulates the kubelet, the API server and nvidia-imex.
 *
 * All values are small numbers; 0 means none. Domains, nodes and controllers are numbered from 0; a field
 * that may be none contains the number plus one. Pods, their daemon claims (one for each Pod, with the same
 * number) and boots are numbered for each node. Numbers that cannot be distinguished are renamed (rename.c),
 * so that equal states are equal blocks of bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "search.h"

enum { NODES = 3, DOMAINS = 2, CONTROLLERS = 2, VERSIONS = 3, LEFT = 4, STEPS_MAX = 250 };

/* A row of the table of worlds: the parts of a world, and the number of its events. */
struct row {
        const char *name, *what;
        bool plain; /* treat neither nodes nor domains as interchangeable */
        unsigned nodes, domains, controllers;
        unsigned go; /* daemons of the Go driver that hold the daemon device at the beginning */
        /* How often each event may occur. */
        unsigned changes;  /* claims that are allocated or deallocated */
        unsigned crashes;  /* crashes of a daemon's container, with its IMEX */
        unsigned unclean;  /* an nvidia-imex must be killed when it is stopped */
        unsigned restores; /* restores of etcd, from a snapshot of any earlier time */
        unsigned lost;     /* lost answers to a controller's write; with late_writes and late_views */
        unsigned cuts;     /* a node is cut off from the API server */
        unsigned forces;   /* a daemon's Pod is force-deleted, whether or not its process has ended */
        unsigned drains;   /* a daemon's Pod is deleted normally */
        unsigned reboots;
        unsigned deletes; /* deletions of ComputeDomains */
        /* 1: the event happens in two steps, and others act in between. */
        unsigned late_ends;    /* a claim is unprepared, and then deallocated */
        unsigned late_claims;  /* a claim is allocated, and then controllers see it */
        unsigned late_reports; /* a daemon decides, and then its report is stored */
        unsigned late_writes;  /* a controller sends a write, and then the API server executes it */
        unsigned late_views;   /* a version of the object is written, and then a controller sees it */
        unsigned late_notes;   /* the plugin writes the grant, and then checks whether IMEX is READY */
        unsigned late_plugin;  /* a version of the object is written, and then the plugin sees it */
        unsigned late_pods;    /* a controller sees the Pod of the daemon, and then that of the plugin */
        /* A pod is force-deleted, or its node is cut off, and then the Prepare of its claim ends. Not together
         * with late_plugin. */
        unsigned late_prepares;
        unsigned recounts; /* 1: a recount may begin although etcd was not restored */
};

/* Returns true if recounts may begin, so that the epochs that daemons have seen matter. */
static inline bool row_recounts(const struct row *row) {
        return row->restores || row->recounts;
}

/* The assignment of a node in a domain, in the fabric object. */
enum place_state { PLACE_NONE, PLACE_ACTIVE, PLACE_RESERVED, PLACE_LEAVING, PLACE_ENDING };

struct place {
        uint8_t state, index, epoch, claim, boot, ip;
};

/* The ComputeDomainFabric. */
struct object {
        uint8_t uid; /* 0: it does not exist */
        uint8_t epoch, recount;
        uint8_t n_domains, domains[DOMAINS]; /* the listed domains, in this order */
        uint8_t n_freed[DOMAINS], freed[DOMAINS][NODES];
        struct place places[DOMAINS][NODES];
        uint8_t removals[NODES]; /* marked Pods */
};

/* The report on a daemon's Pod. */
struct report {
        uint8_t pod; /* 0: no report yet */
        uint8_t boot, object, domain, index, epoch, ready, served, seen, recount, n_left, left[LEFT];
};

/* The memory of a daemon, on the disk of its node. */
struct memory {
        uint8_t domain, index, epoch, ready, closed, seen, recount, n_left, left[LEFT];
        uint8_t pod;    /* the Pod of the assignment */
        uint8_t served; /* the Pod in which IMEX has been READY */
};

enum claim_phase { CLAIM_NONE, CLAIM_WAITING, CLAIM_PREPARED, CLAIM_ENDED /* its pod has ended */ };
/* The grant of a claim (imex/imex_grants.h). GRANTING: the plugin has written the grant. JUDGED: the plugin
 * has found IMEX READY, and writes the CDI file next. */
enum claim_note { NOTE_NONE, NOTE_GRANTING, NOTE_JUDGED };

struct claim {
        uint8_t domain, phase, note;
        uint8_t view; /* the plugin's version of the object while the claim waits */
};

struct host {
        struct claim claim; /* of the workload */
        uint8_t unseen;     /* no controller has seen the allocation yet */
        /* A claim that is prepared or waits, and that the API server no longer has. */
        struct claim orphan;
        uint8_t hurt; /* a fault has ended IMEX while a claim was prepared */
        /* The node and its daemon in the API server. */
        uint8_t boot_reported, pod, deleted, unprepared;
        struct report report;
        /* The node itself. */
        uint8_t boot, cut, go;
        uint8_t process; /* the Pod whose process runs; 0: none */
        uint8_t last;    /* the Pod whose daemon claim is prepared; 0: none */
        struct memory memory;
        uint8_t imex, withdrawn, paused, terminating;
        uint8_t view; /* the daemon's version of the object, see world_view(); 0: none */
};

/* A controller's knowledge of a node. */
struct heard {
        uint8_t boot, pod, deleted, unprepared;
        struct report report;
};

struct controller {
        uint8_t view;        /* its version of the object */
        uint8_t rolled_back; /* it saw the object's version decrease, and no recount since; */
        uint8_t went_epoch;  /* the epoch of the object at that time */
        uint8_t waits;       /* it restarted with etcd, and waits until the daemons have reported again */
        uint8_t base;        /* the version that `wanted` is based on; 0: no write is in progress */
        struct object wanted;
        struct heard heard[NODES];
};

struct snapshot {
        uint8_t taken;
        struct object object;
        struct report reports[NODES];
        uint8_t pods[NODES];
};

struct world {
        struct object versions[VERSIONS]; /* the newest first; versions that nobody has are empty */
        struct object frozen;             /* the version of the daemon on the node that is cut off */
        struct object frozen_for_plugin;  /* what the plugin of this node reads in its version */
        struct host hosts[NODES];
        struct controller controllers[CONTROLLERS];
        struct snapshot snapshot;
        uint8_t restored;    /* the view of the restored version; 0: none, or all readers have seen it */
        uint8_t domain_ends; /* a bit for each deleted ComputeDomain */
        /* The remaining numbers of events. */
        uint8_t changes, crashes, unclean, restores, lost, cuts, forces, drains, reboots, deletes;
};

enum { VIEW_NONE, VIEW_NEWEST, VIEW_FROZEN = VERSIONS + 1, VIEW_FROZEN_FOR_PLUGIN };
/* Returns the object of a view, or NULL if there is none. VIEW_NEWEST + n is the object that was the newest n
 * writes ago. */
const struct object *world_view(const struct world *w, unsigned view);
/* Stores a new version. Returns false if a reader would be too far behind, so that it must read first. */
bool world_publish(const struct row *row, struct world *w, const struct object *o);

/* A search: the row, and caches of the functions' results. */
struct run {
        const struct row *row;
        struct memo *controls, *decisions;
        struct offsets *offsets; /* rename.c */
        uint16_t steps[STEPS_MAX];
        size_t n_steps;
        char broken[300];
};

/* ---- node.c ---- */
bool node_has_living_imex(const struct host *h);
/* Returns true if a claim of the domain is prepared on the node. */
bool node_is_used(const struct host *h, unsigned domain);
/* The plugin does a step for the claim, or for the claim that the API server no longer has. */
bool node_plugin(struct run *r, struct world *w, unsigned node, bool orphan, const char **broken);
/* Runs the daemon: the daemon reads which claims use its domain, the plugin does some steps, and then the
 * daemon decides and acts. `plugin_steps`: 1 or 2 steps for the claim, 3 or 4: 1 or 2 for the orphan. */
enum { PLUGIN_STEPS = 3, PLUGIN_STEPS_OF_BOTH = 5 };
bool node_daemon(struct run *r, struct world *w, unsigned node, unsigned plugin_steps, const char **broken);
struct memo *node_memo(void);
bool node_imex(struct world *w, unsigned node, bool clean);
/* Ends the process of the daemon and its IMEX. */
void node_kill(struct host *h);
void node_start(struct host *h);
bool node_is_reported(const struct row *row, const struct world *w,
                      unsigned node); /* the present state is reported */
void node_report(const struct row *row, struct world *w, unsigned node);

/* ---- control.c ---- */
struct control {
        struct object object;
        uint8_t changed, broken;
};
/* Returns the decision of a controller. `idle`: a domain without nodes has been empty for a minute. `order`:
 * the order of the nodes' names, in which the rules assign scarce indices. */
const struct control *control_decide(struct run *r, const struct world *w, unsigned controller, bool idle,
                                     const uint8_t order[static NODES]);
struct memo *control_memo(void);
/* Returns the object as the programs decode it, allocated in the arena. */
struct arena;
struct compute_domain_fabric *control_fabric(const struct object *o, const struct row *row, struct arena *a);

/* Returns the part of an object that the daemon and the plugin of a node read; the entries of all other nodes
 * get the same form. The model makes each decision with the full object and with this part, and the results
 * must be equal. */
void node_project(const struct row *row, const struct object *o, unsigned node, struct object *ret);

/* ---- names.c ---- */
enum uid { UID_DOMAIN, UID_OBJECT, UID_BOOT, UID_CLAIM, UID_POD };
const char *uid_of(enum uid kind, unsigned node, unsigned number); /* NULL for 0 */
unsigned uid_number(const char *uid);                              /* 0 for NULL */
const char *node_name(unsigned node);
unsigned node_number(const char *name);

/* ---- rename.c ---- */
struct offsets *rename_new(void);
/* rename_order() changes the order of the object's nodes, rename_swap() exchanges its domains. */
void rename_order(struct object *o, const uint8_t order[static NODES]);
void rename_swap(struct object *o);
uint8_t rename_swapped(uint8_t domain);
void rename_world(const struct run *r, struct world *w);
/* Replaces the views of each daemon and plugin by the newest version with the same content for their node. */
void rename_views(const struct row *row, struct world *w);
/* Return the highest number of a Pod, or a boot, of the node that anything in the world refers to. */
unsigned rename_last_pod(const struct run *r, const struct world *w, unsigned node);
unsigned rename_last_boot(const struct run *r, const struct world *w, unsigned node);

struct run *world_new(const struct row *row);
void world_free(struct run *r);
void world_describe(struct run *r, struct search_world *ret);

/* ---- print.c ---- */
void print_step(const struct world *before, unsigned step, const struct world *after, FILE *out);

/* The kinds of transitions. The comments state what their numbers refer to. */
enum step {
        /* Events that people and faults cause. */
        STEP_ALLOCATE, /* node, domain */
        STEP_DEALLOCATE,
        STEP_END,
        STEP_CRASH,
        STEP_UNCLEAN,
        STEP_DRAIN,
        STEP_FORCE,
        STEP_REBOOT,
        STEP_CUT,
        STEP_HEAL,
        STEP_DELETE_DOMAIN, /* domain */
        STEP_SNAPSHOT,
        STEP_RESTORE, /* 1: the controllers restart */
        STEP_LOSE,    /* controller: its write is executed, and the answer is lost */
        /* Events that happen by themselves. */
        STEP_SEE_CLAIM,
        STEP_PLUGIN,
        STEP_PLUGIN_LATE, /* for a claim that the API server no longer has */
        STEP_PLUGIN_SEES,
        STEP_DELIVER, /* node, number of missed versions + 2 * steps of the plugin (node_daemon()) */
        STEP_DAEMON,  /* node, steps of the plugin */
        STEP_IMEX,    /* node, 1: the daemon decides later */
        STEP_REPORT,
        STEP_HEAR,    /* node, controller + 2 * seen object: the daemon's Pod, the Node, the plugin's Pod */
        STEP_SEE,     /* controller */
        STEP_CONTROL, /* controller, 2 * order of the nodes' names + 1 if a minute has passed */
        STEP_SERVE,   /* controller */
        STEP_RESUME,  /* controller */
        STEP_UNPREPARE,
        STEP_KILL,
        STEP_UNPREPARE_DAEMON,
        STEP_POD_GONE,
        STEP_NEW_POD,
        STEP_START,
        STEP_TELL_BOOT,
        STEP_GO_ENDS,
        N_STEPS
};
/* The number of a transition is 64 * kind + 16 * number of the node, domain or controller + detail. */
enum { STEP_WHO = 4, STEP_WHAT = 16 };

/* The orders of up to three nodes. The first two are the orders of two nodes. */
enum { ORDERS = 6 };
extern const uint8_t orders[ORDERS][NODES];
