/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_layouts: reads and writes the checkpoint in the file formats of the Go driver. Pure; fuzzed.
 *
 * Each write contains both formats of the Go driver, v1 and v2, and both checksums. v1 is for users who go
 * back to the Go driver. */
#pragma once

#include "node/checkpoint.h"

/* Reads a file into an empty table that has a codec: v2 if the file has it, otherwise v1, otherwise v1 in the
 * form that 25.3.0-rc2 wrote. ERR_INVALID: the file is corrupt; *e has the reason. */
int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e);
/* Writes the table as one line without a final newline. Fails only if the text exceeds the limit of the
 * buffer. */
void checkpoint_encode(const struct checkpoint *c, struct buf *out);

/* Writes a ResourceClaimStatus in the form that the checksums cover, with only the members that
 * resource.k8s.io/v1 has had since Kubernetes 1.34. The Go driver computes the checksums from its own types,
 * so it would reject a checkpoint with a member of a newer API server as corrupt. A status that is already
 * recorded does not change. Returns false if the status is nested too deep or exceeds the limit of the
 * buffer. */
bool checkpoint_status(yyjson_val *status, struct buf *out);
