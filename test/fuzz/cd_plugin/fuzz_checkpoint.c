/* SPDX-License-Identifier: Apache-2.0 */
#include "../checkpoint_codec.h"
#include "cd_plugin/cd_devices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        checkpoint_codec_fuzz(&cd_device_codec, 0, data, n);
        return 0;
}
