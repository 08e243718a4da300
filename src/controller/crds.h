/* crds: the two CustomResourceDefinitions, built into the program and applied at its start: Helm installs,
 * but never upgrades them. */
#ifndef CONTROLLER_CRDS_H
#define CONTROLLER_CRDS_H

#include "kube/kube_client.h"

/* Applies both by server-side apply; what fails is logged. done is called once, in any case. */
void crds_apply(struct kube_client *c, void (*done)(void *u), void *u);

#endif
