/* SPDX-License-Identifier: Apache-2.0 */
/* world: a small cluster in one block of bytes: an NVLink partition with its ComputeDomainFabric, nodes with
 * their daemons, and controllers. What daemons, kubelet plugins and controllers decide in it is decided by
 * the functions that the programs call (daemon/decision, cd_plugin/may_prepare, rules/assignment_facts and
 * rules/assignment). What the kubelet, the API server and nvidia-imex do is played here.
 *
 * Everything is a small number; 0 means none. Domains, nodes and controllers are numbered from 0, and a field
 * that may be none holds one more. Pods, their daemon claims (one for each Pod, with the same number) and
 * boots are numbered for each node. Numbers that cannot be told apart are renamed (rename.c), so that the
 * same state is the same block of bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "search.h"

enum { NODES = 3, DOMAINS = 2, CONTROLLERS = 2, VERSIONS = 3, LEFT = 4, STEPS_MAX = 200 };

/* A row of the table of worlds: what there is, and how much may happen. */
struct row {
        const char *name, *what;
        bool plain; /* nodes, and domains, are not taken as alike */
        unsigned nodes, domains, controllers;
        unsigned go; /* daemons of the Go driver that hold the daemon device when it begins */
        /* How much may happen. */
        unsigned changes;  /* claims that are allocated or deallocated */
        unsigned crashes;  /* of a daemon's container, with its IMEX */
        unsigned unclean;  /* an nvidia-imex that has to be killed when it is stopped */
        unsigned restores; /* of etcd; from a snapshot that is taken at any time before */
        unsigned lost;     /* answers to a controller's write; with late_writes and late_views */
        unsigned cuts;     /* a node is cut off from the API server */
        unsigned forces;   /* a daemon Pod is deleted by force, whether or not its process has ended */
        unsigned drains;   /* a daemon Pod is deleted in order */
        unsigned reboots;
        unsigned deletes; /* of ComputeDomains */
        /* 1: what follows happens in two steps, between which others act. */
        unsigned late_ends;    /* a claim is unprepared, and is deallocated */
        unsigned late_claims;  /* a claim is allocated, and controllers see it */
        unsigned late_reports; /* a daemon decides, and its report is stored */
        unsigned late_writes;  /* a controller's write is sent, and is served */
        unsigned late_views;   /* a version of the object is written, and a controller sees it */
        unsigned late_notes;   /* the plugin notes a claim, and looks whether IMEX is READY */
        unsigned late_plugin;  /* a version of the object is written, and the plugin sees it */
        unsigned late_pods;    /* a controller sees the Pod of the daemon, and that of the plugin */
        unsigned recounts;     /* 1: a recount may begin, though etcd was not restored */
};

/* Recounts may begin, so that it matters what daemons have seen. */
static inline bool row_recounts(const struct row *row) {
        return row->restores || row->recounts;
}

/* A node's place in a domain, as an object has it. */
enum place_state { PLACE_NONE, PLACE_ACTIVE, PLACE_RESERVED, PLACE_LEAVING, PLACE_ENDING };

struct place {
        uint8_t state, index, epoch, claim, boot, ip;
};

/* The ComputeDomainFabric. */
struct object {
        uint8_t uid; /* 0: it does not exist */
        uint8_t epoch, recount;
        uint8_t n_domains, domains[DOMAINS]; /* that are listed, in this order */
        uint8_t n_freed[DOMAINS], freed[DOMAINS][NODES];
        struct place places[DOMAINS][NODES];
        uint8_t removals[NODES]; /* Pods */
};

/* What a daemon has written on its Pod. */
struct report {
        uint8_t pod; /* 0: nothing yet */
        uint8_t boot, object, domain, index, epoch, ready, served, seen, recount, n_left, left[LEFT];
};

/* What a daemon remembers on the disk of its node. */
struct memory {
        uint8_t domain, index, epoch, ready, closed, seen, recount, n_left, left[LEFT];
        uint8_t pod;    /* that the assignment is of */
        uint8_t served; /* the Pod in which IMEX has been READY */
};

enum claim_phase { CLAIM_NONE, CLAIM_WAITING, CLAIM_PREPARED, CLAIM_ENDED /* its pod has ended */ };
/* imex/imex_grants.h: the plugin has noted the claim; has found IMEX READY, and writes the CDI file next. */
enum claim_note { NOTE_NONE, NOTE_GRANTING, NOTE_JUDGED };

struct host {
        /* The workload's claim. */
        uint8_t domain, phase, note;
        uint8_t unseen; /* no controller has seen yet that it is allocated */
        uint8_t orphan; /* a domain of which a claim is prepared that the API does not have any more */
        uint8_t hurt;   /* a fault has ended IMEX under what is prepared */
        /* What the API has of the node, and of its daemon. */
        uint8_t boot_told, pod, deleted, unprepared;
        struct report report;
        /* The node itself. */
        uint8_t boot, cut, go;
        uint8_t process; /* Pod whose process runs; 0: none */
        uint8_t last;    /* Pod whose daemon claim is prepared; 0: none */
        struct memory memory;
        uint8_t imex, withdrawn, paused, terminating;
        uint8_t view;        /* the version of the object that the daemon has, see world_view(); 0: none */
        uint8_t plugin_view; /* the same of the plugin while a claim waits */
};

/* What a controller has seen of a node. */
struct heard {
        uint8_t boot, pod, deleted, unprepared;
        struct report report;
};

