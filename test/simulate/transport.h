/* SPDX-License-Identifier: Apache-2.0 */
/* transport: base/http_client.h, between the programs and the server of this process. Takes the place of
 * libcurl when the simulator is linked. A client is known by its base_url: "http://controller-0",
 * "http://node-3" and "http://daemon-3" for what runs on that node. */
#pragma once

#include <stdint.h>

#include "store.h"

/* Each watch that has been accepted for as long as an informer may take to list (kube_informer.h) belongs to
 * an informer that has listed since then. */
void transport_check_listed(int64_t since_ms);
/* The connections of a program break. */
void transport_cut(unsigned program);
/* When the request was sent that is being done: what it says was decided then. */
int64_t transport_sent_ms(void);
/* For the store: watches are told of it, each at its time. */
void transport_changed(enum kind k);
