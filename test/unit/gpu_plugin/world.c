/* SPDX-License-Identifier: Apache-2.0 */
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/child.h"
#include "base/file.h"
#include "world.h"

#define REGISTRATION_SOCKET "registry/gpu.nvidia.com-reg.sock"

extern char **environ;

/* ---- the API server ---- */

/* Adds the members that the server adds. */
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
                if (w->hold_slice) {
                        w->held = c;
                } else {
                        stored(w, &b);
                        fake_reply(c, 200, NULL, buf_str(&b));
                }
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

void world_store_slice(struct world *w) {
        struct buf b = BUF_INIT(1 << 20);
        w->hold_slice = false;
        stored(w, &b);
        fake_reply(TAKE(w->held), 200, NULL, buf_str(&b));
        buf_done(&b);
}

void world_node(const struct world *w, struct buf *out) {
        static unsigned rv;
        buf_addf(
                out,
                "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n0\",\"uid\":\"node-uid\","
                "\"resourceVersion\":\"%u\"},\"spec\":{\"unschedulable\":%s},\"status\":{\"capacity\":{%s}}}",
                20 + rv++, w->cordoned ? "true" : "false", w->capacity);
}

static void on_nodes(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        struct buf b = BUF_INIT(4096);
        if (fake_query(r, "watch")) {
                w->node_watch = c;
                fake_stream(c);
        } else {
                buf_adds(&b, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
                world_node(w, &b);
                buf_adds(&b, "]}");
                fake_list(c, r, "Node", buf_str(&b));
        }
        buf_done(&b);
}

static void on_claim(const struct world *w, struct fake_conn *c, const struct fake_request *r) {
        const char *name = strrchr(r->path, '/') + 1;
        const char *uid = streq(name, "c") ? CLAIM_UID : streq(name, "d") ? ANOTHER_UID : name;
        _cleanup_(freep) char *text = xasprintf(
                "{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",\"metadata\":{"
                "\"namespace\":\"u\",\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"2\"},\"status\":{"
                "\"allocation\":{\"devices\":{\"results\":[%s],\"config\":[%s]}},\"reservedFor\":[{"
                "\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p1\"}]}}",
                name, uid, w->results, w->config);
        fake_reply(c, 200, NULL, text);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        ++*(streq(r->method, "GET") ? &w->gets : &w->changes);
        if (fake_has(r->path, "/nodes/n0")) {
                fake_reply(c, 200, NULL,
                           "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n0\",\"uid\":\"node-uid\"}}");
        } else if (fake_has(r->path, "/nodes")) {
                on_nodes(w, c, r);
        } else if (fake_has(r->path, "/resourceslices")) {
                on_slice(w, c, r);
        } else if (fake_has(r->path, "/resourceclaims/")) {
                on_claim(w, c, r);
        } else if (fake_has(r->path, "/events")) {
                w->events++;
                snprintf(w->event, sizeof w->event, "%s", r->body);
                fake_reply(c, 201, NULL, r->body);
        } else {
                fake_refuse(c, 403, "not expected in this test");
        }
}

/* ---- the node ---- */

void world_put_copy(struct world *w, const char *from, const char *path) {
        _cleanup_(freep) char *text = NULL;
        size_t n;
        struct err e;
        if (file_read(from, 64 << 20, &text, &n, &e) < 0)
                fail_msg("%s", e.msg);
        tree_put(w->dir, path, ""); /* creates the folders */
        _cleanup_(freep) char *to = file_join(w->dir, path);
        if (file_replace_volatile(to, text, n, 0755, &e) < 0)
                fail_msg("%s", e.msg);
}

void world_put_node(struct world *w, const char *path, unsigned minor_number) {
        _cleanup_(freep) char *full = file_join(w->dir, path);
        if (mknod(full, S_IFCHR | 0666, makedev(195, minor_number)) < 0)
                skip();
}

/* The event of the watch for the stored slice. */
static void send_event(struct world *w, const char *type) {
        struct buf b = BUF_INIT(1 << 20);
        buf_addf(&b, "{\"type\":\"%s\",\"object\":", type);
        w->rv++;
        stored(w, &b);
        buf_adds(&b, "}\n");
        fake_chunk(w->watch, buf_str(&b));
        buf_done(&b);
}

void world_delete_slice(struct world *w) {
        send_event(w, "DELETED");
        buf_clear(&w->slice);
}

void world_annotate_slice(struct world *w, const char *key) {
        static const char meta[] = "\"metadata\":{";
        _cleanup_(freep) char *body = xstrdup(buf_str(&w->slice));
        char *at = strstr(body, meta) + sizeof meta - 1;
        buf_clear(&w->slice);
        buf_add(&w->slice, body, (size_t)(at - body));
        buf_addf(&w->slice, "\"annotations\":{\"%s\":\"true\"},%s", key, at);
        w->rv++;
        if (w->plugin)
                send_event(w, "MODIFIED");
}

/* ---- the kubelet's registration ---- */

static void on_reported(void *u, const struct child_result *r) {
        struct world *w = u;
        (void)r; /* the process may have ended already */
        w->registering--;
}

void world_register(struct world *w) {
        _cleanup_(freep) char *socket = world_path(w, REGISTRATION_SOCKET);
        w->registering++;
        child_run(&w->loop,
                  &(struct child_options){
                          .argv = (const char *const[]){ w->files.dra_call, socket, "register", NULL },
                          .env = (const char *const[]){ "ASAN_OPTIONS=detect_leaks=0", NULL },
                          .timeout_ms = 60000,
                          .done = on_reported,
                          .u = w });
}

/* Each new socket. */
static void on_registry(struct watch_file *f) {
        struct world *w = f->u;
        _cleanup_(freep) char *socket = world_path(w, REGISTRATION_SOCKET);
        if (!w->unregistered && access(socket, F_OK) == 0)
                world_register(w);
}

static void watch_registry(struct world *w) {
        _cleanup_(freep) char *socket = world_path(w, REGISTRATION_SOCKET);
        struct err e;
        w->registry.u = w;
        if (watch_file_start(&w->registry, &w->loop, socket, on_registry, &e) < 0)
                fail_msg("%s", e.msg);
}

/* ---- the node, and the plugin on it ---- */

void world_conf(struct world *w, const char *text) {
        tree_put(w->dir, "root/usr/lib64/libnvidia-ml.conf", text);
}

/* The hook needs permission to mount, and a kernel of its architecture. Otherwise a program that does nothing
 * replaces it: other tests check the hook itself. */
static void put_hook(struct world *w) {
        static int works = -1;
        if (works < 0) {
                pid_t child = fork();
                int status = -1;
                if (child == 0) {
                        execl(w->files.hook, "cdi-hook", "self-test", (char *)NULL);
                        _exit(98);
                }
                works = waitpid(child, &status, 0) == child && status == 0;
        }
        if (works)
                world_put_copy(w, w->files.hook, "bin/cdi-hook");
        else
                tree_put(w->dir, "bin/cdi-hook", "#!/bin/sh\nexit 0\n");
}

struct world *world_new(const struct world_files *files) {
        struct world *w = xnew(struct world);
        w->files = *files;
        w->results = RESULT("gpu", "gpu-0");
        w->config = "";
        w->dir = tree_new();
        w->says = w->slice = BUF_INIT(1 << 20);
        w->exit_status = -1;
        w->capacity = "\"cpu\":\"4\",\"nvidia.com/gpu\":\"0\"";
        uv_loop_init(&w->loop);
        w->server = fake_server_new(&w->loop, 0, on_request, w);
        world_put_copy(w, w->files.standin, "root/usr/lib64/libnvidia-ml.so.1");
        tree_put(w->dir, "root/usr/lib64/libcuda.so.580.95.05", "");
        tree_put(w->dir, "root/proc/driver/nvidia/gpus/0/information", "");
        tree_put(w->dir, "root/sys/module/nvidia/version", "580.95.05\n");
        tree_put(w->dir, "root/dev/keep", "");
        tree_put(w->dir, "registry/keep", "");
        watch_registry(w);
        tree_put(w->dir, "proc-devices", "Character devices:\n195 nvidia\n509 nvidia-uvm\n237 nvidia-caps\n");
        world_conf(w, "GPU_COUNT=2\n");
        world_put_copy(w, w->files.program, "bin/gpu-kubelet-plugin");
        put_hook(w);
        return w;
}

static void on_output(void *u, const char *p, size_t n) {
        struct world *w = u;
        buf_add(&w->says, p, n);
}

static void on_ended(void *u, int exit_status, int term_signal, const struct err *failed) {
        struct world *w = u;
        w->plugin = NULL;
        w->exit_status = term_signal ? 128 + term_signal : exit_status;
        size_t n = w->says.n < 600 ? w->says.n : 600;
        if (w->exit_status && !w->quiet)
                print_error("the plugin ended with %d: ...%s\n", w->exit_status,
                            buf_str(&w->says) + w->says.n - n);
}

/* Our environment, and the variables of the test. */
static const char **environment(const struct world *w) {
        size_t n = 0, at = 0;
        while (environ[n])
                n++;
        const char **env = xnew_n(const char *, n + ARRAY_LEN(w->env) + 1);
        for (size_t i = 0; i < ARRAY_LEN(w->env) && w->env[i]; i++)
                env[at++] = w->env[i]; /* the first of several with the same name counts */
        for (size_t i = 0; i < n; i++)
                env[at++] = environ[i];
        return env;
}

void world_start(struct world *w, const char *more) {
        _cleanup_(freep) const char **env = environment(w);
        _cleanup_(freep) char *path = file_join(w->dir, "config");
        _cleanup_(freep) char *bin = file_join(w->dir, "bin/gpu-kubelet-plugin");
        _cleanup_(freep) char *kubeconfig = xasprintf("--kubeconfig=%s", path);
        _cleanup_(freep) char *root = xasprintf("--container-driver-root=%s/root", w->dir);
        _cleanup_(freep) char *plugins = xasprintf("--kubelet-plugins-directory-path=%s/plugins", w->dir);
        _cleanup_(freep) char *registrar =
                xasprintf("--kubelet-registrar-directory-path=%s/registry", w->dir);
        _cleanup_(freep) char *cdi = xasprintf("--cdi-root=%s/cdi", w->dir);
        _cleanup_(freep) char *host = xasprintf("--host-root=%s/host", w->dir); /* a test may create it */
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
                                               cdi, host, devices, "--nvidia-driver-root=/run/nvidia/driver",
                                               "--image-name=i", more, NULL },
                .env = env,
                .output = on_output,
                .ended = on_ended,
                .u = w,
        };
        if (process_start(&w->loop, &o, &w->plugin, &e) < 0)
                fail_msg("%s", e.msg);
}

