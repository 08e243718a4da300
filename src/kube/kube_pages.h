/* SPDX-License-Identifier: Apache-2.0 */
/* kube_pages: reads a list page by page.
 *
 * If a page exceeds our size limit (kube_error_too_large()), the module requests it again with half as many
 * objects, down to one. Later pages and lists keep this number, and it doubles after each 16 pages that are
 * small enough. If a single object is too large, the error names the object. Loop thread only. */
#pragma once

#include "kube/kube_client.h"

struct kube_pages;

struct kube_pages_options {
        const struct kube_resource *res; /* `res` and the strings must outlive kube_pages */
        const char *ns, *label_selector, *field_selector;
        bool metadata_only;
        unsigned limit;                    /* objects per page; 0: 500 */
        unsigned attempts, backoff_max_ms; /* as for a request */
        /* Called with each page, and whether it is the last one. If the list fails, called with `list` NULL
         * and the reason: then nothing is known about the rest of the list. Never called from inside
         * kube_pages_start(). The callback may start a list again or free the kube_pages. */
        void (*page)(void *u, yyjson_val *list, bool last, const struct err *e);
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

struct kube_pages *kube_pages_new(struct kube_client *c, const struct kube_pages_options *o);
void kube_pages_free(struct kube_pages *p); /* cancels; NULL is allowed */

/* Starts a list, and drops the list that is in progress. from_cache: requests a list without pages from the
 * API server's cache, which may lack the latest changes; if that list is too large, requests a current list
 * in pages. */
void kube_pages_start(struct kube_pages *p, bool from_cache);
bool kube_pages_under_way(const struct kube_pages *p);
/* Returns whether the last list had only one page, or would have if it had been requested in pages. */
bool kube_pages_short(const struct kube_pages *p);
/* Returns whether the server was unreachable between two pages of the last list. If etcd was restored in that
 * time, the earlier pages belong to another history than the rest. */
bool kube_pages_interrupted(const struct kube_pages *p);
