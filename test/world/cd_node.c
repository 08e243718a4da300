/* SPDX-License-Identifier: Apache-2.0 */
#include "world/cd_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "node/checkpoint_layouts.h"
#include "tree.h"
#include "world/api.h"
#include "world/informers.h"
#include "world/node.h"

struct world w;

void prepare(struct dra_op *op, const char *name, const char *uid) {
        kubelet_prepare(w.claims, op, "user", name, uid);
}

/* ---- its files ---- */

char *world_read(const char *path) {
        struct err e;
        char *text = NULL;
        return file_read(path, 1 << 20, &text, NULL, &e) < 0 ? NULL : text;
}

char *world_cdi(const char *uid) {
        _cleanup_(freep) char *path =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_%s.yaml", w.cdi_root, uid);
        return world_read(path);
}

bool world_recorded(const char *uid) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = world_read(path);
        return text && strstr(text, uid);
}

const struct checkpoint_claim *world_entry(struct claims *c, const char *uid) {
        return checkpoint_find(&c->journal.table, uid);
}

struct cd *world_cd(void) {
        return w.claims->o.u;
}

void world_put_checkpoint(const char *claims_json) {
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *zero =
                xasprintf("{\"checksum\":0,\"preparedClaims\":%s,\"nodeBootID\":\"" BOOT "\"}", claims_json);
        _cleanup_(freep) char *text =
                xasprintf("{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":%lu%s}",
                          (unsigned long)gojson_checksum(&(struct str){ zero, strlen(zero) }, 1), zero + 13);
        assert_int_equal(file_replace(path, text, strlen(text), 0600, &e), 0);
}

/* ---- the processes ---- */

static void on_isolation(void *u) {
        const struct isolation *i = *(struct isolation **)u;
        for (size_t k = 0; k < ARRAY_LEN(w.processes); k++) {
                if (w.isolations[k] == i && w.processes[k])
                        claims_reevaluate(w.processes[k]);
        }
}

static void get_standing(void *u, struct standing *ret) {
        const struct claims *c = w.processes[(struct isolation **)u - w.isolations];
        *ret = (struct standing){ 0 };
        if (c)
                standing_get(c->o.u, ret);
}

static void on_standing(void *u) {
        isolation_standing(*(struct isolation **)u);
}

void world_facts(void) {
        for (size_t k = 0; k < ARRAY_LEN(w.processes); k++) {
                if (w.isolations[k])
                        isolation_facts(w.isolations[k]);
                if (w.processes[k])
                        cd_driver_facts(w.processes[k]->o.u);
        }
}

static struct isolation *new_isolation(size_t k) {
        w.isolations[k] = isolation_new(&(struct isolation_options){
                .loop = &w.loop,
                .metrics = &w.metrics,
                .node = "n0",
                .own_pod = w.own_pods[k],
                .cdi_root = w.cdi_root,
                .root = { .host = "/run/nvidia/driver", .here = w.driver_root },
                .host_root = "",
                .host = mode_is_standing(w.mode) ? NULL : (struct host_imex *)&w,
                .standing = mode_is_standing(w.mode) ? get_standing : NULL,
                .changed = on_isolation,
                .u = &w.isolations[k],
        });
        isolation_facts(w.isolations[k]);
        return w.isolations[k];
}

