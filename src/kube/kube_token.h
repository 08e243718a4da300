/* SPDX-License-Identifier: Apache-2.0 */
/* kube_token: the bearer token for the API server, whose file may be replaced at any time. Never logged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kube_token {
        char *text, *file; /* file NULL: the text never changes; both NULL: there is none */
        uint64_t read_ms;
        bool stale; /* the file is read at the next kube_token_get() */
};

/* Without white space and control characters, which would end up in a header. */
bool kube_token_is_clean(const char *s);

/* Copies both; either may be NULL. */
void kube_token_init(struct kube_token *t, const char *text, const char *file);
void kube_token_done(struct kube_token *t);
/* The present token, NULL for none. The file is read once a minute, and when it is stale. If it cannot be
 * read, or briefly contains something else, the last token stays in use, and the server judges it. */
const char *kube_token_get(struct kube_token *t, uint64_t now_ms);
