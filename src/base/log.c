#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"

/* One value from outside cannot flood the log, and a whole line stays below the kernel's atomic pipe write
 * times a few. */
enum { LOG_VALUE_MAX = 4096, LOG_LINE_MAX = 16384 };

static enum log_format format = LOG_TEXT;
static int verbosity;

void log_setup(enum log_format f, int v) {
        format = f;
        verbosity = v;
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

/* klog: Lmmdd hh:mm:ss.uuuuuu threadid file:line] "msg" key="value" */
static void text_line(struct buf *b, char level, const struct timespec *now, const char *file, int line,
                      const char *msg, const struct kv *kvs) {
        struct tm tm;
        struct jw w = JW(b);
        gmtime_r(&now->tv_sec, &tm);
        buf_addf(b, "%c%02d%02d %02d:%02d:%02d.%06ld %7d %s:%d] ", level, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec, now->tv_nsec / 1000, (int)getpid(), base_name(file), line);
        jw_str(&w, NULL, msg);
        for (; kvs->key; kvs++) {
                buf_addf(b, " %s=", kvs->key);
                struct jw v = JW(b);
                if (kvs->type == KV_STR && kvs->v.s)
                        jw_strn(&v, NULL, clipped(kvs->v.s));
                else if (kvs->type == KV_STR)
                        buf_adds(b, "<nil>");
                else if (kvs->type == KV_BOOL)
                        buf_adds(b, kvs->v.i ? "true" : "false");
                else
                        buf_addf(b, "%" PRId64, kvs->v.i);
        }
}

static void json_line(struct buf *b, const char *level, const struct timespec *now, const char *file,
                      int line, const char *msg, const struct kv *kvs) {
        struct jw w = JW(b);
        jw_obj(&w, NULL);
        jw_time_micro(&w, "ts", now->tv_sec * 1000000 + now->tv_nsec / 1000);
        jw_str(&w, "level", level);
        char caller[96];
        snprintf(caller, sizeof caller, "%s:%d", base_name(file), line);
        jw_str(&w, "caller", caller);
        jw_str(&w, "msg", msg);
        for (; kvs->key; kvs++) {
                if (kvs->type == KV_STR && kvs->v.s)
                        jw_strn(&w, kvs->key, clipped(kvs->v.s));
                else if (kvs->type == KV_STR)
                        jw_null(&w, kvs->key);
                else if (kvs->type == KV_BOOL)
                        jw_bool(&w, kvs->key, kvs->v.i != 0);
                else
                        jw_int(&w, kvs->key, kvs->v.i);
        }
        jw_end_obj(&w);
}

void log_write(enum log_level level, const char *file, int line, const char *msg, const struct kv *kvs) {
        static const char *const names[] = { "error", "warning", "info" };
        struct buf b = BUF_INIT(LOG_LINE_MAX);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (format == LOG_JSON)
                json_line(&b, names[level], &now, file, line, msg, kvs);
        else
                text_line(&b, "EWI"[level], &now, file, line, msg, kvs);
        buf_addc(&b, '\n');
        if (b.failed) { /* too long as a whole: keep what tells where it came from */
                buf_clear(&b);
                buf_addf(&b, "%c %s:%d] %.200s (log line too long)\n", "EWI"[level], base_name(file), line,
                         msg);
        }
        /* A full or closed stderr must not stop the program. */
        ssize_t written = write(STDERR_FILENO, b.p, b.n);
        (void)written;
        buf_done(&b);
}
