/* SPDX-License-Identifier: Apache-2.0 */
/* test_pods: the pods of the command `test`: which racks get pods, their manifests, and what `kubectl get
 * --watch` reports about them. Pure. */
#pragma once

#include "cli/rack_list.h"

/* The key of the label that all objects of one run have. */
#define TEST_PODS_LABEL "compute-domains-test"
#define TEST_PODS_COLUMNS                                                                                    \
        "jsonpath={.metadata.name}{\" \"}{.status.phase}{\" \"}"                                             \
        "{.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}"

struct test_pod {
        const char *name;
        size_t rack; /* index in test_plan.racks */
        enum { TEST_POD_WAITS, TEST_POD_READY, TEST_POD_FAILED } state;
};

struct test_plan {
        const char *run, *ns, *image; /* `run` is the name of the ComputeDomain */
        bool own_image; /* the image of the driver, which has no shell */
        const struct inventory_rack **racks;
        size_t n_racks;
        struct test_pod *pods;
        size_t n_pods;
};

/* Chooses the racks: all, or the one with this name or clique ID. Two pods for each, or one for a rack with a
 * single node that is up. A rack without such a node gets none. ERR_NOT_FOUND: no rack has the name.
 * ERR_INVALID: a name cannot be in a manifest. The plan lives in the arena; run, ns and image must be set,
 * and be safe between the quotation marks of YAML. */
int test_pods_plan(struct test_plan *p, const struct inventory *inv, const char *rack, struct arena *a,
                   struct err *e);
/* Adds the manifests as YAML. */
void test_pods_manifest(const struct test_plan *p, struct buf *out);
/* Takes a line in the format of TEST_PODS_COLUMNS. Other lines are ignored. */
void test_pods_take(struct test_plan *p, struct str line);
/* Whether every pod is ready or has failed. */
bool test_pods_settled(const struct test_plan *p);
