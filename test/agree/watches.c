/* SPDX-License-Identifier: Apache-2.0 */
#include "watches.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/stderr.h"
#include "base/loop.h"
#include "base/mem.h"
#include "compare.h"
#include "pairs.h"

/* WAIT_MS: the wait for an event that the simulated server has sent. SLACK_MS: the tolerance of the time at
 * which a watch ends. */
enum { MOST = 12, TIMED_MS = 60000, WAIT_MS = 10000, SLACK_MS = 1500, HEAD_MS = 10000 };

struct both {
        struct asked q;
        struct watch *sim;
        struct real_watch *real;
        char *text;
        uv_loop_t *loop;
        uint64_t begun_ms, ends_ms;
        struct buf told; /* events of the simulated server that the real one has not sent yet */
        int64_t reached; /* the version of the real server's last event or bookmark */
        bool over;       /* an error ended it */
};
static struct both *all[MOST];
static size_t n_all;
struct watches_counts watches_counts;

static void both_free(struct both *w) {
        watch_free(w->sim);
        asked_done(&w->q);
        real_watch_close(w->real);
        buf_done(&w->told);
        free(w->text);
        free(w);
}

void watches_open(uv_loop_t *loop, struct real *r, const struct real_request *to_real, struct asked *q,
                  const char *text, long timeout_s, struct buf *out) {
        struct both *w = xnew(struct both);
        int status;
        BUG_ON(n_all == MOST);
        *w = (struct both){ .q = *q, .text = xstrdup(text), .told = BUF_INIT(64 << 20) };
        w->sim = watch_new(&w->q);
        w->real = real_watch(r, to_real);
        w->loop = loop;
        w->begun_ms = loop_now_ms(w->loop);
        w->ends_ms = w->begun_ms + (uint64_t)timeout_s * 1000;
        all[n_all++] = w;
        watches_counts.opened++;
        if (!real_watch_headed(w->real, HEAD_MS))
                buf_addf(out, "  the real server does not accept the watch\n");
        else if (real_watch_ended(w->real, &status) && status != 200)
                buf_addf(out, "  the real server answers the watch with %d\n", status);
}

bool watches_full(void) {
        return n_all == MOST;
}

/* ---- events ---- */

static int64_t version_in(yyjson_val *event) {
        const char *rv = yyjson_get_str(yyjson_ptr_get(event, "/object/metadata/resourceVersion"));
        return rv ? strtoll(rv, NULL, 10) : 0;
}

static yyjson_doc *parsed(struct str line) {
        return yyjson_read(line.p, line.n, 0);
}

/* A bookmark states that all events up to its version were sent. Clients read nothing else of its object. */
static void look_at_bookmark(struct both *w, yyjson_val *real, struct buf *out) {
        static const char *const members[] = { "/object/kind", "/object/apiVersion" };
        struct buf b = BUF_INIT(4096);
        int64_t rv = version_in(real);
        watches_counts.bookmarks++;
        if (rv < w->reached)
                buf_addf(out, "  a bookmark at %" PRId64 " after %" PRId64 "\n", rv, w->reached);
        w->reached = rv;
        watch_bookmark(w->sim, &b);
        yyjson_doc *sim = parsed((struct str){ b.p, b.n });
        if (!sim)
                buf_adds(out, "  the simulated server does not send this bookmark\n");
        for (size_t i = 0; sim && i < ARRAY_LEN(members); i++) {
                const char *a = yyjson_get_str(yyjson_ptr_get(yyjson_doc_get_root(sim), members[i])),
                           *x = yyjson_get_str(yyjson_ptr_get(real, members[i]));
                if (!streq(a, x))
                        buf_addf(out, "  of a bookmark: %s: simulated %s, real %s\n", members[i], a,
                                 str_or(x, "nothing"));
        }
        yyjson_doc_free(sim);
        buf_done(&b);
}

/* The next event of the real server. NULL: none came. */
static yyjson_doc *next_real(struct both *w, unsigned wait_ms, struct buf *out) {
        struct str line;
        while (real_watch_line(w->real, wait_ms, &line)) {
                yyjson_doc *doc = parsed(line);
                const char *type = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "type"));
                if (!streq(type, "BOOKMARK"))
                        return doc;
                look_at_bookmark(w, yyjson_doc_get_root(doc), out);
                yyjson_doc_free(doc);
        }
        return NULL;
}

