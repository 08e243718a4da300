/* SPDX-License-Identifier: Apache-2.0 */
/* agree: sends the same requests, one at a time, to the simulated API server and to a real one, and compares
 * the answers. ./run starts the real one. docs/dev/testing.md describes the comparison. */
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../simulate/server.h"
#include "base/file.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/mem.h"
#include "clock.h"
#include "compare.h"
#include "draw.h"
#include "pairs.h"
#include "real.h"
#include "watches.h"

extern char **environ;

/* SETTLE: requests between two comparisons of the watches. The real server accepts objects of 1.5 MiB.
 * RESTARTS: the number of parts of a run, between which the API server restarts. With --all, at most
 * MOST_SHOWN differences are printed. */
enum { SETTLE = 25, MOST_BYTES = 1500 << 10, RESTARTS = 6, MOST_SHOWN = 60, SHOWN_BODY = 700 };

struct options {
        const char *server, *ca, *admin, *nobody, *control, *forms, *others, *left_out, *lacking;
        uint64_t seed;
        unsigned long requests;
        bool all, log;
};

static struct {
        struct options o;
        uv_loop_t loop;
        struct real *callers[3];
        unsigned long n, n_different;
        bool direct; /* see restore() */
        uint64_t begun_ms;
        char *shown[MOST_SHOWN];
        size_t n_shown;
} run;

/* ---- outcomes that our programs distinguish (kube_error.h) ---- */

static struct {
        const char *name;
        unsigned long n;
} outcomes[] = {
        { "200", 0 },
        { "201", 0 },
        { "200 deleted", 0 },
        { "200 no change", 0 },
        { "400 BadRequest", 0 },
        { "401 Unauthorized", 0 },
        { "403 Forbidden", 0 },
        { "404 page", 0 },
        { "404 object", 0 },
        { "404 namespace", 0 },
        { "404 subresource", 0 },
        { "404 resource", 0 },
        { "405 MethodNotAllowed", 0 },
        { "406 NotAcceptable", 0 },
        { "409 AlreadyExists", 0 },
        { "409 Conflict", 0 },
        { "410 Expired", 0 },
        { "413 RequestEntityTooLarge", 0 },
        { "415 UnsupportedMediaType", 0 },
        { "422 Invalid", 0 },
};

static void count(const char *name) {
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
                if (streq(outcomes[i].name, name))
                        outcomes[i].n++;
}

static void count_outcome(const struct request *r, int status, yyjson_val *body, bool changed) {
        char name[128];
        const char *reason = yyjson_get_str(yyjson_obj_get(body, "reason")),
                   *kind = yyjson_get_str(yyjson_ptr_get(body, "/details/kind"));
        bool write = !streq(r->method, "GET");
        if (status < 300 && write && streq(yyjson_get_str(yyjson_obj_get(body, "kind")), "Status"))
                snprintf(name, sizeof name, "200 deleted");
        else if (status < 300)
                snprintf(name, sizeof name, "%d%s", status, write && !changed ? " no change" : "");
        else if (status == 404)
                snprintf(name, sizeof name, "404 %s",
                         !body                                                       ? "page"
                         : !yyjson_ptr_get(body, "/details/name")                    ? "resource"
                         : streq(kind, "namespaces") && write                        ? "namespace"
                         : strstr(r->path, "/nothing") || strstr(r->path, "/status") ? "subresource"
                                                                                     : "object");
        else
                snprintf(name, sizeof name, "%d %s", status, str_or(reason, "without a reason"));
        count(name);
}

/* ---- a request for each server ---- */

/* The text without its marks. For the real server, the values between them are replaced by its own. In a path
 * a version is the beginning of a watch, in a body it is that of an object. */
