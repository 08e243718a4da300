/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a fuzzer after FUZZ_CPU_SECONDS of processor time: on a busy machine -max_total_time shows little
 * about how much was tried. On SIGUSR1 libFuzzer finishes its input, prints its statistics and exits with 0.
 * Without the variable this does nothing. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

__attribute__((constructor)) static void end_after_cpu_seconds(void) {
        const char *seconds = getenv("FUZZ_CPU_SECONDS");
        struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
        struct itimerspec when = { .it_value.tv_sec = seconds ? strtol(seconds, NULL, 10) : 0 };
        timer_t timer;
        if (when.it_value.tv_sec > 0 && (timer_create(CLOCK_PROCESS_CPUTIME_ID, &ev, &timer) < 0 ||
                                         timer_settime(timer, 0, &when, NULL) < 0))
                abort();
}
