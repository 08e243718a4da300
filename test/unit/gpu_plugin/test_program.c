/* SPDX-License-Identifier: Apache-2.0 */
/* The program, on a node of its own, against an API server whose every answer the test decides:
 * test_program PROGRAM STANDIN DRA_CALL HOOK */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "../kube/fake_server.h"
#include "base/child.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/process.h"
#include "tree.h"

#define CLAIM_UID "aaaaaaaa-0000-4000-8000-000000000001"

static const char *program, *standin, *dra_call, *hook;

struct world {
        uv_loop_t loop;
        struct fake_server *server;
        struct fake_conn *watch;
        struct process *plugin; /* NULL: it has ended */
        struct buf says, slice; /* the slice as it was written last */
        char *dir;
        int exit_status;
        unsigned writes, rv, events;
        char event[512]; /* the last one */
};

/* A plugin that ends by itself keeps no test waiting. */
#define UNTIL(w, what) RUN_UNTIL(&(w)->loop, !(w)->plugin || (what))

/* ---- the API server ---- */

/* With the members that the server adds. */
static void stored(struct world *w, struct buf *out) {
        static const char meta[] = "\"metadata\":{";
        const char *body = buf_str(&w->slice), *at = strstr(body, meta) + sizeof meta - 1;
        buf_add(out, body, (size_t)(at - body));
        buf_addf(out, "%s\"resourceVersion\":\"%u\",\"uid\":\"s\",",
                 strstr(body, "\"name\":\"00000-s\"") ? "" : "\"name\":\"00000-s\",", 100 + w->rv);
        buf_adds(out, at);
}

static void on_slice(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        struct buf b = BUF_INIT(1 << 20);
        if (!streq(r->method, "GET")) {
                buf_clear(&w->slice);
                buf_adds(&w->slice, r->body);
                w->writes++;
                w->rv++;
                stored(w, &b);
                fake_reply(c, 200, NULL, buf_str(&b));
        } else if (fake_query(r, "watch")) {
                w->watch = c;
                fake_stream(c);
        } else {
                buf_adds(&b, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
                if (w->slice.n)
                        stored(w, &b);
                buf_adds(&b, "]}");
                fake_list(c, r, "ResourceSlice", buf_str(&b));
        }
        buf_done(&b);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (streq(r->path, "/apis/resource.k8s.io")) {
                fake_reply(c, 200, NULL,
                           "{\"kind\":\"APIGroup\",\"name\":\"resource.k8s.io\",\"versions\":[{\"version\":"
                           "\"v1\"}]}");
        } else if (fake_has(r->path, "/nodes/n0")) {
                fake_reply(c, 200, NULL,
                           "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n0\",\"uid\":\"node-uid\"}}");
        } else if (fake_has(r->path, "/resourceslices")) {
                on_slice(w, c, r);
        } else if (fake_has(r->path, "/resourceclaims/c")) {
                fake_reply(c, 200, NULL,
                           "{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",\"metadata\":{"
                           "\"namespace\":\"u\",\"name\":\"c\",\"uid\":\"" CLAIM_UID
                           "\",\"resourceVersion\":\"2\"},\"status\":{\"allocation\":{\"devices\":{"
                           "\"results\":[{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":\"n0\","
                           "\"device\":\"gpu-0\"}]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\","
                           "\"uid\":\"p1\"}]}}");
        } else if (fake_has(r->path, "/events")) {
                w->events++;
                snprintf(w->event, sizeof w->event, "%s", r->body);
                fake_reply(c, 201, NULL, r->body);
        } else {
                fake_refuse(c, 403, "not of this test");
        }
}

/* ---- the node ---- */

static void put_copy(struct world *w, const char *from, const char *to) {
        _cleanup_(freep) char *text = NULL;
        size_t n;
        struct err e;
        if (file_read(from, 64 << 20, &text, &n, &e) < 0)
                fail_msg("%s", e.msg);
        tree_put(w->dir, to, ""); /* makes the folders */
        _cleanup_(freep) char *path = file_join(w->dir, to);
        if (file_replace_volatile(path, text, n, 0755, &e) < 0)
                fail_msg("%s", e.msg);
}

static void put_node(struct world *w, const char *path, unsigned minor_number) {
        _cleanup_(freep) char *full = file_join(w->dir, path);
        if (mknod(full, S_IFCHR | 0666, makedev(195, minor_number)) < 0)
                skip();
}

static void conf(struct world *w, const char *text) {
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.conf", text);
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->dir = tree_new();
        w->says = w->slice = BUF_INIT(1 << 20);
        w->exit_status = -1;
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        put_copy(w, standin, "root/usr/lib64/libnvidia-ml.so.1");
        tree_put(w->dir, "root/usr/lib64/libcuda.so.580.95.05", "");
        tree_put(w->dir, "root/proc/driver/nvidia/gpus/0/information", "");
        tree_put(w->dir, "root/sys/module/nvidia/version", "580.95.05\n");
        tree_put(w->dir, "root/dev/keep", "");
        tree_put(w->dir, "registry/keep", "");
        tree_put(w->dir, "proc-devices", "Character devices:\n195 nvidia\n237 nvidia-caps\n");
        conf(w, "GPU_COUNT=2\n");
        put_copy(w, program, "bin/gpu-kubelet-plugin");
        put_copy(w, hook, "bin/cdi-hook");
        *state = w;
        return 0;
}

static void on_output(void *u, const char *p, size_t n) {
        struct world *w = u;
        buf_add(&w->says, p, n);
}

static void on_ended(void *u, int exit_status, int term_signal) {
        struct world *w = u;
        w->plugin = NULL;
        w->exit_status = term_signal ? 128 + term_signal : exit_status;
        size_t n = w->says.n < 600 ? w->says.n : 600;
        if (w->exit_status)
                print_error("the plugin ended with %d: ...%s\n", w->exit_status,
                            buf_str(&w->says) + w->says.n - n);
}

static void start(struct world *w, const char *more) {
        _cleanup_(freep) char *path = file_join(w->dir, "config");
        _cleanup_(freep) char *bin = file_join(w->dir, "bin/gpu-kubelet-plugin");
        _cleanup_(freep) char *kubeconfig = xasprintf("--kubeconfig=%s", path);
        _cleanup_(freep) char *root = xasprintf("--container-driver-root=%s/root", w->dir);
        _cleanup_(freep) char *plugins = xasprintf("--kubelet-plugins-directory-path=%s/plugins", w->dir);
        _cleanup_(freep) char *registrar =
                xasprintf("--kubelet-registrar-directory-path=%s/registry", w->dir);
        _cleanup_(freep) char *cdi = xasprintf("--cdi-root=%s/cdi", w->dir);
        _cleanup_(freep) char *devices = xasprintf("--alt-proc-devices-path=%s/proc-devices", w->dir);
        _cleanup_(freep) char *config =
                xasprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts:\n- name: x\n"
                          "  context: {cluster: c, user: u}\nclusters:\n- name: c\n"
                          "  cluster: {server: 'http://127.0.0.1:%d'}\nusers:\n- name: u\n  user: {}\n",
                          fake_server_port(w->server));
        struct err e;
        assert_int_equal(file_replace_volatile(path, config, strlen(config), 0600, &e), 0);
        const struct process_options o = {
                .argv = (const char *const[]){ bin, "--node-name=n0", kubeconfig, root, plugins, registrar,
                                               cdi, devices, "--nvidia-driver-root=/run/nvidia/driver",
                                               "--image-name=i", more, NULL },
                .output = on_output,
                .ended = on_ended,
                .u = w,
        };
        if (process_start(&w->loop, &o, &w->plugin, &e) < 0)
                fail_msg("%s", e.msg);
}

