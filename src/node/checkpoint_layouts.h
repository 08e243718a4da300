/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_layouts: the checkpoint as a document, in the layouts of the Go driver. Pure; fuzzed.
 *
 * Each write contains both layouts of the Go driver and both checksums. v1 is for users who go back to the Go
 * driver. */
#pragma once

#include "node/checkpoint.h"

/* Reads into an empty table with a codec. ERR_INVALID: the file is corrupt, with the reason. Reads v2,
 * otherwise v1, otherwise v1 as 25.3.0-rc2 wrote it. */
int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e);
/* Writes one line without a final newline. Fails only if it exceeds the limit of the buffer. */
void checkpoint_encode(const struct checkpoint *c, struct buf *out);

/* A ResourceClaimStatus in the form that the checksums cover, with only the members that resource.k8s.io/v1
 * has had since Kubernetes 1.34. The Go driver computes the checksums from its own types, so it would take a
 * checkpoint with a member of a newer API server for corrupt. A status that is already recorded does not
 * change. False when it is nested too deep or exceeds the limit of the buffer. */
bool checkpoint_status(yyjson_val *status, struct buf *out);
