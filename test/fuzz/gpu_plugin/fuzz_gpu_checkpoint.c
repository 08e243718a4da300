/* SPDX-License-Identifier: Apache-2.0 */
#include "../checkpoint_codec.h"
#include "gpu_plugin/gpu_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        checkpoint_codec_fuzz(&gpu_record_codec, GPU_RECORD_MAIN, data, n);
        checkpoint_codec_fuzz(&gpu_record_codec, GPU_RECORD_RELEASED, data, n);
        return 0;
}