static char *worded(const char *text, bool real, bool path) {
        struct buf b = BUF_INIT(8 << 20);
        char number[32];
        for (const char *p = text; *p; p++) {
                if (!strchr(MARK_UID MARK_VERSION MARK_TOKEN, *p)) {
                        buf_addc(&b, *p);
                        continue;
                }
                size_t n = strcspn(p + 1, MARK_END);
                _cleanup_(freep) char *sim = xstrndup(p + 1, n);
                const char *word = sim;
                if (real && *p == *MARK_UID) {
                        word = str_or(pairs_real_uid(sim), sim);
                } else if (real && *p == *MARK_TOKEN) {
                        word = str_or(pairs_real_token(sim), sim);
                } else if (real) {
                        int64_t version = strtoll(sim, NULL, 10);
                        snprintf(number, sizeof number, "%" PRId64,
                                 path ? pairs_real_version(version) : pairs_real_write(version));
                        word = number;
                }
                buf_adds(&b, word);
                p += n + 1;
        }
        return buf_steal(&b);
}

/* ---- differences ---- */

static void show_body(const char *what, const char *body) {
        size_t n = strlen(body);
        if (n)
                printf("%s%.*s%s\n", what, n > SHOWN_BODY ? SHOWN_BODY : (int)n, body,
                       n > SHOWN_BODY ? "..." : "");
}

/* With --all the same difference of the same form is printed once. */
static bool is_known(const char *what) {
        char *key = xstrdup(what);
        for (char *p = key; *p; p++)
                if (*p >= '0' && *p <= '9')
                        *p = '0';
        for (size_t i = 0; i < run.n_shown; i++)
                if (streq(run.shown[i], key)) {
                        free(key);
                        return true;
                }
        if (run.n_shown == MOST_SHOWN) {
                free(key);
                return true;
        }
        run.shown[run.n_shown++] = key;
        return false;
}

static void different(const char *request, const char *form, const char *body, int sim_status,
                      const char *sim, int real_status, const char *real, const char *differences) {
        _cleanup_(freep) char *key = xasprintf("%s %d %d %.200s", form, sim_status, real_status, differences);
        run.n_different++;
        if (run.o.all && is_known(key))
                return;
        printf("\nDIFFERENT, seed %" PRIu64 ", request %lu\n%s\n", run.o.seed, run.n, request);
        show_body("", body);
        if (sim_status) {
                printf("simulated %d, real %d\n", sim_status, real_status);
                show_body("simulated: ", sim);
                show_body("real:      ", real);
        }
        printf("%s", differences);
        fflush(stdout);
}

static void watches_differ(const struct buf *out) {
        if (out->n)
                different("watches", "watch", "", 0, "", 0, "", out->p);
}

static void settle(bool close) {
        struct buf out = BUF_INIT(16 << 20);
        if (close)
                watches_close(&out);
        else
                watches_settle(&out);
        watches_differ(&out);
        buf_done(&out);
}

/* ---- the real server ---- */

static void fatal(const char *what, const char *why) {
        fprintf(stderr, "agree: %s: %s\n", what, why);
        exit(EXIT_FAILURE);
}

static int ask(enum caller who, const struct real_request *q, struct buf *out) {
        struct err e;
        int status = real_ask(run.callers[who], q, out, &e);
        if (status < 0)
                fatal(q->path, e.msg);
        return status;
}

/* test/agree/run provides the programs. */
static void control(const char *action, const char *file) {
        const char *const argv[] = { run.o.control, action, file, NULL };
        pid_t pid;
        int status;
        settle(true);
        int rc = posix_spawn(&pid, run.o.control, NULL, NULL, (char *const *)(uintptr_t)argv, environ);
        if (rc)
                fatal(run.o.control, strerror(rc));
        if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
                fatal(run.o.control, action);
}

