/* SPDX-License-Identifier: Apache-2.0 */
/* informers: replaces kube_informer, with the objects of api. An informer of one object (metadata.name=...)
 * shows the version of the object at the last informers_see(); an informer of a Pod or a ComputeDomain also
 * shows the version at its own start. An informer of many objects looks up the present objects by their
 * index. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "kube/kube_object.h"

/* Lets the watches of this kind see the present objects of api, in a later informers_turn(). They see a
 * version older than the last one only with `any_version`, as after a restore of etcd. */
void informers_see(const struct kube_resource *res, bool any_version);
/* Calls the informers that have changes. Returns false if none has. */
bool informers_turn(void);
/* Reports to the informers of one object of this kind that they fail; e NULL: that they work again. */
void informers_fail(const struct kube_resource *res, const struct err *e);
/* The number of calls of kube_informer_relist(). The list arrives with informers_see(). */
extern unsigned informers_relists;
/* True: informers of many objects do not have any objects yet. */
extern bool informers_lag;
/* No watch has listed its objects yet. */
extern bool informers_unsynced;
