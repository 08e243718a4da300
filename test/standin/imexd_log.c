/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "imexd.h"

enum { KEPT = 256 };

static FILE *file;
static long threshold = LOG_INFO;
static char *kept[KEPT];
static size_t n_kept;

void log_open(const struct conf *config) {
        const char *path = conf_text(config, "LOG_FILE_NAME", "");
        const char *mode = conf_number(config, "LOG_APPEND_TO_LOG", 1) ? "ae" : "we";
        struct timespec now;
        struct tm tm;

        threshold = conf_number(config, "LOG_LEVEL", LOG_INFO);
        file = *path ? fopen(path, mode) : NULL;
        if (!file) {
                fprintf(stderr,
                        "WARNING: failed to open IMEX log file %s errno = %s\nINFO: using stderr for IMEX "
                        "logging\n",
                        path, strerror(*path ? errno : ENOENT));
                file = stderr;
        }
        setvbuf(file, NULL, _IOLBF, 0);
        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &tm);
        fprintf(file, "IMEX Log initializing at: %d/%d/%d %02d:%02d:%02d.%03d\n", tm.tm_mon + 1, tm.tm_mday,
                tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(now.tv_nsec / 1000000));
}

void log_line(enum log_level level, const char *format, ...) {
        static const char *const name[] = { "", "CRITICAL", "ERROR", "WARNING", "INFO", "VERBOSE" };
        char stamp[32], text[1024];
        char *line = NULL;
        time_t now = time(NULL);
        struct tm tm;
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        localtime_r(&now, &tm);
        strftime(stamp, sizeof(stamp), "%b %d %Y %H:%M:%S", &tm);
        if (asprintf(&line, "[%s] [%s] [tid %ld] %s", stamp, name[level], syscall(SYS_gettid), text) < 0)
                abort();
        if ((long)level <= threshold)
                fprintf(file ? file : stderr, "%s\n", line);
        free(kept[n_kept % KEPT]);
        kept[n_kept++ % KEPT] = line;
}

void log_detach(void) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null < 0)
                return;
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        if (file != stderr)
                dup2(null, STDERR_FILENO);
        close(null);
}

void log_dump(void) {
        FILE *out = file ? file : stderr;

        fprintf(out, "---- IMEX in-memory log, oldest line first ----\n");
        for (size_t i = n_kept > KEPT ? n_kept - KEPT : 0; i < n_kept; i++)
                fprintf(out, "%s\n", kept[i % KEPT]);
        fprintf(out, "---- end of IMEX in-memory log ----\n");
}
