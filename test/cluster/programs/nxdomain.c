/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DNS server that knows no name: every question is answered NXDOMAIN, at once.
 *
 * The cluster has no services to look up, but somebody must answer at its DNS address: port-unreachable
 * messages are rate limited, so with nobody there each failed look-up would take seconds.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        HEADER = 12,
        FLAGS = 2,
        RESPONSE = 0x80,
        RECURSION_DESIRED = 0x01,
        RECURSION_AVAILABLE = 0x80,
        NXDOMAIN = 3
};

/* The question is echoed and nothing follows it; returns the length of the answer, 0 for what is no question.
 */
static size_t answer(unsigned char *msg, size_t len) {
        size_t at = HEADER;

        if (len < HEADER || (msg[FLAGS] & RESPONSE) || msg[4] != 0 || msg[5] != 1)
                return 0;
        while (at < len && msg[at] != 0)
                at += 1u + msg[at];
        at += 1 + 4; /* the root label, type, class */
        if (at > len)
                return 0;
        msg[FLAGS] = (unsigned char)(RESPONSE | (msg[FLAGS] & RECURSION_DESIRED));
        msg[FLAGS + 1] = RECURSION_AVAILABLE | NXDOMAIN;
        memset(msg + 6, 0, 6); /* no answers, no authorities, no additional records */
        return at;
}

int main(int argc, char **argv) {
        struct sockaddr_in self = { .sin_family = AF_INET, .sin_port = htons(53) };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (argc != 2 || inet_pton(AF_INET, argv[1], &self.sin_addr) != 1) {
                fprintf(stderr, "usage: nxdomain ADDRESS\n");
                return 2;
        }
        if (fd < 0 || bind(fd, (struct sockaddr *)&self, sizeof(self)) < 0) {
                perror("nxdomain");
                return 1;
        }
        for (;;) {
                unsigned char msg[1500];
                struct sockaddr_in from;
                socklen_t from_len = sizeof(from);
                ssize_t len = recvfrom(fd, msg, sizeof(msg), 0, (struct sockaddr *)&from, &from_len);
                size_t reply = len > 0 ? answer(msg, (size_t)len) : 0;

                if (reply > 0)
                        sendto(fd, msg, reply, 0, (struct sockaddr *)&from, from_len);
        }
}
