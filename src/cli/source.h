/* SPDX-License-Identifier: Apache-2.0 */
/* source: reads lists of objects, from a cluster (cli/cluster) or from a bundle (cli/bundle). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/err.h"
#include "kube/kube_object.h"

struct source_query {
        const struct kube_resource *res;
        const char *ns;    /* NULL: all namespaces */
        const char *label; /* label selector of the form "key=value", or NULL */
        const char *name;  /* only the object of this name, or NULL */
};

/* Called for each object. The object is valid only during the call. */
typedef void(source_object_fn)(void *u, yyjson_val *object);

struct source {
        /* Lists the objects. On failure, some objects may have been delivered already. ERR_DENIED: the caller
         * may not list them. ERR_NOT_FOUND: the server does not serve the kind. Other kinds: the list is not
         * complete. */
        int (*list)(struct source *s, const struct source_query *q, source_object_fn *fn, void *u,
                    struct err *e);
        /* The version of the API server, such as "v1.36.3"; NULL: unknown. Valid as long as the source. */
        const char *(*server_version)(struct source *s);
        void (*free)(struct source *s);
        const char *ns; /* the default namespace */
        int64_t now;    /* the time of the lists, in seconds since 1970 */
};

static inline void source_freep(struct source **s) {
        if (*s)
                (*s)->free(*s);
}
