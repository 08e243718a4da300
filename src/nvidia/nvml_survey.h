/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_survey: asks a library for all that it knows of the node's GPUs, in one session, and writes it as a
 * line of JSON: what nvml_facts_decode() and inventory_decode() read. Only for the worker process. */
#pragma once

#include "base/str.h"
#include "nvidia/nvml_library.h"

/* A GPU that cannot be asked is written with what failed, so that one lost GPU does not hide the others. An
 * error concerns all of them. */
int nvml_survey_fabric(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                       struct err *e);
int nvml_survey_inventory(const struct nvml_library *l, const struct nvml_progress *p, struct buf *out,
                          struct err *e);