int world_try(const char *boot_id, struct claims **ret, struct err *e) {
        size_t k = 0;
        while (w.processes[k])
                k++;
        w.own_pods[k] = own_pod_new(NULL, "driver", POD);
        struct isolation *isolation = mode_assigns_channels(w.mode) ? new_isolation(k) : NULL;
        const struct cd_options cd = {
                .fabric = isolation ? isolation_fabric(isolation) : NULL,
                .holdings = isolation ? isolation_holdings(isolation) : NULL,
                .own_pod = w.own_pods[k],
                .loop = &w.loop,
                .mode = w.mode,
                .host = (struct host_imex *)&w, /* nothing reads it */
                .wait_for_host = w.wait_for_host,
                .node = "n0",
                .ns = "driver",
                .more_ns = w.more_ns,
                .plugin_dir = w.plugin_dir,
                .boot_id = boot_id,
                .root = { .host = "/run/nvidia/driver", .here = w.driver_root },
                .dev_root = w.driver_root,
                .proc_driver = w.driver_root,
                .channel_nodes = "",
                .standing_changed = mode_is_standing(w.mode) ? on_standing : NULL,
                .u = &w.isolations[k],
        };
        const struct claims_options o = {
                .loop = &w.loop,
                .metrics = &w.metrics.node,
                .driver = &cd_driver,
                .u = cd_driver_new(&cd),
                .node = "n0",
                .plugin_dir = w.plugin_dir,
                .cdi_root = w.cdi_root,
                .boot_id = boot_id,
                .retries = w.retries,
        };
        if (claims_new(&o, ret, e) < 0) {
                isolation_free(isolation);
                w.isolations[k] = NULL;
                own_pod_free(w.own_pods[k]);
                w.own_pods[k] = NULL;
                return -1;
        }
        w.processes[k] = *ret;
        int r = node_start_claims(&w.loop, *ret, e);
        if (r < 0)
                world_stop(*ret);
        return r;
}

struct claims *world_process(const char *boot_id) {
        struct claims *c;
        struct err e;
        assert_int_equal(world_try(boot_id, &c, &e), 0);
        return c;
}

void world_mode(const char *gates, const char *imex_mode) {
        static struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(gates_parse(&g, gates, &e), 0);
        assert_int_equal(mode_resolve(&g, imex_mode, "", &w.mode, &e), 0);
        assert_int_equal(mode_wait_for_host(w.mode, &g, imex_mode, "", &w.wait_for_host, &e), 0);
}

void world_mode_own_channels(void) {
        static struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, MODE_HOST_MANAGED, "channel", &w.mode, &e), 0);
        if (!w.metrics.toolkit)
                cd_metrics_own_channels(&w.metrics);
}

void world_mode_daemons(const char *isolation) {
        static struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, "", isolation, &w.mode, &e), 0);
        if (mode_assigns_channels(w.mode) && !w.metrics.toolkit)
                cd_metrics_own_channels(&w.metrics);
}

void world_start(const char *boot_id) {
        w.claims = world_process(boot_id);
}

/* Does a process hold the node lock and wait for its thread, or wait for the lock that another one holds? */
static bool at_work(void) {
        bool any = false, locking = false;
        for (size_t i = 0; i < ARRAY_LEN(w.processes); i++) {
                const struct claims *c = w.processes[i];
                any = any || (c && (c->batch->running || (c->locking && w.lock_fd < 0)));
                locking = locking || (c && c->locking);
        }
        /* Is other work in threads under way, except a wait for a lock that the test holds? */
        any = any || (!locking && w.loop.active_reqs.count);
        return any && !w.disk_hangs;
}

void world_stop(struct claims *c) {
        while (at_work())
                uv_run(&w.loop, UV_RUN_ONCE);
        for (size_t i = 0; i < ARRAY_LEN(w.processes); i++) {
                if (w.processes[i] != c)
                        continue;
                w.processes[i] = NULL;
                claims_free(c);
                isolation_free(w.isolations[i]);
                w.isolations[i] = NULL;
                own_pod_free(w.own_pods[i]);
                w.own_pods[i] = NULL;
        }
        world_turn();
}

void world_turn(void) {
        for (int quiet = 0; quiet < 5;) {
                bool any = api_serve() || informers_turn();
                while (at_work())
                        uv_run(&w.loop, UV_RUN_ONCE);
                uv_run(&w.loop, UV_RUN_NOWAIT);
                quiet = any || at_work() ? 0 : quiet + 1;
        }
}

static void on_alarm(uv_timer_t *t) {
        *(bool *)t->data = true;
}

static void on_alarm_closed(uv_handle_t *h) {
        free(h);
}

