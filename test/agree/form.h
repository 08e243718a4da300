/* SPDX-License-Identifier: Apache-2.0 */
/* form: the form of a request: everything except the names and values, which differ each time.
 *
 * A form is a line of seven words:
 *
 *     watch resourceslices.resource.k8s.io - - json allowWatchBookmarks=true,fieldSelector=spec.driver,... -
 *
 * These are the verb; the resource, group and subresource; "ns" if the path has a namespace; the content type
 * of the body; the accepted type; the query keys, with the fields and the shape of selectors; and the
 * preconditions in the body. The API version is omitted. "-" means none. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { FORM_MAX = 512 };

/* False: the path is not one of the Kubernetes API. */
bool form_of(const char *method, const char *path, const char *content_type, const char *accept,
             struct str body, char ret[FORM_MAX]);
