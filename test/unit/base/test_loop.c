/* SPDX-License-Identifier: Apache-2.0 */
/* Owners are freed in every place where this is allowed. The sanitizers notice later accesses. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/guard.h"
#include "base/loop.h"
#include "base/mem.h"

static uv_loop_t loop;
static char calls[64]; /* the names whose callbacks were called, in order */

struct thing {
        char name;
        struct loop_timer timer;
        struct loop_turn turn;
        struct loop_fd fd;
        struct loop_signal signal;
        struct thing **frees; /* what its callback frees, or NULL */
        unsigned again;       /* how often its callback restarts it */
        int pipe[2];
};

static void note_call(char name) {
        size_t n = strlen(calls);
        assert_true(n + 1 < sizeof calls);
        calls[n] = name;
}

static void thing_free(struct thing *t) {
        if (!t)
                return;
        loop_timer_done(&t->timer);
        loop_turn_done(&t->turn);
        loop_fd_done(&t->fd);
        loop_signal_done(&t->signal);
        if (t->pipe[0]) {
                close(t->pipe[0]);
                close(t->pipe[1]);
        }
        free(t);
}

static bool called(struct thing *t) {
        bool again = t->again > 0;
        t->again -= again;
        note_call(t->name);
        if (t->frees)
                thing_free(TAKE(*t->frees));
        return again;
}

static void on_timer(void *u) {
        struct thing *t = u;
        if (called(t))
                loop_timer_start(&t->timer, 1);
}

static void on_turn(void *u) {
        struct thing *t = u;
        if (called(t))
                loop_turn_start(&t->turn);
}

static void on_fd(void *u, int events) {
        assert_int_equal(events, UV_READABLE);
        called(u);
}

static void on_signal(void *u, int signum) {
        assert_int_equal(signum, SIGUSR1);
        called(u);
}

static struct thing *thing_new(char name) {
        struct thing *t = xnew(struct thing);
        t->name = name;
        loop_timer_init(&t->timer, &loop, on_timer, t);
        loop_turn_init(&t->turn, &loop, on_turn, t);
        return t;
}

static struct thing *reader_new(char name) {
        struct thing *t = thing_new(name);
        assert_int_equal(pipe(t->pipe), 0);
        assert_int_equal(loop_fd_init(&t->fd, &loop, t->pipe[0], on_fd, t), 0);
        loop_fd_start(&t->fd, UV_READABLE);
        assert_int_equal(write(t->pipe[1], "x", 1), 1);
        return t;
}

static struct thing *listener_new(char name) {
        struct thing *t = thing_new(name);
        assert_int_equal(loop_signal_init(&t->signal, &loop, SIGUSR1, on_signal, t), 0);
        return t;
}

static int setup(void **state) {
        memset(calls, 0, sizeof calls);
        return uv_loop_init(&loop);
}

/* Anything that a test leaves would prevent the loop from being closed. */
static int teardown(void **state) {
        uv_run(&loop, UV_RUN_DEFAULT);
        return uv_loop_close(&loop);
}

static void an_owner_may_be_freed_in_its_own_callback(void **state) {
        struct thing *timer = thing_new('t'), *turn = thing_new('n'), *fd = reader_new('f'),
                     *signal = listener_new('s');
        timer->frees = &timer;
        turn->frees = &turn;
        fd->frees = &fd;
        signal->frees = &signal;
        loop_timer_start(&timer->timer, 0);
        loop_turn_start(&turn->turn);
        raise(SIGUSR1);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(strlen(calls), 4);
        assert_null(timer);
        assert_null(turn);
        assert_null(fd);
        assert_null(signal);
}

/* Two are due in one turn, and each frees the other: the first does, and the second is not called. */
static void no_callback_comes_after_a_free_in_the_same_turn(void **state) {
        for (unsigned kind = 0; kind < 4; kind++) {
                struct thing *a = kind == 2   ? reader_new('a')
                                  : kind == 3 ? listener_new('a')
                                              : thing_new('a');
                struct thing *b = kind == 2   ? reader_new('b')
                                  : kind == 3 ? listener_new('b')
                                              : thing_new('b');
                a->frees = &b;
                b->frees = &a;
                for (unsigned i = 0; i < 2; i++) {
                        if (kind == 0)
                                loop_timer_start(i ? &b->timer : &a->timer, 1);
                        else if (kind == 1)
                                loop_turn_start(i ? &b->turn : &a->turn);
                }
                if (kind == 3)
                        raise(SIGUSR1);
                usleep(2000);
                memset(calls, 0, sizeof calls);
                while (!*calls)
                        uv_run(&loop, UV_RUN_ONCE);
                for (unsigned i = 0; i < 3; i++)
                        uv_run(&loop, UV_RUN_NOWAIT);
                assert_true(!a != !b);
                /* A pipe with unread data calls back again; nothing else does. */
                assert_null(strchr(calls, a ? 'b' : 'a'));
                thing_free(a);
                thing_free(b);
        }
}

static void a_callback_may_restart_its_timer_or_turn(void **state) {
        struct thing *t = thing_new('t'), *n = thing_new('n');
        t->again = n->again = 3;
        loop_timer_start(&t->timer, 0);
        loop_turn_start(&n->turn);
        assert_true(loop_timer_waits(&t->timer));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_false(loop_timer_waits(&t->timer));
        assert_int_equal(strlen(calls), 8);
        thing_free(t);
        thing_free(n);
}