static void end(struct world *w) {
        if (!w->plugin)
                return;
        process_signal(w->plugin, SIGTERM);
        RUN_UNTIL(&w->loop, !w->plugin);
}

static int teardown(void **state) {
        struct world *w = *state;
        process_free(w->plugin);
        fake_server_free(w->server);
        loop_end(&w->loop);
        tree_remove(w->dir);
        buf_done(&w->says);
        buf_done(&w->slice);
        free(w);
        return 0;
}

static bool offers(const struct world *w, const char *device) {
        _cleanup_(freep) char *name = xasprintf("\"name\":\"%s\"", device);
        return strstr(buf_str(&w->slice), name) != NULL;
}

/* ---- the kubelet ---- */

struct answer {
        bool come;
        int status;
        char text[2048];
};

static void on_answer(void *u, const struct child_result *r) {
        struct answer *a = u;
        a->come = true;
        a->status = r->exit_status;
        snprintf(a->text, sizeof a->text, "%.*s", (int)r->out.n, r->out.p);
}

static struct answer ask(struct world *w, const char *what) {
        _cleanup_(freep) char *socket = xasprintf("%s/plugins/gpu.nvidia.com/dra.sock", w->dir);
        struct answer a = { 0 };
        UNTIL(w, access(socket, F_OK) == 0);
        /* It leaves what it read to the end of its process. */
        child_run(&w->loop,
                  &(struct child_options){
                          .argv = (const char *const[]){ dra_call, socket, what, "u", "c", CLAIM_UID, NULL },
                          .env = (const char *const[]){ "ASAN_OPTIONS=detect_leaks=0", NULL },
                          .timeout_ms = 30000,
                          .done = on_answer,
                          .u = &a });
        RUN_UNTIL(&w->loop, a.come);
        return a;
}

/* ---- tests ---- */

