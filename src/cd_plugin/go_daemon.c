/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/go_daemon.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "imex/imex_files.h"
#include "node/fetch.h"

/* ---- its ComputeDomainClique, and its label on the Node ---- */

struct go_clique {
        struct kube_client *client;
        char *ns, *domain_uid, *node;
        struct buf name;
        struct kube_call *call;
        struct arena *arena; /* of the object; NULL: not read yet, or it does not exist */
        struct clique *object;
        bool labelled; /* the Node has the label of the ComputeDomain */
        char why[400]; /* why they are not known; "": they are */
        void (*answered)(void *u);
        void *u;
};

static void go_clique_keep(struct go_clique *g, struct arena *a, struct clique *object) {
        arena_free(g->arena);
        g->arena = a;
        g->object = object;
}

static void go_clique_fail(struct go_clique *g, const struct err *e) {
        snprintf(g->why, sizeof g->why, "cannot read ComputeDomainClique '%s/%s': %s", g->ns,
                 buf_str(&g->name), e->msg);
        g->answered(g->u);
}

static void go_clique_node_failed(struct go_clique *g, const struct err *e) {
        snprintf(g->why, sizeof g->why, "cannot read the labels of the Node: %s", e->msg);
        g->answered(g->u);
}

static bool has_label(yyjson_val *obj, const char *domain_uid) {
        yyjson_val *labels = yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "labels");
        return streq(yyjson_get_str(yyjson_obj_get(labels, CD_LABEL)), domain_uid);
}

static void go_clique_on_node(void *u, yyjson_val *obj, const struct err *e) {
        struct go_clique *g = u;
        g->call = NULL;
        if (e && e->kind != ERR_NOT_FOUND) {
                go_clique_node_failed(g, e);
                return;
        }
        g->labelled = !e && has_label(obj, g->domain_uid);
        *g->why = '\0';
        g->answered(g->u);
}

static void go_clique_on_node_retry(void *u, const struct err *e) {
        go_clique_node_failed(u, e);
}

/* Reads the Node after the object. If the Node has the label then, the daemon was not ending when the object
 * was read. */
static void ask_node(struct go_clique *g) {
        g->call = kube_start(g->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                .res = &kube_nodes,
                                                                .name = g->node,
                                                                .attempts = UINT_MAX,
                                                                .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                                                .done = go_clique_on_node,
                                                                .retry = go_clique_on_node_retry,
                                                                .u = g });
}

static void go_clique_take(struct go_clique *g, yyjson_val *obj) {
        struct arena *a = arena_new(1024);
        struct clique *c = arena_alloc(a, sizeof *c);
        struct err e;
        if (jd_decode(clique_fields, obj, "", a, c, &e) == 0) {
                go_clique_keep(g, a, c);
                ask_node(g);
                return;
        }
        arena_free(a);
        go_clique_fail(g, &e);
}

static void go_clique_on_answer(void *u, yyjson_val *obj, const struct err *e) {
        struct go_clique *g = u;
        g->call = NULL;
        if (!e) {
                go_clique_take(g, obj);
        } else if (e->kind == ERR_NOT_FOUND) {
                go_clique_keep(g, NULL, NULL);
                ask_node(g);
        } else {
                go_clique_fail(g, e);
        }
}

static void go_clique_on_retry(void *u, const struct err *e) {
        go_clique_fail(u, e);
}

void go_clique_ask_again(struct go_clique *g) {
        if (!g->call)
                g->call =
                        kube_start(g->client, &(struct kube_request){ .verb = KUBE_GET,
                                                                      .res = &kube_cliques,
                                                                      .ns = g->ns,
                                                                      .name = buf_str(&g->name),
                                                                      .attempts = UINT_MAX,
                                                                      .backoff_max_ms = FETCH_BACKOFF_MAX_MS,
                                                                      .done = go_clique_on_answer,
                                                                      .retry = go_clique_on_retry,
                                                                      .u = g });
}

struct go_clique *go_clique_ask(const struct go_clique_options *o) {
        struct go_clique *g = xnew(struct go_clique);
        g->client = o->client;
        g->ns = xstrdup(o->ns);
        g->domain_uid = xstrdup(o->domain_uid);
        g->node = xstrdup(o->node);
        g->name = (struct buf)BUF_INIT(1024);
        g->answered = o->answered;
        g->u = o->u;
        clique_object_name(o->domain_uid, o->clique_id, &g->name);
        snprintf(g->why, sizeof g->why, "ComputeDomainClique '%s/%s' has not been read yet", g->ns,
                 buf_str(&g->name));
        go_clique_ask_again(g);
        return g;
}

const char *go_clique_see(const struct go_clique *g, const struct clique **ret, bool *ret_labelled) {
        *ret = g->object;
        *ret_labelled = g->labelled;
        return *g->why ? g->why : NULL;
}

void go_clique_free(struct go_clique *g) {
        if (!g)
                return;
        kube_cancel(g->call);
        arena_free(g->arena);
        buf_done(&g->name);
        free(g->node);
        free(g->domain_uid);
        free(g->ns);
        free(g);
}

/* ---- its folder ---- */

#define TEMPLATE_FILE "imexd.cfg.tmpl"
#define CONFIG_FILE "imexd.cfg"
#define ADDRESS_KEY "IMEX_CMD_BIND_INTERFACE_IP="

enum { CONFIG_MAX = 64 * 1024 };

int go_folder_fill(const char *dir, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, TEMPLATE_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
        if (access(path, F_OK) == 0)
                return 0;
        /* A template for Go's text/template. */
        imex_config_render(&(struct imex_config){ .cmd_bind_ip = "{{.IMEXCmdBindInterfaceIP}}",
                                                  .nodes_file = "/imexd/nodes.cfg",
                                                  .domain.port = IMEX_SERVER_PORT },
                           &text);
        return file_replace_volatile(path, text.p, text.n, 0644, e);
}

static void go_folder_read_config(const char *path, char **ret, size_t *ret_n) {
        _cleanup_(closep) int fd = -1;
        struct err e;
        if (file_open_nofollow(path, &fd, &e) == 0 &&
            file_read_fd(fd, path, CONFIG_MAX, ret, ret_n, &e) == 0)
                return;
        if (e.kind != ERR_NOT_FOUND)
                log_warn("cannot read what a daemon of the Go driver has written", kv_err(&e));
}

void go_folder_address(const char *dir, char ret[static GO_FOLDER_ADDRESS_SIZE]) {
        _cleanup_(freep) char *path = file_join(dir, CONFIG_FILE);
        _cleanup_(freep) char *text = NULL;
        const size_t key = strlen(ADDRESS_KEY);
        size_t n = 0;
        struct str rest, line;
        *ret = '\0';
        go_folder_read_config(path, &text, &n);
        rest = (struct str){ text, n };
        while (rest.n && str_next_line(&rest, &line))
                if (line.n > key && memcmp(line.p, ADDRESS_KEY, key) == 0)
                        snprintf(ret, GO_FOLDER_ADDRESS_SIZE, "%.*s", (int)(line.n - key), line.p + key);
}
