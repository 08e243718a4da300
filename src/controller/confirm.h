/* SPDX-License-Identifier: Apache-2.0 */
/* confirm: asks the server itself whether what the caches do not show is really not there, before something
 * is taken away because of it.
 *
 * A question is whether an object with a certain key is in a list: a ComputeDomain with a UID, a claim that
 * brings a node into a domain, or a Node that is not out of service, or is in a certain boot. It is answered
 * by a list that began after it was asked, read from the store and not from a cache of the API server (no
 * resourceVersion); what is asked while a list is under way shares the next one. What is found is given to
 * `found`, so that the caches have it. A list that fails, or shows an object that we cannot read, answers
 * nothing: it is repeated, with growing pauses, as long as somebody asks. An answer that holds no longer is
 * dropped, and so is a question that nobody asks again after a failure, both after at most twice their time.
 * Loop thread only. */
#pragma once

#include "kube/kube_client.h"
#include "kube/work_queue.h"

struct confirm;

enum confirm_what {
        CONFIRM_DOMAIN, /* key: UID of a ComputeDomain; in all namespaces */
        CONFIRM_CLAIM,  /* key: confirm_on_node(); in the namespace of the domain; of either isolation */
        CONFIRM_NODE,   /* key: confirm_node() */
};

struct confirm_options {
        struct kube_client *client;
        struct work_queue *queue;
        void (*found)(void *u, enum confirm_what what, yyjson_val *object);
        void *u;
        unsigned valid_ms; /* how long an answer holds; 0: 10 s */
};

struct confirm *confirm_new(const struct confirm_options *o);
void confirm_free(struct confirm *c); /* cancels what is in flight */

/* "<UID of the domain>/<node>"; node "": any. */
void confirm_on_node(const char *domain_uid, const char *node, struct buf *out);
/* "<node>/<boot ID>/<tag>": a Node in this boot; boot_id NULL: in any, which is not out of service. `tag`, a
 * text without "/", keeps answers apart that may not be shared. */
void confirm_node(const char *node, const char *boot_id, const char *tag, struct buf *out);

/* True: the server has said, no longer than valid_ms ago, that it is not there. False: it is asked, and
 * `requester` is queued when it has answered, whatever it says. ns NULL for all namespaces. */
bool confirm_absent(struct confirm *c, enum confirm_what what, const char *ns, const char *key,
                    const char *requester);
/* The same without asking. */
bool confirm_known(const struct confirm *c, enum confirm_what what, const char *ns, const char *key);
size_t confirm_remembered(const struct confirm *c); /* questions and lists that are kept */