void world_end(struct world *w) {
        if (!w->plugin)
                return;
        process_signal(w->plugin, SIGTERM);
        RUN_UNTIL(&w->loop, !w->plugin);
}

bool world_offers(const struct world *w, const char *device) {
        _cleanup_(freep) char *name = xasprintf("\"name\":\"%s\"", device);
        return strstr(buf_str(&w->slice), name) != NULL;
}

/* ---- the kubelet's calls ---- */

static void on_answer(void *u, const struct child_result *r) {
        struct answer *a = u;
        a->come = true;
        a->status = r->exit_status;
        snprintf(a->text, sizeof a->text, "%.*s", (int)r->out.n, r->out.p);
}

void world_send(struct world *w, const char *what, const char *claim, const char *uid, struct answer *ret) {
        _cleanup_(freep) char *socket = world_path(w, "plugins/gpu.nvidia.com/dra.sock");
        _cleanup_(freep) char *timeout = xasprintf("DRA_TIMEOUT=%s", str_or(w->dra_timeout, ""));
        *ret = (struct answer){ 0 };
        /* The program does not free what it read before it exits. */
        child_run(&w->loop, &(struct child_options){
                                    .argv = (const char *const[]){ w->files.dra_call, socket, what, "u",
                                                                   claim, uid, NULL },
                                    .env = (const char *const[]){ "ASAN_OPTIONS=detect_leaks=0",
                                                                  w->dra_timeout ? timeout : NULL, NULL },
                                    .timeout_ms = 60000,
                                    .done = on_answer,
                                    .u = ret });
}

struct answer world_try(struct world *w, const char *what, const char *claim, const char *uid) {
        struct answer a;
        world_send(w, what, claim, uid, &a);
        RUN_UNTIL(&w->loop, a.come);
        return a;
}

struct answer world_ask(struct world *w, const char *what) {
        _cleanup_(freep) char *socket = world_path(w, "plugins/gpu.nvidia.com/dra.sock");
        UNTIL(w, access(socket, F_OK) == 0);
        return world_try(w, what, "c", CLAIM_UID);
}

char *world_path(const struct world *w, const char *path) {
        return file_join(w->dir, path);
}

void world_happens(struct world *w, const char *line) {
        _cleanup_(freep) char *path = world_path(w, "root/usr/lib64/libnvidia-ml.events");
        FILE *f = fopen(path, "a");
        assert_non_null(f);
        fputs(line, f);
        fclose(f);
}

void world_free(struct world *w) {
        process_free(w->plugin);
        watch_file_stop(&w->registry);
        RUN_UNTIL(&w->loop, !w->registering);
        fake_server_free(w->server);
        loop_end(&w->loop);
        tree_remove(w->dir);
        buf_done(&w->says);
        buf_done(&w->slice);
        free(w);
}
