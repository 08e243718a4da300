/* SPDX-License-Identifier: Apache-2.0 */
/* informers: replaces kube_informer, with the objects of api. An informer of one object (metadata.name=...)
 * shows the object as of the last informers_see(), and one of a Pod from its start. An informer of many
 * objects finds the present ones by their index. */
#pragma once

#include <stdbool.h>

#include "kube/kube_resource.h"

/* The watches of this kind see the present objects of api, in a later informers_turn(). They see an older
 * version only with `any_version`, as after a restore of etcd. */
void informers_see(const struct kube_resource *res, bool any_version);
/* Calls the informers that have changes; false: none has. */
bool informers_turn(void);
/* Informers of many objects lack them so far. */
extern bool informers_lag;
