/* SPDX-License-Identifier: Apache-2.0 */
/* assignment_id: renders and parses the ID of an assignment in a partition: "<clique ID>/<UID of the
 * owner>/<index>/<epoch>". The daemon writes the ID into its state file for the kubelet plugin, and into its
 * report for the controller. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"

/* The limit of the length of an assignment ID, in bytes. A clique ID has at most 63 bytes. */
enum { ASSIGNMENT_ID_MAX = 160 };

struct assignment_id {
        char clique_id[64], domain_uid[37];
        int64_t index, epoch;
};

void assignment_id_render(const char *clique_id, const char *domain_uid, int64_t index, int64_t epoch,
                          struct buf *out);
/* Returns false if the text is not an assignment ID. */
bool assignment_id_parse(const char *text, struct assignment_id *ret);