/* Waits until the real server's cache of the kind is current, and records its version. */
static void catch_up(enum kind k) {
        struct request r;
        struct buf out = BUF_INIT(64 << 20);
        draw_catch_up(k, &r);
        _cleanup_(freep) char *path = xasprintf("%s?limit=1", r.path);
        ask(CALLER_ADMIN, &(struct real_request){ "GET", path, NULL, r.accept, NULL }, &out);
        yyjson_doc *doc = yyjson_read(out.p, out.n, 0);
        const char *rv =
                yyjson_get_str(yyjson_ptr_get(yyjson_doc_get_root(doc), "/metadata/resourceVersion"));
        if (!rv || !pairs_match_list(store_rv(), strtoll(rv, NULL, 10)))
                fatal(path, "a list is older than the last write");
        yyjson_doc_free(doc);
        buf_done(&out);
        request_done(&r);
}

/* Writes an object that has no other purpose, for its version: a write is answered faster than a list. */
static const char mark_path[] = "/api/v1/namespaces/default/configmaps/agree";

static void mark_version(void) {
        static unsigned long n;
        struct buf out = BUF_INIT(1 << 16);
        _cleanup_(freep) char *body = xasprintf("{\"data\":{\"n\":\"%lu\"}}", ++n);
        ask(CALLER_ADMIN,
            &(struct real_request){ "PATCH", mark_path, "application/merge-patch+json", NULL, body }, &out);
        yyjson_doc *doc = yyjson_read(out.p, out.n, 0);
        const char *rv =
                yyjson_get_str(yyjson_ptr_get(yyjson_doc_get_root(doc), "/metadata/resourceVersion"));
        if (!rv || !pairs_match_list(store_rv(), strtoll(rv, NULL, 10)))
                fatal(mark_path, "the version is older than the last write");
        yyjson_doc_free(doc);
        buf_done(&out);
}

static void make_mark(void) {
        static const char body[] = "{\"metadata\":{\"name\":\"agree\"}}";
        struct buf out = BUF_INIT(1 << 16);
        ask(CALLER_ADMIN,
            &(struct real_request){ "POST", "/api/v1/namespaces/default/configmaps", NULL, NULL, body },
            &out);
        buf_done(&out);
}

/* ---- a request ---- */

static void open_watch(const struct request *r, const char *form, const char *sim_path,
                       const char *real_path) {
        struct asked q;
        struct buf out = BUF_INIT(1 << 16);
        if (watches_full())
                settle(false);
        asked_init(&q, r->method, sim_path, NULL, r->accept);
        if (server_refuses_watch(&q))
                fatal(sim_path, "is not a watch");
        watches_open(&run.loop, run.callers[CALLER_ADMIN],
                     &(struct real_request){ r->method, real_path, NULL, r->accept, NULL }, &q, sim_path,
                     q.timeout_s, &out);
        if (out.n)
                different(sim_path, form, "", 0, "", 0, "", out.p);
        buf_done(&out);
}

/* Makes the simulated server use the name that the real one has drawn. */
static void note_name(const struct request *r, yyjson_val *real) {
        const char *made = yyjson_get_str(yyjson_ptr_get(real, "/metadata/name")),
                   *refused = yyjson_get_str(yyjson_ptr_get(real, "/details/name")),
                   *name = made ? made : str_or(refused, "");
        if (streq(r->method, "POST") && strstr(str_or(r->body, ""), "generateName") && strlen(name) > 5)
                store_set_suffix(name + strlen(name) - 5);
}

static int ask_sim(const struct request *r, const char *path, const char *body, struct buf *out) {
        struct asked q;
        int status = 0;
        asked_init(&q, r->method, path, r->content_type, r->accept);
        if (r->caller == CALLER_STRANGER)
                server_status(status = 401, "Unauthorized", &q, out);
        else if (r->caller == CALLER_NOBODY)
                server_status(status = 403, "Forbidden", &q, out);
        else
                status = server_answer(&q, "agree", str_or(body, ""), out);
        asked_done(&q);
        return status;
}

