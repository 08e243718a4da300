/* SPDX-License-Identifier: Apache-2.0 */
#include "world/pod_server.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static void on_watch(struct pod_server *s, struct fake_conn *c, const struct fake_request *r) {
        s->n_watches++;
        snprintf(s->watch_path, sizeof s->watch_path, "%s", r->path);
        snprintf(s->watch_rv, sizeof s->watch_rv, "%s", fake_query(r, "resourceVersion"));
        if (s->n_watch_failures) {
                s->n_watch_failures--;
                if (s->refuse_watch)
                        s->refuse_watch(s, c);
                else
                        fake_refuse(c, s->watch_failure, "no watch");
        } else if (!s->hung) {
                s->watch = c;
                s->watching = true;
                fake_stream(c);
        }
}

static void on_list(struct pod_server *s, struct fake_conn *c, const struct fake_request *r) {
        snprintf(s->list_path, sizeof s->list_path, "%s", r->path);
        snprintf(s->head, sizeof s->head, "%s", r->head);
        if (s->n_list_failures) {
                s->n_list_failures--;
                fake_refuse(c, s->list_failure, "no list");
                return;
        }
        unsigned n = s->n_lists++, last = 0;
        if (s->answer_list) {
                s->answer_list(s, c, r);
                return;
        }
        while (last + 1 < ARRAY_LEN(s->pages) && s->pages[last + 1])
                last++;
        fake_list(c, r, s->kind, s->pages[n < last ? n : last]);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct pod_server *s = u;
        if (fake_query(r, "watch"))
                on_watch(s, c, r);
        else if (fake_has(r->path, "/pods/a"))
                fake_reply(c, 200, NULL, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}");
        else
                on_list(s, c, r);
}

void pod_server_start(struct pod_server *s, uv_loop_t *loop, int port) {
        s->loop = loop;
        s->server = fake_server_new(loop, port, on_request, s);
}

void pod_event(struct pod_server *s, const char *type, const char *name, unsigned rv, const char *node) {
        if (rv <= strtoul(s->watch_rv, NULL, 10))
                return;
        _cleanup_(freep) char *line = xasprintf(
                "{\"type\":\"%s\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":"
                "\"uid-%s\",\"resourceVersion\":\"%u\"},"
                "\"spec\":{\"nodeName\":\"%s\"}}}\n",
                type, name, name, rv, node);
        fake_chunk(s->watch, line);
}

void pod_bookmark(struct pod_server *s, unsigned rv) {
        if (rv < strtoul(s->watch_rv, NULL, 10))
                return;
        _cleanup_(freep) char *line = xasprintf(
                "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%u\"}}}\n", rv);
        fake_chunk(s->watch, line);
}
