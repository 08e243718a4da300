/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/stderr.h"
#include "gpu_plugin/gpu_record.h"
#include "node/checkpoint_layouts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every input that loads must be written in a form that loads again and is written the same. */
static void round_trip_in(struct str text, int dialect) {
        struct checkpoint c = { .codec = &gpu_record_codec, .dialect = dialect }, again = c;
        struct buf first = BUF_INIT(CHECKPOINT_MAX_BYTES), second = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct err e;
        if (checkpoint_decode(text, &c, &e) == 0) {
                checkpoint_encode(&c, &first);
                BUG_ON(checkpoint_decode((struct str){ first.p, first.n }, &again, &e) < 0);
                checkpoint_encode(&again, &second);
                BUG_ON(!str_eq((struct str){ first.p, first.n }, (struct str){ second.p, second.n }));
                checkpoint_done(&again);
                checkpoint_done(&c);
        }
        buf_done(&first);
        buf_done(&second);
}

static void round_trip(struct str text) {
        round_trip_in(text, GPU_RECORD_MAIN);
        round_trip_in(text, GPU_RECORD_RELEASED);
}

/* The checksums would stop nearly all mutations at once, so the input is also tried as the content of v2 with
 * the right sums. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct str text = { (const char *)data, n };
        struct buf zero = BUF_INIT(CHECKPOINT_MAX_BYTES), whole = BUF_INIT(CHECKPOINT_MAX_BYTES);
        round_trip(text);
        buf_adds(&zero, "{\"checksum\":0,\"preparedClaims\":");
        buf_add(&zero, text.p, text.n);
        buf_adds(&zero, ",\"nodeBootID\":\"b\"}");
        buf_addf(&whole, "{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":%lu",
                 (unsigned long)gojson_checksum(&(struct str){ zero.p, zero.n }, 1));
        buf_add(&whole, zero.p + 13, zero.n - 13);
        buf_addc(&whole, '}');
        round_trip((struct str){ whole.p, whole.n });
        buf_done(&zero);
        buf_done(&whole);
        return 0;
}
