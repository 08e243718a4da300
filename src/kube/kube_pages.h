/* SPDX-License-Identifier: Apache-2.0 */
/* kube_pages: a list, page by page.
 *
 * A page that is larger than we take (kube_error_too_large()) is asked for again with half as many objects,
 * down to one, and this limit stays for later lists. Which object is too large by itself is then told in
 * words. Loop thread only. */
#pragma once

#include "kube/kube_client.h"

struct kube_pages;

struct kube_pages_options {
        const struct kube_resource *res; /* this and the strings are borrowed, and outlive it */
        const char *ns, *label_selector, *field_selector;
        bool metadata_only;
        unsigned limit;                    /* objects a page; 0: 500 */
        unsigned attempts, backoff_max_ms; /* as for a request */
        /* A page and whether it is the last one, or NULL and why the list has ended without it: then nothing
         * is known of what has not been shown. Never from inside kube_pages_start(); it may cancel, start
         * anew or free. */
        void (*page)(void *u, yyjson_val *list, bool last, const struct err *e);
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

struct kube_pages *kube_pages_new(struct kube_client *c, const struct kube_pages_options *o);
void kube_pages_free(struct kube_pages *p); /* cancels; NULL is allowed */

/* Begins a list anew; one that is under way is given up. from_cache: what the API server has in its cache (it
 * may miss the latest), as a whole; in pages and of the latest when that is too large. */
void kube_pages_start(struct kube_pages *p, bool from_cache);
bool kube_pages_under_way(const struct kube_pages *p);
/* The last list had no more objects than fit into a page. */
bool kube_pages_short(const struct kube_pages *p);
/* The server was away between two pages of the last list. What came before may be of another history than the
 * rest, if etcd was restored meanwhile. */
bool kube_pages_interrupted(const struct kube_pages *p);
