/* SPDX-License-Identifier: Apache-2.0 */
/* rack: makes the names of racks. A rack is an NVLink partition with a name that stays the same when its
 * nodes reboot or get another clique ID. Pure. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* The ID of a rack is the value of a Node label in lower case, with "-" for characters that a DNS label may
 * not contain. On a Node without this label, it is the clique ID ("<cluster UUID>.<number>"). Only a clique
 * ID contains a ".". The ID is the value of the devices' attribute `rack` and of the label CD_LABEL_RACK.
 * Both are limited to 63 bytes. */
enum { RACK_MAX = 63 };

/* Makes the rack ID of a Node. `label` and `clique` may be NULL or "". Returns false if the Node is in no
 * rack. */
bool rack_id(const char *label, const char *clique, char ret[static RACK_MAX + 1]);

/* Returns whether the rack ID comes from the label. `label` may be NULL or "". */
bool rack_is_labelled(const char *label);

/* Renders the name of the rack's ComputeDomain: the value of the label, or "rack-<first 8 characters of the
 * cluster UUID>-<number>", or the same with the whole UUID (`whole`) if two racks would have the same
 * name. */
void rack_domain_name(const char *id, bool whole, struct buf *out);

/* The name of a rack's claim template is this prefix and the name of the rack's ComputeDomain. */
#define RACK_TEMPLATE_PREFIX "imex-channel-"
