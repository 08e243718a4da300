/* pod_patch: keeps the daemon's own Pod at the newest report: one patch in flight, what comes meanwhile goes into the next, failures come
 * back with a growing pause for as long as it takes. Nothing that happens here disturbs IMEX. Loop thread only. */
#ifndef DAEMON_POD_PATCH_H
#define DAEMON_POD_PATCH_H

#include "daemon/pod_report.h"
#include "kube/kube_client.h"

struct pod_patch;

struct pod_patch *pod_patch_new(struct kube_client *c, const char *ns, const char *name);
void pod_patch_free(struct pod_patch *p);
void pod_patch_set(struct pod_patch *p, const struct pod_report *r); /* copied */

#endif
