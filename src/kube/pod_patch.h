/* SPDX-License-Identifier: Apache-2.0 */
/* pod_patch: keeps the labels and annotations of a program's own Pod at its newest report: one patch in
 * flight, what comes meanwhile goes into the next, failures come back with a growing pause for as long as it
 * takes. Nobody is told of them. Loop thread only. */
#pragma once

#include "kube/kube_client.h"

struct pod_patch;

struct pod_patch_options {
        struct kube_client *client;
        const char *ns, *name; /* of the Pod; copied */
        /* Milliseconds that the step from `sent` (NULL: nothing was reported yet) to `now` may wait for more
         * to come with it. Pure. */
        unsigned (*patience)(const void *sent, const void *now);
        void (*drop)(void *report); /* frees a report */
};

struct pod_patch *pod_patch_new(const struct pod_patch_options *o);
void pod_patch_free(struct pod_patch *p); /* not from inside a callback; NULL is allowed */
/* Takes the report; `body` is the merge patch made of it, copied. */
void pod_patch_set(struct pod_patch *p, void *report, struct str body);