/* An object at only one server would make all later answers different. */
static void make_equal(const struct request *r, const char *sim_path, const char *real_path) {
        char *end = strchr(sim_path, '?');
        struct buf out = BUF_INIT(1 << 20);
        struct asked q;
        if (r->k == K_COUNT || streq(r->method, "GET"))
                return;
        _cleanup_(freep) char *path = xstrndup(sim_path, end ? (size_t)(end - sim_path) : strlen(sim_path));
        asked_init(&q, "GET", path, NULL, NULL);
        if (q.subresource)
                path[strlen(path) - strlen(q.subresource) - 1] = '\0';
        yyjson_doc *body = r->body ? yyjson_read(r->body, strlen(r->body), 0) : NULL;
        const char *name =
                str_or(q.name, yyjson_get_str(yyjson_ptr_get(yyjson_doc_get_root(body), "/metadata/name")));
        _cleanup_(freep) char *object =
                q.name ? xstrdup(path) : xasprintf("%s/%s", path, str_or(name, "none"));
        static const char none[] = "{\"metadata\":{\"finalizers\":null}}",
                          now[] = "{\"gracePeriodSeconds\":0}";
        real_ask(run.callers[CALLER_ADMIN],
                 &(struct real_request){ "PATCH", object, "application/merge-patch+json", NULL, none }, &out,
                 &(struct err){ 0 });
        real_ask(run.callers[CALLER_ADMIN], &(struct real_request){ "DELETE", object, NULL, NULL, now }, &out,
                 &(struct err){ 0 });
        if (name && q.known) {
                const char *ns = kinds[q.k].namespaced ? q.ns : "";
                store_merge_patch("agree", q.k, ns, name, none, false);
                store_delete("agree", q.k, ns, name, now);
        }
        if (!run.direct)
                catch_up(r->k);
        yyjson_doc_free(body);
        asked_done(&q);
        buf_done(&out);
}

static void compare_answers(const struct request *r, int sim_status, yyjson_val *sim, int real_status,
                            yyjson_val *real, const struct buf *sim_text, const struct buf *real_text,
                            struct buf *out) {
        bool list = yyjson_obj_get(real, "items") && !yyjson_obj_get(real, "spec");
        if (sim_status != real_status)
                buf_addf(out, "  status: simulated %d, real %d\n", sim_status, real_status);
        else if (!sim != !real)
                buf_addf(out, "  only one server answers with JSON\n");
        else if (real)
                compare_values(list ? COMPARE_LIST : COMPARE_OBJECT,
                               r->k == K_COUNT ? "Status" : kinds[r->k].kind,
                               r->k != K_COUNT && kinds[r->k].custom, sim, real, out);
        else if (!str_eq(str_trim((struct str){ sim_text->p, sim_text->n }),
                         str_trim((struct str){ real_text->p, real_text->n })))
                buf_addf(out, "  different pages\n");
}

static void send_both(const struct request *r) {
        _cleanup_(freep) char *sim_path = worded(r->path, false, true),
                              *real_path = worded(r->path, true, true),
                              *sim_body = r->body ? worded(r->body, false, false) : NULL,
                              *real_body = r->body ? worded(r->body, true, false) : NULL;
        struct buf sim = BUF_INIT(64 << 20), real = BUF_INIT(64 << 20), out = BUF_INIT(4 << 20);
        char form[FORM_MAX] = "";
        form_of(r->method, sim_path, r->content_type, r->accept, str_from(sim_body), form);
        if (r->caller == CALLER_ADMIN)
                draw_covered(form);
        if (r->watch) {
                open_watch(r, form, sim_path, real_path);
                return;
        }
        if (r->from_cache)
                catch_up(r->k);
        int64_t before = store_rv();
        int real_status = ask(
                r->caller,
                &(struct real_request){ r->method, real_path, r->content_type, r->accept, real_body }, &real);
        yyjson_doc *real_doc = yyjson_read(buf_str(&real), real.n, 0);
        note_name(r, yyjson_doc_get_root(real_doc));
        int sim_status = ask_sim(r, sim_path, sim_body, &sim);
        yyjson_doc *sim_doc = yyjson_read(buf_str(&sim), sim.n, 0);
        yyjson_val *sim_root = yyjson_doc_get_root(sim_doc), *real_root = yyjson_doc_get_root(real_doc);
        compare_answers(r, sim_status, sim_root, real_status, real_root, &sim, &real, &out);
        count_outcome(r, real_status, real_root, store_rv() != before);
        if (run.o.log)
                printf("%lu: %s %s %.300s -> %d, version %" PRId64 "\n", run.n, r->method, sim_path,
                       str_or(sim_body, ""), real_status, store_rv());
        if (out.n) {
                _cleanup_(freep) char *request = xasprintf("%s %s  (%s, %s)", r->method, sim_path,
                                                           str_or(r->content_type, "no body"), r->accept);
                different(request, form, str_or(sim_body, ""), sim_status, buf_str(&sim), real_status,
                          buf_str(&real), out.p);
                make_equal(r, sim_path, real_path);
        } else if (store_rv() != before && !pairs_know_version(store_rv()) && !run.direct) {
                mark_version();
        }
        if (sim_status == 200 && streq(r->method, "GET"))
                draw_note_answer(r, sim_path, sim_root);
        yyjson_doc_free(sim_doc);
        yyjson_doc_free(real_doc);
        buf_done(&sim);
        buf_done(&real);
        buf_done(&out);
}

