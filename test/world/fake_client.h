/* SPDX-License-Identifier: Apache-2.0 */
/* fake_client: a client of the API server that a test simulates with a fake_server. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/kube_client.h"
#include "world/fake_server.h"

/* qps, burst: the limits of the client; 0: its defaults. */
static inline struct kube_client *fake_client_new(uv_loop_t *loop, const struct fake_server *s, double qps,
                                                  unsigned burst) {
        _cleanup_(freep) char *url = xasprintf("http://127.0.0.1:%d", fake_server_port(s));
        struct kube_config config = { .server = url };
        struct kube_client *ret = NULL;
        struct err e;
        if (kube_client_new(loop,
                            &(struct kube_client_options){
                                    .config = &config, .user_agent = "test", .qps = qps, .burst = burst },
                            &ret, &e) < 0)
                fail_msg("%s", e.msg);
        return ret;
}
