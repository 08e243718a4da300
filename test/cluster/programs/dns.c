/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DNS server that knows one name: dns ADDRESS NAME NAMES_ADDRESS. Every other question is answered NXDOMAIN,
 * all of them at once.
 *
 * The name is the API server's, as it is in each cluster. There are no other services to look up, but somebody
 * must answer at the DNS address: port-unreachable messages are rate limited, so with nobody there each failed
 * look-up would take seconds.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        HEADER = 12,
        FLAGS = 2,
        ANSWERS = 7, /* the lower byte of their number */
        RESPONSE = 0x80,
        RECURSION_DESIRED = 0x01,
        RECURSION_AVAILABLE = 0x80,
        NXDOMAIN = 3,
        TYPE_A = 1,
        RECORD = 16,
        ROOM = 1500
};

/* A record of type A about the name of the question, for 5 s; its address follows. */
static const unsigned char record[RECORD - 4] = { 0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 5, 0, 4 };

/* The question's labels, each with its length before it, are this name in words. */
static bool asks_for(const unsigned char *labels, const char *name) {
        size_t n = *labels;

        while (n > 0 && strncasecmp(name, (const char *)labels + 1, n) == 0) {
                name += n;
                labels += n + 1;
                n = *labels;
                if (n > 0 && *name++ != '.')
                        return false;
        }
        return n == 0 && *name == '\0';
}

/* The question is echoed, and followed by the address if it is for that; returns the length of the answer, 0
 * for what is no question. */
static size_t answer(unsigned char *msg, size_t len, const char *name, const struct in_addr *address) {
        size_t at = HEADER;
        bool known;

        if (len < HEADER || (msg[FLAGS] & RESPONSE) || msg[4] != 0 || msg[5] != 1)
                return 0;
        while (at < len && msg[at] != 0)
                at += 1u + msg[at];
        at += 1 + 4; /* the root label, type, class */
        if (at > len || at > ROOM - RECORD)
                return 0;
        known = asks_for(msg + HEADER, name);
        msg[FLAGS] = (unsigned char)(RESPONSE | (msg[FLAGS] & RECURSION_DESIRED));
        msg[FLAGS + 1] = (unsigned char)(RECURSION_AVAILABLE | (known ? 0 : NXDOMAIN));
        memset(msg + 6, 0, 6); /* no answers, no authorities, no additional records */
        if (known && msg[at - 4] == 0 && msg[at - 3] == TYPE_A) {
                msg[ANSWERS] = 1;
                memcpy(msg + at, record, sizeof(record));
                memcpy(msg + at + sizeof(record), address, sizeof(*address));
                at += RECORD;
        }
        return at;
}

int main(int argc, char **argv) {
        struct sockaddr_in self = { .sin_family = AF_INET, .sin_port = htons(53) };
        struct in_addr known;
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (argc != 4 || inet_pton(AF_INET, argv[1], &self.sin_addr) != 1 ||
            inet_pton(AF_INET, argv[3], &known) != 1) {
                fprintf(stderr, "usage: dns ADDRESS NAME NAMES_ADDRESS\n");
                return 2;
        }
        if (fd < 0 || bind(fd, (struct sockaddr *)&self, sizeof(self)) < 0) {
                perror("dns");
                return 1;
        }
        for (;;) {
                unsigned char msg[ROOM];
                struct sockaddr_in from;
                socklen_t from_len = sizeof(from);
                ssize_t len = recvfrom(fd, msg, sizeof(msg), 0, (struct sockaddr *)&from, &from_len);
                size_t reply = len > 0 ? answer(msg, (size_t)len, argv[2], &known) : 0;

                if (reply > 0)
                        sendto(fd, msg, reply, 0, (struct sockaddr *)&from, from_len);
        }
}