/* ---- a run ---- */

static int by_version(const void *a, const void *b) {
        const char *const path = "/metadata/resourceVersion";
        int64_t x = strtoll(yyjson_get_str(yyjson_ptr_get(*(yyjson_val *const *)a, path)), NULL, 10),
                y = strtoll(yyjson_get_str(yyjson_ptr_get(*(yyjson_val *const *)b, path)), NULL, 10);
        return x < y ? -1 : x > y;
}

/* The real server has some at its start. */
static void take_over_namespaces(void) {
        static const char path[] = "/api/v1/namespaces";
        struct buf real = BUF_INIT(1 << 20), sim = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
        struct asked q;
        yyjson_val *all[16], *x;
        size_t i, max, n = 0;
        ask(CALLER_ADMIN, &(struct real_request){ .method = "GET", .path = path }, &real);
        yyjson_doc *doc = yyjson_read(real.p, real.n, 0);
        yyjson_arr_foreach (yyjson_obj_get(yyjson_doc_get_root(doc), "items"), i, max, x)
                if (n < ARRAY_LEN(all))
                        all[n++] = x;
        qsort(all, n, sizeof *all, by_version);
        for (i = 0; i < n; i++) {
                _cleanup_(freep) char *body =
                        xasprintf("{\"metadata\":{\"name\":\"%s\"}}",
                                  yyjson_get_str(yyjson_ptr_get(all[i], "/metadata/name")));
                int64_t created = 0;
                jd_time(yyjson_get_str(yyjson_ptr_get(all[i], "/metadata/creationTimestamp")), &created);
                clock_set(created);
                store_create("agree", K_NAMESPACE, "", body);
        }
        clock_set(0);
        asked_init(&q, "GET", path, NULL, NULL);
        server_answer(&q, "agree", "", &sim);
        yyjson_doc *sim_doc = yyjson_read(sim.p, sim.n, 0);
        compare_values(COMPARE_LIST, "Namespace", false, yyjson_doc_get_root(sim_doc),
                       yyjson_doc_get_root(doc), &out);
        if (out.n)
                fatal("the namespaces differ", out.p);
        yyjson_doc_free(doc);
        yyjson_doc_free(sim_doc);
        asked_done(&q);
        buf_done(&real);
        buf_done(&sim);
}

static void make_namespaces(void) {
        static const char *const names[] = DRAW_SPACES;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct request r = {
                        .k = K_NAMESPACE,
                        .method = xstrdup("POST"),
                        .path = xstrdup("/api/v1/namespaces"),
                        .content_type = xstrdup("application/json"),
                        .accept = xstrdup("application/json"),
                        .body = xasprintf("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\"}}", names[i])
                };
                send_both(&r);
                request_done(&r);
        }
}

