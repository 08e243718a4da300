/* SPDX-License-Identifier: Apache-2.0 */
/* Names are resolved in a separate thread, because an unknown name may take seconds, and the command service
 * must answer in the meantime. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "imexd.h"

struct question {
        struct question *next;
        const char *text; /* points into the node list, which never changes */
        size_t id;
        uint64_t generation;
        struct addr addrs[NODE_MAX_ADDRS];
        size_t n_addrs;
};
struct queue {
        struct question *first, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static struct queue questions = { NULL, &questions.first };
static struct queue answers = { NULL, &answers.first };
static int wake = -1;

static void put(struct queue *q, struct question *one) {
        one->next = NULL;
        *q->last = one;
        q->last = &one->next;
}

static struct question *take(struct queue *q) {
        struct question *one = q->first;

        if (one) {
                q->first = one->next;
                if (!q->first)
                        q->last = &q->first;
        }
        return one;
}

static void *work(void *unused) {
        (void)unused;
        pthread_mutex_lock(&lock);
        for (;;) {
                struct question *one = take(&questions);
                const uint64_t more = 1;

                if (!one) {
                        pthread_cond_wait(&asked, &lock);
                        continue;
                }
                pthread_mutex_unlock(&lock);
                one->n_addrs = addr_resolve(one->text, one->addrs);
                pthread_mutex_lock(&lock);
                put(&answers, one);
                (void)!write(wake, &more, sizeof(more));
        }
        return NULL;
}

static void resolved(struct imexd *d, struct source *s, uint32_t events) {
        uint64_t count;

        (void)events;
        (void)!read(s->fd, &count, sizeof(count));
        for (;;) {
                struct question *one;

                pthread_mutex_lock(&lock);
                one = take(&answers);
                pthread_mutex_unlock(&lock);
                if (!one)
                        return;
                if (one->generation == d->generation) {
                        struct node *node = &d->nodes.v[one->id];

                        memcpy(node->addrs, one->addrs, sizeof(node->addrs));
                        node->n_addrs = one->n_addrs;
                        d->unresolved--;
                        if (one->n_addrs == 0)
                                log_line(LOG_VERBOSE, "Failed to resolve node %zu - %s", one->id, node->text);
                        peer_resolved(d, one->id);
                }
                free(one);
        }
}

void resolve_start(struct imexd *d) {
        pthread_attr_t attributes;
        pthread_t thread;

        wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wake < 0 || source_add(d, &d->resolved, wake, resolved, EPOLLIN) < 0)
                imexd_fail(d, "eventfd: %s", strerror(errno));
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, 256 << 10);
        if (pthread_create(&thread, &attributes, work, NULL))
                imexd_fail(d, "Failed to start the resolver");
        pthread_attr_destroy(&attributes);
}

static void ask(struct imexd *d, size_t id) {
        struct question *one = calloc(1, sizeof(*one));

        if (!one)
                abort();
        one->text = d->nodes.v[id].text;
        one->id = id;
        one->generation = d->generation;
        pthread_mutex_lock(&lock);
        put(&questions, one);
        pthread_cond_signal(&asked);
        pthread_mutex_unlock(&lock);
        d->unresolved++;
}

void resolve_one(struct imexd *d, size_t id) {
        ask(d, id);
}

void resolve_all(struct imexd *d) {
        d->generation++;
        d->unresolved = 0;
        for (size_t i = 0; i < d->nodes.n; i++)
                ask(d, i);
}
