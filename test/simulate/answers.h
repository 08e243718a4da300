/* SPDX-License-Identifier: Apache-2.0 */
/* answers: lists the objects of the simulated cluster for the kubectl plugin. Adds what the other programs of
 * the simulation do not need: the users' Pods with the conditions and Events of the scheduler and the
 * kubelet, the containers of Pods, and the Deployment and DaemonSet of the installation. */
#pragma once

#include <stdbool.h>

#include "cli/source.h"

/* Which rule of the scheduler excludes nodes (`excluded` of struct node). */
enum answers_rule {
        ANSWERS_NO_RULE,
        ANSWERS_NODE_SELECTOR,
        ANSWERS_NODE_AFFINITY,
        ANSWERS_TAINT,
        ANSWERS_POD_AFFINITY,
        ANSWERS_POD_ANTI_AFFINITY
};
/* The label of nodes that are not excluded, and the taint of those that are. */
#define ANSWERS_LABEL "example.com/pool"
#define ANSWERS_LABEL_VALUE "a"
#define ANSWERS_TAINT_KEY "example.com/dedicated"

struct answers {
        struct source source;
        bool admin;       /* otherwise the user may list only the objects of the namespace USER_NS */
        bool image_fails; /* the images of the users' Pods cannot be pulled */
        bool misspelt;    /* pods without a claim name a claim template that does not exist */
        bool no_controller;
        enum answers_rule rule;
};
void answers_init(struct answers *a);

/* The users' Pods. Returns false if there are fewer. `name` has 64 bytes. */
enum answers_state { ANSWERS_NO_CLAIM, ANSWERS_NO_NODE, ANSWERS_STARTS, ANSWERS_RUNS, ANSWERS_OTHER };
struct answers_pod {
        char name[64];
        enum answers_state state;
        int node; /* -1: none */
        unsigned domain;
        long long since_ms; /* how long it has been in this state, as far as answers_note() has seen */
};
bool answers_pod(unsigned i, struct answers_pod *ret);
/* Call it regularly: it records since when each pod has been in its state. */
void answers_note(void);