static void requests(unsigned long n) {
        for (unsigned long i = 0; i < n && (run.o.all || !run.n_different); i++) {
                struct request r;
                run.n++;
                draw_next(&r);
                send_both(&r);
                request_done(&r);
                if (run.n % SETTLE == 0)
                        settle(false);
        }
}

static void catch_up_all(void) {
        for (enum kind k = 0; k < K_POD_GROUP; k++)
                catch_up(k);
}

/* Compacts etcd, and restarts the API server, which then has no history. */
static void restart(void) {
        control("compact", "");
        server_compact();
        catch_up_all();
}

static void on_time(void *u) {
        *(bool *)u = true;
}

static void wait_ms(unsigned ms) {
        struct loop_timer timer;
        bool over = false;
        loop_timer_init(&timer, &run.loop, on_time, &over);
        loop_timer_start(&timer, ms);
        while (!over)
                uv_run(&run.loop, UV_RUN_ONCE);
        loop_timer_done(&timer);
}

/* The servers accept watches from a future version, and send no events. */
static void watch_ahead(int64_t sim_rv, int64_t real_rv) {
        static const enum kind some[] = { K_DOMAIN, K_POD };
        enum { TIMEOUT_S = 4 };
        for (size_t i = 0; i < ARRAY_LEN(some); i++) {
                struct request all;
                draw_catch_up(some[i], &all);
                static const char query[] = "?watch=true&allowWatchBookmarks=true&timeoutSeconds=";
                _cleanup_(freep) char *sim = xasprintf("%s%s%d&resourceVersion=%" PRId64, all.path, query,
                                                       TIMEOUT_S, sim_rv),
                                      *real = xasprintf("%s%s%d&resourceVersion=%" PRId64, all.path, query,
                                                        TIMEOUT_S, real_rv);
                free(all.path);
                all.path = xstrdup(sim);
                open_watch(&all, "watch", sim, real);
                request_done(&all);
        }
        wait_ms(TIMEOUT_S * 1000 + 500);
        settle(true);
}

/* Sends n requests. A restore undoes the first half. If the API server still runs after the restore, its
 * caches have the old history; then only answers from etcd are compared until it restarts. */
static void restore(unsigned long n, bool runs_on) {
        control("snapshot", "backup");
        struct backup *b = store_backup();
        int64_t rv = store_rv();
        requests(n / 2);
        int64_t sim_ahead = store_rv(), real_ahead = pairs_real_version(sim_ahead);
        draw_forget_lists();
        control(runs_on ? "restore-etcd" : "restore", "backup");
        server_restore(b, true, false);
        backup_free(b);
        pairs_restore(rv);
        if (runs_on) {
                run.direct = true;
                draw_direct(true);
                requests(n / 2);
                run.direct = false;
                draw_direct(false);
                control("restart", "");
                server_compact();
        }
        catch_up_all();
        if (!runs_on)
                watch_ahead(sim_ahead, real_ahead);
}

