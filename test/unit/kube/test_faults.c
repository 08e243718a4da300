/* SPDX-License-Identifier: Apache-2.0 */
/* Each call while a configuration is loaded fails once: no copy of the key or the token remains, and the
 * error names the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <yaml.h>

#include "base/file.h"
#include "base/mem.h"
#include "faults.h"
#include "kube/kube_config.h"
#include "tree.h"

FAULTS_WRAP(int, 0, ENOMEM, yaml_parser_initialize, (yaml_parser_t * p), (p))

static char *dir;

static int setup(void **state) {
        dir = tree_new();
        tree_put(dir, "config",
                 "current-context: x\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\nclusters:\n- "
                 "name: c\n  cluster:\n"
                 "    server: https://10.0.0.1:6443\n    certificate-authority: ca.crt\nusers:\n- name: u\n  "
                 "user:\n    token: secret\n"
                 "    client-certificate: cert.pem\n    client-key: key.pem\n");
        tree_put(dir, "ca.crt", "CA");
        tree_put(dir, "cert.pem", "CERT");
        tree_put(dir, "key.pem", "KEY");
        tree_put(dir, "token", "secret");
        tree_put(dir, "namespace", "apps");
        return 0;
}

static int teardown(void **state) {
        tree_remove(dir);
        return 0;
}

static int load(void *u, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, "config");
        struct kube_config c = { 0 };
        int r = kube_config_load(path, &c, e);
        kube_config_done(&c);
        return r;
}

static void kubeconfig_that_cannot_be_read_is_named(void **state) {
        assert_in_range(faults_each(&(struct faults){ .op = load, .names = dir }), 9,
                        60); /* for four files and the parser */
}

static int in_cluster(void *u, struct err *e) {
        struct kube_config c = { 0 };
        int r = kube_config__in_cluster("10.0.0.1", "443", dir, &c, e);
        kube_config_done(&c);
        return r;
}

static void account(void *u, const char *call, bool worked) {
        unsigned *n = u;
        *n += worked && *call;
}

static void service_account_that_cannot_be_read_is_named(void **state) {
        unsigned survived = 0;
        /* If the file with our namespace cannot be read, the namespace is "default". */
        const struct faults f = { .op = in_cluster,
                                  .check = account,
                                  .u = &survived,
                                  .names = dir,
                                  .survives = "open64 pread64 " };
        unsigned n = faults_each(&f);
        assert_in_range(n, 6, 40);
        assert_in_range(survived, 2, n / 3);
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = { T(kubeconfig_that_cannot_be_read_is_named),
                                            T(service_account_that_cannot_be_read_is_named) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
