/* SPDX-License-Identifier: Apache-2.0 */
/* live_read: asks the API server whether an object that the caches do not show really does not exist, before
 * the controller removes something because of it.
 *
 * Each question is whether a list contains an object with a certain key: a ComputeDomain with a UID, a claim
 * that brings a node into a ComputeDomain, a Node that is not out of service, or a Node in a certain boot.
 * Only a list that began after the question answers it. The API server reads the list from etcd and not from
 * its cache, because the request has no resourceVersion. Questions that arrive during a list, or in the pause
 * after it, share the next one. A list also renews the answers that were used since the last one. The module
 * passes each object in the list to `found`, so that the caches get the object. A list that fails, or
 * contains an object that cannot be decoded, answers no question. It is retried with back-off as long as
 * callers ask.
 *
 * The module drops an expired answer after at most twice its lifetime, and does the same with a question that
 * no caller repeats after a failure. Loop thread only. */
#pragma once

#include "kube/kube_client.h"
#include "kube/work_queue.h"

struct live_read;

enum live_read_kind {
        LIVE_READ_DOMAIN, /* key: UID of a ComputeDomain; in all namespaces */
        /* An allocated shared claim counts for every node, because its allocation names none. */
        LIVE_READ_CLAIM, /* key: live_read_on_node(); in the ComputeDomain's namespace; with any isolation */
        LIVE_READ_NODE,  /* key: live_read_node() */
};

struct live_read_options {
        struct kube_client *client;
        struct work_queue *queue;
        void (*found)(void *u, enum live_read_kind what, yyjson_val *object);
        void *u;
        unsigned valid_ms; /* how long an answer is valid; 0: 10 s. The first answer that an object
                              exists: a tenth of this time */
        unsigned pause_ms; /* from the end of a list to the next one of the same kind and namespace, or of
                              the same Node, plus four times the duration of the list, up to 30 s; 0: 50 ms */
};

struct live_read *live_read_new(const struct live_read_options *o);
void live_read_free(struct live_read *c); /* cancels requests in flight */

/* Renders the key "<UID of the ComputeDomain>/<node>"; node "": any node. */
void live_read_on_node(const char *domain_uid, const char *node, struct buf *out);
/* Renders the key "<node>/<boot ID>/<tag>", for the Node in this boot. boot_id NULL: the Node in any boot, if
 * it is not out of service. `tag`, a text without "/", separates answers that may not be shared. */
void live_read_node(const char *node, const char *boot_id, const char *tag, struct buf *out);

/* Returns true if the API server has confirmed within the last valid_ms that the object does not exist.
 * Otherwise sends the question, and queues `requester` after any answer. ns NULL: all namespaces. */
bool live_read_absent(struct live_read *c, enum live_read_kind what, const char *ns, const char *key,
                      const char *requester);
/* Returns the same, but sends no question. */
bool live_read_known(const struct live_read *c, enum live_read_kind what, const char *ns, const char *key);
size_t live_read_count(const struct live_read *c); /* the number of questions and lists in memory */
