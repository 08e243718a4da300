/* SPDX-License-Identifier: Apache-2.0 */
/* informers: takes the place of kube_informer, over the objects of api. An informer of one object
 * (metadata.name=...) shows it as it was when the test last called informers_see(), one of a Pod from its
 * start; one of many finds them by their index as they are at the moment. */
#pragma once

#include <stdbool.h>

#include "kube/kube_resource.h"

/* The watches of this kind see what api has now, in a later informers_turn(); an older version only with
 * `any_version`, as after a restore of etcd. */
void informers_see(const struct kube_resource *res, bool any_version);
/* Calls back those that have news; false: none has. */
bool informers_turn(void);
/* Those of many do not have the objects yet. */
extern bool informers_lag;
