/* SPDX-License-Identifier: Apache-2.0 */
/* fake_server: runs an HTTP/1.1 server on loopback, in the loop of the test. The test decides each answer.
 *
 * Connections stay in memory until the server is freed, so a test may keep one and write to it at any
 * time. */
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
        unsigned n; /* number of requests before it */
};

/* Called for each request. The function may answer at once, later or never. */
typedef void(fake_fn)(void *u, struct fake_conn *conn, const struct fake_request *r);

struct fake_server *fake_server_new(uv_loop_t *loop, int port, fake_fn *fn, void *u);
void fake_server_free(struct fake_server *s);
/* Closes the listener and all connections, as when the process dies. fake_server_new(.., port, ..) starts it
 * again. */
void fake_server_kill(struct fake_server *s);
int fake_server_port(const struct fake_server *s);
unsigned fake_server_requests(const struct fake_server *s);
unsigned fake_server_accepted(const struct fake_server *s);
/* Stops reading and answering on all connections, as a stopped process does. TCP continues to work. */
void fake_server_freeze(struct fake_server *s);

/* headers: more header lines, each with \r\n, or NULL. */
void fake_reply(struct fake_conn *c, int status, const char *headers, const char *body);
/* Refuses a request as the API server does: a Status with the usual reason for this code, without details. */
void fake_refuse(struct fake_conn *c, int status, const char *message);
/* Answers as the API server does for an object that does not exist; group "" is the core group. */
void fake_missing(struct fake_conn *c, const char *group, const char *plural, const char *name);
/* Answers with a list of the kind that the request names. `list` is the JSON text without
 * the kind ("{\"metadata\":...}"). */
void fake_list(struct fake_conn *c, const struct fake_request *r, const char *kind, const char *list);
void fake_stream(struct fake_conn *c); /* 200, and begins a chunked body */
void fake_chunk(struct fake_conn *c, const char *text);
void fake_end(struct fake_conn *c);   /* ends the chunked body properly */
void fake_close(struct fake_conn *c); /* breaks the connection */
bool fake_is_open(const struct fake_conn *c);
/* Returns the decoded value of a query parameter in a static buffer, or NULL if the parameter is absent. */
const char *fake_query(const struct fake_request *r, const char *name);
bool fake_has(const char *text, const char *part);
