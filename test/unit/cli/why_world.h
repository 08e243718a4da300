/* SPDX-License-Identifier: Apache-2.0 */
/* why_world: the answers of `why` in a fake cluster, and the pods that the tests ask about. The whole answers
 * are in test/unit/golden. */
#pragma once

#include "cli/command.h"
#include "cli/command_table.h"
#include "world/cluster.h"

extern struct cluster *cluster; /* of the test that runs */
int why_set_up(void **state);
int why_tear_down(void **state);

/* Runs a command with one argument, and compares its output with the golden file. Returns the exit code. */
int run_golden(const struct command *command, const char *arg, const char *golden);
#define WHY(arg, golden, code) assert_int_equal(run_golden(&command_why, arg, "cli-why-" golden ".txt"), code)
#define AFFINITY_TERM(rest)                                                                                  \
        ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':"      \
        "'" GPU_CLIQUE_LABEL "'" rest "}]}}"
#define AFFINITY_TO(selector) AFFINITY_TERM(",'labelSelector':{" selector "}")
#define AFFINITY AFFINITY_TO("'matchLabels':{'job-name':'train'}")
#define RUNS                                                                                                 \
        ",'containerStatuses':[{'name':'main','state':{'running':{'startedAt':'2026-11-27T11:58:00Z'}}}],"   \
        "'conditions':[{'type':'Ready','status':'True'}]"
#define CANNOT "0/7 nodes are available: 7 cannot allocate all claims."
#define MEMBER(n, clique, i) "{'name':'" n "','cliqueID':'" clique "','index':" i ",'status':'Ready'}"

/* A pod that waits for a node, with an unallocated claim. */
void pod_waits(const char *status, const char *more);

/* A pod on a0 whose claim the plugin does not prepare. */
void pod_is_created(const char *message);

void use_all(const char *ns, const char *uid, const char *nodes);

void runs_on(const char *pod, const char *node, const char *containers);

void pod_has_failed(const char *pod, const char *node);
