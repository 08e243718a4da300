/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_layouts: the checkpoint as a document, in the layouts of the Go driver (reference sections 7.12
 * and 12.1). Pure; fuzzed.
 *
 * Both layouts of the Go driver are written each time, v1 for those who go back to it, and both checksums. */
#pragma once

#include "node/checkpoint.h"

/* Into an empty table that has a codec. ERR_INVALID: the file is corrupt, and why. Reads v2, else v1, else v1
 * as 25.3.0-rc2 wrote it. */
int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e);
/* One line without a newline at its end. Fails only by the size limit of the buffer. */
void checkpoint_encode(const struct checkpoint *c, struct buf *out);

/* A ResourceClaimStatus in the form that the checksums cover, with the members only that resource.k8s.io/v1
 * has had since Kubernetes 1.34: the Go driver verifies the checksums over what its own types make of the
 * text, so a member of a newer API server would be a corrupt checkpoint to it. What is recorded already stays
 * as it is. False when it nests too deep, or is larger than the buffer may be. */
bool checkpoint_status(yyjson_val *status, struct buf *out);
