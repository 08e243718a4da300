/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/stderr.h"
#include "base/json.h"
#include "base/str.h"

/* So a value from outside cannot flood the log, and a whole line takes only a few of the kernel's atomic pipe
 * writes. */
enum { LOG_VALUE_MAX = 4096, LOG_SHORT_MAX = 256 };

static enum log_format format = LOG_TEXT;
static int verbosity;

/* Lines that stderr did not accept. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long dropped;
static bool torn; /* the last line is incomplete */

void log_setup(enum log_format f, int v) {
        format = f;
        verbosity = v;
        stderr_widen_pipe();
}

int log_verbosity(void) {
        return verbosity;
}

static struct str clipped(const char *s) {
        return (struct str){ s, strnlen(s, LOG_VALUE_MAX) };
}

static const char *base_name(const char *file) {
        const char *slash = strrchr(file, '/');
        return slash ? slash + 1 : file;
}

/* `nothing`: the text for a NULL string. */
static void add_value(struct jw *w, const char *key, const struct kv *kv, const char *nothing) {
        if (kv->type == KV_STR && kv->v.s)
                jw_strn(w, key, clipped(kv->v.s));
        else if (kv->type == KV_STR)
                jw_raw(w, key, str_from(nothing));
        else if (kv->type == KV_BOOL)
                jw_bool(w, key, kv->v.i != 0);
        else
                jw_int(w, key, kv->v.i);
}

/* One line, as the caller gives it. */
struct entry {
        enum log_level level;
        const char *file;
        int line;
        const char *msg;
        const struct kv *kvs;
};

/* klog: Lmmdd hh:mm:ss.uuuuuu threadid file:line] "msg" key="value" */
static void text_line(struct buf *b, const struct timespec *now, const struct entry *x) {
        struct tm tm;
        struct jw w = JW(b);
        gmtime_r(&now->tv_sec, &tm);
        buf_addf(b, "%c%02d%02d %02d:%02d:%02d.%06ld %7d %s:%d] ", "EWI"[x->level], tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec, now->tv_nsec / 1000, (int)getpid(), base_name(x->file),
                 x->line);
        jw_str(&w, NULL, x->msg);
        for (const struct kv *kvs = x->kvs; kvs->key; kvs++) {
                buf_addf(b, " %s=", kvs->key);
                struct jw v = JW(b);
                add_value(&v, NULL, kvs, "<nil>");
        }
}

static void json_line(struct buf *b, const struct timespec *now, const struct entry *x) {
        static const char *const names[] = { "error", "warning", "info" };
        struct jw w = JW(b);
        jw_obj(&w, NULL);
        jw_time_micro(&w, "ts", now->tv_sec * 1000000 + now->tv_nsec / 1000);
        jw_str(&w, "level", names[x->level]);
        char caller[96];
        snprintf(caller, sizeof caller, "%s:%d", base_name(x->file), x->line);
        jw_str(&w, "caller", caller);
        jw_str(&w, "msg", x->msg);
        for (const struct kv *kvs = x->kvs; kvs->key; kvs++)
                add_value(&w, kvs->key, kvs, "null");
        jw_end_obj(&w);
}

static void add_line(struct buf *b, const struct entry *x) {
        struct timespec now;
        size_t before = b->n;
        clock_gettime(CLOCK_REALTIME, &now);
        if (format == LOG_JSON)
                json_line(b, &now, x);
        else
                text_line(b, &now, x);
        buf_addc(b, '\n');
        if (!b->failed)
                return;
        /* Too long as a whole: keep the source and the message. */
        b->failed = false;
        b->n = before;
        struct kv none = { .key = 0 };
        char cut[LOG_SHORT_MAX];
        snprintf(cut, sizeof cut, "%s (log line too long)", x->msg);
        add_line(b, &(struct entry){ x->level, x->file, x->line, cut, &none });
}

/* Reports the dropped lines first. While that is not possible, no later line is written. */
static bool caught_up(void) {
        struct buf b = BUF_INIT(LOG_LINE_MAX);
        if (torn)
                buf_addc(&b, '\n');
        if (dropped)
                add_line(&b,
                         &(struct entry){ LOG_WARN, __FILE__, __LINE__,
                                          "log lines were dropped, because nothing read stderr",
                                          (const struct kv[]){ kv_int("lines", dropped), { .key = 0 } } });
        size_t n = b.n, written = n ? stderr_write(b.p, n) : 0;
        buf_done(&b);
        if (written == n) {
                dropped = 0;
                torn = false;
        } else if (written) {
                torn = true;
        }
        return written == n;
}

void log_write(enum log_level level, const char *file, int line, const char *msg, const struct kv *kvs) {
        struct buf b = BUF_INIT(LOG_LINE_MAX);
        add_line(&b, &(struct entry){ level, file, line, msg, kvs });
        pthread_mutex_lock(&lock);
        size_t written = caught_up() ? stderr_write(b.p, b.n) : 0;
        if (written < b.n)
                dropped++;
        torn |= written > 0 && written < b.n;
        pthread_mutex_unlock(&lock);
        buf_done(&b);
}
