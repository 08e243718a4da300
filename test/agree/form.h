/* SPDX-License-Identifier: Apache-2.0 */
/* form: what kind of request a request is: all of it but the names and values that differ each time.
 *
 * A form is a line of seven words:
 *
 *     watch resourceslices.resource.k8s.io - - json allowWatchBookmarks=true,fieldSelector=spec.driver,... -
 *
 * verb; resource, group and subresource; "ns" where the path has a namespace; content type of the body; what
 * is accepted; query keys, with the fields and the shape of selectors; preconditions in the body. The version
 * of the API is left out. "-" stands for nothing. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { FORM_MAX = 512 };

/* False: the path is none of Kubernetes'. */
bool form_of(const char *method, const char *path, const char *content_type, const char *accept,
             struct str body, char ret[FORM_MAX]);