static void a_node_offers_its_gpus_and_follows_what_becomes_of_them(void **state) {
        struct world *w = *state;
        start(w, NULL);
        UNTIL(w, w->writes == 1);
        assert_true(offers(w, "gpu-0") && offers(w, "gpu-1"));
        assert_non_null(strstr(buf_str(&w->slice), "\"generateName\":\"00000-gpu.nvidia.com-n0-\""));
        assert_non_null(strstr(buf_str(&w->slice), "\"productName\":{\"string\":\"NVIDIA GB200\"}"));
        end(w);
        assert_int_equal(w->exit_status, 0);
        assert_int_equal(w->writes, 1);
        /* Another process finds it as it should be, and another driver is another version. */
        start(w, NULL);
        run_for(&w->loop, 1500);
        assert_int_equal(w->writes, 1);
        end(w);
        conf(w, "GPU_COUNT=2\nGPU1_MIG=\"3g@0 1g@4\"\nDRIVER_VERSION=590.1.01\n");
        start(w, NULL);
        UNTIL(w, w->writes == 2);
        assert_true(offers(w, "gpu-0") && !offers(w, "gpu-1"));
        assert_true(offers(w, "gpu-1-mig-3g93gb-9-0") && offers(w, "gpu-1-mig-1g23gb-19-4"));
        assert_non_null(strstr(buf_str(&w->slice), "\"driverVersion\":{\"version\":\"590.1.1\"}"));
        end(w);
}

static void a_node_without_driver_says_so_and_serves_the_kubelet(void **state) {
        struct world *w = *state;
        conf(w, "INIT_ERROR=9\n");
        start(w, NULL);
        UNTIL(w, w->writes == 1 && w->events);
        assert_non_null(strstr(buf_str(&w->slice), "\"devices\":[]"));
        assert_non_null(strstr(w->event, "GPUDevicesWithheld"));
        assert_non_null(strstr(w->event, "nvmlInit: NVML error 9 (Driver Not Loaded)"));
        assert_int_equal(ask(w, "unprepare").status, 0);
        end(w);
        assert_int_equal(w->exit_status, 0);
}

static void a_claim_is_prepared_with_our_hook_and_unprepared(void **state) {
        struct world *w = *state;
        _cleanup_(freep) char *cdi = xasprintf("%s/cdi/k8s.gpu.nvidia.com-claim_" CLAIM_UID ".yaml", w->dir);
        _cleanup_(freep) char *text = NULL;
        struct err e;
        put_node(w, "root/dev/nvidia0", 0);
        put_node(w, "root/dev/nvidia1", 1);
        put_node(w, "root/dev/nvidiactl", 255);
        start(w, NULL);
        UNTIL(w, w->writes == 1);
        struct answer a = ask(w, "prepare");
        if (a.status != 0)
                fail_msg("%s\n%s", a.text, buf_str(&w->says));
        if (file_read(cdi, 1 << 20, &text, NULL, &e) < 0)
                fail_msg("%s", e.msg);
        assert_non_null(strstr(text, "/dev/nvidia0"));
        assert_null(strstr(text, "/dev/nvidia1\""));
        _cleanup_(freep) char *copy = xasprintf("%s/plugins/gpu.nvidia.com/cdi-hook-", w->dir);
        assert_non_null(strstr(text, copy));
        /* A GPU that is being looked for holds no Unprepare back. */
        conf(w, "HANG=1\n");
        tree_put(w->dir, "root/proc/driver/nvidia/gpus/1/information", "");
        assert_int_equal(ask(w, "unprepare").status, 0);
        assert_int_equal(access(cdi, F_OK), -1);
        end(w);
}

static void what_this_driver_does_not_do_is_refused_at_the_start(void **state) {
        static const char *const asked[][2] = {
                { "--feature-gates=DynamicMIG=true", "DynamicMIG" },
                { "--feature-gates=TimeSlicingSettings=true", "TimeSlicingSettings" },
                { "--feature-gates=Nonsense=true", "Nonsense" },
                { "--consumable-shares=memory", "set it to disabled" },
                { "--consumable-shares=0", "a positive number" },
                { "--checkpoint-layout=newest", "auto, main or released" },
                { "--nvidia-cdi-hook-path=hook", "not an absolute path" },
        };
        struct world *w = *state;
        for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
                buf_clear(&w->says);
                start(w, asked[i][0]);
                RUN_UNTIL(&w->loop, !w->plugin);
                assert_int_equal(w->exit_status, 2);
                assert_non_null(strstr(buf_str(&w->says), asked[i][1]));
        }
}

int main(int argc, char **argv) {
        if (argc != 5)
                return 2;
        program = argv[1];
        standin = argv[2];
        dra_call = argv[3];
        hook = argv[4];
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(a_node_offers_its_gpus_and_follows_what_becomes_of_them),
                T(a_node_without_driver_says_so_and_serves_the_kubelet),
                T(a_claim_is_prepared_with_our_hook_and_unprepared),
                T(what_this_driver_does_not_do_is_refused_at_the_start),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
