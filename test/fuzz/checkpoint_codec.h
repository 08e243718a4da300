/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_codec: an input of the fuzzers of checkpoints. It is decoded as a checkpoint, and as the content
 * of v2 with the right sums, because the checksums would stop nearly all mutations at once. Aborts if an
 * input that loads is not written in a form that loads again and is written the same. */
#pragma once

#include <stdint.h>

#include "node/checkpoint.h"

void checkpoint_codec_fuzz(const struct device_codec *codec, int dialect, const uint8_t *data, size_t n);
