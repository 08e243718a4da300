/* SPDX-License-Identifier: Apache-2.0 */
/* kube_token: who we say we are to the API server, as a bearer token that its file may replace at any time.
 * Never logged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kube_token {
        char *text, *file; /* file NULL: the text never changes; both NULL: there is none */
        uint64_t read_ms;
        bool stale; /* the file is read again at the next look */
};

/* No white space or control characters, which would end up in a header. */
bool kube_token_is_clean(const char *s);

/* Copies both; either may be NULL. */
void kube_token_init(struct kube_token *t, const char *text, const char *file);
void kube_token_done(struct kube_token *t);
/* The token of this moment, NULL for none: the file is read once a minute, and when it is stale. One that
 * cannot be read, or holds something else for a moment, leaves the last token in use: the server judges it.
 */
const char *kube_token_get(struct kube_token *t, uint64_t now_ms);
