/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cd_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "imex/imex_state.h"
#include "tree.h"
#include "world/cd_node.h"

#define DAEMON_POD "e0000000-0000-4000-8000-000000000001"

void daemon_comes(const char *uid) {
        struct dra_op op = { 0 };
        api_daemon_claim("driver", uid, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", uid);
        world_wait(&op, PREPARED);
}

void daemon_ends(const char *uid) {
        struct dra_op op = { 0 };
        kubelet_unprepare(w.claims, &op, "driver", "daemon-claim", uid);
        world_wait(&op, UNPREPARED);
}

static char lost[100];
static bool lost_known;

void daemon_loses(const char *peers) {
        lost_known = peers;
        snprintf(lost, sizeof lost, "%s", peers ? peers : "");
}

static void write_state(const char *domain, struct imex_state *s, const char *claim_uid, const char *status,
                        int *lock_fd) {
        _cleanup_(freep) char *dir = xasprintf("%s/domains/%s", w.plugin_dir, domain);
        struct err e;
        s->index = 3;
        s->lost_known = lost_known;
        snprintf(s->lost, sizeof s->lost, "%s", lost);
        snprintf(s->claim_uid, sizeof s->claim_uid, "%s", claim_uid);
        snprintf(s->pod_uid, sizeof s->pod_uid, "%s", DAEMON_POD);
        snprintf(s->status, sizeof s->status, "%s", status);
        assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
        assert_int_equal(imex_state_write(dir, s, lock_fd, &e), 0);
}

void daemon_reports(const char *domain, const char *claim_uid, const char *boot_id, bool ready,
                    const char *status, int *lock_fd) {
        struct imex_state s = { .ready = ready };
        snprintf(s.boot_id, sizeof s.boot_id, "%s", boot_id);
        snprintf(s.assignment, sizeof s.assignment, CLIQUE "/%s/3/1", domain);
        if (!ready)
                snprintf(s.reason, sizeof s.reason, "%s", "two peers are missing");
        write_state(domain, &s, claim_uid, status, lock_fd);
}

void daemon_state(const char *uid, const char *domain, bool ready, const char *status,
                  const char *assignment) {
        struct imex_state s = { .boot_id = BOOT, .ready = ready, .terminating = w.daemon_terminates };
        snprintf(s.version, sizeof s.version, "580.95.05");
        snprintf(s.assignment, sizeof s.assignment, "%s", assignment);
        write_state(domain, &s, uid, status, &w.lock_fd);
}

void daemon_writes_state(const char *uid, const char *domain, bool ready, const char *status,
                         const char *assignment) {
        daemon_state(uid, domain, ready, status, assignment);
        world_turn();
}

void daemon_dies(void) {
        close(w.lock_fd);
        w.lock_fd = -1;
}

void daemon_ready(void) {
        api_assigned(DOMAIN_A);
        daemon_comes(DAEMON_1);
        daemon_reports(DOMAIN_A, DAEMON_1, BOOT, true, "READY", &w.lock_fd);
}

/* ---- the daemon of the Go driver ---- */

void go_prepared(void) {
        struct dra_op op = { 0 };
        api_go_claim();
        api_node_label(DOMAIN_A);
        kubelet_prepare(w.claims, &op, "driver", "go-claim", GO_DAEMON);
        world_wait(&op, PREPARED);
}

void go_starts(const char *address) {
        _cleanup_(freep) char *config =
                xasprintf("SERVER_PORT=50000\nIMEX_CMD_ENABLED=1\nIMEX_CMD_BIND_INTERFACE_IP=%s\n", address);
        tree_put(w.plugin_dir, "domains/" DOMAIN_A "/imexd.cfg", config);
}

void go_comes(void) {
        go_prepared();
        go_starts(GO_ADDRESS);
}