struct controller {
        uint8_t view;       /* as above */
        uint8_t went_back;  /* it has seen that the version of the object went back, and no recount since; */
        uint8_t went_epoch; /* the object's epoch then */
        uint8_t waits;      /* it was restarted with etcd, and begins when the daemons have reported again */
        uint8_t base;       /* the version that `wanted` was made from; 0: no write is under way */
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
        struct object versions[VERSIONS]; /* the newest first; those that nobody has any more are empty */
        struct object frozen;             /* what the daemon of the node that is cut off has */
        struct host hosts[NODES];
        struct controller controllers[CONTROLLERS];
        struct snapshot snapshot;
        uint8_t restored;    /* the view of the version that was restored; 0: none, or nobody is behind it */
        uint8_t domain_ends; /* a bit for each ComputeDomain that is deleted */
        /* That may still happen. */
        uint8_t changes, crashes, unclean, restores, lost, cuts, forces, drains, reboots, deletes;
};

enum { VIEW_NONE, VIEW_NEWEST, VIEW_FROZEN = VERSIONS + 1 };
/* What a view shows, NULL: nothing. VIEW_NEWEST + n is what was newest n writes ago. */
const struct object *world_view(const struct world *w, unsigned view);
/* A new version. False: a reader would be too far behind, so that it has to read first. */
bool world_publish(const struct row *row, struct world *w, const struct object *o);

/* A row, and what its functions have answered before. */
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
/* A claim of the domain is prepared on the node. */
bool node_is_used(const struct host *h, unsigned domain);
bool node_plugin(struct run *r, struct world *w, unsigned node, const char **broken);
/* The daemon looks who uses its domain, the plugin goes on for some steps, and the daemon decides and acts.
 */
bool node_daemon(struct run *r, struct world *w, unsigned node, unsigned plugin_steps, const char **broken);
struct memo *node_memo(void);
bool node_imex(struct world *w, unsigned node, bool clean);
/* The process ends, and IMEX with it. */
void node_kill(struct host *h);
void node_start(struct host *h);
bool node_is_reported(const struct row *row, const struct world *w, unsigned node); /* as it is now */
void node_report(const struct row *row, struct world *w, unsigned node);

/* ---- control.c ---- */
struct control {
        struct object object;
        uint8_t changed, broken;
};
/* What a controller decides. `idle`: a domain without nodes has been empty for a minute. `order`: of the
 * nodes' names, because rules give what is scarce in that order. */
const struct control *control_decide(struct run *r, const struct world *w, unsigned controller, bool idle,
                                     const uint8_t order[static NODES]);
struct memo *control_memo(void);
/* The object as the programs have it; all is in the arena. */
struct arena;
struct compute_domain_fabric *control_fabric(const struct object *o, const struct row *row, struct arena *a);

/* What the daemon and the plugin of a node look at in an object: what it has of other nodes is made the same.
 * Each decision is made with and without it, and both must be equal. */
void node_project(const struct row *row, const struct object *o, unsigned node, struct object *ret);

/* ---- names.c ---- */
enum uid { UID_DOMAIN, UID_OBJECT, UID_BOOT, UID_CLAIM, UID_POD };
const char *uid_of(enum uid kind, unsigned node, unsigned number); /* NULL of 0 */
unsigned uid_number(const char *uid);                              /* 0 of NULL */
const char *node_name(unsigned node);
unsigned node_number(const char *name);

/* ---- rename.c ---- */
struct offsets *rename_new(void);
/* The object with nodes in another order; with its domains exchanged. */
void rename_order(struct object *o, const uint8_t order[static NODES]);
void rename_swap(struct object *o);
uint8_t rename_swapped(uint8_t domain);
void rename_world(const struct run *r, struct world *w);
/* Of versions that are the same for a node, it has the newest. */
void rename_views(const struct row *row, struct world *w);
/* The highest number of a Pod of the node that anything names. */
unsigned rename_last_pod(const struct run *r, const struct world *w, unsigned node);
unsigned rename_last_boot(const struct run *r, const struct world *w, unsigned node);

struct run *world_new(const struct row *row);
void world_free(struct run *r);
void world_describe(struct run *r, struct search_world *ret);

/* ---- tell.c ---- */
void tell_step(const struct world *before, unsigned step, const struct world *after, FILE *out);

/* The transitions: its kind, and of what. */
enum step {
        /* What people and faults do. */
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
        STEP_RESTORE, /* 1: the controllers are restarted */
        STEP_LOSE,    /* controller: its write is served, and the answer is lost */
        /* What happens by itself. */
        STEP_SEE_CLAIM,
        STEP_PLUGIN,
        STEP_PLUGIN_SEES,
        STEP_DELIVER, /* node, how many versions it misses + 2 * steps of the plugin before the daemon acts */
        STEP_DAEMON,  /* node, steps of the plugin */
        STEP_IMEX,    /* node, 1: the daemon decides later */
        STEP_REPORT,
        STEP_HEAR,    /* node, controller + 2 * what it sees: the daemon's Pod, the Node, the plugin's Pod */
        STEP_SEE,     /* controller */
        STEP_CONTROL, /* controller, 2 * order of the nodes' names, and 1 if a minute is over */
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
/* A number of a transition is 64 * kind + 16 * who + what. */
enum { STEP_WHO = 4, STEP_WHAT = 16 };

/* The orders of up to three nodes; the first 2 are those of two. */
enum { ORDERS = 6 };
extern const uint8_t orders[ORDERS][NODES];
