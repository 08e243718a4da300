/* SPDX-License-Identifier: Apache-2.0 */
/* make_corpus: writes the first inputs of this layer's fuzzers, made by the tests' HTTP/2 client.
 *
 *     make_corpus <test/fuzz/corpus> */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "h2_client.h"

static const char *root;

static void write_input(const char *fuzzer, const char *name, const struct buf *b) {
        _cleanup_(freep) char *dir = file_join(root, fuzzer), *path = file_join(dir, name);
        struct err e;
        if (file_mkdirs(dir, 0755, &e) < 0 || file_replace_volatile(path, buf_str(b), b->n, 0644, &e) < 0) {
                fprintf(stderr, "%s\n", e.msg);
                exit(1);
        }
}

/* Two claims, encoded by hand. */
static const char claims[] = "\x0a\x0b\x0a\x02ns\x12\x02u1\x1a\x01"
                             "a"
                             "\x0a\x0b\x0a\x02ns\x12\x02u2\x1a\x01"
                             "f";

static struct h2_call *call(struct h2_client *c, const char *path, const void *p, size_t n,
                            const struct h2_options *o) {
        size_t total;
        _cleanup_(freep) uint8_t *m = h2_message(p, n, &total);
        return h2_call(c, path, m, total, o);
}

static void raw(const char *name, char choice, void (*fill)(struct h2_client *c)) {
        struct buf b = BUF_INIT(1 << 16);
        struct h2_client *c = h2_new();
        const uint8_t *p;
        buf_addc(&b, choice);
        fill(c);
        for (size_t n; (n = h2_output(c, &p)) > 0;)
                buf_add(&b, p, n);
        write_input("fuzz_grpc_connection", name, &b);
        h2_free(c);
        buf_done(&b);
}

static void one_call(struct h2_client *c) {
        (void)call(c, "/t.T/Echo", "hello", 5, NULL);
}

static void prepare(struct h2_client *c) {
        (void)call(c, "/t.T/Prepare", claims, sizeof claims - 1, &(struct h2_options){ .timeout = "45S" });
}

static void many(struct h2_client *c) {
        const uint8_t *p;
        struct h2_call *kept =
                call(c, "/t.T/Keep", "x", 1, &(struct h2_options){ .timeout = "5m", .frame_size = 2 });
        (void)call(c, "/none", "x", 1, NULL);
        (void)call(c, "/t.T/Fail", "100% \xff", 6, NULL);
        (void)h2_call(c, "/t.T/Echo", "\0\x7f\xff\xff\xff", 5, &(struct h2_options){ .open = true });
        (void)h2_call(c, "/t.T/Echo", "\1\0\0\0\1a", 6, &(struct h2_options){ .encoding = "gzip" });
        h2_ping(c);
        while (h2_output(c, &p) > 0) {
        }
        h2_reset(kept);
        (void)call(c, "/t.T/Echo", "after", 5, NULL);
}

static void script(const char *name, const char *orders, size_t n) {
        struct buf b = BUF_INIT(1 << 16);
        buf_addc(&b, (char)0x80);
        buf_add(&b, orders, n);
        write_input("fuzz_grpc_connection", name, &b);
        buf_done(&b);
}
#define SCRIPT(name, lit) script(name, lit, sizeof(lit) - 1)

static void message(const char *name, char choice, const char *p, size_t n) {
        struct buf b = BUF_INIT(1 << 16);
        buf_addc(&b, choice);
        buf_add(&b, p, n);
        write_input("fuzz_dra_messages", name, &b);
        buf_done(&b);
}
#define MESSAGE(name, choice, lit) message(name, choice, lit, sizeof(lit) - 1)

int main(int argc, char **argv) {
        if (argc != 2)
                return 2;
        root = argv[1];
        raw("raw-echo", 0, one_call);
        raw("raw-echo-by-bytes", 0x40, one_call);
        raw("raw-prepare", 1, prepare);
        raw("raw-many", 0x48, many);
        SCRIPT("script-echo", "\x00\x05hello\x09\x00\x08\x00");
        SCRIPT("script-keep-answer", "\x0a\x01x\x0a\x01y\x09\x00\x04\x00\x08\x00\x04\x00\x08\x00");
        SCRIPT("script-keep-reset", "\x0a\x01x\x0a\x01y\x09\x00\x03\x00\x09\x00\x08\x00\x05\xff");
        SCRIPT("script-prepare", "\x1e\x1a\x0a\x0b\x0a\x02ns\x12\x02u1\x1a\x01"
                                 "a"
                                 "\x0a\x0b\x0a\x02ns\x12\x02u2\x1a\x01"
                                 "f"
                                 "\x09\x00\x04\x00\x08\x00");
        SCRIPT("script-open-expire", "\x8c\x05hello\x09\x00\x02\x00"
                                     "abcdefgh"
                                     "\x09\x00\x05\x20\x08\x00");
        SCRIPT("script-shutdown", "\x0a\x01x\x0a\x01y\x06\x00\x09\xff\x08\x00\x00\x01z\x09\x00");
        SCRIPT("script-garbage", "\x0a\x01x\x07\x09\x00\x00\x00\x04\x00\x00\x00\x00\x01\x08\x00");
        message("prepare", 1, claims, sizeof claims - 1);
        message("unprepare", 0, claims, sizeof claims - 1);
        MESSAGE("unknown-member", 1,
                "\x0a\x0b\x0a\x02ns\x12\x02u1\x1a\x01"
                "a"
                "\x10\x05\x1a\x03xyz");
        MESSAGE("duplicate", 1,
                "\x0a\x0b\x0a\x02ns\x12\x02u1\x1a\x01"
                "a"
                "\x0a\x0b\x0a\x02ns\x12\x02u1\x1a\x01"
                "b");
        MESSAGE("no-uid", 0,
                "\x0a\x07\x0a\x02ns\x1a\x01"
                "a");
        MESSAGE("text", 0,
                "b\xc3\xa4"
                "d \xe2\x82\xac \xf0\x9f\x98\x80 \xff");
        return 0;
}
