/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/process.h"

enum { MAX_LABELS = 4, MAX_SERIES_TEXT = 64 << 10 };

struct series {
        UT_hash_handle hh; /* keeps the order in which the series were created */
        double value;      /* of a histogram: the sum */
        uint64_t count;
        uint64_t *bucket; /* of a histogram: observations in each, not cumulated */
        char labels[];    /* as printed: name="value",name="value" */
};

struct metric {
        STAILQ_ENTRY(metric) link;
        enum metric_type type;
        char *name;
        const char *help;
        const char *label[MAX_LABELS];
        size_t n_labels;
        const double *buckets;
        size_t n_buckets;
        struct series *series;
};

struct metrics {
        STAILQ_HEAD(, metric) metrics;
};

struct metrics *metrics_new(void) {
        struct metrics *m = xnew(struct metrics);
        STAILQ_INIT(&m->metrics);
        return m;
}

static void metrics_series_free(struct metric *m, struct series *s) {
        HASH_DEL(m->series, s);
        free(s->bucket);
        free(s);
}

void metrics_free(struct metrics *m) {
        if (!m)
                return;
        while (!STAILQ_EMPTY(&m->metrics)) {
                struct metric *f = STAILQ_FIRST(&m->metrics);
                STAILQ_REMOVE_HEAD(&m->metrics, link);
                metric_clear(f);
                free(f->name);
                free(f);
        }
        free(m);
}

/* Series. */

static void metrics_add_escaped(struct buf *b, const char *s, bool quotes) {
        for (; *s; s++) {
                size_t plain = strcspn(s, quotes ? "\n\\\"" : "\n\\");
                buf_add(b, s, plain);
                s += plain;
                if (!*s)
                        return;
                buf_addc(b, '\\');
                buf_addc(b, *s == '\n' ? 'n' : *s);
        }
}

static struct series *find_series(struct metric *m, const char *const *values, bool create) {
        struct buf text = BUF_INIT(MAX_SERIES_TEXT);
        struct series *s;
        size_t n = 0;
        for (; values && values[n]; n++) {
                BUG_ON(n == m->n_labels);
                if (n)
                        buf_addc(&text, ',');
                buf_adds(&text, m->label[n]);
                buf_adds(&text, "=\"");
                metrics_add_escaped(&text, values[n], true);
                buf_addc(&text, '"');
        }
        BUG_ON(n != m->n_labels || text.failed);
        HASH_FIND(hh, m->series, buf_str(&text), text.n, s);
        if (!s && create) {
                s = xcalloc(1, sizeof(*s) + text.n + 1);
                memcpy(s->labels, buf_str(&text), text.n);
                if (m->type == METRIC_HISTOGRAM)
                        s->bucket = xnew_n(uint64_t, m->n_buckets + 1);
                HASH_ADD_KEYPTR(hh, m->series, s->labels, text.n, s);
        }
        buf_done(&text);
        return s;
}

static struct metric *new_metric(enum metric_type t, const char *name, const char *help) {
        struct metric *f = xnew(struct metric);
        f->type = t;
        f->name = xstrdup(name);
        f->help = help;
        return f;
}

static void metrics_add(struct metrics *m, struct metric *f, const char *const *labels) {
        for (; labels && labels[f->n_labels]; f->n_labels++) {
                BUG_ON(f->n_labels == MAX_LABELS);
                f->label[f->n_labels] = labels[f->n_labels];
        }
        STAILQ_INSERT_TAIL(&m->metrics, f, link);
        if (!f->n_labels) /* a metric without labels has one series, which is shown from the start */
                (void)find_series(f, NULL, true);
}

struct metric *metric_add(struct metrics *m, enum metric_type t, const char *name, const char *help,
                          const char *const *labels) {
        BUG_ON(t == METRIC_HISTOGRAM);
        struct metric *f = new_metric(t, name, help);
        metrics_add(m, f, labels);
        return f;
}

struct metric *metric_add_histogram(struct metrics *m, const char *name, const char *help,
                                    const char *const *labels, const double *buckets, size_t n_buckets) {
        struct metric *f = new_metric(METRIC_HISTOGRAM, name, help);
        f->buckets = buckets;
        f->n_buckets = n_buckets;
        for (size_t i = 1; i < n_buckets; i++)
                BUG_ON(buckets[i - 1] >= buckets[i]);
        metrics_add(m, f, labels);
        return f;
}

void metric_touch(struct metric *m, const char *const *values) {
        find_series(m, values, true);
}

void metric_inc(struct metric *m, double by, const char *const *values) {
        BUG_ON(m->type == METRIC_HISTOGRAM || (m->type == METRIC_COUNTER && by < 0));
        find_series(m, values, true)->value += by;
}

void metric_set(struct metric *m, double to, const char *const *values) {
        BUG_ON(m->type == METRIC_HISTOGRAM);
        find_series(m, values, true)->value = to;
}

void metric_observe(struct metric *m, double v, const char *const *values) {
        BUG_ON(m->type != METRIC_HISTOGRAM);
        struct series *s = find_series(m, values, true);
        size_t i = 0;
        while (i < m->n_buckets && v > m->buckets[i])
                i++;
        s->bucket[i]++;
        s->count++;
        s->value += v;
}

void metric_forget(struct metric *m, const char *const *values) {
        struct series *s = find_series(m, values, false);
        if (s)
                metrics_series_free(m, s);
}

