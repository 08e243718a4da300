# SPDX-License-Identifier: Apache-2.0
"""Measures ComputeDomains whose IMEX agents run (imex.agents=true) against plain pods on the test cluster and appends one table.

As in bench.py, each duration is compared with the same Job without any claim in the same run, in turns. The cluster, the image and the
chart are set up by ./run, which calls this."""

import statistics
import subprocess
import sys
import time

from bench import CD_GROUP, DRIVER_NS, NS, Bench, arguments, begin, domain, job, memory, processes, publish, running, table
from kubeapi import Watch

AGENT, STATE = "compute-domain-agent", "imex.resource.nvidia.com/state"
# Seconds that nvidia-imex takes to start, for domains that follow each other on the same nodes.
STARTS = (0, 1, 5)


class Agents(Bench):
    """The same with agents: their Pods stay, and a node is free when its agent is in no domain."""

    def __init__(self, cluster, log):
        super().__init__(cluster, log)
        self.fabrics = Watch(cluster, f"{CD_GROUP}/computedomainfabrics")

    def of(self, name):
        return lambda pods: [p for p in pods if p["metadata"].get("labels", {}).get("bench") == name]

    def agents(self, state, count):
        is_agent = lambda p: p["metadata"].get("labels", {}).get("app.kubernetes.io/component") == AGENT
        told = lambda p: p["metadata"].get("annotations", {}).get(STATE)
        self.daemons.wait(lambda pods: sum(told(p) == state for p in pods if is_agent(p)) >= count, 120, f"{count} agents {state}")

    def remove(self, name, with_domain):
        """Seconds until pods, claims and, with a domain, its object and its places are gone."""
        start = time.monotonic()
        self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{name}")
        if with_domain:
            self.k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{name}")
        self.pods.wait(lambda pods: not self.of(name)(pods), 120, "pods gone")
        self.claims.wait(lambda claims: all(c["metadata"]["namespace"] == DRIVER_NS for c in claims), 120, "claims gone")
        if with_domain:
            self.domains.wait(lambda all_: not any(d["metadata"]["name"] == name for d in all_), 120, "ComputeDomain gone")
            self.fabrics.wait(lambda fabrics: not any(f.get("domains") for f in fabrics), 120, "places free")
        return time.monotonic() - start

    def follow(self, nodes, with_domain):
        """Seconds from the deletion of a Job on the nodes, with its domain, until all pods of the next one run there."""
        _, _, first = self.form(nodes, with_domain)
        name = self.name("next")
        start = time.monotonic()
        self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{first}")
        if with_domain:
            self.k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{first}")
            self.k.create(f"{CD_GROUP}/namespaces/{NS}/computedomains", domain(name))
        self.k.create(f"/apis/batch/v1/namespaces/{NS}/jobs", job(name, nodes, name if with_domain else None))
        end = self.pods.wait(lambda pods: sum(running(p) for p in self.of(name)(pods)) == nodes, 240, f"{name} on {nodes} nodes")
        self.remove(name, with_domain)
        return end - start


def memory_row(row, when, bar):
    used = [memory(pid)[0] for pid in processes((AGENT,))[AGENT]]
    row(f"private dirty memory of an agent {when}, worst of {len(used)}", f"{max(used):.2f} MB", bar)


def main():
    p = arguments(__doc__, 7)
    p.add_argument("--knob", required=True, help="a command that changes how nvidia-imex behaves on all nodes: KEY=VALUE")
    p.add_argument("--settle", type=int, default=20, help="seconds between a formation and the measuring of memory")
    a = p.parse_args()
    bench, audit, sizes = begin(a, Agents)
    rows, writes = [], {}
    row = lambda what, value, bar="", note="": rows.append((what, value, bar, note))
    in_turns = f"median of {a.pairs} interleaved pairs"
    bench.agents("IDLE", sizes[-1])
    memory_row(row, "in no domain", "<= 2.0")

    for n in sizes:
        runs = []
        for i in range(a.pairs):
            plain, _, name = bench.form(n, False)
            plain_gone = bench.remove(name, False)
            formed, _, name = bench.form(n, True)
            gone = bench.remove(name, True)
            runs.append((plain, formed, plain_gone, gone))
            bench.log(f"agents, {n} nodes, pair {i + 1} of {a.pairs}: plain {plain:.2f} s, domain {formed:.2f} s, ratio {formed / plain:.2f}; "
                      f"gone after {plain_gone:.2f} and {gone:.2f} s")
        of = lambda column: statistics.median(r[column] for r in runs)
        row(f"agents, {n} nodes, free: apply to all pods Running", f"{of(1):.2f} s; plain {of(0):.2f} s; ratio {statistics.median(r[1] / r[0] for r in runs):.2f}",
            "<= 1.25", in_turns)
        row(f"agents, {n} nodes: until nothing is left, beyond the plain Job", f"{statistics.median(r[3] - r[2] for r in runs):.2f} s "
            f"({of(3):.2f} s; plain {of(2):.2f} s)", f"<= {0.5 if n == 2 else 2} s", in_turns)

    for seconds in STARTS:
        subprocess.run([*a.knob.split(), f"START_DELAY_MS={seconds * 1000 or ''}"], check=True)
        for n in sizes:
            runs = [(bench.follow(n, False), bench.follow(n, True)) for _ in range(max(1, a.pairs // 2))]
            row(f"agents, {n} nodes, back to back, nvidia-imex needs {seconds} s: delete to all pods of the next Running",
                f"{statistics.median(r[1] for r in runs):.2f} s; plain {statistics.median(r[0] for r in runs):.2f} s; "
                f"ratio {statistics.median(r[1] / r[0] for r in runs):.2f}", "", f"median of {len(runs)} interleaved pairs")
    subprocess.run([*a.knob.split(), "START_DELAY_MS="], check=True)

    for n in sizes:
        bench.agents("IDLE", sizes[-1])
        since = audit.position()
        _, _, name = bench.form(n, True)
        bench.agents("READY", n)
        bench.domains.wait(lambda ds: any(d["metadata"]["name"] == name and d.get("status", {}).get("nodesReady") == n for d in ds), 60,
                           "status complete")
        writes[n], conflicts = audit.writes(since)
        for (who, resource), v in sorted(writes[n].items()):
            bench.log(f"agents, writes with {n} nodes: {who} {resource}: {v}")
        if n == sizes[-1]:
            time.sleep(a.settle)
            memory_row(row, "in a domain", "<= 2.2")
        bench.remove(name, True)
    # The label of a Node, which is for people, is written three seconds later, be the domain formed by then or not.
    few, many = (sum(v for (_, r), v in writes[n].items() if r == "pods") for n in (sizes[0], sizes[-1]))
    span = max(1, sizes[-1] - sizes[0])
    in_all = sum(v for (_, r), v in writes[sizes[-1]].items() if r != "nodes")
    row(f"agents, API writes per joining node until the domain is Ready, ({sizes[-1]} - {sizes[0]} nodes) / {span}: its Pod", f"{(many - few) / span:.2f}",
        "<= 1", f"{in_all} writes in all while {sizes[-1]} nodes join, {conflicts} conflicts; the Node's label comes 3 s later")
    publish(table(rows), a.output)


if __name__ == "__main__":
    sys.exit(main())