static int report(void) {
        struct buf missing = BUF_INIT(1 << 16);
        double s = (double)(loop_now_ms(&run.loop) - run.begun_ms) / 1000;
        draw_uncovered(&missing);
        if (missing.n && !run.n_different)
                printf("\nforms that were not sent:\n%s", missing.p);
        bool lacks = missing.n;
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
                if (!outcomes[i].n) {
                        lacks = true;
                        printf("no request was answered with %s\n", outcomes[i].name);
                }
        if (!watches_counts.bookmarks || !watches_counts.expired || !watches_counts.ended) {
                lacks = true;
                printf("there was no bookmark, no expired watch, or no watch that ended by itself\n");
        }
        buf_clear(&missing);
        compare_unused(&missing);
        if (missing.n)
                printf("test/agree/lacking lists members that are never missing:\n%s", missing.p);
        lacks = lacks || missing.n;
        buf_done(&missing);
        printf("seed %" PRIu64
               ": %lu requests in %.0f s (%.0f a second), %lu watches with %lu events and %lu "
               "bookmarks; %lu different\n",
               run.o.seed, run.n, s, (double)run.n / s, watches_counts.opened, watches_counts.events,
               watches_counts.bookmarks, run.n_different);
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
                printf("%s%s %lu", i ? ", " : "  ", outcomes[i].name, outcomes[i].n);
        printf("\n");
        return run.n_different || lacks ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool read_option(struct options *o, const char *name, const char *value) {
        const struct {
                const char *name, **to;
        } texts[] = { { "--server", &o->server },   { "--ca", &o->ca },
                      { "--admin", &o->admin },     { "--nobody", &o->nobody },
                      { "--control", &o->control }, { "--forms", &o->forms },
                      { "--others", &o->others },   { "--left-out", &o->left_out },
                      { "--lacking", &o->lacking } };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (streq(name, texts[i].name)) {
                        *texts[i].to = value;
                        return true;
                }
        if (streq(name, "--seed"))
                o->seed = strtoull(value, NULL, 10);
        else if (streq(name, "--requests"))
                o->requests = strtoul(value, NULL, 10);
        else
                return false;
        return true;
}

static void begin(void) {
        const char *const tokens[] = { run.o.admin, run.o.nobody, NULL };
        _cleanup_(freep) char *ca = NULL, *left_out = NULL;
        struct err e;
        if (file_read(run.o.ca, 1 << 16, &ca, NULL, &e) < 0 ||
            file_read(run.o.left_out, 1 << 16, &left_out, NULL, &e) < 0 ||
            draw_load(run.o.forms, left_out, &e) < 0 || draw_load(run.o.others, left_out, &e) < 0 ||
            compare_load(run.o.lacking, &e) < 0)
                fatal("cannot begin", e.msg);
        for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
                if (real_new(&run.loop, run.o.server, ca, tokens[i], &run.callers[i], &e) < 0)
                        fatal("cannot begin", e.msg);
}

static void end(void) {
        for (size_t i = 0; i < ARRAY_LEN(run.callers); i++)
                real_free(run.callers[i]);
        uv_run(&run.loop, UV_RUN_DEFAULT);
        uv_loop_close(&run.loop);
        for (size_t i = 0; i < run.n_shown; i++)
                free(run.shown[i]);
        draw_done();
        compare_done();
        pairs_done();
        server_done();
        store_done();
}

int main(int argc, char **argv) {
        bool good = true;
        run.o = (struct options){ .seed = 1, .requests = 100000 };
        for (int i = 1; i < argc && good; i++) {
                if (streq(argv[i], "--all"))
                        run.o.all = true;
                else if (streq(argv[i], "--log"))
                        run.o.log = true;
                else
                        good = i + 1 < argc && read_option(&run.o, argv[i], argv[i + 1]) && ++i;
        }
        if (!good || !run.o.server || !run.o.ca || !run.o.control || !run.o.forms || !run.o.others ||
            !run.o.left_out || !run.o.lacking) {
                fprintf(stderr, "run agree with test/agree/run\n");
                return EXIT_FAILURE;
        }
        signal(SIGPIPE, SIG_IGN);
        uv_loop_init(&run.loop);
        draw_seed(run.o.seed);
        store_set_limit(MOST_BYTES);
        begin();
        run.begun_ms = loop_now_ms(&run.loop);
        server_compact();
        take_over_namespaces();
        make_namespaces();
        make_mark();
        restart();
        unsigned long part = run.o.requests / RESTARTS;
        for (unsigned i = 0; i < RESTARTS && (run.o.all || !run.n_different); i++) {
                requests(part);
                if (i == 1 || i == 3)
                        restore(part / 4, i == 3);
                else if (i + 1 < RESTARTS)
                        restart();
        }
        settle(true);
        int status = report();
        end();
        return status;
}