void metric_clear(struct metric *m) {
        while (m->series)
                metrics_series_free(m, m->series);
}

/* Text. */

static void add_number(struct buf *b, double v) {
        if (isnan(v))
                buf_adds(b, "NaN");
        else if (isinf(v))
                buf_adds(b, v > 0 ? "+Inf" : "-Inf");
        else if (fabs(v) < 1e15 && v == (double)(int64_t)v)
                buf_addf(b, "%.0f", v);
        else
                buf_addf(b, "%.10g", v);
}

static void add_sample(struct buf *b, const char *name, const char *suffix, const char *labels,
                       const double *le, double v) {
        buf_addf(b, "%s%s", name, suffix);
        if (*labels || le) {
                buf_addf(b, "{%s", labels);
                if (le) {
                        buf_addf(b, "%sle=\"", *labels ? "," : "");
                        add_number(b, *le);
                        buf_addc(b, '"');
                }
                buf_addc(b, '}');
        }
        buf_addc(b, ' ');
        add_number(b, v);
        buf_addc(b, '\n');
}

static void add_head(struct buf *b, const char *name, const char *help, enum metric_type type) {
        static const char *const types[] = {
                [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"
        };
        buf_addf(b, "# HELP %s ", name);
        metrics_add_escaped(b, help, false);
        buf_addf(b, "\n# TYPE %s %s\n", name, types[type]);
}

static void add_histogram(struct buf *b, const struct metric *m, const struct series *s) {
        uint64_t below = 0;
        for (size_t i = 0; i <= m->n_buckets; i++) {
                double le = i < m->n_buckets ? m->buckets[i] : (double)INFINITY;
                below += s->bucket[i];
                add_sample(b, m->name, "_bucket", s->labels, &le, (double)below);
        }
        add_sample(b, m->name, "_sum", s->labels, NULL, s->value);
        add_sample(b, m->name, "_count", s->labels, NULL, (double)s->count);
}

static void add_metric(struct buf *b, const struct metric *m) {
        if (!m->series)
                return;
        add_head(b, m->name, m->help, m->type);
        for (const struct series *s = m->series; s; s = s->hh.next) {
                if (m->type == METRIC_HISTOGRAM)
                        add_histogram(b, m, s);
                else
                        add_sample(b, m->name, "", s->labels, NULL, s->value);
        }
}

/* The process, under the names that every Prometheus client library uses. */

static void add_single(struct buf *b, const char *name, const char *help, enum metric_type type, double v) {
        add_head(b, name, help, type);
        add_sample(b, name, "", "", NULL, v);
}

static double timespec_s(struct timespec t) {
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Start time, virtual and resident size: proc(5), fields 22, 23 and 24 of stat. They are counted from the end
 * of the name, which may contain anything. */
static void add_stat(struct buf *b) {
        _cleanup_(freep) char *text = NULL;
        struct timespec now, since_boot;
        struct err e;
        if (file_read("/proc/self/stat", 8192, &text, NULL, &e) < 0)
                return;
        const char *name_end = strrchr(text, ')');
        struct str rest = str_from(name_end ? name_end + 2 : ""), word;
        int64_t field[25] = { 0 };
        size_t i = 3;
        for (; i < ARRAY_LEN(field) && str_next_field(&rest, ' ', &word); i++)
                (void)str_to_i64(word, &field[i]); /* the state, a letter, stays 0 */
        if (i < ARRAY_LEN(field) || clock_gettime(CLOCK_REALTIME, &now) < 0 ||
            clock_gettime(CLOCK_BOOTTIME, &since_boot) < 0)
                return;
        double boot = timespec_s(now) - timespec_s(since_boot);
        add_single(b, "process_start_time_seconds", "Start time of the process in seconds since 1970.",
                   METRIC_GAUGE, (double)(int64_t)(boot + (double)field[22] / (double)sysconf(_SC_CLK_TCK)));
        add_single(b, "process_virtual_memory_bytes", "Virtual memory.", METRIC_GAUGE, (double)field[23]);
        add_single(b, "process_resident_memory_bytes", "Resident memory.", METRIC_GAUGE,
                   (double)field[24] * (double)sysconf(_SC_PAGESIZE));
}

static int count_descriptor(void *u, int folder, const char *name, struct err *e) {
        ++*(int *)u;
        return 0;
}

static void add_descriptors(struct buf *b) {
        struct rlimit limit;
        struct err e;
        int n = -1; /* do not count our own */
        if (file_each("/proc/self/fd", count_descriptor, &n, &e) == 0)
                add_single(b, "process_open_fds", "Open file descriptors.", METRIC_GAUGE, n);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                add_single(b, "process_max_fds", "Maximum number of open file descriptors.", METRIC_GAUGE,
                           (double)limit.rlim_cur);
}

static void add_process(struct buf *b) {
        struct rusage u;
        if (getrusage(RUSAGE_SELF, &u) == 0)
                add_single(b, "process_cpu_seconds_total", "CPU time, user and system.", METRIC_COUNTER,
                           (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
                                   (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
        add_stat(b);
        add_descriptors(b);
        add_single(b, "process_children_stuck",
                   "Child processes that were killed and are stuck in the kernel.", METRIC_GAUGE,
                   (double)process_stuck());
}

void metrics_render(const struct metrics *m, struct buf *out) {
        const struct metric *f;
        STAILQ_FOREACH (f, &m->metrics, link)
                add_metric(out, f);
        add_process(out);
}
