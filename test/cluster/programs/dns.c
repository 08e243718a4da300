/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small DNS server: dns ADDRESS NAME NAMES_ADDRESS FILE. It knows NAME, and the names of FILE, which is read
 * for each question: a name, a space and an IPv4 address in each line. Every other question is answered
 * NXDOMAIN at once.
 *
 * NAME is the API server's. A test with pods that look each other up writes FILE. Something must answer at the DNS
 * address in any case: port-unreachable messages are rate limited, so each failed look-up would take seconds.
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

/* The address of the name in the question. */
static bool look_up(const unsigned char *labels, const char *path, struct in_addr *address) {
        char name[256], text[INET_ADDRSTRLEN];
        FILE *names = fopen(path, "re");
        bool found = false;

        if (!names)
                return false;
        while (!found && fscanf(names, "%255s %15s", name, text) == 2)
                found = asks_for(labels, name) && inet_pton(AF_INET, text, address) == 1;
        fclose(names);
        return found;
}

/* The question is echoed, and followed by the address if it is for a known name; returns the length of the
 * answer, 0 for what is no question. */
static size_t answer(unsigned char *msg, size_t len, const char *name, const struct in_addr *named, const char *path) {
        struct in_addr address = *named;
        size_t at = HEADER;
        bool known;

        if (len < HEADER || (msg[FLAGS] & RESPONSE) || msg[4] != 0 || msg[5] != 1)
                return 0;
        while (at < len && msg[at] != 0)
                at += 1u + msg[at];
        at += 1 + 4; /* the root label, type, class */
        if (at > len || at > ROOM - RECORD)
                return 0;
        known = asks_for(msg + HEADER, name) || look_up(msg + HEADER, path, &address);
        msg[FLAGS] = (unsigned char)(RESPONSE | (msg[FLAGS] & RECURSION_DESIRED));
        msg[FLAGS + 1] = (unsigned char)(RECURSION_AVAILABLE | (known ? 0 : NXDOMAIN));
        memset(msg + 6, 0, 6); /* no answers, no authorities, no additional records */
        if (known && msg[at - 4] == 0 && msg[at - 3] == TYPE_A) {
                msg[ANSWERS] = 1;
                memcpy(msg + at, record, sizeof(record));
                memcpy(msg + at + sizeof(record), &address, sizeof(address));
                at += RECORD;
        }
        return at;
}

int main(int argc, char **argv) {
        struct sockaddr_in self = { .sin_family = AF_INET, .sin_port = htons(53) };
        struct in_addr known;
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (argc != 5 || inet_pton(AF_INET, argv[1], &self.sin_addr) != 1 ||
            inet_pton(AF_INET, argv[3], &known) != 1) {
                fprintf(stderr, "usage: dns ADDRESS NAME NAMES_ADDRESS FILE\n");
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
                size_t reply = len > 0 ? answer(msg, (size_t)len, argv[2], &known, argv[4]) : 0;

                if (reply > 0)
                        sendto(fd, msg, reply, 0, (struct sockaddr *)&from, from_len);
        }
}
