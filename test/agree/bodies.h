/* SPDX-License-Identifier: Apache-2.0 */
/* bodies: objects and patches for requests, with ' instead of ". They are like those of our programs and of
 * Kubernetes, with few variants, so that many concern existing objects. A few are invalid. `meta` is the
 * beginning of the metadata's members, "'uid':'...'," or "". */
#pragma once

#include "../simulate/store.h"

/* Keys of labels that objects may have, and their values. */
#define BODY_LABELS                                                                                          \
        { CD_LABEL, CD_LABEL_COMPONENT, CD_LABEL_RACK_DOMAINS }
#define BODY_VALUES                                                                                          \
        { "v1", "v2" }
#define BODY_DRIVER CD_DRIVER

/* A whole object; `was` is the existing object of that name, NULL: none. */
void bodies_object(enum kind k, const char *ns, const char *name, bool generate, const struct version *was,
                   const char *meta, struct buf *out);
/* Merge patches. `was` NULL: the object does not exist. */
void bodies_patch(enum kind k, const struct version *was, const char *meta, struct buf *out);
void bodies_status(enum kind k, const struct version *was, const char *meta, struct buf *out);
