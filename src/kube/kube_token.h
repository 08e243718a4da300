/* SPDX-License-Identifier: Apache-2.0 */
/* kube_token: keeps the bearer token for the API server. The token's file may be replaced at any time. The
 * token is never logged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kube_token {
        char *text, *file; /* file NULL: the text never changes; both NULL: there is none */
        uint64_t read_ms;
        bool stale; /* the file is read at the next kube_token_get() */
};

/* Returns whether the text contains no white space and no control characters, so that it can be put into an
 * HTTP header. */
bool kube_token_is_clean(const char *s);

/* Initialises the token. Copies both strings; either may be NULL. */
void kube_token_init(struct kube_token *t, const char *text, const char *file);
void kube_token_done(struct kube_token *t);
/* Returns the present token, or NULL if there is none. Reads the file if the last read is a minute ago, or if
 * `stale` is set. If the file cannot be read, or briefly contains something else, the last token stays in
 * use, and the server decides whether it is still valid. */
const char *kube_token_get(struct kube_token *t, uint64_t now_ms);
