/* SPDX-License-Identifier: Apache-2.0 */
/* fake_server: an HTTP/1.1 server on loopback inside the test's own loop, whose every answer the test
 * decides.
 *
 * Connections stay in memory until the server is freed, so a test may keep one and write to it when it likes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "world/loop.h"

struct fake_server;
struct fake_conn;

struct fake_request {
        const char *method, *path; /* path with query */
        const char *head;          /* all header lines */
        const char *body;
        unsigned n; /* how many requests came before it */
};

/* Called for each request. It may answer at once, later or never. */
typedef void(fake_fn)(void *u, struct fake_conn *conn, const struct fake_request *r);

struct fake_server *fake_server_new(uv_loop_t *loop, int port, fake_fn *fn, void *u);
void fake_server_free(struct fake_server *s);
/* As if the process died: closes the listener and all connections. fake_server_new(.., port, ..) brings it
 * back. */
void fake_server_kill(struct fake_server *s);
int fake_server_port(const struct fake_server *s);
unsigned fake_server_requests(const struct fake_server *s);
unsigned fake_server_accepted(const struct fake_server *s);
/* Stops reading and answering on all connections, as a stopped process does; TCP stays well. */
void fake_server_freeze(struct fake_server *s);

/* headers: further header lines, each with \r\n, or NULL. */
void fake_reply(struct fake_conn *c, int status, const char *headers, const char *body);
/* As the API server refuses: a Status with the usual reason of that code, and no details. */
void fake_refuse(struct fake_conn *c, int status, const char *message);
/* As the API server answers for an object that does not exist; group "" for core. */
void fake_missing(struct fake_conn *c, const char *group, const char *plural, const char *name);
/* A list, given without its kind ("{\"metadata\":...}"), of the kind that the request asks for. */
void fake_list(struct fake_conn *c, const struct fake_request *r, const char *kind, const char *list);
void fake_stream(struct fake_conn *c); /* 200 and a chunked body begins */
void fake_chunk(struct fake_conn *c, const char *text);
void fake_end(struct fake_conn *c);   /* the chunked body ends in good order */
void fake_close(struct fake_conn *c); /* the connection breaks */
bool fake_is_open(const struct fake_conn *c);
/* Value of a query parameter, decoded, into a static buffer; NULL when absent. */
const char *fake_query(const struct fake_request *r, const char *name);
bool fake_has(const char *text, const char *part);
