# SPDX-License-Identifier: Apache-2.0
"""An attacker that can reach an open port: attack.py KIND SECONDS TARGET..., or attack.py ask TARGET.

A TARGET is http://ADDRESS:PORT or grpc://ADDRESS:PORT. All targets are attacked at once for that time. Connections that are closed are
opened again. KIND:
  begun       more than 128 requests that begin and never end
  unfinished  16 MiB of requests that never end
  unknown     4 MiB of unknown fields: of protobuf messages, or header lines
  slow        many requests on each of 128 connections (gRPC: 32), without reading an answer
At the end it prints for each target how many connections were made and how many bytes were accepted, and fails if that is less than
described above. `ask` does what a probe does, and prints SERVING (gRPC: the service readiness) or the status code (HTTP: /healthz)."""

import select
import socket
import sys
import time

KIB, MIB = 1 << 10, 1 << 20
REOPEN_AFTER = 0.2  # s until a closed connection is opened again
PIECE = 16 * KIB  # the most that a DATA frame carries


def frame(kind, flags, stream, body=b""):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def field(name, value):
    """A header field as an HPACK literal without indexing. All are shorter than 127 bytes."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
HEADERS = (field(b":method", b"POST") + field(b":scheme", b"http") + field(b":path", b"/grpc.health.v1.Health/Check") +
           field(b":authority", b"a") + field(b"content-type", b"application/grpc") + field(b"te", b"trailers"))
UNKNOWN = b"\x12\x00"  # field 2, empty: the most work for a decoder per byte sent
GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\n"


def call(stream):
    return frame(1, 4, stream, HEADERS)


def prefix(size):
    return b"\0" + size.to_bytes(4, "big")


def data(stream, body, last):
    pieces = [body[i:i + PIECE] for i in range(0, len(body), PIECE)]
    return b"".join(frame(0, 1 if last and i == len(pieces) - 1 else 0, stream, p) for i, p in enumerate(pieces))


class Attack:
    """What a connection does: it sends `first` once, then the results of `more`, a piece at a time, up to `each` bytes. An attack that
    `waits` sends the next piece after it has received something. One that does not read receives nothing."""
    connections, first, each, reads, waits = 16, b"", 0, True, False

    def more(self, n):
        return b""


class BegunHTTP(Attack):
    connections, first = 160, GET + b"X-Begun: "


class BegunGRPC(Attack):
    connections = 128
    first = PREFACE + b"".join(call(s) + data(s, prefix(KIB) + bytes(KIB // 2), False) for s in range(1, 17, 2))


class UnfinishedHTTP(Attack):
    connections, first, each = 64, GET + b"Content-Length: 1000000000\r\n\r\n", MIB // 2

    def more(self, n):
        return bytes(PIECE)


class UnfinishedGRPC(Attack):
    """As many bytes of each message as its window accepts, and of all together as the window of the connection accepts."""
    connections, each = 16, 2 * MIB
    first = PREFACE + b"".join(call(s) + data(s, prefix(4 * MIB), False) for s in range(1, 17, 2))

    def more(self, n):
        return data(n % 8 * 2 + 1, bytes(PIECE), False)


class UnknownHTTP(Attack):
    first, each = GET, MIB

    def more(self, n):
        return b"X-Unknown: a\r\n" * 1000


class UnknownGRPC(Attack):
    """First three messages of 1 MiB, as far as the peer accepts them, then as many small messages as a connection may have calls."""
    waits, each = True, 4 * MIB
    first = PREFACE + b"".join(call(s) + data(s, prefix(MIB - PIECE) + UNKNOWN * ((MIB - PIECE) // 2), True) for s in (1, 3, 5))
    small = prefix(KIB) + UNKNOWN * (KIB // 2)

    def more(self, n):
        streams = range(16 * n + 7, 16 * n + 23, 2)
        return b"".join(call(s) + data(s, self.small, True) for s in streams)


class SlowHTTP(Attack):
    connections, first, reads = 128, (GET + b"\r\n") * 32, False


class SlowGRPC(Attack):
    connections, first, reads, each = 32, PREFACE, False, MIB

    def more(self, n):
        streams = range(16 * n + 1, 16 * n + 17, 2)
        return b"".join(call(s) + data(s, prefix(0), True) + frame(6, 0, 0, bytes(8)) for s in streams)


KINDS = {
    "begun": ({"http": BegunHTTP, "grpc": BegunGRPC}, 128, 0),
    "unfinished": ({"http": UnfinishedHTTP, "grpc": UnfinishedGRPC}, 16, 16 * MIB),
    "unknown": ({"http": UnknownHTTP, "grpc": UnknownGRPC}, 16, 4 * MIB),
    "slow": ({"http": SlowHTTP, "grpc": SlowGRPC}, 32, 0),
}


class Target:
    def __init__(self, url, attacks):
        self.url = url
        scheme, rest = url.split("://")
        host, port = rest.rsplit(":", 1)
        self.address = (host, int(port))
        self.attack = attacks[scheme]()
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
        self.out, self.n, self.sent, self.received, self.made = a.first, 0, 0, False, False
        self.by_fd[self.sock.fileno()] = self
        self.poll.register(self.sock, select.EPOLLOUT)

    def close(self):
        del self.by_fd[self.sock.fileno()]
        self.sock.close()
        self.sock, self.reopen_at = None, time.monotonic() + REOPEN_AFTER

    def has_more(self):
        a = self.target.attack
        return self.sent < a.each and (not a.waits or self.received)

    def write(self):
        a = self.target.attack
        if not self.made:
            self.made = True
            self.target.made += 1
        if not self.out and self.has_more():
            self.out, self.n, self.received = a.more(self.n), self.n + 1, False
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
                self.received = True
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


def attack(kind, seconds, urls):
    attacks, least_connections, least_bytes = KINDS[kind]
    poll, by_fd = select.epoll(), {}
    targets = [Target(url, attacks) for url in urls]
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
        print(f"{t.url} {kind}: {t.made} connections, {t.taken} bytes")
    return all(t.made >= min(least_connections, t.attack.connections) and t.taken >= least_bytes for t in targets)


def ask(url):
    scheme, rest = url.split("://")
    host, port = rest.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=5) as s:
        if scheme == "http":
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = s.recv(KIB).split()
            return answer[1].decode() if len(answer) > 1 else "nothing"
        service = b"\x0a\x09readiness"
        s.sendall(PREFACE + call(1) + data(1, prefix(len(service)) + service, True))
        received = b""
        while (more := s.recv(64 * KIB)):
            received += more
            if prefix(2) + b"\x08\x01" in received:
                return "SERVING"
    return "nothing"


if sys.argv[1] == "ask":
    print(ask(sys.argv[2]))
else:
    sys.exit(0 if attack(sys.argv[1], float(sys.argv[2]), sys.argv[3:]) else 1)
