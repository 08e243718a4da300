/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint_codec.h"

#include "base/stderr.h"
#include "node/checkpoint_layouts.h"

static void round_trip(const struct device_codec *codec, int dialect, struct str text) {
        struct checkpoint c = { .codec = codec, .dialect = dialect }, again = c;
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

void checkpoint_codec_fuzz(const struct device_codec *codec, int dialect, const uint8_t *data, size_t n) {
        struct str text = { (const char *)data, n };
        struct buf zero = BUF_INIT(CHECKPOINT_MAX_BYTES), whole = BUF_INIT(CHECKPOINT_MAX_BYTES);
        round_trip(codec, dialect, text);
        buf_adds(&zero, "{\"checksum\":0,\"preparedClaims\":");
        buf_add(&zero, text.p, text.n);
        buf_adds(&zero, ",\"nodeBootID\":\"b\"}");
        buf_addf(&whole, "{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":%lu",
                 (unsigned long)gojson_checksum(&(struct str){ zero.p, zero.n }, 1));
        buf_add(&whole, zero.p + 13, zero.n - 13);
        buf_addc(&whole, '}');
        round_trip(codec, dialect, (struct str){ whole.p, whole.n });
        buf_done(&zero);
        buf_done(&whole);
}
