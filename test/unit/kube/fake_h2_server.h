/* SPDX-License-Identifier: Apache-2.0 */
/* fake_h2_server: an HTTPS server that supports HTTP/2 only, on loopback in the test's own loop, with
 * certificates that it creates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct fake_h2;
struct fake_h2_stream;

/* Called when a request's headers have arrived (bodies are ignored). It answers with the functions below, at
 * once, later or never. */
typedef void(fake_h2_fn)(void *u, struct fake_h2_stream *s, const char *method, const char *path);

/* `name` is the only name in the server's certificate. client_auth: clients need a certificate of our CA. */
struct fake_h2 *fake_h2_new(uv_loop_t *loop, const char *name, bool client_auth, fake_h2_fn *fn, void *u);
void fake_h2_free(struct fake_h2 *f);
int fake_h2_port(const struct fake_h2 *f);
/* PEM texts, owned by the server. */
const char *fake_h2_ca(const struct fake_h2 *f);
const char *fake_h2_client_cert(const struct fake_h2 *f);
const char *fake_h2_client_key(const struct fake_h2 *f);
const char *fake_h2_other_ca(const struct fake_h2 *f); /* has signed no certificate here */

/* Creates a new authority, and a new server certificate for later connections, as after a restart of the API
 * server. Client certificates of all authorities so far are accepted. From then on the functions above return
 * the new texts. */
void fake_h2_renew(struct fake_h2 *f);
/* Sends headers and a body that is compressed with gzip. */
void fake_h2_gzip(struct fake_h2_stream *s, const void *packed, size_t n);

unsigned fake_h2_accepted(const struct fake_h2 *f);
unsigned fake_h2_resets(const struct fake_h2 *f); /* streams that the client reset */
unsigned fake_h2_open(const struct fake_h2 *f);   /* connections that are open */
void fake_h2_goaway(
        struct fake_h2 *f); /* no new streams on the present connections; running streams continue */

/* The hosts of the present connections have died: nothing is read from or written to these connections. */
void fake_h2_deafen(struct fake_h2 *f);

/* A stream is valid until it ends or is reset, which fake_h2_gone() reports. */
void fake_h2_begin(struct fake_h2_stream *s, int status);
void fake_h2_data(struct fake_h2_stream *s, const void *p, size_t n);
void fake_h2_end(struct fake_h2_stream *s);
/* The common name of the client certificate, which the caller frees. NULL: there was none. */
char *fake_h2_client(const struct fake_h2_stream *s);
/* The request's header, "" when there was none. Only "authorization" and "accept-encoding" are stored. */
const char *fake_h2_authorization(const struct fake_h2_stream *s);
const char *fake_h2_accept_encoding(const struct fake_h2_stream *s);
bool fake_h2_gone(const struct fake_h2_stream *s);
