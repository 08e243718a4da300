/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_survey: queries a library about all GPUs of the node in one session, and writes the answer as a line
 * of JSON, which nvml_facts_decode() and inventory_decode() read. Only the worker process may use this
 * module. */
#pragma once

#include "base/str.h"
#include "nvidia/nvml_library.h"

/* Write the answer. For a GPU that cannot be queried they write the failure, so that one lost GPU does not
 * hide the others. A returned error concerns all GPUs. */
int nvml_survey_fabric(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                       struct err *e);
int nvml_survey_inventory(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                          struct err *e);
