/* SPDX-License-Identifier: Apache-2.0 */
/* A resolver that hangs, as glibc's does for 5 s and more when no name server answers: the loop continues.
 * The order of events proves it: all assertions are before the resolver returns, or before it gives up so
 * that the test does not hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <netdb.h>
#include <semaphore.h>
#include <time.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "base/str.h"
#include "world/fake_server.h"

/* libcurl's threads call this function instead of libc's. */
static sem_t answer;
static atomic_uint asked, gave_up;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 5;
        atomic_fetch_add(&asked, 1);
        if (sem_timedwait(&answer, &until) < 0)
                atomic_fetch_add(&gave_up, 1);
        return EAI_AGAIN;
}

static uv_loop_t loop;
static struct http_client *client;
static bool done, failed;
static uv_timer_t tick;
static unsigned ticks;

static void on_done(void *u, const struct http_response *r) {
        done = true;
        failed = r->transport != NULL;
}

static void on_tick(uv_timer_t *t) {
        ticks++;
}

static struct http_call *call(unsigned timeout_ms) {
        done = failed = false;
        return http_start(client,
                          &(struct http_request){
                                  .method = "GET", .path = "/", .timeout_ms = timeout_ms, .done = on_done });
}

static unsigned threads(void) {
        DIR *d = opendir("/proc/self/task");
        unsigned n = 0;

        for (struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        closedir(d);
        return n;
}

static int set_up(void **state) {
        struct err e;

        sem_init(&answer, 0, 0);
        asked = gave_up = ticks = 0;
        uv_loop_init(&loop);
        uv_timer_init(&loop, &tick);
        uv_timer_start(&tick, on_tick, 1, 1);
        return http_client_new(
                &loop, &(struct http_client_options){ .base_url = "https://api.example.internal:443" },
                &client, &e);
}

/* The threads free their own memory. */
static int tear_down(void **state) {
        for (unsigned i = 0; i < 100; i++)
                sem_post(&answer);
        RUN_UNTIL(&loop, threads() == 1);
        http_client_free(client);
        uv_close((uv_handle_t *)&tick, NULL);
        loop_end(&loop);
        sem_destroy(&answer);
        return 0;
}

static void nobody_waited(void) {
        unsigned before = ticks;

        RUN_UNTIL(&loop, ticks > before);
        assert_int_equal(gave_up, 0);
}

static void test_cancelled(void **state) {
        struct http_call *c = call(0);

        RUN_UNTIL(&loop, asked == 1);
        http_cancel(c);
        nobody_waited();
        assert_false(done);
}

/* failure: the name server hangs -> a request ends at its timeout, and the loop continues */
static void test_timed_out(void **state) {
        call(30);
        run_until(&loop, &done);
        assert_true(failed);
        assert_int_equal(asked, 1);
        nobody_waited();
}

/* failure: the name server hangs -> requests fail in time, and the next one tries again */
static void test_the_next_request_resolves_again(void **state) {
        call(0);
        RUN_UNTIL(&loop, asked == 1);
        http_client_reconnect(client);
        run_until(&loop, &done);
        assert_true(failed);
        nobody_waited();
        /* The next request resolves again, although the last one still hangs. */
        call(0);
        RUN_UNTIL(&loop, asked == 2);
        nobody_waited();
}

static void test_end(void **state) {
        call(0);
        RUN_UNTIL(&loop, asked == 1);
        http_client_free(TAKE(client));
        nobody_waited();
        assert_false(done);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(test_cancelled),
                T(test_timed_out),
                T(test_the_next_request_resolves_again),
                T(test_end),
        };
        return cmocka_run_group_tests_name("resolver", tests, NULL, NULL);
}
