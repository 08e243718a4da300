/* SPDX-License-Identifier: Apache-2.0 */
/* sample: started anew. All are read but
 * for the last. */
#include "code anew .h"

// In a comment of this kind: anew.
const char *text = "a pod is started anew";
const char *code = "anew", *also = "%s: made \"anew\" by it";
const char *long_text = "a sentence that goes over the end of the line, all but "
                        "for its last word";
int code_anew(int anew); /* code: of which nothing is read */

static void test_pod_is_started_anew(void **state) {
}
