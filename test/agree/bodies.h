/* SPDX-License-Identifier: Apache-2.0 */
/* bodies: objects and patches to send, with ' for ". They are such as our programs and those of Kubernetes
 * send, in few variants, so that many meet what is there; a few are invalid. `meta` is the beginning of the
 * metadata's members, "'uid':'...'," or "". */
#pragma once

#include "../simulate/store.h"

/* Keys of labels that objects may have, and their values. */
#define BODY_LABELS                                                                                          \
        { CD_LABEL, CD_LABEL_COMPONENT, CD_LABEL_RACK_DOMAINS }
#define BODY_VALUES                                                                                          \
        { "v1", "v2" }
#define BODY_DRIVER CD_DRIVER

/* A whole object; `was` (NULL: none) is what has its name. */
void bodies_object(enum kind k, const char *ns, const char *name, bool generate, const struct version *was,
                   const char *meta, struct buf *out);
/* Merge patches. `was` NULL: of what is not there. */
void bodies_patch(enum kind k, const struct version *was, const char *meta, struct buf *out);
void bodies_status(enum kind k, const struct version *was, const char *meta, struct buf *out);
