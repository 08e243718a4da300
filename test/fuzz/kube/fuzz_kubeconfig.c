/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a kubeconfig: it is rejected with an error, or everything that the client relies on exists. */
#include <stdint.h>
#include <string.h>

#include "base/stderr.h"
#include "base/err.h"
#include "base/str.h"
#include "kube/kube_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct kube_config c = { 0 };
        struct err e = { 0 };

        if (kube_config__parse((const char *)data, n, "/nowhere/config", &c, &e) < 0) {
                BUG_ON(e.kind == ERR_NONE || !*e.msg || c.server || c.token || c.key_pem);
                return 0;
        }
        BUG_ON(!c.ns || !*c.ns || (!str_starts(c.server, "https://") && !str_starts(c.server, "http://")));
        BUG_ON(!c.cert_pem != !c.key_pem);
        for (const char *p = c.token; p && *p; p++)
                BUG_ON((unsigned char)*p <= ' ');
        kube_config_done(&c);
        return 0;
}
