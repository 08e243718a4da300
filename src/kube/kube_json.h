/* SPDX-License-Identifier: Apache-2.0 */
/* kube_json: parses answers of an API server.
 *
 * kube-apiserver stores opaque parameters and other RawExtensions as the bytes that a user sent, and returns
 * them unchanged in lists and watches. It checks them with Go's encoding/json, which accepts two things that
 * RFC 8259 parsers such as yyjson reject: bytes that are not UTF-8, and the escape of half a surrogate pair
 * ("\ud800"). Otherwise, a single object of a tenant would make the list of all objects of its kind
 * unreadable. Seen with 1.32 to 1.37. */
#pragma once

#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

/* Parses a text into a document, which the caller frees. In strings, `?` replaces each byte that is not
 * UTF-8, and "\ufffd" replaces half a surrogate pair. Returns NULL and sets *e as json_parse(). */
yyjson_doc *kube_json_read(struct str text, struct err *e);
