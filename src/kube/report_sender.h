/* SPDX-License-Identifier: Apache-2.0 */
/* report_sender: writes what a program reports in the metadata of the Pod in which it runs. It sends merge
 * patches, one at a time, and retries a failed patch with a growing back-off. When the API server answers
 * again after an outage, it retries at once: after a restore of etcd, the controllers wait one minute for the
 * reports, and the back-off can be as long.
 *
 * The module watches the Pod. If the Pod loses a report, for example because etcd was restored, the owner's
 * wait_ms() notices it and the report is written again. If the API server does not permit the watch,
 * each report is written once. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "kube/kube_informer.h"

struct report_sender;

/* Strings are copied; `fields` is static. */
struct report_sender_options {
        struct kube_client *client;
        const char *ns, *name;
        const struct jd_field *fields; /* see kube_informer.h */
        size_t size;
        /* Returns for how many milliseconds the present report may wait, so that other changes are written
         * with it, or -1 if the Pod has it. */
        int (*wait_ms)(void *u);
        /* Writes the patch, which contains everything that the Pod lacks. */
        void (*render)(void *u, struct buf *out);
        /* Called after each patch. `failed`: it is not known what the Pod has now. Otherwise returns false if
         * the Pod has something else than was sent, and then the sender retries with back-off. */
        bool (*sent)(void *u, bool failed);
        void *u;
};

struct report_sender *report_sender_new(const struct report_sender_options *o);
void report_sender_free(struct report_sender *s); /* not inside a callback; NULL is allowed */
/* Call it when the report has changed. While a back-off runs, the report waits for its end. */
void report_sender_check(struct report_sender *s);
/* Returns the Pod as the watch shows it, or NULL if it has not been seen. */
const struct kube_object *report_sender_object(const struct report_sender *s);