static void compare_events(struct both *w, yyjson_val *sim, yyjson_val *real, struct buf *out) {
        struct buf differences = BUF_INIT(1 << 20);
        const char *a = yyjson_get_str(yyjson_obj_get(sim, "type")),
                   *b = yyjson_get_str(yyjson_obj_get(real, "type"));
        int64_t rv = version_in(real);
        if (!streq(a, b))
                buf_addf(&differences, "  type: simulated %s, real %s\n", a, str_or(b, "none"));
        if (!streq(b, "ERROR") && rv <= w->reached)
                buf_addf(&differences, "  at %" PRId64 " after %" PRId64 "\n", rv, w->reached);
        compare_values(COMPARE_OBJECT, kinds[w->q.k].kind, kinds[w->q.k].custom,
                       yyjson_obj_get(sim, "object"), yyjson_obj_get(real, "object"), &differences);
        if (differences.n)
                buf_addf(out, "  of event %s:\n%s", str_or(a, ""), differences.p);
        if (streq(a, "ERROR")) {
                w->over = true;
                watches_counts.expired++;
        }
        w->reached = rv ? rv : w->reached;
        watches_counts.events++;
        buf_done(&differences);
}

static bool is_over(const struct both *w) {
        int status;
        return w->over ||
               (real_watch_ended(w->real, &status) && loop_now_ms(w->loop) + SLACK_MS >= w->ends_ms);
}

static void settle(struct both *w, struct buf *out) {
        struct str rest, line;
        int status;
        if (!w->over)
                watch_take(w->sim, INT64_MAX, &w->told);
        rest = (struct str){ w->told.p, w->told.n };
        while (!w->over && rest.n && str_next_line(&rest, &line)) {
                yyjson_doc *sim = parsed(line), *real = next_real(w, WAIT_MS, out);
                if (real)
                        compare_events(w, yyjson_doc_get_root(sim), yyjson_doc_get_root(real), out);
                else if (!is_over(w))
                        buf_addf(out, "  the real server does not send the event: %.*s\n", (int)line.n,
                                 line.p);
                yyjson_doc_free(sim);
                yyjson_doc_free(real);
                if (!real)
                        w->over = true;
        }
        buf_clear(&w->told);
        yyjson_doc *more = w->over ? NULL : next_real(w, 0, out);
        if (more) {
                _cleanup_(freep) char *json = yyjson_write(more, 0, NULL);
                buf_addf(out, "  the simulated server does not send the event: %s\n", json);
                w->over = true;
        }
        yyjson_doc_free(more);
        if (real_watch_ended(w->real, &status) && !w->over) {
                w->over = true;
                watches_counts.ended++;
                if (loop_now_ms(w->loop) + SLACK_MS < w->ends_ms)
                        buf_addf(out, "  the real server ends the watch %" PRIu64 " ms early, status %d\n",
                                 w->ends_ms - loop_now_ms(w->loop), status);
        }
}

/* The watch to close when all places are used; watches that will end by themselves are closed last. MOST: a
 * place is free. */
static size_t oldest_of_all(void) {
        size_t timed = MOST;
        for (size_t i = 0; n_all == MOST && i < n_all; i++) {
                if (all[i]->ends_ms - all[i]->begun_ms > TIMED_MS)
                        return i;
                timed = timed < MOST ? timed : i;
        }
        return timed;
}

static void settle_all(bool close, struct buf *out) {
        size_t oldest = oldest_of_all();
        for (size_t i = 0; i < n_all;) {
                struct both *w = all[i];
                struct buf differences = BUF_INIT(16 << 20);
                settle(w, &differences);
                if (differences.n)
                        buf_addf(out, " %s\n%s", w->text, differences.p);
                if (w->over || close || differences.n || i == oldest) {
                        if (i == oldest)
                                oldest = MOST;
                        else if (oldest != MOST && i < oldest)
                                oldest--;
                        both_free(w);
                        memmove(all + i, all + i + 1, (--n_all - i) * sizeof *all);
                } else {
                        i++;
                }
                buf_done(&differences);
        }
}

void watches_settle(struct buf *out) {
        settle_all(false, out);
}

void watches_close(struct buf *out) {
        settle_all(true, out);
}
