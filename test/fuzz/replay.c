/* SPDX-License-Identifier: Apache-2.0 */
/* replay: runs a fuzz target without libFuzzer: with each file of the corpus, and with mutations from a fixed
 * seed, so that every machine runs the same inputs. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { INPUT_LIMIT = 1 << 16, MUTATIONS = 400 };

static uint64_t state = 88172645463325252U;

static uint64_t next(void) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
}

static size_t mutate(uint8_t *p, size_t n) {
        for (uint64_t k = next() % 4 + 1; k; k--) {
                size_t at = n ? (size_t)(next() % n) : 0;
                switch (next() % 5) {
                case 0:
                        if (n)
                                p[at] ^= (uint8_t)(1U << next() % 8);
                        break;
                case 1:
                        if (n)
                                p[at] = (uint8_t)next();
                        break;
                case 2: /* drop the end */
                        n = at;
                        break;
                case 3: /* insert a byte */
                        if (n < INPUT_LIMIT) {
                                memmove(p + at + 1, p + at, n - at);
                                p[at] = (uint8_t)next();
                                n++;
                        }
                        break;
                default: /* repeat a part */
                        if (n && n + (n - at) <= INPUT_LIMIT) {
                                memmove(p + n, p + at, n - at);
                                n += n - at;
                        }
                }
        }
        return n;
}

/* The target gets a heap copy of exactly n bytes, so that the sanitizer notices a read beyond it. */
static void run(const uint8_t *p, size_t n) {
        uint8_t *copy = calloc(1, n ? n : 1);
        if (!copy)
                abort();
        memcpy(copy, p, n);
        (void)LLVMFuzzerTestOneInput(copy, n);
        free(copy);
}

int main(int argc, char **argv) {
        static uint8_t seed[INPUT_LIMIT], work[INPUT_LIMIT * 2];
        size_t inputs = 0;
        run(seed, 0);
        for (int i = 1; i < argc; i++) {
                DIR *d = opendir(argv[i]);
                if (!d)
                        continue;
                for (struct dirent *f; (f = readdir(d));) {
                        char path[4096];
                        snprintf(path, sizeof path, "%s/%s", argv[i], f->d_name);
                        FILE *in = f->d_name[0] == '.' ? NULL : fopen(path, "rb");
                        if (!in)
                                continue;
                        size_t n = fread(seed, 1, sizeof seed, in);
                        fclose(in);
                        run(seed, n);
                        for (int m = 0; m < MUTATIONS; m++) {
                                memcpy(work, seed, n);
                                run(work, mutate(work, n));
                        }
                        inputs++;
                }
                closedir(d);
        }
        printf("%zu corpus files, %d mutations each\n", inputs, MUTATIONS);
        return 0;
}
