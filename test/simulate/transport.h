/* SPDX-License-Identifier: Apache-2.0 */
/* transport: implements base/http_client.h, between the programs and the server of this process. The
 * simulator is linked with it instead of libcurl. The base_url identifies a client: "http://controller-0",
 * and "http://node-3" and "http://daemon-3" for the programs on a node. */
#pragma once

#include <stdint.h>

#include "store.h"

/* Checks that each watch that was accepted longer ago than an informer may take to list (kube_informer.h)
 * belongs to an informer that has listed since `since_ms`. */
void transport_check_listed(int64_t since_ms);
/* Breaks the connections of a program. */
void transport_cut(unsigned program);
/* Returns the time when the program sent the request that is being executed, and so decided its content. */
int64_t transport_sent_ms(void);
/* For the store: sends a change to the watches, to each one at its time. */
void transport_changed(enum kind k);
