/* SPDX-License-Identifier: Apache-2.0 */
/* kube_pages: a list, page by page.
 *
 * A page that exceeds our limit (kube_error_too_large()) is requested again with half as many objects, down
 * to one. Later lists keep this number. If a single object is too large, the error names it. Loop thread
 * only. */
#pragma once

#include "kube/kube_client.h"

struct kube_pages;

struct kube_pages_options {
        const struct kube_resource *res; /* res and the strings are borrowed, and must outlive kube_pages */
        const char *ns, *label_selector, *field_selector;
        bool metadata_only;
        unsigned limit;                    /* objects per page; 0: 500 */
        unsigned attempts, backoff_max_ms; /* as for a request */
        /* A page, and whether it is the last one. Or NULL and why the list has ended early: then nothing is
         * known about the rest. Never called from inside kube_pages_start(). It may cancel, start again or
         * free. */
        void (*page)(void *u, yyjson_val *list, bool last, const struct err *e);
        kube_retry_fn *retry; /* or NULL */
        void *u;
};

struct kube_pages *kube_pages_new(struct kube_client *c, const struct kube_pages_options *o);
void kube_pages_free(struct kube_pages *p); /* cancels; NULL is allowed */

/* Starts a list. Drops one that runs. from_cache: a list from the API server's cache (it may lack the latest
 * changes), without pages. If that is too large, a current list in pages. */
void kube_pages_start(struct kube_pages *p, bool from_cache);
bool kube_pages_under_way(const struct kube_pages *p);
/* The last list fitted into one page. */
bool kube_pages_short(const struct kube_pages *p);
/* The server was unreachable between two pages of the last list. If etcd was restored in between, the pages
 * before belong to another history than the rest. */
bool kube_pages_interrupted(const struct kube_pages *p);
