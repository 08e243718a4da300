/* SPDX-License-Identifier: Apache-2.0 */
/* record: records the forms of requests that the programs send. It is linked into test programs and wraps
 * http_start(). With RECORD_FORMS=FILE each process adds each form to that file once. See ./collect. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "form.h"

struct http_call *__real_http_start(struct http_client *c, const struct http_request *r);
struct http_call *__wrap_http_start(struct http_client *c, const struct http_request *r);

static const char *file;
static char **known;
static size_t n_known, cap;

/* Some programs clear their environment. */
__attribute__((constructor)) static void look(void) {
        file = getenv("RECORD_FORMS");
}

static void note(const char *form) {
        for (size_t i = 0; i < n_known; i++)
                if (streq(known[i], form))
                        return;
        GROW(known, n_known, cap);
        known[n_known++] = xstrdup(form);
        _cleanup_(freep) char *line = xasprintf("%s\n", form);
        _cleanup_(closep) int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0 || write(fd, line, strlen(line)) < 0)
                perror(file);
}

struct http_call *__wrap_http_start(struct http_client *c, const struct http_request *r) {
        char form[FORM_MAX];
        if (file && form_of(r->method, r->path, r->content_type, r->accept,
                            (struct str){ r->body, r->body ? r->body_len : 0 }, form))
                note(form);
        return __real_http_start(c, r);
}