static void next_turns_come_in_order_with_the_descriptors_in_between(void **state) {
        struct thing *a = thing_new('a'), *b = thing_new('b'), *c = thing_new('c'), *d = thing_new('d'),
                     *f = reader_new('f');
        f->frees = &f;
        c->again = 1;
        loop_turn_start(&c->turn);
        loop_turn_start(&a->turn);
        loop_turn_start(&d->turn);
        loop_turn_start(&b->turn);
        loop_turn_start(&c->turn); /* keeps its place in the order */
        loop_turn_stop(&d->turn);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_string_equal(calls, "cabfc");
        thing_free(a);
        thing_free(b);
        thing_free(c);
        thing_free(d);
}

static void a_timer_can_be_restarted_and_stopped(void **state) {
        struct thing *t = thing_new('t'), *late = thing_new('l'), *never = thing_new('n');
        uint64_t begin = loop_now_ms(&loop);
        loop_timer_start(&t->timer, 60000);
        loop_timer_start(&t->timer, 1);
        loop_timer_at(&late->timer, begin + 5);
        loop_timer_at(&never->timer, begin);
        loop_timer_at(&never->timer, UINT64_MAX);
        assert_false(loop_timer_waits(&never->timer));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_string_equal(calls, "tl");
        assert_true(uv_now(&loop) >= begin + 5);
        loop_timer_at(&late->timer, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_string_equal(calls, "tll");
        thing_free(t);
        thing_free(late);
        thing_free(never);
}

/* A pause has its full length, however long the turn has taken. */
static void a_timer_counts_from_when_it_is_started(void **state) {
        struct thing *t = thing_new('t');
        uv_update_time(&loop);
        usleep(20000);
        uint64_t begin = uv_hrtime();
        loop_timer_start(&t->timer, 20);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_true(uv_hrtime() - begin >= 19 * 1000000ull);
        thing_free(t);
}

static void a_loop_may_end_while_things_wait(void **state) {
        struct thing *t = thing_new('t'), *n = thing_new('n'), *f = reader_new('f'), *s = listener_new('s');
        loop_timer_start(&t->timer, 60000);
        n->again = 100;
        loop_turn_start(&n->turn);
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_stop(&loop);
        assert_true(uv_run(&loop, UV_RUN_DEFAULT));
        assert_int_equal(uv_loop_close(&loop), UV_EBUSY);
        thing_free(t);
        thing_free(n);
        thing_free(f);
        thing_free(s);
        assert_false(uv_run(&loop, UV_RUN_DEFAULT));
}

static void nothing_is_done_twice(void **state) {
        struct thing none = { 0 }, *t = thing_new('t');
        loop_timer_stop(&none.timer);
        loop_timer_done(&none.timer);
        loop_turn_stop(&none.turn);
        loop_turn_done(&none.turn);
        loop_fd_done(&none.fd);
        loop_signal_unref(&none.signal);
        loop_signal_done(&none.signal);
        assert_false(loop_timer_waits(&none.timer));
        loop_timer_done(&t->timer);
        loop_turn_done(&t->turn);
        thing_free(t);
}

static void a_descriptor_that_cannot_be_polled_is_refused(void **state) {
        struct loop_fd f;
        assert_int_equal(loop_fd_init(&f, &loop, -1, on_fd, NULL), UV_EBADF);
        loop_fd_done(&f);
}

static void a_descriptor_s_number_may_be_used_again_at_once(void **state) {
        struct thing *a = reader_new('a');
        int fd = a->pipe[0];
        thing_free(a);
        struct thing *b = reader_new('b');
        assert_int_equal(b->pipe[0], fd);
        b->frees = &b;
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_string_equal(calls, "b");
}

static void a_signal_need_not_keep_the_loop(void **state) {
        struct thing *s = listener_new('s');
        loop_signal_unref(&s->signal);
        assert_false(uv_run(&loop, UV_RUN_DEFAULT));
        thing_free(s);
}

static void a_guarded_object_is_freed_after_the_outermost_call(void **state) {
        struct guard g = { 0 };
        guard_enter(&g);
        guard_enter(&g);
        assert_false(guard_free(&g));
        assert_true(g.dead);
        assert_false(guard_leave(&g));
        assert_true(guard_leave(&g));

        g = (struct guard){ 0 };
        guard_enter(&g);
        assert_false(guard_leave(&g));
        assert_true(guard_free(&g));
}

int main(void) {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(an_owner_may_be_freed_in_its_own_callback),
                T(no_callback_comes_after_a_free_in_the_same_turn),
                T(a_callback_may_restart_its_timer_or_turn),
                T(next_turns_come_in_order_with_the_descriptors_in_between),
                T(a_timer_can_be_restarted_and_stopped),
                T(a_timer_counts_from_when_it_is_started),
                T(a_loop_may_end_while_things_wait),
                T(nothing_is_done_twice),
                T(a_descriptor_that_cannot_be_polled_is_refused),
                T(a_descriptor_s_number_may_be_used_again_at_once),
                T(a_signal_need_not_keep_the_loop),
                T(a_guarded_object_is_freed_after_the_outermost_call),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
