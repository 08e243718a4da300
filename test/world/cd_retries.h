/* SPDX-License-Identifier: Apache-2.0 */
/* cd_retries: the pods of claims that a plugin process may ask the kubelet to retry (node/retry.h). */
#pragma once

#include "world/cd_node.h"

enum { RETRIES_TIMEOUT_MS = 400 };

/* Like world_setup_claims(), with a process that may ask the kubelet to retry, and with the pods pod-c1 and
 * pod-c2 of the claims, and pod-d. */
int retries_setup(void **state);

/* Creates a pod in namespace "user", or replaces it by one without the annotation. */
void put_pod(const char *name, const char *uid);
const char *asked(const char *name); /* the value of the annotation; "": there is none */
bool is_asked(const char *name);
/* Returns true if the kubelet was asked to retry the pod, and removes the annotation. */
bool take_request(const char *name);

void pass(unsigned ms); /* lets the time pass */
/* Prepare a claim, and expect that this fails after RETRIES_TIMEOUT_MS, or succeeds. */
void fails(const char *name, const char *uid);
void prepares(const char *name, const char *uid);
void imex_is_ready(void);
