# SPDX-License-Identifier: Apache-2.0
"""Compares driver-managed ComputeDomains with plain pods on the test cluster, and appends a table.

Each duration is compared with that of the same Job without claims in the same run, in turns. ./run sets up the cluster, the image and the chart,
calls this program, and lists the figures."""

import collections
import os
import statistics
import subprocess
import sys
import time

from bench import (CD_GROUP, CONTROLLER, DAEMON, NS, OURS, PLUGIN, arguments, begin, compared, cpu_seconds, memory, percentile, prepare_times, processes,
                   publish, quartiles, table, three_writes)
from cpu import CONTROL_PLANE, NODES, Cgroups, used
from cpu import OURS as OUR_PARTS

# Seconds that nvidia-imex needs to start, for consecutive domains on the same nodes.
STARTS = (0, 1, 5)
# Seconds after a formation until all its writes are done: the label of a Node, which is for people, is written three seconds later.
WRITTEN_S = 5


class Default:
    def __init__(self, bench, audit, sizes, a):
        self.b, self.audit, self.sizes, self.a = bench, audit, sizes, a
        self.rows, self.timelines = [], {}
        self.in_turns = f"{a.pairs} interleaved pairs; quartiles in parentheses"

    def row(self, what, value, bar="", note=""):
        self.rows.append((what, value, bar, note))

    def idle(self):
        self.b.wait_daemons("IDLE", self.sizes[-1])

    def start(self):
        """From free nodes to running pods, and until nothing is left."""
        for n in self.sizes:
            runs, lines, after_pods = [], [], []
            for i in range(self.a.pairs):
                # A kubelet looks at its containers once a second, and a pod is Running or deleted after such a look. Without this delay
                # all deletions would begin just after a look, and a few milliseconds could cost a second.
                phase = (i + 0.5) / self.a.pairs
                plain, _, name = self.b.form(n, False)
                time.sleep(phase)
                _, plain_gone = self.b.remove(name, False)
                formed, began, name = self.b.form(n, True)
                lines.append((formed, self.b.timeline(began)))
                time.sleep(phase)
                pods_gone, gone = self.b.remove(name, True)
                after_pods.append(gone - pods_gone)
                runs.append((plain, formed, plain_gone, gone))
                self.b.log(f"{n} nodes, pair {i + 1} of {self.a.pairs}: plain {plain:.2f} s, domain {formed:.2f} s, ratio {formed / plain:.2f}; "
                           f"deleted after {plain_gone:.2f} and {gone:.2f} s")
            plain, formed, plain_gone, gone = zip(*runs)
            self.row(f"{n} free nodes: apply to all pods Running", compared(plain, formed), "ratio <= 1.15" if n == 2 else "ratio: goal 1.25", self.in_turns)
            self.row(f"{n} nodes: until nothing is left, beyond the plain Job", f"{quartiles([d - p for p, d in zip(plain_gone, gone)])} s",
                     f"<= {0.5 if n == 2 else 2} s", f"{statistics.median(gone):.2f} s; plain {statistics.median(plain_gone):.2f} s")
            self.row(f"{n} nodes: the same, from the deletion of the last pod on", f"{quartiles(after_pods)} s")
            self.timelines[n] = sorted(lines, key=lambda line: line[0])[len(lines) // 2][1]

    def chain(self):
        """Consecutive domains on the same nodes."""
        for seconds in STARTS:
            self.knob(f"START_DELAY_MS={seconds * 1000 or ''}")
            for n in self.sizes:
                runs = [(self.b.follow(n, False), self.b.follow(n, True)) for _ in range(max(1, self.a.pairs // 2))]
                for i, (plain, formed) in enumerate(runs):
                    self.b.log(f"back to back, {n} nodes, {seconds} s, pair {i + 1}: plain {plain:.2f} s, domain {formed:.2f} s, ratio {formed / plain:.2f}")
                self.row(f"{n} nodes, back to back, nvidia-imex needs {seconds} s: delete to all pods of the next Running", compared(*zip(*runs)), "",
                         f"{len(runs)} interleaved pairs")
        self.knob("START_DELAY_MS=")

    def knob(self, pair):
        subprocess.run([*self.a.knob.split(), pair], check=True)

    def cpu(self):
        """CPU time of a formation of all nodes, including children."""
        n, cgroups, found = self.sizes[-1], Cgroups(self.a.state), collections.defaultdict(list)
        try:
            for i in range(self.a.pairs):
                for with_domain in (False, True):
                    self.idle()
                    time.sleep(WRITTEN_S)
                    rest, _ = self.cpu_while(cgroups, lambda: time.sleep(WRITTEN_S))
                    spent, name = self.cpu_while(cgroups, lambda: self.form_and_settle(n, with_domain))
                    for part in {*rest[0], *spent[0]}:
                        idle = rest[0].get(part, 0) / rest[1] * spent[1]
                        found[part, with_domain].append((spent[0].get(part, 0), spent[0].get(part, 0) - idle))
                    self.b.remove(name, with_domain)
                self.b.log(f"CPU of {n} nodes, pair {i + 1} of {self.a.pairs}")
        finally:
            cgroups.leave()
        for part in OUR_PARTS:
            self.row(f"CPU of {part}, {n} nodes form a domain", self.cpu_text(found[part, True]))
        ours = [tuple(map(sum, zip(*parts))) for parts in zip(*(found[part, True] for part in OUR_PARTS))]
        self.row(f"CPU of all our processes, {n} nodes form a domain", self.cpu_text(ours), "<= 0.25 s",
                 f"children included; until {WRITTEN_S} s after the last pod runs; median and quartiles of {self.a.pairs}")
        for part in (*CONTROL_PLANE, NODES):
            self.row(f"CPU of {part}, {n} nodes form a domain", f"{self.cpu_text(found[part, True])}; plain Job {self.cpu_text(found[part, False])}")

    @staticmethod
    def cpu_text(pairs):
        """The used CPU time, and the part of it beyond that of the idle program."""
        return f"{quartiles([gross for gross, _ in pairs])} s, {statistics.median(net for _, net in pairs):.2f} s beyond rest"

    def cpu_while(self, cgroups, action):
        """(({part: seconds}, passed seconds), result of the action)"""
        before, began = cgroups.read(list(self.b.ours.objects.values())), time.monotonic()
        result = action()
        after = cgroups.read(list(self.b.ours.objects.values()))
        return (used(before, after), time.monotonic() - began), result

    def form_and_settle(self, n, with_domain):
        _, _, name = self.b.form(n, with_domain)
        if with_domain:
            self.b.wait_status(name, n)
        time.sleep(WRITTEN_S)
        return name

    def writes(self):
        """Writes of our programs to the API server, without Events and Leases."""
        writes, conflicts = {}, 0
        for n in self.sizes:
            self.idle()
            since = self.audit.position()
            _, _, name = self.b.form(n, True)
            self.b.wait_daemons("READY", n)
            self.b.wait_status(name, n)
            writes[n], more = self.audit.writes(since)
            conflicts += more
            for (who, resource), v in sorted(writes[n].items()):
                self.b.log(f"writes with {n} nodes: {who} {resource}: {v}")
            for (who, verb, resource), v in sorted(self.audit.reads(since).items()):
                self.b.log(f"reads with {n} nodes: {who} {verb} {resource}: {v}")
            self.b.remove(name, True)
        few, many = (sum(v for (_, r), v in writes[n].items() if r != "nodes") for n in (self.sizes[0], self.sizes[-1]))
        pods = [sum(v for (_, r), v in writes[n].items() if r == "pods") for n in (self.sizes[0], self.sizes[-1])]
        span = max(1, self.sizes[-1] - self.sizes[0])
        self.row(f"API writes per joining node until the domain is Ready, ({self.sizes[-1]} - {self.sizes[0]} nodes) / {span}: its Pod",
                 f"{(pods[1] - pods[0]) / span:.2f}", "<= 1", f"{conflicts} conflicts; the Node's label is written 3 s later")
        self.row(f"API writes that {self.sizes[-1]} joining nodes share: fabrics, ComputeDomains, other objects", f"{many - pods[1]}", "a burst",
                 f"{many} writes in all; with {self.sizes[0]} nodes {few}")

    def memory(self):
        """Private dirty memory of idle programs and in a domain, and the CPU time of idle programs."""
        n = self.sizes[-1]
        self.idle()
        time.sleep(self.a.settle)
        self.memory_row("idle", "<= 1.9")
        _, _, name = self.b.form(n, True)
        self.b.wait_daemons("READY", n)
        self.b.wait_status(name, n)
        before = {pid: cpu_seconds(pid) for pids in processes(OURS).values() for pid in pids}
        time.sleep(self.a.settle)
        self.memory_row("in a domain", "<= 2.0")
        bars = {CONTROLLER: "3 / - / 14 MB", PLUGIN: "3 / - / 16 MB", DAEMON: ""}
        for program, pids in sorted(processes(OURS).items()):
            m = [memory(pid) for pid in pids]
            self.row(f"memory of {program} ({len(pids)}), worst: private dirty / PSS / RSS", " / ".join(f"{max(x[i] for x in m):.1f}" for i in range(3)) + " MB",
                     bars[program], f"with pages of {os.sysconf('SC_PAGE_SIZE') // 1024} KiB")
            spent = [cpu_seconds(pid) - before[pid] for pid in pids if pid in before]
            self.row(f"CPU of {program} while nothing changes, worst", f"{max(spent) / self.a.settle * 1000:.1f} ms a second")
        self.b.remove(name, True)

    def memory_row(self, when, bar):
        sizes = [memory(pid)[0] for pid in processes((DAEMON,))[DAEMON]]
        self.row(f"private dirty memory of {DAEMON} {when}, worst of {len(sizes)}", f"{max(sizes):.2f} MB", bar + " MB")

    def prepare(self):
        """Prepare inside the plugin."""
        ready = prepare_times(self.a.kubectl, self.b.ready_channels(30))
        yard = three_writes(self.a.state)
        self.row("ready channel, Prepare inside the plugin without the claim's GET: p50 / p99", f"{percentile(ready, .5):.2f} / {percentile(ready, .99):.2f} ms",
                 f"p50 <= 5, p99 <= {2 * percentile(yard, .99):.1f} ms",
                 f"{len(ready)} claims; three atomic writes here: p50 {percentile(yard, .5):.2f}, p99 {percentile(yard, .99):.2f} ms")
        busy = prepare_times(self.a.kubectl, f"{NS}/domain-")
        self.row("the same for channels of domains during their formation", f"{percentile(busy, .5):.2f} / {percentile(busy, .99):.2f} ms", "", f"{len(busy)} claims")

    def failover(self):
        killed = [self.b.join_without_leader(lambda pod: subprocess.run([*self.a.kill_pod.split(), pod], check=True)) for _ in range(3)]
        self.row("2 nodes with the leading controller killed at the start, three times in a row", " / ".join(f"{seconds:.2f} s" for seconds in killed), "",
                 "after the first time the kubelet delays the restart of the container, and the lease must expire")

    def lines(self):
        out = table(self.rows)
        for n, steps in self.timelines.items():
            out += ["", f"Timeline of a median formation of {n} nodes (seconds after the first request: first, last):", "",
                    "| step | first | last | how many |", "|---|---|---|---|"]
            out += [f"| {step} | {first:.2f} | {last:.2f} | {count} |" for step, first, last, count in steps]
        return out


FIGURES = ("start", "cpu", "chain", "writes", "memory", "prepare", "failover")


def main():
    p = arguments(__doc__, 11)
    p.add_argument("--state", required=True, help="the folder of the test cluster")
    p.add_argument("--knob", required=True, help="a command that sets a knob of nvidia-imex on all nodes: KEY=VALUE")
    p.add_argument("--kill-pod", required=True, help="a command that kills (-9) the pod of its last argument")
    p.add_argument("--settle", type=int, default=30, help="seconds before memory is measured")
    p.add_argument("--figures", default=" ".join(FIGURES), help="some of: " + " ".join(FIGURES))
    a = p.parse_args()
    wanted = a.figures.split()
    if unknown := set(wanted) - set(FIGURES):
        p.error(f"unknown figures {', '.join(sorted(unknown))}: choose among {', '.join(FIGURES)}")
    bench, audit, sizes = begin(a)
    default = Default(bench, audit, sizes, a)
    for figure in (f for f in FIGURES if f in wanted):
        default.idle()
        getattr(default, figure)()
    publish(default.lines(), a.output)


if __name__ == "__main__":
    sys.exit(main())
