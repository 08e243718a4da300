/* SPDX-License-Identifier: Apache-2.0 */
/* racks_html: the page of `racks --html`. It needs no other file, no script and no network: a Content
 * Security Policy in the page forbids them. Names and messages of objects are untrusted, so all of them are
 * sanitized and escaped. */
#pragma once

#include "cli/command.h"
#include "cli/rack_list.h"

/* Adds the page to `out`. Reads the lists that it needs in addition. The result depends only on the objects.
 */
void racks_html(struct view *v, const struct inventory *inv, struct buf *out);
/* Adds text with "&", "<", ">" and quotation marks escaped, and control characters replaced. */
void racks_html_text(struct buf *out, struct arena *a, const char *text);
