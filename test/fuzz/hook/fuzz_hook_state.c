/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <yyjson.h>

#include "base/stderr.h"
#include "hook/oci_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The hook's own JSON reader against a complete one: for input that both accept, the result is the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        char path[OCI_PATH_MAX], bundle[OCI_PATH_MAX];
        const char *text = (const char *)data;
        int root = oci_json_find(text, n, "root", "path", path, sizeof path);
        int there = oci_json_find(text, n, "bundle", NULL, bundle, sizeof bundle);
        yyjson_doc *doc = n ? yyjson_read(text, n, 0) : NULL;
        if (doc && yyjson_is_obj(yyjson_doc_get_root(doc))) {
                yyjson_val *o = yyjson_doc_get_root(doc), *b = yyjson_obj_get(o, "bundle"),
                           *p = yyjson_obj_get(yyjson_obj_get(o, "root"), "path");
                if (there > 0)
                        BUG_ON(!yyjson_is_str(b) || strcmp(yyjson_get_str(b), bundle) != 0);
                if (root > 0)
                        BUG_ON(!yyjson_is_str(p) || strcmp(yyjson_get_str(p), path) != 0);
                if (there == 0)
                        BUG_ON(yyjson_is_str(b));
        }
        yyjson_doc_free(doc);
        return 0;
}