void world_wait(struct dra_op *op, enum answer want) {
        bool late = false;
        uv_timer_t *alarm = xnew(uv_timer_t);
        uv_timer_init(&w.loop, alarm);
        alarm->data = &late;
        uv_timer_start(alarm, on_alarm, 5000, 0);
        while (op->answer == PENDING && !late) {
                world_turn();
                if (op->answer == PENDING)
                        uv_run(&w.loop, UV_RUN_ONCE);
        }
        uv_close((uv_handle_t *)alarm, on_alarm_closed);
        if (op->answer != want)
                print_message("answer %d: %s\n", (int)op->answer, op->msg);
        assert_int_equal(op->answer, want);
}

void waits_with(const char *name, const char *uid, const char *part) {
        struct dra_op op = { .timeout_ms = 400 };
        prepare(&op, name, uid);
        world_wait(&op, FAILED);
        assert_non_null(op.msg);
        if (!strstr(op.msg, part))
                fail_msg("'%s' is not in: %s", part, op.msg);
        _cleanup_(freep) char *cdi = world_cdi(uid);
        assert_null(cdi);
}

const char *world_note(const char *domain, const char *claim) {
        static char ret[20];
        _cleanup_(freep) char *path = xasprintf("%s/domains/%s/grants/%s", w.plugin_dir, domain, claim);
        _cleanup_(freep) char *text = world_read(path);
        struct str trimmed = str_trim(str_from(str_or(text, "")));
        snprintf(ret, sizeof ret, "%.*s", (int)trimmed.n, trimmed.p);
        return ret;
}

void world_wait_note(const char *domain, const char *claim, const char *want) {
        for (int i = 0; i < 5000 && !streq(world_note(domain, claim), want); i++) {
                world_turn();
                usleep(1000);
        }
        assert_string_equal(world_note(domain, claim), want);
}

int world_setup(void **state) {
        struct err e;
        w = (struct world){ .dir = tree_new(), .lock_fd = -1 };
        w.plugin_dir = file_join(w.dir, "plugin");
        w.cdi_root = file_join(w.dir, "cdi");
        w.driver_root = file_join(w.dir, "root");
        file_mkdirs(w.plugin_dir, 0750, &e);
        tree_put(w.driver_root, "usr/lib64/libnvidia-ml.so.1", "x");
        tree_put(w.driver_root, "usr/bin/nvidia-imex", "x");
        tree_put(w.driver_root, "usr/bin/nvidia-imex-ctl", "x");
        tree_put(w.driver_root, "capabilities/fabric-imex-mgmt",
                 "DeviceFileMinor: 512\nDeviceFileMode: 438\n");
        w.facts = (struct facts){ .known = true,
                                  .usable = true,
                                  .reason = "",
                                  .driver_version = "580.95.05",
                                  .fabric = { .kind = GPU_FABRIC_CLIQUE, .clique_id = CLIQUE },
                                  .channel_major = 240,
                                  .channel_count = 2048 };
        world_mode("", "");
        uv_loop_init(&w.loop);
        api_begin(&w.loop);
        api_table_of(NULL);
        informers_lag = informers_unsynced = false;
        pod_replaced();
        cd_metrics_init(&w.metrics, "n0");
        api_domain("user", "cd", DOMAIN_A, false);
        return 0;
}

int world_setup_claims(void **state) {
        if (world_setup(state) < 0)
                return -1;
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        return 0;
}

int world_teardown(void **state) {
        if (w.lock_fd >= 0)
                close(w.lock_fd);
        /* A failed test has left its other processes. */
        for (size_t i = 0; i < ARRAY_LEN(w.processes); i++) {
                claims_free(w.processes[i]);
                isolation_free(w.isolations[i]);
                own_pod_free(w.own_pods[i]);
        }
        uv_run(&w.loop, UV_RUN_DEFAULT);
        node_metrics_done(&w.metrics.node);
        tree_remove(w.dir);
        free(w.plugin_dir);
        free(w.cdi_root);
        free(w.driver_root);
        api_end();
        return uv_loop_close(&w.loop);
}

void refused_at_once(const char *name, const char *uid, const char *part) {
        struct dra_op op = { 0 };
        prepare(&op, name, uid);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        const char *found = strstr(op.msg, part);
        if (!found)
                print_message("'%s' is not in: %s\n", part, op.msg);
        assert_non_null(found);
        assert_false(world_recorded(uid));
        assert_null(world_cdi(uid));
}
